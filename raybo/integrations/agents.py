"""Studies in a folder for an agent that asks and tells, within limits that a person has set.

Every study is a journal of the folder. Each call opens it, does one thing, and closes it: what it returns is on the
disk first, so an agent or a server that dies has lost nothing. The limits are counted in the folder's journals, whoever
wrote them; nothing that an agent can say raises them.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from itertools import islice
from pathlib import Path
from typing import Any

from raybo import spaces
from raybo.common import systems
from raybo.common.arguments import finite_number, whole_number
from raybo.common.errors import JournalError, MethodError, SpaceError, TrialError
from raybo.common.messages import nearest, shown
from raybo.integrations.export import exporter
from raybo.integrations.study_json import described, plain
from raybo.journal import exists, is_marked
from raybo.journal.clean import clean_description
from raybo.record.events import Asked
from raybo.record.origin import Origin
from raybo.record.states import FAILURES, State
from raybo.record.trial import Trial
from raybo.searcher import Searcher
from raybo.space import Categorical, Float, Integer, Ordinal, Space
from raybo.study.study import Study, load

NAME = re.compile(r"[A-Za-z0-9][\w-]{0,63}")  # of a study: no path can be made of it
LOCK = ".raybo-agents.lock"
EXPORTS = {"csv": "csv", "reports": "reports.csv", "json": "json", "optuna": "optuna.log"}  # format: end of the file
MOST_ASKED = 1_000  # trials of one call, which holds the folder until it has them
LAST = 8  # trials of which a status tells the story
KINDS: Mapping[str, tuple[type, Sequence[str], Sequence[str]]] = {  # with what a parameter needs, and may have
    "float": (Float, ("low", "high"), ("log", "step", "scale", "guess", "next_guesses")),
    "integer": (Integer, ("low", "high"), ("log", "step", "guess", "next_guesses")),
    "categorical": (Categorical, ("choices",), ("guess", "next_guesses")),
    "ordinal": (Ordinal, ("choices",), ("guess", "next_guesses")),
}


@dataclass(frozen=True)
class Limits:
    """Limits that no agent may exceed.

    Attributes:
        trials: how many may be asked for, in all studies of the folder together; None for no limit.
        minutes: since the folder's first trial was asked for, after which no other can be; None for no limit.
        where: rules that every configuration must satisfy, as in `raybo.Space`; a study whose space cannot keep them is
            refused.
    Raises:
        MethodError: a limit is not a number above 0.
    Example:
        >>> from raybo.integrations.agents import Limits
        >>> Limits(trials=40, where=("learning_rate <= 0.1",)).minutes is None
        True
    """

    trials: int | None = None
    minutes: float | None = None
    where: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.trials is not None:
            object.__setattr__(self, "trials", whole_number(self.trials, "trials"))
        if self.minutes is not None:
            object.__setattr__(self, "minutes", finite_number(self.minutes, "minutes", above=0))


@dataclass(frozen=True)
class AgentFolder:
    """The studies of a folder, as an agent works with them. Every method returns what JSON can hold.

    Methods raise a RayboError, in one line that tells the agent what to do.

    Attributes:
        directory: the folder, made when it is first written.
        limits: what no agent may exceed.
    Example:
        >>> from pathlib import Path
        >>> from raybo.integrations.agents import AgentFolder, Limits
        >>> folder = AgentFolder(Path("studies"), Limits(trials=20))
        >>> made = folder.create("first", {"x": {"type": "float", "low": 0, "high": 1}}, mode="min")
        >>> (asked,) = folder.ask("first")["trials"]
        >>> folder.tell("first", asked["trial"], 0.5)["best"]["value"]
        0.5
    """

    directory: Path
    limits: Limits = Limits()
    _begun: list[float] = field(default_factory=list, init=False, repr=False, compare=False)

    def create(self, study: str, space: Mapping[str, Any] | str, **arguments: Any) -> dict[str, Any]:
        """Create a study; one that is there already must be the same, and goes on.

        Args:
            study: its name.
            space: parameters by name, see `space_of`; or the name of a ready space of `raybo.spaces`.
            arguments: those of `raybo.Searcher` that are not None.
        """
        given = {name: value for name, value in arguments.items() if value is not None}
        own = given.pop("where", [])
        where = [*([own] if isinstance(own, str) else own), *self.limits.where]
        with self._locked():
            path = self._path(study)
            self.directory.mkdir(parents=True, exist_ok=True)
            of_space = Space(space_of(space), where=where or None)
            if exists(path):  # a journal gives way while nothing has happened, but its agent was told that it is there
                found = load(path).description
                same = Searcher(of_space, **{"seed": found.seed, **given}).description
                now = clean_description(replace(same, objective=found.objective))
                if different := found.differences(now):
                    raise TrialError(f"{study} is there and differs: {'; '.join(different)}; choose another name")
            with Searcher(of_space, storage=path, **given):
                pass
        return self.status(study)

    def ask(self, study: str, n: int = 1, config: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the next trials to run, and those that somebody has asked for and not told yet.

        Args:
            study: which one.
            n: how many, up to 1,000.
            config: some of the parameters, or all, as the next trial must have them; the rest is proposed.
        """
        n = whole_number(n, "n", error=TrialError, at_most=MOST_ASKED)
        with self._locked(), self._open(study) as searcher:
            missing = set(self.limits.where) - {rule.text for rule in searcher.space.rules}
            if missing:
                raise TrialError(
                    f"{study} was created without the rule {sorted(missing)[0]!r}, which is now a limit; create another"
                )
            waiting = {trial.number for trial in searcher.waiting}  # they count since they were enqueued
            open_before = [trial.number for trial in searcher.pending if trial.number not in waiting]
            if config is None:
                trials = self._next(searcher, n, len(waiting))
            else:
                self._require_left(1)
                trials = _asked_with(searcher, config, n)
            return {
                "trials": [
                    {"trial": trial.number, "config": plain(trial.config), "why": searcher.explain(trial)}
                    for trial in trials
                ],
                "asked_for_earlier_and_not_told": open_before,
                "limits": self.left(),
            }

    def _next(self, searcher: Searcher, n: int, waiting: int) -> list[Trial]:
        """Return the next n trials: those that continue, the waiting ones, new ones as far as the limits allow.

        Where not all n are allowed there are fewer, if some continue, or none, with a TrialError.
        """
        self._require_left(0)
        trials = list(islice(iter(searcher.promoted, None), n))
        wanted = n - len(trials)
        try:
            self._require_left(max(0, wanted - waiting))
        except TrialError:
            if not trials:
                raise
            wanted = min(wanted, waiting)
        return [*trials, *(searcher.ask(wanted) if wanted else [])]

    def tell(self, study: str, trial: int, result: float | Mapping[str, Any]) -> dict[str, Any]:
        """Tell the result of a trial: a number, or a dict with all metrics and constrained numbers."""
        with self._locked(), self._open(study) as searcher:
            searcher.tell(trial, result)
        return self.status(study)

    def fail(self, study: str, trial: int, reason: str) -> dict[str, Any]:
        """Say that a trial has no result, and why; the method learns from it."""
        with self._locked(), self._open(study) as searcher:
            searcher.fail(trial, reason)
        return self.status(study)

    def report(
        self, study: str, trial: int, result: float | Mapping[str, Any], step: int | None = None
    ) -> dict[str, Any]:
        """Report a step of a trial; return whether it continues, was pruned, or is paused until `ask` returns it."""
        with self._locked(), self._open(study) as searcher:
            verdict = searcher.report(trial, result, step)
            if verdict.prune:
                searcher.prune(trial)
            elif verdict.pause:
                searcher.pause(trial)
            said = "prune" if verdict.prune else "pause" if verdict.pause else "continue"
            return {"verdict": said, "why": verdict.why}

    def status(self, study: str | None = None) -> dict[str, Any]:
        """Return a study's counts, recommended and best trial, story, pending trials; of all studies, their names."""
        if study is None:
            return {"studies": {path.stem: repr(each) for path, each in self._studies()}, "limits": self.left()}
        found = self._load(study)
        states = {str(state): found.count(state) for state in State if found.count(state)}
        pending = [trial for trial in found.trials if trial.state in (State.PENDING, State.PAUSED)]
        return {
            "study": study,
            "goals": str(found.goals),
            "trials": len(found.trials),
            "planned": found.planned,
            "states": states,
            **({} if found.incumbent is None or found.goals.k > 1 else _chosen(found)),
            **({"front": len(found.front)} if found.goals.k > 1 else {}),
            "story": _story(found),
            "pending": [{"trial": each.number, "config": plain(each.config)} for each in pending],
            "limits": self.left(),
        }

    def explain(self, study: str, trial: int) -> dict[str, Any]:
        """Return why a trial was proposed, and everything known of it."""
        found = self._load(study)
        number = found.history.require(trial)
        return {"why": found.explain(number), **_brief(found, found.trials[number])}

    def front(self, study: str) -> dict[str, Any]:
        """Return the best trials: with several metrics those that no other dominates, else the best one."""
        found = self._load(study)
        best = found.front if found.goals.k > 1 else [found.best]
        return {"goals": str(found.goals), "trials": [_brief(found, trial) for trial in best]}

    def export(self, study: str, to: str = "csv") -> dict[str, Any]:
        """Write the study into the folder for another program, and return the file."""
        if to not in EXPORTS:
            raise MethodError(f"there is no export to {shown(to)} here{nearest(str(to), list(EXPORTS))}")
        found = self._load(study)
        path = self._inside(f"{study}.{EXPORTS[to]}")
        exporter(to, str(path))(found)
        return {"file": str(path)}

    def space(self, study: str) -> dict[str, Any]:
        """Return what a study searches, and how."""
        return described(self._load(study).description)

    def left(self) -> dict[str, Any]:
        """Return what is left of the limits."""
        asked, first = self._used()
        left: dict[str, Any] = {"folder": str(self.directory.absolute())}
        if self.limits.trials is not None:
            left["trials_left"] = max(0, self.limits.trials - asked)
        if self.limits.minutes is not None:
            spent = 0.0 if first is None else self._seconds_since(first) / 60
            left["minutes_left"] = round(max(0.0, self.limits.minutes - spent), 2)
        if self.limits.where:
            left["every_configuration_keeps"] = list(self.limits.where)
        return left

    def _seconds_since(self, first: datetime) -> float:
        """Return the seconds since the first trial was asked for, of a clock that nobody sets once they count."""
        if not self._begun:
            by_clock = (datetime.now(timezone.utc) - first).total_seconds()
            self._begun.append(time.monotonic() - max(0.0, by_clock))
        return time.monotonic() - self._begun[0]

    def _require_left(self, n: int) -> None:
        """Raise TrialError if n more trials would exceed a limit."""
        left = self.left()
        if left.get("trials_left", n) < n:
            raise TrialError(
                f"{n} more would exceed the limit of {self.limits.trials} trials, of which {left['trials_left']} are "
                "left; tell what is pending, and report to the person who set it"
            )
        if left.get("minutes_left", 1.0) <= 0.0:
            raise TrialError(
                f"the limit of {self.limits.minutes:g} minutes is reached; tell what is pending, and report to the "
                "person who set it"
            )

    def _used(self) -> tuple[int, datetime | None]:
        """Return how many trials have been asked for in the folder, and when the first was."""
        asked, times = 0, list[str]()
        for _, study in self._studies():
            asked += sum(trial.origin is not Origin.ADDED for trial in study.trials)
            times += [event.at for event in study.events if isinstance(event, Asked) and event.at][:1]
        return asked, min(map(datetime.fromisoformat, times), default=None)

    def _studies(self) -> Iterator[tuple[Path, Study]]:
        for path in sorted(self.directory.glob("*.db")):
            if is_marked(path):  # it is not another program's, nor about to be made
                yield path, load(path)

    def _path(self, study: str) -> Path:
        if not isinstance(study, str) or not NAME.fullmatch(study):
            raise JournalError(f"a study's name is made of letters, digits, - and _, got {shown(study)}")
        return self._inside(f"{study}.db")

    def _inside(self, name: str) -> Path:
        """Return a file of the folder; JournalError if it is a link."""
        path = self.directory / name
        if path.is_symlink():
            raise JournalError(f"{path}: it is a link, which may lead out of the folder; use another name")
        return path

    def _existing(self, study: str) -> Path:
        path = self._path(study)
        if not path.is_file():
            names = [each.stem for each in sorted(self.directory.glob("*.db"))]
            raise JournalError(f"there is no study {shown(study)}{nearest(study, names) if names else '; create it'}")
        return path

    def _load(self, study: str) -> Study:
        return load(self._existing(study))

    def _open(self, study: str) -> Searcher:
        return Searcher(storage=self._existing(study))

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the folder's lock, so that servers of several agents count together; the system frees a dead one's."""
        self.directory.mkdir(parents=True, exist_ok=True)
        try:
            with (self.directory / LOCK).open("a") as file:
                systems.lock(file.fileno(), wait=True)
                yield
        except OSError as error:
            raise JournalError(f"{self.directory}: it cannot be written ({error.strerror})") from error


def _asked_with(searcher: Searcher, config: Mapping[str, Any], n: int) -> list[Trial]:
    """Return the trials up to the one with these values; others may have been enqueued before it."""
    if n != 1:
        raise TrialError(f"a config is of one trial, got n={n}; ask for the others without it")
    known = len(searcher.trials)
    wanted = searcher.enqueue(config).number
    if wanted < known:
        raise TrialError(f"trial {wanted} was asked for with this config before; tell its result, or change a value")
    trials = [searcher.ask()]
    while trials[-1].number != wanted:
        trials.append(searcher.ask())
    return trials


def space_of(declared: Mapping[str, Any] | str) -> dict[str, Any]:
    """Return the parameters that an agent declares in JSON, for `raybo.Space`.

    Args:
        declared: the name of a function of `raybo.spaces`; or, by name, parameters such as `{"type": "float", "low": 0,
            "high": 1, "log": false}`, likewise "integer", and `{"type": "categorical", "choices": [...]}`, likewise
            "ordinal"; a dict of such, nested; or a constant. A choice that is a dict of parameters opens them.
    Raises:
        SpaceError: it is none of these; names the parameter.
    """
    if isinstance(declared, str):
        if declared not in spaces.READY:
            raise SpaceError(f"there is no ready space {shown(declared)}{nearest(declared, list(spaces.READY))}")
        return spaces.READY[declared]()
    if not isinstance(declared, Mapping):
        raise SpaceError(f"a space is an object of parameters by name, got {shown(declared)}")
    return {str(name): _parameter(str(name), value) for name, value in declared.items()}


def _parameter(name: str, value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    if isinstance(value.get("type", {}), Mapping):  # none, or a parameter of that name
        return {str(key): _parameter(f"{name}.{key}", each) for key, each in value.items()}
    if value["type"] not in KINDS:
        likely = nearest(str(value["type"]), list(KINDS))
        raise SpaceError(f"{name}: there is no type {shown(value['type'])}{likely}; a constant needs another name")
    kind, needed, further = KINDS[value["type"]]
    choices = value.get("choices")
    may_be_null = ("guess",) if isinstance(choices, list) and None in choices else ()
    given = {key: each for key, each in value.items() if key != "type" and (each is not None or key in may_be_null)}
    for key in given:
        if key not in (*needed, *further):
            raise SpaceError(f"{name}: {value['type']} has no {shown(key)}{nearest(str(key), [*needed, *further])}")
    for key in needed:
        if key not in given:
            raise SpaceError(f"{name}: {value['type']} needs {key}")
    if "choices" in given:  # a choice may be an object of parameters, wherever it is named
        for key in ("choices", "next_guesses"):
            if isinstance(given.get(key), list):
                given[key] = [_parameter(name, choice) for choice in given[key]]
        if "guess" in given:
            given["guess"] = _parameter(name, given["guess"])
    try:
        return kind(**given)
    except SpaceError as error:
        raise SpaceError(f"{name}: {error}") from error


def _chosen(study: Study) -> dict[str, Any]:
    """Return the recommended trial with its reason, and the best measured one."""
    recommended = {**_brief(study, study.recommended), "why": study.recommendation}
    return {"recommended": recommended, "best": _brief(study, study.best)}


def _brief(study: Study, trial: Trial) -> dict[str, Any]:
    """Return a trial as an agent needs it."""
    expected = study.expected(trial) if trial.state is State.FINISHED and study.goals.is_plain else None
    known = {
        "trial": trial.number,
        "state": str(trial.state),
        "config": trial.config,
        "value": trial.value if study.goals.k == 1 else None,
        "values": dict(trial.values) if not study.goals.is_plain else None,
        "violations": dict(trial.violations) or None,
        "expected_and_sd": expected,
        "reason": trial.reason or None,
        "reports": [list(each) for each in trial.reports] or None,
    }
    brief: dict[str, Any] = plain({key: value for key, value in known.items() if value is not None})
    return brief


def _story(study: Study) -> list[str]:
    """Return the last trials in words, and what the method shows of itself."""
    lines = []
    for trial in study.trials[-LAST:]:
        ended = f"{trial.value:.6g}" if trial.value is not None else trial.reason if trial.state in FAILURES else ""
        lines.append(f"trial {trial.number}: {study.explain(trial)}; {trial.state}{f': {ended}' if ended else ''}")
    story = study.method.story(study.trials, study.space.names)
    return [*lines, f"{story.title}: {story.caption}"] if story is not None else lines
