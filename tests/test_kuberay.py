"""The Kubernetes manifest: what Ray's own autoscaler makes of the cluster, and fields that KubeRay's types have."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
import yaml

import raybo
from raybo.cli.tuning import tune

ROOT = Path(__file__).parents[1]
# of RayClusterSpec, HeadGroupSpec, WorkerGroupSpec and RayJobSpec in KubeRay's ray-operator/apis/ray/v1
CLUSTER = {"rayVersion", "enableInTreeAutoscaling", "autoscalerOptions", "headGroupSpec", "workerGroupSpecs"}
HEAD = {"rayStartParams", "template"}
WORKERS = {"groupName", "replicas", "minReplicas", "maxReplicas", "rayStartParams", "template"}
JOB = {"clusterSelector", "entrypoint", "backoffLimit", "submissionMode", "submitterPodTemplate"}


@pytest.fixture(scope="module")
def documents():
    found = list(yaml.safe_load_all((ROOT / "kuberay.yaml").read_text(encoding="utf-8")))
    return {document["kind"]: document for document in found}


def test_rays_autoscaler_takes_the_cluster(documents):
    from ray.autoscaler._private.kuberay import autoscaling_config

    cluster = documents["RayCluster"]
    derive = autoscaling_config._derive_autoscaling_config_from_ray_cr  # it validates what it makes
    config = derive({**cluster, "metadata": {**cluster["metadata"], "namespace": "default"}})
    types = config["available_node_types"]
    assert types[config["head_node_type"]]["resources"]["CPU"] == 0
    workers = types["workers"]
    assert 1 <= workers["min_workers"] < workers["max_workers"] == config["max_workers"]
    assert workers["resources"]["CPU"] == 4
    assert config["idle_timeout_minutes"] == 10


def test_the_manifest_has_fields_that_kuberay_knows(documents):
    spec = documents["RayCluster"]["spec"]
    assert set(spec) <= CLUSTER
    assert set(spec["headGroupSpec"]) <= HEAD
    assert all(set(group) <= WORKERS for group in spec["workerGroupSpecs"])
    assert set(documents["RayJob"]["spec"]) <= JOB
    assert documents["RayCluster"]["apiVersion"] == documents["RayJob"]["apiVersion"] == "ray.io/v1"
    for group in (spec["headGroupSpec"], *spec["workerGroupSpecs"]):
        assert all(isinstance(value, str) for value in group["rayStartParams"].values())


def test_kuberay_takes_a_job_for_a_cluster_that_is_there(documents):
    spec = documents["RayJob"]["spec"]
    assert "clusterSelector" in spec
    assert not {"backoffLimit", "rayClusterSpec", "shutdownAfterJobFinishes"} & set(spec)  # KubeRay refuses both


def test_workers_find_what_the_job_imports(documents):
    spec = documents["RayCluster"]["spec"]
    for group in (spec["headGroupSpec"], *spec["workerGroupSpecs"]):
        pod = group["template"]["spec"]
        assert {"name": "job", "configMap": {"name": "raybo-job"}} in pod["volumes"]
        assert {"name": "job", "mountPath": "/home/ray/job"} in pod["containers"][0]["volumeMounts"]


def test_the_copy_of_a_journal_is_whole(tmp_path, monkeypatch):
    text = (ROOT / "kuberay.yaml").read_text(encoding="utf-8")
    command = re.search(r'COPY="(.*)"', text)[1]
    (tmp_path / "raybo").mkdir()
    searcher = raybo.Searcher({"x": raybo.Float(0, 1)}, "random", storage=tmp_path / "raybo" / "job.db")
    for _ in range(5):
        searcher.tell(searcher.ask(), 0.5)
    subprocess.run([sys.executable, "-c", command], cwd=tmp_path, check=True)
    assert len(raybo.load(tmp_path / "copy.db").trials) == 5
    searcher.close()


def test_what_is_named_twice_is_the_same(documents):
    cluster, job = documents["RayCluster"], documents["RayJob"]["spec"]
    assert job["clusterSelector"] == {"ray.io/cluster": cluster["metadata"]["name"]}
    head = cluster["spec"]["headGroupSpec"]["template"]["spec"]
    claim = next(
        volume["persistentVolumeClaim"]["claimName"] for volume in head["volumes"] if "configMap" not in volume
    )
    assert claim == documents["PersistentVolumeClaim"]["metadata"]["name"]
    text = (ROOT / "kuberay.yaml").read_text(encoding="utf-8")
    assert len(set(re.findall(r"\b2\.\d+\.\d+\b", text))) == 1
    mounts = {mount["mountPath"] for mount in head["containers"][0]["volumeMounts"]}
    words = shlex.split(job["entrypoint"])
    assert words[:2] == ["raybo", "tune"]
    assert {str(Path(words[2]).parent), str(Path(words[words.index("--storage") + 1]).parent)} == mounts
    with click.Context(tune) as context:
        tune.parse_args(context, words[2:])  # UsageError where an option is not one
