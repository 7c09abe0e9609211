"""Run the command that the harness kills: it tunes a job as a user's script would, and logs each status."""

from __future__ import annotations

import faulthandler
import json
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TextIO

import raybo
from raybo import journal, methods
from raybo.common.errors import RayboError, RayError
from raybo.engine.follow import attach
from raybo.engine.status import Status
from raybo.record.states import COUNTED
from tests.faults.job import job, job_in_context, job_that_reports

STUCK_SECONDS = 60.0


def main(settings: dict[str, Any]) -> None:
    faulthandler.dump_traceback_later(STUCK_SECONDS, repeat=True)  # shows where it hangs
    objective = job_that_reports if settings.pop("reports") else job
    if methods.needs_context(settings["method"]):
        objective = job_in_context
        settings |= {"scheduler": None, "scheduler_options": {}}  # it reports nothing
    with open(settings.pop("announced"), "a", encoding="utf-8") as announced:
        announced.write("\n")  # the command before may have been killed as it wrote a line
        watch = partial(_announce, announced)
        if settings.pop("detach"):
            study = _detached(objective, settings, watch)
        else:
            study = raybo.tune(objective, watch=watch, **settings)
        finished = study.count(raybo.State.FINISHED)
        best = study.best.number, study.best.value
        _write(announced, {"event": study.events[-1].number, "finished": finished, "returned": best})


def _detached(objective: raybo.Objective, settings: dict[str, Any], watch: Callable[[Status], None]) -> raybo.Study:
    """Follow the study that runs on the cluster to its end; where none does, and it has not ended, leave one there."""
    path = Path(settings["storage"])
    while True:
        try:
            followed = attach(path.stem, settings["address"], watch).study
            assert followed is not None  # its journal is on this machine
            return followed
        except RayError as error:
            if "no detached study" not in str(error):
                raise
        if journal.exists(path):
            study = raybo.load(path)
            if study.count(*COUNTED) >= settings["trials"]:
                return study
        raybo.tune(objective, detach=True, **settings)


def _announce(announced: TextIO, status: Status) -> None:
    _write(announced, {"event": status.last_event, "finished": status.finished, "best": status.best})


def _write(announced: TextIO, line: dict[str, Any]) -> None:
    announced.write(json.dumps(line) + "\n")
    announced.flush()
    os.fsync(announced.fileno())


if __name__ == "__main__":
    try:
        main(json.loads(sys.argv[1]))
    except RayboError as error:  # as `raybo` does
        sys.exit(f"Error: {' '.join(str(error).split())}")
