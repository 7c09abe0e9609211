"""A study's history as methods see it: arrays of what was observed, what failed and what is pending.

A method is a pure function of a `History`: it reads the arrays below and the tags that earlier proposals left. Values
are maximised and points lie in the unit cube, whatever the user's objective is.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from raybo.errors import TrialError
from raybo.events import FAILURES, Event, Kind, State, Tags
from raybo.space import Array, Cube


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
        next_context: (dc,), the context that the next trial will meet, where that is known beforehand; else None.
    """

    def __init__(self, cube: Cube, sign: float = 1.0, context_cube: Cube | None = None) -> None:
        self.cube = cube
        self.sign = sign
        self.context_cube = context_cube
        self.next_context: Array | None = None
        self.planned: int | None = None
        self.last_event = 0
        self.records: list[Record] = []

    def copy(self) -> History:
        """A history that later events of this one do not change."""
        other = History(self.cube, self.sign, self.context_cube)
        other.planned, other.last_event, other.records = self.planned, self.last_event, list(self.records)
        other.next_context = self.next_context
        return other

    def with_next_context(self, c: Array | None) -> History:
        """A copy where the next trial will meet the context c (dc,); where none is known beforehand, for None."""
        other = self.copy()
        other.next_context = None if c is None else np.asarray(c, dtype=np.float64)
        return other

    def apply(self, event: Event) -> None:
        """Append an event.

        Raises:
            TrialError: it is about a trial that is unknown or has already ended.
        """
        if event.kind is Kind.PLANNED:
            self.planned = int(event.data["trials"])
        elif event.kind is Kind.ENDED:
            pass
        elif event.kind is Kind.ASKED:
            if event.trial != len(self.records):
                raise TrialError(f"trial {event.trial}: trials are numbered in order, the next one is {len(self)}")
            self.records.append(Record(event.x, dict(event.data["tags"]), State.PENDING, c=event.c))
        else:
            number = self.require_pending(event.trial, or_failed=event.kind is Kind.RETRIED)
            record, value = self.records[number], event.value
            self.records[number] = replace(
                record,
                state=event.state,
                y=None if value is None else self.sign * value,
                c=record.c if event.c is None else event.c,
            )
        self.last_event = event.number or self.last_event + 1

    def require_pending(self, trial: int | None, *, or_failed: bool = False) -> int:
        """The trial's number; TrialError where it is unknown or has already ended, unless it may have failed."""
        is_number = isinstance(trial, (int, np.integer)) and not isinstance(trial, bool)
        if not is_number or trial is None or not 0 <= trial < len(self.records):
            raise TrialError(f"trial {trial}: no such trial, {len(self)} have been asked for")
        if self.records[trial].state not in ((State.PENDING, *FAILURES) if or_failed else (State.PENDING,)):
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
        return self.contexts_of(State.FINISHED)

    @property
    def C_failed(self) -> Array:  # (m, dc)
        """Contexts of the failed and lost trials, row by row those of `X_failed`; NaN where not known."""
        return self.contexts_of(*FAILURES)

    @property
    def C_pending(self) -> Array:  # (m, dc)
        """Contexts of the pending trials, row by row those of `X_pending`; NaN where not known yet."""
        return self.contexts_of(State.PENDING)

    @property
    def contexts(self) -> Array:  # (k, dc)
        """Every context that is known, of whatever trial, in the order of asking."""
        rows = [record.c for record in self.records if record.c is not None]
        return np.array(rows, dtype=np.float64).reshape(len(rows), self._dc)

    def contexts_of(self, *states: State) -> Array:  # (m, dc)
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
