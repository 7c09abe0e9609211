"""The hosts that several studies share: some are lost while studies run, and others join in their place."""

from __future__ import annotations

import subprocess
import time
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Timer

from tests.engine.hosts import Hosts
from tests.faults.plan import Kill, Kind

NODES = 2  # beside the head, each with one processor
ATTEMPTS = 3  # to start a node: on a loaded machine Ray may give up
OURS = ("ray::StudyActor", "ray::trial", "tests.faults.driver")  # how the command lines of a study's processes begin


class Cluster:
    """A head, and nodes that come and go.

    Attributes:
        up: the nodes that a kill may meet.
        joined: how many nodes have joined in the place of lost ones.
    """

    def __init__(self) -> None:
        self.hosts = Hosts(head_cpus=1)
        self.up: list[int] = []
        self.cut: list[int] = []
        self.joined = 0
        self.builder = ThreadPoolExecutor(1)  # a node takes seconds to start; studies go on meanwhile
        self.joining: list[Future[None]] = []
        self.mending: list[Timer] = []

    def __enter__(self) -> Cluster:
        self.hosts.__enter__()
        try:
            for _ in range(NODES):
                self._add()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for timer in self.mending:
            timer.cancel()
        self.builder.shutdown(cancel_futures=True)
        self.hosts.__exit__()

    def lose(self, kill: Kill) -> bool:
        """Kill a node or cut it off, and let another join; whether there was one to lose."""
        if not self.up:
            return False
        index = self.up.pop(int(kill.which * len(self.up)))
        if kill.kind is Kind.NODE:
            self.hosts.kill(index)
        else:
            self.hosts.cut(index)
            self.cut.append(index)
        if kill.kind is Kind.CUT_A_WHILE:
            self.mending.append(Timer(kill.seconds, self.hosts.mend, [index]))
            self.mending[-1].start()
        self.joining.append(self.builder.submit(self._join))
        return True

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
        """What runs of studies that have ended."""
        return [line for line in self.hosts.processes() if any(name in line for name in OURS)]

    def _pids(self, index: int) -> list[int]:
        listed = subprocess.run(
            ["ip", "netns", "pids", f"{self.hosts.prefix}n{index}"], capture_output=True, text=True, check=False
        )
        return [int(pid) for pid in listed.stdout.split()]

    def _join(self) -> None:
        self._add()
        self.joined += 1

    def _add(self) -> None:
        for attempt in range(ATTEMPTS):
            try:
                self.up.append(self.hosts.add(cpus=1))
                return
            except RuntimeError:
                if attempt == ATTEMPTS - 1:
                    raise
                time.sleep(1.0)
