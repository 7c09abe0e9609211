"""A node that is to go is announced to its trials, whose loss with it is not counted."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap

import pytest

STUDY = """
    import json, subprocess, sys, threading, time
    from pathlib import Path

    import ray
    from ray.cluster_utils import Cluster

    import raybo

    here, processes = Path(sys.argv[1]), int(sys.argv[2])

    @raybo.objective(space={"x": raybo.Float(0, 1)}, metric="loss", mode="min", num_cpus=0.5, processes=processes)
    def job(config):
        me, first = raybo.current_trial(), 1
        if (kept := raybo.checkpoint()) is not None:
            first = int((kept / "step").read_text()) + 1
        for step in range(first, 2000):
            is_leaving = me.is_leaving
            if is_leaving and me.rank == 0:
                with raybo.saving() as directory:
                    (directory / "step").write_text(str(step))
            raybo.report({"loss": config["x"], "first": first}, step=step)
            (here / f"begun-{me.attempt}").write_text(ray.get_runtime_context().get_node_id())
            if is_leaving and me.rank == 0:
                (here / "saved").write_text(str(step))
            if me.attempt == 2:
                return
            time.sleep(0.1)

    def awaited(name):
        while not (here / name).exists():
            time.sleep(0.1)

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]

    def preempt():
        awaited("begun-1")
        time.sleep(0.5)
        node = next(node for node in nodes if node.node_id == (here / "begun-1").read_text())
        told = ["--reason", "DRAIN_NODE_REASON_PREEMPTION", "--reason-message", "spot"]
        words = ["drain-node", "--address", cluster.address, "--node-id", node.node_id, *told]
        command = [sys.executable, "-m", "ray.scripts.scripts", *words, "--deadline-remaining-seconds", "600"]
        subprocess.run(command, check=True)
        awaited("saved")
        time.sleep(5)
        cluster.remove_node(node, allow_graceful=False)

    threading.Thread(target=preempt, daemon=True).start()
    study = raybo.tune(
        job, trials=1, workers=1, retries=0, method="random", seed=0, storage=here / "a.db", address=cluster.address
    )
    trial = study.trials[0]
    reasons = [event.reason for event in study.events if str(event.kind) == "retried"]
    print(json.dumps([str(trial.state), trial.attempt, trial.reason, reasons, trial.details["metrics"]["first"]]))
    cluster.shutdown()
"""


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize("processes", [1, 2])
def test_a_preempted_trial_goes_on_elsewhere(tmp_path, processes):
    (tmp_path / "study.py").write_text(textwrap.dedent(STUDY))
    words = [sys.executable, str(tmp_path / "study.py"), str(tmp_path), str(processes)]
    run = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    state, attempt, _, reasons, first = json.loads(run.stdout.strip().splitlines()[-1])
    assert (state, attempt, reasons) == ("finished", 2, ["its node was preempted"])
    assert first > 1  # from the checkpoint that it saved when it heard
