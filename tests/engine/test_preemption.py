"""A node that is to go is announced to its trials, whose loss with it is not counted."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap

import pytest

import raybo
from raybo.engine.ray import draining
from raybo.record.events import Kind
from raybo.record.states import State
from tests.engine import hosts
from tests.engine.hosts import HURRY, NEVER_BEGAN, until

JOB = """
    import os
    import time

    import raybo

    @raybo.objective(space={"x": raybo.Float(0, 1)}, metric="loss", mode="min", num_cpus=0.5, resources={"spot": 0.5})
    def job(config, *, log):
        import ray

        me, first = raybo.current_trial(), 1
        if (kept := raybo.checkpoint()) is not None:
            first = int((kept / "step").read_text()) + 1
        has_saved = False
        for step in range(first, 3000):
            if me.rank == 0 and me.is_leaving and not has_saved:
                with raybo.saving() as directory:
                    (directory / "step").write_text(str(step))
                has_saved = True
            raybo.report({"loss": config["x"]}, step=step)
            with open(log, "a") as file:
                print(me.attempt, me.rank, first, int(has_saved), ray.util.get_node_ip_address(), file=file)
            if me.attempt > 1:
                return
            time.sleep(0.1)
"""
NODES = "import ray, sys; ray.init(sys.argv[1]); print([(n['NodeID'], n['NodeManagerAddress']) for n in ray.nodes()])"


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.timeout(600)
@pytest.mark.skipif(not hosts.are_possible(), reason="needs root and network namespaces")
@pytest.mark.parametrize("processes", [1, 2])
def test_a_preempted_trial_continues_elsewhere(tmp_path, processes):
    (tmp_path / "job.py").write_text(textwrap.dedent(JOB))
    log, said, path = tmp_path / "log", tmp_path / "said", tmp_path / "a.db"

    def lines():
        return [line.split() for line in log.read_text().splitlines() if line.count(" ") == 4] if log.exists() else []

    with said.open("w") as told, hosts.Hosts(head_cpus=1) as cluster:

        def command(*words, out=subprocess.PIPE):
            return cluster.run(*map(str, words), cwd=tmp_path, stdout=out, stderr=subprocess.STDOUT)

        def output(process):
            out, _ = process.communicate(timeout=HURRY)
            assert process.returncode == 0, out
            return out

        nodes = {f"10.77.0.{index + 1}": index for index in (cluster.add(2, spot=1), cluster.add(2, spot=1))}
        study = command(
            sys.executable, "-m", "raybo.cli", "tune", "job.py", "--trials", 1, "--workers", 1, "--retries", 0,
            "--method", "random", "--storage", path, "--processes", processes, "--address", cluster.address,
            "--set", f"log={log}", out=told,
        )  # fmt: skip
        until(lines, "the trial")
        (address,) = {line[4] for line in lines()}
        known = re.findall(r"\('(\w+)', '([\d.]+)'\)", output(command(sys.executable, "-c", NODES, cluster.address)))
        node = next(name for name, where in known if where == address)
        reason = ["--reason", "DRAIN_NODE_REASON_PREEMPTION", "--reason-message", "spot"]
        words = ["drain-node", "--address", cluster.address, "--node-id", node, *reason]
        output(command(*hosts.RAY, *words, "--deadline-remaining-seconds", 600))
        until(lambda: any(line[3] == "1" for line in lines()), "a checkpoint")
        until(lambda: "trial 0: its node is about to be removed" in said.read_text(), "the study to hear of it")
        cluster.kill(nodes[address])
        assert study.wait(HURRY) == 0, said.read_text()

    study = raybo.load(path)
    (trial,) = study.trials
    assert trial.state is State.FINISHED
    preempted, *lost = [event.data for event in study.events if event.kind is Kind.RETRIED]
    assert preempted["reason"] == "its node was preempted"
    assert {data["reason"] for data in lost} <= {NEVER_BEGAN}
    assert all(data["losses"] == 0 for data in (preempted, *lost))
    again = [line for line in lines() if int(line[0]) > 1]
    assert {int(line[0]) for line in again} == {trial.attempt}
    assert {line[1] for line in again} == {str(rank) for rank in range(processes)}
    assert all(int(line[2]) > 1 and line[4] != address for line in again)  # from what it saved when it heard


def test_no_node_is_leaving_without_ray(monkeypatch):
    monkeypatch.setattr(draining, "draining_nodes", lambda: {"a"})
    assert draining.is_any_draining(["b", "a"])
    assert not draining.is_any_draining(["b"])
    assert raybo.CurrentTrial(0, 1, 0, {}, "").is_leaving is False
