"""Samples of a Gaussian process: the published scales, the construction, derivatives, maxima and errors."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import qmc

import raybo
from trials.gp_samples import gp_sample, landscape, lengthscales, maximum, mean_distance, typical_lengthscale

SMOOTHED = math.log(2)


def config(x: np.ndarray) -> dict[str, float]:
    return {f"x{i}": float(value) for i, value in enumerate(x, start=1)}


@pytest.mark.parametrize(
    ("d", "distance", "lengthscale", "low", "high"),
    [
        (25, 2.033010, 0.373023, 0.522232, 0.969859),
        (50, 2.880955, 0.528606, 0.740049, 1.374376),
        (100, 4.078392, 0.748316, 1.047642, 1.945620),
    ],
)
def test_published_scales(d, distance, lengthscale, low, high):
    assert mean_distance(d) == pytest.approx(distance, abs=1e-6)
    assert typical_lengthscale(d) == pytest.approx(lengthscale, abs=1e-6)
    drawn = lengthscales(d)
    assert drawn.shape == (d,)
    assert low <= drawn.min() < low + 0.2 * (high - low)
    assert high >= drawn.max() > high - 0.2 * (high - low)


def test_two_dimensions_are_the_reference():
    assert mean_distance(2) == pytest.approx(0.545009689319, abs=1e-12)
    assert typical_lengthscale(2) == 0.1


def test_samples_are_posterior_means_at_sobol_points():
    d, index = 25, 4
    X = qmc.Sobol(d, scramble=False).random(1024)[:1000]
    assert (X == 0.5).all(axis=1).any()  # the centre is one of them
    scaled = X / lengthscales(d)
    squares = np.square(scaled).sum(axis=1)
    K = np.exp(-0.5 * np.maximum(squares[:, None] + squares[None, :] - 2 * scaled @ scaled.T, 0.0))
    y = np.linalg.cholesky(K + 1e-9 * np.eye(1000)) @ np.random.default_rng([d, index]).standard_normal(1000)
    f = landscape(d, index, SMOOTHED)
    smoothed = K @ np.linalg.solve(K + SMOOTHED * np.eye(1000), y)
    np.testing.assert_allclose(f.values, smoothed, atol=1e-8)
    np.testing.assert_allclose([f(x) for x in X[:20]], smoothed[:20], atol=1e-8)
    exact = landscape(d, index, 1e-4)
    assert np.abs(exact.values - y).max() < 0.01
    assert exact.values.max() > f.values.max()  # what smoothing takes away


def test_sample_gradients_match_finite_differences():
    f = landscape(25, 0, SMOOTHED)
    x, step = np.random.default_rng(0).random(25), 1e-5
    value, slope = f.minus_with_gradient(x)
    assert value == pytest.approx(-f(x), rel=1e-12)
    differences = [(f(x - step * axis) - f(x + step * axis)) / (2 * step) for axis in np.eye(25)]
    np.testing.assert_allclose(slope, differences, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("d", [25, 50, 100])
def test_no_point_exceeds_the_samples_maximum(d):
    f = landscape(d, 1, SMOOTHED)
    where, highest = maximum(d, 1, SMOOTHED)
    assert f(where) == pytest.approx(highest, rel=1e-12)
    assert where.min() >= 0.0
    assert where.max() <= 1.0
    rng = np.random.default_rng(d)
    elsewhere = rng.random((300, d))
    near = np.clip(where + 0.05 * rng.standard_normal((300, d)), 0.0, 1.0)
    assert max(f(x) for x in np.concatenate([elsewhere, near])) < highest
    assert f.values.max() < highest


def test_dimension_and_index_choose_the_objective():
    x = np.full(25, 0.3)
    found = {index: gp_sample(config(x), index=index, noise=0.0)["value"] for index in range(4)}
    assert len({*found.values()}) == 4
    assert gp_sample.with_settings(dimension="25", index="3", noise="0").settings == {
        "dimension": 25,
        "index": 3,
        "noise": 0.0,
    }
    assert gp_sample.with_settings(dimension=100).space.d == 100
    assert found[3] == pytest.approx(landscape(25, 3, SMOOTHED)(x), rel=1e-12)


def test_errors_are_fixed_per_configuration():
    points = np.random.default_rng(0).random((2000, 2))
    found = [gp_sample(config(x), dimension=2, noise=0.1) for x in points]
    errors = np.array([result["value"] - result["noise_free"] for result in found])
    assert errors.mean() == pytest.approx(0.0, abs=4 * 0.1 / math.sqrt(2000))
    assert errors.std() == pytest.approx(0.1, rel=4 / math.sqrt(4000))
    assert gp_sample(config(points[0]), dimension=2, noise=0.1) == found[0]
    assert gp_sample(config(points[0]), dimension=2, noise=0.0)["value"] == found[0]["noise_free"]
    assert min(result["regret"] for result in found) >= 0.0


def test_gp_sample_is_tuned():
    job = gp_sample.with_settings(dimension=25, index=3)
    searcher = raybo.Searcher(job.space, method="random", mode=job.mode, seed=0)
    for _ in range(3):
        trial = searcher.ask()
        searcher.tell(trial, job(trial.config)["value"])
    assert searcher.best.value == max(trial.value for trial in searcher.trials)
