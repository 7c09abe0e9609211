"""Configurations as Ray Tune's users write them: nested, flat (`"model/lr"`) or partial; completed for a space."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from raybo.common.arguments import plain_text
from raybo.common.errors import SpaceError
from raybo.common.messages import first_line, shown
from raybo.space import Categorical, Config, Float, Integer, Space

REPEAT_INDEX = "__trial_index__"  # ray.tune.search.repeater.TRIAL_INDEX, which Repeater adds to a configuration


def nested(space: Space, point: Mapping[str, Any]) -> dict[str, Any]:
    """The point with keys such as "model/lr" taken apart along the space; a key that exists as it stands wins.

    Raises:
        SpaceError: the point is not a dict.
    """
    if not isinstance(point, Mapping):
        raise SpaceError(f"a point is a dict of parameters, got {shown(point)}")
    tree: dict[str, Any] = {}
    for key, value in point.items():
        path = _split(space.template, key)
        inside = tree
        for step in path[:-1]:
            inside = inside.setdefault(step, {})
            if not isinstance(inside, dict):
                raise SpaceError(f"{key}: the point gives both {step!r} and what is inside it")
        inside[path[-1]] = value
    return tree


def plain(point: Any, name: str) -> Any:
    """The point with plain numbers and strings where others stood.

    Raises:
        SpaceError: it cannot be read, or contains itself; by its name.
    """
    try:
        return _plain(point)
    except RecursionError:
        raise SpaceError(f"{name}: it is nested too deeply, or contains itself") from None
    except Exception as error:  # noqa: BLE001  # whatever a user's object raises
        raise SpaceError(f"{name}: it cannot be read: {first_line(error)}") from None


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return {plain_text(key) if isinstance(key, str) else key: _plain(inside) for key, inside in value.items()}
    return type(value)(_plain(inside) for inside in value) if type(value) in (list, tuple) else value


def parameters_of(space: Space, config: Mapping[str, Any]) -> dict[str, Any]:
    """The nested configuration without its constants, which Ray Tune holds under other names than the trial does."""
    bare = _without_constants(space.template, {key: v for key, v in config.items() if key != REPEAT_INDEX})
    assert isinstance(bare, dict)
    return bare


def reported(space: Space, result: Mapping[str, Any]) -> Config | None:
    """Return the configuration in a flattened result of Ray Tune; None if it is not a point of the space."""
    given = {str(key)[len("config/") :]: value for key, value in result.items() if str(key).startswith("config/")}
    if isinstance(result.get("config"), Mapping):
        given = dict(result["config"])
    try:
        return whole(space, parameters_of(space, nested(space, given)))
    except SpaceError:
        return None


def whole(space: Space, point: Mapping[str, Any], bases: Iterable[Config] = ()) -> Config:
    """The point as a configuration of the space, what it leaves open filled from the first base that it fits.

    Raises:
        SpaceError: it fits none.
    """
    try:
        return space.accept(point)
    except SpaceError as error:
        refusal = error
    closest = None
    for base in bases:
        try:
            return space.accept(_overlaid(base, point))
        except SpaceError as error:
            closest = closest or error
    raise closest or refusal


def _split(template: Any, key: Any) -> list[Any]:
    if isinstance(template, dict):
        if key in template or not isinstance(key, str):
            return [key]
        for name, inside in template.items():
            if isinstance(name, str) and key.startswith(f"{name}/"):
                return [name, *_split(inside, key[len(name) + 1 :])]
        return [key]
    if not isinstance(key, str):
        return [key]
    if isinstance(template, (list, tuple)):
        head, _, tail = key.partition("/")
        index = int(head) if head.isdecimal() else head
        inside = template[index] if isinstance(index, int) and index < len(template) else None
        return [index, *_split(inside, tail)] if tail else [index]
    if isinstance(template, Categorical):  # whichever of its choices the key leads into
        inside = next((c for c in template.choices if isinstance(c, dict) and len(_split(c, key)) > 1), None)
        return _split(inside, key) if inside is not None else [key]
    return [key]


def _overlaid(base: Any, point: Any) -> Any:
    if isinstance(base, (list, tuple)) and isinstance(point, Mapping):
        return type(base)(_overlaid(v, point[i]) if i in point else v for i, v in enumerate(base))
    if not isinstance(base, Mapping) or not isinstance(point, Mapping):
        return point
    kept = {key: _overlaid(value, point[key]) if key in point else value for key, value in base.items()}
    return {**kept, **{key: value for key, value in point.items() if key not in base}}


def _without_constants(template: Any, config: Any) -> Any:
    if isinstance(template, dict) and isinstance(config, Mapping):
        return {
            key: _without_constants(template[key], value) if key in template else value
            for key, value in config.items()
            if key not in template or _varies(template[key])
        }
    if isinstance(template, (list, tuple)):
        inside = config if isinstance(config, Mapping) else None
        if inside is None and not isinstance(config, (list, tuple)):
            return config
        return type(template)(
            _without_constants(part, config[i])
            if _varies(part) and (i in config if inside is not None else i < len(config))
            else part
            for i, part in enumerate(template)
        )
    return config


def _varies(template: Any) -> bool:
    if isinstance(template, dict):
        return any(_varies(inside) for inside in template.values())
    if isinstance(template, (list, tuple)):
        return any(_varies(inside) for inside in template)
    return isinstance(template, (Float, Integer, Categorical))
