"""Starts a local method at the best point of a small design, and restarts it elsewhere once it is stuck.

A run is a design, a first centre at the best of it, and the iterations from there. If all values of an
iteration are equal there is no slope to follow, and if a quarter of the trials has brought nothing better the run has
stagnated: the next one begins. The tags number it:

    design    r, on the design points of run r
    run       r, on the first trial of run r's first iteration

Without a tag `run` a study never restarts, and once it has an iteration its first design is over. So a study of
raybo 0.1, which has no design, continues unchanged.

Workers: a design lasts until as many trials have ended as it has points; until then workers get further points.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, cast

import numpy as np

from raybo.common.options import option
from raybo.methods.many_dimensions.iterations import Iteration, is_flat
from raybo.methods.method import Method
from raybo.methods.parts.initial_design import sobol_proposal
from raybo.record.events import Tags
from raybo.record.history import History, Proposal
from raybo.record.states import State
from raybo.space import Array

Start = Literal["best", "sobol", "centre"]
DESIGN = 25  # a design has at most so many points
SHARE = 4  # a design takes at most 1 / SHARE of the planned trials
LEAST = 10  # a run is given up after at least so many trials without improvement
FEW = 10  # trials per axis: with fewer a local search hardly moves, and its start matters more


@dataclass(frozen=True, kw_only=True)
class RunOptions(Method):
    """Holds the options of a run's start, which gibo, mpd, min-ucb, la-min-ucb and ars share."""

    start: Start = option(
        "best", "the first centre: the best known result, a Sobol point (sobol), or the cube's centre (centre)"
    )
    initial: int | None = option(
        None,
        "Sobol points before the first centre; none: 25, at most a quarter of the trials (with fewer than 10 trials "
        "per axis: 50, at most half), or 0 unless start=best",
        at_least=0,
    )
    restart: bool = option(
        True,
        "restart elsewhere once an iteration has seen no difference or only noise, or a quarter of the trials has "
        "brought the run no improvement",
    )

    def design_size(self, history: History) -> int:
        """Return the number of points of a run's design."""
        if self.initial is not None:
            return self.initial
        if self.start != "best":
            return 0
        if history.planned is None:
            return DESIGN
        if history.planned < FEW * history.d:
            return min(2 * DESIGN, history.planned // 2)
        return min(DESIGN, history.planned // SHARE)

    def begin(self, history: History, rng: np.random.Generator) -> Proposal:
        """Return the next point of a run's design, or its first centre; known results count for the design of run 1."""
        run = 1 + history.last_tag("run", 0)
        own = [record for record in history.records if run == 1 or record.tags.get("design") == run]
        if sum(record.has_ended for record in own) < self.design_size(history):
            point = sobol_proposal(history, rng)
            return replace(point, tags={**point.tags, "design": run})
        tags: Tags = {"run": run} if self.restart else {}
        finished = [record for record in own if record.state is State.FINISHED]
        number = 1 + history.last_tag("iteration", 0)
        if run == 1 and self.start == "centre":
            return entered(history, np.full(history.d, 0.5), number, tags)
        if (run == 1 and self.start == "sobol") or not finished:
            return new_start(history, rng, number, tags)
        return entered(history, max(finished, key=lambda record: cast(float, record.y)).x, number, tags)

    def is_stuck(self, history: History, now: Iteration) -> bool:
        """Return True if a new run is to begin: the ended iteration has only equal values, or the run stagnates."""
        run = history.last_tag("run")
        if not self.restart or run is None:
            return False
        has_room = history.planned is None or history.planned - len(history) > self.design_size(history)
        return is_flat(now.own) or (has_room and is_stagnant(history, run))


def is_beginning(history: History) -> bool:
    """Return True if a run after the first has begun its design, but no iteration."""
    return bool(history.last_tag("design", 0) > max(1, history.last_tag("run", 0)))


def is_stagnant(history: History, run: int) -> bool:
    """Return True if a quarter of the planned trials, or 100 if none are planned, brought the run nothing better."""
    records = history.records
    of_design = (i for i, record in enumerate(records) if record.tags.get("design") == run)
    start = next(i for i, record in enumerate(records) if record.tags.get("run") == run)
    first = 0 if run == 1 else min(of_design, default=start)
    values = [-math.inf if record.y is None else record.y for record in records[first:]]
    since = first + max(int(np.argmax(values)) + 1, start - first)
    fruitless = sum(record.has_ended for record in records[since:])
    return fruitless >= (SHARE * DESIGN if history.planned is None else max(LEAST, history.planned // SHARE))


def new_start(history: History, rng: np.random.Generator, number: int, tags: Tags | None = None) -> Proposal:
    """Return the first trial of an iteration at the study's next Sobol point."""
    point = sobol_proposal(history, rng)
    return replace(entered(history, point.x, number, {**point.tags, **(tags or {})}), in_design=True)


def entered(history: History, x: Array, number: int, tags: Tags) -> Proposal:  # (d,)
    """Return the first trial of an iteration whose centre no earlier iteration chose."""
    x = history.cube.snap(x[None, :])[0]
    return Proposal(x, {"iteration": number, "role": "centre", "centre": x.tolist(), **tags})
