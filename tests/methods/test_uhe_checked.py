"""uhe-checked: the usual fit where it says something, uhe's elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

import raybo
from raybo.methods import make
from raybo.methods.unknown_hyperparameters.uhe_checked import known_share
from raybo.surrogate import GP, Observations, Standardised, fit_map, pseudo_data, uhe_model
from tests.methods.test_uhe import PLANE, run, stream


def test_trusted_always_it_proposes_as_map_would():
    """Its check draws from the same stream, so the climbs start elsewhere; the fits are map's, to the last digit."""
    checked, usual = run("uhe-checked", 7, initial=6, trusted=0.0), run("map", 7, initial=6)
    assert checked.trials[6].tags["theta"] == usual.trials[6].tags["theta"]
    assert "theta_uhe" not in checked.trials[6].tags
    assert checked.trials[6].tags["mean"] == pytest.approx(usual.trials[6].tags["mean"], abs=1e-3)


def test_trusted_never_its_points_are_those_of_the_fit_to_pseudo_data():
    searcher = run("uhe-checked", 7, initial=6, trusted=1.0)
    X, y, rng = searcher.history.X[:6], searcher.history.y[:6], stream(searcher, 6)
    rng.random((500, 2))  # the check comes first
    data = pseudo_data(Observations.of(X, Standardised.of(y).apply(y)), rng)
    theta = fit_map(data, uhe_model(), [np.log([0.3, 0.3, 1.0, 1e-3]), np.log([0.1, 0.1, 1.0, 1e-2])])
    np.testing.assert_allclose(searcher.trials[6].tags["theta_uhe"], theta, rtol=1e-12)


def test_what_is_known_is_the_variance_taken_away():
    """Nothing without observations, nearly all with long length-scales, nearly nothing with short ones."""
    X = np.random.default_rng(0).random((300, 2))
    observations = Observations.of(X[:20], np.zeros(20))
    shares = [
        known_share(GP.of(observations, uhe_model(), np.log([s, s, 2.0, 1e-6])), X[20:]) for s in (0.01, 0.2, 2.0)
    ]
    assert 0.0 <= shares[0] < 0.1 < shares[1] < shares[2] <= 1.0
    assert shares[2] > 0.99


def test_a_smooth_function_is_soon_left_to_the_usual_fit_and_white_noise_never():
    smooth = run("uhe-checked", 20, initial=6)
    assert all("theta_uhe" not in trial.tags for trial in smooth.trials[12:])
    rough = raybo.Searcher(PLANE, "uhe-checked", "max", 0, trials=20, initial=6)
    values = np.random.default_rng(1).standard_normal(20)
    for value in values:
        rough.tell(rough.ask(), float(value))
    assert all("theta_uhe" in trial.tags for trial in rough.trials[6:])
    assert "by uhe's fit, for the usual one explains" in rough.explain(rough.trials[-1])
    assert "by the usual fit, which explains" in smooth.explain(smooth.trials[-1])


def test_wrong_shares_are_refused():
    with pytest.raises(raybo.MethodError, match=r"trusted must be in \[0, 1\], got 1.5"):
        make("uhe-checked", trusted=1.5)
