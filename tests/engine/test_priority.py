"""The study goes before its trials on a Ray that raybo starts, and on no other is anything changed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import raybo
from raybo.engine.ray import connection, priority
from raybo.engine.ray.connection import ray_for_study

ROOT = Path(raybo.__file__).parents[1]

THREADS = """
import os, threading, time
from raybo.engine.ray.priority import lower_priority

ends = threading.Event()
threading.Thread(target=ends.wait).start()
before = os.getpriority(os.PRIO_PROCESS, 0)
lower_priority()
lower_priority()
threading.Thread(target=ends.wait).start()
print(*(os.getpriority(os.PRIO_PROCESS, int(thread)) - before for thread in os.listdir("/proc/self/task")))
ends.set()
"""


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads have no priorities of their own")
@pytest.mark.parametrize(("by", "told"), [({priority.OURS: "3"}, {"3"}), ({}, {"0"})], ids=["ours", "another's"])
def test_trial_lowers_priority_of_all_threads_once(by, told):
    environment = {name: value for name, value in os.environ.items() if name != priority.OURS}
    ran = subprocess.run(
        [sys.executable, "-c", THREADS],
        env={**environment, "PYTHONPATH": str(ROOT), **by},
        capture_output=True,
        text=True,
    )
    assert set(ran.stdout.split()) == told, ran.stderr
    assert len(ran.stdout.split()) >= 3


@pytest.mark.parametrize(
    ("address", "given", "expected"),
    [
        (None, None, {"RAY_worker_niceness": "0", priority.OURS: "15"}),
        (None, "7", {"RAY_worker_niceness": "7"}),  # as the user wants it
        ("10.0.0.1:6379", None, {}),
    ],
)
def test_only_own_ray_gets_the_priority_settings(monkeypatch, address, given, expected):
    monkeypatch.delenv("RAY_worker_niceness", raising=False)
    if given is not None:
        monkeypatch.setenv("RAY_worker_niceness", given)
    seen = {}

    def connected(*arguments):
        seen.update({name: os.environ[name] for name in priority.SETTINGS if name in os.environ})
        yield None

    monkeypatch.setattr(connection, "_connected", connected)
    with ray_for_study(address, None):
        pass
    assert seen == expected
    assert priority.OURS not in os.environ


STUDY = """
import contextlib, json, os, pathlib, time
import raybo

SEEN = pathlib.Path(__file__).with_name("seen").absolute()

@raybo.objective(space={"x": raybo.Float(0, 1)}, metric="niceness", mode="max")
def job(config):
    while not SEEN.exists():
        time.sleep(0.02)
    return {"niceness": os.getpriority(os.PRIO_PROCESS, 0)}

def studys(status):
    with contextlib.suppress(OSError, ValueError):  # the lock is just being written, or taken away
        found.add(os.getpriority(os.PRIO_PROCESS, json.loads(pathlib.Path("study.db-lock").read_text())["process"]))
        SEEN.touch()

if __name__ == "__main__":
    found, mine = set(), os.getpriority(os.PRIO_PROCESS, 0)
    study = raybo.tune(job, trials=20, method="random", seed=0, workers=1, storage="study.db", watch=studys)
    print(min(mine + 15, 19) - study.best.value, *(each - mine for each in found))
"""


@pytest.mark.slow
@pytest.mark.ray
def test_trials_have_lower_priority_than_their_study(tmp_path):
    Path(tmp_path, "job.py").write_text(STUDY)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    done = subprocess.run(
        [sys.executable, "job.py"],
        cwd=tmp_path,
        env={**environment, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=150,
    )
    assert done.stdout.split() == ["0.0", "0"], done.stderr[-2000:]
