"""Hostile numbers, texts and objects."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np

TEXTS = (
    "",
    " ",
    "\n",
    "\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07",
    "\x9b2J",
    "\x00",
    "\r",
    "a" * 3_000,
    "../../../etc/passwd",
    "=1+1",
    "@cmd",
    "-1",
    "+1",
    "nan",
    "inf",
    "-inf",
    "1e999",
    "0x10",
    "1_000",
    "٣",
    "½",
    "true",
    "None",
    "[]",
    "{}",
    "[" * 200,
    "{'a': 1}",
    "名前",
    "\u202egnp.exe",
    "\ud800",
    "\udcff",
    "é́",
    "<script>alert(1)</script>",
    "'; DROP TABLE event; --",
    "%s%n",
    "$(id)",
    "--help",
    "-",
    "/",
    ".",
    "number",
    "state",
    "value",
    "x.y",
)

NUMBERS: tuple[Any, ...] = (
    0,
    -0.0,
    1,
    -1,
    0.5,
    2,
    7,
    1e-300,
    5e-324,
    1e300,
    1.7976931348623157e308,
    -1e300,
    math.inf,
    -math.inf,
    math.nan,
    2**31,
    2**53 + 1,
    2**64,
    10**400,
    -(10**400),
    np.float32(0.1),
    np.int8(3),
    np.uint64(2**63),
    np.array(0.25),
    np.array([1.0]),
    Fraction(1, 3),
    Decimal("0.1"),
    Decimal("NaN"),
    True,
    np.bool_(False),
)


class Unrepresentable:
    """Its repr raises."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")


class Incomparable:
    """Its comparison raises."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no comparison")


class Floatable:
    """It has a number."""

    def __float__(self) -> float:
        return 0.5


class Unfloatable:
    """Its number raises."""

    def __float__(self) -> float:
        raise RuntimeError("no number")


OBJECTS: tuple[Callable[[], Any], ...] = (
    lambda: None,
    Unrepresentable,
    Incomparable,
    Floatable,
    Unfloatable,
    object,
    list,
    dict,
    lambda: b"bytes",
    lambda: (1, 2),
    lambda: {"a": 1},
    lambda: np.zeros(3),
    lambda: 1j,
    lambda: int,
    lambda: float("nan"),
    lambda: len,
)


def text(rng: Random) -> str:
    """A text that somebody may type or return."""
    if rng.random() < 0.2:
        return "".join(chr(rng.randrange(1, 0x250)) for _ in range(rng.randrange(1, 12)))
    return rng.choice(TEXTS)


def number(rng: Random) -> Any:
    """Something like a number."""
    return rng.choice(NUMBERS) if rng.random() < 0.8 else rng.uniform(-1e3, 1e3)


def anything(rng: Random) -> Any:
    """Any value."""
    pick = rng.random()
    return number(rng) if pick < 0.4 else text(rng) if pick < 0.7 else rng.choice(OBJECTS)()
