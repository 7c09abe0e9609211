"""mcmc: upper confidence bounds averaged over hyperparameters drawn by Hamiltonian Monte Carlo.

The baseline of Ha et al., section 6 and appendix C: at each step 200 draws of burn-in and 10 samples. Leapfrog steps
(20 of 0.05) and thinning (every tenth) are those of pyMACE, on which that paper's code stands. Ours: a chain starts at
the most likely hyperparameters, and it is reflected at the bounds of the others' fits; without them it drifts
to length-scale 0, where the model is white noise.
In parallel the samples are kept until another trial ends; pending trials are believed at their posterior mean; failed
ones count as the worst value seen. At most 300 observations enter the sampling.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raybo.common.options import option
from raybo.methods.unknown_hyperparameters import common as unknown
from raybo.record.events import Tags
from raybo.record.history import History, Proposal


@dataclass(frozen=True, kw_only=True)
class Mcmc(unknown.AcquisitionOptions):
    """Upper confidence bounds averaged over samples of the hyperparameters by Hamiltonian Monte Carlo.

    The baseline "MCMC" of Ha et al., "Provably Efficient Bayesian Optimization with Unknown Gaussian Process
    Hyperparameter Estimation", arXiv:2306.06844.
    """

    tune: bool = option(False, "adapt the leapfrog step during the burn-in (ours)")

    def propose(self, history: History, rng: np.random.Generator) -> Proposal:
        """Return a point of the initial design, then the maximiser of the mean bound."""
        if unknown.is_in_design(history, self.initial):
            return unknown.uniform_point(history, rng)
        fit = unknown.fit(history, rng, "mcmc", self.gamma_prior, tune=self.tune)
        x, tags = self.maximiser(fit, history, rng)
        return Proposal(x, tags)

    def explain(self, tags: Tags) -> str:
        """Explain a point of the design, or the acquisition's by its prediction."""
        return unknown.explain_point(tags)
