"""The use of a space's guesses by `auto`, `ei` and `gp-ucb`.

The first trial is at the guesses, whatever the method, and those after it at the next guesses; `Searcher` sees to that.
After them, every other point of the initial design is drawn from the belief in the guesses; then the belief weights the
acquisition, less and less (`acquisition.guess_weight`).

The belief is in the best of the guesses and the next guesses so far. It is set aside while results contradict it: while
the best of them and the trials that it led to are worse, in the median, than the others of the design. This rule is
ours: with it, a wrong guess costs a few trials, wherever it lies.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from raybo.acquisition import Acquisition
from raybo.acquisition.guess_weight import Belief, Believing
from raybo.record.history import History, Proposal
from raybo.record.origin import NEXT_GUESS, Origin, origin_of
from raybo.record.states import State
from raybo.record.trial import Record
from raybo.space.cube import Cube

PLANNED = 50  # trials, where nobody said how many
SHARE = 10  # of the planned trials, one of so many is beta
OTHERS = 2  # results of trials that the belief did not lead to, from which on it may be contradicted


def design_by_guess(history: History, point: Proposal) -> Proposal:
    """A point of the design as it is, or every other time drawn to where the best is guessed to lie."""
    belief = held(history)
    if belief is None or history.count_tag("sobol") % 2 == 0:  # the guesses themselves came before
        return point
    return replace(point, x=history.cube.led_back(belief.drawn(point.x)), tags={**point.tags, "by_guess": True})


def held(history: History) -> Belief | None:
    """The belief in the best of a space's guesses; None where there are none, or results contradict it."""
    if not any(history.cube.guessed):
        return None
    finished = [record for record in history.records if record.state is State.FINISHED]
    y, feasible = history.y, history.feasible
    turns = {i: turn for i, record in enumerate(finished) if (turn := _turn(history.cube, record)) is not None}
    best = max(turns, key=lambda i: (feasible[i], y[i]), default=None)
    led = [y[i] for i, record in enumerate(finished) if i == best or "by_guess" in record.tags]
    others = [y[i] for i, record in enumerate(finished) if "sobol" in record.tags and "by_guess" not in record.tags]
    if led and len(others) >= OTHERS and np.median(led) < np.median(others):
        return None
    return Belief.of(history.cube, 0 if best is None else turns[best])


def _turn(cube: Cube, record: Record) -> int | None:
    """At which of the guesses a trial is, from 0; None if at none. With next ones, the user's own trials count too."""
    if record.tags.get("origin") == Origin.GUESSED:
        return int(record.tags.get(NEXT_GUESS, 0))
    if cube.guess is None or cube.turns == 1 or origin_of(record.tags) not in (Origin.ADDED, Origin.ENQUEUED):
        return None
    points = [cube.guess, *cube.next_guesses]
    return next((turn for turn, x in enumerate(points) if np.array_equal(record.x, x)), None)


def believing(acquisition: Acquisition, history: History) -> Acquisition:
    """An acquisition, drawn to where the best is guessed to lie; as it is where there is no such belief."""
    belief = held(history)
    if belief is None:
        return acquisition
    beta = (PLANNED if history.planned is None else history.planned) / SHARE
    return Believing(acquisition, belief, beta / max(1, history.count(State.FINISHED)))
