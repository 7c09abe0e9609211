"""mpd: explores until the direction of ascent is most certain, and walks along it for as long as it stays so.

Nguyen, Wu, Gardner, Garnett (2022), "Local Bayesian optimization via maximizing probability of descent", NeurIPS. The
direction v that ascends most probably is S^-1 mu, with mean mu and covariance S of the gradient, and its probability is
Phi(sqrt(mu' S^-1 mu)).
variant="released" restores what the published code does: the probability Phi(sqrt(v' mu)) of the normalised direction,
a covariance raised to 1e-9 element by element, and a walk of up to 10,000 steps that leaves the domain.
Departures: centres stay in the cube (the released walk's end is clipped). Categorical axes stay as they start.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import ndtr

from raybo.acquisition.gradient_information import DirectionCertainty, factor_of_gradient
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
from raybo.surrogate.factor import solve

Variant = Literal["paper", "released"]
LEAST_COVARIANCE = 1e-9  # the released code's floor of every element of a covariance
STEPS = {"paper": 1_000, "released": 10_000}


@dataclass(frozen=True, kw_only=True)
class Mpd(LocalOptions):
    """Walks along the direction of most probable ascent, after points that make that direction certain.

    Nguyen, Wu, Gardner, Garnett (2022), "Local Bayesian optimization via maximizing probability of descent", NeurIPS.
    """

    variant: Variant = option("paper", "paper, or released for the published code's behaviour")
    probability: float = option(0.65, "probability of ascent below which the walk ends", above=0.5, below=1)
    stride: float = option(0.01, "step length of the walk, in sides of the cube", above=0)

    def propose(self, history: History, rng: np.random.Generator) -> Proposal:
        """Return the iteration's next point, or the end of the walk that begins the next one."""
        now = Iteration.of(history)
        if now is None or is_beginning(history):
            return self.begin(history, rng)
        if now.is_over(1 + self.batch_size(history), self.quorum):
            if (first := self.another_run(history, now, rng)) is not None:
                return first
            gp = surrogate(history, self, last_theta(history, self))
            x, steps = walk(gp, now.centre, self.probability, self.stride, self.variant)
            x = history.cube.led_back(x)
            return now.moves_to(x, {"steps": steps, **prediction(gp, x)})
        theta, tags = estimated(history, self, now)
        gp = surrogate(history, self, theta).believing(history.X_pending)
        certainty = DirectionCertainty(GradientAt.of(gp, now.centre))
        found = explore(certainty, history, now.centre, self.delta, rng)
        return now.explores(found.x, {"probability": float(ndtr(math.sqrt(max(found.value, 0.0)))), **tags})

    def explain(self, tags: Tags) -> str:
        """Explain the phase and the point's prediction."""
        if "probability" in tags:
            sure = f"would be sure of the direction of ascent to {100.0 * tags['probability']:.0f}%"
            return f"iteration {tags['iteration']}: explores around the centre; {sure}"
        return explain(tags)


def walk(gp: GP, x: Array, probability: float, stride: float, variant: Variant) -> tuple[Array, int]:  # (d,)
    """Walk from x along the most probable ascent while it is probable enough; return the end and the steps."""
    for step in range(STEPS[variant]):
        direction, p = most_probable_ascent(gp, x, variant)
        moved = x + stride * direction
        if variant == "paper":
            moved = np.clip(moved, 0.0, 1.0)
        if not p >= probability or np.array_equal(moved, x):
            return np.clip(x, 0.0, 1.0), step
        x = moved
    return np.clip(x, 0.0, 1.0), STEPS[variant]


def most_probable_ascent(gp: GP, x: Array, variant: Variant = "paper") -> tuple[Array, float]:  # (d,)
    """Return the unit vector along which f most probably rises at x, and that probability by the variant."""
    at = GradientAt.of(gp, x)
    if variant == "released":
        cov = np.maximum(at.cov, LEAST_COVARIANCE)
        try:
            v = np.linalg.solve(cov, at.mean)
        except np.linalg.LinAlgError:  # the released floor may leave a singular matrix
            v = at.mean
    else:
        v = solve(factor_of_gradient(at.cov), at.mean)
    length = float(np.linalg.norm(v))
    unit = v / length if length > 0.0 else v
    certainty = float((unit if variant == "released" else v) @ at.mean)
    return np.asarray(unit, dtype=np.float64), float(ndtr(math.sqrt(max(certainty, 0.0))))
