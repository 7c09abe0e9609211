"""Kim, Liu, Chen (2025), "Bayesian Optimization with Inexact Acquisition: Is Random Grid Search Sufficient?", UAI.

Regret beside the bounds of Theorems 3 and 7 (inexact-bounds), in a setting where every term can be computed: f is a sum
of Matern-5/2 bells with known norm B, errors are normal with standard deviation R, and the model has their kernel, with
the regulariser tau = 1 + 2/T for which the confidence bound is proved. With probability 1 - delta, at every t <= T,

    R_t <= (B + 2 kappa_t) M_t + 2 kappa_t S_t        Theorem 3, for any solver
    R_t <= L D_t + 2 kappa_t S_t                      Theorem 7, for a random grid
    S_t <= sqrt(4 t tau gain_t)                       turns both into statements in the information gain

R_t is the cumulative regret, M_t = sum (1 - eta) the accumulated inexactness, S_t the sum of the posterior standard
deviations at the chosen points, D_t the sum of the distances from the maximiser of f to the grids, and
L = sqrt(5/3) B / lengthscale, because |f(x) - f(x')| <= B sqrt(2 - 2 k(x, x')). The theorems use the largest gain that
so many points could have; here it is the gain of the points visited, with kappa_t = B + R sqrt(2 (gain + 1 +
log(c / delta))): the proof of the confidence bound, and so those of both theorems, pass through this quantity.

The paper has no such figure. We chose f, B, R and T. The acquisition must be non-negative for eta. Here f is, so the
least shift suffices, which is that of the bounds; for comparison M_T is given with the constant shift B too, by which
the paper makes any f non-negative.
"""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

import raybo
from raybo.acquisition import UpperConfidence, theory_kappa
from raybo.experiments import Figure
from raybo.solvers import grid_size, random_grid, solve
from raybo.solvers.inexactness import measure
from raybo.surrogate import GP, Hyperparameter, Model, Observations

Array: TypeAlias = NDArray[np.float64]

D, LENGTHSCALE, BELLS = 2, 0.2, 8
B, R, DELTA = 1.0, 0.1, 0.1
T, RUNS = 100, 6
TAU = 1.0 + 2.0 / T
LIPSCHITZ = math.sqrt(5.0 / 3.0) * B / LENGTHSCALE
MODEL = Model(outputscale=Hyperparameter(fixed=1.0), noise_variance=Hyperparameter(fixed=TAU))
THETA = np.log([LENGTHSCALE] * D + [1.0, TAU])
CUBE = raybo.Space({f"x{i}": raybo.Float(0, 1) for i in range(D)}).cube
GRIDS = {"random grid of 100 t points": 100, "random grid of t points": 1}  # points at the first step
SOLVERS = ("L-BFGS-B", *GRIDS)
REFERENCE = 512  # points of the search for the acquisition's maximum, beside its climbs


def gp_of(X: Array, y: Array) -> GP:  # (n, d), (n,)
    """The model after these results."""
    return GP.of(Observations.of(X, y), MODEL, THETA)


class Bells:
    """f = sum of weights times k(., centre), of norm B, with its maximum and where it is taken."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.centres, weights = rng.random((BELLS, D)), rng.uniform(0.2, 1.0, BELLS)
        self.kernel = gp_of(np.empty((0, D)), np.empty(0)).kernel
        self.weights = B * weights / math.sqrt(weights @ self.kernel.matrix(self.centres, self.centres) @ weights)
        axis = np.linspace(0.0, 1.0, 101)
        grid = np.stack(np.meshgrid(*[axis] * D), axis=-1).reshape(-1, D)
        start = grid[np.argmax(self(grid))]
        found = minimize(lambda x: -self(x[None])[0], start, bounds=[(0.0, 1.0)] * D, options={"ftol": 1e-15})
        self.maximiser, self.maximum = np.asarray(found.x), -float(found.fun)

    def __call__(self, X: Array) -> Array:  # (m, d) -> (m,)
        """Its values."""
        return np.asarray(self.kernel.matrix(X, self.centres) @ self.weights)


@dataclass(frozen=True)
class Curves:
    """The series of a run; (T,) each.

    Attributes:
        regret, inexactness, deviations, distances: R_t, M_t, S_t and, for a grid, D_t.
        shifted: M_t where B is added to the acquisition.
        gain, kappa: of the points visited up to t, and kappa_t.
    """

    regret: Array
    inexactness: Array
    shifted: Array
    deviations: Array
    distances: Array
    gain: Array
    kappa: Array

    @property
    def deviations_by_gain(self) -> Array:
        """Return the bound on S_t."""
        return np.asarray(np.sqrt(4.0 * np.arange(1, len(self.gain) + 1) * TAU * self.gain))

    def theorem_3(self, deviations: Array) -> Array:
        """The bound, of S_t or of what bounds it."""
        return (B + 2.0 * self.kappa) * self.inexactness + 2.0 * self.kappa * deviations

    def theorem_7(self, deviations: Array) -> Array:
        """The same, of a random grid."""
        return LIPSCHITZ * self.distances + 2.0 * self.kappa * deviations


def run(solver: str, seed: int, steps: int = T) -> Curves:
    """Algorithm 1 on the seed's function; the first point is any, for the bound is the same everywhere."""
    f = Bells(seed)
    rng = np.random.default_rng([seed, SOLVERS.index(solver)])
    X, y, rows = np.empty((0, D)), np.empty(0), []
    for t in range(1, steps + 1):
        gp = gp_of(X, y)
        kappa = theory_kappa(
            gp.information_gain if t > 1 else 0.0,
            B=B,
            R=R,
            delta=DELTA,
            result="random-grid-ucb" if solver in GRIDS else "ucb",
        )
        size = grid_size(t, GRIDS.get(solver, 1))
        if t == 1:
            grid = rng.random((size, D))
            x, eta, eta_shifted, std = grid[0], 1.0, 1.0, 1.0
        else:
            bound = Watched(UpperConfidence(gp, kappa))
            if solver in GRIDS:
                found = random_grid(bound, CUBE, rng, size=size)
            else:
                found = solve("lbfgsb", bound.function, CUBE, rng, near=X[[np.argmax(y)]])
            grid, x = np.vstack([*bound.rows, found.x]), found.x
            measured = measure(bound.function, CUBE, rng, found, fixed_shift=B, points=REFERENCE)
            eta, eta_shifted = measured.eta, measured.eta_fixed
            std = math.sqrt(gp.posterior(x[None])[1][0])
        distance = float(np.sqrt(((grid - f.maximiser) ** 2).sum(axis=1)).min())
        value = f(x[None])[0]
        X, y = np.vstack([X, x]), np.append(y, value + R * rng.standard_normal())
        summed = f.maximum - value, 1.0 - eta, 1.0 - eta_shifted, std, distance
        rows.append((*summed, gp_of(X, y).information_gain, kappa))
    gain, kappas = np.array(rows)[:, 5:].T
    R_t, M_t, M_shifted, S_t, D_t = np.cumsum(np.array(rows)[:, :5], axis=0).T
    return Curves(R_t, M_t, M_shifted, S_t, D_t, gain, kappas)


class Watched:
    """A function that remembers where it was asked for values."""

    def __init__(self, function: UpperConfidence) -> None:
        self.function, self.rows = function, list[Array]()

    def value(self, X: Array) -> Array:  # (m, d) -> (m,)
        """The function's."""
        self.rows.append(X.copy())
        return self.function.value(X)


def bounds(curves: Curves, solver: str) -> dict[str, Array]:  # (T,) each
    """Return the bounds that hold for the solver, by name."""
    found = {
        "Theorem 3": curves.theorem_3(curves.deviations),
        "Theorem 3, with the gain": curves.theorem_3(curves.deviations_by_gain),
    }
    if solver in GRIDS:
        found |= {
            "Theorem 7": curves.theorem_7(curves.deviations),
            "Theorem 7, with the gain": curves.theorem_7(curves.deviations_by_gain),
        }
    return found


LOOKS: dict[str, dict[str, Any]] = {
    "regret": {"color": "black"},
    "Theorem 3": {"color": "C0"},
    "Theorem 3, with the gain": {"color": "C0", "linestyle": "--"},
    "Theorem 7": {"color": "C1"},
    "Theorem 7, with the gain": {"color": "C1", "linestyle": "--"},
}
COLORS = dict(zip(SOLVERS, ("C2", "C4", "C5"), strict=True))  # in the last panel


def write(directory: Path) -> None:
    """The page with its table, the figure, and the curves, means over the runs."""
    from matplotlib.figure import Figure as Canvas

    directory.mkdir(parents=True, exist_ok=True)
    canvas = Canvas(figsize=(9.6, 7.9), layout="constrained")
    panels: Any = canvas.subplots(2, 2)
    steps = np.arange(1, T + 1)
    lines, table = [], []
    for panel, solver in zip(panels.flat, SOLVERS, strict=False):
        runs = [run(solver, seed) for seed in range(RUNS)]
        each = [{"regret": curves.regret, **bounds(curves, solver)} for curves in runs]
        means = {name: np.mean([one[name] for one in each], axis=0) for name in each[0]}
        for name, mean in means.items():
            panel.plot(steps, mean, label=name, **LOOKS[name])
        for one in each:
            panel.plot(steps, one["regret"], color="black", linewidth=0.4, alpha=0.5)
        panel.set(title=solver, yscale="log", xlabel="evaluations", ylabel="cumulative regret, and its bounds")
        panel.grid(alpha=0.25)
        inexactness, shifted = np.mean([(curves.inexactness, curves.shifted) for curves in runs], axis=0)
        panels[1, 1].plot(steps, inexactness, color=COLORS[solver], label=solver)
        above = sum(int((one["regret"] > one[name] + 1e-9).sum()) for one in each for name in means if name != "regret")
        cells = [f"{means[name][-1]:.3g}" if name in means else "" for name in LOOKS]
        gain = np.mean([curves.gain[-1] for curves in runs])
        table.append(
            [solver, str(RUNS), f"{inexactness[-1]:.2g}", f"{shifted[-1]:.2g}", f"{gain:.3g}", *cells, str(above)]
        )
        kept = {"accumulated inexactness": inexactness, "the same, with the shift B": shifted}
        for name, curve in {**means, **kept}.items():
            lines += [[solver, name, str(t), f"{number:.10g}"] for t, number in zip(steps, curve, strict=True)]
    panels[1, 1].set(title="accumulated inexactness M_t", xlabel="evaluations", ylabel="M_t")
    panels[1, 1].grid(alpha=0.25)
    lines_drawn = {
        label: line for panel in panels.flat for line, label in zip(*panel.get_legend_handles_labels(), strict=True)
    }
    labels = [*LOOKS, *SOLVERS]
    canvas.legend(
        [lines_drawn[label] for label in labels],
        labels,
        loc="outside lower center",
        ncols=4,
        frameon=False,
        fontsize="small",
    )
    canvas.savefig(directory / "figure.png", dpi=130)
    with (directory / "curves.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["solver", "curve", "evaluation", "mean"], *lines])
    heading = ["solver", "runs", "M_T", "M_T, with the shift B", "gain", *LOOKS, "steps above a bound"]
    rows = [f"| {' | '.join(cells)} |" for cells in (heading, ["---"] * len(heading), *table)]
    (directory / "README.md").write_text(
        "# Cumulative regret beside the bounds of Theorems 3 and 7\n\n"
        f"`inexact-bounds`: {RUNS} runs of {T} evaluations per solver, each on its own function of norm "
        f"{B:g}, with noise of standard deviation {R:g}; delta = {DELTA:g}. `trials/papers/inexact_bounds.py` "
        "describes the computation. Black: regret, the mean and every run. The bounds are means over the runs, with "
        "the posterior standard deviations along the way or, dashed, with the information gain of the points visited "
        "instead.\n\n![regret and bounds](figure.png)\n\nAfter the last evaluation, means over the runs:\n\n"
        + "\n".join(rows)
        + "\n",
        encoding="utf-8",
    )


EXPERIMENTS = [Figure("inexact-bounds", "Cumulative regret beside the bounds of Theorems 3 and 7", write)]
