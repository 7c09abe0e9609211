"""a-gp-ucb: its reference, its sum and its divisor."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from raybo import methods
from raybo.common.errors import MethodError
from raybo.methods.parts.fitting import fitted
from raybo.methods.unknown_hyperparameters.shorter_lengthscales import candidates, divided, std_at_top
from raybo.record.events import Asked
from raybo.surrogate import GP, Observations, Standardised, uhe_model
from tests.methods.studies import hill, history_at, run, run_workers

KAPPA = 1.96


def flat(x):
    """Nothing to be uncertain of after a while."""
    return 1e-3 * hill(x)


def adaptive(searcher):
    return [trial.tags for trial in searcher.trials if "S" in trial.tags]


def check(tags):
    """h never falls, S sums the bounds, and h grows only where S would fall behind."""
    h, S = 1.0, 0.0
    for t, each in enumerate(tags, start=1):
        assert each["t"] == t
        assert each["reference"] == pytest.approx(t**0.9)
        assert h <= each["h"] <= 1000.0
        np.testing.assert_allclose(each["S"], S + 2 * KAPPA * each["std"], rtol=1e-12)
        np.testing.assert_allclose(np.exp(each["theta"][:-2]) / each["h"], each["lengthscale"], rtol=1e-9)
        h, S = each["h"], each["S"]


def test_a_gp_ucb_matches_the_reference():
    published = {1: 1.0, 2: 1.8661, 10: 7.9433, 50: 33.8122, 100: 63.0957}
    tags = adaptive(run("a-gp-ucb", 1, 12, hill, initial=2))
    assert {t: tags[t - 1]["reference"] for t in (1, 2, 10)} == pytest.approx(
        {t: published[t] for t in (1, 2, 10)}, abs=1e-4
    )


def test_divisors_grow_when_bounds_fall_behind():
    tags = adaptive(run("a-gp-ucb", 1, 30, hill, initial=3, seed=1))
    check(tags)
    assert tags[0]["h"] == 1.0
    assert tags[-1]["h"] > 1.0
    behind = [each for before, each in itertools.pairwise(tags) if each["h"] > before["h"]]
    assert all(each["S"] < each["reference"] + 2 * KAPPA for each in behind)
    assert tags[-1]["S"] > 0.8 * tags[-1]["reference"]  # it follows


def test_the_divisor_is_to_close_the_gap(monkeypatch):
    kind, gaps = type(methods.make("a-gp-ucb")), {}
    grown = kind._grown

    def recorded(self, fit, h, wanted, history, rng):
        gaps[len(history)] = wanted
        return grown(self, fit, h, wanted, history, rng)

    monkeypatch.setattr(kind, "_grown", recorded)
    searcher = run("a-gp-ucb", 1, 20, hill, initial=3, seed=1)
    S = {trial.number + 1: trial.tags["S"] for trial in searcher.trials if "S" in trial.tags}
    assert len(gaps) > 3
    for number, gap in gaps.items():
        assert gap == pytest.approx(searcher.trials[number].tags["reference"] - S.get(number, 0.0))


def test_norm_growth_scales_kappa_and_lengthscales():
    searcher = run("a-gp-ucb", 2, 40, flat, initial=3, seed=1, norm="growing", kappa=0.3)
    S = 0.0
    for tags in adaptive(searcher):
        np.testing.assert_allclose(tags["S"], S + 2 * 0.3 * tags["h"] * tags["std"], rtol=1e-12)
        np.testing.assert_allclose(np.exp(tags["theta"][:-2]) / np.sqrt(tags["h"]), tags["lengthscale"], rtol=1e-9)
        S = tags["S"]
    assert tags["h"] > 2.0
    assert f"divided by {np.sqrt(tags['h']):.2f}" in searcher.explain(searcher.trials[-1])


def test_several_workers_and_failures():
    tags = adaptive(run_workers("a-gp-ucb", 2, 30, 4, fail=(8,), seed=1))
    check(tags)
    assert len(tags) > 20


def test_only_lengthscales_are_divided():
    rng = np.random.default_rng(0)
    X = rng.random((7, 2))
    history = history_at(X[0], X, [hill(x) for x in X])
    fit = fitted(history, uhe_model(), rng, estimate="lengthscale=0.4/0.8")
    half = divided(fit, 2.0, history)
    np.testing.assert_allclose(half.gp.lengthscale, [0.2, 0.4], rtol=1e-12)
    assert half.gp.outputscale == fit.gp.outputscale
    assert half.tags == fit.tags
    assert divided(fit, 1.0, history) is fit
    points = candidates(fit, history, rng)
    assert points.shape == (1701, 2)
    assert std_at_top(divided(fit, 50.0, history), KAPPA, points) > std_at_top(fit, KAPPA, points)


def test_pending_trials_use_the_shorter_lengthscales():
    rng = np.random.default_rng(0)
    X, pending = rng.random((7, 2)), np.array([0.31, 0.77])
    history = history_at(X[0], X, [hill(x) for x in X])
    history.apply(Asked(7, x=pending.tolist(), tags={}))
    fit = fitted(history, uhe_model(), rng, estimate="lengthscale=0.4/0.8")
    half = divided(fit, 2.0, history).gp
    alone = GP.of(Observations.of(history.X, Standardised.of(history.y).apply(history.y)), uhe_model(), half.theta)
    points = rng.random((20, 2))
    np.testing.assert_allclose(half.posterior(points)[0], alone.posterior(points)[0], atol=1e-9)
    np.testing.assert_allclose(
        half.posterior(points)[1], alone.believing(pending[None, :]).posterior(points)[1], atol=1e-9
    )
    assert half.n == 8


@pytest.mark.parametrize("wanted", [0.0, 1.0, 2.5, 100.0])
def test_the_divisor_with_the_nearest_bound_wins(wanted):
    rng = np.random.default_rng(0)
    X = rng.random((7, 2))
    history = history_at(X[0], X, [hill(x) for x in X])
    fit = fitted(history, uhe_model(), rng, estimate="lengthscale=0.4/0.8")
    grown = methods.make("a-gp-ucb")._grown(fit, 1.21, wanted, history, np.random.default_rng(3))
    points, grid = candidates(fit, history, np.random.default_rng(3)), 1.21 * 1.1 ** np.arange(41)
    misses = [abs(wanted - 2 * KAPPA * std_at_top(divided(fit, h, history), KAPPA, points)) for h in grid]
    assert grown == pytest.approx(grid[np.argmin(misses)], rel=1e-12)


def test_a_gp_ucb_explains_its_proposals():
    method = methods.make("a-gp-ucb")
    tags = {"acquisition": "ucb", "mean": 0.5, "std": 0.1, "h": 1.0, "S": 12.0, "reference": 7.9}
    assert "length-scales as fitted; regret bounds sum to 12.0, reference 7.9" in method.explain(tags)
    assert "length-scales divided by 1.21" in method.explain({**tags, "h": 1.21})


@pytest.mark.parametrize("power", [0.0, 1.5])
def test_wrong_options_are_refused(power):
    with pytest.raises(MethodError, match=r"power must be in \(0, 1\]"):
        methods.make("a-gp-ucb", power=power)
