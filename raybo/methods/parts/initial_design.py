"""The initial design: its size and its points."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from raybo.methods.parts.prior_points import misled
from raybo.record.events import Tags
from raybo.record.history import History, Proposal
from raybo.space import LARGEST_DIMENSION, Array, Cube, scrambled_sobol

MIDDLE = 0.4, 0.6  # of each axis; not quite the same point in every study
LONGEST_SEQUENCE = 1 << 14  # of which points that break no rule are looked for


def sobol_proposal(history: History, rng: np.random.Generator) -> Proposal:
    """The next point of one scrambled Sobol sequence per study; the scramble's seed lives in the tag `sobol`."""
    seed = history.first_tag("sobol")
    if seed is None:
        seed = int(rng.integers(2**31))
    index = history.count_tag("sobol")
    if history.d > LARGEST_DIMENSION:
        return Proposal(uniform(history, rng), {"sobol": seed}, in_design=True)
    if history.cube.is_ruled:
        return Proposal(_allowed_point(history.cube, seed, index), {"sobol": seed}, in_design=True)
    return Proposal(_sobol_point(history.d, seed, index), {"sobol": seed}, in_design=True)


def middle_proposal(history: History, rng: np.random.Generator) -> Proposal:
    """A point in the middle of the space."""
    return Proposal(rng.uniform(*MIDDLE, history.d), {"middle": True}, in_design=True)


def uniform(history: History, rng: np.random.Generator) -> Array:  # (d,)
    """A uniform point of those that can be run."""
    point: Array = history.cube.uniform(rng, 1)[0]
    return point


def _allowed_point(cube: Cube, seed: int, index: int) -> Array:  # (d,)
    """The next point of the sequence that breaks no rule; where that is a rare thing, a uniform one."""
    block = max(64, 1 << index.bit_length())
    while block <= LONGEST_SEQUENCE:
        points = _sobol_block(cube.d, seed, block)
        allowed = points[cube.allows(points)]
        if len(allowed) > index:
            point: Array = allowed[index]
            return point
        block *= 4
    return np.asarray(cube.uniform(np.random.default_rng([seed, index]), 1)[0])


def _sobol_point(d: int, seed: int, index: int) -> Array:  # (d,)
    block = max(64, 1 << index.bit_length())
    point: Array = _sobol_block(d, seed, block)[index]
    return point


@lru_cache(maxsize=4)  # a cache only: the sequence is a function of its seed
def _sobol_block(d: int, seed: int, size: int) -> Array:  # (size, d)
    return scrambled_sobol(size, d, np.random.default_rng(seed))


def design_size(history: History, published: int, given: int | None) -> int:
    """Return the size of the initial design: as given; else as published, but at most a quarter of all trials.

    A design as long as the papers' would leave a user's short study without a single modelled point. A quarter may be
    raised to d + 1, the fewest that show every axis, as long as that is at most a half. Points that earlier studies
    have led to in vain come on top.
    """
    size = published if given is None else given
    if given is None and history.planned is not None:
        size = max(1, min(published, history.planned // 4), min(history.d + 1, history.planned // 2))
    return size + misled(history)


def is_in_design(history: History, published: int, given: int | None) -> bool:
    """Return True if the next trial belongs to the design: fewer have been asked for, or none has a value yet."""
    return len(history) < design_size(history, published, given) or len(history.y) == 0


def explain_design(tags: Tags) -> str:
    """Return the reason for a point of the design; empty if these are not the tags of one."""
    if "by_guess" in tags:
        return "initial design (Sobol, drawn to where the best is guessed to lie)"
    return "initial design (Sobol)" if "sobol" in tags else ""
