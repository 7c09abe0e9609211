"""Iterations with any number of workers: phases, late and failed trials, the quorum, and nobody waiting."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from raybo.acquisition.look_ahead import OneShotLookAhead
from raybo.methods import make
from raybo.methods.many_dimensions import la_min_ucb
from raybo.methods.many_dimensions.iterations import Iteration, is_flat
from raybo.record.events import Asked
from raybo.record.states import State
from raybo.record.trial import Record
from raybo.searcher import Searcher
from raybo.surrogate import GP, GradientAt, Observations
from tests.methods.studies import centres, coordinates, floats, hill, roles, run, run_workers

LOCAL = ("gibo", "mpd", "min-ucb", "la-min-ucb")
AT_ONCE = {"initial": 0}  # without a design
KNOWN = {"lengthscale": 0.4, "outputscale": 1.0, **AT_ONCE}


def test_one_worker_runs_the_algorithms_as_published():
    for method in LOCAL:
        assert roles(run(method, 2, 12, batch=3, **AT_ONCE)) == "ceee" * 3
    assert roles(run("min-ucb", 2, 12, batch=2, repeats=2, **AT_ONCE)) == "ccee" * 3
    repeated = run("min-ucb", 2, 8, batch=2, repeats=2, **AT_ONCE)
    np.testing.assert_array_equal(coordinates(repeated.trials[0]), coordinates(repeated.trials[1]))


def test_batches_equal_sequential_choices():
    """The trace depends on points alone: what is in flight counts like what has ended."""
    one = run("min-ucb", 4, 7, batch=6, **KNOWN)
    waves = Searcher(floats(4), "min-ucb", "max", 0, None, batch=6, **KNOWN)
    batch = [waves.ask() for _ in range(7)]
    np.testing.assert_allclose([coordinates(t) for t in batch], [coordinates(t) for t in one.trials], rtol=0, atol=1e-6)
    for trial in reversed(batch):
        waves.tell(trial, hill(coordinates(trial)))
    np.testing.assert_allclose(waves.ask().tags["centre"], one.ask().tags["centre"], atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("method", LOCAL)
@pytest.mark.parametrize("workers", [1, 3, 8, 32])
def test_workers_are_busy_and_centres_move(method, workers):
    fast = {"samples": 4, "restarts": 2} if method == "la-min-ucb" else {}
    searcher = run_workers(method, 3, 50, workers, batch=4, fail={3, 4, 11, 20, 21, 22}, **fast, **KNOWN)
    X = np.array([coordinates(t) for t in searcher.trials])
    assert ((X >= 0.0) & (X <= 1.0)).all()
    iterations = [t.tags["iteration"] for t in searcher.trials]
    assert iterations == sorted(iterations)
    assert iterations[-1] >= 50 // (5 + workers)
    assert len(centres(searcher)[1]) == iterations[-1]


@pytest.mark.parametrize("method", [*LOCAL, "turbo", "ars"])
def test_points_in_flight_are_kept_apart(method):
    searcher = run(method, 3, 10)
    X = np.array([coordinates(searcher.ask()) for _ in range(32)])
    distances = np.linalg.norm(X[:, None] - X[None, :], axis=2)[np.triu_indices(32, 1)]
    assert distances.min() > 1e-6


def test_early_asks_continue_exploring():
    searcher = Searcher(floats(2), "gibo", "max", 0, None, batch=3, **KNOWN)
    asked = [searcher.ask() for _ in range(6)]
    assert roles(searcher) == "ceeeee"
    for trial in asked[1:5]:  # as many have ended as the iteration has points; the centre is late
        searcher.tell(trial, hill(coordinates(trial)))
    following = searcher.ask()
    assert following.tags["role"] == "centre"
    assert following.tags["iteration"] == 2
    searcher.tell(asked[0], hill(coordinates(asked[0])))  # joins the data when it comes
    searcher.tell(following, hill(coordinates(following)))
    assert searcher.ask().tags["iteration"] == 2


@pytest.mark.parametrize(("quorum", "needed"), [(1.0, 5), (0.99, 5), (0.81, 5), (0.8, 4), (0.5, 3), (0.01, 1)])
def test_quorums_are_at_least_their_share(quorum, needed):
    searcher = Searcher(floats(2), "gibo", "max", 0, None, batch=4, **KNOWN)
    trials = [searcher.ask() for _ in range(5)]
    for ended, trial in enumerate(trials):
        assert Iteration.of(searcher.history).is_over(5, quorum) == (ended >= needed)
        searcher.tell(trial, 0.1 * ended)
    assert Iteration.of(searcher.history).is_over(5, quorum)


def test_a_quorum_moves_before_the_last_result():
    searcher = Searcher(floats(2), "gibo", "max", 0, None, batch=4, quorum=0.8, **KNOWN)
    asked = [searcher.ask() for _ in range(5)]
    for trial in asked[:3]:
        searcher.tell(trial, hill(coordinates(trial)))
    assert searcher.ask().tags["iteration"] == 1
    searcher.tell(asked[3], hill(coordinates(asked[3])))
    assert searcher.ask().tags["iteration"] == 2


@pytest.mark.parametrize("method", LOCAL)
def test_an_iteration_of_failures_starts_elsewhere(method):
    searcher = Searcher(floats(2), method, "max", 0, None, batch=2, **KNOWN)
    for _ in range(3):
        searcher.fail(searcher.ask(), "unlucky")
    trial = searcher.ask()
    assert trial.tags["iteration"] == 2
    assert trial.tags["centre"] != searcher.trials[0].tags["centre"]
    assert searcher.explain(trial) == "iteration 2: a new start"


def test_pending_points_affect_only_exploration():
    """The move of a study with results in flight is that of the same study without them."""
    moves = []
    for extra in (0, 6):
        searcher = Searcher(floats(2), "min-ucb", "max", 0, None, batch=4, **KNOWN)
        batch = [searcher.ask() for _ in range(5)]
        for _ in range(extra):
            searcher.ask()
        for trial in batch:
            searcher.tell(trial, hill(coordinates(trial)))
        method, history = make("min-ucb", batch=4, **KNOWN), searcher.history
        moves.append(method.propose(history, np.random.default_rng(3)).x)
    np.testing.assert_array_equal(*moves)


def test_exploration_looks_away_from_what_is_in_flight():
    searcher = Searcher(floats(1), "gibo", "max", 0, None, batch=8, start="centre", lengthscale=0.75, outputscale=1.0)
    searcher.tell(searcher.ask(), 0.0)
    x = sorted(float(coordinates(searcher.ask())[0]) for _ in range(2))
    assert x == pytest.approx([0.3, 0.7])  # the faces of the cube about the centre, one each


@pytest.mark.parametrize("in_flight", [0, 2])
def test_la_min_ucb_includes_in_flight_points(monkeypatch, in_flight):
    """Imagined outcomes drawn anew at every evaluation would be noise to the climb."""
    made = []
    monkeypatch.setattr(la_min_ucb, "OneShotLookAhead", lambda *args: made.append(OneShotLookAhead(*args)) or made[-1])
    searcher = Searcher(floats(2), "la-min-ucb", "max", 0, None, batch=2, samples=8, **KNOWN)
    searcher.tell(searcher.ask(), 0.3)
    history = searcher.history
    for number in range(1, 1 + in_flight):
        history.apply(Asked(number, x=[0.1 * number, 0.4], tags={}))
    make("la-min-ucb", batch=2, samples=8, **KNOWN).propose(history, np.random.default_rng(1))
    (objective,) = made
    assert objective.base.shape == (8, 2 + in_flight)
    np.testing.assert_array_equal(objective.pending, history.X_pending)


def test_la_min_ucb_integrates_over_in_flight_points():
    """The rest of a batch is proposed as it was chosen; a further batch takes account of it."""
    searcher = Searcher(floats(2), "la-min-ucb", "max", 0, None, batch=2, **KNOWN)
    searcher.tell(searcher.ask(), 0.0)
    first, second, third = (searcher.ask() for _ in range(3))
    np.testing.assert_allclose(coordinates(second), first.tags["batch"][0])
    assert "batch" not in second.tags
    assert len(third.tags["batch"]) == 1
    assert third.tags["role"] == "explore"


def test_phases_are_read_from_the_tags_alone():
    searcher = run("min-ucb", 2, 6, batch=3, **KNOWN)
    now = Iteration.of(searcher.history)
    assert (now.number, len(now.own), now.asked("centre"), now.asked("explore")) == (2, 2, 1, 1)
    np.testing.assert_array_equal(now.centre, searcher.trials[4].tags["centre"])
    assert Iteration.of(Searcher(floats(2), "min-ucb", "max", 0).history) is None
    assert searcher.history.count(State.PENDING) == 0


def test_promised_traces_are_kept():
    searcher = run("gibo", 2, 4, batch=3, start="centre", standardise=False, mean="zero", **KNOWN)
    model = make("gibo", mean="zero", **KNOWN).model(2)
    X = searcher.history.X
    gp = GP.of(Observations.of(X, searcher.history.y), model, model.start(2))
    left = GradientAt.of(gp, np.full(2, 0.5)).trace
    assert searcher.trials[-1].tags["trace"] == pytest.approx(left, rel=1e-6)


@pytest.mark.parametrize("method", [*LOCAL, "ars", "turbo"])
def test_every_proposal_explains_itself(method):
    searcher = run(method, 2, 14, initial=4)
    words = [searcher.explain(trial) for trial in searcher.trials]
    assert len(set(words)) > 2
    assert all(word and "\n" not in word for word in words)


def test_predictions_do_not_make_iterations_flat():
    ended = Record(np.zeros(2), {}, State.FINISHED, 1.0)
    running = dataclasses.replace(ended, is_open=True)
    assert is_flat([ended, ended])
    assert not is_flat([ended, running])
