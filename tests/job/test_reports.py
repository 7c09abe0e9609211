"""Reports of trials are folded into the history, judged by ask and tell, and checked."""

from __future__ import annotations

import contextlib
import json
import math
import threading
import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import raybo
from raybo.common.errors import MethodError, ObjectiveError, TrialError
from raybo.engine.study.verdicts import with_value
from raybo.experiments.in_process import tune_here
from raybo.job import reports
from raybo.journal import Journal, read
from raybo.record.append_only import Grown
from raybo.record.description import Description
from raybo.record.events import KINDS, Kind, Pruned, Reported, Resumed
from raybo.record.goals import Goals
from raybo.record.states import COUNTED, State
from raybo.schedulers import GO, Verdict, make
from raybo.schedulers.rule import Rule
from raybo.study.replay import replay, replay_verdicts
from raybo.study.study import Study

SPACE = raybo.Space({"x": raybo.Float(0, 1)})


# ---- what only grows


@given(st.lists(st.tuples(st.integers(0, 5), st.integers())))
def test_snapshot_of_an_append_only_sequence_never_changes(additions):
    """Against tuples: each addition goes to any of those that there are."""
    grown, tuples = [Grown()], [()]
    for which, item in additions:
        i = which % len(grown)
        grown.append(grown[i].adding(item))
        tuples.append((*tuples[i], item))
    for mine, plain in zip(grown, tuples, strict=True):
        assert mine == plain
        assert (len(mine), tuple(mine), mine[1:-1], repr(mine)) == (len(plain), plain, plain[1:-1], repr(plain))
        assert [mine[-1], mine[0]] == [plain[-1], plain[0]] if plain else not mine
    with pytest.raises(IndexError):
        _ = grown[0][0]


def test_a_longer_sequence_shares_the_list():
    first = Grown()
    second = first.adding(1)
    third = second.adding(2)
    assert first._items is second._items is third._items
    assert second.adding(3)._items is not third._items


# ---- events


def study_of(*events, steps=10, mode="max"):
    searcher = raybo.Searcher(SPACE, "random", mode, seed=0, steps=steps)
    for kind, trial, data in events:
        if kind is Kind.ASKED:
            searcher.ask()
        else:
            searcher.apply(KINDS[kind].of(trial, data))
    return searcher


def reported(trial, step, value, **more):
    return Kind.REPORTED, trial, {"step": step, "value": value, **more}


ASKED = (Kind.ASKED, None, {})


@pytest.mark.parametrize("mode", ["max", "min"])
def test_reports_are_kept_by_trial_in_order(mode):
    searcher = study_of(
        ASKED, ASKED, reported(1, 1, 0.5), reported(0, 2, 0.1), reported(1, 3, 0.25, metrics={"loss": 2.0}), mode=mode
    )
    sign = 1 if mode == "max" else -1
    history = searcher.history
    assert history.records[1].reports == ((1, sign * 0.5), (3, sign * 0.25))
    assert history.reports_in_order == ((1, 1, sign * 0.5), (0, 2, sign * 0.1), (1, 3, sign * 0.25))
    assert [record.step for record in history.records] == [2, 3]
    assert searcher.trials[1].reports == [(1, 0.5), (3, 0.25)]
    assert searcher.trials[1].details == {"metrics": {"loss": 2.0}}
    assert searcher.trials[1].state is State.PENDING
    assert (len(history.y), len(history.X_pending)) == (0, 2)


def test_history_copy_ignores_later_reports():
    searcher = study_of(ASKED, reported(0, 1, 0.5))
    copy = searcher.history.copy()
    searcher.apply(Reported(0, step=2, value=0.6))
    assert copy.records[0].reports == ((1, 0.5),)
    assert copy.reports_in_order == ((0, 1, 0.5),)
    assert copy.steps == 10
    assert searcher.history.records[0].reports == ((1, 0.5), (2, 0.6))


def test_repeated_step_counts_as_first_reported():
    searcher = study_of(
        ASKED,
        reported(0, 1, 0.5, checkpoint="1-1"),
        reported(0, 2, 0.6),
        (Kind.RETRIED, 0, {"reason": "its worker died", "attempt": 2, "losses": 1}),
        reported(0, 2, 0.7, repeated=True, checkpoint="2-1"),
        reported(0, 3, 0.8),
    )
    assert searcher.trials[0].reports == [(1, 0.5), (2, 0.6), (3, 0.8)]
    assert (searcher.trials[0].checkpoint, searcher.history.records[0].checkpoint) == ("2-1", 2)
    assert len(searcher.history.reports_in_order) == 3


RETRIED = (Kind.RETRIED, 0, {"reason": "its worker died", "attempt": 2})


def outcome_of(*events, which="last", **returned):
    searcher = study_of(ASKED, *events)
    return with_value(searcher.trials[0], {"seconds": 1.0, **returned}, searcher.ledger.goal, which)


def with_loss(step, value, loss, **more):
    return reported(0, step, value, metrics={"loss": loss}, **more)


def test_repeated_run_has_its_own_value_and_metrics():
    first = with_loss(1, 0.9, 3600.0), with_loss(2, 0.99, 3601.0)
    fails = Kind.FAILED, 0, {"reason": "it raised"}
    for between in ((RETRIED,), (fails, RETRIED)):
        again = [*first, *between, with_loss(1, 0.6, 100.0, repeated=True)]
        for events, value, loss in (
            (first, 0.99, 3601.0),
            ([*first, *between], 0.99, 3601.0),  # it resumes from its last checkpoint, with nothing left to do
            (again, 0.6, 100.0),  # it ended earlier
            ([*again, with_loss(2, 0.5, 101.0, repeated=True)], 0.5, 101.0),
            ([*again, with_loss(2, 0.5, 101.0, repeated=True), with_loss(3, 0.4, 102.0)], 0.4, 102.0),
            ([*first, *between, with_loss(2, 0.5, 101.0, repeated=True)], 0.5, 101.0),  # from the checkpoint of step 1
        ):
            outcome = outcome_of(*events)
            assert (outcome["value"], outcome["metrics"]) == (value, {"loss": loss})
    assert outcome_of(*again, which="best")["value"] == 0.6
    assert outcome_of(*again, with_loss(3, 0.4, 102.0), which="best")["value"] == 0.6
    saved = with_loss(1, 0.9, 3600.0, checkpoint="1-1"), first[1]
    for start, best in ((saved, 0.9), (first, 0.5)):  # the next attempt resumes from there, or begins anew
        for step in (2, 3):  # which need not report the same steps
            repeated = {"repeated": True} if step == 2 else {}
            assert outcome_of(*start, RETRIED, with_loss(step, 0.5, 101.0, **repeated), which="best")["value"] == best
    assert outcome_of(*again, value=7.0)["value"] == 7.0
    assert outcome_of(*first, metrics={"loss": 1.0, "size": 2})["metrics"] == {"loss": 1.0, "size": 2}  # as it returned
    searcher = study_of(ASKED, *again)
    assert searcher.trials[0].reports == [(1, 0.9), (2, 0.99)]  # the curve is one curve


@pytest.mark.parametrize("which", ["last", "best"])
def test_a_run_that_nobody_repeats_is_kept_once(which):
    searcher = study_of(ASKED, *(reported(0, step, -float(step)) for step in range(1, 6)))
    record = searcher.history.records[0]
    assert record.last_run is record.reports
    assert outcome_of(*(reported(0, step, -float(step)) for step in range(1, 6)), which=which) == {
        "seconds": 1.0,
        "value": -5.0 if which == "last" else -1.0,
    }


def test_next_attempt_decides_an_interrupted_trial(tmp_path):
    def job_of(accuracy, seconds):
        def job(config):
            for _ in range(2):
                yield {"accuracy": accuracy, "seconds": seconds}

        return raybo.objective(space=SPACE, steps=2, metrics={"accuracy": "max", "seconds": "min"})(job)

    def run(job, path):
        return tune_here(job, trials=1, method="random", seed=0, storage=path, options={}, between=lambda: None)

    whole = run(job_of(0.99, 3600.0), tmp_path / "a.db")
    with contextlib.closing(Journal(tmp_path / "b.db")) as journal:
        journal.begin(whole.description)
        journal.append(whole.events[:-1])
    (trial,) = run(job_of(0.5, 100.0), tmp_path / "b.db").trials
    assert (trial.attempt, trial.values) == (2, {"accuracy": 0.5, "seconds": 100.0})
    assert trial.reports == [(1, 0.99), (2, 0.99)]


def test_steps_that_do_not_go_up_are_refused():
    searcher = study_of(ASKED, reported(0, 2, 0.5))
    with pytest.raises(TrialError, match="trial 0: steps must increase, but step 2 comes after step 2"):
        searcher.apply(Reported(0, step=2, value=0.5))


PAUSE = (Kind.PAUSED, 0, {"step": 1, "rule": "asha", "reason": "3rd of 3", "numbers": {"rank": 3}})
PRUNE = (Kind.PRUNED, 0, {"step": 1, "rule": "asha", "reason": "3rd of 3", "numbers": {"rank": 3}})


def test_paused_trial_may_be_resumed_or_pruned():
    searcher = study_of(ASKED, reported(0, 1, 0.5), PAUSE)
    trial, history = searcher.trials[0], searcher.history
    assert (trial.state, trial.reason, trial.value) == (State.PAUSED, "3rd of 3", None)
    assert trial.details["numbers"] == {"rank": 3}
    assert (len(history.X_pending), history.ended, history.records[0].has_ended) == (1, 0, False)
    for kind in (Kind.TOLD, Kind.FAILED, Kind.REPORTED, Kind.RETRIED, Kind.PAUSED):
        with pytest.raises(TrialError, match="trial 0: it is paused already; it goes on once it is resumed"):
            searcher.apply(KINDS[kind].of(0, {"value": 1.0, "step": 2}))
    searcher.apply(Resumed(0, attempt=2))
    assert (searcher.trials[0].state, searcher.trials[0].attempt, searcher.trials[0].details) == (State.PENDING, 2, {})
    with pytest.raises(TrialError, match="trial 0 is pending, not paused"):
        searcher.apply(Resumed(0, attempt=3))
    searcher.tell(0, 0.9)
    assert searcher.best.number == 0


@pytest.mark.parametrize(("at_the_end", "total"), [({"seconds": 0.25}, 1.75), ({}, 1.5)])
def test_seconds_include_time_before_a_pause(at_the_end, total):
    waited = Kind.PAUSED, 0, {"step": 1, "reason": "", "rule": "asha", "seconds": 1.0, "attempt": 1}
    again = Kind.PAUSED, 0, {"step": 2, "reason": "", "rule": "asha", "seconds": 0.5, "attempt": 2}
    searcher = study_of(ASKED, reported(0, 1, 0.5), waited, (Kind.RESUMED, 0, {"step": 1, "attempt": 2}), again)
    assert searcher.trials[0].seconds == 1.5
    searcher.apply(Pruned.of(0, {"step": 2, "reason": "", "rule": "asha", **at_the_end}))
    assert searcher.trials[0].seconds == total


@pytest.mark.parametrize("before", [(), (PAUSE,)])
def test_pruned_trial_has_ended_without_a_result(before):
    searcher = study_of(ASKED, reported(0, 1, 0.5), *before, PRUNE)
    history = searcher.history
    assert searcher.trials[0].state is State.PRUNED
    assert searcher.trials[0].value is None
    assert (len(history.X), len(history.X_failed), len(history.X_pending), history.ended) == (0, 0, 0, 1)
    assert history.count(*COUNTED) == 1
    assert searcher.best is searcher.trials[0]  # nothing has finished: the one that came furthest, without a value
    with pytest.raises(TrialError, match="trial 0: it is pruned already; a trial ends once"):
        searcher.tell(0, 1.0)


# ---- the journal


def description(**more):
    return Description("job", Goals(("accuracy",), ("max",)), SPACE, "random", 0, **more)


def test_a_journal_holds_reports_and_verdicts(tmp_path):
    searcher = study_of(ASKED, reported(0, 1, 0.5, checkpoint="1-1", metrics={"loss": 1.0}), PAUSE)
    events = [Resumed(0, attempt=2, step=1), Pruned.of(*PRUNE[1:], {})]
    searcher = raybo.Searcher(SPACE, "random", seed=0, steps=10)
    written = [searcher.apply(searcher.propose(searcher.history))]
    for kind, trial, data in (reported(0, 1, 0.5, checkpoint="1-1", metrics={"loss": 1.0}), PAUSE):
        written.append(searcher.apply(KINDS[kind].of(trial, data)))
    written += [searcher.apply(event) for event in events]
    journal = Journal(tmp_path / "s.db", description(steps=10, scheduler="median", scheduler_options={"grace": 2}))
    journal.append(written)
    journal.close()
    read_description, read_back = read(tmp_path / "s.db")
    assert (read_description.steps, read_description.scheduler, read_description.scheduler_options) == (
        10,
        "median",
        {"grace": 2},
    )
    assert [replace(event, at="") for event in read_back] == written
    study = raybo.load(tmp_path / "s.db")
    assert study.trials == searcher.trials
    assert study.steps == 10
    assert study.trials[0].checkpoint == "1-1"


def test_description_without_reports_is_as_in_0_1():
    """The text that a journal begins with, whose checksum begins its chain."""
    assert set(description().to_json()) == {
        "objective", "metric", "mode", "space", "method", "seed", "settings", "options", "context",
    }  # fmt: skip
    assert Description.from_json(description().to_json()) == description()
    assert description(steps=3, value="best").to_json()["value"] == "best"
    different = description(steps=3).differences(description(steps=4, scheduler="median"))
    assert different == [
        "steps is 3 in the journal and 4 now",
        "scheduler is None in the journal and 'median' now",
    ]


# ---- ask and tell


def curve(trial, step):
    return trial.config["x"] * (1 - 0.5**step)


def run(searcher, trials):
    """As a user would; returns how many steps were run."""
    steps = 0
    for _ in range(trials):
        trial = searcher.ask()
        for step in range(1, 11):
            steps += 1
            verdict = searcher.report(trial, curve(trial, step), step)
            if verdict.prune:
                assert verdict.why
                searcher.prune(trial)
                break
        else:
            searcher.tell(trial, curve(trial, 10))
    return steps


def test_ask_and_tell_verdicts_replay():
    searcher = raybo.Searcher(SPACE, "random", seed=0, steps=10, scheduler="median", scheduler_options={"startup": 3})
    events = []
    apply = searcher.apply
    searcher.apply = lambda event: events.append(apply(event)) or events[-1]
    steps = run(searcher, 30)
    pruned = [trial for trial in searcher.trials if trial.state is State.PRUNED]
    assert 5 < len(pruned) < 25
    assert steps < 30 * 10 - 5 * len(pruned)
    assert all(trial.details["rule"] == "median" and trial.step < 10 for trial in pruned)
    described = description(steps=10, scheduler="median", scheduler_options={"startup": 3})
    study = Study(described, events)
    assert study.trials == searcher.trials
    assert not any(again.differs for again in replay(study))
    judged = list(replay_verdicts(study))
    assert sum(again.verdict == "prune" for again in judged) == len(pruned)
    assert all(again.verdict == again.recorded for again in judged)


def test_replay_finds_a_missing_verdict():
    searcher = raybo.Searcher(SPACE, "random", seed=0, steps=10, scheduler="median", scheduler_options={"startup": 3})
    events = []
    apply = searcher.apply
    searcher.apply = lambda event: events.append(apply(event)) or events[-1]
    run(searcher, 12)
    at = next(i for i, event in enumerate(events) if event.kind is Kind.PRUNED)
    changed = replace(events[at], seen=events[at].seen - 1)
    study = Study(description(steps=10, scheduler="median", scheduler_options={"startup": 3}), [*events[:at], changed])
    assert [(again.verdict, again.recorded) for again in replay_verdicts(study) if again.verdict != again.recorded] == [
        ("prune", "go")
    ]


def test_reports_alone_change_no_proposal():
    plain, reporting = (raybo.Searcher(SPACE, "auto", seed=3, steps=4) for _ in range(2))
    for _ in range(9):
        trial, same = plain.ask(), reporting.ask()
        assert trial.config == same.config
        for step in range(1, 5):
            reporting.report(same, curve(same, step), step)
        plain.tell(trial, curve(trial, 4))
        reporting.tell(same, curve(same, 4))


def test_user_may_prune_for_any_reason():
    searcher = raybo.Searcher(SPACE, "random", seed=0)
    trial = searcher.ask()
    assert searcher.report(trial, 0.5) == GO
    assert searcher.report(trial, 0.6, step=7) == GO
    ended = searcher.prune(trial, "enough seen")
    assert (ended.state, ended.reason, ended.reports) == (State.PRUNED, "enough seen", [(1, 0.5), (7, 0.6)])
    assert ended.details["rule"] == "user"


def test_wrong_reports_are_refused_in_a_line():
    searcher = raybo.Searcher(SPACE, "random", seed=0, steps=3)
    trial = searcher.ask()
    searcher.report(trial, 0.5, 2)
    for arguments, message in (
        ((trial, math.nan), "trial 0: a finite number is needed"),
        ((trial, 0.5, 2), "trial 0: steps must increase, but step 2 comes after step 2"),
        ((trial, 0.5, 4), "trial 0: step 4 is beyond the last step; a whole run has 3"),
        ((trial, 0.5, 2.5), "trial 0: step must be a whole number from 1, got 2.5"),
        ((5, 0.5), "trial 5: no such trial"),
    ):
        with pytest.raises(TrialError, match=message):
            searcher.report(*arguments)
    with pytest.raises(TrialError, match="trial 0: no scheduler has paused it"):
        searcher.pause(trial)
    assert searcher.promoted() is None
    assert searcher.trials[0].reports == [(2, 0.5)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scheduler": "medain", "steps": 3}, "there is no scheduler 'medain'; did you mean 'median'"),
        ({"scheduler": "median"}, "the scheduler median needs trials that report intermediate results"),
        ({"scheduler": "median", "steps": 3, "scheduler_options": {"grase": 1}}, "median has no option 'grase'; did"),
        ({"scheduler": "median", "steps": 3, "scheduler_options": {"grace": 0}}, "grace must be at least 1, got 0"),
        ({"scheduler": "asha", "steps": 3, "scheduler_options": {"grace": 3}}, "asha: grace must be below .* 3, got 3"),
        ({"scheduler": "asha", "steps": 3, "scheduler_options": ["eta=3"]}, r"must be a dict .* got \['eta=3'\]"),
        ({"scheduler_options": {"grace": 1}}, "scheduler_options are given, but no scheduler"),
        ({"steps": 0}, "steps must be a whole number from 1, got 0"),
    ],
)
def test_wrong_schedulers_are_refused_in_a_line(arguments, message):
    with pytest.raises(MethodError, match=message):
        raybo.Searcher(SPACE, **arguments)


def test_rule_names_the_next_step_to_wait_at():
    searcher = raybo.Searcher(SPACE, "random", seed=0, steps=10, scheduler="median", scheduler_options={"startup": 1})
    rule = searcher.rule
    assert rule == Rule("median", make("median", {"startup": "1"}, 10))
    searcher.ask()
    assert rule.waits_at(searcher.history, 0) is None
    searcher.tell(searcher.ask(), 0.5)
    assert rule.waits_at(searcher.history, 0) is None  # that trial has no reports
    other = searcher.ask()
    searcher.report(other, 0.5, 1)
    searcher.tell(other, 0.5)
    assert rule.waits_at(searcher.history, 0) == 2  # after the grace
    searcher.report(0, 0.5, 9)
    assert rule.waits_at(searcher.history, 0) is None  # the last step ends it anyway
    assert Verdict("pause").pause
    assert not Verdict("pause").prune


# ---- what a job says, outside of a trial


def test_outside_a_trial_a_report_is_only_checked(tmp_path):
    raybo.report({"accuracy": 0.5})
    raybo.report(np.float64(0.5), step=np.int64(3))
    assert raybo.checkpoint() is None
    with raybo.saving() as directory:
        (directory / "model").write_text("m")
    assert not directory.exists()
    for arguments, message in (
        (("0.5",), "report: metrics must be a number or a dict of them, got '0.5'"),
        ((True,), "report: metrics must be a number or a dict of them, got True"),
        (({"accuracy": 1}, 0), "report: step must be a whole number from 1, got 0"),
        (({"accuracy": 1}, 1.5), "report: step must be a whole number from 1, got 1.5"),
    ):
        with pytest.raises(ObjectiveError, match=message):
            raybo.report(*arguments)


def test_step_is_reported_after_saving():
    """Within the block the checkpoint would go with the next report, and a lost trial would count its steps wrongly."""
    with pytest.raises(ObjectiveError, match=r"within raybo\.saving.*after the block"), raybo.saving():
        raybo.report({"accuracy": 0.5})
    with raybo.saving():
        reporting = threading.Thread(target=raybo.report, args=({"accuracy": 0.5},))  # it saves nothing itself
        reporting.start()
        reporting.join()
    raybo.report({"accuracy": 0.5})


def test_prune_is_not_an_ordinary_exception():
    assert not issubclass(raybo.TrialPruned, Exception)
    assert reports.TrialPruned is raybo.TrialPruned


@pytest.mark.parametrize("steps", [0, -1, 2.5, True, "3"])
def test_steps_of_an_objective_are_a_whole_number(steps):
    job = raybo.objective(space=SPACE, steps=steps)(lambda config: 1.0)
    with pytest.raises(ObjectiveError, match="steps must be a whole number from 1"):
        _ = job.steps


def test_steps_may_follow_from_the_settings():
    @raybo.objective(space=SPACE, steps=lambda epochs: 2 * epochs, value="best")
    def job(config, *, epochs=5):
        yield 1.0

    assert (job.steps, job.with_settings(epochs="7").steps) == (10, 14)
    with pytest.raises(ObjectiveError, match="value must be 'last' or 'best', got 'mean'"):
        raybo.objective(space=SPACE, value="mean")


@pytest.mark.slow
def test_a_report_takes_equally_long_after_many():
    """Copies would make the last thousands take several times as long as the first."""
    searcher = raybo.Searcher(SPACE, "random", seed=0)
    searcher.ask()
    seconds = []
    for first in range(1, 40_000, 5_000):
        begun = time.process_time()
        for step in range(first, first + 5_000):
            searcher.apply(Reported(0, step=step, value=0.5))
        seconds.append(time.process_time() - begun)
    assert min(seconds[-2:]) < 3.0 * max(seconds[:2])
    assert len(searcher.history.records[0].reports) == 40_000
    assert json.dumps(searcher.trials[0].reports[-1]) == "[40000, 0.5]"
