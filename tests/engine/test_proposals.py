"""Proposals for workers, and what they say of themselves."""

from __future__ import annotations

import asyncio
import contextlib
import os

import pytest

import raybo
from raybo.engine.plan import Plan
from raybo.engine.run_options import RunOptions
from raybo.engine.study.event_log import EventLog
from raybo.engine.study.proposals import Proposals
from raybo.engine.study.timings import RECENT, Timings
from raybo.record.description import Description


@raybo.objective(space={"x": raybo.Float(0, 1), "y": raybo.Float(0, 1)}, metric="value")
def job(config):
    return 0.0


def gains(path, method, least):
    """Return what each of three proposals is expected to gain after seven known trials, as the journal has it."""
    description = Description("job", job.goals, job.space, method, 0)
    plan = Plan(
        description=description, path=path, trials=40, workers=1, elastic=False, grows=False, takes_all_room=False,
        options=RunOptions(stop_below_gain=least), driver=os.getpid(),
    )  # fmt: skip
    with contextlib.closing(EventLog(plan, job, Timings(1, False))) as log:
        for i in range(7):
            log.searcher.add({"x": i / 7, "y": (3 * i % 7) / 7}, -((i / 7 - 0.5) ** 2))
        with contextlib.closing(Proposals(log, log.timings)) as proposals:
            return [log.searcher.apply(asyncio.run(proposals.take())).data.get("gain") for _ in range(3)]


@pytest.mark.parametrize(("method", "has_gain"), [("random", True), ("turbo", False), ("sobol", False)])
def test_stop_below_gain_records_gains(tmp_path, method, has_gain):
    found = gains(tmp_path / "study.db", method, 0.1)
    assert [gain is not None for gain in found] == [has_gain] * 3  # designs promise none


def test_a_study_without_that_limit_records_none(tmp_path):
    assert gains(tmp_path / "study.db", "random", None) == [None] * 3


def test_what_is_enqueued_in_part_is_completed(tmp_path):
    description = Description("job", job.goals, job.space, "random", 0)
    plan = Plan(
        description=description, path=tmp_path / "study.db", trials=40, workers=1, elastic=False, grows=False,
        takes_all_room=False, options=RunOptions(), driver=os.getpid(),
    )  # fmt: skip
    for spent in ([], [1e-6] * RECENT):  # in a thread, and on the spot
        timings = Timings(1, False)
        timings.spent.extend(spent)
        with contextlib.closing(EventLog(plan, job, timings)) as log:
            with contextlib.closing(Proposals(log, log.timings)) as proposals:
                proposed = asyncio.run(proposals.take())
                asked = asyncio.run(proposals.enqueued([0.25, None]))
                assert asked.values == [0.25, proposed.values[1]]
                assert asyncio.run(proposals.enqueued([0.25, 0.5])).tags == {"origin": "enqueued"}
