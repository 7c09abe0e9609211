"""Fan, Wang, Ng, Hu (2024), "Minimizing UCB: a Better Local Search Strategy in Local Bayesian Optimization", figure 1.

What a gradient step minimises and what MinUCB minimises, in one dimension (local-fig1). A gradient step minimises a
parabola that lies above f. A Gaussian process, here with k = exp(-(x - x')^2 / 4), two observations at x0 -+ h (noise
0.05) and beta = 3, gives three bounds of f, each with the confidence of beta standard deviations:

    upper confidence bound      mean(x) + beta std(x)
    parabola                    ucb(x0) + mean'(x0) (x - x0) + L/2 (x - x0)^2
    parabola, unknown slope     the same + beta std'(x0) |x - x0|, because mean' is only an estimate

with L = beta sqrt(3) / 2, beta standard deviations of f''. The plain parabola treats the slope as known, as GIBO does.
The paper does not specify f, h or L; we chose them.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from raybo.experiments import Figure

Array: TypeAlias = NDArray[np.float64]

BETA, NOISE_VARIANCE, X0, H = 3.0, 0.05**2, 0.0, 0.5
CENTRES, HEIGHTS = np.array([-2.5, -0.5, 1.5, 3.0]), np.array([0.7, 0.9, -1.1, 0.4])  # of f, a sum of bells
CURVES = ("f", "mean", "upper confidence bound", "parabola", "parabola, unknown slope")


def kernel(a: Array, b: Array) -> Array:  # (n,), (m,) -> (n, m)
    """exp(-(a - b)^2 / 4)."""
    bells: Array = np.exp(-0.25 * (a[:, None] - b[None, :]) ** 2)
    return bells


def curves(x: Array) -> Array:  # (m,) -> (5, m)
    """f, the posterior mean and the three bounds."""
    X = np.array([X0 - H, X0 + H])
    A = kernel(X, X) + NOISE_VARIANCE * np.eye(2)
    y = kernel(X, CENTRES) @ HEIGHTS  # the errors are taken to be 0

    def posterior(x: Array) -> tuple[Array, Array]:  # (m,) -> (m,), (m,)
        k = kernel(x, X)
        return k @ np.linalg.solve(A, y), np.sqrt(1.0 - np.einsum("ij,ji->i", k, np.linalg.solve(A, k.T)))

    mean, std = posterior(x)
    mean0, std0 = (float(part[0]) for part in posterior(np.array([X0])))
    slopes = 0.5 * (X - X0) * kernel(np.array([X0]), X)[0]  # d k(x0, X) / d x0
    slope, slope_std = slopes @ np.linalg.solve(A, y), np.sqrt(0.5 - slopes @ np.linalg.solve(A, slopes))
    step = x - X0
    parabola = mean0 + BETA * std0 + slope * step + 0.25 * BETA * np.sqrt(3.0) * step**2
    f = kernel(x, CENTRES) @ HEIGHTS
    return np.stack([f, mean, mean + BETA * std, parabola, parabola + BETA * slope_std * np.abs(step)])


def numbers(x: Array) -> list[tuple[str, float, float, float]]:  # (m,)
    """Of each bound: its name, where it is least, what it promises there, and f there."""
    found = curves(x)
    least = found[2:].argmin(axis=1)
    return [
        (name, float(x[i]), float(bound[i]), float(found[0, i]))
        for name, bound, i in zip(CURVES[2:], found[2:], least, strict=True)
    ]


def write(directory: Path) -> None:
    """The page with its table, the figure and the curves."""
    from matplotlib.figure import Figure as Canvas

    directory.mkdir(parents=True, exist_ok=True)
    x = np.linspace(-3.0, 3.0, 601)
    found = curves(x)
    with (directory / "curves.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["x", *CURVES])
        writer.writerows([f"{number:.10g}" for number in row] for row in np.vstack([x, found]).T)

    canvas = Canvas(figsize=(6.4, 4.0), layout="constrained")
    panel = canvas.subplots()
    for name, curve in zip(CURVES, found, strict=True):
        panel.plot(x, curve, label=name, linewidth=1.5, color="black" if name == "f" else None)
    panel.plot([X0 - H, X0 + H], curves(np.array([X0 - H, X0 + H]))[0], "ko", label="observations")
    panel.axvline(X0, color="grey", linewidth=0.6)
    panel.set(xlabel="x", ylim=(float(found[0].min()) - 0.5, 5.0))
    panel.grid(alpha=0.25)
    panel.legend(frameon=False, fontsize="small")
    canvas.savefig(directory / "figure.png", dpi=150)

    at_start = float(curves(np.array([X0]))[2, 0])
    rows = [
        f"| {name} | {where:.3f} | {promise:.3f} | {at_start - promise:.3f} | {f:.3f} |"
        for name, where, promise, f in numbers(x)
    ]
    lines = [
        "# What a gradient step minimises, and what MinUCB minimises (figure 1)",
        "",
        "`local-fig1`: computed, without runs; `trials/papers/local_fig1.py` says what is drawn.",
        "",
        "![bounds](figure.png)",
        "",
        "| bound | least at x | its value there | promised decrease from x0 | f there |",
        "| --- | --- | --- | --- | --- |",
        *rows,
        "",
        f"At x0 = {X0:g} f is {float(curves(np.array([X0]))[0, 0]):.3f} and all three bounds are {at_start:.3f}.",
        f"The upper confidence bound lies below both parabolas on {share(x):.0%} of [-3, 3].",
    ]
    (directory / "README.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def share(x: Array) -> float:  # (m,)
    """The share of these points where the upper confidence bound is the lowest of the bounds, equal ones included."""
    bounds = curves(x)[2:]
    return float((bounds[0] <= bounds[1:].min(axis=0) + 1e-12).mean())


EXPERIMENTS = [Figure("local-fig1", "What a gradient step and MinUCB minimise (figure 1)", write)]
