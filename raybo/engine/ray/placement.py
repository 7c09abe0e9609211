"""Placement groups: the resources of a trial's processes, reserved together or not at all.

A group that is made by an actor outlives it, until the driver ends; so its name says whose it is, and the actor that
follows removes it.
"""

from __future__ import annotations

import contextlib
from typing import Any

from raybo.engine.ray.resources import wanted_by
from raybo.job.objective import Objective

STRATEGIES = {"pack": "PACK", "strict-pack": "STRICT_PACK", "spread": "SPREAD", "strict-spread": "STRICT_SPREAD"}
REMOVED = "REMOVED"
LEAST = {"memory": 1.0}  # bytes: Ray refuses a bundle of nothing


def reserve(objective: Objective, processes: int, name: str) -> Any:
    """Ask for a placement group with a bundle for each process; `is_reserved` tells when it is there."""
    from ray.util import placement_group

    bundle = {resource: amount for resource, amount in wanted_by(objective).items() if amount > 0} or LEAST
    return placement_group([bundle] * processes, strategy=STRATEGIES[objective.spread], name=name)


def is_reserved(group: Any, seconds: float) -> bool:
    """Wait at most so long for a placement group; True if it is there."""
    return bool(group.wait(seconds))


def in_bundle(group: Any, index: int) -> Any:
    """Return the scheduling strategy that puts a task into one bundle of a group."""
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

    return PlacementGroupSchedulingStrategy(group, index)


def release(group: Any) -> None:
    """Remove a placement group. What still runs in it is killed; a task that waits in it would wait for ever."""
    from ray.util import remove_placement_group

    with contextlib.suppress(Exception):  # it is gone with its node or its Ray
        remove_placement_group(group)


def release_all(prefix: str) -> int:
    """Remove all placement groups whose names begin so, with what runs in them; return how many there were."""
    from ray.util import get_placement_group, placement_group_table

    table: Any = placement_group_table
    left = [each["name"] for each in table().values() if each["state"] != REMOVED and each["name"].startswith(prefix)]
    for name in left:
        with contextlib.suppress(ValueError):  # it has just gone, or it is another namespace's
            release(get_placement_group(name))
    return len(left)
