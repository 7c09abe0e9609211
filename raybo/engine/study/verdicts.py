"""Verdicts on the reports of a study's trials.

A report is committed before its trial gets the verdict, in one transaction with a verdict that ends or pauses the
trial. Reports that decide nothing are collected, so that they cause at most one commit in 50 ms.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Container, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Protocol, cast

from raybo.common.errors import MethodError, RayError
from raybo.common.messages import shown
from raybo.engine.lifecycle import Life, Occurrence, Phase, Step
from raybo.engine.study.event_log import EventLog
from raybo.engine.trial.artifacts import trial_files
from raybo.engine.trial.report_sender import BATCH_SECONDS, GONE, Answer, AttemptInfo
from raybo.journal.side_files import CHECKPOINTS, is_uri, trial_directory
from raybo.record.events import Event, EventData, Kind, Paused, Reported, Retried, cost_in
from raybo.record.goals import Goal
from raybo.record.history import History
from raybo.record.ledger import Ledger
from raybo.record.states import OPEN, State
from raybo.record.trial import Trial
from raybo.schedulers import Verdict
from raybo.schedulers.rule import CONSTRAINT, JOB, broken_by, event_of, foreseen
from raybo.searcher import Searcher

SHARE_SECONDS = 0.002  # an urgent commit waits this long for others, to share one transaction


class Dispatched(Protocol):
    """A trial in the engine.

    Attributes:
        life: its phase and its attempt.
        answer: the verdict by which it was pruned or paused; None if it was not.
    """

    life: Life
    answer: Answer | None


class Judge:
    """Records the reports of a study's trials, and gives the verdicts on them.

    Args:
        log: the study's events.
        apply: performs what follows an occurrence.
    """

    def __init__(self, log: EventLog, apply: Callable[[Any, Occurrence, EventData], Step]) -> None:
        self.log = log
        self.rule = log.searcher.rule
        self._apply = apply
        self._warned: set[str] = set()  # the kinds of notes that have been given
        # by trial: how many trials had ended, the step at which it waits next, and up to which step that is known
        self._foreseen: dict[int, tuple[tuple[int, ...], int | None, int]] = {}
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="judge")  # for slow rules

    def attempt_info(self, number: int) -> AttemptInfo:
        """Return the reports and the checkpoint that an attempt begins with."""
        searcher = self.log.searcher
        trial = searcher.trials[number]
        waits_at = self._waits_at(number)
        step = searcher.history.records[number].checkpoint or 0
        metrics = trial.details.get("metrics", {})
        has_rule, judged = self.rule is not None, searcher.history.judged_metric
        return AttemptInfo(searcher.steps, has_rule, waits_at, trial.checkpoint, step, metrics, judged)

    def recover(self) -> None:
        """End or pause the trials whose last report was committed without its verdict, as the study was killed."""
        trials = self.log.searcher.trials
        verdicts = [self.log.add(event) for event in missing_verdicts(self.log.searcher, self.log.journal.events)]
        if verdicts:
            self.log.commit()
            self._remove_checkpoints(
                [trials[cast(int, event.trial)] for event in verdicts if event.kind is Kind.PRUNED]
            )

    async def receive(self, dispatched: Dispatched, batch: list[EventData]) -> Answer:
        """Record what a running attempt has reported, and answer once that is committed.

        A scheduler that raises fails the trial that it was asked about, and no other.
        """
        attempt, is_awaited = dispatched.life.attempt, False
        for data in batch:
            # it has ended meanwhile, or begun again, or a verdict has been given
            if dispatched.life.phase is not Phase.RUNNING or dispatched.life.attempt != attempt:
                break
            try:
                is_awaited |= await self._record(dispatched, data)
            except MethodError as error:
                return Answer("fault", str(error))
        newest = self.log.newest
        if is_awaited:
            await asyncio.sleep(SHARE_SECONDS)
            await self.log.commit_quietly(newest)
        else:
            asyncio.get_running_loop().call_later(BATCH_SECONDS, self.log.commit_in_background, newest)
        return self.answer(dispatched, attempt)

    def answer(self, dispatched: Dispatched, attempt: int) -> Answer:
        """Return whether an attempt is to continue, by what is known of it."""
        if dispatched.life.phase is not Phase.RUNNING or dispatched.life.attempt != attempt:
            return dispatched.answer or GONE
        return Answer(waits_at=self._waits_at(dispatched.life.trial))

    def receive_now(self, dispatched: Dispatched, batch: list[EventData]) -> Answer:
        """Do as `receive`, without an event loop."""
        for data in batch:
            if dispatched.life.phase is not Phase.RUNNING:
                break
            report = self._added(dispatched, data)
            try:
                given = self._verdict_on(report, self.log.searcher.history)
            except MethodError as error:
                return Answer("fault", str(error))
            self._carry_out(dispatched, report, given)
        self.log.commit()
        return self.answer(dispatched, dispatched.life.attempt)

    def _added(self, dispatched: Dispatched, data: EventData) -> Reported:
        """Add the event of a report."""
        number = dispatched.life.trial
        if "checkpoint" in data:
            self._warn_if_elsewhere(number, data["checkpoint"])
        is_repeated = data["step"] <= self.log.searcher.history.records[number].step
        repeated: EventData = {"repeated": True} if is_repeated else {}
        return self.log.add(Reported.of(number, {**data, "attempt": dispatched.life.attempt, **repeated}))

    def _can_judge(self, report: Reported, history: History) -> bool:
        """True if the scheduler may end the trial by this report."""
        return self.rule is not None and not report.repeated and self.rule.can_judge(history, report.trial)

    async def _record(self, dispatched: Dispatched, data: EventData) -> bool:
        """Record one report and the verdict on it; True if the trial waits until they are committed.

        A slow rule gives its verdict beside the event loop.
        """
        report = self._added(dispatched, data)
        history = self.log.searcher.history
        if self.rule is not None and self.rule.is_slow and self._can_judge(report, history):
            loop = asyncio.get_running_loop()
            given = await loop.run_in_executor(self._thread, self._verdict_on, report, history.copy())
        else:
            given = self._verdict_on(report, history)
        self._carry_out(dispatched, report, given)
        return given is not None or report.checkpoint is not None

    def _verdict_on(self, report: Reported, history: History) -> tuple[Verdict, str] | None:
        """Return the verdict on a trial's last report, and the name of its rule; None if none is due."""
        broken = broken_by(report, self.log.searcher.goals)
        if broken.prune:
            return broken, CONSTRAINT
        if self.rule is None or not self._can_judge(report, history):
            return None
        return self.rule.verdict(history, report.trial), self.rule.name

    def _carry_out(self, dispatched: Dispatched, report: Reported, given: tuple[Verdict, str] | None) -> None:
        """Have a running trial end or pause if the verdict on its report says so."""
        if given is None or given[0].action == "go" or dispatched.life.phase is not Phase.RUNNING:
            return
        (verdict, rule), number = given, dispatched.life.trial
        dispatched.answer = Answer(verdict.action, verdict.why)
        if verdict.pause and self.log.searcher.history.records[number].checkpoint is None:
            self._warn(
                "pause",
                f"trial {number} should pause but has saved no checkpoint, so it would start again; save some "
                "with raybo.saving(), or choose a scheduler that ends trials",
            )
        event = event_of(verdict, rule, number, report.data["step"], report.number)
        occurrence = Occurrence.PRUNED if verdict.prune else Occurrence.PAUSED
        self._apply(dispatched, occurrence, {**event.data, "seconds": report.data["seconds"]})

    def outcome(self, number: int, occurrence: Occurrence, data: EventData) -> tuple[Occurrence, EventData]:
        """Return what has come of a run, and the data of its event.

        The value of one that returned is one of its reports if it returned none. If the study counts a cost, a result
        or a cheap run without it is bad.
        """
        searcher = self.log.searcher
        if occurrence is Occurrence.RETURNED:
            data = with_value(searcher.trials[number], data, searcher.ledger.goal, self.log.plan.description.value)
            return self._with_cost(occurrence, data, data.get("metrics", {}))
        if occurrence is Occurrence.LEFT:  # it gave up, or was a cheap run
            data, record = {"rule": JOB, **data}, searcher.history.records[number]
            if record.fidelity is not None:
                return self._with_cost(occurrence, data, record.last_metrics or {})
        return occurrence, data

    def _with_cost(
        self, occurrence: Occurrence, data: EventData, metrics: Mapping[str, Any]
    ) -> tuple[Occurrence, EventData]:
        """Return them, or a bad result if the study counts a cost and these metrics have none."""
        name = self.log.searcher.history.cost
        if name is None or cost_in(metrics, name) is not None:
            return occurrence, data
        told = f"its {name!r} is {shown(metrics[name])}" if name in metrics else f"it returned no {name!r}"
        failed = {key: value for key, value in data.items() if key not in ("value", "rule")}
        return Occurrence.BAD_RESULT, {**failed, "reason": f"{told}; a trial's cost must be a number above 0"}

    def promoted(self, in_flight: Container[int]) -> int | None:
        """Return the paused trial that a free worker resumes; None if there is none, or its last process still runs."""
        number = None if self.rule is None else self.rule.promoted(self.log.searcher.history)
        return None if number is None or number in in_flight else number

    def end_paused(self) -> None:
        """End the trials that are still paused at the end of the study, and remove their checkpoints as for others."""
        paused = [trial for trial in self.log.searcher.trials if trial.state is State.PAUSED]
        for trial in paused:
            verdict = Verdict("prune", "the study ended before it was its turn")
            self.log.add(event_of(verdict, "study", trial.number, trial.step, self.log.newest))
        self.log.commit()
        self._remove_checkpoints(paused)

    def close(self) -> None:
        """Stop the thread of a slow rule."""
        self._thread.shutdown(wait=False)

    def _remove_checkpoints(self, ended: Sequence[Trial]) -> None:
        """Remove the checkpoints that are not to be kept of trials that ended while no process of theirs ran."""
        plan = self.log.plan
        for trial in ended:
            with contextlib.suppress(RayError, OSError):  # what cannot be removed stays
                at = trial_files(
                    plan.path, trial.number, 1, plan.artifacts, trial.checkpoint, plan.options.keep_checkpoints
                )
                with at as (_, checkpoints):
                    checkpoints.end()

    def _warn_if_elsewhere(self, number: int, checkpoint: str) -> None:
        """Note once that checkpoints are on the disk of another node, and are lost with it."""
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

    def _warn(self, kind: str, text: str) -> None:
        """Note one text of a kind."""
        if kind not in self._warned:
            self.log.note(text)
        self._warned.add(kind)

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
            try:
                found = self.rule.waits_at(history, number, until)
            except MethodError:  # the next report shows it
                return history.records[number].step + 1
            until = foreseen(history, number) if found is None else found
        self._foreseen[number] = ended, found, until
        return found


def missing_verdicts(searcher: Searcher, events: Sequence[Event]) -> list[Event]:
    """Return the events of the verdicts that reports were committed without, as the study's process died in between.

    Each is the verdict that was due: it depends on the events up to its report. A report that breaks a constraint that
    must hold at every step ends its trial however old it is, as earlier releases let some of these trials continue.

    Args:
        searcher: the searcher after all events.
        events: the journal's.
    """
    rule = searcher.rule
    broken, last = _open_reports(searcher, events)
    due = [(broken_by(report, searcher.goals), CONSTRAINT, report) for report in broken.values()]
    judged = {
        report.number
        for number, report in last.items()
        if rule is not None and number not in broken and rule.can_judge(searcher.history, number)
    }
    if rule is not None and judged:
        ledger = Ledger(
            searcher.space,
            searcher.goals,
            searcher.context,
            searcher.steps,
            rule.metric,
            searcher.history.generation,
        )
        for event in events[: max(judged)]:
            ledger.apply(event)
            if event.number in judged and isinstance(event, Reported):
                due.append((rule.judge(ledger.history, event.trial), rule.name, event))
    return [_event_after(searcher, *verdict) for verdict in due if verdict[0].action != "go"]


def _open_reports(searcher: Searcher, events: Sequence[Event]) -> tuple[dict[int, Reported], dict[int, Reported]]:
    """Return two reports of each open trial: the first that broke a constraint, and the last if it has no verdict."""
    broken: dict[int, Reported] = {}
    last: dict[int, Reported] = {}
    ended: set[int] = set()
    for event in events:
        number = event.trial
        if number is None or searcher.trials[number].state not in OPEN:
            continue
        if isinstance(event, Reported):
            if not event.repeated:
                last[number] = event
            if number not in broken and event.broken(searcher.goals):
                broken[number] = event
        elif isinstance(event, Paused):  # its verdict has been given
            last.pop(number, None)
        elif event.is_end:  # its reports have their verdicts, or need none
            ended.add(number)
            last.pop(number, None)
        elif isinstance(event, Retried) and number in ended:  # the user has mended the job
            ended.discard(number)
            broken.pop(number, None)
    return broken, last


def _event_after(searcher: Searcher, verdict: Verdict, rule: str, report: Reported) -> Event:
    """Return the event of a verdict on a report that an earlier process committed."""
    trial = searcher.trials[report.trial]
    is_running = trial.state is State.PENDING and report.attempt == trial.attempt  # else its time is counted already
    event = event_of(verdict, rule, trial.number, report.step, report.number)
    return replace(event, attempt=trial.attempt, seconds=report.seconds if is_running else None)


def with_value(trial: Trial, data: EventData, goal: Goal, which: str) -> EventData:
    """Return the data of a finished run's event; its value is one of its reports if it returned none.

    Of the steps that it repeated its own reports count, so that value, metrics and context are of one run.

    Args:
        trial: as it has reported.
        data: the outcome of the run.
        goal: which of two values is better.
        which: the report whose value counts, the "last" or the "best".
    """
    if "value" in data or not trial.step:
        return data
    values = [value for _, value in trial.last_run]
    metrics = {**trial.details.get("metrics", {}), **data.get("metrics", {})}
    data = {**data, "value": goal.best_of(values) if which == "best" else values[-1]}
    return {**data, "metrics": metrics} if metrics else data
