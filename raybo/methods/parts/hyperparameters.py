"""The option `hyperparameters`: how the surrogate's hyperparameters are found, or the values that they have.

map      the most likely ones under the model's priors
mcmc     averaged over 10 samples by Hamiltonian Monte Carlo
slice    averaged over 10 samples by slice sampling
uhe      the most likely ones on pseudo-data, which stay consistent however the search chose its points
lengthscale=0.3,noise_variance=1e-4
         these as given, in units of the cube's side and of standardised values; the others most likely. One
         length-scale per axis: lengthscale=0.3/0.1/2
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal, TypeAlias

from raybo.common.errors import MethodError
from raybo.common.messages import nearest
from raybo.surrogate import Model

Estimate = Literal["map", "mcmc", "slice", "uhe"]
Hyperparameters: TypeAlias = Estimate | str  # text holds values

ESTIMATES: tuple[Estimate, ...] = ("map", "mcmc", "slice", "uhe")
HYPERPARAMETERS_MEAN = "map, mcmc, slice, uhe, or values: lengthscale=0.3,noise_variance=1e-4"
NAMES = ("lengthscale", "outputscale", "noise_variance")


def fixed_values(hyperparameters: Hyperparameters) -> dict[str, tuple[float, ...]]:
    """The values that the option fixes; none where it names an estimate.

    Raises:
        MethodError: it is neither, or a value is not a positive number.
    """
    if hyperparameters in ESTIMATES:
        return {}
    values: dict[str, tuple[float, ...]] = {}
    for part in hyperparameters.split(","):
        name, is_given, text = (piece.strip() for piece in part.partition("="))
        if not is_given:
            raise MethodError(
                f"hyperparameters must be {', '.join(ESTIMATES)} or values such as "
                f"lengthscale=0.3,noise_variance=1e-4, got {hyperparameters!r}"
            )
        if name not in NAMES:
            raise MethodError(f"hyperparameters has no {name!r}{nearest(name, NAMES)}")
        values[name] = tuple(_positive(name, number) for number in text.split("/"))
        if name != "lengthscale" and len(values[name]) > 1:
            raise MethodError(f"hyperparameters takes one {name}, got {text!r}")
    return values


def with_fixed(model: Model, values: dict[str, tuple[float, ...]], d: int) -> Model:
    """The model with these of its hyperparameters fixed.

    Raises:
        MethodError: there are several length-scales, but not one for each of the d axes.
    """
    if len(values.get("lengthscale", ())) not in (0, 1, d):
        given = len(values["lengthscale"])
        raise MethodError(f"hyperparameters gives {given} length-scales for {d} axes; give 1 or {d}")
    for name, given_values in values.items():
        value = given_values[0] if len(given_values) == 1 else given_values
        model = replace(model, **{name: replace(getattr(model, name), fixed=value)})
    return model


def _positive(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0.0 < value < math.inf:
        raise MethodError(f"hyperparameters needs a positive number for {name}, got {text.strip()!r}")
    return value
