"""The space that the trials of an Optuna study show, and Optuna's parameters as points of it.

Optuna's objectives declare parameters as they run, so a space is what the finished trials have in common:

- a parameter of every trial belongs to it;
- one that is there only where a categorical parameter has certain values is open in these branches;
- one that is there only from some value of an integer on (`units_3` where `layers` is at least 3), or only up to some
  value, is open in these ranges of the integer, which become branches;
- one whose range differs from trial to trial, or whose coming and going nothing explains, does not belong to it.

What is inferred from few trials may be wrong; it is inferred again as trials finish.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias, cast

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial

from raybo.common.errors import SpaceError
from raybo.space import Array, Categorical, Float, Integer, Parameter, Space

AT = "at"  # the key of a branch that holds its position
WITHIN = "within"  # the key of what is left of an integer in a branch
MOST_RANGES = 8  # of an integer that opens parameters; each parameter is there once in each range that opens it
FEWEST = 2  # trials that must have a parameter before an integer is taken to open it

Range: TypeAlias = tuple[int, int]  # the first and the last value


@dataclass(frozen=True)
class ShownSpace:
    """Parameters of a study, with what opens them.

    Attributes:
        distributions: by name, in the order of their names.
        opened_by: of a parameter in branches, the parameter that opens it, and the positions of its choices or ranges.
        ranges: of an integer that opens parameters, the ranges that it is divided into.
        optional: names of the parameters that a trial may do without, although nothing in the space says so.
    """

    distributions: Mapping[str, BaseDistribution]
    opened_by: Mapping[str, tuple[str, frozenset[int]]] = field(default_factory=dict)
    ranges: Mapping[str, Sequence[Range]] = field(default_factory=dict)
    optional: frozenset[str] = frozenset()

    @classmethod
    def of(cls, trials: Sequence[FrozenTrial]) -> ShownSpace:
        """Return the space that trials show, which have suggested all that they need."""
        seen: dict[str, set[int]] = {}
        found: dict[str, BaseDistribution] = {}
        changing: set[str] = set()
        for i, trial in enumerate(trials):
            for name, distribution in trial.distributions.items():
                seen.setdefault(name, set()).add(i)
                if found.setdefault(name, distribution) != distribution:
                    changing.add(name)
        known: dict[str, BaseDistribution] = {}
        opened_by: dict[str, tuple[str, frozenset[int]]] = {}
        open_values: dict[str, tuple[str, Range]] = {}  # of what an integer opens: the integer, and where
        for name in sorted(set(found) - changing, key=lambda name: (-len(seen[name]), name)):  # parents first
            if found[name].single() or not _is_expressible(found[name]):
                continue
            if len(seen[name]) < len(trials):
                parents = {each: known[each] for each in known if seen[each] > seen[name]}
                if choice := _choice(name, parents, seen, trials):
                    opened_by[name] = choice
                elif integer := _integer(name, parents, seen, trials):
                    others = [values for parent, values in open_values.values() if parent == integer[0]]
                    if len(_divided(found[integer[0]], [*others, integer[1]])) > MOST_RANGES:
                        continue
                    open_values[name] = integer
                else:
                    continue
            known[name] = found[name]
        ranges = {
            parent: _divided(known[parent], [values for other, values in open_values.values() if other == parent])
            for parent, _ in open_values.values()
        }
        for name, (parent, (low, high)) in open_values.items():
            inside = (k for k, (first, last) in enumerate(ranges[parent]) if low <= first and last <= high)
            opened_by[name] = parent, frozenset(inside)
        return cls(dict(sorted(known.items())), opened_by, ranges)

    def only(self, distributions: Mapping[str, BaseDistribution]) -> ShownSpace:
        """Return the part of it that has these distributions; a name that it does not know is in every trial.

        A parameter whose choice is left out becomes optional.
        """
        names = {name for name, each in distributions.items() if not each.single() and _is_expressible(each)}
        opened_by = {name: by for name, by in self.opened_by.items() if name in names and by[0] in names}
        ranges = {name: ranges for name, ranges in self.ranges.items() if name in names}
        optional = names & (set(self.opened_by) - set(opened_by) | self.optional)
        return ShownSpace({name: distributions[name] for name in sorted(names)}, opened_by, ranges, frozenset(optional))

    @cached_property
    def space(self) -> Space:
        """The same for raybo; a parameter's key there is its place, as its name may be anything."""
        return Space(dict(self._level(None)))

    def _level(self, opened_by: tuple[str, int] | None) -> Iterator[tuple[str, Any]]:
        """Yield key and content of each parameter that is open always, or by a choice at a position."""
        for place, (name, distribution) in enumerate(self.distributions.items()):
            choice, positions = self.opened_by.get(name, (None, frozenset()))
            is_here = choice is None if opened_by is None else choice == opened_by[0] and opened_by[1] in positions
            if not is_here:
                continue
            if isinstance(distribution, CategoricalDistribution):
                insides = [dict(self._level((name, k))) for k in range(len(distribution.choices))]
                yield str(place), Categorical([{AT: k, **inside} if inside else k for k, inside in enumerate(insides)])
            elif name in self.ranges:
                yield str(place), Categorical([*self._branches(name, cast(IntDistribution, distribution))])
            else:
                yield str(place), _parameter(distribution)

    def _branches(self, name: str, distribution: IntDistribution) -> Iterator[Any]:
        """Yield what is open in each range of an integer, with what is left of the integer itself."""
        for k, (low, high) in enumerate(self.ranges[name]):
            inside = dict(self._level((name, k)))
            if low < high:
                inside[WITHIN] = _parameter(IntDistribution(low, high, log=distribution.log, step=distribution.step))
            yield {AT: k, **inside} if inside else k

    @cached_property
    def fingerprint(self) -> str:
        """A text that two spaces share only if they are the same, with the same names."""
        content = json.dumps([list(self.distributions), self.space.to_json()])
        return hashlib.sha256(content.encode()).hexdigest()

    @cached_property
    def _axes(self) -> list[str]:
        """The name of each axis's parameter; one of several branches has an axis in each."""
        names = list(self.distributions)
        return [names[int(path[-3] if path[-1] == WITHIN else path[-1])] for path in self.space.parameters]

    def point(self, params: Mapping[str, Any]) -> Array | None:  # (d,)
        """Return the point of a trial with these parameters; None if one is missing or does not fit."""
        cube, parameters = self.space.cube, list(self.space.parameters.values())
        x = cube.rest.copy()
        positions: dict[int, int] = {}  # of the choices and ranges that are open
        for i, (name, parameter) in enumerate(zip(self._axes, parameters, strict=True)):
            condition = cube.conditions[i]
            if condition is not None and positions.get(condition[0]) != condition[1]:
                continue
            if name not in params:
                if name in self.optional:
                    continue
                return None
            value, distribution = params[name], self.distributions[name]
            try:
                internal = distribution.to_internal_repr(value)
            except ValueError:
                return None
            if not distribution._contains(internal):
                return None
            if isinstance(distribution, CategoricalDistribution):
                value = positions[i] = int(internal)
            elif isinstance(parameter, Categorical):
                value = positions[i] = _range_of(value, self.ranges[name])
            x[i] = parameter.encode_packed([value])[0]
        snapped: Array = cube.snap(x[None, :])[0]
        return snapped

    def params(self, x: Array) -> dict[str, Any]:  # (d,)
        """Return the parameters that are open at a point, as Optuna has them."""
        [row] = self.space.rows(x[None, :])
        params: dict[str, Any] = {}
        for name, value, parameter in zip(self._axes, row, self.space.parameters.values(), strict=True):
            if value is None:
                continue
            if isinstance(distribution := self.distributions[name], CategoricalDistribution):
                params[name] = distribution.to_external_repr(value)
            elif isinstance(parameter, Categorical):
                params[name] = self.ranges[name][int(value)][0]  # if there are more, their own axis comes after it
            else:
                params[name] = value
        return params

    def to_json(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return parameters as JSON can hold them, whatever the choices are: a choice by its position."""
        choices = {name: each for name, each in self.distributions.items() if isinstance(each, CategoricalDistribution)}
        return {
            name: int(choices[name].to_internal_repr(value)) if name in choices else value
            for name, value in params.items()
        }

    def from_json(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return what `to_json` was given; without parameters that the space does not know."""
        found: dict[str, Any] = {}
        for name, value in params.items():
            if (distribution := self.distributions.get(name)) is not None:
                is_choice = isinstance(distribution, CategoricalDistribution)
                found[name] = distribution.to_external_repr(value) if is_choice else value
        return found

    def untried(self, trials: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
        """Return the choices of each categorical parameter that none of these trials has; only where there are some."""
        found: dict[str, list[Any]] = {}
        for name, distribution in self.distributions.items():
            if isinstance(distribution, CategoricalDistribution):
                tried = [params[name] for params in trials if name in params]
                if left := [choice for choice in distribution.choices if choice not in tried]:
                    found[name] = left
        return found


def _choice(
    name: str, parents: Mapping[str, BaseDistribution], seen: Mapping[str, set[int]], trials: Sequence[FrozenTrial]
) -> tuple[str, frozenset[int]] | None:
    """Return the categorical parameter, and the positions, that a parameter's presence follows.

    Of several, the one that is there least often, and of those the one that was suggested last before it.
    """
    found: list[tuple[tuple[int, int, str], frozenset[int]]] = []
    for parent, distribution in parents.items():
        if not isinstance(distribution, CategoricalDistribution):
            continue
        positions = {i: int(distribution.to_internal_repr(trials[i].params[parent])) for i in seen[parent]}
        opening = frozenset(positions[i] for i in seen[name])
        if opening.isdisjoint(positions[i] for i in seen[parent] - seen[name]):
            order = list(trials[min(seen[name])].distributions)
            before = order.index(parent) if order.index(parent) < order.index(name) else -1
            found.append(((len(seen[parent]), -before, parent), opening))
    if not found:
        return None
    (_, _, parent), opening = min(found, key=lambda each: each[0])
    return parent, opening


def _integer(
    name: str, parents: Mapping[str, BaseDistribution], seen: Mapping[str, set[int]], trials: Sequence[FrozenTrial]
) -> tuple[str, Range] | None:
    """Return the integer, and the range from its low or up to its high, that a parameter's presence follows.

    Of several, the one that is there least often.
    """
    if len(seen[name]) < FEWEST:
        return None
    for parent in sorted(parents, key=lambda parent: (len(seen[parent]), parent)):
        distribution = parents[parent]
        if isinstance(distribution, IntDistribution):
            there = [trials[i].params[parent] for i in seen[name]]
            not_there = [trials[i].params[parent] for i in seen[parent] - seen[name]]
            if min(there) > max(not_there):
                return parent, (min(there), distribution.high)
            if max(there) < min(not_there):
                return parent, (distribution.low, max(there))
    return None


def _divided(distribution: BaseDistribution, parts: Sequence[Range]) -> list[Range]:
    """Return an integer's range, divided where one of the parts begins or ends."""
    assert isinstance(distribution, IntDistribution)
    starts = {distribution.low} | {low for low, _ in parts} | {high + distribution.step for _, high in parts}
    ordered = [start for start in sorted(starts) if start <= distribution.high]
    ends = [start - distribution.step for start in ordered[1:]] + [distribution.high]
    return list(zip(ordered, ends, strict=True))


def _range_of(value: int, ranges: Sequence[Range]) -> int:
    """Return the position of the range that holds a value."""
    return next(k for k, (low, high) in enumerate(ranges) if low <= value <= high)


def _parameter(distribution: BaseDistribution) -> Parameter:
    if isinstance(distribution, FloatDistribution):
        return Float(distribution.low, distribution.high, log=distribution.log, step=distribution.step)
    assert isinstance(distribution, IntDistribution)
    step = 1 if distribution.log else distribution.step
    return Integer(distribution.low, distribution.high, log=distribution.log, step=step)


def _is_expressible(distribution: BaseDistribution) -> bool:
    """Return True if raybo has such a parameter; it has none whose range no float can hold."""
    if isinstance(distribution, CategoricalDistribution):
        return True
    try:
        _parameter(distribution).check("parameter")
    except SpaceError:
        return False
    return True


def uniform_seed(*parts: int) -> int:
    """Return a seed made of whole numbers, below 2**32."""
    return int(np.random.SeedSequence(parts).generate_state(1)[0])
