"""The names of the detached studies on a cluster: each is the name of a Ray actor in one namespace."""

from __future__ import annotations

from typing import Any

NAMESPACE = "raybo"  # Ray's namespace of the actors' names


def study_names(ray: Any) -> list[str]:
    """Return the names of the detached studies on the cluster that this process is part of."""
    actors = ray.util.list_named_actors(all_namespaces=True)
    return [actor["name"] for actor in actors if actor["namespace"] == NAMESPACE]


def studies_here(name: str | None) -> tuple[int, int]:
    """Return how many studies share the cluster that this process is part of, and this one's place among them, from 0.

    Args:
        name: of the study that asks; None if it is not detached: the others do not see it, and it comes last.
    """
    import ray

    names = sorted(study_names(ray))
    return (len(names), names.index(name)) if name in names else (len(names) + 1, len(names))
