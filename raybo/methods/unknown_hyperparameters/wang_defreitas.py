"""wang-defreitas: expected improvement with length-scales that are cut once the search has become too sure of itself.

Wang, de Freitas (2014), "Theoretical Analysis of Bayesian Optimisation with Unknown Gaussian Process Hyper-Parameters",
arXiv:1406.7758, Algorithm 1; margin notes are its symbols.

    theta_L, theta_U   least and largest length-scales; E      steps in a row whose variance was below t_sigma s_n2
    mu_plus            the posterior mean's maximum over the cube; u = (mean - mu_plus) / std
    EI_nu              nu std tau(u / nu), eq. (8)
    xi                 an estimate of eq. (9) by the information gain I of the inputs so far; bounds nu

After five such steps every length-scale's bound above p max(theta_U) falls to that. The kernel has variance 1 and the
noise s_n2 is known; length-scales are the most likely ones within the bounds. Printed: nu in [c1 xi, c2 xi]; by the
paper's Theorem 1 it is nu^2 (`nu_rule="theorem"`). Chosen here, where the paper is silent: theta_L, theta_U, the noise,
delta, nu = 1 before it is bounded, the initial design.
`variant="slice"` is the rival of the paper's example: the same improvement, averaged over length-scales by slice
sampling within [theta_L, theta_U], which stay. `variant="kappa"` is what Ha et al., arXiv:2306.06844, compare with
under these names: upper confidence bounds with the most likely hyperparameters, their length-scales divided by the
smallest factor for which the next point's standard deviation is at least 0.1.
In parallel E counts trials as they end (those that ended between two proposals in the order of asking), by the variance
at their proposal given the pending points too; trials of an earlier epoch, proposed before the last cut, do not count,
and failed ones leave E. I and t are of what has ended; failed trials enter with the worst value seen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from raybo.acquisition import LogAverage, LogExpectedImprovement, UpperConfidence
from raybo.errors import MethodError
from raybo.events import State, Tags
from raybo.history import History, Proposal
from raybo.methods.apart import taken
from raybo.methods.fitting import Fitted, fitted
from raybo.methods.options import option
from raybo.methods.unknown_hyperparameters import common as unknown
from raybo.methods.unknown_hyperparameters.shorter_lengthscales import (
    LARGEST,
    STEP,
    candidates,
    divided,
    observed_by,
    std_at_top,
    under,
)
from raybo.solvers import Solution, SolverName, solve
from raybo.space import Array
from raybo.surrogate import GP, Hyperparameter, KernelName, Model, Standardised

PATIENCE = 5  # E at which the bounds are cut


@dataclass(frozen=True, kw_only=True)
class WangDeFreitas(unknown.UnknownOptions):
    """Expected improvement whose length-scales are cut when five steps in a row were all but certain of their values.

    Wang, de Freitas (2014), "Theoretical Analysis of Bayesian Optimisation with Unknown Gaussian Process
    Hyper-Parameters", arXiv:1406.7758, Algorithm 1; and two rivals of it.
    """

    variant: Literal["bounds", "slice", "kappa"] = option(
        "bounds", "Algorithm 1; slice sampling without it; or the form that Ha et al. compare with"
    )
    kernel: KernelName = option("matern52", "matern52, matern32 or rbf; not for kappa")
    lower: float | tuple[float, ...] = option(
        0.005, "least length-scale, or one an axis, in sides of the cube", above=0
    )
    upper: float | tuple[float, ...] = option(1.0, "largest length-scale at first, or one an axis", above=0)
    noise_variance: float = option(
        1e-4, "variance of the noise, taken as known, of the values as the model sees them", above=0
    )
    standardise: bool = option(True, "the model sees standardised values; else the values as they are")
    t_sigma: float = option(1.0, "noise variances below which a step's variance counts as too low", above=0)
    p: float = option(0.5, "what the largest bound is multiplied by in a cut", above=0, below=1)
    c1: float = option(0.001, "least nu, times xi", above=0)
    c2: float = option(1.0, "largest nu, times xi", above=0)
    delta: float = option(0.1, "probability that the theorem's bounds may fail, in xi", above=0, below=1)
    nu: Literal["one", "fitted"] = option("one", "nu before it is bounded: 1, or the most likely scale of the values")
    nu_rule: Literal["algorithm", "theorem"] = option("algorithm", "nu within [c1 xi, c2 xi], or nu^2")
    kappa: float = option(unknown.KAPPA, "for kappa: standard deviations added to the mean", at_least=0)
    least_std: float = option(0.1, "for kappa: the standard deviation that the next point must have", above=0)
    prior: tuple[float, ...] = option(unknown.PRIOR, "for kappa: shape and rate of every Gamma prior", above=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.c1 < self.c2 < math.inf:
            raise MethodError(f"c2 must be a number above c1, got c1={self.c1}, c2={self.c2}")
        axes = max(np.size(self.lower), np.size(self.upper))
        self.box(axes)

    def propose(self, history: History, rng: np.random.Generator) -> Proposal:
        """The initial design; then Algorithm 1, or a variant."""
        if unknown.is_in_design(history, self.initial):
            return unknown.uniform_point(history, rng)
        if self.variant == "kappa":
            return self._with_least_std(history, rng)
        lower, upper = self.box(history.d)
        if self.variant == "slice":
            fit = self._fit(history, rng, lower, upper)
            x, mu_plus = most_promising(fit, 1.0, history, rng, self.solver)
            return Proposal(x, {"mu_plus": mu_plus, **fit.prediction(x), **fit.tags})
        bounds = current_bounds(history, lower, upper, self.p)  # theta_U, E
        fit = self._fit(history, rng, lower, bounds.upper)  # theta_t
        seen = observed_by(fit.gp, fit.gp.theta, history)
        t = 1 + int(seen.observations.counts.sum())
        xi = regret_scale(seen.information_gain, t, self.delta)
        nu = bounded(1.0 if self.nu == "one" else likely_scale(seen), xi, self.c1, self.c2, self.nu_rule)
        x, mu_plus = most_promising(fit, nu, history, rng, self.solver)  # x_t = argmax EI_nu
        prediction = fit.prediction(x)
        low = bool(prediction["std"] ** 2 < self.t_sigma * self.noise_variance)
        tags = {"t": t, "xi": xi, "nu": nu, "mu_plus": mu_plus, "low": low, **bounds.tags()}
        return Proposal(x, {**tags, **prediction, **fit.tags})

    def _fit(self, history: History, rng: np.random.Generator, lower: Array, upper: Array) -> Fitted:
        """Length-scales within the bounds: the most likely ones, or samples."""
        model = Model(
            kernel=self.kernel,
            lengthscale=Hyperparameter(
                low=tuple(lower.tolist()), high=tuple(upper.tolist()), start=tuple(np.sqrt(lower * upper).tolist())
            ),
            outputscale=Hyperparameter(fixed=1.0),
            noise_variance=Hyperparameter(fixed=self.noise_variance),
        )
        outputs = Standardised.of(history.y) if self.standardise else Standardised(0.0, 1.0)
        ends = model.bounds(history.d)
        estimate: Literal["map", "slice"] = "slice" if self.variant == "slice" else "map"
        starts = [model.start(history.d), ends[:, 1]]
        fit = fitted(history, model, rng, outputs=outputs, estimate=estimate, starts=starts)
        theta = np.clip(fit.gp.theta, ends[:, 0], ends[:, 1])  # one that was kept may be above a bound since cut
        if estimate == "slice" or np.array_equal(theta, fit.gp.theta):
            return fit
        return replace(fit, members=(under(fit.gp, theta, history),), tags={**fit.tags, "theta": theta.tolist()})

    def _with_least_std(self, history: History, rng: np.random.Generator) -> Proposal:
        """The maximiser of the bound under the first length-scales, fitted or shorter, that make it uncertain."""
        fit = unknown.fit(history, rng, "map", self.prior)
        points = candidates(fit, history, rng)
        factor = 1.0
        while True:
            shorter = divided(fit, factor, history)
            last = factor * STEP > LARGEST
            if last or std_at_top(shorter, self.kappa, points) >= self.least_std:
                x, tags = unknown.maximiser(
                    shorter, history, rng, acquisition="ucb", kappa=self.kappa, solver=self.solver
                )
                if last or tags["std"] >= self.least_std:
                    return Proposal(x, {"factor": factor, "lengthscale": shorter.gp.lengthscale.tolist(), **tags})
            factor *= STEP

    def box(self, d: int) -> tuple[Array, Array]:  # (d,), (d,)
        """theta_L and the first theta_U; MethodError where they are not d positive ranges."""
        ends = []
        for name in ("lower", "upper"):
            given = np.asarray(getattr(self, name), dtype=np.float64)
            if given.size not in (1, d):
                raise MethodError(f"{name} gives {given.size} length-scales for {d} axes; give 1 or {d}")
            ends.append(np.broadcast_to(given, (d,)).copy())
        if not ((ends[0] > 0.0) & (ends[0] <= ends[1]) & np.isfinite(ends[1])).all():
            raise MethodError(f"0 < lower <= upper must hold, got lower={self.lower}, upper={self.upper}")
        return ends[0], ends[1]

    def explain(self, tags: Tags) -> str:
        """The design; or what is expected, and what keeps the search from being too sure."""
        if "design" in tags:
            return unknown.explain_point(tags)
        if "factor" in tags:
            return f"{unknown.explain_point(tags)}; length-scales divided by {tags['factor']:.2f}"
        expects = f"expected improvement: expects {tags['mean']:+.2f}, uncertain by {tags['std']:.2f}"
        if "E" not in tags:
            return f"{expects}; length-scales sampled"
        cuts = "not cut yet" if tags["epoch"] == 0 else f"cut {tags['epoch']} times"
        sure = ", and this one" if tags["low"] else ""
        largest = f"length-scales at most {max(tags['upper']):.3g}, {cuts}"
        return f"{expects}; {largest}; {tags['E']} of {PATIENCE} steps too sure{sure}; nu = {tags['nu']:.2f}"


# ---- the bounds


@dataclass(frozen=True)
class Bounds:
    """theta_U and what decides on it.

    Attributes:
        upper: (d,).
        E: trials in a row, of this epoch, that were too sure; below PATIENCE.
        epoch: how often `upper` has been cut.
        counted: the trials that were taken in since the last proposal.
    """

    upper: Array
    E: int = 0
    epoch: int = 0
    counted: tuple[int, ...] = ()

    def after(self, number: int, low: bool, epoch: int, lower: Array, p: float) -> Bounds:
        """After a trial that was proposed in that epoch has ended."""
        counted = (*self.counted, number)
        if epoch < self.epoch:
            return replace(self, counted=counted)
        E = self.E + 1 if low else 0
        if E < PATIENCE:
            return replace(self, E=E, counted=counted)
        return Bounds(cut(self.upper, lower, p), 0, self.epoch + 1, counted)

    def tags(self) -> Tags:
        """As they are stored with the proposal."""
        return {"upper": self.upper.tolist(), "E": self.E, "epoch": self.epoch, "counted": list(self.counted)}


def current_bounds(history: History, lower: Array, upper: Array, p: float) -> Bounds:
    """Those of the last proposal, brought up to date with the trials that have ended since."""
    last = next((record.tags for record in reversed(history.records) if "E" in record.tags), None)
    bounds = Bounds(upper) if last is None else Bounds(np.array(last["upper"]), last["E"], last["epoch"])
    known = {number for record in history.records for number in record.tags.get("counted", [])}
    for number, record in enumerate(history.records):
        if "E" in record.tags and record.state is State.FINISHED and number not in known:
            bounds = bounds.after(number, record.tags["low"], record.tags["epoch"], lower, p)
    return bounds


def cut(upper: Array, lower: Array, p: float) -> Array:  # (d,), (d,) -> (d,)
    """theta_U with what is above p times its largest entry brought down to that, but not below theta_L."""
    return np.asarray(np.maximum(np.minimum(p * upper.max(), upper), lower))


# ---- the improvement


def most_promising(
    fit: Fitted, nu: float, history: History, rng: np.random.Generator, solver: SolverName
) -> tuple[Array, float]:  # (d,)
    """argmax EI_nu, averaged over the members, and mu_plus, on average too."""
    tops = [highest_mean(gp, history, rng, solver) for gp in fit.members]
    each = [LogExpectedImprovement(gp, top.value, nu) for gp, top in zip(fit.members, tops, strict=True)]
    improvement = each[0] if len(each) == 1 else LogAverage(each)
    near = np.vstack([fit.best, *(top.x for top in tops)])  # EI is highest where the mean is, unless it is known there
    points, apart = taken(history)
    found = solve(solver, improvement, history.cube, rng, size=1_500, near=near, avoid=points, apart=apart)
    return found.x, float(np.mean([top.value for top in tops]))


def highest_mean(gp: GP, history: History, rng: np.random.Generator, solver: SolverName) -> Solution:
    """The posterior mean's maximum over the cube: where it is, and mu_plus."""
    order = np.argsort(-gp.posterior(history.X)[0], kind="stable")[:10]
    known, mean = history.X[order], UpperConfidence(gp, 0.0)
    return solve(solver, mean, history.cube, rng, near=known)


# ---- nu


def regret_scale(information_gain: float, t: int, delta: float) -> float:
    """xi(t), eq. (9), of the information gain of t - 1 inputs."""
    log_term = math.log(t**2 * math.pi**2 / (3.0 * delta))
    return information_gain + math.sqrt((math.log(2.0) + log_term) * information_gain) + log_term


def bounded(nu: float, xi: float, c1: float, c2: float, rule: Literal["algorithm", "theorem"]) -> float:
    """nu within [c1 xi, c2 xi], or within the roots of these, as the theorem has it."""
    low, high = c1 * xi, c2 * xi
    if rule == "theorem":
        low, high = math.sqrt(low), math.sqrt(high)
    return min(max(nu, low), high)


def likely_scale(gp: GP) -> float:
    """sqrt(y' A^-1 y / n) of the single values: the most likely nu, if it multiplied the noise's deviation too."""
    o = gp.observations
    fit = float(gp.y @ gp.alpha) + float(o.scatter.sum()) / gp.noise_variance  # repeats are kept as their means
    return math.sqrt(max(0.0, fit) / float(o.counts.sum()))
