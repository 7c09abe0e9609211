"""What may be asked and told, in which order: of every method, on every kind of space."""

from __future__ import annotations

import json
import traceback
import warnings
from pathlib import Path
from random import Random
from typing import Any

import raybo
from raybo import methods
from raybo.common.errors import RayboError
from tests.adversary import values
from tests.adversary.faults import Case, last_lines
from tests.adversary.spaces import sound

STEPS = 24
CONTEXT = {"load": raybo.Float(0, 10)}
NO_VALUES = (float("nan"), float("inf"), "1", None, [1.0], 10**400, True)
DEAR = {"mcmc"}  # a second per proposal


def attack(rng: Random, directory: Path) -> Case:
    """Drive a searcher in any order, with any results; a twin that applies the same events proposes the same."""
    name = rng.choice([name for name in methods.METHODS if name not in DEAR or rng.random() < 0.1])
    declared, seed, mode = sound(rng), rng.randrange(2**31), rng.choice(["max", "min"])
    context = CONTEXT if methods.needs_context(name) or rng.random() < 0.2 else None
    planned = rng.choice([None, 1, 2, 12, 100])
    case = Case(f"{name}, mode={mode}, seed={seed}, planned={planned}, {declared}"[:600])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            searcher = raybo.Searcher(declared, name, mode, seed, planned, context)
            _drive(searcher, rng, case)
        except RayboError as error:
            case.faults.append(f"refused: {error}")
        except Exception:  # the fault that is looked for
            case.faults.append(last_lines(traceback.format_exc()))
    return case


def _drive(searcher: raybo.Searcher, rng: Random, case: Case) -> None:
    running: list[Any] = []
    case.tried = STEPS
    for _ in range(STEPS):
        pick = rng.random()
        if pick < 0.5 or not searcher.trials:
            running.append(_asked(searcher, rng, case))
        elif pick < 0.8 and running:
            trial = running.pop(rng.randrange(len(running)))
            told = rng.choice([0.0, 1.0, rng.gauss(0, 1), 1e300, -1e300, 5e-324, 3])
            context = {"load": rng.uniform(0, 10)} if searcher.context is not None and rng.random() < 0.8 else None
            if rng.random() < 0.2:
                searcher.fail(trial, values.text(rng), context)
            else:
                searcher.tell(trial, told, context)
        else:
            _wrong(searcher, rng, case)
    if any(trial.state is raybo.State.FINISHED for trial in searcher.trials):
        searcher.space.accept(searcher.best.config)
    json.dumps([trial.tags for trial in searcher.trials], allow_nan=False)


def _asked(searcher: raybo.Searcher, rng: Random, case: Case) -> Any:
    number = len(searcher.trials)
    known = {"load": 3.0} if searcher.context is not None and rng.random() < 0.2 else None
    twin = searcher.propose(searcher.history, known)
    trial = searcher.ask(context=known) if known else searcher.ask()
    if trial.number != number:
        case.faults.append(f"trial {number} is called {trial.number}")
    if json.dumps(twin.data["tags"]) != json.dumps(trial.tags):
        case.faults.append(f"trial {number}: proposed twice, its tags differ")
    if searcher.space.pack(trial.config) != twin.data["values"]:
        case.faults.append(f"trial {number}: proposed twice, it differs")
    searcher.space.accept(trial.config)
    if not searcher.explain(trial).strip() or "\n" in searcher.explain(trial):
        case.faults.append(f"trial {number}: it is not explained in a line")
    return trial


def _wrong(searcher: raybo.Searcher, rng: Random, case: Case) -> None:
    """Wrong use is refused in a line, and changes nothing."""
    ended = [trial for trial in searcher.trials if trial.state is not raybo.State.PENDING]
    before = searcher.history.last_event, len(searcher.trials)
    trial = rng.choice([*(t.number for t in ended), -1, len(searcher.trials), 10**30, 0.5, "0", None, True])
    calls = [
        lambda: searcher.tell(trial, 1.0),
        lambda: searcher.fail(trial, "no"),
        lambda: searcher.tell(_any_pending(searcher), rng.choice(NO_VALUES)),
        lambda: searcher.add({"nobody": 1}, 1.0),
        lambda: searcher.add(searcher.trials[0].config, float("nan")),
        lambda: searcher.add(values.anything(rng), 1.0),
        lambda: searcher.best_for({"nobody": 1.0}),
    ]
    index = rng.randrange(len(calls))
    try:
        calls[index]()
    except RayboError as error:
        if "\n" in str(error).strip():
            case.faults.append(f"wrong use {index} with {trial!r}: refused in several lines")
    else:
        case.faults.append(f"wrong use {index} with {trial!r} was taken")
    if (searcher.history.last_event, len(searcher.trials)) != before:
        case.faults.append(f"wrong use {index} with {trial!r} changed the study")


def _any_pending(searcher: raybo.Searcher) -> int:
    return next((trial.number for trial in searcher.trials if trial.state is raybo.State.PENDING), -1)
