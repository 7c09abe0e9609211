"""From runs to figures: regret on a scale that all problems share, and differences in pairs with their intervals.

    regret = (value - best) / (random - best)

so that 0 is the optimum, or where nobody knows it the least value in the tables, and 1 is what random search reaches
with the whole budget (median over its seeds). A problem's figure is the median over seeds; a set's the mean over its
problems. A difference is that of two variants with equal seeds; intervals of 95 % are by the bootstrap, which draws
problems and, within each, seeds. Tests are by problem, for the runs of one problem resemble each other: Wilcoxon's
signed-rank test of the problems' mean differences.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.stats import rankdata, wilcoxon

from benchmarks.default.runs import AFTER, OPTIMUM, Run
from benchmarks.default.sets import PROBLEMS
from benchmarks.searches import Array

RANDOM = "random"
DRAWS = 2000
CAP = 3.0  # regrets above it count as it, so that one steep function does not decide
TARGETS = np.logspace(2, -8, 51)  # COCO's: distances from the optimum
EVEN = 1e-3  # regrets closer than this are a tie


def _final(run: Run) -> float:
    return run.final


def _after(run: Run, place: int) -> float:
    return run.after[place]


MEASURES: dict[str, Callable[[Run], float]] = {
    "final": _final,
    "mean": lambda run: run.mean,
    **{f"after {n}": partial(_after, place=place) for place, n in enumerate(AFTER)},
}
BEST_ELSEWHERE = "best elsewhere"
ELSEWHERE: dict[str, Callable[[Run], float | None]] = {  # of problems that have other splits
    BEST_ELSEWHERE: lambda run: run.best_elsewhere,
    "recommended elsewhere": lambda run: run.recommended_elsewhere,
}


@dataclass(frozen=True)
class Scale:
    """The values that are regret 0 and 1 on a problem."""

    best: float
    random: float

    def regret(self, value: float) -> float:
        """The regret of a value."""
        return (value - self.best) / max(self.random - self.best, 1e-12)


def scales(runs: Iterable[Run]) -> dict[str, Scale]:
    """The scale of every problem that random search was run on."""
    of: dict[str, list[Run]] = {}
    for run in runs:
        of.setdefault(run.problem, []).append(run)
    made = {}
    for name, mine in of.items():
        known = [run.final for run in mine if run.variant == OPTIMUM and not math.isnan(run.final)]
        yardstick = [run.final for run in mine if run.variant == RANDOM]
        if yardstick:
            least = known[0] if known else min(run.final for run in mine if run.variant != OPTIMUM)
            made[name] = Scale(least, float(np.median(yardstick)))
    return made


@dataclass(frozen=True, eq=False)
class Scores:
    """Regrets of one variant: per problem, by seed.

    Attributes:
        regrets: measure, problem, seed, regret. milliseconds: of a proposal, by problem one for each run.
    """

    regrets: dict[str, dict[str, dict[int, float]]]
    milliseconds: dict[str, list[float]]

    def of(self, measure: str, problems: Sequence[str]) -> float:
        """Mean over the problems of the median over seeds, of at most CAP."""
        medians = [np.median(list(self.regrets[measure][name].values())) for name in problems]
        return float(np.mean(np.minimum(medians, CAP)))

    def cost(self, problems: Sequence[str]) -> float:
        """Milliseconds per proposal: the median over the problems' runs, as the first of a process loads libraries."""
        return float(np.median([spent for name in problems for spent in self.milliseconds[name]]))

    @property
    def problems(self) -> set[str]:
        """The problems that it was run on."""
        return set(self.regrets["final"])


def scores(runs: Iterable[Run], scale: dict[str, Scale]) -> dict[str, Scores]:
    """The scores of every variant among the runs, on the problems that have a scale."""
    found: dict[str, Scores] = {}
    for run in runs:
        if run.problem not in scale:
            continue
        mine = found.setdefault(run.variant, Scores({measure: {} for measure in (*MEASURES, *ELSEWHERE)}, {}))
        for measure, read in (*MEASURES.items(), *ELSEWHERE.items()):
            if (value := read(run)) is not None:
                mine.regrets[measure].setdefault(run.problem, {})[run.seed] = scale[run.problem].regret(value)
        mine.milliseconds.setdefault(run.problem, []).append(run.milliseconds)
    return found


@dataclass(frozen=True)
class Difference:
    """One variant less another, in pairs.

    Attributes:
        mean: over problems and seeds; below 0 the first is better. low, high: its interval of 95 %.
        won, lost: problems, by their mean difference, ties left out. p: of Wilcoxon's test over them.
    """

    mean: float
    low: float
    high: float
    won: int
    lost: int
    p: float


def difference(one: Scores, other: Scores, measure: str, problems: Sequence[str]) -> Difference:
    """Return how much less regret one has than the other, at most CAP."""
    rng = np.random.default_rng(0)
    pairs: list[Array] = []
    for name in problems:
        ours, theirs = one.regrets[measure][name], other.regrets[measure][name]
        seeds = sorted(ours.keys() & theirs.keys())
        if seeds:
            pairs.append(np.array([min(ours[s], CAP) - min(theirs[s], CAP) for s in seeds]))
    lengths, every = np.array([len(values) for values in pairs]), np.concatenate(pairs)
    begins = np.cumsum(lengths) - lengths
    drawn = np.empty(DRAWS)
    for i in range(DRAWS):
        chosen = rng.integers(len(pairs), size=len(pairs))
        n = lengths[chosen]
        values = every[np.repeat(begins[chosen], n) + rng.integers(np.repeat(n, n))]
        drawn[i] = np.mean(np.add.reduceat(values, np.cumsum(n) - n) / n)
    low, high = np.quantile(drawn, [0.025, 0.975])
    means = np.array([values.mean() for values in pairs])
    won, lost = int((means < -EVEN).sum()), int((means > EVEN).sum())
    p = float(wilcoxon(means[means != 0.0]).pvalue) if means.any() else 1.0
    return Difference(float(means.mean()), float(low), float(high), won, lost, p)


def ranks(found: dict[str, Scores], variants: Sequence[str], measure: str, problems: Sequence[str]) -> dict[str, float]:
    """The mean rank of each variant among all of them, 1 the best: over the problems, and the seeds that all have."""
    each: list[Array] = []
    for name in problems:
        regrets = [found[variant].regrets[measure].get(name, {}) for variant in variants]
        seeds = sorted(set.intersection(*(set(mine) for mine in regrets)))
        if seeds:
            table = np.array([[mine[seed] for seed in seeds] for mine in regrets])
            each.append(rankdata(np.round(table / EVEN), axis=0).mean(axis=1))
    means = np.mean(each, axis=0) if each else np.full(len(variants), math.nan)
    return dict(zip(variants, means.tolist(), strict=True))


def targets_reached(runs: Iterable[Run], variant: str, problems: Iterable[str], measure: str = "final") -> float:
    """The share of TARGETS that a variant's runs reach, in the mean over the runs on problems whose optimum is 0.

    Args:
        measure: the value that reaches them, of MEASURES: that at the end, or after some trials.
    """
    chosen, read = set(problems), MEASURES[measure]
    reached = [read(run) <= TARGETS for run in runs if run.variant == variant and run.problem in chosen]
    return float(np.mean(reached)) if reached else math.nan


def group(problems: Iterable[str], wanted: str) -> list[str]:
    """Return the problems of a group, in their order in the sets."""
    chosen = set(problems)
    return [name for name, problem in PROBLEMS.items() if name in chosen and problem.group == wanted]
