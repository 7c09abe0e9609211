"""The cost of reports and verdicts: a verdict of each scheduler; a report in its trial, in its study, in a searcher.

All of it in seconds of a processor, which leave out the waiting but still vary with what shares its caches and cores.
What is measured without Ray leaves out its calls, one for each batch of reports, of which a trial sends at most twenty
a second; a study on a local Ray has them.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pickle
import tempfile
import time
from collections.abc import Iterator
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import raybo
from benchmarks.figures import Figure, Figures, at_least, at_most, command
from raybo.engine.lifecycle import Life, Phase
from raybo.engine.plan import Plan
from raybo.engine.ray.connection import ray_for_study
from raybo.engine.run_options import RunOptions
from raybo.engine.study.dispatch import DispatchedTrial
from raybo.engine.study.event_log import EventLog
from raybo.engine.study.timings import Timings
from raybo.engine.study.verdicts import Judge
from raybo.engine.trial.checkpoints import Checkpoints
from raybo.engine.trial.report_sender import BATCH_SECONDS, Answer, AttemptInfo, ReportSender
from raybo.engine.trial.task import run_trial
from raybo.journal.lock import lock_file
from raybo.record.description import Description
from raybo.record.events import EventData, Kind
from raybo.record.goals import Goals
from raybo.schedulers import SCHEDULERS

QUICK = {"trials": 40, "reports": 1_000, "seconds": 2}
STEP_SECONDS = 0.001
STEP_SHARE = 5.0  # per cent of such a step that its report may take
A_SECOND = 1_000  # reports that a study must sustain
AT_A_TIME = 10  # trials that they come from
CHEAP = ("median", "asha", "hyperband")  # which must take less than a millisecond
TICKS = os.sysconf("SC_CLK_TCK")  # of a second, in /proc


def figures(trials: int = 1_000, steps: int = 52, reports: int = 5_000, seconds: int = 20) -> Figures:
    """Of each scheduler, and of none."""
    yield from of_a_trial(reports)
    yield from of_a_study(reports)
    yield from on_ray(seconds)
    yield from verdict_seconds(trials, steps)
    yield from reports_in_a_second(max(1, trials // 5), steps)


def of_a_trial(reports: int) -> Figures:
    """Measure the overhead of reports in a trial of short steps, beside equal steps without a report."""

    def job(config: dict[str, Any]) -> Iterator[dict[str, float]]:
        for step in range(1, reports + 1):
            time.sleep(STEP_SECONDS)
            yield {"loss": 1.0 / step, "rate": 0.1}

    def silent(config: dict[str, Any]) -> dict[str, float]:
        return list(job(config))[-1]

    def send(batch: list[EventData]) -> Answer:
        pickle.dumps(batch)
        return Answer()

    spent = []
    for function in (silent, job):
        begun = time.process_time()
        listen = partial(ReportSender, AttemptInfo(reports), send, Checkpoints(None, 1, None))
        run_trial(function, {}, {}, "loss", 1, make_sender=listen)
        spent.append(time.process_time() - begun)
    share = 100.0 * (spent[1] - spent[0]) / (reports * STEP_SECONDS)
    yield at_most(STEP_SHARE, share, f"a report, of a step of {1e3 * STEP_SECONDS:g} ms", "per cent")


def of_a_study(reports: int) -> Figures:
    """Measure the time that a study's process spends on so many reports per second: received, recorded, committed."""
    ticks = max(1, round(reports / A_SECOND / BATCH_SECONDS))
    batch = round(A_SECOND * BATCH_SECONDS / AT_A_TIME)
    space = raybo.Space({"x": raybo.Float(0, 1)})
    steps = ticks * batch
    description = Description("job", Goals(("loss",), ("min",)), space, "random", 0, steps=steps)
    job = raybo.objective(space=space, metric="loss", mode="min", steps=steps)(_nothing)

    async def heard(log: EventLog) -> float:
        judge = Judge(log, _never)
        trials = []
        for _ in range(AT_A_TIME):
            asked = log.add(log.searcher.propose(log.searcher.history))
            trials.append(DispatchedTrial(Life(asked.trial or 0, phase=Phase.RUNNING)))
        log.commit()
        begun = time.process_time()
        for tick in range(ticks):
            for dispatched in trials:
                told: list[EventData] = [
                    {"step": step, "value": 1.0 / step, "seconds": 0.001 * step, "metrics": {"rate": 0.1}}
                    for step in range(tick * batch + 1, (tick + 1) * batch + 1)
                ]
                await judge.receive(dispatched, told)
            await asyncio.sleep(BATCH_SECONDS)
        log.commit()
        judge.close()
        return time.process_time() - begun

    with tempfile.TemporaryDirectory() as name:
        plan = Plan(
            description=description,
            path=Path(name, "study.db"),
            options=RunOptions(retries=0),
            trials=AT_A_TIME,
            workers=AT_A_TIME,
            driver=os.getpid(),
            begun=time.monotonic(),
        )
        with contextlib.closing(EventLog(plan, job, Timings(AT_A_TIME, True))) as log:
            spent = asyncio.run(heard(log))
    share = 100.0 * spent / (ticks * BATCH_SECONDS)
    yield at_most(100.0, share, f"{A_SECOND:,} reports per second, of the study's processor", "per cent")


@raybo.objective(
    space={"x": raybo.Float(0, 1)},
    metric="loss",
    mode="min",
    num_cpus=1 / AT_A_TIME,
    steps=lambda count=1, **_: count,
)
def steps_of(
    config: dict[str, float], *, count: int = 1, seconds: float = STEP_SECONDS, reports: bool = True, journal: str = ""
) -> Iterator[dict[str, float]]:
    """Steps that sleep, and what they took: of its own process's processor, and of the process that writes a journal.

    Each step ends at its own time: one that is late is followed by shorter ones.
    """
    begun, spent, studys = time.perf_counter(), time.process_time(), _processor_of_writer(journal)
    for step in range(1, count + 1):
        time.sleep(max(0.0, begun + step * seconds - time.perf_counter()))
        if reports or step == count:
            said = {"loss": 1.0 / step, "processor": time.process_time() - spent}
            if step == count:
                said |= {"study": _processor_of_writer(journal) - studys, "seconds": time.perf_counter() - begun}
            yield {**said, "step": step}


def _processor_of_writer(journal: str) -> float:
    """Seconds of a processor that the process which writes a journal has had; 0 where none is named."""
    if not journal:
        return 0.0
    writer = json.loads(lock_file(journal).read_text(encoding="utf-8"))["process"]
    fields = Path(f"/proc/{writer}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def on_ray(seconds: int) -> Figures:
    """A study on a local Ray: what reports take a trial of steps of 1 ms, and ten trials with 1,000 a second."""
    with ray_for_study(None, 2), tempfile.TemporaryDirectory() as name:

        def study(trials: int, **settings: Any) -> raybo.Study:
            path = Path(name, f"{len(os.listdir(name))}.db")
            settings = {**settings, "journal": str(path)}
            return raybo.tune(
                steps_of, trials=trials, workers=trials, method="random", seed=0, storage=path, settings=settings
            )

        count = round(seconds / STEP_SECONDS)
        silent, heard = (
            study(1, count=count, reports=reports).trials[0].details["metrics"] for reports in (False, True)
        )
        share = 100.0 * (heard["processor"] - silent["processor"]) / (count * STEP_SECONDS)
        what = f"on Ray: a report, of a step of {1e3 * STEP_SECONDS:g} ms"
        yield at_most(STEP_SHARE, share, what, "per cent", f"of a processor, over {seconds} s")

        each = AT_A_TIME / A_SECOND
        found = study(AT_A_TIME, count=round(seconds / each), seconds=each)
        heard_at: dict[int, list[float]] = {trial.number: [] for trial in found.trials}
        lags = []
        for event in found.events:
            if event.kind is Kind.REPORTED:
                at, number = datetime.fromisoformat(event.at), event.trial or 0
                begun = datetime.fromisoformat(found.trials[number].details["started"])
                heard_at[number].append(at.timestamp())
                lags.append((at - begun).total_seconds() - event.data["seconds"])
        first, last = max(map(min, heard_at.values())), min(map(max, heard_at.values()))  # between which all ran
        what = "on Ray: reports of ten trials"
        if last <= first:
            yield Figure(what, "they did not all run at once: give more --seconds", f"at least {A_SECOND} a second")
            return
        rate = sum(first < at <= last for times in heard_at.values() for at in times) / (last - first)
        note = f"each there after {np.median(lags):.2f} s in the median, {max(lags):.2f} s at most"
        yield at_least(0.99 * A_SECOND, rate, what, "a second", note)
        measured = [trial.details["metrics"] for trial in found.trials]
        share = 100.0 * max(said["study"] / said["seconds"] for said in measured)
        yield Figure("on Ray: their study's process", f"{share:.1f} per cent of a processor")


def _nothing(config: dict[str, Any]) -> float:
    return 0.0


def _never(*told: Any) -> Any:
    raise AssertionError("there is no scheduler")


def verdict_seconds(trials: int, steps: int) -> Figures:
    """Milliseconds of the last verdicts of a study, and what its reports took without one."""
    rng = np.random.default_rng(0)
    space = raybo.Space({f"x{i}": raybo.Float(0, 1) for i in range(7)})
    for scheduler in SCHEDULERS:
        count = trials if scheduler in CHEAP else trials // 5
        searcher = raybo.Searcher(space, "random", seed=0, steps=steps, scheduler=scheduler)
        assert searcher.rule is not None
        spent = []
        for _ in range(count):
            trial, level = searcher.ask(), rng.random()
            for step in range(1, steps + 1):
                value = level * step / (step + 3) + 0.01 * rng.standard_normal()
                due = searcher.rule.scheduler.decides(searcher.history, trial.number, step)
                begun = time.process_time()
                searcher.report(trial, value, step)
                if due:
                    spent.append(time.process_time() - begun)
            searcher.tell(trial, value)  # all are run on: the most that there can be to look at
        what = f"{scheduler}: a verdict after {count:,} trials of {steps} steps"
        measured = 1e3 * float(np.median(spent[-50:]))
        yield at_most(1.0, measured, what, "ms") if scheduler in CHEAP else Figure(what, f"{measured:.1f} ms")


def reports_in_a_second(trials: int, steps: int) -> Figures:
    """Measure how many reports a searcher takes in per second, without a verdict."""
    searcher = raybo.Searcher({"x": raybo.Float(0, 1)}, "random", seed=0, steps=steps)
    asked = [searcher.ask() for _ in range(trials)]
    begun = time.process_time()
    for step in range(1, steps + 1):
        for trial in asked:
            searcher.report(trial, 0.5, step)
    rate = trials * steps / (time.process_time() - begun)
    yield Figure("reports that a searcher takes in", f"{rate:,.0f} per second")


if __name__ == "__main__":
    command(figures)
