"""What has come of a study so far: events in; trials, the methods' history, the best and the counts out.

Whoever has events folds them here: a searcher what it proposes and is told, a study what its journal holds, the engine
what it has committed. So all of them know the same.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from raybo.details import Details
from raybo.errors import TrialError
from raybo.events import Event, Kind, State, Trial, told_context
from raybo.goal import Goal, Mode
from raybo.history import History
from raybo.space import Space
from raybo.threads import limit_threads

if TYPE_CHECKING:
    from raybo.expected import Expectation


class Ledger:
    """The events of a study, folded one by one.

    Args:
        space: the search space.
        mode: "max" or "min", what is wanted of the value.
        context: the space of the contexts; None where none is declared.
    Attributes:
        goal: which of two values is better.
        trials: every trial as users see it, in the order of asking.
        history: the same as methods see it: points of the cube, maximised values.
        incumbent: the finished trial with the best value, the earliest of equals; None while there is none.
    """

    def __init__(self, space: Space, mode: Mode, context: Space | None = None) -> None:
        self.space = space
        self.context = context
        self.goal = Goal(mode)
        self.trials: list[Trial] = []
        self.history = History(space.cube, self.goal.sign, None if context is None else context.cube)
        self.incumbent: Trial | None = None
        self._counts: Counter[State] = Counter()
        self._model: tuple[int, Expectation | None] | None = None

    @property
    def planned(self) -> int | None:
        """How many trials the study means to run; None where nobody said."""
        return self.history.planned

    @property
    def last_event(self) -> int:
        """Number of the last event; 0 before the first."""
        return self.history.last_event

    def apply(self, event: Event) -> Event:
        """Take in the event that follows; returns it with its number.

        Raises:
            TrialError: it is about a trial that is unknown or has already ended; nothing is changed.
        """
        if not event.number:
            event = replace(event, number=self.last_event + 1)
        self.history.apply(event)
        if event.kind is Kind.ASKED:
            self.trials.append(_asked(event, self.space, self.context))
            self._counts[State.PENDING] += 1
        elif event.trial is not None:
            before = self.trials[event.trial]
            self.trials[event.trial] = after = _followed(before, event, self.context)
            self._counts[before.state] -= 1
            self._counts[after.state] += 1
            if self._leads(after):
                self.incumbent = after
        return event

    def count(self, *states: State) -> int:
        """How many trials are in any of the given states."""
        return sum(self._counts[state] for state in states)

    @property
    def best(self) -> Trial:
        """The best finished trial, the earliest of equals; with a context, by the estimated expectation over it.

        Raises:
            TrialError: no trial has finished.
        """
        if self.incumbent is None:
            raise TrialError("no trial has finished yet, so there is no best one")
        if self.context is None:
            return self._telling(self.incumbent)
        from raybo.context import best_expected  # loads the Gaussian process

        with limit_threads(1):
            return self._expecting(*best_expected(self.history))

    @property
    def best_expected(self) -> Trial:
        """The finished trial of which a model expects most, with noise a better choice than the best observed.

        What is expected of it, and the standard deviation, are in its details, as in `best`. Where trials are too few
        for a model, the best.

        Raises:
            TrialError: no trial has finished.
        """
        if self.context is not None or self.incumbent is None:
            return self.best
        found = self._expectation()
        if found is None:
            return self.incumbent
        done = [number for number, record in enumerate(self.history.records) if record.state is State.FINISHED]
        with limit_threads(1):
            mean = found.at(self.history.X)[0]
        number = done[int(np.lexsort((-self.history.y, -mean))[0])]
        return self._telling(self.trials[number])

    def _telling(self, trial: Trial) -> Trial:
        """A finished trial that tells what a model expects of it to who asks for that, in its details."""

        def expect() -> dict[str, Any]:
            found = self._expectation()
            if found is None:
                return {}
            with limit_threads(1):
                mean, sd = found.at(self.history.records[trial.number].x[None, :])
            return {"expected": self.goal.value_of(float(mean[0])), "expected_sd": float(sd[0])}

        return replace(trial, details=Details(trial.details, expect))

    def _expectation(self) -> Expectation | None:
        """The model of the trials up to now; None where they are too few."""
        from raybo.expected import Expectation  # loads the Gaussian process

        if self._model is None or self._model[0] != self.last_event:
            with limit_threads(1):
                made = Expectation.of(self.history.X, self.history.y, self.history.cube.categorical)
            self._model = (self.last_event, made)
        return self._model[1]

    def best_for(self, context: Mapping[str, Any]) -> Trial:
        """The finished trial with the best estimated value where the context is the given one.

        Raises:
            TrialError: no trial has finished, or the context is not one that is declared.
        """
        c = Event(Kind.CONTEXT_OBSERVED, None, told_context(self.context, context, "best_for")).c
        assert c is not None
        from raybo.context import best_for

        with limit_threads(1):
            return self._expecting(*best_for(self.history, c))

    def _expecting(self, number: int, mean: float, sd: float) -> Trial:
        """The trial with what is expected of it, where that is known."""
        trial = self.trials[number]
        known = {} if math.isnan(sd) else {"expected": self.goal.value_of(mean), "expected_sd": sd}
        return replace(trial, details={**trial.details, **known})

    def _leads(self, trial: Trial) -> bool:
        best = self.incumbent
        if trial.value is None or best is None:
            return trial.value is not None
        value = cast(float, best.value)
        return self.goal.is_better(trial.value, value) or (trial.value == value and trial.number < best.number)


def _asked(event: Event, space: Space, context: Space | None) -> Trial:
    return Trial(
        cast(int, event.trial),
        space.unpack(event.data["values"]),
        event.state,
        context=event.context_in(context),
        tags=dict(event.data["tags"]),
        suggest_seconds=float(event.data.get("suggest_seconds", 0.0)),
        suggest_processor_seconds=event.data.get("suggest_processor_seconds"),
    )


def _followed(trial: Trial, event: Event, context: Space | None) -> Trial:
    """The trial after another event about it."""
    data = event.data
    trial = replace(
        trial,
        state=event.state,
        context=event.context_in(context) or trial.context,
        attempt=int(data.get("attempt", trial.attempt)),
    )
    if event.kind is Kind.CONTEXT_OBSERVED:
        return trial
    trial = replace(trial, reason=str(data.get("reason", "")))  # that it was retried is no fault of its end
    if not event.is_end:  # a failed one that runs again has no end any more
        return replace(trial, seconds=None, details={})
    return replace(trial, value=event.value, seconds=data.get("seconds"), details=event.details)
