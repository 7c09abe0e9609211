"""Plays EXP3 over two arms, in rounds that the trials' tags record.

    w = (1, 1)        p_m = (1 - gamma) w_m / (w_1 + w_2) + gamma / 2        w_arm *= exp(gamma reward / (2 p_arm))

gamma = min(1, sqrt(4 log 2 / ((e - 1) T))) for T / 2 rounds. p and gamma are those at the time of
the draw: updates then commute, and the order in which rounds end does not matter.

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
from raybo.record.events import Tags
from raybo.record.history import History
from raybo.record.states import State
from raybo.record.trial import Record, Trial
from raybo.space import Array

ARMS = 2


def learning_rate(rounds: float) -> float:
    """Return gamma for so many rounds: min(1, sqrt(K log K / ((e - 1) rounds))), K = 2 arms."""
    return min(1.0, math.sqrt(ARMS * math.log(ARMS) / ((math.e - 1.0) * rounds)))


def probabilities(log_weights: Array, gamma: float) -> Array:  # (2,) -> (2,)
    """Return the probabilities of the arms, each at least gamma / 2."""
    weights = np.exp(log_weights - log_weights.max())
    return np.asarray((1.0 - gamma) * weights / weights.sum() + gamma / ARMS)


def scaled(value: float, low: float, high: float) -> float:
    """Scale a value by the initial design's range, clipped to [0, 1]; 0 or 1 if that range has no width."""
    if not high > low:
        return 1.0 if value > high else 0.5 if value == high else 0.0
    return min(1.0, max(0.0, (value - low) / (high - low)))


def log_gain(gamma: float, p: float, reward: float) -> float:
    """Return the reward's addition to its arm's log weight: at most 1, since p is at least gamma / 2."""
    return gamma * reward / (ARMS * p)


@dataclass(frozen=True)
class Round:
    """Groups the one or two trials of an arm.

    Attributes:
        number: from 0. arm: 1 or 2.
        p, gamma: the probability and learning rate of the draw.
        single: True if there is no second trial.
        trials: those proposed, in order.
    """

    number: int
    arm: int
    p: float
    gamma: float
    single: bool
    trials: tuple[Record, ...]

    @property
    def lacks_second(self) -> bool:
        """True until its second trial is proposed."""
        return not self.single and len(self.trials) == 1

    @property
    def first_has_ended(self) -> bool:
        """True once its first trial has ended in any state."""
        return self.trials[0].has_ended

    @property
    def has_ended(self) -> bool:
        """True once all its trials have ended."""
        return not self.lacks_second and all(trial.has_ended for trial in self.trials)

    def reward(self, low: float, high: float) -> float | None:
        """The better of its values, scaled; 0 if none is finite; None if all were lost or stopped.

        A lost or stopped trial is no evidence about its point; a failed one counts against it.
        """
        if self.single or not self.has_ended:
            return None
        values = [trial.y for trial in self.trials if trial.y is not None]
        if values:
            return scaled(max(values), low, high)
        return 0.0 if any(trial.state is State.FAILED for trial in self.trials) else None


def rounds_of(history: History) -> list[Round]:
    """Return the rounds so far, in the order of their opening."""
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
    """Return both arms' log weights after all rounds that have ended."""
    logs = np.zeros(ARMS)
    for each in rounds:
        reward = each.reward(low, high)
        if reward is not None:
            logs[each.arm - 1] += log_gain(each.gamma, each.p, reward)
    return logs


def design_range(history: History) -> tuple[float, float]:
    """Return the lowest and highest value when the first round opened, or now if none has."""
    frozen = history.first_tag("range")
    if frozen is not None:
        return float(frozen[0]), float(frozen[1])
    return float(history.y.min()), float(history.y.max())


@dataclass(frozen=True)
class Turn:
    """Describes the next trial.

    Attributes:
        is_random: True for a uniform point; otherwise the acquisition chooses.
        tags: its place in the rounds.
    """

    is_random: bool
    tags: Tags


def next_turn(history: History, rng: np.random.Generator, evaluations: int, always: int | None = None) -> Turn:
    """Return the second trial of the oldest round that waits for it, or the first of a new round.

    A round's second trial depends on its first one's result; no worker waits for that: others open rounds meanwhile.
    At the planned end the missing second trials are proposed without that result, outside of their rounds: each of
    them is the acquisition's anyway, and the rewards of those rounds would never be used.

    Args:
        history: with the initial design behind it, and a finite value.
        rng: the arm is drawn from it.
        evaluations: T, planned after the design.
        always: the arm, if it is fixed instead of drawn.
    """
    rounds = rounds_of(history)
    for each in rounds:
        if each.lacks_second and each.first_has_ended:
            return Turn(False, {"round": each.number, "slot": 2, "arm": each.arm, "p": each.p})
    left = math.inf  # no plan, or more trials than planned: there is always another
    if history.planned is not None and len(history) < history.planned:
        left = history.planned - len(history)
    missing = sum(each.lacks_second for each in rounds)
    if left <= missing:
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
    if left == missing + 1:
        tags["single"] = True
    if not rounds:
        tags["range"] = [low, high]
    return Turn(arm == 1, tags)


def bandit_story(trials: Sequence[Trial]) -> Story | None:
    """Return a story of the arms' probabilities and draws; None if no arm was drawn."""
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
