"""hyperband: successive halving that starts with few steps for many trials, or with many for few, in turn.

It is not known in advance how early bad trials can be recognised, so brackets of `asha` differ in their first rung:
grace * eta^b for b = 0, 1, ... Each gets as many trials as Li, Jamieson, DeSalvo, Rostamizadeh, Talwalkar (2018),
"Hyperband: A Novel Bandit-Based Approach to Hyperparameter Optimization", JMLR 18, algorithm 1, starts it with:
ceil((s_max + 1) / (s + 1) * eta^s) if s halvings follow. The brackets are asynchronous, as in Li et al. (2020), "A
System for Massively Parallel Hyperparameter Tuning", section 3.2. Trials are only compared within their bracket.
Ours: a trial's bracket is the one that is furthest behind its share, so that short studies see all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

from raybo.common.options import option
from raybo.record.history import History
from raybo.schedulers.asha import Variant, verdict
from raybo.schedulers.rungs import Climbed, Ladder, climbed_by, is_paused, last_resort, promotable, rung_at
from raybo.schedulers.scheduler import Scheduler
from raybo.schedulers.verdict import Verdict

SINCE = 3  # the generation from which there are as many brackets as in the paper


@dataclass(frozen=True, kw_only=True)
class Hyperband(Scheduler):
    """Brackets of `asha` with different first rungs, in turn: for when you do not know how early a bad trial shows.

    Li et al. (2018), "Hyperband: A Novel Bandit-Based Approach to Hyperparameter Optimization"; asynchronous.
    """

    grace: int = option(1, "the first rung of the boldest bracket", at_least=1)
    eta: int = option(3, "one in eta trials at a rung goes on, and the next rung is eta times as far", at_least=2)
    variant: Variant = option("stop", "what happens to the others: stop ends them, promote pauses them")

    def decides(self, history: History, trial: int, step: int) -> bool:
        """Return True at the rungs of the trial's bracket."""
        return rung_at(history, self._ladder_of(history, trial), trial, step) is not None

    def decide(self, history: History, trial: int, step: int) -> Verdict:
        """Return `asha`'s verdict within the trial's bracket."""
        ladder = self._ladder_of(history, trial)
        said = verdict(self._climbed(history), history, ladder, trial, step, self.variant)
        if not said.numbers:
            return said
        bracket = self._brackets(history).index(ladder)
        return Verdict(said.action, f"bracket {bracket}, {said.why}", {"bracket": bracket, **said.numbers})

    def next_promoted(self, history: History) -> int | None:
        """Return `asha`'s choice, from the bracket with the earliest first rung on."""
        if self.variant == "stop":
            return None
        climbed, waits = self._climbed(history), partial(is_paused, history)
        found = (promotable(climbed, history, ladder, waits) for ladder in self._brackets(history))
        return next((trial for trial in found if trial is not None), last_resort(history, waits))

    def _brackets(self, history: History) -> tuple[Ladder, ...]:
        assert history.steps is not None
        make = brackets if history.generation >= SINCE else brackets_before
        return make(self.grace, self.eta, history.steps)

    def _ladder_of(self, history: History, trial: int) -> Ladder:
        ladders = self._brackets(history)
        return ladders[in_turn(shares(len(ladders), self.eta), trial)]

    def _climbed(self, history: History) -> Climbed:
        rule = (self.grace, self.eta, history.steps)
        return climbed_by(history, rule, lambda trial: self._ladder_of(history, trial))


@lru_cache(maxsize=8)
def brackets(grace: int, eta: int, steps: int) -> tuple[Ladder, ...]:
    """Return a ladder for each number of halvings, most first: the last has none, its trials run in full.

    The most is s_max of algorithm 1, line 1: the largest s with grace * eta^s <= steps.
    """
    halvings = 0
    while grace * eta ** (halvings + 1) <= steps:
        halvings += 1
    return tuple(Ladder(grace * eta ** (halvings - s), eta, steps, s) for s in range(halvings, -1, -1))


@lru_cache(maxsize=8)
def brackets_before(grace: int, eta: int, steps: int) -> tuple[Ladder, ...]:
    """Return the brackets of generations 1 and 2: one more, unless steps are grace times a power of eta."""
    ladders = [Ladder(grace, eta, steps)]
    while ladders[-1].rungs:
        ladders.append(Ladder(ladders[-1].grace * eta, eta, steps))
    return tuple(ladders)


@lru_cache(maxsize=8)
def shares(count: int, eta: int) -> tuple[int, ...]:
    """Return the number of trials of each bracket in a round: n of algorithm 1, line 3."""
    return tuple(-(-count * eta**halvings // (halvings + 1)) for halvings in reversed(range(count)))


def in_turn(sizes: Sequence[int], trial: int) -> int:
    """Return a trial's bracket: in a round each gets its share of trials, evenly spread."""
    return _round(tuple(sizes))[trial % sum(sizes)]


@lru_cache(maxsize=8)
def _round(sizes: tuple[int, ...]) -> tuple[int, ...]:
    turns, had = [], [0] * len(sizes)
    for _ in range(sum(sizes)):
        bracket = min(range(len(sizes)), key=lambda b: ((had[b] + 0.5) / sizes[b], b))
        had[bracket] += 1
        turns.append(bracket)
    return tuple(turns)
