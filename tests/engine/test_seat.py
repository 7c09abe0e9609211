"""The places of a trial's processes, as torchrun would number them."""

from __future__ import annotations

import pytest

from raybo.engine.trial.seat import Arrival, seats


def test_one_node_listens_on_loopback_only():
    found = seats([Arrival("a", "10.0.0.1", port=4711), Arrival("a", "10.0.0.1")])
    assert [seat.rank for seat in found] == [seat.local_rank for seat in found] == [0, 1]
    assert found[1].variables == {
        "RANK": "1",
        "WORLD_SIZE": "2",
        "LOCAL_RANK": "1",
        "LOCAL_WORLD_SIZE": "2",
        "GROUP_RANK": "0",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "4711",
    }


def test_ranks_of_a_node_are_neighbours():
    found = seats([Arrival(node, f"10.0.0.{node}", port=1) for node in "12121"])
    assert [seat.rank for seat in found] == [0, 3, 1, 4, 2]
    assert [seat.local_rank for seat in found] == [0, 0, 1, 1, 2]
    assert [seat.local_world_size for seat in found] == [3, 2, 3, 2, 3]
    assert [seat.node_rank for seat in found] == [0, 1, 0, 1, 0]
    assert {seat.address for seat in found} == {"10.0.0.1"}


def test_each_rank_sees_its_nodes_devices():
    found = seats([Arrival(node, "", devices=(gpu,)) for node, gpu in ["a5", "b0", "a2", "b1"]])
    assert [seat.variables["CUDA_VISIBLE_DEVICES"] for seat in found] == ["5,2", "0,1", "5,2", "0,1"]
    assert [seat.local_rank for seat in found] == [0, 0, 1, 1]


@pytest.mark.parametrize("devices", [[("0", "1"), ("2", "3")], [("0",), ("0",)], [("0",), ()]])
def test_ranks_keep_the_devices_that_ray_gave_them_unless_each_has_one(devices):
    found = seats([Arrival("a", "", devices=own) for own in devices])
    assert all("CUDA_VISIBLE_DEVICES" not in seat.variables for seat in found)


def test_all_find_the_checkpoint_or_none():
    assert all(seat.has_checkpoint for seat in seats([Arrival("a", ""), Arrival("b", "")]))
    assert not any(seat.has_checkpoint for seat in seats([Arrival("a", ""), Arrival("b", "", has_checkpoint=False)]))
