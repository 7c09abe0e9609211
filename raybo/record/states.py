"""The states of a trial, and which of them fail, count or are open."""

from __future__ import annotations

from enum import Enum


class State(str, Enum):
    """The state of a trial. A name, once stored, is never removed.

    Example:
        >>> searcher = raybo.Searcher({"x": raybo.Float(0, 1)}, seed=0)
        >>> trial = searcher.fail(searcher.ask(), "diverged")
        >>> trial.state
        <State.FAILED: 'failed'>
        >>> [str(state) for state in raybo.State]
        ['pending', 'finished', 'failed', 'lost', 'stopped', 'pruned', 'paused']
    """

    PENDING = "pending"  # asked, not yet told
    FINISHED = "finished"
    FAILED = "failed"
    LOST = "lost"  # its worker was lost at every attempt
    STOPPED = "stopped"
    PRUNED = "pruned"  # by a scheduler, for what it had reported
    PAUSED = "paused"  # by a scheduler, until it is worth going on

    def __str__(self) -> str:
        return self.value


FAILURES = (State.FAILED, State.LOST)  # the point gave no value, and is taken to be a bad one
COUNTED = (State.FINISHED, State.PRUNED, *FAILURES)  # what counts of a planned number of trials: not the stopped ones
OPEN = (State.PENDING, State.PAUSED)  # more may become of it
