"""turbo: the region's rules, its candidates, and what it does with results that come late or not at all."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from raybo.common.errors import MethodError
from raybo.methods import make
from raybo.methods.many_dimensions import turbo
from raybo.methods.many_dimensions.turbo import LEAST_LENGTH, Region, Turbo, latin_hypercube, perturbed
from raybo.record.states import State
from raybo.record.trial import Record
from raybo.searcher import Searcher
from raybo.space import Categorical, Float, Space
from raybo.surrogate import joint_draws
from tests.methods.studies import coordinates, floats, hill, run, run_workers


def results(values, region):
    return [Record(np.zeros(2), {"region": dataclasses.asdict(region)}, State.FINISHED, y) for y in values]


def counted(method, region, values, d=2):
    return method._counted(region, results(values, region), d)


def test_predicted_values_are_no_success():
    method = Turbo(batch=1)
    region = Region(1, 2, 0, best=1.0)
    *ended, running = results([0.5, 0.5, 0.5, 3.0], region)
    after = method._counted(region, [*ended, dataclasses.replace(running, is_open=True)], 2)
    assert (after.best, after.successes, after.failures) == (1.0, 0, 1)
    assert method._counted(region, [*ended, running], 2).best == 3.0


def test_latin_hypercubes_stratify_every_axis():
    X = latin_hypercube(8, 5, np.random.default_rng(0))
    np.testing.assert_array_equal(np.sort(np.floor(8 * X), axis=0), np.repeat(np.arange(8)[:, None], 5, axis=1))
    assert len(np.unique(8 * X % 1.0)) == 40  # each at a place of its own within its part


def test_runs_begin_with_their_design():
    searcher = run("turbo", 3, 8)
    X = np.array([coordinates(t) for t in searcher.trials[:6]])
    np.testing.assert_array_equal(np.sort(np.floor(6 * X), axis=0), np.repeat(np.arange(6)[:, None], 3, axis=1))
    assert all("fit" not in t.tags for t in searcher.trials[:6])
    assert "fit" in searcher.trials[6].tags


@pytest.fixture
def drawn(monkeypatch):
    """The surrogate and the candidates of every draw, as a list that grows."""
    seen, plain = [], turbo.joint_draws
    monkeypatch.setattr(turbo, "joint_draws", lambda gp, X, rng: seen.append((gp, X)) or plain(gp, X, rng))
    return seen


def test_region_sides_follow_lengthscales(drawn):
    """f changes along the first axis mostly: side_i = L l_i / geometric mean of l, about the best point."""
    searcher = run("turbo", 2, 15, lambda x: -np.sin(9.0 * x[0]) - 0.3 * (x[1] - 0.5) ** 2, initial=12, seed=2)
    region = Region(**searcher.trials[-1].tags["region"])
    gp, X = drawn[-1]
    side = region.length * gp.lengthscale / np.sqrt(np.prod(gp.lengthscale))
    centre = gp.X[np.argmax(gp.posterior(gp.X)[0])]
    expected = np.clip([centre - side / 2, centre + side / 2], 0.0, 1.0)
    assert np.ptp(side) > 0.2  # else a cube would do as well
    np.testing.assert_allclose([X.min(axis=0), X.max(axis=0)], expected, atol=0.03)


def test_values_are_standardised_by_the_median(drawn):
    searcher = run("turbo", 2, 9, lambda x: float(np.exp(5.0 * x[0])), initial=8)
    y = np.array([trial.value for trial in searcher.trials[:8]])
    assert abs(np.median(y) - y.mean()) > 0.1 * y.std()
    np.testing.assert_allclose(np.sort(drawn[0][0].y), np.sort((y - np.median(y)) / y.std()), rtol=1e-9)


def test_draws_condition_on_pending_points(drawn):
    searcher = run("turbo", 2, 9, initial=8)
    for _ in range(3):
        searcher.ask()
    assert [gp.n for gp, _ in drawn[-3:]] == [9, 10, 11]


def test_successes_double_and_failures_halve_the_side():
    method, region = Turbo(), Region(1, 0, 0, best=0.0)
    values = []
    for expected in (0.8, 0.8, 1.6):
        values.append(max(values, default=0.0) + 1.0)
        region = counted(method, region, values)
        assert region.length == expected
    assert (region.successes, region.failures, region.counted) == (0, 0, 3)
    for i in range(4):  # max(4, d) with one result per batch
        values.append(0.0)
        region = counted(method, region, values)
        assert region.length == (0.8 if i == 3 else 1.6)


def test_the_side_stays_below_its_maximum():
    region = Region(1, 0, 0, length=1.6, successes=2, best=0.0)
    assert counted(Turbo(), region, [1.0]).length == 1.6


def test_successes_need_a_minimum_gain():
    method, region = Turbo(), Region(1, 0, 0, best=10.0, failures=3, counted=1)
    assert (
        counted(method, region, [10.0, 10.009]).failures == 0 or counted(method, region, [10.0, 10.009]).length == 0.4
    )
    better = counted(method, region, [10.0, 10.02])
    assert (better.successes, better.failures, better.best) == (1, 0, 10.02)
    worse = counted(method, dataclasses.replace(region, failures=0, successes=2), [10.0, 10.009])
    assert (worse.successes, worse.failures) == (0, 1)


def test_counters_move_once_for_every_batch_of_results():
    method, region = Turbo(batch=3), Region(1, 0, 0, best=0.0)
    assert counted(method, region, [1.0, 2.0]) == region
    moved = counted(method, region, [1.0, 2.0, 0.5, 0.1])
    assert (moved.successes, moved.counted) == (1, 3)
    assert counted(method, region, [-1.0] * 5).failures == 1
    assert counted(method, region, [-1.0] * 7).length == 0.4  # two batches at once, and ceil(4 / 3) are allowed
    assert counted(Turbo(batch=2), Region(1, 0, 0, best=0.0, failures=1), [-1.0] * 2).length == 0.4  # ceil(4 / 2)


def test_small_regions_restart():
    searcher = run("turbo", 2, 80, lambda x: 0.0 * hill(x), restart=False)  # nothing ever succeeds
    runs = [t.tags["region"]["run"] for t in searcher.trials]
    assert runs == sorted(runs)
    assert runs[-1] >= 2
    first = runs.index(2)
    assert searcher.trials[first - 1].tags["region"]["length"] == 0.8 / 64 > LEAST_LENGTH
    assert searcher.trials[first].tags["region"]["length"] == 0.8
    assert searcher.trials[first].tags["region"]["best"] is None
    assert "fit" not in searcher.trials[first].tags


def test_candidates_perturb_about_twenty_axes():
    mask = perturbed(2_000, 100, np.random.default_rng(0))
    assert mask.any(axis=1).all()
    assert mask.sum(axis=1).mean() == pytest.approx(20.0, abs=0.5)
    assert perturbed(50, 10, np.random.default_rng(0)).all()


@pytest.mark.parametrize("workers", [1, 4, 32])
def test_climbs_with_workers_and_failures(workers):
    searcher = run_workers("turbo", 4, 70, workers, fail={1, 9, 30}, candidates=200)
    X = np.array([coordinates(t) for t in searcher.trials])
    assert ((X >= 0.0) & (X <= 1.0)).all()
    values = [hill(x) for x in X]
    assert max(values[30:]) > 0.3 * max(values[:8])


def test_bad_options_are_refused():
    for options in ({"batch": 0}, {"initial": 0}, {"candidates": 0}, {"candidates": 5_000}):
        with pytest.raises(MethodError, match=next(iter(options))):
            make("turbo", **options)


def test_candidates_never_equal_the_centre(monkeypatch):
    monkeypatch.setattr(turbo, "PERTURBED", 1)
    mask = perturbed(4_000, 21, np.random.default_rng(0))
    assert mask.any(axis=1).all()
    np.testing.assert_allclose(mask.mean(axis=0), mask.mean(), rtol=0.25)  # whichever it is


def test_added_results_belong_to_the_first_run():
    searcher = Searcher(floats(2), "turbo", "max", 0, None, initial=3)
    searcher.add({"x0": 0.3, "x1": 0.3}, 5.0)
    for _ in range(4):
        trial = searcher.ask()
        searcher.tell(trial, hill(coordinates(trial)))
    assert [len(turbo.run_of(searcher.history, run)) for run in (1, 2)] == [5, 0]
    assert searcher.trials[-1].tags["region"]["best"] == 5.0


def test_branch_candidates_are_runnable(monkeypatch):
    branches = [{"kind": kind, **{f"{kind}{i}": Float(0, 1) for i in range(12)}} for kind in "ab"]
    space = Space({"m": Categorical(branches)})
    seen = []

    def spied(gp, X, rng, draws=1):
        seen.append(X)
        return joint_draws(gp, X, rng, draws)

    monkeypatch.setattr(turbo, "joint_draws", spied)
    searcher = Searcher(space, "turbo", mode="min", seed=0, initial=6)
    for _ in range(9):
        trial = searcher.ask()
        searcher.tell(trial, sum(v for v in trial.config["m"].values() if not isinstance(v, str)))
    assert seen
    for X in seen:
        np.testing.assert_array_equal(space.cube.snap(X), X)
