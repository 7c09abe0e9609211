"""`Space`: named parameters, their configurations, and the way between configurations and the unit cube."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, cast

import numpy as np

from raybo.errors import SpaceError
from raybo.space.cube import Cube
from raybo.space.parameters import (
    Array,
    Categorical,
    Float,
    Integer,
    Parameter,
    equal,
    object_from_json,
    object_to_json,
)
from raybo.space.paths import Path, label
from raybo.space.tune import is_domain, read_param_space

Config: TypeAlias = dict[str, Any]


class Space:
    """A search space: named parameters, possibly nested, and the constants that stand between them.

    Args:
        parameters: a mapping (or a sequence of pairs) from names to `Float`, `Integer`, `Categorical` or a further
            mapping of the same kind. A choice that holds parameters of its own, such as
            `Categorical(["off", {"kind": "l2", "weight": Float(0, 1)}])`, opens them only where it is chosen.
    Raises:
        SpaceError: an empty space, a duplicate or non-string name, a range that is none, or something else than a
            parameter.
    """

    def __init__(self, parameters: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> None:
        self._build(_read_mapping(parameters, ()))

    def _build(self, template: dict[str, Any]) -> None:
        self.template = template
        self.parameters: dict[Path, Parameter] = dict(_leaves(template))
        if not self.parameters:
            raise SpaceError("a space needs at least one parameter, got none")
        for path, parameter in self.parameters.items():
            parameter.check(label(path))
        self.cube = Cube(list(self.parameters.values()), _conditions(self.parameters))
        self._flat = all(
            isinstance(value, (Float, Integer)) or (isinstance(value, Categorical) and not _branches(value))
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
        return space

    @property
    def d(self) -> int:
        """Number of parameters, which is the number of axes of the cube."""
        return self.cube.d

    @property
    def names(self) -> list[str]:
        """The parameters' names as tables show them: nested ones joined by dots."""
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
        rows = [self.pack(config) for config in configs]
        X = np.tile(self.cube.rest, (len(rows), 1))
        for i, parameter in enumerate(self.parameters.values()):
            at = [n for n, row in enumerate(rows) if row[i] is not None]
            X[at, i] = _encode(parameter, [cast(float, rows[n][i]) for n in at])
        return X

    def decode(self, X: Array) -> list[Config]:  # (n, d)
        """The n configurations that points of the cube stand for."""
        X = np.asarray(X, dtype=np.float64)
        columns: list[list[Any]] = [
            parameter.positions(X[:, i]) if isinstance(parameter, Categorical) else parameter.decode(X[:, i])
            for i, parameter in enumerate(self.parameters.values())
        ]
        return [self._fill(iter(row)) for row in zip(*columns, strict=True)]

    def snap(self, X: Array) -> Array:  # (n, d) -> (n, d)
        """encode(decode(X)): the points that will really be run."""
        return self.cube.snap(X)

    def sample(self, rng: np.random.Generator, n: int) -> list[Config]:
        """n independent configurations, uniform in the cube."""
        return self.decode(rng.random((n, self.d)))

    def pack(self, config: Mapping[str, Any]) -> list[float | int | None]:
        """The configuration as a row of JSON values: numbers, positions of categories, None for what is not open."""
        if not isinstance(config, Mapping):
            raise SpaceError(f"a configuration is a dict of parameters, got {config!r}")
        _refuse_different(self.template, config, ())
        return list(_row(self.template, config, ()))

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

    def to_json(self) -> dict[str, Any]:
        """A plain description; two spaces are equal where these are."""
        return cast("dict[str, Any]", _template_to_json(self.template))

    @classmethod
    def from_json(cls, description: Mapping[str, Any]) -> Space:
        """The space that `to_json` described; objects that JSON cannot hold come back as `Opaque`."""
        space = cls.__new__(cls)
        space._build(cast("dict[str, Any]", _template_from_json(description)))
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
        return cast(Config, _fill(self.template, row))


# ---- nested templates: a tree of dicts (and lists, from Ray Tune) with parameters and constants at its leaves; a
# choice may hold such a tree as well, whose parameters follow the choice's own


def _read_mapping(parameters: Mapping[str, Any] | Iterable[tuple[str, Any]], path: Path) -> dict[str, Any]:
    try:
        pairs = [(n, v) for n, v in (parameters.items() if isinstance(parameters, Mapping) else parameters)]
    except (TypeError, ValueError):
        raise SpaceError(f"a space is a dict from names to parameters, got {parameters!r}") from None
    template: dict[str, Any] = {}
    for name, value in pairs:
        if not isinstance(name, str) or not name:
            raise SpaceError(f"a parameter's name must be a non-empty string, got {name!r}")
        here = (*path, name)
        if name in template:
            raise SpaceError(f"{label(here)}: each name may be used once, got it twice")
        if isinstance(value, Mapping):
            template[name] = _read_mapping(value, here)
        elif isinstance(value, (Float, Integer, Categorical)):
            template[name] = value
        else:
            raise SpaceError(
                f"{label(here)}: a parameter must be Float, Integer or Categorical, got {value!r}"
                + ("; use Space.from_tune for Ray Tune's domains" if is_domain(value) else "")
            )
    return template


def _leaves(template: Any, path: Path = ()) -> Iterator[tuple[Path, Parameter]]:
    if isinstance(template, (Float, Integer, Categorical)):
        yield path, template
        for k, branch in _branches(template):
            yield from _leaves(branch, (*path, k))
    elif isinstance(template, dict):
        for key, value in template.items():
            for leaf in _leaves(value, (*path, key)):
                if not isinstance(key, str):
                    raise SpaceError(f"{label((*path, key))}: a parameter's name must be a string, got {key!r}")
                yield leaf
    elif isinstance(template, (list, tuple)):
        for i, value in enumerate(template):
            yield from _leaves(value, (*path, i))


def _holds_parameters(template: Any) -> bool:
    return any(True for _ in _leaves(template))


def _branches(parameter: Parameter) -> list[tuple[int, Any]]:
    """The choices, with their positions, that hold parameters of their own."""
    if not isinstance(parameter, Categorical) or not isinstance(parameter.choices, Sequence):
        return []
    return [(k, choice) for k, choice in enumerate(parameter.choices) if _holds_parameters(choice)]


def _conditions(parameters: Mapping[Path, Parameter]) -> list[tuple[int, int] | None]:
    """Per parameter, the axis and position of the innermost choice that opens it; None where it is always open."""
    axes = {path: i for i, (path, parameter) in enumerate(parameters.items()) if _branches(parameter)}
    found: list[tuple[int, int] | None] = []
    for path in parameters:
        depth = max((n for n in range(len(path)) if path[:n] in axes), default=None)
        found.append(None if depth is None else (axes[path[:depth]], cast(int, path[depth])))
    return found


def _fill(template: Any, row: Iterator[Any]) -> Any:
    if isinstance(template, Categorical):
        chosen = next(row)
        value = None if chosen is None else template.choices[chosen]
        for k, branch in _branches(template):
            if k == chosen:
                value = _fill(branch, row)
            else:
                for _ in _leaves(branch):
                    next(row)
        return value
    if isinstance(template, (Float, Integer)):
        return next(row)
    if type(template) is dict:
        return {key: _fill(value, row) for key, value in template.items()}
    if type(template) in (list, tuple):
        return type(template)(_fill(value, row) for value in template)
    return template


def _row(template: Any, config: Any, path: Path) -> Iterator[float | int | None]:
    """The configuration's numbers and positions in the order of the template's leaves; None for what is not open."""
    if isinstance(template, Categorical):
        yield from _choice_row(template, config, path)
    elif isinstance(template, (Float, Integer)):
        yield template.accept(config, label(path))
    else:
        for key, inside in template.items() if isinstance(template, dict) else enumerate(template):
            if not _holds_parameters(inside):
                continue
            try:
                value = config[key]
            except (KeyError, IndexError, TypeError):
                raise SpaceError(f"{label((*path, key))}: missing from the configuration") from None
            yield from _row(inside, value, (*path, key))


def _choice_row(template: Categorical, value: Any, path: Path) -> list[float | int | None]:
    branches = dict(_branches(template))
    rows: dict[int, list[float | int | None]] = {}
    refusals = []
    try:
        chosen = template.position(value, label(path))
    except SpaceError as error:
        chosen = -1
        if not branches:
            raise
        refusals = [str(error)]
    for k, branch in branches.items() if chosen < 0 else ():  # the first that the value fits
        try:
            _refuse_different(branch, value, (*path, k))
            rows[k] = list(_row(branch, value, (*path, k)))
        except SpaceError as error:
            refusals.append(str(error))
        else:
            chosen = k
            break
    if chosen < 0:
        raise SpaceError(f"{label(path)}: it fits none of the choices ({'; '.join(refusals[1:])})")
    row: list[float | int | None] = [chosen]
    for k, branch in branches.items():
        row += rows[k] if k in rows else [None for _ in _leaves(branch)]
    return row


def _encode(parameter: Parameter, values: Sequence[float | int]) -> Array:  # (n,)
    if isinstance(parameter, Categorical):
        return (np.array(values, dtype=np.float64) + 0.5) / len(parameter.choices)
    return parameter.encode(values)


def _refuse_different(template: Any, config: Any, path: Path) -> None:
    """SpaceError where the configuration holds what the template does not, or something else for a constant."""
    if isinstance(template, (Float, Integer, Categorical)):
        return
    if not _holds_parameters(template):
        if not _is_constant(template, config):
            raise SpaceError(f"{label(path)}: it is always {template!r} in this space, got {config!r}")
    elif isinstance(template, dict) and isinstance(config, Mapping):
        for key in config:
            if key not in template:
                known = ", ".join(map(str, template))
                raise SpaceError(f"{label((*path, key))}: not a parameter of the space, which has {known}")
            _refuse_different(template[key], config[key], (*path, key))
    elif isinstance(template, (list, tuple)) and isinstance(config, (list, tuple)):
        if len(config) > len(template):
            raise SpaceError(f"{label(path)}: it has {len(template)} items in the space, got {len(config)}")
        for i, (inside, value) in enumerate(zip(template, config, strict=False)):
            _refuse_different(inside, value, (*path, i))


def _is_constant(constant: Any, value: Any) -> bool:
    # the last for arrays and their like, which do not compare to one truth value
    return constant is value or equal(constant, value) or object_to_json(constant) == object_to_json(value)


def _template_to_json(template: Any) -> Any:
    if isinstance(template, Categorical) and _branches(template):
        return {"type": "choice", "items": [_template_to_json(choice) for choice in template.choices]}
    if isinstance(template, (Float, Integer, Categorical)):
        return template.to_json()
    if isinstance(template, dict):
        if not _holds_parameters(template):
            return {"type": "constant", "value": object_to_json(template)}
        return {"type": "dict", "items": {str(key): _template_to_json(value) for key, value in template.items()}}
    if type(template) in (list, tuple) and _holds_parameters(template):
        return {"type": type(template).__name__, "items": [_template_to_json(value) for value in template]}
    return {"type": "constant", "value": object_to_json(template)}


def _template_from_json(description: Any) -> Any:
    kind = description["type"]
    if kind == "float":
        return Float(description["low"], description["high"], description["log"], description["step"])
    if kind == "integer":
        return Integer(description["low"], description["high"], description["log"], description["step"])
    if kind == "categorical":
        return Categorical([object_from_json(choice) for choice in description["choices"]])
    if kind == "choice":
        return Categorical([_template_from_json(choice) for choice in description["items"]])
    if kind == "dict":
        return {key: _template_from_json(value) for key, value in description["items"].items()}
    if kind in ("list", "tuple"):
        items = [_template_from_json(value) for value in description["items"]]
        return tuple(items) if kind == "tuple" else items
    return object_from_json(description["value"])
