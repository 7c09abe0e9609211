"""What a study makes of its trials' reports: events, and verdicts on them.

A report is committed before its verdict is told, in one transaction with a verdict that does not let the trial go on.
Reports that decide nothing wait for others, so that there is at most one commit in 50 ms for them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from raybo.engine.event_log import EventLog
from raybo.engine.flight import Flight
from raybo.engine.lifecycle import Occurrence, Phase, Step
from raybo.engine.trial_reports import BATCH_SECONDS, Answer, Course
from raybo.events import Data, Event, Kind, State
from raybo.schedulers import GO, Verdict
from raybo.schedulers.rule import event_of

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
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="judge")  # of a rule that is slow

    def course(self, number: int) -> Course:
        """What a trial is told of its run before an attempt."""
        searcher = self.log.searcher
        trial = searcher.trials[number]
        waits_at = None if self.rule is None else self.rule.waits_at(searcher.history, number)
        step = searcher.history.records[number].checkpoint or 0
        return Course(searcher.steps, self.rule is not None, waits_at, trial.checkpoint, step)

    async def hear(self, flight: Flight, batch: list[Data]) -> Answer:
        """Take in what an attempt that runs has reported; what is answered is committed."""
        number, waits = flight.life.trial, False
        for data in batch:
            if flight.life.phase is not Phase.RUNNING:  # it has ended meanwhile, or a verdict has been given
                break
            waits = waits or "checkpoint" in data
            record = self.log.searcher.history.records[number]
            is_known = data["step"] <= record.step
            told: Data = {**data, "attempt": flight.life.attempt, **({"repeated": True} if is_known else {})}
            added = self.log.add(Event(Kind.REPORTED, number, told))
            if self.rule is None or is_known or not self.rule.can_judge(self.log.searcher.history, number):
                continue
            waits = True
            verdict = await self._judge(number)
            if verdict.action != "go" and flight.life.phase is Phase.RUNNING:
                occurrence = Occurrence.PRUNED if verdict.prune else Occurrence.PAUSED
                flight.answer = Answer(verdict.action, verdict.why)
                event = event_of(verdict, self.rule.name, number, data["step"], added.number)
                self._meet(flight, occurrence, {**event.data, "seconds": data["seconds"]})
        newest = self.log.newest
        if waits:
            await asyncio.sleep(SHARE_SECONDS)
            self.log.commit_in_background(newest)
        else:
            asyncio.get_running_loop().call_later(BATCH_SECONDS, self.log.commit_in_background, newest)
        if flight.life.phase is not Phase.RUNNING:
            return flight.answer or Answer("gone", "its study has given it up")
        return Answer(waits_at=None if self.rule is None else self.rule.waits_at(self.log.searcher.history, number))

    def result(self, number: int, data: Data) -> Data:
        """What the event of a finished run holds: where it said all in its reports, with the value among these."""
        trial = self.log.searcher.trials[number]
        if "value" in data or not trial.reports:
            return data
        values = [value for _, value in trial.reports]
        is_best = self.log.plan.description.value == "best"
        metrics = {**trial.details.get("metrics", {}), **data.get("metrics", {})}
        data = {**data, "value": self.log.searcher.ledger.goal.best_of(values) if is_best else values[-1]}
        return {**data, "metrics": metrics} if metrics else data

    def promoted(self, in_flight: dict[int, Flight]) -> int | None:
        """The paused trial that a free worker goes on with, if its last process has gone; None where there is none."""
        number = None if self.rule is None else self.rule.promoted(self.log.searcher.history)
        return None if number is None or number in in_flight else number

    def end_paused(self) -> None:
        """At the end of the study: those that still wait go on no more."""
        for trial in self.log.searcher.trials:
            if trial.state is State.PAUSED and self.rule is not None:
                verdict = Verdict("prune", "the study ended before it was its turn")
                self.log.add(event_of(verdict, "study", trial.number, trial.step, self.log.newest))

    def close(self) -> None:
        """Judge no more."""
        self._thread.shutdown(wait=False)

    async def _judge(self, number: int) -> Verdict:
        rule, history = self.rule, self.log.searcher.history
        if rule is None:
            return GO
        if not rule.is_slow:
            return rule.judge(history, number)
        return await asyncio.get_running_loop().run_in_executor(self._thread, rule.judge, history.copy(), number)
