"""gibo: explores the points that reveal most of the gradient at the centre, and takes a step along it.

Mueller, von Rohr, Trimpe (2021), "Local policy search with Bayesian optimization", NeurIPS; as in the published code,
exploration points are chosen one at a time and steps are normalised.
Departures: centres stay in the cube. The window's values are standardised unless standardise=false; the published code
leaves them as they are. Weight decay draws towards the cube's centre, which stands for the published zero. Categorical
axes have no gradient and stay as they start.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from raybo.acquisition.gradient_information import TraceReduction
from raybo.common.errors import MethodError
from raybo.common.options import option
from raybo.methods.many_dimensions.iterations import Iteration, explain
from raybo.methods.many_dimensions.local_search import (
    LocalOptions,
    estimated,
    explore,
    last_theta,
    prediction,
    surrogate,
)
from raybo.methods.many_dimensions.runs import is_beginning
from raybo.record.events import Tags
from raybo.record.history import History, Proposal
from raybo.space import Array
from raybo.surrogate import GP, GradientAt


@dataclass(frozen=True, kw_only=True)
class Gibo(LocalOptions):
    """Gradient ascent on the posterior mean, after points that reveal the gradient at the centre.

    Mueller, von Rohr, Trimpe (2021), "Local policy search with Bayesian optimization", NeurIPS.
    """

    learning_rate: float | tuple[float, ...] = option(
        0.25,
        "step length, or one per iteration, of which the last is kept; in length-scales if step=normalised",
        above=0,
    )
    step: Literal["normalised", "plain"] = option("normalised", "length-scale times direction, or the gradient itself")
    weight_decay: float = option(0.0, "added to the direction: this share of the way to the cube's centre", at_least=0)
    early_stop: float | None = option(
        None, "end exploring when a point lowers the trace by less than this; none: never", at_least=0
    )
    refit: Literal["always", "full"] = option("always", "fit in every iteration, or only once the window is full")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self._rates:
            raise MethodError(
                "learning_rate must be a number or a list with one number per iteration, got an empty list"
            )

    @property
    def _rates(self) -> tuple[float, ...]:
        return self.learning_rate if isinstance(self.learning_rate, tuple) else (self.learning_rate,)

    def propose(self, history: History, rng: np.random.Generator) -> Proposal:
        """Return the iteration's next point, or the step that begins the next one."""
        now = Iteration.of(history)
        if now is None or is_beginning(history):
            return self.begin(history, rng)
        if now.is_over(self._size(history, now), self.quorum):
            if (first := self.another_run(history, now, rng)) is not None:
                return first
            gp = surrogate(history, self, last_theta(history, self))
            x = now.centre + self._rates[min(now.number, len(self._rates)) - 1] * self._direction(gp, now.centre)
            x = history.cube.led_back(np.clip(x, 0.0, 1.0))
            return now.moves_to(x, prediction(gp, x))
        theta, tags = self._estimated(history, now)
        gp = surrogate(history, self, theta).believing(history.X_pending)
        at = GradientAt.of(gp, now.centre)
        found = explore(TraceReduction(at), history, now.centre, self.delta, rng)
        return now.explores(found.x, {"trace": at.trace - found.value, **tags})

    def _size(self, history: History, now: Iteration) -> int:
        """Return the iteration's number of trials: those so far, once the last exploration has gained too little."""
        size = 1 + self.batch_size(history)
        traces = [record.tags["trace"] for record in now.own if "trace" in record.tags]
        if self.early_stop is None or len(traces) < 2 or traces[-2] - traces[-1] >= self.early_stop:
            return size
        return min(size, len(now.own))

    def _estimated(self, history: History, now: Iteration) -> tuple[Array, Tags]:
        if self.refit == "full" and len(history.y) < self.window_size(history):
            return last_theta(history, self), {}
        return estimated(history, self, now)

    def _direction(self, gp: GP, centre: Array) -> Array:  # (d,)
        slope = GradientAt.of(gp, centre).mean
        if self.step == "normalised":
            steepness = float(np.linalg.norm(slope))
            slope = gp.lengthscale * slope / steepness if steepness > 0.0 else slope
        decay = np.where(gp.observations.categorical, 0.0, self.weight_decay * (centre - 0.5))
        return np.asarray(slope - decay)

    def explain(self, tags: Tags) -> str:
        """Explain the phase and the point's prediction."""
        return explain(tags)
