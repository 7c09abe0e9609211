"""Describes what a method's tags show of a study, in words and numbers, for a report to draw.

A method writes tags, and so it alone reads them: it makes a `Story` of them beside the code that wrote them. The report
decides on a story's looks, the method on its contents.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from raybo.space import Array

Look: TypeAlias = Literal["followed", "stands", "limit", "measured", "moves", "marks"]
Tone: TypeAlias = Literal["main", "accent", "muted"]


@dataclass(frozen=True)
class Series:
    """Numbers that belong to trials.

    Attributes:
        trials: their numbers. values: as many; None for a missing one.
        name: in the legend; empty to be left out of it.
        look: "followed", a quantity that changes; "stands", one that holds until it changes; "limit", a bound of the
            series of the same group, which stands too; "measured" and "moves", single values joined by a thin line;
            "marks", trials marked at an arbitrary height.
        tone: its colour; unless given that of its group, or else the next one.
        group: series that belong together have one colour.
        digits: significant ones of a value that is pointed at; decimals if `is_share`.
        is_share: True if values lie in [0, 1].
    """

    trials: tuple[int, ...]
    values: tuple[float | None, ...]
    name: str = ""
    look: Look = "followed"
    tone: Tone | None = None
    group: int | None = None
    digits: int = 3
    is_share: bool = False


@dataclass(frozen=True)
class Scale:
    """The vertical axis of a plot.

    Attributes:
        title: what is measured, and in which unit.
        limits: its ends; chosen by the values unless given.
        ticks: where to write numbers, with the text that stands for each if it is not the number itself.
        is_log: True if it is logarithmic. from_zero: True if it begins at 0.
    """

    title: str
    limits: tuple[float, float] | None = None
    ticks: tuple[tuple[float, str | None], ...] = ()
    is_log: bool = False
    from_zero: bool = False


@dataclass(frozen=True)
class OverTrials:
    """Series over the numbers of the trials."""

    series: tuple[Series, ...]
    scale: Scale


@dataclass(frozen=True, eq=False)
class PathInSpace:
    """The path of a point that a method moves.

    Attributes:
        name: of the point. trials: (k,), their numbers. points: (k, d), in the unit cube.
    """

    name: str
    trials: tuple[int, ...]
    points: Array


@dataclass(frozen=True, eq=False)
class Story:
    """One picture of a study.

    Attributes:
        key: names it. title: what it shows. caption: how to read it, in a sentence or two.
        plots: one, or two side by side. height: in pixels.
    """

    key: str
    title: str
    caption: str
    plots: tuple[OverTrials | PathInSpace, ...]
    height: int = 380


def is_point(value: object, d: int) -> bool:
    """Return True if a tag holds d finite numbers."""
    return (
        isinstance(value, Sequence)
        and len(value) == d
        and all(isinstance(v, (int, float)) and math.isfinite(v) for v in value)
    )
