"""`Space`: named parameters, their configurations, and the way between configurations and the unit cube."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeAlias, cast

import numpy as np

from raybo.error_text import shown
from raybo.errors import SpaceError
from raybo.space.branches import branches_of
from raybo.space.cube import Cube
from raybo.space.parameters import Array, Categorical, Float, Integer, Parameter
from raybo.space.paths import Path, label
from raybo.space.template import (
    conditions,
    filled,
    leaves,
    read_template,
    refuse_different,
    row_of,
    template_from_json,
    template_to_json,
)
from raybo.space.tune import read_param_space

Config: TypeAlias = dict[str, Any]
Row: TypeAlias = list[float | int | None]  # a configuration as JSON: numbers, positions of choices, None where not open


class Space:
    """A search space: named parameters, possibly nested, and the constants that stand between them.

    Args:
        parameters: a mapping (or a sequence of pairs) from names to `Float`, `Integer`, `Categorical` or a further
            mapping of the same kind. A choice that holds parameters of its own, such as
            `Categorical(["off", {"kind": "l2", "weight": Float(0, 1)}])`, opens them only where it is chosen.
    Raises:
        SpaceError: an empty space, a name that is not a string or that two parameters have, an impossible range, or
            something that is not a parameter.
    """

    def __init__(self, parameters: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> None:
        self._build(read_template(parameters, ()))
        self._refuse_ambiguous()

    def _build(self, template: dict[str, Any]) -> None:
        self.template = template
        self.parameters: dict[Path, Parameter] = dict(leaves(template))
        if not self.parameters:
            raise SpaceError("a space needs at least one parameter, got none")
        for path, parameter in self.parameters.items():
            parameter.check(label(path))
        self.cube = Cube(list(self.parameters.values()), conditions(self.parameters))
        self._flat = all(
            isinstance(value, (Float, Integer)) or (isinstance(value, Categorical) and not branches_of(value))
            for value in template.values()
        )  # the usual case, decoded without recursion

    @classmethod
    def from_tune(cls, param_space: Mapping[str, Any]) -> Space:
        """The space of a Ray Tune `param_space`: domains, nested dicts and lists, and constants, which are kept.

        Raises:
            SpaceError: names the path of what cannot be expressed (`randn`, `sample_from`, `grid_search`).
        """
        space = cls.__new__(cls)
        space._build(read_param_space(param_space))
        space._refuse_ambiguous()
        return space

    def _refuse_ambiguous(self) -> None:
        """SpaceError where two parameters are called alike: `a.b` beside b in a."""
        for name, times in Counter(self.names).items():
            if times > 1:
                raise SpaceError(f"{name}: two parameters have this name, as a dot also joins nested names; rename one")

    @property
    def d(self) -> int:
        """Number of parameters, which is the number of axes of the cube."""
        return self.cube.d

    @cached_property
    def names(self) -> list[str]:
        """The parameters' names as tables show them: nested ones joined by dots, `model.svm.C` for what svm opens."""
        return [label(path) for path in self.parameters]

    def accept(self, config: Mapping[str, Any]) -> Config:
        """The configuration as it will be run, checked against every parameter.

        Raises:
            SpaceError: a parameter is missing, unknown, of a wrong type or out of range, or a constant has another
                value.
        """
        return self._fill(iter(self.pack(config)))

    def encode(self, configs: Sequence[Mapping[str, Any]]) -> Array:  # (n, d)
        """Points of the cube for n configurations; SpaceError where one does not fit."""
        return self.points([self.pack(config) for config in configs])

    def decode(self, X: Array) -> list[Config]:  # (n, d)
        """The n configurations that points of the cube stand for."""
        return [self.unpack(row) for row in self.rows(X)]

    def points(self, rows: Sequence[Row]) -> Array:  # (n, d)
        """Points of the cube for n configurations as `pack` makes rows of them."""
        X = np.tile(self.cube.rest, (len(rows), 1))
        for i, parameter in enumerate(self.parameters.values()):
            at = [n for n, row in enumerate(rows) if row[i] is not None]
            X[at, i] = _encode(parameter, [cast(float, rows[n][i]) for n in at])
        return X

    def rows(self, X: Array) -> list[Row]:  # (n, d)
        """The n configurations that points of the cube stand for, as `pack` makes rows of them."""
        X = np.asarray(X, dtype=np.float64)
        columns: list[Row] = []
        for i, (parameter, condition) in enumerate(zip(self.parameters.values(), self.cube.conditions, strict=True)):
            column: Row = [*(parameter.positions if isinstance(parameter, Categorical) else parameter.decode)(X[:, i])]
            if condition is not None:  # a choice comes before what it opens, and is None where it is not open itself
                axis, position = condition
                column = [v if chosen == position else None for v, chosen in zip(column, columns[axis], strict=True)]
            columns.append(column)
        return [list(row) for row in zip(*columns, strict=True)]

    def snap(self, X: Array) -> Array:  # (n, d) -> (n, d)
        """encode(decode(X)): the points that will really be run."""
        return self.cube.snap(X)

    def sample(self, rng: np.random.Generator, n: int) -> list[Config]:
        """n independent configurations, uniform in the cube."""
        return self.decode(rng.random((n, self.d)))

    def pack(self, config: Mapping[str, Any]) -> Row:
        """The configuration as a row of JSON values: numbers, positions of categories, None for what is not open."""
        if not isinstance(config, Mapping):
            raise SpaceError(f"a configuration is a dict of parameters, got {shown(config)}")
        refuse_different(self.template, config, ())
        return list(row_of(self.template, config, ()))

    def unpack(self, row: Sequence[float | int | None]) -> Config:
        """The configuration that `pack` made the row from."""
        return self._fill(iter(row))

    def values(self, config: Mapping[str, Any]) -> list[Any]:
        """The parameters' values in a configuration, in their order; None for those that are not open in it."""
        return [
            parameter.choices[cast(int, value)] if isinstance(parameter, Categorical) and value is not None else value
            for parameter, value in zip(self.parameters.values(), self.pack(config), strict=True)
        ]

    def open_values(self, config: Mapping[str, Any]) -> list[tuple[str, Any]]:
        """Name and value of each parameter that is open in a configuration, nested ones by their dotted names."""
        rows = zip(self.names, self.pack(config), self.values(config), strict=True)
        return [(name, value) for name, packed, value in rows if packed is not None]

    def to_json(self, *, exact: bool = False) -> dict[str, Any]:
        """A plain description; two spaces are equal where these are.

        Args:
            exact: tell also which ranges are half open, as Ray Tune's are.
        """
        return cast("dict[str, Any]", template_to_json(self.template, exact=exact))

    @classmethod
    def from_json(cls, description: Mapping[str, Any]) -> Space:
        """The space that `to_json` described; objects that JSON cannot hold come back as `Opaque`."""
        space = cls.__new__(cls)
        space._build(cast("dict[str, Any]", template_from_json(description)))
        return space

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Space) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(tuple(self.names))

    def __repr__(self) -> str:
        inside = ", ".join(f"{label(path)}: {parameter!r}" for path, parameter in self.parameters.items())
        return f"Space({{{inside}}})"

    def _fill(self, row: Iterator[Any]) -> Config:
        if self._flat:
            return {
                name: parameter.choices[value] if isinstance(parameter, Categorical) else value
                for (name, parameter), value in zip(self.template.items(), row, strict=True)
            }
        return cast(Config, filled(self.template, row))


def _encode(parameter: Parameter, values: Sequence[float | int]) -> Array:  # (n,)
    if isinstance(parameter, Categorical):
        return (np.array(values, dtype=np.float64) + 0.5) / len(parameter.choices)
    return parameter.encode(values)
