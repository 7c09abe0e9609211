"""RayboSearch behaves as Ray Tune's searchers do, when called without a Ray."""

from __future__ import annotations

import itertools
import json
import logging
import math
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

pytest.importorskip("ray.tune")

from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from ray import cloudpickle, tune
from ray.tune.search import ConcurrencyLimiter, Repeater, Searcher

import raybo
from raybo.common.errors import JournalError, MethodError, SpaceError, install_command
from raybo.integrations.ray_tune import RayboSearch
from raybo.methods import METHODS, needs_context
from raybo.record.states import State
from tests.priors import study, written

METHODS_TRIED = [name for name in ("random", "auto", "gp-ucb", "ei", "uhe", "sbo-kde") if name in METHODS]
SPACE = {"x": tune.uniform(-1, 1), "model": {"depth": tune.randint(1, 9), "kind": tune.choice(["a", "b"])}, "k": 3}
CONTEXT = {"wind": raybo.Float(0, 1)}
UNKNOWN = [
    np.array(True),
    np.array("0.5"),
    "0.5",
    Decimal("NaN"),
    None,
    "x",
    [1.0],
    {},
    math.nan,
    math.inf,
    -math.inf,
    True,
    np.array([1.0, 2.0]),
    10**400,
]
NUMBERS = [0.5, np.float32(0.5), np.array(0.5), Fraction(1, 2), Decimal("0.5"), np.array(Fraction(1, 2))]


class Real:
    """A number of somebody's own."""

    def __float__(self):
        return 0.5


NUMBERS.append(Real())


def search(method="random", space=SPACE, **arguments):
    context = CONTEXT if needs_context(method) else None
    early = {"initial": 3} if method in ("gp-ucb", "ei") else {}  # or these tests would end inside the initial design
    arguments = {"metric": "loss", "mode": "min", "seed": 0, "context": context, **early, **arguments}
    return RayboSearch(space, method=method, **arguments)


def objective(config):
    return (config["x"] - 0.3) ** 2 + 0.01 * abs(config["model"]["depth"] - 4)


def run(searcher, ids, function=objective):
    """Trials one after another; their configurations."""
    configs = []
    for trial_id in ids:
        config = searcher.suggest(trial_id)
        configs.append(config)
        result = {"loss": function(config), "wind": 0.5, "done": True}
        searcher.on_trial_complete(trial_id=trial_id, result=result)
    return configs


def names(prefix, n):
    return [f"{prefix}{i}" for i in range(n)]


def trials_of(searcher):
    return searcher._asker.trials


# ---- suggestions


@pytest.mark.parametrize("method", METHODS_TRIED)
def test_suggestions_are_in_the_space_and_repeatable(method):
    first, second = (run(search(method), names("t", 6)) for _ in range(2))
    assert first == second
    for config in first:
        assert -1 <= config["x"] <= 1
        assert config["model"]["depth"] in range(1, 9)
        assert config["model"]["kind"] in ("a", "b")
        assert config["k"] == 3


@pytest.mark.parametrize("method", [m for m in METHODS_TRIED if m != "random"])
def test_converges_on_a_parabola(method):
    space = {"x": tune.uniform(-1, 1), "in": {"y": tune.uniform(-1, 1)}}
    searcher = search(method, space)
    run(searcher, names("t", 25), lambda config: (config["x"] - 0.3) ** 2 + (config["in"]["y"] + 0.2) ** 2)
    assert min(trial.value for trial in trials_of(searcher)) < 0.02  # random search has 0.02 in 1 of 2 runs of 60


@pytest.mark.parametrize("method", METHODS_TRIED)
def test_pending_trials_are_not_proposed_again(method):
    searcher = search(method)
    run(searcher, names("t", 5))
    configs = [searcher.suggest(f"p{i}") for i in range(6)]
    assert all(a["x"] != b["x"] for a, b in itertools.combinations(configs, 2))


def test_a_trial_that_asks_twice_is_answered_twice():
    searcher = search()
    assert searcher.suggest("t") == searcher.suggest("t")
    assert len(trials_of(searcher)) == 1


# ---- every outcome


def outcome(searcher, **ended):
    searcher.on_trial_complete(trial_id="t", **ended)
    (trial,) = trials_of(searcher)
    return trial


@pytest.mark.parametrize("method", METHODS_TRIED)
@pytest.mark.parametrize("value", UNKNOWN, ids=repr)
def test_a_value_that_is_not_finite_fails(method, value):
    searcher = search(method)
    searcher.suggest("t")
    searcher.on_trial_result("t", {"loss": value})
    assert outcome(searcher, result={"loss": value}).state is State.FAILED
    searcher.suggest("next")


@pytest.mark.parametrize("value", NUMBERS, ids=lambda value: type(value).__name__)
def test_whatever_is_one_number_is_a_value(value):
    searcher = search()
    searcher.suggest("t")
    assert outcome(searcher, result={"loss": value}).value == 0.5
    asked = raybo.Searcher({"x": raybo.Float(0, 1)}, "random", seed=0)
    assert asked.tell(asked.ask(), value).value == 0.5
    assert type(asked.trials[0].value) is float


def test_how_each_end_is_recorded():
    def ended(*reports, **end):
        searcher = search()
        searcher.suggest("t")
        for report in reports:
            searcher.on_trial_result("t", report)
        return outcome(searcher, **end)

    good, bare, nan = {"loss": 2.0}, {"other": 1}, {"loss": math.nan}
    assert ended(result=good).value == 2.0
    assert ended(good, result={"loss": 1.0}).value == 1.0  # stopped by a scheduler: what it had then
    assert ended(good, result=bare).value == 2.0
    assert ended(good, bare, nan, result=None).value == 2.0  # stopped while paused
    assert ended({"loss": 3.0}, good, result=None).value == 2.0
    assert ended(result=None).state is State.STOPPED
    assert ended(result=bare).reason == "it reported no loss"
    assert ended(good, result=nan).state is State.FAILED
    assert ended(good, result=good, error=True).state is State.FAILED
    assert ended(good, error=True).state is State.FAILED


def test_ids_unknown_ended_or_changed_never_raise():
    searcher = search()
    config = searcher.suggest("t")
    searcher.on_trial_result("never", {"loss": 1.0})
    searcher.on_trial_complete("never", {"loss": 1.0})
    searcher.on_trial_complete("never", error=True)
    searcher.on_trial_complete("t", error=True)
    searcher.on_trial_complete("t", {"loss": 1.0})  # resumed under its id
    searcher.on_trial_complete("t", {"loss": 7.0})  # repeated
    flat = {"config/x": 0.5, "config/model/depth": 2, "config/model/kind": "b", "config/k": 3, "loss": 4.0}
    searcher.on_trial_complete("new", flat)  # reset to a new id
    states = [(trial.state, trial.value, trial.config["x"]) for trial in trials_of(searcher)]
    assert states == [
        (State.FAILED, None, config["x"]),
        (State.FINISHED, 1.0, config["x"]),
        (State.FINISHED, 4.0, 0.5),
    ]
    search(space=None).on_trial_complete("t", {"loss": 1.0})


def test_an_internal_error_frees_the_trial(monkeypatch, caplog):
    searcher = search()
    searcher.suggest("t")
    monkeypatch.setattr(searcher, "_read", lambda *_: 1 / 0)
    searcher.on_trial_result("t", {"loss": 1.0})
    searcher.on_trial_complete("t", {"loss": 1.0})
    assert trials_of(searcher)[0].state is State.FAILED
    assert "could not be taken in" in caplog.text


def test_a_context_is_read_beside_constraints():
    searcher = search("sbo-kde", context=CONTEXT, constraints={"late": "<= 1"})
    for number, late in enumerate((0.5, 2.0)):
        searcher.suggest(str(number))
        searcher.on_trial_complete(str(number), {"loss": 1.0, "late": late, "wind": 0.25})
    assert [trial.context for trial in trials_of(searcher)] == [{"wind": 0.25}] * 2
    assert [trial.feasible for trial in trials_of(searcher)] == [True, False]


def test_a_context_is_read_from_the_report(caplog):
    searcher = search(context=CONTEXT)
    for trial_id, report in (("a", {"wind": 0.25}), ("b", {}), ("c", {"wind": "much"})):
        searcher.suggest(trial_id)
        searcher.on_trial_complete(trial_id, {"loss": 1.0, **report})
    assert [trial.context for trial in trials_of(searcher)] == [{"wind": 0.25}, None, None]
    assert [trial.value for trial in trials_of(searcher)] == [1.0, 1.0, 1.0]
    assert caplog.text.count("only its value counts") == 1


# ---- concurrency


def test_a_limiters_limit_is_kept_and_freed():
    searcher = ConcurrencyLimiter(search(), max_concurrent=2)
    assert searcher.suggest("a")
    assert searcher.suggest("b")
    assert searcher.suggest("c") is None
    searcher.on_trial_complete("a", {"loss": math.nan})
    assert searcher.suggest("c")
    searcher.on_trial_complete("b", error=True)
    assert searcher.suggest("d")


def test_a_batch_limiter_withholds_results_until_the_end():
    searcher = ConcurrencyLimiter(search(), max_concurrent=3, batch=True)
    assert searcher.set_search_properties("loss", "min", {"k": 3})
    for trial_id in ("a", "b", "c"):
        assert searcher.suggest(trial_id)
    assert searcher.suggest("d") is None
    searcher.on_trial_complete("a", {"loss": 1.0})
    searcher.on_trial_complete("b", error=True)
    assert searcher.suggest("d") is None
    assert {trial.state for trial in trials_of(searcher.searcher)} == {State.PENDING}
    searcher.on_trial_complete("c", {"loss": 3.0})
    assert [trial.value for trial in trials_of(searcher.searcher)] == [1.0, None, 3.0]
    assert searcher.suggest("d")


def test_the_pending_cap_is_explained_once(caplog, monkeypatch):
    monkeypatch.delenv("TUNE_MAX_PENDING_TRIALS_PG", raising=False)
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            RayboSearch().set_search_properties("loss", "min", SPACE, num_samples=3)
        limited = RayboSearch()
        limited.set_max_concurrency(2)
        limited.set_search_properties("loss", "min", SPACE)
    assert caplog.text.count("TUNE_MAX_PENDING_TRIALS_PG=N") == 2


def test_a_repeater_teaches_the_mean():
    searcher = Repeater(search(), repeat=2)
    assert searcher.suggest("a")["x"] == searcher.suggest("b")["x"]
    searcher.on_trial_complete("a", {"loss": 1.0})
    searcher.on_trial_complete("b", {"loss": 2.0})
    assert [trial.value for trial in trials_of(searcher.searcher)] == [1.5]


# ---- points


POINTS = [
    {"x": 0.1 + 0.2, "model": {"depth": 3, "kind": "b"}},
    {"x": np.float64(-1.0), "model/depth": 4, "model/kind": "a", "k": 3},
    {"model/kind": "b"},
    {},
]


def test_points_are_run_first_and_in_order():
    searcher = search(points_to_evaluate=POINTS)
    first, second, third, _ = (searcher.suggest(f"t{i}") for i in range(4))
    assert first == {"x": 0.1 + 0.2, "model": {"depth": 3, "kind": "b"}, "k": 3}
    assert second == {"x": -1.0, "model": {"depth": 4, "kind": "a"}, "k": 3}
    assert third["model"]["kind"] == "b"


def test_points_with_known_rewards_are_not_run():
    searcher = search(points_to_evaluate=POINTS[:2], evaluated_rewards=[5.0, None])
    assert searcher.suggest("t")["x"] == -1.0
    assert [(trial.config["x"], trial.value) for trial in trials_of(searcher)] == [(0.1 + 0.2, 5.0), (-1.0, None)]
    nothing = search(points_to_evaluate=POINTS[:2], evaluated_rewards=[0.0, None])
    assert nothing.suggest("t")["x"] == -1.0
    assert trials_of(nothing)[0].value == 0.0


def test_a_point_in_part_reaches_into_a_list():
    space = {"layers": [tune.uniform(0, 1), tune.uniform(2, 3)]}
    searcher = search(space=space, points_to_evaluate=[{"layers/1": 2.25}])
    first, second = searcher.suggest("t")["layers"]
    assert second == 2.25
    assert 0 <= first <= 1


def test_the_metric_comes_from_the_tuner_or_defaults():
    bare = search(metric=None, mode="max")
    bare.suggest("t")
    assert outcome(bare, result={"_metric": 2.0}).value == 2.0  # what Tune calls it
    named = search()
    named.set_search_properties("accuracy", "max", {}, num_samples=3)
    named.suggest("t")
    assert outcome(named, result={"accuracy": 0.5, "loss": 7.0}).value == 0.5
    assert named._asker.mode == "max"


@pytest.mark.parametrize("arguments", [{"metric": None}, {}])
def test_the_tuners_metric_wins(arguments):
    searcher = search(**arguments)
    searcher.set_search_properties("accuracy", "min", {})
    searcher.suggest("t")
    assert outcome(searcher, result={"accuracy": 0.5, "loss": 7.0}).value == 0.5


def test_known_rewards_are_of_the_tuners_metric():
    space = {"x": tune.uniform(-1, 1)}
    searcher = search(space=space, metric=None, points_to_evaluate=[{"x": 0.5}], evaluated_rewards=[0.25])
    searcher.set_search_properties("loss", "min", {})
    searcher.suggest("t")
    searcher.on_trial_complete("t", {"loss": 0.5})
    assert [trial.value for trial in trials_of(searcher)] == [0.25, 0.5]


def test_results_of_another_metric_are_refused(tmp_path):
    searcher = search()
    run(searcher, names("a", 2))
    searcher.save(tmp_path / "state")
    restored = RayboSearch()
    restored.restore(tmp_path / "state")
    for metric, mode in (("accuracy", "min"), ("loss", "max")):
        with pytest.raises(JournalError, match=rf"wanted min of loss, but now {mode} of {metric}"):
            restored.set_search_properties(metric, mode, SPACE)
    assert restored.set_search_properties("loss", "min", SPACE)


@pytest.mark.parametrize(
    ("point", "message"),
    [
        ({"x": 2.0}, r"points_to_evaluate, point 0: x: 2.0 lies outside"),
        ({"model/deep": 2}, r"model.deep"),
        ({"y": 2}, r"y: not a parameter of the space"),
        ({"model": {"kind": "c"}}, r"model.kind: 'c' is not one of"),
        ({"k": 4}, r"k: it is always 3"),
        ([0.5], r"a point is a dict"),
    ],
)
def test_a_point_that_does_not_fit_is_refused(point, message):
    with pytest.raises(SpaceError, match=message):
        search(points_to_evaluate=[point])


def test_a_known_reward_needs_a_whole_point():
    with pytest.raises(SpaceError, match="model: missing"):
        search(points_to_evaluate=[{"x": 0.0}], evaluated_rewards=[1.0])
    with pytest.raises(MethodError, match="one for each of the 1 points, got 2"):
        search(points_to_evaluate=[{"x": 0.0}], evaluated_rewards=[1.0, 2.0])


@pytest.mark.parametrize("method", METHODS_TRIED)
def test_evaluated_points_are_learned(method):
    searcher = search(method)
    point = POINTS[0]
    searcher.add_evaluated_point(point, 1.0)
    searcher.add_evaluated_point(point, 1.0, error=True)
    searcher.add_evaluated_point(point, math.nan)
    searcher.add_evaluated_point(point, None, pruned=True, intermediate_values=[3.0, 2.0, math.nan])
    searcher.add_evaluated_points([POINTS[1], {**point, "__trial_index__": 0}], [4.0, 5.0])
    assert [trial.value for trial in trials_of(searcher)] == [1.0, None, None, 2.0, 4.0, 5.0]
    searcher.suggest("t")


def test_known_values_must_have_every_metric():
    several = {"metric": None, "mode": None, "metrics": {"loss": "min", "speed": "max"}}
    known = {"loss": 1.0, "speed": 2.0}
    searcher = search(**several, points_to_evaluate=POINTS[:1], evaluated_rewards=[known])
    searcher.add_evaluated_point(POINTS[1], known)
    searcher.add_evaluated_point(POINTS[1], 1.0, error=True)
    assert [(trial.state, trial.values) for trial in trials_of(searcher)[:2]] == [(State.FINISHED, known)] * 2
    assert trials_of(searcher)[2].state is State.FAILED
    for value in (1.0, {"loss": 1.0}):
        with pytest.raises(MethodError, match="a known value must be a dict with loss, speed, got "):
            search(**several, points_to_evaluate=POINTS[:1], evaluated_rewards=[value])
        with pytest.raises(MethodError, match="a known value must be a dict with loss, speed, got "):
            searcher.add_evaluated_point(POINTS[1], value)


def test_evaluated_points_wait_for_the_space():
    searcher = RayboSearch()
    searcher.add_evaluated_point(POINTS[0], 1.0)
    assert searcher.set_search_properties("loss", "min", SPACE, num_samples=4)
    searcher.suggest("t")
    assert trials_of(searcher)[0].value == 1.0
    assert searcher._asker.history.planned == 5


# ---- conditional spaces

BRANCHES = {
    "lr": tune.loguniform(1e-3, 1),
    "model": tune.choice(
        [
            {"kind": "svm", "C": tune.uniform(0, 1)},
            {"kind": "forest", "trees": tune.randint(1, 50), "prune": tune.choice([False, {"by": tune.uniform(2, 3)}])},
            "linear",
        ]
    ),
}


@pytest.mark.parametrize("method", METHODS_TRIED)
def test_a_choice_of_dicts_opens_its_own_parameters(method):
    searcher = search(method, BRANCHES)
    configs = run(searcher, names("t", 12), lambda config: config["lr"])
    shapes = {"linear" if c["model"] == "linear" else (c["model"]["kind"], *sorted(c["model"])) for c in configs}
    assert shapes <= {"linear", ("svm", "C", "kind"), ("forest", "kind", "prune", "trees")}
    assert len(shapes) > 1


def test_points_and_reports_reach_into_a_branch():
    points = [{"lr": 0.5, "model": {"kind": "svm", "C": 0.25}}, {"model/prune/by": 2.5}, {"model": "linear"}]
    searcher = search(space=BRANCHES, points_to_evaluate=points)
    first, second, third = (searcher.suggest(f"t{i}") for i in range(3))
    assert first == points[0]
    assert second["model"]["prune"] == {"by": 2.5}
    assert third["model"] == "linear"
    searcher.on_trial_complete("n", {"loss": 1.0, "config/lr": 0.5, "config/model/kind": "svm", "config/model/C": 0.5})
    assert trials_of(searcher)[-1].config == {"lr": 0.5, "model": {"kind": "svm", "C": 0.5}}


# ---- any nested space

numbers = st.floats(-1e6, 1e6, allow_nan=False).map(lambda v: round(v, 3))
domains = st.one_of(
    st.tuples(numbers, st.floats(0.01, 1e3)).map(lambda t: tune.uniform(t[0], t[0] + t[1])),
    st.floats(1e-6, 1.0).map(lambda low: tune.loguniform(low, 10 * low)),
    st.tuples(st.integers(-50, 50), st.integers(1, 50)).map(lambda t: tune.randint(t[0], t[0] + t[1])),
    st.integers(1, 9).map(lambda q: tune.qrandint(0, 10 * q, q)),
    st.integers(1, 40).map(lambda n: tune.quniform(0, n * 0.5, 0.5)),
    st.lists(st.one_of(st.integers(0, 5), st.text("ab/.", max_size=3), st.none()), min_size=1).map(tune.choice),
)
constants = st.one_of(st.integers(), st.text(max_size=3), st.none(), st.just(object()), st.lists(st.integers()))
keys = st.text("abc", min_size=1, max_size=2)


def trees(leaves):
    inside = st.one_of(st.dictionaries(keys, leaves, min_size=1, max_size=3), st.lists(leaves, min_size=1, max_size=2))
    choice = st.lists(st.one_of(inside, st.integers(0, 3)), min_size=1, max_size=3).map(tune.choice)
    return st.one_of(inside, choice)


spaces = st.dictionaries(keys, st.recursive(st.one_of(domains, constants), trees, max_leaves=6), max_size=4).map(
    lambda tree: {**tree, "always": tune.uniform(0, 1)}
)


def obeys(domain, value):
    """Return True if the value is one that a Tune space may give."""
    if isinstance(domain, tune.search.sample.Categorical):
        return any(obeys(choice, value) for choice in domain.categories)
    if isinstance(domain, tune.search.sample.Domain):
        return isinstance(value, (int, float)) and domain.is_valid(value)
    if isinstance(domain, dict):
        return (
            isinstance(value, dict)
            and domain.keys() == value.keys()
            and all(obeys(domain[k], value[k]) for k in domain)
        )
    if isinstance(domain, (list, tuple)):
        return type(value) is type(domain) and len(domain) == len(value) and all(map(obeys, domain, value))
    return domain is value or domain == value


@settings(max_examples=25, phases=(Phase.explicit, Phase.reuse, Phase.generate))  # shrinking takes minutes
@given(spaces, st.integers(0, 2**32))
def test_points_of_any_space_return_bit_for_bit(space, seed):
    searcher = search(space=space, seed=seed)
    configs = [searcher.suggest(f"t{i}") for i in range(4)]
    assert all(obeys(space, config) for config in configs)
    for rewards in (None, [None] * 4):
        again = search(space=space, seed=seed + 1, points_to_evaluate=configs, evaluated_rewards=rewards)
        assert [repr(again.suggest(f"t{i}")) for i in range(4)] == list(map(repr, configs))
    rewarded = search(space=space, seed=seed, points_to_evaluate=configs, evaluated_rewards=[1.0, 2.0, 3.0, 4.0])
    assert [repr(trial.config) for trial in trials_of(rewarded)] == list(map(repr, configs))


# ---- what is refused


def test_what_is_wrong_is_refused_in_one_line():
    with pytest.raises(SpaceError, match=r"m\.a: tune's normal"):
        search(space={"m": {"a": tune.randn()}})
    with pytest.raises(SpaceError, match=r"m\.0\.a: grid_search"):
        search(space={"m": tune.choice([{"a": tune.grid_search([1])}])})
    with pytest.raises(SpaceError, match="at least one parameter"):
        RayboSearch().set_search_properties("loss", "min", {"k": 3})
    with pytest.raises(MethodError, match="mode must be"):
        search(mode="most")
    with pytest.raises(MethodError, match="there is no method"):
        search("gp-ucbb", context=None) if "gp-ucbb" in METHODS else RayboSearch(method="gp-ucbb")
    with pytest.raises(MethodError, match="needs a context"):
        RayboSearch(method="sbo-kde")
    with pytest.raises(MethodError, match="no search space"):
        RayboSearch(metric="loss", mode="min").suggest("t")
    # Tune says nothing at all to a search algorithm where there is no param_space
    with pytest.raises(
        MethodError, match="no mode; give it metric= and mode=, as Ray Tune passes on TuneConfig's with"
    ):
        RayboSearch(SPACE).suggest("t")
    assert not search().set_search_properties("loss", "min", SPACE)
    assert search().set_search_properties("loss", "min", {"k": 3})


def test_without_ray_tune_the_extra_is_named():
    code = (
        "import sys; sys.modules['ray.tune'] = None\n"
        "import raybo\n"
        "try:\n    import raybo.integrations.ray_tune\n"
        "except raybo.RayboError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert install_command("tune") in done.stdout
    assert done.stdout.count("\n") == 1


# ---- save and restore


@pytest.mark.parametrize("method", METHODS_TRIED)
def test_a_restored_search_continues_identically(method, tmp_path):
    searcher = search(method, points_to_evaluate=POINTS)
    run(searcher, names("a", 7))
    searcher.suggest("pending")
    searcher.on_trial_result("pending", {"loss": 0.5})
    searcher.save(tmp_path / "state")
    json.loads((tmp_path / "state").read_text())
    blank = RayboSearch()
    blank.restore(tmp_path / "state")
    before = cloudpickle.loads(cloudpickle.dumps(search(method, points_to_evaluate=POINTS)))
    before.restore(tmp_path / "state")
    for other in (searcher, blank, before):
        other.on_trial_complete("pending")  # stopped while paused: the report before the restart counts
        assert trials_of(other)[7].value == 0.5
    expected = run(searcher, names("b", 3))
    assert run(blank, names("b", 3)) == expected
    assert run(before, names("b", 3)) == expected


def test_points_that_were_not_run_yet_are_kept(tmp_path):
    searcher = search(points_to_evaluate=POINTS)
    searcher.suggest("a")
    searcher.save_to_dir(str(tmp_path), "2")
    assert [path.name for path in tmp_path.iterdir()] == ["searcher-state-2.json"]
    blank = RayboSearch()
    blank.restore_from_dir(str(tmp_path))
    assert blank.suggest("b")["x"] == -1.0


def test_objects_come_back_with_the_tuners_space(tmp_path):
    thing = object()
    space = {"x": tune.uniform(0, 1), "o": tune.choice([thing]), "c": thing}
    searcher = RayboSearch(seed=1)
    searcher.set_search_properties("loss", "max", space, num_samples=9)
    searcher.suggest("a")
    searcher.save(tmp_path / "state")
    blank = RayboSearch()
    blank.restore(tmp_path / "state")
    with pytest.raises(JournalError, match="another space"):
        blank.set_search_properties("loss", "max", {"x": tune.uniform(0, 2)})
    assert blank.set_search_properties("loss", "max", space, num_samples=9)
    assert blank.suggest("b") == searcher.suggest("b")
    assert blank.suggest("b")["o"] is thing
    with pytest.raises(JournalError, match="wanted max"):
        blank.set_search_properties("loss", "min", {})


class Counting(RayboSearch):
    """A user's own search, with a state of its own."""

    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        self.asked, self.seen, self.lock = 0, {"ids": ("none",)}, None

    def suggest(self, trial_id):
        self.asked += 1
        self.seen["ids"] = (*self.seen["ids"], trial_id)
        return super().suggest(trial_id)


def test_attributes_of_a_subclass_are_restored(tmp_path):
    searcher = Counting(SPACE, "loss", "min", seed=0)
    searcher.suggest("a")
    searcher.lock = object()  # no JSON can hold it
    searcher.save(tmp_path / "state")
    blank = Counting()
    blank.lock = mine = object()
    blank.restore(tmp_path / "state")
    assert (blank.asked, blank.seen) == (1, {"ids": ("none", "a")})
    assert blank.lock is mine
    assert blank.suggest("b") == searcher.suggest("b")
    plain = search()
    plain.suggest("a")
    plain.save(tmp_path / "state")
    assert "attributes" not in json.loads((tmp_path / "state").read_text())  # a state of 0.1 has none
    Counting().restore(tmp_path / "state")


def test_restored_searchers_keep_half_open_ranges(tmp_path):
    searcher = RayboSearch({"m": {"x": tune.uniform(0, 1)}, "y": tune.quniform(0, 1, 0.5)}, "loss", "max", seed=0)
    searcher.suggest("a")
    searcher.save(tmp_path / "state")
    blank = RayboSearch()
    blank.restore(tmp_path / "state")
    for one in (searcher, blank):
        (config,) = one._asker.space.decode(np.ones((1, 2)))
        assert config == {"m": {"x": 1 - 2**-53}, "y": 1.0}


def test_a_state_with_reordered_parameters_is_refused(tmp_path):
    """Its points keep values by their places."""
    one, other = ({name: tune.uniform(0, 1) for name in names} for names in ("ab", "ba"))
    searcher = RayboSearch(one, "loss", "min", seed=0)
    searcher.suggest("a")
    searcher.save(tmp_path / "state")
    with pytest.raises(JournalError, match="in another order"):
        RayboSearch(other, "loss", "min").restore(tmp_path / "state")
    later = RayboSearch()
    later.restore(tmp_path / "state")
    with pytest.raises(JournalError, match="in another order"):
        later.set_search_properties("loss", "min", other)


def test_a_file_that_is_no_state_is_refused(tmp_path):
    texts = ["", "{}", "[]", '{"format": 99}']
    searcher = search()
    searcher.suggest("a")
    searcher.save(tmp_path / "state")
    whole = json.loads((tmp_path / "state").read_text())
    for lacking in whole.keys() - {"generation"}:  # which raybo 0.1 did not save
        texts.append(json.dumps({key: value for key, value in whole.items() if key != lacking}))
    for text in texts:
        (tmp_path / "state").write_text(text)
        with pytest.raises(JournalError):
            RayboSearch().restore(tmp_path / "state")
    with pytest.raises(JournalError):
        RayboSearch().restore(tmp_path / "nothing")


def test_numbers_of_numpy_are_saved(tmp_path):
    options = {"initial": np.int64(2), "nu": np.float32(0.5)}
    saved = search("ei", seed=np.int64(3), steps=np.int64(5), **options)
    saved.save(str(tmp_path / "state.json"))
    restored = search("ei", seed=9)
    restored.restore(str(tmp_path / "state.json"))
    assert run(restored, names("t", 4)) == run(saved, names("t", 4))
    RayboSearch(metric="loss", mode="min", seed=np.int64(3)).save(str(tmp_path / "without-a-space.json"))


def limited_and_restored(path, limit):
    searcher = search()
    searcher.suggest("before")
    searcher.save(path)
    blank = ConcurrencyLimiter(RayboSearch(), max_concurrent=limit)
    blank.restore(path)
    return blank


def test_restored_trials_that_never_return_are_released(tmp_path, monkeypatch):
    clock = itertools.count(100.0, 1.0)  # where no trial runs, Tune asks once a second
    monkeypatch.setattr("raybo.integrations.tune_limit.time.monotonic", lambda: next(clock))
    blank = limited_and_restored(tmp_path / "state", 1)
    assert [blank.suggest("t0") is None for _ in range(4)] == [True, True, True, False]
    for i in range(3):
        assert blank.suggest(f"t{i}")
        assert blank.suggest("more") is None
        assert trials_of(blank.searcher)[0].state is State.PENDING  # it may come back late
        blank.on_trial_complete(f"t{i}", {"loss": 1.0})
    assert trials_of(blank.searcher)[0].state is State.STOPPED


def test_resumed_restored_trials_count_towards_the_limit(tmp_path, monkeypatch):
    clock = itertools.count(100.0, 0.1)  # while one runs, several times a second
    monkeypatch.setattr("raybo.integrations.tune_limit.time.monotonic", lambda: next(clock))
    blank = limited_and_restored(tmp_path / "state", 2)
    assert blank.suggest("t0")
    assert all(blank.suggest("more") is None for _ in range(100))  # a long run says nothing until its end
    blank.on_trial_complete("before", {"loss": 1.0})
    assert blank.suggest("more")
    assert blank.suggest("too many") is None


# ---- what Tune's schedulers end early


def test_with_steps_early_ends_are_pruned_with_curves(tmp_path):
    asked = search(steps=4)
    for i, last in enumerate((4, 2)):
        asked.suggest(f"t{i}")
        for step in range(1, last + (last == 4)):  # Tune withholds the report at which it ends a trial
            asked.on_trial_result(f"t{i}", {"loss": 1.0 / step, "training_iteration": step})
        asked.on_trial_complete(f"t{i}", {"loss": 1.0 / last, "training_iteration": last})
    whole, ended = asked._asker.trials
    assert (whole.state, whole.value, whole.step) == (State.FINISHED, 0.25, 4)
    assert (ended.state, ended.value, ended.reports) == (State.PRUNED, None, [(1, 1.0), (2, 0.5)])
    assert ended.reason == "Ray Tune ended it after iteration 2 of 4"
    asked.save(str(tmp_path / "state"))
    again = search(steps=4)
    again.restore(str(tmp_path / "state"))
    assert again._asker.trials == asked._asker.trials


def test_without_steps_early_ends_count_as_finished():
    asked = search()
    asked.suggest("t")
    asked.on_trial_result("t", {"loss": 0.5, "training_iteration": 1})
    asked.on_trial_complete("t", {"loss": 0.5, "training_iteration": 1})
    assert (asked._asker.trials[0].state, asked._asker.trials[0].value) == (State.FINISHED, 0.5)
    assert asked._asker.trials[0].reports == []
    with pytest.raises(MethodError, match="steps must be a whole number from 1, got 0"):
        search(steps=0)


def several(method="random", **arguments):
    more = {"metrics": {"loss": "min", "seconds": "min"}, "constraints": {"size": "<= 1"}, "seed": 0, **arguments}
    return RayboSearch({"x": tune.uniform(0, 2)}, method=method, **more)


def several_results(config):
    return {"loss": (config["x"] - 0.3) ** 2, "seconds": 2.0 - config["x"], "size": config["x"], "done": True}


@pytest.mark.parametrize("method", ["random", "auto"])
def test_several_metrics_and_constraints_are_learnt_from(method, tmp_path):
    searcher = several(method)
    for i in range(14):
        config = searcher.suggest(str(i))
        searcher.on_trial_result(str(i), {**several_results(config), "done": False})
        searcher.on_trial_complete(str(i), several_results(config))
    trials = searcher._asker.trials
    for trial in trials:
        assert trial.values == {name: several_results(trial.config)[name] for name in ("loss", "seconds", "size")}
        assert trial.feasible is (trial.config["x"] <= 1.0)
    assert searcher._asker.front
    searcher.save(str(tmp_path / "state.json"))
    again = several(method)
    again.restore(str(tmp_path / "state.json"))
    assert [trial.values for trial in again._asker.trials] == [trial.values for trial in trials]
    assert again.suggest("next") == searcher.suggest("next")


def test_all_numbers_of_early_ended_trials_count(tmp_path):
    searcher = several("auto", steps=4)
    for i in range(5):
        config = searcher.suggest(str(i))
        for step in range(1, 5 if i < 3 else 3):
            result = {**several_results(config), "training_iteration": step, "done": False}
            if i == 4:
                del result["size"]  # which is only measured at the end
            if i < 3 or step < 2:  # Tune withholds the report at which it ends a trial
                searcher.on_trial_result(str(i), result)
        searcher.on_trial_complete(str(i), {**result, "done": True})
    *whole, ended, lacking = searcher._asker.trials
    assert {trial.state for trial in whole} == {State.FINISHED}
    for trial, curves in ((ended, 3), (lacking, 2)):
        assert (trial.state, trial.step) == (State.PRUNED, 2)
        assert trial.reason == "Ray Tune ended it after iteration 2 of 4"
        result = several_results(trial.config)
        expected = [[(1, -result["loss"]), (2, -result["loss"])], [(1, -result["seconds"]), (2, -result["seconds"])]]
        record = searcher._asker.history.records[trial.number]
        assert [list(curve) for curve in record.curves[:2]] == expected
        assert sum(len(curve) > 0 for curve in record.curves) == curves
    searcher.save(str(tmp_path / "state.json"))
    again = several("auto", steps=4)
    again.restore(str(tmp_path / "state.json"))
    assert again.suggest("next") == searcher.suggest("next")


@pytest.mark.parametrize("steps", [None, 3])
def test_a_report_that_violates_a_constraint_is_infeasible(tmp_path, steps):
    def searching():
        return several(steps=steps, constraints={"size": "<= 1 at every step"})

    searcher = searching()
    for trial_id, sizes in (("feasible", (0.5, 0.9, 0.5)), ("broke", (0.5, 3.0, 0.5))):
        searcher.suggest(trial_id)
        for step, size in enumerate(sizes, start=1):
            result = {"loss": 1.0, "seconds": 1.0, "size": size, "training_iteration": step}
            searcher.on_trial_result(trial_id, result)
        searcher.on_trial_complete(trial_id, result)
    searcher.save(str(tmp_path / "state.json"))
    again = searching()
    again.restore(str(tmp_path / "state.json"))
    for each in (searcher, again):
        feasible, broke = each._asker.trials
        assert (feasible.feasible, broke.feasible, broke.violations) == (True, False, {"size": 2.0})
        assert [trial.number for trial in each._asker.front] == [0]


def test_an_invalid_number_fails_at_any_step():
    searcher = several(steps=4)
    searcher.suggest("t")
    searcher.on_trial_result("t", {"loss": 1.0, "seconds": 1.0, "size": 0.5, "training_iteration": 1})
    searcher.on_trial_complete("t", {"loss": 1.0, "seconds": math.nan, "size": 0.5, "training_iteration": 2})
    assert searcher._asker.trials[0].state is State.FAILED
    with pytest.raises(MethodError, match="Ray Tune's own schedulers stay in charge; give TuneConfig"):
        several(scheduler="asha")


def test_a_trial_that_lacks_a_metric_has_failed(caplog):
    searcher = several()
    for trial_id, result, why in (
        ("a", {"loss": 1.0, "seconds": 2.0}, "it reported no size"),
        ("b", {"loss": 1.0, "seconds": math.nan, "size": 0.5}, "it reported nan for seconds"),
    ):
        searcher.suggest(trial_id)
        searcher.on_trial_complete(trial_id, result)
        trial = searcher._asker.trials[-1]
        assert trial.state is State.FAILED
        assert why in trial.reason
    messages = [record.getMessage() for record in caplog.records]
    assert messages == ["raybo: trial a counts as failed: it reported no size"]  # once


def test_a_seed_that_no_study_takes_is_refused_at_once():
    with pytest.raises(MethodError, match=f"seed must be a whole number from 0 to {2**128}, got"):
        RayboSearch(seed=2**130)


def test_what_tune_wants_is_one_of_the_metrics():
    several().set_search_properties("seconds", "min", {})
    for metric, mode in (("size", "min"), ("loss", "max")):
        with pytest.raises(
            MethodError, match=f"wants {mode} {metric}, which is not one of the search's metrics: min loss"
        ):
            several().set_search_properties(metric, mode, {})
    with pytest.raises(MethodError, match="not both"):
        several(metric="size", mode="min")
    with pytest.raises(MethodError, match="turbo takes one metric and no constraints"):
        several("turbo")


def test_earlier_studies_say_where_to_begin(tmp_path):
    old = study({"x": raybo.Float(0, 1)}, lambda config: (config["x"] - 0.7) ** 2, 20, "sobol")
    path = written(tmp_path / "old.db", old)
    search = RayboSearch({"x": tune.uniform(0, 2)}, metric="loss", mode="min", seed=0, prior=str(path))
    assert abs(search.suggest("a")["x"] - 0.7) < 0.15
    search.save(str(tmp_path / "state.json"))
    path.unlink()
    again = RayboSearch(metric="loss", mode="min")
    again.restore(str(tmp_path / "state.json"))
    search.on_trial_complete("a", {"loss": 1.0})
    again.on_trial_complete("a", {"loss": 1.0})
    assert search.suggest("b") == again.suggest("b")
    with pytest.raises(JournalError, match=r"old\.db"):
        RayboSearch({"x": tune.uniform(0, 2)}, metric="loss", mode="min", prior=path)


def test_a_budget_enters_the_proposals_and_ends_the_search(tmp_path):
    def step(search, number):
        config = search.suggest(str(number))
        if config != Searcher.FINISHED:
            loss = (config["rate"] - 0.3) ** 2
            result = {"loss": loss, "time_total_s": config["rounds"] / 10, "training_iteration": 1}
            search.on_trial_complete(str(number), result)
        return config

    space = {"rounds": raybo.Integer(10, 1000, log=True), "rate": raybo.Float(0, 1)}
    search = RayboSearch(space, "loss", "min", seed=0, budget="150s")
    configs = [step(search, 0)]
    while configs[-1] != Searcher.FINISHED:
        if len(configs) == 6:
            search.save(str(tmp_path / "state.json"))
            search = RayboSearch(space, "loss", "min")
            search.restore(str(tmp_path / "state.json"))
        configs.append(step(search, len(configs)))
    asker = raybo.Searcher(space, mode="min", metric="loss", seed=0, budget=150)
    while asker.budget_left:
        trial = asker.ask()
        asker.tell(trial, (trial.config["rate"] - 0.3) ** 2, seconds=trial.config["rounds"] / 10)
    assert configs[:-1] == [trial.config for trial in asker.trials]
    assert any("takes" in trial.tags for trial in asker.trials)
    with pytest.raises(MethodError, match="budget must be seconds, or a time"):
        RayboSearch(space, budget="2x")


def test_a_budget_counts_trials_that_fail_or_say_nothing_at_their_end():
    searcher = search(budget=100)
    for name in ("a", "b"):
        assert isinstance(searcher.suggest(name), dict)
        searcher.on_trial_result(name, {"loss": 0.5, "time_total_s": 45.0})
    searcher.on_trial_complete("a", error=True)
    searcher.on_trial_complete("b")
    assert searcher._spent() == 90.0
    searcher.suggest("c")
    searcher.on_trial_result("c", {"time_total_s": 12.0})
    searcher.on_trial_complete("c", error=True)
    assert searcher.suggest("d") == Searcher.FINISHED


@pytest.mark.parametrize(
    ("last", "spent"),
    [({"loss": 0.5}, 30.0), (None, 0.0)],  # as a Repeater tells it; stopped while it waited for room
)
def test_without_reports_a_budget_counts_by_the_clock(monkeypatch, last, spent):
    now = [0.0]
    monkeypatch.setattr("raybo.integrations.ray_tune.time.monotonic", lambda: now[0])
    searcher = search(budget=100)
    searcher.suggest("a")
    now[0] = 30.0
    searcher.on_trial_complete("a", last)
    assert searcher._spent() == spent


def test_a_trial_that_ends_by_itself_is_not_pruned():
    searcher = search(steps=10)
    for name in ("stopped", "done"):
        searcher.suggest(name)
        for step in range(1, 5):
            result = {"loss": 1.0 / step, "training_iteration": step}
            if name == "done" or step < 4:  # Tune withholds the report at which it ends a trial
                searcher.on_trial_result(name, result)
        searcher.on_trial_complete(name, result)
    assert [trial.state for trial in trials_of(searcher)] == [State.PRUNED, State.FINISHED]


@pytest.mark.parametrize(
    ("option", "place"),
    [("max_concurrent", "max_concurrent_trials"), ("num_samples", "num_samples"), ("pruner", "scheduler")],
)
def test_options_of_tune_are_shown_their_place(option, place):
    with pytest.raises(MethodError, match=rf"^there is no option '{option}': set TuneConfig\({place}="):
        RayboSearch(**{option: 3})


def test_a_repeater_passes_on_one_metric(caplog):
    several = RayboSearch(space={"x": tune.uniform(0, 1)}, metrics={"loss": "min", "size": "min"})
    with pytest.raises(MethodError, match="a Repeater passes on the mean of one metric"):
        Repeater(several, repeat=2).set_search_properties(None, None, {})
    with pytest.raises(MethodError, match="a Repeater passes on the mean of one metric"):
        ConcurrencyLimiter(Repeater(several, repeat=2), 2).suggest("a")
    one = RayboSearch(metric="loss", mode="min")
    assert Repeater(one, repeat=2).set_search_properties("loss", "min", {"x": tune.uniform(0, 1)})
    assert "to start several at" not in caplog.text  # which a Repeater does not pass on
