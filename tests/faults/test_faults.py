"""Studies survive a few dozen kills, one of every kind at least, and the harness notices damage done on purpose."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine import hosts
from tests.faults import disk
from tests.faults.checks import Wrong
from tests.faults.cluster import Cluster
from tests.faults.harness import Report, look_for_processes, run
from tests.faults.plan import LOSE_NODES, Kill, Kind, Place, PlannedStudy, kinds_at
from tests.faults.running import HERE
from tests.renewed import Renewed

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(1_800)]

ON_HOSTS = pytest.mark.skipif(not hosts.are_possible(), reason="needs root and network namespaces")


def planned(place: Place, method: str, kinds: list[Kind]) -> PlannedStudy:
    return PlannedStudy(
        number=list(Place).index(place),
        place=place,
        method=method,
        seed=1,
        workers=2 if place is Place.OWN else None,
        trials=80 + 10 * len(kinds),
        trial_seconds=0.3,
        kills=tuple(Kill(kind, events=6, delay=0.1, which=0.5, seconds=8.0) for kind in kinds),
    )


def shuffled(kinds: list[Kind]) -> list[Kind]:
    return random.Random(3).sample(kinds, len(kinds))


def everything(report: Report) -> list[str]:
    left = [] if report.later is None else look_for_processes(report.later)
    return [str(complaint) for complaint in [*report.complaints, *left]]


@pytest.fixture(scope="module")
def small() -> Iterator[disk.Disk | None]:
    if not disk.is_possible():
        yield None
        return
    with disk.Disk() as mounted:
        yield mounted


def test_every_kill_with_an_own_ray(tmp_path: Path, small: disk.Disk | None) -> None:
    kinds = list(kinds_at(Place.OWN, disk=small is not None))
    kinds.remove(Kind.SECOND)
    # first, as it has to wait long after the loss of a Ray
    report = run(planned(Place.OWN, "auto", [Kind.SECOND, *shuffled(kinds)]), tmp_path, disk=small)
    assert everything(report) == []
    assert set(report.kills) == {Kind.SECOND, *kinds}
    assert report.retried["the study was interrupted"]
    assert {kind for kind, _ in report.recoveries} >= {Kind.ACTOR}


@pytest.fixture(scope="module")
def clusters(small: disk.Disk | None) -> Iterator[Renewed[Cluster]]:  # the disk first: hosts see what was mounted then
    with Renewed(Cluster) as renewed:
        yield renewed


@pytest.fixture
def cluster(clusters: Renewed[Cluster], request: pytest.FixtureRequest) -> Iterator[Cluster]:
    yield from clusters.lend(request.node)


@ON_HOSTS
@pytest.mark.parametrize(("place", "method"), [(Place.CLUSTER, "gp-ucb"), (Place.DETACHED, "sbo-kde")])
def test_every_kill_on_a_cluster(
    tmp_path: Path, cluster: Cluster, small: disk.Disk | None, place: Place, method: str
) -> None:
    kinds = list(kinds_at(place, disk=small is not None))
    report = run(planned(place, method, [Kind.NODE, *shuffled(kinds)]), tmp_path, cluster, small)
    assert everything(report) == []
    assert set(report.kills) >= {*kinds} - {*LOSE_NODES}  # these may come too late: they wait for another to join
    assert set(report.kills) & set(LOSE_NODES)
    assert report.retried["the study was interrupted"]


def broken(directory: Path, file: str, edits: dict[str, str]) -> Path:
    """A clone whose raybo has a defect."""
    for name in ("raybo", "tests"):
        shutil.copytree(HERE / name, directory / name, ignore=shutil.ignore_patterns("__pycache__"))
    path = directory / "raybo" / file
    text = path.read_text(encoding="utf-8")
    for before, after in edits.items():
        assert text.count(before) == 1
        text = text.replace(before, after)
    path.write_text(text, encoding="utf-8")
    return directory


DEFECTS: dict[str, tuple[str, dict[str, str], list[Kind], set[Wrong]]] = {
    "a commit is left out": (
        "engine/study/event_log.py",
        {
            "self.journal.append(batch)": (
                "self.journal.append([e for e in batch if (e.trial, str(e.kind)) != (5, 'told')])"
            )
        },
        [],
        {Wrong.UNFINISHED},  # the journal itself misses the event, and is refused
    ),
    "attempts are not counted": (
        "engine/lifecycle.py",
        {"self.attempt + following.submit": "self.attempt"},
        [Kind.WORKER],
        {Wrong.ATTEMPTS},
    ),
    "no other Ray is started": ("engine/driver.py", {"RAYS = 4": "RAYS = 1"}, [Kind.RAYLET], {Wrong.UNFINISHED}),
    "no patience with a study actor": (
        "engine/follow.py",
        {"return  # it is lost, restarts,": "raise  # it is lost, restarts,"},
        [Kind.STOPPED_ACTOR],
        {Wrong.UNFINISHED},
    ),
    "a full disk ends in a traceback": (
        "journal/schema.py",
        {'raise JournalError(f"{path}: {error}; check the disk': 'raise OSError(f"{path}: {error}; check the disk'},
        [Kind.FULL],
        {Wrong.UNSAID},
    ),
    "the lock holds nobody": (
        "journal/lock.py",
        {
            "systems.lock(file.fileno())": "systems.lock(file.fileno(), shared=True)",
            "systems.lock_byte(journal, FIRST_BYTE)": "pass",
        },
        [Kind.SECOND],
        {Wrong.WRITERS},
    ),
}


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_defect_is_noticed(tmp_path: Path, small: disk.Disk | None, defect: str) -> None:
    file, edits, kinds, wrong = DEFECTS[defect]
    if Kind.FULL in kinds and small is None:
        pytest.skip("no file system may be mounted here")
    source = broken(tmp_path / "clone", file, edits)
    report = run(planned(Place.OWN, "random", kinds), tmp_path, disk=small, source=source)
    assert report.later is not None
    look_for_processes(report.later)
    assert {complaint.wrong for complaint in report.complaints} >= wrong
