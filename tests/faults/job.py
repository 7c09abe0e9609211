"""The objective of the harness: says in a file when it begins and ends, and for whom it runs."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from typing import Any

import raybo

SPACE = raybo.Space({"x": raybo.Float(-5, 10), "y": raybo.Float(0, 15), "n": raybo.Integer(1, 9)})


@raybo.objective(space=SPACE, mode="min")
def job(config: Mapping[str, Any], *, log: str = "", seconds: float = 0.15) -> float:
    """A bowl with a step in it."""
    note(log, "begin", config)
    time.sleep(seconds)
    note(log, "end", config)
    return float((config["x"] - 2) ** 2 + (config["y"] - 7) ** 2 + config["n"])


def note(log: str, what: str, config: Mapping[str, Any]) -> None:
    """One line, written at once, so that lines of several processes never mix."""
    line = json.dumps({"what": what, "config": dict(config), "pid": os.getpid(), "at": time.time()}) + "\n"
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, line.encode())
    os.close(descriptor)
