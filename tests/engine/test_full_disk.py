"""A trial that a full disk has ended runs again, like one that lost its worker: it is no failure of the job."""

from __future__ import annotations

import errno
import os

import pytest

import raybo
from raybo.engine.lifecycle import Occurrence
from raybo.engine.trial import checkpoints
from raybo.engine.trial.checkpoints import Checkpoints
from raybo.engine.trial.report_sender import Answer, AttemptInfo, ReportSender
from raybo.engine.trial.task import run_trial
from raybo.record.states import State

SPACE = {"x": raybo.Float(0, 1)}


def no_room(*_args):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def saving(config):
    for step in range(1, 4):
        with raybo.saving() as directory:
            (directory / "step").write_text(str(step))
        yield {"loss": step}


def run(job, place):
    def make_sender(*reading):
        return ReportSender(AttemptInfo(), lambda batch: Answer(), Checkpoints(place, 1, None), *reading)

    return run_trial(job, {"x": 1}, {}, "loss", 1, make_sender=make_sender)


@pytest.mark.parametrize("call", ["fsync", "rename"])
def test_no_room_for_a_checkpoint_is_a_lost_attempt(tmp_path, monkeypatch, call):
    with monkeypatch.context() as patch:
        patch.setattr(checkpoints.os, call, no_room)
        occurrence, data = run(saving, tmp_path)
    assert occurrence is Occurrence.WORKER_LOST
    assert "No space left on device" in data["reason"]
    assert "--retry-failed" in data["reason"]
    assert run(saving, tmp_path)[0] is Occurrence.RETURNED


def wraps(error):
    try:
        raise error
    except OSError as found:
        raise RuntimeError("the model was not saved") from found


@pytest.mark.parametrize(
    ("raises", "occurrence"),
    [
        (lambda: wraps(OSError(errno.ENOSPC, "full")), Occurrence.WORKER_LOST),
        (lambda: wraps(OSError(errno.EDQUOT, "over quota")), Occurrence.WORKER_LOST),
        (lambda: wraps(OSError(errno.EACCES, "not yours")), Occurrence.RAISED),
    ],
)
def test_only_a_lack_of_room_is_the_disks_fault(tmp_path, raises, occurrence):
    assert run(lambda config: raises(), tmp_path)[0] is occurrence


def check_that_it_runs_again(tmp_path, **how):
    path, room = tmp_path / "study.db", tmp_path / "room"

    @raybo.objective(space=SPACE, steps=1)
    def job(config):
        with raybo.saving():
            if not room.exists() and (raybo.current_trial().number, raybo.current_trial().attempt) != (0, 2):
                raise OSError(errno.ENOSPC, "No space left on device")
        yield config["x"]

    study = raybo.tune(job, trials=2, method="random", storage=path, retries=1, **how)
    assert [(trial.state, trial.attempt) for trial in study.trials] == [(State.FINISHED, 2), (State.LOST, 2)]
    assert study.trials[1].reason.endswith("make room on the disk; --retry-failed runs again what is lost by then")
    room.touch()
    study = raybo.tune(job, trials=2, method="random", storage=path, retry_failed=True, **how)
    assert [(trial.state, trial.attempt) for trial in study.trials] == [(State.FINISHED, 2), (State.FINISHED, 3)]


@pytest.mark.slow
def test_trial_runs_again_when_there_is_room(ray_session, tmp_path):
    check_that_it_runs_again(tmp_path, workers=1)


def test_trial_in_this_process_runs_again_when_there_is_room(tmp_path):
    check_that_it_runs_again(tmp_path, in_process=True)
