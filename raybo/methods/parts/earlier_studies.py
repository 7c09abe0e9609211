"""Finds what earlier studies of a similar job expect of this one, and the first points that follow from it.

Each study is a Gaussian process of its normal scores. Its mean, centred and scaled to 1 over the cube, is what it
expects of a point: +2 is among the best of a hundred. Where this study varies something that the earlier one did not,
it expects the same of every value.

The first points are different bets, not the same one twice: the first is the point of which the studies expect most in
the mean; a further one is worth what it is expected to add to all that has been tried, if every study is wrong by
`WRONG` in its own way. Every three studies vouch for one that is tried whatever comes, and one more follows if these
hold (see `prior_points`); fewer than three have one, and so have those that know too little. Candidates are the best
points of each study, and neighbours of them, unless it may have been of the very same job: then its values are to be
compared.

A study's weight says how well its expectations have agreed with the results so far: Kendall's rank correlation, which
is taken for 0.5 as long as nothing is known, and squared.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import ndtr

from raybo.methods.parts.fitting import observed
from raybo.methods.parts.next_point import taken
from raybo.methods.parts.prior_points import have_further, hold, led, rule, same_job, tried_whatever_comes
from raybo.record.events import EarlierStudy, Tags
from raybo.record.history import History, Proposal
from raybo.record.origin import Origin
from raybo.record.states import State
from raybo.space import Array
from raybo.surrogate import GP, Observations, structured_model

# standard deviation of what a study's expectation of a point misses by, by the rule
WRONG = {1: 0.7, 2: 0.4, 3: 0.4, 4: 0.4}
DRAWS = 64  # of how the studies are wrong
BEST = 8  # points of each study that are candidates
NEIGHBOURS = 3  # of each of them
NEARBY = 0.05  # standard deviation of their distance along an axis
CANDIDATES = 300  # at most, of all studies
BELIEVED = 0.5, 3.0  # a study's correlation with the results before there are any, and how many results that is worth
COMPARED = 100  # results at most that a study is compared with


@dataclass(frozen=True, eq=False)
class Expectation:
    """Predicts by one earlier study.

    Attributes:
        gp: of its normal scores, over the axes that it knows.
        axes: those axes of the cube.
        centre, spread: mean and standard deviation of the posterior mean over the cube.
    """

    gp: GP
    axes: tuple[int, ...]
    centre: float
    spread: float

    @classmethod
    def of(cls, study: EarlierStudy, categorical: Sequence[bool]) -> Expectation:
        """Return what a study expects, by which axes of the cube are categorical."""
        flags = tuple(categorical[axis] for axis in study.axes)
        return _expectation(
            study.content,
            tuple(study.axes),
            tuple(map(tuple, study.points)),
            tuple(study.scores),
            tuple(study.theta),
            (study.centre, study.spread),
            flags,
        )

    def mean(self, X: Array) -> Array:  # (m, d) -> (m,)
        """Return the expected scores of points: 0 in the mean over the cube, with standard deviation 1."""
        return np.asarray((self.gp.mean(X[:, self.axes]) - self.centre) / self.spread)


@lru_cache(maxsize=128)  # a cache only
def _expectation(
    content: str,
    axes: tuple[int, ...],
    points: tuple[tuple[float, ...], ...],
    scores: tuple[float, ...],
    theta: tuple[float, ...],
    moments: tuple[float, float],
    flags: tuple[bool, ...],
) -> Expectation:
    observations = Observations.of(np.array(points), np.array(scores), flags)
    return Expectation(GP.of(observations, structured_model(flags), np.array(theta)), axes, *moments)


def expectations(history: History) -> list[Expectation]:
    """Return what each earlier study expects, in the order of `history.priors`."""
    return [Expectation.of(study, history.cube.categorical) for study in history.priors]


def weights(history: History, models: Sequence[Expectation]) -> Array:  # (s,)
    """Return the studies' weights by their agreement with the results so far; they sum to 1, unless all are 0."""
    X, y = observed(history) if len(history.y) else (np.empty((0, history.d)), np.empty(0))
    X, y = X[:COMPARED], y[:COMPARED]
    return by_agreement(np.array([model.mean(X) for model in models]).reshape(len(models), len(y)), y)


def by_agreement(expected: Array, y: Array) -> Array:  # (s, n), (n,) -> (s,)
    """Return the weights of studies that expected these scores of points whose values were y."""
    from scipy.stats import kendalltau  # slow to import

    prior, strength = BELIEVED
    n, correlations = len(y), np.zeros(len(expected))
    if n > 1 and np.ptp(y) > 0.0:
        found = [kendalltau(scores, y).statistic for scores in expected]
        correlations = np.nan_to_num(np.array(found, dtype=np.float64))
    agreement = np.maximum((n * correlations + strength * prior) / (n + strength), 0.0)
    squared = np.square(agreement)
    total = float(squared.sum())
    return squared / total if total > 0.0 else squared


def first_point(history: History, rng: np.random.Generator) -> Proposal | None:
    """Return the next of the first points, where the earlier studies expect most; None if it is not time for one."""
    if not history.priors or not _is_next(history):
        return None
    models = expectations(history)
    say = weights(history, models)
    if not say.any():
        if rule(history) == 1 or len(led(history)) >= tried_whatever_comes(history):
            return None
        say = np.full(len(models), 1.0 / len(models))
    candidates = _candidates(history, models, rng)
    if not len(candidates):
        return None
    expected = np.array([model.mean(candidates) for model in models])  # (s, m)
    worth = say @ expected
    asked = history.points(*State)
    if len(asked):
        known = np.array([model.mean(asked) for model in models])  # (s, a)
        scale = WRONG[rule(history)]
        wrong = scale * rng.standard_normal((DRAWS, len(models), len(asked)))
        best = (known[None, :, :] + wrong).max(axis=2)  # (draws, s)
        z = (expected[None, :, :] - best[:, :, None]) / scale
        gain = scale * (z * ndtr(z) + np.exp(-0.5 * np.square(z)) / math.sqrt(2.0 * math.pi))
        worth = say @ gain.mean(axis=0)
    found = int(np.argmax(worth))
    share = float(ndtr(-(say @ expected[:, found])))
    tags: Tags = {
        "origin": Origin.PRIOR.value,
        "priors": [round(weight, 2) for weight in say.tolist()],
        "best_share": round(share, 4),
    }
    return Proposal(candidates[found], tags, in_design=True)


def _is_next(history: History) -> bool:
    proposed, tried = len(led(history)), tried_whatever_comes(history)
    if same_job(history) is not None:
        return False
    return proposed < tried or (have_further(history) and proposed <= tried and hold(history) is True)


def _candidates(history: History, models: Sequence[Expectation], rng: np.random.Generator) -> Array:  # (m, d)
    """Return the best points of each study with neighbours, as they can be run, without those that are known."""
    cube = history.cube
    ordered = ~np.asarray(cube.categorical, dtype=bool)
    share = max(1, CANDIDATES // (len(models) * (1 + NEIGHBOURS)))
    found = []
    for study, model in zip(history.priors[:CANDIDATES], models[:CANDIDATES], strict=True):
        X = model.gp.X
        best = np.argsort(-model.gp.mean(X), kind="stable")[: min(BEST, share)]
        if study.results:
            found.append(X[best])
            continue
        for own in X[best]:
            points = np.where(ordered, rng.uniform(0.4, 0.6, (1 + NEIGHBOURS, cube.d)), rng.random((1, cube.d)))
            points[:, model.axes] = own
            near = rng.normal(0.0, NEARBY, (NEIGHBOURS, cube.d)) * ordered
            points[1:] += near
            found.append(np.clip(points, 0.0, 1.0))
    points = cube.snap(np.vstack(found))
    known = {point.tobytes() for point in taken(history)[0]}
    return np.array([point for point in points if point.tobytes() not in known]).reshape(-1, cube.d)
