"""The news of a study since the last look, for programs that follow it: one stream, and a writer for each program.

A writer opens its destination, finds what that holds, and adds what it lacks: it may be sent an event again, by another
process or after a failure. `export.FORMATS` registers it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from raybo.common.arguments import is_number
from raybo.integrations.trial_terms import Names
from raybo.methods.findings import EXPECTED
from raybo.record.events import Event, Kind
from raybo.record.trial import Trial
from raybo.study.study import Study

Exporter: TypeAlias = Callable[[Study], None]


@dataclass(frozen=True)
class News:
    """An event of a trial.

    Attributes:
        study: the study as it is now.
        event: the event.
        trial: its trial as it is now.
    """

    study: Study
    event: Event
    trial: Trial

    @property
    def at(self) -> float | None:
        """When it was written, in seconds since 1970; None if unknown."""
        return self.event.timestamp

    @property
    def numbers(self) -> dict[str, float]:
        """The numbers of a report, or those that the trial ended with: metrics, constraints, whatever it returned."""
        metric = self.study.description.metric
        if self.event.report is not None:
            numbers = {**self.event.data.get("metrics", {}), metric: self.event.data["value"]}
        else:
            numbers = {**self.trial.details.get("metrics", {}), **self.trial.values, metric: self.trial.value}
        return {name: float(number) for name, number in numbers.items() if is_number(number)}


class Writer(Protocol):
    """Brings one destination up to date; any method may raise `StartAgain`."""

    def started(self, new: News) -> None:
        """Add a trial."""

    def reported(self, new: News) -> None:
        """Add a step of a trial's curve."""

    def changed(self, new: News) -> None:
        """Note that a trial was retried, paused or resumed."""

    def ended(self, new: News) -> None:
        """Add a trial's end."""

    def finish(self, study: Study) -> None:
        """Write what concerns the whole study; the news is over until the next look."""


class StartAgain(Exception):
    """The destination cannot be continued: another writer is to be sent everything."""


WRITERS_METHODS: Mapping[Kind, Callable[[Writer, News], None]] = {
    Kind.ASKED: lambda writer, new: writer.started(new),
    Kind.REPORTED: lambda writer, new: writer.reported(new),
    **dict.fromkeys((Kind.RETRIED, Kind.PAUSED, Kind.RESUMED), lambda writer, new: writer.changed(new)),
    **dict.fromkeys((Kind.TOLD, Kind.FAILED, Kind.STOPPED, Kind.PRUNED), lambda writer, new: writer.ended(new)),
}


class Stream:
    """An exporter that sends a writer what is new of a study each time it is called.

    Args:
        open_writer: returns a writer of a study's destination; None if the study has not begun, and cannot be known.
        names: the program's names of metrics, which are given in the order of events whatever the writer is sent.
    """

    def __init__(self, open_writer: Callable[[Study], Writer | None], names: Names | None = None) -> None:
        self._open_writer = open_writer
        self._names = names
        self._writer: Writer | None = None
        self._seen = 0

    def __call__(self, study: Study) -> None:
        """Bring the destination up to date."""
        try:
            self._send(study)
        except StartAgain:
            self._send(study)

    def _send(self, study: Study) -> None:
        # after a failure nobody knows what has been written: another writer looks
        writer, self._writer = self._writer, None
        if writer is None:
            writer, self._seen = self._open_writer(study), 0
        if writer is None:
            return
        if len(study.events) < self._seen:  # the study as it was before
            self._writer = writer
            return
        events = study.events[self._seen :]
        if self._names is not None:
            self._names.give(study.goals.needed)
            for event in events:
                self._names.give(event.data.get("metrics") or ())
        for new in _news(study, events):
            WRITERS_METHODS[new.event.kind](writer, new)
        writer.finish(study)
        self._writer, self._seen = writer, len(study.events)


def _news(study: Study, events: Sequence[Event]) -> list[News]:
    """Return the events that writers are sent.

    The end of a failed trial that has been started again since is left out if both are new: it did not end there.
    """
    again = {event.trial: event.number for event in events if event.kind is Kind.RETRIED}
    return [
        News(study, event, study.trials[event.trial])
        for event in events
        if event.trial is not None
        and event.kind in WRITERS_METHODS
        and not (event.kind is Kind.REPORTED and event.report is None)
        and not (event.is_end and event.number < again.get(event.trial, 0))
    ]


def name_of(study: Study) -> str:
    """Return the name of the study's journal, or of its objective if it has none."""
    return study.path.stem if study.path is not None else study.description.objective


def summary_of(study: Study) -> dict[str, Any]:
    """Return why the study ended, its rules, the best trial and the best expected one, as far as known."""
    summary: dict[str, Any] = {"ended": study.ended}
    if study.space.rules:
        summary["where"] = [rule.text for rule in study.space.rules]
    if study.incumbent is None:
        return summary
    for name, trial in (("best", study.best), ("best_expected", study.best_expected)):
        summary[name] = {"trial": trial.number, "value": trial.value}
        if (expected := study.expected(trial)) is not None:
            summary[name] |= dict(zip(EXPECTED, expected, strict=True))
    return summary
