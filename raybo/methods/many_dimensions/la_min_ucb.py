"""la-min-ucb: explores where the next move will profit most, and moves to where the value is surely good.

Fan, Wang, Ng, Hu (2024), "Minimizing UCB: a Better Local Search Strategy in Local Bayesian Optimization", NeurIPS,
Algorithm 2. Exploration maximises the expected largest lower bound after the batch; `acquisition.look_ahead` has both
forms of it. Pending points' outcomes are unknown like the batch's own, and are integrated over with them.
Departures: exploration stays within delta of the centre unless local=false, the literal algorithm, whose batch may lie
in a far corner. The centre is sent to a worker together with the batch that follows it. Continuous and ordered axes
only are explored; categories mostly stay as they start. The last planned trial is the recommendation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import ndtri

from raybo.acquisition.look_ahead import FiniteLookAhead, OneShotLookAhead
from raybo.common.options import option
from raybo.methods.many_dimensions.iterations import Iteration, explain, is_last
from raybo.methods.many_dimensions.local_search import (
    LocalOptions,
    estimated,
    last_theta,
    prediction,
    safest,
    surrogate,
    within,
)
from raybo.methods.many_dimensions.runs import is_beginning
from raybo.methods.parts.next_point import least_distance
from raybo.record.events import Tags
from raybo.record.history import History, Proposal
from raybo.solvers.box import Box
from raybo.solvers.from_starts import joint_ascent
from raybo.space import Array, scrambled_sobol
from raybo.surrogate import GP

RAW_SETS = 64  # candidate batches that are scored before climbing
NEAR_SHARE = 0.9  # this share of the inner points starts near maxima of the present bound
NEAR_SD = 0.02  # standard deviation of those starts around the maxima
INNER_WINDOW = 8  # window points in the finite set
INNER_RANDOM = 10  # random points in the finite set
INNER_SHARES = (1.0, 0.5, 0.0)  # the finite set has local maxima of bounds with these multiples of beta
CANDIDATES = 256  # raw candidates of an exploration point over the finite set
FINITE_CLIMBS = 3  # climbs from the best of those candidates
ATTEMPTS = 16  # tries to find a free point beside one that is taken


@dataclass(frozen=True, kw_only=True)
class LaMinUcb(LocalOptions):
    """Local search that looks one move ahead: explores where the best pessimistic value is expected to gain most.

    Fan, Wang, Ng, Hu (2024), "Minimizing UCB: a Better Local Search Strategy in Local Bayesian Optimization", NeurIPS.
    """

    batch: int | None = option(4, "exploration points per iteration", at_least=1)
    beta: float = option(
        3.0, "standard deviations of pessimism, in the move and in what is looked ahead to", at_least=0
    )
    look_ahead: Literal["one-shot", "finite"] = option(
        "one-shot", "all points of a batch jointly, or (finite) one after another, exactly over a finite set of moves"
    )
    samples: int | None = option(
        None, "imagined outcomes of the one-shot form; none: 16, or 8 beyond 25 axes", at_least=1
    )
    restarts: int = option(5, "climbs of the one-shot form", at_least=1)
    local: bool = option(True, "explore within delta of the centre; false for the whole cube, as published")

    def propose(self, history: History, rng: np.random.Generator) -> Proposal:
        """Return the iteration's next point, or the move that begins the next one."""
        now = Iteration.of(history)
        if now is None or is_beginning(history):
            return self.begin(history, rng)
        if now.is_over(1 + self.batch_size(history), self.quorum) or is_last(history, now):
            if (first := self.another_run(history, now, rng)) is not None:
                return first
            gp = surrogate(history, self, last_theta(history, self))
            found, _, _ = safest(gp, self.beta, history, now.centre, self.delta, rng)  # x_{t+1} = argmin UCB
            return now.moves_to(found.x, prediction(gp, found.x))
        chosen = chosen_before(now)
        if chosen is not None:
            return now.explores(chosen, {})
        theta, tags = estimated(history, self, now)
        gp = surrogate(history, self, theta)
        if self.look_ahead == "finite":
            return now.explores(self._finite(gp, history, now, rng), tags)
        batch, gain = self._one_shot(gp, history, now, rng)  # Z
        batch = set_apart(batch, history.X_pending, self._box(history, now), rng)
        batch = np.array([history.cube.led_back(x) for x in batch])
        return now.explores(batch[0], {"gain": gain, "batch": batch[1:].tolist(), **tags})

    def _one_shot(self, gp: GP, history: History, now: Iteration, rng: np.random.Generator) -> tuple[Array, float]:
        """Return the batch (b, d) and the expected rise of the highest bound after it."""
        b, d = self.batch_size(history), history.d
        count = (16 if d <= 25 else 8) if self.samples is None else self.samples
        present, ends, bounds = safest(gp, self.beta, history, now.centre, self.delta, rng)
        pending = history.X_pending
        objective = OneShotLookAhead(gp, self.beta, normal_vectors(count, b + len(pending), rng), pending)
        box = self._box(history, now)
        starts = np.concatenate(
            [
                box.outwards(rng.random((RAW_SETS, b, d))),
                near(ends, bounds, NEAR_SHARE, (RAW_SETS, count, d), rng),
            ],
            axis=1,
        )
        categorical = np.array(history.cube.categorical)
        starts[:, :, categorical] = now.centre[categorical]  # categories have no gradient

        def value_and_gradient(U: Array) -> tuple[Array, Array]:  # (r, k) -> (r,), (r, k)
            points = U.reshape(len(U), b + count, d)
            value, dZ, dX = objective.value_and_gradient(points[:, :b], points[:, b:])
            return value, np.concatenate([dZ, dX], axis=1).reshape(len(U), -1)

        flat = starts.reshape(RAW_SETS, -1)
        scores = np.concatenate([value_and_gradient(flat[i : i + 8])[0] for i in range(0, RAW_SETS, 8)])
        best = np.argsort(-scores, kind="stable")[: self.restarts]
        low = np.concatenate([np.tile(box.low, b), np.zeros(count * d)])
        high = np.concatenate([np.tile(box.high, b), np.ones(count * d)])
        found, values = joint_ascent(value_and_gradient, np.clip(flat[best], low, high), low, high)
        top = int(np.argmax(values))
        return found[top].reshape(b + count, d)[:b], float(values[top]) - present.value

    def _finite(self, gp: GP, history: History, now: Iteration, rng: np.random.Generator) -> Array:  # (d,)
        """Return one point; pending and earlier points are believed at their mean, which is exact for variances."""
        ends = [safest(gp, share * self.beta, history, now.centre, self.delta, rng)[1] for share in INNER_SHARES]
        mean, var = gp.posterior(gp.X)
        top = np.argsort(self.beta * np.sqrt(var) - mean, kind="stable")[:INNER_WINDOW]
        box = self._box(history, now)
        inner = np.concatenate(
            [*ends, gp.X[top], history.cube.snap(box.outwards(rng.random((INNER_RANDOM, history.d))))]
        )
        _, distinct = np.unique(np.round(inner, 3), axis=0, return_index=True)
        worth = FiniteLookAhead(gp.believing(history.X_pending), self.beta, inner[distinct])
        return within(worth, box, history, rng, size=CANDIDATES, starts=FINITE_CLIMBS).x

    def _box(self, history: History, now: Iteration) -> Box:
        return Box.around(history.cube, now.centre, self.delta if self.local else 1.0)

    def explain(self, tags: Tags) -> str:
        """Explain the phase and the point's prediction."""
        return explain(tags)


def chosen_before(now: Iteration) -> Array | None:  # (d,)
    """Return the next point of the iteration's last batch; None if none is left."""
    which = [i for i, record in enumerate(now.own) if "batch" in record.tags]
    if not which:
        return None
    used, batch = len(now.own) - 1 - which[-1], now.own[which[-1]].tags["batch"]
    return np.array(batch[used], dtype=np.float64) if used < len(batch) else None


def set_apart(batch: Array, pending: Array, box: Box, rng: np.random.Generator) -> Array:  # (b, d)
    """Return the batch with duplicates of earlier or pending points moved a little."""
    apart = least_distance(batch.shape[1])
    taken = pending
    for x in batch:
        for _ in range(ATTEMPTS):
            if not (np.square(taken - x).sum(axis=1) < apart**2).any():
                break
            aside = box.outwards(rng.random((1, len(x))))[0] - x
            x = x + 2.0 * apart * aside / max(float(np.linalg.norm(aside)), apart)
        taken = np.vstack([taken, x])
    return taken[len(pending) :]


def normal_vectors(count: int, dimension: int, rng: np.random.Generator) -> Array:  # (count, dimension)
    """Return standard normal vectors from a scrambled Sobol sequence."""
    return np.asarray(ndtri(np.clip(scrambled_sobol(count, dimension, rng), 1e-10, 1.0 - 1e-10)))


def near(ends: Array, bounds: Array, share: float, shape: tuple[int, int, int], rng: np.random.Generator) -> Array:
    """Draw starts of inner points: most near local maxima of the bound, weighted by height; the rest uniform."""
    spread = float(bounds.std())
    weights = np.exp(2.0 * (bounds - bounds.max()) / (spread if spread > 0.0 else 1.0))
    picked = ends[rng.choice(len(ends), size=shape[:2], p=weights / weights.sum())]
    beside = np.clip(picked + NEAR_SD * rng.standard_normal(shape), 0.0, 1.0)
    return np.where(rng.random((*shape[:2], 1)) < share, beside, rng.random(shape))
