"""Trials of several processes, on a real Ray."""

from __future__ import annotations

import os
import signal
import time

import pytest

import raybo
from raybo.common.errors import ObjectiveError, RayError
from raybo.record.budget import Budget, used
from raybo.record.events import Asked
from raybo.record.states import State
from raybo.study.replay import replay, replay_verdicts

SPACE = raybo.Space({"x": raybo.Float(0, 1)})
STEPS = 6


def job_of(log, happens=lambda me, step: None, **declared):
    """A job of two ranks that writes down its steps, saves a part of a checkpoint at each, and continues from them."""

    @raybo.objective(
        space=SPACE, metric="loss", mode="min", steps=STEPS, **{"processes": 2, "num_cpus": 0.5, **declared}
    )
    def job(config):
        me, first = raybo.current_trial(), 1
        if (kept := raybo.checkpoint()) is not None:
            first = int((kept / f"{me.rank}").read_text()) + 1
        for step in range(first, STEPS + 1):
            with open(log, "a") as file:
                file.write(f"{me.number} {me.attempt} {me.rank} {step}\n")
            with raybo.saving() as directory:
                (directory / f"{me.rank}").write_text(str(step))
            happens(me, step)
            raybo.report({"loss": config["x"] + me.rank, "ranks": me.world_size}, step=step)
        # only rank 0's result counts
        return {"loss": config["x"] + float(os.environ["RANK"])} if me.rank == 0 else "of no interest"

    return job


@pytest.fixture
def log(tmp_path):
    return tmp_path / "log"


def steps_of(log, number=0):
    """By attempt and rank, the steps of a trial."""
    found = {}
    for line in log.read_text().splitlines():
        trial, attempt, rank, step = map(int, line.split())
        if trial == number:
            found.setdefault((attempt, rank), []).append(step)
    return found


def tune(job, path, **arguments):
    return raybo.tune(job, **{"method": "random", "seed": 0, "workers": 1, "trials": 1, **arguments}, storage=path)


def groups_left(ray):
    return [each for each in ray.util.placement_group_table().values() if each["state"] != "REMOVED"]


@pytest.mark.slow
@pytest.mark.ray
def test_a_lost_rank_continues_with_the_others(ray_session, tmp_path, log):
    def happens(me, step):
        if (me.attempt, me.rank, step) == (1, 1, 4):
            os.kill(os.getpid(), signal.SIGKILL)

    trial = tune(job_of(log, happens), tmp_path / "a.db").trials[0]
    assert (trial.state, trial.attempt, trial.value) == (State.FINISHED, 2, trial.config["x"])
    steps = steps_of(log)
    assert steps[1, 1] == [1, 2, 3, 4]
    assert steps[2, 0] == steps[2, 1] == list(range(steps[2, 0][0], STEPS + 1))  # from one checkpoint
    assert steps[2, 0][0] in (4, 5)  # as far as rank 0 had come
    assert groups_left(ray_session) == []


@pytest.mark.slow
@pytest.mark.ray
def test_a_verdict_ends_all_ranks_at_one_step(ray_session, tmp_path, log):
    study = tune(job_of(log), tmp_path / "a.db", trials=6, scheduler="median", scheduler_options={"startup": 2})
    assert study.count(State.PRUNED) > 0
    assert not [again for again in replay(study) if again.differs]
    assert all(again.verdict == again.recorded for again in replay_verdicts(study))
    for trial in study.trials:
        steps = steps_of(log, trial.number)
        assert steps[1, 0] == steps[1, 1]
        if trial.state is State.FINISHED:
            assert trial.value == trial.config["x"]
            assert steps[1, 0][-1] == STEPS


@pytest.mark.slow
@pytest.mark.ray
def test_money_counts_every_process(ray_session, tmp_path, log):
    job = job_of(log, happens=lambda me, step: time.sleep(0.2))
    study = tune(job, tmp_path / "a.db", trials=2, budget=1_000, price=3_600)  # 1 a second
    assert [trial.details["processes"] for trial in study.trials] == [2, 2]
    first, second = (trial.seconds for trial in study.trials)
    assert [event.spent for event in study.events if isinstance(event, Asked)][1] >= 2 * first
    assert used(study.events, Budget(1_000, 3_600)) >= 2 * (first + second)


@pytest.mark.slow
@pytest.mark.ray
def test_a_ranks_own_exception_is_the_reason(ray_session, tmp_path, log):
    def happens(me, step):
        if me.rank == 1 and step == 2:
            raise ValueError("the data has no column b")

    trial = tune(job_of(log, happens), tmp_path / "a.db").trials[0]
    assert (trial.state, trial.attempt) == (State.FAILED, 1)
    assert trial.reason == "rank 1 of 2: ValueError: the data has no column b"
    assert "happens(me, step)" in trial.details["traceback"]
    assert groups_left(ray_session) == []


@pytest.mark.slow
@pytest.mark.ray
def test_ranks_that_report_differently_are_told(ray_session, tmp_path):
    @raybo.objective(space=SPACE, metric="loss", mode="min", processes=2, num_cpus=0.5)
    def job(config):
        for step in range(1, 4 if raybo.current_trial().rank == 0 else 3):
            yield {"loss": config["x"], "step": step + raybo.current_trial().rank * (step == 2)}

    trial = tune(job, tmp_path / "a.db").trials[0]
    assert trial.state is State.FAILED
    # whichever is noticed first: that they differ, or that one has ended
    assert "rank 1" in trial.reason
    assert "every rank must report the same steps" in trial.reason


@pytest.mark.slow
@pytest.mark.ray
def test_the_number_may_depend_on_the_configuration(ray_session, tmp_path):
    @raybo.objective(
        space={"ranks": raybo.Integer(1, 3)}, metric="ranks", processes=lambda config: config["ranks"], num_cpus=0.5
    )
    def job(config):
        return raybo.current_trial().world_size

    study = tune(job, tmp_path / "a.db", trials=4, method="sobol", workers=None)
    assert [trial.value for trial in study.trials] == [trial.config["ranks"] for trial in study.trials]
    assert len({trial.value for trial in study.trials}) > 1


@pytest.mark.slow
@pytest.mark.ray
def test_one_process_of_several_has_their_environment(ray_session, tmp_path):
    @raybo.objective(space=SPACE, metric="port", processes=lambda config: 1, num_cpus=0.5)
    def job(config):
        names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR")
        assert [os.environ[name] for name in names] == ["0", "0", "1", "1", "127.0.0.1"]
        return float(os.environ["MASTER_PORT"])

    assert tune(job, tmp_path / "a.db").trials[0].value > 0
    plain = raybo.objective(space=SPACE, metric="left")(lambda config: float("MASTER_PORT" in os.environ))
    assert tune(plain, tmp_path / "b.db").trials[0].value == 0


@pytest.mark.ray
def test_what_cannot_be_placed_is_refused(ray_session, tmp_path):
    refusal = r"a trial needs 9 processes of CPU=0.5, and the cluster has room for 8; ask for fewer"
    with pytest.raises(RayError, match=refusal):
        tune(job_of(tmp_path / "log"), tmp_path / "a.db", processes=9)
    assert not (tmp_path / "a.db").exists()


@pytest.mark.parametrize("processes", [0, 1.5, "two"])
def test_a_number_of_processes_is_whole(processes):
    with pytest.raises(ObjectiveError, match="processes must be a whole number from 1"):
        raybo.objective(space=SPACE, processes=processes)
    job = raybo.objective(space=SPACE, processes=lambda config: processes)(lambda config: 0.0)
    with pytest.raises(ObjectiveError, match="processes must be a whole number from 1"):
        job.processes_of({"x": 0.5})


def test_a_function_of_processes_that_raises_is_told():
    job = raybo.objective(space=SPACE, processes=lambda config: config["y"])(lambda config: 0.0)
    with pytest.raises(ObjectiveError, match="its number of processes cannot be computed: KeyError: 'y'"):
        job.processes_of({"x": 0.5})


def test_several_processes_need_ray(tmp_path):
    with pytest.raises(RayError, match="in_process runs each trial as one process"):
        raybo.tune(job_of(tmp_path / "log"), in_process=True)
