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
    object_from_json,
    object_to_json,
)
from raybo.space.tune import Path, is_domain, label, read_param_space

Config: TypeAlias = dict[str, Any]


class Space:
    """A search space: named parameters, possibly nested, and the constants that stand between them.

    Args:
        parameters: a mapping (or a sequence of pairs) from names to `Float`, `Integer`, `Categorical` or a further
            mapping of the same kind.
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
        self.cube = Cube(list(self.parameters.values()))
        self._flat = all(
            isinstance(value, (Float, Integer, Categorical)) for value in template.values()
        )  # the usual case, decoded without recursion

    @classmethod
    def from_tune(cls, param_space: Mapping[str, Any]) -> Space:
        """The space of a Ray Tune `param_space`: domains, nested dicts and lists, and constants, which are kept.

        Raises:
            SpaceError: names the path of what cannot be expressed (`randn`, `sample_from`, `grid_search`, a choice
                among dicts with domains of their own).
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
            SpaceError: a parameter is missing, unknown, of a wrong type or out of range.
        """
        return self._fill(iter(self._values(config)))

    def encode(self, configs: Sequence[Mapping[str, Any]]) -> Array:  # (n, d)
        """Points of the cube for n configurations; SpaceError where one does not fit."""
        rows = [self._values(config) for config in configs]
        columns = [parameter.encode([row[i] for row in rows]) for i, parameter in enumerate(self.parameters.values())]
        return np.stack(columns, axis=1) if rows else np.empty((0, self.d))

    def decode(self, X: Array) -> list[Config]:  # (n, d)
        """The n configurations that points of the cube stand for."""
        X = np.asarray(X, dtype=np.float64)
        columns = [parameter.decode(X[:, i]) for i, parameter in enumerate(self.parameters.values())]
        return [self._fill(iter(row)) for row in zip(*columns, strict=True)]

    def snap(self, X: Array) -> Array:  # (n, d) -> (n, d)
        """encode(decode(X)): the points that will really be run."""
        return self.cube.snap(X)

    def sample(self, rng: np.random.Generator, n: int) -> list[Config]:
        """n independent configurations, uniform in the cube."""
        return self.decode(rng.random((n, self.d)))

    def pack(self, config: Mapping[str, Any]) -> list[float | int]:
        """The configuration as a row of JSON numbers: values of numbers, positions of categories."""
        return [
            parameter.position(value, label(path)) if isinstance(parameter, Categorical) else value
            for (path, parameter), value in zip(self.parameters.items(), self._values(config), strict=True)
        ]

    def unpack(self, row: Sequence[float | int]) -> Config:
        """The configuration that `pack` made the row from."""
        values = (
            parameter.choices[int(value)] if isinstance(parameter, Categorical) else value
            for parameter, value in zip(self.parameters.values(), row, strict=True)
        )
        return self._fill(values)

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

    def _fill(self, values: Iterator[Any]) -> Config:
        if self._flat:
            return dict(zip(self.template, values, strict=True))
        return cast(Config, _fill(self.template, values))

    def _values(self, config: Mapping[str, Any]) -> list[Any]:
        if not isinstance(config, Mapping):
            raise SpaceError(f"a configuration is a dict of parameters, got {config!r}")
        _refuse_unknown(self.template, config, ())
        return [parameter.accept(_lookup(config, path), label(path)) for path, parameter in self.parameters.items()]


# ---- nested templates: a tree of dicts (and lists, from Ray Tune) with parameters and constants at its leaves


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
    elif isinstance(template, dict):
        for key, value in template.items():
            yield from _leaves(value, (*path, key))
    elif isinstance(template, (list, tuple)):
        for i, value in enumerate(template):
            yield from _leaves(value, (*path, i))


def _fill(template: Any, values: Iterator[Any]) -> Any:
    if isinstance(template, (Float, Integer, Categorical)):
        return next(values)
    if type(template) is dict:
        return {key: _fill(value, values) for key, value in template.items()}
    if type(template) in (list, tuple):
        return type(template)(_fill(value, values) for value in template)
    return template


def _lookup(config: Any, path: Path) -> Any:
    for depth, key in enumerate(path):
        try:
            config = config[key]
        except (KeyError, IndexError, TypeError):
            raise SpaceError(f"{label(path[: depth + 1])}: missing from the configuration") from None
    return config


def _refuse_unknown(template: Any, config: Any, path: Path) -> None:
    if isinstance(template, dict) and isinstance(config, Mapping):
        for key in config:
            if key not in template:
                known = ", ".join(map(str, template))
                raise SpaceError(f"{label((*path, key))}: not a parameter of the space, which has {known}")
            _refuse_unknown(template[key], config[key], (*path, key))


def _template_to_json(template: Any) -> Any:
    if isinstance(template, (Float, Integer, Categorical)):
        return template.to_json()
    if isinstance(template, dict):
        if not any(True for _ in _leaves(template)):
            return {"type": "constant", "value": object_to_json(template)}
        return {"type": "dict", "items": {str(key): _template_to_json(value) for key, value in template.items()}}
    if type(template) in (list, tuple) and any(True for _ in _leaves(template)):
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
    if kind == "dict":
        return {key: _template_from_json(value) for key, value in description["items"].items()}
    if kind in ("list", "tuple"):
        items = [_template_from_json(value) for value in description["items"]]
        return tuple(items) if kind == "tuple" else items
    return object_from_json(description["value"])
