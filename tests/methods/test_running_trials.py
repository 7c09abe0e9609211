"""The methods' view of unfinished trials, against scikit-learn's regression and by hand."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

from raybo.methods import METHODS, needs_context
from raybo.methods.parts.fitting import fitted
from raybo.methods.parts.local_models import ManyObservations
from raybo.methods.parts.running_trials import Regression, predicted
from raybo.record.events import Kind, Reported
from raybo.record.states import State
from raybo.searcher import Searcher
from raybo.space import Float, Space
from raybo.surrogate import Standardised, standard_model
from tests.methods.studies import coordinates, floats, hill
from tests.schedulers.studies import curve, empty, end


@pytest.mark.parametrize("seed", range(5))
def test_the_regression_is_scikit_learns(seed):
    rng = np.random.default_rng(seed)
    x = rng.random(30).round(1)  # with ties
    y = x + 0.3 * rng.standard_normal(30)
    at = np.linspace(-0.2, 1.2, 57)
    expected = IsotonicRegression(out_of_bounds="clip").fit(x, y).predict(at)
    by = Regression.of(x, y)
    np.testing.assert_allclose([by.at(v) for v in at], expected, atol=1e-12)
    errors = []
    for i in range(30):
        others = IsotonicRegression(out_of_bounds="clip").fit(np.delete(x, i), np.delete(y, i))
        errors.append(y[i] - others.predict([x[i]])[0])
    assert by.miss == pytest.approx(np.sqrt(np.mean(np.square(errors))))


def test_a_prediction_by_hand():
    """Three that were at 1, 2 and 3 ended at 10, 20 and 30: whoever is at 2.5 is expected to end at 25."""
    history = empty(3)
    for first, last in ((1, 10), (2, 20), (3, 30)):
        end(history, curve(history, [first, 5, last]))
    pruned, running, late = curve(history, [2.5]), curve(history, [9]), curve(history, [0, 5])
    end(history, pruned, Kind.PRUNED, step=1)
    end(history, curve(history, [1]), Kind.FAILED, reason="broke")
    seen = predicted(history)
    assert [r.state for r in seen.records[:6]] == [State.FINISHED] * 6
    assert [seen.records[t].y for t in (pruned, running, late)] == [25.0, 30.0, 20.0]
    errors = np.array([10 - 20, 20 - 20, 30 - 20])  # each by the other two
    np.testing.assert_allclose(seen.errors, [0, 0, 0, *[np.sqrt(np.mean(errors**2))] * 2, seen.records[late].error])
    assert len(seen.X_failed) == 1
    assert history.records[pruned].state is State.PRUNED  # the history itself is as it was


def test_predictions_need_three_ends():
    history = empty(3)
    assert predicted(history) is history
    for last in (1, 2):
        end(history, curve(history, [0, 0, last]))
    end(history, curve(history, [0]), Kind.PRUNED, step=1)
    assert predicted(history).records[2].state is State.PRUNED
    assert len(predicted(history).y) == 2


def test_what_was_predicted_before_changes_no_prediction():
    """Of two histories in turn, whose trials continue, end and are at other steps, and of each of them alone."""

    def grown(made, sign):
        for i in range(12):
            end(made, curve(made, sign * np.array([i % 5, i % 7, i])))
            waiting = curve(made, [sign * i] if i % 2 else [sign * i, 0.5])
            end(made, waiting, *([Kind.PAUSED] if i % 3 == 0 else [Kind.PRUNED] if i % 3 == 1 else [Kind.FAILED]))
            if i > 8:
                made.apply(Reported(curve(made, [3.0]), step=2, value=float(i)))
            yield [(r.state, r.y, r.error, r.is_open) for r in predicted(made).records]
        for number in made.records.numbers(State.PENDING, State.PAUSED).tolist():  # which changes no regression
            end(made, number, Kind.PRUNED)
            yield [(r.state, r.y, r.error, r.is_open) for r in predicted(made).records]

    in_turn = list(zip(grown(empty(3), 1.0), grown(empty(3), -1.0), strict=True))
    assert in_turn == list(zip(list(grown(empty(3), 1.0)), list(grown(empty(3), -1.0)), strict=True))
    with ThreadPoolExecutor(1) as pool:  # where nothing is known of earlier predictions
        assert [pair[0] for pair in in_turn] == pool.submit(list, grown(empty(3), 1.0)).result()
    assert sum(error > 0.0 for _, _, error, _ in in_turn[-1][0]) > 8


def test_predicted_values_have_added_variance():
    rng = np.random.default_rng(0)
    history = empty(2)
    for x in rng.random((12, 2)):
        end(history, curve(history, [hill(x) + 0.1 * rng.standard_normal(), hill(x)], x))
    end(history, curve(history, [0.0], (0.9, 0.9)), Kind.PRUNED, step=1)
    seen = predicted(history)
    fit = fitted(seen, standard_model(), rng)
    sd = seen.errors[-1] / Standardised.of(seen.y).std
    np.testing.assert_allclose(fit.gp.observations.added, [0.0] * 12 + [sd**2])
    assert fit.gp.posterior(history.records[12].x[None])[1][0] > 10 * fit.gp.posterior(history.X)[1].max()
    assert not np.array_equal(fit.best, history.records[12].x)  # which is not known to be the best
    regional = ManyObservations.of(seen, standard_model(), Standardised.of(seen.y))  # of large studies
    assert not np.array_equal(regional.best, history.records[12].x)
    for made in (regional.wide(), regional.close(np.array([0.9, 0.9]))):
        np.testing.assert_allclose(made.gp.observations.added, [0.0] * 12 + [sd**2])
        assert made.incumbent == fit.incumbent
    at_home = regional.home(regional.best).gp.observations.added
    assert at_home is not None
    assert np.flatnonzero(at_home).tolist() == [12]


@pytest.mark.usefixtures("short_chains")
@pytest.mark.parametrize("method", [name for name in METHODS if not needs_context(name)])
def test_every_method_goes_on_with_pruned_trials(method):
    searcher = Searcher(floats(2), method, seed=0, trials=30, steps=9, scheduler="asha")
    for _ in range(14):
        trial = searcher.ask()
        value = hill(coordinates(trial))
        for step in range(1, 10):
            if searcher.report(trial, value - 1 / step, step).prune:
                searcher.prune(trial)
                break
        else:
            searcher.tell(trial, value)
    states = [trial.state for trial in searcher.trials]
    assert State.PRUNED in states
    assert State.PENDING not in states
    assert np.isfinite(searcher.best.value)


def test_predicted_trials_have_not_ended():
    history = empty(3)
    for first, last in ((1, 10), (2, 20), (3, 30)):
        end(history, curve(history, [first, 5, last]))
    pruned, running, paused = curve(history, [2.5]), curve(history, [2.5]), curve(history, [2.5])
    end(history, pruned, Kind.PRUNED, step=1)
    end(history, paused, Kind.PAUSED, step=1)
    seen = predicted(history)
    assert [seen.records[t].has_ended for t in (pruned, running, paused)] == [True, False, False]
    assert seen.ended == seen.copy().ended == history.ended == 4
    assert len(seen.y) == 6


def reporting(method, whole, **options):
    """A study of some whole trials, each of which reported nine steps."""
    searcher = Searcher(Space({"x": Float(0, 1), "z": Float(0, 1)}), method, mode="max", seed=1, steps=9, **options)
    for _ in range(whole):
        finish(searcher, searcher.ask())
    return searcher


def quality(config):
    return -((config["x"] - 0.3) ** 2) - (config["z"] - 0.6) ** 2


def finish(searcher, trial):
    for step in range(1, 10):
        searcher.report(trial, quality(trial.config) - 1 / step, step)
    searcher.tell(trial, quality(trial.config))


def test_bandits_ignore_running_trials():
    searcher = reporting("portfolio", 16, initial=5, trials=40)
    running = searcher.ask()
    while "arm" not in running.tags:
        running = searcher.ask()
    searcher.report(running, quality(running.config) - 1.0, 1)
    assert running.number not in dict(searcher.ask().tags["earned"])
    searcher.fail(running, "diverged")
    assert dict(searcher.ask().tags["earned"])[running.number] == 0.0


@pytest.mark.parametrize("method", ["gibo", "min-ucb"])
def test_iterations_wait_for_running_trials(method):
    searcher = reporting(method, 10, initial=4, restart=False)
    while (trial := searcher.ask()).tags.get("role") != "centre":
        finish(searcher, trial)
    batch = [trial, searcher.ask(), searcher.ask()]
    for each in batch:
        searcher.report(each, quality(each.config) - 1.0, 1)
    following = searcher.ask().tags
    assert (following["iteration"], following["role"]) == (trial.tags["iteration"], "explore")


HUGE = [(1.0, 1e160), (1.0, sys.float_info.max), (1e200, None), (1e-200, None)]


@pytest.mark.parametrize(("scale", "outlier"), HUGE)
@pytest.mark.parametrize("method", ["ei", "turbo", "random"])
def test_the_error_of_a_prediction_may_be_huge(method, scale, outlier):
    searcher = Searcher(
        Space({"x": Float(0, 1), "z": Float(0, 1)}), method, mode="min", seed=0, trials=40, steps=9, scheduler="median"
    )
    for i in range(16):
        trial = searcher.ask()
        assert "fallback" not in trial.tags
        value = -scale * quality(trial.config) if i != 4 or outlier is None else outlier
        for step in range(1, 10):
            if searcher.report(trial, value + scale * np.sin(7 * trial.config["x"] + i) / step, step).prune:
                searcher.prune(trial)
                break
        else:
            searcher.tell(trial, value)
    assert any(trial.state is State.PRUNED for trial in searcher.trials)
