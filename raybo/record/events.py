"""What can happen in a study: the events of its journal, and the trials that they make, as users see them.

    event     says                                                          its trial is then
    planned   how many trials the study means to run
    asked     a point was proposed                                          pending
    met       the trial says which context it observed, and goes on         pending
    retried   the trial starts again: its worker was lost, or it had        pending
              failed and the user wants it run again
    reported  the trial says what a step of it came to, and goes on         pending
    paused    a scheduler has the trial wait for the others                 paused
    resumed   it goes on                                                    pending
    pruned    a scheduler ended the trial                                   pruned
    told      the trial ended with a finite value                           finished
    failed    the trial ended without one, or was lost for the last time    failed, or lost
    stopped   the user ended the trial                                      stopped
    ended     the study ended before its trials had all been run, and why

What each of them holds is `Data`. Nobody else spells what an event is made of: type checkers refuse a key that is not
there, and what takes more than a look is a property of `Event`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, TypeAlias, TypedDict

import numpy as np

from raybo.common.errors import TrialError
from raybo.common.messages import shown
from raybo.record.goals import Goals
from raybo.space import Array, Config, Reading, Row, Space, read_context

Tags: TypeAlias = dict[str, Any]


class State(str, Enum):
    """Where a trial stands. A name, once stored, is never removed.

    Example:
        >>> searcher = raybo.Searcher({"x": raybo.Float(0, 1)}, seed=0)
        >>> trial = searcher.fail(searcher.ask(), "diverged")
        >>> trial.state
        <State.FAILED: 'failed'>
        >>> [str(state) for state in raybo.State]
        ['pending', 'finished', 'failed', 'lost', 'stopped', 'pruned', 'paused']
    """

    PENDING = "pending"  # asked, not yet told
    FINISHED = "finished"
    FAILED = "failed"
    LOST = "lost"  # its worker was lost at every attempt
    STOPPED = "stopped"
    PRUNED = "pruned"  # by a scheduler, for what it had reported
    PAUSED = "paused"  # by a scheduler, until it is worth going on

    def __str__(self) -> str:
        return self.value


FAILURES = (State.FAILED, State.LOST)  # the point gave no value, and is taken to be a bad one
COUNTED = (State.FINISHED, State.PRUNED, *FAILURES)  # what counts of a planned number of trials: not the stopped ones
OPEN = (State.PENDING, State.PAUSED)  # more may become of it


class Kind(str, Enum):
    """What an event says. A name, once stored, is never changed."""

    PLANNED = "planned"
    ASKED = "asked"
    BEGUN = "begun"
    CONTEXT_OBSERVED = "met"
    RETRIED = "retried"
    TOLD = "told"
    FAILED = "failed"
    STOPPED = "stopped"
    ENDED = "ended"
    REPORTED = "reported"
    PRUNED = "pruned"
    PAUSED = "paused"
    RESUMED = "resumed"

    def __str__(self) -> str:
        return self.value


ENDS: Mapping[Kind, State] = {
    Kind.TOLD: State.FINISHED,
    Kind.FAILED: State.FAILED,
    Kind.STOPPED: State.STOPPED,
    Kind.PRUNED: State.PRUNED,
}
_BEFORE: Mapping[Kind, tuple[State, ...]] = {  # where that is not pending alone
    Kind.RETRIED: (State.PENDING, *FAILURES),
    Kind.RESUMED: (State.PAUSED,),
    Kind.PRUNED: OPEN,
    Kind.STOPPED: OPEN,
}


def states_before(kind: Kind) -> tuple[State, ...]:
    """Where a trial may stand for such an event to be about it, if it has been asked for."""
    return _BEFORE.get(kind, (State.PENDING,))


class Origin(str, Enum):
    """Where a trial came from that no method proposed; the tag `origin` holds it."""

    ADDED = "added"  # with its value, from elsewhere
    ENQUEUED = "enqueued"  # a configuration that the user named, to be run
    CONFIRMED = "confirmed"  # one of the search's configurations once more; the tag `confirms` names its trial
    GUESSED = "guessed"  # where the space says that the best may lie, run before anything is proposed


class Data(TypedDict, total=False):
    """What an event holds, plain JSON under the names that the journal keeps. What is not known is left out."""

    trials: int  # planned: how many in all
    artifacts: str  # planned: a path or a URI under which the trials' directories are from now on

    # asked
    x: list[float]  # (d,), the point of the cube
    values: Row  # the same as the space packs it
    tags: Tags  # what the method said and must remember
    gain: float  # what the proposal is expected to gain, in the metric's units, where the study stops for that
    seen: int  # number of the last event that the proposal was based on; with many workers, exactly what it knew
    suggest_seconds: float  # how long the proposal took
    suggest_processor_seconds: float  # how much of a processor; not in journals of 0.1

    # any event of a trial whose context became known; in `asked`, where it was known beforehand and proposed for
    context: Row  # as its space packs it
    c: list[float]  # (dc,), the same in [0, 1]
    context_note: str  # what was wrong with it, or was moved
    context_missing: list[str]  # declared names that were not reported

    # told, failed, stopped, retried
    value: float  # in the user's sign
    reason: str  # why there is none, or why it starts again; ended: why the study did
    kind: str  # "lost" where a failed trial lost its worker at every attempt
    attempt: int  # which one ended, or begins; from 1
    losses: int  # how many attempts so far ended with the loss of a worker
    seconds: float  # how long the trial ran, by a clock that is never set back
    started: str  # when it began, UTC in ISO 8601, by its machine's clock
    host: str  # where
    metrics: dict[str, Any]  # what else it returned
    metrics_left: list[str]  # names of what else it returned that JSON cannot hold
    traceback: str

    # reported, with its value, what else was said with it as metrics, and the seconds since the attempt began
    step: int  # from 1; also which one a verdict was about, and the last one before a trial that is resumed
    repeated: bool  # whether that step is known from an earlier attempt, so that nothing is learnt of it
    checkpoint: str  # name of the checkpoint that goes with it, in the trial's directory

    # pruned, paused: with the reason in words, and in `seen` the number of the report that it was decided on
    rule: str  # name of the scheduler
    numbers: dict[str, Any]  # what decided: rung, cutoff, rank, probability


LOST = "lost"
_ATTRIBUTES = frozenset({"value", "reason", "seconds", "attempt", "context", "c"})  # of a Trial; the rest is details


@dataclass(frozen=True)
class Event:
    """One entry of a study's journal.

    Attributes:
        kind: what it says.
        trial: the trial it is about; None for `planned` and `ended`.
        data: its content.
        number: its place among the events, from 1; 0 until it has one.
        at: when it was written, UTC in ISO 8601; empty where nothing was written.
    """

    kind: Kind
    trial: int | None
    data: Data
    number: int = 0
    at: str = ""

    @property
    def state(self) -> State:
        """Where its trial stands after it."""
        if self.kind is Kind.PAUSED:
            return State.PAUSED
        return State.LOST if self.data.get("kind") == LOST else ENDS.get(self.kind, State.PENDING)

    @property
    def is_end(self) -> bool:
        """Whether nothing more can become of its trial."""
        return self.kind in ENDS

    @property
    def value(self) -> float | None:
        """The trial's result in the user's sign; None where the event brings none."""
        return float(self.data["value"]) if self.kind is Kind.TOLD else None

    def values(self, goals: Goals) -> dict[str, float]:
        """What a finished trial returned of the metrics and the constrained numbers, by name; empty for others.

        The first metric is the event's `value`, the others are among its `metrics`.
        """
        if self.value is None:
            return {}
        others = self.data.get("metrics", {})
        first = goals.names[0]
        return {name: self.value if name == first else float(others[name]) for name in goals.needed}

    @property
    def report(self) -> tuple[int, float] | None:
        """The step that the trial has come to, and its value in the user's sign; None where the event brings none."""
        if self.kind is not Kind.REPORTED or self.data.get("repeated"):
            return None
        return self.data["step"], float(self.data["value"])

    def broken(self, goals: Goals) -> str:
        """In words, at which step a report breaks which constraints that must hold at every step; else empty."""
        if self.kind is not Kind.REPORTED:
            return ""
        broken = goals.broken_by({**self.data.get("metrics", {}), goals.names[0]: self.data["value"]})
        return f"at step {self.data['step']}, {broken}" if broken else ""

    @property
    def x(self) -> Array:  # (d,)
        """The point that was proposed; of `asked` only."""
        return np.array(self.data["x"], dtype=np.float64)

    @property
    def c(self) -> Array | None:  # (dc,)
        """The trial's context in the unit cube; None where the event brings none."""
        return np.array(self.data["c"], dtype=np.float64) if "c" in self.data else None

    def context_in(self, context: Space | None) -> Config | None:
        """The trial's context in the user's units; None where the event brings none, or none is declared."""
        return context.unpack(self.data["context"]) if context is not None and "context" in self.data else None

    @property
    def origin(self) -> Origin | None:
        """Who named what was asked, if not the method."""
        return origin_of(self.data.get("tags", {}))

    @property
    def details(self) -> dict[str, Any]:
        """What it holds of a trial's end beside the attributes of a `Trial`: other metrics, host, traceback."""
        return {key: value for key, value in self.data.items() if key not in _ATTRIBUTES}


@dataclass(frozen=True, repr=False)
class Trial:
    """One evaluation, as its user sees it.

    Attributes:
        number: from 0, in the order in which trials were asked for.
        config: the configuration.
        state: its state.
        value: the result, in the user's sign; with several metrics, that of the first. None unless finished.
        values: the metrics and the constrained numbers, by name, if there are several metrics or constraints; empty
            unless finished.
        violations: by how much it breaks constraints, by name, those that must hold at every step in its worst report;
            empty if it keeps them, or has not finished.
        context: the context that it observed; None if none is declared or known.
        tags: what the method noted about the proposal.
        attempt: from 1; grows when it starts again, because its worker was lost or the user asked for it.
        reason: why it failed or was stopped; empty otherwise.
        seconds: how long it ran, including the time before a scheduler made it wait; None if unknown.
        suggest_seconds: how long the proposal took.
        suggest_processor_seconds: how much processor time the proposal took; None in a journal of 0.1.
        details: what else is known about its end: other metrics, host, traceback; if it has only reported so far, the
            other metrics of its last step; if it was pruned or is paused, which rule decided this, and why.
        checkpoint: name of its last checkpoint; None if it saved none.
    Example:
        >>> searcher = raybo.Searcher({"x": raybo.Integer(1, 9)}, "random", seed=0)
        >>> trial = searcher.tell(searcher.ask(), 0.5)
        >>> trial.number, str(trial.state), trial.value
        (0, 'finished', 0.5)
    """

    number: int
    config: Config
    state: State
    value: float | None = None
    context: Config | None = None
    tags: Tags = field(default_factory=dict)
    attempt: int = 1
    reason: str = ""
    seconds: float | None = None
    suggest_seconds: float = 0.0
    suggest_processor_seconds: float | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    checkpoint: str | None = None
    values: Mapping[str, float] = field(default_factory=dict)
    violations: Mapping[str, float] = field(default_factory=dict)
    _reports: Sequence[tuple[int, float]] = ()
    # the same, but of the last attempt from where it began: what the trial's value is made of
    _run: Sequence[tuple[int, float]] = ()
    _said: Mapping[str, Any] = field(default_factory=dict)  # the other metrics of the last of those
    _resumes: int | None = None  # the step after which its newest attempt begins, until that has reported

    @property
    def reports(self) -> list[tuple[int, float]]:
        """What it has reported, as pairs of a step and a value in the user's sign; the steps go up.

        Steps that were repeated by another attempt are as they were first reported.
        """
        return list(self._reports)

    @property
    def step(self) -> int:
        """The last step that it has reported; 0 before the first."""
        return self._reports[-1][0] if self._reports else 0

    def __repr__(self) -> str:
        """One line: number, state, value or reason, configuration; without what a method or a journal notes."""
        parts = [f"{self.number}, {self.state}"]
        several = f"values={dict(self.values)}" if self.values else f"value={self.value!r}"
        parts += [] if self.value is None else [several]
        parts += [f"violations={dict(self.violations)}"] if self.violations else []
        parts += [f"{self.config}"] + ([] if self.context is None else [f"context={self.context}"])
        parts += [f"reason={shown(self.reason)}"] if self.reason else []
        return f"Trial({', '.join(parts)})"

    def with_details(self, more: Mapping[str, Any]) -> Trial:
        """The trial with more in its details."""
        return replace(self, details={**self.details, **more})

    @property
    def feasible(self) -> bool | None:
        """Whether it keeps all constraints; None unless finished."""
        return None if self.value is None else not self.violations

    @property
    def origin(self) -> Origin | None:
        """Where it came from, if not from the method."""
        return origin_of(self.tags)


def saved_share(trials: Sequence[Trial], steps: int | None) -> float:
    """The share of the steps of all finished and pruned trials that pruning has saved; 0 if none was pruned, or the
    number of steps is not declared.
    """
    if steps is None:
        return 0.0
    ended = [trial for trial in trials if trial.state in (State.FINISHED, State.PRUNED)]
    saved = sum(steps - trial.step for trial in ended if trial.state is State.PRUNED)
    return saved / (steps * len(ended)) if saved else 0.0


def planned(trials: int, artifacts: str | None = None) -> Event:
    """The event of saying how many trials the study means to run, in all, and where their directories are, if news."""
    data: Data = {"trials": int(trials)}
    return Event(Kind.PLANNED, None, data if artifacts is None else {**data, "artifacts": artifacts})


def artifacts_of(events: Sequence[Event]) -> list[str]:
    """The places where trials' directories have been kept, the last one first; empty for beside the journal."""
    told = [event.data["artifacts"] for event in events if event.kind is Kind.PLANNED and "artifacts" in event.data]
    return list(dict.fromkeys(reversed(told)))


def confirms(tags: Tags) -> bool:
    """Whether a trial with these tags runs a configuration of the search once more."""
    return origin_of(tags) is Origin.CONFIRMED


def origin_of(tags: Tags) -> Origin | None:
    """Who named a trial with these tags, if not the method."""
    return Origin(tags["origin"]) if "origin" in tags else None


# ---- what is written of a context


def context_data(context: Space, reading: Reading) -> Data:
    """What an event holds of a reported context: its values, and what is to be said of it."""
    data: Data = {}
    if reading.values is not None:
        row = context.pack(reading.values)
        data["context"], data["c"] = row, context.points([row])[0].tolist()
    if reading.note:
        data["context_note"] = reading.note
    if reading.missing:
        data["context_missing"] = list(reading.missing)
    return data


def told_context(declared: Space | None, context: Mapping[str, Any], who: str) -> Data:
    """What an event holds of a context that a user tells.

    Raises:
        TrialError: none is declared, or this one is missing a value or rejected; begun with `who`.
    """
    if declared is None:
        raise TrialError(
            f"{who}: a context was given, but none is declared; declare one with context= beside the space"
        )
    if not isinstance(context, Mapping):
        raise TrialError(f"{who}: a context is a dict, got {shown(context)}")
    if unknown := [name for name in context if name not in declared.names]:
        raise TrialError(
            f"{who}: {shown(unknown[0])} is not a declared context; the study declares {', '.join(declared.names)}"
        )
    reading = read_context(declared, context)
    if reading.values is None:
        raise TrialError(f"{who}: {reading.note or f'context {reading.missing[0]}: missing'}")
    return context_data(declared, reading)
