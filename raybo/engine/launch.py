"""Gives trials to Ray, as tasks that run the user's function."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ray

from raybo.engine.flight import Flight
from raybo.engine.task import Home, trial_task
from raybo.objectives import Objective
from raybo.searcher import trial_seed
from raybo.space import Config


class Launcher:
    """Submits the trials of one study.

    Args:
        objective: what is tuned, without its function.
        function: the user's function as Ray pickles it, or a reference to that; only the workers unpickle it.
        name: the study's, no other's on this Ray.
        journal: the study's, beside which its trials have their directories.
        seed: the study's.
        listens: whether trials say to this actor that they begin, and which context they have observed.
        fresh_workers: whether every trial runs in a new process.
    """

    def __init__(
        self,
        objective: Objective,
        function: bytes | list[Any],
        *,
        name: str,
        journal: Path,
        seed: int,
        listens: bool,
        fresh_workers: bool,
    ) -> None:
        self.objective = objective
        self.function = function
        self.home = Home(ray.get_runtime_context().current_actor, name, journal, listens)
        self.seed = seed
        self.fresh_workers = fresh_workers
        self.renew()

    def renew(self) -> None:
        """Have a new task made: requests of the old one to a node that is lost are never answered, and block others."""
        self.task = trial_task(self.objective, self.function, self.home, self.fresh_workers)

    def submit(self, flight: Flight, config: Config) -> None:
        """Give the flight's next attempt to Ray."""
        trial, attempt = flight.life.trial, flight.life.attempt
        flight.submit(self.task, config, trial, attempt, trial_seed(self.seed, trial))
