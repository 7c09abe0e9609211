"""ars: augmented random search, finite differences along random directions without any model.

Mania, Guy, Recht (2018), "Simple random search of static linear policies is competitive for reinforcement learning",
NeurIPS, Algorithm 1 (V1; normalising states, its V2, belongs into the objective).

    theta <- theta + alpha / (k sigma) sum over the k best directions of (r+ - r-) delta

Workers: a direction's two trials are asked for one after the other. A worker that asks while all of an iteration's are
in flight gets a further direction from the same theta, and the first N directions whose two trials have ended make the
step, so that nobody waits; what comes later belongs to an old theta and is dropped. Failed trials count as the worst
value of the iteration.
Departures: points are clipped to the cube. Discrete coordinates, categories too, are those nearest to the real ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from raybo.common.options import option
from raybo.methods.many_dimensions.iterations import AroundCentre, Iteration, explain
from raybo.methods.many_dimensions.runs import RunOptions, is_beginning
from raybo.record.events import Tags
from raybo.record.history import History, Proposal
from raybo.record.trial import Record
from raybo.space import Array
from raybo.surrogate import Standardised


@dataclass(frozen=True, kw_only=True)
class Ars(AroundCentre, RunOptions):
    """Random search with finite differences along the best of some random directions.

    Mania, Guy, Recht (2018), "Simple random search of static linear policies is competitive for reinforcement
    learning", NeurIPS.
    """

    alpha: float = option(0.02, "step length for a slope of one standard deviation, in sides of the cube", above=0)
    nu: float = option(0.05, "standard deviation of the trials about the centre, in sides of the cube", above=0)
    directions: int | None = option(None, "directions per iteration, N; none: 1 + d // 8", at_least=1)
    top: int | None = option(None, "best directions that make the step; none: all", at_least=1)

    def propose(self, history: History, rng: np.random.Generator) -> Proposal:
        """Return the other side of the last direction, or one side of a new one; after a step if enough have ended."""
        now = Iteration.of(history)
        if now is None or is_beginning(history):
            return self._first(history, rng)
        pairs = ended_pairs(now)
        if len(pairs) >= (1 + history.d // 8 if self.directions is None else self.directions):
            if self.is_stuck(history, now):
                return self._first(history, rng)
            centre = history.cube.led_back(np.clip(now.centre + self._step(now, pairs), 0.0, 1.0))
            moved = float(np.linalg.norm(centre - now.centre))
            tags = {"centre": centre.tolist(), "moved": moved}
            return self._side(now.number + 1, centre, int(rng.integers(2**31)), 1, tags)
        last = now.own[-1].tags
        if last["side"] == 1:
            return self._side(now.number, now.centre, last["direction"], -1, {})
        return self._side(now.number, now.centre, int(rng.integers(2**31)), 1, {})

    def _first(self, history: History, rng: np.random.Generator) -> Proposal:
        first = self.begin(history, rng)
        if "design" in first.tags:
            return first
        centre, number = np.array(first.tags["centre"]), first.tags["iteration"]
        side = self._side(number, centre, int(rng.integers(2**31)), 1, first.tags)
        return replace(side, in_design=first.in_design)

    def _side(self, number: int, centre: Array, direction: int, side: int, tags: Tags) -> Proposal:
        x = np.clip(centre + side * self.nu * delta(direction, len(centre)), 0.0, 1.0)
        return Proposal(x, {**tags, "iteration": number, "role": "explore", "direction": direction, "side": side})

    def _step(self, now: Iteration, pairs: dict[int, tuple[Record, Record]]) -> Array:  # (d,)
        finished = [record.y for record in now.own if record.y is not None]
        if not finished:
            return np.zeros_like(now.centre)
        worst = min(finished)
        returns = np.array([[worst if r.y is None else r.y for r in pair] for pair in pairs.values()])  # (N, 2): +, -
        kept = np.argsort(-returns.max(axis=1), kind="stable")[: self.top]
        # equal values differ by 0, so the step is 0 for any divisor
        scaled = Standardised.of(returns[kept].ravel()).apply(returns[kept])
        directions = np.array([delta(seed, len(now.centre)) for seed in np.array(list(pairs))[kept].tolist()])
        return np.asarray(self.alpha / len(kept) * ((scaled[:, 0] - scaled[:, 1]) @ directions))

    def explain(self, tags: Tags) -> str:
        """Explain the iteration and the side."""
        if "side" not in tags:
            return explain(tags)
        moved = f", moved by {tags['moved']:.3g}" if "moved" in tags else ""
        side = "+" if tags["side"] > 0 else "-"
        return f"iteration {tags['iteration']}: {side} side of a random direction about the centre{moved}"


def delta(seed: int, d: int) -> Array:  # (d,)
    """Return the standard normal direction of that seed."""
    return np.random.default_rng(seed).standard_normal(d)


def ended_pairs(now: Iteration) -> dict[int, tuple[Record, Record]]:
    """Return the directions of which both sides have ended, with their trials, + first, in the order of proposal."""
    sides: dict[int, dict[int, Record]] = {}
    for record in now.own:
        if record.has_ended:
            sides.setdefault(record.tags["direction"], {})[record.tags["side"]] = record
    return {direction: (both[1], both[-1]) for direction, both in sides.items() if len(both) == 2}
