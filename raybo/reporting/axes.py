"""A parameter as the axis of a figure: numbers as they are, categories at 0, 1, 2, ... labelled by their names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import cast

import numpy as np

from raybo.record.states import State
from raybo.record.trial import Trial
from raybo.reporting.formatting import abbreviated, shown
from raybo.space import Array, Categorical, Parameter, choice_names, written
from raybo.study.study import Study

MOST_LEVELS = 60  # values of a stepped parameter that a curve shows; more are drawn like a continuum
NAME_CHARACTERS = 18  # of a category under an axis


@dataclass(frozen=True)
class Axis:
    """One parameter of a study as figures show it.

    Attributes:
        index: which axis of the cube it is.
        name: of the parameter, nested ones joined by dots.
        parameter: its kind and range.
        label: the last part of its name if no other parameter's ends alike, else the name.
    """

    index: int
    name: str
    parameter: Parameter
    label: str

    @property
    def is_categorical(self) -> bool:
        """True if only equality has meaning along it."""
        return isinstance(self.parameter, Categorical)

    @property
    def is_log(self) -> bool:
        """True if equal ratios are equally far apart."""
        return not isinstance(self.parameter, Categorical) and self.parameter.log

    @property
    def is_stepped(self) -> bool:
        """True if its values are few enough to be shown one by one."""
        return self.parameter.count is not None and self.parameter.count <= MOST_LEVELS

    @property
    def choices(self) -> list[str]:
        """The categories' names, as code where several would be shown alike; empty for numbers."""
        if not isinstance(self.parameter, Categorical):
            return []
        return written(choice_names(self.parameter.choices), shown)

    @property
    def labels(self) -> list[str]:
        """The categories' names, shortened; empty for numbers."""
        return abbreviated(self.choices, NAME_CHARACTERS)

    @property
    def range(self) -> tuple[float, float]:
        """Its two ends, with half a category beyond each; around its value if it has only one."""
        if isinstance(self.parameter, Categorical):
            return -0.5, len(self.parameter.choices) - 0.5
        low, high = float(self.parameter.low), float(self.parameter.high)
        if low == high:
            return (
                (low / 2, high * 2)
                if self.parameter.log
                else (low - 0.5 * (abs(low) or 1), high + 0.5 * (abs(high) or 1))
            )
        return low, high

    def places(self, values: Sequence[object]) -> Array:  # (n,)
        """Return the coordinates of the parameter's values along it."""
        if isinstance(self.parameter, Categorical):
            return np.array([self.parameter.position(value, self.name) for value in values], dtype=np.float64)
        return np.array(values, dtype=np.float64)

    def grid(self, most: int) -> tuple[Array, Array]:  # (m,), (m,)
        """Return coordinates in the cube, at most so many unless it is stepped, and those along the axis."""
        if self.is_stepped:
            count = self.parameter.count
            assert count is not None
            if isinstance(self.parameter, Categorical):
                values = list(self.parameter.choices)
            else:
                step = self.parameter.step or 0
                values = [min(self.parameter.low + i * step, self.parameter.high) for i in range(count)]
            return self.parameter.encode(values), self.places(values)
        u = np.linspace(0.0, 1.0, most)
        return u, self.places(self.parameter.decode(u))


def axes_of(study: Study) -> list[Axis]:
    """Return an axis for each parameter, in the space's order."""
    names, parameters = study.space.names, study.space.parameters.values()
    ends = [name.rsplit(".", 1)[-1] for name in names]
    labels = [end if ends.count(end) == 1 else name for name, end in zip(names, ends, strict=True)]
    return [Axis(i, *each) for i, each in enumerate(zip(names, parameters, labels, strict=True))]


def places_of(study: Study, trials: Sequence[Trial]) -> Array:  # (n, d)
    """Return the coordinates of trials on each parameter's axis; NaN if the parameter is not open."""
    rows = [study.space.pack(trial.config) for trial in trials]
    places = np.full((len(rows), study.space.d), np.nan)
    for axis in axes_of(study):
        for n, row in enumerate(rows):
            value = row[axis.index]  # of a category its position, which is its place
            if value is not None:
                places[n, axis.index] = value
    return places


def pairs_of(study: Study, axes: Sequence[Axis]) -> list[tuple[Axis, Axis]]:
    """Return the pairs that are open together in some trial; a choice with what it opens, half of a map, comes last."""
    together = [pair for pair in combinations(axes, 2) if centre(study, *pair) is not None]
    return sorted(together, key=lambda pair: any(b.name.startswith(f"{a.name}.") for a, b in (pair, pair[::-1])))


def leader(study: Study) -> Trial | None:
    """The trial that figures are drawn through: the recommended one, or the front's with the best first metric.

    Where nothing is feasible, the finished one with the best value; None if none has finished.
    """
    if study.incumbent is not None:
        return study.recommended
    done = study.front or [trial for trial in study.trials if trial.state is State.FINISHED]
    return done[study.goal.best_first([cast(float, trial.value) for trial in done])[0]] if done else None


def leader_in_words(study: Study) -> str:
    """Return the name of the leader, which with several metrics, or if nothing is feasible, is not recommended."""
    if study.incumbent is not None:
        return "the recommended trial"
    return f"the trial with the best {study.description.metric}{' on the front' if study.front else ''}"


def centre(study: Study, *axes: Axis) -> Trial | None:
    """The leader, or else the best finished trial, in whose configuration these parameters are open; None for none."""
    if (best := leader(study)) is not None:
        is_open = ~np.isnan(places_of(study, [best])[0])
        if all(is_open[axis.index] for axis in axes):
            return best
    done = [trial for trial in study.trials if trial.state is State.FINISHED]
    places = places_of(study, done)[:, [axis.index for axis in axes]]
    having = [trial for trial, at in zip(done, places, strict=True) if not np.isnan(at).any()]
    order = study.goal.best_first([cast(float, trial.value) for trial in having])
    return having[order[0]] if having else None
