"""When the study process asks its scheduler; without Ray."""

from __future__ import annotations

import asyncio
import contextlib
import os

import pytest

import raybo
from benchmarks.clockwork import to_its_end
from raybo.engine.lifecycle import Life, Phase
from raybo.engine.plan import Plan
from raybo.engine.run_options import RunOptions
from raybo.engine.study.dispatch import DispatchedTrial
from raybo.engine.study.event_log import EventLog
from raybo.engine.study.timings import Timings
from raybo.engine.study.verdicts import Judge
from raybo.record.description import Description
from raybo.record.events import Reported, Told
from raybo.schedulers import make
from raybo.schedulers.rule import FORESEEN, Rule

STEPS = 100


@raybo.objective(space={"x": raybo.Float(0, 1)}, metric="value", steps=STEPS)
def job(config):
    return 0.0


class Counted:
    """A scheduler that counts how often it is asked about each step."""

    metric, is_slow = None, False

    def __init__(self, scheduler):
        self.scheduler, self.asked, self.fails = scheduler, [], ()

    def decides(self, history, trial, step):
        self.asked.append(step)
        if trial in self.fails:
            raise KeyError("width")
        return self.scheduler.decides(history, trial, step)

    def decide(self, history, trial, step):
        return self.scheduler.decide(history, trial, step)

    def next_promoted(self, history):
        return self.scheduler.next_promoted(history)


@contextlib.contextmanager
def judging_with(path, name, **options):
    description = Description(
        "job", job.goals, job.space, "random", 0, steps=STEPS, scheduler=name, scheduler_options=options
    )
    plan = Plan(
        description=description, path=path, trials=12, workers=1, elastic=False, grows=False, takes_all_room=False,
        options=RunOptions(), driver=os.getpid(),
    )  # fmt: skip
    # closed last: a commit may still be on its way when a report has been answered
    with (
        to_its_end(asyncio.new_event_loop()) as loop,
        contextlib.closing(EventLog(plan, job, Timings(1, False))) as log,
    ):
        judge = Judge(log, lambda *_: pytest.fail("no verdict ends it"))
        judge.until_done = loop.run_until_complete
        judge.rule = Rule(name, Counted(make(name, options, STEPS)))
        with contextlib.closing(judge):
            yield judge


def asked(judge):
    """Have a trial proposed, as one that runs."""
    searcher = judge.log.searcher
    return DispatchedTrial(Life(judge.log.add(searcher.propose(searcher.history)).trial, Phase.RUNNING))


def end(judge, dispatched):
    """Have a trial finish that has reported once."""
    number = dispatched.life.trial
    judge.log.add(Reported(number, step=1, value=0.0, seconds=1.0, attempt=1))
    judge.log.add(Told(number, value=0.0, seconds=1.0))


def report(judge, dispatched, step):
    return judge.until_done(judge.receive(dispatched, [{"step": step, "value": 1.0, "seconds": 1.0}]))


@pytest.mark.parametrize(("name", "options"), [("median", {"grace": 90}), ("asha", {"grace": 80}), ("hyperband", {})])
def test_scheduler_is_asked_once_per_report(tmp_path, name, options):
    """About the step itself, and about each step once ahead of time."""
    with judging_with(tmp_path / "s.db", name, **options) as judge:
        trial, counted = asked(judge), judge.rule.scheduler
        for step in range(1, STEPS + 1):
            before = len(counted.asked)
            report(judge, trial, step)
            ahead = [other for other in counted.asked[before:] if other != step]
            assert counted.asked[before:].count(step) == 1
            assert all(other > step for other in ahead)
            assert len(ahead) <= (FORESEEN if step == 1 else 1 + FORESEEN * (name != "median"))
        assert len(counted.asked) <= 2 * STEPS


@pytest.mark.parametrize(("name", "options"), [("median", {"grace": 3, "startup": 2}), ("asha", {"eta": 3})])
def test_next_wait_is_known_as_things_stand(tmp_path, name, options):
    """The remembered step is the one that the scheduler would give now, though other trials end meanwhile."""
    with judging_with(tmp_path / "s.db", name, **options) as judge:
        trial, others, waits = asked(judge), [asked(judge) for _ in range(3)], set()
        for step in range(1, STEPS + 1):
            if step % 20 == 0 and others:
                end(judge, others.pop())
            answer = report(judge, trial, step)
            assert answer.waits_at == judge.rule.waits_at(judge.log.searcher.history, trial.life.trial)
            waits.add(answer.waits_at)
        assert len(waits) > 2


def test_a_scheduler_that_raises_fails_its_trial(tmp_path):
    with judging_with(tmp_path / "a.db", "median", grace=90) as judge:
        first, second = asked(judge), asked(judge)
        judge.rule.scheduler.fails = {first.life.trial}
        failed = report(judge, first, 95)
        assert (failed.action, failed.why[:24]) == ("fault", "median: decides raised K")
        assert "KeyError: 'width' (test_verdicts.py:" in failed.why
        assert report(judge, second, 95).action == "go"
        assert judge.receive_now(first, [{"step": 96, "value": 1.0, "seconds": 1.0}]).action == "fault"
        assert judge.attempt_info(first.life.trial).waits_at == 97
