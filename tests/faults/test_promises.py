"""The table of signals is whole, is the one in the documentation, and is struck evenly."""

from __future__ import annotations

import json
from collections import Counter
from itertools import islice
from pathlib import Path

from tests.faults import signals
from tests.faults.promises import CELLS, MISSING, SIGNALS, Phase, Process, Promise, as_table, strikes
from tests.faults.running import HERE
from tests.faults.session import ABORTED, OF_RAY, Session
from tests.faults.signals import Struck, summary


def test_table_is_the_one_in_the_documentation() -> None:
    assert "\n".join(as_table()) in Path(HERE, "docs", "reliability.md").read_text(encoding="utf-8")


def test_every_process_has_a_promise_in_its_phases() -> None:
    missing = sum(len(processes) for processes in MISSING.values())
    assert len(CELLS) == len(SIGNALS) * (len(Phase) * len(Process) - missing)
    assert {cell.promise for cell in CELLS} == set(Promise)


def test_strikes_meet_every_cell_alike() -> None:
    drawn = list(islice(strikes(1), 3 * len(CELLS)))
    assert set(Counter(strike.cell for strike in drawn).values()) == {3}
    assert list(islice(strikes(1), 150)) == drawn[:150]
    assert [strike.cell for strike in islice(strikes(2), 50)] != [strike.cell for strike in drawn[:50]]


def test_summary_counts_strikes_and_complaints() -> None:
    first, second, third = islice(strikes(1), 3)
    done = [
        Struck(first, seconds=1.0),
        Struck(second, missed="nobody was there"),
        Struck(third, complaints=["it hung"]),
    ]
    text = summary([json.loads(struck.to_json()) for struck in done])
    assert "2 strikes met a process (1 met none)" in text
    assert "1 strikes have complaints" in text
    assert f"{third.cell}: ['it hung']" in text


def test_lines_that_a_command_may_not_say_are_strange(tmp_path: Path) -> None:
    session = Session(tmp_path, 0)
    known = "Stopped. The study is in job.db; the same command continues it."
    dead = (
        "the local Ray has died (its raylet ended with signal 9); starting another one, and continuing from the journal"
    )
    stack = "*** SIGTERM received at time=1764043570 ***"
    session.errors.write_text("\n".join((known, dead, "", stack)))
    assert session.strange() == [stack]
    session.said_before()
    assert session.said() == []


def test_line_of_ray_that_registers_is_known() -> None:
    line = "[2026-11-25 03:52:28,185 E 18423 18423] core_worker_process.cc:247: Failed to register worker to Raylet: No"
    assert OF_RAY.fullmatch(line)


def test_lines_of_a_ray_that_aborts_are_known() -> None:
    lines = (
        "[2026-11-28 13:09:32,414 C 25454 25454] plasma_store_provider.cc:89:  An unexpected system state occurred.",
        "*** StackTrace Information ***",
        "/venv/lib/ray/_raylet.so(_ZN3ray6RayLogD1Ev+0x469) [0x7f7d4b8151c9] ray::RayLog::~RayLog()",
        "/venv/bin/python3(_start+0x21) [0x559adefdf081] _start",
    )
    assert [line for line in lines if not ABORTED.fullmatch(line)] == []
    assert not ABORTED.fullmatch("Traceback (most recent call last):")


def test_a_session_has_fewer_strikes_than_there_are_cells() -> None:
    assert signals.A_SESSION < len(CELLS)
