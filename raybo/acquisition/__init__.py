"""Acquisitions: the worth of trying a point, as small frozen objects over a surrogate's posterior.

value(X)                (m, d) -> (m,)
value_and_gradient(X)   (m, d) -> (m,), (m, d)

UpperConfidence                                                mean + kappa std, and the published schedules of kappa
LogExpectedImprovement                                         over an incumbent, rescaled by nu where asked
LogProbabilityOfImprovement                                    over an incumbent
JointDraw, Inflated                                            Thompson sampling
ContextConfidence                                              upper confidence over contexts, averaged or worst
Average, LogAverage                                            over posterior samples of the hyperparameters
"""

from __future__ import annotations

from raybo.acquisition.average import Average, LogAverage
from raybo.acquisition.confidence import UpperConfidence, exploration, practical_kappa, theory_kappa
from raybo.acquisition.context import ContextConfidence
from raybo.acquisition.improvement import (
    LogExpectedImprovement,
    LogProbabilityOfImprovement,
    best_posterior_mean,
)
from raybo.acquisition.protocols import Acquisition, Draw, Surrogate
from raybo.acquisition.thompson import Inflated, JointDraw

__all__ = [
    "Acquisition",
    "Average",
    "ContextConfidence",
    "Draw",
    "Inflated",
    "JointDraw",
    "LogAverage",
    "LogExpectedImprovement",
    "LogProbabilityOfImprovement",
    "Surrogate",
    "UpperConfidence",
    "best_posterior_mean",
    "exploration",
    "practical_kappa",
    "theory_kappa",
]
