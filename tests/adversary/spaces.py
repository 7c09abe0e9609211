"""What may be searched: any declaration is refused in a line, or is a space whose points all have a configuration."""

from __future__ import annotations

import json
import traceback
import warnings
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import raybo
from raybo.common.errors import RayboError
from tests.adversary import values
from tests.adversary.faults import Case, last_lines

MANY = 40  # declarations per case


def declared(rng: Random, depth: int = 0) -> Any:
    """A space as a careless user may declare it: a dict, or pairs where a name cannot be a key."""
    pairs = [(_name(rng, i), parameter(rng, depth)) for i in range(rng.choice([1, 1, 2, 3, 5]))]
    return dict(pairs) if all(isinstance(name, str) for name, _ in pairs) else pairs


def sound(rng: Random, depth: int = 0) -> dict[str, Any]:
    """A space that nothing is wrong with, of any shape."""
    found: dict[str, Any] = {}
    for i in range(rng.randint(1, 4)):
        low, width = rng.choice([-5.0, 0.0, 1e-6, 3.0]), rng.choice([1e-3, 1.0, 100.0])
        kinds = ["float", "log", "step", "integer", "choice"] + (["dict", "branches"] if depth < 2 else [])
        kind = rng.choice(kinds)
        if kind == "float":
            found[f"f{i}"] = raybo.Float(low, low + width)
        elif kind == "log":
            found[f"l{i}"] = raybo.Float(1e-6, 10.0 ** rng.randint(-5, 6), log=True)
        elif kind == "step":
            found[f"s{i}"] = raybo.Float(0.0, 1.0, step=rng.choice([0.1, 0.25, 0.5]))
        elif kind == "integer":
            found[f"n{i}"] = raybo.Integer(1, 10 ** rng.randint(1, 9), log=rng.random() < 0.3)
        elif kind == "choice":
            choices = [None, True, "relu", 3, (1, 2), 1.0, "x" * 30]
            found[f"c{i}"] = raybo.Categorical(rng.sample(choices, rng.randint(1, 5)))
        elif kind == "dict":
            found[f"d{i}"] = sound(rng, depth + 1)
        else:
            branches = [{"kind": raybo.Categorical([str(k)]), **sound(rng, depth + 1)} for k in range(2)]
            found[f"b{i}"] = raybo.Categorical(["off", *branches][: rng.randint(1, 3)])
    return found


def _name(rng: Random, i: int) -> Any:
    return values.anything(rng) if rng.random() < 0.05 else values.text(rng) if rng.random() < 0.2 else f"p{i}"


def parameter(rng: Random, depth: int = 0) -> Any:
    """Something that stands where a parameter should."""
    pick = rng.random()
    if pick < 0.3:
        step = values.number(rng) if rng.random() < 0.2 else None
        return raybo.Float(values.number(rng), values.number(rng), log=rng.random() < 0.4, step=step)
    if pick < 0.5:
        return raybo.Integer(values.number(rng), values.number(rng), log=rng.random() < 0.4)
    if pick < 0.7:
        return raybo.Categorical([values.anything(rng) for _ in range(rng.randint(0, 4))])
    if pick < 0.8 and depth < 3:
        return declared(rng, depth + 1)
    if pick < 0.95:
        return rng.choice(list(sound(rng, 2).values()))
    return values.anything(rng)


def attack(rng: Random, directory: Path) -> Case:
    """Declarations, most of them wrong; those that are taken are walked through."""
    case = Case("spaces", tried=MANY)
    for _ in range(MANY):
        declaration: Any = None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                declaration = declared(rng) if rng.random() < 0.7 else sound(rng)
                case.faults += [f"{_shown(declaration)}: {fault}" for fault in _walked(raybo.Space(declaration), rng)]
            except RayboError as error:
                if "\n" in str(error).strip():
                    case.faults.append(f"{_shown(declaration)}: refused in several lines")
            except Exception:  # anything else is the fault that is looked for
                case.faults.append(f"{_shown(declaration)}: {last_lines(traceback.format_exc())}")
    return case


def _walked(space: raybo.Space, rng: Random) -> list[str]:
    numbers = np.random.default_rng(rng.randrange(2**32))
    X = np.vstack([numbers.random((6, space.d)), np.zeros((1, space.d)), np.ones((1, space.d))])
    snapped = space.snap(X)
    found = []
    if not ((snapped >= 0) & (snapped <= 1)).all():
        found.append("a point that will be run lies outside the cube")
    if (space.snap(snapped) != snapped).any():
        found.append("snapping twice moves a point")
    for config in space.decode(snapped):
        row = space.pack(config)
        if json.loads(json.dumps(row)) != row:
            found.append(f"a row does not survive JSON: {row}")
        if space.pack(space.accept(config)) != row:
            found.append(f"a configuration is not its own: {_shown(config)}")
        if not np.allclose(space.snap(space.encode([config])), space.encode([config]), atol=1e-12):
            found.append(f"an encoded configuration is moved: {_shown(config)}")
    json.dumps(space.to_json())
    if raybo.Space.from_json(space.to_json()).to_json() != space.to_json():
        found.append("its description is not read back")
    return found


def _shown(thing: Any) -> str:
    try:
        return repr(thing)[:300]
    except Exception:  # a value whose repr raises
        return "something that cannot be shown"
