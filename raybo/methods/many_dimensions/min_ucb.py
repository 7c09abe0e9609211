"""min-ucb: explores as GIBO does, and moves to where the value is surely good.

Fan, Wang, Ng, Hu (2024), "Minimizing UCB: a Better Local Search Strategy in Local Bayesian Optimization", NeurIPS,
Algorithm 1; its steps are 1 the centre, b1 times, 2 b2 points of least trace, 3 their evaluation, 4 the move. The paper
minimises an upper bound; here that is the largest lower bound (see `local_search`). b1 and b2, which the
paper does not give, are the options `repeats` and `batch`.
Departures: the last planned trial is the recommendation, x_{t+1}. Categorical axes have no gradient, so nothing is
explored along them: they mostly stay as they start.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raybo.acquisition.gradient_information import TraceReduction
from raybo.common.options import option
from raybo.methods.many_dimensions.iterations import Iteration, explain, is_last
from raybo.methods.many_dimensions.local_search import (
    LocalOptions,
    estimated,
    explore,
    last_theta,
    prediction,
    safest,
    surrogate,
)
from raybo.methods.many_dimensions.runs import is_beginning
from raybo.record.events import Tags
from raybo.record.history import History, Proposal
from raybo.surrogate import GradientAt


@dataclass(frozen=True, kw_only=True)
class MinUcb(LocalOptions):
    """Local search that moves to the best pessimistic value, mean - beta std, after points that reveal the gradient.

    Fan, Wang, Ng, Hu (2024), "Minimizing UCB: a Better Local Search Strategy in Local Bayesian Optimization", NeurIPS.
    """

    beta: float = option(3.0, "standard deviations of pessimism in the move", at_least=0)
    repeats: int = option(1, "evaluations of the centre in an iteration, b1", at_least=1)

    def propose(self, history: History, rng: np.random.Generator) -> Proposal:
        """Return the iteration's next point, or the move that begins the next one."""
        now = Iteration.of(history)
        if now is None or is_beginning(history):
            return self.begin(history, rng)
        if now.is_over(self.repeats + self.batch_size(history), self.quorum) or is_last(history, now):
            if (first := self.another_run(history, now, rng)) is not None:
                return first
            gp = surrogate(history, self, last_theta(history, self))
            found, _, _ = safest(gp, self.beta, history, now.centre, self.delta, rng)  # step 4
            return now.moves_to(found.x, prediction(gp, found.x))
        if now.asked("centre") < self.repeats:
            return now.again()  # step 1
        theta, tags = estimated(history, self, now)
        gp = surrogate(history, self, theta).believing(history.X_pending)
        at = GradientAt.of(gp, now.centre)
        found = explore(TraceReduction(at), history, now.centre, self.delta, rng)  # step 2
        return now.explores(found.x, {"trace": at.trace - found.value, **tags})

    def explain(self, tags: Tags) -> str:
        """Explain the phase and the point's prediction."""
        return explain(tags)
