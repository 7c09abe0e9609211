"""Counts the trials that Ray has at a time: as planned, or the study's share of a cluster whose nodes come and go."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from typing import Any

from raybo.common.errors import RayError
from raybo.engine.plan import Plan
from raybo.engine.ray.named_studies import studies_here
from raybo.engine.ray.resources import share_of, waiting_for_room, workers_available
from raybo.engine.study.timings import Timings
from raybo.engine.study.workers import max_in_flight
from raybo.job.objective import Objective


class Capacity:
    """The room for a study's trials.

    Args:
        plan: what is run.
        objective: what its trials occupy.
        timings: how long suggestions and trials take.
    Attributes:
        room: how many trials run at a time.
        timings: as given, with what is known now of other studies on the cluster.
    """

    def __init__(self, plan: Plan, objective: Objective, timings: Timings) -> None:
        self.room = plan.workers
        self.timings = timings
        self._plan = plan
        self._objective = objective

    @property
    def submitted(self) -> int:
        """Number of trials that Ray has at a time: those that it has room for, and some that wait if it is to grow."""
        return self.room + (waiting_for_room(self.room) if self._plan.grows else 0)

    @property
    def workers(self) -> int:
        """Number of workers: one per submitted trial, and some whose trials wait if trials are short."""
        return max_in_flight(self.submitted, self.timings)

    async def update(self, nodes: list[dict[str, Any]]) -> None:
        """Take this study's share of the room that the nodes have.

        Args:
            nodes: as `ray.nodes()` returns them.
        """
        name = self._plan.path.stem if self._plan.options.detach else None
        studies, place = await asyncio.get_running_loop().run_in_executor(None, studies_here, name)
        try:
            room = workers_available(nodes, self._objective)
        except RayError:  # none at the moment: what is submitted waits for a node to come back
            room = 1
        self.room = min(share_of(room, studies, place), self._plan.trials or sys.maxsize)
        # a trial that waits in Ray's queue would run in the room of another study
        self.timings = replace(self.timings, takes_all_room=studies == 1 and self._objective.is_single)
