"""Jobs on a real cluster of several hosts: nodes that come and go while a submitted study runs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import yaml

import raybo
from raybo.record.events import Kind
from raybo.record.states import State
from tests.engine import hosts
from tests.engine.hosts import HURRY, until
from tests.journals import finished

ROOT = Path(raybo.__file__).parents[1]

JOB = """
    import os
    import time
    import raybo

    @raybo.objective(space={"x": raybo.Float(0, 1)}, mode="min", num_cpus=1)
    def job(config, *, seconds=0.3, log="", held=""):
        if log:
            with open(log, "a") as file:
                print(config["x"], file=file)
        time.sleep(seconds)
        while held and os.path.exists(held):
            time.sleep(0.05)
        return (config["x"] - 0.3) ** 2
"""


# ---- cluster.yaml


def checked(config):
    """The configuration as Ray's launcher fills it in, after it has passed its schema."""
    from ray.autoscaler._private.util import prepare_config, validate_config

    filled = prepare_config(config)
    validate_config(filled)
    return filled


def test_rays_launcher_takes_the_cluster_file():
    text = (ROOT / "cluster.yaml").read_text(encoding="utf-8")
    config = yaml.safe_load(text)
    filled = checked(config)
    types = filled["available_node_types"]
    assert set(types) == {"head", "worker"}
    assert filled["head_node_type"] == "head"
    assert 1 <= types["worker"]["min_workers"] <= types["worker"]["max_workers"] <= filled["max_workers"]
    for place in ("head_start_ray_commands", "worker_start_ray_commands"):
        assert "RAY_AUTH_MODE=token" in filled[place][-1]
        assert "RAY_worker_cap_enabled=false" in filled[place][-1]
        assert ("--head" in filled[place][-1]) == (place == "head_start_ray_commands")
    assert "~/.ray/auth_token" in filled["file_mounts"].values()
    assert any("pip install" in command and "cluster" in command for command in filled["setup_commands"])
    assert all(key in text for key in filled["provider"] if key != "availability_zone")


def test_rays_launcher_accepts_the_cluster_file():
    text = (ROOT / "cluster.yaml").read_text(encoding="utf-8")
    shown = text[text.index("# provider:\n#     type: local") :]
    own = yaml.safe_load(re.sub(r"^# ?", "", shown, flags=re.MULTILINE))
    assert set(own) == {"provider", "auth"}
    config = yaml.safe_load(text)
    keys = list(config)
    for key in keys[keys.index("max_workers") : keys.index("head_node_type") + 1]:
        del config[key]
    filled = checked({**config, **own})
    assert filled["provider"]["type"] == "local"
    assert filled["max_workers"] == len(own["provider"]["worker_ips"])


def test_cluster_file_names_the_installed_ray():
    import ray

    text = (ROOT / "cluster.yaml").read_text(encoding="utf-8")
    named = set(re.findall(r"(?:ray:|==)(\d+\.\d+)\.\d+", text))
    assert len(named) == 1
    if named != {".".join(ray.__version__.split(".")[:2])}:
        pytest.skip(f"cluster.yaml is for Ray {named.pop()}, and {ray.__version__} is installed")


# ---- several hosts


@pytest.fixture
def cluster():
    with hosts.Hosts(head_cpus=1, dashboard=True) as found:
        yield found


@pytest.fixture
def directory(tmp_path):
    (tmp_path / "job.py").write_text(textwrap.dedent(JOB))
    return tmp_path


def raybo_there(cluster, directory, *arguments, stderr=subprocess.STDOUT):
    command = [sys.executable, "-m", "raybo.cli", *map(str, arguments), "--address", cluster.dashboard]
    return cluster.run(*command, cwd=directory, stdout=subprocess.PIPE, stderr=stderr)


def output(process, code=0):
    out, _ = process.communicate(timeout=HURRY)
    assert process.returncode == code, out
    return out


def begun(log):
    return len(log.read_text().split()) if log.exists() else 0


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.timeout(900)
@pytest.mark.skipif(not hosts.are_possible(), reason="needs root and network namespaces")
def test_submitted_study_survives_the_loss_of_a_node(cluster, directory):
    there, here, log = directory / "there" / "study.db", directory / "here.db", directory / "log"
    held = directory / "held"
    study = raybo_there(
        cluster, directory, "submit", "job.py", "--method", "random", "--trials", 12, "--storage", there,
        "-o", here, "--set", "seconds=1", "--set", f"log={log}", "--set", f"held={held}",
    )  # fmt: skip
    until(lambda: finished(there) >= 1, "the first trial")
    held.touch()  # however long the node takes to join, the study is under way
    node = cluster.add(cpus=2)
    # the head has one processor, so of three that have begun and not ended the new node runs two
    until(lambda: begun(log) - finished(there) >= 3, "trials on the new node")
    cluster.kill(node)
    held.unlink()
    out = output(study)

    assert "12/12 trials" in out
    assert "recommended: trial" in out
    assert "starts again (attempt 2)" in out
    assert f"{here} is up to date with study-" in out
    assert raybo.load(here).events == raybo.load(there).events
    trials, events = raybo.load(here).trials, raybo.load(here).events
    assert [trial.state for trial in trials] == [State.FINISHED] * 12
    assert sum(event.kind is Kind.TOLD for event in events) == 12  # once each
    retried = [event for event in events if event.kind is Kind.RETRIED]
    assert 1 <= len(retried) <= 4
    assert 12 <= begun(log) <= 12 + len(retried)  # and nothing ran again that had finished

    listed = output(raybo_there(cluster, directory, "jobs"))
    (name,) = re.findall(r"study-\w+", listed)
    assert f"{here} is up to date with {name}: 0 new events" in output(
        raybo_there(cluster, directory, "fetch", name, "-o", here)
    )


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.timeout(900)
@pytest.mark.skipif(not hosts.are_possible(), reason="needs root and network namespaces")
def test_scripts_submit_and_fetch_by_json(cluster, directory):
    there, here = directory / "there" / "study.db", directory / "here.db"

    def asked(*arguments):
        return json.loads(output(raybo_there(cluster, directory, *arguments, "--json", stderr=subprocess.DEVNULL)))

    job = asked("submit", "job.py", "--method", "random", "--trials", 3, "--storage", there, "-o", here)
    assert job.keys() == {"name", "state", "exit_code", "began", "target", "storage", "message"}
    assert job["storage"] == str(there)
    assert not here.exists()  # it does not wait for the study
    until(lambda: asked("jobs")[0]["state"] not in ("PENDING", "RUNNING"), "the end of the job")
    (ended,) = asked("jobs")
    assert (ended["name"], ended["state"], ended["exit_code"]) == (job["name"], "SUCCEEDED", 0)
    events = raybo.load(there).events
    brought = asked("fetch", job["name"], "-o", here)
    assert brought == {"path": str(here), "events": len(events), "added": len(events), "ahead": 0}
    assert raybo.load(here).events == events
    assert asked("fetch", job["name"], "-o", here) == {**brought, "added": 0}
