"""The driver that the harness kills: tunes `job` as a user's script would, and writes down what it is told."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import raybo
from raybo.engine.plan import Status
from tests.faults.job import job


def main(settings: dict[str, Any]) -> None:
    with open(settings.pop("announced"), "a", encoding="utf-8") as announced:

        def watch(status: Status) -> None:
            said = {"event": status.last_event, "finished": status.finished, "best": status.best}
            announced.write(json.dumps(said) + "\n")
            announced.flush()
            os.fsync(announced.fileno())

        raybo.tune(job, watch=watch, **settings)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
