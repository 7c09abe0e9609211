"""Values in the form in which people read them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import numpy as np

from raybo.space import Float, Integer

if TYPE_CHECKING:
    from raybo.record.trial import Trial
    from raybo.space import Parameter
    from raybo.study.study import Study

NEAR = 1e-5  # of a parameter's range; points that are nearer to each other are shown alike
DOTS = "..."  # in place of what is left out of a text


def named(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return names and values as they are shown."""
    return [(name, shown(value)) for name, value in values.items()]


def shown(value: Any) -> str:
    """Return a value as people read it: floats with six figures, a dict by what is plain in it."""
    if isinstance(value, Mapping):
        plain = {key: of for key, of in value.items() if not isinstance(of, Mapping)}
        return " ".join(f"{key}={shown(of)}" for key, of in plain.items()) or " ".join(map(str, value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def exact(value: Any) -> str:
    """Return a value as people read it, with all its digits if six say another."""
    text = shown(value)
    return repr(value) if isinstance(value, float) and float(text) != value else text


def _of_parameter(value: Any, parameter: Parameter | None) -> str:
    """Return a parameter's value with six figures, or with more where six are another point, or out of its range."""
    if not isinstance(value, float) or not isinstance(parameter, (Float, Integer)):
        return shown(value)
    for figures in range(6, 17):
        text = f"{value:.{figures}g}"
        if not parameter.low <= float(text) <= parameter.high:
            continue
        if abs(np.diff(parameter.encode([float(text), value])).item()) <= NEAR:
            return text
    return repr(value)


def abbreviated(texts: Sequence[str], longest: int) -> list[str]:
    """Return texts cut to a length, all at the same place, so that different ones stay different."""
    different = len(set(texts))
    kept = longest - len(DOTS)
    numbered = (f"{text[: kept - len(str(k))]}{DOTS}{k}" for k, text in enumerate(texts, 1))
    otherwise = [text if len(text) <= longest else cut for text, cut in zip(texts, numbered, strict=True)]
    return next((cut for cut in _cuts(texts, longest) if len(set(cut)) == different), otherwise)


def _cuts(texts: Sequence[str], longest: int) -> Iterator[list[str]]:
    """Yield the texts without their ends, their middles or their beginnings, then without all but a middle."""
    kept = longest - len(DOTS)
    for front in (kept, kept // 2, *range(kept)):
        yield [
            text if len(text) <= longest else text[:front] + DOTS + text[len(text) - kept + front :] for text in texts
        ]
    columns = zip(*(text for text in texts if len(text) > longest), strict=False)
    shared = sum(1 for _ in takewhile(lambda column: len(set(column)) == 1, columns))
    inner = slice(shared, shared + kept - len(DOTS))
    yield [text if len(text) <= longest else DOTS + text[inner] + DOTS for text in texts]


def config_line(study: Study, trial: Trial) -> str:
    """A configuration on one line."""
    return ", ".join(f"{name}={value}" for name, value in config_values(study, trial))


def config_values(study: Study, trial: Trial) -> list[tuple[str, str]]:
    """Names and values of the parameters that are open in a configuration, as they are shown."""
    parameters = dict(zip(study.space.names, study.space.parameters.values(), strict=True))
    return [
        (name, _of_parameter(value, parameters.get(name))) for name, value in study.space.named_values(trial.config)
    ]


def context_line(context: Mapping[str, Any] | None) -> str:
    """Return a context on one line; empty if it is unknown."""
    return ", ".join(f"{name}={value}" for name, value in named(context or {}))
