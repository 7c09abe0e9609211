"""The sampler for Optuna keeps Optuna's own contract, and proposes what the storage alone determines."""

from __future__ import annotations

import datetime
import math
import subprocess
import sys
import time
import warnings
from pathlib import Path

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.testing.pytest_samplers import BasicSamplerTestCase, MultiObjectiveSamplerTestCase, RelativeSamplerTestCase

import raybo
from raybo.common.errors import MethodError
from raybo.integrations.optuna import RayboSampler
from raybo.integrations.optuna_spaces import ShownSpace
from raybo.integrations.optuna_trials import KEY, Kept, searcher_of
from raybo.record.states import State

optuna.logging.set_verbosity(optuna.logging.WARNING)


class TestContract(BasicSamplerTestCase, RelativeSamplerTestCase, MultiObjectiveSamplerTestCase):
    """Optuna's tests of samplers of its own."""

    @pytest.fixture
    def sampler(self):
        return lambda: RayboSampler(seed=0)


def create(sampler=None, **more):
    return optuna.create_study(study_name="study", sampler=sampler or RayboSampler(), **more)


def bowl(trial):
    return (trial.suggest_float("x", -1, 1) - 0.3) ** 2 + (trial.suggest_float("y", 1e-3, 1, log=True) - 0.1) ** 2


def branches(trial):
    if trial.suggest_categorical("kind", ["svm", "forest", "none"]) == "svm":
        return abs(trial.suggest_float("C", 0, 1) - 0.7)
    if trial.params["kind"] == "none":
        return 1.0
    layers = trial.suggest_int("layers", 1, 4)
    return 0.5 + sum(trial.suggest_float(f"units {i}", 0, 1) for i in range(layers))


def history_of(study, **more):
    shown = ShownSpace.of([trial for trial in study.trials if trial.state.name == "COMPLETE"])
    return searcher_of(study, study.trials, shown, "auto", None, 0, **more).history


def test_sampler_finds_the_bottom_of_a_bowl():
    study = create()
    study.optimize(bowl, n_trials=20)
    assert study.best_value < 1e-3


def test_several_directions_give_a_front():
    study = create(directions=["minimize", "maximize"])
    study.optimize(lambda trial: ((x := trial.suggest_float("x", -2, 2)) ** 2, -((x - 1) ** 2)), n_trials=20)
    on_front = [trial.params["x"] for trial in study.best_trials]
    assert len(on_front) >= 5
    assert all(-0.05 < x < 1.05 for x in on_front)


# ---- a function of the storage


@pytest.mark.parametrize("objective", [bowl, branches])
def test_another_process_makes_the_same_proposals(objective):
    study = create()
    study.optimize(objective, n_trials=16)
    proposed = [trial.number for trial in study.trials if Kept.of(trial)]
    assert len(proposed) >= 14
    for number in [*proposed[:3], *proposed[-2:]]:
        other = create()
        other.add_trials(study.trials[:number])
        trial = other.ask()
        objective(trial)
        assert trial.params == study.trials[number].params


def test_studies_of_other_names_differ():
    drawn = set()
    for name in ("a", "b"):
        study = optuna.create_study(study_name=name, sampler=RayboSampler())
        study.optimize(bowl, n_trials=2)
        drawn.add(study.trials[1].params["x"])
    assert len(drawn) == 2


@pytest.mark.parametrize("finished", [2, 8])
def test_trials_that_begin_together_differ(finished):
    study = create()
    study.optimize(bowl, n_trials=finished)
    xs = []
    for already in range(3):  # of others only their beginning is known
        process = create()
        process.add_trials([*study.trials, *[optuna.trial.create_trial(state=RUNNING)] * already])
        trial = process.ask()
        bowl(trial)
        xs.append(trial.params["x"])
    xs.sort()
    assert min(xs[1] - xs[0], xs[2] - xs[1]) > 1e-3


@pytest.mark.parametrize("seed", [1, 11])
def test_the_design_does_not_come_to_a_point_again(seed):
    """One proposal takes into account what a slow trial might be proposed, which then comes from a smaller space."""

    def grows(trial):
        if trial.suggest_categorical("kind", ["linear", "net"]) == "linear":
            return trial.suggest_float("alpha", 0.1, 10, log=True)
        return sum(trial.suggest_float(f"width {i}", 0, 1) for i in range(trial.suggest_int("layers", 1, 3)))

    study = create(RayboSampler(seed=seed))
    for _ in range(2):
        study.enqueue_trial({"kind": "linear"})
        study.tell(trial := study.ask(), grows(trial))
    layered, slow = study.ask(), study.ask()
    for trial in (layered, slow):
        assert trial.suggest_categorical("kind", ["linear", "net"]) == "net"
    study.tell(layered, grows(layered))  # from here on, the space has layers
    one = study.ask()
    one.suggest_categorical("kind", ["linear", "net"])
    study.tell(slow, grows(slow))
    other = study.ask()
    grows(other)
    grows(one)
    assert one.params != other.params


@pytest.mark.parametrize("ended", [False, True])
def test_what_another_process_proposed_meanwhile_is_left_to_it(monkeypatch, ended):
    study = create()
    study.optimize(bowl, n_trials=12)
    keep, same = Kept.keep, []

    def keep_after_another(self, study, trial):
        monkeypatch.setattr(Kept, "keep", keep)
        if ended:
            distributions = {name: study.trials[-2].distributions[name] for name in self.params}
            study.add_trial(optuna.trial.create_trial(params=self.params, distributions=distributions, value=1.0))
        else:
            study.ask()
            keep(self, study, study.trials[-1])
        same.append(self.params)
        keep(self, study, trial)

    monkeypatch.setattr(Kept, "keep", keep_after_another)
    trial = study.ask()
    bowl(trial)
    assert same
    assert trial.params not in same


def test_long_proposals_are_kept_in_parts():
    study = create()
    study.optimize(bowl, n_trials=1)
    kept = Kept({"x": 0.5}, {"text": "a" * 5_000}, "")
    trial = study.ask()
    kept.keep(study, trial)
    assert Kept.of(study.trials[1]) == kept
    assert {key for key in study.trials[1].system_attrs if key.startswith(KEY)} == {f"{KEY}:{i}" for i in range(3)}
    shorter = Kept({"x": 0.25}, {}, "")
    shorter.keep(study, trial)
    assert Kept.of(study.trials[1]) == shorter


def test_a_proposal_that_is_half_written_is_not_known_yet():
    study = create()
    study.optimize(bowl, n_trials=1)
    trial, other = study.ask(), study.ask()
    Kept({"x": 0.5}, {"text": "a" * 5_000}, "").keep(study, trial)
    for i in (0, 1):
        part = study.trials[1].system_attrs[f"{KEY}:{i}"]
        study._storage.set_trial_system_attr(other._trial_id, f"{KEY}:{i}", part)
    assert Kept.of(study.trials[2]) is None
    study.optimize(bowl, n_trials=1)


class Relu: ...


class Tanh: ...


@pytest.mark.parametrize("choices", [[(32,), (64, 32), (64, 64)], [Relu, Tanh, None]], ids=["tuples", "classes"])
@pytest.mark.filterwarnings("ignore:Choices for a categorical distribution")
def test_choices_may_be_any_objects(choices):
    def objective(trial, choices=choices):
        return choices.index(trial.suggest_categorical("c", choices)) + trial.suggest_float("x", 0, 1)

    study, names = create(RayboSampler("sobol")), create(RayboSampler("sobol"))
    study.optimize(objective, n_trials=9)
    names.optimize(lambda trial: objective(trial, ["a", "b", "c"][: len(choices)]), n_trials=9)
    assert [choices.index(trial.params["c"]) for trial in study.trials] == [
        ["a", "b", "c"].index(trial.params["c"]) for trial in names.trials
    ]
    assert [trial.values for trial in study.trials] == [trial.values for trial in names.trials]
    assert all("sobol" in record.tags for record in history_of(study).records[1:])
    study.ask().suggest_float("x", 0, 1)
    assert history_of(study).X_pending.shape == (1, 2)  # its choice is known before it has suggested it


# ---- spaces


def test_branches_are_inferred_from_what_is_seen():
    study = create()
    study.optimize(branches, n_trials=20)
    shown = ShownSpace.of(study.trials)
    assert shown.opened_by["C"] == ("kind", frozenset({0}))
    assert shown.opened_by["layers"] == ("kind", frozenset({1}))
    for trial in study.trials[-4:]:
        assert set(Kept.of(trial).params) >= set(trial.params)
        assert ("C" in Kept.of(trial).params) == (trial.params["kind"] == "svm")
    assert study.best_value < 0.1


def created(params, distributions, value=0.0):
    return optuna.trial.create_trial(params=params, distributions=distributions, value=value)


RUNNING = optuna.trial.TrialState.RUNNING
CHOICE, RANGE = CategoricalDistribution(["a", "b", "c"]), FloatDistribution(0, 1)


def test_a_parameter_may_be_in_several_branches():
    trials = [
        created({"choice": "a"}, {"choice": CHOICE}),
        created({"choice": "b", "x": 0.25}, {"choice": CHOICE, "x": RANGE}),
        created({"choice": "c", "x": 0.75}, {"choice": CHOICE, "x": RANGE}),
    ]
    shown = ShownSpace.of(trials)
    assert shown.opened_by == {"x": ("choice", frozenset({1, 2}))}
    assert shown.space.d == 3
    for trial in trials:
        assert shown.params(shown.point(trial.params)) == trial.params
    assert shown.point({"choice": "b"}) is None


def test_an_integer_may_open_parameters():
    trials = []
    for n in (1, 2, 3, 3, 5, 2):
        units = [f"units {i}" for i in range(min(n, 3))]
        params = {"layers": n, **dict.fromkeys(units, 0.2)}
        trials.append(created(params, {"layers": IntDistribution(1, 5), **dict.fromkeys(units, RANGE)}))
    shown = ShownSpace.of(trials)
    assert shown.ranges == {"layers": [(1, 1), (2, 2), (3, 5)]}
    assert shown.opened_by == {"units 1": ("layers", {1, 2}), "units 2": ("layers", {2})}
    for trial in trials:
        assert shown.params(shown.point(trial.params)) == trial.params


def test_an_integer_may_close_parameters():
    sizes = IntDistribution(2, 8, step=2)
    trials = [created({"size": 6}, {"size": sizes})]
    trials += [created({"size": n, "x": 0.5}, {"size": sizes, "x": RANGE}) for n in (2, 4)]
    assert ShownSpace.of(trials).ranges == {"size": [(2, 4), (6, 8)]}
    assert ShownSpace.of(trials).opened_by == {"x": ("size", {0})}


def test_many_ranges_are_left_out():
    layers = IntDistribution(1, 20)
    trials = []
    for n in [*range(1, 21), *range(1, 21)]:
        units = [f"units {i:02}" for i in range(n)]
        trials.append(
            created({"layers": n, **dict.fromkeys(units, 0.2)}, {"layers": layers, **dict.fromkeys(units, RANGE)})
        )
    shown = ShownSpace.of(trials)
    assert len(shown.ranges["layers"]) == 8
    assert [name for name in shown.distributions if name != "layers"] == [f"units {i:02}" for i in range(8)]
    assert shown.point(trials[-1].params) is not None


def test_untried_choices_come_first():
    study = create()
    study.optimize(branches, n_trials=4)
    assert {trial.params["kind"] for trial in study.trials} == {"svm", "forest", "none"}
    assert study.sampler.explain(study.trials[1]).endswith("; kind: a choice not tried before")


def test_what_nothing_explains_is_left_out():
    trials = [
        created({"x": 0.1, "y": 0.1}, {"x": RANGE, "y": RANGE}),
        created({"x": 0.9}, {"x": RANGE}),
        created({"x": 0.2, "z": 0.2}, {"x": RANGE, "z": FloatDistribution(0, 2)}),
        created({"x": 0.2, "z": 0.2}, {"x": RANGE, "z": FloatDistribution(0, 3)}),
    ]
    assert set(ShownSpace.of(trials).distributions) == {"x"}


def test_branches_stay_when_their_choice_is_fixed():
    study = create()
    study.optimize(branches, n_trials=12)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        study.sampler = optuna.samplers.PartialFixedSampler({"kind": "svm"}, study.sampler)
    study.optimize(branches, n_trials=4)
    for trial in study.trials[-4:]:
        assert trial.params["kind"] == "svm"
        assert "C" in Kept.of(trial).params
        assert "kind" not in Kept.of(trial).params


def test_a_range_that_no_float_holds_is_drawn():
    study = create()
    study.optimize(lambda trial: trial.suggest_int("n", 2**60, 2**60 + 4, log=True), n_trials=3)
    assert len(study.trials) == 3


# ---- how trials end


def test_enqueued_trials_are_completed_and_learnt_from():
    study = create()
    study.optimize(bowl, n_trials=4)
    study.enqueue_trial({"x": 0.31})
    study.optimize(bowl, n_trials=1)
    trial = study.trials[-1]
    assert trial.params["x"] == 0.31
    assert trial.params["y"] == Kept.of(trial).params["y"]
    record = history_of(study).records[4]
    assert record.tags == {"origin": "enqueued"}
    assert record.state is State.FINISHED


def test_running_trials_are_pending():
    study = create()
    study.optimize(bowl, n_trials=4)
    trial = study.ask()
    trial.suggest_float("x", -1, 1)
    assert history_of(study).X_pending.shape == (1, 2)  # with what it has not suggested yet


def test_endings_are_what_methods_know():
    def objective(trial):
        x = trial.suggest_float("x", 0, 1)
        for step in range(4):
            trial.report(x + step, step)
            if trial.number == 2 and step == 1:
                raise optuna.TrialPruned
        if trial.number == 3:
            raise RuntimeError
        return math.inf if trial.number == 4 else x

    study = create()
    study.optimize(objective, n_trials=6, catch=RuntimeError)
    history = history_of(study)
    states = [State.FINISHED, State.FINISHED, State.PRUNED, State.FAILED, State.FAILED, State.FINISHED]
    assert [record.state for record in history.records] == states
    assert history.steps == 4
    assert [step for step, _ in history.records[2].reports] == [1, 2]


def test_long_curves_are_thinned():
    study = create()

    def objective(trial):
        x = trial.suggest_float("x", 0, 1)
        for step in range(1_000):
            trial.report(x, step)
        if trial.number == 1:
            raise optuna.TrialPruned
        return x

    study.optimize(objective, n_trials=2)
    assert [len(record.reports) for record in history_of(study).records] == [50, 50]


def test_constraints_are_kept():
    study = create()

    def objective(trial):
        x = trial.suggest_float("x", 0, 1)
        trial.set_constraint("floor", 0.5 - x)
        return x

    study.optimize(objective, n_trials=20)
    assert study.best_value == pytest.approx(0.5, abs=0.02)
    assert sum(trial.params["x"] < 0.45 for trial in study.trials[10:]) <= 4


def test_constraints_func_is_called_at_each_end():
    study = create(RayboSampler(constraints_func=lambda trial: (0.5 - trial.params["x"],)))
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=15)
    assert study.best_value == pytest.approx(0.5, abs=0.05)
    study.sampler = RayboSampler(constraints_func=lambda trial: [math.nan])
    with pytest.raises(ValueError, match=r"^constraints_func must return numbers, got \[nan\] for trial 15$"):
        study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=1)


def test_trials_without_the_constraints_are_left_out():
    study = create()
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=2)

    def objective(trial):
        trial.set_constraint("a", -1.0)
        return trial.suggest_float("x", 0, 1)

    study.optimize(objective, n_trials=2)
    assert len(history_of(study)) == 2


# ---- wrong use, and many processes


def test_a_budget_enters_the_proposals_and_ends_the_study():
    def objective(trial):
        time.sleep(0.2)
        return (trial.suggest_float("rate", 0, 1) - 0.3) ** 2 + 1 / trial.suggest_int("rounds", 1, 100, log=True)

    study = create()
    study.optimize(objective, n_trials=5)
    before = study.trials  # copies
    for trial in before:  # as on any machine: 0.1 to 10 s
        trial.datetime_complete = trial.datetime_start + datetime.timedelta(seconds=trial.params["rounds"] / 10)
    spent = sum(trial.duration.total_seconds() for trial in before)

    def with_budget(budget):
        study = create(RayboSampler(seed=0, budget=budget))
        study.add_trials(before)
        return study

    early, again = with_budget(2 * spent), with_budget(2 * spent)
    early.optimize(objective, n_trials=1)
    assert "takes" in Kept.of(early.trials[-1]).tags
    asked = again.ask()
    proposed = {"rate": asked.suggest_float("rate", 0, 1), "rounds": asked.suggest_int("rounds", 1, 100, log=True)}
    assert proposed == early.trials[-1].params
    late = with_budget(spent + 0.5)
    late.optimize(objective, n_trials=20)
    took = [trial.duration.total_seconds() for trial in late.trials]
    assert sum(took[:-1]) < spent + 0.5 <= sum(took)
    late.tell(late.ask(), 1.0)  # there is no loop to end
    with pytest.raises(MethodError, match="budget must be seconds, or a time"):
        RayboSampler(budget="2x")


def test_a_method_with_contexts_is_refused():
    with pytest.raises(
        raybo.MethodError, match=r"^sbo-kde needs a context, which Optuna's trials do not have; use auto$"
    ):
        RayboSampler("sbo-kde")
    with pytest.raises(raybo.MethodError, match="there is no method 'aut'"):
        RayboSampler("aut")


def test_a_trial_can_be_explained():
    study = create()
    study.optimize(bowl, n_trials=6)
    assert study.sampler.explain(study.trials[0]).startswith("not proposed as a whole")
    assert study.sampler.explain(study.trials[1]) == "initial design (the middle of the space)"


def test_optunahub_loads_it_from_a_directory():
    optunahub = pytest.importorskip("optunahub", reason="optunahub is not installed")
    registry = Path(__file__).parents[2] / "hub" / "package"
    module = optunahub.load_local_module("samplers/raybo", registry_root=str(registry))
    study = create(module.RayboSampler(seed=0))
    study.optimize(bowl, n_trials=3)
    assert Kept.of(study.trials[-1]) is not None
    entries = {path.name for path in (registry / "samplers" / "raybo").iterdir() if path.name != "__pycache__"}
    assert entries == {"LICENSE", "README.md", "__init__.py", "example.py"}


WORKER = """
import sys, time
import optuna
from raybo.integrations.optuna import RayboSampler

def objective(trial):
    x, y = trial.suggest_float("x", -1, 1), trial.suggest_float("y", -1, 1)
    time.sleep(0.05)
    return (x - 0.3) ** 2 + y ** 2

study = optuna.load_study(study_name="shared", storage=sys.argv[1], sampler=RayboSampler())
study.optimize(objective, callbacks=[optuna.study.MaxTrialsCallback(40)])
"""


@pytest.mark.slow
def test_killed_workers_on_one_storage_lose_nothing(tmp_path: Path):
    storage = f"sqlite:///{tmp_path / 'study.db'}"
    study = optuna.create_study(study_name="shared", storage=storage)
    workers = [subprocess.Popen([sys.executable, "-c", WORKER, storage]) for _ in range(3)]
    try:
        while sum(trial.state.is_finished() for trial in study.trials) < 10:
            assert any(worker.poll() is None for worker in workers)
        workers[0].kill()
        assert [worker.wait(timeout=240) for worker in workers[1:]] == [0, 0]
    finally:
        for worker in workers:
            worker.kill()
    assert sum(trial.state.is_finished() for trial in study.trials) >= 40
    assert study.best_value < 1e-3
    points = [tuple(trial.params.values()) for trial in study.trials]
    assert len(set(points)) == len(points)


@pytest.mark.parametrize("steps", [range(0, 1000, 10), range(10, 1000, 10), range(1000, 101_000, 1000)])
def test_curves_keep_their_reports_whatever_their_steps(steps):
    study = create()

    def objective(trial):
        x = trial.suggest_float("x", 0, 1)
        for i, step in enumerate(steps):
            trial.report(x, step)
            if trial.number == 1 and i == 6:
                raise optuna.TrialPruned
        return x

    study.optimize(objective, n_trials=3)
    whole, pruned, _ = (dict(record.reports) for record in history_of(study).records)
    assert 45 <= len(whole) <= 51
    assert max(pruned) in whole


def test_trials_with_parameters_of_the_user_are_not_explained_by_the_method():
    study = create()
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1) + trial.suggest_categorical("c", [1, 2]), n_trials=3)
    study.enqueue_trial({"x": 0.95})
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1) + trial.suggest_categorical("c", [1, 2]), n_trials=2)
    texts = [study.sampler.explain(trial) for trial in study.trials]
    assert [text == "given by the user, in part or as a whole" for text in texts] == [False, False, False, True, False]


def test_a_method_without_constraints_is_refused_before_a_trial_is_paid_for():
    with pytest.raises(MethodError, match="turbo"):
        RayboSampler("turbo", constraints_func=lambda trial: [0.0])


@pytest.mark.parametrize(("option", "place"), [("direction", "create_study"), ("n_jobs", "study.optimize")])
def test_options_of_optuna_are_shown_their_place(option, place):
    with pytest.raises(MethodError, match=f"^there is no option '{option}': give it to {place}"):
        RayboSampler(**{option: 3})
