"""Test problems with constraints, of which the objective and the constraints are both learnt.

    raybo tune trials/constrained.py:gramacy

Gramacy et al. (2016), "Modeling an augmented Lagrangian for blackbox constrained optimization" (gramacy); Gardner et
al. (2014), "Bayesian optimization with inequality constraints" (gardner1, gardner2); Coello Coello, Mezura Montes
(2002), "Constraint-handling in genetic algorithms through the use of dominance-based tournament selection"
(pressure_vessel, tension_string).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import cos, pi, sin
from typing import Any

import raybo


@dataclass(frozen=True)
class Problem:
    """A problem whose value is minimised, and each of whose numbers c1, c2, ... must not be above 0.

    Attributes:
        space: what is searched.
        function: from the parameters, in order, to the value and those numbers.
        constraints: how many numbers there are.
        best: the best feasible value that is known.
    """

    space: Mapping[str, raybo.Float]
    function: Callable[..., tuple[float, ...]]
    constraints: int
    best: float

    @property
    def rules(self) -> dict[str, str]:
        """The constraints as raybo takes them."""
        return {f"c{j + 1}": "<= 0" for j in range(self.constraints)}

    def __call__(self, config: Mapping[str, float]) -> dict[str, float]:
        """The value and the numbers, by name."""
        value, *numbers = self.function(*config.values())
        return {"value": value, **{name: number for name, number in zip(self.rules, numbers, strict=True)}}

    def objective(self) -> Any:
        """The problem as an objective."""

        @raybo.objective(space=self.space, mode="min", constraints=self.rules)
        def problem(config: dict[str, float]) -> dict[str, float]:
            return self(config)

        return problem


def _gramacy(x: float, y: float) -> tuple[float, ...]:
    return x + y, 1.5 - x - 2.0 * y - 0.5 * sin(2.0 * pi * (x * x - 2.0 * y)), x * x + y * y - 1.5


def _gardner1(x: float, y: float) -> tuple[float, ...]:
    return cos(2.0 * x) * cos(y) + sin(x), cos(x) * cos(y) - sin(x) * sin(y) - 0.5


def _gardner2(x: float, y: float) -> tuple[float, ...]:
    return sin(x) + y, sin(x) * sin(y) + 0.95


def _pressure_vessel(shell: float, head: float, radius: float, length: float) -> tuple[float, ...]:
    cost = 0.6224 * shell * radius * length + 1.7781 * head * radius**2
    cost += 3.1661 * shell**2 * length + 19.84 * shell**2 * radius
    volume = pi * radius**2 * length + 4.0 / 3.0 * pi * radius**3
    return cost, 0.0193 * radius - shell, 0.00954 * radius - head, 1_296_000.0 - volume, length - 240.0


def _tension_string(wire: float, coil: float, turns: float) -> tuple[float, ...]:
    deflection = 1.0 - coil**3 * turns / (71785.0 * wire**4)
    product = coil * wire**3 - wire**4
    product = product if abs(product) > 1e-12 else 1e-12  # equal diameters, where the formula has a pole
    stress = (4.0 * coil**2 - wire * coil) / (12566.0 * product) + 1.0 / (5108.0 * wire**2) - 1.0
    return (
        wire**2 * coil * (turns + 2.0),
        deflection,
        stress,
        1.0 - 140.45 * wire / (coil**2 * turns),
        (wire + coil) / 1.5 - 1.0,
    )


UNIT, SIX = raybo.Float(0.0, 1.0), raybo.Float(0.0, 6.0)
THICKNESS = raybo.Float(0.0625, 10.0, step=0.0625)

CONSTRAINED = {
    "gramacy": Problem({"x": UNIT, "y": UNIT}, _gramacy, 2, 0.59978),
    "gardner1": Problem({"x": SIX, "y": SIX}, _gardner1, 1, -2.0),
    "gardner2": Problem({"x": SIX, "y": SIX}, _gardner2, 1, 0.25323589),
    "pressure_vessel": Problem(
        {"shell": THICKNESS, "head": THICKNESS, "radius": raybo.Float(10.0, 50.0), "length": raybo.Float(150.0, 200.0)},
        _pressure_vessel,
        4,
        6059.7143,
    ),
    "tension_string": Problem(
        {"wire": raybo.Float(0.01, 1.0), "coil": raybo.Float(0.01, 1.0), "turns": raybo.Float(0.01, 20.0)},
        _tension_string,
        4,
        0.012665,
    ),
}

gramacy, gardner1, gardner2, pressure_vessel, tension_string = (p.objective() for p in CONSTRAINED.values())
