"""What happened in a study: an ordered list of events, and the trials that they make.

A method is a pure function of a `History`: it reads the arrays below and the tags that earlier proposals left. Values
are maximised and points lie in the unit cube, whatever the user's objective is.

    event     says                                                          data
    planned   how many trials the study means to run                        trials
    asked     a point was proposed                                          x, values, tags, seen, ...
    told      the trial ended with a finite value                           value (in the user's sign), seconds, ...
    failed    the trial ended without one, or was lost for the last time    reason, kind
    retried   the trial's worker was lost and the trial starts again        reason, attempt
    stopped   the user ended the trial                                      reason
    met       the trial says which context it has met, and goes on          context, c

`seen` is the number of the last event that the proposal was based on; with many workers it says exactly what it knew.

Where the study declares a context, an event of a trial whose context became known holds it: `context` in the user's
units, `c` in [0, 1]. `asked` holds it where it was known first, and then the proposal was made for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Literal, TypeAlias

import numpy as np

from raybo.errors import TrialError
from raybo.space import Array, Config, Cube, Space

Tags: TypeAlias = dict[str, Any]


class State(str, Enum):
    """Where a trial stands. A name, once stored, is never removed."""

    PENDING = "pending"  # asked, not yet told
    FINISHED = "finished"
    FAILED = "failed"
    LOST = "lost"  # its worker was lost at every attempt
    STOPPED = "stopped"

    def __str__(self) -> str:
        return self.value


FAILURES = (State.FAILED, State.LOST)  # the point gave no value, and is taken to be a bad one
COUNTED = (State.FINISHED, *FAILURES)  # what counts of a planned number of trials: not the stopped ones


class Kind(str, Enum):
    """What an event says."""

    PLANNED = "planned"
    ASKED = "asked"
    TOLD = "told"
    FAILED = "failed"
    RETRIED = "retried"
    STOPPED = "stopped"
    MET = "met"

    def __str__(self) -> str:
        return self.value


class Origin(str, Enum):
    """Where a trial came from that no method proposed; the tag `origin` holds it."""

    ADDED = "added"  # with its value, from elsewhere
    ENQUEUED = "enqueued"  # a configuration that the user named, to be run


Mode: TypeAlias = Literal["max", "min"]  # what is wanted of the value


@dataclass(frozen=True)
class Event:
    """One entry of a history.

    Attributes:
        kind: what it says.
        trial: the trial it is about; None for `planned`.
        data: its content, plain JSON.
        number: its place in the history, from 1; 0 until it has one.
        at: when it was written, UTC in ISO 8601; empty where nothing was written.
    """

    kind: Kind
    trial: int | None
    data: Mapping[str, Any]
    number: int = 0
    at: str = ""


@dataclass(frozen=True)
class Proposal:
    """What a method returns: the point to try, and what the method must remember.

    Attributes:
        x: (d,), a point of the unit cube.
        tags: plain JSON, stored with the trial and read back through the history.
    """

    x: Array
    tags: Tags = field(default_factory=dict)


@dataclass(frozen=True)
class Trial:
    """One evaluation, as its user sees it.

    Attributes:
        number: from 0, in the order of asking.
        config: the configuration.
        state: where it stands.
        value: the result in the user's sign; None unless finished.
        context: the context that it met; None where none is declared or none is known.
        tags: what the method said of the proposal.
        attempt: from 1; grows when a lost worker makes it start again.
        reason: why it failed or was stopped; empty otherwise.
        seconds: how long it ran; None where unknown.
        suggest_seconds: how long the proposal took.
        suggest_processor_seconds: how much of a processor it took; None in a journal of 0.1.
        details: what else is known of its end: other metrics, host, traceback.
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

    @property
    def origin(self) -> Origin | None:
        """Where it came from, if not from the method."""
        return Origin(self.tags["origin"]) if "origin" in self.tags else None


@dataclass(frozen=True)
class Record:
    """One trial inside a history: a point of the cube and what became of it.

    Attributes:
        x: (d,), the point.
        y: the value, maximised; None unless finished.
        c: (dc,), the context; None where it is not known.
    """

    x: Array
    tags: Tags
    state: State
    y: float | None = None
    c: Array | None = None

    @property
    def has_ended(self) -> bool:
        """Whether nothing more will become of it."""
        return self.state is not State.PENDING

    @property
    def has_failed(self) -> bool:
        """Whether it failed, or was lost for the last time."""
        return self.state in FAILURES


class History:
    """The events of a study so far, folded into arrays.

    Args:
        cube: the search space as the methods see it.
        sign: +1 where the user maximises, -1 where he minimises: y = sign * value.
        context_cube: the space of the contexts; None where the study declares none.
    Attributes:
        wanted: (dc,), the context that the next trial will meet, where that is known first; else None.
    """

    def __init__(self, cube: Cube, sign: float = 1.0, context_cube: Cube | None = None) -> None:
        self.cube = cube
        self.sign = sign
        self.context_cube = context_cube
        self.wanted: Array | None = None
        self.planned: int | None = None
        self.last_event = 0
        self.records: list[Record] = []

    def copy(self) -> History:
        """A history that later events of this one do not change."""
        other = History(self.cube, self.sign, self.context_cube)
        other.planned, other.last_event, other.records = self.planned, self.last_event, list(self.records)
        other.wanted = self.wanted
        return other

    def wanting(self, c: Array | None) -> History:
        """A copy where the next trial will meet the context c (dc,); where none is known first, for None."""
        other = self.copy()
        other.wanted = None if c is None else np.asarray(c, dtype=np.float64)
        return other

    def apply(self, event: Event) -> None:
        """Append an event.

        Raises:
            TrialError: it is about a trial that is unknown or has already ended.
        """
        if event.kind is Kind.PLANNED:
            self.planned = int(event.data["trials"])
        elif event.kind is Kind.ASKED:
            if event.trial != len(self.records):
                raise TrialError(f"trial {event.trial}: trials are numbered in order, the next one is {len(self)}")
            x = np.array(event.data["x"], dtype=np.float64)
            self.records.append(Record(x, dict(event.data["tags"]), State.PENDING, c=_context_of(event)))
        else:
            number = self.require_pending(event.trial)
            if (c := _context_of(event)) is not None:
                self.records[number] = replace(self.records[number], c=c)
            if event.kind not in (Kind.RETRIED, Kind.MET):  # with which the trial is still pending
                state = end_of(event)
                y = self.sign * float(event.data["value"]) if event.kind is Kind.TOLD else None
                self.records[number] = replace(self.records[number], state=state, y=y)
        self.last_event = event.number or self.last_event + 1

    def require_pending(self, trial: int | None) -> int:
        """The trial's number; TrialError where it is unknown or has already ended."""
        if not isinstance(trial, (int, np.integer)) or not 0 <= trial < len(self.records):
            raise TrialError(f"trial {trial}: no such trial, {len(self)} have been asked for")
        if self.records[trial].state is not State.PENDING:
            raise TrialError(f"trial {trial}: it is {self.records[trial].state} already; a trial ends once")
        return int(trial)

    def __len__(self) -> int:
        """How many trials have been asked for, which is the next trial's number."""
        return len(self.records)

    @property
    def ended(self) -> int:
        """How many trials have ended, however."""
        return len(self.records) - self.count(State.PENDING)

    @property
    def d(self) -> int:
        """Number of axes of the cube."""
        return self.cube.d

    @property
    def X(self) -> Array:  # (n, d)
        """Points of the finished trials, in the order of asking."""
        return self.points(State.FINISHED)

    @property
    def y(self) -> Array:  # (n,)
        """Values of the finished trials, maximised, in the order of asking."""
        return np.array([r.y for r in self.records if r.state is State.FINISHED], dtype=np.float64)

    @property
    def X_failed(self) -> Array:  # (m, d)
        """Points of the trials that failed or were lost for the last time."""
        return self.points(*FAILURES)

    @property
    def X_pending(self) -> Array:  # (m, d)
        """Points asked for and not yet told."""
        return self.points(State.PENDING)

    @property
    def C(self) -> Array:  # (n, dc)
        """Contexts of the finished trials, row by row those of `X`; NaN where a trial's context is not known."""
        return self.met(State.FINISHED)

    @property
    def C_failed(self) -> Array:  # (m, dc)
        """Contexts of the failed and lost trials, row by row those of `X_failed`; NaN where not known."""
        return self.met(*FAILURES)

    @property
    def C_pending(self) -> Array:  # (m, dc)
        """Contexts of the pending trials, row by row those of `X_pending`; NaN where not known yet."""
        return self.met(State.PENDING)

    @property
    def contexts(self) -> Array:  # (k, dc)
        """Every context that is known, of whatever trial, in the order of asking."""
        rows = [record.c for record in self.records if record.c is not None]
        return np.array(rows, dtype=np.float64).reshape(len(rows), self._dc)

    def met(self, *states: State) -> Array:  # (m, dc)
        """Contexts of the trials in any of the given states, in the order of asking; NaN where not known."""
        unknown = np.full(self._dc, np.nan)
        rows = [unknown if record.c is None else record.c for record in self.records if record.state in states]
        return np.array(rows, dtype=np.float64).reshape(len(rows), self._dc)

    @property
    def _dc(self) -> int:
        return 0 if self.context_cube is None else self.context_cube.d

    def points(self, *states: State) -> Array:  # (m, d)
        """Points of the trials in any of the given states, in the order of asking."""
        rows = [record.x for record in self.records if record.state in states]
        return np.array(rows, dtype=np.float64).reshape(len(rows), self.d)

    def count(self, *states: State) -> int:
        """How many trials are in any of the given states."""
        return sum(record.state in states for record in self.records)

    def last_tag(self, name: str, default: Any = None) -> Any:
        """The tag of that name which was written last, or the default."""
        return next((r.tags[name] for r in reversed(self.records) if name in r.tags), default)

    def first_tag(self, name: str, default: Any = None) -> Any:
        """The tag of that name which was written first, or the default."""
        return next((r.tags[name] for r in self.records if name in r.tags), default)

    def count_tag(self, name: str) -> int:
        """How many trials carry a tag of that name."""
        return sum(name in record.tags for record in self.records)


ENDS: Mapping[Kind, State] = {Kind.TOLD: State.FINISHED, Kind.FAILED: State.FAILED, Kind.STOPPED: State.STOPPED}
_NAMED = frozenset({"value", "reason", "seconds", "attempt", "context", "c"})


def end_of(event: Event) -> State:
    """The state of a trial after the event that ended it."""
    return State.LOST if event.data.get("kind") == "lost" else ENDS[event.kind]


def _context_of(event: Event) -> Array | None:  # (dc,)
    return np.array(event.data["c"], dtype=np.float64) if "c" in event.data else None


def advance(trials: list[Trial], event: Event, space: Space, context: Space | None = None) -> None:
    """Bring the list of a study's trials up to date with the event that follows them."""
    data = event.data
    known = context.unpack(data["context"]) if context is not None and "context" in data else None
    if event.kind is Kind.ASKED:
        assert event.trial == len(trials), "trials are numbered in order"
        trial = Trial(
            event.trial,
            space.unpack(data["values"]),
            State.PENDING,
            context=known,
            tags=dict(data["tags"]),
            suggest_seconds=float(data.get("suggest_seconds", 0.0)),
            suggest_processor_seconds=data.get("suggest_processor_seconds"),
        )
        trials.append(trial)
    elif event.kind is Kind.RETRIED:
        assert event.trial is not None
        retried = replace(trials[event.trial], attempt=int(data["attempt"]), reason=str(data["reason"]))
        trials[event.trial] = retried
    elif event.kind is Kind.MET:
        assert event.trial is not None
        trials[event.trial] = replace(trials[event.trial], context=known)
    elif event.trial is not None:
        trial = trials[event.trial]
        trials[event.trial] = replace(
            trial,
            context=trial.context if known is None else known,
            state=end_of(event),
            value=float(data["value"]) if event.kind is Kind.TOLD else None,
            reason=str(data.get("reason", "")),
            seconds=data.get("seconds"),
            attempt=int(data.get("attempt", trial.attempt)),
            details={key: value for key, value in data.items() if key not in _NAMED},
        )
