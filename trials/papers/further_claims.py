"""Claims of three papers that no experiment of theirs judges, judged by runs that are kept in docs/reproduction.

Kim, Liu, Chen (2025): on Branin the random grid is better over the whole horizon, and the gap in time to the other
solvers narrows with the dimension. Ha et al., arXiv:2306.06844: A-GP-UCB and the method of Wang and de Freitas explore
too much, and RA-BO is conservative. What a search explores shows in its cumulative regret, which is compared with
`map`'s and with UHE-BO's; the proposals are not kept.

They are a family of their own, beside those of the experiments, whose corrections do not count them: they were written
down when the runs were known.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from raybo.experiments import Figure
from raybo.experiments.curves import read_curves
from raybo.experiments.page import as_table, tested
from raybo.experiments.plan import Measure
from raybo.experiments.results import of, read_rows
from raybo.experiments.verdicts import SLOWER, holm, paired_test, typical, word_of

KEPT = Path(__file__).parents[2] / "docs" / "reproduction"
SOLVERS = ("L-BFGS-B", "Nelder-Mead", "CG")
FUNCTIONS = ("Deceptive", "h1", "Branin", "Hartmann-3")
EXPLORERS = ("A-GP-UCB", "A-GP-UCB, growing norm", "WdF-kappa")
HOW = (
    "Wilcoxon's signed-rank test on runs paired by seed, two-sided, at 5%, with Holm's correction over all rows. "
    "Differences are Hodges and Lehmann's estimates with 95 % intervals that are not corrected; positive favours the "
    "claim. Of the gap in time it is the difference of the logarithms of two ratios: another solver's processor time "
    f"to the random grid's, on Branin and on Hartmann-6; it must survive either ratio being {SLOWER:g} times off."
)

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Row:
    """A claim, whose runs it is judged by, and where; the paired differences, in the claim's favour; its p and side."""

    text: str
    folder: str
    problem: str
    differences: Array
    p: float
    side: int


def paired(folder: str, measure: Measure, *sides: tuple[str, str]) -> list[Array]:
    """Return a measure of some problems' and methods' runs, in the order of the seeds that all have."""
    rows = read_rows(KEPT / folder)
    found = [of(rows, problem, method, measure) for problem, method in sides]
    seeds = sorted(set.intersection(*(set(side) for side in found)))
    return [np.array([side[seed] for seed in seeds]) for side in found]


def lower(text: str, folder: str, problem: str, better: str, worse: str) -> Row:
    """Return the claim that one's cumulative regret is below the other's."""
    x, y = paired(folder, "cumulative_regret", (problem, better), (problem, worse))
    return Row(text, folder, problem, y - x, *paired_test(y - x))


def narrows(other: str) -> Row:
    """Return the claim that another solver's time is fewer times the grid's on Hartmann-6 than on Branin."""
    ends = [(problem, method) for problem in ("Branin", "Hartmann-6") for method in (other, "random grid")]
    theirs, grid, theirs_6, grid_6 = paired("inexact-fig1", "processor_seconds", *ends)
    d = np.log(theirs / grid) - np.log(theirs_6 / grid_6)
    _, side = paired_test(d)
    p, cautious = paired_test(d - side * np.log(SLOWER))
    text = f"{other} takes fewer times as long as the random grid in six dimensions than in two (figure 2)"
    return Row(text, "inexact-fig1", "Branin, Hartmann-6", d, p if cautious == side else 1.0, side)


def rows() -> list[Row]:
    """Every claim with its test."""
    grid = "the random grid's regret on Branin is below {}'s (figure 1)"
    return [
        *(lower(grid.format(other), "inexact-fig1", "Branin", "random grid", other) for other in SOLVERS),
        *map(narrows, SOLVERS),
        *(
            lower(
                f"{method} explores too much: its regret adds up to more than MAP's",
                "uhe-fig2-synthetic",
                problem,
                "MAP",
                method,
            )
            for method in EXPLORERS
            for problem in FUNCTIONS
        ),
        *(
            lower(
                "RA-BO is conservative: its regret adds up to more than UHE-BO's (figure 5)",
                "uhe-fig5",
                problem,
                "UHE-BO",
                "RA-BO",
            )
            for problem in FUNCTIONS[:2]
        ),
    ]


def claims() -> list[list[str]]:
    """Return the table's rows."""
    found = rows()
    corrected = holm(np.array([row.p for row in found]))
    return [
        [
            *(row.text, row.folder, row.problem, str(len(row.differences))),
            *tested(typical(row.differences), float(p), word_of(float(p), row.side)),
        ]
        for row, p in zip(found, corrected, strict=True)
    ]


def horizon() -> str:
    """Say for how much of the search on Branin the random grid's regret is the lowest."""
    found = {key[1]: curve for key, curve in read_curves(KEPT / "inexact-fig1").items() if key[0] == "Branin"}
    grid = found["random grid"]
    means = [int((grid[4] < found[other][4]).sum()) for other in SOLVERS]
    medians = [int((grid[1] < found[other][1]).sum()) for other in SOLVERS]
    return (
        f"Over the whole horizon: of the {len(grid[0])} evaluations of figure 1 on Branin, the random grid's "
        f"mean cumulative regret is below that of {', '.join(SOLVERS)} after {', '.join(map(str, means))}, its "
        f"median after {', '.join(map(str, medians))}."
    )


def gaps() -> str:
    """Say how the ratios of processor time change with the dimension."""
    names = ("Branin", "Rastrigin-3", "Hartmann-3", "Hartmann-4", "Levy-5", "Hartmann-6")
    told = []
    for other in SOLVERS:
        ratios = []
        for name in names:
            theirs, grid = paired("inexact-fig1", "processor_seconds", (name, other), (name, "random grid"))
            ratios.append(f"{np.median(theirs / grid):.1f}")
        told.append(f"{other} {', '.join(ratios)}")
    return (
        f"The median ratios of processor time to the random grid's on {', '.join(names)} are: {'; '.join(told)}. They "
        "do not fall at every step."
    )


def write(directory: Path) -> None:
    """Write the page."""
    directory.mkdir(parents=True, exist_ok=True)
    heading = ["claim", "folder", "problem", "pairs", "difference", "p", "verdict"]
    lines = [
        "# Claims judged by other pages' runs",
        "",
        "`further-claims`: what three papers say in words, and none of their figures' pages judges. "
        "`trials/papers/further_claims.py` says what stands for it.",
        "",
        "## Claims",
        "",
        *as_table(heading, claims()),
        "",
        HOW,
        "",
        horizon(),
        "",
        gaps(),
    ]
    (directory / "README.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


EXPERIMENTS = [Figure("further-claims", "Claims judged by other pages' runs", write)]
