"""The model of configuration and step: its derivatives, its closed form by a plain one, and what auto makes of it."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from raybo.methods.default.auto import Auto
from raybo.methods.default.curves import worth_running_again
from raybo.methods.explaining import in_units
from raybo.methods.method import IN_UNITS
from raybo.methods.parts.curve_data import at_step, rows_of_curves
from raybo.methods.parts.learning_curves import (
    MANY,
    ROWS_OF_MANY,
    WITHIN,
    believing_ends,
    cut_points,
    final_means,
    fit_curves,
    has_cut_curves,
    reported,
)
from raybo.record.events import Asked, Kind, Reported, Told
from raybo.record.goals import Goals
from raybo.record.states import State
from raybo.record.trial import Record
from raybo.schedulers import make
from raybo.searcher import Searcher
from tests.methods.studies import coordinates, floats, hill
from tests.schedulers.studies import curve, empty, end
from tests.surrogate.conftest import naive_matrix

STEPS = 32


def rising(x, steps=STEPS):
    """Curves that rise to the hill, the faster the smaller the second coordinate."""
    return hill(x) - (0.2 + x[1]) / np.arange(1, steps + 1)


@pytest.fixture
def history():
    return nine()


def nine(sign=1.0):
    """Nine trials: four finished, four pruned at step 8, one running at step 3; with sign -1 of what is minimised."""
    rng = np.random.default_rng(1)
    made = empty(STEPS, sign)
    for i, x in enumerate(rng.random((9, 2))):
        trial = curve(made, sign * rising(x)[: (32, 8)[i % 2] if i < 8 else 3], x)
        if i < 8:
            end(made, trial, *([] if i % 2 == 0 else [Kind.PRUNED]))
    return made


def test_curve_model_sees_octaves_and_ends(history):
    fit = fit_curves(history)
    places = fit.gp.curves.X[:, 2] * np.log2(STEPS)
    np.testing.assert_allclose(places[:5], [1, 2, 3, 4, 5])  # steps 2, 4, 8, 16 and the last
    np.testing.assert_allclose(places[5:8], [1, 2, 3])
    np.testing.assert_allclose(places[-2:], [1, np.log2(3)])
    assert reported(history) == list(range(9))
    best = max(record.y for record in history.records if record.y is not None)
    assert fit.outputs.invert(np.array([fit.incumbent]))[0] == pytest.approx(best)


def test_curves_expect_in_the_metrics_units(history):
    fit, record = fit_curves(history), history.records[0]
    low, mean, high, best = fit.prediction(record.x)["expects"][0]
    assert low <= mean <= high
    assert mean == pytest.approx(record.y, abs=0.2)
    assert best == pytest.approx(max(each.y for each in history.records if each.y is not None), rel=1e-4)


def test_curves_expect_before_any_trial_has_finished():
    made = empty(STEPS)
    for x in np.random.default_rng(1).random((12, 2)):
        end(made, curve(made, rising(x)[:8], x), Kind.PRUNED)
    tags = Auto().propose(made, np.random.default_rng(0)).tags
    goals = Goals(("accuracy",), ("max",))
    why = Auto().explain({**tags, IN_UNITS: in_units(tags, goals)})
    assert re.fullmatch(r"trial \d+ again.*: at the last step, accuracy \S+ expected \(\S+ to \S+\)", why)


def test_final_means_match_an_exact_gp(history):
    fit = fit_curves(history)
    gp, trials, means = fit.gp.curves, reported(history), final_means(fit.gp, history)
    last = np.array([[*history.records[t].x, 1.0] for t in trials])
    A = naive_matrix(gp, gp.X, gp.X) + gp.noise_variance * np.eye(gp.n)
    K = naive_matrix(gp, last, gp.X)
    np.testing.assert_allclose(means, K @ np.linalg.solve(A, gp.y), rtol=1e-6)
    expected = gp.outputscale - np.einsum("ij,ji->i", K, np.linalg.solve(A, K.T))
    predictions = [fit.prediction(history.records[t].x) for t in trials]
    np.testing.assert_allclose([each["mean"] for each in predictions], means)
    np.testing.assert_allclose([each["std"] ** 2 for each in predictions], expected, rtol=1e-4, atol=1e-7)


def test_last_step_gradients_match_differences(history):
    at = fit_curves(history).gp
    X, step = np.random.default_rng(0).random((5, 2)), 6e-6
    mean, var, dmean, dvar = at.posterior_gradient(X)
    np.testing.assert_allclose((mean, var), at.posterior(X), rtol=1e-9)
    assert dmean.shape == dvar.shape == (5, 2)
    for j in range(2):
        up, down = X.copy(), X.copy()
        up[:, j] += step
        down[:, j] -= step
        for analytic, i in ((dmean, 0), (dvar, 1)):
            numeric = (at.posterior(up)[i] - at.posterior(down)[i]) / (2 * step)
            np.testing.assert_allclose(analytic[:, j], numeric, rtol=1e-5, atol=1e-7)
    joint_mean, cov = at.joint(X)
    np.testing.assert_allclose(joint_mean, mean)
    np.testing.assert_allclose(np.diag(cov), var, rtol=1e-6, atol=1e-9)


def test_early_steps_tell_of_the_end(history):
    """Expectations of unfinished trials are nearer to their ends than their last reports are."""
    fit = fit_curves(history)
    means, records = final_means(fit.gp, history), [history.records[t] for t in reported(history)]
    cut = [place for place, record in enumerate(records) if record.y is None]
    missed = [fit.outputs.invert(means[[p]])[0] - rising(records[p].x)[-1] for p in cut]
    raw = [records[p].reports[-1][1] - rising(records[p].x)[-1] for p in cut]
    assert np.abs(missed).mean() < np.abs(raw).mean()


def test_verdicts_use_the_probability_of_improvement(history):
    trial = 8
    rule = make("curve", {"grace": 3, "first": 0}, STEPS)
    assert rule.decides(history, trial, 3)
    verdict = rule.decide(history, trial, 3)
    fit = fit_curves(history)
    means = final_means(fit.gp, history)
    target = max(fit.incumbent, means[:8].max())
    expected = norm.cdf((means[8] - target) / fit.prediction(history.records[8].x)["std"])
    assert verdict.numbers["probability"] == pytest.approx(expected, rel=1e-6)
    assert verdict.prune == (expected < 0.05)
    assert make("curve", {"grace": 3, "first": 0, "odds": 0.0}, STEPS).decide(history, trial, 3).action == "go"
    assert make("curve", {"grace": 3, "first": 0, "odds": 0.999999}, STEPS).decide(history, trial, 3).prune


def test_minimised_metrics_are_judged_alike(history):
    """The verdict's words hold whichever way is better."""
    rule = make("curve", {"grace": 3, "first": 0}, STEPS)
    up, down = (rule.decide(each, 8, 3) for each in (history, nine(-1.0)))
    assert down.numbers["probability"] == pytest.approx(up.numbers["probability"], rel=1e-6)
    assert down.numbers["best"] == pytest.approx(-up.numbers["best"])
    assert up.why.startswith(f"beats {up.numbers['best']:.6g} with probability")
    assert down.why.startswith(f"beats {down.numbers['best']:.6g} with probability")


def test_the_first_trials_are_only_looked_at():
    rule, history = make("curve", {"first": 2}, 26), empty(26)
    for i in range(3):
        trial = curve(history, [0.1 * i], (0.1 * i, 0.5))
        assert not rule.decides(history, trial, 1)
        history.apply(Reported(trial, step=2, value=0.1 * i))
        verdict = rule.decide(history, trial, 2)
        if i < 2:
            assert verdict.why == "one of the first 2, which end at step 2: a look at others is worth more"
            end(history, trial, Kind.PRUNED)
    assert "probability" in verdict.numbers
    assert [step for step in range(3, 27) if rule.decides(history, trial, step)] == [*range(6, 26)]


def test_rerun_configurations_continue():
    rule, history = make("curve", {"odds": 0.999, "first": 0}, 26), empty(26)
    for x in ((0.5, 0.5), (0.6, 0.6)):
        trial = curve(history, [0.1, 0.2], x)
        end(history, trial, Kind.PRUNED)
    again = curve(history, [0.1, 0.2], (0.5, 0.5))
    assert rule.decide(history, again, 2).action == "go"
    other = curve(history, [0.1, 0.2], (0.9, 0.5))
    assert rule.decide(history, other, 2).prune


def study(scheduler, trials=30, method="auto", seed=0):
    searcher = Searcher(floats(2), method, seed=seed, steps=STEPS, scheduler=scheduler)
    for _ in range(trials):
        trial = searcher.ask()
        for value in rising(coordinates(trial)):
            if searcher.report(trial, value).prune:
                searcher.prune(trial)
                break
        else:
            searcher.tell(trial, value)
    return searcher


def test_curve_saves_steps_for_auto():
    searcher = study("curve")
    spent = sum(record.step for record in searcher.history.records)
    assert searcher.best.value > -5e-3 + rising(np.array([0.3, 0.3]))[-1]
    assert spent < 0.75 * 30 * STEPS
    again = [trial for trial in searcher.trials if "again" in trial.tags]
    assert again
    assert again[0].state is State.FINISHED
    assert again[0].config == searcher.trials[again[0].tags["again"]].config
    assert searcher.explain(again[0]).startswith(f"trial {again[0].tags['again']} again, which was pruned")
    assert "upper confidence bound: at the last step, value " in searcher.explain(searcher.trials[-1])
    assert " expected (" in searcher.explain(searcher.trials[-1])  # in the metric's units


def test_repeatedly_pruned_configurations_are_not_rerun():
    searcher = study("asha", trials=40)
    again = [trial for trial in searcher.trials if "again" in trial.tags]
    assert sum(trial.state is State.PRUNED for trial in again) <= 1


def test_whoever_runs_is_not_run_again(history):
    assert has_cut_curves(history)
    fit = replace(fit_curves(history), incumbent=-np.inf)
    first = worth_running_again(history, fit)
    assert history.records[first].state is State.PRUNED
    again = len(history)
    history.apply(Asked(again, x=history.records[first].x.tolist(), tags={"again": first}))
    assert worth_running_again(history, fit) is None  # until one has finished, one at a time
    history.apply(Told(again, value=-9.0))
    assert worth_running_again(history, fit) not in (None, first)


def test_without_reports_auto_proposes_as_ever():
    plain, told = (
        Searcher(floats(2), seed=3, steps=steps, scheduler=rule) for steps, rule in ((None, None), (9, "curve"))
    )
    for _ in range(14):
        a, b = plain.ask(), told.ask()
        assert a.config == b.config
        for searcher, trial in ((plain, a), (told, b)):
            searcher.tell(trial, hill(coordinates(trial)))


def test_pruned_ends_condition_the_next_proposal(history):
    """Expectations stay; uncertainty of their ends draws no proposal to their neighbours."""
    fit = fit_curves(history)
    sure = believing_ends(fit, history, history.points(State.PENDING))
    pruned, others = history.points(State.PRUNED), np.random.default_rng(0).random((50, 2))
    np.testing.assert_array_equal(np.unique(cut_points(history), axis=0), np.unique(pruned, axis=0))
    (mean, var), (as_before, before) = (each.gp.posterior(pruned) for each in (sure, fit))
    np.testing.assert_allclose(mean, as_before, atol=1e-6)
    assert (var < 0.2 * before).all()
    np.testing.assert_allclose(sure.gp.posterior(others)[0], fit.gp.curves.mean(at_step(others, 1.0)), atol=1e-6)


def curves_of(reaches):
    """Records of trials that have come so far, each better than the one before."""
    made = empty(64)
    for i, reach in enumerate(reaches):
        curve(made, [i + step / 100 for step in range(1, reach + 1)], (i / len(reaches), 0.5))
    return made.records


def test_few_curves_keep_all_octaves():
    records = list(curves_of([1, 8, 8, 20, 3]))
    rows = rows_of_curves(records, (1, 64), 100)
    steps = [[round(64**place) for record, place, _ in rows if record is each] for each in records]
    assert steps == [[1], [2, 4, 8], [2, 4, 8], [2, 4, 8, 16, 20], [2, 3]]
    rows = rows_of_curves(
        records, (1, 64), 11
    )  # further ones of the trial with most steps, and of the better at step 8
    steps = [[round(64**place) for record, place, _ in rows if record is each] for each in records]
    assert steps == [[1], [8], [2, 4, 8], [2, 4, 8, 16, 20], [3]]
    assert [value for record, _, value in rows if record is records[2]] == [2.02, 2.04, 2.08]


def test_large_studies_keep_furthest_and_newest_trials():
    reaches = [1] * 100
    reaches[10] = reaches[40] = 9
    records = list(curves_of(reaches))
    rows = rows_of_curves(records, (1, 64), 30)
    numbers = [next(i for i, each in enumerate(records) if each is record) for record, _, _ in rows]
    assert numbers == sorted(set(numbers))
    assert len(numbers) == 30
    assert {10, 40, *range(90, 100)} <= set(numbers)
    assert {round(64**place) for _, place, _ in rows} == {1, 9}
    rest = [number for number in numbers if number < 82 and number not in (10, 40)]
    assert len(rest) >= 10
    assert max(np.diff(rest)) < 15


def test_large_studies_use_few_points():
    rng, made = np.random.default_rng(0), empty(64)
    for i in range(MANY + 60):
        trial = curve(made, [hill(x := rng.random(2))], x)
        end(made, trial, Kind.FAILED, reason="") if i % 3 == 0 else end(made, trial, Kind.PRUNED, step=1)
    assert fit_curves(made).gp.curves.n <= ROWS_OF_MANY * 6 // 5


STEPLESS = [
    {},
    {"constraints": {"g": "<= 0.6 at every step"}},
    {"metrics": {"a": "min", "b": "min"}, "constraints": {"g": "<= 0.6 at every step"}},
]


@pytest.mark.parametrize("goals", STEPLESS)
def test_undeclared_steps_use_predictions(goals):
    """Their values by then are informative all the same."""
    goals = goals if "metrics" in goals else {"mode": "min", **goals}
    searcher = Searcher(floats(1), "auto", seed=0, **goals)
    for i in range(14):
        trial = searcher.ask()
        x = trial.config["x0"]
        told = {"a": x**2, "b": (1 - x) ** 2} if "metrics" in goals else {"value": x**2}
        told |= {"g": x} if "constraints" in goals else {}
        verdict = searcher.report(trial, told if len(told) > 1 else x**2, 1)
        if verdict.prune or i % 4 == 3:
            searcher.prune(trial)
        else:
            searcher.report(trial, told if len(told) > 1 else x**2, 2)
            searcher.tell(trial, told if len(told) > 1 else x**2)
    assert "fallback" not in searcher.ask().tags


def test_with_nobody_to_beat_a_trial_goes_on():
    searcher = Searcher(floats(1), "auto", mode="min", seed=0, trials=20, steps=27, scheduler="curve",
                        scheduler_options={"first": 0})  # fmt: skip
    trial = searcher.ask()
    verdicts = [searcher.report(trial, 1.0 / step, step) for step in range(1, 27)]
    assert {verdict.action for verdict in verdicts} == {"go"}
    assert {verdict.why for verdict in verdicts} == {""}


@pytest.mark.parametrize("size", [1e8, 1e200])
@pytest.mark.parametrize("scheduler", ["asha", "curve"])
def test_wild_early_steps_are_clipped(scheduler, size):
    """Values that begin far above where they end: proposals are the model's, and so are verdicts."""
    searcher = Searcher(
        floats(2), mode="max", seed=0, trials=16, steps=9, scheduler=scheduler, scheduler_options={"grace": 3}
    )
    for _ in range(16):
        trial = searcher.ask()
        assert "fallback" not in trial.tags
        end = hill(coordinates(trial))
        for step in range(1, 10):
            value = size * (1.0 + trial.number) if step < 3 else end - 1.0 / step
            if searcher.report(trial, value, step).prune:
                searcher.prune(trial)
                break
        else:
            searcher.tell(trial, end)
    assert sum("curves" in trial.tags for trial in searcher.trials) >= 5


def test_kept_fits_clip_wild_steps_too(history):
    tags = fit_curves(history).tags
    history.records.append(Record(np.full(2, 0.5), tags, State.PENDING))
    assert fit_curves(history, refit=False).tags == tags
    for step, y in ((1, 0.0), (2, 1e12), (4, 0.0)):
        history.apply(Reported(9, step=step, value=y))
    fit = fit_curves(history, refit=False)
    assert fit.tags == tags
    assert np.abs(fit.gp.curves.y).max() == WITHIN
