"""What a study makes of its trials' reports: events, and verdicts on them.

A report is committed before the trial is told its verdict, in one transaction with the verdict if that does not let the
trial go on. Reports that decide nothing wait for others, so that they cause at most one commit in 50 ms.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import cast

from raybo.common.errors import RayError
from raybo.engine.artifacts import kept_directory
from raybo.engine.study.dispatch import Flight
from raybo.engine.study.event_log import EventLog
from raybo.engine.study.lifecycle import Occurrence, Phase, Step
from raybo.engine.trial.reports import BATCH_SECONDS, Answer, Course
from raybo.journal.beside import CHECKPOINTS, is_uri, trial_directory
from raybo.record.events import OPEN, Data, Event, Kind, State, Trial
from raybo.record.goals import Goal
from raybo.record.ledger import Ledger
from raybo.schedulers import Verdict
from raybo.schedulers.rule import JOB, Rule, broken_by, event_of, foreseen
from raybo.searcher import Searcher

SHARE_SECONDS = 0.002  # what is to be committed at once waits this long for others


class Judging:
    """Hears the reports of a study's trials.

    Args:
        log: the study's events.
        meet: performs what follows an occurrence.
    """

    def __init__(self, log: EventLog, meet: Callable[[Flight, Occurrence, Data], Step]) -> None:
        self.log = log
        self.rule = log.searcher.rule
        self._meet = meet
        self._warned: set[str] = set()  # of what
        # of each trial: how many had ended, the step at which it waits next, and up to which step that is known
        self._foreseen: dict[int, tuple[tuple[int, ...], int | None, int]] = {}
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="judge")  # of a rule that is slow

    def course(self, number: int) -> Course:
        """What a trial is told of its run before an attempt."""
        searcher = self.log.searcher
        trial = searcher.trials[number]
        waits_at = self._waits_at(number)
        step = searcher.history.records[number].checkpoint or 0
        said = trial.details.get("metrics", {})
        has_rule, judged = self.rule is not None, searcher.history.judged_metric
        return Course(searcher.steps, has_rule, waits_at, trial.checkpoint, step, said, judged)

    def take_up(self) -> None:
        """As the study begins again: end or halt trials with a report that was committed without its verdict."""
        trials = self.log.searcher.trials
        owed = [self.log.add(event) for event in verdicts_owed(self.log.searcher, self.log.journal.events)]
        if owed:
            self.log.commit()
            self._tidy([trials[cast(int, event.trial)] for event in owed if event.kind is Kind.PRUNED])

    async def hear(self, flight: Flight, batch: list[Data]) -> Answer:
        """Take in what an attempt that runs has reported; what is answered is committed."""
        number, attempt, waits = flight.life.trial, flight.life.attempt, False
        for data in batch:
            # it has ended meanwhile, or begun again, or a verdict has been given
            if flight.life.phase is not Phase.RUNNING or flight.life.attempt != attempt:
                break
            if "checkpoint" in data:
                waits = True
                self._look_for(number, data["checkpoint"])
            record = self.log.searcher.history.records[number]
            is_known = data["step"] <= record.step
            told: Data = {**data, "attempt": flight.life.attempt, **({"repeated": True} if is_known else {})}
            added = self.log.add(Event(Kind.REPORTED, number, told))
            verdict, rule = broken_by(added, self.log.searcher.goals), JOB
            if not verdict.prune:
                if self.rule is None or is_known or not self.rule.can_judge(self.log.searcher.history, number):
                    continue
                verdict, rule = await self._verdict(self.rule, number), self.rule.name
            waits = True
            if verdict.action != "go" and flight.life.phase is Phase.RUNNING:
                occurrence = Occurrence.PRUNED if verdict.prune else Occurrence.PAUSED
                flight.answer = Answer(verdict.action, verdict.why)
                if verdict.pause and self.log.searcher.history.records[number].checkpoint is None:
                    self._warn(
                        "pause",
                        f"trial {number} should pause but has saved no checkpoint, so it would start again; save some "
                        "with raybo.saving(), or choose a scheduler that ends trials",
                    )
                event = event_of(verdict, rule, number, data["step"], added.number)
                self._meet(flight, occurrence, {**event.data, "seconds": data["seconds"]})
        newest = self.log.newest
        if waits:
            await asyncio.sleep(SHARE_SECONDS)
            await self.log.commit_quietly(newest)
        else:
            asyncio.get_running_loop().call_later(BATCH_SECONDS, self.log.commit_in_background, newest)
        if flight.life.phase is not Phase.RUNNING:
            return flight.answer or Answer("gone", "its study has given it up")
        return Answer(waits_at=self._waits_at(number))

    def result(self, number: int, data: Data) -> Data:
        """What the event of a finished run holds: where it said all in its reports, with the value among these."""
        searcher = self.log.searcher
        return finished(searcher.trials[number], data, searcher.ledger.goal, self.log.plan.description.value)

    def promoted(self, in_flight: dict[int, Flight]) -> int | None:
        """The paused trial that a free worker goes on with, if its last process has gone; None where there is none."""
        number = None if self.rule is None else self.rule.promoted(self.log.searcher.history)
        return None if number is None or number in in_flight else number

    def end_paused(self) -> None:
        """At the end of the study: those that still wait go on no more, and keep no more checkpoints than others."""
        waiting = [trial for trial in self.log.searcher.trials if trial.state is State.PAUSED]
        for trial in waiting:
            verdict = Verdict("prune", "the study ended before it was its turn")
            self.log.add(event_of(verdict, "study", trial.number, trial.step, self.log.newest))
        self.log.commit()
        self._tidy(waiting)

    def close(self) -> None:
        """Judge no more."""
        self._thread.shutdown(wait=False)

    def _tidy(self, ended: Sequence[Trial]) -> None:
        """Keep no more checkpoints than is wanted of trials that have ended while no process of theirs ran."""
        plan = self.log.plan
        for trial in ended:
            with contextlib.suppress(RayError, OSError):  # what cannot be removed stays
                at = kept_directory(plan.path, trial.number, 1, plan.artifacts, trial.checkpoint, plan.keep_checkpoints)
                with at as (_, checkpoints):
                    checkpoints.end()

    def _look_for(self, number: int, checkpoint: str) -> None:
        """Say so, once, where a checkpoint is on the disk of another node, with which it would be lost."""
        plan = self.log.plan
        if "place" in self._warned or is_uri(plan.artifacts):
            return
        if (trial_directory(plan.path, number, plan.artifacts) / CHECKPOINTS / checkpoint).exists():
            return
        self._warn(
            "place",
            f"trial {number}: its checkpoints stay on its node, and are lost with it; name with --artifacts "
            "(artifacts=...) a directory that all nodes share",
        )

    def _warn(self, of: str, text: str) -> None:
        """Note something once."""
        if of not in self._warned:
            self.log.note(text)
        self._warned.add(of)

    def _waits_at(self, number: int) -> int | None:
        """Return the next step at which a trial is to wait for its verdict; None if none is near.

        The scheduler is asked about a step once, and again after a trial has ended, which may change the answer.
        """
        if self.rule is None:
            return None
        history = self.log.searcher.history
        ended = tuple(history.count(state) for state in State if state not in OPEN)
        known = self._foreseen.get(number)
        found, until = known[1:] if known is not None and known[0] == ended else (None, 0)
        if found is None or found <= history.records[number].step:
            found = self.rule.waits_at(history, number, until)
            until = foreseen(history, number) if found is None else found
        self._foreseen[number] = ended, found, until
        return found

    async def _verdict(self, rule: Rule, number: int) -> Verdict:
        """Return the verdict on a trial's last report; a slow rule gives it beside the event loop."""
        history = self.log.searcher.history
        if not rule.is_slow:
            return rule.verdict(history, number)
        return await asyncio.get_running_loop().run_in_executor(self._thread, rule.verdict, history.copy(), number)


def verdicts_owed(searcher: Searcher, events: Sequence[Event]) -> list[Event]:
    """The verdicts, to be added, on reports that were committed without them.

    The study's process died between the two. A verdict is the one that was due: made of what there was up to the
    report. A report that breaks a constraint that must hold at every step ends its trial however old it is, as raybo
    used to let some of these trials go on.

    Args:
        searcher: as it is after all events.
        events: of the journal.
    """
    rule, trials = searcher.rule, searcher.trials
    broke: dict[int, Event] = {}
    last: dict[int, Event] = {}
    ended: set[int] = set()
    for event in events:
        number = event.trial
        if number is None or trials[number].state not in OPEN:
            continue
        if event.report is not None:
            last[number] = event
        elif event.kind is Kind.PAUSED:  # its verdict has been given
            last.pop(number, None)
        elif event.is_end:  # and its reports were settled, or overtaken by it
            ended.add(number)
            last.pop(number, None)
        elif event.kind is Kind.RETRIED and number in ended:  # the user has mended the job
            ended.discard(number)
            broke.pop(number, None)
        if number not in broke and event.broken(searcher.goals):
            broke[number] = event
    owed = [(broken_by(event, searcher.goals), JOB, event) for event in broke.values()]
    due = {
        event.number
        for number, event in last.items()
        if rule is not None and number not in broke and rule.can_judge(searcher.history, number)
    }
    if rule is not None and due:
        ledger = Ledger(searcher.space, searcher.goals, searcher.context, searcher.steps, rule.metric)
        for event in events[: max(due)]:
            ledger.apply(event)
            if event.number in due:
                owed.append((rule.judge(ledger.history, cast(int, event.trial)), rule.name, event))
    made = []
    for verdict, name, event in owed:
        if verdict.action != "go":
            trial, data = trials[cast(int, event.trial)], event.data
            told: Data = {"attempt": trial.attempt}
            if trial.state is State.PENDING and data.get("attempt") == trial.attempt:  # else they are counted already
                told["seconds"] = data["seconds"]
            given = event_of(verdict, name, trial.number, data["step"], event.number)
            made.append(replace(given, data={**given.data, **told}))
    return made


def finished(trial: Trial, data: Data, goal: Goal, which: str) -> Data:
    """What the event of a finished run holds: where it said all in its reports, with the value among these.

    Of steps that it repeated its own reports count, so that value, metrics and context are of one run.

    Args:
        trial: as it has reported.
        data: what came of the run.
        goal: which of two values is better.
        which: of its reports is its value, the "last" or the "best".
    """
    if "value" in data or not trial.step:
        return data
    values = [value for _, value in trial._run]
    metrics = {**trial.details.get("metrics", {}), **data.get("metrics", {})}
    data = {**data, "value": goal.best_of(values) if which == "best" else values[-1]}
    return {**data, "metrics": metrics} if metrics else data
