"""Finds out that the Ray that a study runs on has died: Ray itself waits, for ever or until it aborts.

A node's raylet starts its workers, and the GCS, on the head, knows the nodes. If this process started Ray, both are its
children. Otherwise, this node's raylet answers on its socket and the GCS on its port.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from typing import Any

from raybo.common.errors import RayError
from raybo.engine.ray.signals import end_by, held_signal

LOOK_SECONDS = 2.0  # between checks of a Ray that another process has started
RAYLET_SECONDS = 6.0  # a raylet whose local socket refuses for so long is dead
GCS_SECONDS = 45.0  # a GCS that does not answer for so long is dead; after 60, Ray aborts this process
SILENCE_SECONDS = 6.0  # a GCS that does not answer for so long is warned of
CONNECT_SECONDS = 2.0
END_SECONDS = 0.5  # the workers of a raylet that ends are gone at most so long before it
START_LOOK_SECONDS = 1.0  # between checks of a Ray that is being started
LOOKS = 8  # a Ray that is being started has died if it is dead in so many checks in a row

log = logging.getLogger("raybo")


class RayDied(RayError):
    """The Ray that the study ran on is gone; what was committed is in the journal."""


class Liveness:
    """Checks whether the Ray that this process is connected to is alive.

    Args:
        ray: the module, connected.
    """

    def __init__(self, ray: Any) -> None:
        self._node = ray._private.worker._global_node
        self._address = str(ray.get_runtime_context().gcs_address)
        host, _, port = self._address.rpartition(":")
        self._gcs = (host, int(port))
        self._answered = self._seen = self._looked = time.monotonic()
        self._warned = False
        # out of reach of another container, say, its socket proves nothing
        self._reaches_raylet = self._raylet_answers()

    def check(self) -> None:
        """Check once; cheap enough to be called several times a second.

        Raises:
            RayDied: it is dead.
        """
        if self._node.head:
            for kind, process in self._node.dead_processes():
                if kind in ("raylet", "gcs_server"):
                    raise RayDied(
                        f"the local Ray has died (its {kind} ended with {status_in_words(process.returncode)})"
                    )
        elif time.monotonic() - self._looked > LOOK_SECONDS:
            self._look()
            self._looked = time.monotonic()

    def _look(self) -> None:
        now = time.monotonic()
        if not self._reaches_raylet or self._raylet_answers():
            self._seen = now
        elif now - self._seen > RAYLET_SECONDS:
            raise RayDied("Ray on this machine has died (its raylet no longer answers)")
        if self._gcs_answers():
            self._answered, self._warned = now, False
        elif now - self._answered > GCS_SECONDS:
            raise RayDied(f"the Ray cluster at {self._address} has died (its head no longer answers)")
        elif now - self._answered > SILENCE_SECONDS and not self._warned:
            log.warning("the head of the Ray cluster at %s does not answer; waiting for it", self._address)
            self._warned = True

    def _raylet_answers(self) -> bool:
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(CONNECT_SECONDS)
                connection.connect(self._node.raylet_socket_name.removeprefix("unix://"))
        except (TimeoutError, BlockingIOError):  # it is alive and busy
            return True
        except OSError:
            return False
        return True

    def _gcs_answers(self) -> bool:
        try:
            socket.create_connection(self._gcs, timeout=CONNECT_SECONDS).close()
        except OSError:
            return False
        return True


class OwnRaylet:
    """The raylet that started this process, a worker's or an actor's: if it ends, so does this process soon."""

    def __init__(self) -> None:
        self._process = os.getppid()

    async def end_with_it(self) -> None:
        """End this process if its raylet is ending: what it has just lost, it lost with its whole node.

        Otherwise one end of a command, of a Ray or of a node would be told as two: as the loss of each worker, and then
        as that of the study.
        """
        end = time.monotonic() + END_SECONDS
        while time.monotonic() < end:
            if os.getppid() != self._process:
                os._exit(1)
            await asyncio.sleep(END_SECONDS / 10)


@contextlib.contextmanager
def report_death_at_start(ray: Any) -> Iterator[None]:
    """Log that a local Ray has died while it is being started, and end this process.

    Ray would end it a minute later with a line of C++. No exception can be raised in the code that waits for Ray.
    """
    services, is_up = ray._private.services, threading.Event()
    start_of_ray = services.start_gcs_server
    gcs: list[subprocess.Popen[bytes]] = []  # Ray's node lists it only once all of Ray has started

    def start_gcs_server(*args: Any, **keywords: Any) -> Any:
        found = start_of_ray(*args, **keywords)
        gcs.append(found.process)
        return found

    def watch() -> None:
        dead = 0
        while not is_up.wait(START_LOOK_SECONDS) and dead < LOOKS:
            node = ray._private.worker._global_node
            died = {kind for kind, _ in node.dead_processes()} if node is not None else set()
            if gcs and gcs[-1].poll() is not None:
                died.add("gcs_server")
            died &= {"raylet", "gcs_server"}
            if died and (how := held_signal()) is not None:  # it went to Ray's processes as well, as from a terminal
                end_by(how)
            dead = dead + 1 if died else 0  # Ray may still raise an error
        if dead == LOOKS:
            log.error("Error: the local Ray died while starting (its %s); try again", ", ".join(sorted(died)))
            if node is not None:
                node.kill_all_processes(check_alive=False, allow_graceful=False)
            os._exit(1)

    services.start_gcs_server = start_gcs_server
    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        services.start_gcs_server = start_of_ray
        is_up.set()
        watcher.join()


def status_in_words(code: int) -> str:
    """Return how a process ended, of its return code."""
    return f"signal {-code}" if code < 0 else f"status {code}"
