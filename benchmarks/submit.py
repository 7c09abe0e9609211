"""The latency of a submitted study: from typing `raybo submit` to its first trial, on a head of this machine.

The head runs already. The first job on it is told by itself, as Ray has no process in waiting then and has not seen
this raybo yet. The later ones take turns with `raybo tune --address`, which joins the same head as a driver. A trial
does nothing. Then what `raybo fetch` takes, which is a job too.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path

import raybo
from benchmarks.figures import Figure, Figures, command, missing
from raybo.record.events import Kind
from tests.engine.hosts import LocalHead

QUICK = {"rounds": 1}
WHAT = "`raybo submit` to the first trial"
JOB = """
import raybo

@raybo.objective(space={"x": raybo.Float(0, 1)})
def job(config):
    return config["x"]
"""


def typed(head: LocalHead, directory: Path, *arguments: str) -> tuple[float, str]:
    """When a command of raybo was typed, in seconds since 1970, and what it said; returns when it has ended well."""
    begun = time.time()
    line = [sys.executable, "-m", "raybo.cli", *arguments]
    process = head.run(*line, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    said, _ = process.communicate()
    if process.returncode:
        raise RuntimeError(said)
    return begun, said


def to_first_trial(head: LocalHead, directory: Path, name: str, submitted: bool = True) -> float:
    """Seconds from typing the command to the beginning of the first trial."""
    command, address = ("submit", head.dashboard) if submitted else ("tune", head.address)
    places = ["--storage", f"~/{name}.db", "-o", f"{name}.db"] if submitted else ["--storage", f"{name}.db"]
    begun, _ = typed(head, directory, command, "job.py", "--trials", "2", "--address", address, *places)
    told = [event for event in raybo.load(directory / f"{name}.db").events if event.kind is Kind.TOLD]
    return min(datetime.fromisoformat(event.data["started"]).timestamp() for event in told) - begun


def figures(rounds: int = 5) -> Figures:
    """Four figures."""
    try:
        import aiohttp  # noqa: F401
    except ImportError:
        yield missing(WHAT, "ray[default]")
        return
    with LocalHead(cpus=2) as head, tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch)
        (directory / "job.py").write_text(JOB, encoding="utf-8")
        yield Figure(f"{WHAT}, the first job on a head", f"{to_first_trial(head, directory, 'first'):.1f} s")
        later, plain = [], []
        for i in range(rounds):
            later.append(to_first_trial(head, directory, f"later{i}"))
            plain.append(to_first_trial(head, directory, f"plain{i}", submitted=False))
        note = f" (longest {max(later):.1f} s)" if rounds > 1 else ""
        yield Figure(f"{WHAT}, later ones, median of {rounds}", f"{statistics.median(later):.1f} s{note}")
        ratio = statistics.median(a / b for a, b in zip(later, plain, strict=True))
        yield Figure("the same over `raybo tune --address`, median of the rounds' ratios", f"{ratio:.1f} times")
        (job,) = [
            word
            for word in typed(head, directory, "jobs", "--address", head.dashboard)[1].split()
            if word.startswith("first-")
        ]
        begun, _ = typed(head, directory, "fetch", job, "--address", head.dashboard)
        yield Figure("`raybo fetch` of its journal", f"{time.time() - begun:.1f} s")


if __name__ == "__main__":
    command(figures)
