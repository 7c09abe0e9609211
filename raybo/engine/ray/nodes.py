"""Finds the nodes of a cluster that were lost, so that their trials are not waited for.

Ray itself waits for ever for the work of a node that was cut off from the network.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

LOOK_SECONDS = 2.0  # between two looks at the nodes
GRACE_SECONDS = 2.0  # a result may still be on its way when its node is counted as dead


class NodeLosses:
    """The nodes that were lost since the first look."""

    def __init__(self) -> None:
        self._dead: set[str] | None = None  # None before the first look: nodes lost before this study are no news
        self._at = -math.inf  # when a node was last found dead

    def update(self, nodes: Sequence[dict[str, Any]], now: float) -> bool:
        """Look at the nodes; True if one was lost since the last look.

        Args:
            nodes: as `ray.nodes()` returns them.
            now: by the monotonic clock, in seconds.
        """
        before, self._dead = self._dead, {node["NodeID"] for node in nodes if not node["Alive"]}
        is_news = before is not None and bool(self._dead - before)
        if is_news:
            self._at = now
        return is_news

    def affect(self, node: str | None, submitted: float, now: float) -> bool:
        """True if a trial is lost, or may be, as it has not begun and Ray may have sent it to a lost node.

        Args:
            node: on which it runs; None if it has not begun.
            submitted, now: by the monotonic clock, in seconds.
        """
        if node is not None:
            return node in (self._dead or ())
        return submitted < min(self._at + LOOK_SECONDS, now - LOOK_SECONDS)
