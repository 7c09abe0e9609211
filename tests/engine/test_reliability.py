"""Rows of the README's table of what a study survives that the other tests do not cover."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import raybo
from raybo.errors import JournalError
from raybo.history import State

SPACE = {"x": raybo.Float(0, 1)}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "study.db"


def test_a_trial_may_print_megabytes(ray_session, path, capfd):
    @raybo.objective(space=SPACE)
    def loud(config):
        print("x" * 3_000_000)  # noqa: T201
        print("\n" * 3_000)  # noqa: T201
        return config["x"]

    study = raybo.tune(loud, trials=4, method="random", storage=path, workers=2)
    assert study.count(State.FINISHED) == 4
    assert path.stat().st_size < 100_000
    assert len(capfd.readouterr().out) < 1_000


def test_a_trial_may_leave_processes_behind(ray_session, path, tmp_path):
    children = tmp_path / "children"

    @raybo.objective(space=SPACE)
    def forking(config):
        pid = os.fork()
        if pid == 0:
            os.execvp("sleep", ["sleep", "300"])
        with children.open("a") as file:
            file.write(f"{pid}\n")
        return config["x"]

    study = raybo.tune(forking, trials=3, method="random", storage=path, workers=1)
    for pid in children.read_text().split():
        os.kill(int(pid), 9)
    assert study.count(State.FINISHED) == 3


def test_a_study_goes_on_when_the_clock_was_set_back(ray_session, path):
    job = raybo.objective(space=SPACE)(lambda config: config["x"])
    raybo.tune(job, trials=5, method="gp-ucb", seed=1, storage=path, workers=1)
    connection = sqlite3.connect(path)
    connection.execute("UPDATE event SET at = replace(at, '20', '30')")  # written by a clock far ahead
    connection.commit()
    connection.close()
    study = raybo.tune(job, trials=9, storage=path, workers=1)
    assert study.count(State.FINISHED) == 9
    assert all(0 <= trial.seconds < 60 for trial in study.trials)
    assert study.events[0].at > study.events[-1].at  # the times tell what the clock said; the numbers tell the order
    assert [event.number for event in study.events] == list(range(1, len(study.events) + 1))


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount a small disk")
def test_a_full_disk_stops_the_study_with_one_line_and_loses_nothing_that_was_announced(ray_session, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", disk], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("no file system may be mounted here")
    try:
        job = raybo.objective(space=SPACE)(lambda config: {"value": config["x"], **{f"m{i}": i for i in range(40)}})
        announced = []
        with pytest.raises(JournalError, match=r"disk is full|disk I/O error"):
            raybo.tune(
                job, trials=2_000, method="random", seed=1, storage=disk / "s.db", workers=2, watch=announced.append
            )
        kept = raybo.load(disk / "s.db")
        assert announced[-1].finished > 5
        assert kept.count(State.FINISHED) >= announced[-1].finished
        subprocess.run(["mount", "-o", "remount,size=20m", disk], check=True)
        goal = kept.count(State.FINISHED) + 10
        study = raybo.tune(job, trials=goal, storage=disk / "s.db", workers=2)
        assert study.count(State.FINISHED) == goal
        before = {trial.number: trial.value for trial in kept.trials if trial.state is State.FINISHED}
        assert {number: study.trials[number].value for number in before} == before
    finally:
        subprocess.run(["umount", "-l", disk], check=False)


HUNGRY = """
    import json, sys, time
    import raybo

    @raybo.objective(space={"big": raybo.Categorical([True, False])})
    def hungry(config):
        hoard = []
        while config["big"]:
            hoard.append(bytearray(50_000_000))
            time.sleep(0.02)
        return 1.0

    if __name__ == "__main__":
        study = raybo.tune(hungry, trials=5, method="random", seed=3, storage=sys.argv[1], workers=1)
        told = [[trial.config["big"], str(trial.state), trial.reason, trial.attempt] for trial in study.trials]
        print(json.dumps(told))
"""


@pytest.mark.slow
def test_a_trial_that_takes_too_much_memory_fails_and_is_not_run_again(tmp_path):
    script = tmp_path / "hungry.py"
    script.write_text(textwrap.dedent(HUNGRY))
    memory = {line.split(":")[0]: int(line.split()[1]) for line in Path("/proc/meminfo").read_text().splitlines()}
    used = 1 - memory["MemAvailable"] / memory["MemTotal"]
    environment = {
        **os.environ,
        "RAY_memory_usage_threshold": f"{used + 0.1:.3f}",
        "RAY_memory_monitor_refresh_ms": "100",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    ran = subprocess.run(
        [sys.executable, script, tmp_path / "s.db"], env=environment, capture_output=True, text=True, timeout=240
    )
    assert ran.returncode == 0, ran.stderr
    trials = json.loads(ran.stdout.splitlines()[-1])
    assert {tuple(trial[:2]) for trial in trials} == {(True, "failed"), (False, "finished")}
    for big, _, reason, attempt in trials:
        assert attempt == 1
        assert bool(re.match("it was killed for want of memory", reason)) == big
