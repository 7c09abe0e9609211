"""Holds what a study and the processes of one of its trials send each other, as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class Arrival:
    """Describes a process that has begun.

    Attributes:
        node: Ray's name of its node.
        address: the node's.
        port: a port that it holds; 0 if it holds none, as only the first one does.
        devices: Ray's names of the GPUs that are its own.
        has_checkpoint: whether it finds the checkpoint to continue from.
    """

    node: str
    address: str
    port: int = 0
    devices: tuple[str, ...] = ()
    has_checkpoint: bool = True


@dataclass(frozen=True)
class Seat:
    """A process's place among those of its trial.

    Attributes:
        rank, world_size, local_rank, local_world_size, node_rank: as `torchrun` names them.
        address, port: where the first one can listen, for the others.
        devices: the GPUs of all processes on its node; none unless each process has one that is its own, as no number
            is right then.
        has_checkpoint: whether all of them find the checkpoint to continue from.
        nodes: Ray's names of the nodes of all of them.
    """

    rank: int
    world_size: int
    local_rank: int
    local_world_size: int
    node_rank: int
    address: str
    port: int
    devices: tuple[str, ...]
    has_checkpoint: bool
    nodes: tuple[str, ...] = ()

    @property
    def place(self) -> dict[str, Any]:
        """The place of the process among the others, as `raybo.current_trial()` shows it."""
        names = ("rank", "world_size", "local_rank", "local_world_size", "node_rank")
        return {name: getattr(self, name) for name in names}

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables that `torchrun` would set, and the devices of this node."""
        found = {
            "RANK": str(self.rank),
            "WORLD_SIZE": str(self.world_size),
            "LOCAL_RANK": str(self.local_rank),
            "LOCAL_WORLD_SIZE": str(self.local_world_size),
            "GROUP_RANK": str(self.node_rank),
            "MASTER_ADDR": self.address,
            "MASTER_PORT": str(self.port),
        }
        if self.devices:  # so that the device of this number is LOCAL_RANK's, in every process of the node
            found["CUDA_VISIBLE_DEVICES"] = ",".join(self.devices)
        return found


def seats(arrivals: Sequence[Arrival]) -> list[Seat]:
    """Return the seat of each process; those of a node are neighbours, and the first one is rank 0."""
    nodes = list(dict.fromkeys(arrival.node for arrival in arrivals))
    order = sorted(range(len(arrivals)), key=lambda index: nodes.index(arrivals[index].node))
    address = arrivals[0].address if len(nodes) > 1 else LOOPBACK
    has_checkpoint = all(arrival.has_checkpoint for arrival in arrivals)
    found: dict[int, Seat] = {}
    for rank, index in enumerate(order):
        here = [other for other in order if arrivals[other].node == arrivals[index].node]
        each = [arrivals[other].devices for other in here]
        pooled = tuple(dict.fromkeys(device for own in each for device in own))
        is_one_each = len(pooled) == len(here) and all(len(own) == 1 for own in each)
        found[index] = Seat(
            rank=rank,
            world_size=len(arrivals),
            local_rank=here.index(index),
            local_world_size=len(here),
            node_rank=nodes.index(arrivals[index].node),
            address=address,
            port=arrivals[0].port,
            devices=pooled if is_one_each else (),
            has_checkpoint=has_checkpoint,
            nodes=tuple(nodes),
        )
    return [found[index] for index in range(len(arrivals))]
