"""Recommends a trial, and predicts the values of trials by a model.

    recommended      the one to use: by further runs of it, or else `best_expected`
    best             by value; with a context, by the estimated expectation over it
    best_expected    by what a model expects: with noise, the luckiest trial is not the best
    best_for         by the estimated value in one context
    expected_gain    how much a proposal promises, of which `--stop-below-gain` makes an end

With noise the model is that of `raybo.surrogate.noisy_trials`, with a context that of `raybo.context`, whatever method
ran the study. Both take time, so they are loaded and fitted when they are first needed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from raybo.common.threads import limit_threads
from raybo.record.confirmed import Confirmed, confirmed
from raybo.record.contexts import told_context
from raybo.record.history import History
from raybo.record.ledger import Ledger
from raybo.record.states import State
from raybo.record.trial import Trial
from raybo.space import Array

if TYPE_CHECKING:
    from raybo.surrogate.noisy_trials import Expectation

Expected: TypeAlias = tuple[float, float]  # mean and standard deviation, in the user's sign and units

EXPECTED = ("expected", "expected_sd")  # names of both, in a trial's details and in exports
NINETY = 1.645  # standard deviations on either side of the mean of a normal law that hold 90 % of it
LIKELY = 2_000  # trials of which a model may expect most: those with the best values


class Recommender:
    """Recommends trials of a study. A model is fitted once, and again after further events.

    Args:
        ledger: the study, which may grow.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._fitted: tuple[int, Expectation | None] | None = None  # after which event

    @property
    def recommended(self) -> Trial:
        """The trial to use: with the best mean of further runs; if none was run again, `best_expected`.

        Raises:
            TrialError: as `best`.
        """
        again = self._confirmed()
        return self.best_expected if again is None else again.trial

    @property
    def sentence(self) -> str:
        """Which trial is recommended, with its value, and why.

        Raises:
            TrialError: as `best`.
        """
        ledger, again = self._ledger, self._confirmed()
        trial, metric = self.recommended, ledger.goals.names[0]
        about = f"trial {trial.number}"
        if trial.value is None:
            step, value = trial.reports[-1]
            return f"{about}, {metric} {value:.6g} at step {step}: none has finished, and it came furthest"
        if again is not None:
            runs = f"{len(again.values)} further run{'s' * (len(again.values) > 1)}"
            broken = f"; but it breaks constraints in {again.infeasible} of {again.planned}, as others do"
            return f"{about}, mean {metric} {again.mean:.6g} in {runs}, the best{broken if again.infeasible else ''}"
        about += f", {metric} {trial.value:.6g}"
        if (expected := self.expected(trial)) is None:
            return f"{about}, the best so far; there are too few trials for a model"
        among = " over the contexts" if ledger.context is not None else ""
        best = ledger.incumbent
        luck = (
            ""
            if best is None or among or best.number == trial.number
            else f", more than for trial {best.number}, the best measured"
        )
        return f"{about}; the model expects {interval(*expected)}{among}{luck}"

    def _confirmed(self) -> Confirmed | None:
        """The best of the configurations that were run again; None if none was."""
        ledger = self._ledger
        if ledger.goals.k > 1 or not ledger.history.count_tag("confirms"):
            return None
        return next(iter(confirmed(ledger.trials, ledger.history, ledger.goal)), None)

    @property
    def best(self) -> Trial:
        """The best feasible trial, the earliest of equals; with a context, by the estimated expectation over it.

        If nothing has finished, it is the `furthest` of the pruned trials, which has no value.

        Raises:
            TrialError: no trial has finished or was pruned, none that has finished is feasible, or there are several
                metrics.
        """
        ledger = self._ledger
        if ledger.context is None or ledger.incumbent is None:
            return ledger.best
        from raybo.context import best_expected

        with limit_threads(1):
            return self._with_estimate(*best_expected(ledger.history))

    @property
    def best_expected(self) -> Trial:
        """The finished trial of which a model expects most; `best` if trials are too few for one.

        Its details hold the estimate and its standard deviation. Of more than 2,000 trials, the best 2,000 compete.

        Raises:
            TrialError: as `best`.
        """
        history, incumbent = self._ledger.history, self._ledger.incumbent
        if self._ledger.context is not None or incumbent is None:
            return self.best  # or the reason why there is none
        model = self._model()
        if model is None:
            return incumbent
        y = history.y
        worth = np.where(history.feasible, y, -np.inf)
        likely = np.sort(np.argsort(-worth, kind="stable")[:LIKELY])
        with limit_threads(1):
            means = np.where(np.isfinite(worth[likely]), model.at(history.X[likely])[0], -np.inf)
            place = likely[int(np.lexsort((-y[likely], -means))[0])]
            mean, sd = model.at(history.X[place][None, :])
        return self._with_estimate(int(history.records.numbers(State.FINISHED)[place]), float(mean[0]), float(sd[0]))

    def best_for(self, context: Mapping[str, Any]) -> Trial:
        """The finished trial with the best estimated value in a context.

        Raises:
            TrialError: no trial has finished, or the context does not match the declared one.
        """
        c = np.array(told_context(self._ledger.context, context, "best_for")["c"])
        from raybo.context import best_for

        with limit_threads(1):
            return self._with_estimate(*best_for(self._ledger.history, c))

    def expectations(self) -> dict[int, Expected] | None:
        """By number of each finished trial, the value that a model expects and its standard deviation.

        Empty while trials are too few for a model; None with several metrics or a context.
        """
        ledger = self._ledger
        if ledger.goals.k > 1 or ledger.context is not None:
            return None
        model = self._model()
        if model is None:
            return {}
        with limit_threads(1):
            means, sds = model.at(ledger.history.X)
        values = ledger.goal.value_of(means).tolist()
        numbers = ledger.history.records.numbers(State.FINISHED).tolist()
        return dict(zip(numbers, zip(values, sds.tolist(), strict=True), strict=True))

    def expected(self, trial: Trial | int) -> Expected | None:
        """The value that a model expects at a trial's configuration, and its standard deviation.

        None while trials are too few for a model, and with several metrics. With a context, the estimate by which the
        trial was recommended; None for other trials.

        Raises:
            TrialError: there is no such trial.
        """
        ledger = self._ledger
        number = ledger.history.require(trial)
        if isinstance(trial, Trial) and trial.details.keys() >= set(EXPECTED):
            mean, sd = (float(trial.details[name]) for name in EXPECTED)
            return mean, sd
        if ledger.goals.k > 1 or ledger.context is not None:
            return None
        model = self._model()
        if model is None:
            return None
        with limit_threads(1):
            means, sds = model.at(ledger.history.records[number].x[None, :])
        return ledger.goal.value_of(float(means[0])), float(sds[0])

    def _model(self) -> Expectation | None:
        """The model of all finished trials; None while they are too few."""
        if self._fitted is None or self._fitted[0] != self._ledger.last_event:
            self._fitted = self._ledger.last_event, _fitted(self._ledger.history)
        return self._fitted[1]

    def _with_estimate(self, number: int, mean: float, sd: float) -> Trial:
        """The trial with the estimate (maximised) in its details, if there is one."""
        trial = self._ledger.trials[number]
        if math.isnan(sd):
            return trial
        return trial.with_estimate(dict(zip(EXPECTED, (self._ledger.goal.value_of(mean), sd), strict=True)))


def interval(mean: float, sd: float) -> str:
    """Return a mean and its 90 % interval in words, with the digits that the standard deviation leaves."""
    places = 0 if not 0.0 < sd < math.inf else 1 - math.floor(math.log10(sd))
    low, high = mean - NINETY * sd, mean + NINETY * sd
    texts = [f"{x:.{places}f}" if 0 < places <= 9 and abs(x) < 1e6 else f"{x:.6g}" for x in (mean, low, high)]
    return f"{texts[0]} (90 % interval {texts[1]} to {texts[2]})"


def expected_gain(history: History, x: Array) -> float | None:
    """Return the expected improvement of a point (d,) on the best value, in the metric's units.

    None while trials are too few to expect anything.
    """
    model = _fitted(history)
    if model is None or not history.feasible.any():
        return None
    with limit_threads(1):
        return float(model.gain(x[None, :], float(history.y[history.feasible].max()))[0])


def _fitted(history: History) -> Expectation | None:
    from raybo.surrogate.noisy_trials import Expectation

    with limit_threads(1):
        return Expectation.of(history.X, history.y, history.cube.categorical)
