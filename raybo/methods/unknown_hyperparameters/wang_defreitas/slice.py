"""The rival of Wang and de Freitas' example: the improvement averaged over length-scales in [theta_L, theta_U]."""

from __future__ import annotations

import numpy as np

from raybo.methods.unknown_hyperparameters.wang_defreitas.improvement import (
    WithinBounds,
    explain_improvement,
    most_promising,
)
from raybo.record.events import Tags
from raybo.record.history import History, Proposal


def propose(within: WithinBounds, history: History, rng: np.random.Generator) -> Proposal:
    """Return the maximiser of the averaged improvement."""
    fit = within.fit(history, rng, "slice")
    x, mu_plus = most_promising(fit, 1.0, history, rng, within.solver)
    return Proposal(x, {"mu_plus": mu_plus, **fit.prediction(x), **fit.tags})


def explain(tags: Tags) -> str:
    """Explain the point by its prediction."""
    return f"{explain_improvement(tags)}; length-scales sampled"
