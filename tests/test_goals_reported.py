"""Several metrics and constraints of jobs that report as they go: what counts, and what ends a trial early."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import os
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import raybo
from raybo import schedulers
from raybo.common.errors import JournalError, MethodError, ObjectiveError, TrialError
from raybo.engine.lifecycle import Life, Occurrence, Phase
from raybo.engine.plan import Plan
from raybo.engine.run_options import RunOptions
from raybo.engine.study.dispatch import DispatchedTrial
from raybo.engine.study.event_log import EventLog
from raybo.engine.study.timings import Timings
from raybo.engine.study.verdicts import Judge, missing_verdicts
from raybo.engine.trial.checkpoints import Checkpoints
from raybo.engine.trial.report_sender import Answer, AttemptInfo, ReportSender
from raybo.engine.trial.task import run_trial
from raybo.experiments.in_process import tune_here
from raybo.journal import Journal
from raybo.methods.parts.multi_objective import FitOptions, fitted_goals
from raybo.methods.parts.running_trials import predicted
from raybo.record.events import KINDS, Asked, Failed, Kind, Paused, Pruned, Reported, Resumed, Retried, Told
from raybo.record.goals import REACH, Constraint, Goals
from raybo.record.history import History
from raybo.record.states import State
from raybo.record.stopping import Limits, Stopping
from raybo.reporting.figures import report_figures
from raybo.reporting.front_view import constraints_line
from raybo.reporting.studies import studies_in
from raybo.reporting.tables import best_view
from raybo.searcher import Searcher
from raybo.space import Space
from raybo.study.replay import replay, replay_verdicts
from raybo.surrogate import standard_model

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


def test_a_trial_has_its_last_reports_numbers(tmp_path):
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


def test_returned_numbers_complete_the_last_report(tmp_path):
    def job(config):
        for step in range(1, STEPS + 1):
            raybo.report({"accuracy": at_step(config, step)["accuracy"]})
        return {"seconds": 7.0}

    study = run(job, tmp_path / "a.db", trials=3, metrics=METRICS)
    for trial in study.trials:
        assert trial.values == {"accuracy": at_step(trial.config, STEPS)["accuracy"], "seconds": 7.0}


def test_a_number_missing_from_reports_fails_by_name(tmp_path):
    def job(config):
        yield {"accuracy": 1.0}

    (trial,) = run(job, tmp_path / "a.db", trials=1, metrics=METRICS).trials
    assert trial.state is State.FAILED
    assert "no 'seconds'" in trial.reason


@pytest.mark.parametrize("declared", [{"metrics": METRICS}, {"metric": "accuracy", "mode": "max"}])
def test_the_first_violating_report_ends_a_trial(tmp_path, declared):
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
    (line,) = constraints_line(study)
    assert str(line) == f"constraints: megabytes <= 80 at every step: broken by {len(large)} of 12"
    assert not [again for again in replay(study) if again.differs]


def saved_steps(config):
    """Breaks SMALL at its first step alone where x is large, and is the better for it."""
    kept = raybo.checkpoint()
    for step in range(1 if kept is None else int((kept / "step").read_text()) + 1, STEPS + 1):
        with raybo.saving() as directory:
            (directory / "step").write_text(str(step))
        yield {"accuracy": config["x"] * step, "megabytes": 120.0 * config["x"] if step == 1 else 1.0}


def promoting(path, **more):
    job = raybo.objective(space=SPACE, steps=STEPS, metric="accuracy", constraints=SMALL)(saved_steps)
    return job, tune_here(
        job,
        trials=8,
        method="random",
        seed=1,
        storage=path,
        options={},
        between=lambda: None,
        scheduler="asha",
        scheduler_options={"variant": "promote", "eta": 2},
        **more,
    )


def is_large(trial):
    return trial.config["x"] > 80 / 120


@pytest.fixture(scope="module")
def promoted(tmp_path_factory):
    return promoting(tmp_path_factory.mktemp("promoted") / "a.db")


def test_what_breaks_a_constraint_is_not_paused(promoted):
    _, study = promoted
    for trial in filter(is_large, study.trials):
        kinds = [event.kind for event in study.events if event.trial == trial.number]
        assert kinds == [Kind.ASKED, Kind.REPORTED, Kind.PRUNED]
        assert trial.details["rule"] == "constraint"
        assert trial.reason.startswith("at step 1, megabytes ")
    assert any(map(is_large, study.trials))
    assert any(event.kind is Kind.PAUSED for event in study.events)
    assert study.count(State.FINISHED)
    assert study.best.feasible
    assert not [again for again in replay(study) if again.differs]
    judged = list(replay_verdicts(study))
    assert {"pause", "go"} <= {one.recorded for one in judged}
    assert not [one for one in judged if one.verdict != one.recorded]


def journal_of(path, study, events):
    with contextlib.closing(Journal(path)) as opened:
        opened.begin(study.description)
        opened.append([replace(event, number=number) for number, event in enumerate(events, start=1)])
    return path


def opened(study, job, path):
    plan = Plan(
        description=study.description, path=path, trials=8, workers=1, elastic=False, grows=False, takes_all_room=False,
        options=RunOptions(), driver=os.getpid(),
    )  # fmt: skip
    return contextlib.closing(EventLog(plan, job, Timings(1, False)))


@pytest.fixture
def interrupted(promoted):
    """By what had become of it: the journal's events up to there of a trial that breaks a constraint."""
    _, study = promoted
    verdict = next(event for event in study.events if event.kind is Kind.PRUNED and event.data["rule"] == "constraint")
    until = [event for event in study.events if event.number < verdict.number]
    told = {"step": 1, "seen": len(until), "attempt": 1, "seconds": 1.0}
    paused = Paused.of(verdict.trial, {**told, "rule": "asha", "reason": "1st of 1", "numbers": {}})
    resumed = Resumed(verdict.trial, step=1, seen=len(until) + 1, attempt=2)
    on = replace(until[-1], step=2, value=1.0, seconds=1.0, attempt=2, metrics={"megabytes": 1.0})
    again = Retried(verdict.trial, reason="its worker died", attempt=2, losses=1)
    repeated = replace(on, step=1, repeated=True, metrics={"megabytes": 100.0})
    kept = replace(until[-1], metrics={"megabytes": 1.0})
    return (
        verdict,
        {
            "reported": until,
            "paused": [*until, paused],  # by raybo up to now
            "resumed": [*until, paused, resumed, on],
            "repeated": [*until[:-1], kept, again, repeated],
            "twice": [*until, replace(until[-1], step=2)],
        },
    )


@pytest.mark.parametrize("was", ["reported", "paused", "resumed", "repeated", "twice"])
def test_a_violation_before_a_kill_prunes_on_resume(promoted, interrupted, tmp_path, was):
    job, study = promoted
    verdict, events = interrupted[0], interrupted[1][was]
    with opened(study, job, journal_of(tmp_path / "a.db", study, events)) as log:
        judge = Judge(log, lambda *_: pytest.fail("no process of it runs"))
        judge.recover()
        judge.close()
        trial = log.searcher.trials[verdict.trial]
    went_on = raybo.load(tmp_path / "a.db")
    assert trial == went_on.trials[verdict.trial]
    assert (trial.state, trial.details["rule"], trial.details["step"]) == (State.PRUNED, "constraint", 1)
    assert trial.reason.startswith("at step 1, megabytes 1")
    assert trial.seconds == (events[-1].data["seconds"] if was in ("reported", "twice") else 1.0)
    assert len(went_on.events) == len(events) + 1
    if was in ("reported", "paused"):  # what went before is as a scheduler would have it
        assert not [one for one in replay_verdicts(went_on) if one.verdict != one.recorded]
    with opened(study, job, tmp_path / "a.db") as log:
        judge = Judge(log, lambda *_: pytest.fail("no process of it runs"))
        judge.recover()  # again, and no verdict is missing
        judge.close()
    assert len(raybo.load(tmp_path / "a.db").events) == len(went_on.events)
    _, here = promoting(journal_of(tmp_path / "here.db", study, events))
    assert (here.trials[verdict.trial].state, here.trials[verdict.trial].reason) == (State.PRUNED, trial.reason)


def test_retried_trials_forget_earlier_violations(interrupted, promoted):
    _, study = promoted
    verdict, events = interrupted[0], interrupted[1]["reported"]
    failed = Failed(verdict.trial, reason="it raised", attempt=1)
    again = Retried(verdict.trial, reason="it had failed, and is retried", attempt=2)
    for more, times in (([], 1), ([failed, again], 0)):
        searcher = Searcher.of(study.description)
        added = [searcher.apply(replace(event, number=n)) for n, event in enumerate([*events, *more], start=1)]
        owed = [event.kind for event in missing_verdicts(searcher, added) if event.trial == verdict.trial]
        assert owed == [Kind.PRUNED] * times


def test_a_study_ends_it_with_its_report_committed(promoted, interrupted, tmp_path):
    """In one transaction with the report, and whether or not the step is known from an earlier attempt."""
    job, study = promoted
    number = interrupted[0].trial
    for was, more in (("reported", {}), ("repeated", {"repeated": True})):
        events = interrupted[1][was]
        met = []
        with opened(study, job, journal_of(tmp_path / f"{was}.db", study, events[:-1])) as log:
            dispatched = DispatchedTrial(Life(number, Phase.RUNNING, attempt=2))

            def meet(dispatched, occurrence, data, log=log, met=met):
                met.append(occurrence)
                dispatched.life, _ = dispatched.life.after(occurrence)
                log.add(Pruned.of(dispatched.life.trial, data))

            judge = Judge(log, meet)
            report = {"step": 1, "value": 1.0, "seconds": 1.0, "metrics": {"megabytes": 100.0}}
            answer = asyncio.run(judge.receive(dispatched, [report, {**report, "step": 2}]))
            judge.close()
        why = "at step 1, megabytes 100 breaks megabytes <= 80 at every step by 20"
        assert (met, answer) == ([Occurrence.PRUNED], Answer("prune", why))
        reported, pruned = raybo.load(tmp_path / f"{was}.db").events[-2:]
        assert reported.data == {**report, "attempt": 2, **more}
        assert pruned.data == {
            "reason": why, "rule": "constraint", "numbers": {}, "seen": reported.number, "step": 1, "seconds": 1.0
        }  # fmt: skip


def test_late_reports_of_dead_attempts_are_dropped(promoted, interrupted, tmp_path, monkeypatch):
    """Its worker dies while a verdict takes its time, and the trial runs again before that is known."""
    job, study = promoted
    events, number = interrupted[1]["reported"][:-1], interrupted[0].trial
    with opened(study, job, journal_of(tmp_path / "a.db", study, events)) as log:
        judge = Judge(log, lambda *_: pytest.fail("no verdict"))
        dispatched = DispatchedTrial(Life(number, Phase.RUNNING))

        def begin_again(*_):
            dispatched.life = replace(dispatched.life, attempt=2)
            return schedulers.GO, "asha"

        monkeypatch.setattr(judge, "_verdict_on", begin_again)
        report = {"value": 1.0, "seconds": 1.0, "metrics": {"megabytes": 1.0}}
        asyncio.run(judge.receive(dispatched, [{**report, "step": step} for step in (1, 2)]))
        judge.close()
    reports = [event.data for event in raybo.load(tmp_path / "a.db").events[len(events) :]]
    assert [(data["attempt"], data["step"]) for data in reports] == [(1, 1)]


def test_finished_trials_with_violating_reports_are_infeasible():
    searcher = raybo.Searcher(
        SPACE,
        "random",
        seed=1,
        steps=STEPS,
        constraints={**SMALL, "disk": "<= 3"},
        scheduler="asha",
        scheduler_options={"variant": "promote"},
    )
    broke, kept = searcher.ask(2)
    verdict = searcher.report(broke, {"value": 5.0, "megabytes": 95.0, "disk": 1.0})
    assert (verdict.action, verdict.why) == (
        "prune",
        "at step 1, megabytes 95 breaks megabytes <= 80 at every step by 15",
    )
    with pytest.raises(TrialError, match="no scheduler has paused it"):
        searcher.pause(broke)
    searcher.report(broke, {"value": 5.0, "megabytes": 90.0})
    searcher.report(kept, {"value": 1.0, "megabytes": 70.0, "disk": 9.0})
    stopping = Stopping(Limits(target=1.0), searcher.goals)
    told = {"value": 5.0, "megabytes": 60.0, "disk": 1.0}
    reports = [Reported(0, step=1, value=5.0, metrics={"megabytes": 95.0})]
    for event in (*reports, Told(0, value=5.0, metrics=told)):
        stopping.hear(event)
    assert stopping.reason == ""
    ended = searcher.tell(broke, told)
    assert (ended.feasible, ended.values, ended.violations) == (False, told, {"megabytes": 15.0})
    with pytest.raises(
        TrialError, match="trial 0 comes closest: megabytes 95 breaks megabytes <= 80 at every step by 15"
    ):
        _ = searcher.best
    assert searcher.tell(kept, {"value": 1.0, "megabytes": 60.0, "disk": 2.0}).feasible
    assert searcher.best.number == kept.number
    np.testing.assert_array_equal(searcher.history.margins, [[-15.0, 2.0], [20.0, 1.0]])
    np.testing.assert_array_equal(searcher.history.feasible, [False, True])


def test_promoted_trials_without_steps_keep_their_numbers(tmp_path):
    def job(config):
        if raybo.checkpoint() is not None:
            return
        with raybo.saving():
            pass
        yield at_step(config, 1)

    made = raybo.objective(space=SPACE, steps=STEPS, metrics=METRICS, constraints={"megabytes": "<= 80"})(job)
    rule = {"scheduler": "asha", "scheduler_options": {"variant": "promote", "eta": 2}}
    more = {"method": "random", "seed": 1, "options": {}, "between": lambda: None}
    study = tune_here(made, trials=6, storage=tmp_path / "a.db", **more, **rule)
    finished = [trial for trial in study.trials if trial.state is State.FINISHED]
    assert {trial.attempt for trial in finished} == {1, 2}  # some are not paused
    assert study.count(State.PRUNED) + len(finished) == 6
    for trial in finished:
        assert trial.values == at_step(trial.config, 1)
        assert trial.feasible is (trial.config["x"] <= 80 / 120)


@pytest.mark.parametrize(
    "between",
    [
        [(Kind.PAUSED, {"reason": "", "rule": "asha", "step": 1}), (Kind.RESUMED, {"attempt": 2})],
        [(Kind.FAILED, {"reason": "it raised", "metrics": {"other": 1.0}}), (Kind.RETRIED, {"attempt": 2})],
        [(Kind.RETRIED, {"attempt": 2})],
    ],
    ids=lambda between: between[-1][0].value,
)
def test_attempts_keep_the_last_reports_metrics(promoted, tmp_path, between):
    job, study = promoted
    (asked,) = (event for event in study.events if event.kind is Kind.ASKED and event.trial == 0)
    metrics = {"megabytes": 60.0}
    events = [
        study.events[0],
        asked,
        Reported(0, step=1, value=1.0, seconds=1.0, attempt=1, metrics=metrics),
        *(KINDS[kind].of(0, {"reason": "", **data}) for kind, data in between),
    ]
    with opened(study, job, journal_of(tmp_path / "a.db", study, events)) as log:
        judge = Judge(log, lambda *_: pytest.fail("no process of it runs"))
        assert judge.attempt_info(0).metrics == metrics
        assert log.searcher.trials[0].details == {"metrics": metrics}
        judge.close()


NUMBERS = [
    *(10**20, -(2**70), 2**63, True, np.True_, 3, 0.5, 10**400, "5", None, np.timedelta64(5, "s"), np.ma.masked),
    *(np.float32(0.5), np.int8(-3), np.uint64(2**64 - 1), np.longdouble(2), np.array(3.0)),
    *(np.array(10**20, dtype=object), Fraction(1, 3), Decimal("0.1"), Decimal(10**20), float("nan"), np.array([1.0])),
]  # fmt: skip


@pytest.mark.parametrize("number", NUMBERS, ids=range(len(NUMBERS)))
def test_reports_and_results_convert_numbers_alike(number):
    """Of a constraint, of a metric that is judged, and by ask and tell."""
    goals = Goals.of(None, {"flops": "<= 1e30"})

    def ended(job, judged=None):
        def listen(read, meet, broken):
            checkpoints, info = Checkpoints(None, 1, None), AttemptInfo(judged=judged)
            return ReportSender(info, lambda batch: sent.extend(batch) or Answer(), checkpoints, read, meet, broken)

        sent = []
        occurrence, data = run_trial(job, {}, {}, goals, 1, make_sender=listen)
        flops = data.get("metrics", {}).get("flops")
        return (occurrence, flops if occurrence is Occurrence.RETURNED else None), sent

    def reporting(config):
        yield {"value": 1.0, "flops": number}

    returned, _ = ended(lambda config: {"value": 1.0, "flops": number})
    reported, sent = ended(reporting)
    assert reported == returned
    assert ended(reporting, "flops")[0] == returned
    is_one = returned[0] is Occurrence.RETURNED
    if is_one:
        assert sent[0]["metrics"]["flops"] == returned[1]
    json.dumps(sent)

    searcher = raybo.Searcher(SPACE, "random", seed=0, constraints={"flops": "<= -1e30 at every step"})
    verdict = searcher.report(searcher.ask(), {"value": 1.0, "flops": number, "other": number})
    assert verdict.prune is is_one
    told = searcher.trials[0].details.get("metrics", {})
    if is_one:
        assert told["flops"] == returned[1]
    _, data = run_trial(lambda config: {"value": 1.0, "flops": 1.0, "other": number}, {}, {}, goals, 1)
    of_tune = [data["metrics"]["other"]] if "other" in data["metrics"] else []
    assert json.dumps([told["other"]] if "other" in told else []) == json.dumps(of_tune)


def test_best_for_needs_a_context(tmp_path):
    study = run(steps, tmp_path / "a.db", metrics=METRICS, constraints=SMALL)
    assert study.front
    with pytest.raises(TrialError, match="context"):
        best_view(study, {"load": 1})


def test_the_first_metric_may_be_bounded_every_step(tmp_path):
    def job(config):
        for step in range(1, STEPS + 1):
            yield config["x"] - 0.2 * step

    study = run(job, tmp_path / "a.db", metric="v", mode="max", constraints={"v": ">= 0 at every step"})
    for trial in study.trials:
        fell = next((step for step in range(1, STEPS + 1) if trial.config["x"] - 0.2 * step < 0.0), None)
        assert (trial.state is State.PRUNED) is (fell is not None)
        assert trial.step == (fell or STEPS)


def test_final_bounds_do_not_prune(tmp_path):
    study = run(steps, tmp_path / "a.db", metric="accuracy", mode="max", constraints={"accuracy": ">= 0.5"})
    assert study.count(State.FINISHED) == 12


def test_constraint_models_learn_from_pruned_trials(tmp_path):
    study = run(steps, tmp_path / "a.db", metric="accuracy", mode="max", constraints=SMALL)
    history = study.history
    ended = study.count(State.PRUNED)
    assert 0 < ended < 12
    goals = fitted_goals(history, FitOptions(standard_model()), np.random.default_rng(0))
    assert goals.limits[0].gp.n == 12
    worth = goals.limits[0].value(np.array([[0.2, 0.5], [0.95, 0.5]]))
    assert worth[0] > np.log(0.9)
    assert worth[1] < np.log(0.1)


def ended(history, reports, values=None, x=0.5):
    """A trial that reports these numbers, and then finishes with its values or is pruned."""
    point = [x, 0.5]
    history.apply(Asked(len(history), x=point, values=point, tags={}))
    number = len(history) - 1
    for step, told in enumerate(reports, start=1):
        data = {"step": step, "value": told["accuracy"], "metrics": {**told, "accuracy": None}}
        history.apply(Reported.of(number, data))
    if values is None:
        history.apply(Pruned(number, step=len(reports), reason="", rule="asha", seen=0))
    else:
        history.apply(Told(number, value=values["accuracy"], metrics=values))
    return number


@pytest.fixture
def told_early():
    """Three that were at 1, 2 and 3 ended at 10, 20 and 30 in accuracy, at 4, 6 and 8 seconds and at 60 to 80 MB."""
    goals = Goals.of(METRICS, {"megabytes": "<= 70", "score": ">= 1"})
    history = History(Space(SPACE).cube, goals, steps=STEPS)
    for i in (1, 2, 3):
        early = {"accuracy": float(i), "seconds": 2.0 + i, "megabytes": 10.0 * i}
        last = {"accuracy": 10.0 * i, "seconds": 2.0 + 2.0 * i, "megabytes": 50.0 + 10.0 * i, "score": 2.0}
        ended(history, [early, {**early, "accuracy": 5.0}], last, 0.2 * i)
    return history


def test_each_number_of_pruned_trials_is_predicted(told_early):
    both = ended(told_early, [{"accuracy": 2.5, "seconds": 4.5, "megabytes": 25.0}], x=0.8)
    one = ended(told_early, [{"accuracy": 9.0, "seconds": "unknown", "score": 0.5}], x=0.9)
    assert [list(curve) for curve in told_early.records[both].curves] == [[(1, 2.5)], [(1, -4.5)], [(1, 45.0)], []]
    expected = {0: (25.0, 30.0), 1: (-7.0, None), 2: (-5.0, None), 3: (None, None)}  # seconds and bounds: maximised
    for j, (value, other) in expected.items():
        seen = predicted(told_early.of_number(j))
        assert (seen.records[both].y, seen.records[one].y) == (value, other)
        assert seen.records[one].state is (State.FINISHED if other is not None else State.PRUNED)
        if value is not None:
            spread = {0: 10.0, 1: 2.0, 2: 10.0}[j]  # each of the three by the other two, of which the middle one hits
            assert seen.records[both].error == pytest.approx(spread * math.sqrt(2.0 / 3.0))
    assert told_early.records[both].state is State.PRUNED  # the history itself is as it was


def test_late_numbers_count_by_their_last_report(told_early):
    late = ended(told_early, [{"accuracy": 0.0, "seconds": 4.5}, {"accuracy": 5.0}], x=0.8)
    assert predicted(told_early.of_number(1)).records[late].y == -7.0  # by the others' values at step 1


def rugged(config, step):
    """Numbers that no neighbour predicts, but whose first step predicts their end."""
    x, share = config["x"], 1.0 + 0.5 * (1.0 - step / STEPS)
    waves = {"accuracy": np.sin(90.0 * x), "seconds": np.sin(70.0 * x), "megabytes": np.sin(110.0 * x)}
    return {name: float(value * share) for name, value in waves.items()}


@pytest.mark.parametrize("declared", [{"metrics": METRICS}, {"metric": "accuracy", "mode": "max"}])
def test_models_include_predictions_of_pruned_trials(tmp_path, declared):
    def job(config):
        for step in range(1, STEPS + 1):
            yield rugged(config, step)

    study = run(job, tmp_path / "a.db", 60, scheduler="median", constraints={"megabytes": "<= 0.5"}, **declared)
    history = study.history
    pruned = history.records.numbers(State.PRUNED)
    assert len(pruned) > 15
    goals = fitted_goals(history, FitOptions(standard_model()), np.random.default_rng(0))
    ends = [rugged(study.trials[number].config, STEPS) for number in pruned]
    truths = [history.goals.known(each) for each in ends]
    for j, gp in enumerate([*(fit.gp for fit in goals.metrics), goals.limits[0].gp]):
        assert gp.n == 60
        expected = gp.posterior(history.points(State.PRUNED))[0]
        assert np.corrcoef(expected, np.array(truths)[:, j])[0, 1] > 0.8
    with_margins = goals.limits[0].gp.observations.added
    assert (with_margins[pruned] > 0.0).all()
    assert not np.delete(with_margins, pruned).any()


def test_auto_models_the_curves_of_every_number(tmp_path):
    """Few trials finish; the first step of all predicts their ends."""
    study = run(steps, tmp_path / "a.db", 16, "sobol", "asha", metrics=METRICS, constraints={"megabytes": "<= 90"})
    history = study.history
    assert study.count(State.FINISHED) < 6
    goals = fitted_goals(history, FitOptions(standard_model(), models_curves=True), np.random.default_rng(0))
    assert set(goals.tags) == {"theta_curves", "theta_1_curves", "theta_limit_0_curves"}
    pruned = history.records.numbers(State.PRUNED)
    ends = np.array([history.goals.known(at_step(study.trials[number].config, STEPS)) for number in pruned])
    for j, gp in enumerate([*(fit.gp for fit in goals.metrics), goals.limits[0].gp]):
        expected = gp.posterior(history.points(State.PRUNED))[0]
        assert np.corrcoef(expected, ends[:, j])[0, 1] > 0.9


def test_final_only_numbers_use_finished_trials(told_early):
    one = ended(told_early, [{"accuracy": 9.0}], x=0.9)
    goals = fitted_goals(told_early, FitOptions(standard_model(), models_curves=True), np.random.default_rng(0))
    with_curves, at_the_end = goals.metrics[0].gp.curves, goals.limits[1].gp
    assert (with_curves.observations.X[:, :2] == told_early.records[one].x).all(axis=1).any()
    assert at_the_end.n == 4  # three ends, and the pruned trial believed at the mean
    assert at_the_end.posterior(told_early.records[one].x[None])[1][0] < 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("method", ["auto", "ei", "gp-ucb"])
@pytest.mark.parametrize("scheduler", ["asha", "hyperband"])
def test_proposals_with_predictions_replay(tmp_path, method, scheduler):
    study = run(steps, tmp_path / "a.db", 20, method, scheduler, metrics=METRICS, constraints={"megabytes": "<= 90"})
    assert study.count(State.PRUNED)
    assert not [again for again in replay(study) if again.differs]
    assert not [one for one in replay_verdicts(study) if one.verdict != one.recorded]


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
def test_schedulers_may_judge_a_named_metric(tmp_path, scheduler):
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


def test_judged_metrics_must_exist_and_be_reported(tmp_path):
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
        assert (rules.get(trial.number) == "constraint") is is_large
        assert ("breaks megabytes <= 80 at every step" in trial.reason) is is_large
        assert ("seconds: best by step" in trial.reason) is (rules.get(trial.number) == "median")
    assert {"constraint", "median"} == set(rules.values())
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


def test_violations_prune_without_a_scheduler():
    searcher = raybo.Searcher(SPACE, "random", seed=1, steps=STEPS, constraints=SMALL)
    trial = searcher.ask()
    assert searcher.report(trial, {"value": 0.1, "megabytes": 80}).action == "go"
    verdict = searcher.report(trial, {"value": 0.2, "megabytes": 90})
    assert (verdict.prune, verdict.why) == (True, "at step 2, megabytes 90 breaks megabytes <= 80 at every step by 10")
    ended = searcher.prune(trial)
    assert (ended.state, ended.reason, ended.details["rule"]) == (State.PRUNED, verdict.why, "constraint")


def test_the_best_report_goes_with_one_number():
    for more in ({"metrics": METRICS}, {"constraints": SMALL}):
        with pytest.raises(ObjectiveError, match="value='best' needs a single metric and no constraints"):
            raybo.objective(space=SPACE, value="best", **more)
    job = raybo.objective(space=SPACE, value="best")(steps)
    with pytest.raises(ObjectiveError, match="value='best' needs a single metric"):
        job.wanting(METRICS, None)


def test_every_step_constraints_round_trip():
    constraint = Constraint.read("megabytes", "<=80   at every step")
    assert constraint.at_every_step
    assert constraint.rule == "<= 80.0 at every step"
    assert Constraint.read("megabytes", constraint.rule) == constraint
    assert str(constraint) == "megabytes <= 80 at every step"
    goals = Goals.of(None, {**SMALL, "disk": "<= 3"})
    np.testing.assert_array_equal(goals.known_margins({"megabytes": 100, "disk": 9}), [-20.0, np.nan])
    assert goals.known_margins({"disk": 9.0, "megabytes": float("nan")}) is None
    assert goals.broken_by({"megabytes": "many", "disk": 9.0}) == ""


@pytest.mark.parametrize(("method", "slope"), [("auto", 2.0), ("ei", 0.0)])
def test_pruned_configurations_are_not_proposed_again(method, slope):
    searcher = raybo.Searcher(SPACE, method, seed=0, trials=16, steps=STEPS, scheduler="asha", metrics=METRICS)

    def told(config, step):  # with a slope no point is the best in both: who knows the best point comes back to it
        return {**at_step(config, step), "seconds": 0.5 + config["y"] + slope * config["x"] ** 2}

    for _ in range(14):
        trial = searcher.ask()
        for step in range(1, STEPS + 1):
            if searcher.report(trial, told(trial.config, step), step).prune:
                searcher.prune(trial)
                break
        else:
            searcher.tell(trial, told(trial.config, STEPS))
    assert searcher.history.count(State.PRUNED) > 5
    records = searcher.history.records
    for number in records.numbers(State.PRUNED):
        later = np.array([record.x for record in records[number + 1 :]]).reshape(-1, 2)
        assert (np.abs(later - records[number].x).max(axis=1) > 0.01).all()


def test_running_trials_may_beat_the_front():
    searcher = raybo.Searcher({"x": raybo.Float(0.0, 1.0)}, "ei", seed=0, metrics=METRICS)
    for i in range(10):
        searcher.add({"x": 0.05 * i}, {"accuracy": 0.05 * i, "seconds": -0.05 * i})
    for _ in range(4):
        assert 0.0 <= searcher.ask().config["x"] <= 1.0
    goals = fitted_goals(searcher.history, FitOptions(standard_model()), np.random.default_rng(0))
    np.testing.assert_allclose(goals.near, searcher.history.X[[9]])
    assert (goals.front > goals.metrics[0].outputs.apply(np.array([0.45]))).all()


@pytest.mark.parametrize(
    "wanted", [{"metrics": METRICS}, {"metric": "accuracy", "constraints": {"megabytes": "<= -1"}}]
)
def test_curves_are_drawn_without_a_best(tmp_path, wanted):
    study = run(steps, tmp_path / "a.db", scheduler="asha", **wanted)
    (drawn,) = [panel for panel in report_figures(study) if panel.key == "curves"]
    assert [trace.name for trace in drawn.figure.data] == ["pruned", "finished", *(["front"] if study.front else [])]


def test_study_lists_count_the_front(tmp_path):
    study = run(steps, tmp_path / "a.db", metrics=METRICS)
    (row,) = studies_in(tmp_path)
    assert row.best == f"{len(study.front)} on the front"


@pytest.mark.parametrize("broken", [float("inf"), "inf"])
def test_an_infinite_report_breaks_a_bound(broken):
    searcher = raybo.Searcher({"x": raybo.Float(0, 1)}, "random", seed=0, constraints={"mem": "<= 0.5 at every step"})
    assert not searcher.report(searcher.ask(), {"value": 1.0, "mem": float("-inf")}).prune
    verdict = searcher.report(searcher.ask(), {"value": 1.0, "mem": broken})
    assert (verdict.prune, verdict.why) == (True, "at step 1, mem inf breaks mem <= 0.5 at every step")

    @raybo.objective(space={"x": raybo.Float(0, 1)}, steps=3, constraints={"mem": "<= 0.5 at every step"})
    def job(config):
        for mem in (broken, 0.1, 0.1):
            yield {"value": config["x"], "mem": mem}

    study = raybo.tune(job, in_process=True, method="random", trials=2)
    assert {trial.state for trial in study.trials} == {raybo.State.PRUNED}
    assert {trial.details["rule"] for trial in study.trials} == {"constraint"}


def test_an_infinite_metric_of_a_report_is_not_known():
    known = Goals(("a", "b"), ("max", "min"), (Constraint("mem", True, 1.0),)).known(
        {"a": 1.0, "b": "inf", "mem": "inf"}
    )
    assert known[0] == 1.0
    assert np.isnan(known[1])
    assert known[2] == -REACH
