"""Trials of several processes on a real cluster of several hosts: attached, detached, submitted, and what they lose."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import raybo
from raybo.record.events import Kind
from raybo.record.states import State
from tests.engine import hosts
from tests.engine.hosts import HURRY, NEVER_BEGAN, RAYBO, until
from tests.journals import finished

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

    @raybo.objective(
        space={"x": raybo.Float(0, 1)}, metric="loss", mode="min", steps=6, processes=2, spread="strict-spread"
    )
    def gang(config, *, log="", held=""):
        import ray

        me, first = raybo.current_trial(), 1
        if (kept := raybo.checkpoint()) is not None:
            first = int((kept / str(me.rank)).read_text()) + 1
        address = ray.util.get_node_ip_address()
        for step in range(first, 7):
            if log:
                with open(log, "a") as file:
                    print(me.number, me.attempt, me.rank, step, os.getpid(), address, file=file)
            with raybo.saving() as directory:
                (directory / str(me.rank)).write_text(str(step))
            raybo.report({"loss": config["x"], "nodes": me.node_rank + me.world_size - me.local_world_size}, step=step)
            while held and step == 3 and os.path.exists(held):
                time.sleep(0.05)
"""
GROUPS = """
    import sys

    import ray

    ray.init(address=sys.argv[1], log_to_driver=False)
    print([each["name"] for each in ray.util.placement_group_table().values() if each["state"] != "REMOVED"])
"""


@pytest.fixture
def directory(tmp_path):
    (tmp_path / "job.py").write_text(textwrap.dedent(JOB))
    (tmp_path / "groups.py").write_text(textwrap.dedent(GROUPS))
    return tmp_path


class Line:
    """What one process of a trial has written at one step."""

    def __init__(self, text):
        trial, attempt, rank, step, pid, self.address = text.split()
        self.trial, self.attempt, self.rank, self.step, self.pid = map(int, (trial, attempt, rank, step, pid))


def lines(log):
    return [Line(text) for text in log.read_text().splitlines()] if log.exists() else []


def command(cluster, directory, *arguments, **keywords):
    keywords = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, **keywords}
    return cluster.run(*map(str, arguments), cwd=directory, **keywords)


def output(process, code=0):
    out, _ = process.communicate(timeout=HURRY)
    assert process.returncode == code, out
    return out


def tune(cluster, directory, path, *arguments):
    words = ["tune", "job.py", "--storage", path, "--method", "random", "--address", cluster.address]
    return command(cluster, directory, *RAYBO, *words, *arguments)


def groups(cluster, directory):
    return output(command(cluster, directory, sys.executable, "groups.py", cluster.address)).splitlines()[-1]


def retried(path):
    return [event.data["reason"] for event in raybo.load(path).events if event.kind is Kind.RETRIED]


def is_held(log):
    """True if both processes of the first trial have come to the step at which they are held."""
    return {line.rank for line in lines(log) if (line.trial, line.step) == (0, 3)} == {0, 1}


def first_step(log, attempt):
    """The step at which the first process of the first trial began."""
    return next(line.step for line in lines(log) if (line.trial, line.attempt, line.rank) == (0, attempt, 0))


def places(log, attempt):
    """The addresses of the nodes of the first trial."""
    return {line.address for line in lines(log) if (line.trial, line.attempt) == (0, attempt)}


def test_a_gang_whose_node_is_lost_continues_elsewhere(cluster, directory):
    path, log, held = directory / "study.db", directory / "log", directory / "held"
    held.touch()
    nodes = {f"10.77.0.{index + 1}": index for index in (cluster.add(cpus=1), cluster.add(cpus=1))}
    words = ["--trials", 2, "--workers", 1, "--set", f"log={log}", "--set", f"held={held}"]
    study = tune(cluster, directory, path, *words)
    until(lambda: is_held(log), "a trial that is held")
    lost = next(address for address in nodes if address in places(log, 1))
    cluster.kill(nodes[lost])
    until(lambda: any(line.attempt > 1 for line in lines(log)), "its next attempt")
    held.unlink()
    output(study)
    trial, other = raybo.load(path).trials
    assert trial.state is other.state is State.FINISHED
    assert other.attempt == 1
    reason, *rest = retried(path)
    assert re.fullmatch(r"rank [01] of 2: its node was lost", reason)
    assert {*rest} <= {NEVER_BEGAN}
    assert len(places(log, 1)) == len(places(log, trial.attempt)) == 2
    assert lost not in places(log, trial.attempt)
    assert first_step(log, trial.attempt) in (3, 4)
    assert groups(cluster, directory) == "[]"


def test_gangs_of_three_gpus_share_two_nodes(cluster, directory):
    path, log, held = directory / "study.db", directory / "log", directory / "held"
    text = (directory / "job.py").read_text()
    text = text.replace('processes=2, spread="strict-spread"', "processes=3, num_cpus=0.1, num_gpus=1")
    seen = 'os.environ["CUDA_VISIBLE_DEVICES"], me.local_rank, me.local_world_size'
    text = text.replace("os.getpid(), address, file", f"os.getpid(), address, {seen}, file")
    (directory / "job.py").write_text(text)
    held.touch()
    nodes = {f"10.77.0.{index + 1}": index for index in (cluster.add(cpus=1, gpus=4), cluster.add(cpus=1, gpus=4))}
    study = tune(cluster, directory, path, "--trials", 3, "--set", f"log={log}", "--set", f"held={held}")

    def at_held(attempt=1):
        """The processes that have come to the step at which they are held: trial, place and device."""
        found = [Rank(text) for text in log.read_text().splitlines()] if log.exists() else []
        return {(each.trial, each.address, each.device) for each in found if (each.attempt, each.step) == (attempt, 3)}

    until(lambda: len(at_held()) == 6, "two trials of three processes")
    assert len({(address, device) for _, address, device in at_held()}) == 6  # eight GPUs, and none of them for two
    assert {trial for trial, _, _ in at_held()} == {0, 1}
    cluster.kill(nodes[min(address for _, address, _ in at_held())])
    held.unlink()
    output(study)
    assert [trial.state for trial in raybo.load(path).trials] == [State.FINISHED] * 3
    lost = [reason for reason in retried(path) if reason != NEVER_BEGAN]
    assert len(lost) == 1
    assert re.fullmatch(r"rank [012] of 3: its node was lost", lost[0])
    assert groups(cluster, directory) == "[]"


class Rank(Line):
    """What one process of a trial with GPUs has written at one step."""

    def __init__(self, text):
        *line, devices, local_rank, local_count = text.split()
        super().__init__(" ".join(line))
        assert len(devices.split(",")) == int(local_count)  # of the trial, on this node
        self.device = devices.split(",")[int(local_rank)]


def test_a_detached_gang_outlives_its_studys_process(cluster, directory):
    path, log, held = directory / "far.db", directory / "log", directory / "held"
    held.touch()
    cluster.add(cpus=1)
    words = ["--trials", 2, "--workers", 1, "--detach", "--set", f"log={log}", "--set", f"held={held}"]
    assert "far is running, saved in" in output(tune(cluster, directory, path, *words))
    until(lambda: is_held(log), "a trial that is held")
    os.kill(json.loads(Path(f"{path}-lock").read_text())["process"], signal.SIGKILL)  # the study's own process
    until(lambda: any(line.attempt == 2 for line in lines(log)), "its second attempt")
    held.unlink()
    until(lambda: finished(path) == 2, "both trials")
    assert retried(path) == ["the process that ran it was interrupted"]
    assert [trial.attempt for trial in raybo.load(path).trials] == [2, 1]
    assert first_step(log, attempt=2) in (3, 4)  # from the checkpoint
    until(lambda: groups(cluster, directory) == "[]", "its resources")


def test_a_detached_gang_can_be_stopped(cluster, directory):
    path, log, held = directory / "long.db", directory / "log", directory / "held"
    held.touch()
    cluster.add(cpus=1)
    words = ["--trials", 2, "--workers", 1, "--detach", "--set", f"log={log}", "--set", f"held={held}"]
    assert "long is running, saved in" in output(tune(cluster, directory, path, *words))
    until(lambda: is_held(log), "a trial that is held")
    on = ["--address", cluster.address]
    assert "Stopped; the study is in" in output(command(cluster, directory, *RAYBO, "stop", "long", *on))
    assert [trial.state for trial in raybo.load(path).trials] == [State.STOPPED]
    assert groups(cluster, directory) == "[]"


def test_a_study_of_gangs_continues_after_its_command(cluster, directory):
    path, log, held = directory / "study.db", directory / "log", directory / "held"
    held.touch()
    cluster.add(cpus=1)
    words = ["--trials", 2, "--workers", 1, "--set", f"log={log}", "--set", f"held={held}"]
    study = tune(cluster, directory, path, *words)
    until(lambda: is_held(log), "a trial that is held")
    os.killpg(study.pid, signal.SIGKILL)
    study.communicate()
    held.unlink()
    assert "trial 0 starts again (attempt 2): the process that ran it was interrupted" in output(
        tune(cluster, directory, path, *words)
    )
    assert [(trial.state, trial.attempt) for trial in raybo.load(path).trials] == [
        (State.FINISHED, 2), (State.FINISHED, 1)
    ]  # fmt: skip
    assert first_step(log, attempt=2) in (3, 4)
    assert groups(cluster, directory) == "[]"


def test_gangs_are_submitted_as_a_job(directory):
    (directory / "job.py").write_text(textwrap.dedent(JOB).replace("strict-spread", "spread"))
    there, here, log = directory / "there.db", directory / "here.db", directory / "log"
    with hosts.LocalHead(cpus=2) as head:
        words = ["--address", head.dashboard, "--trials", 2, "--storage", there, "-o", here, "--set", f"log={log}"]
        out = output(command(head, directory, *RAYBO, "submit", "job.py", *words))
        assert groups(head, directory) == "[]"
    assert "2/2 trials" in out
    assert raybo.load(here).events == raybo.load(there).events
    assert finished(here) == 2
    assert {(line.trial, line.rank) for line in lines(log)} == {(0, 0), (0, 1), (1, 0), (1, 1)}
