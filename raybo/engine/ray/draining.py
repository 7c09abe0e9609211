"""The nodes of a cluster that are about to go: drained by an autoscaler, or preempted. Ray tells it privately."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def draining_nodes() -> set[str]:
    """Return Ray's names of the nodes that are to go, and still run what they have; none if Ray does not tell."""
    try:
        from ray._private.state import state

        known: Any = state
        return set(known.get_draining_nodes())
    except Exception:  # noqa: BLE001  # private, so that anything may have become of it
        return set()


def is_any_draining(nodes: Iterable[str]) -> bool:
    """True if one of these nodes is about to go."""
    return not draining_nodes().isdisjoint(nodes)
