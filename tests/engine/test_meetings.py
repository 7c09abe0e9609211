"""Ranks that wait for each other at common steps, and are distinguished if they do not report alike."""

from __future__ import annotations

import asyncio

import pytest

from raybo.engine.study import meetings as module
from raybo.engine.study.meetings import Meetings
from raybo.engine.trial.report_sender import Answer


def run(scenario, count=2, answer=lambda step: Answer()):
    """Of a coroutine function of the meetings, what it returns, and the notes."""
    notes = []

    async def within():
        return await asyncio.wait_for(scenario(Meetings(count, answer, notes.append)), 30)

    return asyncio.run(within()), notes


async def both(meetings, step, *others):
    steps = others or (step,)
    return await asyncio.gather(meetings.meet(0, step), *(meetings.meet(r, s) for r, s in enumerate(steps, 1)))


def test_all_get_the_same_answer_at_one_step():
    verdict = Answer("prune", "it is bad")

    async def scenario(meetings):
        first = asyncio.ensure_future(meetings.meet(1, 4))
        await asyncio.sleep(0.01)
        assert not first.done()
        answers = [await meetings.meet(0, 4), await first]
        return answers, meetings.has_ended

    (answers, has_ended), _ = run(scenario, answer=lambda step: verdict if step == 4 else Answer())
    assert [(answer.action, answer.why) for answer in answers] == [("prune", "it is bad")] * 2
    assert answers[0].waits_at == answers[1].waits_at
    assert has_ended


def test_fast_steps_meet_seldom_slow_steps_always(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])

    def met_at(seconds, last):
        async def scenario(meetings):
            found, step = [], 1
            while step <= last:
                now[0] += seconds * (step - found[-1] if found else 1)
                found.append(step)
                step = (await both(meetings, step))[0].waits_at
            return found

        return run(scenario)[0]

    assert met_at(1.0, 5) == [1, 2, 3, 4, 5]
    assert met_at(0.01, 100) == [1, 2, 4, 8, 16, 32, 57, 82]


def test_one_fast_step_does_not_postpone_meetings(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])

    async def scenario(meetings):
        for step in range(1, 9):
            now[0] += 1e-6 if step == 8 else 1.0
            answers = await both(meetings, step)
        return answers[0].waits_at

    assert run(scenario)[0] == 9


def test_ranks_meet_where_a_verdict_is_due(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])

    async def scenario(meetings):
        found = []
        for step in (1, 2, 4, 5):
            now[0] += 1e-3
            found.append((await both(meetings, step))[1].waits_at)
        return found

    assert run(scenario, answer=lambda step: Answer(waits_at=5))[0] == [2, 4, 5, 13]


@pytest.mark.parametrize(
    ("steps", "why"),
    [
        ((3, 4), "rank 1 reported step 4 while rank 0 reported step 3"),
        ((3, 3, 2), "rank 2 reported step 2 while rank 0 reported step 3"),
    ],
)
def test_another_step_is_told_with_its_rank(steps, why):
    async def scenario(meetings):
        return await asyncio.gather(*(meetings.meet(rank, step) for rank, step in enumerate(steps)))

    answers, _ = run(scenario, count=len(steps))
    assert {(answer.action, answer.why) for answer in answers} == {
        ("fault", f"{why}; every rank must report the same steps")
    }


def test_a_rank_that_has_ended_is_not_waited_for():
    async def scenario(meetings):
        waiting = asyncio.ensure_future(meetings.meet(0, 2))
        await asyncio.sleep(0)
        meetings.leave(1)
        return await waiting

    answer, _ = run(scenario)
    assert (answer.action, answer.why) == (
        "fault",
        "rank 1 ended while rank 0 reported step 2; every rank must report the same steps",
    )


def test_a_rank_that_never_comes_is_told(monkeypatch):
    monkeypatch.setattr(module, "NOTICE_SECONDS", 0.05)
    monkeypatch.setattr(module, "LIMIT_SECONDS", 0.2)
    answer, notes = run(lambda meetings: meetings.meet(1, 7), count=3)
    assert notes == ["ranks 0, 2 have not reported step 7, for which the other ranks have waited 0.05 s"]
    assert answer.action == "fault"
    assert answer.why.startswith("ranks 0, 2 have not reported step 7;")


def test_a_checkpoint_waits_for_all_its_parts():
    async def scenario(meetings):
        gathering = asyncio.ensure_future(meetings.gather(5, "1-1"))
        meetings.follow(1, [(4, None), (5, "1-1")])
        await asyncio.sleep(0.01)
        assert not gathering.done()  # rank 2 may still save
        meetings.follow(2, [(6, None)])
        return await gathering

    assert run(scenario, count=3)[0] == ([1], "")


def test_parts_of_different_checkpoints_are_refused():
    async def scenario(meetings):
        meetings.follow(1, [(2, "1-1"), (4, "1-2")])
        return await meetings.gather(4, "1-1")

    assert "rank 1 has saved another number of checkpoints than rank 0" in run(scenario)[0][1]


def test_a_checkpoint_that_rank_0_has_no_part_of_is_refused():
    async def scenario(meetings):
        meetings.follow(1, [(2, "1-1"), (3, None)])
        return await asyncio.gather(meetings.meet(0, 3), meetings.meet(1, 3))

    answers = run(scenario)[0]
    assert {answer.action for answer in answers} == {"fault"}
    assert answers[0].why.startswith("rank 1 has saved a checkpoint at step 2, and rank 0 none; save on all ranks")


def test_checkpoints_of_all_ranks_meet():
    async def scenario(meetings):
        meetings.follow(1, [(2, "1-1"), (3, None)])
        gathered = await meetings.gather(2, "1-1")
        return gathered, await asyncio.gather(meetings.meet(0, 3), meetings.meet(1, 3))

    gathered, answers = run(scenario)[0]
    assert gathered == ([1], "")
    assert {answer.action for answer in answers} == {"go"}


def test_closing_answers_who_still_waits():
    async def scenario(meetings):
        waiting = asyncio.ensure_future(meetings.meet(0, 1))
        await asyncio.sleep(0)
        meetings.close()
        return await waiting

    assert run(scenario)[0].action == "gone"


def test_closing_ends_whoever_gathers_or_comes_later(monkeypatch):
    monkeypatch.setattr(module, "NOTICE_SECONDS", 0.05)

    async def scenario(meetings):
        gathering = asyncio.ensure_future(meetings.gather(1, "1-1"))
        await asyncio.sleep(0)
        meetings.close()
        answers = await gathering, await meetings.gather(2, "1-2"), await meetings.meet(1, 3)
        await asyncio.sleep(0.1)
        return answers

    (gathered, later, met), notes = run(scenario)
    assert (gathered, later, met.action) == (([], met.why), ([], met.why), "gone")
    assert notes == []
