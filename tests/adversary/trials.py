"""What a training function may do to its worker: every trial has an outcome, and the innocent keep their values."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import raybo
from tests.adversary.faults import Case

DEEDS = tuple(
    each.strip()
    for each in (
        "innocent, innocent, innocent, raise, raise odd, raise unprintable, raise base, exit, os exit, "
        "abort, segfault, kill, nan, inf, none, text, nested, huge dict, array, unpicklable, "
        "missing metric, surrogates, escapes, deep recursion, fork, daemon thread, close files, "
        "change directory, patch json, print much, recursive dict, bytes, fork and leave, set rlimit, "
        "sys exit, keyboard, lambda, generator, complex, bool, numpy bool, decimal, warnings, "
        "unhashable, delete modules, signal handlers, stop iteration"
    ).split(",")
)
TRIALS = 10


def behave(deed: str) -> Any:
    """Do it, in the worker."""
    import ctypes
    import gc
    import json
    import resource
    import signal
    import sys
    import threading
    import time
    import warnings
    from decimal import Decimal

    import numpy as np

    class Odd(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

        def __reduce__(self) -> Any:
            raise RuntimeError("no pickle")

    def recurse(n: int) -> int:
        return recurse(n + 1) + 1

    if deed == "raise":
        raise ValueError("an error of the job")
    if deed == "raise odd":
        raise Odd("odd")
    if deed == "raise unprintable":
        raise ValueError("\x1b[31m\udcff\x00" * 5)
    if deed == "raise base":
        raise BaseException("at the root")
    if deed in ("exit", "sys exit"):
        sys.exit(3 if deed == "exit" else "bye")
    if deed == "keyboard":
        raise KeyboardInterrupt
    if deed == "stop iteration":
        raise StopIteration(3)
    if deed == "os exit":
        os._exit(0)
    if deed == "abort":
        os.abort()
    if deed == "segfault":
        ctypes.string_at(0)
    if deed == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if deed == "surrogates":
        return {"score": 1.0, "\udcff": "\ud800", "note": "\udcff"}
    if deed == "escapes":
        return {"score": 1.0, "\x1b[2J": "\x1b]0;x\x07"}
    if deed == "nested":
        deep: Any = 1.0
        for _ in range(3_000):
            deep = {"a": deep}
        return {"score": 1.0, "deep": deep}
    if deed == "recursive dict":
        found: dict[str, Any] = {"score": 1.0}
        found["self"] = found
        return found
    if deed == "huge dict":
        return {"score": 1.0, **{f"k{i}": i for i in range(20_000)}}
    if deed == "unpicklable":
        return {"score": 1.0, "lock": threading.Lock()}
    if deed == "unhashable":
        return {"score": 1.0, "set": [{1, 2}], "type": type}
    if deed == "deep recursion":
        sys.setrecursionlimit(2_000)
        return float(recurse(0))
    if deed in ("fork", "fork and leave"):
        pid = os.fork()
        if pid == 0:
            time.sleep(0.0 if deed == "fork" else 2.0)
            os._exit(0)
        if deed == "fork":
            os.waitpid(pid, 0)
        return 0.5
    if deed == "daemon thread":
        threading.Thread(target=time.sleep, args=(30,), daemon=True).start()
    if deed == "close files":
        os.closerange(0, 3)
    if deed == "change directory":
        os.chdir("/")
    if deed == "patch json":
        json.dumps = json.loads = None  # type: ignore[assignment]
    if deed == "print much":
        print("x" * 200_000)
        sys.stderr.write("\x1b[2Jy" * 1_000)
    if deed == "set rlimit":
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    if deed == "delete modules":
        for name in [name for name in sys.modules if name.startswith("raybo.")]:
            del sys.modules[name]
        gc.collect()
    if deed == "signal handlers":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if deed == "warnings":
        warnings.simplefilter("error")
        warnings.warn("careful", stacklevel=1)
    return {
        "nan": float("nan"), "inf": float("inf"), "none": None, "text": "0.5", "array": np.array([0.5]),
        "missing metric": {"other": 1.0}, "bytes": b"1", "lambda": lambda: 1.0, "generator": (x for x in (1.0,)),
        "complex": 1j, "bool": True, "numpy bool": np.bool_(True), "decimal": Decimal("0.25"),
    }.get(deed, 0.5)  # fmt: skip


def attack(rng: Random, directory: Path) -> Case:
    """A study whose trials do things, beside some that do nothing wrong; on the Ray that this process has."""
    deeds = [rng.choice(DEEDS) for _ in range(TRIALS)]
    case = Case(", ".join(deeds), tried=TRIALS)
    names = sorted(set(deeds))
    space = raybo.Space({"deed": raybo.Categorical(names), "n": raybo.Integer(0, 99)})

    @raybo.objective(space=space, metric="score", trial_seconds=60)
    def job(config: Mapping[str, Any]) -> Any:
        return behave(config["deed"])

    wanted = [{"deed": deed, "n": n} for n, deed in enumerate(deeds)]
    path = directory / "study.db"
    try:
        study = raybo.tune(
            job, trials=TRIALS, method="random", seed=1, storage=path, workers=2, retries=1, enqueue=wanted
        )
    except Exception as error:  # no deed of a trial may end the study
        case.faults.append(f"the study ended with {type(error).__name__}: {str(error)[:300]}")
        return case
    for trial in study.trials:
        if trial.state is raybo.State.PENDING:
            case.faults.append(f"trial {trial.number} ({trial.config['deed']}) is left pending")
        if trial.config["deed"] == "innocent" and trial.state is raybo.State.FINISHED and trial.value != 0.5:
            case.faults.append(f"trial {trial.number} is innocent, and its value is {trial.value}")
    ended = [trial for trial in study.trials if trial.state is not raybo.State.PENDING]
    if len(ended) != TRIALS:
        case.faults.append(f"{len(ended)} of {TRIALS} trials have ended")
    with contextlib.suppress(raybo.TrialError):
        assert study.best.state is raybo.State.FINISHED
    again = raybo.load(path)
    if [str(trial) for trial in again.trials] != [str(trial) for trial in study.trials]:
        case.faults.append("the journal, read again, says something else")
    return case
