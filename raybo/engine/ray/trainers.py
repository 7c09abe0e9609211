"""Ends what a trainer of Ray Train leaves behind in a trial that has ended by force.

The trial's process owns the trainer's controller, and that its workers: all of them end with it. Their placement group
stays, with their resources, until the job of the study ends. So does the trainer's cleaner, which is to remove the
group: it asks a dashboard whether the controller lives, and where there is none it asks for ever, and holds up every
good end of its trainer, too.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Collection
from pathlib import Path
from typing import Any

CONTROLLER, CLEANER = "TrainController", "PlacementGroupCleaner"  # classes of Ray Train's


def end_left(owner: str | None = None) -> bool:
    """Remove the placement groups of trainers whose controllers have died, and end their cleaners.

    Args:
        owner: Ray's name of the process of an attempt; None for none in particular.
    Returns:
        True if nothing of this attempt's trainers is left.
    """
    try:
        actors, groups = _tables()
    except Exception:  # noqa: BLE001  # private, so that anything may have become of it
        return True
    controllers = [each for each in actors if each.class_name == CONTROLLER]
    dead = [each for each in controllers if each.state == each.DEAD]
    is_over = all(each in dead for each in controllers if each.owner_address.worker_id.hex() == owner)
    ended = {each.actor_id for each in dead}
    left = [each for each in groups if each.creator_actor_id in ended and each.state != each.REMOVED]
    for group in left:
        _remove(group.placement_group_id)
    cleaners = _cleaners(actors, {each.address.worker_id for each in dead})
    for cleaner in cleaners:
        _end(cleaner)
    return is_over and not left and not cleaners


def end_own_cleaner() -> None:
    """End the cleaner of the trainer whose controller this process is: the study does its work."""
    import ray

    with contextlib.suppress(Exception):  # private, so that anything may have become of it
        for cleaner in _cleaners(_tables()[0], {bytes.fromhex(ray.get_runtime_context().get_worker_id())}):
            _end(cleaner)


def _tables() -> tuple[list[Any], list[Any]]:
    """Return the actors of this job, and all placement groups."""
    import ray
    from ray._private.state import state
    from ray.core.generated import gcs_pb2

    tables: Any = gcs_pb2
    known: Any = state
    accessor = known._connect_and_get_accessor()
    job = ray.get_runtime_context().get_job_id()
    actors = [tables.ActorTableData.FromString(each) for each in accessor.get_actor_table(None, None)]
    groups = [tables.PlacementGroupTableData.FromString(each) for each in accessor.get_placement_group_table()]
    return [each for each in actors if each.job_id.hex() == job], groups


def _cleaners(actors: Collection[Any], owners: Collection[bytes]) -> list[Any]:
    return [
        each
        for each in actors
        if each.class_name == CLEANER and each.state != each.DEAD and each.owner_address.worker_id in owners
    ]


def _remove(group: bytes) -> None:
    from ray._raylet import PlacementGroupID
    from ray.util.placement_group import PlacementGroup, remove_placement_group

    with contextlib.suppress(Exception):  # it has just gone
        remove_placement_group(PlacementGroup(PlacementGroupID(group)))


def _end(cleaner: Any) -> None:
    """End an actor that nobody has a handle of, on whichever node it is."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    if cleaner.state != cleaner.ALIVE:  # it is about to be
        return
    node = cleaner.address.node_id.hex()
    if node == ray.get_runtime_context().get_node_id():
        _kill(cleaner.pid)
        return
    there = NodeAffinitySchedulingStrategy(node, soft=False)
    remote: Any = ray.remote
    remote(num_cpus=0, max_retries=0, scheduling_strategy=there)(_kill).remote(cleaner.pid)


def _kill(pid: int) -> None:
    """Kill a cleaner on this node, unless it has gone and another process has its number."""
    with contextlib.suppress(OSError):
        if not Path("/proc").is_dir() or CLEANER.encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
            os.kill(pid, signal.SIGKILL)
