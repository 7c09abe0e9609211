"""Studies whose trials report: in process, compared, shown, drawn, exported."""

from __future__ import annotations

import contextlib
import csv
import json
import os
from pathlib import Path

import pytest
from rich.console import Console

import raybo
from raybo.cli.conclusion import conclude
from raybo.engine.description import searcher_for
from raybo.engine.lifecycle import Life
from raybo.engine.plan import Plan
from raybo.engine.run_options import RunOptions
from raybo.engine.study.dispatch import DispatchedTrial
from raybo.engine.study.event_log import EventLog
from raybo.engine.study.timings import Timings
from raybo.engine.study.verdicts import Judge
from raybo.experiments import Entry, Experiment, Problem, compare
from raybo.experiments.in_process import tune_here
from raybo.experiments.measures import values
from raybo.experiments.run import steps_spent, trials_wanted
from raybo.integrations.export import exporter
from raybo.job.loading import load_objective
from raybo.journal import Journal
from raybo.journal.side_files import trial_directory
from raybo.record.description import Description
from raybo.record.events import Kind, Planned, Pruned, Reported
from raybo.record.goals import Goals
from raybo.record.states import State
from raybo.record.trial import saved_share
from raybo.reporting.curves_in_text import BLOCKS, spark_line
from raybo.reporting.summary import best_configuration
from raybo.reporting.tables import study_view
from raybo.reporting.trial_view import trial_view
from raybo.study.replay import replay, replay_verdicts
from raybo.study.study import Study

JOB = """
import raybo


@raybo.objective(space={"x": raybo.Float(0, 1)}, metric="accuracy", steps=9)
def job(config):
    kept = raybo.checkpoint()
    for step in range(1 if kept is None else int((kept / "step").read_text()) + 1, 10):
        with raybo.saving() as directory:
            (directory / "step").write_text(str(step))
        yield {"accuracy": config["x"] * (1 - 0.7**step), "loss": 1.0 / step}
"""
PROMOTE = {"scheduler": "asha", "scheduler_options": {"eta": 3, "variant": "promote"}}
MEDIAN = {"scheduler": "median", "scheduler_options": {"startup": 3}}


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    path = tmp_path_factory.mktemp("job") / "job.py"
    path.write_text(JOB)
    return load_objective(str(path))


def run(job, path, trials=12, between=lambda: None, **rule):
    return tune_here(
        job, trials=trials, method="sobol", seed=0, storage=path, options={}, between=between, **(rule or MEDIAN)
    )


@pytest.fixture(scope="module")
def study(job, tmp_path_factory):
    return run(job, tmp_path_factory.mktemp("study") / "s.db", 16)


@pytest.mark.parametrize("rule", [MEDIAN, PROMOTE], ids=lambda rule: rule["scheduler"])
def test_verdicts_replay_without_ray(job, tmp_path, rule):
    study = run(job, tmp_path / "s.db", **rule)
    assert study.count(State.FINISHED, State.PRUNED) == 12
    assert study.count(State.PRUNED) > 0
    assert not any(again.differs for again in replay(study))
    judged = list(replay_verdicts(study))
    assert [again for again in judged if again.verdict != again.recorded] == []
    for trial in study.trials:
        assert [step for step, _ in trial.reports] == list(range(1, trial.step + 1))
        if trial.state is State.FINISHED:
            assert trial.value == trial.reports[-1][1]
    if rule is PROMOTE:
        assert any(event.kind is Kind.RESUMED for event in study.events)


def test_interrupted_studies_repeat_their_verdicts(job, tmp_path):
    whole = run(job, tmp_path / "whole.db", **PROMOTE)
    for stop in (0, 2, 5, 9):
        left = iter(range(stop))

        def between(left=left):
            if next(left, None) is None:
                raise KeyboardInterrupt

        path = tmp_path / f"{stop}.db"
        with pytest.raises(KeyboardInterrupt):
            run(job, path, between=between, **PROMOTE)
        again = run(job, path, **PROMOTE)
        for mine, theirs in zip(again.trials, whole.trials, strict=True):
            assert (mine.config, mine.state, mine.reports) == (theirs.config, theirs.state, theirs.reports)


def without_their_verdicts(study):
    """For each verdict that ended or paused a trial: its event, and those up to the report that it is about."""
    for event in study.events:
        if event.kind in (Kind.PRUNED, Kind.PAUSED) and event.data["rule"] == study.description.scheduler:
            yield event, [before for before in study.events if before.number <= event.data["seen"]]


@pytest.mark.parametrize("rule", [MEDIAN, PROMOTE], ids=lambda rule: rule["scheduler"])
def test_unjudged_reports_are_judged_on_resume(job, tmp_path, rule):
    """The study's process may be killed between the two; the verdict is as it would have been."""
    study = run(job, tmp_path / "s.db", **rule)
    found = list(without_their_verdicts(study))
    assert found
    for index, (verdict, events) in enumerate(found):
        path = tmp_path / f"{index}.db"
        with contextlib.closing(Journal(path)) as opened:
            opened.begin(study.description)
            opened.append(events)
        assert [again for again in replay_verdicts(raybo.load(path)) if again.verdict != again.recorded] == []
        with contextlib.closing(EventLog(plan_of(study.description, path), job, Timings(1, False))) as log:
            (directory := trial_directory(path, verdict.trial) / "checkpoints" / "9-9").mkdir(parents=True)
            judge = Judge(log, lambda *_: pytest.fail("no process of it runs"))
            judge.recover()
            judge.close()
        went_on = raybo.load(path)
        made = went_on.events[-1]
        assert (made.kind, made.trial, made.data["seen"]) == (verdict.kind, verdict.trial, verdict.data["seen"])
        assert (made.data["reason"], made.data["numbers"]) == (verdict.data["reason"], verdict.data["numbers"])
        assert directory.exists() == (verdict.kind is Kind.PAUSED)  # of what has ended only the last is kept
        judged = list(replay_verdicts(went_on))
        assert {"prune", "pause"} & {again.recorded for again in judged if again.trial == verdict.trial}
        assert [again for again in judged if again.verdict != again.recorded] == []
        with contextlib.closing(EventLog(plan_of(study.description, path), job, Timings(1, False))) as log:
            judge = Judge(log, lambda *_: pytest.fail("no process of it runs"))
            judge.recover()  # again, and no verdict is missing
            judge.close()
        assert len(raybo.load(path).events) == len(went_on.events)


def plan_of(description, path):
    return Plan(
        description=description, path=path, trials=12, workers=1, elastic=False, grows=False, takes_all_room=False,
        options=RunOptions(), driver=os.getpid(),
    )  # fmt: skip


def begun_up_to_the_promotion(path, study, *, has_it):
    """A journal of a study's events up to its first promotion, which is returned."""
    resumed = next(event for event in study.events if event.kind is Kind.RESUMED)
    with contextlib.closing(Journal(path)) as opened:
        opened.begin(study.description)
        opened.append([event for event in study.events if event.number < resumed.number + has_it])
    return resumed


def test_what_was_promoted_is_not_halted_again(job, tmp_path):
    study = run(job, tmp_path / "s.db", **PROMOTE)
    path = tmp_path / "t.db"
    resumed = begun_up_to_the_promotion(path, study, has_it=True)
    with contextlib.closing(EventLog(plan_of(study.description, path), job, Timings(1, False))) as log:
        judge = Judge(log, lambda *_: pytest.fail("no process of it runs"))
        judge.recover()
        judge.close()
    assert raybo.load(path).trials[resumed.trial].state is State.PENDING


def test_promotion_waits_for_the_old_process(job, tmp_path):
    study = run(job, tmp_path / "s.db", **PROMOTE)
    path = tmp_path / "t.db"
    resumed = begun_up_to_the_promotion(path, study, has_it=False)
    with contextlib.closing(EventLog(plan_of(study.description, path), job, Timings(1, False))) as log:
        judge = Judge(log, lambda *_: pytest.fail("no process of it runs"))
        assert judge.promoted({}) == resumed.trial
        assert judge.promoted({resumed.trial: DispatchedTrial(Life(resumed.trial))}) is None
        judge.close()


@pytest.mark.slow
def test_scheduled_comparisons_share_a_step_budget(job, tmp_path):
    Path(tmp_path, "job.py").write_text(JOB)
    experiment = Experiment(
        name="compare",
        title="",
        problems=[Problem("job", "job.py", 8)],
        entries=[
            Entry("plain", "random"),
            Entry("median", "random", scheduler="median", scheduler_options={"startup": 2}),
        ],
        repeats=2,
    )
    rows, _ = compare(experiment, tmp_path / "out", root=tmp_path, in_process=True)
    assert rows
    pruning = raybo.load(tmp_path / "out" / "runs" / "job" / "median-0.db")
    assert len(pruning.trials) > 8
    assert 7 * 9 < steps_spent(pruning) <= 8 * 9
    assert trials_wanted(pruning, 8) is None
    assert trials_wanted(pruning, 9) is not None
    curve = values(pruning)
    assert len(curve) == 8
    assert max(curve) == pruning.best.value


def test_saved_share_counts_ended_trials(study):
    ended = [trial for trial in study.trials if trial.state in (State.FINISHED, State.PRUNED)]
    spent = sum(trial.step for trial in ended)
    assert saved_share(study.trials, 9) == pytest.approx(1 - spent / (9 * len(ended)))
    assert saved_share([t for t in study.trials if t.state is State.FINISHED], 9) == 0.0
    assert saved_share(study.trials, None) == 0.0


def text_of(renderable):
    console = Console(width=150)
    with console.capture() as captured:
        console.print(renderable)
    return captured.get()


def test_show_includes_steps_and_reasons(study):
    text = text_of(study_view(study, 20))
    pruned = [trial for trial in study.trials if trial.state is State.PRUNED]
    assert f"scheduler median, seed 0; {study.count(State.FINISHED)} finished" in text
    assert f", {len(pruned)} pruned of 16 planned" in text
    assert text.count("9/9") == study.count(State.FINISHED)
    one = text_of(trial_view(study, pruned[0].number))
    assert f"pruned after step {pruned[0].step} by median: best by step {pruned[0].step}: " in one
    assert spark_line([value for _, value in pruned[0].reports]) in one
    assert "learning curve" in one


def test_a_single_report_is_told_once():
    searcher = raybo.Searcher({"x": raybo.Float(0, 1)}, "random", seed=0, steps=3)
    events = [searcher.apply(searcher.propose(searcher.history))]
    events.append(searcher.apply(Reported(0, step=1, value=0.5)))
    study = Study(Description("job", Goals(("value",), ("max",)), searcher.space, "random", 0), events)
    assert "\n  0.5 at step 1\n" in text_of(trial_view(study, 0))


def test_sparklines_follow_values():
    assert spark_line([0.0, 0.5, 1.0]) == f"{BLOCKS[0]}{BLOCKS[4]}{BLOCKS[7]}"
    assert spark_line([2.0, 2.0]) == BLOCKS[0] * 2
    assert spark_line([]) == ""
    long = spark_line(list(range(1_000)), 10)
    assert (len(long), long[0] <= long[-1], long[-1]) == (10, True, BLOCKS[7])
    assert spark_line([-1e308, 1e308]) == BLOCKS[0] + BLOCKS[7]


def test_the_report_draws_every_curve_and_the_rungs(study, job, tmp_path):
    pytest.importorskip("plotly")
    from raybo.reporting.curve_figures import curves, rungs

    panel = curves(study)
    drawn = {trace.name: trace for trace in panel.figure.data}
    assert {"pruned", "finished", "best"} <= set(drawn)
    assert sum(x is None for x in drawn["pruned"].x) == study.count(State.PRUNED)
    assert list(drawn["best"].y[:-1]) == [value for _, value in study.best.reports]
    assert f"The {study.count(State.PRUNED)} pale ones were pruned by median, which saved" in panel.caption
    promoted = run(job, tmp_path / "s.db", **PROMOTE)
    assert rungs(promoted) == [1, 3]
    assert len(curves(promoted).figure.layout.shapes) == 2
    assert "pruned" in raybo.plots(study).curves().data[0].name


def test_every_report_is_a_row(study, tmp_path):
    exporter("reports", str(tmp_path / "r.csv"))(study)
    with open(tmp_path / "r.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["trial", "step", "value", "seconds", "attempt", "loss"]
    told = [(int(row["trial"]), int(row["step"]), float(row["value"])) for row in rows]
    assert told == list(study.history.reports_in_order)
    exporter("json", str(tmp_path / "s.json"))(study)
    content = json.loads((tmp_path / "s.json").read_text())
    assert content["study"]["scheduler"] == "median"
    assert content["trials"][0]["reports"] == [list(each) for each in study.trials[0].reports]


def test_optuna_reads_pruned_trials_with_their_intermediate_values(study, tmp_path):
    optuna = pytest.importorskip("optuna")
    export = exporter("optuna", str(tmp_path / "s.log"))
    export(study)
    storage = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(tmp_path / "s.log")))
    (name,) = optuna.get_all_study_names(storage)
    read = optuna.load_study(study_name=name, storage=storage).trials
    for trial, theirs in zip(study.trials, read, strict=True):
        assert theirs.intermediate_values == dict(trial.reports)
        assert theirs.state.name == {State.FINISHED: "COMPLETE", State.PRUNED: "PRUNED"}[trial.state]
        assert theirs.value == (trial.reports[-1][1])
    size = (tmp_path / "s.log").stat().st_size
    export(study)
    assert (tmp_path / "s.log").stat().st_size == size


def test_optuna_reads_durations_of_paused_trials(job, tmp_path):
    optuna = pytest.importorskip("optuna")
    study = run(job, tmp_path / "s.db", **PROMOTE)
    exporter("optuna", str(tmp_path / "s.log"))(study)
    storage = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(tmp_path / "s.log")))
    read = optuna.load_study(study_name="s", storage=storage).trials
    resumed = [trial for trial in study.trials if trial.attempt > 1]
    assert resumed
    for trial in resumed:
        told = read[trial.number].user_attrs
        assert (told["attempt"], told.get("seconds")) == (trial.attempt, trial.seconds)


def test_tensorboard_has_a_curve_for_each_trial(study, tmp_path):
    pytest.importorskip("tensorboardX")
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    exporter("tensorboard", str(tmp_path))(study)
    trial = next(trial for trial in study.trials if trial.state is State.PRUNED)
    read = accumulator.EventAccumulator(str(tmp_path / f"trial-{trial.number}"))
    read.Reload()
    found = [(event.step, event.value) for event in read.Scalars("accuracy")]
    assert found == [(step, pytest.approx(value)) for step, value in trial.reports]
    assert len(read.Scalars("loss")) == trial.step


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of mlflow's own, about the database library that it uses
def test_mlflow_has_a_curve_for_each_trial(study, tmp_path):
    mlflow = pytest.importorskip("mlflow")
    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    exporter("mlflow", uri)(study)
    client = mlflow.MlflowClient(tracking_uri=uri)
    (experiment,) = [e for e in client.search_experiments() if e.name == "job"]
    runs = client.search_runs([experiment.experiment_id], "attributes.status = 'KILLED'")
    assert len(runs) == study.count(State.PRUNED)
    for each in runs:
        trial = study.trials[int(each.data.tags["raybo.trial"])]
        assert each.data.tags["raybo.state"] == "pruned"
    for each in client.search_runs([experiment.experiment_id], "tags.`raybo.trial` != ''"):
        trial = study.trials[int(each.data.tags["raybo.trial"])]
        for name in ("accuracy", "loss"):  # each step once, the last of a whole run too
            history = client.get_metric_history(each.info.run_id, name)
            assert [metric.step for metric in history] == [step for step, _ in trial.reports]
        history = client.get_metric_history(each.info.run_id, "accuracy")
        assert [(metric.step, metric.value) for metric in history] == trial.reports


# ---- where nothing has finished


@pytest.fixture(scope="module")
def all_pruned(tmp_path_factory):
    """A study whose trials were all pruned, of which the second came furthest with the third, and was better there."""
    return unfinished(tmp_path_factory.mktemp("pruned"), [[0.9], [0.3, 0.5], [0.2, 0.4]])


def unfinished(folder, curves, mode="max"):
    path = folder / "job.py"
    path.write_text(JOB.replace('metric="accuracy"', f'metric="accuracy", mode="{mode}"'))
    searcher = searcher_for(load_objective(str(path)), "sobol", 0, {}, None)
    events = [searcher.apply(Planned(trials=len(curves)))]
    for curve in curves:
        number = len(searcher.trials)
        events.append(searcher.apply(searcher.propose(searcher.history)))
        for step, value in enumerate(curve, 1):
            events.append(searcher.apply(Reported(number, step=step, value=value)))
        pruned = Pruned(number, reason="hopeless", rule="curve", step=len(curve))
        events.append(searcher.apply(pruned))
    with contextlib.closing(Journal(folder / "s.db")) as opened:
        opened.begin(searcher.description)
        opened.append(events)
    return raybo.load(folder / "s.db")


def test_best_falls_back_to_the_furthest_pruned(all_pruned, tmp_path):
    assert (all_pruned.best.number, all_pruned.best.value, all_pruned.best.state) == (1, None, State.PRUNED)
    assert all_pruned.best_expected.number == 1
    assert all_pruned.incumbent is None
    assert unfinished(tmp_path, [[0.9], [0.3, 0.5], [0.2, 0.4]], "min").best.number == 2


@pytest.mark.parametrize("mode", ["max", "min"])
def test_furthest_ties_break_by_last_report(mode):
    searcher = raybo.Searcher({"x": raybo.Float(0, 1)}, "random", mode, seed=0, steps=9)
    turn = 1.0 if mode == "max" else -1.0
    for curve in ((0.9,), (0.8, 0.2), (0.1, 0.3), (0.2, 0.25)):
        trial = searcher.ask()
        for step, value in enumerate(curve, start=1):
            searcher.report(trial, turn * value, step)
        searcher.prune(trial, "no")
    assert searcher.best.number == searcher.ledger.furthest.number == 2


def test_pruned_trials_never_beat_finished_ones(tmp_path):
    searcher = raybo.Searcher({"x": raybo.Float(0, 1)}, method="random", seed=0, steps=5)
    first = searcher.ask()
    searcher.report(first, 0.9, 4)
    searcher.prune(first, "enough")
    assert searcher.best.number == 0
    searcher.tell(searcher.ask(), 0.1)
    assert searcher.best.number == 1
    assert searcher.ledger.furthest is None


def test_pruned_without_a_report_there_is_no_best():
    searcher = raybo.Searcher({"x": raybo.Float(0, 1)}, method="random", seed=0, steps=5)
    searcher.prune(searcher.ask(), "enough")
    with pytest.raises(raybo.TrialError, match="no trial has finished yet"):
        _ = searcher.best


def test_a_trial_that_broke_a_constraint_is_not_the_furthest():
    limits = {"memory": "<= 1 at every step"}
    searcher = raybo.Searcher({"x": raybo.Float(0, 1)}, "random", seed=0, steps=4, metric="v", constraints=limits)
    for memory in (9.0, 0.5, 8.0):
        trial = searcher.ask()
        for step in (1, 2):
            searcher.report(trial, {"v": memory, "memory": memory}, step)
        searcher.prune(trial)
    assert searcher.best.number == 1
    only = raybo.Searcher({"x": raybo.Float(0, 1)}, "random", seed=0, steps=4, metric="v", constraints=limits)
    trial = only.ask()
    only.report(trial, {"v": 1.0, "memory": 2.0})
    only.prune(trial)
    with pytest.raises(raybo.TrialError, match="no trial has finished yet"):
        _ = only.best


def test_unfinished_studies_name_the_furthest_trial(all_pruned, tmp_path):
    told = "no trial has finished; trial 1 came furthest, accuracy 0.5 at step 2, and was pruned"
    assert told in text_of(study_view(all_pruned, 20))
    assert "Trial 1 came furthest".lower() in best_configuration(all_pruned).lower()
    exporter("json", str(tmp_path / "s.json"))(all_pruned)
    assert json.loads((tmp_path / "s.json").read_text())["best"] == 1
    console = Console(record=True, width=140)
    conclude(console, all_pruned, Path("s.db"))
    ended = console.export_text()
    assert told in ended
    assert "3 trials, saved in s.db" in ended
    for form in ("csv", "reports", "optuna"):
        exporter(form, str(tmp_path / form))(all_pruned)
