"""What the methods over contexts share: the design, the model over points and contexts, and the search in two stages.

Each of them maximises upper confidence bounds at many contexts, reduced to one number. That costs as many predictions a
point as there are contexts, so the cube is first searched with few of them, and what is found is climbed on with all.

Where the next trial's context is known first, every one of them tunes for it: the bound at that one context.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from raybo.acquisition import ContextConfidence
from raybo.context import Density, Expectation, Joint, declared, expected, fit_joint, with_context
from raybo.errors import MethodError
from raybo.history import History, Proposal, Tags
from raybo.methods.design import sobol_proposal
from raybo.methods.model import AFRESH, REFIT_SHARE, design_size, taken
from raybo.solvers import solve
from raybo.solvers.ascent import ascend
from raybo.solvers.domain import continuous
from raybo.solvers.solution import ROWS_AT_ONCE, Search, Solution
from raybo.space import Array
from raybo.surrogate import Model, Observations, fit_map

Solver = Literal["lbfgsb", "random-grid", "nelder-mead", "cg"]

DESIGN = 10  # points before there is a model, as published
SCREENED = 64  # contexts, of which the first stage sees the objective
PREDICTED = 256  # contexts, over which the expectation in the tags is taken
POLISH_ROUNDS = 12
GRID, COMPARED = 1000, 32  # points of a random grid, and how many of them are judged by all contexts


@dataclass(frozen=True, eq=False)
class Learned:
    """What is known when a point is proposed.

    Attributes:
        density: the estimated law of the contexts.
        contexts: (t, dc), those met, oldest first.
        joint: the surrogate over points and contexts.
        rng: the proposal's stream, from which atoms are drawn.
    """

    density: Density
    contexts: Array
    joint: Joint
    rng: np.random.Generator


Stages = Callable[[Learned], tuple[ContextConfidence, ContextConfidence]]


def propose_over_contexts(
    name: str,
    history: History,
    rng: np.random.Generator,
    stages: Stages,
    *,
    solver: Solver,
    kappa: float,
    initial: int | None,
    half_life: float | None,
    bandwidth: float = 1.0,
    candidates: int | None = None,
) -> Proposal:
    """The initial design, then the maximiser of an acquisition over contexts.

    Args:
        name: of the method, for messages.
        stages: from what is known, the acquisition to search the cube with, and the one that is meant.
        solver: of the first stage.
        kappa: of the bound where the next context is known.
        initial: points of the design; none: 10, at most a quarter of the trials.
        half_life, bandwidth: of the density.
        candidates: uniform ones that the first stage judges; the solver's own number unless given.
    Raises:
        MethodError: the study declares no context.
    """
    if history.context_cube is None:
        raise MethodError(f"{name} needs a context; declare one beside the space, or use gp-ucb")
    if len(history) < design_size(history, DESIGN, initial) or not _is_informative(history):
        return sobol_proposal(history, rng)
    density = Density.of(history.contexts, declared(history), half_life=half_life, scale=bandwidth)
    joint = fit_joint(history, density, rng, fit=lambda observations, model: _theta(history, observations, model))
    tags: Tags = {"theta": joint.gp.theta.tolist(), "contexts": len(history.contexts)}
    if joint.left_out:
        tags["left_out"] = joint.left_out
    if history.wanted is None:
        coarse, meant = stages(Learned(density, history.contexts, joint, rng))
        atoms, p = density.atoms(PREDICTED, rng)
    else:
        atoms, p = history.wanted.reshape(1, -1), np.ones(1)
        coarse = meant = ContextConfidence(joint.gp, atoms, Expectation(p), kappa)
        tags["wanted"] = history.wanted.tolist()
    found = _search(history, rng, solver, coarse, meant, candidates)
    mean, std = expected(joint.gp, found.x[None, :], atoms, p)
    tags |= {"value": found.value, "mean": float(mean[0]), "std": float(std[0]), "evaluations": found.evaluations}
    return Proposal(found.x, tags)


def explain_over_contexts(tags: Tags, what: str) -> str:
    """Why a proposal with these tags was made; `what` names the acquisition."""
    if "sobol" in tags:
        return "initial design (Sobol)"
    over = "at the context that is known" if "wanted" in tags else "on average over contexts"
    what = "upper confidence bound" if "wanted" in tags else what
    left = f"; {tags['left_out']} trials without a context left out" if "left_out" in tags else ""
    return f"{what}: expects {tags['mean']:+.2f} sd {over}, uncertain by {tags['std']:.2f}{left}"


def require_positive(name: str, **values: float | None) -> None:
    """MethodError for an option that is not above 0; None is allowed."""
    for option, value in values.items():
        if value is not None and not 0.0 < value < np.inf:
            raise MethodError(f"{name}: {option} must be above 0, got {value}")


def _is_informative(history: History) -> bool:
    """Whether there are values at known contexts, not all equal."""
    y = with_context(history)[1]
    return len(y) > 1 and bool(np.any(y != y[0]))


def _theta(history: History, observations: Observations, model: Model) -> Array:  # (p,)
    """The most likely hyperparameters, starting from the last ones; kept a while where observations are many."""
    default, last, n = model.start(len(observations.categorical)), history.last_tag("theta"), len(observations.X)
    if last is None or len(last) != len(default):
        return fit_map(observations, model)
    if n >= 2 * REFIT_SHARE and len(history) % (n // REFIT_SHARE):
        return np.array(last)
    return fit_map(observations, model, [np.array(last)] if len(history) % AFRESH else [np.array(last), default])


def _search(
    history: History,
    rng: np.random.Generator,
    solver: Solver,
    coarse: ContextConfidence,
    meant: ContextConfidence,
    candidates: int | None,
) -> Solution:
    """The coarse acquisition's maximiser, climbed on with the one that is meant along its continuous axes.

    Of a random grid, the points that the coarse one likes best are compared under the one that is meant.
    """
    cube, (points, apart) = history.cube, taken(history)
    search = Search(meant, cube, points, apart)
    if solver == "random-grid":
        grid, values = Search(coarse, cube).try_points(rng.random((candidates or GRID, cube.d)), ROWS_AT_ONCE)
        search.try_points(grid[np.argsort(-values, kind="stable")[:COMPARED]])
        return search.solution(rng, aside=False)
    near = history.X[[int(np.argmax(history.y))]]
    found = solve(solver, coarse, cube, rng, size=candidates, near=near, avoid=points, apart=apart)
    if coarse is meant or not found.is_apart:
        return found
    start, _ = search.try_points(found.x[None, :])
    axes = continuous(cube)
    if axes.any():
        climbs = ascend(search, start, axes, rounds=POLISH_ROUNDS)
        search.settle(climbs.X, climbs.values)
    return search.solution(rng, climbs=1, aside=False)
