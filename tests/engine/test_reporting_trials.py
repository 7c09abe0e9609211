"""Trials that report, on a real Ray: pruned, killed and continued, stopped and continued."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

import raybo
from raybo.errors import ObjectiveError
from raybo.events import Kind, State
from raybo.replay import replay, replay_verdicts

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("ray_session")]

SPACE = raybo.Space({"x": raybo.Float(0, 1)})
STEPS = 8


def job_of(log, seconds=0.0, die=lambda trial, step: False, saves=True, **declared):
    """A job whose curve rises to x; it writes down each step, saves it, and may kill its own process."""

    @raybo.objective(space=SPACE, metric="accuracy", steps=STEPS, **declared)
    def job(config):
        trial, first = raybo.current_trial(), 1
        if (kept := raybo.checkpoint()) is not None:
            first = int((kept / "step").read_text()) + 1
        for step in range(first, STEPS + 1):
            time.sleep(seconds)
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


def test_bad_trials_are_pruned_and_the_journal_says_why(tmp_path, log):
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


def test_a_killed_worker_goes_on_from_its_last_committed_checkpoint(tmp_path, log):
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


def test_without_a_checkpoint_it_begins_anew_and_nothing_counts_twice(tmp_path, log):
    def dies(trial, step):
        return (trial, step) == (0, 6)

    study = tune(job_of(log, 0.15, dies, saves=False), tmp_path / "s.db", trials=2)
    check_whole(study)
    assert run_steps(log)[0, 2] == list(range(1, STEPS + 1))
    repeated = [event for event in study.events if event.data.get("repeated")]
    assert repeated
    assert len(repeated) + STEPS == sum(e.kind is Kind.REPORTED and e.trial == 0 for e in study.events)
    assert [step for step, _ in study.trials[0].reports] == list(range(1, STEPS + 1))


def test_a_stopped_study_has_its_trials_go_on_from_their_checkpoints_where_it_died(tmp_path, log):
    """The study's own process is killed twice while trials are under way."""
    path = tmp_path / "s.db"
    job = job_of(log, 0.1)

    def kill_study():
        import ray

        for after in (3, 9):
            while not log.exists() or len(log.read_text().splitlines()) < after:
                time.sleep(0.05)
            actors = ray.util.state.list_actors(filters=[("class_name", "=", "StudyActor"), ("state", "=", "ALIVE")])
            for actor in actors:
                os.kill(actor.pid, signal.SIGKILL)

    killer = threading.Thread(target=kill_study)
    killer.start()
    study = tune(job, path, trials=3)
    killer.join()
    check_whole(study)
    interrupted = [trial for trial in study.trials if trial.attempt > 1]
    assert interrupted
    for trial in study.trials:
        assert [step for step, _ in trial.reports] == list(range(1, STEPS + 1))
    steps = run_steps(log)
    assert any(first[0] > 1 for (_, attempt), first in steps.items() if attempt > 1)


def test_the_best_of_its_reports_is_the_value_where_that_is_declared(tmp_path):
    @raybo.objective(space=SPACE, metric="loss", mode="min", steps=3, value="best")
    def job(config):
        yield from ({"loss": loss, "step": step} for step, loss in ((1, 3.0), (2, 1.0), (3, 2.0)))

    study = tune(job, tmp_path / "s.db", trials=1)
    assert study.trials[0].value == 1.0


def test_a_scheduler_for_a_job_that_does_not_report_is_refused_in_a_line(tmp_path):
    @raybo.objective(space=SPACE)
    def job(config):
        return config["x"]

    with pytest.raises(ObjectiveError, match="job declares no steps, so there is nothing for the scheduler median"):
        tune(job, tmp_path / "s.db", scheduler="median")
    assert not (tmp_path / "s.db").exists()


def test_artifacts_are_where_they_are_wanted(tmp_path, log):
    study = tune(job_of(log), tmp_path / "s.db", trials=1, artifacts=tmp_path / "elsewhere", keep_checkpoints="all")
    kept = tmp_path / "elsewhere" / "s.trials" / "0" / "checkpoints"
    assert len(list(kept.iterdir())) == STEPS
    assert study.trials[0].checkpoint == f"1-{STEPS}"
