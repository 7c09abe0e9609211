"""Values as people read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from raybo.space import Categorical, Float, Integer


def named(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Names and values as they are shown."""
    return [(name, shown(value)) for name, value in values.items()]


def shown(value: Any) -> str:
    """A value as people read it: floats with six figures, a choice that holds parameters by what is fixed in it."""
    if isinstance(value, Mapping):
        fixed = {key: of for key, of in value.items() if not isinstance(of, (Float, Integer, Categorical, Mapping))}
        return " ".join(f"{key}={shown(of)}" for key, of in fixed.items()) or " ".join(map(str, value))
    if isinstance(value, (Float, Integer)):  # a choice that is a parameter itself
        return f"{shown(value.low)} to {shown(value.high)}"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
