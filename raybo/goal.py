"""What is wanted of a value, and all that follows from it: the one place that knows which of two values is better.

Below the searcher values are maximised, y = sign * value. Whoever shows, compares or collects values in the user's sign
asks a `Goal`, and neither turns signs nor looks at the mode.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
Mode: TypeAlias = Literal["max", "min"]  # what is wanted of the value
Value = TypeVar("Value", float, Array)


@dataclass(frozen=True)
class Goal:
    """The direction of one metric.

    Attributes:
        mode: "max" or "min".
    """

    mode: Mode

    @property
    def larger_is_better(self) -> bool:
        """Whether the metric is maximised."""
        return self.mode == "max"

    @property
    def sign(self) -> float:
        """+1 or -1: what turns a value into one that is maximised, and back."""
        return 1.0 if self.larger_is_better else -1.0

    def maximised(self, values: Value) -> Value:
        """Values as methods see them."""
        return self.sign * values

    def value_of(self, y: Value) -> Value:
        """Values in the user's sign, of those that methods see."""
        return self.sign * y

    def is_better(self, value: float, than: float) -> bool:
        """Whether a value is strictly better than another."""
        return self.maximised(value) > self.maximised(than)

    def gap(self, value: Value, best: Value | float) -> Value:
        """By how much a value, or each of many, is worse than the best: a regret."""
        return self.maximised(best - value)

    def best_of(self, values: Array | Sequence[float]) -> float:
        """The best value."""
        return float(np.max(values) if self.larger_is_better else np.min(values))

    def worst_of(self, values: Array | Sequence[float]) -> float:
        """The worst value; those that are NaN do not count, and there must be one that is not."""
        return float(np.nanmin(values) if self.larger_is_better else np.nanmax(values))

    def best_so_far(self, values: Array) -> Array:  # (n,) -> (n,)
        """The best of the first 1, 2, ... values; NaN from the first NaN on."""
        return np.asarray((np.maximum if self.larger_is_better else np.minimum).accumulate(values))

    def best_first(self, values: Array | Sequence[float]) -> NDArray[np.intp]:  # (n,) -> (n,)
        """The order of the values, the earliest of equals first."""
        return np.argsort(-self.maximised(np.asarray(values, dtype=np.float64)), kind="stable")
