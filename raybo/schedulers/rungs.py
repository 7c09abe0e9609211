"""Rungs: the steps at which trials are compared, and the values of the trials that reached them.

A trial reaches a rung with the first step that it reports there or beyond: jobs that report every tenth step skip some.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from raybo.record.history import History
from raybo.record.origin import Origin, origin_of
from raybo.record.states import OPEN, State
from raybo.schedulers.report_totals import folded
from raybo.schedulers.verdict import Verdict, in_words, ordinal


@dataclass(frozen=True)
class Ladder:
    """The rungs grace * eta^k below the last step, or the first few of them; there is nothing to decide beyond.

    Attributes:
        grace: the first rung. eta: one in `eta` of those at a rung continues, and the next rung is `eta` times as far.
        steps: of a whole run.
        count: how many rungs there are; None for all.
    """

    grace: int
    eta: int
    steps: int
    count: int | None = None

    @property
    def rungs(self) -> tuple[int, ...]:
        """The steps, going up."""
        rungs: list[int] = []
        rung = self.grace
        while rung < self.steps and len(rungs) != self.count:
            rungs.append(rung)
            rung *= self.eta
        return tuple(rungs)


@dataclass
class AtRung:
    """Those that have been at a rung.

    Attributes:
        value: of each trial, in the order in which they came. ascending: the values.
    """

    value: dict[int, float] = field(default_factory=dict)
    ascending: list[float] = field(default_factory=list)

    def add(self, trial: int, y: float) -> None:
        """Add a trial."""
        self.value[trial] = y
        insort(self.ascending, y)

    def rank(self, y: float) -> int:
        """Return the rank of a value: 1 if none is better."""
        return 1 + len(self.ascending) - bisect_right(self.ascending, y)

    def top(self, count: int) -> list[int]:
        """The best so many trials, the best first, of equals the earliest."""
        return sorted(self.value, key=lambda trial: -self.value[trial])[:count]


class Climbed:
    """The trials that have been at each rung of each ladder.

    Args:
        ladder_of: of each trial. Trials of different ladders are not compared.
    """

    def __init__(self, ladder_of: Callable[[int], Ladder]) -> None:
        self._ladder_of = ladder_of
        self._step: dict[int, int] = {}
        self._rungs: dict[Ladder, tuple[int, ...]] = {}
        self._at: dict[tuple[Ladder, int], AtRung] = {}
        self.highest: dict[int, int] = {}  # rung of each trial

    def take(self, trial: int, step: int, y: float) -> None:
        """Add the next report."""
        ladder = self._ladder_of(trial)
        rungs = self._rungs.setdefault(ladder, ladder.rungs)
        for rung in rungs_between(rungs, self._step.get(trial, 0), step):
            self.at(ladder, rung).add(trial, y)
            self.highest[trial] = rung
        self._step[trial] = step

    def at(self, ladder: Ladder, rung: int) -> AtRung:
        """Those that have been at a rung."""
        return self._at.setdefault((ladder, rung), AtRung())


def rungs_between(rungs: tuple[int, ...], before: int, step: int) -> tuple[int, ...]:
    """Return the rungs beyond a step and not beyond another."""
    return rungs[bisect_right(rungs, before) : bisect_right(rungs, step)]


def rung_at(history: History, ladder: Ladder, trial: int, step: int) -> int | None:
    """Return the rung that a trial is at with a step that it has reported, or may report next; None if at none."""
    if step >= ladder.steps:
        return None
    reports = history.records[trial].reports
    place = bisect_left(reports, (step,))
    rungs = rungs_between(ladder.rungs, reports[place - 1][0] if place else 0, step)
    return rungs[-1] if rungs else None


def judged(climbed: Climbed, history: History, ladder: Ladder, trial: int, rung: int) -> tuple[bool, Verdict]:
    """Return True if a trial is in the top 1 / eta of those that have been at its rung, or the best of them.

    The second value is a verdict to continue, with the figures, for the caller to change.
    """
    there = climbed.at(ladder, rung)
    own, n = there.value[trial], len(there.value)
    rank, kept = there.rank(own), max(1, n // ladder.eta)
    cutoff = there.ascending[-kept]
    why = f"{ordinal(rank)} of {n} at step {rung}: {in_words(history, own)}, cutoff {in_words(history, cutoff)}"
    numbers = {"rung": rung, "rank": rank, "of": n, "cutoff": history.value_of(cutoff)}
    return rank <= kept, Verdict("go", why, numbers)


def promotable(climbed: Climbed, history: History, ladder: Ladder, waiting: Callable[[int], bool]) -> int | None:
    """Return the trial that the next free worker resumes; None if none is promotable.

    The best of those that wait in the top 1 / eta of a rung, from the top rung down: Li et al. (2020), algorithm 2,
    get_job.
    """
    for rung in reversed(ladder.rungs):  # line 13
        there = climbed.at(ladder, rung)
        candidates = there.top(len(there.value) // ladder.eta)  # line 14
        for trial in candidates:  # line 15: those that have not been promoted
            if climbed.highest[trial] == rung and waiting(trial):
                return trial  # lines 16 to 18
    return None


def last_resort(history: History, waiting: Callable[[int], bool]) -> int | None:
    """Return the trial that is resumed if the study would otherwise end without a result; None if it would not.

    Ours: once all planned trials are proposed, none has finished and no other runs, the best of those that came
    furthest continues to its end. Otherwise only one in eta^k of the paused trials would ever finish. A known result
    from elsewhere is not one of the study's own.
    """
    asked = len(history) - history.count(State.STOPPED)
    if history.planned is None or asked < history.planned or _has_result(history):
        return None
    candidates = [trial for trial in history.records.numbers(*OPEN).tolist() if waiting(trial)]
    if len(candidates) < history.count(*OPEN):
        return None
    came_to = {trial: history.records[trial].reports[-1] for trial in candidates}
    return max(candidates, key=came_to.__getitem__, default=None)


def _has_result(history: History) -> bool:
    """Return True if a trial of the study's own has finished."""
    numbers = history.records.numbers(State.FINISHED).tolist()
    return any(origin_of(history.records[number].tags) is not Origin.ADDED for number in numbers)


def is_paused(history: History, trial: int) -> bool:
    """Return True if a trial is paused."""
    return history.records[trial].state is State.PAUSED


def climbed_by(history: History, rule: Hashable, ladder_of: Callable[[int], Ladder]) -> Climbed:
    """Return the trials at each rung, by all reports of a history; the rule identifies the ladders."""
    return folded(history, rule, Climbed, ladder_of)
