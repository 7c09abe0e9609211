"""The use of a space's guesses by `auto`, `ei` and `gp-ucb`.

The first trial is at the guesses, whatever the method, and the second at the next guesses if there are any; `Searcher`
sees to that. After them, every other point of the
initial design is drawn from the belief in the guesses; then the belief weights the acquisition, less and less
(`acquisition.guess`).

The belief is set aside while results contradict it: while the trials that it led to are worse, in the median, than the
others of the design. This rule is ours: with it, a wrong guess costs a few trials, wherever it lies.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from raybo.acquisition import Acquisition
from raybo.acquisition.guess_weight import Belief, Believing
from raybo.record.history import History, Proposal
from raybo.record.origin import NEXT_GUESS, Origin
from raybo.record.states import State

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
    """The belief in a space's guesses; None where there are none, or results contradict it."""
    belief = Belief.of(history.cube)
    if belief is None:
        return None
    led, others = [], []
    for record in history.records:
        if record.state is State.FINISHED:
            is_first = record.tags.get("origin") == Origin.GUESSED and NEXT_GUESS not in record.tags
            is_led = is_first or "by_guess" in record.tags
            if is_led:
                led.append(record.y)
            elif "sobol" in record.tags:
                others.append(record.y)
    if led and len(others) >= OTHERS and np.median(np.array(led)) < np.median(np.array(others)):
        return None
    return belief


def believing(acquisition: Acquisition, history: History) -> Acquisition:
    """An acquisition, drawn to where the best is guessed to lie; as it is where there is no such belief."""
    belief = held(history)
    if belief is None:
        return acquisition
    beta = (PLANNED if history.planned is None else history.planned) / SHARE
    return Believing(acquisition, belief, beta / max(1, history.count(State.FINISHED)))
