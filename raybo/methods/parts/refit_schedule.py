"""For which trials hyperparameters are estimated, and where a fit starts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from raybo.record.history import History
from raybo.space import Array
from raybo.surrogate import Model, Observations

Fit: TypeAlias = Callable[[Observations, Model], Array]  # from what is observed to hyperparameters (p,)

AFRESH = 10  # trials between fits that also start from nothing, as a warm start may stay in a poor maximum
REFIT_SHARE = 100  # from twice as many observations on, a fit is kept until they have grown by a hundredth


def last_estimate(history: History, model: Model, d: int, tag: str = "theta") -> Array | None:  # (p,)
    """The hyperparameters in the newest trial's tag, where they can be this model's of d axes."""
    last = history.last_tag(tag)
    return None if last is None or len(last) != model.size(d) else np.array(last)


def is_kept(history: History, n: int) -> bool:
    """Return True if a fit to n observations is kept for this trial."""
    return n >= 2 * REFIT_SHARE and len(history) % (n // REFIT_SHARE) > 0


def starts_of_fit(
    history: History, model: Model, d: int, last: Array | None, given: Sequence[Array] = ()
) -> list[Array]:
    """Return the starts of a fit: the last one, the given ones, and every tenth trial the model's own."""
    default = [model.start(d)]
    if last is None:
        return list(given) or default
    if given:
        return [last, *given]
    return [last] if len(history) % AFRESH else [last, *default]
