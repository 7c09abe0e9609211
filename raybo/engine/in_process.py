"""A study in the user's own process, without Ray: one trial after the other, in the thread that began it.

The journal, the proposals, the verdicts and the endings are those of a study on Ray, so either continues the other.
What needs a process of its own is different: a trial that ends this process counts as one that lost its worker; a time
limit ends a trial where Python can be interrupted, in the main thread of a POSIX system, and else at its next report;
and what a trial prints is not kept; one that fails only because nobody reads that ends its study, and is no failure.
Reports come from the trial's own thread or from the one that sends them, and the progress is shown by a third: a lock
guards what they share.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from raybo.common.messages import in_words
from raybo.engine.interruptions import Guard, OutOfTime
from raybo.engine.lifecycle import Life, Occurrence, Phase, Step, event_after
from raybo.engine.outlet import UNREAD, Outlet, Unwritable
from raybo.engine.plan import Plan
from raybo.engine.progress import Watch
from raybo.engine.study.ending import Ending
from raybo.engine.study.event_log import EventLog
from raybo.engine.study.timings import Timings
from raybo.engine.study.trial_queue import INTERRUPTED, TrialQueue
from raybo.engine.study.verdicts import Judge
from raybo.engine.trial.artifacts import trial_files
from raybo.engine.trial.report_sender import Answer, AttemptInfo, ReportSender
from raybo.engine.trial.task import run_trial
from raybo.job.cheap_version import with_cheap_versions
from raybo.job.current_trial import CurrentTrial, running
from raybo.job.objective import Objective
from raybo.job.shared_data import Shared
from raybo.journal import requests
from raybo.record.events import STOP_REASON, Asked, ContextObserved, EventData
from raybo.searcher import trial_seed

SHOW_SECONDS = 0.2  # between two updates of the display
LOOK_SECONDS = 1.0  # between two looks for requests while a trial reports


def reason_of(error: BaseException) -> str:
    """Return why a study ends that is ended by an error of what it prints, or of who watches it."""
    if isinstance(error, KeyboardInterrupt):
        return STOP_REASON
    if isinstance(error, BrokenPipeError):
        return UNREAD
    return str(error) if isinstance(error, Unwritable) else f"its progress cannot be shown: {in_words(error)}"


@contextlib.contextmanager
def attempt_here(
    log: EventLog,
    objective: Objective,
    life: Life,
    info: AttemptInfo,
    receive: Callable[[list[EventData]], Answer],
    send_context: Callable[[EventData], None] | None = None,
) -> Iterator[Callable[[], tuple[Occurrence, EventData]]]:
    """Yield what runs the objective once in this thread, with the trial's directory and as the current trial.

    Args:
        log: the study's events.
        objective: with its function.
        life: the trial's.
        info: what the attempt begins with.
        receive: takes its reports, and answers whether it is to continue.
        send_context: takes the context that it observes before its end; None if nobody wants it.
    """
    plan, number = log.plan, life.trial
    trial = log.searcher.trials[number]
    seed, config = trial_seed(plan.description.seed, number), {**trial.config, **trial.fidelity}
    at = trial_files(plan.path, number, life.attempt, plan.artifacts, info.checkpoint, plan.options.keep_checkpoints)
    with at as (directory, checkpoints), running(CurrentTrial(number, life.attempt, seed, config, directory)):
        yield partial(
            run_trial,
            with_cheap_versions(objective.function, objective.fidelity, objective.metric),
            config,
            {name: _plain(value) for name, value in objective.settings.items()},
            objective.goals,
            max(1, int(objective.num_cpus)),
            objective.context,
            send_context,
            partial(ReportSender, info, receive, checkpoints),
            (OutOfTime, KeyboardInterrupt),
            log.searcher.history.cost,
        )


@dataclass
class Running:
    """A trial that runs here: its life so far, and the verdict that ended it."""

    life: Life
    answer: Answer | None = None


class InProcess:
    """Runs a study in this process.

    Args:
        plan: what to run.
        objective: what is tuned.
        watch: called with a `Status` several times a second, from another thread; None for nobody.
    Raises:
        JournalError: the journal cannot be opened.
    """

    def __init__(self, plan: Plan, objective: Objective, watch: Watch | None) -> None:
        self.plan, self.objective, self.watch = plan, objective, watch
        self.log = EventLog(plan, objective, Timings(1, True))
        self.ending = Ending(self.log)
        self.judge = Judge(self.log, self._apply)
        self._guard = Guard()
        self._outlet = Outlet()
        self._current: Running | None = None
        self._queue = TrialQueue(self.log)
        self._shown = plan.after
        self._looked = 0.0  # when requests were looked for last, by the monotonic clock

    def run(self) -> None:
        """Run the study to its end.

        Raises:
            TrialError: it was given up, as its first trials all failed alike.
            KeyboardInterrupt: Ctrl-C; the study has been stopped and its journal is whole.
            BrokenPipeError, Unwritable: what a trial prints cannot be written any more; likewise.
        """
        try:
            self._recover()
            self.ending.check_enough()
            with self._shown_meanwhile(), self._listening(), self._outlet, self._guard.ctrl_c():
                try:
                    while (life := self._next()) is not None:
                        self._carry(life)
                except (KeyboardInterrupt, BrokenPipeError, Unwritable) as error:
                    self._stop(reason_of(error))
                    raise
                finally:
                    self._finish()
            self.ending.raise_if_hopeless()
        finally:
            self.judge.close()
            self.log.close()

    # ---- which trial is next

    def _recover(self) -> None:
        """Find the trials that an earlier process left; one that it had begun has lost its worker."""
        self.judge.recover()
        for life, has_begun in self._queue.left():
            lost = Running(replace(life, phase=Phase.RUNNING))
            if not has_begun or self._apply(lost, Occurrence.WORKER_LOST, {"reason": INTERRUPTED}).submit:
                self._queue.first.append(life.trial)
        self.log.commit()
        self._queue.failed.extend(self.log.wanted_again())

    def _next(self) -> Life | None:
        """Return the next trial to run, committed; None if the study has ended."""
        self._perform_requests()
        self._check_budget()
        with self._guard:
            if self.ending.stopped:
                return None
            if (life := self._begun_before()) is not None:
                return life
        if not (self.ending.enough or self.log.has_asked_enough()):
            return self._asked(self.log.propose(self.log.searcher.history))  # which Ctrl-C may cut short
        self._queue.begin_confirming()
        return self._asked(self._queue.confirmation()) if self._queue.is_confirming else None

    def _begun_before(self) -> Life | None:
        """Return a trial that exists and is to run now, committed; None if there is none."""
        if self._queue.first:
            return self._committed(self._waiting(self._queue.resumed()))
        if self._queue.failed:
            return self._begun_again(*self._queue.retried())
        if not self.ending.enough and (number := self.judge.promoted({})) is not None:
            return self._begun_again(*self._queue.promoted(number))
        return None

    def _waiting(self, number: int) -> Life:
        """Return the life of a trial that waits for its next attempt."""
        attempt = self.log.searcher.trials[number].attempt
        return Life(number, attempt=attempt, losses=self.log.losses.get(number, 0))

    def _asked(self, event: Asked) -> Life:
        with self._guard:
            return self._committed(Life(self.log.add(event).trial))

    def _begun_again(self, life: Life, occurrence: Occurrence, data: EventData) -> Life:
        trial = Running(life)
        self._apply(trial, occurrence, data)
        return self._committed(trial.life)

    def _committed(self, life: Life) -> Life:
        self.log.commit()
        return life

    # ---- one trial

    def _carry(self, life: Life) -> None:
        """Run a trial to its end."""
        current, cause = Running(life), STOP_REASON
        with self._guard:
            self._current = current
            self._apply(current, Occurrence.SUBMITTED, {})
        try:
            occurrence, data = self._attempt(current)
            try:
                self._outlet.require(occurrence, data)
            except (BrokenPipeError, Unwritable) as error:
                self._stop(reason_of(error))
                raise
            with self._guard:
                if current.life.phase is Phase.RUNNING:
                    occurrence, data = self.judge.outcome(life.trial, occurrence, data)
                    if self._apply(current, occurrence, data).submit:  # the disk was full
                        self._queue.first.append(life.trial)
                self.log.commit()
        except Exception as error:
            cause = f"the study failed: {in_words(error)}"
            raise
        finally:
            with self._guard:
                if current.life.phase is Phase.RUNNING:  # Ctrl-C, or an error of raybo
                    self._apply(current, Occurrence.STOPPED, {"reason": self.ending.stopped or cause})
                self._current = None

    def _attempt(self, current: Running) -> tuple[Occurrence, EventData]:
        """Run the objective once."""
        info = self.judge.attempt_info(current.life.trial)
        limit = self.plan.options.trial_seconds
        ends = None if limit is None else time.monotonic() + limit
        receive = partial(self._receive, current, ends)
        send_context = None if self.objective.context is None else partial(self._observed, current)
        with attempt_here(self.log, self.objective, current.life, info, receive, send_context) as run:
            try:
                with self._guard.time_limit(self._seconds_left(ends)):
                    return run()
            except OutOfTime:
                self._check_budget()
                if self.ending.stopped:
                    return Occurrence.STOPPED, {"reason": self.ending.stopped}
                return self._over_limit()

    def _over_limit(self) -> tuple[Occurrence, EventData]:
        limit = self.plan.options.trial_seconds
        return Occurrence.OVER_LIMIT, {"reason": f"it ran longer than its limit of {limit:g} seconds", "seconds": limit}

    def _receive(self, current: Running, ends: float | None, batch: list[EventData]) -> Answer:
        """Record reports of the trial that runs, and answer whether it is to continue."""
        with self._guard:
            answer = self.judge.receive_now(current, batch)
            if current.life.phase is not Phase.RUNNING:
                return answer
            self._perform_requests(stops_only=True)
            self._check_budget()
            if self.ending.stopped:
                self._apply(current, Occurrence.STOPPED, {"reason": self.ending.stopped})
            elif ends is not None and time.monotonic() > ends:
                self._apply(current, *self._over_limit())
            else:
                return answer
            self.log.commit()
            return Answer("gone", "it is to end here")

    def _observed(self, current: Running, data: EventData) -> None:
        """Record the context that the trial has observed before its end."""
        with self._guard:
            if current.life.phase is Phase.RUNNING:
                self.log.add(ContextObserved.of(current.life.trial, data))
                self.log.commit()

    def _apply(self, trial: Running, occurrence: Occurrence, data: EventData) -> Step:
        """Perform what follows an occurrence by the table of a trial's life."""
        trial.life, following = trial.life.after(occurrence, retries=self.plan.options.retries)
        life = trial.life
        if self.log.clock is not None:
            self.log.clock.set_processes(int(life.phase is Phase.RUNNING))
        event = event_after(life, following, occurrence, data)
        if event is None:
            return following
        if following.submit:
            self.log.losses[life.trial] = life.losses
        self.log.add(event)
        if reason := self.ending.hopeless(1):
            self._stop(reason)
        self.ending.check_enough()
        return following

    # ---- how it ends, and who looks

    def _stop(self, reason: str) -> None:
        with self._guard:
            self.ending.stop(reason)

    def _finish(self) -> None:
        """Record how the study ended."""
        with self._guard:
            if not self.ending.stopped:
                self.judge.end_paused()
            else:
                self._stop_lost()
            if self.ending.reason:
                self.log.end(self.ending.reason)
            self.log.commit()

    def _stop_lost(self) -> None:
        """Record as stopped the trials that were lost and wait to run again."""
        for life in map(self._waiting, self._queue.first):
            if life.attempt > 1:  # a configuration that waits for its first stays enqueued
                self._apply(Running(life), Occurrence.STOPPED, {"reason": self.ending.stopped})

    def _check_budget(self) -> None:
        """End the study if its budget is used."""
        if reason := self.ending.over_budget():
            self._stop(reason)

    def _seconds_left(self, ends: float | None) -> float | None:
        """Return for how many seconds a trial may run that has to end at this time; None for as long as it likes."""
        clock = self.log.clock
        limits = [] if ends is None else [max(0.0, ends - time.monotonic())]
        if clock is not None and not self.plan.options.let_finish and clock.seconds_left < math.inf:
            limits.append(clock.seconds_left)
        return min(limits, default=None)

    def _perform_requests(self, *, stops_only: bool = False) -> None:
        """Do what the user has asked of this study from another process."""
        if not self.plan.is_kept or (stops_only and time.monotonic() - self._looked < LOOK_SECONDS):
            return
        self._looked = time.monotonic()
        for request in requests.waiting(self.plan.path):
            if request.values is None:
                request.done()
                self._stop(STOP_REASON)
            elif not stops_only and not self.ending.stopped:
                row = self.log.wanted(request.values)
                asked = None if row is None else self.log.enqueued(row, self.log.searcher.history)
                if asked is not None:
                    with self._guard:
                        added = self.log.add(asked)
                        self._queue.first.append(added.trial)
                        self.log.commit()
                request.done()

    @contextlib.contextmanager
    def _listening(self) -> Iterator[None]:
        """Take requests from other processes within the block."""
        if not self.plan.is_kept:
            yield
            return
        path = self.plan.path
        requests.listen(path)
        try:
            yield
        finally:
            requests.stop_listening(path)

    @contextlib.contextmanager
    def _shown_meanwhile(self) -> Iterator[None]:
        """Show the status to the watcher within the block, and at its end."""
        if self.watch is None:
            yield
            return
        ended, errors = threading.Event(), list[BaseException]()

        def keep_showing() -> None:
            try:
                while not ended.wait(SHOW_SECONDS):
                    self._show()
            except BaseException as error:  # noqa: BLE001  # whatever the user's function raises, raised in its thread
                errors.append(error)
                self._stop(reason_of(error))

        thread = threading.Thread(target=keep_showing, name="raybo-progress", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
        if errors:
            raise errors[0]
        self._show()

    def _show(self) -> None:
        assert self.watch is not None
        with self._guard:
            status = self.log.status(int(self._current is not None), self.ending.reason, self._shown)
            self._shown = status.last_event
        self.watch(status)


def _plain(value: Any) -> Any:
    """Return a setting as a trial is given it: shared data as they are."""
    return value.value if isinstance(value, Shared) else value
