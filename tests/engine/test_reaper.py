"""Processes and files of a local Ray are ended and removed once its command is gone, and nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from raybo.engine.reaper import end_processes, processes_in
from raybo.engine.temporary_directories import LOCK, remove_leftovers
from tests.processes import is_alive

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")


@pytest.fixture
def started():
    """Starts a process that is called as one of Ray's is, or otherwise, with its output in a file."""
    processes = []

    def start(path, name="ray::DashboardAgent"):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w") as file:
            processes.append(subprocess.Popen([name, "60"], executable="/bin/sleep", stdout=file))
        while not Path(f"/proc/{processes[-1].pid}/cmdline").read_bytes().startswith(name.encode()):
            time.sleep(0.01)
        return processes[-1]

    yield start
    for process in processes:
        process.kill()
        process.wait()


def test_only_rays_processes_of_a_directory_are_ended(tmp_path, started):
    ours, other = tmp_path / "raybo-1-abcdefgh", tmp_path / "raybo-1-abcdefgh2"
    agent, users = started(ours / "ray" / "log"), started(ours / "ray" / "log2", "sleep")
    elsewhere = started(other / "ray" / "log")
    assert processes_in(str(ours)) == [agent.pid]
    assert sorted(processes_in(str(ours), only_rays=False)) == sorted([agent.pid, users.pid])
    assert end_processes(str(ours), 10.0) or agent.wait() == -signal.SIGKILL  # until it is waited for, it is a zombie
    assert agent.wait() == -signal.SIGKILL
    assert (users.poll(), elsewhere.poll()) == (None, None)


def test_next_study_ends_the_agents_of_a_killed_one(tmp_path, started):
    directory = tmp_path / "raybo-1-abcdefgh"
    agent = started(directory / "ray" / "session_1" / "logs" / "agent.log")
    (directory / LOCK).touch()
    remove_leftovers(str(tmp_path))
    assert agent.wait() == -signal.SIGKILL
    assert not directory.exists()


def test_trials_that_look_for_leftovers_end_neither_themselves_nor_each_other(tmp_path, started):
    """They are Ray's processes too, and have the lock of a dead attempt's directory open meanwhile."""
    directory = tmp_path / "raybo-1-abcdefgh"
    other = started(directory / LOCK)
    code = f"from raybo.engine.temporary_directories import remove_leftovers; remove_leftovers({str(tmp_path)!r})"
    trial = subprocess.run(["ray::trial", "-c", code], executable=sys.executable, timeout=60, check=False)
    assert trial.returncode == 0
    assert other.poll() is None
    assert not directory.exists()


def test_a_command_that_is_called_like_rays_does_not_end_itself(tmp_path):
    (script := tmp_path / "ray" / "job.py").parent.mkdir()
    (directory := tmp_path / "raybo-1-abcdefgh").mkdir()
    script.write_text(
        "import sys\n"
        "from raybo.engine.reaper import end_processes, processes_in\n"
        "with open(sys.argv[1] + '/log', 'w'):\n"
        "    assert processes_in(sys.argv[1])\n"
        "    end_processes(sys.argv[1], 1.0)\n"
    )
    subprocess.run([sys.executable, script, directory], check=True, timeout=60)


COMMAND = """
import os, signal, subprocess, sys, time
from pathlib import Path
from raybo.engine.reaper import reaped

directory = Path(sys.argv[1])
with reaped(directory):
    with (directory / "log").open("w") as log:
        agent = subprocess.Popen(["ray::DashboardAgent", "60"], executable="/bin/sleep", stdout=log)
    time.sleep(0.5)  # so that it is called as it is meant to be
    print(agent.pid, flush=True)
    if sys.argv[2:]:
        os.kill(os.getpid(), getattr(signal, sys.argv[2]))
        time.sleep(60)
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", ["SIGKILL", "SIGTERM", "SIGHUP", None])
def test_no_process_or_directory_outlives_a_command(tmp_path, how):
    directory = tmp_path / "raybo-1-abcdefgh"
    directory.mkdir()
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    arguments = [str(directory), *([] if how is None else [how])]
    ran = subprocess.run(
        [sys.executable, "-c", COMMAND, *arguments], env=environment, capture_output=True, text=True, timeout=60
    )
    assert ran.returncode == (0 if how is None else -getattr(signal, how)), ran.stderr
    give_up = time.monotonic() + 30
    while is_alive(int(ran.stdout)) or (how is not None and directory.exists()):
        assert time.monotonic() < give_up
        time.sleep(0.05)
