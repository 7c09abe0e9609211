"""Rows of the table in docs/reliability.md of what a study survives that the other tests do not cover."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import raybo
from raybo import journal
from raybo.common.errors import JournalError
from raybo.journal import Journal
from raybo.record.description import Description
from raybo.record.events import Planned
from raybo.record.goals import Goals
from raybo.record.states import State

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


def test_killed_worker_is_noticed_though_its_children_live(ray_session, path, tmp_path):
    """Ray learns of a worker's death from its sockets, which every process that it forks holds open, too."""
    children = tmp_path / "children"

    @raybo.objective(space=SPACE)
    def forking(config):
        if not children.exists():
            signal.signal(signal.SIGTERM, signal.SIG_IGN)  # which Ray sends to what a lost worker leaves behind
            pid = os.fork()
            if pid == 0:
                os.setsid()  # Ray may end the whole group of a worker that was lost
                time.sleep(300)
                os._exit(0)
            children.write_text(str(pid))
            os.kill(os.getpid(), signal.SIGKILL)
        return config["x"]

    try:
        study = raybo.tune(forking, trials=2, method="random", storage=path, workers=1)
        os.kill(int(children.read_text()), 0)  # it lives still
    finally:
        os.kill(int(children.read_text()), signal.SIGKILL)
    assert [(trial.state, trial.attempt) for trial in study.trials] == [(State.FINISHED, 2), (State.FINISHED, 1)]


def test_trial_may_use_a_process_pool(ray_session, path):
    @raybo.objective(space=SPACE)
    def pooled(config):
        with multiprocessing.get_context("fork").Pool(2) as pool:
            return sum(pool.map(abs, [config["x"], -1]))

    study = raybo.tune(pooled, trials=3, method="random", storage=path, workers=2)
    assert [trial.value for trial in study.trials] == [trial.config["x"] + 1 for trial in study.trials]


def test_reader_may_open_while_the_writer_closes(path):
    """The last to close a journal removes its log."""
    description = Description("job", Goals(("value",), ("max",)), raybo.Space(SPACE), "random", 0)
    Journal(path, description).close()

    def write():
        for number in range(1, 101):
            with contextlib.closing(Journal(path, description)) as writer:
                writer.append([Planned(trials=number, number=number)])

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        seen = [0]
        while not writing.done():
            seen.append(len(journal.read(path)[1]))
        writing.result()
    assert seen == sorted(seen)
    assert len(journal.read(path)[1]) == 100


@pytest.mark.slow
def test_study_continues_after_the_clock_is_set_back(ray_session, path):
    job = raybo.objective(space=SPACE)(lambda config: config["x"])
    raybo.tune(job, trials=5, method="gp-ucb", seed=1, storage=path, workers=1)
    description, events = journal.read(path)
    path.unlink()
    with contextlib.closing(Journal(path, description)) as written:  # by a clock far ahead
        written.extend([dataclasses.replace(event, at=event.at.replace("20", "30", 1)) for event in events])
    study = raybo.tune(job, trials=9, storage=path, workers=1)
    assert study.count(State.FINISHED) == 9
    assert all(0 <= trial.seconds < 60 for trial in study.trials)
    assert study.events[0].at > study.events[-1].at  # times are the clock's; numbers give the order
    assert [event.number for event in study.events] == list(range(1, len(study.events) + 1))


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount a small disk")
def test_full_disk_stops_the_study_without_a_loss(ray_session, tmp_path):
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
        told = [[trial.config["big"], str(trial.state), trial.reason] for trial in study.trials]
        again = [event.data["reason"] for event in study.events if event.kind.value == "retried"]
        print(json.dumps([told, again]))
"""


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.timeout(900)
def test_trial_out_of_memory_fails_once(tmp_path):
    script = tmp_path / "hungry.py"
    script.write_text(textwrap.dedent(HUNGRY))
    memory = {line.split(":")[0]: int(line.split()[1]) for line in Path("/proc/meminfo").read_text().splitlines()}
    # in kB: what other programs begin to use meanwhile, a browser say, shall not be taken for the trial's
    room = max(0.1 * memory["MemTotal"], min(3e6, memory["MemAvailable"] / 2))
    used = memory["MemTotal"] - memory["MemAvailable"]
    environment = {
        **os.environ,
        "RAY_memory_usage_threshold": f"{(used + room) / memory['MemTotal']:.3f}",
        "RAY_memory_monitor_refresh_ms": "100",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    ran = subprocess.run(
        [sys.executable, script, tmp_path / "s.db"], env=environment, capture_output=True, text=True, timeout=800
    )
    assert ran.returncode == 0, ran.stderr
    trials, again = json.loads(ran.stdout.splitlines()[-1])
    assert {tuple(trial[:2]) for trial in trials} == {(True, "failed"), (False, "finished")}
    for big, _, reason in trials:
        assert bool(re.match("out of memory: Ray killed its worker", reason)) == big
    # where other programs fill the memory meanwhile, Ray may kill the study's own process as well
    assert set(again) <= {"the process that ran it was interrupted"}


HELD = """
    import os
    import time
    import raybo

    GATE = __file__ + ".gate"  # its size is how many trials may end: the study is under way for as long as a test needs

    @raybo.objective(space={"x": raybo.Float(0, 1)})
    def job(config):
        time.sleep(0.1)
        while raybo.current_trial().number >= os.path.getsize(GATE):
            time.sleep(0.02)
        return config["x"]
"""
HURRY = 240.0  # seconds after which something that should have happened has not


def let_end(directory, trials):
    """Let so many of the job's trials end."""
    (directory / "job.py.gate").write_bytes(bytes(trials))


@pytest.fixture
def command(tmp_path):
    """Starts `raybo tune` of a job, in a session of its own."""
    (tmp_path / "job.py").write_text(textwrap.dedent(HELD))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    started = []

    def start(trials):
        arguments = ["job.py", "--trials", str(trials), "--method", "random", "--workers", "2", "--seed", "1"]
        started.append(
            subprocess.Popen(
                [sys.executable, "-m", "raybo.cli", "tune", *arguments],
                cwd=tmp_path,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
        )
        return started[-1]

    yield start
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def until_finished(path, count):
    give_up = time.monotonic() + HURRY
    while not (journal.exists(path) and raybo.load(path).count(State.FINISHED) >= count):
        assert time.monotonic() < give_up, f"{count} trials have not finished"
        time.sleep(0.1)


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.timeout(900)
def test_terminated_command_is_continued_by_itself(command, tmp_path):
    path, kept = tmp_path / "job.db", {}
    for how, count in ((signal.SIGTERM, 3), (signal.SIGHUP, 6)):
        let_end(tmp_path, count + 2)  # as many as two workers run may be stopped, and others take their numbers
        process = command(12)
        until_finished(path, count)
        os.killpg(process.pid, how)
        _, err = process.communicate(timeout=HURRY)
        assert (process.returncode, err) == (-how, "")  # at once, and without the stack that Ray would print
        kept |= {trial.number: trial for trial in raybo.load(path).trials if trial.state is State.FINISHED}
    let_end(tmp_path, 100)
    out, err = command(12).communicate(timeout=HURRY)
    assert "12/12 trials" in out, err
    trials = raybo.load(path).trials
    assert [trial.state for trial in trials if trial.state is not State.STOPPED] == [State.FINISHED] * 12
    assert {number: repr(trials[number]) for number in kept} == {n: repr(trial) for n, trial in kept.items()}


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.timeout(900)
def test_second_command_is_refused_and_names_the_first(command, tmp_path):
    let_end(tmp_path, 4)
    first = command(20)
    until_finished(tmp_path / "job.db", 1)
    out, err = (second := command(20)).communicate(timeout=HURRY)
    assert second.returncode == 1
    assert re.search(rf"^Error: .*job\.db: another study is writing it \(process {first.pid} on .*\); wait for it", err)
    assert err.count("\n") == 1
    let_end(tmp_path, 20)
    out, err = first.communicate(timeout=HURRY)
    assert (first.returncode, err) == (0, "")
    assert "20/20 trials" in out
