"""Reads the current iteration of a local method from the tags of the trials so far.

An iteration t of gibo, mpd, min-ucb and la-min-ucb evaluates its centre x_t, then the most informative points near it,
and then moves. A proposal is one point, so the phase is in the tags:

    iteration    t, on every trial; the trials with the last one are the iteration's own
    role         "centre" or "explore"
    centre       x_t, on the first trial of the iteration; relaxed, while the trial's point is one that can be run
    theta        hyperparameters, on the trial at which they were estimated: once per iteration, before it explores

Workers: the iteration moves when as many of its own trials have ended as it has points (or the quorum of these); a
worker that is free before that explores, so that nobody waits for a straggler. Failed trials end too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from raybo.methods.parts.fitted_model import prediction_in_words
from raybo.methods.story import OverTrials, PathInSpace, Scale, Series, Story, is_point
from raybo.record.events import Tags
from raybo.record.history import History, Proposal
from raybo.record.states import COUNTED, State
from raybo.record.trial import Record, Trial
from raybo.space import Array

ROUNDING = 1e-12  # smaller differences, relative to the largest value, count as rounding


@dataclass(frozen=True)
class Iteration:
    """One iteration, read from a history.

    Attributes:
        number: from 1. centre: (d,), x_t. own: its trials, in the order of proposal.
    """

    number: int
    centre: Array
    own: tuple[Record, ...]

    @classmethod
    def of(cls, history: History) -> Iteration | None:
        """Return the current iteration; None before the first."""
        number, centre = history.last_tag("iteration"), history.last_tag("centre")
        if number is None or centre is None:
            return None
        own = tuple(record for record in history.records if record.tags.get("iteration") == number)
        return cls(int(number), np.array(centre, dtype=np.float64), own)

    def asked(self, role: str) -> int:
        """Count its trials of that role."""
        return sum(record.tags.get("role") == role for record in self.own)

    def is_over(self, size: int, quorum: float) -> bool:
        """Return True if it may move: it has proposed `size` trials, and the quorum of so many have ended."""
        ended = sum(record.has_ended for record in self.own)
        return len(self.own) >= size and ended >= math.ceil(quorum * size)

    @property
    def theta(self) -> list[float] | None:
        """The hyperparameters estimated in it; None until then."""
        return next((record.tags["theta"] for record in self.own if "theta" in record.tags), None)

    def explores(self, x: Array, tags: Tags) -> Proposal:
        """Return the proposal of an exploration point."""
        return Proposal(x, {"iteration": self.number, "role": "explore", **tags})

    def again(self) -> Proposal:
        """Return a proposal of the centre once more."""
        return Proposal(self.centre, {"iteration": self.number, "role": "centre"})

    def moves_to(self, centre: Array, tags: Tags) -> Proposal:
        """Return the first trial of the next iteration, at a centre within the cube."""
        moved = float(np.linalg.norm(centre - self.centre))
        entered = {"iteration": self.number + 1, "role": "centre", "centre": centre.tolist(), "moved": moved}
        return Proposal(centre, {**entered, **tags})


def is_flat(trials: Sequence[Record]) -> bool:
    """Return True if its ended trials, two at least, all failed or have equal values up to rounding."""
    outcomes = [record.y for record in trials if record.state in COUNTED and record.has_ended]
    values = [y for y in outcomes if y is not None]
    if len(outcomes) < 2 or 0 < len(values) < len(outcomes):
        return False
    return not values or max(values) - min(values) <= ROUNDING * max(map(abs, values))


def is_last(history: History, now: Iteration) -> bool:
    """Return True if a planned study has one trial left, and the iteration has a value to recommend by."""
    is_known = any(record.state is State.FINISHED for record in now.own)
    return history.planned is not None and len(history) == history.planned - 1 and is_known


def explain(tags: Tags) -> str:
    """Explain the phase and the point's prediction."""
    if "design" in tags:
        point = "a design point (Sobol)"
        return point if tags["design"] == 1 else f"restarted elsewhere, as nothing differed: {point}"
    if "iteration" not in tags:
        return "a trial outside any iteration"
    t = tags["iteration"]
    if tags["role"] == "explore":
        left = f": leaves {tags['trace']:.3g} of the gradient's variance" if "trace" in tags else ""
        return f"iteration {t}: explores around the centre{left}"
    if "moved" not in tags:
        return f"iteration {t}: the centre" if t == 1 or "centre" not in tags else f"iteration {t}: a new start"
    expected = f", {prediction_in_words(tags)}" if "mean" in tags else ""
    return f"iteration {t}: the centre, moved by {tags['moved']:.3g}{expected}"


@dataclass(frozen=True, kw_only=True)
class AroundCentre:
    """Derives the recommendation and the story of a path from the tags' centres."""

    def recommendation(self, tags: Tags) -> Array | None:  # (d,)
        """Return the centre, on the trial that moved to it and later ones."""
        return np.array(tags["centre"], dtype=np.float64) if "centre" in tags else None

    def story(self, trials: Sequence[Trial], names: Sequence[str]) -> Story | None:
        """Return a story of the centre's path; None if it has not moved."""
        found: list[tuple[int, Array]] = []
        for trial in trials:
            if not is_point(trial.tags.get("centre"), len(names)):
                continue
            point = np.array(trial.tags["centre"], dtype=np.float64)
            if not found or not np.array_equal(found[-1][1], point):
                found.append((trial.number, point))
        if len(found) < 2:
            return None
        numbers, centres = tuple(number for number, _ in found), np.array([centre for _, centre in found])
        moved = np.linalg.norm(np.diff(centres, axis=0), axis=1)
        steps = Series(numbers[1:], tuple(moved.tolist()), "step", "moves", "main")
        of = "" if len(names) <= 2 else ", over the two parameters along which it went farthest"
        caption = (
            f"Left, the path of the local search's centre from light to dark{of}; right, how far each move went: steps "
            "that shrink mean that the search has settled."
        )
        right = OverTrials((steps,), Scale("step, in sides of the unit cube", from_zero=True))
        plots = (PathInSpace("centre", numbers, centres), right)
        return Story("local-path", "The path of the local search", caption, plots, 430)
