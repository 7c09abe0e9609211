"""Judges claims by a paired test over the repeats, corrected for how many claims an experiment makes.

For a claim "A is at most c times B" the differences c * B_r - A_r of runs with the same seed r are tested with
Wilcoxon's signed-rank test, two-sided; what is or is not so in a run, such as that it missed the optimum, with
McNemar's exact test. All p-values of an experiment are corrected together by Holm's method, so that the probability of
even one wrong word on its page is at most 5 %, if the number of runs was not chosen by what they showed.

    holds            the differences are significantly positive
    does not hold    they are significantly negative
    undecided        neither
    not judged       so few pairs could not decide it, whatever they showed; it is not tested, and does not count

n pairs have a p of 2^(1-n) at least, which is corrected by the number of claims with as few pairs or fewer, at least.
Processor seconds depend on the machine's other work too: a verdict on them is one only if it would be the same with
either side slower by `SLOWER`.

Holm (1979), "A simple sequentially rejective multiple test procedure"; the effect is Hodges and Lehmann's estimate with
its interval, Hollander, Wolfe, "Nonparametric Statistical Methods", chapter 3; of shares their difference, with the
interval of Agresti, Min (2005), "Simple improved confidence intervals for comparing matched proportions".
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, cast

import numpy as np
from numpy.typing import NDArray

from raybo.experiments.plan import GREATER_IS_BETTER, Claim, Experiment
from raybo.experiments.results import Row, of
from raybo.record.goals import Goal, Mode
from raybo.space import Array

LEVEL = 0.05
SLOWER = 1.5  # about as much as the same runs have differed between two days, see `measure`
Word = Literal["holds", "does not hold", "undecided", "not judged"]


@dataclass(frozen=True)
class Verdict:
    """The test of a claim on one problem.

    Attributes:
        claim, problem: what was claimed, and where.
        better, worse: medians of both sides; shares, where the measure is whether something was missed.
        effect: the typical paired difference in the claim's favour, positive where it is as claimed, and the ends of
            its 95 % interval, which is its own, and not corrected; NaN without pairs.
        p: two-sided, of this claim alone. corrected: by Holm's method, with all others of the experiment.
        repeats: pairs of runs that it rests on.
        side: 1 where the test finds for the claim, -1 where it finds against it; 0 where all pairs are equal.
        is_judged: whether they could decide it, beside the experiment's other claims.
    """

    claim: Claim
    problem: str
    better: float
    worse: float
    effect: tuple[float, float, float]
    p: float
    corrected: float
    repeats: int
    side: int = 0
    is_judged: bool = False

    @property
    def word(self) -> Word:
        """The verdict in words."""
        return word_of(self.corrected, self.side) if self.is_judged else "not judged"


def word_of(p: float, side: int) -> Word:
    """Return the verdict on a claim that has been tested, by its corrected p-value and the side that it favours."""
    if not p < LEVEL or side == 0:
        return "undecided"
    return "holds" if side > 0 else "does not hold"


def judge(experiment: Experiment, rows: Sequence[Row]) -> list[Verdict]:
    """A verdict for every claim and every problem that it speaks of."""
    verdicts = [
        _alone(claim, problem.name, rows)
        for claim in experiment.claims
        for problem in experiment.problems
        if not claim.problems or problem.name in claim.problems
    ]
    tested = np.flatnonzero(decidable([verdict.repeats for verdict in verdicts]))
    corrected = holm(np.array([verdicts[i].p for i in tested]))
    for i, p in zip(tested, corrected, strict=True):
        verdicts[i] = replace(verdicts[i], corrected=float(p), is_judged=True)
    return verdicts


def decidable(pairs: Sequence[int]) -> list[bool]:
    """Of claims with so many pairs each, which could be decided, beside all others that could.

    The most that a claim's pairs can show is a p of 2^(1-n), and that all claims with more pairs are decided first.
    """
    kept: list[int] = []
    for n in sorted(set(pairs)):
        alike = [n] * list(pairs).count(n)
        if pairs_needed(len(kept) + len(alike)) <= n:
            kept += alike
    return [n in kept for n in pairs]


def pairs_needed(claims: int) -> int:
    """Return the pairs of runs that each of so many claims needs to be decidable: six for one."""
    return next(n for n in itertools.count(1) if claims * 2.0 ** (1 - n) < LEVEL)


def _alone(claim: Claim, problem: str, rows: Sequence[Row]) -> Verdict:
    better, worse = (of(rows, problem, method, claim.measure) for method in (claim.better, claim.worse))
    seeds = sorted(better.keys() & worse.keys())
    a, b = (np.array([side[seed] for seed in seeds]) for side in (better, worse))
    if not seeds:
        return Verdict(claim, problem, math.nan, math.nan, (math.nan,) * 3, 1.0, 1.0, 0)
    differences = claim.factor * b - a
    if claim.measure == "missed":
        effect, p = difference_of_shares(differences), mcnemar(differences)
        side = int(np.sign(differences.sum()))
        return Verdict(claim, problem, float(a.mean()), float(b.mean()), effect, p, p, len(seeds), side)
    if claim.measure in GREATER_IS_BETTER:
        mode = next(row.mode for row in rows if row.problem == problem)
        differences = Goal(cast(Mode, mode)).gap(b, a)
    p, side = paired_test(differences)
    if claim.measure == "processor_seconds":
        p, cautious = paired_test(claim.factor * b - SLOWER * a if side > 0 else SLOWER * claim.factor * b - a)
        p = p if cautious == side else 1.0
    middles = float(np.median(a)), float(np.median(b))
    return Verdict(claim, problem, *middles, typical(differences), p, p, len(seeds), side)


def paired_test(differences: Array) -> tuple[float, int]:  # (n,)
    """The two-sided p-value of Wilcoxon's signed-rank test that the differences are around 0, and for which side it is.

    Differences of 0 say nothing for either side, and are left out; p is exact for what is left.
    """
    from scipy.stats import rankdata

    found = differences[differences != 0.0]
    ranks = np.rint(2.0 * rankdata(np.abs(found))).astype(np.int64)  # twice: means of equal ones end in a half
    up, down = int(ranks[found > 0.0].sum()), int(ranks[found < 0.0].sum())
    at_least = float(_sums_of(ranks)[max(up, down) :].sum())
    return min(1.0, 2.0 * at_least), int(np.sign(up - down))


def _sums_of(ranks: NDArray[np.int64]) -> Array:  # (n,) whole numbers -> (s + 1,)
    """The probability of each sum of those that are kept, from 0 to s, if each is by the toss of a coin."""
    found = np.ones(1)
    for rank in ranks.tolist():
        beyond = np.zeros(rank)
        found = 0.5 * (np.concatenate([found, beyond]) + np.concatenate([beyond, found]))
    return found


def mcnemar(differences: Array) -> float:  # (n,)
    """The two-sided p-value of McNemar's exact test; differences are -1, 0 or 1."""
    from scipy.stats import binomtest

    up, down = int((differences > 0).sum()), int((differences < 0).sum())
    return float(binomtest(up, up + down).pvalue) if up + down else 1.0


def difference_of_shares(differences: Array) -> tuple[float, float, float]:  # (n,)
    """The mean of differences that are -1, 0 or 1, and the ends of its 95 % interval."""
    n, up, down = len(differences), float((differences > 0).sum()), float((differences < 0).sum())
    middle = (up - down) / (n + 2.0)
    half = 1.96 * math.sqrt((up + down + 1.0) / (n + 2.0) - middle**2) / math.sqrt(n + 2.0)
    return (up - down) / n, max(-1.0, middle - half), min(1.0, middle + half)


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
    left_out = max(0, int((np.cumsum(_sums_of(np.arange(1, n + 1))) <= LEVEL / 2.0).sum()) - 1)
    return float(np.median(means)), float(means[left_out]), float(means[-1 - left_out])
