"""What a machine lacked, by the exception that says so."""

from __future__ import annotations

import errno

import numpy as np
import pytest

import raybo
from raybo.engine.trial.shortages import lacked_memory, lacked_room
from raybo.record.states import State

SPACE = raybo.Space({"x": raybo.Float(0, 1)})


class OutOfMemoryError(RuntimeError):
    """Is called as torch's."""


def too_large():
    try:
        np.empty(2**50)
    except MemoryError as error:
        return error


def after(cause):
    try:
        try:
            raise cause
        except MemoryError as error:
            raise ValueError("the batch could not be made") from error
    except ValueError as error:
        return error


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        too_large(),
        OutOfMemoryError("Tried to allocate 20.00 GiB"),
        type("Derived", (OutOfMemoryError,), {})(),
        RuntimeError("CUDA out of memory. Tried to allocate 2 GiB"),
        RuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate"),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        after(MemoryError()),
    ],
    ids=repr,
)
def test_too_little_memory_is_told(error):
    assert lacked_memory(error)
    assert lacked_room(error) is None


@pytest.mark.parametrize(
    "error", [ValueError("memory"), OSError(errno.ENOSPC, "No space left"), KeyError("out of memory"), SystemExit(1)]
)
def test_other_errors_are_not_of_memory(error):
    assert not lacked_memory(error)


def test_only_retry_oom_runs_it_again(tmp_path):
    mended = []

    @raybo.objective(space=SPACE, metric="loss", mode="min")
    def job(config):
        if not mended and config["x"] > 0.3:
            raise MemoryError("struck") if config["x"] > 0.6 else ValueError("another")
        return config["x"]

    def tune(**options):
        return raybo.tune(
            job,
            trials=8,
            method="sobol",
            seed=0,
            storage=tmp_path / "a.db",
            in_process=True,
            keep_going=True,
            **options,
        )

    study = tune()
    for trial in study.trials:
        assert (trial.state is State.FAILED) == (trial.config["x"] > 0.3)
        assert trial.out_of_memory == (trial.config["x"] > 0.6)
    lacking = next(trial for trial in study.trials if trial.out_of_memory)
    assert lacking.reason == "out of memory: MemoryError: struck"
    assert study.events[-1].kind is not None
    assert raybo.load(tmp_path / "a.db").trials[lacking.number].out_of_memory
    mended.append(True)
    assert {t.number for t in tune(retry_failed=True).trials if t.state is State.FAILED} == {
        t.number for t in study.trials if t.out_of_memory
    }
    again = tune(retry_oom=True)
    assert again.count(State.FAILED) == 0
    assert not again.trials[lacking.number].out_of_memory
