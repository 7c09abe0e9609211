"""Values in the form in which people read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def named(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return names and values as they are shown."""
    return [(name, shown(value)) for name, value in values.items()]


def shown(value: Any) -> str:
    """Return a value as people read it: floats with six figures, a dict by what is plain in it."""
    if isinstance(value, Mapping):
        plain = {key: of for key, of in value.items() if not isinstance(of, Mapping)}
        return " ".join(f"{key}={shown(of)}" for key, of in plain.items()) or " ".join(map(str, value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)
