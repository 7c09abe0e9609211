"""Run the hosts that several studies share: some are lost while studies run, and others join in their place."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Timer

from tests.engine.hosts import Hosts
from tests.faults.plan import Kill, Kind

NODES = 2  # beside the head, each with one processor
ATTEMPTS = 8  # to start a node or a head: on a loaded machine Ray may give up
OURS = ("ray::StudyActor", "ray::trial", "tests.faults.driver")  # how the command lines of a study's processes begin


class Cluster:
    """A head, and nodes that come and go.

    Attributes:
        up: the nodes that a kill may meet.
        joined: how many nodes have joined in the place of lost ones.
        built: how often it was built again, as its head was lost.
    """

    def __init__(self) -> None:
        self.hosts = Hosts(head_cpus=1)
        self.up: list[int] = []
        self.cut: list[int] = []
        self.joined = self.built = 0
        self.is_lost = False  # its head
        self.builder = ThreadPoolExecutor(1)  # a node takes seconds to start; studies run meanwhile
        self.joining: list[Future[None]] = []
        self.mending: list[Timer] = []

    def __enter__(self) -> Cluster:
        try:
            self._build()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for timer in self.mending:
            timer.cancel()
        self.builder.shutdown(cancel_futures=True)
        self.hosts.__exit__()

    def _build(self) -> None:
        for attempt in range(ATTEMPTS):
            try:
                self.hosts.__enter__()
                break
            except RuntimeError:  # what there was of it has been removed
                if attempt == ATTEMPTS - 1:
                    raise
                self.hosts = Hosts(head_cpus=1)
        for _ in range(NODES):
            self._add()

    def lose(self, kill: Kill) -> bool:
        """Kill a node, cut it off, or have its raylet die or pause, and let another join; whether there was one."""
        if not self.up:
            return False
        index = self.up.pop(int(kill.which * len(self.up)))
        if kill.kind is Kind.NODE:
            self.hosts.kill(index)
        else:
            self._spoil(index, kill)
            self.cut.append(index)
        self.joining.append(self.builder.submit(self._join))
        return True

    def _spoil(self, index: int, kill: Kill) -> None:
        if kill.kind is Kind.RAYLET:
            self._signal(index, "raylet", signal.SIGKILL)
        elif kill.kind is Kind.STOPPED_RAYLET:
            self._signal(index, "raylet", signal.SIGSTOP)
            self._later(kill.seconds, self._signal, index, "raylet", signal.SIGCONT)
        else:
            self.hosts.cut(index)
            if kill.kind is Kind.CUT_A_WHILE:
                self._later(kill.seconds, self.hosts.mend, index)

    def _later(self, seconds: float, what: Callable[..., None], *arguments: object) -> None:
        self.mending.append(Timer(seconds, what, arguments))
        self.mending[-1].start()

    def lose_head(self) -> None:
        """Kill the GCS: nothing of Ray can be mended that has lost it."""
        self._signal(0, "gcs_server", signal.SIGKILL)

    def build_again(self) -> None:
        """Another cluster at the same address, in the place of one that has lost its head."""
        self.is_lost = True  # nobody need try again to join
        for index in list(self.hosts.nodes):
            self.hosts.strike(index)
        while self.mending:
            self.mending.pop().cancel()
        while self.joining:
            with contextlib.suppress(RuntimeError):
                self.joining.pop().result()
        self.hosts.__exit__()
        self.up, self.cut, self.is_lost = [], [], False
        self.hosts = Hosts(head_cpus=1)
        self._build()
        self.built += 1

    def settle(self) -> None:
        """Kill what was cut off, whether it has come back or not."""
        while self.mending:
            self.mending.pop().cancel()
        while self.cut:
            self.hosts.kill(self.cut.pop())
        for each in [each for each in self.joining if each.done()]:
            self.joining.remove(each)
            each.result()  # a node that could not be started ends the harness

    def out_of_reach(self) -> set[int]:
        """The processes on hosts that are cut off."""
        return {pid for index in self.cut for pid in self._pids(index)}

    def left(self) -> list[str]:
        """Return the processes of studies that have ended."""
        return [line for line in self.hosts.processes() if any(name in line for name in OURS)]

    def _pids(self, index: int) -> list[int]:
        listed = subprocess.run(
            ["ip", "netns", "pids", f"{self.hosts.prefix}n{index}"], capture_output=True, text=True, check=False
        )
        return [int(pid) for pid in listed.stdout.split()]

    def _signal(self, index: int, name: str, how: signal.Signals) -> None:
        """Send a signal to a process of a host, by the name of its program, if it is there yet."""
        for pid in self._pids(index):
            with contextlib.suppress(OSError):
                if Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip() == name:
                    os.kill(pid, how)

    def _join(self) -> None:
        self._add()
        self.joined += 1

    def _add(self) -> None:
        for attempt in range(ATTEMPTS):
            try:
                self.up.append(self.hosts.add(cpus=1))
                return
            except RuntimeError:
                if attempt == ATTEMPTS - 1 or self.is_lost:
                    raise
                time.sleep(1.0)
