"""The outcome of a trial of several processes if one of them fails: a table by manner and phase, struck cell by cell.

Each strike is a study of one trial on a local Ray that all of them share. The victim strikes itself, at the planned
step of its first attempt, so that a strike never misses.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path
from random import Random
from typing import Any

import raybo
from raybo.record.events import Kind
from raybo.record.states import State

STEPS = 5
LIMIT_SECONDS = 5.0  # of a trial one of whose processes is stopped: from when all have begun
GONE_SECONDS = 60.0  # in which the processes of a trial that has ended are gone


class Manner(str, Enum):
    """The manners in which a process fails."""

    KILLED = "killed"
    STOPPED = "stopped"
    RAISES = "raises"
    MEMORY = "out of memory"
    EXITS = "exits with 0"


class Phase(str, Enum):
    """The phases in which it fails."""

    MEETS = "before the rendezvous"
    TRAINS = "in training"
    SAVES = "while saving"
    REPORTS = "after a report"


@dataclass(frozen=True)
class Promise:
    """The outcome of the trial: its state, its attempts, and the reason, of its failure or of its second attempt."""

    state: State
    attempts: int
    reason: str


LOST = Promise(State.FINISHED, 2, r"rank {rank} of {count}: its worker died")
PROMISES = {
    Manner.KILLED: LOST,
    Manner.EXITS: LOST,
    Manner.STOPPED: Promise(State.FAILED, 1, r"it ran longer than its limit of 5 seconds"),
    Manner.RAISES: Promise(State.FAILED, 1, r"rank {rank} of {count}: ValueError: struck"),
    Manner.MEMORY: Promise(State.FAILED, 1, r"rank {rank} of {count}: out of memory: MemoryError: struck"),
}


@dataclass(frozen=True)
class Strike:
    """One cell of the table: which process of how many fails, how, and in which phase."""

    number: int
    manner: Manner
    phase: Phase
    rank: int
    count: int

    def __str__(self) -> str:
        return f"rank {self.rank} of {self.count} {self.manner.value} {self.phase.value}"


def strikes(seed: int, first: int = 0) -> Iterator[Strike]:
    """Yield the strikes of a plan: all cells in another order each round; a function of the seed."""
    number = 0
    for repeat in itertools.count():
        cells = list(itertools.product(Manner, Phase, (0, 1)))
        Random(f"{seed} {repeat}").shuffle(cells)
        for manner, phase, which in cells:
            count = 2 + repeat % 2
            if number >= first:
                yield Strike(number, manner, phase, 0 if which == 0 else count - 1, count)
            number += 1


def job_of(strike: Strike, log: Path) -> raybo.Objective:
    """Return the job one of whose processes fails; all of them write down what they are and how far they have come."""
    manner, phase, victim = strike.manner.value, strike.phase.value, strike.rank

    @raybo.objective(
        space={"x": raybo.Float(0, 1)},
        metric="loss",
        mode="min",
        steps=STEPS,
        processes=strike.count,
        num_cpus=0.5,
        trial_seconds=LIMIT_SECONDS if strike.manner is Manner.STOPPED else None,
    )
    def job(config: Any) -> Any:
        import signal
        from multiprocessing.connection import Client, Listener

        me = raybo.current_trial()
        assert me is not None

        def fail(now: str, step: int) -> None:
            if (me.attempt, me.rank, now) != (1, victim, phase) or step not in (0, 3):
                return
            if manner == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            elif manner == "stopped":
                os.kill(os.getpid(), signal.SIGSTOP)
            elif manner == "exits with 0":
                os._exit(0)
            raise {"raises": ValueError, "out of memory": MemoryError}[manner]("struck")

        def note(step: int) -> None:
            with open(log, "a") as file:
                file.write(json.dumps([me.attempt, me.rank, step, os.getpid()]) + "\n")

        note(0)
        fail("before the rendezvous", 0)
        address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
        lines = []
        if me.rank == 0:
            listener = Listener(address, backlog=me.world_size)
            lines = [listener.accept() for _ in range(me.world_size - 1)]
        while me.rank and not lines:
            try:
                lines = [Client(address)]
            except ConnectionRefusedError:
                time.sleep(0.02)
        first = 1
        if (kept := raybo.checkpoint()) is not None:
            first = int((kept / str(me.rank)).read_text()) + 1
        for step in range(first, STEPS + 1):
            for line in lines:  # as an all-reduce: each waits for the others
                line.send(step)
            assert [line.recv() for line in lines] == [step] * len(lines)
            fail("in training", step)
            with raybo.saving() as directory:
                (directory / str(me.rank)).write_text(str(step))
                fail("while saving", step)
            note(step)
            raybo.report({"loss": config["x"]}, step=step)
            fail("after a report", step)
        return {"loss": config["x"]}

    return job


@dataclass
class Struck:
    """A strike that was carried out: how long it took, and what did not hold."""

    strike: Strike
    seconds: float
    complaints: list[str]

    def to_json(self) -> str:
        """Return it as a line of a record."""
        return json.dumps(asdict(self))


def strike(planned: Strike, directory: Path, ray: Any) -> Struck:
    """Run one trial, strike one of its processes, and check what is left."""
    begun, journal, log = time.monotonic(), directory / "study.db", directory / "log"
    study = raybo.tune(
        job_of(planned, log), trials=1, method="random", seed=planned.number, workers=1, storage=journal, watch=False
    )
    said = [json.loads(line) for line in log.read_text().splitlines()]
    complaints = [*_broken(planned, study), *_of_steps(planned, said), *_left(ray, {pid for *_, pid in said})]
    return Struck(planned, round(time.monotonic() - begun, 1), complaints)


def _broken(planned: Strike, study: raybo.Study) -> Iterator[str]:
    promise, trial = PROMISES[planned.manner], study.trials[0]
    if (trial.state, trial.attempt) != (promise.state, promise.attempts):
        yield f"it is {trial.state} at attempt {trial.attempt}: {trial.reason}"
    retried = [str(event.data["reason"]) for event in study.events if event.kind is Kind.RETRIED]
    reason = retried[0] if retried else str(trial.reason)
    if not re.match(promise.reason.format(rank=planned.rank, count=planned.count), reason):
        yield f"the reason is {reason!r}"
    if trial.state is State.FINISHED and trial.value != trial.config["x"]:
        yield f"its value is {trial.value}"


def _of_steps(planned: Strike, said: list[list[int]]) -> Iterator[str]:
    """All ranks of the second attempt begin at one step, which is not before the last whole checkpoint."""
    begins = {}
    for attempt, rank, step, _ in said:
        if attempt == 2 and step > 0:
            begins.setdefault(rank, step)
    if PROMISES[planned.manner] is not LOST:
        return
    if set(begins) != set(range(planned.count)) or len(set(begins.values())) != 1:
        yield f"the second attempt began at {begins}"
    elif planned.phase is not Phase.MEETS and min(begins.values()) < 3:
        yield f"the second attempt began at step {min(begins.values())}"


def _left(ray: Any, pids: set[int]) -> Iterator[str]:
    """Placement groups that are left, and processes that are still stopped or running a trial."""
    end = time.monotonic() + GONE_SECONDS
    while time.monotonic() < end:
        groups = [each for each in ray.util.placement_group_table().values() if each["state"] != "REMOVED"]
        stopped = [pid for pid in pids if _state(pid) == "T"]
        if not groups and not stopped:
            return
        time.sleep(0.2)
    yield f"left: {len(groups)} placement groups, stopped processes {stopped}"


def _state(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return ""


def summary(lines: list[dict[str, Any]]) -> str:
    """Return a table of what was struck, and what did not hold."""
    cells = Counter((line["strike"]["manner"], line["strike"]["phase"]) for line in lines)
    rows = [f"\n{len(lines)} strikes, {sum(bool(line['complaints']) for line in lines)} with complaints"]
    for manner in Manner:
        counts = ", ".join(f"{cells[manner.value, phase.value]} {phase.value}" for phase in Phase)
        rows.append(f"  {manner.value:14s} {counts}")
    return "\n".join(rows)
