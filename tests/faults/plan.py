"""Plan which studies the harness runs and what it does to each, as a pure function of a seed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from itertools import count
from math import lcm
from typing import TypeAlias

from raybo import schedulers

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
Chosen: TypeAlias = tuple[tuple[str, dict[str, int | str]] | None, ...]
SCHEDULERS: Chosen = (
    None,
    ("asha", {"eta": 2, "variant": "promote"}),
    ("median", {"startup": 3}),
    ("asha", {"eta": 2}),
    ("hyperband", {"eta": 2}),
)
_REPORTED_TO: Chosen = (
    ("asha", {"eta": 2, "variant": "promote"}),
    ("median", {"startup": 3}),
    ("hyperband", {"eta": 2, "variant": "promote"}),
    ("curve", {}),
    ("asha", {"eta": 2}),
    None,
    ("hyperband", {"eta": 2}),
)
# of a plan of jobs that report: every scheduler, one that is not named above with its defaults
REPORTED_TO: Chosen = _REPORTED_TO + tuple(
    (name, {}) for name in schedulers.SCHEDULERS if name not in {rule[0] for rule in _REPORTED_TO if rule}
)
REPORTING = tuple(method for method in METHODS if method != "sbo-kde")
KILLS_A_STUDY = 16
TRIALS = 30  # without any kill
TRIALS_A_KILL = 4  # more for each
CUT_SECONDS = (1.0, 12.0)  # shorter and longer than what a cluster of the tests takes for a dead node
# longer than a Ray of the tests waits for a node, shorter than a command waits for the writer of one that was killed
STOPPED_SECONDS = (8.0, 14.0)


class Place(str, Enum):
    """The places in which a study runs."""

    OWN = "a Ray of its own"
    CLUSTER = "a cluster of hosts"
    DETACHED = "detached, on a cluster of hosts"

    def __str__(self) -> str:
        return self.value


class Kind(str, Enum):
    """The kinds of damage to a study."""

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
    RAYLET = "raylet"
    GCS = "GCS"
    STOPPED_WORKER = "worker, stopped for a while"
    STOPPED_ACTOR = "study actor, stopped for a while"
    STOPPED_DRIVER = "command, stopped for a while"
    STOPPED_RAYLET = "raylet, stopped for a while"
    FULL = "disk, full for a while"
    SECOND = "second command on the journal"
    SAVED_WORKER = "worker, between checkpoint and report"
    SAVED_ACTOR = "study actor, the same"
    SAVED_BOTH = "both, the same"
    JUDGED_WORKER = "worker, between report and verdict"
    JUDGED_ACTOR = "its study actor"
    JUDGED_BOTH = "both of them"
    PAUSED_ACTOR = "study actor, while a trial is paused"
    PAUSED_DRIVER = "command, while a trial is paused"
    PAUSED_NODE = "node, while a trial is paused"

    def __str__(self) -> str:
        return self.value


PLACES = (Place.CLUSTER, Place.OWN, Place.CLUSTER, Place.DETACHED)
ON_NODES = (Kind.NODE, Kind.CUT, Kind.CUT_A_WHILE)  # which need several hosts
LOSE_NODES = (*ON_NODES, Kind.RAYLET, Kind.STOPPED_RAYLET, Kind.PAUSED_NODE)  # of a cluster
WHILE_PAUSED = (Kind.PAUSED_ACTOR, Kind.PAUSED_DRIVER, Kind.PAUSED_NODE)
AT_A_STEP = (
    Kind.SAVED_WORKER, Kind.SAVED_ACTOR, Kind.SAVED_BOTH, Kind.JUDGED_WORKER, Kind.JUDGED_ACTOR, Kind.JUDGED_BOTH
)  # fmt: skip
_STOPPED = (Kind.STOPPED_WORKER, Kind.STOPPED_ACTOR, Kind.STOPPED_DRIVER, Kind.STOPPED_RAYLET)
_OFTEN: dict[Kind, float] = {
    Kind.WORKER: 5, Kind.SEGFAULT: 2, Kind.ACTOR: 5, Kind.BOTH: 2,
    Kind.DRIVER_KILL: 1, Kind.DRIVER_TERM: 1, Kind.DRIVER_INT: 1, Kind.DRIVER_HUP: 1,
    Kind.STOPPED_WORKER: 1, Kind.STOPPED_ACTOR: 1, Kind.STOPPED_DRIVER: 1, Kind.STOPPED_RAYLET: 1, Kind.FULL: 1,
}  # fmt: skip
_OFTEN_THERE: dict[Place, dict[Kind, float]] = {
    Place.OWN: {Kind.RAYLET: 2, Kind.GCS: 2, Kind.SECOND: 1},
    # a cluster whose GCS is killed is built again, which takes long
    Place.CLUSTER: {Kind.NODE: 3, Kind.CUT: 1, Kind.CUT_A_WHILE: 1, Kind.RAYLET: 1, Kind.GCS: 0.3, Kind.SECOND: 1},
    Place.DETACHED: {Kind.NODE: 3, Kind.CUT: 1, Kind.CUT_A_WHILE: 1, Kind.RAYLET: 1, Kind.GCS: 0.3},
}


_OFTEN_REPORTING: dict[Kind, float] = {
    **dict.fromkeys(AT_A_STEP, 2), **dict.fromkeys(WHILE_PAUSED, 4),
    Kind.WORKER: 2, Kind.ACTOR: 2, Kind.DRIVER_KILL: 1, Kind.RAYLET: 1,
}  # fmt: skip


@dataclass(frozen=True)
class Kill:
    """One thing that is done to a study.

    Attributes:
        events: how many are committed between the kill before it and this one; 0 strikes what is just recovering.
        delay: seconds that pass then.
        which: of those it may meet, from 0 to below 1.
        seconds: how long a host is cut off, or a process stopped, for a while.
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
        scheduler: what ends its trials early, which then report, and its options; None for nothing.
        reports: whether its trials report.
    """

    number: int
    place: Place
    method: str
    seed: int
    workers: int | None
    trials: int
    trial_seconds: float
    kills: tuple[Kill, ...]
    scheduler: tuple[str, dict[str, int | str]] | None = None
    reports: bool = False


def study_struck_by(kinds: list[Kind], place: Place, method: str) -> PlannedStudy:
    """Return a study to which each of these is done once, in their order."""
    return PlannedStudy(
        number=list(Place).index(place),
        place=place,
        method=method,
        seed=1,
        workers=2 if place is Place.OWN else None,
        trials=40 + 4 * len(kinds),
        trial_seconds=0.8,  # to sleep costs less than to propose more trials
        kills=tuple(Kill(kind, events=6, delay=0.1, which=0.5, seconds=8.0) for kind in kinds),
    )


def kinds_at(place: Place, *, disk: bool) -> dict[Kind, float]:
    """Return what may be done to a study there, with relative frequencies.

    Args:
        disk: whether there is a small disk to be filled.
    """
    often = {**_OFTEN, **_OFTEN_THERE[place]}
    return {kind: weight for kind, weight in often.items() if disk or kind is not Kind.FULL}


def kinds_where_trials_report(place: Place, scheduler: tuple[str, dict[str, int | str]] | None) -> dict[Kind, float]:
    """Return what may be done to a study whose trials report, beside what may be done to any."""
    left_out = set() if scheduler is not None and scheduler[1].get("variant") == "promote" else set(WHILE_PAUSED)
    left_out |= {Kind.PAUSED_NODE} if place is Place.OWN else set()
    return {kind: weight for kind, weight in _OFTEN_REPORTING.items() if kind not in left_out}


def reporting_studies(seed: int, *, hosts: bool, first: int = 0, kills: int = KILLS_A_STUDY) -> Iterator[PlannedStudy]:
    """A plan of its own: every study's trials report, and are killed at their steps and while they are paused."""
    places = tuple(Place) if hosts else (Place.OWN,)
    for number in count(first):
        rng = random.Random(f"reports-{seed}-{number}")
        where, which, method = crossed(number, len(places), len(REPORTED_TO), len(REPORTING))
        place, scheduler = places[where], REPORTED_TO[(seed + which) % len(REPORTED_TO)]
        often = kinds_where_trials_report(place, scheduler)
        chosen = REPORTING[(seed + method) % len(REPORTING)]
        yield replace(_drawn(rng, number, place, chosen, scheduler, often, kills), reports=True)


def crossed(number: int, *lengths: int) -> list[int]:
    """The number's place in each of several lists, whatever their lengths: any two are crossed as soon as can be.

    A list begins one further whenever it and those before it would come together again as they were.
    """
    period, places = 1, []
    for length in lengths:
        places.append((number + number % (period * length) // lcm(period, length)) % length)
        period *= length
    return places


def studies(
    seed: int, *, hosts: bool, disk: bool, first: int = 0, kills: int = KILLS_A_STUDY
) -> Iterator[PlannedStudy]:
    """The studies of a seed, without end: each with so many kills. The same seed gives the same ones.

    Args:
        hosts: whether there may be several hosts; without them every study has a Ray of its own.
        disk: whether there is a small disk to be filled.
        first: number of the study to begin with.
    """
    for number in count(first):
        rng = random.Random(f"{seed}-{number}")
        place = PLACES[number % len(PLACES)] if hosts else Place.OWN
        often = kinds_at(place, disk=disk)
        which, method = crossed(seed + number, len(SCHEDULERS), len(METHODS))
        yield _drawn(rng, number, place, METHODS[method], SCHEDULERS[which], often, kills)


def _drawn(
    rng: random.Random,
    number: int,
    place: Place,
    method: str,
    scheduler: tuple[str, dict[str, int | str]] | None,
    often: dict[Kind, float],
    kills: int,
) -> PlannedStudy:
    return PlannedStudy(
        number=number,
        place=place,
        method=method,
        seed=rng.randrange(2**31),
        workers=2 if place is Place.OWN else rng.choice([None, 3]),
        trials=TRIALS + TRIALS_A_KILL * kills,
        trial_seconds=rng.choice([0.2, 0.4, 0.6]),
        kills=tuple(_kill(rng, often) for _ in range(kills)),
        scheduler=scheduler,
        reports=scheduler is not None,
    )


def _kill(rng: random.Random, often: dict[Kind, float]) -> Kill:
    (kind,) = rng.choices(list(often), list(often.values()))
    seconds = STOPPED_SECONDS if kind in _STOPPED else CUT_SECONDS
    return Kill(kind, rng.choice([0, 1, 2, 3, 5, 8]), rng.uniform(0, 0.4), rng.random(), rng.uniform(*seconds))
