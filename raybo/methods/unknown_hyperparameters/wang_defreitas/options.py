"""Defines the options of wang-defreitas, one of which selects among three algorithms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from raybo.common.errors import MethodError
from raybo.common.options import option
from raybo.methods.story import Story
from raybo.methods.unknown_hyperparameters import common as unknown
from raybo.methods.unknown_hyperparameters.shorter_lengthscales import lengthscale_story
from raybo.methods.unknown_hyperparameters.wang_defreitas import bounds, least_std, slice
from raybo.methods.unknown_hyperparameters.wang_defreitas.improvement import WithinBounds
from raybo.record.events import Tags
from raybo.record.history import History, Proposal
from raybo.record.trial import Trial
from raybo.space import Array
from raybo.surrogate import KernelName


@dataclass(frozen=True, kw_only=True)
class WangDeFreitas(unknown.UnknownOptions):
    """Expected improvement; length-scales are cut whenever five steps in a row were all but certain of their values.

    Wang, de Freitas (2014), "Theoretical Analysis of Bayesian Optimisation with Unknown Gaussian Process
    Hyper-Parameters", arXiv:1406.7758, Algorithm 1; and two rivals of it.
    """

    variant: Literal["bounds", "slice", "kappa"] = option(
        "bounds", "Algorithm 1; slice sampling without it; or the form that Ha et al. compare with"
    )
    kernel: KernelName = option("matern52", "matern52, matern32 or rbf; not for variant=kappa")
    lower: float | tuple[float, ...] = option(
        0.005, "smallest length-scale, or one per axis, in sides of the cube", above=0
    )
    upper: float | tuple[float, ...] = option(1.0, "largest length-scale at first, or one per axis", above=0)
    noise_variance: float = option(1e-4, "noise variance of the values as the model sees them, taken as known", above=0)
    standardise: bool = option(True, "the model sees standardised values; else the values as they are")
    t_sigma: float = option(1.0, "a step's variance below this many noise variances counts as too low", above=0)
    p: float = option(0.5, "factor by which a cut multiplies the largest bound", above=0, below=1)
    c1: float = option(0.001, "smallest nu, as a multiple of xi", above=0)
    c2: float = option(1.0, "largest nu, as a multiple of xi", above=0)
    delta: float = option(0.1, "probability that the theorem's bounds may fail, in xi", above=0, below=1)
    nu: Literal["one", "fitted"] = option("one", "nu before it is bounded: 1, or the most likely scale of the values")
    nu_rule: Literal["algorithm", "theorem"] = option(
        "algorithm", "algorithm keeps nu within [c1 xi, c2 xi], theorem nu^2"
    )
    kappa: float = option(unknown.KAPPA, "for variant=kappa: standard deviations added to the mean", at_least=0)
    least_std: float = option(0.1, "for variant=kappa: the standard deviation that the next point must have", above=0)
    gamma_prior: tuple[float, ...] = option(
        unknown.PRIOR, "for variant=kappa: shape and rate of every Gamma prior", above=0
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.c1 < self.c2:
            raise MethodError(f"c2 must be a number above c1, got c1={self.c1}, c2={self.c2}")
        self.within(max(np.size(self.lower), np.size(self.upper)))

    def propose(self, history: History, rng: np.random.Generator) -> Proposal:
        """Return a point of the initial design, then the variant's proposal."""
        if unknown.is_in_design(history, self.initial):
            return unknown.uniform_point(history, rng)
        if self.variant == "kappa":
            least = least_std.LeastStd(self.kappa, self.least_std, self.gamma_prior, self.solver)
            return least.propose(history, rng)
        within = self.within(history.d)
        if self.variant == "slice":
            return slice.propose(within, history, rng)
        cutting = bounds.Cutting(self.t_sigma, self.p, self.c1, self.c2, self.delta, self.nu, self.nu_rule)
        return cutting.propose(within, history, rng)

    def within(self, d: int) -> WithinBounds:
        """Return the model with theta_L and the first theta_U; raise MethodError unless these are d ranges."""
        lower, upper = self._lengthscales("lower", d), self._lengthscales("upper", d)
        if not (lower <= upper).all():
            raise MethodError(f"0 < lower <= upper must hold, got lower={self.lower}, upper={self.upper}")
        return WithinBounds(lower, upper, self.kernel, self.noise_variance, self.standardise, self.solver)

    def _lengthscales(self, name: str, d: int) -> Array:  # (d,)
        given = np.asarray(getattr(self, name), dtype=np.float64)
        if given.size not in (1, d):
            raise MethodError(f"{name} gives {given.size} length-scales for {d} axes; give 1 or {d}")
        return np.broadcast_to(given, (d,)).copy()

    def story(self, trials: Sequence[Trial], names: Sequence[str]) -> Story | None:
        """Return a story of the length-scales, and of the bounds if they are cut."""
        return lengthscale_story(trials, names)

    def explain(self, tags: Tags) -> str:
        """Explain a point of the design, or the variant's point."""
        if "design" in tags:
            return unknown.explain_point(tags)
        if "factor" in tags:
            return least_std.explain(tags)
        return bounds.explain(tags) if "E" in tags else slice.explain(tags)
