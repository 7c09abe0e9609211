"""A few dozen kills, every kind among them, and damage done on purpose, which the harness must notice."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine import hosts
from tests.faults.checks import Wrong
from tests.faults.cluster import Cluster
from tests.faults.harness import Report, look_for_processes, run
from tests.faults.plan import ON_NODES, Kill, Kind, Place, PlannedStudy
from tests.faults.running import HERE

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(900)]

ON_HOSTS = pytest.mark.skipif(not hosts.are_possible(), reason="needs root and network namespaces")


def planned(place: Place, method: str, kinds: list[Kind]) -> PlannedStudy:
    return PlannedStudy(
        number=list(Place).index(place),
        place=place,
        method=method,
        seed=1,
        workers=2 if place is Place.OWN else None,
        trials=30 + 5 * len(kinds),
        trial_seconds=0.3,
        kills=tuple(Kill(kind, events=6, delay=0.1, which=0.5, seconds=8.0) for kind in kinds),
    )


def shuffled(kinds: list[Kind]) -> list[Kind]:
    return random.Random(3).sample(kinds, len(kinds))


def everything(report: Report) -> list[str]:
    left = [] if report.later is None else look_for_processes(report.later)
    return [str(complaint) for complaint in [*report.complaints, *left]]


def test_each_kind_of_kill_of_a_study_with_a_ray_of_its_own(tmp_path: Path) -> None:
    kinds = [kind for kind in Kind if kind not in ON_NODES]
    report = run(planned(Place.OWN, "auto", shuffled(kinds)), tmp_path)
    assert everything(report) == []
    assert set(report.kills) == set(kinds)
    assert report.retried["the study was interrupted"]
    assert report.recoveries


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster() as found:
        yield found


@ON_HOSTS
@pytest.mark.parametrize(("place", "method"), [(Place.CLUSTER, "gp-ucb"), (Place.DETACHED, "sbo-kde")])
def test_each_kind_of_kill_of_a_study_on_a_cluster(tmp_path: Path, cluster: Cluster, place: Place, method: str) -> None:
    report = run(planned(place, method, [Kind.NODE, *shuffled(list(Kind))]), tmp_path, cluster)
    assert everything(report) == []
    assert report.kills.total() >= 10  # a loss of a node may come too late: it waits for another to have joined
    assert set(report.kills) >= {Kind.ACTOR, Kind.WORKER, Kind.DRIVER_KILL}
    assert set(report.kills) & set(ON_NODES)
    assert report.retried["the study was interrupted"]


def broken(directory: Path, file: str, before: str, after: str) -> Path:
    """A clone whose engine has a defect."""
    for name in ("raybo", "tests"):
        shutil.copytree(HERE / name, directory / name, ignore=shutil.ignore_patterns("__pycache__"))
    path = directory / "raybo" / "engine" / file
    text = path.read_text(encoding="utf-8")
    assert text.count(before) == 1
    path.write_text(text.replace(before, after), encoding="utf-8")
    return directory


@pytest.mark.parametrize(
    ("file", "before", "after", "kinds", "wrong"),
    [
        (
            "event_log.py",
            "self.journal.append(self._unwritten)",
            "self.journal.append([e for e in self._unwritten if (e.trial, e.kind) != (5, Kind.TOLD)])",
            [],
            {Wrong.LOST, Wrong.GAPS, Wrong.UNFINISHED},
        ),
        ("lifecycle.py", "self.attempt + following.submit", "self.attempt", [Kind.WORKER], {Wrong.ATTEMPTS}),
    ],
    ids=["a commit is left out", "attempts are not counted"],
)
def test_a_defect_is_noticed(
    tmp_path: Path, file: str, before: str, after: str, kinds: list[Kind], wrong: set[Wrong]
) -> None:
    source = broken(tmp_path / "clone", file, before, after)
    report = run(planned(Place.OWN, "random", kinds), tmp_path, source=source)
    assert report.later is not None
    look_for_processes(report.later)
    assert {complaint.wrong for complaint in report.complaints} >= wrong
