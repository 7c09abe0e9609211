"""`Space`: named parameters, their configurations, and the way between configurations and the unit cube."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeAlias, cast

import numpy as np

from raybo.common.errors import SpaceError
from raybo.common.messages import shown
from raybo.common.refusals import refusing
from raybo.space.branches import branches_of, choice_names
from raybo.space.cube import Cube
from raybo.space.levels import guess_at
from raybo.space.parameters import Array, Categorical, Float, Integer, Parameter
from raybo.space.paths import Path, label
from raybo.space.rules import read_rules
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
Row: TypeAlias = list[float | int | None]  # a configuration as JSON: numbers, positions of choices, None if not open

SPACE = "a space is a dict from names to parameters, with rules as text"
CONFIG = "a configuration is a dict of the space's parameters"
POINTS = "points of the cube are an array of finite numbers, a row of d for each"
ROW = "a row holds a number, a position or None for each parameter"


class Space:
    """A search space: named parameters, possibly nested, and the constants among them.

    Args:
        parameters: a mapping (or a sequence of pairs) from names to `Float`, `Integer`, `Categorical`, `Ordinal`, a
            constant (a number, text, a bool or None) or a further mapping of the same kind. A choice of a `Categorical`
            may hold parameters of its own, as in `Categorical(["off", {"kind": "l2", "weight": Float(0, 1)}])`; they
            are open only if it is chosen.
        where: rules that every configuration must satisfy, as text that uses the parameters' names, nested ones dotted:
            `["depth * width <= 64", "max(a, b) > 2 * c"]`. See `raybo.space.rules` for what they may hold. A rule does
            not apply to configurations in which one of its parameters is not open.
    Raises:
        SpaceError: an empty space, a name that is not a string or that two parameters share, something that is not a
            parameter, a rule that cannot be read, or rules that hardly any point satisfies or that the guesses break.
    Example:
        >>> rate, depth = raybo.Float(1e-3, 1, log=True), raybo.Integer(1, 9)
        >>> space = raybo.Space({"rate": rate, "model": {"depth": depth}})
        >>> space.names
        ['rate', 'model.depth']
        >>> space.accept({"rate": 0.1, "model": {"depth": 3}})
        {'rate': 0.1, 'model': {'depth': 3}}
    """

    @refusing(SpaceError, SPACE)
    def __init__(
        self, parameters: Mapping[str, Any] | Iterable[tuple[str, Any]], where: Sequence[str] | str | None = None
    ) -> None:
        self._build(read_template(parameters, ()), where)
        self._refuse_useless()

    def _build(self, template: dict[str, Any], where: Sequence[str] | str | None = None) -> None:
        self.template = template
        self.parameters: dict[Path, Parameter] = dict(leaves(template))
        if not self.parameters:
            raise SpaceError("a space needs at least one parameter, got none")
        self.rules = read_rules(where, self.names, list(self.parameters.values()))
        self.cube = Cube(list(self.parameters.values()), conditions(self.parameters), self.rules)
        self._flat = all(
            isinstance(value, (Float, Integer)) or (isinstance(value, Categorical) and not branches_of(value))
            for value in template.values()
        )  # the usual case, decoded without recursion

    @classmethod
    @refusing(SpaceError, SPACE)
    def from_tune(cls, param_space: Mapping[str, Any], where: Sequence[str] | str | None = None) -> Space:
        """Make a space from a Ray Tune `param_space`: domains, nested dicts and lists, and constants, which are kept.

        It may also contain raybo's own parameters, for what Tune cannot express. `where` is as in `Space`.

        Raises:
            SpaceError: something cannot be expressed (`randn`, `sample_from`, `grid_search`); names its path.
        """
        space = cls.__new__(cls)
        space._build(read_param_space(param_space), where)
        space._refuse_useless()
        return space

    def _refuse_useless(self) -> None:
        """Raise SpaceError if two parameters share a name (`a.b` beside b in a), or nothing satisfies the rules."""
        for name, times in Counter(self.names).items():
            if times > 1:
                raise SpaceError(f"{name}: two parameters have this name, as a dot also joins nested names; rename one")
        if not self.rules:
            return
        self.cube.allows(self.cube.rest[None, :])  # raises if nothing satisfies them
        row: Row = [
            parameter.pack(parameter.guess, name) if is_guessed else None
            for is_guessed, name, parameter in zip(
                self.cube.open_guesses, self.names, self.parameters.values(), strict=True
            )
        ]
        if broken := self._broken(row):
            raise SpaceError(f"the guesses break the rule {broken}")

    def _broken(self, row: Row) -> str:
        """Return the first rule that a configuration breaks, with the values that break it; empty if none."""
        for rule in self.rules:
            values = {axis: row[axis] for axis in rule.axes}
            if any(value is None for value in values.values()):  # what is not open has no rules
                continue
            if not rule.holds({axis: np.array([value], dtype=np.float64) for axis, value in values.items()}).all():
                parameters = list(self.parameters.values())
                offenders = ", ".join(f"{self.names[a]}={_value(parameters[a], v)}" for a, v in values.items())
                return f"{rule.text!r}: {offenders}"
        return ""

    @refusing(SpaceError, ROW)
    def as_guessed(self, row: Row, turn: int = 0) -> Row:
        """Return the row at the guesses, or at the next ones of a turn, as the user wrote them, not as decoded."""
        exact = [*row]
        for i, (name, parameter) in enumerate(zip(self.names, self.parameters.values(), strict=True)):
            if self.cube.guessed[i] and row[i] is not None and not isinstance(parameter, Categorical):
                exact[i] = parameter.accept(guess_at(parameter, turn), name)
        return row if self._broken(exact) else exact

    @refusing(SpaceError, ROW)
    def require_allowed(self, row: Row) -> None:
        """Raise SpaceError if a configuration, given as its row from `pack`, breaks a rule."""
        if broken := self._broken(row):
            raise SpaceError(f"the configuration breaks the rule {broken}")

    @property
    def d(self) -> int:
        """Number of parameters, which is also the number of axes of the cube."""
        return self.cube.d

    @cached_property
    def names(self) -> list[str]:
        """The parameters' names as tables show them: nested ones dotted, `model.svm.C` for one that svm opens."""
        return [label(path) for path in self.parameters]

    @refusing(SpaceError, CONFIG)
    def accept(self, config: Mapping[str, Any]) -> Config:
        """Return the configuration as it will be run, checked against every parameter.

        Raises:
            SpaceError: a parameter is missing, unknown, of a wrong type or out of range, a constant has another
                value, or a rule is broken.
        """
        row = self.pack(config)
        self.require_allowed(row)
        return self._fill(iter(row))

    @refusing(SpaceError, CONFIG)
    def encode(self, configs: Sequence[Mapping[str, Any]]) -> Array:  # (n, d)
        """Return points of the cube, (n, d) in [0, 1], for n configurations.

        Raises:
            SpaceError: a parameter is missing, unknown, of a wrong type or out of range. Rules are not looked at.
        Example:
            >>> space = raybo.Space({"x": raybo.Float(0, 4), "n": raybo.Integer(1, 2)})
            >>> space.encode([{"x": 1.0, "n": 1}, {"x": 4.0, "n": 2}]).tolist()
            [[0.25, 0.25], [1.0, 0.75]]
        """
        return self.points([self.pack(config) for config in configs])

    @refusing(SpaceError, POINTS)
    def decode(self, X: Array) -> list[Config]:  # (n, d)
        """Return the n configurations at points of the cube, (n, d); coordinates beyond [0, 1] count as its ends.

        Rules are not looked at: `snap` leads points to where they hold.

        Raises:
            SpaceError: the points are no (n, d) finite numbers.
        Example:
            >>> space = raybo.Space({"x": raybo.Float(0, 4), "n": raybo.Integer(1, 2)})
            >>> space.decode([[0.25, 0.1], [1.0, 0.9]])
            [{'x': 1.0, 'n': 1}, {'x': 4.0, 'n': 2}]
        """
        return [self.unpack(row) for row in self.rows(X)]

    @refusing(SpaceError, ROW)
    def points(self, rows: Sequence[Row]) -> Array:  # (n, d)
        """Return points of the cube for n configurations packed as rows."""
        X = np.tile(self.cube.rest, (len(rows), 1))
        for i, parameter in enumerate(self.parameters.values()):
            at = [n for n, row in enumerate(rows) if row[i] is not None]
            X[at, i] = parameter.encode_packed([cast(float, rows[n][i]) for n in at])
        return X

    @refusing(SpaceError, POINTS)
    def rows(self, X: Array) -> list[Row]:  # (n, d)
        """Return the n configurations at points of the cube, packed as rows."""
        X = self._require_points(X)
        columns: list[Row] = []
        for i, (parameter, condition) in enumerate(zip(self.parameters.values(), self.cube.conditions, strict=True)):
            column: Row = [*parameter.decode_packed(X[:, i])]
            if condition is not None:  # a choice comes before what it opens, and is None if it is not open itself
                axis, position = condition
                column = [v if chosen == position else None for v, chosen in zip(column, columns[axis], strict=True)]
            columns.append(column)
        return [list(row) for row in zip(*columns, strict=True)]

    @refusing(SpaceError, POINTS)
    def snap(self, X: Array) -> Array:  # (n, d) -> (n, d)
        """Return the points (n, d) that would be run in place of points of the cube, (n, d).

        That is `encode(decode(X))`, up to rounding, but for points that break a rule: they move to one near them that
        keeps it.

        Raises:
            SpaceError: the points are no (n, d) finite numbers.
        Example:
            >>> space = raybo.Space({"n": raybo.Integer(1, 4), "m": raybo.Integer(1, 4)}, where="n <= m")
            >>> space.snap([[0.1, 0.7]]).tolist()
            [[0.125, 0.625]]
            >>> space.decode(space.snap([[0.9, 0.7]]))
            [{'n': 3, 'm': 3}]
        """
        return self.cube.snap(self._require_points(X))

    def _require_points(self, X: Array) -> Array:  # (n, d)
        """Return the points as an array; raise SpaceError if they are none of this space's cube."""
        X = np.asarray(X, dtype=np.float64)
        if X.ndim != 2 or X.shape[1] != self.d or not np.isfinite(X).all():
            raise SpaceError(f"points of the cube are (n, {self.d}) finite numbers, got {shown(X)}")
        return X

    @refusing(SpaceError, "sample takes a numpy Generator and how many")
    def sample(self, rng: np.random.Generator, n: int) -> list[Config]:
        """Return n independent configurations, uniform in the cube, or in the part of it that the rules allow.

        Args:
            rng: numpy's generator.
            n: how many, from 0.
        Raises:
            SpaceError: n is no whole number from 0, or `rng` is no generator.
        Example:
            >>> import numpy as np
            >>> space = raybo.Space({"n": raybo.Integer(1, 4), "m": raybo.Integer(1, 4)}, where="n <= m")
            >>> all(config["n"] <= config["m"] for config in space.sample(np.random.default_rng(0), 20))
            True
        """
        return self.decode(self.cube.uniform(rng, n))

    @refusing(SpaceError, CONFIG)
    def pack(self, config: Mapping[str, Any]) -> Row:
        """Pack a configuration as a row of JSON values: numbers, positions of choices, None for what is not open."""
        if not isinstance(config, Mapping):
            raise SpaceError(f"a configuration is a dict of parameters, got {shown(config)}")
        refuse_different(self.template, config, ())
        return list(row_of(self.template, config, ()))

    @refusing(SpaceError, ROW)
    def unpack(self, row: Sequence[float | int | None]) -> Config:
        """Return the configuration that `pack` packed."""
        if len(row) != self.d:
            raise SpaceError(f"{ROW}: {self.d} of them, got {len(row)}")
        return self._fill(iter(row))

    @refusing(SpaceError, CONFIG)
    def values(self, config: Mapping[str, Any]) -> list[Any]:
        """Return the parameters' values in a configuration, in the parameters' order; None for those not open in it."""
        return self._values_of(self.pack(config))

    @refusing(SpaceError, CONFIG)
    def open_values(self, config: Mapping[str, Any]) -> list[tuple[str, Any]]:
        """Return name and value of each parameter that is open in a configuration; nested names are dotted."""
        row = self.pack(config)
        named = zip(self.names, row, self._values_of(row), strict=True)
        return [(name, value) for name, packed, value in named if packed is not None]

    @refusing(SpaceError, CONFIG)
    def named_values(self, config: Mapping[str, Any]) -> list[tuple[str, Any]]:
        """Return `open_values` as people read them: a choice that holds parameters by its name."""
        rows = zip(self.names, self.pack(config), self._choices, strict=True)
        return [
            (name, packed if choices is None else choices[cast(int, packed)])
            for name, packed, choices in rows
            if packed is not None
        ]

    @cached_property
    def _choices(self) -> list[list[Any] | None]:
        """The choices of each parameter as they are shown; None for a range."""
        return [choice_names(p.choices) if isinstance(p, Categorical) else None for p in self.parameters.values()]

    def _values_of(self, row: Row) -> list[Any]:
        return [
            None if value is None else parameter.unpack(value)
            for parameter, value in zip(self.parameters.values(), row, strict=True)
        ]

    @refusing(SpaceError, "exact is True or False")
    def to_json(self, *, exact: bool = False) -> dict[str, Any]:
        """Return a JSON description; two spaces are equal if their descriptions and the order of parameters are.

        Args:
            exact: also record which ranges are half open, as Ray Tune's are.
        """
        description = cast("dict[str, Any]", template_to_json(self.template, exact=exact))
        return {**description, "where": [rule.text for rule in self.rules]} if self.rules else description

    @classmethod
    @refusing(SpaceError, "a space's description is what to_json returns")
    def from_json(cls, description: Mapping[str, Any]) -> Space:
        """Make the space that `to_json` described; objects that JSON cannot hold come back as `Opaque`."""
        space = cls.__new__(cls)
        space._build(cast("dict[str, Any]", template_from_json(description)), description.get("where"))
        return space

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Space) and self.names == other.names and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(tuple(self.names))

    def __repr__(self) -> str:
        inside = ", ".join(f"{label(path)}: {parameter!r}" for path, parameter in self.parameters.items())
        return f"Space({{{inside}}}{f', where={list(self.rules)!r}' if self.rules else ''})"

    def _fill(self, row: Iterator[Any]) -> Config:
        if self._flat:
            return {
                name: parameter.unpack(value)
                for (name, parameter), value in zip(self.template.items(), row, strict=True)
            }
        return cast(Config, filled(self.template, row))


def _value(parameter: Parameter, value: float | int | None) -> Any:
    return choice_names(parameter.choices)[cast(int, value)] if isinstance(parameter, Categorical) else value
