"""The surrogate: an exact Gaussian process, what it assumes about f, and how its hyperparameters are found."""

from raybo.surrogate.factor import cholesky
from raybo.surrogate.fit import fit_map, most_likely
from raybo.surrogate.gp import GP
from raybo.surrogate.gradient import GradientAt
from raybo.surrogate.kernels import KERNELS, Kernel, KernelName, StationaryKernel
from raybo.surrogate.likelihood import Likelihood
from raybo.surrogate.model import Model
from raybo.surrogate.observations import Observations
from raybo.surrogate.outputs import Clipped, Outputs, SignedLog, Standardised, Tamed, YeoJohnson
from raybo.surrogate.presets import (
    gibo_model,
    noisy_model,
    random_grid_model,
    standard_model,
    structured_model,
    success_model,
    turbo_model,
    uhe_model,
)
from raybo.surrogate.priors import Flat, Gamma, Hyperparameter, LogNormal, Normal, Prior
from raybo.surrogate.pseudo import pseudo_data
from raybo.surrogate.sample_paths import FunctionDraw, draw_function, joint_draws
from raybo.surrogate.sampling import Samples, sample_hmc, sample_slice
from raybo.surrogate.structured import Structure, StructuredKernel

__all__ = [
    "GP",
    "KERNELS",
    "Clipped",
    "Flat",
    "FunctionDraw",
    "Gamma",
    "GradientAt",
    "Hyperparameter",
    "Kernel",
    "KernelName",
    "Likelihood",
    "LogNormal",
    "Model",
    "Normal",
    "Observations",
    "Outputs",
    "Prior",
    "Samples",
    "SignedLog",
    "Standardised",
    "StationaryKernel",
    "Structure",
    "StructuredKernel",
    "Tamed",
    "YeoJohnson",
    "cholesky",
    "draw_function",
    "fit_map",
    "gibo_model",
    "joint_draws",
    "most_likely",
    "noisy_model",
    "pseudo_data",
    "random_grid_model",
    "sample_hmc",
    "sample_slice",
    "standard_model",
    "structured_model",
    "success_model",
    "turbo_model",
    "uhe_model",
]
