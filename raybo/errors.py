"""The errors that raybo raises for wrong use; each message is one line: the rule, the offender, the remedy.

    RayboError
    ├── SpaceError           a search space, or a configuration that does not fit it
    ├── ObjectiveError       an objective that cannot be found, loaded or called as asked
    ├── MethodError          an unknown method, option or argument, or a value out of range
    ├── TrialError           a result for a trial that is unknown, already ended or not finite; no trial to answer with
    ├── JournalError         a journal that cannot be opened, read or continued
    │   └── JournalInUse     another process is writing it
    ├── RayError             the Ray to be used cannot be reached, or cannot run the trials
    ├── MissingExtra         an optional package is needed and not installed
    └── NumericalError       a matrix could not be factorised by any stated means

A *trial's* failure is data and never one of these.
"""

from __future__ import annotations

from raybo.terminal_text import one_line


class RayboError(Exception):
    """Any wrong use of raybo; the message names the culprit and the remedy in one line, whatever they are called."""

    def __str__(self) -> str:
        return one_line(super().__str__())


class SpaceError(RayboError):
    """A search space, or a configuration that does not fit it."""


class ObjectiveError(RayboError):
    """An objective that cannot be found, loaded or called as asked."""


class MethodError(RayboError):
    """An unknown method, option or argument, or one whose value is out of its range."""


class TrialError(RayboError):
    """A result for a trial that is unknown, already ended or not a finite number; or no trial to answer with."""


class JournalError(RayboError):
    """A journal that cannot be opened, read or continued."""


class JournalInUse(JournalError):
    """Another process is writing the journal."""


class RayError(RayboError):
    """The Ray to be used cannot be reached, or cannot run the trials."""


class MissingExtra(RayboError):
    """An optional package is needed and not installed."""


class NumericalError(RayboError):
    """A matrix could not be factorised by any stated means."""
