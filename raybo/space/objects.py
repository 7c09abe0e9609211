"""Choices and constants of any kind: which of them are the same, and what JSON keeps of them."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from raybo.common.errors import SpaceError
from raybo.common.messages import in_words


@dataclass(frozen=True, eq=False)  # two objects may look alike and still be two
class Opaque:
    """Stands, in a space read back from JSON, for an object that JSON cannot hold."""

    text: str

    def __repr__(self) -> str:
        return self.text


def identical(a: object, b: object) -> bool:
    """Return True if they are one object."""
    return a is b


def equal(a: object, b: object) -> bool:
    """Return True if they compare equal, as far as that is one truth value."""
    try:
        return bool(a == b)
    except Exception:  # noqa: BLE001  # arrays do not compare to one truth value, and a user's object may raise anything
        return False


def same(a: object, b: object) -> bool:
    """Return True if they are equal and of one type: True is not 1, and 1 is not 1.0."""
    return a is b or (type(a) is type(b) and equal(a, b))


def copied(value: Any) -> Any:
    """Return a copy of plain dicts, lists and sets, and of those in them; anything else as it is."""
    if type(value) is dict:
        return {key: copied(item) for key, item in value.items()}
    if type(value) is list:
        return [copied(item) for item in value]
    return set(value) if type(value) is set else value


def object_to_json(value: Any) -> Any:
    """Return plain JSON for it; for what JSON cannot hold, its `repr`."""
    if value is None or isinstance(value, (bool, str)) or (isinstance(value, int) and type(value) is int):
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {"float": repr(value)}
    if type(value) is list:
        return [object_to_json(item) for item in value]
    if type(value) is tuple:
        return {"tuple": [object_to_json(item) for item in value]}
    if type(value) is dict and all(type(key) is str for key in value):
        return {"dict": {key: object_to_json(item) for key, item in value.items()}}
    if isinstance(value, (type, FunctionType)):
        return {"repr": f"{value.__module__}.{value.__qualname__}"}
    try:
        text = repr(value)
    except Exception as error:
        raise SpaceError(
            f"a {type(value).__name__} cannot be written as text: its repr raises {in_words(error)}"
        ) from error
    return {"repr": re.sub(r" at 0x[0-9a-fA-F]+", "", text)}  # an address is another one in the next process


def object_from_json(value: Any) -> Any:
    """Return the object that `object_to_json` described, or `Opaque` in its place."""
    if isinstance(value, list):
        return [object_from_json(item) for item in value]
    if not isinstance(value, dict):
        return value
    ((kind, inside),) = value.items()
    if kind == "float":
        return float(inside)
    if kind == "tuple":
        return tuple(object_from_json(item) for item in inside)
    if kind == "dict":
        return {key: object_from_json(item) for key, item in inside.items()}
    if kind != "repr" or not isinstance(inside, str):
        raise SpaceError(f"{kind!r} describes no object")
    return Opaque(inside)
