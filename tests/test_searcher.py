"""Ask and tell: any order, the user's sign, and the refusal of everything that is no result."""

from __future__ import annotations

import json
import math
import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import raybo
from raybo.common.errors import MethodError, NumericalError, RayboError, SpaceError, TrialError
from raybo.common.messages import shown
from raybo.methods import Method
from raybo.record.history import Proposal
from raybo.record.states import State
from raybo.schedulers import GO, Scheduler
from raybo.searcher import Searcher
from raybo.space import Categorical, Float, Integer, Space

SPACE = Space(
    {"lr": Float(1e-3, 1, log=True), "n": Integer(1, 9), "m": {"c": Categorical(["a", None, True, 1, np.arange(2)])}}
)


def searcher(method="random", seed=0, **arguments):
    return Searcher(SPACE, method=method, seed=seed, **arguments)


# ---- ask and tell


@given(st.permutations(range(8)), st.sampled_from(["max", "min"]))
def test_results_in_any_order_make_the_same_study(order, mode):
    values = [3.0, -1.0, 7.5, 7.5, 0.0, -2.0, -2.0, 1.0]
    s = searcher(mode=mode)
    trials = [s.ask() for _ in values]
    assert [trial.number for trial in trials] == list(range(8))
    for number in order:
        told = s.tell(trials[number], values[number])
        assert (told.state, told.value) == (State.FINISHED, values[number])
    assert [trial.value for trial in s.trials] == values
    np.testing.assert_array_equal(s.history.y, np.array(values) * (1 if mode == "max" else -1))
    assert (s.best.number, s.best.value) == ((2, 7.5) if mode == "max" else (5, -2.0))


def test_asked_trials_are_pending_until_told_or_failed():
    s = searcher()
    a, b, c = s.ask(), s.ask(), s.ask()
    assert {trial.state for trial in s.trials} == {State.PENDING}
    s.tell(b, 1)
    s.fail(c, "diverged")
    assert [trial.state for trial in s.trials] == [State.PENDING, State.FINISHED, State.FAILED]
    assert s.trials[2].reason == "diverged"
    assert s.trials[2].value is None
    np.testing.assert_allclose(s.history.X_pending, SPACE.encode([a.config]), atol=1e-14)
    np.testing.assert_allclose(s.history.X_failed, SPACE.encode([c.config]), atol=1e-14)


def test_a_proposal_is_run_as_it_was_snapped():
    s = searcher()
    for _ in range(30):
        trial = s.ask()
        x = s.history.records[trial.number].x
        np.testing.assert_array_equal(SPACE.snap(x[None, :])[0], x)
        np.testing.assert_allclose(SPACE.encode([trial.config])[0], x, atol=1e-14)
        assert SPACE.accept(trial.config) == trial.config


def test_numbers_of_every_kind_are_results():
    s = searcher()
    for value in (1, 1.5, np.float32(0.5), np.int64(-3), np.float64(1e300), 5e-324, np.longdouble(2), 2**70):
        told = s.tell(s.ask(), value)
        assert type(told.value) is float
        assert told.value == float(value)


NOT_FINITE = [math.nan, math.inf, -math.inf, np.float32("nan"), 10**400]
NO_NUMBERS = [None, "0.5", True, np.True_, [1.0], np.array([1.0]), 1 + 2j]


@pytest.mark.parametrize("value", NOT_FINITE + NO_NUMBERS, ids=lambda value: f"{value!r:.20}")
def test_non_finite_results_are_refused(value):
    s = searcher()
    s.ask()
    trial = s.ask()
    with pytest.raises(TrialError) as caught:
        s.tell(trial, value)
    kind = "a finite number" if any(value is bad for bad in NOT_FINITE) else "a number"
    assert str(caught.value).startswith(f"trial 1: {kind} is needed, got ")
    assert str(caught.value).count("use fail()") == 1
    assert "\n" not in str(caught.value)
    assert s.trials[1].state is State.PENDING
    events = s.history.last_event
    with pytest.raises(TrialError, match="trial 2: "):
        s.add(trial.config, value)
    assert (s.history.last_event, len(s.trials)) == (events, 2)  # nothing half-added
    s.tell(trial, 1.0)


@pytest.mark.parametrize("name", ["memory", "another"])
def test_a_number_beyond_every_float_is_not_known(name):
    """In a report, where only the first metric is needed, as elsewhere."""
    goals = {"metric": "loss", "constraints": {"memory": "<= 3 at every step"}}
    s = Searcher({"x": Float(0, 1)}, "random", seed=0, steps=3, **goals)
    trial = s.ask()
    assert s.report(trial, {"loss": 1.0, name: 10**400}).action == "go"
    text = shown(10**400)  # kept as text, which is no number
    assert s.trials[0].details["metrics"] == {name: text}
    assert s.trials[0].violations == {}
    told = {"loss": 1.0, "memory": 1.0, "another": 10**400}
    assert s.tell(trial, told).details["metrics"] == {"memory": 1.0, "another": text}


def test_numbers_of_numpy_are_options():
    s = Searcher({"x": Float(0, 1)}, "ei", seed=0, initial=np.int64(5), nu=np.float32(0.5))
    assert (type(s.method.initial), type(s.method.nu)) == (int, float)
    with pytest.raises(MethodError, match="ei: initial must be a finite number, got 1000"):
        Searcher({"x": Float(0, 1)}, "ei", initial=10**400)


def test_a_trial_is_told_once():
    s = searcher()
    told, failed = s.ask(), s.ask()
    s.tell(told, 1.0)
    s.fail(failed, "no")
    for trial, state in ((told, "finished"), (failed, "failed"), (0, "finished")):
        with pytest.raises(TrialError, match=f"it is {state} already; a trial ends once"):
            s.tell(trial, 2.0)
        with pytest.raises(TrialError, match=f"it is {state} already; a trial ends once"):
            s.fail(trial, "again")
    assert s.best.value == 1.0


@pytest.mark.parametrize("trial", [-1, 1, 10**9, None, "0", 0.0, {"lr": 0.1}], ids=str)
def test_a_result_for_an_unknown_trial_is_refused(trial):
    s = searcher()
    s.ask()
    for use in (lambda: s.tell(trial, 1.0), lambda: s.fail(trial, "x")):
        with pytest.raises(TrialError, match=r"no such trial, 1 have been asked for"):
            use()
    assert s.trials[0].state is State.PENDING


def test_a_known_result_is_added():
    s = searcher(mode="min")
    config = {"lr": 0.25, "n": 3, "m": {"c": None}}
    added = s.add(config, 0.125)
    assert added == s.best == s.trials[0]
    assert (added.config, added.value, added.state) == (config, 0.125, State.FINISHED)
    assert s.explain(added) == "added by the user"
    np.testing.assert_array_equal(s.history.X, SPACE.encode([config]))
    np.testing.assert_array_equal(s.history.y, [-0.125])
    with pytest.raises(SpaceError, match=r"^lr: 2.0 lies outside"):
        s.add({**config, "lr": 2.0}, 1.0)
    assert s.ask().number == 1


def test_best_needs_a_finished_trial():
    s = searcher()
    for end in (lambda t: None, lambda t: s.fail(t, "x")):
        end(s.ask())
        with pytest.raises(TrialError, match="no trial has finished yet"):
            _ = s.best


# ---- what it is made of


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"mode": "maximise"}, "mode must be 'max' or 'min', got 'maximise'"),
        ({"seed": -1}, "seed must be a whole number from 0, got -1"),
        ({"seed": 2**128 + 1}, f"seed must be a whole number from 0 to {2**128}, got"),
        ({"seed": 1.5}, "seed must be"),
        ({"seed": "7"}, "seed must be"),
        ({"seed": True}, "seed must be"),
        ({"trials": 0}, "trials must be a whole number from 1, got 0"),
        ({"trials": -3}, "trials must be"),
        ({"trials": 2.5}, "trials must be"),
        ({"trials": True}, "trials must be"),
        ({"method": "rnadom"}, "there is no method 'rnadom'; did you mean 'random'?"),
        ({"method": "xyz"}, "there is no method 'xyz'; available: "),
        ({"method": ""}, "there is no method ''"),
        ({"method": "gp-ucb", "sovler": "cg"}, "gp-ucb has no option 'sovler'; did you mean 'solver'?"),
        ({"method": "random", "solver": "cg"}, "random has no option 'solver'; it has none"),
        ({"method": "gp-ucb", "solver": "adam"}, "gp-ucb: option solver must be one of random-grid, lbfgsb"),
        ({"method": "gp-ucb", "points_per_round": "many"}, "gp-ucb: option points_per_round must be a whole number"),
        ({"method": "gp-ucb", "points_per_round": 1.5}, "gp-ucb: option points_per_round must be a whole number"),
    ],
    ids=str,
)
def test_wrong_arguments_are_refused_with_the_nearest_name(arguments, words):
    with pytest.raises(MethodError) as caught:
        searcher(**arguments)
    assert str(caught.value).startswith(words)
    assert "\n" not in str(caught.value)


def test_a_space_may_be_given_as_a_mapping():
    assert Searcher({"a": Float(0, 1)}, "random", seed=1).space == Space({"a": Float(0, 1)})
    with pytest.raises(SpaceError):
        Searcher({"a": 3}, "random")


def test_missing_seeds_are_drawn_and_kept():
    a, b = (Searcher(SPACE, "random") for _ in range(2))
    assert a.seed != b.seed
    again = Searcher(SPACE, "random", seed=a.seed)
    assert [SPACE.pack(again.ask().config) for _ in range(3)] == [SPACE.pack(a.ask().config) for _ in range(3)]


def test_the_number_of_trials_planned_is_an_event():
    s = searcher(trials=5)
    assert s.history.planned == 5
    s.plan(np.int64(7))
    assert (s.history.planned, s.history.last_event) == (7, 2)


# ---- purity


def test_proposals_depend_on_seed_and_history():
    s, other = searcher(), searcher(seed=1)
    history = s.history.copy()
    first, again = s.propose(history), s.propose(history)
    untimed = {"suggest_seconds": 0, "suggest_processor_seconds": 0}
    assert {**first.data, **untimed} == {**again.data, **untimed}
    assert (len(s.trials), s.history.last_event) == (0, 0)
    assert other.propose(history).data["x"] != first.data["x"]
    assert s.propose(history).data["seen"] == 0
    s.ask()
    assert s.propose(s.history).data["x"] != first.data["x"]  # each trial has a stream of its own


def test_random_ignores_results():
    told, untold = searcher(), searcher()
    for i in range(5):
        a, b = told.ask(), untold.ask()
        assert SPACE.pack(a.config) == SPACE.pack(b.config)
        told.tell(a, float(i))


def test_tags_are_what_a_journal_would_give_back():
    class Tagging(Method):
        def propose(self, history, rng):
            return Proposal(rng.random(history.d), tags={"t": (1, 2), "x": 0.1, 3: None})

        def explain(self, tags):
            return f"t={tags['t']}"

    s = searcher()
    s.method = Tagging()
    trial = s.ask()
    assert trial.tags == {"t": [1, 2], "x": 0.1, "3": None} == json.loads(json.dumps(trial.tags))
    assert s.explain(trial) == "t=[1, 2]"


def test_numerical_failures_fall_back_to_random_points():
    class Failing(Method):
        def propose(self, history, rng):
            raise NumericalError("no factor")

        def explain(self, tags):
            raise AssertionError("not mine")

    s = searcher()
    s.method = Failing()
    trial = s.ask()
    assert trial.tags == {"fallback": "no factor"}
    assert s.explain(trial) == "a random point, because the model failed: no factor"
    again = searcher()
    again.method = Failing()
    assert SPACE.pack(again.ask().config) == SPACE.pack(trial.config)


def test_other_errors_of_a_method_are_not_hidden():
    class Broken(Method):
        def propose(self, history, rng):
            raise ZeroDivisionError

        def explain(self, tags):
            return "no reason"

    s = searcher()
    s.method = Broken()
    with pytest.raises(ZeroDivisionError):
        s.ask()
    assert not s.trials


def test_wrong_use_raises_raybo_errors():
    for kind in (MethodError, SpaceError, TrialError, NumericalError):
        assert issubclass(kind, RayboError)


def test_suggestions_record_wall_and_processor_time():
    """A busy machine makes it wait, which is no cost of the method."""

    class Waiting(Method):
        def propose(self, history, rng):
            time.sleep(0.2)
            return Proposal(np.full(history.d, 0.5), {})

        def explain(self, tags):
            return "no reason"

    s = searcher()
    s.method = Waiting()
    trial = s.ask()
    assert trial.suggest_seconds >= 0.2
    assert 0.0 <= trial.suggest_processor_seconds < 0.1


def test_0_1_journals_lack_processor_seconds():
    s = searcher()
    event = s.propose(s.history)
    s.apply(replace(event, suggest_processor_seconds=None))
    assert s.trials[0].suggest_processor_seconds is None


def test_searchers_and_trials_have_one_line_reprs():
    searcher = Searcher({"x": Float(0, 1)}, "gp-ucb", "min", seed=3)
    assert repr(searcher) == "Searcher(gp-ucb, min, d=1, seed=3; trials: 0, finished: 0)"
    trial = searcher.ask()
    assert repr(trial) == f"Trial(0, pending, {trial.config})"
    assert repr(searcher.tell(trial, 0.25)) == f"Trial(0, finished, value=0.25, {trial.config})"
    assert repr(searcher).endswith("; trials: 1, finished: 1, best: 0.25 (trial 0))")
    failed = searcher.fail(searcher.ask(), "it diverged")
    assert repr(failed) == f"Trial(1, failed, {failed.config}, reason='it diverged')"


@pytest.mark.parametrize("context", [None, {"load": Float(0, 1)}])
def test_batches_equal_single_asks(context):
    space = {"x": Float(0, 1), "y": Float(0, 1)}
    together, apart = (Searcher(space, "auto", seed=1, context=context) for _ in range(2))
    for searcher in (together, apart):
        for config in searcher.space.sample(np.random.default_rng(0), 12):
            searcher.add(config, -((config["x"] - 0.3) ** 2), context={"load": 0.5} if context else None)
    given = {"load": 0.2} if context else None
    asked = together.ask(8, given)
    assert [trial.config for trial in asked] == [apart.ask(given).config for _ in range(8)]
    X = np.array([list(trial.config.values()) for trial in asked])
    assert np.linalg.norm(X[:, None] - X[None], axis=2)[~np.eye(8, dtype=bool)].min() >= 1e-3 * math.sqrt(2)
    assert np.ptp(X, axis=0).max() > 0.02
    assert len(together.ask(1)) == 1
    for wrong in (0, -1, True, 1.5, "8"):
        with pytest.raises(TrialError, match=r"^ask: n must be a whole number from 1, got"):
            together.ask(wrong)


def test_configurations_are_copies():
    """A user who changes one changes neither the trial, nor the space, nor his own list."""
    layers = [[16], [32, 32]]
    searcher = Searcher({"x": Float(0, 1), "layers": Categorical(layers)}, "random", seed=0)
    trial = searcher.ask()
    before = trial.config
    changed = trial.config
    changed["layers"].append(1)
    changed.pop("x")
    assert trial.config == before
    assert layers == [[16], [32, 32]]
    assert all(trial.config["layers"] in [[16], [32, 32]] for trial in searcher.ask(6))


def test_what_users_change_is_their_own():
    searcher = Searcher({"x": Float(0, 1)}, metrics={"a": "max", "b": "min"}, constraints={"a": "<= 2"}, seed=0)
    for i in range(4):
        searcher.tell(searcher.ask(), {"a": i, "b": i, "more": [i]})
    before = [(t.values, t.violations, t.tags, t.details) for t in searcher.trials]
    volume = searcher.hypervolume({"a": -1, "b": 10})
    for trial in searcher.trials:
        trial.values["a"] = 100
        trial.violations.clear()
        trial.tags["centre"] = [0.5]
        trial.details["metrics"]["more"].append(9)
    assert [(t.values, t.violations, t.tags, t.details) for t in searcher.trials] == before
    assert searcher.hypervolume({"a": -1, "b": 10}) == volume
    searcher.front.clear()
    assert len(searcher.front) == 3


def test_trials_are_read_only():
    """A user who ranks them does not move them; a slice is his own, and the view grows with the study."""
    searcher = Searcher({"x": Float(0, 1)}, seed=0)
    trials = searcher.trials
    for height in (3.0, 1.0, 2.0):
        searcher.tell(searcher.ask(), height)
    for change in ("sort", "append", "pop", "clear", "reverse", "insert", "extend", "remove"):
        assert not hasattr(trials, change)
    with pytest.raises(TypeError):
        del trials[0]
    part = trials[:2]
    part.clear()
    assert [trial.number for trial in sorted(trials, key=lambda trial: trial.value)] == [1, 2, 0]
    assert trials == list(trials) == searcher.trials
    assert len(trials) == 3
    assert trials[-1].number == 2


def test_expectations_are_copies():
    searcher = Searcher({"x": Float(0, 1)}, seed=0)
    for trial in searcher.ask(10):
        searcher.tell(trial, trial.config["x"])
    before = searcher.expectations[0]
    searcher.expectations[0] = (0.0, 0.0)
    assert searcher.expectations[0] == before == pytest.approx(searcher.expected(0), rel=1e-6)


def test_a_reason_may_be_missing():
    searcher = Searcher({"x": Float(0, 1)}, seed=0)
    assert searcher.fail(searcher.ask(), None).reason == ""
    assert searcher.retry(0, None).reason == "it starts again"


def test_a_result_of_one_metric_may_be_a_dict():
    s = raybo.Searcher({"x": raybo.Float(0, 1)}, "random", metric="accuracy", seed=0)
    s.tell(s.ask(), {"accuracy": 0.9, "loss": 0.1})
    assert (s.trials[0].value, s.trials[0].details["metrics"]) == (0.9, {"loss": 0.1})
    trial = s.ask()
    s.report(trial, {"accuracy": 0.5, "loss": 0.3}, step=1)
    assert s.trials[1].reports == [(1, 0.5)]
    with pytest.raises(TrialError, match=r"^trial 1: its result has no accuracy; give a number for each of accuracy"):
        s.tell(trial, {"acuracy": 0.9})
    with pytest.raises(TrialError, match=r"^trial 1: a number is needed for accuracy, got True"):
        s.tell(trial, {"accuracy": True})


class Lenient(Scheduler):
    """Ends nothing."""

    def decides(self, history, trial, step):
        return True

    def decide(self, history, trial, step):
        return GO


def test_a_scheduler_of_a_script_judges_in_memory(monkeypatch):
    monkeypatch.setattr(Lenient, "__module__", "__main__")
    s = raybo.Searcher({"x": raybo.Float(0, 1)}, "random", steps=4, scheduler=Lenient(), seed=0)
    assert s.report(s.ask(), 0.5) == GO
