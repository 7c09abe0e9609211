"""Several metrics and a constraint on a real Ray: a job that reports, tuned from the command line and shown."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import raybo
from raybo.record.states import State
from raybo.study.replay import replay

pytestmark = [pytest.mark.slow, pytest.mark.ray]

JOB = """
import raybo


@raybo.objective(space={"x": raybo.Float(0, 1), "y": raybo.Float(0, 1)}, steps=3,
                 metrics={"accuracy": "max", "seconds": "min"}, constraints={"megabytes": "<= 80 at every step"})
def job(config):
    for step in range(1, 4):
        accuracy = (1.0 - (config["x"] - 0.5) ** 2 - 0.5 * config["y"]) * step / 3
        yield {"accuracy": accuracy, "seconds": step * (1.2 - config["y"]), "megabytes": 120.0 * config["x"]}
"""


def test_several_metrics_with_a_constraint_are_tuned(tmp_path):
    Path(tmp_path, "job.py").write_text(JOB)

    def command(*arguments):
        line = [sys.executable, "-m", "raybo.cli", *arguments]
        return subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=True).stdout

    tune = ("tune", "job.py", "--trials", "16", "--workers", "2", "--seed", "0", "--storage", "study.db")
    assert "front" in command(*tune)
    study = raybo.load(tmp_path / "study.db")
    assert study.count(State.FINISHED, State.PRUNED) == len(study.trials) == 16
    for trial in study.trials:
        assert (trial.state is State.PRUNED) is (trial.config["x"] > 80 / 120)
        assert trial.step == (1 if trial.state is State.PRUNED else 3)
        assert set(trial.values) == ({"accuracy", "seconds", "megabytes"} if trial.state is State.FINISHED else set())
    assert len(study.front) > 1
    assert not [again for again in replay(study) if again.differs]
    shown = command("show", "study.db")
    for word in ("accuracy", "seconds", "hypervolume"):
        assert word in shown
    ended = next(trial for trial in study.trials if trial.state is State.PRUNED)
    told = " ".join(command("show", "study.db", "--trial", str(ended.number)).split())
    assert "breaks megabytes <= 80 at every step" in told
