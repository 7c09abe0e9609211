"""Runs of the laboratory that are kept in docs/evidence, and what pages say of them in words."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from benchmarks.default.runs import Table
from benchmarks.default.score import RANDOM, Difference, Scores, difference, scales, scores
from benchmarks.default.sets import SETS

DOCS = Path(__file__).parents[1] / "docs"
ENDS = "final", "mean"


@cache
def found(folder: str, file: str, *seeds: int) -> dict[str, Scores]:
    """The scores of every variant with these seeds."""
    runs = list(Table(DOCS / "evidence" / folder / file).runs.values())
    return scores([run for run in runs if run.seed in seeds or run.variant == RANDOM], scales(runs))


def problems(chosen: str, *variants: Scores) -> list[str]:
    """Those of a set that all variants were run on."""
    return [problem.name for problem in SETS[chosen] if all(problem.name in mine.problems for mine in variants)]


def level(mine: Scores, names: list[str]) -> str:
    """Final and mean regret."""
    return ", ".join(f"{mine.of(measure, names):.2f}" for measure in ENDS)


@cache
def less_of(one: Scores, other: Scores, measure: str, *names: str) -> Difference:
    return difference(one, other, measure, names)


def interval(one: Scores, other: Scores, measure: str, names: list[str]) -> str:
    less = less_of(one, other, measure, *names)
    return f"{signed(less.mean)} ({signed(less.low)} to {signed(less.high)})"


def signed(number: float) -> str:
    return f"{round(number, 2) + 0.0:.2f}"


def won_and_lost(one: Scores, other: Scores, names: list[str]) -> str:
    """Problems won and lost in the final and the mean regret, with Wilcoxon's p."""
    less = [less_of(one, other, measure, *names) for measure in ENDS]
    return ", ".join(f"{each.won} and {each.lost} (p {p_of(each.p)})" for each in less)


def p_of(p: float) -> str:
    if p < 1e-4:
        return "< 1e-4"
    return f"{p:.0e}".replace("e-0", "e-") if p < 9.5e-4 else f"{p:.3f}" if p < 0.1 else f"{p:.2f}"
