"""Test problems with two or three metrics, all minimised, on the unit cube.

    raybo tune trials/several_goals.py:zdt1

Zitzler, Deb, Thiele (2000), "Comparison of multiobjective evolutionary algorithms: Empirical results" (ZDT); Deb,
Thiele, Laumanns, Zitzler (2005), "Scalable test problems for evolutionary multiobjective optimization" (DTLZ); Liao,
Li, Yang, Zhang, Li (2008), "Multiobjective optimization for crash safety design of vehicles using stepwise regression
model", in the form of Tanabe, Ishibuchi (2020), "An easy-to-use real-world multi-objective optimization problem suite".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

import raybo

Array: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class Problem:
    """A problem with its best known front.

    Attributes:
        function: from a point of the unit cube to the values, both arrays.
        d: number of parameters. reference: above which nothing counts, as is usual for the problem.
        best: hypervolume of the best known front.
    """

    function: Callable[[Array], Array]
    d: int
    reference: tuple[float, ...]
    best: float

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of the values."""
        return tuple(f"f{j + 1}" for j in range(len(self.reference)))

    def objective(self) -> Any:
        """The problem as an objective."""
        space = {f"x{i + 1}": raybo.Float(0.0, 1.0) for i in range(self.d)}

        @raybo.objective(space=space, metrics=dict.fromkeys(self.metrics, "min"))
        def problem(config: dict[str, float]) -> dict[str, float]:
            values = self.function(np.array(list(config.values())))
            return dict(zip(self.metrics, values.tolist(), strict=True))

        return problem


def _zdt1(x: Array) -> Array:
    g = 1.0 + 9.0 * x[1:].mean()
    return np.array([x[0], g * (1.0 - np.sqrt(x[0] / g))])


def _zdt2(x: Array) -> Array:
    g = 1.0 + 9.0 * x[1:].mean()
    return np.array([x[0], g * (1.0 - (x[0] / g) ** 2)])


def _dtlz2(x: Array, k: int) -> Array:
    radius = 1.0 + float(((x[k - 1 :] - 0.5) ** 2).sum())
    angles = 0.5 * np.pi * x[: k - 1]
    values = []
    for j in range(k):
        sine = float(np.sin(angles[k - 1 - j])) if j else 1.0
        values.append(radius * float(np.cos(angles[: k - 1 - j]).prod()) * sine)
    return np.array(values)


def _vehicle_safety(u: Array) -> Array:
    a, b, c, d, e = 1.0 + 2.0 * u
    mass = 1640.2823 + 2.3573285 * a + 2.3220035 * b + 4.5688768 * c + 7.7213633 * d + 4.4559504 * e
    acceleration = (
        6.5856 + 1.15 * a - 1.0427 * b + 0.9738 * c + 0.8364 * d - 0.3695 * a * d + 0.0861 * a * e + 0.3628 * b * d
    ) + (-0.1106 * a**2 - 0.3437 * c**2 + 0.1764 * d**2)
    intrusion = (-0.0551 + 0.0181 * a + 0.1024 * b + 0.0421 * c - 0.0073 * a * b + 0.024 * b * c - 0.0118 * b * d) + (
        -0.0204 * c * d - 0.008 * c * e - 0.0241 * b**2 + 0.0109 * d**2
    )
    return np.array([mass, acceleration, intrusion])


FRONTS = {
    "zdt1": Problem(_zdt1, 6, (11.0, 11.0), 121.0 - 1.0 / 3.0),
    "zdt2": Problem(_zdt2, 6, (11.0, 11.0), 121.0 - 2.0 / 3.0),
    "dtlz2": Problem(lambda x: _dtlz2(x, 2), 6, (1.1, 1.1), 1.1**2 - np.pi / 4.0),
    "dtlz2_of_3": Problem(lambda x: _dtlz2(x, 3), 6, (1.1, 1.1, 1.1), 1.1**3 - np.pi / 6.0),
    # the best hypervolume that NSGA-II with much patience has found, as BoTorch gives it
    "vehicle_safety": Problem(_vehicle_safety, 5, (1864.72022, 11.81993945, 0.2903999384), 246.81607081187002),
}

zdt1, zdt2, dtlz2, dtlz2_of_3, vehicle_safety = (problem.objective() for problem in FRONTS.values())
