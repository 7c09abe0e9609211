"""Define the harness's objectives, which log their begin, end and process in a file."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import raybo

STEPS = 8
SAVED, JUDGED = "saved", "judged"  # moments of a step: a checkpoint is there; its report is under way
OF_A_REPORT = 0.03  # seconds in which it is committed and judged, and its verdict sent
SPACE = raybo.Space({"x": raybo.Float(-5, 10), "y": raybo.Float(0, 15), "n": raybo.Integer(1, 9)})


@raybo.objective(space=SPACE, mode="min")
def job(config: Mapping[str, Any], *, log: str, seconds: float) -> float:
    """A bowl with a step in it."""
    note(log, "begin", config)
    time.sleep(seconds)
    wait_while_held(log)
    note(log, "end", config)
    return float((config["x"] - 2) ** 2 + (config["y"] - 7) ** 2 + config["n"])


@raybo.objective(space=SPACE, context={"load": raybo.Float(0, 1)}, mode="min")
def job_in_context(config: Mapping[str, Any], *, log: str, seconds: float) -> float:
    """The bowl, moved by a context that each trial reports before it ends."""
    note(log, "begin", config)
    load = 997 * config["y"] % 1
    raybo.report_context(load=load)
    time.sleep(seconds)
    wait_while_held(log)
    note(log, "end", config)
    return float((config["x"] - 2 - load) ** 2 + (config["y"] - 7) ** 2 + config["n"])


@raybo.objective(space=SPACE, mode="min", steps=STEPS)
def job_that_reports(config: Mapping[str, Any], *, log: str, seconds: float) -> Iterator[float]:
    """The bowl, to which each step comes nearer; it resumes from its checkpoints."""
    note(log, "begin", config)
    bowl = float((config["x"] - 2) ** 2 + (config["y"] - 7) ** 2 + config["n"])
    checkpoint = raybo.checkpoint()
    for step in range(1 if checkpoint is None else int((checkpoint / "step").read_text()) + 1, STEPS + 1):
        time.sleep(seconds / STEPS)
        wait_while_held(log)
        with raybo.saving() as directory:
            (directory / "step").write_text(str(step))
        obey(log, SAVED)
        obey(log, JUDGED)
        yield bowl + config["n"] * (STEPS - step)
    note(log, "end", config)


@raybo.objective(space=SPACE, mode="min", steps=3)
def signalled(config: Mapping[str, Any], *, log: str) -> Iterator[float]:
    """The bowl in three short steps with a checkpoint each, which sends signals on request."""
    note(log, "begin", config)
    bowl = float((config["x"] - 2) ** 2 + (config["y"] - 7) ** 2 + config["n"])
    checkpoint = raybo.checkpoint()
    for step in range(1 if checkpoint is None else int((checkpoint / "step").read_text()) + 1, 4):
        time.sleep(0.04)
        with raybo.saving() as directory:
            (directory / "step").write_text(str(step))
            send_signal(log, SAVED)
        send_signal(log, JUDGED)
        yield bowl + config["n"] * (3 - step)
    note(log, "end", config)


def send_signal(log: str, moment: str) -> None:
    """Send the signal that is ordered for this moment, once, a little later: to a process, or to this one."""
    order, taken = Path(f"{log}-{moment}"), Path(f"{log}-{moment}-taken")
    try:
        os.rename(order, Path(f"{log}-{moment}-{os.getpid()}"))
    except FileNotFoundError:
        return
    orders = json.loads(Path(f"{log}-{moment}-{os.getpid()}").read_text())
    process = orders["process"] or os.getpid()
    whole = Path(f"{log}-{moment}-whole")
    whole.write_text(json.dumps({"process": process, "trial": raybo.current_trial().number}))

    def strike() -> None:
        time.sleep(orders["delay"])
        os.rename(whole, taken)
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, orders["signal"])

    if moment == SAVED:
        strike()
    else:
        threading.Thread(target=strike, daemon=True).start()


def wait_while_held(log: str) -> None:
    """Wait while the harness holds the study's trials: by a file beside the log."""
    while os.path.exists(f"{log}-held"):
        time.sleep(0.05)


def obey(log: str, moment: str) -> None:
    """Do what the harness has ordered for this moment, once: kill this process, the study's, or both.

    An order is a file beside the log, which who obeys takes away: the names of those to be killed, how late from 0 to
    below 1, and the lock in which the study's process stands.
    """
    own = Path(f"{log}-{moment}-{os.getpid()}")
    try:
        os.rename(Path(f"{log}-{moment}"), own)
    except FileNotFoundError:
        return
    orders = json.loads(own.read_text())
    os.rename(own, Path(f"{log}-{moment}-taken"))  # which the harness takes away at once

    def strike() -> None:
        if moment == JUDGED:
            time.sleep(orders["which"] * OF_A_REPORT)
        if "study" in orders["whom"]:
            os.kill(json.loads(Path(orders["lock"]).read_text())["process"], signal.SIGKILL)
        if "worker" in orders["whom"]:
            os.kill(os.getpid(), signal.SIGKILL)

    if moment == JUDGED:
        threading.Thread(target=strike, daemon=True).start()
    else:
        strike()


def note(log: str, what: str, config: Mapping[str, Any]) -> None:
    """One line, written at once, so that lines of several processes never mix."""
    attempt = raybo.current_trial().attempt
    entry = {"what": what, "config": dict(config), "attempt": attempt, "pid": os.getpid(), "at": time.time()}
    line = json.dumps(entry) + "\n"
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, line.encode())
    os.close(descriptor)
