"""The contract of `raybo.testing` on every scheduler of raybo; a new one joins by its file."""

from __future__ import annotations

from raybo import schedulers
from raybo.testing import SchedulerContract


class TestSchedulers(SchedulerContract):
    def cases(self):
        return list(schedulers.SCHEDULERS)
