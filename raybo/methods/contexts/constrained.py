"""Constraints in a study with contexts: each margin has a model over points and contexts, as the metric has.

A constraint should hold on average over the worst twentieth of the contexts that are met (`raybo.context.TAIL`), by a
standard deviation of the model (`CAUTION`): the search and the recommendation have the same rule. No bound is hopeful
here, as it is for the metric, since a trial does not choose its context: hopes of rare ones are seldom put right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from raybo.acquisition import Acquisition, ContextConfidence, Shortfall, Total
from raybo.context import CAUTION, TAIL, Density, Expectation, Joint, WorstShare, fit_joint
from raybo.methods.parts.refit_schedule import Fit
from raybo.record.events import Tags
from raybo.record.history import History
from raybo.space import Array
from raybo.surrogate import SignedLog


@dataclass(frozen=True, eq=False)
class Limits:
    """The models of the constraints' margins, one for each constraint."""

    joints: Sequence[Joint]

    def within(self, acquisition: Acquisition, atoms: Array, p: Array) -> Acquisition:  # (a, dc), (a,)
        """Return the acquisition less what the constraints fall short of holding at these contexts."""
        worst = WorstShare(p, TAIL)
        bounds = [ContextConfidence(joint.gp, atoms, worst, -CAUTION) for joint in self.joints]
        priced = [Shortfall(bound, _zero(joint)) for bound, joint in zip(bounds, self.joints, strict=True)]
        return Total([acquisition, *priced]) if priced else acquisition

    def tags(self, x: Array, atoms: Array, p: Array) -> Tags:  # (d,), (a, dc), (a,)
        """Return the fits as tags, and the probability that a point is feasible, over contexts and models."""
        if not self.joints:
            return {}
        holds = np.ones(len(atoms))
        for joint in self.joints:
            mean, above = (
                ContextConfidence(joint.gp, atoms, Expectation(p), kappa).bounds(x[None, :])[0] for kappa in (0.0, 1.0)
            )
            holds *= ndtr((mean - _zero(joint)) / (above - mean))
        fits = {f"theta_limit_{j}": joint.gp.theta.tolist() for j, joint in enumerate(self.joints)}
        return {**fits, "feasible": float(holds @ p)}


def limits_of(history: History, density: Density, rng: np.random.Generator, fit: Callable[[str], Fit]) -> Limits:
    """Return the models of the constraints' margins, none without constraints.

    Args:
        history: of the whole study.
        density: the estimated law of the contexts.
        rng: for contexts that are not known.
        fit: how hyperparameters are found, by the tag that keeps them.
    """
    k = history.goals.k
    joints = [
        fit_joint(history.of_number(k + j), density, rng, fit=fit(f"theta_limit_{j}"), transform=SignedLog.of)
        for j in range(len(history.goals.constraints))
    ]
    return Limits(joints)


def _zero(joint: Joint) -> float:
    """Where the margin is 0, in the units of its model."""
    return float(joint.outputs.apply(np.zeros(1))[0])
