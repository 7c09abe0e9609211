"""Table 2 of Huang, Song, Xue, Qian (2024), arXiv:2312.10423: how far the density estimate is from the truth.

The distance is the integral of |estimate - truth| over the whole line, for contexts as they are drawn: the convention
that reproduces the published numbers. Beside it is the same distance over [0, 1] for contexts clipped to that interval,
as raybo keeps them.
"""

from __future__ import annotations

import csv
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import raybo
from raybo.context import Density
from raybo.experiments import Figure
from raybo.experiments.page import as_table, tested
from raybo.experiments.verdicts import holm, paired_test, typical, word_of

SAMPLES = (10, 100, 200, 300)
RUNS = 60  # the paper: 20, of which the complicated law needs more
BAR = 1.5  # ours: what "much larger" is taken to mean
HOW = (
    "Wilcoxon's signed-rank test over the runs, of the errors on the whole line, two-sided, at 5%, its p-values "
    "corrected together by Holm's method for all rows: *holds* where the difference is significantly as claimed. The "
    "difference is Hodges and Lehmann's estimate; its 95 % interval is not corrected. A run's samples are nested; runs "
    f"of the two laws are paired by their number. The bar of {BAR:g} times is raybo's own, not the paper's."
)
PUBLISHED = {
    "normal": (0.3222, 0.1315, 0.1156, 0.0962),
    "complicated": (0.6216, 0.5380, 0.4853, 0.4724),
}
NORMALS = {  # mean, standard deviation
    "normal": [(0.5, 0.15)],
    "complicated": [(0.1, 0.02), (0.3, 0.075), (0.4, 0.1), (0.5, 0.1), (0.7, 0.075), (0.8, 0.03)],
}
CAUCHYS: dict[str, list[tuple[float, float]]] = {"normal": [], "complicated": [(0.2, 0.02), (0.8, 0.02)]}

Array = NDArray[np.float64]
CUBE = raybo.Space({"c": raybo.Float(0, 1)}).cube


def density(law: str, c: Array) -> Array:  # (n,) -> (n,)
    """The law's density, all components equally probable."""
    parts = [np.exp(-0.5 * ((c - m) / s) ** 2) / (s * np.sqrt(2 * np.pi)) for m, s in NORMALS[law]]
    parts += [s / (np.pi * ((c - m) ** 2 + s**2)) for m, s in CAUCHYS[law]]
    return np.asarray(np.mean(parts, axis=0))


def draw(law: str, rng: np.random.Generator, n: int) -> Array:  # (n,)
    """n contexts, not clipped."""
    normals, cauchys = np.array(NORMALS[law]), np.array(CAUCHYS[law]).reshape(-1, 2)
    parts = np.vstack([normals, cauchys])[which := rng.integers(len(normals) + len(cauchys), size=n)]
    z = np.where(which < len(normals), rng.standard_normal(n), rng.standard_cauchy(n))
    return np.asarray(parts[:, 0] + parts[:, 1] * z)


def distance(law: str, contexts: Array, *, clipped: bool) -> float:
    """The L1 distance between the estimate from these contexts and the law, by the midpoint rule."""
    edges = np.linspace(0.0, 1.0, 1001)
    if clipped:
        contexts = np.clip(contexts, 0.0, 1.0)
    else:  # what lies further out are Cauchy's last thousandths
        edges = np.r_[
            np.linspace(-20.0, -0.5, 400, endpoint=False), np.linspace(-0.5, 1.5, 2001), np.linspace(1.55, 21.0, 400)
        ]
    c = 0.5 * (edges[1:] + edges[:-1])
    estimate = Density.of(contexts[:, None], CUBE).pdf(c[:, None])
    return float(np.abs(estimate - density(law, c)) @ np.diff(edges))


def measured(law: str, runs: int = RUNS) -> dict[tuple[int, bool], Array]:
    """The distances of every run by the number of contexts and whether they are clipped; nested samples."""
    found: dict[tuple[int, bool], list[float]] = {(n, clipped): [] for n in SAMPLES for clipped in (False, True)}
    for run in range(runs):
        contexts = draw(law, np.random.default_rng([run, len(law)]), max(SAMPLES))
        for n, clipped in found:
            found[n, clipped].append(distance(law, contexts[:n], clipped=clipped))
    return {key: np.array(values) for key, values in found.items()}


def write(directory: Path) -> None:
    """README.md, errors.csv and figure.png: the published and the measured errors."""
    from matplotlib.figure import Figure as Canvas

    directory.mkdir(parents=True, exist_ok=True)
    lines = [
        "# Error of the density estimate (table 2)",
        "",
        f"`context-table2`: means of {RUNS} runs, plus or minus one standard error.",
        "",
        "![errors](figure.png)",
        "",
        "| law | contexts | published | whole line, as drawn | on [0, 1], clipped |",
        "| --- | --- | --- | --- | --- |",
    ]
    canvas = Canvas(figsize=(5.0, 3.5), layout="constrained")
    panel = canvas.subplots()
    errors = {law: measured(law) for law in PUBLISHED}
    with (directory / "errors.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["law", "contexts", "run", "whole line", "clipped"])
        for law, found in errors.items():
            for n, published in zip(SAMPLES, PUBLISHED[law], strict=True):
                raw, clipped = found[n, False], found[n, True]
                lines.append(f"| {law} | {n} | {published:.3f} | {shown(raw)} | {shown(clipped)} |")
                for run, pair in enumerate(zip(raw, clipped, strict=True)):
                    writer.writerow([law, n, run, *(f"{error:.6g}" for error in pair)])
            means = [found[n, False].mean() for n in SAMPLES]
            bars = [found[n, False].std(ddof=1) / RUNS**0.5 for n in SAMPLES]
            panel.errorbar(SAMPLES, means, yerr=bars, label=f"{law}, measured", capsize=2)
            panel.plot(SAMPLES, PUBLISHED[law], "x", color=panel.lines[-1].get_color(), label=f"{law}, published")
    panel.set(xlabel="contexts", ylabel="L1 distance to the law", ylim=(0, None))
    panel.legend(frameon=False)
    canvas.savefig(directory / "figure.png", dpi=150)
    heading = ["claim", "contexts", "pairs", "difference", "p", "verdict"]
    lines += ["", "## Claims", "", *as_table(heading, claims(errors)), "", HOW]
    (directory / "README.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def claims(errors: dict[str, dict[tuple[int, bool], Array]]) -> list[list[str]]:
    """Return the paper's claims on these errors, tested at each number of contexts."""
    differences = {
        (f"the error falls with the number of contexts ({law})", f"{few} to {many}"): found[few, False]
        - found[many, False]
        for law, found in errors.items()
        for few, many in pairwise(SAMPLES)
    }
    for n in SAMPLES:
        text = f"the error is much larger for the complicated law (at least {BAR:g} times)"
        differences[text, str(n)] = errors["complicated"][n, False] - BAR * errors["normal"][n, False]
    ps, signs = zip(*(paired_test(each) for each in differences.values()), strict=True)
    corrected = [float(p) for p in holm(np.array(ps))]
    return [
        [text, contexts, str(len(each)), *tested(typical(each), p, word_of(p, sign))]
        for ((text, contexts), each), p, sign in zip(differences.items(), corrected, signs, strict=True)
    ]


def shown(values: Array) -> str:
    """Mean and standard error."""
    return f"{values.mean():.3f} ± {values.std(ddof=1) / len(values) ** 0.5:.3f}"


EXPERIMENTS = [Figure("context-table2", "Error of the density estimate (table 2)", write)]
