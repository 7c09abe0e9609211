"""Decides that a study ends before all its trials have been run: it is stopped, or the search has found enough."""

from __future__ import annotations

from raybo.common.errors import TrialError
from raybo.engine.study.event_log import EventLog

FRUITLESS = 50  # trials in a row, after which a study without a number of trials ends


class Ending:
    """Decides whether a study is to end.

    Args:
        log: the study's events.
    Attributes:
        stopped: why it is being stopped, with the trials that run; empty if it is not.
        enough: why no further proposal is asked for, while the trials that run end by themselves; empty if some are.
    """

    def __init__(self, log: EventLog) -> None:
        self.stopped = ""
        self.enough = ""
        self._log = log
        self._options = log.plan.options
        self._is_hopeless = False

    @property
    def reason(self) -> str:
        """The reason to end early; empty if there is none."""
        return self.stopped or self.enough

    def stop(self, reason: str) -> bool:
        """Stop the study for this reason; False if it is being stopped already."""
        is_first = not self.stopped
        self.stopped = self.stopped or reason
        return is_first

    def over_budget(self) -> str:
        """Return the reason to stop if the budget is used; empty otherwise, or if the trials that run may end."""
        clock = self._log.clock
        if clock is None or not clock.is_over:
            return ""
        if self._options.let_finish:
            self.enough = self.enough or clock.reason
            return ""
        return clock.reason

    def hopeless(self, workers: int) -> str:
        """Return the reason to stop if the first trials, at least one per worker, all failed alike; empty otherwise."""
        failures = self._log.repeated_failures
        if self._is_hopeless or self.stopped or self._options.keep_going or not failures.is_hopeless(workers):
            return ""
        self._is_hopeless = True
        return f"the first {failures.count} trials all failed with the same error: {failures.reason}"

    def check_enough(self) -> None:
        """Ask for no further proposal once a limit on the search is reached, or nothing comes of the trials."""
        self.enough = self.enough or self._log.stopping.reason or self._fruitless

    @property
    def _fruitless(self) -> str:
        """The reason to end a study that would go on failing, or costing nothing, for ever; else empty."""
        count = self._log.fruitless
        if self._options.keep_going or self._log.plan.trials is not None or count < FRUITLESS:
            return ""
        return f"the last {count} trials failed or had no cost; use --keep-going (keep_going=True) to continue"

    def raise_if_hopeless(self) -> None:
        """Raise TrialError if the study was stopped because its first trials all failed alike."""
        if self._is_hopeless:
            raise TrialError(
                f"{self.stopped}; fix the cause and rerun them with --retry-failed (retry_failed=True), or "
                "continue with --keep-going (keep_going=True)"
            )
