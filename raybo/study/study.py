"""A study as its users see it: the trials, the best of them, and what was asked for."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from raybo import journal, methods
from raybo.common.arguments import whole_number
from raybo.common.errors import TrialError
from raybo.common.messages import counted, shown
from raybo.journal.side_files import is_uri, trial_directory, trial_uri
from raybo.methods.explaining import method_of
from raybo.methods.findings import Findings
from raybo.record.append_only import ReadOnly
from raybo.record.code_changes import codes_of, last_code, other_code
from raybo.record.confirmed import Confirmed, again, confirmed
from raybo.record.events import Asked, Ended, Event, Planned, TrialEvent, artifacts_of
from raybo.record.ledger import Ledger
from raybo.record.origin import Origin
from raybo.record.states import COUNTED, State
from raybo.record.trial import Trial
from raybo.study.columns import to_dataframe

if TYPE_CHECKING:
    import pandas

    from raybo.record.description import Description


class Study(Findings):
    """The contents of a journal, read-only. Made by `raybo.tune` and `raybo.load`.

    Attributes:
        trials: every trial, in the order in which they were asked for.
        history: the same trials, as the methods saw them.
        planned: how many trials the study is to run; None if unknown.
        description: objective, metric, mode, method, options, seed.
        mode: "max" or "min".
        goal: which of two values is better; with several metrics, which of two values of the first.
        goals: the direction of each metric, and the constraints.
        steps: how many steps a whole run has; None if this is not declared.
        space: the search space.
        context: the space of the contexts; None if none is declared.
        events: everything that has happened, in order.
        path: the journal; None if it was not kept.
        artifacts: paths and URIs of the places that hold the trials' directories, latest first; empty if they are
            next to the journal.
    Example:
        >>> study = raybo.load("job.db")
        >>> values = [trial.value for trial in study.trials if trial.state is raybo.State.FINISHED]
        >>> study.best.value in (min(values), max(values))
        True
    """

    def __init__(self, description: Description, events: Sequence[Event], path: Path | None = None) -> None:
        self.description = description
        self.events = list(events)
        self.path = path
        self.space, self.context = description.space, description.context
        self.mode = description.mode
        self.goals = description.goals
        self.steps = description.steps
        self.ledger = Ledger(
            self.space,
            self.goals,
            self.context,
            description.steps,
            description.judged,
            description.generation,
            description.fidelity,
        )
        for event in self.events:
            self.ledger.apply(event)
        self.goal = self.ledger.goal
        self.trials = ReadOnly(self.ledger.trials)
        self.history = self.ledger.history
        self.planned = self.ledger.planned
        self.artifacts = artifacts_of(self.events)

    @property
    def confirmed(self) -> list[Confirmed]:
        """The configurations that were run again at the end (`--confirm`), best mean first.

        With constraints, those that keep them in more of these runs come first. Each has the `trial`, the `values` of
        its further runs, their `mean` and its standard `error`. Empty if none was run again.

        Example:
            >>> raybo.load("job.db").confirmed
            []
        """
        return confirmed(self.trials, self.history, self.goal)

    @property
    def other_code(self) -> str:
        """Says which trials ran under other code than the study's last run, and what differs; empty if none did.

        Trials of journals that raybo 0.1 and 0.2 wrote are not known to have, nor are results from elsewhere.
        """
        return other_code(self.events, last_code(self.events))

    def code_of(self, trial: Trial | int) -> Mapping[str, Mapping[str, str]] | None:
        """The fingerprint of the code that a trial ran under: hashes of its sources, and versions of packages.

        None if it is not known, as for trials that have not ended, of earlier releases, or from elsewhere.
        """
        return codes_of(self.events).get(_number_of(trial))

    @property
    def ended(self) -> str:
        """The reason why the study ended; empty while it runs, or if it was interrupted or cut short."""
        added = self._added_since_planned
        own = (event for event in reversed(self.events) if not (isinstance(event, TrialEvent) and event.trial in added))
        if isinstance(last := next(own, None), Ended):
            return last.reason
        is_done = self.planned is not None and self.ran >= self.planned and not self.count(State.PENDING)
        if not is_done:
            return ""
        results = self.history.count_tag("origin") and sum(
            isinstance(event, Asked) and event.origin is Origin.ADDED for event in self.events
        )
        known = results - len(added)
        came = f", and {counted(known, 'result')} came from elsewhere" if known else ""
        count = (self.planned or 0) - known
        return f"the one trial has been run{came}" if count == 1 else f"all {count} trials have been run{came}"

    @property
    def ran(self) -> int:
        """The number of planned trials that have ended; those that confirm, and results added since, do not count."""
        return self.count(*COUNTED) - len(again(self.trials)) - len(self._added_since_planned)

    @cached_property
    def _added_since_planned(self) -> set[int]:
        """The numbers of the results from elsewhere that are not among the planned trials."""
        if not self.history.count_tag("origin"):
            return set()
        later = takewhile(lambda event: not isinstance(event, Planned), reversed(self.events))
        return {event.trial for event in later if isinstance(event, Asked) and event.origin is Origin.ADDED}

    def reference(self) -> dict[str, float]:
        """The point from which `hypervolume` measures by default: a dict of the worst feasible value of each metric.

        In the user's sign and units, by the metrics' names; empty while nothing is feasible.

        Example:
            >>> list(raybo.load("job.db").reference())
            ['loss']
        """
        return self.ledger.reference()

    @property
    def incumbent(self) -> Trial | None:
        """The best feasible trial as measured; None while there is none, and with several metrics."""
        return self.ledger.incumbent

    @property
    def furthest(self) -> Trial | None:
        """If no trial has finished, the best of the pruned trials that got furthest; otherwise None."""
        return self.ledger.furthest

    @property
    def nearest(self) -> str:
        """A sentence saying that no trial keeps all constraints, and which comes nearest; needs a finished trial."""
        return self.ledger.nearest

    def broken(self, trial: Trial) -> str:
        """The constraints that a trial breaks, and by how much, in words; empty if it keeps them."""
        return self.ledger.broken(trial)

    def extend(self, events: Sequence[Event]) -> None:
        """Append later events, as they are read from a growing journal.

        Raises:
            TrialError: one is about a trial that is unknown or has already ended.
        """
        for event in events:
            self.events.append(self.ledger.apply(event))
        self.planned = self.ledger.planned
        vars(self).pop("_added_since_planned", None)
        if artifacts_of(events):
            self.artifacts = artifacts_of(self.events)

    @cached_property
    def method(self) -> methods.Method:  # type: ignore[override]  # set here once, when it is first asked for
        """The method with its options, which knows what its tags mean; if it cannot be imported, one that says so."""
        return method_of(self.description.method, self.description.options)

    def count(self, *states: State) -> int:
        """Return the number of trials in any of the given states, each a `raybo.State`.

        Example:
            >>> raybo.load("job.db").count(raybo.State.FINISHED, raybo.State.FAILED)
            15
        """
        return self.ledger.count(*states)

    def directory(self, trial: Trial | int) -> Path | None:
        """The directory with a trial's files: what it wrote to `raybo.current_trial().directory`, and what it printed.

        None if the trial left no files or left them on another machine, or if the study was not kept. With a URI
        (`--artifacts s3://...`) only what it printed is in a local directory; `files` says where the rest is.

        Raises:
            TrialError: it is neither a trial nor a whole number from 0.
        Example:
            >>> raybo.load("job.db").directory(0) is None  # it left no files here
            True
        """
        number = _number_of(trial)
        if self.path is None:
            return None
        kept = [place for place in self.artifacts if not is_uri(place)]
        places = [trial_directory(self.path, number, place) for place in (*kept, None)]
        return next((place for place in places if place.is_dir()), None)

    def files(self, trial: Trial | int) -> list[str]:
        """Return the places of a trial's files, in words: its directory, if there is one here, and its URI."""
        number = _number_of(trial)
        here = self.directory(number)
        last = self.artifacts[0] if self.artifacts else None
        uri = [trial_uri(self.path, number, last)] if self.path is not None and last and is_uri(last) else []
        return uri + ([] if here is None else [str(here)])

    def to_dataframe(self) -> pandas.DataFrame:
        """A row per trial: number, state, value, seconds, attempt, reason, then parameters, contexts, further metrics.

        With one metric and no context, `expected` and `expected_sd` are what a model expects of the trial. A name that
        is already taken gets a prefix: `config.` for a parameter, `context.` for a context, `metric.` for a metric.

        Raises:
            MissingExtra: pandas is not installed.
        """
        return to_dataframe(self.trials, self.space, self.context, self.expectations)

    def __repr__(self) -> str:
        description = self.description
        done = sum(t.state is State.FINISHED and t.origin is not Origin.CONFIRMED for t in self.trials)
        text = f"Study of {description.objective}: {done} of {self.planned or len(self.trials)} trials finished"
        if self.goals.k > 1:
            return f"{text}, {len(self.front)} on the front"
        has_best = done and self.incumbent is not None
        return (
            f"{text}, best {description.metric} {self.best.value:.6g} (trial {self.best.number})" if has_best else text
        )


def _number_of(trial: Trial | int) -> int:
    return trial.number if isinstance(trial, Trial) else whole_number(trial, "trial", at_least=0, error=TrialError)


def require_study(given: object, whose: str) -> None:
    """TrialError if it is not a study but, say, a journal."""
    if not isinstance(given, Study):
        raise TrialError(f"{whose} needs a study, got {shown(given)}; raybo.load(...) opens the study in a journal")


def load(path: Path | str) -> Study:
    """The study in a journal, read-only; it may still be running.

    Raises:
        JournalError: there is no such file, or it is not a journal that this version can read.
    Example:
        >>> study = raybo.load("job.db")
        >>> len(study.trials) >= study.count(raybo.State.FINISHED)
        True
    """
    with _uncollected():
        description, events = journal.read(path)
        return Study(description, events, Path(path))


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """Without the garbage collector: nothing of a study is garbage, and looking for it takes a sixth of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
