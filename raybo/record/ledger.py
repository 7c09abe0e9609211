"""The fold of a study's events into trials, the methods' history, the best trial and the front.

Everything that has events folds them here: a searcher those it makes, a study those of its journal, the engine those it
has committed.

    Ledger       a whole study, folded: it owns the trials and the history
    History      the same trials as methods see them: in the unit cube, maximised, as arrays
    RecordTable  a history's list of records, with columns of their points, states and values
    Record       one trial in a history: immutable, replaced at each of its events
    Trial        the user's view of a record, in the user's units
"""

from __future__ import annotations

from bisect import bisect, insort
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar, cast

import numpy as np

from raybo.common.arguments import is_number
from raybo.common.errors import TrialError
from raybo.common.messages import shown
from raybo.common.refusals import refusing
from raybo.record.events import Asked, Event, Told
from raybo.record.fidelity import Fidelities
from raybo.record.goals import Goals, Mode
from raybo.record.history import GENERATION, History
from raybo.record.pareto import hypervolume
from raybo.record.states import State
from raybo.record.trial import Declared, Trial
from raybo.space import Array, Space

E = TypeVar("E", bound=Event)


class Ledger:
    """The events of a study, folded one by one.

    Args:
        space: the search space.
        wanted: what is wanted of the trials' numbers; "max" or "min" where that is one value.
        context: the space of the contexts; None where none is declared.
        steps: how many steps a whole run has; None where that is not declared.
        judged: the metric that schedulers look at; None for the first.
        generation: version of the rules by which methods propose and schedulers judge.
        fidelities: what makes the job cheap; None if there are no cheap versions.
    Attributes:
        goals: what is wanted. goal: which of two values is better, with several metrics of the first.
        trials: every trial as users see it, in the order of asking.
        history: the same as methods see it: points of the cube, maximised values.
        incumbent: the finished, feasible trial with the best value, the earliest of equals; None while there is none,
            and with several metrics.
        front: the finished, feasible trials that no other dominates, in the order of asking.
    """

    def __init__(
        self,
        space: Space,
        wanted: Goals | Mode,
        context: Space | None = None,
        steps: int | None = None,
        judged: str | None = None,
        generation: int = GENERATION,
        fidelities: Fidelities | None = None,
    ) -> None:
        self.space = space
        self.context = context
        self.goals = wanted if isinstance(wanted, Goals) else Goals(modes=(wanted,))
        self.goal = self.goals.first
        self.trials: list[Trial] = []
        place = 0 if judged is None else self.goals.names.index(judged)
        fidelity = next(iter((fidelities or {}).values()), None)
        self.history = History(
            space.cube, self.goals, None if context is None else context.cube, steps, place, fidelity
        )
        self.history.generation = generation
        self.incumbent: Trial | None = None
        self.front: list[Trial] = []
        self._front_values = np.empty((0, self.goals.k))  # of several metrics: maximised, in the front's order
        self._declared = Declared(space, context, self.goals, fidelities)

    @property
    def planned(self) -> int | None:
        """The planned number of trials; None if unknown."""
        return self.history.planned

    @property
    def last_event(self) -> int:
        """Number of the last event; 0 before the first."""
        return self.history.last_event

    def apply(self, event: E) -> E:
        """Take in the event that follows; returns it with its number.

        Raises:
            TrialError: it names a trial that is unknown or has already ended; nothing is changed.
        """
        if not event.number:
            event = replace(event, number=self.last_event + 1)
        self.history.apply(event)
        if event.trial is None:
            return event
        trial = Trial(event.trial, self.history.records[event.trial], self._declared)
        if isinstance(event, Asked):
            self.trials.append(trial)
        else:
            self.trials[trial.number] = trial
            if isinstance(event, Told) and trial.feasible:
                self._rank(trial)
        return event

    def count(self, *states: State) -> int:
        """Return the number of trials in any of the given states."""
        return self.history.count(*states)

    @property
    def best(self) -> Trial:
        """The feasible trial with the best value, the earliest of equals.

        If nothing has finished, it is the `furthest` of the pruned trials, which has no value.

        Raises:
            TrialError: no trial has finished or was pruned, none that has finished is feasible, or there are several
                metrics.
        """
        if self.goals.k > 1:
            raise TrialError(
                f"with several metrics ({', '.join(self.goals.names)}) there is no single best trial; `front` holds "
                "the trials that no other dominates"
            )
        if self.incumbent is None:
            if self.count(State.FINISHED):
                raise TrialError(self.nearest)
            if self.furthest is not None:
                return self.furthest
            kind = "trial" if self.history.fidelity is None else "whole run"
            raise TrialError(f"no {kind} has finished yet, so there is no best one")
        return self.incumbent

    @property
    def furthest(self) -> Trial | None:
        """The pruned trial that came furthest, the best report of those; None where one has finished or none reported.

        One whose reports broke a constraint does not count.

        None too if the job has cheap versions: which of them is best says little of whole runs.

        A report of an early step is no result, so it is compared with others of the same step only.
        """
        if self.count(State.FINISHED) or not self.count(State.PRUNED) or self.history.fidelity is not None:
            return None
        broke = {
            number
            for number in self.history.records.numbers(State.PRUNED).tolist()
            if (self.goals.worst_margins(self.history.records[number].curves) < 0.0).any()
        }
        pruned = [t for t in self.trials if t.state is State.PRUNED and t.step and t.number not in broke]
        if not pruned:
            return None
        step = max(trial.step for trial in pruned)
        there = [trial for trial in pruned if trial.step == step]
        first: int = self.goal.best_first([trial.reports[-1][1] for trial in there])[0]
        return there[first]

    def in_order(self, trials: Sequence[Trial]) -> list[Trial]:
        """Trials of the front from the best first metric to the worst."""
        order = self.goal.best_first([cast(float, trial.value) for trial in trials])
        return [trials[i] for i in order]

    @refusing(TrialError, "a reference is a dict with a number for each metric")
    def reference(self, given: Mapping[str, float] | None = None) -> dict[str, float]:
        """The point above which volume counts, by metric: as given, else the worst that finished trials have shown.

        Raises:
            TrialError: the point given is not a finite number for each metric.
        """
        names = self.goals.names
        if given is not None:
            is_whole = isinstance(given, Mapping) and set(given) == set(names)
            if not is_whole or not all(map(is_number, given.values())):
                raise TrialError(f"reference must be a number for each of {', '.join(names)}, got {shown(given)}")
            return {name: float(given[name]) for name in names}
        Y = self.history.Y[self.history.feasible]
        return self.goals.values_of(Y.min(axis=0)) if len(Y) else {}

    def hypervolume(self, reference: Mapping[str, float] | None = None, front: Sequence[Trial] | None = None) -> float:
        """Volume between a front and a reference, see `reference`, in the product of the metrics' units.

        Args:
            front: an earlier one; the study's if None.
        """
        at, front = self.reference(reference), self.front if front is None else front
        if not front:
            return 0.0
        Y = np.array([self._maximised(trial) for trial in front])
        return hypervolume(Y, self.goals.maximised(at))

    def _maximised(self, trial: Trial) -> Array:  # (k,)
        return self.goals.maximised(trial.values or {self.goals.names[0]: cast(float, trial.value)})

    def _rank(self, trial: Trial) -> None:
        """Take a feasible trial into the front, and as the best of one metric, where it belongs there."""
        if self.goals.k > 1:
            self._rank_by_several(trial)
            return
        best, value = self.incumbent, cast(float, trial.value)  # all of the front are as good
        if best is not None and self.goal.is_better(cast(float, best.value), value):
            return
        front = list(self.front) if best is not None and best.value == value else []
        insort(front, trial, key=lambda each: each.number)
        self.front, self.incumbent = front, front[0]

    def _rank_by_several(self, trial: Trial) -> None:
        Y, y = self._front_values, self._maximised(trial)
        is_no_worse, is_better = (Y >= y).all(axis=1), (Y > y).any(axis=1)
        if (is_no_worse & is_better).any():
            return
        kept = np.flatnonzero(is_no_worse | is_better)
        front = [self.front[i] for i in kept]
        place = bisect(front, trial.number, key=lambda each: each.number)
        front.insert(place, trial)
        self.front, self._front_values = front, np.insert(Y[kept], place, y, axis=0)

    @property
    def nearest(self) -> str:
        """Say that no trial is feasible, and which is closest, with each constraint in units of its own spread.

        There must be a finished one.
        """
        done = [trial for trial in self.trials if trial.state is State.FINISHED]
        nearest = done[int(np.argmin(self.history.violation))]
        return f"no trial satisfies all constraints yet; trial {nearest.number} comes closest: {self.broken(nearest)}"

    def broken(self, trial: Trial) -> str:
        """The constraints that a trial breaks, and by how much, in words; empty where it keeps them."""
        return ", ".join(
            constraint.broken_by(constraint.value_of(-trial.violations[constraint.name]))
            for constraint in self.goals.constraints
            if constraint.name in trial.violations
        )
