"""Several metrics and constraints by ask and tell: what is accepted, leads and is refused, what a journal keeps."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

import raybo
from raybo.common.errors import JournalError, MethodError, ObjectiveError, TrialError
from raybo.engine.lifecycle import Occurrence
from raybo.engine.trial.task import run_trial
from raybo.experiments.in_process import tune_here
from raybo.journal import Journal, read
from raybo.methods import METHODS, needs_context
from raybo.record.goals import Constraint, Goals
from raybo.record.states import State
from raybo.searcher import Searcher
from raybo.study.enqueueing import enqueue
from raybo.study.replay import replay
from raybo.study.study import load
from raybo.study.warm_start import known_from

SPACE = {"x": raybo.Float(0.0, 1.0), "y": raybo.Float(0.0, 1.0)}
METRICS = {"accuracy": "max", "seconds": "min"}
RULES = {"memory": "<= 1.5", "accuracy": ">= 0.2"}
TAKE = {"auto", "ei", "gp-ucb", "random", "sobol"}


def result(x, y):
    return {"accuracy": 1.0 - (x - 0.7) ** 2 - (y - 0.2) ** 2, "seconds": x + y, "memory": 2.0 * x + y}


def told(*results, metrics=METRICS, constraints=None, method="random", **options):
    searcher = Searcher(SPACE, method, seed=0, metrics=metrics, constraints=constraints, **options)
    for each in results:
        searcher.tell(searcher.ask(), each)
    return searcher


def run(method, n=16, **options):
    searcher = Searcher(SPACE, method, seed=2, trials=n, metrics=METRICS, constraints=RULES, **options)
    for _ in range(n):
        trial = searcher.ask()
        if trial.config["x"] > 0.9:
            searcher.fail(trial, "out of memory")
        else:
            searcher.tell(trial, result(**trial.config))
    return searcher


# ---- what is wanted


@pytest.mark.parametrize("text", ["<= 2e9", ">=-3", "  >=  0.5 ", "<= 0.12345678901"])
def test_a_constraint_is_a_bound(text):
    constraint = Constraint.read("memory", text)
    assert Constraint.read("memory", constraint.rule) == constraint
    at = constraint.bound
    assert constraint.margin(at) == 0.0
    assert constraint.broken_by(at) == ""
    assert constraint.value_of(constraint.margin(at + 1.5)) == at + 1.5
    assert (constraint.margin(at + 1.0) < 0.0) is text.strip().startswith("<=")


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ({"metrics": {}}, "1 to 4 names with 'max' or 'min', got 0"),
        ({"metrics": dict.fromkeys("abcde", "max")}, "1 to 4 names"),
        ({"metrics": {"a": "max", "b": "less"}}, "metrics: b must be 'max' or 'min', got 'less'"),
        ({"metrics": {"a": "max", "": "min"}}, "a name must be text"),
        ({"metrics": ["a", "b"]}, "metrics must be a dict of modes by name"),
        ({"constraints": {"a": "< 3"}}, "a must be '<= number' or '>= number', got '< 3'"),
        ({"constraints": {"a": "<= 3 at any step"}}, "with 'at every step' after it, if each report has to keep it"),
        ({"constraints": {"a": "<= inf"}}, "a must be '<= number'"),
        ({"constraints": {"a": "<= many"}}, "a must be '<= number'"),
        ({"constraints": {3: "<= 3"}}, "a name must be text"),
    ],
)
def test_an_invalid_goal_is_refused_with_the_rule(declared, said):
    with pytest.raises(MethodError, match=said):
        Searcher(SPACE, **declared)
    with pytest.raises(ObjectiveError, match=said):
        raybo.objective(space=SPACE, **declared)


def test_one_metric_or_several_but_not_both():
    with pytest.raises(ObjectiveError, match="not both"):
        raybo.objective(space=SPACE, metric="loss", mode="min", metrics=METRICS)
    for other in ({"metric": "loss"}, {"mode": "min"}):
        with pytest.raises(MethodError, match="not both"):
            Searcher(SPACE, metrics=METRICS, **other)
    assert Searcher(SPACE, metrics=METRICS, metric="accuracy", mode="max").goals.metrics == METRICS


def test_features_for_one_metric_refuse_several_by_name():
    @raybo.objective(space=SPACE)
    def job(config):
        return {"accuracy": 1.0, "seconds": 1.0}

    for option in ({"target": 0.9}, {"stop_below_gain": 0.1}, {"confirm": "2x2"}):
        with pytest.raises(MethodError, match=f"^{next(iter(option))} needs a single metric, and there are 2"):
            raybo.tune(job, trials=2, metrics=METRICS, **option)


def test_methods_without_several_goals_name_those_with_them():
    for name in METHODS:
        if name in TAKE or needs_context(name):
            continue
        with pytest.raises(MethodError, match=rf"^{name} takes one metric and no constraints; .*gp-ucb.* take several"):
            Searcher(SPACE, name, metrics=METRICS)
        with pytest.raises(MethodError, match=f"^{name} takes one metric and no constraints"):
            Searcher(SPACE, name, constraints=RULES)


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("ei", {"hyperparameters": "mcmc"}),
        ("ei", {"improvement": "probability"}),
        ("ei", {"incumbent": "mean"}),
        ("ei", {"nu": 2.0}),
        ("gp-ucb", {"preset": "paper"}),
        ("gp-ucb", {"diagnostics": 3}),
        ("gp-ucb", {"hyperparameters": "slice"}),
    ],
)
def test_options_that_go_with_one_metric_are_refused(method, options):
    Searcher(SPACE, method, **options)
    with pytest.raises(MethodError, match="needs a single metric"):
        Searcher(SPACE, method, metrics=METRICS, **options)


def test_beside_constraints_ei_takes_nu_but_no_incumbent():
    Searcher(SPACE, "ei", constraints=RULES, nu=2.0).ask()
    with pytest.raises(MethodError, match="incumbent=mean needs a single metric and no constraints; leave it out"):
        Searcher(SPACE, "ei", constraints=RULES, incumbent="mean")


def test_contexts_beside_several_metrics_are_refused():
    with pytest.raises(
        MethodError, match="a context needs a single metric; leave out the context, or the other metrics"
    ):
        Searcher(SPACE, metrics=METRICS, context={"load": raybo.Float(0, 1)})

    @raybo.objective(space=SPACE, metrics=METRICS, context={"load": raybo.Float(0, 1)})
    def job(config):
        return 1.0

    with pytest.raises(ObjectiveError, match="a context needs a single metric"):
        _ = job.context


# ---- results, and the front


def test_a_result_needs_every_number():
    searcher = Searcher(SPACE, "random", seed=0, metrics=METRICS, constraints=RULES)
    trial = searcher.ask()
    for value, said in (
        (3.0, "a dict with accuracy, seconds, memory is needed, got 3.0"),
        ({"accuracy": 1.0, "memory": 1.0}, "its result has no seconds"),
        ({"accuracy": 1.0, "memory": 1.0, "seconds": float("nan")}, "a finite number is needed for seconds, got nan"),
        ({"accuracy": 1.0, "memory": True, "seconds": 1.0}, "a number is needed for memory, got True"),
    ):
        with pytest.raises(TrialError, match=f"trial 0: {said}"):
            searcher.tell(trial, value)
    assert searcher.trials[0].state is State.PENDING
    ended = searcher.tell(trial, {"accuracy": np.float32(0.5), "seconds": 2, "memory": 1.0, "note": "so", "list": [1]})
    assert ended.values == {"accuracy": 0.5, "seconds": 2.0, "memory": 1.0}
    assert ended.value == 0.5
    assert ended.details["metrics"]["note"] == "so"
    assert ended.feasible
    assert searcher.ask().feasible is None


def test_the_front_is_what_no_feasible_trial_dominates():
    searcher = told(
        {"accuracy": 0.9, "seconds": 3.0, "memory": 1.0},
        {"accuracy": 0.8, "seconds": 1.0, "memory": 1.0},
        {"accuracy": 0.7, "seconds": 2.0, "memory": 1.0},  # dominated
        {"accuracy": 0.99, "seconds": 0.5, "memory": 9.0},  # infeasible
        {"accuracy": 0.8, "seconds": 1.0, "memory": 1.5},  # as good as another, and just feasible
        {"accuracy": 0.95, "seconds": 3.5, "memory": 1.0},
        constraints=RULES,
    )
    assert [trial.number for trial in searcher.front] == [5, 0, 1, 4]
    assert searcher.trials[3].violations == {"memory": 7.5}
    assert searcher.trials[3].feasible is False
    reference = {"accuracy": 0.7, "seconds": 3.5}
    assert searcher.ledger.reference() == reference
    by_hand = (0.9 - 0.8) * (3.5 - 3.0) + (0.8 - 0.7) * (3.5 - 1.0)  # trial 5 is at the reference's edge
    assert searcher.hypervolume() == pytest.approx(by_hand)
    assert searcher.hypervolume(reference) == searcher.hypervolume()
    assert searcher.hypervolume({"accuracy": np.float32(0.5), "seconds": np.int64(4)}) > 0.0
    beyond = {"accuracy": 0.0, "seconds": 10**400}
    for wrong in ({"accuracy": 0.0}, {"accuracy": 0.0, "seconds": float("inf")}, beyond, 3.0):
        with pytest.raises(TrialError, match="reference must be a number for each of accuracy, seconds"):
            searcher.hypervolume(wrong)
    with pytest.raises(
        TrialError, match=r"with several metrics \(accuracy, seconds\) there is no single best trial; `front`"
    ):
        _ = searcher.best


def test_volume_is_above_the_worst_feasible_values():
    ledger = told(
        {"accuracy": 0.9, "seconds": 5.0, "memory": 1.0},
        {"accuracy": 0.8, "seconds": 3.0, "memory": 1.5},
        {"accuracy": 0.1, "seconds": 99.0, "memory": 9.0},
        constraints={"memory": "<= 1.5"},
    ).ledger
    assert ledger.reference() == {"accuracy": 0.8, "seconds": 5.0}
    assert [trial.number for trial in ledger.front] == [0, 1]  # what is just within a bound keeps it
    assert ledger.hypervolume() == 0.0
    at = {"accuracy": 0.5, "seconds": 10.0}
    assert ledger.hypervolume(at) == pytest.approx(0.4 * 5.0 + 0.3 * 2.0)


def test_incremental_front_equals_the_front_of_all():
    rng = np.random.default_rng(3)
    rows = np.round(rng.random((60, 3)) * 5) / 5
    metrics = {"a": "max", "b": "min", "c": "max"}
    searcher = told(*(dict(zip("abc", row.tolist(), strict=True)) for row in rows), metrics=metrics)
    Y = rows * [1.0, -1.0, 1.0]
    slow = [i for i, y in enumerate(Y) if not any((z >= y).all() and (z > y).any() for z in Y)]
    assert sorted(trial.number for trial in searcher.front) == slow
    np.testing.assert_array_equal(searcher.history.Y, Y)


def test_best_is_feasible_or_the_nearest_is_named():
    searcher = told(metrics=None, constraints={"memory": "<= 1"})
    with pytest.raises(TrialError, match="no trial has finished yet"):
        _ = searcher.best
    for value, memory in ((9.0, 4.0), (5.0, 1.5)):
        searcher.tell(searcher.ask(), {"value": value, "memory": memory})
    with pytest.raises(TrialError, match=r"trial 1 comes closest: memory 1.5 breaks memory <= 1 by 0.5"):
        _ = searcher.best
    assert searcher.front == []
    searcher.tell(searcher.ask(), {"value": 1.0, "memory": 1.0})
    assert searcher.best.number == 2


@pytest.mark.parametrize("size", [1e-200, 1.0, 1e149])
def test_violation_does_not_depend_on_the_unit(size):
    """Squares of the smallest floats are 0; the nearest trial stays the third."""
    searcher = told(metrics=None, constraints={"memory": "<= 0", "time": "<= 0"})
    for memory, time in ((3.0, 1.0), (1.0, 3.0), (1.0, 1.0), (2.0, 2.0)):
        searcher.tell(searcher.ask(), {"value": 1.0, "memory": size * memory, "time": time})
    searcher.fail(searcher.ask(), "broke")
    np.testing.assert_allclose(searcher.history.violation, np.array([3.0, 3.0, 1.0, 2.0]) / np.std([3, 1, 1, 2]))
    assert "trial 2 comes closest" in searcher.ledger.nearest


def test_history_has_columns_of_metrics_and_margins():
    history = run("random").history
    X = history.X
    np.testing.assert_allclose(history.Y[:, 1], -X.sum(axis=1))
    np.testing.assert_array_equal(history.Y[:, 0], history.y)
    np.testing.assert_allclose(history.margins[:, 0], 1.5 - 2.0 * X[:, 0] - X[:, 1])
    np.testing.assert_array_equal(history.feasible, (history.margins >= 0.0).all(axis=1))


# ---- methods


@pytest.mark.parametrize("method", sorted(TAKE))
def test_methods_find_fronts_despite_failures_and_replay(method, tmp_path):
    @raybo.objective(space=SPACE, metrics=METRICS, constraints=RULES)
    def job(config):
        if config["x"] > 0.9:
            raise ValueError("too large")
        return {**result(**config), "note": "kept"}

    path = tmp_path / "job.db"
    tune_here(job, trials=16, method=method, seed=2, storage=path, options={}, between=lambda: None)
    study = load(path)
    assert len(study.front) > 1
    assert study.hypervolume() > 0.0
    assert [again for again in replay(study) if again.differs] == []
    assert all(study.explain(trial) for trial in study.trials)
    searcher = run(method)
    assert [trial.config for trial in searcher.trials] == [trial.config for trial in study.trials]


@pytest.mark.slow
def test_models_find_a_wider_front_than_chance():
    reference = {"accuracy": 0.2, "seconds": 2.0}
    volumes = {method: run(method, 24).hypervolume(reference) for method in ("auto", "ei", "gp-ucb", "random")}
    assert min(volumes[method] for method in ("auto", "ei", "gp-ucb")) > volumes["random"]


@pytest.mark.parametrize("method", ["auto", "ei", "gp-ucb"])
def test_before_anything_is_feasible_feasibility_alone_is_sought(method):
    searcher = Searcher(SPACE, method, mode="min", seed=1, trials=30, constraints={"c": "<= 0"})
    for _ in range(30):
        trial = searcher.ask()
        x, y = trial.config.values()
        searcher.tell(trial, {"value": -x, "c": (x - 0.93) ** 2 + (y - 0.07) ** 2 - 0.01})
    feasible = [trial.number for trial in searcher.trials if trial.feasible]
    assert feasible
    assert searcher.best.config["x"] > 0.95


@pytest.mark.parametrize("method", ["auto", "ei", "gp-ucb"])
def test_workers_are_kept_apart(method):
    searcher = run(method)
    X = np.array([list(searcher.ask().config.values()) for _ in range(6)])
    distances = np.linalg.norm(X[:, None] - X[None], axis=2)[np.triu_indices(6, 1)]
    assert distances.min() > 1e-4


def test_minimising_is_maximising_the_negative():
    turned = {"max": "min", "min": "max"}
    mirrored = {name: turned[mode] for name, mode in METRICS.items()}
    searchers = [Searcher(SPACE, "auto", seed=4, trials=14, metrics=metrics) for metrics in (METRICS, mirrored)]
    for _ in range(14):
        trials = [searcher.ask() for searcher in searchers]
        assert trials[0].config == trials[1].config
        values = {name: result(**trials[0].config)[name] for name in METRICS}
        searchers[0].tell(trials[0], values)
        searchers[1].tell(trials[1], {name: -value for name, value in values.items()})


# ---- journals, and continued studies


def test_a_journal_of_one_metric_holds_nothing_new(tmp_path):
    @raybo.objective(space=SPACE, metric="loss", mode="min")
    def job(config):
        return config["x"]

    path = tmp_path / "job.db"
    tune_here(job, trials=3, method="random", seed=2, storage=path, options={}, between=lambda: None)
    with contextlib.closing(Journal(path)) as journal:
        said = journal.description.to_json()
    assert not {"metrics", "constraints"} & set(said)
    assert load(path).goals == Goals(("loss",), ("min",))


def test_a_study_continues_only_with_equal_goals(tmp_path):
    def job(config):
        return result(**config)

    path, arguments = tmp_path / "job.db", {"trials": 4, "method": "random", "seed": 2, "options": {}}
    made = raybo.objective(space=SPACE, metrics=METRICS, constraints=RULES)(job)
    tune_here(made, storage=path, between=lambda: None, **arguments)
    for other, said in (
        ({"metrics": dict(reversed(METRICS.items())), "constraints": RULES}, "metric is 'accuracy' in the journal"),
        ({"metrics": METRICS}, "constraints is .* in the journal and None now"),
        ({"metrics": METRICS, "constraints": {**RULES, "memory": "<= 2"}}, "<= 1.5"),
    ):
        with pytest.raises(JournalError, match=said):
            tune_here(raybo.objective(space=SPACE, **other)(job), storage=path, between=lambda: None, **arguments)
    assert len(read(path)[1]) == 9


def test_results_from_elsewhere_bring_all_their_numbers(tmp_path):
    path = tmp_path / "job.db"
    made = raybo.objective(space=SPACE, metrics=METRICS, constraints=RULES)(lambda config: result(**config))
    tune_here(made, trials=3, method="random", seed=2, storage=path, options={}, between=lambda: None)
    enqueue(path, {"x": 0.1, "y": 0.1}, {"accuracy": 0.5, "seconds": 0.2, "memory": 0.3})
    study = load(path)
    assert study.trials[-1].values == {"accuracy": 0.5, "seconds": 0.2, "memory": 0.3}
    with pytest.raises(TrialError, match="a dict with accuracy, seconds, memory is needed"):
        enqueue(path, {"x": 0.2, "y": 0.1}, 3.0)
    known = known_from(study, Goals.of(METRICS, {"memory": "<= 9"}), raybo.Space(SPACE))
    assert [each.value["memory"] for each in known] == [trial.values["memory"] for trial in study.trials]
    otherwise = Goals.of(dict(reversed(METRICS.items())))
    assert [each.value for each in known_from(study, otherwise, raybo.Space(SPACE))] == [
        trial.values for trial in study.trials
    ]
    with pytest.raises(JournalError, match=r"none of its 4 results fits the space: .* has no watts"):
        known_from(study, Goals.of(METRICS, {"watts": "<= 9"}), raybo.Space(SPACE))
    with pytest.raises(JournalError, match="it optimises max accuracy, min seconds, this study min loss"):
        known_from(study, Goals.of(metric="loss", mode="min"), raybo.Space(SPACE))


# ---- a trial that does not return what is named


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        ({"accuracy": 1.0, "seconds": 1.0}, "it returned no 'memory' but 'accuracy', 'seconds'"),
        ({"accuracy": 1.0, "seconds": float("inf"), "memory": 1.0}, "its seconds is inf, not a finite number"),
        ({"accuracy": 1.0, "seconds": "fast", "memory": 1.0}, "its seconds is not a number but 'fast'"),
        ({"seconds": 1.0}, "it returned no 'accuracy' but 'seconds'"),
        (1.0, "it returned a single number; return a dict with 'accuracy', 'seconds', 'memory'"),
    ],
)
def test_unusable_result_fails_the_trial_with_one_line(returned, said):
    goals = Goals.of(METRICS, RULES)
    occurrence, data = run_trial(lambda config: returned, {}, {}, goals, 1)
    assert (occurrence, data["reason"]) == (Occurrence.BAD_RESULT, said)


def test_what_is_named_is_kept_among_many_numbers():
    many = {f"n{i}": i for i in range(80)}
    occurrence, data = run_trial(
        lambda config: {**many, "accuracy": 1.0, "seconds": np.float64(2.0), "memory": 3},
        {},
        {},
        Goals.of(METRICS, RULES),
        1,
    )
    assert occurrence is Occurrence.RETURNED
    assert (data["value"], data["metrics"]["seconds"], data["metrics"]["memory"]) == (1.0, 2.0, 3.0)


@pytest.mark.parametrize(
    ("names", "modes", "doubtful"),
    [
        (("loss",), ("max",), "loss"),
        (("val_loss",), ("max",), "val_loss"),
        (("loss",), ("min",), ""),
        (("neg_log_loss",), ("max",), ""),
        (("accuracy", "test-RMSE"), ("max", "max"), "test-RMSE"),
        (("glossiness",), ("max",), ""),
    ],
)
def test_a_loss_is_hardly_to_be_maximised(names, modes, doubtful):
    assert Goals(names, modes).doubtful == doubtful
