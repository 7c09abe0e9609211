"""A trial: the record that its events are folded into, and the view of it that users have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, cast

from raybo.common.messages import shown
from raybo.record.events import MEMORY, Asked, AttemptEvent, Failed, Tags, Told
from raybo.record.fidelity import Fidelities
from raybo.record.goals import Goals
from raybo.record.origin import Origin, origin_of
from raybo.record.states import FAILURES, OPEN, State
from raybo.space import Array, Config, Row, Space
from raybo.space.objects import copied


@dataclass(frozen=True)
class Record:
    """All that is known of one trial. Methods read the first part; it is in the cube, and maximised.

    Attributes:
        x: (d,), the point.
        y: the value, maximised; None unless finished.
        c: (dc,), the context; None if it is not known.
        reports: what it has reported so far of the metric that schedulers look at, as pairs of a step and a value,
            maximised; the steps go up, and one that was repeated after a loss is there once, as it was first reported.
        checkpoint: the step of its last checkpoint; None while there is none.
        error: standard deviation of what y may be off by beside noise, if it was predicted; 0 if it was seen.
        is_open: whether it is pending or paused, although a predicted value makes it look finished.
        seen: number of the last event that its proposal was based on.
        ended: number of the event that ended it; 0 while it is pending.
        Y: (k,), all metrics, maximised, and margins: (c,), of the constraints; None unless finished, and if the study
            has one metric without constraints. The margin of a constraint that must hold at every step is that of the
            worst report, if a report broke it.
        curves: (k + c), what it has reported so far of each metric, maximised, and then of each constraint's margin, as
            `reports`; empty if the study has one metric without constraints, and before the first report.
        early: (c,), margins as it reported them last, of the constraints that must hold at every step; NaN if it did
            not, None if it has reported none of them.

        asked: the event that it began with.
        outcome: the event that ended or paused it; None otherwise.
        context: the context, as its space packs it.
        attempt: from 1; grows when it starts again.
        reason: why it failed, was stopped, pruned, paused or started again; empty otherwise.
        seconds: how long it ran, including the time before a scheduler paused it; None if unknown.
        saved: name of its last checkpoint; None if it saved none.
        last_run: as `reports`, of the first metric and of the last attempt from where it began, repeated steps too.
        last_metrics: what else it said with its last report.
        resumed_after: the step after which its newest attempt begins, until that has reported; None afterwards.
        was_promoted: whether its newest attempt continues a paused one, rather than starting again.
        untimed: the step up to which its seconds count nothing, as the attempt that ran them was lost.
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

    asked: Asked | None = None
    outcome: AttemptEvent | None = None
    context: Row | None = None
    attempt: int = 1
    reason: str = ""
    seconds: float | None = None
    saved: str | None = None
    last_run: Sequence[tuple[int, float]] = ()
    last_metrics: Mapping[str, Any] | None = None
    resumed_after: int | None = None
    was_promoted: bool = False
    untimed: int = 0

    @property
    def step(self) -> int:
        """The last step that it has reported; 0 before the first."""
        return self.reports[-1][0] if self.reports else 0

    @property
    def has_ended(self) -> bool:
        """True if nothing more will become of it."""
        return self.state not in OPEN and not self.is_open

    @property
    def has_failed(self) -> bool:
        """True if it failed, or was lost for the last time."""
        return self.state in FAILURES

    @property
    def lacked_memory(self) -> bool:
        """True if it failed for lack of memory."""
        return self.state is State.FAILED and isinstance(self.outcome, Failed) and self.outcome.cause == MEMORY

    @property
    def fidelity(self) -> int | None:
        """The fidelity at which it runs; None for a whole run."""
        return None if self.asked is None else self.asked.fidelity

    @property
    def first_metric(self) -> Sequence[tuple[int, float]]:
        """As `reports`, of the first metric, whichever schedulers look at."""
        return self.curves[0] if self.curves else self.reports


class Declared(NamedTuple):
    """A study's declarations, by which a trial's record is shown in the user's units."""

    space: Space
    context: Space | None
    goals: Goals
    fidelities: Fidelities | None = None


class Trial:
    """One evaluation, as its user sees it: a view of a record, which does not change.

    Attributes:
        number: from 0, in the order in which trials were asked for.
        config: the configuration, a new dict each time.
        state: its state.
        value: the result, in the user's sign; with several metrics, that of the first. None unless finished.
        values: the metrics and the constrained numbers, by name, if there are several metrics or constraints; empty
            unless finished.
        violations: by how much it breaks constraints, by name, those that must hold at every step in its worst report;
            empty if it keeps them, or has not finished.
        context: the context that it observed; None if none is declared or known.
        fidelity: at which it runs, by name, if there are cheap versions of the job; empty otherwise.
        tags: what the method noted about the proposal.
        attempt: from 1; grows when it starts again, because its worker was lost or the user asked for it.
        reason: why it failed, was stopped, pruned, paused or started again; empty otherwise.
        out_of_memory: whether it failed for lack of memory.
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
    _record: Record
    _declared: Declared
    _estimate: Mapping[str, float] | None  # by which it was chosen; in its details

    def __init__(
        self, number: int, record: Record, declared: Declared, estimate: Mapping[str, float] | None = None
    ) -> None:
        vars(self).update(number=number, _record=record, _declared=declared, _estimate=estimate)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a trial does not change, so its {name} cannot be set")

    @property
    def config(self) -> Config:
        """The configuration, a new dict each time."""
        return cast("Config", copied(self._config))

    @cached_property
    def _config(self) -> Config:
        assert self._record.asked is not None
        return self._declared.space.unpack(self._record.asked.values)

    @property
    def state(self) -> State:
        """Its state."""
        return self._record.state

    @property
    def value(self) -> float | None:
        """The result, in the user's sign; None unless finished."""
        outcome = self._record.outcome
        return float(outcome.value) if isinstance(outcome, Told) else None

    @property
    def values(self) -> dict[str, float]:
        """The metrics and the constrained numbers, by name, a new dict each time."""
        return dict(self._values)

    @cached_property
    def _values(self) -> Mapping[str, float]:
        outcome, goals = self._record.outcome, self._declared.goals
        return outcome.values(goals) if isinstance(outcome, Told) and not goals.is_plain else {}

    @property
    def violations(self) -> dict[str, float]:
        """By how much it breaks constraints, by name, a new dict each time."""
        return dict(self._violations)

    @cached_property
    def _violations(self) -> Mapping[str, float]:
        margins = self._record.margins
        return {} if margins is None else self._declared.goals.violations(margins)

    @property
    def context(self) -> Config | None:
        """The context that it observed, a new dict each time."""
        row, space = self._record.context, self._declared.context
        return None if row is None or space is None else cast("Config", copied(space.unpack(row)))

    @property
    def fidelity(self) -> dict[str, int]:
        """At which it runs, by name; empty if there are no cheap versions of the job."""
        at = self._record.fidelity
        return {name: at or each.high for name, each in (self._declared.fidelities or {}).items()}

    @property
    def tags(self) -> Tags:
        """The method's notes on its proposal, a new dict each time."""
        return cast("Tags", copied(dict(self._record.tags)))

    @property
    def attempt(self) -> int:
        """The number of the attempt that runs, or ran last."""
        return self._record.attempt

    @property
    def reason(self) -> str:
        """Why it failed, was stopped, pruned, paused or started again; empty otherwise."""
        return self._record.reason

    @property
    def out_of_memory(self) -> bool:
        """True if it failed for lack of memory."""
        return self._record.lacked_memory

    @property
    def seconds(self) -> float | None:
        """Seconds that it ran; None if unknown."""
        return self._record.seconds

    @property
    def suggest_seconds(self) -> float:
        """Seconds that its proposal took."""
        asked = self._record.asked
        return float(asked.suggest_seconds or 0.0) if asked is not None else 0.0

    @property
    def suggest_processor_seconds(self) -> float | None:
        """Processor seconds that its proposal took; None if unknown."""
        return None if self._record.asked is None else self._record.asked.suggest_processor_seconds

    @property
    def details(self) -> dict[str, Any]:
        """Further facts about its end, such as other metrics or a traceback, in a new dict each time."""
        return cast("dict[str, Any]", copied(self._details))

    @cached_property
    def _details(self) -> dict[str, Any]:
        record = self._record
        metrics = {} if record.last_metrics is None else {"metrics": record.last_metrics}
        return {**(metrics if record.outcome is None else record.outcome.details), **(self._estimate or {})}

    @property
    def checkpoint(self) -> str | None:
        """Name of its last checkpoint."""
        return self._record.saved

    @property
    def reports(self) -> list[tuple[int, float]]:
        """Its reports, as pairs of a step and a value in the user's sign; the steps increase.

        Steps that were repeated by another attempt are as they were first reported.
        """
        value_of = self._declared.goals.first.value_of
        return [(step, value_of(y)) for step, y in self._record.first_metric]

    @property
    def last_run(self) -> list[tuple[int, float]]:
        """As `reports`, of its last attempt from where that began, with the steps that it repeated."""
        value_of = self._declared.goals.first.value_of
        return [(step, value_of(y)) for step, y in self._record.last_run]

    @property
    def step(self) -> int:
        """The last step that it has reported; 0 before the first."""
        return self._record.step

    @property
    def feasible(self) -> bool | None:
        """True if it keeps all constraints; None unless finished."""
        return None if self.value is None else not self._violations

    @property
    def origin(self) -> Origin | None:
        """Its origin, if no method proposed it; None if one did.

        It is text: "added" (with its value, from elsewhere), "enqueued" (named by the user, to be run), "confirmed" (a
        configuration of the search once more), "guessed" (where the space says that the best may lie), or "prior"
        (where earlier studies expect it).

        Example:
            >>> searcher = raybo.Searcher({"x": raybo.Float(0, 1)}, seed=0)
            >>> searcher.enqueue({"x": 0.5}).origin == "enqueued"
            True
        """
        return origin_of(self._record.tags)

    def with_estimate(self, estimate: Mapping[str, float]) -> Trial:
        """The trial with the estimate by which it was chosen in its details."""
        return Trial(self.number, self._record, self._declared, estimate)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Trial):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in _COMPARED)

    __hash__ = None  # type: ignore[assignment]  # a configuration may hold anything

    def __repr__(self) -> str:
        """One line: number, state, value or reason, configuration; without what a method or a journal notes."""
        parts = [f"{self.number}, {self.state}"]
        several = f"values={self.values}" if self._values else f"value={self.value!r}"
        parts += [] if self.value is None else [several]
        parts += [f"violations={self.violations}"] if self._violations else []
        parts += [f"{self.config}"] + [f"{name}={at}" for name, at in self.fidelity.items()]
        parts += [] if self.context is None else [f"context={self.context}"]
        parts += [f"reason={shown(self.reason)}"] if self.reason else []
        return f"Trial({', '.join(parts)})"


_COMPARED = (
    *(
        "number",
        "state",
        "value",
        "config",
        "fidelity",
        "context",
        "tags",
        "attempt",
        "reason",
        "seconds",
        "suggest_seconds",
    ),
    *("suggest_processor_seconds", "details", "checkpoint", "values", "violations", "reports", "last_run"),
)


def saved_share(trials: Sequence[Trial], steps: int | None) -> float:
    """The share of the steps of all finished and pruned trials that pruning has saved; 0 if none was pruned, or the
    number of steps is not declared.
    """
    if steps is None:
        return 0.0
    ended = [trial for trial in trials if trial.state in (State.FINISHED, State.PRUNED)]
    saved = sum(steps - trial.step for trial in ended if trial.state is State.PRUNED)
    return saved / (steps * len(ended)) if saved else 0.0
