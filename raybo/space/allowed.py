"""The part of a cube that a space's rules allow: which points lie in it, the nearest of them, and uniform ones.

Rules that share no parameter are independent, so rules are kept in groups, each with its own axes. A group has anchors:
points that it allows, found once when the space is made. A point that breaks the group's rules is replaced by one on
the way from the nearest anchor towards it, as far along as the rules permit; only the group's axes change, all other
coordinates stay. The anchors, and so the replacements, follow from the space and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from raybo.common.errors import SpaceError
from raybo.common.messages import shown
from raybo.space.parameters import Array, Categorical, Ordinal, Parameter
from raybo.space.rules import Columns, Rule

Flags: TypeAlias = NDArray[np.bool_]
Condition: TypeAlias = tuple[int, int] | None  # the axis and the position of the choice that opens an axis

TRIED = 4_096  # uniform points at first; discrete axes with no more points are listed whole
ANCHORS = 512  # allowed points that are kept as anchors
ENOUGH = 64  # with fewer anchors, a local search starts at the points that break the rules least
SEARCHED = 60  # rounds of that search
FEWEST = 16  # points that satisfy rules about continuous parameters: room for one is room for these
PARTS = 6  # points tried at once on the line from an anchor to a point
NARROWED = 6  # times that this line is narrowed to one of its parts
REDRAWN = 64  # times that a uniform point is drawn again
WALKED = 40  # steps of a random walk from an anchor, if redrawing fails


@dataclass(frozen=True, eq=False)
class Group:
    """Rules that share parameters.

    Attributes:
        rules: the rules.
        axes: those that they name, and those that open these.
        anchors: (k, d), points that they allow.
    """

    rules: tuple[Rule, ...]
    axes: tuple[int, ...]
    anchors: Array


class Allowed:
    """The part of a cube that the rules of its space allow.

    Args:
        parameters: of the space. conditions: what opens each. rules: the space's.
        place: moves points to the nearest that could be run if there were no rules.
        rest: (d,), some point.
    Raises:
        SpaceError: hardly a point, or none, satisfies the rules; names the one to blame.
    """

    def __init__(
        self,
        parameters: Sequence[Parameter],
        conditions: Sequence[Condition],
        rules: Sequence[Rule],
        place: Callable[[Array], Array],
        rest: Array,
    ) -> None:
        self._parameters = parameters
        self._conditions = conditions
        self._place = place
        self._rest = rest
        self._unordered = tuple(isinstance(p, Categorical) and not isinstance(p, Ordinal) for p in parameters)
        self.rules = tuple(rules)
        self.groups = [
            Group(tuple(rules), axes, self._anchors(rules, axes)) for rules, axes in _groups(rules, conditions)
        ]

    def allows(self, X: Array) -> Flags:  # (m, d) -> (m,)
        """Return which rows, all of them runnable points, break no rule."""
        return ~self._breaks(X, self.rules)

    def broken(self, X: Array) -> list[Rule]:  # (1, d)
        """Return the rules that a point breaks."""
        return [rule for rule in self.rules if self._breaks(X, [rule])[0]]

    def broken_axes(self, x: Array) -> set[int]:  # (d,)
        """Return the axes of the groups of which a runnable point breaks a rule."""
        broken = (group for group in self.groups if self._breaks(x[None, :], group.rules)[0])
        return {axis for group in broken for axis in group.axes}

    def led_back(self, X: Array) -> Array:  # (m, d) -> (m, d)
        """Return the rows, all runnable, with an allowed point nearby in place of each that breaks a rule."""
        for group in self.groups:
            wrong = np.flatnonzero(self._breaks(X, group.rules))
            if len(wrong):
                X = X.copy()
                X[wrong] = self._led_back(X[wrong], group)
        return X

    def uniform(self, rng: np.random.Generator, X: Array) -> Array:  # (m, d) -> (m, d)
        """Return uniform points, redrawing those that break a rule as often as it takes."""
        for group in self.groups:
            axes = list(group.axes)
            for _ in range(REDRAWN):
                wrong = np.flatnonzero(self._breaks(self._place(X), group.rules))
                if len(wrong) == 0:
                    break
                X[wrong[:, None], axes] = rng.random((len(wrong), len(axes)))
            wrong = np.flatnonzero(self._breaks(self._place(X), group.rules))
            if len(wrong):
                X[wrong[:, None], axes] = self._walked(X[wrong], group, rng)[:, axes]
        return X

    # ---- one group

    def _led_back(self, X: Array, group: Group) -> Array:
        ordered = [axis for axis in group.axes if not self._unordered[axis]]
        unordered = [axis for axis in group.axes if self._unordered[axis]]
        nearest = group.anchors[self._nearest(X, group, ordered, unordered)]
        aims = X.copy()
        aims[:, unordered] = nearest[:, unordered]
        best = self._towards(nearest, aims, ordered, group)
        nearer = np.zeros(len(X), dtype=bool)
        for axis in ordered:  # what had moved for nothing
            tried = best.copy()
            tried[:, axis] = aims[:, axis]
            tried = self._place(tried)
            good = ~self._breaks(tried, group.rules) & (tried != best).any(axis=1)
            best[good], nearer[good] = tried[good], True
        best[nearer] = self._towards(best[nearer], aims[nearer], ordered, group)
        return best

    def _towards(self, starts: Array, aims: Array, ordered: Sequence[int], group: Group) -> Array:
        """Move allowed rows along straight lines towards their aims, which share their unordered coordinates."""

        m, k = len(aims), PARTS
        way = aims[:, ordered] - starts[:, ordered]
        best, low, wide = self._place(_with(aims, ordered, starts[:, ordered])), np.zeros(m), 1.0
        for _ in range(NARROWED):
            shares = low[:, None] + wide * np.arange(1, k + 1) / k
            along = starts[:, None, ordered] + shares[:, :, None] * way[:, None]
            tried = self._place(_with(np.repeat(aims, k, axis=0), ordered, along.reshape(m * k, len(ordered))))
            good = ~self._breaks(tried, group.rules).reshape(m, k)
            last = k - 1 - np.argmax(good[:, ::-1], axis=1)  # the farthest
            found = np.flatnonzero(good.any(axis=1))
            best[found] = tried.reshape(m, k, starts.shape[1])[found, last[found]]
            low[found] = shares[found, last[found]]
            wide /= k
        return best

    def _nearest(
        self, X: Array, group: Group, ordered: Sequence[int], unordered: Sequence[int]
    ) -> NDArray[np.intp]:  # (m,)
        """Return the nearest anchors; another category is as far away as the other end of an axis."""
        distance = np.zeros((len(X), len(group.anchors)))
        for axis in ordered:
            distance += np.square(X[:, axis, None] - group.anchors[None, :, axis])
        for axis in unordered:
            distance += X[:, axis, None] != group.anchors[None, :, axis]
        return np.asarray(np.argmin(distance, axis=1))

    def _walked(self, X: Array, group: Group, rng: np.random.Generator) -> Array:
        """Return the ends of random walks from random anchors that stay within the rules."""
        axes = list(group.axes)
        at = X.copy()
        at[:, axes] = group.anchors[rng.integers(len(group.anchors), size=len(X))][:, axes]
        for _ in range(WALKED):
            tried = self._place(self._moved(at, axes, rng))
            good = ~self._breaks(tried, group.rules)
            at[good] = tried[good]
        return at

    def _moved(self, X: Array, axes: Sequence[int], rng: np.random.Generator) -> Array:
        """Perturb some coordinates of each row along the axes, by much or by little; redraw unordered ones."""
        moved = X.copy()
        scale = np.exp(rng.uniform(np.log(1e-4), np.log(0.5), (len(X), 1)))
        step = scale * rng.standard_normal((len(X), len(axes)))
        mask = rng.random((len(X), len(axes))) < rng.choice([1.0, 2.0 / len(axes)], (len(X), 1))
        moved[:, axes] = np.clip(moved[:, axes] + step * mask, 0.0, 1.0)
        for axis in axes:
            if self._unordered[axis]:
                redrawn = rng.random(len(X)) < 0.3
                moved[:, axis] = np.where(redrawn, rng.random(len(X)), X[:, axis])
        return moved

    # ---- what the rules say

    def _breaks(self, X: Array, rules: Sequence[Rule]) -> Flags:  # (m, d) -> (m,)
        columns, is_open = self._columns(X, rules)
        wrong = np.zeros(len(X), dtype=bool)
        for rule in rules:
            wrong |= ~np.broadcast_to(rule.holds(columns), (len(X),)) & _all_open(rule, is_open, len(X))
        return wrong

    def _lack(self, X: Array, rules: Sequence[Rule]) -> Array:  # (m, d) -> (m,)
        columns, is_open = self._columns(X, rules)
        total = np.zeros(len(X))
        for rule in rules:
            total += np.where(_all_open(rule, is_open, len(X)), rule.lack(columns), 0.0)
        return total

    def _columns(self, X: Array, rules: Sequence[Rule]) -> tuple[Columns, dict[int, Flags]]:
        """Return the values of the parameters that the rules name, and where conditional ones are open."""
        columns: dict[int, Array] = {}
        is_open: dict[int, Flags] = {}
        for axis in sorted({axis for rule in rules for axis in rule.axes}):
            parameter = self._parameters[axis]
            columns[axis] = parameter.numbers(X[:, axis])
            if self._conditions[axis] is not None:
                is_open[axis] = self._is_open(axis, X)
        return columns, is_open

    def _is_open(self, axis: int, X: Array) -> Flags:  # (m,)
        condition = self._conditions[axis]
        if condition is None:
            return np.ones(len(X), dtype=bool)
        chooser, position = condition
        return np.asarray(
            (self._parameters[chooser].level_index(X[:, chooser]) == position) & self._is_open(chooser, X)
        )

    # ---- anchors

    def _anchors(self, rules: Sequence[Rule], axes: tuple[int, ...]) -> Array:  # (k, d)
        """Points that a group of rules allows."""
        rng = np.random.default_rng(0)
        tried = self._place(self._spread(axes, rng))
        lack = self._lack(tried, rules)
        found = [tried[lack == 0.0]]
        if len(found[0]) < ENOUGH and len(tried) == TRIED:
            kept, short = tried, lack
            for _ in range(SEARCHED):
                best = np.argsort(short, kind="stable")[:ENOUGH]
                kept, short = kept[best], short[best]
                moved = self._place(self._moved(np.repeat(kept, 16, axis=0), axes, rng))
                lack = self._lack(moved, rules)
                found.append(moved[lack == 0.0])
                if sum(map(len, found)) >= ANCHORS:
                    break
                kept, short = np.concatenate([kept, moved]), np.concatenate([short, lack])
        anchors = np.concatenate(found)
        _, first = np.unique(np.round(anchors, 9), axis=0, return_index=True)
        is_continuous = any(self._parameters[axis].count is None for axis in axes)
        if len(first) < (FEWEST if is_continuous else 1):
            raise self._hopeless(rules, tried)
        return anchors[np.sort(first)[: TRIED if len(tried) < TRIED else ANCHORS]]

    def _spread(self, axes: tuple[int, ...], rng: np.random.Generator) -> Array:
        """Return every point along the axes if these are few, else uniform points."""
        levels = [self._parameters[axis].levels() for axis in axes]
        listed = [each for each in levels if each is not None]
        if len(listed) == len(levels) and prod(map(len, listed)) < TRIED:
            along = np.array(list(product(*listed)))
        else:
            along = rng.random((TRIED, len(axes)))
        X = np.tile(self._rest, (len(along), 1))
        X[:, axes] = along
        return X

    def _hopeless(self, rules: Sequence[Rule], tried: Array) -> SpaceError:
        """Return the rule that leaves no allowed point."""
        each = np.array([float(np.mean(self._lack(tried, [rule]) == 0.0)) for rule in rules])
        worst = rules[int(np.argmin(each))]
        if each.min() == 0.0:
            remedy = " (if it asks continuous parameters to be equal, compute one of them instead)"
            return SpaceError(
                f"where: no configuration was found that satisfies {shown(worst.text)}{remedy * ('==' in worst.text)}"
            )
        without = [
            float(np.mean(self._lack(tried, [other for other in rules if other is not rule]) == 0.0)) for rule in rules
        ]
        blamed = int(np.argmax(without))
        others = " and ".join(shown(rule.text) for i, rule in enumerate(rules) if i != blamed)
        return SpaceError(
            f"where: no configuration was found that satisfies {shown(rules[blamed].text)} together with {others}"
        )


def _with(X: Array, axes: Sequence[int], coordinates: Array) -> Array:
    """Return a copy of the rows with these coordinates along some axes."""
    X = X.copy()
    X[:, axes] = coordinates
    return X


def _all_open(rule: Rule, is_open: dict[int, Flags], m: int) -> Flags:
    found = np.ones(m, dtype=bool)
    for axis in rule.axes:
        if axis in is_open:
            found &= is_open[axis]
    return found


def _groups(rules: Sequence[Rule], conditions: Sequence[Condition]) -> list[tuple[list[Rule], tuple[int, ...]]]:
    """Group rules that share axes; return each group with its axes and those that open them."""
    groups: list[tuple[list[Rule], set[int]]] = []
    for rule in rules:
        axes: set[int] = set()
        for axis in rule.axes:
            at: int | None = axis
            while at is not None:
                axes.add(at)
                condition = conditions[at]
                at = None if condition is None else condition[0]
        members = [rule]
        for group in [group for group in groups if group[1] & axes]:
            groups.remove(group)
            members, axes = group[0] + members, axes | group[1]
        groups.append((members, axes))
    return [(members, tuple(sorted(axes))) for members, axes in groups]
