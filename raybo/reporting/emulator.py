"""A Gaussian process fitted to a finished study, whatever method ran it: predictions in the user's units.

The model is that of `auto` (Matern-5/2, the most likely hyperparameters, values made normal by a power), but no bad
value is clipped. Failed trials are left out, for here the question is what the objective does, not where to look next.
So are pruned ones, which have no value: where they were, it knows only what the finished ones tell, and figures say so.
Contexts are not in the model: to it, their effect on a value is noise, and it predicts for the contexts observed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from raybo.common.errors import NumericalError
from raybo.common.messages import counted
from raybo.record.goals import Goal
from raybo.record.history import History
from raybo.record.states import State
from raybo.space import Array
from raybo.study.study import Study
from raybo.surrogate import GP, Observations, Outputs, Tamed, fit_map, standard_model

LEAST_TRIALS = 5  # finished ones, below which nothing is claimed of the objective
CONDITIONED = 500  # trials at most, the best fifth of them and an even choice of the rest: enough for a picture
BAND_SDS = 1.2816  # of a normal law, on either side: four times in five the truth lies between


@dataclass(frozen=True, eq=False)
class Emulator:
    """A surrogate of a study's objective.

    Attributes:
        gp: conditioned on finished trials, in the units of `outputs`.
        outputs: from maximised values to those units.
        goal: the study's, from values back to the user's sign.
        history: the study's, in the cube.
    """

    gp: GP
    outputs: Outputs
    goal: Goal
    history: History

    @classmethod
    def of(cls, study: Study) -> Emulator | None:
        """The surrogate; None if trials are too few, all equal, or cannot be factorised."""
        history = study.history
        y = history.y
        if len(y) < LEAST_TRIALS or float(np.ptp(y)) == 0.0:
            return None
        outputs = Tamed.of(y, clip=None)
        all_points = Observations.of(history.X, outputs.apply(y), history.cube.categorical)
        observations, model = all_points.thinned(CONDITIONED), standard_model()
        try:
            gp = GP.of(observations, model, fit_map(observations, model))
        except NumericalError:
            return None
        return cls(gp, outputs, study.goal, history)

    def band(self, X: Array) -> tuple[Array, Array, Array]:  # (m, d) -> (m,), (m,), (m,)
        """Median of f at the rows of X, and the ends of the band that holds it four times in five; user's units."""
        mean, var = self.gp.posterior(X)
        half = BAND_SDS * np.sqrt(var)
        middle, one, other = (self.goal.value_of(self.outputs.invert(z)) for z in (mean, mean - half, mean + half))
        return middle, np.minimum(one, other), np.maximum(one, other)

    def around(self, number: int, u: Mapping[int, Array]) -> Array:  # (m, d)
        """Points like that of a trial but for the given coordinates (m,) of some axes, as they would be run."""
        rows = len(next(iter(u.values())))
        X = np.repeat(self.history.records[number].x[None, :], rows, axis=0)
        for axis, along in u.items():
            X[:, axis] = along
        return self.history.cube.place(X)  # what another choice opens, or closes, goes with it; rules are left out

    @property
    def left_out(self) -> str:
        """Say in a caption how many trials ended early, so that the model lacks them; empty if none did."""
        number = self.history.count(State.PRUNED)
        if number == 0:
            return ""
        trials = counted(number, f"{'pruned' if self.history.fidelity is None else 'cheap'} trial")
        return f" {trials} {'is' if number == 1 else 'are'} not in the model."

    @property
    def leave_one_out_r2(self) -> float:
        """The coefficient of determination of leave-one-out predictions, at most 1."""
        residuals = self.gp.y - self.gp.leave_one_out()
        spread = float(np.var(self.gp.y))
        return 1.0 - float(np.mean(np.square(residuals))) / spread if spread > 0.0 else -math.inf
