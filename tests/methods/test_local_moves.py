"""The moves of gibo, mpd, min-ucb and la-min-ucb against published numbers, and the sign: the papers minimise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import ndtr

from raybo.acquisition import UpperConfidence
from raybo.common.errors import MethodError
from raybo.methods import make
from raybo.methods.many_dimensions.local_search import safest, window
from raybo.methods.many_dimensions.mpd import most_probable_ascent, walk
from raybo.record.history import History
from raybo.space import Categorical, Float, Space
from raybo.surrogate import GP, GradientAt, Model, Observations
from tests.acquisition.oracles import BETA, PUBLISHED, THETA, X0, F, X, posterior
from tests.methods.studies import centres, coordinates, floats, hill, history_at, run, told

KNOWN = {"lengthscale": (0.5, 0.8), "outputscale": 1.3, "noise_variance": 0.01, "mean": "zero", "standardise": False}
LOCAL = ("gibo", "mpd", "min-ucb", "la-min-ucb")
RNG = np.random.default_rng


@pytest.fixture(params=PUBLISHED)
def kernel(request):
    return request.param


# ---- what is published


def test_upper_and_lower_bounds_mirror(kernel):
    numbers, gp = PUBLISHED[kernel], posterior(kernel)
    value, gradient = UpperConfidence(gp, -BETA).value_and_gradient(X0[None])
    assert -value[0] == pytest.approx(numbers["ucb"], rel=1e-10)
    np.testing.assert_allclose(-gradient[0], numbers["ucb gradient"], rtol=1e-9)
    found, _, _ = safest(gp, BETA, History(floats(2).cube), X0, 0.2, RNG(0))
    np.testing.assert_allclose(found.x, numbers["argmin"], atol=2e-4)
    assert -found.value == pytest.approx(numbers["min"], abs=1e-7)


def test_min_ucb_moves_to_the_published_minimiser(kernel):
    history = history_at(X0, X, -F, explored=4)
    proposal = make("min-ucb", kernel=kernel, batch=3, **KNOWN).propose(history, RNG(0))
    np.testing.assert_allclose(proposal.x, PUBLISHED[kernel]["argmin"], atol=2e-4)
    assert proposal.tags["iteration"] == 2
    assert proposal.tags["role"] == "centre"


def test_gibo_takes_the_published_normalised_step(kernel):
    history = history_at(X0, X, -F, explored=4)
    method = make("gibo", kernel=kernel, batch=3, learning_rate=0.25, **KNOWN)
    np.testing.assert_allclose(method.propose(history, RNG(0)).x, PUBLISHED[kernel]["step"], rtol=1e-8)


def test_gibo_steps_along_the_gradient():
    history, gp = history_at(X0, X, -F, explored=4), posterior("rbf")
    method = make("gibo", batch=3, step="plain", learning_rate=0.01, weight_decay=2.0, **KNOWN)
    expected = X0 + 0.01 * (GradientAt.of(gp, X0).mean - 2.0 * (X0 - 0.5))
    np.testing.assert_allclose(method.propose(history, RNG(0)).x, expected, rtol=1e-10)


def test_mpd_direction_matches_the_paper(kernel):
    numbers, gp = PUBLISHED[kernel], posterior(kernel)
    direction, p = most_probable_ascent(gp, X0)
    np.testing.assert_allclose(direction, numbers["direction"], rtol=1e-8)
    assert p == pytest.approx(numbers["p"], rel=1e-9)
    at = GradientAt.of(gp, X0)
    uphill = at.mean / np.linalg.norm(at.mean)
    along = ndtr(uphill @ at.mean / math.sqrt(uphill @ at.cov @ uphill))
    assert along == pytest.approx(numbers["p of the negative gradient"], rel=1e-9)
    assert along < p


def test_released_mpd_normalises_the_direction(kernel):
    """Without the floor on the covariance, which has negative entries here, the direction is the paper's."""
    numbers, gp = PUBLISHED[kernel], posterior(kernel)
    direction, _ = most_probable_ascent(gp, X0)
    mean = GradientAt.of(gp, X0).mean
    assert ndtr(math.sqrt(direction @ mean)) == pytest.approx(numbers["released p"], rel=1e-9)
    clamped, p = most_probable_ascent(gp, X0, "released")
    cov = GradientAt.of(gp, X0).cov
    v = np.linalg.solve(np.maximum(cov, 1e-9), mean)
    np.testing.assert_allclose(clamped, v / np.linalg.norm(v), rtol=1e-10)
    assert p == pytest.approx(ndtr(math.sqrt(v @ mean / np.linalg.norm(v))), rel=1e-10)
    assert cov.min() < 0.0


def test_no_direction_ascends_more_probably():
    gp = posterior("rbf")
    at = GradientAt.of(gp, X0)

    def improbable(angle):
        v = np.array([math.cos(angle[0]), math.sin(angle[0])])
        return -(v @ at.mean) / math.sqrt(v @ at.cov @ v)

    best = min((minimize(improbable, [a]) for a in (0.0, 2.0, 4.0)), key=lambda r: r.fun).x[0]
    np.testing.assert_allclose(most_probable_ascent(gp, X0)[0], [math.cos(best), math.sin(best)], atol=1e-4)


def test_walks_continue_while_ascent_is_probable():
    X, start = np.random.default_rng(0).random((30, 2)), np.array([0.2, 0.3])
    gp = GP.of(Observations.of(X, -10.0 * ((X - 0.5) ** 2).sum(axis=1)), Model("rbf"), np.log([0.5, 0.5, 1.0, 2.0]))
    lengths = []
    for probability in (0.65, 0.9):
        end, steps = walk(gp, start, probability, 0.01, "paper")
        x = start
        for _ in range(steps):
            direction, p = most_probable_ascent(gp, x)
            assert p >= probability
            x = x + 0.01 * direction
        np.testing.assert_allclose(end, x, rtol=1e-9)
        assert ((end > 0.0) & (end < 1.0)).all()
        assert most_probable_ascent(gp, end)[1] < probability
        lengths.append(steps)
    assert lengths[0] > lengths[1] > 5


def test_walks_stop_inside_the_cube():
    gp = posterior("rbf")
    x, steps = walk(gp, X0, 0.65, 0.01, "paper")
    assert steps > 5
    assert ((x >= 0.0) & (x <= 1.0)).all()
    assert most_probable_ascent(gp, x)[1] < 0.65 or np.any((x == 0.0) | (x == 1.0))
    assert gp.posterior(x[None])[0][0] > gp.posterior(X0[None])[0][0]
    steep = GP.of(Observations.of(X, 10.0 * X[:, 0]), gp.model, THETA)
    edge, _ = walk(steep, np.array([0.97, 0.5]), 0.65, 0.01, "released")
    assert ((edge >= 0.0) & (edge <= 1.0)).all()
    assert walk(gp, x, 0.999999, 0.01, "paper") == (pytest.approx(x), 0)


# ---- invariants


@pytest.mark.parametrize("seed", range(4))
def test_moves_never_lower_the_bound(seed):
    """UCB(x_{t+1}) <= UCB(x_t), and <= UCB at every window point that was a start; all of these are."""
    rng = RNG(seed)
    gp = GP.of(
        Observations.of(rng.random((8, 3)), rng.standard_normal(8)),
        posterior("rbf").model,
        np.log([0.3] * 3 + [1, 0.01]),
    )
    centre = rng.random(3)
    found, ends, bounds = safest(gp, BETA, History(floats(3).cube), centre, 0.2, rng)
    bound = UpperConfidence(gp, -BETA)
    assert found.value >= bound.value(np.vstack([centre, gp.X])).max() - 1e-12
    assert found.value >= bounds.max() - 1e-9
    assert ends.shape[1] == 3


@pytest.mark.parametrize("repeats", [1, 4, 16])
def test_repeated_centres_average_the_noise(repeats):
    """std(x_t) <= noise / sqrt(b1)."""
    x = np.full((repeats, 3), 0.5)
    gp = GP.of(Observations.of(x, np.zeros(repeats)), posterior("rbf").model, np.log([0.4] * 3 + [1, 0.04]))
    assert gp.posterior(x[:1])[1][0] <= 0.04 / repeats


@pytest.mark.parametrize("method", [*LOCAL, "turbo", "ars"])
def test_minimising_equals_maximising_the_negative(method):
    options = {"samples": 4} if method == "la-min-ucb" else {}
    up = run(method, 3, 30, hill, seed=1, **options)
    down = run(method, 3, 30, lambda x: -hill(x), mode="min", seed=1, **options)
    assert [t.config for t in up.trials] == [t.config for t in down.trials]
    first, last = hill(coordinates(up.trials[0])), max(hill(coordinates(t)) for t in up.trials[-12:])
    assert last > first + 0.5 * abs(first) * (method != "ars")


@pytest.mark.slow
@pytest.mark.parametrize("method", LOCAL)
def test_local_moves_climb_on_eight_axes(method):
    options = {"batch": 4, "samples": 4} if method == "la-min-ucb" else {"batch": 8}
    left = []  # of the height, seed by seed: processors round otherwise, and one seed alone is a throw of a coin
    for seed in range(3):
        searcher = run(
            method, 8, 55, lambda x: 20.0 * hill(x), seed=seed, start="centre", noise_variance=1e-3, **options
        )
        _, visited = centres(searcher)
        left.append(hill(visited[-1]) / hill(visited[0]))
    assert np.mean(left) < 0.3, left


# ---- the window, the start, options


def test_windows_hold_the_newest_results():
    searcher = run("sobol", 2, 9)
    for _ in range(2):
        searcher.fail(searcher.ask(), "unlucky")
    trial = searcher.ask()
    searcher.tell(trial, 5.0)
    points, y, added = window(searcher.history, 3)
    assert not added.any()
    assert len(y) == 5
    assert y[-1] == 5.0
    assert (y[2:4] == y[:2].min()).all()
    np.testing.assert_array_equal(points[-1], coordinates(trial))
    assert window(History(floats(2).cube), 3)[0].shape == (0, 2)


def test_look_ahead_gain_ignores_the_level():
    options = {"batch": 2, "samples": 8, "lengthscale": 0.4, "outputscale": 1.0, "standardise": False, "initial": 0}
    gains = [
        [
            t.tags["gain"]
            for t in run("la-min-ucb", 2, 7, lambda x, c=c: hill(x) + c, **options).trials
            if "gain" in t.tags
        ]
        for c in (0.0, 100.0)
    ]
    assert len(gains[0]) == 2
    np.testing.assert_allclose(gains[1], gains[0], atol=1e-3)
    assert min(gains[0]) > 0.0


@pytest.mark.parametrize("method", [*LOCAL, "ars"])
def test_where_it_starts(method):
    assert centres_of_first(method, start="centre") == pytest.approx([0.5, 0.5])
    known = {"x0": 0.9, "x1": 0.2}
    assert centres_of_first(method, add=known) == pytest.approx([0.9, 0.2])
    assert centres_of_first(method, add=known, start="sobol") != pytest.approx([0.9, 0.2])
    assert centres_of_first(method, seed=1) != centres_of_first(method, seed=2)


def centres_of_first(method, add=None, seed=0, **options):
    searcher = run(method, 2, 0, seed=seed, initial=0, **options)
    if add is not None:
        searcher.add({"x0": 0.1, "x1": 0.1}, 0.0)
        searcher.add(add, 1.0)
    return searcher.ask().tags["centre"]


def test_local_methods_share_their_start():
    assert len({tuple(centres_of_first(method, seed=5)) for method in LOCAL}) == 1


def test_bad_options_are_refused_with_what_is_wrong():
    for options, message in [
        ({"delta": 0.0}, "delta must be above 0"),
        ({"quorum": 1.5}, r"quorum must be in \(0, 1\]"),
        ({"batch": 0}, "batch must be at least 1"),
        ({"lengthscale_high": 0.01}, "lengthscale_high must not be below"),
        ({"lengthscale": -1.0}, "lengthscale must be above 0"),
        ({"kernel": "matern32"}, "rbf, matern52"),
    ]:
        for method in LOCAL:
            with pytest.raises(MethodError, match=message):
                make(method, **options)
    with pytest.raises(MethodError, match="3 values for 2 axes"):
        run("gibo", 2, 3, lengthscale=(0.1, 0.2, 0.3))


def test_lists_of_numbers_are_read_from_text():
    assert make("gibo", learning_rate="0.8,0.8,0.3").learning_rate == (0.8, 0.8, 0.3)
    assert make("gibo", lengthscale=[0.5, 0.25]).lengthscale == (0.5, 0.25)
    assert make("gibo", lengthscale="none").lengthscale is None
    with pytest.raises(MethodError, match="lengthscale must be a number or a list or none"):
        make("gibo", lengthscale={"x": 1.0})


def test_hyperparameters_are_fitted_once_an_iteration():
    fixed = run("min-ucb", 2, 12, batch=3, lengthscale=0.4, outputscale=1.0, initial=0)
    assert not any("theta" in t.tags for t in fixed.trials)
    fitted = run("min-ucb", 2, 12, batch=3, initial=0)
    assert ["theta" in t.tags for t in fitted.trials] == [False, True, False, False] * 3
    full = run("gibo", 2, 12, batch=3, window=6, refit="full", initial=0)
    assert ["theta" in t.tags for t in full.trials] == [False] * 6 + [True, False, False] * 2


def test_gibo_rates_follow_iterations():
    searcher = run("gibo", 2, 20, batch=3, learning_rate=(0.2, 0.1), lengthscale=0.1, outputscale=1.0, start="centre")
    _, visited = centres(searcher)
    assert np.linalg.norm(np.diff(visited, axis=0), axis=1) == pytest.approx([0.02, 0.01, 0.01, 0.01])


def test_gibo_may_stop_exploring_once_little_is_gained():
    searcher = run("gibo", 2, 12, batch=10, lengthscale=0.4, outputscale=1.0, early_stop=0.5, initial=0)
    traces = [t.tags["trace"] for t in searcher.trials if t.tags["iteration"] == 1 and "trace" in t.tags]
    assert 2 <= len(traces) < 10
    assert traces[-2] - traces[-1] < 0.5
    assert (np.diff(traces)[:-1] <= -0.5).all()


def test_traces_never_rise_within_an_iteration():
    searcher = run("min-ucb", 4, 15, batch=14, lengthscale=0.4, outputscale=1.0, initial=0)
    traces = [t.tags["trace"] for t in searcher.trials[1:]]
    assert (np.diff(traces) <= 1e-9).all()


def test_exploration_keeps_within_delta_of_the_centre():
    for method in LOCAL:
        searcher = run(method, 3, 15, batch=4, delta=0.1, initial=0)
        centre = None
        for trial in searcher.trials:
            centre = np.array(trial.tags.get("centre", centre))
            assert np.abs(coordinates(trial) - centre).max() <= 0.1 + 1e-12


def test_local_steps_keep_categories():
    space = Space({"x": Float(0, 1), "c": Categorical(["a", "b", "c"]), "y": Float(0, 1)})
    history = History(space.cube)
    method = make("gibo", batch=3, lengthscale=0.4, outputscale=1.0, start="centre", weight_decay=0.5)
    for i in range(9):
        proposal = method.propose(history, RNG(i))
        x = space.cube.snap(proposal.x[None])[0]
        told(history, x, proposal.tags, hill(x[[0, 2]]))
    visited = np.array([r.tags["centre"] for r in history.records if "centre" in r.tags])
    assert len(visited) == 3
    assert (visited[:, 1] == 0.5).all()
    assert (visited[1:, [0, 2]] < visited[:-1, [0, 2]]).all()


@pytest.mark.parametrize(("planned", "points"), [(None, 6), (200, 6), (59, 5), (20, 2), (5, 1)])
def test_exploration_takes_at_most_a_tenth(planned, points):
    history = History(floats(6).cube)
    history.planned = planned
    assert make("gibo").batch_size(history) == points
    assert make("gibo", batch=9).batch_size(history) == 9


def test_the_last_planned_trial_is_the_recommendation():
    for method in ("min-ucb", "la-min-ucb"):
        searcher = run(method, 3, 13, planned=True, initial=3, batch=4)
        assert searcher.trials[-1].tags["role"] == "centre"
        assert searcher.trials[-2].tags["role"] == "explore"
