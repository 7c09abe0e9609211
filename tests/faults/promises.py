"""The table of docs/reliability.md: what a signal to a process of a study may do, in each phase of the study."""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum


class Words(str, Enum):
    """An enumeration that is printed as its words."""

    def __str__(self) -> str:
        return str(self.value)


class Process(Words):
    """A process that is sent a signal."""

    COMMAND = "the command"
    STUDY = "the study's own process"
    WORKER = "a worker"
    RAYLET = "the raylet"
    GCS = "the GCS"
    AGENT = "an agent of Ray"
    VIEWER = "`raybo view`"


class Phase(Words):
    """The phase of the study at that moment."""

    STARTS = "Ray starts"
    RUNS = "trials run"
    REPORTS = "a trial reports"
    SAVES = "a trial saves a checkpoint"
    ENDS = "the study ends"


class Promise(Words):
    """The consequences."""

    ENDS = "it ends by the signal, and everything of Ray with it; the command continues the study"
    STOPS = "the study is stopped, exit 130; the command continues it"
    RESTARTS = "it is restarted; what was in flight runs again"
    AGAIN = "a lost attempt; its trial runs again"
    ANOTHER = "one line; another Ray is started, and the study continues on it"
    LINE = "another Ray is started; or one line, exit 1, and the command continues the study"
    EITHER = "the same, or it stops serving and nothing is lost or run again"
    VIEWER = "it ends; the study does not notice"
    NOTHING = "nothing is lost or run again"


SIGNALS = {
    "SIGTERM": signal.SIGTERM,
    "SIGINT": signal.SIGINT,
    "SIGHUP": signal.SIGHUP,
    "SIGKILL": signal.SIGKILL,
    "SIGSTOP, SIGCONT": signal.SIGSTOP,
}
_BY_PROCESS = {  # of a signal that ends a process
    Process.COMMAND: Promise.ENDS,
    Process.STUDY: Promise.RESTARTS,
    Process.WORKER: Promise.AGAIN,
    Process.RAYLET: Promise.ANOTHER,
    Process.GCS: Promise.ANOTHER,
    Process.AGENT: Promise.ANOTHER,
    Process.VIEWER: Promise.VIEWER,
}
OF_A_RAY = (Process.RAYLET, Process.GCS, Process.AGENT)
# Ray's own processes hold SIGINT, so that Ctrl-C in a terminal is the command's alone
TAKES_SIGINT = {Process.COMMAND: Promise.STOPS, Process.VIEWER: Promise.VIEWER}
MISSING = {  # a process that is not there in a phase, or has nothing to do
    Phase.STARTS: (Process.STUDY, Process.WORKER),
    Phase.ENDS: (Process.WORKER,),
}


@dataclass(frozen=True)
class Cell:
    """One cell of the table."""

    signal: str
    process: Process
    phase: Phase

    def __str__(self) -> str:
        return f"{self.signal} to {self.process} while {self.phase}"

    @property
    def promise(self) -> Promise:
        """The promised consequence."""
        return promised(self.signal, self.process, self.phase)


def promised(name: str, process: Process, phase: Phase) -> Promise:
    """Return what follows a signal to a process in a phase."""
    if name == "SIGSTOP, SIGCONT" or (name == "SIGINT" and process not in TAKES_SIGINT):
        return Promise.NOTHING
    if name == "SIGINT":
        return TAKES_SIGINT[process]
    if name == "SIGTERM" and process is Process.GCS:  # the command has it wait there
        return Promise.NOTHING
    if phase is Phase.STARTS and process in OF_A_RAY:
        return Promise.LINE
    if name == "SIGTERM" and process is Process.AGENT:  # the one for runtime environments does not end
        return Promise.EITHER
    return _BY_PROCESS[process]


CELLS = [
    Cell(name, process, phase)
    for phase in Phase
    for process in Process
    for name in SIGNALS
    if process not in MISSING.get(phase, ())
]


def as_table() -> list[str]:
    """Return the table as it is in the documentation: signals that do alike share a column, and phases a line."""
    columns = (("SIGHUP", "SIGKILL"), ("SIGTERM",), ("SIGINT",), ("SIGSTOP, SIGCONT",))
    lines = [f"| signal to | {' | '.join(map(', '.join, columns))} |", "|---" * (1 + len(columns)) + "|"]
    for process in Process:
        groups: dict[tuple[str, ...], list[Phase]] = {}
        for phase in (phase for phase in Phase if process not in MISSING.get(phase, ())):
            promises = ({promised(name, process, phase) for name in names} for names in columns)
            groups.setdefault(tuple(str(*each) for each in promises), []).append(phase)
        for cells, among in groups.items():
            when = "" if len(groups) == 1 else ", while Ray starts" if among == [Phase.STARTS] else ", later"
            lines.append(f"| {process}{when} | {' | '.join(cells)} |")
    return lines


@dataclass(frozen=True)
class Strike:
    """One strike of the plan.

    Attributes:
        number: its place in the plan, from 0.
        cell: the one of the table that it checks.
        moment: the moment within the phase, from 0 to below 1.
        which: which of several processes, from 0 to below 1.
    """

    number: int
    cell: Cell
    moment: float
    which: float


def strikes(seed: int) -> Iterator[Strike]:
    """Yield the strikes of a seed, without end: every cell once, in a random order, then every cell again."""
    number = 0
    while True:
        rng = random.Random(f"signals-{seed}-{number // len(CELLS)}")
        for cell in rng.sample(CELLS, len(CELLS)):
            yield Strike(number, cell, rng.random(), rng.random())
            number += 1
