"""A study's history as methods see it: arrays of what was observed, what failed and what is pending.

A method is a pure function of a `History`: it reads the arrays below and the tags that earlier proposals left. Values
are maximised and points lie in the unit cube, whatever the user's objective is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from raybo.common.arguments import is_number, whole_number
from raybo.common.errors import TrialError
from raybo.common.messages import shown
from raybo.record.append_only import Grown
from raybo.record.events import FAILURES, OPEN, Event, Kind, State, Tags, Trial, states_before
from raybo.record.goals import LARGEST, Goals
from raybo.record.records import Records
from raybo.space import Array, Cube

ONE = Goals()
GENERATION = 2  # of the rules by which methods propose; 1 are those of raybo 0.1


@dataclass(frozen=True)
class Proposal:
    """What a method returns: the point to try, and what the method must remember.

    Attributes:
        x: (d,), a point of the unit cube.
        tags: plain JSON, stored with the trial and read back through the history.
        in_design: True for a point of an initial design, from which no improvement is expected.
    """

    x: Array
    tags: Tags = field(default_factory=dict)
    in_design: bool = False


@dataclass(frozen=True)
class Record:
    """One trial inside a history: a point of the cube and what became of it.

    Attributes:
        x: (d,), the point.
        y: the value, maximised; None unless finished.
        c: (dc,), the context; None where it is not known.
        reports: what it has reported so far of the metric that schedulers look at, as pairs of a step and a value,
            maximised; the steps go up, and one that was repeated after a loss is there once, as it was first reported.
        checkpoint: the step of its last checkpoint; None while there is none.
        error: standard deviation of what y may be off by beside noise, where it was predicted; 0 where it was seen.
        is_open: whether it is pending or paused, although a predicted value makes it look finished.
        seen: number of the last event that its proposal was based on.
        ended: number of the event that ended it; 0 while it is pending.
        Y: (k,), all metrics, maximised, and margins: (c,), of the constraints; None unless finished, and where the
            study has one metric without constraints. The margin of a constraint that must hold at every step is that
            of the worst report, where a report broke it.
        curves: (k + c), what it has reported so far of each metric, maximised, and then of each constraint's margin, as
            `reports`; empty where the study has one metric without constraints, and before the first report.
        early: (c,), margins as it reported them last, of the constraints that must hold at every step; NaN where it
            did not, None where it has reported none of them.
    """

    x: Array
    tags: Tags
    state: State
    y: float | None = None
    c: Array | None = None
    reports: Sequence[tuple[int, float]] = ()
    checkpoint: int | None = None
    error: float = 0.0
    is_open: bool = False
    seen: int = 0
    ended: int = 0
    Y: Array | None = None
    margins: Array | None = None
    curves: Sequence[Sequence[tuple[int, float]]] = ()
    early: Array | None = None

    @property
    def step(self) -> int:
        """The last step that it has reported; 0 before the first."""
        return self.reports[-1][0] if self.reports else 0

    @property
    def has_ended(self) -> bool:
        """Whether nothing more will become of it."""
        return self.state not in OPEN and not self.is_open

    @property
    def has_failed(self) -> bool:
        """Whether it failed, or was lost for the last time."""
        return self.state in FAILURES


class History:
    """The events of a study so far, folded into arrays.

    Args:
        cube: the search space as the methods see it.
        goals: what is wanted of the trials' numbers.
        context_cube: the space of the contexts; None where the study declares none.
        steps: how many steps a whole run has; None where that is not declared.
        judged: place among the metrics of the one that schedulers look at.
    Attributes:
        generation: of the rules by which methods propose; 1 where raybo 0.1 began the study.
        next_context: (dc,), the context that the next trial will meet, where that is known beforehand; else None.
        reports_in_order: what all trials have reported of the metric that schedulers look at, as trial, step and value,
            maximised, in the journal's order.
        predicted_open: how many trials are open, although a predicted value makes them look finished.
    """

    def __init__(
        self,
        cube: Cube,
        goals: Goals = ONE,
        context_cube: Cube | None = None,
        steps: int | None = None,
        judged: int = 0,
    ) -> None:
        self.cube = cube
        self.goals = goals
        self.context_cube = context_cube
        self.steps = steps
        self.judged = judged
        self.reports_in_order: Sequence[tuple[int, int, float]] = Grown()
        self.generation = GENERATION
        self.next_context: Array | None = None
        self.planned: int | None = None
        self.last_event = 0
        self.predicted_open = 0
        self.records: Records[Record] = Records(cube.d)

    def copy(self) -> History:
        """A history that later events of this one do not change."""
        other = History(self.cube, self.goals, self.context_cube, self.steps, self.judged)
        other.planned, other.last_event, other.records = self.planned, self.last_event, self.records.copy()
        other.next_context, other.reports_in_order = self.next_context, self.reports_in_order
        other.generation, other.predicted_open = self.generation, self.predicted_open
        return other

    def with_next_context(self, c: Array | None) -> History:
        """A copy where the next trial will meet the context c (dc,); where none is known beforehand, for None."""
        other = self.copy()
        other.next_context = None if c is None else np.asarray(c, dtype=np.float64)
        return other

    def apply(self, event: Event) -> None:
        """Append an event.

        Raises:
            TrialError: it names a trial that is unknown or has already ended.
        """
        if event.kind is Kind.PLANNED:
            self.planned = int(event.data["trials"])
        elif event.kind is Kind.ENDED:
            pass
        elif event.kind is Kind.ASKED:
            if event.trial != len(self.records):
                raise TrialError(f"trial {event.trial}: trials are numbered in order, the next one is {len(self)}")
            seen = int(event.data.get("seen", 0))
            self.records.append(Record(event.x, dict(event.data["tags"]), State.PENDING, c=event.c, seen=seen))
        elif event.kind is Kind.REPORTED:
            self._report(self.require_pending(event.trial), event)
        else:
            number = self.require(event.trial, *states_before(event.kind))
            record, value = self.records[number], event.value
            several = None if value is None or self.goals.is_plain else event.values(self.goals)
            self.records[number] = replace(
                record,
                state=event.state,
                y=None if value is None else self.goals.first.maximised(value),
                c=record.c if event.c is None else event.c,
                ended=(event.number or self.last_event + 1) if event.is_end else 0,
                Y=None if several is None else self.goals.maximised(several),
                margins=None if several is None else self._margins(several, record),
            )
        self.last_event = event.number or self.last_event + 1

    def _margins(self, values: Mapping[str, float], record: Record) -> Array:  # (c,)
        """The margins of a trial that finished with these values."""
        return np.minimum(self.goals.margins(values), self.worst_margins(record))

    def worst_margins(self, record: Record) -> Array:  # (c,)
        """By how much a trial's reports break constraints that must hold at every step, as margins; else infinite."""
        worst = np.full(len(self.goals.constraints), np.inf)
        for j, constraint in enumerate(self.goals.constraints):
            if constraint.at_every_step and record.curves:
                margin = min((margin for _, margin in record.curves[self.goals.k + j]), default=0.0)
                worst[j] = margin if margin < 0.0 else np.inf
        return worst

    def _report(self, number: int, event: Event) -> None:
        """Take in a step of a trial, unless it is known from an earlier attempt."""
        record = self.records[number]
        if "checkpoint" in event.data:
            record = replace(record, checkpoint=event.data["step"])
        if event.report is not None:
            step, value = event.report
            y = self._judged_value(number, event)
            if step <= record.step:
                raise TrialError(f"trial {number}: steps must increase, but step {step} comes after step {record.step}")
            known = record.reports if isinstance(record.reports, Grown) else Grown(record.reports)
            if not self.goals.is_plain:
                told = {**event.data.get("metrics", {}), self.goals.names[0]: value}
                margins = self.goals.known_margins(told)
                early = record.early if margins is None else margins
                record = replace(record, curves=_longer(record.curves, step, self.goals.known(told)), early=early)
            record = replace(record, reports=known.adding((step, y)))
            in_order = self.reports_in_order
            assert isinstance(in_order, Grown)
            self.reports_in_order = in_order.adding((number, step, y))
        self.records[number] = record

    def _judged_value(self, number: int, event: Event) -> float:
        """What a report says of the metric that schedulers look at, maximised; TrialError where it says nothing."""
        name = self.judged_metric
        value = event.data["value"] if name is None else event.data.get("metrics", {}).get(name)
        if not is_number(value):
            step = event.data["step"]
            raise TrialError(f"trial {number}: at step {step}, there is no number {name}, which the scheduler looks at")
        return self.goals.each[self.judged].maximised(float(value))

    def require_pending(self, trial: Trial | int | None) -> int:
        """The trial's number; TrialError where it is unknown or not pending."""
        return self.require(trial, State.PENDING)

    def require(self, trial: Trial | int | None, *states: State) -> int:
        """The trial's number; TrialError where it is unknown or, if states are given, in none of them."""
        given = trial.number if isinstance(trial, Trial) else trial
        try:
            number = whole_number(given, "trial", at_least=0, error=LookupError)
            state = self.records[number].state
        except LookupError:
            raise TrialError(f"trial {shown(given)}: no such trial, {len(self)} have been asked for") from None
        if states and state not in states:
            if state is State.PENDING:
                raise TrialError(f"trial {number}: it is pending, and not {states[0]}")
            after = "it goes on once it is resumed" if state is State.PAUSED else "a trial ends once"
            raise TrialError(f"trial {number}: it is {state} already; {after}")
        return number

    def value_of(self, y: float) -> float:
        """A value of the metric that schedulers look at in the user's sign, to be told, of one that is maximised."""
        return self.goals.each[self.judged].value_of(y)

    @property
    def judged_metric(self) -> str | None:
        """The metric that schedulers look at, where that is not the first."""
        return self.goals.names[self.judged] if self.judged else None

    @property
    def of_judged(self) -> History:
        """The history as one of the metric that schedulers look at; itself where that is the first."""
        return self.of_number(self.judged) if self.judged else self

    def __len__(self) -> int:
        """How many trials have been asked for, which is the next trial's number."""
        return len(self.records)

    @property
    def ended(self) -> int:
        """How many trials have ended, however."""
        return len(self.records) - self.count(*OPEN) - self.predicted_open

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
        return self.records.values(State.FINISHED)

    @property
    def errors(self) -> Array:  # (n,)
        """Standard deviation of what each of `y` may be off by beside noise: 0 unless it was predicted from reports."""
        return np.array([r.error for r in self.records if r.state is State.FINISHED], dtype=np.float64)

    @property
    def Y(self) -> Array:  # (n, k)
        """All metrics of the finished trials, maximised, row by row those of `X`; the first column is `y`."""
        return self._rows(lambda record: np.array([record.y]) if record.Y is None else record.Y, self.goals.k)

    @property
    def margins(self) -> Array:  # (n, c)
        """How far each constrained number of the finished trials is on the allowed side; negative where it is not."""
        return self._rows(lambda record: record.margins, len(self.goals.constraints))

    @property
    def feasible(self) -> NDArray[np.bool_]:  # (n,)
        """Which of the finished trials keep all constraints."""
        return np.asarray((self.margins >= 0.0).all(axis=1), dtype=np.bool_)

    @property
    def violation(self) -> Array:  # (n,)
        """How far the finished trials are from keeping all constraints: the worst of these, in standard deviations."""
        margins = self.margins
        return np.asarray(np.maximum(-margins / _spread(margins), 0.0).max(axis=1))

    def of_number(self, j: int) -> History:
        """The history as one of a single number with its reports: the j-th metric, from k on a constraint's margin."""

        def of(record: Record) -> Record:
            reports = record.curves[j] if record.curves else record.reports if j == self.judged else ()
            if record.y is None:
                return replace(record, reports=reports)
            numbers = [record.y] if record.Y is None else record.Y
            y = numbers[j] if j < self.goals.k else cast(Array, record.margins)[j - self.goals.k]
            return replace(record, y=float(y), reports=reports, Y=None, margins=None)

        return self.plain(of(record) for record in self.records)

    def plain(self, records: Iterable[Record]) -> History:
        """A copy of one metric without constraints, with these records in place of its own."""
        other = self.copy()
        other.goals, other.judged, other.records = ONE, 0, Records(self.d, records)
        return other

    def _rows(self, of: Callable[[Record], Array | None], width: int) -> Array:  # (n, width)
        rows = [row for record in self.records if record.state is State.FINISHED and (row := of(record)) is not None]
        return np.array(rows, dtype=np.float64).reshape(self.count(State.FINISHED), width)

    @property
    def X_failed(self) -> Array:  # (m, d)
        """Points of the trials that failed or were lost for the last time."""
        return self.points(*FAILURES)

    @property
    def X_pending(self) -> Array:  # (m, d)
        """Points asked for and not yet told, of those too that are paused."""
        return self.points(*OPEN)

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
        return self.contexts_of(*OPEN)

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
        return self.records.points(*states)

    def count(self, *states: State) -> int:
        """How many trials are in any of the given states."""
        return self.records.count(*states)

    def last_tag(self, name: str, default: Any = None) -> Any:
        """The tag of that name which was written last, or the default."""
        found = self.records.with_tag(name)
        return default if found is None else self.records[found[1]].tags[name]

    def first_tag(self, name: str, default: Any = None) -> Any:
        """The tag of that name which was written first, or the default."""
        found = self.records.with_tag(name)
        return default if found is None else self.records[found[0]].tags[name]

    def count_tag(self, name: str) -> int:
        """How many trials carry a tag of that name."""
        found = self.records.with_tag(name)
        return 0 if found is None else found[2]


def _spread(columns: Array) -> Array:  # (n, c) -> (c,)
    """Standard deviations; 1 where all values are equal."""
    # squares of the largest and of the smallest floats are none; a power of two changes no digit
    power = np.exp2(np.frexp(np.abs(columns).max(axis=0, initial=0.0))[1].clip(-1_000, 1_000))
    with np.errstate(over="ignore"):
        std = np.minimum((columns / power).std(axis=0) * power, LARGEST)
    return np.where(std > 0.0, std, 1.0)


def _longer(
    curves: Sequence[Sequence[tuple[int, float]]], step: int, numbers: Array
) -> tuple[Sequence[tuple[int, float]], ...]:
    """Curves with another step of each of these numbers; those that are NaN were not reported."""
    known = curves or [()] * len(numbers)
    return tuple(
        curve if np.isnan(value) else (curve if isinstance(curve, Grown) else Grown(curve)).adding((step, value))
        for curve, value in zip(known, numbers.tolist(), strict=True)
    )
