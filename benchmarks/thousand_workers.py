"""The limits of one study's process: a thousand workers by the clock, a hundred on a real Ray, ten thousand trials.

    proposals   processor time of one more proposal of `auto`, see `proposals`
    clock       studies on `--workers` workers whose trials take a minute (log-normal, sd 0.5), see `clockwork`
    staleness   the regret of `auto` on one, a hundred and a thousand workers, after as many trials, beside random's
    check       the simulator beside a real Ray: trials that sleep, on 2, 8 and 100 workers (num_cpus=0.02)
    study       10,000 trials that do nothing, `auto` throughout, on a real Ray
    look        a study of 20,000 trials: to load, show, watch and draw it, see `looked_at`

Simulations run in processes of their own at a low priority, beside the rest. `--parts` chooses, `--out` keeps what the
figure of docs/scale.md is drawn from, and `--figure FILE.png` draws it.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import tempfile
import time
from concurrent.futures import Future, ProcessPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

import raybo
from benchmarks import looked_at, proposals
from benchmarks.clockwork import Simulation, log_normal, simulate
from benchmarks.figures import Figure, Figures, at_least, command
from benchmarks.searches import unit_space
from raybo.engine.ray.connection import ray_for_study
from raybo.record.events import Kind
from raybo.study.study import Study

QUICK = {"parts": "proposals,clock,staleness", "trials": 2_000, "workers": "100,1000", "asks": 10, "stale": 300}
IN_BRIEF = {"parts": "clock,staleness,check,study"}  # the others are benchmarks of their own
SECONDS, SD = 60.0, 0.5  # of a trial
BUSY = 97.0  # percent, of a thousand workers
LOW = 15  # niceness of the simulations
POINTS = 200  # of a curve that is kept
REAL = ((2, 0.5, 60), (8, 1.0, 80), (100, 5.0, 500))  # workers, seconds of a trial, trials


@raybo.objective(space=unit_space(10), metric="value", mode="min")
def levy(config: dict[str, float]) -> float:
    """Levy's function of ten axes, whose optimum is 0: many local optima in a wide bowl."""
    w = 1.0 + 5.0 * (np.array(list(config.values())) - 0.7)
    inner = (w[:-1] - 1.0) ** 2 * (1.0 + 10.0 * np.sin(np.pi * w[:-1] + 1.0) ** 2)
    last = (w[-1] - 1.0) ** 2 * (1.0 + np.sin(2.0 * np.pi * w[-1]) ** 2)
    return float(np.sin(np.pi * w[0]) ** 2 + inner.sum() + last)


@raybo.objective(space=unit_space(6), metric="value", mode="max", num_cpus=0.02)
def sleeper(config: dict[str, float], *, seconds: float = 1.0) -> float:
    """Takes its time."""
    time.sleep(seconds)
    return -sum((value - 0.3) ** 2 for value in config.values())


@raybo.objective(space=unit_space(6), metric="value", mode="max")
def no_op(config: dict[str, float]) -> float:
    """Takes no time."""
    return -sum((value - 0.3) ** 2 for value in config.values())


def course(method: str, workers: int, trials: int, seconds: float = SECONDS, sd: float = SD) -> dict[str, Any]:
    """A simulated study, as plain numbers."""
    found: Simulation = simulate(levy, method, workers, trials, log_normal(seconds, sd))
    best = found.best()
    at = np.unique(np.geomspace(1, len(best), POINTS).astype(int)) - 1
    return {
        "method": method,
        "workers": workers,
        "trials": trials,
        "busy": 100 * found.busy_share,
        "minutes": found.seconds / 60,
        "served": 100 * found.served / found.seconds,
        "wait": float(np.mean(found.waits)),
        "longest_wait": float(np.max(found.waits)),
        "suggest_ms": 1e3 * float(np.mean(found.suggested)),
        "regret": best[-1],
        "at": (at + 1).tolist(),
        "curve": best[at].tolist(),
        "ends": np.array(found.ends)[at].tolist(),
    }


def asleep(workers: int, seconds: float, trials: int) -> float:
    """The simulator's share of busy seconds, trials that all sleep as long."""
    return simulate(no_op, "auto", workers, trials, lambda number: seconds).busy_share


def really_asleep(workers: int, seconds: float, trials: int) -> float:
    """The same on a real Ray, from when every worker's process has begun to when the last trial is started."""
    with ray_for_study(None, 2), tempfile.TemporaryDirectory() as directory:
        study = raybo.tune(
            sleeper,
            trials=trials + 2 * workers,
            seed=0,
            workers=workers,
            storage=Path(directory, "study.db"),
            settings={"seconds": seconds},
        )
    told = [event for event in study.events if event.kind is Kind.TOLD]
    starts = sorted(datetime.fromisoformat(event.data["started"]).timestamp() for event in told)
    begin, end = starts[2 * workers - 1], starts[-1]
    ran = 0.0
    for event in told:
        start = datetime.fromisoformat(event.data["started"]).timestamp()
        ran += max(0.0, min(start + event.data["seconds"], end) - max(start, begin))
    return ran / (workers * (end - begin))


def whole_study(trials: int) -> tuple[float, float]:
    """Trials a second, and milliseconds of a processor that a proposal took."""
    study = raybo.tune(no_op, trials=trials, seed=0, workers=2)
    spent = [trial.suggest_processor_seconds or 0.0 for trial in study.trials]
    return trials / _lasted(study), 1e3 * float(np.mean(spent))


def _lasted(study: Study) -> float:
    at = [datetime.fromisoformat(event.at) for event in study.events if event.trial is not None]
    return (at[-1] - at[0]).total_seconds()


def figures(
    parts: str = "proposals,clock,staleness,check,study,look",
    trials: int = 6_000,
    workers: str = "100,1000,10000",
    asks: int = 40,
    stale: int = 1_200,
    real: int = 10_000,
    out: str = "",
    figure: str = "",
) -> Figures:
    """The table of goals, and what was measured."""
    chosen, kept = parts.split(","), []
    beside = max(1, (os.cpu_count() or 1) - 1)
    with ProcessPoolExecutor(beside, multiprocessing.get_context("spawn"), os.nice, (LOW,)) as pool:
        slept = [pool.submit(asleep, *row) for row in REAL] if "check" in chosen else []
        clock: list[Future[dict[str, Any]]] = []
        if "clock" in chosen:
            clock = [pool.submit(course, "auto", 1_000, trials)]
            clock += [
                pool.submit(course, method, int(count), trials if count == "1000" else 2 * int(count) + 1_000)
                for count in workers.split(",")
                for method in ("auto", "sobol")
                if not (method == "auto" and count in ("1000", "10000"))
            ]
        runs = [("auto", 1), ("auto", 100), ("auto", 1_000), ("random", 100)] if "staleness" in chosen else []
        staleness = [pool.submit(course, method, count, stale) for method, count in runs]
        for (count, seconds, how_many), by_clock in zip(REAL, slept, strict=False):  # none where that is not chosen
            busy = 100 * really_asleep(count, seconds, how_many)
            what, note = (
                f"{count} workers busy, {seconds:g} s asleep",
                f"the simulator: {100 * by_clock.result():.1f} %",
            )
            yield at_least(95, busy, what, "%", note) if count == 100 else Figure(what, f"{busy:.1f} % ({note})")
        if "proposals" in chosen:
            sizes = ",".join(str(n) for n in proposals.GOALS)
            yield from proposals.figures(sizes=sizes, asks=asks)
        if "study" in chosen:
            rate, suggest = whole_study(real)
            note = f"{rate:.0f} per second, {suggest:.0f} ms of a processor per proposal"
            yield Figure(f"{real:,} trials of `auto` end to end", note)
        if "look" in chosen:
            yield from looked_at.figures()
        for row in (future.result() for future in clock):
            kept.append({"part": "clock", **row})
            what = f"{row['workers']:,} workers busy, {row['method']}, {row['trials']:,} trials of {SECONDS:g} s"
            note = (
                f"the study's process at work {row['served']:.0f} % of it, {row['suggest_ms']:.1f} ms per proposal, "
                f"results wait {1e3 * row['wait']:.0f} ms on average, {row['longest_wait']:.1f} s at most"
            )
            is_goal = row["workers"] == 1_000
            yield (
                at_least(BUSY, row["busy"], what, "%", note)
                if is_goal
                else Figure(what, f"{row['busy']:.1f} % ({note})")
            )
            if row["method"] == "auto":
                each = row["served"] / 100 * row["minutes"] * 60 / row["trials"]
                limit = f"{BUSY / 100 * SECONDS / each:,.0f} ({1e3 * each:.0f} ms of the study's process a trial)"
                yield Figure(f"workers of {SECONDS:g} s that it could serve, from that", limit)
        for row in (future.result() for future in staleness):
            kept.append({"part": "staleness", **row})
            yield Figure(
                f"regret of {row['method']} after {stale:,} trials, {row['workers']:,} workers", f"{row['regret']:.3g}"
            )
    if out:
        Path(out).write_text("\n".join(json.dumps(row) for row in kept) + "\n", encoding="utf-8")
    if figure:
        draw(kept, Path(figure))


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Workers' busy share, and regret over trials and over time, by number of workers."""
    from matplotlib.figure import Figure as Drawing

    drawing = Drawing(figsize=(11, 3.4), layout="constrained")
    left, middle, right = drawing.subplots(1, 3)
    for method, form in (("auto", "o-"), ("sobol", "x--")):  # they lie on one another
        points = sorted(
            (row["workers"], row["busy"]) for row in rows if (row["part"], row["method"]) == ("clock", method)
        )
        left.plot(*zip(*points, strict=True), form, label=method)
    left.axhline(BUSY, color="grey", linewidth=0.8, linestyle="dashed")
    left.set(xscale="log", xlabel="workers, trials of a minute", ylabel="workers busy, %", ylim=(0, 102))
    for row in rows:
        if row["part"] == "staleness":
            label = f"{row['method']}, {row['workers']:,} worker{'s' * (row['workers'] > 1)}"
            middle.plot(row["at"], row["curve"], label=label)
            right.plot(np.array(row["ends"]) / 3600, row["curve"], label=label)
    middle.set(xscale="log", yscale="log", xlabel="trials", ylabel="regret")
    right.set(xscale="log", yscale="log", xlabel="hours")
    for panel in (left, middle, right):
        panel.grid(alpha=0.25)
    left.legend(frameon=False, fontsize="small")
    middle.legend(frameon=False, fontsize="small")
    drawing.savefig(path, dpi=130)


if __name__ == "__main__":
    command(figures)
