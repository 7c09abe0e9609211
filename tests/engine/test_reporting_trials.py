"""Trials that report, on a real Ray: pruned, killed and continued, stopped and continued."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
import time
from dataclasses import dataclass

import pytest

import raybo
from raybo.common.errors import MethodError, ObjectiveError
from raybo.record.events import Kind
from raybo.record.states import State
from raybo.schedulers import GO, Scheduler
from raybo.study.replay import replay, replay_verdicts

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("ray_session")]

SPACE = raybo.Space({"x": raybo.Float(0, 1)})
STEPS = 8


def job_of(log, seconds=0.0, die=lambda trial, step: False, saves=True, may_go_on=lambda: True, **declared):
    """A job whose curve rises to x; it writes down each step, saves it, and may kill its own process or wait."""

    @raybo.objective(space=SPACE, metric="accuracy", steps=STEPS, **declared)
    def job(config):
        trial, first = raybo.current_trial(), 1
        if (kept := raybo.checkpoint()) is not None:
            first = int((kept / "step").read_text()) + 1
        for step in range(first, STEPS + 1):
            time.sleep(seconds)
            while not may_go_on():
                time.sleep(0.02)
            with open(log, "a") as file:
                file.write(f"{trial.number} {trial.attempt} {step}\n")
            if saves:
                with raybo.saving() as directory:
                    (directory / "step").write_text(str(step))
            if trial.attempt == 1 and die(trial.number, step):
                os.kill(os.getpid(), signal.SIGKILL)
            yield {"accuracy": config["x"] * step / STEPS, "epoch": step}

    return job


@pytest.fixture
def log(tmp_path):
    return tmp_path / "log"


def run_steps(log):
    """By trial and attempt, the steps that were run."""
    found = {}
    for line in log.read_text().splitlines():
        number, attempt, step = map(int, line.split())
        found.setdefault((number, attempt), []).append(step)
    return found


def tune(job, path, **arguments):
    return raybo.tune(job, **{"method": "random", "seed": 0, "workers": 2, "trials": 4, **arguments}, storage=path)


@contextlib.contextmanager
def killing(path, log, after):
    """Meanwhile the study's own process is killed, each time once so many steps have been run, and another time by the
    process that has taken its place. Yields what trials ask before each step, so that they have not ended before."""
    lock, done, killed, enough = path.with_name(f"{path.name}-lock"), path.with_name("done"), [], threading.Event()

    def steps_run():
        return len(log.read_text().splitlines()) if log.exists() else 0

    def kill():
        for steps in after:
            while not enough.is_set():
                with contextlib.suppress(OSError, ValueError):  # the lock is not there, or just being written
                    process = json.loads(lock.read_text())["process"]
                    if steps_run() >= steps and process not in killed:
                        os.kill(process, signal.SIGKILL)
                        killed.append(process)
                        break
                time.sleep(0.02)
        done.touch()

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        yield lambda: done.exists() or steps_run() < after[-1] + 2
    finally:
        enough.set()
        killer.join()
    assert len(killed) == len(after)


def check_whole(study):
    """Every trial has ended, its steps go up, and the journal alone gives every proposal and every verdict again."""
    assert study.count(State.PENDING, State.PAUSED) == 0
    for trial in study.trials:
        steps = [step for step, _ in trial.reports]
        assert steps == sorted(set(steps))
        ends = [event for event in study.events if event.trial == trial.number and event.is_end]
        assert len(ends) == 1
    assert not any(again.differs for again in replay(study))
    judged = list(replay_verdicts(study))
    assert [again for again in judged if again.verdict != again.recorded] == []
    return judged


@pytest.mark.slow
def test_bad_trials_are_pruned_with_a_reason(tmp_path, log):
    study = tune(job_of(log), tmp_path / "s.db", trials=12, scheduler="median", scheduler_options={"startup": 3})
    judged = check_whole(study)
    pruned = [trial for trial in study.trials if trial.state is State.PRUNED]
    assert pruned
    assert sum(again.verdict == "prune" for again in judged) == len(pruned)
    for trial in pruned:
        assert 1 < trial.step < STEPS
        assert run_steps(log)[trial.number, 1][-1] <= trial.step + 1  # it heard of it at once, or at the next step
        assert "median of" in trial.reason
        assert trial.details["rule"] == "median"
    finished = [trial for trial in study.trials if trial.state is State.FINISHED]
    assert len(finished) + len(pruned) == 12
    for trial in finished:
        assert trial.reports[-1] == (STEPS, trial.value)
        assert trial.details["metrics"] == {"epoch": STEPS}
        assert len(trial.reports) == STEPS
    assert study.best.value == max(trial.value for trial in finished)


@pytest.mark.slow
def test_killed_trial_continues_from_its_committed_checkpoint(tmp_path, log):
    """It dies between a checkpoint and the report that would have named it: that step is run again."""
    study = tune(job_of(log, die=lambda trial, step: (trial, step) == (1, 5)), tmp_path / "s.db")
    check_whole(study)
    steps = run_steps(log)
    assert steps[1, 1] == [1, 2, 3, 4, 5]
    assert steps[1, 2] == [5, 6, 7, 8]
    trial = study.trials[1]
    assert (trial.attempt, trial.state, len(trial.reports)) == (2, State.FINISHED, STEPS)
    assert not any(event.data.get("repeated") for event in study.events)
    kept = study.directory(trial) / "checkpoints"
    assert [path.name for path in kept.iterdir()] == [trial.checkpoint] == ["2-4"]
    assert (kept / "2-4" / "step").read_text() == "8"


@pytest.mark.slow
def test_repeated_steps_do_not_count_twice(tmp_path, log):
    path = tmp_path / "s.db"

    def dies(trial, step):
        if (trial, step) != (0, 6):
            return False
        while not raybo.load(path).trials[0].reports:  # on a busy machine they come later
            time.sleep(0.02)
        return True

    study = tune(job_of(log, 0.15, dies, saves=False), path, trials=2)
    check_whole(study)
    assert run_steps(log)[0, 2] == list(range(1, STEPS + 1))
    repeated = [event for event in study.events if event.data.get("repeated")]
    assert repeated
    assert len(repeated) + STEPS == sum(e.kind is Kind.REPORTED and e.trial == 0 for e in study.events)
    assert [step for step, _ in study.trials[0].reports] == list(range(1, STEPS + 1))


@pytest.mark.slow
def test_interrupted_trials_continue_from_their_checkpoints(tmp_path, log):
    """The study's own process is killed twice while trials are under way."""
    path = tmp_path / "s.db"
    with killing(path, log, (3, 9)) as may_go_on:
        study = tune(job_of(log, 0.1, may_go_on=may_go_on), path, trials=3)
    check_whole(study)
    interrupted = [trial for trial in study.trials if trial.attempt > 1]
    assert interrupted
    for trial in study.trials:
        assert [step for step, _ in trial.reports] == list(range(1, STEPS + 1))
    steps = run_steps(log)
    assert any(first[0] > 1 for (_, attempt), first in steps.items() if attempt > 1)


def test_declared_best_report_is_the_value(tmp_path):
    @raybo.objective(space=SPACE, metric="loss", mode="min", steps=3, value="best")
    def job(config):
        yield from ({"loss": loss, "step": step} for step, loss in ((1, 3.0), (2, 1.0), (3, 2.0)))

    study = tune(job, tmp_path / "s.db", trials=1)
    assert study.trials[0].value == 1.0


def test_scheduler_without_steps_is_refused(tmp_path):
    @raybo.objective(space=SPACE)
    def job(config):
        return config["x"]

    with pytest.raises(ObjectiveError, match="job declares no steps, so there is nothing for the scheduler median"):
        tune(job, tmp_path / "s.db", scheduler="median")
    assert not (tmp_path / "s.db").exists()


@pytest.mark.slow
def test_artifacts_are_where_they_are_wanted(tmp_path, log):
    study = tune(job_of(log), tmp_path / "s.db", trials=1, artifacts=tmp_path / "elsewhere", keep_checkpoints="all")
    kept = tmp_path / "elsewhere" / "s.trials" / "0" / "checkpoints"
    assert len(list(kept.iterdir())) == STEPS
    assert study.trials[0].checkpoint == f"1-{STEPS}"
    assert study.directory(0) == kept.parent
    more = tune(job_of(log), tmp_path / "s.db", trials=2)  # it continues as the journal says
    assert more.directory(1) == raybo.load(tmp_path / "s.db").directory(1) == tmp_path / "elsewhere" / "s.trials" / "1"
    assert not (tmp_path / "s.trials").exists()
    with pytest.raises(raybo.RayError, match="give storage"):
        raybo.tune(job_of(log), artifacts=tmp_path)


@pytest.mark.slow
def test_a_killed_trial_runs_again_and_later_ones_too_if_their_files_are_kept_elsewhere(tmp_path):
    """The next one removes what it leaves on its node, and lives on."""

    @raybo.objective(space=SPACE, metric="loss", mode="min")
    def job(config):
        me = raybo.current_trial()
        (me.directory / "file").write_text(str(me.attempt))
        if me.attempt == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return config["x"]

    place = tmp_path / "elsewhere"
    study = raybo.tune(job, trials=2, workers=1, method="random", storage=tmp_path / "s.db", artifacts=place.as_uri())
    assert [(trial.state, trial.attempt) for trial in study.trials] == [(State.FINISHED, 2)] * 2
    assert sorted(file.read_text() for file in place.rglob("file")) == ["2", "2"]


ASHA = {
    "scheduler": "asha",
    "scheduler_options": {"eta": 2, "variant": "promote"},
    # one worse than the other: whichever of two comes first, some are among the better half only later
    "enqueue": [{"x": 0.9 - 0.1 * i} for i in range(8)],
}


def check_promoted(study):
    """Some waited, some of those went on from their checkpoints, and the others were ended with the study."""
    judged = check_whole(study)
    assert {"pause", "resume"} <= {again.recorded for again in judged}
    waited = {event.trial for event in study.events if event.kind is Kind.PAUSED}
    went_on = {event.trial for event in study.events if event.kind is Kind.RESUMED}
    assert went_on < waited
    for number in waited - went_on:
        assert (study.trials[number].state, study.trials[number].details["rule"]) == (State.PRUNED, "study")
    assert any(trial.state is State.FINISHED for trial in study.trials)
    for trial in study.trials:  # also of those that were ended while no process of theirs ran
        assert [each.name for each in (study.directory(trial) / "checkpoints").iterdir()] == [trial.checkpoint]


def test_promoted_trials_continue_from_their_checkpoints(tmp_path, log):
    study = tune(job_of(log), tmp_path / "s.db", trials=8, **ASHA)
    check_promoted(study)
    assert sum(len(steps) for steps in run_steps(log).values()) == sum(trial.step for trial in study.trials)


@pytest.mark.slow
def test_killed_study_gives_its_missing_verdicts(tmp_path, log):
    path = tmp_path / "s.db"
    with killing(path, log, (5, 10)) as may_go_on:
        study = tune(job_of(log, 0.05, may_go_on=may_go_on), path, trials=8, **ASHA)
    check_promoted(study)
    repeated = [steps for steps in run_steps(log).values() if len(set(steps)) < len(steps)]
    assert repeated == []


@pytest.mark.slow
def test_killed_boosters_continue_with_their_trees(tmp_path):
    """A real XGBoost job, killed once in each of its trials: its boosters are those of a run that nobody disturbed."""
    pytest.importorskip("xgboost")
    rounds = 12

    def boosted(config, dies):
        import numpy as np
        import xgboost

        from raybo.integrations.xgboost import Report, going_on

        class Killed(xgboost.callback.TrainingCallback):
            def after_iteration(self, model, epoch, evals_log):
                trial = raybo.current_trial()
                if dies and trial.attempt == 1 and model.num_boosted_rounds() == 3 + trial.number:
                    os.kill(os.getpid(), signal.SIGKILL)
                return False

        rng = np.random.default_rng(0)
        X = rng.normal(size=(300, 5))
        y = (X[:, 0] * X[:, 1] + 0.5 * X[:, 2] + 0.3 * rng.normal(size=300) > 0).astype(int)
        train, test = xgboost.DMatrix(X[:200], y[:200]), xgboost.DMatrix(X[200:], y[200:])
        evals_log = {}
        xgboost.train(
            {"eta": config["eta"], "max_depth": 3, "objective": "binary:logistic", "nthread": 1, "seed": 0},
            train,
            evals=[(test, "test")],
            evals_result=evals_log,
            verbose_eval=False,
            callbacks=[Report("test", "logloss"), Killed()],
            **going_on(rounds),
        )
        return evals_log["test"]["logloss"][-1]

    @raybo.objective(space={"eta": raybo.Float(0.01, 1.0, log=True)}, metric="logloss", mode="min", steps=rounds)
    def job(config):
        boosted(config, dies=True)

    study = tune(job, tmp_path / "s.db", trials=8)
    check_whole(study)
    for trial in study.trials:
        assert (trial.state, trial.attempt) == (State.FINISHED, 2)
        assert [step for step, _ in trial.reports] == list(range(1, rounds + 1))
        begun = [event.data for event in study.events if event.trial == trial.number and event.report is not None]
        assert sum(data["attempt"] == 2 for data in begun) == rounds - (3 + trial.number)
        assert trial.value == pytest.approx(boosted(trial.config, dies=False), rel=1e-6)


@dataclass(frozen=True)
class Raising(Scheduler):
    """A scheduler with a defect: one of its functions raises for trial 1."""

    where: str = "decide"

    def _answer(self, where, trial, step):
        if (where, trial) == (self.where, 1) and step > 2:
            raise KeyError("width")

    def decides(self, history, trial, step):
        self._answer("decides", trial, step)
        return step > 2

    def decide(self, history, trial, step):
        self._answer("decide", trial, step)
        return GO

    def next_promoted(self, history):
        if self.where == "next_promoted" and len(history) > 1:
            raise KeyError("width")


@pytest.mark.slow
@pytest.mark.parametrize("where", ["decides", "decide"])
@pytest.mark.parametrize(("in_process", "processes"), [(True, 1), (False, 1), (False, 2)])
def test_a_scheduler_that_raises_fails_its_trial(tmp_path, log, where, in_process, processes):
    job = job_of(log, saves=False, processes=processes, num_cpus=1 / processes)
    workers = None if in_process else 1
    study = tune(job, tmp_path / "a.db", scheduler=Raising(where), in_process=in_process, workers=workers)
    assert [trial.state for trial in study.trials] == [State.FINISHED, State.FAILED, State.FINISHED, State.FINISHED]
    failed = study.trials[1]
    assert f"{__name__}:Raising: {where} raised KeyError: 'width' (test_reporting_trials.py:" in failed.reason
    assert failed.step == 3


@pytest.mark.slow
@pytest.mark.parametrize("in_process", [False, True])
def test_a_scheduler_that_cannot_promote_ends_the_study_in_a_line(tmp_path, log, in_process):
    job, workers = job_of(log, saves=False), None if in_process else 1
    with pytest.raises(MethodError, match=f"{__name__}:Raising: next_promoted raised KeyError: 'width'"):
        tune(job, tmp_path / "a.db", scheduler=Raising("next_promoted"), in_process=in_process, workers=workers)
    assert raybo.load(tmp_path / "a.db").count(State.FINISHED) >= 1
