"""The death of a Ray is noticed, whoever started it, and a study continues if it can."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

import raybo
from raybo.engine import driver
from raybo.engine.plan import Plan
from raybo.engine.ray import liveness
from raybo.engine.ray.liveness import Liveness, RayDied
from raybo.engine.run_options import RunOptions
from tests.journals import finished


def ray_of(node, address="127.0.0.1:1"):
    context = SimpleNamespace(gcs_address=address)
    worker = SimpleNamespace(_global_node=node)
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    services = SimpleNamespace(start_gcs_server=lambda *line: SimpleNamespace(process=subprocess.Popen(line, **quiet)))
    private = SimpleNamespace(worker=worker, services=services)
    return SimpleNamespace(_private=private, get_runtime_context=lambda: context, exceptions=SimpleNamespace())


def own(*dead):
    processes = [(kind, SimpleNamespace(returncode=code)) for kind, code in dead]
    return SimpleNamespace(head=True, dead_processes=lambda: processes, raylet_socket_name="/nowhere")


def test_own_ray_is_dead_without_raylet_or_gcs():
    Liveness(ray_of(own(("log_monitor", 0)))).check()
    with pytest.raises(RayDied, match=r"its raylet ended with signal 9\)"):
        Liveness(ray_of(own(("raylet", -9)))).check()
    with pytest.raises(RayDied, match=r"its gcs_server ended with status 1\)"):
        Liveness(ray_of(own(("gcs_server", 1)))).check()


@pytest.fixture
def clock(monkeypatch):
    found = SimpleNamespace(now=0.0)
    monkeypatch.setattr(liveness, "time", SimpleNamespace(monotonic=lambda: found.now))
    return found


def test_joined_ray_is_dead_if_it_stops_answering(clock, caplog):
    with tempfile.TemporaryDirectory(prefix="rb-", dir="/tmp") as directory:
        with socket.socket(socket.AF_UNIX) as raylet, socket.create_server(("127.0.0.1", 0)) as head:
            raylet.bind(f"{directory}/raylet")
            raylet.listen(2)  # and is too busy to take more
            node = SimpleNamespace(head=False, raylet_socket_name=f"{directory}/raylet")
            address = f"127.0.0.1:{head.getsockname()[1]}"
            raylet_dies, head_dies = Liveness(ray_of(node, address)), Liveness(ray_of(node, address))
            for seconds in range(0, 60, 3):
                clock.now = float(seconds)
                raylet_dies.check()
                head_dies.check()
        head_dies._reaches_raylet = False
        caplog.set_level(logging.WARNING, "raybo")
        for _ in range(int(liveness.GCS_SECONDS) // 3):
            clock.now += 3
            head_dies.check()
        clock.now += 3
        with pytest.raises(RayDied, match=r"its head no longer answers"):
            head_dies.check()
        assert [record.getMessage() for record in caplog.records] == [
            f"the head of the Ray cluster at {address} does not answer; waiting for it"
        ]
        clock.now = 63.0
        raylet_dies.check()  # once may be chance
        clock.now = 69.0
        with pytest.raises(RayDied, match="its raylet no longer answers"):
            raylet_dies.check()


def test_unreachable_raylet_is_not_taken_for_dead(clock):
    with socket.create_server(("127.0.0.1", 0)) as head:
        node = SimpleNamespace(head=False, raylet_socket_name="/nowhere/raylet")
        felt = Liveness(ray_of(node, f"127.0.0.1:{head.getsockname()[1]}"))
        clock.now = 100.0
        felt.check()


@pytest.mark.slow
@pytest.mark.parametrize("is_known", [True, False])  # to Ray's node, which there is only when all of Ray has started
def test_death_of_a_starting_ray_ends_the_process(is_known):
    script = textwrap.dedent(
        """
        import sys, time
        from raybo.engine.ray import liveness
        from tests.engine.test_liveness import own, ray_of
        liveness.START_LOOK_SECONDS = 0.02
        for node in (None, own(), own(("log_monitor", 0))):
            with liveness.report_death_at_start(ray_of(node)):
                time.sleep(0.4)
        is_known = sys.argv[1] == "True"
        node = own(("gcs_server", -9)) if is_known else None
        if is_known:
            node.kill_all_processes = lambda **how: print("tidied", flush=True)
        ray = ray_of(node)
        with liveness.report_death_at_start(ray):
            ray._private.services.start_gcs_server("sleep", "30" if is_known else "0")
            time.sleep(600)  # as Ray waits, but longer than the test
        """
    )
    command = [sys.executable, "-c", script, str(is_known)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert done.stderr == "Error: the local Ray died while starting (its gcs_server); try again\n"
    assert done.stdout == "tidied\n" * is_known


def test_only_own_ray_is_replaced_a_few_times(monkeypatch, caplog):
    runs = []

    @contextlib.contextmanager
    def dying(address, cpus, shared):
        runs.append(address)
        raise RayDied("the local Ray has died")
        yield

    @raybo.objective(space={"x": raybo.Float(0, 1)})
    def job(config):
        return config["x"]

    monkeypatch.setattr(driver, "ray_for_study", dying)
    monkeypatch.setattr(driver.journal, "read", lambda path: (None, []))
    for own_ray, times in ((True, driver.RAYS), (False, 1)):
        runs.clear()
        monkeypatch.setattr(driver, "starts_its_own", lambda address, own_ray=own_ray: own_ray)
        with pytest.raises(RayDied, match=r"what has finished is in the journal, the same command continues"):
            driver._run(job, RunOptions(trials=3), partial(Plan, path=None, trials=3), 0, None)
        assert len(runs) == times


JOB = """
import time
import raybo

@raybo.objective(space={"x": raybo.Float(0, 1)})
def job(config):
    time.sleep(0.3)
    return config["x"]
"""


def child_of(parent, name):
    """The number of a process's child whose program's name ends so; None where there is none."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            of = (process / "stat").read_text().rpartition(")")[2].split()[1]
            program = (process / "cmdline").read_text().partition("\0")[0]
            if of == str(parent) and program.endswith(name):
                return int(process.name)
    return None


def tuning(directory, trials):
    """A study in a process of its own."""
    (directory / "job.py").write_text(JOB)
    arguments = f"tune job.py --trials {trials} --method random --seed 0 --workers 1".split()
    environment = {**os.environ, "PYTHONPATH": str(Path(raybo.__file__).parents[1])}
    command = [sys.executable, "-m", "raybo.cli", *arguments]
    return subprocess.Popen(command, cwd=directory, env=environment, stderr=subprocess.PIPE, text=True)


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", ["raylet", "gcs_server"])
def test_study_continues_after_its_own_ray_dies(tmp_path, name):
    with tuning(tmp_path, 30) as command:
        journal = tmp_path / "job.db"
        while finished(journal) < 3:
            assert command.poll() is None, command.stderr.read()
            time.sleep(0.2)
        os.kill(child_of(command.pid, name), signal.SIGKILL)
        _, told = command.communicate()
    assert command.returncode == 0, told
    assert f"the local Ray has died (its {name} ended with signal 9); starting another one" in told
    assert finished(journal) == 30


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_ray_killed_during_start_is_reported_or_replaced(tmp_path):
    """Ray raises where it has not come far; later it would wait for a minute."""
    with tuning(tmp_path, 3) as command:
        while (gcs := child_of(command.pid, "gcs_server")) is None:
            assert command.poll() is None, command.stderr.read()
            time.sleep(0.02)
        time.sleep(0.3)
        os.kill(gcs, signal.SIGKILL)
        begun = time.monotonic()
        _, told = command.communicate()
    if command.returncode == 0:
        assert finished(tmp_path / "job.db") == 3
    else:
        assert time.monotonic() - begun < 50
        assert told.endswith("Error: the local Ray died while starting (its gcs_server); try again\n")
