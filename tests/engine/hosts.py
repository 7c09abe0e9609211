"""Ray clusters on one machine.

Hosts       several hosts: network namespaces joined by a bridge, a Ray node in each; needs root and `ip`
LocalHead   one host, reachable from this machine only
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

RAYBO = [sys.executable, "-m", "raybo.cli"]
HURRY = 300.0  # seconds after which something that should have happened has not
NEVER_BEGAN = "a node was lost before it started"  # Ray places some on a node whose loss it has yet to notice

PORT, DASHBOARD_PORT = 6379, 8265


def _ray(*changes: str) -> tuple[str, ...]:
    """The command `ray`, with changes with which raybo starts a Ray, and no server for clients of Ray."""
    return (
        sys.executable,
        "-c",
        f"import ray, ray.scripts.scripts; from raybo.engine.ray.connection import {', '.join(changes)}\n"
        "ray._private.node.Node.start_ray_client_server = lambda node: None\n"
        f"with {', '.join(f'{change}(ray)' for change in changes)}: ray.scripts.scripts.main()",
    )


RAY = _ray("patient_start")  # with a raylet that comes up on a busy machine
BARE_RAY = _ray("patient_start", "without_helpers")  # without what no study asks of a cluster


def are_possible() -> bool:
    """Return True if this process may make network namespaces."""
    if shutil.which("ip") is None or os.geteuid() != 0:
        return False
    name = f"rb{os.getpid()}probe"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True).returncode == 0
    if made:
        subprocess.run(["ip", "netns", "del", name], check=True)
    return made


class Hosts:
    """A head and as many workers as are added; everything is stopped and removed on leaving the context.

    Attributes:
        address: of the head, as `raybo tune --address` takes it.
        dashboard: of the head where it has one, as `raybo submit --address` takes it.
    """

    def __init__(self, head_cpus: int = 1, dashboard: bool = False) -> None:
        self.prefix = f"rb{os.getpid() % 100_000}"
        self.directory = tempfile.mkdtemp(prefix="rb-", dir="/tmp")
        self.count = 0
        self.nodes: dict[int, subprocess.Popen[bytes]] = {}
        self.environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("RAY_")},
            "PATH": _path(),
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": secrets.token_hex(32),
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_worker_cap_enabled": "false",
            "RAY_worker_niceness": "0",
            "RAY_prestart_worker_first_driver": "0",  # no workers that nobody has asked for
            "RAY_TMPDIR": self.directory,
            "OPENBLAS_NUM_THREADS": "1",
            # a lost node is noticed in seconds rather than in a minute
            "RAY_health_check_period_ms": "500",
            "RAY_health_check_timeout_ms": "1000",
            "RAY_health_check_failure_threshold": "4",
        }
        self.head_cpus = head_cpus
        self.address = f"10.77.0.1:{PORT}"
        self.dashboard = f"http://10.77.0.1:{DASHBOARD_PORT}"
        self.has_dashboard = dashboard

    def __enter__(self) -> Hosts:
        bridge = f"{self.prefix}b"
        try:
            _ip("link", "add", bridge, "type", "bridge")
            _ip("link", "set", bridge, "up")
            seen = f"--include-dashboard={'true' if self.has_dashboard else 'false'}"
            notifies = ["--dashboard-host=10.77.0.1", f"--dashboard-port={DASHBOARD_PORT}"]
            self._add(["--head", f"--port={PORT}", seen, *notifies, f"--num-cpus={self.head_cpus}"])
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for index in list(self.nodes):
            self.kill(index)
        made = [("link", f"{self.prefix}v{i}") for i in range(self.count)]
        made += [("netns", f"{self.prefix}n{i}") for i in range(self.count)] + [("link", f"{self.prefix}b")]
        for kind, name in made:
            with contextlib.suppress(subprocess.CalledProcessError):
                _ip(kind, "del", name)
        shutil.rmtree(self.directory, ignore_errors=True)

    def add(self, cpus: int, spot: int = 0, gpus: int = 0) -> int:
        """Start a worker node, with GPUs in name only, and so much of the custom resource `spot`; return its number."""
        custom = [f'--resources={{"spot": {spot}}}'] if spot else []
        custom += [f"--num-gpus={gpus}"] if gpus else []
        return self._add([f"--address={self.address}", f"--num-cpus={cpus}", *custom])

    def run(self, *command: str, **keywords: object) -> subprocess.Popen[str]:
        """A command on the head's host."""
        started: subprocess.Popen[str] = subprocess.Popen(
            ["ip", "netns", "exec", f"{self.prefix}n0", *command],
            env=self.environment,
            text=True,
            start_new_session=True,
            **keywords,  # type: ignore[call-overload]
        )
        return started

    def cut(self, index: int) -> None:
        """Take a host off the network: its packets vanish, its processes continue."""
        _ip("link", "set", f"{self.prefix}v{index}", "down")

    def mend(self, index: int) -> None:
        """Put a host that was cut off back on the network."""
        _ip("link", "set", f"{self.prefix}v{index}", "up")

    def kill(self, index: int) -> None:
        """Kill every process of a host at once, and wait for its node."""
        self.strike(index)
        self.nodes.pop(index).wait()

    def strike(self, index: int) -> None:
        """Kill every process of a host at once."""
        pids = subprocess.run(
            ["ip", "netns", "pids", f"{self.prefix}n{index}"], capture_output=True, text=True, check=False
        ).stdout.split()
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)

    def processes(self) -> list[str]:
        """The command lines of everything that runs on the hosts."""
        found = []
        for index in range(self.count):
            pids = subprocess.run(
                ["ip", "netns", "pids", f"{self.prefix}n{index}"], capture_output=True, text=True, check=False
            ).stdout.split()
            for pid in pids:
                with contextlib.suppress(OSError):
                    found.append(Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " "))
        return found

    def _add(self, arguments: list[str]) -> int:
        index, self.count = self.count, self.count + 1
        name, outside, inside = f"{self.prefix}n{index}", f"{self.prefix}v{index}", f"{self.prefix}w{index}"
        _ip("netns", "add", name)
        _ip("link", "add", outside, "type", "veth", "peer", "name", inside)
        _ip("link", "set", outside, "master", f"{self.prefix}b", "up")
        _ip("link", "set", inside, "netns", name)
        _ip("-n", name, "addr", "add", f"10.77.0.{index + 1}/24", "dev", inside)
        _ip("-n", name, "link", "set", inside, "up")
        _ip("-n", name, "link", "set", "lo", "up")
        log = Path(self.directory, f"start{index}.log")
        ray = RAY if self.has_dashboard else BARE_RAY
        start = [*ray, "start", "--block", "--disable-usage-stats", "--object-store-memory=80000000"]
        with log.open("wb") as output:
            self.nodes[index] = subprocess.Popen(
                ["ip", "netns", "exec", name, *start, f"--node-ip-address=10.77.0.{index + 1}", *arguments],
                env=self.environment,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        try:
            _wait_for_start(self.nodes[index], log)
        except BaseException:  # or it would join after all
            self.kill(index)
            raise
        return index


class LocalHead:
    """A head of this machine alone, with a dashboard and a token of its own; stopped on leaving the context.

    Attributes:
        dashboard: its address, as `raybo submit --address` takes it.
        address: of the head, as `raybo tune --address` takes it.
        environment: of the commands that `run` runs.
        directory: for whatever they need; removed at the end.
    """

    def __init__(self, cpus: int = 2) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="rb-", dir="/tmp"))
        self.ports = _free_ports(3)
        self.dashboard = f"http://127.0.0.1:{self.ports[0]}"
        self.cpus = cpus
        self.commands: list[subprocess.Popen[str]] = []
        self.environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("RAY_")},
            "PATH": _path(),
            "HOME": str(self.directory),  # where the journals of jobs are kept
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": secrets.token_hex(32),
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # every listener on the loopback interface
            "RAY_worker_cap_enabled": "false",
            "RAY_worker_niceness": "0",
            "OPENBLAS_NUM_THREADS": "1",
        }

    def __enter__(self) -> LocalHead:
        dashboard, agent, client = self.ports
        log = self.directory / "start.log"
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                [
                    *RAY, "start", "--head", "--block", "--port=0", "--dashboard-host=127.0.0.1",
                    f"--dashboard-port={dashboard}", f"--dashboard-agent-listen-port={agent}",
                    f"--ray-client-server-port={client}", f"--num-cpus={self.cpus}", f"--temp-dir={self.directory}/ray",
                    "--object-store-memory=80000000", "--disable-usage-stats",
                ],
                env=self.environment,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )  # fmt: skip
        try:
            _wait_for_start(self.process, log)
            self.address = ""
            while not self.address and self.process.poll() is None:  # it is written once the start is acknowledged
                with contextlib.suppress(FileNotFoundError):
                    self.address = (self.directory / "ray" / "ray_current_cluster").read_text().strip()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for command in self.commands:
            if command.poll() is None:
                os.killpg(command.pid, signal.SIGKILL)
                command.communicate()
        self.process.terminate()  # it ends what it started
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(20)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)

    def run(self, *command: str, **keywords: object) -> subprocess.Popen[str]:
        """A command that knows the head's token."""
        keywords = {"env": self.environment, **keywords}
        started: subprocess.Popen[str] = subprocess.Popen(  # type: ignore[call-overload]
            list(command), text=True, start_new_session=True, **keywords
        )
        self.commands.append(started)
        return started


def until(condition: Callable[[], object], what: str) -> None:
    """Wait until a condition holds."""
    give_up = time.monotonic() + HURRY
    while not condition():
        assert time.monotonic() < give_up, f"still waiting for {what}"
        time.sleep(0.1)


def _path() -> str:
    """The PATH, this Python first: a job's `python3` is the first on that of the shell that started Ray."""
    return f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def _wait_for_start(process: subprocess.Popen[bytes], log: Path) -> None:
    give_up = time.monotonic() + 240  # on a busy machine
    while "Ray runtime started" not in log.read_text():
        if process.poll() is not None or time.monotonic() > give_up:
            raise RuntimeError(f"Ray did not start: {log.read_text()}")
        time.sleep(0.1)


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)
