"""The nodes of a cluster: which were lost, so that their trials can no longer be waited for.

Ray itself waits for ever for the work of a node that was cut off from the network.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

LOOK_SECONDS = 2.0  # between looks
GRACE_SECONDS = 2.0  # a result may still be on its way when its node is counted as dead


class NodeLosses:
    """What looks at the nodes have found, of those lost since the first."""

    def __init__(self) -> None:
        self._dead: set[str] | None = None  # unknown as yet: those that were lost before this study are no news
        self._at = -math.inf  # when a node was last found dead

    def update(self, nodes: Sequence[dict[str, Any]], now: float) -> bool:
        """Whether a node was lost since the last look.

        Args:
            nodes: as `ray.nodes()` tells them.
            now: by the monotonic clock, as ever here.
        """
        before, self._dead = self._dead, {node["NodeID"] for node in nodes if not node["Alive"]}
        is_news = before is not None and bool(self._dead - before)
        if is_news:
            self._at = now
        return is_news

    def affect(self, node: str | None, submitted: float, now: float) -> bool:
        """Whether a trial on this node is lost; where it has not begun anywhere, whether it may be, given when it left.

        It may be on its way to a lost node, which Ray may not have noticed when it was sent.
        """
        if node is not None:
            return node in (self._dead or ())
        return submitted < min(self._at + LOOK_SECONDS, now - LOOK_SECONDS)
