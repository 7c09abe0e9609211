"""A trial's context as its user reports it: what is accepted as it is, moved, missing or rejected.

    reported                                          taken as                                        noted
    a declared value                                  that                                            no
    a finite number beyond the declared bounds        the nearest bound                               yes
    a finite number between the declared steps        the nearest declared value                      yes
    nothing under one of the declared names           missing: the trial has no context               once per study
    NaN, infinite, not a number, an unknown category  rejected: the trial has no context              yes

A context of several values is known as a whole or not at all. The value of a trial without a context counts like any
other; only the model over contexts leaves that trial out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from raybo.common.arguments import is_real, number_in
from raybo.common.errors import SpaceError
from raybo.common.messages import shown
from raybo.space.branches import position_of_text
from raybo.space.parameters import Categorical, Float, Integer, Parameter
from raybo.space.space import Config, Space


@dataclass(frozen=True)
class Reading:
    """A reported context, checked.

    Attributes:
        values: the context as it is kept; None if it is missing or rejected.
        missing: the declared names that were not reported.
        note: what was wrong with it, or which values were moved and from where; empty if neither.
    """

    values: Config | None = None
    missing: tuple[str, ...] = ()
    note: str = ""


def context_space(declared: Space | Mapping[str, Any] | None, space: Space) -> Space | None:
    """Return the space of the contexts declared beside a space.

    Raises:
        SpaceError: it is not a space, it is nested, or it shares a name with the space.
    """
    if declared is None:
        return None
    context = declared if isinstance(declared, Space) else Space(declared)
    if context.rules:
        raise SpaceError("context: it is observed and not chosen, so it cannot have rules; leave where= out")
    for path, name in zip(context.parameters, context.names, strict=True):
        if len(path) > 1 or name not in context.template:
            raise SpaceError(f"context {name}: a context is a flat dict of names; it cannot be nested")
        if name in space.template or name in space.names:
            raise SpaceError(f"context {name}: the space has a parameter of that name; give it another one")
    return context


def read_context(context: Space, reported: Mapping[str, Any]) -> Reading:
    """Check what a trial reported, by the table of this module; undeclared names are ignored."""
    missing = tuple(name for name in context.names if name not in reported)
    if missing:
        return Reading(missing=missing)
    values: Config = {}
    moved = []
    for name, parameter in zip(context.names, context.parameters.values(), strict=True):
        value = reported[name]
        if isinstance(value, np.ndarray) and value.ndim == 0:
            value = value[()]
        try:
            values[name] = kept = _nearest(parameter, value, name)
        except SpaceError as error:
            return Reading(note=f"context {error}")
        if not isinstance(parameter, Categorical) and _is_off(parameter, kept, value):
            moved.append(f"context {name}: {value} is not in {shown(parameter)} and was taken as {kept!r}")
    return Reading(values, note="; ".join(moved))


def read_text(context: Space | None, name: str, text: str) -> Any:
    """Return a context's value from the command line, or the text itself, which `read_context` refuses."""
    parameter = None if context is None else context.parameters.get((name,))
    if isinstance(parameter, Categorical):
        position = position_of_text(parameter.choices, text)
        return text if position is None else parameter.choices[position]
    try:
        return text if parameter is None else float(text)
    except ValueError:
        return text


def _nearest(parameter: Parameter, value: Any, name: str) -> Any:
    """Return the declared value nearest to a finite number, or the category; raise SpaceError if it is neither."""
    if isinstance(parameter, Categorical):
        return parameter.accept(value, name)
    number = _number(value)
    if number is None:
        raise SpaceError(f"{name}: a number is needed, got {shown(value)}")
    if not -math.inf < number < math.inf:
        raise SpaceError(f"{name}: a finite number is needed, got {shown(value)}")
    within = float(min(max(number, parameter.low), parameter.high))  # an integer may be beyond every float
    if parameter.step is None:
        return within
    step = parameter.step
    index = round((within - parameter.low) / step)
    return parameter.accept(min(parameter.low + index * step, parameter.high), name)


def _number(value: Any) -> float | None:
    """Return the value as a number if it can be one, as in a result; a whole one stays exact."""
    return value if is_real(value) else number_in(value)


def _is_off(parameter: Float | Integer, kept: float, value: Any) -> bool:
    """Return True if a number was moved by more than rounding."""
    off = 1e-9 * (parameter.high - parameter.low)
    number = _number(value)
    return number is None or not kept - off <= number <= kept + off
