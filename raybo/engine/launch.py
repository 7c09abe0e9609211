"""Gives trials to Ray, as tasks that run the user's function."""

from __future__ import annotations

from typing import Any

import ray

from raybo.engine.flight import Flight
from raybo.engine.task import trial_task
from raybo.objectives import Objective
from raybo.space import Config


class Launcher:
    """Submits the trials of one study.

    Args:
        objective: what is tuned, without its function.
        function: the user's function as Ray pickles it, or a reference to that; only the workers unpickle it.
        listens: whether trials say to this actor that they begin, and which context they have observed.
        fresh_workers: whether every trial runs in a new process.
    """

    def __init__(
        self, objective: Objective, function: bytes | list[Any], *, listens: bool, fresh_workers: bool
    ) -> None:
        self.objective = objective
        self.function = function
        self.listens = listens
        self.fresh_workers = fresh_workers
        self.renew()

    def renew(self) -> None:
        """Have a new task made: requests of the old one to a node that is lost are never answered, and block others."""
        self.task = trial_task(self.objective, self.function, self.fresh_workers)

    def submit(self, flight: Flight, config: Config) -> None:
        """Give the flight's next attempt to Ray."""
        trial, attempt = flight.life.trial, flight.life.attempt
        listener = (ray.get_runtime_context().current_actor, trial, attempt) if self.listens else None
        flight.submit(self.task, config, listener)
