"""Wang and de Freitas' Algorithm 1: the bounds of the length-scales are cut; margin notes are its symbols.

    theta_U   largest length-scales; E   steps in a row whose variance was below t_sigma s_n2, the noise's
    xi        an estimate of eq. (9) by the information gain I of the inputs so far; bounds nu

After five such steps every length-scale's bound above p max(theta_U) falls to that. Length-scales are the most likely
ones within the bounds. Printed: nu in [c1 xi, c2 xi]; by the paper's Theorem 1 it is nu^2 (`nu_rule="theorem"`). Chosen
here, since the paper gives none: delta, nu = 1 before it is bounded, the initial design.
In parallel E counts trials as they end (those that ended between two proposals in the order of asking), by the variance
at their proposal given the pending points too; trials of an earlier epoch, proposed before the last cut, do not count,
and failed ones leave E. I and t are of what has ended; failed trials enter with the worst value seen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from raybo.methods.parts.fitted_model import FittedGP
from raybo.methods.unknown_hyperparameters.shorter_lengthscales import observed_by, with_hyperparameters
from raybo.methods.unknown_hyperparameters.wang_defreitas.improvement import (
    WithinBounds,
    explain_improvement,
    most_promising,
)
from raybo.record.events import Tags
from raybo.record.history import History, Proposal
from raybo.space import Array
from raybo.surrogate import GP

PATIENCE = 5  # the bounds are cut once E is so many steps


@dataclass(frozen=True)
class Cutting:
    """Holds the options of Algorithm 1."""

    t_sigma: float
    p: float
    c1: float
    c2: float
    delta: float
    nu: Literal["one", "fitted"]
    nu_rule: Literal["algorithm", "theorem"]

    def propose(self, within: WithinBounds, history: History, rng: np.random.Generator) -> Proposal:
        """Return the maximiser of EI_nu with length-scales within the current bounds."""
        bounds = current_bounds(history, within.lower, within.upper, self.p)  # theta_U, E
        within = replace(within, upper=bounds.upper)
        fit = clipped(within.fit(history, rng, "map"), within, history)  # theta_t
        seen = observed_by(fit.gp, fit.gp.theta, history)
        t = 1 + int(seen.observations.counts.sum())
        xi = regret_scale(seen.information_gain, t, self.delta)
        nu = bounded(1.0 if self.nu == "one" else likely_scale(seen), xi, self.c1, self.c2, self.nu_rule)
        x, mu_plus = most_promising(fit, nu, history, rng, within.solver)  # x_t = argmax EI_nu
        prediction = fit.prediction(x)
        low = bool(prediction["std"] ** 2 < self.t_sigma * within.noise_variance)
        tags = {"t": t, "xi": xi, "nu": nu, "mu_plus": mu_plus, "low": low, **bounds.tags()}
        return Proposal(x, {**tags, **prediction, **fit.tags})


def explain(tags: Tags) -> str:
    """Explain the point by its prediction, and by the bounds and E."""
    cuts = "not cut yet" if tags["epoch"] == 0 else f"cut {tags['epoch']} times"
    sure = ", and this one" if tags["low"] else ""
    largest = f"length-scales at most {max(tags['upper']):.3g}, {cuts}"
    steps = f"{tags['E']} of {PATIENCE} steps too sure{sure}"
    return f"{explain_improvement(tags)}; {largest}; {steps}; nu = {tags['nu']:.2f}"


def clipped(fit: FittedGP, within: WithinBounds, history: History) -> FittedGP:
    """Clip a fit's length-scales to the bounds, which may have been cut since the fit."""
    ends = within.model.bounds(history.d)
    theta = np.clip(fit.gp.theta, ends[:, 0], ends[:, 1])
    if np.array_equal(theta, fit.gp.theta):
        return fit
    members = (with_hyperparameters(fit.gp, theta, history),)
    return replace(fit, members=members, tags={**fit.tags, "theta": theta.tolist()})


# ---- the bounds


@dataclass(frozen=True)
class Bounds:
    """Holds theta_U and the counts by which it is cut.

    Attributes:
        upper: (d,).
        E: trials in a row, of this epoch, that were too sure; below PATIENCE.
        epoch: how often `upper` has been cut.
        counted: the trials counted since the last proposal.
    """

    upper: Array
    E: int = 0
    epoch: int = 0
    counted: tuple[int, ...] = ()

    def after(self, number: int, low: bool, epoch: int, lower: Array, p: float) -> Bounds:
        """Return the bounds after the end of a trial proposed in that epoch."""
        counted = (*self.counted, number)
        if epoch < self.epoch:
            return replace(self, counted=counted)
        E = self.E + 1 if low else 0
        if E < PATIENCE:
            return replace(self, E=E, counted=counted)
        return Bounds(cut(self.upper, lower, p), 0, self.epoch + 1, counted)

    def tags(self) -> Tags:
        """Return the tags that the proposal stores."""
        return {"upper": self.upper.tolist(), "E": self.E, "epoch": self.epoch, "counted": list(self.counted)}


def current_bounds(history: History, lower: Array, upper: Array, p: float) -> Bounds:
    """Return the bounds of the last proposal, updated with the trials that have ended since."""
    last = next((record.tags for record in reversed(history.records) if "E" in record.tags), None)
    bounds = Bounds(upper) if last is None else Bounds(np.array(last["upper"]), last["E"], last["epoch"])
    known = {number for record in history.records for number in record.tags.get("counted", [])}
    for number, record in enumerate(history.records):
        if "E" in record.tags and record.y is not None and record.has_ended and number not in known:
            bounds = bounds.after(number, record.tags["low"], record.tags["epoch"], lower, p)
    return bounds


def cut(upper: Array, lower: Array, p: float) -> Array:  # (d,), (d,) -> (d,)
    """Return theta_U with entries above p times its largest cut to that, but not below theta_L."""
    return np.asarray(np.maximum(np.minimum(p * upper.max(), upper), lower))


# ---- nu


def regret_scale(information_gain: float, t: int, delta: float) -> float:
    """Return xi(t), eq. (9), by the information gain of t - 1 inputs."""
    log_term = math.log(t**2 * math.pi**2 / (3.0 * delta))
    return information_gain + math.sqrt((math.log(2.0) + log_term) * information_gain) + log_term


def bounded(nu: float, xi: float, c1: float, c2: float, rule: Literal["algorithm", "theorem"]) -> float:
    """Clip nu to [c1 xi, c2 xi], or to the roots of these by the theorem."""
    low, high = c1 * xi, c2 * xi
    if rule == "theorem":
        low, high = math.sqrt(low), math.sqrt(high)
    return min(max(nu, low), high)


def likely_scale(gp: GP) -> float:
    """Return sqrt(y' A^-1 y / n) of the single values: the most likely nu if it also scaled the noise."""
    o, v = gp.observations, gp.noise_variance
    repeats = o.scatter.sum() / v if o.added is None else (o.scatter / o.noise_of_values(v)).sum()
    fit = float(gp.y @ gp.alpha) + float(repeats)  # the GP holds the mean of repeats
    return math.sqrt(max(0.0, fit) / float(o.counts.sum()))
