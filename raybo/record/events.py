"""Events of a study, as its journal holds them: a class for each kind.

    kind       class             says                                                   its trial is then
    planned    Planned           how many trials the study means to run, and its budget
    asked      Asked             a point was proposed                                   pending
    begun      Begun             a worker has taken an enqueued trial                   pending
    met        ContextObserved   the trial says which context it observed               pending
    retried    Retried           the trial starts again: its worker was lost, or it     pending
                                 had failed and the user wants it run again
    reported   Reported          the trial says what a step of it came to               pending
    paused     Paused            a scheduler has the trial wait for the others          paused
    resumed    Resumed           it continues                                           pending
    pruned     Pruned            a scheduler ended the trial                            pruned
    told       Told              the trial ended with a finite value                    finished
    failed     Failed            the trial ended without one, or was lost for the       failed, or lost
                                 last time
    stopped    Stopped           the user ended the trial                               stopped
    ended      Ended             the study ended before its trials had all been run
    prior      EarlierStudy      what an earlier study of a similar job knows

A class has a field for each key of its JSON, under the same name, with the check that a journal's value must pass; None
stands for a key that is absent. What an event must be in its place among others (a trial that exists, steps that
increase, points of the space) is checked where a journal is read, in `raybo.journal.checks`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from enum import Enum
from typing import Any, ClassVar, TypeAlias, TypeVar

import numpy as np

from raybo.record.event_fields import (
    ANY,
    CODE,
    COUNT,
    FLAG,
    METRICS,
    NUMBER,
    NUMBERED,
    NUMBERS,
    PLACE,
    PLACES,
    POINT,
    POSITIVE,
    ROWS,
    SAVED,
    SECONDS,
    SECONDS_IF_KNOWN,
    TAGS,
    TEXT,
    TEXTS,
    TIME,
    Code,
    is_finite,
)
from raybo.record.goals import Goals
from raybo.record.origin import Origin, origin_of
from raybo.record.states import FAILURES, OPEN, State
from raybo.space import Array, Config, Row, Space

Tags: TypeAlias = dict[str, Any]
EventData: TypeAlias = dict[str, Any]  # the content of an event as JSON, by the keys of the journal


class Kind(str, Enum):
    """The kind of an event. A name, once stored, is never changed."""

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
    PRIOR = "prior"

    def __str__(self) -> str:
        return self.value


LOST = "lost"  # the cause of a failure: the worker, at every attempt
MEMORY = "memory"  # the cause of a failure: there was too little of it

E = TypeVar("E", bound="Event")


@dataclass(frozen=True, kw_only=True)
class Event:
    """One entry of a study's journal.

    Attributes:
        trial: the trial it is about; None for `Planned`, `Ended` and `EarlierStudy`.
        number: its place among the events, from 1; 0 until it has one.
        at: when it was written, UTC in ISO 8601; empty if it was not.
        unknown: keys that this version of raybo does not know, as a journal holds them.
        order: the keys in the order in which the event was given them, which is that of its JSON.
    """

    kind: ClassVar[Kind]
    needed: ClassVar[Sequence[str]] = ()  # keys without which a journal's event is refused
    before: ClassVar[Sequence[State]] = (State.PENDING,)  # states of a trial in which this may happen to it
    after: ClassVar[State] = State.PENDING  # its state afterwards
    is_end: ClassVar[bool] = False  # whether nothing more can become of its trial
    trial: int | None = None
    number: int = 0
    at: str = ""
    unknown: Mapping[str, Any] = field(default_factory=dict, repr=False)
    order: Sequence[str] = field(default=(), repr=False, compare=False)

    @classmethod
    def of(cls: type[E], trial: int | None, data: Mapping[str, Any], number: int = 0, at: str = "") -> E:
        """The event with this JSON, unchecked."""
        names = _FIELDS[cls]
        known = {names[key]: value for key, value in data.items() if key in names}
        unknown = {key: value for key, value in data.items() if key not in names}
        about = {} if trial is None else {"trial": trial}
        return cls(**about, **known, number=number, at=at, unknown=unknown, order=tuple(data))

    @classmethod
    def require(cls, data: Mapping[str, Any]) -> None:
        """ValueError if a key that this kind needs is missing, or a value is not what its key holds."""
        for key, value in data.items():
            if key in _CHECKS and not _CHECKS[key](value):
                raise ValueError(f"its {key} is invalid")
        for key in cls.needed:
            if key not in data:
                raise ValueError(f"it has no {key}")

    @property
    def data(self) -> dict[str, Any]:
        """Its content as JSON, under the names that the journal keeps."""
        held = {key: value for key, name in _FIELDS[type(self)].items() if (value := getattr(self, name)) is not None}
        held.update(self.unknown)
        ordered = {key: held.pop(key) for key in self.order if key in held}
        return {**ordered, **held}

    @property
    def timestamp(self) -> float | None:
        """When it was written, in seconds since 1970; None if that is not known."""
        return datetime.fromisoformat(self.at).timestamp() if self.at else None

    @property
    def state(self) -> State:
        """The state of its trial after it."""
        return self.after

    @property
    def report(self) -> tuple[int, float] | None:
        """The step that the trial has come to, and its value in the user's sign; None for other events."""
        return None


@dataclass(frozen=True, kw_only=True)
class Planned(Event):
    """The study plans a number of trials or a budget, and names the place of their files and the code that they run."""

    kind = Kind.PLANNED
    trials: int | None = field(default=None, metadata=NUMBERED)  # in all; None for as many as the budget allows
    artifacts: str | None = field(default=None, metadata=PLACE)  # under which the trials' directories are from now on
    code: Code | None = field(default=None, metadata=CODE)  # which runs from now on; not in 0.1 and 0.2
    budget: float | None = field(default=None, metadata=POSITIVE)  # seconds or, with a price, money; for all commands
    price: float | None = field(default=None, metadata=POSITIVE)  # of an hour of one process of a trial
    cost: str | None = field(default=None, metadata=TEXT)  # the returned number that trials cost, in place of seconds

    @classmethod
    def require(cls, data: Mapping[str, Any]) -> None:
        """ValueError if it says neither how many trials nor which budget, or a value is not what its key holds."""
        super().require(data)
        if "trials" not in data and "budget" not in data:
            raise ValueError("it has no trials")


@dataclass(frozen=True, kw_only=True)
class Ended(Event):
    """The study ended before its trials had all been run."""

    kind = Kind.ENDED
    needed = ("reason",)
    reason: str = field(metadata=TEXT)
    spent: float | None = field(default=None, metadata=SECONDS)  # of the budget, in its unit


@dataclass(frozen=True, kw_only=True)
class EarlierStudy(Event):
    """Holds what an earlier study of the same job or a similar one knows of this one, so that its journal may go.

    A value counts by its normal score among those of its own study alone, so that metric, scale and direction may
    differ.
    """

    kind = Kind.PRIOR
    needed = ("study", "identity", "content", "axes", "points", "scores", "theta", "centre", "spread", "counts")
    study: str = field(metadata=TEXT)  # its name: of its journal, or of what it tuned
    identity: str = field(metadata=TEXT)  # what it keeps as it grows: a hash of its description and its first trial
    content: str = field(metadata=TEXT)  # a hash of all that it held
    axes: list[int] = field(metadata=PLACES)  # of this study's cube, those that it knows
    points: list[list[float]] = field(metadata=ROWS)  # (n, len(axes)), outside of [0, 1] where its ranges were wider
    scores: list[float] = field(metadata=NUMBERS)  # (n,), normal scores, maximised
    theta: list[float] = field(metadata=NUMBERS)  # hyperparameters of a Gaussian process of them
    centre: float = field(metadata=NUMBER)  # mean of what that process expects over the cube
    spread: float = field(metadata=NUMBER)  # standard deviation of the same
    counts: dict[str, Any] = field(metadata=METRICS)  # of its trials
    results: list[float] = field(default_factory=list, metadata=NUMBERS)  # values of the first of `points`, maximised;
    # none if it cannot have been the very same job
    first_points: int = field(default=1, metadata=NUMBERED)  # version of the rule by which they follow from it

    @property
    def X(self) -> Array:  # (n, len(axes))
        """The points as an array."""
        return np.array(self.points, dtype=np.float64)

    def in_words(self, names: Sequence[str]) -> str:
        """Return what it knows of a study whose space has these axes, on one line."""
        taken, trials = self.counts.get("taken"), self.counts.get("trials")
        known = "all parameters" if len(self.axes) == len(names) else ", ".join(names[axis] for axis in self.axes)
        turned = "".join(f"; it optimised {name} in the other direction" for name in self.counts.get("turned", ()))
        return f"{self.study} ({taken} of {trials} trials; knows {known}{turned})"


@dataclass(frozen=True, kw_only=True)
class TrialEvent(Event):
    """An event of one trial, which may bring the context that it observed, or will have."""

    trial: int = field(kw_only=False)
    context: Row | None = field(default=None, metadata=ANY)  # as its space packs it
    c: list[float] | None = field(default=None, metadata=POINT)  # (dc,), the same in [0, 1]
    context_note: str | None = field(default=None, metadata=TEXT)  # what was wrong with it, or was moved
    context_missing: list[str] | None = field(default=None, metadata=TEXTS)  # declared names that were not reported

    @property
    def context_point(self) -> Array | None:  # (dc,)
        """The context in the unit cube; None if the event brings none."""
        return None if self.c is None else np.array(self.c, dtype=np.float64)

    def context_in(self, space: Space | None) -> Config | None:
        """The context in the user's units; None if the event brings none, or none is declared."""
        return None if space is None or self.context is None else space.unpack(self.context)


@dataclass(frozen=True, kw_only=True)
class Asked(TrialEvent):
    """A point was proposed."""

    kind = Kind.ASKED
    needed = ("x", "values", "tags", "seen")
    x: list[float] = field(metadata=POINT)  # (d,), the point of the cube
    values: Row = field(default_factory=list, metadata=ANY)  # the point as the space packs it
    tags: Tags = field(metadata=TAGS)  # what the method must remember
    seen: int = field(default=0, metadata=COUNT)  # number of the last event that the proposal was based on
    suggest_seconds: float | None = field(default=None, metadata=SECONDS)  # how long the proposal took
    suggest_processor_seconds: float | None = field(default=None, metadata=SECONDS)  # of a processor; not in 0.1
    gain: float | None = field(default=None, metadata=NUMBER)  # expected, in the metric's units, for stop_below_gain
    takes: float | None = field(default=None, metadata=POSITIVE)  # expected seconds, for stop_when_not_worth
    spent: float | None = field(default=None, metadata=SECONDS)  # of the budget, when it was asked for; in its unit
    fidelity: int | None = field(default=None, metadata=NUMBERED)  # at which it runs; None for a whole run

    @property
    def point(self) -> Array:  # (d,)
        """The point of the cube as an array."""
        return np.array(self.x, dtype=np.float64)

    @property
    def origin(self) -> Origin | None:
        """The origin of the configuration, if no method proposed it."""
        return origin_of(self.tags)


def cost_in(metrics: Mapping[str, Any] | None, name: str) -> float | None:
    """Return the number of this name, if it is one above 0; None otherwise."""
    value: Any = (metrics or {}).get(name)
    return float(value) if is_finite(value) and value > 0 else None


@dataclass(frozen=True, kw_only=True)
class AttemptEvent(TrialEvent):
    """An attempt at a trial ends or begins."""

    reason: str | None = field(default=None, metadata=TEXT)  # why there is no value, or why the trial starts again
    rule: str | None = field(default=None, metadata=TEXT)  # name of the scheduler that decided
    numbers: dict[str, Any] | None = field(default=None, metadata=METRICS)  # by which: rung, cutoff, rank, probability
    seen: int | None = field(default=None, metadata=COUNT)  # number of the report that a verdict was decided on
    step: int | None = field(default=None, metadata=NUMBERED)  # which one a verdict is about, or the last one reported
    host: str | None = field(default=None, metadata=TEXT)
    started: str | None = field(default=None, metadata=TIME)  # UTC in ISO 8601, by its machine's clock
    seconds: float | None = field(default=None, metadata=SECONDS_IF_KNOWN)  # by a clock that is never set back
    metrics: dict[str, Any] | None = field(default=None, metadata=METRICS)  # what else it returned
    metrics_left: list[str] | None = field(default=None, metadata=TEXTS)  # names of what else JSON cannot hold
    traceback: str | None = field(default=None, metadata=TEXT)
    losses: int | None = field(default=None, metadata=COUNT)  # attempts so far that ended with the loss of a worker
    processes: int | None = field(default=None, metadata=NUMBERED)  # of the attempt that ended; None for one
    attempt: int | None = field(default=None, metadata=NUMBERED)  # which one ended, or begins; from 1

    def cost(self, name: str) -> float | None:
        """Return the number of this name that came with the end, if it is one above 0; None otherwise."""
        return cost_in(self.metrics, name)

    @property
    def details(self) -> dict[str, Any]:
        """The fields that a `Trial` has no attribute for: other metrics, host, traceback."""
        return {key: value for key, value in self.data.items() if key not in _ATTRIBUTES}


STOP_REASON = "stopped by the user"  # of a study, and of what ran then
_ATTRIBUTES = frozenset({"value", "reason", "seconds", "attempt", "context", "c"})  # of a Trial; the rest is details


@dataclass(frozen=True, kw_only=True)
class Begun(AttemptEvent):
    """A worker has taken an enqueued trial."""

    kind = Kind.BEGUN


@dataclass(frozen=True, kw_only=True)
class ContextObserved(AttemptEvent):
    """The trial says which context it observed, before its end."""

    kind = Kind.CONTEXT_OBSERVED
    needed = ("context", "c")


@dataclass(frozen=True, kw_only=True)
class Retried(AttemptEvent):
    """The trial starts again."""

    kind = Kind.RETRIED
    before = (State.PENDING, *FAILURES)
    needed = ("reason", "attempt")


@dataclass(frozen=True, kw_only=True)
class Resumed(AttemptEvent):
    """A paused trial continues."""

    kind = Kind.RESUMED
    before = (State.PAUSED,)
    needed = ("attempt",)


@dataclass(frozen=True, kw_only=True)
class Reported(TrialEvent):
    """A trial reports the result of one step."""

    kind = Kind.REPORTED
    needed = ("step", "value")
    step: int = field(metadata=NUMBERED)
    value: float = field(metadata=NUMBER)  # in the user's sign
    seconds: float | None = field(default=None, metadata=SECONDS_IF_KNOWN)  # since the attempt began
    metrics: dict[str, Any] | None = field(default=None, metadata=METRICS)  # what else was reported with it
    checkpoint: str | None = field(default=None, metadata=SAVED)  # name of its checkpoint, in the trial's directory
    attempt: int | None = field(default=None, metadata=NUMBERED)
    repeated: bool | None = field(default=None, metadata=FLAG)  # True if an earlier attempt has reported this step

    @property
    def report(self) -> tuple[int, float] | None:
        """The step and its value; None if it is repeated, so that nothing is learnt of it."""
        return None if self.repeated else (self.step, float(self.value))

    def broken(self, goals: Goals) -> str:
        """In words, which constraints the report breaks that must hold at every step; else empty."""
        broken = goals.broken_by({**(self.metrics or {}), goals.names[0]: self.value})
        return f"at step {self.step}, {broken}" if broken else ""


@dataclass(frozen=True, kw_only=True)
class Told(AttemptEvent):
    """The trial ended with a finite value."""

    kind = Kind.TOLD
    after = State.FINISHED
    is_end = True
    needed = ("value",)
    value: float = field(metadata=NUMBER)  # in the user's sign

    def values(self, goals: Goals) -> dict[str, float]:
        """The metrics and the constrained numbers, by name: the first metric is its value, the others are `metrics`."""
        others, first = self.metrics or {}, goals.names[0]
        return {name: float(self.value if name == first else others[name]) for name in goals.needed}


@dataclass(frozen=True, kw_only=True)
class Failed(AttemptEvent):
    """The trial ended without a value, or lost its worker at every attempt."""

    kind = Kind.FAILED
    after = State.FAILED
    is_end = True
    cause: str | None = field(default=None, metadata={**TEXT, "key": "kind"})  # `LOST`, `MEMORY`, or unknown

    @property
    def state(self) -> State:
        """The state of its trial after it."""
        return State.LOST if self.cause == LOST else State.FAILED


@dataclass(frozen=True, kw_only=True)
class Stopped(AttemptEvent):
    """The user ended the trial."""

    kind = Kind.STOPPED
    before = OPEN
    after = State.STOPPED
    is_end = True


@dataclass(frozen=True, kw_only=True)
class Pruned(AttemptEvent):
    """A scheduler ended the trial."""

    kind = Kind.PRUNED
    before = OPEN
    after = State.PRUNED
    is_end = True
    needed = ("reason", "rule")


@dataclass(frozen=True, kw_only=True)
class Paused(AttemptEvent):
    """A scheduler has the trial wait for the others."""

    kind = Kind.PAUSED
    after = State.PAUSED
    needed = ("reason", "rule", "step")


def _fields_of(cls: type[Event]) -> dict[str, str]:
    """The fields by their keys in JSON, those of the class's own before those that it shares with others."""
    keys = {each.name: each.metadata.get("key", each.name) for each in fields(cls) if "check" in each.metadata}
    names = (name for base in cls.__mro__ for name in getattr(base, "__annotations__", ()) if name in keys)
    return {keys[name]: name for name in dict.fromkeys(names)}


KINDS: Mapping[Kind, type[Event]] = {
    each.kind: each
    for each in (
        *(Planned, Asked, Begun, ContextObserved, Retried, Reported, Paused, Resumed),
        *(Told, Failed, Stopped, Pruned, Ended, EarlierStudy),
    )
}


_FIELDS: Mapping[type[Event], Mapping[str, str]] = {each: _fields_of(each) for each in KINDS.values()}
_CHECKS: Mapping[str, Callable[[Any], bool]] = {  # by key, which holds the same in every kind of event
    each.metadata.get("key", each.name): each.metadata["check"]
    for kind in KINDS.values()
    for each in fields(kind)
    if "check" in each.metadata
}
KEYS = frozenset(_CHECKS)


def artifacts_of(events: Sequence[Event]) -> list[str]:
    """The places where trials' directories have been kept, the last one first; empty for beside the journal."""
    places = [event.artifacts for event in events if isinstance(event, Planned) and event.artifacts is not None]
    return list(dict.fromkeys(reversed(places)))
