"""Whole studies in this process: jobs that report from threads, contexts, ordinals, stop rules, a clock that is set."""

from __future__ import annotations

import contextlib
import datetime as real
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import raybo
from raybo.common.errors import RayboError
from raybo.common.messages import shown
from raybo.journal import writing
from raybo.reporting.timeline import busy_share, spans
from raybo.study.replay import replay, replay_verdicts
from tests.adversary import values
from tests.adversary.faults import LONGEST_LINE, Case, last_lines

TRIALS = 8
STEPS = 4
REPORTS = 200  # of a trial that does nothing but report
MOST_SECONDS = 60.0
UNREACHED = ("limit of 50 seconds", "budget of 1m30s", "budget of 2h", "budget of 5m")  # by anything of these jobs
SPACE = {"x": raybo.Float(0, 1), "size": raybo.Ordinal([1, 2, 4, 8]), "c": raybo.Categorical(["a", "b"])}
CONTEXT = {"load": raybo.Float(0, 1)}
SCHEDULERS = (None, "asha", "median", "hyperband")
RULES: tuple[Callable[[Random], dict[str, Any]], ...] = (
    lambda rng: {},
    lambda rng: {"target": rng.choice([0.5, -1e300, 1e300, 0])},
    lambda rng: {"patience": rng.randrange(1, 5)},
    lambda rng: {"stop_below_gain": rng.choice([0.0, 1e-9, 0.5, 1e300])},
    lambda rng: {"confirm": rng.choice(["1x1", "2x2", (1, 2)])},
    lambda rng: {"budget": rng.choice([1e-9, 0.2, "90s", "2h"])},
    lambda rng: {"max_minutes": rng.choice([1e-9, 0.01, 5])},
    lambda rng: {"trial_seconds": rng.choice([1e-3, 50.0])},
    lambda rng: {rng.choice(["target", "patience", "confirm", "budget", "retries"]): values.anything(rng)},
)


def attack(rng: Random, directory: Path) -> Case:
    """Run a study; it ends with every trial ended, or in a line, and its journal gives it again."""
    deed, rule, scheduler = rng.choice(list(DEEDS)), rng.choice(RULES)(rng), rng.choice(SCHEDULERS)
    context = CONTEXT if scheduler is None and rng.random() < 0.3 else None
    steps = STEPS if scheduler or deed in REPORTING else None
    method = rng.choice(["random", "ei", "sobol", "auto"])
    by, mode = rng.choice([0, 0, -3_600, 86_400]), rng.choice(["max", "min"])
    given = f"{method}, {mode}, {scheduler}, context={bool(context)}, clock {by:+d} s"
    rules = ", ".join(f"{name}={shown(value)}" for name, value in rule.items())
    case = Case(f"{deed}, {rules or 'no rule'}, {given}", tried=TRIALS)

    def job(config: dict[str, Any]) -> Any:
        score = config["x"] + config["size"] / 8
        load = {"load": raybo.current_trial().number / 10} if context else {}
        return DEEDS[deed](rng, score, load)

    objective = raybo.objective(space=SPACE, metric="score", mode=mode, context=context, steps=steps)(job)
    path, begun = directory / "job.db", time.monotonic()
    arguments: dict[str, Any] = {"trials": TRIALS, "method": method, "scheduler": scheduler, "seed": 0, **rule}
    try:
        with warnings.catch_warnings(), the_clock_is_set(by), _quiet_threads():
            warnings.simplefilter("ignore")
            study = raybo.tune(objective, storage=path, in_process=True, watch=False, **arguments)
            case.faults += _wrong_with(study)
            case.faults += _wrong_with(raybo.load(path))
    except RayboError as error:
        text = str(error)
        if len(text) > LONGEST_LINE or "\n" in text or not text.strip():
            case.faults.append(f"no line: {text[:300]!r}")
    except BaseException:  # whatever else leaves the call is what is looked for
        case.faults.append(last_lines(traceback.format_exc()))
    if time.monotonic() - begun > MOST_SECONDS:
        case.faults.append(f"it took {time.monotonic() - begun:.0f} s")
    return case


def _wrong_with(study: raybo.Study) -> Iterator[str]:
    if not study.ended or "\n" in study.ended or any(limit in study.ended for limit in UNREACHED):
        yield f"it ended by {study.ended!r}"
    for trial in study.trials:
        if trial.state is raybo.State.PENDING:
            yield f"trial {trial.number} is {trial.state}"
        if any(limit in str(trial.reason) for limit in UNREACHED):
            yield f"trial {trial.number}: {trial.reason}"
        if (trial.seconds or 0.0) < 0.0 or trial.suggest_seconds < 0.0:
            yield f"trial {trial.number} took {trial.seconds} s, its proposal {trial.suggest_seconds} s"
    yield from (f"proposal {each.trial} is not replayed" for each in replay(study) if each.differs)
    if study.description.scheduler is not None:
        again = [each for each in replay_verdicts(study) if each.verdict != each.recorded]
        yield from (f"the verdict on trial {each.trial} was {each.recorded}, and is {each.verdict}" for each in again)
    found = spans(study)
    yield from (f"it ran from {s.begin} to {s.end}" for s in found if not 0.0 <= s.begin <= s.end)
    if not 0.0 <= busy_share(study, found) <= 1.0:
        yield f"a share of {busy_share(study, found)} was used"


@contextlib.contextmanager
def the_clock_is_set(by: float) -> Iterator[None]:
    """Set the clock that tells the time of day, by so many seconds, within the block, once it has been read a bit."""
    reads, told = [0], time.time

    def shift() -> float:
        reads[0] += 1
        return by if reads[0] > 12 else 0.0

    class Set(real.datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return real.datetime.now(tz) + real.timedelta(seconds=shift())

    with patch.object(time, "time", lambda: told() + shift()), patch.object(writing, "datetime", Set):
        yield


@contextlib.contextmanager
def _quiet_threads() -> Iterator[None]:
    """Leave unsaid what ends a job's own thread: a report that is refused, say."""
    with patch.object(threading, "excepthook", lambda _: None):
        yield


# ---- what a job does: with its random stream, the score that it returns, and the context's values


def _threads(reports: Callable[[int], None], count: int) -> None:
    running = [threading.Thread(target=reports, args=(i,)) for i in range(count)]
    for each in running:
        each.start()
    for each in running:
        each.join()


def _value(rng: Random, score: float, load: dict[str, float]) -> Any:
    return {"score": score, **load}


def _steps(rng: Random, score: float, load: dict[str, float]) -> Any:
    for step in range(1, STEPS + 1):
        yield {"score": score * step, **load}


def _step_by_threads(rng: Random, score: float, load: dict[str, float]) -> Any:
    """Each step from a thread of its own, one after the other."""
    for step in range(1, STEPS + 1):
        _threads(lambda _, step=step: raybo.report({"score": score, **load}, step=step), 1)
    return None


def _all_at_once(rng: Random, score: float, load: dict[str, float]) -> Any:
    """Every thread reports a step, in whatever order."""
    _threads(lambda i: raybo.report({"score": score, **load}, step=i + 1), STEPS)
    return {"score": score, **load}


def _same_step(rng: Random, score: float, load: dict[str, float]) -> Any:
    _threads(lambda _: raybo.report({"score": score}, step=1), STEPS)
    return {"score": score, **load}


def _left_behind(rng: Random, score: float, load: dict[str, float]) -> Any:
    """A thread goes on to report when its trial has ended."""
    told = threading.Event()

    def later() -> None:
        told.wait(5)
        with contextlib.suppress(Exception):
            raybo.report({"score": 1e6}, step=STEPS)

    threading.Thread(target=later, daemon=True).start()
    threading.Timer(rng.uniform(0, 0.05), told.set).start()
    return {"score": score, **load}


def _saves_in_threads(rng: Random, score: float, load: dict[str, float]) -> Any:
    def save(i: int) -> None:
        with raybo.saving() as directory:
            (directory / "i").write_text(str(i))
        raybo.report({"score": score}, step=i + 1)

    _threads(save, STEPS)
    return {"score": score, **load}


def _much(rng: Random, score: float, load: dict[str, float]) -> Any:
    for _ in range(REPORTS):
        raybo.report({"score": score, **load})
    return None


def _hostile_reports(rng: Random, score: float, load: dict[str, float]) -> Any:
    for step in range(1, STEPS + 1):
        hostile = values.anything(rng)
        yield rng.choice([hostile, {"score": hostile}, {"score": score, "more": hostile}, {"score": score * step}])


def _hostile_context(rng: Random, score: float, load: dict[str, float]) -> Any:
    return {"score": score, "load": values.anything(rng)}


def _sometimes(rng: Random, score: float, load: dict[str, float]) -> Any:
    if rng.random() < 0.5:
        raise rng.choice([ValueError("no"), MemoryError(), raybo.TrialPruned(), OSError(28, "No space left on device")])
    return {"score": score, **load}


DEEDS: dict[str, Callable[[Random, float, dict[str, float]], Any]] = {
    "value": _value,
    "steps": _steps,
    "each step by a thread": _step_by_threads,
    "threads at once": _all_at_once,
    "threads with the same step": _same_step,
    "a thread left behind": _left_behind,
    "threads that save": _saves_in_threads,
    "many reports": _much,
    "hostile reports": _hostile_reports,
    "hostile context": _hostile_context,
    "failures": _sometimes,
}
REPORTING = set(DEEDS) - {"value", "hostile context", "failures", "many reports"}
