"""Finds in a study's trials the recommendation, the best, the front, and what a model expects of each.

`Findings` is the part that `Study` and `Searcher` have in common. With noise the model is that of
`raybo.surrogate.noisy_trials`, with a context that of `raybo.context`, whatever method ran the study. Both take time:
they are loaded and fitted when they are first needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

import numpy as np

from raybo.common.errors import TrialError
from raybo.common.messages import counted
from raybo.common.threads import limit_threads
from raybo.methods.explaining import explain
from raybo.methods.method import Method
from raybo.record.confirmed import Confirmed, again, confirmed
from raybo.record.contexts import told_context
from raybo.record.history import History
from raybo.record.ledger import Ledger
from raybo.record.origin import Origin
from raybo.record.states import State
from raybo.record.trial import Trial
from raybo.space import Array

if TYPE_CHECKING:
    from raybo.surrogate.noisy_trials import Expectation

T = TypeVar("T")
Expected: TypeAlias = tuple[float, float]  # mean and standard deviation, in the user's sign and units

EXPECTED = ("expected", "expected_sd")  # names of both, in a trial's details and in exports
NINETY = 1.645  # standard deviations on either side of the mean of a normal law that hold 90% of it
SMALL = 1e-4  # numbers that zeros would hide
LIKELY = 2_000  # trials of which a model may expect most: those with the best values


class Findings:
    """The findings in a ledger's trials. A model is fitted once, and again after further events.

    Attributes:
        ledger: the trials.
        method: the method that proposed them.
    """

    ledger: Ledger
    method: Method
    _found: tuple[int, dict[str, Any]] = -1, {}  # after which event, and what by then was asked for

    @property
    def recommended(self) -> Trial:
        """The trial whose configuration to use; `recommendation` says why.

        It is the one with the best mean of further runs (`confirm`); without those, the one for
        which a model expects the best value, see `best_expected`: as with noise the best value measured is partly luck,
        it need not be `best`. The command, the report and the dashboard recommend the same one.

        Raises:
            TrialError: as `best`.
        Example:
            >>> study = raybo.load("job.db")
            >>> study.recommended.number, study.recommendation
            (6, 'trial 6, loss 0.0348539; the model expects ...')
        """
        sure = self._confirmed()
        return self.best_expected if sure is None else sure.trial

    @property
    def recommendation(self) -> str:
        """A sentence that names the recommended trial, and says why; TrialError as `best`."""
        ledger, sure = self.ledger, self._confirmed()
        trial, metric = self.recommended, ledger.goals.names[0]
        about = f"trial {trial.number}"
        if trial.value is None:
            step, value = trial.reports[-1]
            return f"{about}, {metric} {value:.6g} at step {step}: none has finished, and it came furthest"
        if sure is not None:
            some = f"{len(sure.values)} of " if len(sure.values) < sure.planned else ""
            runs = f"{some}{counted(sure.planned, 'further run')}"
            broken = f"; but it breaks constraints in {sure.infeasible} of {sure.planned}, as others do"
            return f"{about}, mean {metric} {sure.mean:.6g} in {runs}, the best{broken if sure.infeasible else ''}"
        about += f", {metric} {trial.value:.6g}"
        if (expected := self.expected(trial)) is None:
            return f"{about}, the best so far; there are too few trials for a model"
        among = " over the contexts" if ledger.context is not None else ""
        if among and ledger.goals.constraints:
            among += (
                "; in the worst of them it may break constraints, as all others may"
                if self._may_break(trial)
                else (", and that it meets the constraints in the worst of them")
            )
        best = ledger.incumbent
        better = "more" if ledger.goal.larger_is_better else "less"
        luck = (
            ""
            if best is None or among or best.number == trial.number
            else f", {better} than for trial {best.number}, "
            + ("which measured the same" if best.value == trial.value else "the best measured")
        )
        return f"{about}; the model expects {interval(*expected)}{among}{luck}"

    @property
    def best(self) -> Trial:
        """The feasible trial with the best value measured, the earliest of equals; `recommended` is the one to use.

        If a context is declared, it is the one with the best estimated expectation over it: a lucky context does not
        make a trial the best. With constraints, those compete for which a model is sure that they are met on average
        over the worst twentieth of the contexts; if there are none, it is the one that comes closest. The estimate and
        its standard deviation, in the user's units, are `best.details["expected"]` and `["expected_sd"]`, once enough
        trials have finished for a model; `best.value` is what the trial measured. If no trial has finished, it is the
        best of the pruned trials that got furthest, and its `value` is None.

        Raises:
            TrialError: no trial has finished or was pruned yet, none satisfies all constraints (the message says which
                comes closest), or there are several metrics: see `front`.
        """
        return self._once("best", self._best)

    @property
    def best_expected(self) -> Trial:
        """The finished trial for which a model expects the best value: with noise, the luckiest is not the best.

        It is the best measured one if the model finds no noise in the values, or expects no other to be better by a
        quarter of its standard deviation.

        Its `details["expected"]` and `["expected_sd"]` hold that estimate and its standard deviation, in the user's
        units. It is `best` itself if a context is declared, or if too few trials have finished for a model; without a
        model, `details` holds neither. Of more than 2,000 trials, the 2,000 with the best values compete.

        Raises:
            TrialError: as `best`.
        """
        return self._once("best_expected", self._best_expected)

    @property
    def expectations(self) -> dict[int, Expected] | None:
        """For each finished trial, the value that a model expects and its standard deviation, in the user's units.

        Empty if too few trials have finished for a model; None with several metrics or a context.
        """
        found = self._once("expectations", self._expectations)
        return None if found is None else dict(found)

    def expected(self, trial: Trial | int) -> Expected | None:
        """The value that a model expects of a trial's configuration, and its standard deviation, in the user's units.

        None if too few trials have finished for a model, and with several metrics. If a context is declared, the
        estimate by which `best` or `best_for` chose this trial; None for other trials.

        Raises:
            TrialError: there is no such trial.
        Example:
            >>> searcher = raybo.Searcher({"x": raybo.Float(0, 1)}, seed=0)
            >>> trials = [searcher.tell(trial, trial.config["x"]) for trial in searcher.ask(8)]
            >>> mean, sd = searcher.expected(searcher.best)
            >>> abs(mean - searcher.best.value) < 0.1
            True
        """
        ledger = self.ledger
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

    def best_for(self, context: Mapping[str, Any]) -> Trial:
        """The finished trial with the best estimated value in the given context; `details` as in `best`.

        Raises:
            TrialError: no trial has finished yet, no context is declared, or this one does not match the declared one
                or lies outside of it.
        Example:
            >>> space, context = {"x": raybo.Float(0, 1)}, {"load": raybo.Float(0, 1)}
            >>> searcher = raybo.Searcher(space, context=context, mode="min", seed=0)
            >>> for x, load in [(0.2, 0.1), (0.8, 0.1), (0.2, 0.9), (0.8, 0.9)]:
            ...     trial = searcher.add({"x": x}, abs(x - load), context={"load": load})
            >>> searcher.best_for({"load": 0.9}).config
            {'x': 0.8}
        """
        told = told_context(self.ledger.context, context, "best_for")
        if moved := told.get("context_note"):
            raise TrialError(f"best_for: {moved.partition(' and was taken')[0]}")
        c = np.array(told["c"])
        from raybo.context import best_for

        with limit_threads(1):
            return self._with_estimate(*best_for(self.ledger.history, c))

    @property
    def front(self) -> list[Trial]:
        """The finished, feasible trials that no other dominates, ordered by the first metric, best first.

        With one metric, the best one and those that are as good.

        Example:
            >>> searcher = raybo.Searcher({"x": raybo.Float(0, 1)}, metrics={"a": "max", "b": "min"}, seed=0)
            >>> for a, b in [(1, 1), (2, 3), (1, 2)]:
            ...     trial = searcher.tell(searcher.ask(), {"a": a, "b": b})
            >>> [trial.number for trial in searcher.front]
            [1, 0]
        """
        return self.ledger.in_order(self.ledger.front)

    def hypervolume(self, reference: Mapping[str, float] | None = None) -> float:
        """The volume that the front dominates, in the product of the metrics' units.

        Args:
            reference: the point from which the volume is measured, by metric; by default, the worst value of each
                metric among the feasible trials.
        Returns:
            a number from 0; 0 while nothing is feasible.
        Raises:
            TrialError: the reference is not a finite number for each metric.
        Example:
            >>> searcher = raybo.Searcher({"x": raybo.Float(0, 1)}, metrics={"a": "max", "b": "min"}, seed=0)
            >>> for a, b in [(1, 1), (2, 3)]:
            ...     trial = searcher.tell(searcher.ask(), {"a": a, "b": b})
            >>> searcher.hypervolume({"a": 0, "b": 4})  # 2 x 1 and 1 x 3 overlap in 1 x 1
            4.0
        """
        return self.ledger.hypervolume(reference)

    def explain(self, trial: Trial | int) -> str:
        """In a few words, why this trial was proposed.

        Raises:
            TrialError: there is no such trial, or its tags are not what the method writes.
        Example:
            >>> raybo.load("job.db").explain(0)
            'enqueued by the user'
        """
        found = trial if isinstance(trial, Trial) else self.ledger.trials[self.ledger.history.require(trial)]
        return explain(self.method, found, self.ledger.goals)

    def _confirmed(self) -> Confirmed | None:
        """The best of the configurations that were run again; None if none was, or the search has gone on since."""
        ledger = self.ledger
        if ledger.goals.k > 1 or not ledger.history.count_tag("confirms"):
            return None
        last = max((trial.number for trial in again(ledger.trials)), default=-1)
        if any(
            each.state is State.FINISHED and each.origin is not Origin.CONFIRMED for each in ledger.trials[last + 1 :]
        ):
            return None
        return next(iter(confirmed(ledger.trials, ledger.history, ledger.goal)), None)

    def _best(self) -> Trial:
        ledger = self.ledger
        if ledger.context is None or ledger.incumbent is None:
            return ledger.best
        from raybo.context import best_expected

        with limit_threads(1):
            return self._with_estimate(*best_expected(ledger.history))

    def _may_break(self, trial: Trial) -> bool:
        """True if a model is not sure that a trial's configuration meets the constraints in the worst contexts."""
        from raybo.context import breaks_constraints

        with limit_threads(1):
            return breaks_constraints(self.ledger.history, trial.number)

    def _best_expected(self) -> Trial:
        history, incumbent = self.ledger.history, self.ledger.incumbent
        if self.ledger.context is not None or incumbent is None:
            return self.best  # or the reason why there is none
        model = self._model()
        if model is None:
            return incumbent
        worth = np.where(history.feasible, history.y, -np.inf)
        likely = np.sort(np.argsort(-worth, kind="stable")[:LIKELY])
        likely = likely[np.isfinite(worth[likely])]
        with limit_threads(1):
            place = likely[model.ranking(history.X[likely], worth[likely])[0]]
            mean, sd = model.at(history.X[place][None, :])
        return self._with_estimate(int(history.records.numbers(State.FINISHED)[place]), float(mean[0]), float(sd[0]))

    def _expectations(self) -> dict[int, Expected] | None:
        ledger = self.ledger
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

    def _model(self) -> Expectation | None:
        """The model of all finished trials; None while they are too few."""
        return self._once("model", lambda: _fitted(self.ledger.history))

    def _once(self, name: str, find: Callable[[], T]) -> T:
        """Return the result of `find`, which is called once until there are further events."""
        if self._found[0] != self.ledger.last_event:
            self._found = self.ledger.last_event, {}
        found = self._found[1]
        if name not in found:
            found[name] = find()
        return cast(T, found[name])

    def _with_estimate(self, number: int, mean: float, sd: float) -> Trial:
        """The trial with the estimate (maximised) in its details, if there is one."""
        trial = self.ledger.trials[number]
        if math.isnan(sd):
            return trial
        return trial.with_estimate(dict(zip(EXPECTED, (self.ledger.goal.value_of(mean), sd), strict=True)))


def interval(mean: float, sd: float) -> str:
    """Return a mean and its 90% interval in words, with the digits that the standard deviation leaves."""
    places = 0 if not 0.0 < sd < math.inf else 1 - math.floor(math.log10(sd))
    low, high = mean - NINETY * sd, mean + NINETY * sd
    if 0.0 < max(-low, high) < SMALL:
        texts = [f"{x:.2g}" for x in (mean, low, high)]
    else:
        texts = [f"{x:.{places}f}" if 0 < places <= 9 and abs(x) < 1e6 else f"{x:.6g}" for x in (mean, low, high)]
    return f"{texts[0]} (90% interval {texts[1]} to {texts[2]})"


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
