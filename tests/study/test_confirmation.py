"""Configurations that are run again at the end, and what a model expects of trials."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest

from raybo.common.errors import MethodError, TrialError
from raybo.record.confirmed import again, confirmed
from raybo.record.events import Stopped, Told
from raybo.record.goals import REACH
from raybo.record.origin import Origin
from raybo.searcher import Searcher
from raybo.space import Float
from raybo.study.confirmation import Confirm, most_promising, still_to_run
from raybo.surrogate.noisy_trials import WEIGHTS, Expectation

SPACE = {"x": Float(0, 1), "y": Float(0, 1)}


def hill(config):
    return -((config["x"] - 0.3) ** 2) - (config["y"] - 0.6) ** 2


def searched(noise=0.0, n=20, mode="max", seed=1):
    """A searcher that knows of n trials of a hill."""
    searcher = Searcher(SPACE, "random", mode, seed=seed)
    rng, sign = np.random.default_rng(seed), 1.0 if mode == "max" else -1.0
    for _ in range(n):
        trial = searcher.ask()
        searcher.tell(trial, sign * (hill(trial.config) + noise * rng.standard_normal()))
    return searcher


def run_again(searcher, number, value=None):
    asked = searcher.apply(searcher.known(searcher.trials[number].config, Origin.CONFIRMED, {"confirms": number}))
    if value is None:
        searcher.fail(asked.trial, "unlucky")
    else:
        searcher.apply(Told(asked.trial, value=value))


@pytest.mark.parametrize("given", ["5x3", "5X3", " 5 x 3 ", (5, 3), [5, 3], Confirm(5, 3)])
def test_what_is_confirmed_is_read(given):
    assert Confirm.of(given) == Confirm(5, 3)


@pytest.mark.parametrize("given", ["5", "5x", "x3", "0x3", "5x0", "5x3x1", "-5x3", 5, (5,), (5, 0), (5, True), None])
def test_what_is_no_confirmation_is_refused(given):
    with pytest.raises(MethodError, match=r"^confirm must be KxR"):
        Confirm.of(given)


@pytest.mark.parametrize("mode", ["max", "min"])
def test_the_luckiest_is_not_the_most_promising(mode):
    """With noise as large as the hill: over eight studies, what is expected most of is truly better on average."""
    studies = [searched(noise=0.3, n=40, mode=mode, seed=seed) for seed in range(8)]
    lucky, expected = (
        [hill(which(each).config) for each in studies] for which in (lambda s: s.best, lambda s: s.best_expected)
    )
    assert np.mean(expected) > np.mean(lucky)
    searcher = studies[0]
    best = searcher.best_expected
    assert most_promising(searcher.trials, searcher.history, 5)[0] == best.number
    mean, sd = searcher.expected(searcher.best)
    assert abs(mean) < abs(searcher.best.value)
    assert sd > 0.0


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["max", "min"])
def test_the_best_value_without_noise_is_recommended(mode):
    """Near the optimum the model's own error, not luck, tells values of 1e-9 and 1e-5 apart."""
    for seed in range(4):
        searcher = Searcher(SPACE, mode=mode, seed=seed)
        for _ in range(20):
            trial = searcher.ask()
            loss = (math.log10(trial.config["x"] + 1e-9) + 0.5) ** 2 + (trial.config["y"] - 0.6) ** 2
            searcher.tell(trial, loss if mode == "min" else -loss)
        assert searcher.recommended.number == searcher.best.number
        assert most_promising(searcher.trials, searcher.history, 3)[0] == searcher.best.number
        assert "than for trial" not in searcher.recommendation


def test_a_hair_better_by_the_model_is_not_better():
    model = Expectation.of(np.linspace(0, 1, 12)[:, None], np.random.default_rng(0).normal(size=12), (False,))
    X, y = np.array([[0.3], [0.7]]), np.array([0.0, 1.0])
    sds = model.at(X)[1]
    for gap, first in ((0.2, 1), (0.3, 0)):
        model.__dict__["at"] = lambda X, gap=gap: (np.array([gap * sds[0], 0.0]), sds)
        assert model.ranking(X, y).tolist() == [first, 1 - first]


def test_confirmed_configurations_do_not_depend_on_the_reruns():
    searcher, confirm = searched(noise=0.1), Confirm(3, 2)
    first = still_to_run(confirm, searcher.trials, searcher.history)
    assert len(first) == 6
    assert first[:3] == first[3:] == most_promising(searcher.trials, searcher.history, 3)
    for place, number in enumerate(first):
        run_again(searcher, number, None if place == 1 else 100.0 * place)
        assert still_to_run(confirm, searcher.trials, searcher.history) == first[place + 1 :]
    assert len(again(searcher.trials)) == 6


def test_a_stopped_confirmation_is_run_again():
    searcher, confirm = searched(), Confirm(2, 2)
    first = still_to_run(confirm, searcher.trials, searcher.history)
    asked = searcher.apply(searcher.known(searcher.trials[first[0]].config, Origin.CONFIRMED, {"confirms": first[0]}))
    assert still_to_run(confirm, searcher.trials, searcher.history) == first[1:]
    searcher.apply(Stopped(asked.trial, reason="by the user"))
    assert still_to_run(confirm, searcher.trials, searcher.history) == first
    assert confirmed(searcher.trials, searcher.history, searcher.ledger.goal) == []


@pytest.mark.parametrize("n", [3, 12])  # too few for a model, and enough
def test_only_finished_feasible_trials_are_confirmed(n):
    searcher = Searcher(SPACE, "random", seed=0, constraints={"m": "<= 1"})
    for i in range(n):
        searcher.tell(searcher.ask(), {"value": 100.0 if i == 1 else float(i), "m": 2.0 if i == 1 else 0.5})
    searcher.fail(searcher.ask(), "it raised")
    searcher.ask()
    assert sorted(most_promising(searcher.trials, searcher.history, 99)) == [i for i in range(n) if i != 1]


def test_confirmed_means_are_of_reruns_best_first():
    searcher = searched()
    for number, values in {4: [1.0, 3.0], 9: [2.5, 2.5], 2: [0.5, None]}.items():
        for value in values:
            run_again(searcher, number, value)
    found = confirmed(searcher.trials, searcher.history, searcher.ledger.goal)
    assert [(each.trial.number, each.mean, each.planned) for each in found] == [(9, 2.5, 2), (4, 2.0, 2), (2, 0.5, 2)]
    assert found[0].error == 0.0
    assert found[1].error == pytest.approx(1.0)
    assert found[2].error is None
    assert confirmed(searched().trials, searcher.history, searcher.ledger.goal) == []
    assert searcher.explain(searcher.trials[-1]) == "to confirm trial 2"


@pytest.mark.parametrize("rule", ["m: >= 0.5", "m: >= 0.5 at every step"])
def test_configurations_that_break_constraints_in_reruns_come_last(rule):
    """Its trial in the search was lucky with the constraint, as others are with the value."""
    name, _, bound = rule.partition(": ")
    searcher = Searcher(SPACE, "random", seed=0, constraints={name: bound}, steps=2)
    for value in (3.0, 2.0, 1.0):
        searcher.tell(searcher.ask(), {"value": value, "m": 1.0})
    for number, numbers in {0: [0.0, 0.0], 1: [1.0, 0.0], 2: [1.0, 1.0]}.items():
        for m in numbers:
            config = searcher.trials[number].config
            asked = searcher.apply(searcher.known(config, Origin.CONFIRMED, {"confirms": number}))
            if searcher.report(asked.trial, {"value": 3.0 - number, "m": m}).prune and number:
                searcher.prune(asked.trial)
            else:
                searcher.tell(asked.trial, {"value": 3.0 - number, "m": m})
    found = confirmed(searcher.trials, searcher.history, searcher.ledger.goal)
    assert [(each.trial.number, each.infeasible) for each in found] == [(2, 0), (1, 1), (0, 2)]


def test_a_repeated_configuration_is_confirmed_once():
    searcher = searched(n=3)
    for _ in range(3):
        searcher.add({"x": 0.3, "y": 0.6}, 1.0)
    assert most_promising(searcher.trials, searcher.history, 2)[0] == 3
    assert len(set(most_promising(searcher.trials, searcher.history, 9))) == 4
    searcher.add({"x": 0.3, "y": 0.6}, 3.0)
    searcher.add({"x": 0.3, "y": 0.6}, 2.0)
    for known in (8, 14):  # too few for a model, and enough
        while len(searcher.trials) < known:
            searcher.tell(searcher.ask(), 0.0)
        assert most_promising(searcher.trials, searcher.history, 1) == [6]  # named by its best run


def test_expectations_are_made_when_they_are_asked_for():
    code = (
        "import sys, raybo\n"
        "s = raybo.Searcher({'x': raybo.Float(0, 1)}, 'random', seed=0)\n"
        "for i in range(9): s.tell(s.ask(), float(i % 4))\n"
        "best = s.best\n"
        "assert 'raybo.surrogate.noisy_trials' not in sys.modules and 'scipy.linalg' not in sys.modules\n"
        "assert best == s.trials[3] and best.number == 3\n"
        "assert len(best.details) == 0 and 'raybo.surrogate.noisy_trials' not in sys.modules\n"
        "assert len(s.expected(best)) == 2\n"
        "assert 'raybo.surrogate.noisy_trials' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_details_hold_only_estimates_that_chose_the_trial():
    searcher = searched(n=12)
    best = searcher.best
    assert best == searcher.trials[best.number]
    assert best.details == {}
    chosen = searcher.best_expected
    assert set(chosen.details) == {"expected", "expected_sd"}
    assert searcher.expected(chosen) == tuple(chosen.details.values()) == searcher.expected(chosen.number)
    few = searched(n=3)
    assert few.expected(few.best) is None
    assert few.best == few.best_expected


@pytest.mark.parametrize("mode", ["max", "min"])
def test_expected_values_follow_new_results_and_the_mode(mode):
    searcher, turn = searched(n=12, mode=mode), 1.0 if mode == "max" else -1.0
    before = [searcher.expected(number) for number in range(12)]
    assert None not in before
    for _ in range(5):
        searcher.add(searcher.trials[3].config, turn * 10.0)
    after = [searcher.expected(trial) for trial in searcher.trials]
    assert len(after) == 17
    assert turn * after[3][0] > turn * before[3][0] + 1.0
    assert searcher.expected(searcher.best) == after[searcher.best.number]


def test_the_best_expected_keeps_the_constraints():
    searcher = Searcher(SPACE, "random", seed=1, constraints={"m": "<= 1"})
    for _ in range(20):
        trial = searcher.ask()
        value = hill(trial.config)
        searcher.tell(trial, {"value": value, "m": 2.0 if value > -0.1 else 0.5})
    best = max((trial for trial in searcher.trials if trial.feasible), key=lambda trial: trial.value)
    assert max(searcher.trials, key=lambda trial: trial.value).violations
    assert searcher.best_expected.feasible
    assert searcher.best_expected.value > best.value - 0.1


def test_only_the_best_of_many_trials_compete(monkeypatch):
    searcher = searched(noise=0.3, n=40)
    assert searcher.best_expected.number != searcher.best.number
    monkeypatch.setattr("raybo.methods.findings.LIKELY", 1)
    assert searched(noise=0.3, n=40).best_expected.number == searcher.best.number


def test_expectation_needs_trials_that_differ():
    with pytest.raises(TrialError):
        _ = Searcher(SPACE, "random").best_expected
    X = np.random.default_rng(0).random((8, 2))
    assert Expectation.of(X, np.ones(8), (False, False)) is None


def test_expectations_are_in_the_values_units():
    """Means and deviations of a smooth function, and the gain of a normal law: E max(0, Z - b)."""
    rng = np.random.default_rng(0)
    X = rng.random((60, 2))
    y = 1e3 * np.sin(3 * X[:, 0]) + 500.0 * X[:, 1]
    found = Expectation.of(X, y, (False, False))
    new = rng.random((40, 2))
    mean, sd = found.at(new)
    assert np.abs(mean - (1e3 * np.sin(3 * new[:, 0]) + 500.0 * new[:, 1])).max() < 60.0
    assert (sd < 60.0).all()
    assert (found.gain(new, float(y.max())) <= np.maximum(mean - y.max(), 0.0) + sd + 1e-6).all()
    np.testing.assert_allclose(found.gain(new, -1e6), mean + 1e6)


def test_expected_values_are_finite_at_any_scale():
    X = np.random.default_rng(0).random((9, 2))
    y = np.where(np.arange(9) % 3 > 0, X[:, 0], -X[:, 1])
    found = Expectation.of(X, y, (False, False))
    mean, sd = found.at(X)
    huge = Expectation.of(X, y * 2.0**490, (False, False))
    np.testing.assert_allclose(np.array(huge.at(X)) / 2.0**490, [mean, sd], rtol=1e-4)
    assert huge.gain(X, float(y.min()) * 2.0**490).max() > 0.0
    extreme = Expectation.of(X, REACH * np.where(np.arange(9) % 3 > 0, 1.0, -1.0), (False, False))
    for told in (*extreme.at(X), extreme.gain(X, -REACH)):
        assert np.isfinite(told).all()


def test_no_expectation_far_beyond_all_values():
    """A power that makes wild values normal, inverted where the model is unsure, is wilder still."""
    rng = np.random.default_rng(1)
    X = rng.random((31, 3))
    y = rng.choice([-1, 1], 31) * 10 ** rng.uniform(-2, 9, 31)
    found = Expectation.of(X, y, (False,) * 3)
    mean, sd = found.at(np.vstack([X, rng.random((50, 3))]))
    assert mean.max() <= 2 * y.max() - y.min()
    assert mean.min() >= 2 * y.min() - y.max()
    assert sd.max() <= 3 * np.ptp(y)


def test_the_deviation_of_huge_values_is_finite():
    rng = np.random.default_rng(2)
    X, y = rng.random((20, 2)), rng.normal(size=20)
    found = Expectation.of(X, y, (False, False))
    values, weights = found._values(X), WEIGHTS / WEIGHTS.sum()
    plain = np.sqrt(np.maximum(np.square(values - (values @ weights)[:, None]) @ weights, 0.0))
    assert (found.at(X)[1] == plain).all()
    y[3] = REACH
    assert np.isfinite(Expectation.of(X, y, (False, False)).at(X)).all()


def test_runs_that_crash_do_not_count_as_feasible():
    searcher = Searcher({"x": Float(0, 1)}, "random", seed=0, metrics={"acc": "max"}, constraints={"mem": "<= 1"})
    for acc in (0.9, 0.8):
        searcher.tell(searcher.ask(), {"acc": acc, "mem": 0.5})
    outcomes = {
        0: ({"acc": 0.95, "mem": 0.5}, None, None),
        1: (*[{"acc": 0.8, "mem": 0.5}] * 2, {"acc": 0.8, "mem": 2}),
    }
    for number, runs in outcomes.items():
        for result in runs:
            event = searcher.known(searcher.trials[number].config, Origin.CONFIRMED, {"confirms": number})
            again_number = searcher.apply(event).trial
            if result is None:
                searcher.fail(again_number, "it crashed")
            else:
                searcher.tell(again_number, result)
    found = confirmed(searcher.trials, searcher.history, searcher.goals.first)
    assert [each.trial.number for each in found] == [1, 0]  # feasible in two of three runs, and in one of three


def test_a_search_that_goes_on_is_not_ruled_by_what_was_confirmed():
    searcher = searched()
    best = searcher.best.number
    for _ in range(2):
        run_again(searcher, best, searcher.best.value)
    assert searcher.recommended.number == best
    trial = searcher.ask()
    searcher.tell(trial, 5.0)
    assert searcher.recommended.number == trial.number
    assert "further run" not in searcher.recommendation
    run_again(searcher, trial.number, 4.0)
    assert searcher.recommendation == f"trial {trial.number}, mean value 4 in 1 further run, the best"


def test_runs_that_crash_count_against_a_configuration():
    searcher = searched()
    for value in (9.0, None, None):
        run_again(searcher, 3, value)
    for value in (1.0, 1.0, None):
        run_again(searcher, 5, value)
    assert [each.trial.number for each in confirmed(searcher.trials, searcher.history, searcher.ledger.goal)] == [5, 3]
    assert searcher.recommendation == "trial 5, mean value 1 in 2 of 3 further runs, the best"
