"""A running study's event log: nothing is shown before it is committed, and nothing shown is ever taken back."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from dataclasses import replace

import pytest

import raybo
from raybo.common.errors import JournalError
from raybo.engine.plan import Plan
from raybo.engine.run_options import RunOptions
from raybo.engine.study.event_log import EventLog
from raybo.engine.study.timings import Timings
from raybo.journal import read
from raybo.record.description import Description
from raybo.record.events import Begun, Failed, Kind, Reported, Retried, Stopped, Told
from raybo.record.goals import Goals
from raybo.record.history import History
from raybo.record.origin import Origin
from raybo.record.states import State
from raybo.study.study import load

SPACE = raybo.Space({"x": raybo.Float(0, 1)})


@raybo.objective(space=SPACE, metric="loss", mode="min")
def objective(config):
    return config["x"]


@pytest.fixture
def plan(tmp_path):
    description = Description("objective", Goals(("loss",), ("min",)), SPACE, "random", 0)
    return Plan(
        description=description,
        path=tmp_path / "study.db",
        trials=3,
        workers=2,
        options=RunOptions(),
        driver=os.getpid(),
        begun=time.monotonic(),
    )


@contextlib.contextmanager
def opened(plan):
    with contextlib.closing(EventLog(plan, objective, Timings(plan.workers, plan.takes_all_room))) as log:
        yield log


def ask(log):
    """Its number, added to the record and not committed."""
    return log.add(log.searcher.propose(log.searcher.history)).trial


def tell(log, number, value):
    return log.add(Told(number, value=value, seconds=1.0, attempt=1)).number


def said(log, after=0):
    return log.status(running=0, reason="", after=after)


def test_status_shows_committed_events_and_proposals_all(plan):
    with opened(plan) as log:
        tell(log, ask(log), 2.0)
        status = said(log)
        assert (status.finished, status.best, status.left, status.last_event) == (0, None, None, 0)
        assert read(plan.path)[1] == []
        assert len(log.searcher.history.y) == 1
        log.commit()
        status = said(log)
        assert (status.finished, status.best, status.last_event) == (1, (0, 2.0), 3)
        assert [event.kind for event in read(plan.path)[1]] == [Kind.PLANNED, Kind.ASKED, Kind.TOLD]
        assert list(log.timings.trials) == [1.0]
        assert len(log.timings.suggestions) == 1
        assert not status.has_context


def test_status_has_the_time_and_says_if_there_is_a_context(plan):
    @raybo.objective(space=SPACE, metric="loss", mode="min", context={"load": raybo.Float(0, 1)})
    def observing(config):
        return config["x"]

    begun = time.monotonic() - 100.0
    plan = replace(plan, begun=begun, description=replace(plan.description, context=observing.context))
    with contextlib.closing(EventLog(plan, observing, Timings(plan.workers, plan.takes_all_room))) as log:
        status = said(log)
        assert status.has_context
        assert 100.0 <= status.elapsed <= time.monotonic() - begun


def test_an_event_is_folded_once_in_a_process(plan, monkeypatch):
    with opened(plan) as log:
        for _ in range(100):
            tell(log, ask(log), 2.0)
        log.commit()
    folded = []
    apply = History.apply
    monkeypatch.setattr(History, "apply", lambda self, event: folded.append(event.number) or apply(self, event))
    with opened(plan) as log:  # as the actor of a command that continues the study
        tell(log, ask(log), 1.0)
        log.commit()
        assert said(log).best == (100, 1.0)
    assert sorted(folded) == list(range(1, 204))
    folded.clear()
    assert load(plan.path).best.number == 100
    assert sorted(folded) == list(range(1, 204))


def test_what_is_not_committed_yet_does_not_show(plan):
    """Not in counts, nor in the best or the front, nor in what trials have reported."""
    with opened(plan) as log:
        first, second, third = ask(log), ask(log), ask(log)
        log.add(Reported(second, step=1, value=3.0))
        tell(log, first, 2.0)
        log.commit()
        before = said(log)
        tell(log, ask(log), 1.0)
        log.add(Reported(second, step=2, value=4.0))
        log.add(Failed(third, reason="it diverged"))
        log.add(Retried(third, reason="again", attempt=2))
        unsaid = said(log)
        timed = {"elapsed": 0.0, "left": None, "suggest_seconds": None}
        assert replace(unsaid, **timed) == replace(before, **timed)
        assert unsaid.reporting == [(1, 1, 3.0)]
        assert [trial.number for trial in log.committed.trials] == [0, 1, 2]
        assert log.committed.count(State.PENDING) == 2
        log.commit()
        assert said(log).best == (3, 1.0)
        assert said(log).reporting == [(1, 2, 4.0)]
        assert len(said(log).notes) == 2


def test_better_best_is_noticed_before_its_commit(plan):
    with opened(plan) as log:
        for value, better in [(2.0, True), (3.0, False), (1.0, True)]:
            number = tell(log, ask(log), value)
            assert (log.improved == number) is better
            log.commit()
        assert (log.committed.incumbent.number, log.committed.incumbent.value) == (2, 1.0)


def test_event_is_committed_only_once(plan):
    async def run(log):
        told = tell(log, ask(log), 2.0)
        log.commit()
        later = ask(log)
        log.commit_in_background(told)
        await asyncio.sleep(0.05)
        assert later == 1
        assert len(read(plan.path)[1]) == 3
        log.commit_in_background(told + 1)
        await told_to(log, told + 1)
        assert len(read(plan.path)[1]) == 4

    with opened(plan) as log:
        asyncio.run(run(log))


def test_failed_background_commit_is_noted_and_raised_later(plan, monkeypatch):
    def full(events):
        raise JournalError("the disk is full")

    with opened(plan) as log:
        number = tell(log, ask(log), 2.0)
        monkeypatch.setattr(log.journal, "append", full)
        asyncio.run(log.commit_quietly(number))
        assert said(log).notes == ["the disk is full"]
        with pytest.raises(JournalError, match="full"):
            log.commit()
        with pytest.raises(JournalError, match="full"):
            asyncio.run(log.committed_to(number))
        assert (said(log).finished, said(log).last_event) == (0, 0)
        monkeypatch.undo()
        log.commit()  # nothing was lost
        assert said(log).finished == 1


class Disk:
    """The journal's connection: holds up each transaction until it is let go, and knows what was in each."""

    def __init__(self, log, monkeypatch):
        self.transactions, self.free, self._append = [], threading.Semaphore(0), log.journal.append
        monkeypatch.setattr(log.journal, "append", self.append)

    def append(self, events):
        self.transactions.append([event.number for event in events])
        assert self.free.acquire(timeout=20)
        self._append(events)


async def told_to(log, number):
    while log.committed.last_event < number:
        await asyncio.sleep(0.001)


def test_events_during_a_commit_are_committed_together(plan, monkeypatch):
    async def run(log, disk):
        first = asyncio.ensure_future(log.committed_to(tell(log, ask(log), 2.0)))
        while not disk.transactions:
            await asyncio.sleep(0.001)
        others = [asyncio.ensure_future(log.committed_to(tell(log, ask(log), value))) for value in (3.0, 1.0)]
        log.commit_in_background(log.newest)
        await asyncio.sleep(0.02)
        assert not any(each.done() for each in (first, *others))
        assert (said(log).finished, said(log).last_event) == (0, 0)
        disk.free.release()
        await first
        assert read(plan.path)[1][-1].number == 3 == said(log).last_event
        await asyncio.sleep(0.02)
        assert not any(each.done() for each in others)
        disk.free.release()
        await asyncio.gather(*others)
        assert disk.transactions == [[1, 2, 3], [4, 5, 6, 7]]
        assert (said(log).finished, said(log).best) == (3, (2, 1.0))

    with opened(plan) as log:
        asyncio.run(run(log, Disk(log, monkeypatch)))


def test_immediate_commit_follows_a_running_one(plan, monkeypatch):
    async def run(log, disk):
        background = asyncio.ensure_future(log.committed_to(tell(log, ask(log), 2.0)))
        while not disk.transactions:
            await asyncio.sleep(0.001)
        ask(log)
        threading.Timer(0.02, disk.free.release, (2,)).start()
        log.commit()
        assert disk.transactions == [[1, 2, 3], [4]]
        assert [event.number for event in read(plan.path)[1]] == [1, 2, 3, 4]
        assert (said(log).finished, said(log).last_event) == (1, 4)
        await background

    with opened(plan) as log:
        asyncio.run(run(log, Disk(log, monkeypatch)))


def test_failed_commit_is_raised_for_all_waiters(plan, monkeypatch):
    async def run(log):
        numbers = [tell(log, ask(log), value) for value in (2.0, 3.0)]
        return await asyncio.gather(*map(log.committed_to, numbers), return_exceptions=True)

    def full(events):
        raise JournalError("the disk is full")

    with opened(plan) as log:
        with monkeypatch.context() as patched:
            patched.setattr(log.journal, "append", full)
            assert [str(error) for error in asyncio.run(run(log))] == ["the disk is full"] * 2
        log.commit()
        assert said(log).finished == 2


def test_closing_waits_for_the_disk(plan, monkeypatch):
    async def run(log, disk):
        log.commit_in_background(tell(log, ask(log), 2.0))
        while not disk.transactions:
            await asyncio.sleep(0.001)
        threading.Timer(0.02, disk.free.release).start()
        log.close()

    log = EventLog(plan, objective, Timings(plan.workers, plan.takes_all_room))
    asyncio.run(run(log, Disk(log, monkeypatch)))
    assert len(read(plan.path)[1]) == 3


def test_reopened_log_knows_all_committed_events(plan):
    with opened(plan) as log:
        tell(log, ask(log), 2.0)
        failed = ask(log)
        log.add(Retried(failed, reason="its worker died", attempt=2, losses=1))
        log.add(Failed(failed, reason="it diverged", attempt=2, seconds=1.0))
        stopped = ask(log)
        log.add(Stopped(stopped, reason="stopped by the user", attempt=1))
        assert log.has_asked_enough()
        log.commit()
        assert not log.has_asked_enough()  # another for the stopped one, when that is committed
        first = said(log)
        log.add(Failed(ask(log), reason="never committed"))
    with opened(replace(plan, after=first.last_event)) as log:
        again = said(log)
        assert again.notes == first.notes
        assert [note.partition(":")[0] for note in again.notes] == [
            "trial 1 starts again (attempt 2)",
            "trial 1 failed",
        ]
        assert said(log, after=first.last_event).notes == []
        assert (
            (again.finished, again.failed, again.best) == (1, 1, (0, 2.0)) == (first.finished, first.failed, first.best)
        )
        assert log.committed.count(State.STOPPED) == 1
        assert log.losses == {1: 1}
        assert again.left is None  # nothing has ended since the driver began
        assert not log.has_asked_enough()
        ask(log)
        assert log.has_asked_enough()
    with opened(replace(plan, workers=1)) as log:  # the same driver, and another actor
        tell(log, ask(log), 1.0)
        log.commit()
        assert said(log).left is not None  # all three have ended since that driver began


def test_remaining_trials_follow_from_ended_ones(plan):
    with opened(replace(plan, trials=4, workers=1)) as log:
        tell(log, ask(log), 2.0)
        log.add(Failed(ask(log), reason="its worker died", cause="lost", attempt=3))
        tell(log, ask(log), 2.0)
        log.commit()
        status = said(log)
        assert (status.finished, status.failed, status.planned) == (2, 1, 4)
        assert status.left == pytest.approx(status.elapsed / 3)  # three of four


@pytest.mark.parametrize("workers", [1, 3])
def test_nothing_is_expected_before_a_trial_for_each_worker_and_two_more_have_ended(plan, workers):
    for budget, name in ((None, "left"), ("1h", "still")):
        with opened(
            replace(plan, trials=50, workers=workers, options=RunOptions(budget=budget), path=plan.path.with_stem(name))
        ) as log:
            for _ in range(workers + 1):
                tell(log, ask(log), 1.0)
            log.commit()
            assert (said(log).left, said(log).still) == (None, None)
            tell(log, ask(log), 1.0)
            log.commit()
            assert getattr(said(log), name) > 0


def test_a_budget_of_time_alone_says_when_the_study_ends(plan):
    with opened(replace(plan, trials=None, options=RunOptions(budget="1h"))) as log:
        status = said(log)
        assert status.left == pytest.approx(3_600.0 - status.elapsed, abs=1.0)
        assert status.still is None


def test_artifacts_place_is_recorded_once_without_a_password(plan):
    with opened(plan) as log:
        log.commit()
    there = replace(plan, artifacts="s3://key:secret@bucket/prefix")
    for _ in range(2):
        with opened(there) as log:
            log.commit()
    for _ in range(2):
        with opened(replace(plan, artifacts="/elsewhere")) as log:
            log.commit()
    with opened(there) as log:
        log.commit()
    told = [event.data for event in read(plan.path)[1]]
    assert told == [
        {"trials": 3},
        {"trials": 3, "artifacts": "s3://bucket/prefix"},
        {"trials": 3, "artifacts": "/elsewhere"},
        {"trials": 3, "artifacts": "s3://bucket/prefix"},
    ]


def test_first_trial_without_reports_is_noted(plan):
    description = replace(plan.description, steps=4, scheduler="asha", scheduler_options={"eta": 2})
    with opened(replace(plan, description=description)) as log:
        known = log.add(log.searcher.known({"x": 0.5})).trial
        tell(log, known, 1.0)
        reporting = ask(log)
        log.add(Reported(reporting, step=1, value=2.0))
        tell(log, reporting, 2.0)
        for silent in (ask(log), ask(log)):
            tell(log, silent, 3.0)
        log.commit()
        note = f"trial {silent - 1}: it finished without a report, so the scheduler asha had nothing to judge"
        assert said(log).notes == [note]


def test_an_equal_value_is_no_better_best(plan):
    with opened(plan) as log:
        first, second = ask(log), ask(log)
        improved = tell(log, second, 2.0)
        tell(log, first, 2.0)  # now the earliest of the best
        assert (log.searcher.ledger.incumbent.number, log.improved) == (first, improved)


def fail(log, number, attempt=1, reason="it raised"):
    return log.add(Failed(number, reason=reason, attempt=attempt, seconds=1.0)).number


def retry(log, number):
    return log.add(Retried(number, reason="it had failed, and is retried", attempt=2)).number


def test_retried_trials_are_not_counted_as_failed(plan):
    with opened(plan) as log:
        failed, again = ask(log), ask(log)
        fail(log, again)
        at = fail(log, failed)
        retry(log, again)
        log.commit()
    with opened(plan) as log:
        assert log.failures == {failed: at}


def test_touched_trials_have_events_after_asked(plan):
    with opened(plan) as log:
        begun, waiting = ask(log), ask(log)
        log.add(Begun(begun, attempt=1))
        log.commit()
    with opened(plan) as log:
        assert log.touched == {begun} != {waiting}


def test_time_left_counts_trials_of_this_command(plan):
    plan = replace(plan, trials=6, workers=1)
    with opened(plan) as log:
        tell(log, ask(log), 2.0)
        failed = ask(log)
        after = fail(log, failed)
        log.commit()
    with opened(replace(plan, after=after)) as log:
        assert said(log).left is None
        retry(log, failed)
        log.commit()
        assert said(log).left is None
        tell(log, failed, 1.0)
        tell(log, ask(log), 1.0)
        log.commit()
        assert said(log).left is None  # two of this command's have ended, which is too few to tell
        tell(log, ask(log), 1.0)
        log.commit()
        status = said(log)
        assert status.left == pytest.approx(2 * status.elapsed / 3)  # three have ended, two are to come


def test_runs_that_confirm_are_beside_the_planned_ones(plan):
    with opened(replace(plan, trials=4, workers=1)) as log:
        for value in (1.0, 2.0, 3.0):
            tell(log, ask(log), value)
        again = log.add(log.searcher.known(log.searcher.trials[0].config, Origin.CONFIRMED, {"confirms": 0})).trial
        log.commit()
        status = said(log)
        assert (status.planned, status.confirming) == (5, 1)
        assert status.left == pytest.approx(2 * status.elapsed / 3)  # three of five
        assert not log.has_asked_enough()
        tell(log, again, 1.0)
        ask(log)
        assert log.has_asked_enough()


def test_note_is_shown_once(plan):
    with opened(plan) as log:
        number = fail(log, ask(log))
        log.commit()
        assert said(log, after=number - 1).notes == ["trial 0 failed: it raised"]
        assert said(log, after=number).notes == []
        log.note("something that no event holds")
        assert said(log, after=number).notes == ["something that no event holds"]


def test_end_reason_is_recorded_after_a_stopped_trial(plan):
    with opened(plan) as log:
        log.add(Stopped(ask(log), reason="stopped by the user", attempt=1))
        for _ in range(2):
            log.end("stopped by the user")
        log.commit()
    assert [event.kind for event in read(plan.path)[1]][-2:] == [Kind.STOPPED, Kind.ENDED]


def test_reporting_trials_are_listed_furthest_first(plan):
    description = replace(plan.description, steps=9)
    with opened(replace(plan, description=description)) as log:
        for number, steps in enumerate((2, 3, 0, 3)):
            assert ask(log) == number
            for step in range(1, steps + 1):
                log.add(Reported(number, step=step, value=step / 10, attempt=1))
        log.commit()
        assert said(log).reporting == [(1, 3, 0.3), (3, 3, 0.3), (0, 2, 0.2)]


def test_repeated_failures_count_only_in_this_command(plan):
    with opened(plan) as log:
        known = log.add(log.searcher.known({"x": 0.5})).trial
        tell(log, known, 1.0)  # from elsewhere
        for _ in range(4):
            number = fail(log, ask(log))
        assert log.repeated_failures.count == 4
        log.commit()
    with opened(replace(plan, known=number)) as log:
        assert log.repeated_failures.count == 0
        fail(log, ask(log))
        assert log.repeated_failures.count == 1
        tell(log, ask(log), 1.0)
        fail(log, ask(log))
        assert log.repeated_failures.count == 0


def test_the_front_is_told_as_it_is_now(plan):
    description = replace(plan.description, goals=Goals.of({"loss": "min", "size": "min"}))
    several = replace(objective, goals=description.goals)
    with contextlib.closing(EventLog(replace(plan, description=description), several, Timings(2, True))) as log:
        for loss, size, front in [(1.0, 9.0, 1), (2.0, 5.0, 2), (3.0, 1.0, 3)]:
            data = {"value": loss, "metrics": {"size": size}, "seconds": 1.0, "attempt": 1}
            log.add(Told.of(ask(log), data))
            log.commit()
            assert said(log).front[0] == front
        assert said(log).front[1] == pytest.approx(1.0 * 4.0)
