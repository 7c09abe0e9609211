"""From a history to a posterior: which trials are refitted for, where a fit starts, its prediction."""

from __future__ import annotations

import numpy as np
import pytest

from raybo.methods.parts.fitting import fitted
from raybo.methods.parts.refit_schedule import AFRESH, is_kept, last_estimate, starts_of_fit
from raybo.record.history import History
from raybo.surrogate import standard_model
from tests.methods.studies import floats, hill, told

MODEL = standard_model()


def of(trials, d=2, **tags):
    """A history of so many finished trials, the last of which has the tags."""
    history, rng = History(floats(d).cube), np.random.default_rng(4)
    for number in range(trials):
        x = rng.random(d)
        told(history, x, tags if number == trials - 1 else {}, hill(x))
    return history


@pytest.mark.parametrize(("n", "fits"), [(1, 12), (199, 12), (200, 6), (299, 6), (300, 4), (450, 3)])
def test_large_fits_are_kept_until_one_percent_growth(n, fits):
    assert sum(not is_kept(of(trials), n) for trials in range(1, 13)) == fits


def test_fits_are_warm_started_with_periodic_restarts():
    start, last, given = MODEL.start(2), MODEL.start(2) + 0.1, MODEL.start(2) - 0.2

    def starts(trials, *arguments):
        return [point.tolist() for point in starts_of_fit(of(trials), MODEL, 2, *arguments)]

    assert starts(3, None) == [start.tolist()]
    assert starts(3, None, [given]) == [given.tolist()]
    assert starts(3, last) == [last.tolist()]
    assert starts(AFRESH, last) == starts(2 * AFRESH, last) == [last.tolist(), start.tolist()]
    assert starts(3, last, [given]) == starts(AFRESH, last, [given]) == [last.tolist(), given.tolist()]


def test_an_estimate_of_another_model_is_none():
    assert last_estimate(of(3), MODEL, 2) is None
    assert last_estimate(of(3, theta=[0.0, 0.0, 0.0]), MODEL, 2) is None
    np.testing.assert_array_equal(last_estimate(of(3, theta=[0.1, 0.2, 0.3, 0.4]), MODEL, 2), [0.1, 0.2, 0.3, 0.4])
    assert last_estimate(of(3, theta=[0.1, 0.2, 0.3, 0.4]), MODEL, 2, "theta_uhe") is None


def test_the_incumbent_is_the_best_transformed_value():
    history = of(8)
    fit = fitted(history, MODEL, np.random.default_rng(0))
    assert fit.incumbent == pytest.approx((history.y.max() - history.y.mean()) / history.y.std())
    np.testing.assert_array_equal(fit.best, history.X[np.argmax(history.y)])


def test_predictions_are_of_the_mixture():
    """Against draws of f from a member at random."""
    rng, x = np.random.default_rng(1), np.array([0.9, 0.1])
    fit = fitted(of(4), MODEL, rng, estimate="slice")
    moments = [gp.posterior(x[None, :]) for gp in fit.members]
    draws = np.concatenate([mean + np.sqrt(var) * rng.standard_normal(200_000) for mean, var in moments])
    predicted = fit.prediction(x)
    assert len(fit.members) == 10
    assert predicted["mean"] == pytest.approx(draws.mean(), abs=0.01)
    assert predicted["std"] == pytest.approx(draws.std(), rel=2e-3)
    assert np.std([mean[0] for mean, _ in moments]) > 0.1 * predicted["std"]  # else the means' part could be missing
