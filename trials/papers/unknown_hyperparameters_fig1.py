"""The opening illustrations of two papers on unknown hyperparameters.

Ha, Nguyen, Tran-The, Zhang, Zhang, van den Hengel, arXiv:2306.06844, figure 1 (uhe-fig1): a one-dimensional function
drawn from a Gaussian process with length-scale 0.1, and the posterior of that length-scale after 20 results chosen by a
search and after 20 at independent uniform points. The paper shows one function to argue that the results of a search
mislead; one function cannot show that, so the estimates for 100 functions are added.

Wang, de Freitas (2014), arXiv:1406.7758, figure 1 (wang-defreitas-fig1): the trap, and the posteriors of two searches,
expected improvement with sampled length-scales and Algorithm 1, after 10, 30 and 60 evaluations: mean and two standard
deviations.

Neither paper says which draw its function is, or gives its seeds; seed 0 is used, whatever it shows.
"""

from __future__ import annotations

import csv
import runpy
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

import raybo
from raybo.experiments import Figure
from raybo.experiments.page import as_table, tested
from raybo.experiments.verdicts import paired_test, typical, word_of
from raybo.surrogate import GP, Hyperparameter, Likelihood, Model, Observations, Standardised

Array: TypeAlias = NDArray[np.float64]

TRAP = runpy.run_path(str(Path(__file__).parents[1] / "synthetic.py"))["trap"]
SEED = 0
LINE = np.linspace(0.0, 1.0, 601)


# ---- Ha et al.

TRUE_LENGTH, NOISE_VARIANCE, RESULTS, FUNCTIONS = 0.1, 1e-4, 20, 100
POINTS = {"chosen by a search": "C0", "uniform": "C1"}
KNOWN = Model(  # all but the length-scale, on which the prior is flat in its logarithm
    lengthscale=Hyperparameter(low=5e-3, high=2.0),
    outputscale=Hyperparameter(fixed=1.0),
    noise_variance=Hyperparameter(fixed=NOISE_VARIANCE),
)
LENGTHS = np.geomspace(0.01, 1.0, 400)


def drawn(seed: int) -> Array:  # (601,)
    """The seed's function on the line."""
    rng = np.random.default_rng(seed)
    gp = GP.of(Observations.of(np.empty((0, 1)), np.empty(0)), KNOWN, np.log([TRUE_LENGTH, 1.0, NOISE_VARIANCE]))
    K = gp.kernel.matrix(LINE[:, None], LINE[:, None]) + 1e-10 * np.eye(len(LINE))
    return np.asarray(np.linalg.cholesky(K) @ rng.standard_normal(len(LINE)))


def searched(f: Array, seed: int) -> Array:  # (20,)
    """The points that GP-UCB with the most likely hyperparameters chose."""
    searcher = raybo.Searcher({"x": raybo.Float(0, 1)}, "map", seed=seed, trials=RESULTS)
    for _ in range(RESULTS):
        trial = searcher.ask()
        searcher.tell(trial, float(np.interp(trial.config["x"], LINE, f)))
    return np.array([trial.config["x"] for trial in searcher.trials])


def belief(x: Array, f: Array) -> Array:  # (20,) -> (400,)
    """The posterior density of the logarithm of the length-scale."""
    y = np.interp(x, LINE, f)
    likelihood = Likelihood(Observations.of(x[:, None], y), KNOWN)
    u = np.log(LENGTHS)
    log = np.array([likelihood.log_marginal(np.array([each, 0.0, np.log(NOISE_VARIANCE)]))[0] for each in u])
    density = np.exp(log - log.max())
    return np.asarray(density / (density.sum() * (u[1] - u[0])))


def beliefs(seed: int) -> tuple[Array, dict[str, Array], dict[str, Array]]:  # (601,), (20,) each, (400,) each
    """The seed's function; where it is known, and what is then believed, after a search and at uniform points."""
    f = drawn(seed)
    points = dict(zip(POINTS, (searched(f, seed), np.random.default_rng([seed, 1]).random(RESULTS)), strict=True))
    return f, points, {name: belief(x, f) for name, x in points.items()}


def estimate(density: Array) -> Array:  # (3,)
    """The most likely length-scale, and the 5 % and 95 % quantiles."""
    mass = np.cumsum(density)
    return np.array([LENGTHS[np.argmax(density)], *np.interp([0.05, 0.95], mass / mass[-1], LENGTHS)])


def claims(further: Array, near: Array) -> list[str]:  # (n,), (n,)
    """Return a table of the figure's claim, tested on the errors after a search and at uniform points."""
    p, side = paired_test(further - near)
    heading = ["claim", "pairs", "after a search", "uniform", "difference", "p", "verdict"]
    middles = [f"{np.median(errors):.3g}" for errors in (further, near)]
    result = tested(typical(further - near), p, word_of(p, side))
    return as_table(
        heading,
        [["the most likely length-scale is further off after a search (figure 1)", str(len(near)), *middles, *result]],
    )


def write_belief(directory: Path) -> None:
    """The page, the figure with its densities, and the estimates of all functions."""
    f, points, densities = beliefs(SEED)
    found = {name: np.empty((FUNCTIONS, 3)) for name in POINTS}
    for seed in range(FUNCTIONS):
        for name, density in beliefs(seed)[2].items():
            found[name][seed] = estimate(density)
    canvas, panels = _canvas(1, 3)
    for panel, (name, color) in zip(panels[0], POINTS.items(), strict=False):
        panel.plot(LINE, f, color="black", linewidth=1.0)
        panel.plot(points[name], np.interp(points[name], LINE, f), "o", color=color, markersize=4)
        panel.set(title=f"{RESULTS} results, {name}", xlabel="x", ylabel="f(x)")
        panels[0, 2].plot(LENGTHS, densities[name], color=color, label=name)
    panels[0, 2].axvline(TRUE_LENGTH, color="grey", linewidth=0.8, label="the true one")
    panels[0, 2].set(xscale="log", title="posterior of the length-scale", xlabel="length-scale", ylabel="density")
    panels[0, 2].legend(frameon=False, fontsize="small")
    one = [[name, *(f"{number:.3g}" for number in estimate(density))] for name, density in densities.items()]
    errors, all_of_them = {}, []
    for name, (likely, low, high) in ((name, table.T) for name, table in found.items()):
        errors[name] = np.abs(np.log(likely / TRUE_LENGTH))
        covered = int(((low <= TRUE_LENGTH) & (high >= TRUE_LENGTH)).sum())
        middle, left, right = (f"{np.quantile(likely, q):.3g}" for q in (0.5, 0.05, 0.95))
        factor = f"{np.exp(np.median(errors[name])):.3g} times"
        all_of_them.append([name, f"{middle} [{left}, {right}]", factor, f"{covered} of {FUNCTIONS}"])
    further, near = errors.values()
    text = (
        "# A length-scale estimated from a search and from uniform points (figure 1)\n\n"
        f"`uhe-fig1`: a function drawn from a Gaussian process with length-scale {TRUE_LENGTH:g}, and the posterior of "
        "that length-scale after a search by `map` and after uniform points; everything else is known. The paper uses "
        f"the figure to argue that the results of a search mislead the estimate. The function drawn with seed {SEED} "
        "shows no such effect, and one function could not settle it."
    )
    heading = ["results", "most likely length-scale", "5 % quantile", "95 % quantile"]
    _finish(directory, canvas, text, heading, one)
    heading = ["results", "most likely, median [5 %, 95 %]", "off by, median", "truth between the quantiles"]
    with (directory / "README.md").open("a", encoding="utf-8") as file:
        file.write(
            f"\nThe same for {FUNCTIONS} functions, with seeds 0 to {FUNCTIONS - 1}:\n\n"
            + "\n".join(as_table(heading, all_of_them))
            + f"\n\nAfter a search the most likely length-scale is further off in {int((further > near).sum())} of "
            f"{FUNCTIONS} pairs. So the results of a search say less about the length-scale, and the most likely value "
            "is a worse estimate. The posterior as a whole is not misled: it is wider, and contains the truth about as "
            "often as it should. What happens under a wrong model, or when other hyperparameters are unknown too, is "
            "not shown.\n\n## Claims\n\n" + "\n".join(claims(further, near)) + "\n\nWilcoxon's signed-rank test over "
            "the functions, two-sided, at 5 %, of how far off the most likely length-scale is, in the logarithm. The "
            "difference is Hodges and Lehmann's estimate, with a 95 % interval.\n"
        )
    with (directory / "curves.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["length-scale", *POINTS])
        writer.writerows([f"{number:.10g}" for number in row] for row in zip(LENGTHS, *densities.values(), strict=True))
    with (directory / "estimates.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["results", "seed", "most likely", "5 %", "95 %"])
        for name, table in found.items():
            writer.writerows([name, seed, *(f"{n:.6g}" for n in row)] for seed, row in enumerate(table))


# ---- Wang, de Freitas

AFTER = (10, 30, 60)
VARIANTS: dict[str, Literal["bounds", "slice"]] = {"EI, slice sampling": "slice", "Algorithm 1": "bounds"}
RBF = Model(kernel="rbf", outputscale=Hyperparameter(fixed=1.0), noise_variance=Hyperparameter(fixed=1e-4))


def states(
    variant: Literal["bounds", "slice"],
) -> list[tuple[Array, Array, Array, Array]]:  # (n,), (n,), (601,), (601,)
    """After so many evaluations: points, values, and the posterior's mean and standard deviation on the line."""
    searcher = raybo.Searcher(TRAP.space, "wang-defreitas", seed=SEED, initial=3, kernel="rbf", variant=variant)
    found = []
    for _ in range(3 + max(AFTER)):
        trial = searcher.ask()
        searcher.tell(trial, TRAP(trial.config, noise=0.01)["value"])
    trials = searcher.trials
    for n in (3 + after for after in AFTER):
        x = np.array([trial.config["x1"] for trial in trials[:n]])
        y = np.array([trial.value for trial in trials[:n]], dtype=np.float64)
        outputs = Standardised.of(y)
        observations = Observations.of(x[:, None], outputs.apply(y))
        tags = trials[n - 1].tags  # the hyperparameters that the last of these was proposed with
        thetas = np.array(tags.get("thetas", [tags["theta"]]))
        moments = [GP.of(observations, RBF, theta).posterior(LINE[:, None]) for theta in thetas]
        means, variances = (np.array(part) for part in zip(*moments, strict=True))
        std = np.sqrt(variances.mean(axis=0) + means.var(axis=0))
        found.append((x, y, outputs.invert(means.mean(axis=0)), outputs.std * std))
    return found


def write_trap(directory: Path) -> None:
    """The page and the figure."""
    truth = np.array([TRAP({"x1": x})["noiseless"] for x in LINE])
    canvas, panels = _canvas(len(AFTER), len(VARIANTS))
    rows = []
    for column, (name, variant) in enumerate(VARIANTS.items()):
        for row, (after, (x, y, mean, std)) in enumerate(zip(AFTER, states(variant), strict=True)):
            panel = panels[row, column]
            panel.fill_between(
                LINE, mean - 2 * std, mean + 2 * std, alpha=0.2, linewidth=0, label="two standard deviations"
            )
            panel.plot(LINE, mean, linewidth=1.2, label="posterior mean")
            panel.plot(LINE, truth, color="black", linewidth=0.8, label="the function")
            panel.plot(x, y, "o", markersize=3, label="results")
            panel.set(title=f"{name}, {after} evaluations", xlabel="x", ylabel="value", ylim=(-1.5, 5.0))
            best = max(TRAP({"x1": each})["noiseless"] for each in x)
            rows.append([name, str(after), f"{best:.3g}", f"{std[np.argmin(np.abs(LINE - 0.9))]:.3g}"])
    canvas.legend(
        *panels[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False, fontsize="small"
    )
    text = (
        "# The posteriors of two searches on the trap (figure 1)\n\n"
        f"`wang-defreitas-fig1`: one run each, with seed {SEED}, after three uniform points. The function's peak of 4 "
        "is at 0.9. Results carry noise with standard deviation 0.01; the best value is given without noise."
    )
    heading = ["method", "evaluations", "best value", "standard deviation at 0.9"]
    _finish(directory, canvas, text, heading, rows)


# ---- both


def _canvas(rows: int, columns: int) -> tuple[Any, Any]:
    from matplotlib.figure import Figure as Canvas

    canvas = Canvas(figsize=(4.2 * columns, 2.8 * rows), layout="constrained")
    return canvas, canvas.subplots(rows, columns, squeeze=False)


def _finish(directory: Path, canvas: Any, text: str, heading: list[str], rows: list[list[str]]) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    canvas.savefig(directory / "figure.png", dpi=130)
    lines = [text, "", "![figure](figure.png)", "", *as_table(heading, rows)]
    (directory / "README.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


EXPERIMENTS = [
    Figure("uhe-fig1", "A length-scale estimated from a search and from uniform points (figure 1)", write_belief),
    Figure(
        "wang-defreitas-fig1",
        "The posteriors of two searches on the trap (figure 1 of Wang and de Freitas)",
        write_trap,
    ),
]
