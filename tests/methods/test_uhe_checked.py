"""The retired uhe-checked: the usual fit where it says something, uhe's elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

import raybo
from raybo.methods import METHODS, kept, make
from raybo.methods.unknown_hyperparameters.exp3 import learning_rate, probabilities, scaled
from raybo.methods.unknown_hyperparameters.uhe_checked import known_share
from raybo.study.replay import replay
from raybo.surrogate import GP, Observations, Standardised, fit_map, pseudo_data, uhe_model
from tests.methods.test_uhe import PLANE, run, stream, theta_of

CHECKED = kept("uhe-checked")


@raybo.objective(space=PLANE, mode="max")
def flat(config):
    return 0.5


def test_trusted_always_it_proposes_as_map_would():
    """Its check draws from the same stream, so the climbs start elsewhere; the fits are map's, to the last digit."""
    checked, usual = run(CHECKED, 7, initial=6, trusted=0.0), run("map", 7, initial=6)
    assert checked.trials[6].tags["theta"] == usual.trials[6].tags["theta"]
    assert "theta_uhe" not in checked.trials[6].tags
    assert checked.trials[6].tags["mean"] == pytest.approx(usual.trials[6].tags["mean"], abs=1e-3)


def test_zero_trust_uses_pseudo_data():
    searcher = run(CHECKED, 7, initial=6, trusted=1.0)
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


def test_smooth_functions_use_the_usual_fit():
    smooth = run(CHECKED, 20, initial=6)
    assert all("theta_uhe" not in trial.tags for trial in smooth.trials[12:])
    rough = raybo.Searcher(PLANE, CHECKED, "max", 0, trials=20, initial=6)
    values = np.random.default_rng(1).standard_normal(20)
    for value in values:
        rough.tell(rough.ask(), float(value))
    assert all("theta_uhe" in trial.tags for trial in rough.trials[6:])
    assert "by uhe's fit, for the usual one explains" in rough.explain(rough.trials[-1])
    assert "by the usual fit, which explains" in smooth.explain(smooth.trials[-1])


@pytest.mark.parametrize("rounds", ["dosed", "divided"])
def test_rounds_use_uhes_arms(rounds):
    """As a loop: a uniform point, uhe's fit alone, or the usual one and uhe's where that explains too little."""
    n0, T = 6, 24
    searcher = run(CHECKED, n0 + T, initial=n0, rounds=rounds)
    history, log_weights, usual, honest = searcher.history, np.zeros(2), None, None
    gamma, low, high = learning_rate(T / 2), float(history.y[:n0].min()), float(history.y[:n0].max())
    kinds = set()
    for t in range(1, T + 1):
        n = n0 + t - 1
        record, rng = history.records[n], stream(searcher, n)
        if t % 2 == 1:
            p = probabilities(log_weights, gamma)
            arm = 1 if rng.random() < p[0] else 2
        assert record.tags["arm"] == arm
        is_last = t > T - T // 4
        if arm == 1 and t % 2 == 1 and not (rounds == "dosed" and is_last):
            np.testing.assert_array_equal(record.x, rng.random(2))
            assert "acquisition" not in record.tags
            kinds.add("random")
        elif rounds == "divided" and arm == 1:
            honest = theta_of(history, n, honest, rng)
            np.testing.assert_allclose(record.tags["theta_uhe"], honest, rtol=1e-9)
            assert "theta" not in record.tags
            assert searcher.explain(searcher.trials[n]).endswith("; by uhe's fit")
            kinds.add("honest")
        else:
            usual = theta_of(history, n, usual, None)
            np.testing.assert_allclose(record.tags["theta"], usual, rtol=1e-9)
            X, y = history.X[:n], history.y[:n]
            gp = GP.of(Observations.of(X, Standardised.of(y).apply(y)), uhe_model(), usual)
            assert record.tags["known"] == pytest.approx(known_share(gp, rng.random((500, 2))), rel=1e-6)
            assert ("theta_uhe" in record.tags) == (record.tags["known"] < 0.5)
            if "theta_uhe" in record.tags:
                honest = np.array(record.tags["theta_uhe"])
            kinds.add("checked, at the end of arm 1" if arm == 1 and t % 2 == 1 else "checked")
        if t % 2 == 0:
            reward = scaled(float(history.y[n - 1 : n + 1].max()), low, high)
            log_weights[arm - 1] += gamma * reward / (2.0 * p[arm - 1])
    assert {"random", "checked"} <= kinds
    assert ("honest" in kinds) == (rounds == "divided")


@pytest.mark.parametrize("seed", range(4))
def test_dosed_rounds_end_without_random_points(seed):
    searcher = run(CHECKED, 46, initial=6, rounds="dosed", seed=seed)
    is_random = ["acquisition" not in trial.tags for trial in searcher.trials]
    assert all(is_random[:6])
    assert any(is_random[6:36])
    assert not any(is_random[36:])
    assert any("acquisition" not in t.tags for t in run(CHECKED, 46, initial=6, rounds="divided").trials[6:])


def test_proposals_record_the_fit_in_use():
    method, usual, honest = make(CHECKED), [0.0, 0.0, 0.0, -7.0], [1.0, 1.0, 0.0, -5.0]
    np.testing.assert_array_equal(method.fitted_hyperparameters({"theta": usual}), [usual])
    np.testing.assert_array_equal(method.fitted_hyperparameters({"theta": usual, "theta_uhe": honest}), [honest])
    np.testing.assert_array_equal(method.fitted_hyperparameters({"theta_uhe": honest}), [honest])
    assert method.fitted_hyperparameters({"design": "uniform"}) is None


def test_wrong_shares_are_refused():
    with pytest.raises(raybo.MethodError, match=r"trusted must be in \[0, 1\], got 1.5"):
        make(CHECKED, trusted=1.5)


def test_new_studies_are_not_offered_it(tmp_path):
    assert "uhe-checked" not in METHODS
    refused = pytest.raises(
        raybo.MethodError, match=r"^the method uhe-checked is no longer offered: .*; use map, or uhe"
    )
    with refused:
        make("uhe-checked")
    with refused:
        raybo.Searcher(PLANE, "uhe-checked")
    with refused:
        raybo.tune(flat, trials=2, method="uhe-checked", in_process=True, storage=tmp_path / "job.db")
    assert not (tmp_path / "job.db").exists()
    with pytest.raises(raybo.MethodError, match="no method 'uhe-checkd'; available"):
        make("uhe-checkd")


@pytest.mark.parametrize("named", [None, "uhe-checked", CHECKED], ids=["unnamed", "name", "class"])
def test_begun_studies_continue_by_any_name(named, tmp_path):
    """An experiment begins them by the class; the journal has the name that earlier releases wrote."""
    path, options = tmp_path / "job.db", {"rounds": "dosed", "initial": 2}
    begun = raybo.tune(flat, trials=3, method=CHECKED, seed=0, in_process=True, storage=path, **options)
    again = raybo.tune(flat, trials=5, method=named, in_process=True, storage=path)
    assert [begun.description, again.description.method] == [again.description, "uhe-checked"]
    assert dict(again.description.options) == options
    assert [trial.differs for trial in replay(again)] == [()] * 5
    with raybo.Searcher(method=named, storage=path) as searcher:
        assert searcher.tell(searcher.ask(), 0.5).number == 5
