"""Sobol' indices match closed forms, and the surrogate's match the function that it was fitted to."""

from __future__ import annotations

import numpy as np
import pytest

import raybo
from raybo.reporting.emulator import BAND_SDS, Emulator
from raybo.reporting.importance import importance, sobol_design, sobol_indices
from raybo.space import Space
from tests.reporting.studies import run

A, B = 7.0, 0.1
CUBE3 = Space({name: raybo.Float(0, 1) for name in "abc"}).cube


def ishigami(U):
    x = np.pi * (2 * U - 1)
    return np.sin(x[:, 0]) + A * np.sin(x[:, 1]) ** 2 + B * x[:, 2] ** 4 * np.sin(x[:, 0])


def ishigami_indices():
    """Saltelli et al. (2000): the variances of the parts."""
    v1 = 0.5 * (1 + B * np.pi**4 / 5) ** 2
    v2 = A**2 / 8
    v13 = B**2 * np.pi**8 * (1 / 18 - 1 / 50)
    total = v1 + v2 + v13
    return np.array([v1, v2, 0]) / total, np.array([v1 + v13, v2, v13]) / total


def test_sobol_indices_of_ishigami_match_the_closed_forms():
    main, total = sobol_indices(ishigami, sobol_design(CUBE3, 4096, np.random.default_rng(0)))
    expected_main, expected_total = ishigami_indices()
    np.testing.assert_allclose(main, expected_main, atol=0.02)
    np.testing.assert_allclose(total, expected_total, atol=0.02)


def test_an_additive_function_has_no_interactions():
    """sum a_i x_i with uniform x_i: the variance of a part is a_i^2 / 12."""
    weights = np.array([3.0, 2.0, 1.0])
    main, total = sobol_indices(lambda X: X @ weights, sobol_design(CUBE3, 1024, np.random.default_rng(1)))
    np.testing.assert_allclose(main, weights**2 / (weights**2).sum(), atol=0.01)
    np.testing.assert_allclose(main, total, atol=0.01)


def test_integers_and_categories_count_with_their_own_values():
    """A fair coin of two categories beside a number: the variances are 1/4 and 1/12."""
    cube = Space({"c": raybo.Categorical(["a", "b"]), "x": raybo.Float(0, 1)}).cube
    main, _ = sobol_indices(lambda X: (X[:, 0] > 0.5) + X[:, 1], sobol_design(cube, 1024, np.random.default_rng(2)))
    np.testing.assert_allclose(main, [0.75, 0.25], atol=0.01)


def test_a_constant_function_has_none():
    main, total = sobol_indices(lambda X: np.full(len(X), 3.0), sobol_design(CUBE3, 64, np.random.default_rng(3)))
    assert not main.any()
    assert not total.any()


def additive(trials):
    space = {"big": raybo.Float(0, 3), "middle": raybo.Float(0, 2), "small": raybo.Float(0, 1)}
    return run("sobol", trials, space=space, failing=0.0)


def test_surrogate_ranks_parameters_and_narrows_with_data():
    """The study's values are the sums of its parameters, on ranges of 3, 2 and 1: shares 9, 4 and 1 of 14."""
    expected = np.array([9, 4, 1]) / 14
    many, few = (importance(Emulator.of(additive(n))) for n in (60, 8))
    assert many.order == [0, 1, 2]
    np.testing.assert_allclose(many.main[1], expected, atol=0.06)
    for indices in (many, few):
        assert np.all(indices.main[0] <= indices.main[1])
        assert np.all(indices.main[1] <= indices.main[2])
    widths = [float(np.sum(indices.total[2] - indices.total[0])) for indices in (many, few)]
    assert widths[0] < 0.5 * widths[1]


# ---- the surrogate


def test_band_covers_most_unseen_objective_values():
    study = additive(40)
    emulator = Emulator.of(study)
    X = np.random.default_rng(0).random((200, 3))
    truth = np.array([sum(config.values()) for config in study.space.decode(X)])
    middle, low, high = emulator.band(X)
    assert np.all(low <= middle)
    assert np.all(middle <= high)
    assert np.mean((truth >= low) & (truth <= high)) > 0.7
    np.testing.assert_allclose(middle, truth, atol=0.2)
    assert emulator.leave_one_out_r2 > 0.95
    assert BAND_SDS == pytest.approx(1.2816, abs=1e-4)


def test_a_minimised_metric_is_predicted_with_its_sign():
    study = run("sobol", 30, mode="min", failing=0.0)
    emulator = Emulator.of(study)
    finished = [trial for trial in study.trials if trial.value is not None]
    middle, low, high = emulator.band(study.space.encode([trial.config for trial in finished]))
    values = np.array([trial.value for trial in finished])
    assert np.corrcoef(middle, values)[0, 1] > 0.9
    assert np.all(low <= high)


def test_leaving_one_out_is_what_it_says():
    """The closed form against conditioning anew without each trial, under the same hyperparameters."""
    from raybo.surrogate import GP, Observations

    emulator = Emulator.of(run("sobol", 12, failing=0.0))
    gp = emulator.gp
    residuals = []
    for i in range(gp.n):
        keep = np.arange(gp.n) != i
        rest = Observations.of(gp.X[keep], gp.y[keep], gp.observations.categorical)
        mean, _ = GP.of(rest, gp.model, gp.theta).posterior(gp.X[i : i + 1])
        residuals.append(gp.y[i] - mean[0])
    expected = 1 - np.mean(np.square(residuals)) / np.var(gp.y)
    assert emulator.leave_one_out_r2 == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("trials", [1, 3])
def test_few_trials_have_no_surrogate(trials):
    assert Emulator.of(run("random", trials)) is None


def test_equal_values_have_no_surrogate():
    study = run("random", 12, space={"x": raybo.Categorical([1, 1.0])}, failing=0.0)
    assert Emulator.of(study) is None
