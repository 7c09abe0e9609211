"""The Ray that a study runs on: refused within seconds where there is none, and joined where there is one."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

import raybo
from raybo.common.errors import RayError
from raybo.engine.ray import connection
from raybo.engine.ray.connection import ray_for_study


@contextlib.contextmanager
def listening(greeting=b"", answer=b"", close=False):
    """The port of a server on this machine that is no Ray."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            with contextlib.suppress(OSError):
                while True:
                    client, _ = server.accept()
                    clients.append(client)
                    client.sendall(greeting)
                    if answer:
                        client.recv(100)
                        client.sendall(answer)
                    if close:
                        client.close()

        clients: list[socket.socket] = []
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()
            for client in clients:
                client.close()


IMPORTS_RAY_FIRST = """
import ray
import raybo

@raybo.objective(space={"x": raybo.Float(0, 1)})
def job(config):
    return config["x"]

if __name__ == "__main__":
    print(raybo.tune(job, trials=3, method="random", seed=0, workers=2).count(raybo.State.FINISHED))
"""


@pytest.mark.slow
@pytest.mark.ray
def test_a_script_may_import_ray_before_it_tunes(tmp_path):
    """Ray reads the mode of its authentication when it is imported."""
    Path(tmp_path, "job.py").write_text(IMPORTS_RAY_FIRST)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    environment["PYTHONPATH"] = str(Path(raybo.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "job.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=150
    )
    assert done.stdout.splitlines()[-1:] == ["3"], done.stderr[-2000:]


SLOW_AGENTS = """
import sys, time
if any(word.endswith(("dashboard/agent.py", "runtime_env/agent/main.py")) for word in sys.orig_argv):
    time.sleep(20)
"""


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.timeout(900)
def test_local_ray_starts_though_its_agents_are_slow(tmp_path):
    """A raylet that does not know their ports waits 15 seconds for each, and dies."""
    Path(tmp_path, "sitecustomize.py").write_text(SLOW_AGENTS)
    Path(tmp_path, "job.py").write_text(IMPORTS_RAY_FIRST.replace("import ray\n", ""))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    environment["PYTHONPATH"] = os.pathsep.join([str(tmp_path), str(Path(raybo.__file__).parents[1])])
    done = subprocess.run(
        [sys.executable, "job.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=800
    )
    assert done.stdout.splitlines()[-1:] == ["3"], done.stderr[-2000:]


@pytest.mark.parametrize("moment", ["it is waited for", "the driver connects"])
def test_raylet_that_dies_at_the_start_is_not_waited_for(moment):
    """Ray waits half a minute for it, or is ended by it without an exception."""
    is_missing = moment == "it is waited for"

    def get_node():
        if is_missing:
            raise RuntimeError("no such node")

    def start_raylet():
        with subprocess.Popen(["sleep", "600"]) as process:
            process.kill()
        return SimpleNamespace(process=process)

    services = SimpleNamespace(get_node=get_node, start_raylet=start_raylet)
    ray = SimpleNamespace(_private=SimpleNamespace(services=services), _raylet=SimpleNamespace(CoreWorker=list))
    with connection.patient_start(ray):
        assert ray._raylet.CoreWorker("ab") == ["a", "b"]  # a driver without a raylet of its own
        services.start_raylet()
        with pytest.raises(RayError, match=r"^its raylet ended with signal 9$"):
            services.get_node() if is_missing else ray._raylet.CoreWorker("ab")
    assert (services.get_node, services.start_raylet, ray._raylet.CoreWorker) == (get_node, start_raylet, list)


def join(address):
    with ray_for_study(address, None):
        raise AssertionError("joined")


@pytest.mark.usefixtures("unconnected")
@pytest.mark.parametrize(
    "server",
    [
        {},
        {"close": True},
        {"greeting": b"SSH-2.0-OpenSSH_9.2\r\n"},
        {"answer": b"HTTP/1.1 505 HTTP Version Not Supported\r\n\r\n"},
        {"answer": b"\0"},
    ],
    ids=str,
)
def test_what_listens_and_is_no_ray_is_refused(monkeypatch, server):
    """`ray.init` would try for minutes."""
    monkeypatch.setattr(connection, "PROBE_SECONDS", 0.5)
    with listening(**server) as port, pytest.raises(RayError) as caught:
        join(f"127.0.0.1:{port}")
    assert str(caught.value).startswith(f"what answers at 127.0.0.1:{port} is not a Ray cluster; give the address that")


@pytest.mark.usefixtures("unconnected")
@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("127.0.0.1:1", "nothing answers at 127.0.0.1:1 ("),
        ("127.0.0.1:99999", "nothing answers at 127.0.0.1:99999 ("),
        ("a" * 80 + ":1", "nothing answers at aaa"),
        ("no.such.host.invalid:6379", "nothing answers at no.such.host.invalid:6379 ("),
        ("127.0.0.1", "address must be 'auto' or HOST:PORT, got '127.0.0.1'"),
        ("127.0.0.1:", "address must be 'auto' or HOST:PORT"),
        (":6379", "address must be 'auto' or HOST:PORT"),
        ("127.0.0.1:x", "address must be 'auto' or HOST:PORT"),
        ("local", "address must be 'auto' or HOST:PORT"),
    ],
    ids=lambda value: value[:20],
)
def test_dead_address_is_refused_at_once(monkeypatch, address, words):
    for argument in (address, None):
        if argument is None:
            monkeypatch.setenv("RAY_ADDRESS", address)
        with pytest.raises(RayError) as caught:
            join(argument)
        assert str(caught.value).startswith(words)
        assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("unconnected")
def test_the_environment_is_as_it_was_afterwards():
    before = dict(os.environ)
    with pytest.raises(RayError):
        join("127.0.0.1:1")
    assert dict(os.environ) == before


@pytest.mark.ray
def test_real_cluster_passes_probe_and_token_check(ray_session):
    address = ray_session.get_runtime_context().gcs_address
    host, _, port = address.rpartition(":")
    connection._probe(address, host, int(port))
    connection._check_token(ray_session, address)


@pytest.mark.ray
def test_connected_ray_is_used_and_left_running(ray_session):
    own = ray_session.get_runtime_context().gcs_address
    for address in (None, "auto", own):
        with ray_for_study(address, None) as ray:
            assert ray is ray_session
        assert ray_session.is_initialized()
    with pytest.raises(
        RayError, match=r"is connected to Ray at .* already; call ray.shutdown\(\) before using 1.2.3.4:5"
    ):
        join("1.2.3.4:5")


@pytest.mark.ray
def test_local_ray_has_no_needless_process(ray_session):
    kinds = set(ray_session._private.worker._global_node.all_processes)
    assert kinds >= {"gcs_server", "raylet"}
    assert not kinds & {"dashboard", "monitor", "log_monitor"}
