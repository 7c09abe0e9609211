"""Judges claims by a paired test over the repeats, corrected for how many claims an experiment makes.

For a claim "A is at most c times B" the differences c * B_r - A_r of runs with the same seed r are tested with
Wilcoxon's signed-rank test, two-sided. All p-values of an experiment, which is one figure or table, are corrected
together by Holm's method, so that the probability of even one wrong word on its page is at most 5 %.

    holds            the differences are significantly positive
    does not hold    they are significantly negative
    undecided        neither
    a look           fewer than 6 pairs, which no test can tell apart at 5 %; they are not tested
    not measured     no runs of both, or not this of them

Holm (1979), "A simple sequentially rejective multiple test procedure"; the effect is Hodges and Lehmann's estimate with
its interval, Hollander, Wolfe, "Nonparametric Statistical Methods", chapter 3.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, cast

import numpy as np

from raybo.experiments.measures import GREATER_IS_BETTER
from raybo.experiments.plan import Claim, Experiment
from raybo.experiments.results import Row, of
from raybo.goal import Goal, Mode
from raybo.space import Array

LEVEL = 0.05
FEWEST = 6  # pairs: all six of one sign have p = 2 / 2^6 = 0.031, all five of one sign 0.063
Word = Literal["holds", "does not hold", "undecided", "a look", "not measured"]


@dataclass(frozen=True)
class Verdict:
    """How a claim fared on one problem.

    Attributes:
        claim, problem: what was claimed, and where.
        better, worse: medians of both sides; shares, where the measure is whether something was missed.
        effect: the typical paired difference in the claim's favour, positive where it is as claimed, and the ends of
            its 95 % interval; NaN without pairs.
        p: two-sided, of this claim alone. corrected: by Holm's method, with all others of the experiment.
        repeats: pairs of runs that it rests on.
    """

    claim: Claim
    problem: str
    better: float
    worse: float
    effect: tuple[float, float, float]
    p: float
    corrected: float
    repeats: int

    @property
    def word(self) -> Word:
        """What is to be said of it."""
        if self.repeats == 0:
            return "not measured"
        if self.repeats < FEWEST:
            return "a look"
        if not self.corrected < LEVEL:
            return "undecided"
        return "holds" if self.effect[0] > 0.0 else "does not hold"


def judge(experiment: Experiment, rows: Sequence[Row]) -> list[Verdict]:
    """A verdict for every claim and every problem that it speaks of."""
    verdicts = [
        _alone(claim, problem.name, rows)
        for claim in experiment.claims
        for problem in experiment.problems
        if not claim.problems or problem.name in claim.problems
    ]
    tested = [i for i, verdict in enumerate(verdicts) if verdict.repeats >= FEWEST]
    corrected = holm(np.array([verdicts[i].p for i in tested]))
    for i, p in zip(tested, corrected, strict=True):
        verdicts[i] = replace(verdicts[i], corrected=float(p))
    return verdicts


def _alone(claim: Claim, problem: str, rows: Sequence[Row]) -> Verdict:
    better, worse = (of(rows, problem, method, claim.measure) for method in (claim.better, claim.worse))
    seeds = sorted(better.keys() & worse.keys())
    a, b = (np.array([side[seed] for seed in seeds]) for side in (better, worse))
    if not seeds:
        return Verdict(claim, problem, math.nan, math.nan, (math.nan,) * 3, 1.0, 1.0, 0)
    differences = claim.factor * b - a
    if claim.measure in GREATER_IS_BETTER:
        mode = next(row.mode for row in rows if row.problem == problem)
        differences = Goal(cast(Mode, mode)).gap(b, a)
    middle = np.mean if claim.measure == "missed" else np.median
    p = paired_test(differences)
    return Verdict(claim, problem, float(middle(a)), float(middle(b)), typical(differences), p, p, len(seeds))


def paired_test(differences: Array) -> float:  # (n,)
    """The two-sided p-value of Wilcoxon's signed-rank test that the differences are around 0."""
    if len(differences) == 0 or not np.any(differences):
        return 1.0
    from scipy.stats import wilcoxon

    return float(wilcoxon(differences).pvalue)


def holm(p: Array) -> Array:  # (m,) -> (m,)
    """p-values corrected for their number: the k-th smallest times m - k + 1, at most 1, and never falling."""
    order = np.argsort(p, kind="stable")
    factors = np.arange(len(p), 0, -1)
    corrected = np.empty_like(p)
    corrected[order] = np.minimum(np.maximum.accumulate(p[order] * factors), 1.0)
    return corrected


def typical(differences: Array) -> tuple[float, float, float]:  # (n,)
    """The median of all pairwise means of the differences, and the ends of its 95 % interval.

    The interval holds the shifts that Wilcoxon's test would not refuse; of fewer than six differences it refuses none,
    and the ends are the smallest and the largest.
    """
    n = len(differences)
    i, j = np.triu_indices(n)
    means = np.sort(0.5 * (differences[i] + differences[j]))
    ways = np.ones(1)  # in which so many of the ranks 1..n add up to 0, 1, ...
    for rank in range(1, n + 1):
        ways = np.concatenate([ways, np.zeros(rank)]) + np.concatenate([np.zeros(rank), ways])
    left_out = max(0, int((np.cumsum(ways) / 2.0**n <= LEVEL / 2.0).sum()) - 1)
    return float(np.median(means)), float(means[left_out]), float(means[-1 - left_out])
