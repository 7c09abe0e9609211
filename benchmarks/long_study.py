"""A study of 10,000 trials: what its processes hold, and the seconds to open, show and continue it.

Trials that do nothing, `random`, a space of six parameters, two numbers returned. Memory is what is resident (RSS) of
the study's actor and of the process that called `raybo.tune`, after a tenth of the trials and after all, when that
process holds the study's object too. Seconds are on a Ray that runs already; `raybo show` is a command of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path

import raybo
from benchmarks.figures import Figure, Figures, at_most, command
from raybo.engine.ray.connection import ray_for_study
from raybo.engine.status import Status
from raybo.record.events import Kind
from raybo.study.study import Study

QUICK = {"trials": 3_000}
MORE = 10  # trials that continue it
SPACE = raybo.Space(
    {
        **{f"x{i}": raybo.Float(0, 1) for i in range(4)},
        "n": raybo.Integer(1, 100),
        "kind": raybo.Categorical(["a", "b", "c"]),
    }
)


@raybo.objective(space=SPACE, metric="value", mode="max")
def no_op(config: dict[str, float]) -> dict[str, float]:
    """Does nothing, and returns two numbers."""
    return {"value": config["x0"], "other": 1.0}


def resident(process: int) -> float:
    """Kilobytes of memory."""
    lines = Path(f"/proc/{process}/status").read_text(encoding="utf-8").splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith("VmRSS:"))


def actor_of(journal: Path) -> int:
    """The process that writes a journal."""
    return int(json.loads(journal.with_name(journal.name + "-lock").read_text(encoding="utf-8"))["process"])


def tuned(trials: int, workers: int, journal: Path) -> tuple[Study, list[tuple[int, float, float]]]:
    """The study, and what its actor and this process held, in kilobytes, each time that trials had finished."""
    held: list[tuple[int, float, float]] = []

    def watch(status: Status) -> None:
        if status.finished > (held[-1][0] if held else 0) and journal.with_name(journal.name + "-lock").exists():
            held.append((status.finished, resident(actor_of(journal)), resident(os.getpid())))

    study = raybo.tune(no_op, trials=trials, method="random", seed=0, workers=workers, storage=journal, watch=watch)
    held.append((trials, held[-1][1], resident(os.getpid())))
    return study, held


def rate(study: Study, first: int, last: int) -> float:
    """Trials a second between the ends of two finished trials."""
    at = [datetime.fromisoformat(event.at) for event in study.events if event.kind is Kind.TOLD]
    return (last - first) / (at[last] - at[first]).total_seconds()


def figures(trials: int = 10_000, workers: int = 2) -> Figures:
    """Rates, memory and seconds."""
    with tempfile.TemporaryDirectory() as directory:
        journal = Path(directory, "study.db")
        with ray_for_study(None, workers):
            study, held = tuned(trials, workers, journal)
            tenth = trials // 10
            early, late = rate(study, tenth, 2 * tenth), rate(study, trials - tenth, trials - 1)
            note = f"{late:.0f} (the second {tenth:,}: {early:.0f})"  # the first ones wait for workers to start
            yield Figure(f"trials per second, last {tenth:,} of {trials:,}", note)
            begin = next(row for row in held if row[0] >= tenth)
            for i, who in ((1, "the study's actor"), (2, "the driver")):
                growth = (held[-1][i] - begin[i]) / (held[-1][0] - begin[0])
                note = f"{begin[i] / 1e3:.0f} MB at {begin[0]:,} trials, {held[-1][i] / 1e3:.0f} MB at {trials:,}"
                yield at_most(10, growth, f"memory of {who}", "kB per trial", note)
            begun = time.perf_counter()
            raybo.load(journal)
            seconds = time.perf_counter() - begun
            yield Figure(f"raybo.load, {trials:,} trials", f"{seconds:.2f} s, {journal.stat().st_size / 1e6:.1f} MB")
            begun = time.perf_counter()
            raybo.tune(no_op, trials=trials + MORE, method="random", seed=0, workers=workers, storage=journal)
            yield Figure(f"raybo.tune with {MORE} more trials", f"{time.perf_counter() - begun:.2f} s")
        begun = time.perf_counter()
        shown = subprocess.run(
            [sys.executable, "-m", "raybo.cli", "show", str(journal)], check=True, capture_output=True
        )
        yield Figure("raybo show", f"{time.perf_counter() - begun:.2f} s, {len(shown.stdout.splitlines())} lines")


if __name__ == "__main__":
    command(figures)
