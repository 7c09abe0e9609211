"""The names of the studies on a cluster: each is the name of a Ray actor, in one of two namespaces."""

from __future__ import annotations

from typing import Any

NAMESPACE = "raybo"  # Ray's namespace of the names of detached studies
ATTACHED = "raybo-attached"  # of those that belong to a command


def study_names(ray: Any) -> list[str]:
    """Return the names of the detached studies on the cluster that this process is part of."""
    return [name for namespace, name in _names(ray) if namespace == NAMESPACE]


def studies_here(name: str) -> tuple[int, int]:
    """Return how many studies share the cluster that this process is part of, and this one's place among them, from 0.

    Args:
        name: of the study that asks, detached or not.
    """
    import ray

    names = sorted(name for _, name in _names(ray))
    return (len(names), names.index(name)) if name in names else (len(names) + 1, len(names))


def _names(ray: Any) -> list[tuple[str, str]]:
    actors = ray.util.list_named_actors(all_namespaces=True)
    found = [(actor["namespace"], actor["name"]) for actor in actors]
    return [each for each in found if each[0] in (NAMESPACE, ATTACHED)]
