"""The record of a study that runs: nothing is told before it is committed, and nothing that was is told otherwise."""

from __future__ import annotations

import contextlib
import os
from dataclasses import replace

import pytest

import raybo
from raybo.engine.pace import Pace
from raybo.engine.plan import Plan
from raybo.engine.record import Record
from raybo.errors import JournalError
from raybo.history import Event, Kind, State
from raybo.journal import Description, read

SPACE = raybo.Space({"x": raybo.Float(0, 1)})


@raybo.objective(space=SPACE, metric="loss", mode="min")
def objective(config):
    return config["x"]


@pytest.fixture
def plan(tmp_path):
    description = Description("objective", "loss", "min", SPACE.to_json(), "random", 0)
    return Plan(
        description=description,
        path=tmp_path / "study.db",
        trials=3,
        workers=2,
        elastic=False,
        takes_all_room=True,
        retries=2,
        trial_seconds=None,
        max_seconds=None,
        driver=os.getpid(),
        detached=False,
        begun=0.0,
        after=0,
    )


@contextlib.contextmanager
def opened(plan):
    with contextlib.closing(Record(plan, objective, Pace(plan.workers, plan.takes_all_room))) as record:
        yield record


def ask(record):
    """Its number, added to the record and not committed."""
    return record.add(record.searcher.propose(record.searcher.history)).trial


def tell(record, number, value):
    return record.add(Event(Kind.TOLD, number, {"value": value, "seconds": 1.0, "attempt": 1})).number


def said(record, after=0):
    return record.status(running=0, reason="", after=after)


def test_what_is_told_is_committed_and_what_is_proposed_knows_more(plan):
    with opened(plan) as record:
        tell(record, ask(record), 2.0)
        status = said(record)
        assert (status.finished, status.best, status.left, status.last_event) == (0, None, None, 0)
        assert read(plan.path)[1] == []
        assert len(record.searcher.history.y) == 1
        record.commit()
        status = said(record)
        assert (status.finished, status.best, status.last_event) == (1, (0, 2.0), 3)
        assert [event.kind for event in read(plan.path)[1]] == [Kind.PLANNED, Kind.ASKED, Kind.TOLD]
        assert list(record.pace.trials) == [1.0]
        assert len(record.pace.suggestions) == 1


def test_a_better_best_is_noticed_before_it_is_committed(plan):
    with opened(plan) as record:
        for value, better in [(2.0, True), (3.0, False), (1.0, True)]:
            number = tell(record, ask(record), value)
            assert (record.improved == number) is better
            record.commit()
        assert record.best == (2, 1.0)


def test_an_event_that_is_committed_already_is_not_again(plan):
    with opened(plan) as record:
        told = tell(record, ask(record), 2.0)
        record.commit()
        later = ask(record)
        record.commit_in_background(told)
        assert later == 1
        assert len(read(plan.path)[1]) == 3
        record.commit_in_background(told + 1)
        assert len(read(plan.path)[1]) == 4


def test_what_cannot_be_committed_is_noted_in_the_background_and_raised_by_the_next_commit(plan, monkeypatch):
    def full(events):
        raise JournalError("the disk is full")

    with opened(plan) as record:
        number = tell(record, ask(record), 2.0)
        monkeypatch.setattr(record.journal, "append", full)
        record.commit_in_background(number)
        assert said(record).notes == ["the disk is full"]
        with pytest.raises(JournalError, match="full"):
            record.commit()
        monkeypatch.undo()
        record.commit()  # nothing was lost
        assert said(record).finished == 1


def test_a_record_that_is_opened_again_knows_all_that_was_committed(plan):
    with opened(plan) as record:
        tell(record, ask(record), 2.0)
        failed = ask(record)
        record.add(Event(Kind.RETRIED, failed, {"reason": "its worker died", "attempt": 2, "losses": 1}))
        record.add(Event(Kind.FAILED, failed, {"reason": "it diverged", "attempt": 2, "seconds": 1.0}))
        stopped = ask(record)
        record.add(Event(Kind.STOPPED, stopped, {"reason": "stopped by the user", "attempt": 1}))
        assert record.has_asked_enough()
        record.commit()
        assert not record.has_asked_enough()  # another for the stopped one, when that is committed
        first = said(record)
        record.add(Event(Kind.FAILED, ask(record), {"reason": "never committed"}))
    with opened(replace(plan, after=first.last_event)) as record:
        again = said(record)
        assert again.notes == first.notes
        assert [note.partition(":")[0] for note in again.notes] == [
            "trial 1 starts again (attempt 2)",
            "trial 1 failed",
        ]
        assert said(record, after=first.last_event).notes == []
        assert (
            (again.finished, again.failed, again.best) == (1, 1, (0, 2.0)) == (first.finished, first.failed, first.best)
        )
        assert record.counts[State.STOPPED] == 1
        assert record.losses == {1: 1}
        assert again.left is None  # nothing has ended since the driver began
        assert not record.has_asked_enough()
        ask(record)
        assert record.has_asked_enough()
    with opened(plan) as record:  # the same driver, and another actor
        assert said(record).left is not None


def test_what_is_left_follows_from_what_has_ended_a_lost_trial_too(plan):
    with opened(plan) as record:
        tell(record, ask(record), 2.0)
        record.add(Event(Kind.FAILED, ask(record), {"reason": "its worker died", "kind": "lost", "attempt": 3}))
        record.commit()
        status = said(record)
        assert (status.finished, status.failed, status.planned) == (1, 1, 3)
        assert status.left == pytest.approx(status.elapsed / 2)  # two of three
