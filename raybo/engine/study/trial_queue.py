"""The trials of a study that exist and are to run before any is proposed, and those that run again at its end."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from raybo.engine.lifecycle import Life, Occurrence, Phase
from raybo.engine.study.event_log import EventLog
from raybo.record.events import Asked, Begun, EventData
from raybo.record.origin import Origin
from raybo.record.states import State

INTERRUPTED = "the process that ran it was interrupted"

Again = tuple[Life, Occurrence, EventData]  # of a trial that has ended or paused: what begins it again


class TrialQueue:
    """Knows which trials come before new ones.

    Args:
        log: the study's events.
    Attributes:
        first: the trials that an earlier process left, that were lost, or that the user has enqueued.
        failed: those that had failed and are wanted again.
    """

    def __init__(self, log: EventLog) -> None:
        self.first: deque[int] = deque()
        self.failed: deque[int] = deque()
        self._log = log
        self._to_confirm: deque[int] | None = None  # trials whose configurations run again, once that is known

    def left(self) -> Iterator[tuple[Life, bool]]:
        """Yield the trials that an earlier process left, each with whether it had begun."""
        for trial in self._log.searcher.trials:
            if trial.state is State.PENDING:
                losses = self._log.losses.get(trial.number, 0)
                has_begun = trial.origin is not Origin.ENQUEUED or trial.number in self._log.touched
                yield Life(trial.number, attempt=trial.attempt, losses=losses), has_begun

    def resumed(self) -> int:
        """Return the first trial; an enqueued one begins with this."""
        trial = self._log.searcher.trials[self.first.popleft()]
        if trial.origin is Origin.ENQUEUED and trial.attempt == 1:
            # a process that finds no event of it but `asked` may rely on it that it has not begun
            self._log.add(Begun(trial.number, attempt=1))
        return trial.number

    def retried(self) -> Again:
        """Return the first failed trial that is wanted again; until its turn comes it stays failed."""
        trial = self._log.searcher.trials[self.failed.popleft()]
        phase = Phase.LOST if trial.state is State.LOST else Phase.FAILED
        reason = {"reason": "it had failed, and is retried"}
        return Life(trial.number, phase, trial.attempt), Occurrence.WANTED_AGAIN, reason

    def promoted(self, number: int) -> Again:
        """Return a paused trial that is to continue."""
        trial = self._log.searcher.trials[number]
        data = {"step": trial.step, "seen": self._log.newest}
        return Life(number, Phase.PAUSED, trial.attempt), Occurrence.PROMOTED, data

    def begin_confirming(self) -> bool:
        """Choose the configurations that run again, as the search is over; False if there are none, or it was done."""
        if self._to_confirm is not None:
            return False
        self._to_confirm = deque(self._log.to_confirm())
        return bool(self._to_confirm)

    @property
    def is_confirming(self) -> bool:
        """True if configurations are still to run again, which none does once the budget is used."""
        return bool(self._to_confirm) and not self._log.is_over

    def confirmation(self) -> Asked:
        """Return the event by which the next configuration to confirm is asked for once more."""
        assert self._to_confirm
        number, searcher = self._to_confirm.popleft(), self._log.searcher
        return searcher.known(searcher.trials[number].config, Origin.CONFIRMED, {"confirms": number})
