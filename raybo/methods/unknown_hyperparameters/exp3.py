"""EXP3 over two arms, played in rounds that live in the trials' tags.

    w = (1, 1)        p_m = (1 - gamma) w_m / (w_1 + w_2) + gamma / 2        w_arm *= exp(gamma reward / (2 p_arm))

gamma = min(1, sqrt(4 log 2 / ((e - 1) T))) for T / 2 rounds. p and gamma are those of the draw, whatever happened
since: updates then commute, and the order in which rounds end does not matter.

    round           of the trial, from 0            slot     1 or 2, its place in the round
    arm             1 or 2                          single   the round has no second trial, and earns nothing
    p, gamma        what the arm was drawn with     range    lowest and highest value when the first round opened

Auer, Cesa-Bianchi, Freund, Schapire (2002), "The nonstochastic multiarmed bandit problem", for EXP3; Ha et al.,
arXiv:2306.06844, Algorithm 1, for rounds of two evaluations and for rewards on the scale of the initial design.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from raybo.methods.story import OverTrials, Scale, Series, Story
from raybo.record.events import State, Tags
from raybo.record.history import History
from raybo.record.trial import Record, Trial
from raybo.space import Array

ARMS = 2


def learning_rate(rounds: float) -> float:
    """gamma for so many rounds: min(1, sqrt(K log K / ((e - 1) rounds))), K = 2 arms."""
    return min(1.0, math.sqrt(ARMS * math.log(ARMS) / ((math.e - 1.0) * rounds)))


def probabilities(log_weights: Array, gamma: float) -> Array:  # (2,) -> (2,)
    """The law that the arm is drawn from; each entry is at least gamma / 2."""
    weights = np.exp(log_weights - log_weights.max())
    return np.asarray((1.0 - gamma) * weights / weights.sum() + gamma / ARMS)


def scaled(value: float, low: float, high: float) -> float:
    """A value on the scale of the initial design, clipped to [0, 1]; by comparison alone where that has no width."""
    if not high > low:
        return 1.0 if value > high else 0.5 if value == high else 0.0
    if not math.isfinite(high - low):
        value, low, high = 0.5 * value, 0.5 * low, 0.5 * high  # halves cannot overflow; of a denormal half is 0
    return min(1.0, max(0.0, (value - low) / (high - low)))


def log_gain(gamma: float, p: float, reward: float) -> float:
    """What a reward adds to the log of its arm's weight: at most 1, for p is at least gamma / 2."""
    return gamma * reward / (ARMS * p)


@dataclass(frozen=True)
class Round:
    """One or two trials that share an arm.

    Attributes:
        number: from 0. arm: 1 or 2.
        p, gamma: what the arm was drawn with.
        single: whether there is no second trial.
        trials: those asked for, the first one first.
    """

    number: int
    arm: int
    p: float
    gamma: float
    single: bool
    trials: tuple[Record, ...]

    @property
    def owes_second(self) -> bool:
        """Whether its second trial has not been asked for."""
        return not self.single and len(self.trials) == 1

    @property
    def first_has_ended(self) -> bool:
        """Whether its first trial has ended, however."""
        return self.trials[0].has_ended

    @property
    def has_ended(self) -> bool:
        """Whether all that it has have ended."""
        return not self.owes_second and all(trial.has_ended for trial in self.trials)

    def reward(self, low: float, high: float) -> float | None:
        """The better of its values, scaled; 0 where none is finite; None where nothing can be learned.

        A lost or stopped trial says nothing of its point, a failed one that the point is bad.
        """
        if self.single or not self.has_ended:
            return None
        values = [trial.y for trial in self.trials if trial.y is not None]
        if values:
            return scaled(max(values), low, high)
        return 0.0 if any(trial.state is State.FAILED for trial in self.trials) else None


def rounds_of(history: History) -> list[Round]:
    """The rounds so far, in the order of their opening."""
    found: dict[int, list[Record]] = {}
    for record in history.records:
        if "round" in record.tags:
            found.setdefault(int(record.tags["round"]), []).append(record)
    return [
        Round(
            number,
            int(trials[0].tags["arm"]),
            float(trials[0].tags["p"]),
            float(trials[0].tags["gamma"]),
            bool(trials[0].tags.get("single", False)),
            tuple(trials),
        )
        for number, trials in found.items()
    ]


def log_weights(rounds: Sequence[Round], low: float, high: float) -> Array:  # (2,)
    """Of both arms, after all rounds that have ended."""
    logs = np.zeros(ARMS)
    for each in rounds:
        reward = each.reward(low, high)
        if reward is not None:
            logs[each.arm - 1] += log_gain(each.gamma, each.p, reward)
    return logs


def design_range(history: History) -> tuple[float, float]:
    """Lowest and highest value when the first round opened, or now where none has."""
    frozen = history.first_tag("range")
    if frozen is not None:
        return float(frozen[0]), float(frozen[1])
    return float(history.y.min()), float(history.y.max())


@dataclass(frozen=True)
class Turn:
    """What the next trial is to be.

    Attributes:
        is_random: whether it is a uniform point; else the acquisition chooses.
        tags: its place in the rounds.
    """

    is_random: bool
    tags: Tags


def next_turn(history: History, rng: np.random.Generator, evaluations: int, always: int | None = None) -> Turn:
    """The second trial of the oldest round that waits for it, or the first of a new round, of whichever arm is drawn.

    A round's second trial knows its first one's result, and no worker waits for it: others open rounds meanwhile. At
    the planned end the second trials still owed are given without it, outside of their rounds: each of them is the
    acquisition's anyway, and nobody will read what those rounds would have earned.

    Args:
        history: with the initial design behind it, and a finite value.
        rng: the arm is drawn from it.
        evaluations: T, planned after the design.
        always: the arm, where it is not drawn.
    """
    rounds = rounds_of(history)
    for each in rounds:
        if each.owes_second and each.first_has_ended:
            return Turn(False, {"round": each.number, "slot": 2, "arm": each.arm, "p": each.p})
    left = math.inf  # no plan, or more trials than planned: there is always another
    if history.planned is not None and len(history) < history.planned:
        left = history.planned - len(history)
    owed = sum(each.owes_second for each in rounds)
    if left <= owed:
        return Turn(False, {"owed": True})
    low, high = design_range(history)
    gamma = learning_rate(evaluations / 2)
    tags: Tags = {"round": len(rounds), "slot": 1}
    if always is None:
        logs = log_weights(rounds, low, high)
        p = probabilities(logs, gamma)
        arm = 1 if rng.random() < p[0] else 2
        tags |= {"arm": arm, "p": float(p[arm - 1]), "gamma": gamma, "log_weights": logs.tolist()}
    else:
        arm = always
        tags |= {"arm": arm, "p": 1.0, "gamma": gamma}
    if left == owed + 1:
        tags["single"] = True
    if not rounds:
        tags["range"] = [low, high]
    return Turn(arm == 1, tags)


def bandit_story(trials: Sequence[Trial]) -> Story | None:
    """How likely each arm was, and which one was drawn; None where none was."""
    drawn = [trial for trial in trials if "log_weights" in trial.tags and "gamma" in trial.tags]
    if not drawn:
        return None
    p = [float(probabilities(np.array(trial.tags["log_weights"]), trial.tags["gamma"])[0]) for trial in drawn]
    numbers = tuple(trial.number for trial in drawn)
    series = [
        Series(numbers, tuple(p), "probability of a random point", "stands", "accent", is_share=True),
    ]
    arms = {arm: tuple(trial.number for trial in drawn if trial.tags.get("arm") == arm) for arm in (1, 2)}
    if arms[1]:
        series.append(Series(arms[1], (1.06,) * len(arms[1]), "arm 1: a random point", "marks", "muted"))
    if arms[2]:
        series.append(Series(arms[2], (-0.06,) * len(arms[2]), "arm 2: the acquisition", "marks", "main"))
    quarters = tuple((at, None) for at in (0, 0.25, 0.5, 0.75, 1))
    caption = (
        "The line is how likely EXP3 was to draw a random point, which falls as the acquisition earns more and rises "
        "as random points do; marks say "
        f"which arm was drawn ({len(arms[1])} of {len(drawn)} times the random point)."
    )
    plot = OverTrials(tuple(series), Scale("probability", (-0.13, 1.13), quarters))
    return Story("bandit", "Which way to choose", caption, (plot,), 330)
