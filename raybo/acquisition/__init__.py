"""Acquisition functions: the worth of trying a point, as small frozen objects over a surrogate's posterior.

value(X)                (m, d) -> (m,)
value_and_gradient(X)   (m, d) -> (m,), (m, d)

UpperConfidence                                                mean + kappa std, and the published schedules of kappa
LogExpectedImprovement                                         over an incumbent, rescaled by nu if asked
LogProbabilityOfImprovement                                    over an incumbent
JointDraw, Inflated                                            Thompson sampling
ContextConfidence                                              upper confidence over contexts, averaged or worst
LogExpectedHypervolumeImprovement                              over a front of several metrics
ScalarisedConfidence                                           upper confidence of several metrics, weighted
Observed                                                       a new observation, noise included
Average, LogAverage                                            over posterior samples of the hyperparameters
Shortfall                                                      minus the price of a constraint that may be broken
Total                                                          the sum of several
"""

from __future__ import annotations

from raybo.acquisition.average import Average, LogAverage
from raybo.acquisition.confidence import UpperConfidence, exploration, practical_kappa, theory_kappa
from raybo.acquisition.context import ContextConfidence
from raybo.acquisition.feasibility import Observed
from raybo.acquisition.hypervolume import (
    LogExpectedHypervolumeImprovement,
    ScalarisedConfidence,
    random_weights,
)
from raybo.acquisition.improvement import (
    LogExpectedImprovement,
    LogProbabilityOfImprovement,
    best_posterior_mean,
)
from raybo.acquisition.protocols import Acquisition, Draw, Surrogate
from raybo.acquisition.shortfall import Shortfall
from raybo.acquisition.thompson import Inflated, JointDraw
from raybo.acquisition.total import Total

__all__ = [
    "Acquisition",
    "Average",
    "ContextConfidence",
    "Draw",
    "Inflated",
    "JointDraw",
    "LogAverage",
    "LogExpectedHypervolumeImprovement",
    "LogExpectedImprovement",
    "LogProbabilityOfImprovement",
    "Observed",
    "ScalarisedConfidence",
    "Shortfall",
    "Surrogate",
    "Total",
    "UpperConfidence",
    "best_posterior_mean",
    "exploration",
    "practical_kappa",
    "random_weights",
    "theory_kappa",
]
