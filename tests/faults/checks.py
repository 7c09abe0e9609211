"""Check a study that has ended: its journal, what was announced of it, and what its trials wrote."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import Any

from raybo.record.events import Event, Kind
from raybo.record.states import COUNTED, OPEN, State
from raybo.study.replay import replay, replay_verdicts
from raybo.study.study import Study

CLOCK_SECONDS = 0.01  # the journal's times are cut to milliseconds


class Wrong(str, Enum):
    """The kinds of faults."""

    LOST = "results lost"
    DOUBLED = "results doubled"
    AGAIN = "finished trials run again"
    GAPS = "gaps or doubles in the numbers"
    ATTEMPTS = "attempts miscounted"
    REPLAY = "replay differs"
    BEST = "the best is not the best"
    HUNG = "hung"
    LEFT = "processes left"
    UNSAID = "ended without a line that says why"
    WRITERS = "two writers"
    UNFINISHED = "ended otherwise than planned"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Complaint:
    """One thing that does not hold, in words."""

    wrong: Wrong
    text: str

    def __str__(self) -> str:
        return f"{self.wrong}: {self.text}"


def of_what_was_seen(study: Study, events: Sequence[Event]) -> Iterator[Complaint]:
    """Complain of events, read as the journal grew, that it no longer holds as they were."""
    if study.events[: len(events)] != [*events]:
        yield Complaint(Wrong.LOST, f"of {len(events)} events that were read as it grew, some are gone or are others")


def of_the_journal(study: Study, trials: int) -> Iterator[Complaint]:
    """Return what does not hold of a journal alone.

    Args:
        trials: how many were to end with a result or a failure.
    """
    if [event.number for event in study.events] != list(range(1, len(study.events) + 1)):
        yield Complaint(Wrong.GAPS, "of the events")
    if [trial.number for trial in study.trials] != list(range(len(study.trials))):
        yield Complaint(Wrong.GAPS, "of the trials")
    ended, pending = study.count(*COUNTED), study.count(*OPEN)
    if ended != trials or pending:
        yield Complaint(Wrong.UNFINISHED, f"{ended} of {trials} trials have ended, {pending} are pending")
    ends = Counter(event.trial for event in study.events if event.is_end)
    for number, times in ends.items():
        if times != 1:
            yield Complaint(Wrong.DOUBLED, f"trial {number} ended {times} times")
    retried: dict[int | None, list[int]] = defaultdict(list)
    for event in study.events:
        if event.kind in (Kind.RETRIED, Kind.RESUMED):
            retried[event.trial].append(event.data["attempt"])
    for trial in study.trials:
        begun = retried[trial.number]
        if begun != list(range(2, 2 + len(begun))) or trial.attempt != 1 + len(begun):
            text = f"trial {trial.number}: attempt {trial.attempt} after retries that were called {begun}"
            yield Complaint(Wrong.ATTEMPTS, text)
    for event in study.events:
        if event.kind is Kind.FAILED and event.data.get("kind") != "lost":
            yield Complaint(Wrong.UNFINISHED, f"trial {event.trial} failed: {event.data.get('reason')}")
    values = {trial.number: trial.value for trial in study.trials if trial.value is not None}
    if values and study.context is None:  # with one, the best is estimated
        best = min(values, key=lambda number: (values[number], number))
        if study.best.number != best:
            yield Complaint(Wrong.BEST, f"it is trial {best}, and trial {study.best.number} is said to be it")


def of_what_was_announced(study: Study, lines: Sequence[dict[str, Any]]) -> Iterator[Complaint]:
    """Complain of announced results that are not in the journal, and the other way round."""
    results = [event for event in study.events if event.kind is Kind.TOLD]
    for line in lines:
        known = [event for event in results if event.number <= line["event"]]
        if line["finished"] > len(known):
            text = f"{line['finished']} were announced by event {line['event']}, {len(known)} are there"
            yield Complaint(Wrong.LOST, text)
        if line["finished"] < len(known):
            text = f"{line['finished']} were announced by event {line['event']}, {len(known)} are there"
            yield Complaint(Wrong.DOUBLED, text)
        if line.get("best") and not any([event.trial, event.data["value"]] == line["best"] for event in known):
            yield Complaint(Wrong.LOST, f"the best that was announced, {line['best']}, is not there")
        if "returned" in line and line["returned"] != [study.best.number, study.best.value]:
            yield Complaint(Wrong.BEST, f"{line['returned']} was returned, trial {study.best.number} is in the journal")
    if not any("returned" in line for line in lines):
        yield Complaint(Wrong.UNFINISHED, "no study was returned")


def of_what_ran(study: Study, lines: Sequence[dict[str, Any]]) -> Iterator[Complaint]:
    """Trials that ran oftener than they were tried, or after their end, or never; known by their configurations.

    An attempt that was given up with its node may begin late, where the node still lives: nobody listens to it.
    """
    trials: dict[str, list[int]] = defaultdict(list)
    for trial in study.trials:
        trials[json.dumps(trial.config, sort_keys=True)].append(trial.number)
    begun: dict[str, list[tuple[int | None, float]]] = {config: [] for config in trials}
    for line in lines:
        if line["what"] == "begin":
            config = json.dumps(line["config"], sort_keys=True)
            if config not in begun:
                yield Complaint(Wrong.LOST, f"what ran at {line['at']} is not in the journal")
                continue
            begun[config].append((line.get("attempt"), line["at"]))
    ends = {event.trial: _seconds(event) for event in study.events if event.kind in (Kind.TOLD, Kind.PRUNED)}
    for config, numbers in trials.items():
        runs, attempts = begun[config], sum(study.trials[number].attempt for number in numbers)
        if len(runs) > attempts:
            yield Complaint(Wrong.ATTEMPTS, f"trial {numbers[0]} began {len(runs)} times in {attempts} attempts")
        named = Counter(attempt for attempt, _ in runs if attempt is not None)
        if any(times > len(numbers) for times in named.values()):
            yield Complaint(Wrong.ATTEMPTS, f"trial {numbers[0]} began twice in one attempt: {dict(named)}")
        if all(number in ends for number in numbers):
            last = min(study.trials[number].attempt for number in numbers)
            times = [at for attempt, at in runs if attempt is None or attempt >= last]
            if times and max(times) > max(ends[number] for number in numbers) + CLOCK_SECONDS:
                yield Complaint(Wrong.AGAIN, f"trial {numbers[0]} ran again after it had finished")
            if len(runs) < len(numbers):
                yield Complaint(Wrong.DOUBLED, f"trial {numbers[0]} has a result and never ran")


def of_replay(study: Study) -> Iterator[Complaint]:
    """Trials that are proposed otherwise, from what they had seen."""
    for again in replay(study):
        if again.differs:
            yield Complaint(Wrong.REPLAY, f"trial {again.trial}: its {' and '.join(again.differs)} differ")


def of_reports(study: Study) -> Iterator[Complaint]:
    """Steps that count twice or are missing, and verdicts that are given otherwise, from what there was."""
    for trial in study.trials:
        steps = [step for step, _ in trial.reports]
        if steps != list(range(1, len(steps) + 1)):
            yield Complaint(Wrong.DOUBLED, f"trial {trial.number}: it has reported the steps {steps}")
        if study.steps is not None and trial.state is State.FINISHED and trial.step != study.steps:
            yield Complaint(Wrong.LOST, f"trial {trial.number} finished at step {trial.step}")
    for again in replay_verdicts(study):
        if again.verdict != again.recorded:
            text = f"trial {again.trial}, step {again.step}: it was {again.recorded} and is {again.verdict}"
            yield Complaint(Wrong.REPLAY, text)


def read_announced(path: Path) -> list[dict[str, Any]]:
    """Return what a command announced, without a line that a kill cut short."""
    lines = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            lines.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return lines


def _seconds(event: Event) -> float:
    return datetime.fromisoformat(event.at).timestamp()
