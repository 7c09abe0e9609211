"""Domains and functions that solvers are tested on."""

from __future__ import annotations

import itertools

import numpy as np

from raybo.space import Categorical, Float, Integer, Space


def cube(**parameters):
    return Space(parameters).cube


def box(d):
    return cube(**{f"x{i}": Float(0.0, 1.0) for i in range(d)})


DOMAINS = {
    "line": box(1),
    "box": box(4),
    "mixed": cube(
        a=Float(0, 1), b=Integer(1, 12), c=Categorical(list("abc")), d=Float(1e-3, 1, log=True), e=Integer(0, 500)
    ),
    "one value on an axis": cube(a=Categorical(["only"]), b=Float(0, 1), c=Float(0, 1, step=1.0)),
    "one point": cube(a=Categorical(["only"])),
    "few categories": cube(a=Categorical(list("abc")), b=Categorical(list("de")), c=Categorical(range(5))),
    "many categories": cube(**{f"x{i}": Categorical(list("abcd")) for i in range(7)}),
    "many integers": cube(**{f"x{i}": Integer(1, 20) for i in range(4)}),
    "finely stepped": cube(a=Integer(1, 1_000_000), b=Float(0, 1)),
}


class Hill:
    """A smooth function with one maximum, at `top`, and on categorical axes a worth for each coordinate."""

    def __init__(self, domain, top=None):
        self.domain, self.steep = domain, 1.0 + np.arange(domain.d)
        self.top = np.full(domain.d, 0.37) if top is None else np.asarray(top, dtype=float)
        self.moves = ~np.array(domain.categorical)

    def value(self, X):
        away = X - self.top
        return -(np.where(self.moves, away**2, np.cos(37.0 * X)) * self.steep).sum(axis=1)

    def value_and_gradient(self, X):
        return self.value(X), np.where(self.moves, -2.0 * (X - self.top) * self.steep, 0.0)


class Waves:
    """A smooth function with many maxima."""

    def __init__(self, domain):
        self.frequency = 5.0 + 3.0 * np.arange(domain.d)

    def value(self, X):
        return np.sin(self.frequency * X + 0.3).sum(axis=1)

    def value_and_gradient(self, X):
        return self.value(X), self.frequency * np.cos(self.frequency * X + 0.3)


class Narrow:
    """A hill of height 1 and radius 0.03 at 0.811 on every axis, on a plain of zeros."""

    def value(self, X):
        return np.maximum(0.0, 1.0 - (((X - 0.811) / 0.03) ** 2).sum(axis=1))

    def value_and_gradient(self, X):
        values = self.value(X)
        return values, np.where(values[:, None] > 0.0, -2.0 * (X - 0.811) / 0.03**2, 0.0)


class Flat:
    def value(self, X):
        return np.full(len(X), 3.25)

    def value_and_gradient(self, X):
        return self.value(X), np.zeros_like(X)


class Broken:
    """A hill that is NaN on one side, -inf on another and +inf in a corner: none of these is a value."""

    def __init__(self, domain):
        self.hill = Hill(domain)

    def spoil(self, X, values):
        first, last = X[:, 0], X[:, -1]
        values = np.where(first > 0.6, np.nan, np.where(first < 0.2, -np.inf, values))
        return np.where((first > 0.9) & (last > 0.9), np.inf, values)

    def value(self, X):
        return self.spoil(X, self.hill.value(X))

    def value_and_gradient(self, X):
        values, gradient = self.hill.value_and_gradient(X)
        values = self.spoil(X, values)
        return values, np.where(np.isfinite(values)[:, None], gradient, np.nan)


class Nothing:
    def value(self, X):
        return np.full(len(X), np.nan)

    def value_and_gradient(self, X):
        return self.value(X), np.full_like(X, np.nan)


class Counted:
    """A function that counts the rows it was asked for, and checks that they lie in the cube."""

    def __init__(self, function):
        self.function, self.rows, self.calls = function, 0, 0

    def note(self, X):
        assert X.ndim == 2
        assert X.dtype == np.float64
        assert np.all((X >= 0.0) & (X <= 1.0))
        self.rows, self.calls = self.rows + len(X), self.calls + 1

    def value(self, X):
        self.note(X)
        return self.function.value(X)

    def value_and_gradient(self, X):
        self.note(X)
        return self.function.value_and_gradient(X)


def every_point(domain):
    return np.array(list(itertools.product(*domain.levels)))
