"""Trainers of Ray Train inside trials: their reports, their end and their failures."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import raybo
from raybo.common.errors import ObjectiveError, RayError
from raybo.engine.ray.resources import resources_of, workers_available
from raybo.job.loading import load_objective
from raybo.record.states import State
from tests.engine.hosts import HURRY, until
from tests.processes import is_alive

pytest.importorskip("ray.train", reason="Ray Train is not installed")
ray_train = pytest.importorskip("raybo.integrations.ray_train", reason="Ray Train is not installed")

SPACE = raybo.Space({"x": raybo.Float(0, 1)})
STEPS = 3


def node(cpus):
    return {"Alive": True, "Resources": {"CPU": float(cpus)}}


def nested(**declared):
    return raybo.objective(space=SPACE, metric="loss", mode="min", nested=True, **declared)(lambda config: 0.0)


def test_room_is_counted_for_a_trainers_workers():
    job = nested(processes=2, num_cpus=1)
    assert workers_available([node(4)], job) == 2
    assert resources_of(job) == {"num_cpus": 0, "num_gpus": 0}
    with pytest.raises(RayError, match="a trial needs 2 processes of CPU=1, and the cluster has room for 1"):
        workers_available([node(1)], job)
    assert (job.is_gang, job.is_single, nested().is_single) == (False, False, False)


def test_what_a_nested_job_cannot_have_is_refused():
    with pytest.raises(ObjectiveError, match="nested: processes must be a number"):
        nested(processes=lambda config: 2)
    with pytest.raises(RayError, match="in_process runs each trial as one process"):
        raybo.tune(nested(), in_process=True, trials=1)


def test_a_trainer_in_another_trial_is_refused():
    from raybo.job.current_trial import running

    with running(raybo.CurrentTrial(0, 1, 0, {}, Path())), pytest.raises(ObjectiveError, match="nested=True"):
        ray_train.report_to_trial()


class Failed(Exception):
    def __init__(self, **failures):
        self.worker_failures = {int(rank[1:]): each for rank, each in failures.items()}


class Unwell(Exception):
    def __init__(self, failure):
        self.health_check_failure = failure


@pytest.mark.parametrize(
    ("failures", "kind", "text"),
    [
        ({"r1": ValueError("bug")}, "TrainError", "rank 1 of its trainer: ValueError: bug"),
        ({"r0": ConnectionResetError("peer"), "r2": ValueError("bug")}, "TrainError", "rank 2 .*ValueError: bug"),
        ({"r0": ValueError("bug"), "r1": MemoryError("big")}, "MemoryError", "rank 1 .*MemoryError: big"),
        ({"r0": ValueError("bug"), "r1": Unwell(RuntimeError())}, "ProcessLost", r"rank 1 .*died \(RuntimeError\)"),
        ({"r0": BrokenPipeError("gone")}, "TrainError", "rank 0 of its trainer: BrokenPipeError: gone"),
    ],
)
def test_the_cause_of_a_failure_is_chosen(failures, kind, text):
    cause = ray_train.cause_of(Failed(**failures))
    assert type(cause).__name__ == kind
    with pytest.raises(type(cause), match=text):
        raise cause


def test_other_exceptions_are_no_trainers():
    assert ray_train.cause_of(ValueError("bug")) is None


JOB = """
import os
import signal
import time

import raybo
from raybo.integrations.ray_train import report_to_trial


def loop(config):
    import json
    import tempfile
    from pathlib import Path

    from ray import train

    rank, first = train.get_context().get_world_rank(), 1
    if config["checkpoint"]:
        first = json.loads(Path(config["checkpoint"], "step").read_text()) + 1
    with open(config["log"], "a") as file:
        print(config["attempt"], rank, first, os.getpid(), file=file)
    for step in range(first, STEPS + 1):
        HAPPENS
        with tempfile.TemporaryDirectory() as directory:
            Path(directory, "step" if rank == 0 else "other").write_text(json.dumps(step))
            kept = train.Checkpoint.from_directory(directory)
            train.report({"loss": config["x"] + rank + 1 / step, "step": step}, checkpoint=kept)


@raybo.objective(
    space={"x": raybo.Float(0, 1)}, metric="loss", mode="min", steps=STEPS, processes=2, num_cpus=0.5, nested=True
)
def job(config, *, log=""):
    from ray.train import RunConfig, ScalingConfig
    from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer

    me = raybo.current_trial()
    assert me.world_size == 2
    DataParallelTrainer(
        loop,
        train_loop_config={
            **config, "attempt": me.attempt, "checkpoint": raybo.checkpoint(), "log": log, "trial": os.getpid()
        },
        scaling_config=ScalingConfig(num_workers=me.world_size, resources_per_worker={"CPU": 0.5}),
        run_config=RunConfig(storage_path=str(me.directory), callbacks=[report_to_trial()]),
    ).fit()
"""


@pytest.fixture
def study(tmp_path, monkeypatch):
    """Runs a study of a trainer of two workers that do this at each step; returns it and the lines of the log."""
    log = tmp_path / "log"

    def study(happens="pass", trials=1, **options):
        (tmp_path / "nested_job.py").write_text(JOB.replace("STEPS", str(STEPS)).replace("HAPPENS", happens))
        found = raybo.tune(
            load_objective(str(tmp_path / "nested_job.py")),
            settings={"log": str(log)},
            storage=tmp_path / "a.db",
            **{"trials": trials, "method": "sobol", "seed": 0, "workers": 1, **options},
        )
        return found, lines_of(log)

    return study


def lines_of(log):
    return [tuple(map(int, line.split())) for line in log.read_text().splitlines()] if log.exists() else []


def left_of_trainers(ray):
    """What trainers have left on this Ray that is not about to end."""
    from raybo.engine.ray import trainers

    actors, groups = trainers._tables()
    names = (trainers.CONTROLLER, trainers.CLEANER, "RayTrainWorker")
    left = [each.class_name for each in actors if each.class_name in names and each.state != each.DEAD]
    return left + [each.state for each in groups if each.state != each.REMOVED]


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.timeout(900)
class TestOnRay:
    def test_a_trainers_reports_are_the_trials_and_a_verdict_ends_it(self, ray_session, study):
        found, lines = study(
            trials=2, enqueue=[{"x": 0.1}, {"x": 0.9}], scheduler="median", scheduler_options={"startup": 1}
        )
        whole, pruned = found.trials
        assert whole.state is State.FINISHED, whole.reason
        assert whole.value == pytest.approx(whole.config["x"] + 1 / STEPS)
        assert whole.checkpoint is not None
        assert pruned.state is State.PRUNED, pruned.reason
        assert len(pruned.reports) < STEPS
        until(lambda: not any(is_alive(line[3]) for line in lines), "the workers to end")
        until(lambda: not left_of_trainers(ray_session), "the trainers to end")

    def test_a_workers_exception_is_the_reason(self, ray_session, study):
        (trial,) = study("if rank == 1 and step == 2: raise ValueError('bug')")[0].trials
        assert (trial.state, trial.attempt) == (State.FAILED, 1)
        assert trial.reason == "TrainError: rank 1 of its trainer: ValueError: bug"
        until(lambda: not left_of_trainers(ray_session), "the trainer to end")

    def test_a_killed_worker_starts_the_trial_again(self, ray_session, study):
        happens = "if (config['attempt'], rank, step) == (1, 1, 3): os.kill(os.getpid(), signal.SIGKILL)"
        found, lines = study(happens)
        (trial,) = found.trials
        assert (trial.state, trial.attempt) == (State.FINISHED, 2), trial.reason
        assert {line[2] for line in lines if line[0] == 2} <= {2, 3}  # from what it had saved
        until(lambda: not left_of_trainers(ray_session), "the trainers to end")

    def test_a_killed_trial_gives_back_its_workers(self, ray_session, study):
        happens = "if (config['attempt'], rank, step) == (1, 0, 2): os.kill(config['trial'], signal.SIGKILL)"
        found, lines = study(happens)
        (trial,) = found.trials
        assert (trial.state, trial.attempt) == (State.FINISHED, 2), trial.reason
        until(lambda: not any(is_alive(line[3]) for line in lines), "the workers to end")
        until(lambda: not left_of_trainers(ray_session), "the trainers to end")

    def test_a_trial_over_its_limit_leaves_nothing(self, ray_session, study):
        happens = "time.sleep(600 if config['attempt'] == 1 and step == 2 else 0)"
        found, lines = study(happens, trial_seconds=60.0)
        (trial,) = found.trials
        assert trial.reason == "it ran longer than its limit of 60 seconds"
        until(lambda: not any(is_alive(line[3]) for line in lines), "the workers to end")
        until(lambda: not left_of_trainers(ray_session), "the trainer to end")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_killed_study_continues_its_trainer(tmp_path):
    happens = "time.sleep(600 if step == 3 and not os.path.exists(config['log'] + '.killed') else 0)"
    (tmp_path / "nested_job.py").write_text(JOB.replace("STEPS", str(STEPS)).replace("HAPPENS", happens))
    log, path = tmp_path / "log", tmp_path / "a.db"
    command = [
        *(sys.executable, "-m", "raybo.cli", "tune", "nested_job.py", "--trials", "1", "--method", "sobol"),
        *("--storage", str(path), "--set", f"log={log}"),
    ]
    first = subprocess.Popen(command, cwd=tmp_path, start_new_session=True)
    until(lambda: path.exists() and raybo.load(path).trials and raybo.load(path).trials[0].checkpoint, "a checkpoint")
    os.kill(first.pid, signal.SIGKILL)
    first.wait(HURRY)
    until(lambda: not any(is_alive(line[3]) for line in lines_of(log)), "the workers to end")
    Path(f"{log}.killed").touch()
    subprocess.run(command, cwd=tmp_path, check=True, timeout=HURRY)
    (trial,) = raybo.load(path).trials
    assert (trial.state, trial.attempt) == (State.FINISHED, 2), trial.reason
    assert {line[2] for line in lines_of(log) if line[0] == 2} <= {2, 3}
