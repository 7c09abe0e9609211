"""Studies survive a few dozen kills, one of every kind at least."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine import hosts
from tests.faults import disk
from tests.faults.cluster import Cluster
from tests.faults.harness import Report, look_for_processes, run
from tests.faults.plan import LOSE_NODES, Kind, Place, kinds_at, study_struck_by
from tests.renewed import Renewed

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(1_800)]

ON_HOSTS = pytest.mark.skipif(not hosts.are_possible(), reason="needs root and network namespaces")


def shuffled(kinds: list[Kind]) -> list[Kind]:
    return random.Random(3).sample(kinds, len(kinds))


def everything(report: Report) -> list[str]:
    left = [] if report.later is None else look_for_processes(report.later)
    return [str(complaint) for complaint in [*report.complaints, *left]]


def test_every_kill_with_an_own_ray(tmp_path: Path, small: disk.Disk | None) -> None:
    kinds = list(kinds_at(Place.OWN, disk=small is not None))
    kinds.remove(Kind.SECOND)
    # first, as it has to wait long after the loss of a Ray
    report = run(study_struck_by([Kind.SECOND, *shuffled(kinds)], Place.OWN, "auto"), tmp_path, disk=small)
    assert everything(report) == []
    assert set(report.kills) == {Kind.SECOND, *kinds}
    assert report.retried["the process that ran it was interrupted"]
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
    report = run(study_struck_by([Kind.NODE, *shuffled(kinds)], place, method), tmp_path, cluster, small)
    assert everything(report) == []
    assert set(report.kills) >= {*kinds} - {*LOSE_NODES}  # these may come too late: they wait for another to join
    assert set(report.kills) & set(LOSE_NODES)
    assert report.retried["the process that ran it was interrupted"]
