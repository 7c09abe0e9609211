"""Which studies the harness runs and what it does to each: a pure function of a seed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import count

METHODS = (
    "auto",
    "gp-ucb",
    "sbo-kde",
    "turbo",
    "random",
    "uhe",
    "ei",
    "gp-ts",
    "exp3-random",
    "sobol",
    "min-ucb",
    "map",
)
KILLS_A_STUDY = 16
TRIALS = 30  # without any kill
TRIALS_A_KILL = 4  # more for each
CUT_SECONDS = (1.0, 12.0)  # shorter and longer than what a cluster of the tests takes for a dead node


class Place(str, Enum):
    """Where a study runs."""

    OWN = "a Ray of its own"
    CLUSTER = "a cluster of hosts"
    DETACHED = "detached, on a cluster of hosts"

    def __str__(self) -> str:
        return self.value


class Kind(str, Enum):
    """What is done to a study."""

    WORKER = "worker, SIGKILL"
    SEGFAULT = "worker, SIGSEGV"
    ACTOR = "study actor"
    BOTH = "study actor and a worker"
    DRIVER_KILL = "command, SIGKILL"
    DRIVER_TERM = "command, SIGTERM"
    DRIVER_INT = "command, SIGINT"
    DRIVER_HUP = "command, SIGHUP"
    NODE = "node, killed"
    CUT = "node, cut off"
    CUT_A_WHILE = "node, cut off for a while"

    def __str__(self) -> str:
        return self.value


PLACES = (Place.CLUSTER, Place.OWN, Place.CLUSTER, Place.DETACHED)
_OFTEN = {
    Kind.WORKER: 5, Kind.SEGFAULT: 2, Kind.ACTOR: 5, Kind.BOTH: 2,
    Kind.DRIVER_KILL: 1, Kind.DRIVER_TERM: 1, Kind.DRIVER_INT: 1, Kind.DRIVER_HUP: 1,
}  # fmt: skip
_OFTEN_ON_HOSTS = {**_OFTEN, Kind.NODE: 3, Kind.CUT: 1, Kind.CUT_A_WHILE: 1}
ON_NODES = (Kind.NODE, Kind.CUT, Kind.CUT_A_WHILE)


@dataclass(frozen=True)
class Kill:
    """One thing that is done to a study.

    Attributes:
        events: how many are committed between the kill before it and this one; 0 strikes what is just recovering.
        delay: seconds that pass then.
        which: of those it may meet, from 0 to below 1.
        seconds: how long a host is cut off for a while.
    """

    kind: Kind
    events: int
    delay: float
    which: float
    seconds: float


@dataclass(frozen=True)
class PlannedStudy:
    """A study and what is done to it.

    Attributes:
        number: its place in the plan, from 0.
        workers: None for as many as the cluster has room for.
        trial_seconds: how long a trial takes.
    """

    number: int
    place: Place
    method: str
    seed: int
    workers: int | None
    trials: int
    trial_seconds: float
    kills: tuple[Kill, ...]


def studies(seed: int, *, hosts: bool, kills: int = KILLS_A_STUDY) -> Iterator[PlannedStudy]:
    """The studies of a seed, without end: each with so many kills. The same seed gives the same ones.

    Args:
        hosts: whether there may be several hosts; without them every study has a Ray of its own.
    """
    for number in count():
        rng = random.Random(f"{seed}-{number}")
        place = PLACES[number % len(PLACES)] if hosts else Place.OWN
        often = _OFTEN if place is Place.OWN else _OFTEN_ON_HOSTS
        yield PlannedStudy(
            number=number,
            place=place,
            method=METHODS[(seed + number) % len(METHODS)],
            seed=rng.randrange(2**31),
            workers=2 if place is Place.OWN else rng.choice([None, 3]),
            trials=TRIALS + TRIALS_A_KILL * kills,
            trial_seconds=rng.choice([0.2, 0.4, 0.6]),
            kills=tuple(_kill(rng, often) for _ in range(kills)),
        )


def _kill(rng: random.Random, often: dict[Kind, int]) -> Kill:
    (kind,) = rng.choices(list(often), list(often.values()))
    return Kill(kind, rng.choice([0, 1, 2, 3, 5, 8]), rng.uniform(0, 0.4), rng.random(), rng.uniform(*CUT_SECONDS))
