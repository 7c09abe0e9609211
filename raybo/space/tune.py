"""Ray Tune's search spaces, read through the public attributes of their domains: nothing here imports Ray."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from raybo.common.errors import SpaceError
from raybo.common.messages import shown
from raybo.space.numeric import named
from raybo.space.objects import same
from raybo.space.parameters import Array, Categorical, Float, Integer, Parameter
from raybo.space.paths import Path, label


@dataclass(frozen=True, repr=False)
class HalfOpen(Float):
    """A real number in [low, high), as Tune draws it: never high itself, though a point given by a user may have it."""

    def decode(self, u: Array) -> list[float]:  # (n,)
        """Return the values at the coordinates."""
        # no further from the edge than numpy's own generator keeps, of which the last value below 1 is 1 - 2^-53
        last = math.nextafter(self.high, self.low)
        return [min(value, last) for value in super().decode(u.clip(None, 1.0 - 2.0**-53))]


def read_param_space(param_space: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tree with raybo's parameters in place of Tune's domains; constants are kept.

    Raises:
        SpaceError: names the path of a domain that cannot be expressed.
    """
    if not isinstance(param_space, Mapping):
        raise SpaceError(f"a Ray Tune search space is a dict, got {shown(param_space)}")
    for key in param_space:
        if not isinstance(key, str):
            raise SpaceError(f"a parameter's name must be a string, got {shown(key)}")
    return {key: _read(value, (key,)) for key, value in param_space.items()}


def is_domain(value: object) -> bool:
    """Return True if the value is one of Ray Tune's domains."""
    return any(t.__module__ == "ray.tune.search.sample" and t.__name__ == "Domain" for t in type(value).__mro__)


def _read(value: Any, path: Path) -> Any:
    if isinstance(value, Mapping):
        if set(value) == {"grid_search"}:
            raise SpaceError(f"{label(path)}: grid_search is not a range to search; use tune.choice")
        if not holds_domain(value):
            return value  # a constant, whatever it is
        for key in value:
            if not isinstance(key, str):
                raise SpaceError(f"{label((*path, key))}: a parameter's name must be a string, got {shown(key)}")
        return {key: _read(inside, (*path, key)) for key, inside in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_read(inside, (*path, i)) for i, inside in enumerate(value))
    if isinstance(value, (list, tuple)) and holds_domain(value):
        raise SpaceError(f"{label(path)}: domains may stand in dicts, lists and tuples, got a {type(value).__name__}")
    try:
        return _parameter(value, path) if is_domain(value) else value
    except SpaceError as error:
        raise named(error, label(path)) from None


def _parameter(domain: Any, path: Path) -> Parameter:
    name, kind = label(path), type(domain).__name__
    if kind == "Categorical":
        distinct: list[Any] = []
        for i, category in enumerate(domain.categories):
            choice = _read(category, (*path, i)) if holds_domain(category) else category
            if not any(same(choice, earlier) for earlier in distinct):
                distinct.append(choice)
        return Categorical(distinct)
    sampler, step = domain.get_sampler(), None
    if type(sampler).__name__ == "Quantized":
        sampler, step = sampler.get_sampler(), sampler.q
    log = type(sampler).__name__.endswith("LogUniform")
    if kind not in ("Float", "Integer") or not (log or type(sampler).__name__.endswith("Uniform")):
        raise SpaceError(
            f"{name}: tune's {type(sampler).__name__.lstrip('_').lower()} of {kind.lower()} cannot be searched; use "
            "uniform, loguniform, their quantised and integer forms, or choice"
        )
    if kind == "Float":
        low, high = float(domain.lower), float(domain.upper)
        return HalfOpen(low, high, log) if step is None else Float(low, high, log, float(step))
    step = int(step or 1)  # the values of a quantised domain are the multiples of its step
    first, last = -(-int(domain.lower) // step) * step, int(domain.upper) // step * step
    if step == 1:  # Tune excludes the upper bound unless the step is another
        last -= 1
    return Categorical([first]) if first == last else Integer(first, last, log, step)


def holds_domain(value: Any) -> bool:
    """Return True if a tree of dicts, lists and tuples holds a domain of Ray Tune, or a grid search, anywhere."""
    if isinstance(value, Mapping):
        return set(value) == {"grid_search"} or any(holds_domain(inside) for inside in value.values())
    if isinstance(value, (list, tuple)):
        return any(holds_domain(inside) for inside in value)
    return is_domain(value)
