"""Make studies of any method without Ray, as a journal would hold them, with failures, times and contexts."""

from __future__ import annotations

import json
import math
from datetime import datetime, timedelta, timezone

import numpy as np

import raybo
from raybo.record.description import Description
from raybo.record.events import KINDS, Failed, Kind, Planned, Told
from raybo.record.goals import Goals
from raybo.searcher import Searcher
from raybo.study.study import Study

BEGIN = datetime(2026, 1, 1, tzinfo=timezone.utc)
SPACE = {
    "lr": raybo.Float(1e-4, 1, log=True),
    "net": {"depth": raybo.Integer(1, 12), "kind": raybo.Categorical(["<b>relu</b>", "tanh", None])},
    "momentum": raybo.Float(0, 1),
}
WORKERS = 3


def score(config, load=0.5):
    """Return a trial's value, maximised at lr 0.01, depth 6, relu, momentum 0.8."""
    value = -((math.log10(config["lr"]) + 2) ** 2) - 0.05 * (config["net"]["depth"] - 6) ** 2
    value += 0.3 * (config["net"]["kind"] == "<b>relu</b>") - 2 * (config["momentum"] - 0.8) ** 2
    return value - 2 * abs(load - config["momentum"])


def total(config):
    """The sum of the numbers in a configuration."""
    if isinstance(config, dict):
        return float(sum(total(value) for value in config.values()))
    return config if isinstance(config, (int, float)) else 0.0


def run(method="random", trials=20, *, mode="max", seed=0, context=None, failing=0.1, space=None, **options):
    """A study of `score`, some of whose trials fail; the last one is still pending."""
    space = raybo.Space(SPACE if space is None else space)
    searcher = Searcher(space, method, mode, seed, trials=trials, context=context, **options)
    rng = np.random.default_rng(seed)
    events = [Planned(trials=trials, number=1, at=_at(0.0))]
    free = np.zeros(WORKERS)
    flying = []

    def record(kind, number, data, seconds):
        events.append(searcher.apply(KINDS[kind].of(number, data)))
        events[-1] = KINDS[kind].of(number, events[-1].data, number=events[-1].number, at=_at(seconds))

    def end(number, begun, lane):
        seconds = float(rng.gamma(4.0, 0.5))
        free[lane] = begun + seconds + 0.05
        data = {"started": _at(begun), "seconds": seconds, "attempt": 1, "host": "node-a"}
        if rng.random() < failing:
            reason = {"reason": "ValueError: <i>diverged</i>", "traceback": "Traceback ...\nValueError: diverged"}
            return record(Kind.FAILED, number, {**data, **reason}, begun + seconds)
        config = searcher.trials[number].config
        met = {"load": float(np.clip(rng.normal(0.35, 0.15), 0, 1))} if context else None
        value = score(config, **met) if met else score(config) if "net" in config else total(config)
        outcome = {"value": value if mode == "max" else -value, "metrics": {"f1": 0.5}, **data}
        if met:
            outcome |= searcher._read(met, number)
        return record(Kind.TOLD, number, outcome, begun + seconds)

    for number in range(trials):
        lane = int(np.argmin(free))
        asked = searcher.propose(searcher.history)
        record(asked.kind, asked.trial, asked.data, free[lane])
        flying.append((number, float(free[lane]) + 0.02, lane))
        free[lane] = math.inf
        if len(flying) == WORKERS:
            end(*flying.pop(int(rng.integers(WORKERS))))
    while len(flying) > 1:
        end(*flying.pop())
    description = Description(
        objective="train_<net>",
        goals=Goals(("accuracy",), (mode,)),
        space=space,
        method=method,
        seed=seed,
        settings={"folds": 5},
        options=options,
        context=searcher.context,
    )
    return Study(description, json_again(events))


def failed_study(space, reason, name="job", metric="loss"):
    """A study of six trials, every other of which has failed for the reason."""
    space = raybo.Space(space)
    searcher = Searcher(space, "sobol", "min", 0)
    events = []
    for number in range(6):
        events.append(searcher.propose(searcher.history))
        searcher.apply(events[-1])
        failed = Failed(number, reason=reason, traceback=f"Traceback:\n  line\n{reason}")
        events.append(searcher.apply(failed if number % 2 else Told(number, value=float(number))))
    numbered = [KINDS[e.kind].of(e.trial, e.data, number=i, at=_at(i)) for i, e in enumerate(events, 1)]
    return Study(Description(name, Goals((metric,), ("min",)), space, "sobol", 0), json_again(numbered))


def json_again(events):
    """The events as a journal gives them back."""
    return [KINDS[e.kind].of(e.trial, json.loads(json.dumps(e.data)), number=e.number, at=e.at) for e in events]


def _at(seconds):
    return (BEGIN + timedelta(seconds=float(seconds))).isoformat(timespec="milliseconds")
