"""wang-defreitas: published numbers, invariants of Algorithm 1 under any order of results, and its variants."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raybo import methods
from raybo.common.errors import MethodError
from raybo.methods.parts.next_point import solve_apart
from raybo.methods.unknown_hyperparameters.wang_defreitas.bounds import (
    PATIENCE,
    Bounds,
    bounded,
    clipped,
    current_bounds,
    cut,
    likely_scale,
    regret_scale,
)
from raybo.record.events import KINDS, Asked, Kind, Told
from raybo.record.history import History
from raybo.record.states import State
from raybo.searcher import Searcher
from raybo.space import Integer, Space
from raybo.surrogate import GP, Model, Observations
from tests.methods.studies import floats, hill, run, run_workers, told

LOWER = np.array([0.02, 0.02, 0.04])
UPPER = np.array([1.0, 0.3, 0.05])


def narrow(x):
    """A broad hill and a narrow peak, on one axis."""
    (x,) = x
    return 2 * math.exp(-((x - 0.1) ** 2) / 0.02) + 4 * math.exp(-((x - 0.9) ** 2) / 0.0002)


# ---- published numbers


@pytest.mark.parametrize(
    ("information_gain", "t", "delta", "xi"),
    [
        (0.0, 1, 0.1, 3.4934325760),
        (1.0, 2, 0.1, 8.2404205042),
        (2.5, 10, 0.1, 15.2868193586),
        (10.0, 60, 0.1, 32.8065402835),
        (2.5, 10, 0.05, 16.1612717680),
    ],
)
def test_xi_matches_the_published_formula(information_gain, t, delta, xi):
    assert regret_scale(information_gain, t, delta) == pytest.approx(xi, rel=1e-10)


@given(st.floats(0, 1e3), st.integers(1, 1000), st.floats(0.01, 0.9))
def test_xi_is_positive_and_monotone(gain, t, delta):
    xi = regret_scale(gain, t, delta)
    assert xi > 0
    assert regret_scale(gain + 0.1, t, delta) > xi
    assert regret_scale(gain, t + 1, delta) > xi
    assert regret_scale(gain, t, delta + 0.05) < xi


def test_nu_bounds_match_print_and_theorem():
    xi = regret_scale(2.5, 10, 0.1)
    ends = [[bounded(nu, xi, 0.001, 1.0, rule) for nu in (0.0, 1e9)] for rule in ("algorithm", "theorem")]
    np.testing.assert_allclose(ends, [[0.0152868, 15.2868194], [0.1236399, 3.9098362]], rtol=3e-6)
    assert bounded(1.0, xi, 0.001, 1.0, "algorithm") == bounded(1.0, xi, 0.001, 1.0, "theorem") == 1.0


def test_cuts_reach_the_largest_bounds_first():
    expected = [
        (0.5, 0.3, 0.05),
        (0.25, 0.25, 0.05),
        (0.125, 0.125, 0.05),
        (0.0625, 0.0625, 0.05),
        (0.03125, 0.03125, 0.04),
        (0.02, 0.02, 0.04),
        (0.02, 0.02, 0.04),
    ]
    assert (UPPER / LOWER).prod() == pytest.approx(937.5)
    upper = UPPER
    for after in expected:
        upper = cut(upper, LOWER, 0.5)
        np.testing.assert_allclose(upper, after, rtol=1e-12)


def test_certainty_counts_reset_after_cuts():
    bounds, seen = Bounds(UPPER), []
    for number, letter in enumerate("LLLHLLLLL"):
        bounds = bounds.after(number, letter == "L", bounds.epoch, LOWER, 0.5)
        seen.append((bounds.E, bounds.epoch))
    assert [E for E, _ in seen] == [1, 2, 3, 0, 1, 2, 3, 4, 0]
    assert [epoch for _, epoch in seen] == [0] * 8 + [1]
    np.testing.assert_allclose(bounds.upper, (0.5, 0.3, 0.05))
    assert bounds.counted == tuple(range(9))


def test_likely_scale_is_equivariant():
    X, y = np.array([[0.1], [0.5], [0.9]]), np.array([0.3, -1.0, 0.4])
    scales = [likely_scale(GP.of(Observations.of(X, each), Model(), np.log([0.3, 1.0, 1e-4]))) for each in (y, 7.0 * y)]
    K = GP.of(Observations.of(X, y), Model(), np.log([0.3, 1.0, 1e-4])).kernel.matrix(X, X)
    A = K + 1e-4 * np.eye(3)
    assert scales[0] == pytest.approx(math.sqrt(y @ np.linalg.solve(A, y) / 3), rel=1e-9)
    assert scales[1] == pytest.approx(7.0 * scales[0], rel=1e-9)


def test_likely_scale_counts_repeats():
    X, y = np.array([[0.1], [0.5], [0.1], [0.9], [0.1]]), np.array([0.3, -1.0, 0.5, 0.4, -0.2])
    gp = GP.of(Observations.of(X, y), Model(), np.log([0.3, 1.0, 0.1]))
    assert gp.n == 3
    A = gp.kernel.matrix(X, X) + 0.1 * np.eye(5)
    assert likely_scale(gp) == pytest.approx(math.sqrt(y @ np.linalg.solve(A, y) / 5), rel=1e-9)


# ---- the counter, whatever comes


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 2)), max_size=60), st.sampled_from([0.3, 0.5, 0.9]))
def test_bounds_fall_with_five_trials_between(trials, p):
    bounds, since = Bounds(UPPER), 0
    for number, (low, age) in enumerate(trials):
        epoch = max(0, bounds.epoch - age)
        after = bounds.after(number, low, epoch, LOWER, p)
        since += epoch == bounds.epoch
        assert (after.upper <= bounds.upper).all()
        assert (after.upper >= LOWER).all()
        assert 0 <= after.E < PATIENCE
        if after.epoch > bounds.epoch:
            assert since >= PATIENCE
            since = 0
        else:
            np.testing.assert_array_equal(after.upper, bounds.upper)
        bounds = after


def proposed(low, epoch=0):
    """The tags that the counter reads."""
    return {"low": low, "epoch": epoch, "E": 0, "upper": [1.0], "counted": []}


def test_trials_in_flight_cut_once():
    history = History(floats(1).cube)
    told(history, [0.5], {}, 0.0)
    for i in range(8):
        history.apply(Asked(i + 1, x=[0.1 * i], tags=proposed(True)))
    for i in range(8):
        history.apply(Told(i + 1, value=0.0))
    bounds = current_bounds(history, np.array([0.005]), np.array([1.0]), 0.5)
    assert (bounds.epoch, bounds.E) == (1, 0)
    np.testing.assert_allclose(bounds.upper, [0.5])
    told(history, [0.9], {**bounds.tags(), "low": True}, 0.0)
    after = current_bounds(history, np.array([0.005]), np.array([1.0]), 0.5)
    assert (after.epoch, after.E, after.counted) == (1, 1, (9,))


def test_failed_and_pending_trials_leave_the_counter():
    history = History(floats(1).cube)
    for i, end in enumerate([Kind.TOLD, Kind.FAILED, None, Kind.STOPPED, Kind.TOLD]):
        history.apply(Asked(i, x=[0.1 * i], tags=proposed(True)))
        if end is not None:
            history.apply(KINDS[end].of(i, {"value": 0.0, "reason": "unlucky"}))
    bounds = current_bounds(history, np.array([0.005]), np.array([1.0]), 0.5)
    assert (bounds.E, bounds.counted) == (2, (0, 4))


def test_predicted_running_trials_change_nothing():
    history = History(floats(1).cube)
    for i in range(2):
        history.apply(Asked(i, x=[0.1 * i], tags=proposed(True)))
        history.apply(Told(i, value=0.0))
    history.records[1] = dataclasses.replace(history.records[1], is_open=True)
    assert current_bounds(history, np.array([0.005]), np.array([1.0]), 0.5).counted == (0,)


# ---- whole studies


def check_invariants(searcher, lower, first_upper, noise=1e-4):
    """Of section 4 of the paper, after every proposal."""
    upper, epoch, E, cuts = np.array(first_upper), 0, 0, 0
    for record in searcher.history.records:
        tags = record.tags
        if "E" not in tags:
            continue
        now = np.array(tags["upper"])
        lengthscale = np.exp(tags["theta"][:-2])
        assert (now <= upper).all()
        assert (now >= lower).all()
        assert (lengthscale <= now * (1 + 1e-9)).all()
        assert (lengthscale >= np.array(lower) * (1 - 1e-9)).all()
        assert 0 <= tags["E"] < PATIENCE
        assert tags["epoch"] >= epoch
        assert 0.001 * tags["xi"] <= tags["nu"] <= tags["xi"]
        n = tags["t"] - 1 + searcher.history.count(State.PENDING)
        assert tags["std"] ** 2 >= noise / (n + noise) * (1 - 1e-6)  # the least variance that n values leave
        assert tags["low"] == (tags["std"] ** 2 < noise)
        cuts += tags["epoch"] > epoch
        upper, epoch, E = now, tags["epoch"], tags["E"]
    return cuts, E


def test_one_worker_cuts_where_it_is_too_sure():
    searcher = run("wang-defreitas", 1, 50, narrow, initial=3, seed=1, kernel="rbf")
    cuts, _ = check_invariants(searcher, [0.005], [1.0])
    assert cuts >= 2
    counted = [n for t in searcher.trials for n in t.tags.get("counted", [])]
    assert counted == list(range(3, 49))  # each once, as they ended


def test_the_point_is_the_improvements_maximiser():
    """Lemma 10: there the mean is not far below its maximum, in standard deviations."""
    for d, f in ((1, narrow), (2, hill)):
        searcher = run("wang-defreitas", d, 25, f, initial=3, seed=2)
        for trial in searcher.trials[3:]:
            tags = trial.tags
            n, noise = tags["t"] - 1, 1e-4
            assert tags["mean"] <= tags["mu_plus"] + 1e-3
            farthest = math.sqrt(math.log(n + noise) - math.log(noise)) * tags["nu"] * tags["std"]
            assert abs(tags["mean"] - tags["mu_plus"]) <= farthest


@pytest.mark.parametrize("workers", [2, 8])
def test_several_workers_and_failures(workers):
    searcher = run_workers("wang-defreitas", 2, 40, workers, fail=(7, 13), seed=3, lower=(0.01, 0.1), upper=(2.0, 0.5))
    check_invariants(searcher, [0.01, 0.1], [2.0, 0.5])
    counted = [n for t in searcher.trials for n in t.tags.get("counted", [])]
    assert len(counted) == len(set(counted))
    assert 7 not in counted


def test_no_cuts_without_overconfident_steps():
    searcher = run("wang-defreitas", 1, 30, narrow, initial=3, seed=1, kernel="rbf", t_sigma=1e-12)
    assert {t.tags["epoch"] for t in searcher.trials[3:]} == {0}


@pytest.mark.slow
def test_algorithm_1_escapes_the_trap():
    """Of two fixed seeds; over twenty see docs/reproduction/wang-defreitas-trap."""
    found = {
        variant: [
            run("wang-defreitas", 1, 63, narrow, initial=3, seed=seed, kernel="rbf", variant=variant).best.value > 3.5
            for seed in (0, 4)
        ]
        for variant in ("bounds", "slice")
    }
    assert sum(found["bounds"]) > sum(found["slice"]), found


def test_kappa_uses_the_least_sufficient_divisor():
    searcher = run("wang-defreitas", 1, 25, hill, seed=1, variant="kappa")
    tags = [t.tags for t in searcher.trials if "factor" in t.tags]
    assert len(tags) >= 20
    for each in tags:
        steps = math.log(each["factor"]) / math.log(1.1)
        assert steps == pytest.approx(round(steps), abs=1e-6)
        assert each["std"] >= 0.1
        np.testing.assert_allclose(np.exp(each["theta"][:-2]) / each["factor"], each["lengthscale"], rtol=1e-9)
    assert tags[0]["factor"] == 1.0
    assert tags[-1]["factor"] > 1.0


def test_sampled_length_scales_stay_in_their_range():
    searcher = run("wang-defreitas", 1, 12, hill, seed=1, initial=3, variant="slice", lower=0.1, upper=0.6)
    for trial in searcher.trials[3:]:
        thetas = np.exp(trial.tags["thetas"])
        assert thetas.shape == (10, 3)
        assert (thetas[:, 0] >= 0.1 * (1 - 1e-9)).all()
        assert (thetas[:, 0] <= 0.6 * (1 + 1e-9)).all()
        np.testing.assert_allclose(thetas[:, 1:], [[1.0, 1e-4]] * 10, rtol=1e-9)


def test_improvement_is_averaged_over_the_samples(monkeypatch):
    solved = []

    def kept(solver, improvement, *rest, **more):
        solved.append(improvement)
        return solve_apart(solver, improvement, *rest, **more)

    monkeypatch.setattr("raybo.methods.unknown_hyperparameters.wang_defreitas.improvement.solve_apart", kept)
    run("wang-defreitas", 1, 6, hill, seed=1, initial=4, variant="slice")
    X = np.linspace(0.0, 1.0, 9)[:, None]
    for average in solved:
        each = np.exp([one.value(X) for one in average.members])
        assert len(each) == 10
        np.testing.assert_allclose(np.exp(average.value(X)), each.mean(axis=0), rtol=1e-9)
    assert len(solved) == 2


# ---- in words, and wrong use


def test_wang_defreitas_explains_its_proposals():
    method = methods.make("wang-defreitas")
    tags = {"mean": 0.5, "std": 0.1, "low": True, "epoch": 2, "E": 3, "upper": [0.25, 0.1], "nu": 1.0}
    assert method.explain(tags) == (
        "expected improvement: expected 0.50 sd better than average, uncertain by 0.10 sd; "
        "length-scales at most 0.25, cut 2 times; "
        "3 of 5 steps too sure, and this one; nu = 1.00"
    )
    assert "sampled" in method.explain({"mean": 0.5, "std": 0.1})
    scaled = {"acquisition": "ucb", "mean": 0.5, "std": 0.1, "factor": 1.21}
    assert method.explain(scaled).endswith("length-scales divided by 1.21")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"p": 1.0}, r"p must be in \(0, 1\)"),
        ({"delta": 0.0}, r"delta must be in \(0, 1\)"),
        ({"c1": 2.0}, "c2 must be a number above c1"),
        ({"noise_variance": 0.0}, "noise_variance must be above 0"),
        ({"lower": 0.5, "upper": 0.1}, "0 < lower <= upper"),
        ({"lower": (0.1, 0.2), "upper": (1.0, 1.0, 1.0)}, "lower gives 2 length-scales for 3 axes"),
        ({"upper": math.inf}, "upper must be a finite number"),
        ({"variant": "nothing"}, "variant must be one of bounds, slice, kappa"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(MethodError, match=message):
        methods.make("wang-defreitas", **options)


def test_as_many_length_scales_as_axes_are_needed():
    with pytest.raises(MethodError, match="upper gives 2 length-scales for 3 axes; give 1 or 3"):
        run("wang-defreitas", 3, 5, initial=2, upper=(0.5, 0.5))


def test_t_counts_values_not_points():
    searcher = Searcher(Space({"n": Integer(1, 3)}), "wang-defreitas", "max", 0, initial=3)
    for value in (0.1, 0.2, 0.4, 0.3, 0.2):
        searcher.add({"n": 2}, value)
    assert searcher.ask().tags["t"] == 6


def test_kept_lengthscales_follow_their_bounds():
    """From 200 observations on a fit is kept, and a cut may meanwhile have brought a bound below it."""
    method, history, rng = methods.make("wang-defreitas"), History(floats(2).cube), np.random.default_rng(0)
    kept = [math.log(0.9), math.log(0.1), 0.0, math.log(1e-4)]
    for number in range(251):
        x = rng.random(2)
        told(history, x, {"theta": kept} if number == 250 else {}, hill(x))
    within = dataclasses.replace(method.within(2), upper=np.array([0.5, 0.5]))
    fit = clipped(within.fit(history, rng, "map"), within, history)
    np.testing.assert_allclose(fit.gp.lengthscale, [0.5, 0.1])
    np.testing.assert_allclose(np.exp(fit.tags["theta"]), [0.5, 0.1, 1.0, 1e-4])
