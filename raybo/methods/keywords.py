"""The options of all methods with their types, for type checkers: so a misspelt keyword is found before the code runs.

Generated from the methods by `python -m tests.generated`. Each method's class, and `raybo methods`, document them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypedDict


class MethodOptions(TypedDict, total=False):
    """Lists the options of all methods by keyword."""

    acquisition: Literal["ucb", "ei"]
    alpha: float
    atoms: int
    B: float
    bandwidth: float
    batch: int | None
    beta: float
    c1: float
    c2: float
    candidates: int | None
    delta: float
    diagnostics: int
    directions: int | None
    early_stop: float | None
    gamma_prior: Sequence[float]
    grid: Literal["growing", "fixed"] | float
    half_life: float | None
    hyperparameters: str
    improvement: Literal["expected", "probability"]
    incumbent: Literal["value", "mean"]
    infimum: int
    inflation: float
    initial: int | None
    kappa: Literal["practical", "theory"] | float
    kernel: Literal["rbf", "matern32", "matern52"]
    learning_rate: float | Sequence[float]
    least_std: float
    lengthscale: float | Sequence[float] | None
    lengthscale_high: float
    lengthscale_low: float
    lengthscale_start: float
    local: bool
    look_ahead: Literal["one-shot", "finite"]
    lower: float | Sequence[float]
    mean: Literal["constant", "zero"]
    noise_variance: float
    norm: Literal["constant", "growing"]
    nu: Literal["one", "fitted"] | float
    nu_rule: Literal["algorithm", "theorem"]
    origin: Sequence[float]
    outputscale: float | None
    p: float
    points: int
    points_per_round: int
    power: float
    preset: Literal["standard", "paper", "contexts"]
    prior_mean: float
    probability: float
    quorum: float
    R: float
    radius: float | None
    refit: Literal["always", "full"]
    refit_noise_on_real: bool
    repeats: int
    restart: bool
    restarts: int
    samples: int | None
    sensitivity: Literal["fast", "exact"]
    solver: Literal["random-grid", "lbfgsb", "nelder-mead", "cg"]
    standardise: bool
    start: Literal["best", "sobol", "centre"]
    step: Literal["normalised", "plain"]
    stride: float
    t_sigma: float
    top: int | None
    tune: bool
    upper: float | Sequence[float]
    variant: Literal["paper", "released", "bounds", "slice", "kappa"]
    weight_decay: float
    window: int | None
