"""The Ray that a study runs on: one that this process starts for itself, or an existing cluster that it joins."""

from __future__ import annotations

import contextlib
import inspect
import logging
import os
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from raybo.common.errors import RayError
from raybo.common.messages import first_line
from raybo.engine.ray import priority
from raybo.engine.ray.auth_token import loader_of, make_token, warn_of_open_token
from raybo.engine.ray.liveness import report_death_at_start, status_in_words
from raybo.engine.ray.signals import signals_held
from raybo.engine.reaper import reaped
from raybo.engine.temporary_directories import RAY, private_directory

log = logging.getLogger("raybo")

PROBE_SECONDS = 3.0
STARTS = 2  # attempts to start a local Ray, whose raylet dies if it waits too long for the rest
START_SECONDS = 180.0  # limit for the start of a local Ray
# how HTTP/2 begins, which Ray's servers speak: a preface and empty settings, answered by settings
_SETTINGS = b"\x04"
_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0" + _SETTINGS + b"\0\0\0\0\0"
HELPERS = ("start_api_server", "start_monitor", "start_log_monitor")  # methods of Ray's node
OBJECT_STORE_BYTES = 200 * 2**20  # a study's objects are small; Ray's default would be 30% of the memory

_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AUTH_MODE": "token",  # without it a driver that joins a cluster sends no token, and fails after 20 seconds
    # without it the processors that a killed study held are given back only after a back-off of seconds, for good
    "RAY_worker_cap_enabled": "false",
}
_LISTEN_PORT = "dashboard_agent_listen_port"
_AGENT_PORTS = ("metrics_agent_port", "metrics_export_port", "runtime_env_agent_port", _LISTEN_PORT)
_OF_LOCAL = {
    # Ray's servers listen on every interface, unless it takes the system for one that allows a single node only
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    # else the raylet answers its first driver only once it has started workers, seconds in which the raylet's death
    # would end the driver without an exception
    "RAY_prestart_worker_first_driver": "0",
}


@contextlib.contextmanager
def ray_for_study(address: str | None, cpus: int | None, data: int = 0) -> Iterator[Any]:
    """Yield the module `ray`, connected; what was started here is shut down afterwards.

    Uses the Ray that this process is connected to; else the cluster at `address` (or in RAY_ADDRESS); else a local one
    of its own, reachable from this machine only.

    Args:
        address: "auto", or HOST:PORT of a running cluster; None for none.
        cpus: processors of a local Ray; None for all.
        data: bytes of the study's shared data, for which a local Ray gets additional memory.
    Raises:
        RayError: nothing answers at the address, or the cluster refuses.
    """
    joins = address or os.environ.get("RAY_ADDRESS")
    settings = dict(_ENVIRONMENT) if joins else _ENVIRONMENT | _OF_LOCAL
    if not joins and "RAY_worker_niceness" not in os.environ:
        settings |= priority.SETTINGS
    if not joins and "ray" in sys.modules:  # it has read whether tokens are sent: the processes it starts must agree
        del settings["RAY_AUTH_MODE"]
    with _environment(settings):
        with signals_held():
            try:
                import ray
            except ModuleNotFoundError as error:
                raise RayError(
                    f"Ray cannot be imported here ({first_line(error)}): install it, or run the trials one after the "
                    "other in this process, --in-process (in_process=True)"
                ) from None

        yield from _connected(ray, address, joins, cpus, data)


def _connected(ray: Any, address: str | None, joins: str | None, cpus: int | None, data: int) -> Iterator[Any]:
    if ray.is_initialized():
        if address and address not in ("auto", ray.get_runtime_context().gcs_address):
            raise RayError(
                f"this process is connected to Ray at {ray.get_runtime_context().gcs_address} already; "
                f"call ray.shutdown() before using {address}"
            )
        yield ray
        return
    _quieten()
    warn_of_open_token()
    if joins:
        with _on_loopback() if _is_loopback_only(ray, joins) else contextlib.nullcontext():
            with signals_held():
                _join(ray, joins)
            try:
                yield ray
            finally:
                with signals_held():
                    ray.shutdown()
        return
    with private_directory() as directory, reaped(directory), _on_loopback():
        try:
            with signals_held(ray):
                start_local(ray, cpus, directory / RAY, data)
            yield ray
        finally:
            with signals_held():
                ray.shutdown()


def starts_its_own(address: str | None) -> bool:
    """True if `ray_for_study` starts a local Ray, which nobody else uses."""
    connected = "ray" in sys.modules and sys.modules["ray"].is_initialized()
    return not (connected or address or os.environ.get("RAY_ADDRESS"))


def start_local(ray: Any, cpus: int | None, directory: Path, data: int = 0) -> None:
    """Start a local Ray, reachable from this machine only.

    Args:
        ray: the module.
        cpus: processors; None for all.
        directory: for its sockets and logs.
        data: bytes of shared data.
    Raises:
        RayError: it does not come up.
    """
    make_token(ray)
    with report_death_at_start(ray), patient_start(ray), without_helpers(ray):
        for left in reversed(range(STARTS)):
            try:
                ray.init(
                    address="local",
                    num_cpus=cpus,
                    include_dashboard=False,
                    log_to_driver=False,
                    logging_level="error",
                    object_store_memory=OBJECT_STORE_BYTES + data + data // 10,
                    _temp_dir=str(directory),  # which Ray opens to everybody
                )
                return
            except Exception as error:  # Ray raises a plain Exception if a process did not come up
                ray.shutdown()
                if not left:
                    raise RayError(
                        f"no local Ray could be started ({first_line(error).removesuffix('.')}); try again, with fewer "
                        "other programs running if the machine is busy"
                    ) from error


@contextlib.contextmanager
def without_helpers(ray: Any) -> Iterator[None]:
    """Leave out what a study has no use for, and Ray takes long to start.

    These are the dashboard's server, which Ray starts and waits for even if there is to be none, the autoscaler's
    monitor, and the reader of logs.
    """
    node = ray._private.node.Node
    kept = {name: getattr(node, name) for name in HELPERS}
    for name in kept:
        setattr(node, name, lambda *_, **__: None)
    try:
        yield
    finally:
        for name, method in kept.items():
            setattr(node, name, method)


@contextlib.contextmanager
def patient_start(ray: Any) -> Iterator[None]:
    """Let a raylet take longer to come up than Ray's fixed half minute, as on a busy machine, unless it has died.

    Ray would wait for a dead one as long, or be ended by it while it connects. The ports of its agents are chosen here:
    the raylet waits 15 seconds for each port that an agent is to choose, and then dies
    (https://github.com/ray-project/ray/issues/65983).
    """
    services, raylet = ray._private.services, ray._raylet
    of_ray, start_of_ray, connect_of_ray = services.get_node, services.start_raylet, raylet.CoreWorker
    started: list[Any] = []
    end = time.monotonic() + START_SECONDS

    def start_raylet(*args: Any, **keywords: Any) -> Any:
        missing = [name for name in _AGENT_PORTS if name in keywords and not keywords[name]]
        keywords |= dict(zip(missing, _free_ports(len(missing)), strict=True))
        if (persist_port := getattr(ray._raylet, "persist_port", None)) is not None:  # else none is waited for
            given = inspect.signature(start_of_ray).bind(*args, **keywords).arguments
            persist_port(given["session_dir"], given["node_id"], _LISTEN_PORT, given[_LISTEN_PORT])
        started.append(start_of_ray(*args, **keywords))
        return started[-1]

    def require_raylet() -> None:
        if started and (code := started[-1].process.poll()) is not None:
            raise RayError(f"its raylet ended with {status_in_words(code)}")

    def get_node(*args: Any, **keywords: Any) -> Any:
        while True:
            try:
                return of_ray(*args, **keywords)
            except RuntimeError:  # it is not there yet
                require_raylet()
                if time.monotonic() > end or not started:
                    raise
                time.sleep(0.1)

    def connect(*args: Any, **keywords: Any) -> Any:
        require_raylet()
        return connect_of_ray(*args, **keywords)

    services.get_node, services.start_raylet, raylet.CoreWorker = get_node, start_raylet, connect
    try:
        yield
    finally:
        services.get_node, services.start_raylet, raylet.CoreWorker = of_ray, start_of_ray, connect_of_ray


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [server.getsockname()[1] for server in servers]


@contextlib.contextmanager
def _on_loopback() -> Iterator[None]:
    """Have Ray use 127.0.0.1 as it is given, instead of the address of the machine's network."""
    import ray._private.ray_constants as ray_constants

    multi_node, ray_constants.ENABLE_RAY_CLUSTER = ray_constants.ENABLE_RAY_CLUSTER, False  # read when Ray was imported
    try:
        yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = multi_node


def _is_loopback_only(ray: Any, address: str) -> bool:
    """True if the cluster can be reached from this machine only; `ray.init` would look for it elsewhere."""
    if address == "auto":
        address = next(iter(ray._private.services.find_gcs_addresses()), "")
    host, _, port = address.rpartition(":")
    if not (host == "localhost" or host.startswith("127.")) or not port.isdigit():
        return False
    try:
        socket.create_connection((ray.util.get_node_ip_address(), int(port)), timeout=PROBE_SECONDS).close()
    except (OSError, OverflowError):
        return True
    return False


@contextlib.contextmanager
def _environment(settings: dict[str, str]) -> Iterator[None]:
    """Set environment variables for as long as the study runs, but for those that the user has set."""
    added = {name: value for name, value in settings.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


def is_inside_ray() -> bool:
    """True in a task or an actor of some Ray, whose processor is not free while it waits."""
    worker = sys.modules.get("ray._private.worker")
    return worker is not None and worker.global_worker.mode == worker.WORKER_MODE


def is_local(ray: Any) -> bool:
    """True if this Ray was started by this process, and ends with it."""
    node = ray._private.worker._global_node
    return node is not None and bool(node.head)


def logs_directory(ray: Any) -> Path:
    """Return the directory of the logs of this node's Ray."""
    return Path(ray._private.worker._global_node.get_logs_dir_path())


def here(ray: Any) -> Any:
    """Return the scheduling strategy that keeps an actor on this node, where the journal is."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    return NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)


def _join(ray: Any, address: str) -> None:
    if address != "auto":
        host, _, port = address.rpartition(":")
        if not host or not port.isdigit():
            raise RayError(f"address must be 'auto' or HOST:PORT, got {address!r}")
        _probe(address, host, int(port))
        _check_token(ray, address)
    try:
        ray.init(address=address, log_to_driver=False, logging_level="error")
    except (ConnectionError, RuntimeError, ray.exceptions.RayError) as error:
        raise RayError(f"cannot join the Ray cluster at {address}: {first_line(error)}") from error


def _probe(address: str, host: str, port: int) -> None:
    """Find out in seconds that there is no cluster: `ray.init` would try for minutes."""
    try:
        connection = socket.create_connection((host, port), timeout=PROBE_SECONDS)
    except (OSError, OverflowError, UnicodeError) as error:  # the last two: no port, no host name
        raise RayError(
            f"nothing answers at {address} ({error}); start a cluster there, or leave out the address"
        ) from None
    answer = b""
    with connection, contextlib.suppress(OSError):
        connection.sendall(_GREETING)
        while len(answer) < 4 and (more := connection.recv(4 - len(answer))):
            answer += more
    if answer[3:] != _SETTINGS:
        raise RayError(f"what answers at {address} is not a Ray cluster; give the address that `ray start` printed")


def _check_token(ray: Any, address: str) -> None:
    """Find out at once why the cluster refuses the token: `ray.init` would give another reason after 20 seconds."""
    if os.environ.get("RAY_AUTH_MODE") != "token":
        return
    loader = loader_of(ray)
    if loader is None or not loader.has_token(ignore_auth_mode=True):
        return  # a cluster without authentication needs none, and one with it says so itself
    try:
        ray._raylet.GcsClient(address=address)
    except ray.exceptions.AuthenticationError as error:
        raise RayError(
            f"the cluster at {address} refuses the token ({first_line(error)}); put the cluster's token into "
            "~/.ray/auth_token or RAY_AUTH_TOKEN"
        ) from error
    except (RuntimeError, ray.exceptions.RayError):
        return  # `ray.init` raises what is wrong


def _quieten() -> None:
    """Log the messages that Ray prints to the driver's stdout whatever its options are."""
    import ray._private.worker as ray_worker

    ray_worker.print_to_stdstream = lambda data, ignore_prefix: log.debug("%s", data.get("lines"))
