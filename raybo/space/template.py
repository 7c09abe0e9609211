"""A space's template: nested parameters and constants, and configurations of the same shape.

A template is a tree of dicts (and lists, from Ray Tune) with parameters and constants at its leaves. A choice may hold
such a tree too; the tree's parameters come after the choice itself. A configuration's row holds, leaf by leaf, a
number, a choice's position, or None if the leaf is not open.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import NoneType
from typing import Any, cast

import numpy as np

from raybo.common.errors import SpaceError
from raybo.common.messages import shortened, shown
from raybo.space.branches import branches_of
from raybo.space.objects import equal, object_from_json, object_to_json
from raybo.space.parameters import Categorical, Float, Integer, Ordinal, Parameter, Scale
from raybo.space.paths import Path, label, named
from raybo.space.tune import HalfOpen, is_domain

ABSENT: Any = object()  # no value: None may be one


def read_template(parameters: Mapping[str, Any] | Iterable[tuple[str, Any]], path: Path) -> dict[str, Any]:
    """Read the template that a user's dict, or pairs, declare; raise SpaceError if they declare none."""
    try:
        pairs = [(n, v) for n, v in (parameters.items() if isinstance(parameters, Mapping) else parameters)]
    except (TypeError, ValueError):
        raise SpaceError(f"a space is a dict from names to parameters, got {shown(parameters)}") from None
    template: dict[str, Any] = {}
    for name, value in pairs:
        if not isinstance(name, str) or not name:
            raise SpaceError(f"a parameter's name must be a non-empty string, got {shown(name)}")
        here = (*path, name)
        value = value.item() if isinstance(value, np.generic) else value
        if name in template:
            raise SpaceError(f"{label(here)}: each name may be used once, got it twice")
        if isinstance(value, Mapping):
            template[name] = read_template(value, here)
        elif isinstance(value, (Float, Integer, Categorical, str, int, float, NoneType)):
            template[name] = value  # a parameter, or a constant
        else:
            raise SpaceError(
                f"{label(here)}: a parameter must be Float, Integer, Categorical or Ordinal, got {shown(value)}"
                f"{_remedy(value)}"
            )
    return template


def _remedy(value: Any) -> str:
    if is_domain(value):
        return "; use Space.from_tune for Ray Tune's domains"
    if isinstance(value, (list, tuple, set, frozenset, range)):
        return "; use Categorical([...]) for choices, Float(low, high) or Integer(low, high) for a range"
    return ""


def leaves(template: Any, path: Path = ()) -> Iterator[tuple[Path, Parameter]]:
    """Yield its parameters with their paths, a choice before those that it opens."""
    if isinstance(template, (Float, Integer, Categorical)):
        yield path, template
        for k, branch in branches_of(template):
            yield from leaves(branch, (*path, k))
    elif isinstance(template, dict):
        for key, value in template.items():
            for leaf in leaves(value, (*path, key)):
                if not isinstance(key, str):
                    raise SpaceError(f"{label((*path, key))}: a parameter's name must be a string, got {shown(key)}")
                yield leaf
    elif isinstance(template, (list, tuple)):
        for i, value in enumerate(template):
            yield from leaves(value, (*path, i))


def holds_parameters(template: Any) -> bool:
    """Return True if it holds a parameter; else it is a constant."""
    return any(True for _ in leaves(template))


def conditions(parameters: Mapping[Path, Parameter]) -> list[tuple[int, int] | None]:
    """Return, per parameter, the axis and position of the innermost choice that opens it; None if always open."""
    axes = {path: i for i, (path, parameter) in enumerate(parameters.items()) if branches_of(parameter)}
    found: list[tuple[int, int] | None] = []
    for path in parameters:
        depth = max((n for n in range(len(path)) if path[:n] in axes), default=None)
        found.append(None if depth is None else (axes[path[:depth]], cast(int, path[depth])))
    return found


def filled(template: Any, row: Iterator[Any]) -> Any:
    """Return the configuration of a row, which is consumed."""
    if isinstance(template, Categorical):
        chosen = next(row)
        value = None if chosen is None else template.choices[chosen]
        for k, branch in branches_of(template):
            if k == chosen:
                value = filled(branch, row)
            else:
                for _ in leaves(branch):
                    next(row)
        return value
    if isinstance(template, (Float, Integer)):
        return next(row)
    if type(template) is dict:
        return {key: filled(value, row) for key, value in template.items()}
    if type(template) in (list, tuple):
        return type(template)(filled(value, row) for value in template)
    return template


def row_of(template: Any, config: Any, path: Path, *, is_partial: bool = False) -> Iterator[float | int | None]:
    """Yield the configuration's numbers and positions in the order of the leaves; None for what is not open.

    A partial configuration may leave parameters out, for which there is None too, but no doubt which branch it means.
    """
    if config is ABSENT:
        yield from (None for _ in leaves(template, path))
    elif isinstance(template, Categorical):
        yield from _choice_row(template, config, path, is_partial)
    elif isinstance(template, (Float, Integer)):
        yield template.accept(config, label(path))
    else:
        for key, inside in template.items() if isinstance(template, dict) else enumerate(template):
            if holds_parameters(inside):
                value = _inside(config, key, path, is_partial)
                yield from row_of(inside, value, (*path, key), is_partial=is_partial)


def _inside(config: Any, key: Any, path: Path, is_partial: bool) -> Any:
    if is_partial and not isinstance(config, (Mapping, list, tuple)):
        raise SpaceError(f"{label(path)}: it holds parameters of its own, got {shown(config)}")
    try:
        return config[key]
    except (KeyError, IndexError, TypeError):
        if is_partial:
            return ABSENT
        raise SpaceError(f"{named((*path, key))}: missing from the configuration") from None


def _choice_row(template: Categorical, value: Any, path: Path, is_partial: bool) -> list[float | int | None]:
    branches = dict(branches_of(template))
    rows: dict[int, list[float | int | None]] = {}
    try:
        chosen = template.position(value, label(path))
    except SpaceError:
        if not branches:
            raise
        rows = _fitting(template, value, path, is_partial)
        chosen = next(iter(rows))
    row: list[float | int | None] = [chosen]
    for k, branch in branches.items():
        row += rows[k] if k in rows else [None for _ in leaves(branch)]
    return row


def _fitting(template: Categorical, value: Any, path: Path, is_partial: bool) -> dict[int, list[float | int | None]]:
    """Return the row of the branch that a value fits, by its position: of a whole configuration the first one."""
    rows: dict[int, list[float | int | None]] = {}
    refusals = []
    for k, branch in branches_of(template):
        try:
            refuse_different(branch, value, (*path, k))
            rows[k] = list(row_of(branch, value, (*path, k), is_partial=is_partial))
        except SpaceError as error:
            refusals.append(str(error))
        else:
            if not is_partial:
                break
    if not rows:
        raise SpaceError(f"{label(path)}: {shown(value)} fits none of the choices ({'; '.join(refusals)})")
    if len(rows) > 1:
        which = ", ".join(str(template.choices[k]) for k in rows)
        raise SpaceError(
            f"{label(path)}: {shown(value)} fits {len(rows)} of the choices ({which}); give what tells them apart"
        )
    return rows


def refuse_different(template: Any, config: Any, path: Path) -> None:
    """Raise SpaceError if the configuration holds an unknown key, or another value for a constant."""
    if isinstance(template, (Float, Integer, Categorical)):
        return
    if not holds_parameters(template):
        if not _is_constant(template, config):
            raise SpaceError(f"{label(path)}: it is always {shown(template)} in this space, got {shown(config)}")
    elif isinstance(template, dict) and isinstance(config, Mapping):
        names = list(template)  # found by comparison: the hash of a user's key may raise
        for key in config:
            if key not in names:
                known = shortened(", ".join(map(str, template)), 1_000)
                raise SpaceError(f"{named((*path, key))}: not a parameter of the space, which has {known}")
        for name in names:
            if name in config:
                refuse_different(template[name], config[name], (*path, name))
    elif isinstance(template, (list, tuple)) and isinstance(config, (list, tuple)):
        if len(config) > len(template):
            raise SpaceError(f"{label(path)}: it has {len(template)} items in the space, got {len(config)}")
        for i, (inside, value) in enumerate(zip(template, config, strict=False)):
            refuse_different(inside, value, (*path, i))


def _is_constant(constant: Any, value: Any) -> bool:
    # the last for arrays and their like, which do not compare to one truth value
    return constant is value or equal(constant, value) or object_to_json(constant) == object_to_json(value)


def template_to_json(template: Any, *, exact: bool = False) -> Any:
    """Return a JSON description; `exact` also records half-open ranges, otherwise only their bounds."""
    if isinstance(template, Categorical) and branches_of(template):
        items = [template_to_json(choice, exact=exact) for choice in template.choices]
        return {"type": "choice", "items": items, **template.guesses_to_json()}
    if isinstance(template, (Float, Integer, Categorical)):
        return template.to_json() | ({"open": True} if exact and isinstance(template, HalfOpen) else {})
    if isinstance(template, dict):
        if not holds_parameters(template):
            return {"type": "constant", "value": object_to_json(template)}
        return {
            "type": "dict",
            "items": {str(key): template_to_json(value, exact=exact) for key, value in template.items()},
        }
    if type(template) in (list, tuple) and holds_parameters(template):
        return {"type": type(template).__name__, "items": [template_to_json(value, exact=exact) for value in template]}
    return {"type": "constant", "value": object_to_json(template)}


def template_from_json(description: Any) -> Any:
    """Return the template that `template_to_json` described."""
    kind = description["type"]
    if kind in ("float", "integer"):
        log = bool(description["log"])  # 0.1 took any object for one
    if kind == "float":
        kind_of = HalfOpen if description.get("open") else Float
        values = (description["low"], description["high"], log, description["step"])
        scale: Scale = "linear" if log else description.get("scale", "linear")
        return kind_of(*values, scale=scale, **_guesses(description))
    if kind == "integer":
        values = (description["low"], description["high"], log, description["step"])
        return Integer(*values, **_guesses(description))
    if kind in ("categorical", "ordinal"):
        choices = [object_from_json(choice) for choice in description["choices"]]
        return (Ordinal if kind == "ordinal" else Categorical)(choices, **_guess_from_json(description, choices))
    if kind == "choice":
        choices = [template_from_json(choice) for choice in description["items"]]
        return Categorical(choices, **_guess_from_json(description, choices))
    if kind == "dict":
        return {key: template_from_json(value) for key, value in description["items"].items()}
    if kind in ("list", "tuple"):
        items = [template_from_json(value) for value in description["items"]]
        return tuple(items) if kind == "tuple" else items
    return object_from_json(description["value"])


def _guesses(description: Mapping[str, Any]) -> dict[str, Any]:
    given = {"guess": description["guess"]} if "guess" in description else {}
    return given | {"next_guesses": _next_guesses(description)}


def _next_guesses(description: Mapping[str, Any]) -> list[Any]:
    """Return the next guesses, of which there was one at most before there were several."""
    return description.get("next_guesses") or ([description["next_guess"]] if "next_guess" in description else [])


def _guess_from_json(description: Mapping[str, Any], choices: list[Any]) -> dict[str, Any]:
    given = {"guess": choices[description["guess"]]} if "guess" in description else {}
    return given | {"next_guesses": [choices[i] for i in _next_guesses(description)]}
