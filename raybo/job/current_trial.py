"""The trial that this process is running, for the job itself to look up."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from raybo.job.launched_rank import launched_by


@dataclass(frozen=True)
class CurrentTrial:
    """The trial that is running here.

    Attributes:
        number: from 0, in the order in which trials were asked for.
        attempt: from 1; grows when the trial starts again.
        seed: a whole number below 2**32, derived from the study's seed and the trial's number: the same at every
            attempt, and different for every trial.
        config: the configuration.
        rank: which of its processes this is, from 0; see `processes` of `raybo.objective`.
        world_size: how many processes it has.
        local_rank, local_world_size: the same among its processes on this node.
        node_rank: which of its nodes this is, from 0.
    Example:
        >>> def job(config):
        ...     me: raybo.CurrentTrial | None = raybo.current_trial()
        ...     if me:
        ...         (me.directory / "config.txt").write_text(f"trial {me.number}, attempt {me.attempt}: {me.config}")
        ...     return config["x"]
        >>> job({"x": 0.5})
        0.5
    """

    number: int
    attempt: int
    seed: int
    config: Mapping[str, Any]
    _directory: Path = field(repr=False)
    rank: int = 0
    world_size: int = 1
    local_rank: int = 0
    local_world_size: int = 1
    node_rank: int = 0
    _asks_leaving: Callable[[], bool] = field(default=bool, repr=False, compare=False)
    _is_nested: bool = field(default=False, repr=False, compare=False)

    @property
    def is_leaving(self) -> bool:
        """True if a node of this trial is about to go, as a cluster has announced (a spot notice, an autoscaler).

        Save a checkpoint then: the trial continues from it on another node. Asking takes less than a millisecond.
        """
        return self._asks_leaving()

    @property
    def directory(self) -> Path:
        """This trial's own directory, which is kept: `FILE.trials/NUMBER` next to the journal, the same at every
        attempt. Created when first asked for.

        With `artifacts=DIR`, `FILE.trials` is in DIR instead; with a URI, this is a temporary directory whose files are
        copied to the URI when the attempt ends. On a cluster it is on the node that runs the trial, unless the nodes
        share the place. A study without `storage` removes it when it ends.

        Raises:
            OSError: it cannot be made.
        """
        self._directory.mkdir(parents=True, exist_ok=True)
        return self._directory


_running: CurrentTrial | None = None  # of the process, which runs one trial at a time, so that threads see it too


def current_trial() -> CurrentTrial | None:
    """Return the trial that this process is running; None outside the trials of `raybo tune` and `raybo.tune`.

    It does not know about trials that Ray Tune or scikit-learn runs.

    Example:
        >>> def job(config):
        ...     me = raybo.current_trial()
        ...     return me.seed if me else 0
        >>> job({})
        0
    """
    return _launched() if _running is None else _running


@cache
def _launched() -> CurrentTrial | None:
    fields = launched_by()
    return None if fields is None else CurrentTrial(**fields)


@contextmanager
def running(trial: CurrentTrial | None) -> Iterator[None]:
    """Have `current_trial` return this trial within the block."""
    global _running
    before, _running = _running, trial
    try:
        yield
    finally:
        _running = before
