"""Values in the form in which people read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from raybo.record.trial import Trial
    from raybo.study.study import Study


def named(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return names and values as they are shown."""
    return [(name, shown(value)) for name, value in values.items()]


def shown(value: Any) -> str:
    """Return a value as people read it: floats with six figures, a dict by what is plain in it."""
    if isinstance(value, Mapping):
        plain = {key: of for key, of in value.items() if not isinstance(of, Mapping)}
        return " ".join(f"{key}={shown(of)}" for key, of in plain.items()) or " ".join(map(str, value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def config_line(study: Study, trial: Trial) -> str:
    """A configuration on one line."""
    return ", ".join(f"{name}={value}" for name, value in config_values(study, trial))


def config_values(study: Study, trial: Trial) -> list[tuple[str, str]]:
    """Names and values of the parameters that are open in a configuration, as they are shown."""
    return named(dict(study.space.named_values(trial.config)))


def context_line(context: Mapping[str, Any] | None) -> str:
    """Return a context on one line; empty if it is unknown."""
    return ", ".join(f"{name}={value}" for name, value in named(context or {}))
