"""The resources of a trial, in the form that Ray expects, and how many trials a cluster can run at a time."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from raybo.common.errors import RayError
from raybo.job.objective import Objective


def resources_of(objective: Objective) -> dict[str, Any]:
    """Return the resources of a trial's task, as arguments of `ray.remote`: none if a trainer in it takes them."""
    if objective.nested:
        return {"num_cpus": 0, "num_gpus": 0}
    resources: dict[str, Any] = {"num_cpus": objective.num_cpus, "num_gpus": objective.num_gpus}
    if objective.memory is not None:
        resources["memory"] = objective.memory
    if objective.resources:
        resources["resources"] = dict(objective.resources)
    return resources


WAITING_SHARE = 4  # one more trial waits for every four that run, so that a cluster grows


def waiting_for_room(room: int) -> int:
    """Return how many trials wait in Ray's queue beside those that run, so that a cluster grows: at least one.

    More would make it grow faster, but no trial knows the results of those before it in the queue.
    """
    return max(1, room // WAITING_SHARE)


def share_of(room: int, studies: int, place: int) -> int:
    """Return how many of the trials that there is room for are one study's: an even share, at least one.

    Args:
        room: how many there is room for.
        studies: how many share it.
        place: of this study among them, from 0; the first ones get the remainder.
    """
    return max(1, room // studies + (place < room % studies))


def wanted_by(objective: Objective) -> dict[str, float]:
    """Return what each process of a trial occupies, by Ray's names."""
    return {
        "CPU": objective.num_cpus,
        "GPU": objective.num_gpus,
        "memory": objective.memory or 0,
        **objective.resources,
    }


def workers_available(nodes: Sequence[Mapping[str, Any]], objective: Objective, processes: int | None = None) -> int:
    """Return how many of the objective's trials a cluster of nodes, as in `ray.nodes()`, can run at a time.

    Args:
        nodes: the cluster's.
        objective: what its trials occupy.
        processes: of each trial; None for what the objective declares, and 1 if it declares a function.
    Raises:
        RayError: not even one; Ray itself would wait for such a trial for ever.
    """
    if processes is None:
        processes = 1 if callable(objective.processes) else objective.processes
    wanted = wanted_by(objective)
    offers = [node["Resources"] for node in nodes if node["Alive"]]
    rooms = [
        min((offer.get(name, 0.0) / amount for name, amount in wanted.items() if amount > 0), default=float("inf"))
        for offer in offers
    ]
    whole = [int(room) if room < float("inf") else max(os.cpu_count() or 1, processes) for room in rooms]
    total = sum(whole)
    if total < 1:
        offered = {name: max((offer.get(name, 0.0) for offer in offers), default=0.0) for name in wanted}
        short = next((name for name in wanted if wanted[name] > offered[name]), None)
        if short is None:
            needs = ", ".join(f"{name}={amount:g}" for name, amount in wanted.items() if amount > 0)
            raise RayError(
                f"a trial needs {needs}, and no node of the cluster has all of it; ask for less, or add a node"
            )
        raise RayError(
            f"a trial needs {short}={wanted[short]:g}, and no node of the cluster has more than {offered[short]:g}; "
            "ask for less in @raybo.objective, or add a node"
        )
    if processes == 1:
        return total
    if objective.spread == "strict-pack":
        total = sum(room // processes for room in whole)
        place, held = "one node", max(whole)
    elif objective.spread == "strict-spread":
        place, held = "the cluster, each on a node of its own,", sum(room > 0 for room in whole)
        # of so many trials, a node holds one process each
        total = max(trials for trials in range(total + 1) if sum(min(r, trials) for r in whole) >= trials * processes)
    else:
        place, held, total = "the cluster", total, total // processes
    if total < 1:
        needs = ", ".join(f"{name}={amount:g}" for name, amount in wanted.items() if amount > 0)
        raise RayError(
            f"a trial needs {processes} processes of {needs}, and {place} has room for {held}; ask for fewer, for less "
            "in @raybo.objective, or add a node"
        )
    return total
