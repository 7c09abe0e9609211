"""Several metrics and constraints of jobs that report as they go: what counts, and what ends a trial early."""

from __future__ import annotations

import numpy as np
import pytest

import raybo
from raybo import schedulers
from raybo.errors import JournalError, MethodError, ObjectiveError, TrialError
from raybo.events import State
from raybo.experiments.here import tune_here
from raybo.goal import Constraint, Goals
from raybo.methods.fitting import fitted
from raybo.methods.several import Several
from raybo.replay import replay, replay_verdicts
from raybo.reporting.figures import panels
from raybo.reporting.studies import studies_in
from raybo.surrogate import Tamed, standard_model

SPACE = {"x": raybo.Float(0.0, 1.0), "y": raybo.Float(0.0, 1.0)}
METRICS = {"accuracy": "max", "seconds": "min"}
SMALL = {"megabytes": "<= 80 at every step"}
STEPS = 4


def at_step(config, step):
    accuracy = (1.0 - (config["x"] - 0.6) ** 2) * step / STEPS
    return {"accuracy": accuracy, "seconds": 0.5 + config["y"] + 0.01 * step, "megabytes": 120.0 * config["x"]}


def steps(config):
    for step in range(1, STEPS + 1):
        yield at_step(config, step)


def run(function, path, trials=12, method="random", scheduler=None, judged=None, **declared):
    job = raybo.objective(space=SPACE, steps=STEPS, **declared)(function)
    return tune_here(
        job,
        trials=trials,
        method=method,
        seed=1,
        storage=path,
        options={},
        between=lambda: None,
        scheduler=scheduler,
        scheduler_options=None if judged is None else {"metric": judged},
    )


def test_the_numbers_of_the_last_report_are_those_of_the_trial(tmp_path):
    study = run(steps, tmp_path / "a.db", metrics=METRICS, constraints={"megabytes": "<= 80"})
    assert study.count(State.FINISHED) == 12
    for trial in study.trials:
        assert trial.values == at_step(trial.config, STEPS)
        assert trial.feasible is (trial.config["x"] <= 80 / 120)
    kept = [trial.values for trial in study.trials if trial.feasible]
    better = [any(o["accuracy"] >= v["accuracy"] and o["seconds"] < v["seconds"] for o in kept) for v in kept]
    assert {t.values["seconds"] for t in study.front} == {
        v["seconds"] for v, is_worse in zip(kept, better, strict=True) if not is_worse
    }


def test_what_is_returned_at_the_end_counts_beside_them(tmp_path):
    def job(config):
        for step in range(1, STEPS + 1):
            raybo.report({"accuracy": at_step(config, step)["accuracy"]})
        return {"seconds": 7.0}

    study = run(job, tmp_path / "a.db", trials=3, metrics=METRICS)
    for trial in study.trials:
        assert trial.values == {"accuracy": at_step(trial.config, STEPS)["accuracy"], "seconds": 7.0}


def test_a_number_that_no_report_had_is_a_failure_with_its_name(tmp_path):
    def job(config):
        yield {"accuracy": 1.0}

    (trial,) = run(job, tmp_path / "a.db", trials=1, metrics=METRICS).trials
    assert trial.state is State.FAILED
    assert "no 'seconds'" in trial.reason


@pytest.mark.parametrize("declared", [{"metrics": METRICS}, {"metric": "accuracy", "mode": "max"}])
def test_a_constraint_at_every_step_ends_a_trial_with_the_first_report_that_breaks_it(tmp_path, declared):
    study = run(steps, tmp_path / "a.db", constraints=SMALL, **declared)
    large = [trial for trial in study.trials if trial.config["x"] > 80 / 120]
    assert large
    for trial in study.trials:
        if trial in large:
            assert (trial.state, trial.step) == (State.PRUNED, 1)
            megabytes = 120.0 * trial.config["x"]
            why = f"at step 1, megabytes {megabytes:.6g} breaks megabytes <= 80 at every step by {megabytes - 80:.3g}"
            assert trial.reason == why
        else:
            assert (trial.state, trial.step, trial.feasible) == (State.FINISHED, STEPS, True)
    assert not [again for again in replay(study) if again.differs]


def test_a_bound_on_the_first_metric_may_hold_at_every_step_too(tmp_path):
    def job(config):
        for step in range(1, STEPS + 1):
            yield config["x"] - 0.2 * step

    study = run(job, tmp_path / "a.db", metric="v", mode="max", constraints={"v": ">= 0 at every step"})
    for trial in study.trials:
        fell = next((step for step in range(1, STEPS + 1) if trial.config["x"] - 0.2 * step < 0.0), None)
        assert (trial.state is State.PRUNED) is (fell is not None)
        assert trial.step == (fell or STEPS)


def test_a_bound_that_need_not_hold_yet_ends_nothing(tmp_path):
    study = run(steps, tmp_path / "a.db", metric="accuracy", mode="max", constraints={"accuracy": ">= 0.5"})
    assert study.count(State.FINISHED) == 12


def test_the_model_of_the_constraint_knows_the_trials_that_it_ended(tmp_path):
    study = run(steps, tmp_path / "a.db", metric="accuracy", mode="max", constraints=SMALL)
    history = study.history
    ended = study.count(State.PRUNED)
    assert 0 < ended < 12
    several = Several.of(history, standard_model(), np.random.default_rng(0))
    assert several.limits[0].gp.n == 12
    alone = fitted(
        history.with_values(history.y), standard_model(), np.random.default_rng(0), outputs=Tamed.of(history.y)
    )
    assert alone.gp.n == 12 - ended
    X = np.random.default_rng(1).random((20, 2))
    mean, variance = several.metrics[0].gp.posterior(X)
    np.testing.assert_allclose(mean, alone.gp.posterior(X)[0], atol=1e-6)  # they are believed at the mean
    assert (variance <= alone.gp.posterior(X)[1] + 1e-9).all()
    worth = several.limits[0].value(np.array([[0.2, 0.5], [0.95, 0.5]]))
    assert worth[0] > np.log(0.9)
    assert worth[1] < np.log(0.1)


@pytest.mark.parametrize("method", ["auto", "ei"])
def test_methods_learn_to_stay_within_it(tmp_path, method):
    study = run(steps, tmp_path / "a.db", trials=24, method=method, metric="accuracy", mode="max", constraints=SMALL)
    late = study.trials[12:]
    assert sum(trial.state is State.PRUNED for trial in late) <= 4
    assert study.best.value > 0.99
    assert not [again for again in replay(study) if again.differs]


def test_schedulers_look_at_the_first_metric(tmp_path):
    study = run(steps, tmp_path / "a.db", trials=20, metrics=METRICS, scheduler="asha")
    pruned = [trial for trial in study.trials if trial.state is State.PRUNED]
    assert pruned
    for trial in pruned:
        assert trial.reports == [(s, at_step(trial.config, s)["accuracy"]) for s in range(1, trial.step + 1)]
    assert study.front
    assert all(trial.state is State.FINISHED for trial in study.front)


@pytest.mark.parametrize("scheduler", schedulers.SCHEDULERS)
def test_or_at_the_one_that_is_named_as_if_it_were_the_only_one(tmp_path, scheduler):
    study = run(steps, tmp_path / "a.db", 30, scheduler=scheduler, judged="seconds", metrics=METRICS)
    alone = run(steps, tmp_path / "b.db", 30, scheduler=scheduler, metric="seconds", mode="min")
    of_the_first = run(steps, tmp_path / "c.db", 30, scheduler=scheduler, metrics=METRICS)
    ends = [(trial.state, trial.step) for trial in study.trials]
    assert ends == [(trial.state, trial.step) for trial in alone.trials]
    assert ends != [(trial.state, trial.step) for trial in of_the_first.trials]
    for mine, theirs in zip(study.trials, alone.trials, strict=True):
        assert mine.reason == (theirs.reason and f"seconds: {theirs.reason}")
        assert mine.reports == [(step, at_step(mine.config, step)["accuracy"]) for step in range(1, mine.step + 1)]
    assert [one for one in replay_verdicts(study) if one.verdict == "prune"]
    assert not [one for one in replay_verdicts(study) if one.verdict != one.recorded]


def test_the_journal_remembers_which_metric_is_judged(tmp_path):
    study = run(steps, tmp_path / "a.db", 10, scheduler="asha", judged="seconds", metrics=METRICS)
    assert study.description.scheduler_options == {"metric": "seconds"}
    longer = run(steps, tmp_path / "a.db", 20, scheduler="asha", metrics=METRICS)
    whole = run(steps, tmp_path / "b.db", 20, scheduler="asha", judged="seconds", metrics=METRICS)
    assert [trial.reason for trial in longer.trials] == [trial.reason for trial in whole.trials]
    with pytest.raises(JournalError, match="scheduler_options is"):
        run(steps, tmp_path / "a.db", 20, scheduler="asha", judged="accuracy", metrics=METRICS)


def test_a_metric_that_is_judged_must_be_one_and_be_reported(tmp_path):
    def job(config):
        yield {"accuracy": 1.0}
        yield {"accuracy": 1.0, "seconds": float("nan")}

    study = run(job, tmp_path / "a.db", 2, scheduler="asha", judged="seconds", metrics=METRICS)
    assert {trial.reason for trial in study.trials} == {
        "at step 1, it reported no number 'seconds', which the scheduler looks at"
    }
    for judged in ("memory", ""):
        with pytest.raises(MethodError, match=f"asha: metric must be accuracy or seconds, got '{judged}'"):
            run(job, tmp_path / "b.db", 2, scheduler="asha", judged=judged, metrics=METRICS)
    run(
        steps, tmp_path / "c.db", 2, scheduler="asha", judged="accuracy", metric="accuracy"
    )  # the only one may be named


def test_ask_and_tell_may_report_several_numbers():
    searcher = raybo.Searcher(
        SPACE,
        "random",
        seed=1,
        steps=STEPS,
        metrics=METRICS,
        constraints=SMALL,
        scheduler="median",
        scheduler_options={"metric": "seconds", "startup": 2},
    )
    for _ in range(20):
        trial = searcher.ask()
        for step in range(1, STEPS + 1):
            told = {name: np.float32(value) for name, value in at_step(trial.config, step).items()}
            verdict = searcher.report(trial, told, step)
            if verdict.prune:
                searcher.prune(trial)
                break
        else:
            searcher.tell(trial, told)
    rules = {trial.number: trial.details["rule"] for trial in searcher.trials if trial.state is State.PRUNED}
    for trial in searcher.trials:
        is_large = trial.config["x"] > 80 / 120
        assert (rules.get(trial.number) == "job") is is_large
        assert ("breaks megabytes <= 80 at every step" in trial.reason) is is_large
        assert ("seconds: best by step" in trial.reason) is (rules.get(trial.number) == "median")
    assert {"job", "median"} == set(rules.values())
    trial = searcher.ask()
    for value, said in (
        (3.0, "a dict with accuracy and seconds is needed, as the scheduler looks at seconds, got 3.0"),
        ({"accuracy": 1.0}, "the report has no seconds, which the scheduler looks at"),
        ({"seconds": 1.0}, "the report has no accuracy$"),
        ({"accuracy": 1.0, "seconds": "many"}, "a number is needed"),
    ):
        with pytest.raises(TrialError, match=said):
            searcher.report(trial, value)
    assert searcher.trials[trial.number].step == 0


def test_what_breaks_a_constraint_is_pruned_without_a_scheduler_too():
    searcher = raybo.Searcher(SPACE, "random", seed=1, steps=STEPS, constraints=SMALL)
    trial = searcher.ask()
    assert searcher.report(trial, {"value": 0.1, "megabytes": 80}).action == "go"
    verdict = searcher.report(trial, {"value": 0.2, "megabytes": 90})
    assert (verdict.prune, verdict.why) == (True, "at step 2, megabytes 90 breaks megabytes <= 80 at every step by 10")
    ended = searcher.prune(trial)
    assert (ended.state, ended.reason, ended.details["rule"]) == (State.PRUNED, verdict.why, "job")


def test_the_best_report_goes_with_one_number():
    for more in ({"metrics": METRICS}, {"constraints": SMALL}):
        with pytest.raises(ObjectiveError, match="value='best' goes with one metric and no constraints"):
            raybo.objective(space=SPACE, value="best", **more)
    job = raybo.objective(space=SPACE, value="best")(steps)
    with pytest.raises(ObjectiveError, match="value='best' goes with one metric"):
        job.wanting(METRICS, None)


def test_a_constraint_at_every_step_is_kept_as_it_was_said():
    constraint = Constraint.read("megabytes", "<=80   at every step")
    assert constraint.at_every_step
    assert constraint.rule == "<= 80.0 at every step"
    assert Constraint.read("megabytes", constraint.rule) == constraint
    assert str(constraint) == "megabytes <= 80 at every step"
    goals = Goals.of(None, {**SMALL, "disk": "<= 3"})
    np.testing.assert_array_equal(goals.known_margins({"megabytes": 100, "disk": 9}), [-20.0, np.nan])
    assert goals.known_margins({"disk": 9.0, "megabytes": float("nan")}) is None
    assert goals.broken_by({"megabytes": "many", "disk": 9.0}) == ""


@pytest.mark.parametrize("method", ["auto", "ei"])
def test_with_several_metrics_what_was_ended_early_is_not_proposed_again(method):
    searcher = raybo.Searcher(SPACE, method, seed=0, trials=16, steps=STEPS, scheduler="asha", metrics=METRICS)
    for _ in range(14):
        trial = searcher.ask()
        for step in range(1, STEPS + 1):
            if searcher.report(trial, at_step(trial.config, step), step).prune:
                searcher.prune(trial)
                break
        else:
            searcher.tell(trial, at_step(trial.config, STEPS))
    assert searcher.history.count(State.PRUNED) > 5
    points = searcher.history.points(State.FINISHED, State.PRUNED)
    apart = np.abs(points[:, None] - points[None]).max(axis=2)[np.triu_indices(len(points), 1)]
    assert apart.min() > 0.01


def test_a_trial_in_flight_may_be_expected_to_beat_the_whole_front():
    searcher = raybo.Searcher({"x": raybo.Float(0.0, 1.0)}, "ei", seed=0, metrics=METRICS)
    for i in range(10):
        searcher.add({"x": 0.05 * i}, {"accuracy": 0.05 * i, "seconds": -0.05 * i})
    for _ in range(4):
        assert 0.0 <= searcher.ask().config["x"] <= 1.0
    several = Several.of(searcher.history, standard_model(), np.random.default_rng(0))
    np.testing.assert_allclose(several.near, searcher.history.X[[9]])
    assert (several.front > several.metrics[0].outputs.apply(np.array([0.45]))).all()


@pytest.mark.parametrize(
    "wanted", [{"metrics": METRICS}, {"metric": "accuracy", "constraints": {"megabytes": "<= -1"}}]
)
def test_curves_are_drawn_where_no_trial_is_the_best(tmp_path, wanted):
    study = run(steps, tmp_path / "a.db", scheduler="asha", **wanted)
    (drawn,) = [panel for panel in panels(study) if panel.key == "curves"]
    assert [trace.name for trace in drawn.figure.data] == ["pruned", "finished", *(["front"] if study.front else [])]


def test_a_list_of_studies_tells_how_many_are_on_the_front(tmp_path):
    study = run(steps, tmp_path / "a.db", metrics=METRICS)
    (row,) = studies_in(tmp_path)
    assert row.best == f"{len(study.front)} on the front"
