"""A study survives a handful of signals, one of each kind of promise."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.promises import Cell, Phase, Process
from tests.faults.session import Session
from tests.faults.signals import planned_for, run_session

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(1_800)]

SOME = (
    Cell("SIGTERM", Process.COMMAND, Phase.STARTS),
    Cell("SIGINT", Process.COMMAND, Phase.STARTS),
    Cell("SIGTERM", Process.STUDY, Phase.REPORTS),
    Cell("SIGTERM", Process.WORKER, Phase.SAVES),
    Cell("SIGKILL", Process.AGENT, Phase.RUNS),
    Cell("SIGKILL", Process.COMMAND, Phase.REPORTS),
    Cell("SIGKILL", Process.RAYLET, Phase.STARTS),
)


def test_some_signals_do_what_is_promised(tmp_path: Path) -> None:
    struck = list(run_session(Session(tmp_path, 1), planned_for(SOME)))
    assert [(str(each.strike.cell), each.complaints) for each in struck if each.complaints] == []
    assert [str(each.strike.cell) for each in struck if each.missed] == []
