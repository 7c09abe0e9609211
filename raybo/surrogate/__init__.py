"""The surrogate: an exact Gaussian process, what is assumed of f, and how its hyperparameters are found."""

from raybo.surrogate.factor import cholesky
from raybo.surrogate.fit import Fit, fit_map, maximise_posterior
from raybo.surrogate.gp import GP
from raybo.surrogate.gradient import (
    GradientAt,
    gradient_posterior,
    gradient_value_covariance,
    gradient_value_covariance_and_jacobian,
)
from raybo.surrogate.kernels import KERNELS, Kernel, KernelName
from raybo.surrogate.likelihood import Likelihood
from raybo.surrogate.mixture import Mixture
from raybo.surrogate.model import Hyperparameter, Model
from raybo.surrogate.observations import Observations
from raybo.surrogate.outputs import Clipped, Outputs, Standardised, Tamed, YeoJohnson
from raybo.surrogate.paths import FunctionDraw, draw_function, joint_draws
from raybo.surrogate.presets import (
    dimension_scaled_model,
    gibo_model,
    random_grid_model,
    standard_model,
    turbo_model,
    uhe_model,
)
from raybo.surrogate.priors import Flat, Gamma, LogNormal, Normal, Prior
from raybo.surrogate.pseudo import pseudo_data
from raybo.surrogate.sampling import Samples, sample_hmc, sample_slice

__all__ = [
    "GP",
    "KERNELS",
    "Clipped",
    "Fit",
    "Flat",
    "FunctionDraw",
    "Gamma",
    "GradientAt",
    "Hyperparameter",
    "Kernel",
    "KernelName",
    "Likelihood",
    "LogNormal",
    "Mixture",
    "Model",
    "Normal",
    "Observations",
    "Outputs",
    "Prior",
    "Samples",
    "Standardised",
    "Tamed",
    "YeoJohnson",
    "cholesky",
    "dimension_scaled_model",
    "draw_function",
    "fit_map",
    "gibo_model",
    "gradient_posterior",
    "gradient_value_covariance",
    "gradient_value_covariance_and_jacobian",
    "joint_draws",
    "maximise_posterior",
    "pseudo_data",
    "random_grid_model",
    "sample_hmc",
    "sample_slice",
    "standard_model",
    "turbo_model",
    "uhe_model",
]
