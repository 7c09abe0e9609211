"""The studies with journals in a directory: which are running, how far each has got, and which can be priors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from raybo import journal
from raybo.common.errors import RayboError, TrialError
from raybo.record.events import STOP_REASON
from raybo.record.states import FAILURES
from raybo.searcher.priors import fitting, journals_in
from raybo.searcher.wanted import Wanted
from raybo.study.study import Study, load


@dataclass(frozen=True)
class Progress:
    """The progress of a study.

    Attributes:
        name: its journal's file.
        where: the machine and the process that run it; empty while none does.
        done, planned, failed: numbers of trials; None if they are not known.
        has_ended: whether it ended by itself, and was not stopped or interrupted.
        best: the best value, after what it is called; empty while there is none.
        method: its name.
        problem: what is wrong with the journal, or with its study; empty if nothing is.
    """

    name: str
    where: str = ""
    done: int | None = None
    planned: int | None = None
    failed: int | None = None
    has_ended: bool = False
    best: str = ""
    method: str = ""
    problem: str = ""

    @property
    def cells(self) -> tuple[str, ...]:
        """As a row of a table: name, state, trials, failed, best, method."""
        if self.done is None:
            state = f"runs on {self.where}" if self.where else ""
        elif self.where:
            state = f"runs on {self.where}"
        else:
            state = "ended" if self.has_ended else "stopped"
        trials = "" if self.done is None else f"{self.done:,}" + ("" if self.planned is None else f"/{self.planned:,}")
        return self.name, state, trials, str(self.failed or ""), self.best, self.method or self.problem

    @property
    def facts(self) -> dict[str, Any]:
        """As JSON; None for what is empty."""
        return {
            "name": self.name,
            "running_on": self.where or None,
            "done": self.done,
            "planned": self.planned,
            "failed": self.failed,
            "best": self.best or None,
            "method": self.method or None,
            "problem": self.problem or None,
        }


HEADINGS: Sequence[str] = ("study", "state", "trials", "failed", "best", "method")


def studies_in(directory: Path) -> list[Progress]:
    """The studies of a directory, by the name of their journals; of a file that is none, what is wrong with it."""
    return [progress_of(path) for path in sorted(directory.glob("*.db")) if path.is_file() and journal.exists(path)]


def progress_of(path: Path) -> Progress:
    """Return the progress of a journal's study, which may be running."""
    where = journal.holder(path) if journal.in_use(path) else ""
    try:
        study = load(path)
    except RayboError as error:
        return Progress(path.name, where, problem=str(error))
    return Progress(
        path.name,
        where,
        done=study.ran,
        planned=study.planned,
        failed=study.count(*FAILURES),
        has_ended=study.ended not in ("", STOP_REASON),
        best=_best(study),
        method=study.description.method,
    )


def _best(study: Study) -> str:
    if study.context is not None:  # the best is an estimate, which `raybo show` makes
        return ""
    if study.goals.k > 1:
        return on_the_front(len(study.front)) if study.front else ""
    try:
        best = study.best
    except TrialError:
        return ""
    return "" if best.value is None else f"{study.description.metric} {best.value:.6g} (trial {best.number})"


def on_the_front(count: int) -> str:
    """Return the summary of a study with several metrics, in place of the best value."""
    return f"{count} on the front"


@dataclass(frozen=True)
class PriorCandidate:
    """A journal that may be a prior.

    Attributes:
        name: its file.
        knows: names of the parameters in common.
        trials: how many it has; None if it cannot be used.
        metric: what it wants.
        newest: when its last event was written, UTC in ISO 8601.
        problem: why it cannot be used; empty if it can.
    """

    name: str
    knows: list[str] | None = None
    trials: int | None = None
    metric: str = ""
    newest: str = ""
    problem: str = ""

    @property
    def cells(self) -> tuple[str, ...]:
        """As a row of a table: name, parameters, trials, metric, date."""
        if self.problem:
            return self.name, self.problem, "", "", ""
        return self.name, ", ".join(self.knows or ()), str(self.trials), self.metric, self.newest[:10]

    @property
    def facts(self) -> dict[str, Any]:
        """As JSON; None for what is empty."""
        return {name: value or None for name, value in vars(self).items()}


OWN = "the job's own journal, which is continued"  # and no prior
PRIOR_HEADINGS: Sequence[str] = ("study", "parameters in common", "trials", "metric", "newest")


def prior_candidates(directory: Path, wanted: Wanted) -> list[PriorCandidate]:
    """Return the journals of a directory, those that fit first: by parameters in common, then by trials."""
    paths, own = journals_in(directory), None if wanted.path is None else wanted.path.resolve()
    found = [PriorCandidate(path.name, problem=OWN) for path in paths if path.resolve() == own]
    for path, prior, problem in fitting([path for path in paths if path.resolve() != own], wanted):
        if prior is None:
            found.append(PriorCandidate(path.name, problem=problem))
            continue
        newest = journal.read(path)[1][-1].at
        names = [wanted.space.names[axis] for axis in prior.axes]
        metric = f"{prior.counts['mode']} {prior.counts['metric']}"
        found.append(PriorCandidate(path.name, names, prior.counts["trials"], metric, newest))
    return sorted(found, key=lambda each: (bool(each.problem), -len(each.knows or ()), -(each.trials or 0), each.name))
