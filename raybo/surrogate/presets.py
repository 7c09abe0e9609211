"""The models of f that published methods assume, and the one for everything else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from raybo.surrogate.kernels import KernelName
from raybo.surrogate.model import Model
from raybo.surrogate.priors import Flat, Gamma, Hyperparameter, LogNormal, Normal
from raybo.surrogate.structured import Structure


def standard_model(kernel: KernelName = "matern52") -> Model:
    """Return the model of standardised values: length-scales around a third of the side, and little noise.

    Short length-scales, whatever the dimension, did better than those that grow with it on functions of 2 to 40 axes.
    """
    return Model(
        kernel=kernel,
        lengthscale=Hyperparameter(LogNormal(-1.0, 1.0), low=5e-3, high=20.0, start=0.4),
        outputscale=Hyperparameter(LogNormal(0.0, 1.5), low=1e-2, high=1e2, start=1.0),
        noise_variance=Hyperparameter(LogNormal(-9.0, 2.0), low=1e-6, high=1.0, start=1e-3),
    )


def noisy_model() -> Model:
    """Return the standard model, but values may be as noisy as they look: for deciding which of them to believe.

    The standard one takes noise for short length-scales, which costs a search little and a recommendation much.
    """
    noise = Hyperparameter(Gamma(1.1, 0.5), low=1e-6, high=1.0, start=1e-3)
    return replace(standard_model(), noise_variance=noise)


def success_model() -> Model:
    """Return the model of labels, +1 for success and -1 for failure: broad regions, and accidents.

    Noise of a tenth of the labels' variance is expected, and up to all of it possible: failures without a pattern.
    """
    return Model(
        lengthscale=Hyperparameter(LogNormal(-1.0, 1.0), low=5e-2, high=20.0, start=0.4),
        outputscale=Hyperparameter(LogNormal(0.0, 1.0), low=1e-2, high=1e1, start=1.0),
        noise_variance=Hyperparameter(LogNormal(-2.3, 1.0), low=1e-3, high=2.0, start=0.1),
    )


def structured_model(
    categorical: Sequence[bool],
    *,
    is_warped: bool = False,
    is_sum: bool = False,
    has_trend: bool = False,
    has_fidelity: bool = False,
    mean: Literal["zero", "constant"] = "zero",
) -> Model:
    """Return the standard model with further parts of its kernel, see `structured`, and of categories its own prior."""
    structure = Structure.of(
        categorical, is_warped=is_warped, is_sum=is_sum, has_trend=has_trend, has_fidelity=has_fidelity
    )
    return replace(standard_model(), structure=structure, mean=mean)


def random_grid_model(start: float = 1.0) -> Model:
    """Return Matern-3/2, one length-scale by maximum likelihood, unit outputscale, noise variance 1e-4, zero mean.

    Source: the experiments of Kim, Liu, Chen (2025), "Bayesian Optimization with Inexact Acquisition: Is Random Grid
    Search Sufficient?"; `start` there is 1 in raw units, and the length-scale within a factor of 1e5 of it.
    """
    return Model(
        kernel="matern32",
        lengthscale=Hyperparameter(low=1e-5 * start, high=1e5 * start, start=start),
        outputscale=Hyperparameter(fixed=1.0),
        noise_variance=Hyperparameter(fixed=1e-4),
        shared_lengthscale=True,
    )


def uhe_model(prior: Gamma | None = None) -> Model:
    """Return Matern-5/2 with a Gamma prior, shape 1e-3 and rate 10 unless given, on every hyperparameter.

    Source: Ha et al. (2023), arXiv:2306.06844, appendix C; the ranges are ours.
    """
    gamma = Gamma(1e-3, 10.0) if prior is None else prior
    return Model(
        lengthscale=Hyperparameter(gamma, low=5e-3, high=10.0, start=0.3),
        outputscale=Hyperparameter(gamma, low=1e-3, high=1e3, start=1.0),
        noise_variance=Hyperparameter(gamma, low=1e-6, high=1.0, start=1e-3),
    )


def gibo_model(noise_variance: float, low: float, high: float, kernel: KernelName = "rbf") -> Model:
    """Return length-scales anywhere in [low, high], outputscale around 2, known noise, constant mean.

    Source: Mueller, von Rohr, Trimpe (2021), "Local policy search with Bayesian optimization", published settings.
    """
    return Model(
        kernel=kernel,
        lengthscale=Hyperparameter(Flat(), low=low, high=high, start=0.5 * (low + high)),
        outputscale=Hyperparameter(Normal(2.0, 1.0), low=1e-3, high=1e3, start=2.0),
        noise_variance=Hyperparameter(fixed=noise_variance),
        mean="constant",
    )


def turbo_model() -> Model:
    """Return Matern-5/2 with flat priors in TuRBO's ranges, constant mean.

    Source: Eriksson et al. (2019), "Scalable Global Optimization via Local Bayesian Optimization", supplement.
    """
    return Model(
        lengthscale=Hyperparameter(Flat(), low=5e-3, high=2.0, start=0.5),
        outputscale=Hyperparameter(Flat(), low=0.05, high=20.0, start=1.0),
        noise_variance=Hyperparameter(Flat(), low=5e-4, high=0.2, start=5e-3),
        mean="constant",
    )
