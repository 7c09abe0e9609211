"""The event log of a running study: each event is committed before it has any effect outside.

The searcher takes in an event at once, so that the next proposal takes it into account; the event then waits for the
next commit. What is shown of the study (counts, the best, timings, notes) comes from committed events only.

A thread writes: while it waits for the disk, the study continues, and events added meanwhile go into the next commit.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar, cast

from raybo.common.errors import JournalError, RayboError, SpaceError
from raybo.common.messages import counted
from raybo.engine.plan import Plan
from raybo.engine.status import SHOWN, Status, config_text
from raybo.engine.study.budget_clock import BudgetClock
from raybo.engine.study.committed import Before, Committed
from raybo.engine.study.repeated_failures import RepeatedFailures
from raybo.engine.study.timings import Timings
from raybo.job.objective import Objective
from raybo.journal import Journal, clean
from raybo.journal.side_files import without_password
from raybo.record.budget import Budget, as_kept, used
from raybo.record.code_changes import last_code
from raybo.record.confirmed import again_count
from raybo.record.events import (
    Asked,
    AttemptEvent,
    Ended,
    Event,
    Failed,
    Planned,
    Retried,
    Told,
    TrialEvent,
    artifacts_of,
)
from raybo.record.history import History
from raybo.record.origin import Origin
from raybo.record.states import COUNTED, FAILURES, State
from raybo.record.stopping import Stopping
from raybo.record.trial import Trial, saved_share
from raybo.searcher import NO_CONTEXT, Searcher
from raybo.space import Row
from raybo.study import warm_start
from raybo.study.confirmation import still_to_run

E = TypeVar("E", bound=Event)

TOLD_FROM = 2  # ended trials beyond one for each worker, before they tell how long the others take
NOTES = 1_000  # so many notes are kept, the newest
PRIORS = 8  # so many earlier studies are named at the beginning


class EventLog:
    """A study's journal, open for writing, and the searcher that is rebuilt from it.

    Args:
        plan: what is run; the number of trials that it names is recorded, if that is news.
        objective: what is tuned, without its function.
        pace: receives the duration of each suggestion and of each finished trial.
    Attributes:
        searcher: knows everything that was added, committed or not.
        committed: the study as far as it is committed, which is what others are shown.
        improved: number of the last event that brought a better best, committed or not.
        losses: how often each trial had lost its worker when the journal was opened.
        failures: the trials that had failed when the journal was opened, and the numbers of those events.
        clock: counts the budget; None if there is none.
        fruitless: how many trials in a row, the last ones of this command, have failed or, under a budget of cost, have
            cost nothing.
        touched: the trials of which the journal held more than that they were asked for when it was opened.
        stopping: whether the study has found enough; knows what is not committed too.
        alike: how the first trials of this command have failed, all of them; committed or not.
    Raises:
        JournalError: the journal cannot be opened.
    """

    def __init__(self, plan: Plan, objective: Objective, timings: Timings) -> None:
        self.plan = plan
        self.timings = timings
        self.journal = Journal(plan.path, plan.description, driver=None if plan.options.detach else plan.driver)
        self.searcher = Searcher.of(plan.description.over(objective.space, objective.context))
        self.committed = Committed(self.searcher.ledger)
        self.improved = 0
        self.losses: dict[int, int] = {}
        self.failures: dict[int, int] = {}
        self.touched: set[int] = set()
        self.repeated_failures = RepeatedFailures()
        self.fruitless = 0
        self.stopping = Stopping(plan.options.limits, objective.goals)
        self._last: Event | None = None
        self._known_front: tuple[int, tuple[int, float]] | None = None  # by how many trials have finished
        self._unwritten: list[Event] = []
        self._written = 0  # number of the last event that was written in this process
        self._disk = threading.Lock()  # one transaction at a time
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="commit")
        self._writing: asyncio.Future[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()  # commits that nobody waits for
        self._is_closed = False
        self._notes: deque[tuple[int, str]] = deque(maxlen=NOTES)
        self._misses_context = False  # whether a trial came without a declared context
        self._leaves_metrics = False  # whether a trial returned something that is not kept
        self._misses_reports = False  # True once a trial reported nothing to a scheduler
        self._ended_before = 0  # trials, when the driver began
        for event in self.journal.events:
            before = Before.of(self.searcher.ledger, event)
            self.searcher.apply(event)
            self._announce(event, before)
            self._update(event)
            if isinstance(event, TrialEvent) and not isinstance(event, Asked):
                self.touched.add(event.trial)
            if isinstance(event, Retried):
                self.losses[event.trial] = event.losses or 0
                self.failures.pop(event.trial, None)
            elif isinstance(event, Failed):
                self.failures[event.trial] = event.number
            if event.state in COUNTED and event.number <= plan.after:
                self._ended_before += 1
        if not self.searcher.trials:
            priors = self.searcher.history.priors
            for prior in priors[:PRIORS]:
                self.note(f"prior: {prior.in_words(self.searcher.space.names)}")
            if len(priors) > PRIORS:
                self.note(f"and {len(priors) - PRIORS} more, see `raybo show --priors`")
        budget = plan.options.allowance
        self.clock = None if budget is None else _clock(plan, budget, self.journal.events)
        place = None if plan.artifacts is None else without_password(plan.artifacts)
        events = self.journal.events
        place = None if place in artifacts_of(events)[:1] else place
        code = None if plan.code == last_code(events) else plan.code
        history, cost = self.searcher.history, plan.options.cost
        is_new = (history.planned, history.budget, history.cost) != (plan.trials, budget, cost)
        if is_new or place is not None or code is not None:
            amount, price = (None, None) if budget is None else (budget.amount, budget.price)
            self.add(Planned(trials=plan.trials, artifacts=place, code=code, budget=amount, price=price, cost=cost))

    @property
    def is_over(self) -> bool:
        """True if the budget is used."""
        return self.clock is not None and self.clock.is_over

    @property
    def newest(self) -> int:
        """Number of the last event, committed or not."""
        return self.searcher.ledger.last_event

    def add(self, event: E) -> E:
        """Take in an event, and return it with its number; the next commit holds it."""
        ledger = self.searcher.ledger
        before = Before.of(ledger, event)
        numbered = self.searcher.apply(clean(event))
        now, best = ledger.incumbent, before.incumbent
        if isinstance(event, Asked):
            if event.origin is None:
                self.timings.suggestions.append(event.suggest_seconds or 0.0)
                self.timings.spent.append(event.suggest_processor_seconds or 0.0)
        elif (now is None and ledger.front is not before.front) or (
            now is not None and (best is None or now.value != best.value)
        ):
            self.improved = numbered.number
        self._update(numbered)
        self._count_cost(numbered)
        self.committed.add(numbered, before)
        self._unwritten.append(numbered)
        return numbered

    def _count_cost(self, event: Event) -> None:
        """Count what an event uses of a budget of cost, and the trials in a row that brought nothing."""
        clock, reported = self.clock, None
        if event.trial is not None:
            reported = self.searcher.history.records[event.trial].last_metrics
        cost = 0.0 if clock is None else clock.hear(event, reported)
        if event.is_end:
            is_free = clock is not None and clock.budget.cost is not None and not cost
            self.fruitless = self.fruitless + 1 if is_free or isinstance(event, Failed) else 0

    def commit(self) -> None:
        """Commit the added events in one transaction, and only then announce them.

        Raises:
            JournalError: it could not be written; the next commit tries again.
        """
        self._write()
        self._announce_committed()

    async def committed_to(self, number: int) -> None:
        """Wait until an event is committed, with whatever is added before the disk is free for it.

        Raises:
            JournalError: it could not be written; the next commit tries again.
        """
        while self.committed.last_event < number:
            if self._writing is None or self._writing.done():
                self._writing = asyncio.get_running_loop().run_in_executor(self._thread, self._write)
            await asyncio.shield(self._writing)
            self._announce_committed()

    async def commit_quietly(self, number: int) -> None:
        """Commit without raising: an error becomes a note, and the next commit that fails raises it."""
        try:
            await self.committed_to(number)
        except JournalError as error:
            self._notes.append((self.newest, str(error)))

    def commit_in_background(self, number: int) -> None:
        """Commit without waiting, unless that is done: a proposal's commit may have included the event."""
        if self.committed.last_event < number and not self._is_closed:
            task = asyncio.ensure_future(self.commit_quietly(number))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _write(self) -> None:
        """Commit what was added; in any thread."""
        with self._disk:
            batch = list(self._unwritten)
            if batch:
                self.journal.append(batch)
                del self._unwritten[: len(batch)]
                self._written = batch[-1].number

    def _announce_committed(self) -> None:
        """Announce the committed events, in the study's own thread."""
        for event, before in self.committed.advance(self._written):
            self._announce(event, before)
            if isinstance(event, Told):
                self.timings.trials.append(event.seconds or 0.0)

    def wanted_again(self) -> list[int]:
        """Return the trials that had failed when this command began, and that its options run again."""
        options, records = self.plan.options, self.searcher.history.records
        return [
            number
            for number, event in self.failures.items()
            if event <= self.plan.known
            and (options.retry_oom if records[number].lacked_memory else options.retry_failed)
        ]

    def status(self, running: int, reason: str, after: int) -> Status:
        """The study now.

        Args:
            running: how many trials run.
            reason: why it stops before its end.
            after: number of the last event whose notes are old news.
        """
        ended = self.committed.count(*COUNTED)
        elapsed = time.monotonic() - self.plan.begun
        here = ended - self._ended_before
        best = self.committed.incumbent
        confirming, trials, clock = self.committed.run_again, self.plan.trials, self.clock
        more = None if trials is None else max(0, trials + confirming - ended)
        each = elapsed / here if here >= self.plan.workers + TOLD_FROM else None  # from the end of one to the next
        rest = math.inf if clock is None else clock.seconds_left
        allowed = math.inf  # how many more trials the budget is expected to allow
        if each and clock is not None and clock.budget.cost is not None:
            allowed = (clock.budget.amount - clock.spent) / clock.mean_cost if clock.mean_cost else math.inf
        elif each:
            allowed = rest / each
        if each is not None:
            left = min(rest, math.inf if more is None else each * more)
        else:  # it is too early to tell, but for a budget of time that alone says when the study ends
            left = rest if more is None and clock is not None and clock.budget.is_time else math.inf
        return Status(
            metric=self.plan.description.metric,
            planned=None if trials is None else trials + confirming,
            confirming=confirming,
            finished=self.committed.count(State.FINISHED),
            failed=self.committed.count(*FAILURES),
            running=running,
            best=None if best is None else (best.number, cast(float, best.value)),
            suggest_seconds=self.timings.suggest_seconds,
            elapsed=elapsed,
            left=left if left < math.inf else None,
            worth=None if self.stopping.worth is None else (self.stopping.worth, self.stopping.limits.unit),
            budget=None if clock is None else (clock.spent, clock.budget),
            still=max(0, round(allowed)) if allowed < math.inf else None,
            notes=[text for number, text in self._notes if number > after],
            last_event=self.committed.last_event,
            reason=reason,
            has_context=self.searcher.context is not None,
            pruned=self.committed.count(State.PRUNED),
            paused=self.committed.count(State.PAUSED),
            reporting=self.committed.reporting,
            best_config="" if best is None else config_text(self.searcher.space, best.config),
            configs=[
                (trial.number, ", ".join([config_text(self.searcher.space, trial.config), *_at(trial)]))
                for trial in self.committed.newest_running(SHOWN)
            ],
            steps=self.searcher.steps,
            saved=saved_share(self.committed.trials, self.searcher.steps),
            front=self._front(),
        )

    def propose(self, history: History) -> Asked:
        """Return the proposal after a history, with what the study's limits need to know of it."""
        limits = self.plan.options.limits
        with_gain = limits.stop_below_gain is not None or limits.stop_when_not_worth is not None
        spent = None if self.clock is None else self.clock.spent
        return self.searcher.propose(history, with_gain=with_gain, spent=spent)

    def end(self, reason: str) -> None:
        """Record why the study ends before its trials have all been run, unless that was the last that was said."""
        last, confirm = self._last, self.plan.options.confirm
        if confirm is not None and self.clock is not None and reason == self.clock.reason:
            if again := still_to_run(confirm, self.searcher.trials, self.searcher.history):
                self.note(f"{reason}, so that {counted(len(again), 'run')} to confirm the best were left out")
        if not isinstance(last, Ended) or last.reason != reason:
            self.add(Ended(reason=reason, spent=None if self.clock is None else as_kept(self.clock.spent)))

    def _front(self) -> tuple[int, float] | None:
        """Size and hypervolume of the committed front, found anew when a trial has finished; None with one metric."""
        if self.searcher.goals.k == 1:
            return None
        finished = self.committed.count(State.FINISHED)
        if self._known_front is None or self._known_front[0] != finished:
            self._known_front = finished, (len(self.committed.front), self.committed.hypervolume())
        return self._known_front[1]

    def note(self, text: str) -> None:
        """Tell who watches something that no event holds."""
        self._notes.append((self.newest + 1, text))

    def wanted(self, values: Sequence[Any]) -> Row | None:
        """Return the row of a configuration that a user asks for; None if it is no news, or does not fit: a note.

        Args:
            values: as `Request.values`.
        """
        try:
            return warm_start.wanted(self.searcher, values)
        except SpaceError as error:
            self.note(f"an enqueued configuration does not fit: {error}")
            return None

    def enqueued(self, row: Row, history: History) -> Asked | None:
        """Return the event of asking for it after a history; None if that cannot be: a note."""
        try:
            return self.searcher.enqueued(history, row, None if self.clock is None else self.clock.spent)
        except RayboError as error:  # of a rule, or of a method, which will raise it again if it is asked for a trial
            self.note(f"an enqueued configuration cannot be run: {error}")
            return None

    def has_asked_enough(self) -> bool:
        """Return True if no further trial is needed, provided that the running ones end with a result or a failure."""
        trials, history = self.searcher.trials, self.searcher.history
        not_counted = self.committed.count(State.STOPPED) + again_count(trials, history)
        return self.plan.trials is not None and len(trials) - not_counted >= self.plan.trials

    def to_confirm(self) -> list[int]:
        """Return the trials whose configurations run again at the end of the search; none if the budget is used."""
        confirm = self.plan.options.confirm
        if confirm is None or self.is_over:
            return []
        return still_to_run(confirm, self.searcher.trials, self.searcher.history)

    def close(self) -> None:
        """Close the journal once everything written is on disk."""
        self._is_closed = True
        for task in self._tasks:
            task.cancel()
        self._thread.shutdown()
        self.journal.close()

    def _update(self, event: Event) -> None:
        """Update the stopping rules and the count of equal failures, this command's only if none ever finished."""
        self._last = event
        self.stopping.hear(event)
        trial = None if event.trial is None else self.searcher.trials[event.trial]
        if trial is not None and trial.origin is not Origin.ADDED:
            self.repeated_failures.add(event, is_new=event.number > self.plan.known)

    def _announce(self, event: Event, before: Before) -> None:
        """Note what the user should know of a committed event at once.

        That is a trial that failed or starts again, and the first one whose context is not known, of which something
        is not kept, or that reported nothing to a scheduler.
        """
        if not isinstance(event, TrialEvent):
            return
        if isinstance(event, Retried) and before.trial is not None and before.trial.state in COUNTED:
            self._ended_before -= 1
        self._notes.extend((event.number, f"trial {event.trial}{text}") for text in self._notes_on(event))

    def _notes_on(self, event: TrialEvent) -> Iterator[str]:
        if isinstance(event, Failed):
            yield f" {event.state}: {event.reason or ''}"
        if event.context_note:
            yield f": {event.context_note}"
        if isinstance(event, Told) and event.context_missing is not None and not self._misses_context:
            self._misses_context = True
            yield f": {NO_CONTEXT}"
        if isinstance(event, AttemptEvent) and event.metrics_left and not self._leaves_metrics:
            self._leaves_metrics = True
            yield f": of what it returned, {', '.join(event.metrics_left)} cannot be kept as JSON"
        if isinstance(event, Told) and not self._misses_reports and (unjudged := self._unjudged(event)):
            self._misses_reports = True
            yield f": {unjudged}"
        if isinstance(event, Retried):
            yield f" starts again (attempt {event.attempt}): {event.reason}"

    def _unjudged(self, event: Told) -> str:
        """In words, that a finished trial reported nothing to the scheduler; empty if it did."""
        trial, rule = self.searcher.trials[event.trial], self.searcher.rule
        if rule is None or trial.step or trial.origin is Origin.ADDED:
            return ""
        return f"it finished without a report, so the scheduler {rule.name} had nothing to judge"


def _clock(plan: Plan, budget: Budget, events: Sequence[Event]) -> BudgetClock:
    """Return the clock of a budget that goes on from what the journal's events have used of it.

    Time counts from the beginning of the command, also if the study's process has begun again since.
    """
    if budget.is_time:
        return BudgetClock(budget, used([event for event in events if event.number <= plan.known], budget), plan.begun)
    return BudgetClock(budget, used(events, budget))


def _at(trial: Trial) -> list[str]:
    """Return at which fidelity a trial runs, in words; empty if there are no cheap versions of the job."""
    return [f"{name} {at:,}" for name, at in trial.fidelity.items()]
