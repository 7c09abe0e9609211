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
from raybo.engine.lifecycle import Occurrence, Phase, Step
from raybo.engine.study.dispatch import DispatchedTrial
from raybo.engine.study.event_log import EventLog
from raybo.engine.trial.artifacts import trial_files
from raybo.engine.trial.report_sender import BATCH_SECONDS, Answer, AttemptInfo
from raybo.journal.beside import CHECKPOINTS, is_uri, trial_directory
from raybo.record.events import OPEN, Event, EventData, Kind, Paused, Reported, Retried, State
from raybo.record.goals import Goal
from raybo.record.ledger import Ledger
from raybo.record.trial import Trial
from raybo.schedulers import Verdict
from raybo.schedulers.rule import JOB, Rule, broken_by, event_of, foreseen
from raybo.searcher import Searcher

SHARE_SECONDS = 0.002  # what is to be committed at once waits this long for others


class Judge:
    """Hears the reports of a study's trials.

    Args:
        log: the study's events.
        meet: performs what follows an occurrence.
    """

    def __init__(self, log: EventLog, meet: Callable[[DispatchedTrial, Occurrence, EventData], Step]) -> None:
        self.log = log
        self.rule = log.searcher.rule
        self._meet = meet
        self._warned: set[str] = set()  # of what
        # of each trial: how many had ended, the step at which it waits next, and up to which step that is known
        self._foreseen: dict[int, tuple[tuple[int, ...], int | None, int]] = {}
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="judge")  # of a rule that is slow

    def attempt_info(self, number: int) -> AttemptInfo:
        """What a trial is told of its run before an attempt."""
        searcher = self.log.searcher
        trial = searcher.trials[number]
        waits_at = self._waits_at(number)
        step = searcher.history.records[number].checkpoint or 0
        said = trial.details.get("metrics", {})
        has_rule, judged = self.rule is not None, searcher.history.judged_metric
        return AttemptInfo(searcher.steps, has_rule, waits_at, trial.checkpoint, step, said, judged)

    def recover(self) -> None:
        """As the study begins again: end or halt trials with a report that was committed without its verdict."""
        trials = self.log.searcher.trials
        owed = [self.log.add(event) for event in missing_verdicts(self.log.searcher, self.log.journal.events)]
        if owed:
            self.log.commit()
            self._tidy([trials[cast(int, event.trial)] for event in owed if event.kind is Kind.PRUNED])

    async def receive(self, dispatched: DispatchedTrial, batch: list[EventData]) -> Answer:
        """Take in what an attempt that runs has reported; what is answered is committed."""
        number, attempt, waits = dispatched.life.trial, dispatched.life.attempt, False
        for data in batch:
            # it has ended meanwhile, or begun again, or a verdict has been given
            if dispatched.life.phase is not Phase.RUNNING or dispatched.life.attempt != attempt:
                break
            if "checkpoint" in data:
                waits = True
                self._look_for(number, data["checkpoint"])
            record = self.log.searcher.history.records[number]
            is_known = data["step"] <= record.step
            told: EventData = {**data, "attempt": dispatched.life.attempt, **({"repeated": True} if is_known else {})}
            added = self.log.add(Reported.of(number, told))
            verdict, rule = broken_by(added, self.log.searcher.goals), JOB
            if not verdict.prune:
                if self.rule is None or is_known or not self.rule.can_judge(self.log.searcher.history, number):
                    continue
                verdict, rule = await self._verdict(self.rule, number), self.rule.name
            waits = True
            if verdict.action != "go" and dispatched.life.phase is Phase.RUNNING:
                occurrence = Occurrence.PRUNED if verdict.prune else Occurrence.PAUSED
                dispatched.answer = Answer(verdict.action, verdict.why)
                if verdict.pause and self.log.searcher.history.records[number].checkpoint is None:
                    self._warn(
                        "pause",
                        f"trial {number} should pause but has saved no checkpoint, so it would start again; save some "
                        "with raybo.saving(), or choose a scheduler that ends trials",
                    )
                event = event_of(verdict, rule, number, data["step"], added.number)
                self._meet(dispatched, occurrence, {**event.data, "seconds": data["seconds"]})
        newest = self.log.newest
        if waits:
            await asyncio.sleep(SHARE_SECONDS)
            await self.log.commit_quietly(newest)
        else:
            asyncio.get_running_loop().call_later(BATCH_SECONDS, self.log.commit_in_background, newest)
        if dispatched.life.phase is not Phase.RUNNING:
            return dispatched.answer or Answer("gone", "its study has given it up")
        return Answer(waits_at=self._waits_at(number))

    def result(self, number: int, data: EventData) -> EventData:
        """What the event of a finished run holds: where it said all in its reports, with the value among these."""
        searcher = self.log.searcher
        return finished(searcher.trials[number], data, searcher.ledger.goal, self.log.plan.description.value)

    def promoted(self, in_flight: dict[int, DispatchedTrial]) -> int | None:
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
                at = trial_files(plan.path, trial.number, 1, plan.artifacts, trial.checkpoint, plan.keep_checkpoints)
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


def missing_verdicts(searcher: Searcher, events: Sequence[Event]) -> list[Event]:
    """The verdicts, to be added, on reports that were committed without them.

    The study's process died between the two. A verdict is the one that was due: made of what there was up to the
    report. A report that breaks a constraint that must hold at every step ends its trial however old it is, as raybo
    used to let some of these trials go on.

    Args:
        searcher: as it is after all events.
        events: of the journal.
    """
    rule, trials = searcher.rule, searcher.trials
    broke: dict[int, Reported] = {}
    last: dict[int, Reported] = {}
    ended: set[int] = set()
    for event in events:
        number = event.trial
        if number is None or trials[number].state not in OPEN:
            continue
        if isinstance(event, Reported):
            if not event.repeated:
                last[number] = event
            if number not in broke and event.broken(searcher.goals):
                broke[number] = event
        elif isinstance(event, Paused):  # its verdict has been given
            last.pop(number, None)
        elif event.is_end:  # and its reports were settled, or overtaken by it
            ended.add(number)
            last.pop(number, None)
        elif isinstance(event, Retried) and number in ended:  # the user has mended the job
            ended.discard(number)
            broke.pop(number, None)
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
            if event.number in due and isinstance(event, Reported):
                owed.append((rule.judge(ledger.history, event.trial), rule.name, event))
    made: list[Event] = []
    for verdict, name, event in owed:
        if verdict.action != "go":
            trial = trials[event.trial]
            is_running = trial.state is State.PENDING and event.attempt == trial.attempt
            seconds = event.seconds if is_running else None  # else they are counted already
            owing = event_of(verdict, name, trial.number, event.step, event.number)
            made.append(replace(owing, attempt=trial.attempt, seconds=seconds))
    return made


def finished(trial: Trial, data: EventData, goal: Goal, which: str) -> EventData:
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
    values = [value for _, value in trial.last_run]
    metrics = {**trial.details.get("metrics", {}), **data.get("metrics", {})}
    data = {**data, "value": goal.best_of(values) if which == "best" else values[-1]}
    return {**data, "metrics": metrics} if metrics else data
