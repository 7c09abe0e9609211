"""uhe and what it was compared with: each against its algorithm, written plainly."""

from __future__ import annotations

import re

import numpy as np
import pytest

import raybo
from raybo.methods import make
from raybo.methods.unknown_hyperparameters import common as unknown
from raybo.methods.unknown_hyperparameters.exp3 import design_range, learning_rate, probabilities
from raybo.record.history import History
from raybo.record.states import State
from raybo.surrogate import GP, Observations, Standardised, fit_map, pseudo_data, uhe_model
from tests.surrogate.conftest import naive_kernel

PLANE = raybo.Space({"x": raybo.Float(0, 1), "y": raybo.Float(0, 1)})
IN_ROUNDS = ["uhe", "exp3-random", "ra-bo"]
ALL = [*IN_ROUNDS, "map", "mcmc", "portfolio"]


def hills(config) -> float:
    return float(np.sin(5 * config["x"]) - (config["y"] - 0.6) ** 2)


def run(method, trials, *, told=None, seed=0, space=PLANE, planned=None, **options) -> raybo.Searcher:
    """Return a study of so many trials, of which all, or `told`, have finished."""
    searcher = raybo.Searcher(space, method=method, mode="max", seed=seed, trials=planned or trials, **options)
    for i in range(trials):
        trial = searcher.ask()
        if told is None or i < told:
            searcher.tell(trial, hills(trial.config))
    return searcher


def stream(searcher, number) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(searcher.seed, spawn_key=(number, 0)))


def theta_of(history: History, n: int, last, rng: np.random.Generator | None):
    """theta_t on the first n trials: on the observations, or on pseudo-data where there is an rng."""
    X, y = history.X[:n], history.y[:n]
    data = Observations.of(X, Standardised.of(y).apply(y))
    if rng is not None:
        data = pseudo_data(data, rng)
    start, rough = np.log([0.3, 0.3, 1.0, 1e-3]), np.log([0.1, 0.1, 1.0, 1e-2])
    return fit_map(data, uhe_model(), [start, rough] if last is None else [last, start])


def naive_bound(history: History, n: int, theta, Z):
    """mean + 1.96 std at the rows of Z, computed with the inverse, on standardised values."""
    X, y = history.X[:n], history.y[:n]
    y = (y - y.mean()) / y.std()

    def kernel(A, B):
        length = np.exp(theta[:2])
        rows = [[naive_kernel("matern52", a, b, length, (False, False)) for b in B] for a in A]
        return np.exp(theta[2]) * np.array(rows)

    inverse = np.linalg.inv(kernel(X, X) + np.exp(theta[3]) * np.eye(n))
    K = kernel(Z, X)
    var = np.exp(theta[2]) - np.einsum("ij,jk,ik->i", K, inverse, K)
    return K @ inverse @ y + 1.96 * np.sqrt(np.maximum(var, 0.0))


@pytest.mark.parametrize(("method", "is_pseudo"), [("uhe", True), ("exp3-random", False)])
def test_one_worker_follows_the_algorithm_step_by_step(method, is_pseudo):
    """Algorithm 1 as a loop: its own weights and arms, its own fits, and the bound's argmax against a grid."""
    n0, T = 6, 13
    searcher = run(method, n0 + T, initial=n0)
    history, gamma, w, last = searcher.history, learning_rate(T / 2), np.ones(2), None
    low, high = history.y[:n0].min(), history.y[:n0].max()
    grid = np.stack(np.meshgrid(*[np.linspace(0, 1, 21)] * 2), axis=-1).reshape(-1, 2)
    arm, p = 0, np.ones(2)
    for number in range(n0):
        np.testing.assert_array_equal(history.records[number].x, stream(searcher, number).random(2))
    for t in range(1, T + 1):
        n = n0 + t - 1
        record, rng = history.records[n], stream(searcher, n)
        if t % 2 == 1:
            p = (1 - gamma) * w / w.sum() + gamma / 2
            arm = 1 if rng.random() < p[0] else 2
        assert record.tags["arm"] == arm
        assert record.tags["p"] == pytest.approx(p[arm - 1], rel=1e-12)
        if arm == 1 and t % 2 == 1:
            np.testing.assert_array_equal(record.x, rng.random(2))
            assert "theta" not in record.tags
        else:
            last = theta_of(history, n, last, rng if is_pseudo else None)
            np.testing.assert_allclose(record.tags["theta"], last, rtol=1e-9)
            assert (
                naive_bound(history, n, last, record.x[None, :])[0] >= naive_bound(history, n, last, grid).max() - 1e-6
            )
        if t % 2 == 0:
            reward = np.clip((history.y[n - 1 : n + 1].max() - low) / (high - low), 0.0, 1.0)
            w[arm - 1] *= np.exp(gamma * reward / (2 * p[arm - 1]))
    assert {r.tags.get("arm") for r in history.records[n0:]} == {1, 2}


def test_ra_bo_takes_turns_and_fits_pseudo_data():
    searcher = run("ra-bo", 15, initial=6)
    history, last = searcher.history, None
    for t in range(1, 10):
        record, rng = history.records[5 + t], stream(searcher, 5 + t)
        if t % 2 == 1:
            np.testing.assert_array_equal(record.x, rng.random(2))
        else:
            last = theta_of(history, 5 + t, last, rng)
            np.testing.assert_allclose(record.tags["theta"], last, rtol=1e-9)
    assert searcher.explain(searcher.trials[6]).startswith("arm 1: a random point, every other time")


def test_map_uses_most_likely_hyperparameters():
    searcher = run("map", 12, initial=6)
    history, last = searcher.history, None
    grid = np.stack(np.meshgrid(*[np.linspace(0, 1, 21)] * 2), axis=-1).reshape(-1, 2)
    for n in range(6, 12):
        last = theta_of(history, n, last, None)
        record = history.records[n]
        np.testing.assert_allclose(record.tags["theta"], last, rtol=1e-9)
        assert naive_bound(history, n, last, record.x[None, :])[0] >= naive_bound(history, n, last, grid).max() - 1e-6


@pytest.mark.slow
def test_mcmc_averages_ten_samples():
    searcher = run("mcmc", 10, told=8, planned=20, initial=7)
    history = searcher.history
    first, second = history.records[8], history.records[9]
    thetas = np.array(first.tags["thetas"])
    assert thetas.shape == (10, 4)
    assert len(np.unique(thetas, axis=0)) > 3
    bounds = uhe_model().bounds(2)
    assert ((thetas >= bounds[:, 0]) & (thetas <= bounds[:, 1])).all()
    assert second.tags["thetas"] == first.tags["thetas"]
    assert history.records[7].tags["thetas"] != first.tags["thetas"]
    grid = np.stack(np.meshgrid(*[np.linspace(0, 1, 16)] * 2), axis=-1).reshape(-1, 2)
    points = np.vstack([first.x, grid])
    mean = np.mean([naive_bound(history, 8, theta, points) for theta in thetas], axis=0)
    assert mean[0] >= mean[1:].max() - 1e-3 * abs(mean[0])


def test_portfolio_rewards_are_posterior_means():
    n0, T = 6, 12
    searcher = run("portfolio", n0 + T, initial=n0)
    history, gamma, logs, last = searcher.history, learning_rate(T), np.zeros(2), None
    low, high = history.y[:n0].min(), history.y[:n0].max()
    for n in range(n0, n0 + T):
        record, X, y = history.records[n], history.X[:n], history.y[:n]
        last = theta_of(history, n, last, None)
        np.testing.assert_allclose(record.tags["theta"], last, rtol=1e-9)
        if n > n0:
            before = history.records[n - 1]
            outputs = Standardised.of(y)
            gp = GP.of(Observations.of(X, outputs.apply(y)), uhe_model(), last)
            mean = outputs.invert(gp.posterior(before.x[None, :])[0])[0]
            reward = float(np.clip((mean - low) / (high - low), 0.0, 1.0))
            assert record.tags["earned"] == [[n - 1, pytest.approx(reward, rel=1e-9)]]
            logs[before.tags["arm"] - 1] += gamma * reward / (2 * before.tags["p"])
        p = probabilities(logs, gamma)
        rng = stream(searcher, n)
        arm = 1 if rng.random() < p[0] else 2
        assert record.tags["arm"] == arm
        assert record.tags["p"] == pytest.approx(p[arm - 1], rel=1e-9)
        if arm == 1:
            np.testing.assert_array_equal(record.x, rng.random(2))


def test_portfolio_rewards_each_trial_once():
    searcher = run("portfolio", 16, told=6, planned=40, initial=6)
    for number in reversed(range(6, 14)):
        if number == 9:
            searcher.fail(number, "diverged")
        else:
            searcher.tell(number, hills(searcher.trials[number].config))
    searcher.ask()
    searcher.ask()
    earned = [number for trial in searcher.trials for number, _ in trial.tags.get("earned", [])]
    assert earned == list(range(6, 14))
    assert dict(searcher.trials[16].tags["earned"])[9] == 0.0


# ---- the design, and many workers


@pytest.mark.parametrize("method", [*IN_ROUNDS, "portfolio"])
def test_rounds_wait_for_the_design(method):
    """Idle workers get more uniform points; a design point that takes for ever holds nobody up."""
    searcher = run(method, 9, told=0, planned=40, initial=4)
    assert all(trial.tags == {"design": "uniform"} for trial in searcher.trials)
    for number in (8, 2, 5):
        searcher.tell(number, float(number))
    assert searcher.ask().tags == {"design": "uniform"}
    searcher.fail(7, "diverged")  # ends one of them, too
    trial = searcher.ask()
    assert trial.tags["range"] == [2.0, 8.0]
    searcher.tell(0, 100.0)
    assert design_range(searcher.history) == (2.0, 8.0)


def test_uhe_design_sizes():
    for planned, size in ((40, 6), (None, 6), (16, 4)):
        searcher = raybo.Searcher(PLANE, "uhe", "max", 0, trials=planned)
        for _ in range(10):
            searcher.tell(searcher.ask(), 0.5)
        assert searcher.history.count_tag("design") == size
        gamma = searcher.history.first_tag("gamma")
        assert gamma == learning_rate((100 if planned is None else planned - size) / 2)


@pytest.mark.parametrize("method", IN_ROUNDS)
@pytest.mark.parametrize("workers", [2, 3, 8])
@pytest.mark.parametrize("evaluations", [16, 17])
def test_many_workers_spend_the_budget(method, workers, evaluations):
    searcher = raybo.Searcher(PLANE, method, "max", 1, trials=6 + evaluations, initial=6)
    rng, running = np.random.default_rng(0), []
    while len(searcher.trials) < 6 + evaluations or running:
        while len(running) < workers and len(searcher.trials) < 6 + evaluations:
            running.append(searcher.ask())
        trial = running.pop(int(rng.integers(len(running))))
        searcher.tell(trial, hills(trial.config))
    assert searcher.history.count(State.FINISHED) == 6 + evaluations
    assert all(searcher.explain(trial) for trial in searcher.trials)


@pytest.mark.parametrize("method", ["uhe", "map"])
def test_a_fit_is_kept_until_a_trial_ends(method):
    searcher = run(method, 12, planned=60, initial=6)
    asked = [searcher.ask() for _ in range(12)]
    fits = [trial.tags["theta"] for trial in asked if "theta" in trial.tags]
    assert len(fits) > 1
    assert all(theta == fits[0] for theta in fits)
    searcher.tell(asked[0], 2.0)
    while "theta" not in (trial := searcher.ask()).tags:
        pass
    assert trial.tags["theta"] != fits[0]


# ---- options and words


def test_the_noise_can_be_fitted_to_the_observations():
    plain, refit = (run("uhe", 34, initial=30, refit_noise_on_real=value) for value in (False, True))
    first = next(i for i, trial in enumerate(plain.trials) if "theta" in trial.tags)
    theta, again = plain.trials[first].tags["theta"], refit.trials[first].tags["theta"]
    np.testing.assert_allclose(again[:-1], theta[:-1], rtol=1e-9)
    assert again[-1] < theta[-1]


def test_explanations_are_in_words():
    searcher = run("uhe", 30, initial=6)
    told = {searcher.explain(trial) for trial in searcher.trials}
    assert "initial design (uniform)" in told
    assert any(text.startswith("arm 1: a random point, to keep the kernel estimate honest; p = 0.") for text in told)
    assert any(re.match("arm 1, second point: upper confidence bound: value .* expected", text) for text in told)
    assert any(re.match("arm 2, first point: upper confidence bound: value .* expected", text) for text in told)


@pytest.mark.parametrize("method", ALL)
@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("kappa", -1.0, "kappa must be at least 0"),
        ("gamma_prior", "1e-3", "gamma_prior must be two positive numbers"),
        ("gamma_prior", "0,10", "gamma_prior must be above 0"),
        ("initial", 0, "initial must be at least 1"),
        ("acquisition", "pi", "acquisition must be one of ucb, ei"),
    ],
)
def test_wrong_options_are_refused(method, option, value, message):
    with pytest.raises(raybo.MethodError, match=f"^{method}: .*{message}"):
        make(method, **{option: value})


def test_methods_share_designs_per_seed():
    searchers = [run(method, 6, planned=30) for method in ["random", *ALL]]
    assert len({tuple(t.config["x"] for t in searcher.trials) for searcher in searchers}) == 1


def test_every_reading_of_the_prior_can_be_had():
    assert make("uhe", gamma_prior="1e-7,1e-4").gamma_prior == (1e-7, 1e-4)
    assert make("uhe").gamma_prior == unknown.PRIOR == (1e-3, 10.0)
