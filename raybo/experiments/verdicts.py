"""Judges claims by a paired test over the repeats.

For a claim "A is at most c times B" the differences c * B_r - A_r of runs with the same seed r are tested with
Wilcoxon's signed-rank test, one-sided, at 5 %. *Holds*: the differences are positive. *Does not hold*: they are
negative. *Undecided*: neither, as with too few repeats (four pairs can never reach 5 %, and five just can).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from raybo.experiments.measures import GREATER_IS_BETTER, measure, optimum
from raybo.experiments.plan import Claim, Experiment
from raybo.experiments.run import Run
from raybo.goal import Goal
from raybo.study import Study

LEVEL = 0.05
Word = Literal["holds", "does not hold", "undecided"]


@dataclass(frozen=True)
class Verdict:
    """How a claim fared on one problem: the medians of both sides, the test's p-value in each direction, the word."""

    claim: Claim
    problem: str
    better: float
    worse: float
    p_holds: float
    p_fails: float
    repeats: int

    @property
    def word(self) -> Word:
        """Holds, does not hold, or undecided."""
        if self.p_holds < LEVEL:
            return "holds"
        return "does not hold" if self.p_fails < LEVEL else "undecided"


def judge(experiment: Experiment, studies: Mapping[Run, Study]) -> list[Verdict]:
    """A verdict for every claim and every problem that it speaks of."""
    verdicts = []
    for claim in experiment.claims:
        for problem in experiment.problems:
            if claim.problems and problem.name not in claim.problems:
                continue
            target = optimum(problem, studies)
            sides = {
                name: np.array(
                    [
                        measure(claim.measure, studies[run], problem, target)
                        for run in sorted(studies, key=lambda run: run.seed)
                        if run.problem == problem and run.entry.name == name
                    ]
                )
                for name in (claim.better, claim.worse)
            }
            a, b = sides[claim.better], sides[claim.worse]
            differences = claim.factor * b - a
            if claim.measure in GREATER_IS_BETTER:
                differences = _goal(problem.name, studies).gap(b, a)
            p_holds, p_fails = paired_test(differences)
            verdicts.append(
                Verdict(claim, problem.name, float(np.median(a)), float(np.median(b)), p_holds, p_fails, len(a))
            )
    return verdicts


def paired_test(differences: np.ndarray) -> tuple[float, float]:
    """p-values of Wilcoxon's signed-rank test that the differences are positive, and that they are negative."""
    if len(differences) == 0 or not np.any(differences):
        return 1.0, 1.0
    from scipy.stats import wilcoxon

    return tuple(float(wilcoxon(differences, alternative=side).pvalue) for side in ("greater", "less"))  # type: ignore[return-value]


def _goal(problem: str, studies: Mapping[Run, Study]) -> Goal:
    return next(study.goal for run, study in studies.items() if run.problem.name == problem)
