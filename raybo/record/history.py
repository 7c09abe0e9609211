"""A study's history as methods see it: arrays of what was observed, what failed and what is pending.

A method is a pure function of a `History`: it reads the arrays below and the tags that earlier proposals left. Values
are maximised and points lie in the unit cube, whatever the user's objective is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from raybo.common.arguments import is_number, whole_number
from raybo.common.errors import TrialError
from raybo.common.messages import shown
from raybo.record.append_only import Grown
from raybo.record.budget import Budget, as_kept, budget_of
from raybo.record.events import (
    Asked,
    AttemptEvent,
    Begun,
    ContextObserved,
    EarlierStudy,
    Event,
    Planned,
    Reported,
    Resumed,
    Retried,
    Tags,
    Told,
)
from raybo.record.fidelity import Fidelity
from raybo.record.goals import Goals, are_kept, within_reach
from raybo.record.record_table import RecordTable
from raybo.record.states import FAILURES, OPEN, State
from raybo.record.trial import Record, Trial
from raybo.space import Array, Cube

ONE = Goals()
GENERATION = 3  # of the rules by which methods propose and schedulers judge; 1 are those of raybo 0.1, 2 of 0.2


@dataclass(frozen=True)
class Proposal:
    """A method's answer: the point to try, and what the method must remember.

    Attributes:
        x: (d,), a point of the unit cube: 64-bit floats in [0, 1]. It is snapped to a point that can be run.
        tags: plain JSON, stored with the trial and read back through the history.
        in_design: True for a point of an initial design, from which no improvement is expected.
        fidelity: at which it runs, one of the levels below the last; None for a whole run.
    Raises:
        MethodError: not here, but by whoever asked the method: x, the tags or the fidelity are something else.
    Example:
        >>> import numpy as np
        >>> from raybo.methods import Proposal
        >>> proposal = Proposal(np.array([0.25, 1.0]), {"near": True})
        >>> proposal.x.shape, proposal.tags, proposal.in_design
        ((2,), {'near': True}, False)
    """

    x: Array
    tags: Tags = field(default_factory=dict)
    in_design: bool = False
    fidelity: int | None = None


class History:
    """The events of a study so far, folded into arrays: what a method or a scheduler is given. `len` counts the trials.

    Args:
        cube: the search space as the methods see it.
        goals: what is wanted of the trials' numbers.
        context_cube: the space of the contexts; None where the study declares none.
        steps: how many steps a whole run has; None where that is not declared.
        judged: place among the metrics of the one that schedulers look at.
        fidelity: what makes the job cheap, which takes the place of the steps; None if there are no cheap versions.
    Attributes:
        d: number of axes of the cube.
        X: (n, d), points of the finished trials, in [0, 1], in the order of asking.
        y: (n,), their values, maximised.
        X_pending: (p, d), points of the trials that are pending or paused.
        X_failed: (m, d), points of the trials that failed, or were lost for the last time.
        records: all that is known of each trial, by its number: `x` (d,), `tags`, `state`, `y` (None unless finished),
            `reports` as pairs of a step and a value, maximised.
        cube: the space as the methods see it: `snap` (m, d) moves points to those that can be run, `allows` says which
            of them keep the rules, `uniform(rng, n)` draws (n, d).
        steps: how many steps a whole run has, the highest fidelity if there is one; None if this is not declared.
        planned: how many trials are planned; None if unknown.
        generation: of the rules by which methods propose and schedulers judge: 1 of raybo 0.1, 2 of 0.2, 3 since.
        next_context: (dc,), the context that the next trial will meet, where that is known beforehand; else None.
        reports_in_order: what all trials have reported of the metric that schedulers look at, as trial, step and value,
            maximised, in the journal's order.
        predicted_open: how many trials are open, although a predicted value makes them look finished.
        priors: what earlier studies know, in the order in which they were given.
        budget: what the study may use; None if nobody said.
        spent: how much of the budget was used when the last trial was asked for or, while the next one is being
            proposed, is used now; None without a budget.
        cost: the returned number that trials cost, in place of seconds; None if it is their seconds.
    Example:
        >>> searcher = raybo.Searcher({"x": raybo.Float(0, 10)}, mode="min", seed=0, trials=20)
        >>> trial = searcher.add({"x": 2.5}, 7.0)
        >>> history = searcher.history
        >>> history.X.tolist(), history.y.tolist(), history.planned
        ([[0.25]], [-7.0], 20)
        >>> trial = searcher.ask()
        >>> history.X_pending.shape, history.X_failed.shape, len(history)
        ((1, 1), (0, 1), 2)
        >>> history.records[0].y
        -7.0
    """

    def __init__(
        self,
        cube: Cube,
        goals: Goals = ONE,
        context_cube: Cube | None = None,
        steps: int | None = None,
        judged: int = 0,
        fidelity: Fidelity | None = None,
    ) -> None:
        self.cube = cube
        self.goals = goals
        self.context_cube = context_cube
        self.steps = steps if fidelity is None else fidelity.high
        self.fidelity = fidelity
        self.judged = judged
        self.reports_in_order: Sequence[tuple[int, int, float]] = Grown()
        self.generation = GENERATION
        self.next_context: Array | None = None
        self.planned: int | None = None
        self.last_event = 0
        self.predicted_open = 0
        self.priors: tuple[EarlierStudy, ...] = ()
        self.budget: Budget | None = None
        self.spent: float | None = None
        self.cost: str | None = None
        self.records: RecordTable[Record] = RecordTable(cube.d)

    def copy(self) -> History:
        """A history that later events of this one do not change."""
        other = History(self.cube, self.goals, self.context_cube, self.steps, self.judged, self.fidelity)
        other.planned, other.last_event, other.records = self.planned, self.last_event, self.records.copy()
        other.next_context, other.reports_in_order = self.next_context, self.reports_in_order
        other.generation, other.predicted_open = self.generation, self.predicted_open
        other.priors, other.budget, other.spent, other.cost = self.priors, self.budget, self.spent, self.cost
        return other

    def with_next_context(self, c: Array | None) -> History:
        """A copy where the next trial will meet the context c (dc,); where none is known beforehand, for None."""
        other = self.copy()
        other.next_context = None if c is None else np.asarray(c, dtype=np.float64)
        return other

    def with_spent(self, spent: float | None) -> History:
        """A copy where so much of the budget is used; itself for None."""
        if spent is None:
            return self
        other = self.copy()
        other.spent = as_kept(spent)
        return other

    @property
    def used_share(self) -> float:
        """The share of the budget that is used, from 0 to 1; 0 without a budget."""
        return 0.0 if self.budget is None or self.spent is None else min(1.0, self.spent / self.budget.amount)

    def apply(self, event: Event) -> None:
        """Append an event.

        Raises:
            TrialError: it names a trial that is unknown or has already ended; nothing is changed.
        """
        if isinstance(event, Planned):
            self.planned, self.budget, self.cost = event.trials, budget_of(event), event.cost
            self.spent = None if self.budget is None else self.spent
        elif isinstance(event, EarlierStudy):
            self.priors = (*self.priors, event)
        elif isinstance(event, Asked):
            if event.trial != len(self.records):
                raise TrialError(f"trial {event.trial}: trials are numbered in order, the next one is {len(self)}")
            self.records.append(_asked(event))
            self.spent = self.spent if event.spent is None else event.spent
        elif isinstance(event, Reported):
            self._report(self.require_pending(event.trial), event)
        elif isinstance(event, AttemptEvent):
            number = self.require(event.trial, *event.before)
            self.records[number] = self._followed(self.records[number], event)
        self.last_event = event.number or self.last_event + 1

    def _followed(self, record: Record, event: AttemptEvent) -> Record:
        """The record after an event that is no report."""
        record = replace(
            record,
            state=event.state,
            c=record.c if event.c is None else event.context_point,
            context=record.context if event.context is None else event.context,
            attempt=event.attempt or record.attempt,
            ended=(event.number or self.last_event + 1) if event.is_end else 0,
        )
        if isinstance(event, (Begun, ContextObserved)):
            return record
        if isinstance(event, (Retried, Resumed)):
            return replace(
                record,
                outcome=None,
                reason=event.reason or "",
                seconds=record.seconds if isinstance(event, Resumed) else None,
                resumed_after=record.checkpoint or 0,
                was_promoted=isinstance(event, Resumed),
                untimed=record.untimed if isinstance(event, Resumed) else record.checkpoint or 0,
            )
        seconds = event.seconds
        if record.seconds is not None:  # it ran before it was paused
            seconds = round(record.seconds + (seconds or 0.0), 6)
        record = replace(record, outcome=event, reason=event.reason or "", seconds=seconds)
        return self._finished(record, event) if isinstance(event, Told) else record

    def _finished(self, record: Record, event: Told) -> Record:
        y = within_reach(self.goals.first.maximised(float(event.value)))
        if self.goals.is_plain:
            return replace(record, y=y)
        values = event.values(self.goals)
        margins = np.minimum(self.goals.margins(values), self.goals.worst_margins(record.curves))
        return replace(record, y=y, Y=within_reach(self.goals.maximised(values)), margins=margins)

    def _report(self, number: int, event: Reported) -> None:
        """Take in a step of a trial; if an earlier attempt has reported it, only its place in this attempt."""
        before = record = self.records[number]
        value = float(event.value)
        if event.report is not None:
            record = self._longer(number, record, event)
        record = replace(
            record,
            checkpoint=record.checkpoint if event.checkpoint is None else event.step,
            saved=event.checkpoint or record.saved,
            last_metrics=event.metrics,
            last_run=_run(before, record, event.step, self.goals.first.maximised(value)),
            resumed_after=None,
        )
        self.records[number] = record
        if event.report is not None:
            in_order = self.reports_in_order
            assert isinstance(in_order, Grown)
            self.reports_in_order = in_order.adding((number, event.step, record.reports[-1][1]))

    def _longer(self, number: int, record: Record, event: Reported) -> Record:
        """The record with another step in its reports and curves."""
        step = event.step
        y = self._judged_value(number, event)
        if step <= record.step:
            raise TrialError(f"trial {number}: steps must increase, but step {step} comes after step {record.step}")
        reports = _adding(record.reports, (step, y))
        if self.goals.is_plain:
            return replace(record, reports=reports)
        values = {**(event.metrics or {}), self.goals.names[0]: float(event.value)}
        margins = self.goals.known_margins(values)
        return replace(
            record,
            reports=reports,
            curves=_longer(record.curves, step, self.goals.known(values)),
            early=record.early if margins is None else margins,
        )

    def _judged_value(self, number: int, event: Reported) -> float:
        """Return a report's value of the metric that schedulers look at, maximised; TrialError if it has none."""
        name = self.judged_metric
        value = event.value if name is None else (event.metrics or {}).get(name)
        if not is_number(value):
            raise TrialError(
                f"trial {number}: at step {event.step}, there is no number {name}, which the scheduler looks at"
            )
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
                raise TrialError(f"trial {number} is pending, not {states[0]}")
            after = "it goes on once it is resumed" if state is State.PAUSED else "a trial ends once"
            raise TrialError(f"trial {number}: it is {state} already; {after}")
        return number

    def value_of(self, y: float) -> float:
        """A value of the metric that schedulers look at in the user's sign, to be told, of one that is maximised."""
        return self.goals.each[self.judged].value_of(y)

    @property
    def span(self) -> tuple[int, int]:
        """The first and the last step of a whole run, which must be known; the lowest and the highest fidelity."""
        assert self.steps is not None
        return (1 if self.fidelity is None else self.fidelity.low), self.steps

    @property
    def judged_metric(self) -> str | None:
        """The metric that schedulers look at, where that is not the first."""
        return self.goals.names[self.judged] if self.judged else None

    @property
    def of_judged(self) -> History:
        """The history as one of the metric that schedulers look at; itself where that is the first."""
        return self.of_number(self.judged) if self.judged else self

    def __len__(self) -> int:
        """Return the number of trials asked for, which is the next trial's number."""
        return len(self.records)

    @property
    def ended(self) -> int:
        """The number of trials that have ended, in whatever state."""
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
        """Distances of the finished trials' constrained numbers from their bounds; negative if they break them."""
        return self._rows(lambda record: record.margins, len(self.goals.constraints))

    @property
    def feasible(self) -> NDArray[np.bool_]:  # (n,)
        """True for each finished trial that keeps all constraints."""
        return are_kept(self.margins)

    @property
    def violation(self) -> Array:  # (n,)
        """By how much each finished trial breaks its worst constraint, in standard deviations; 0 if it breaks none."""
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
        other.goals, other.judged, other.records = ONE, 0, RecordTable(self.d, records)
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
        """Return the number of trials in any of the given states."""
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
        """Return the number of trials with a tag of that name."""
        found = self.records.with_tag(name)
        return 0 if found is None else found[2]


def _spread(columns: Array) -> Array:  # (n, c) -> (c,)
    """Standard deviations; 1 where all values are equal."""
    power = np.exp2(
        np.frexp(np.abs(columns).max(axis=0, initial=0.0))[1]
    )  # squares of tiny margins vanish; no digit changes
    std = (columns / power).std(axis=0) * power
    return np.where(std > 0.0, std, 1.0)


def _asked(event: Asked) -> Record:
    return Record(
        event.point,
        dict(event.tags),
        State.PENDING,
        c=event.context_point,
        seen=event.seen,
        asked=event,
        context=event.context,
    )


def _run(before: Record, after: Record, step: int, y: float) -> Sequence[tuple[int, float]]:
    """Return the reports of the last attempt with another step; the trial's own list until a step is repeated.

    Args:
        before, after: the record without and with this step.
    """
    run = before.last_run
    known = step - 1 if before.resumed_after is None else min(step - 1, before.resumed_after)
    if run and run[-1][0] > known:  # of what an earlier attempt reported
        run = tuple(report for report in run if report[0] <= known)
    if run is before.first_metric and after is not before:
        return after.first_metric
    return _adding(run, (step, y))


def _adding(reports: Sequence[tuple[int, float]], report: tuple[int, float]) -> Grown[tuple[int, float]]:
    return (reports if isinstance(reports, Grown) else Grown(reports)).adding(report)


def _longer(
    curves: Sequence[Sequence[tuple[int, float]]], step: int, numbers: Array
) -> tuple[Sequence[tuple[int, float]], ...]:
    """Curves with another step of each of these numbers; those that are NaN were not reported."""
    known = curves or [()] * len(numbers)
    return tuple(
        curve if np.isnan(value) else _adding(curve, (step, value))
        for curve, value in zip(known, numbers.tolist(), strict=True)
    )
