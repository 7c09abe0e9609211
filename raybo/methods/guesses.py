"""What a method makes of a space's guesses: `auto`, `ei` and `gp-ucb` use them so.

The first trial is at the guesses, whatever the method; `Searcher` sees to it. After it every other point of the initial
design is drawn by the belief in them, and then the belief weighs the acquisition, less and less (`acquisition.guess`).
"""

from __future__ import annotations

from raybo.acquisition import Acquisition
from raybo.acquisition.guess import Belief, Believing
from raybo.events import State
from raybo.history import History, Proposal

PLANNED = 50  # trials, where nobody said how many
SHARE = 10  # of the planned trials, one of so many is beta


def design_by_guess(history: History, point: Proposal) -> Proposal:
    """A point of the design as it is, or every other time drawn to where the best is guessed to lie."""
    belief = Belief.of(history.cube)
    if belief is None or history.count_tag("sobol") % 2:
        return point
    return Proposal(history.cube.led_back(belief.drawn(point.x)), {**point.tags, "by_guess": True})


def believing(acquisition: Acquisition, history: History) -> Acquisition:
    """An acquisition, drawn to where the best is guessed to lie; as it is where nothing is guessed."""
    belief = Belief.of(history.cube)
    if belief is None:
        return acquisition
    beta = (PLANNED if history.planned is None else history.planned) / SHARE
    return Believing(acquisition, belief, beta / max(1, history.count(State.FINISHED)))
