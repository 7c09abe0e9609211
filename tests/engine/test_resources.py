"""Resources of trials, and the number of trials that fit."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace

import pytest

import raybo
from raybo.common.errors import RayError
from raybo.engine.ray.resources import resources_of, share_of, waiting_for_room, workers_available
from raybo.engine.run_options import RunOptions
from raybo.engine.study import capacity as capacities
from raybo.engine.study.timings import Timings


def asking(**resources):
    """An objective whose trials hold these."""
    return raybo.objective(space={"x": raybo.Float(0, 1)}, **resources)(lambda config: config["x"])


def nodes(*found):
    """Nodes as Ray lists them: alive or not, with these resources."""
    return [{"Resources": resources, "Alive": alive} for alive, resources in found]


def test_ray_gets_only_declared_resources():
    assert resources_of(asking()) == {"num_cpus": 1, "num_gpus": 0}
    everything = asking(num_cpus=0.5, num_gpus=2, memory=3e9, resources={"disk": 1})
    assert resources_of(everything) == {"num_cpus": 0.5, "num_gpus": 2, "memory": 3e9, "resources": {"disk": 1}}


def test_room_is_counted_per_node():
    cluster = nodes(
        (True, {"CPU": 4.0, "GPU": 1.0, "memory": 8e9}),
        (True, {"CPU": 3.0, "disk": 2.0}),
        (False, {"CPU": 99.0, "GPU": 99.0}),  # a node that is gone
    )
    assert workers_available(cluster, asking()) == 7
    assert workers_available(cluster, asking(num_cpus=2)) == 3  # no trial runs on two nodes
    assert workers_available(cluster, asking(num_cpus=0.5)) == 14
    assert workers_available(cluster, asking(num_gpus=0.5)) == 2
    assert workers_available(cluster, asking(memory=3e9)) == 2
    assert workers_available(cluster, asking(resources={"disk": 1})) == 2
    assert workers_available(cluster, asking(num_cpus=0)) >= 1
    with pytest.raises(
        RayError, match=r"a trial needs CPU=5, and no node of the cluster has more than 4; ask for less"
    ):
        workers_available(cluster, asking(num_cpus=5))
    with pytest.raises(RayError, match="a trial needs tpu=1, and no node of the cluster has more than 0"):
        workers_available(cluster, asking(resources={"tpu": 1}))


def test_resources_spread_over_nodes_are_refused():
    cluster = nodes((True, {"CPU": 4.0}), (True, {"GPU": 1.0}))
    with pytest.raises(RayError, match="a trial needs CPU=1, GPU=1, and no node of the cluster has all of it"):
        workers_available(cluster, asking(num_gpus=1))


@pytest.mark.parametrize(("room", "waiting"), [(1, 1), (4, 1), (8, 2), (1_000, 250)])
def test_one_more_trial_in_four_waits_for_growth(room, waiting):
    assert waiting_for_room(room) == waiting


@pytest.mark.parametrize(
    ("room", "studies", "shares"),
    [(16, 10, [2] * 6 + [1] * 4), (20, 10, [2] * 10), (7, 1, [7]), (3, 2, [2, 1]), (4, 10, [1] * 10)],
)
def test_studies_share_the_room_evenly(room, studies, shares):
    assert [share_of(room, studies, place) for place in range(studies)] == shares


@pytest.mark.parametrize(
    ("studies", "room", "is_alone"), [((10, 3), 2, False), ((10, 7), 1, False), ((1, 0), 16, True)]
)
def test_study_takes_its_share_of_the_room(monkeypatch, studies, room, is_alone):
    asked = []
    monkeypatch.setattr(capacities, "studies_here", lambda name: asked.append(name) or studies)
    plan = SimpleNamespace(options=RunOptions(detach=True), path=Path("/journals/b.db"), trials=100, workers=1)
    capacity = capacities.Capacity(plan, asking(), Timings(16, takes_all_room=True))
    capacity.timings.trials.append(0.0)
    asyncio.run(capacity.update(nodes((True, {"CPU": 16.0}))))
    assert asked == ["b"]
    assert (capacity.room, capacity.timings.takes_all_room, capacity.timings.is_short()) == (room, is_alone, is_alone)


def test_room_is_counted_in_whole_gangs():
    cluster = nodes((True, {"GPU": 4.0, "CPU": 8.0}), (True, {"GPU": 4.0, "CPU": 8.0}))

    def room(count, spread):
        return workers_available(cluster, asking(num_cpus=0, num_gpus=1, processes=count, spread=spread))

    assert room(3, "pack") == room(3, "spread") == 2
    assert room(3, "strict-pack") == 2
    assert room(2, "strict-pack") == 4
    assert room(2, "strict-spread") == 4
    assert room(8, "pack") == 1
    with pytest.raises(
        RayError, match="a trial needs 5 processes of GPU=1, and one node has room for 4; ask for fewer"
    ):
        room(5, "strict-pack")
    with pytest.raises(RayError, match="the cluster, each on a node of its own, has room for 2; ask for fewer"):
        room(3, "strict-spread")
    with pytest.raises(
        RayError, match="a trial needs 9 processes of GPU=1, and the cluster has room for 8; ask for fewer"
    ):
        room(9, "pack")
    assert workers_available(cluster, asking(num_cpus=2, processes=lambda config: 4)) == 8
