"""Studies on a real cluster of several hosts: nodes that come and go and are cut off, drivers that leave."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import textwrap
from pathlib import Path

import pytest

import raybo
from raybo.record.events import Kind
from raybo.record.states import State
from tests.engine import hosts
from tests.engine.hosts import HURRY, NEVER_BEGAN, RAYBO, until
from tests.journals import finished, pending

pytestmark = [
    pytest.mark.slow,
    pytest.mark.ray,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not hosts.are_possible(), reason="needs root and network namespaces"),
]

JOB = """
    import os
    import time
    import raybo

    @raybo.objective(space={"x": raybo.Float(0, 1)}, mode="min", num_cpus=1)
    def job(config, *, seconds=0.3, log="", held=""):
        while held and os.path.exists(held):
            open(f"{held}-by", "w").close()
            time.sleep(0.05)
        if log:
            with open(log, "a") as file:
                print(config["x"], file=file)
        time.sleep(seconds)
        return (config["x"] - 0.3) ** 2
"""
STEPS = """
    import time
    import raybo

    @raybo.objective(space={"x": raybo.Float(0, 1)}, mode="min", num_cpus=1, steps=9)
    def job(config, *, log):
        first = 1 if (kept := raybo.checkpoint()) is None else int((kept / "step").read_text()) + 1
        with open(log, "a") as file:
            print(raybo.current_trial().number, first, file=file)
        for step in range(first, 10):
            time.sleep(0.2)
            with raybo.saving() as directory:
                (directory / "step").write_text(str(step))
            yield (config["x"] - 0.3) ** 2 + 1 / step
"""


@pytest.fixture
def directory(tmp_path):
    (tmp_path / "job.py").write_text(textwrap.dedent(JOB))
    (tmp_path / "steps.py").write_text(textwrap.dedent(STEPS))
    return tmp_path


def command(cluster, directory, *arguments, **keywords):
    keywords = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **keywords}
    return cluster.run(*RAYBO, *map(str, arguments), cwd=directory, **keywords)


def hold(held):
    """Hold the trials that begin from now on, and wait until one does."""
    by = held.with_name("held-by")
    by.unlink(missing_ok=True)
    held.touch()
    until(by.exists, "a trial that is held")


def output(process, code=0):
    out, err = process.communicate(timeout=HURRY)
    assert process.returncode == code, out + err
    return out + err


def test_nodes_may_join_and_be_cut_off(cluster, directory):
    path, log, held = directory / "study.db", directory / "log", directory / "held"
    study = command(
        cluster, directory, "tune", "job.py", "--method", "random", "--trials", 12, "--storage", path,
        "--address", cluster.address, "--set", "seconds=0.7", "--set", f"log={log}", "--set", f"held={held}",
    )  # fmt: skip
    until(lambda: finished(path) >= 1, "the first trial")
    held.touch()  # however long the node takes to join, the study is under way
    assert pending(path) <= 1  # the head has one processor
    node = cluster.add(cpus=2)
    until(lambda: pending(path) == 3, "trials on the new node")
    cluster.cut(node)  # with two trials on it, which will never answer
    held.unlink()
    out = output(study)

    cluster.kill(node)

    trials, events = raybo.load(path).trials, raybo.load(path).events
    assert [trial.state for trial in trials] == [State.FINISHED] * 12
    retried = [event for event in events if event.kind is Kind.RETRIED]
    assert {event.data["reason"] for event in retried} <= {"its node was lost", NEVER_BEGAN}
    assert 1 <= len(retried) == sum(trial.attempt - 1 for trial in trials)
    assert sum(event.kind is Kind.TOLD for event in events) == 12  # once each
    begun = sum(event.data["reason"] == "its node was lost" for event in retried)
    assert 12 <= len(log.read_text().split()) <= 12 + len(retried)  # and nothing ran again that had finished
    assert "starts again (attempt 2)" in out
    assert 0 <= begun <= 2


def test_detached_study_outlives_driver_and_actor(cluster, directory):
    path, held = directory / "far.db", directory / "held"
    held.touch()  # however long a command takes to start, the study is under way
    on = ["--address", cluster.address]
    tune = ["tune", "job.py", "--storage", path, *on, "--set", f"held={held}", "--detach"]
    said = output(command(cluster, directory, *tune, "--trials", 25))
    assert "far is running, saved in" in said
    assert "another study is writing it" in output(command(cluster, directory, *tune, "--trials", 25), code=1)

    held.unlink()
    until(lambda: finished(path) >= 3, "results")
    hold(held)
    os.kill(json.loads(Path(f"{path}-lock").read_text())["process"], signal.SIGKILL)  # the study's own process
    held.unlink()
    follower = command(cluster, directory, "attach", "far", *on)
    until(lambda: finished(path) >= 6, "results after the study's process was killed")
    held.touch()
    os.killpg(follower.pid, signal.SIGKILL)  # a follower may be killed, too
    follower.communicate()

    log = directory / "attached"
    with log.open("w") as said_there:
        attached = command(cluster, directory, "attach", "far", *on, stdout=said_there, stderr=said_there)
    until(lambda: "/25 trials" in log.read_text(), "the study's progress")
    held.unlink()
    assert attached.wait(HURRY) == 0, log.read_text()
    out = log.read_text()
    assert re.search(r"25/25 trials.*\n", out)
    assert "recommended: trial" in out
    study = raybo.load(path)
    assert study.count(State.FINISHED) == 25
    assert "the process that ran it was interrupted" in {
        e.data["reason"] for e in study.events if e.kind is Kind.RETRIED
    }

    # its process still answers, as somebody may be about to attach
    assert "far is running, saved in" in output(command(cluster, directory, *tune, "--trials", 26))
    until(lambda: finished(path) == 26, "one trial more")


def test_detached_study_continues_trials_from_checkpoints(cluster, directory):
    path, log = directory / "steps.db", directory / "log"
    said = command(
        cluster, directory, "tune", "steps.py", "--trials", 9, "--storage", path, "--address", cluster.address,
        "--method", "random", "--scheduler", "asha", "--set", f"log={log}", "--detach",
    )  # fmt: skip
    assert "steps is running, saved in" in output(said)
    until(lambda: raybo.load(path).trials and raybo.load(path).trials[0].checkpoint, "a checkpoint")
    os.kill(json.loads(Path(f"{path}-lock").read_text())["process"], signal.SIGKILL)  # the study's own process

    output(command(cluster, directory, "attach", "steps", "--address", cluster.address))

    study = raybo.load(path)
    assert len(study.trials) == 9
    assert {trial.state for trial in study.trials} == {State.FINISHED, State.PRUNED}
    assert {trial.step for trial in study.trials if trial.state is State.FINISHED} == {9}
    begun = [tuple(map(int, line.split())) for line in log.read_text().splitlines()]
    assert 10 <= len(begun) <= 9 + 4  # the trials that the killed process had under way began again
    assert any(first > 1 for _, first in begun)  # from where they were
    assert "all are identical" in output(command(cluster, directory, "show", path, "--replay"))


def test_a_detached_study_can_be_stopped_and_continued(cluster, directory):
    path, held = directory / "long.db", directory / "held"
    tune = ["tune", "job.py", "--storage", path, "--address", cluster.address, "--set", f"held={held}"]
    output(command(cluster, directory, *tune, "--trials", 1_000, "--detach"))
    until(lambda: finished(path) >= 2, "results")
    hold(held)
    assert "Stopped; the study is in" in output(
        command(cluster, directory, "stop", "long", "--address", cluster.address)
    )
    stopped = raybo.load(path)
    assert stopped.trials[-1].reason == "stopped by the user"
    assert all(trial.state in (State.FINISHED, State.STOPPED) for trial in stopped.trials)
    held.unlink()
    gone = output(command(cluster, directory, "attach", "long", "--address", cluster.address), code=1)
    assert "no detached study named long is running on this cluster" in gone
    assert f"its journal is {path}: `raybo show long.db` shows it" in gone

    done = stopped.count(State.FINISHED) + 2
    output(command(cluster, directory, *tune, "--trials", done))
    assert raybo.load(path).count(State.FINISHED) == done


def test_ctrl_c_in_attach_leaves_the_study_running(cluster, directory):
    path = directory / "on.db"
    output(
        command(
            cluster, directory, "tune", "job.py", "--storage", path, "--trials", 1_000, "--detach",
            "--address", cluster.address,
        )
    )  # fmt: skip
    log = directory / "attached"
    with log.open("w") as said_there:
        follower = command(
            cluster, directory, "attach", "on", "--address", cluster.address, preexec_fn=_as_in_a_shell,
            stdout=said_there, stderr=said_there,
        )  # fmt: skip
    until(lambda: "/1000 trials" in log.read_text(), "the study's progress")
    os.killpg(follower.pid, signal.SIGINT)
    assert follower.wait(HURRY) == 130
    assert f"on keeps running; raybo stop on --address {cluster.address} stops it" in log.read_text()
    before = finished(path)
    until(lambda: finished(path) > before, "more results")
    output(command(cluster, directory, "stop", "on", "--address", cluster.address))


def _as_in_a_shell():
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_detached_study_needs_cluster_and_journal(directory):
    refused = subprocess.run(
        [*RAYBO, "tune", "job.py", "--detach"], cwd=directory, capture_output=True, text=True, check=False
    )
    assert refused.returncode == 1
    assert "a detached study needs a Ray that outlives this command" in refused.stderr
    from raybo.common.errors import RayError

    job = raybo.objective(space={"x": raybo.Float(0, 1)})(lambda config: config["x"])
    with pytest.raises(RayError, match="needs a permanent journal"):
        raybo.tune(job, detach=True)
