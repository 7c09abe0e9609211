"""Configurations given in part: rows that hold None where nothing is given, and what completes them.

A row also holds None where a parameter is not open, so a whole row is the case in which all that is open is given. What
lies inside a choice says that the choice is made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from raybo.common.arguments import plain_text
from raybo.common.errors import SpaceError
from raybo.common.messages import shown
from raybo.space.parameters import Categorical
from raybo.space.space import Row, Space
from raybo.space.template import refuse_different, row_of

TRIED = 200  # uniform points that may complete a configuration, if the proposal does not under the rules


def partial_row(space: Space, config: Mapping[str, Any]) -> Row:
    """Return the row of a configuration that gives some of the parameters or all; None where it gives nothing.

    Raises:
        SpaceError: it gives nothing, or a value that does not fit, or something inside a choice that could be in
            several.
    """
    if not isinstance(config, Mapping):
        raise SpaceError(f"a configuration is a dict of parameters, got {shown(config)}")
    for name in (plain_text(key) for key in config if isinstance(key, str)):
        if name not in space.template and name in space.names:
            raise SpaceError(
                f"{name}: in a configuration what is nested is given nested, a dict of {name.split('.')[0]!r}"
            )
    refuse_different(space.template, config, ())
    return checked(space, list(row_of(space.template, config, (), is_partial=True)))


def checked(space: Space, row: Sequence[Any]) -> Row:
    """Return a row in which every value fits, and in which what is given inside a choice has made the choice.

    Raises:
        SpaceError: it has another length, gives nothing, or a value that does not fit; or two choices contradict.
    """
    if len(row) != space.d:
        raise SpaceError(f"{space.d} values are needed, one for each parameter, got {len(row)}")
    if all(value is None for value in row):
        raise SpaceError(f"at least one parameter must be given: {', '.join(space.names)}")
    given: Row = [
        None if value is None else _accepted(parameter, value, name)
        for name, parameter, value in zip(space.names, space.parameters.values(), row, strict=True)
    ]
    for axis in reversed(range(space.d)):  # a choice comes before what it opens
        condition = space.cube.conditions[axis]
        if given[axis] is None or condition is None:
            continue
        opener, position = condition
        if given[opener] is None:
            given[opener] = position
        elif given[opener] != position:
            raise SpaceError(f"{space.names[axis]}: it has no meaning with the other choices")
    return given


def left_out(space: Space, row: Row) -> list[str]:
    """Return the names of the parameters that are open and not given; of a choice not made, only its own."""
    conditions = space.cube.conditions
    return [
        name
        for name, value, condition in zip(space.names, row, conditions, strict=True)
        if value is None and (condition is None or row[condition[0]] == condition[1])
    ]


def given(space: Space, row: Row) -> list[str]:
    """Return the names of the parameters that a row gives."""
    return [name for name, value in zip(space.names, row, strict=True) if value is not None]


def only(space: Space, row: Row, names: Sequence[str]) -> Row:
    """Return the row with None in place of all but some parameters."""
    return [value if name in names else None for name, value in zip(space.names, row, strict=True)]


def completed(space: Space, row: Row, proposal: Row, rng: np.random.Generator) -> Row:
    """Return a whole row that keeps what is given and takes the rest from a proposal.

    What a proposal leaves closed is uniform, and so is all of the rest if the proposal's would break a rule.

    Raises:
        SpaceError: none that keeps the rules has been found.
    """
    X = space.cube.uniform(rng, TRIED)
    columns = [parameter.decode_packed(X[:, axis]) for axis, parameter in enumerate(space.parameters.values())]
    drawn: list[Row] = [list(values) for values in zip(*columns, strict=True)]  # of all, whether open or not
    refusal = ""
    for bases in ([proposal, drawn[0]], *([each] for each in drawn)):
        found = _overlaid(space, [row, *bases])
        try:
            space.require_allowed(found)
        except SpaceError as error:
            refusal = refusal or str(error)
        else:
            return found
    raise SpaceError(f"{refusal}; so does all else that was tried with what is given; change that")


def _overlaid(space: Space, rows: Sequence[Row]) -> Row:
    """Return the row that takes each value that is open from the first row that has it."""
    found: Row = []
    for axis, condition in enumerate(space.cube.conditions):
        is_open = condition is None or found[condition[0]] == condition[1]
        found.append(next(row[axis] for row in rows if row[axis] is not None) if is_open else None)
    return found


def _accepted(parameter: Any, value: Any, name: str) -> float | int:
    """Return a value of a row: a number of the parameter's range, or the position of a choice."""
    if not isinstance(parameter, Categorical):
        number: float | int = parameter.accept(value, name)
        return number
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(parameter.choices):
        return int(value)
    raise SpaceError(f"{name}: the position of a choice is needed, got {shown(value)}")
