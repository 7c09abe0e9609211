"""Listen to jobs that report without Ray, and keep their checkpoints in a directory."""

from __future__ import annotations

from contextlib import contextmanager

from raybo import TrialPruned


class Listener:
    """Collects a job's reports, prunes or kills it at a chosen step, and serves its last checkpoint."""

    def __init__(self, directory, *, prune_at=None, die_at=None):
        self.directory, self.prune_at, self.die_at = directory, prune_at, die_at
        self.reports = {}
        self.last = self.saved = None  # a checkpoint is the trial's with the report that follows it

    def report(self, metrics, step):
        step = max(self.reports, default=0) + 1 if step is None else step
        if step == self.die_at:
            self.die_at = None
            raise KeyboardInterrupt  # before the step is known, as when a worker is lost
        self.reports[step], self.last = metrics, self.saved
        if step == self.prune_at:
            raise TrialPruned

    def checkpoint(self):
        return self.last

    @contextmanager
    def saving(self):
        directory = self.directory / str(len(list(self.directory.iterdir())))
        directory.mkdir()
        yield directory
        self.saved = directory
