"""The surrogate: an exact Gaussian process, what is assumed of f, and how its hyperparameters are found."""

from raybo.surrogate.fit import fit_map
from raybo.surrogate.gp import GP
from raybo.surrogate.gradient import gradient_posterior
from raybo.surrogate.kernels import KERNELS, KernelName
from raybo.surrogate.likelihood import Likelihood, Observations, cholesky
from raybo.surrogate.model import Flat, Gamma, Hyperparameter, LogNormal, Model
from raybo.surrogate.outputs import Outputs, Standardised, Tamed, yeo_johnson
from raybo.surrogate.paths import FunctionDraw, draw_function, joint_draws
from raybo.surrogate.sampling import Samples, sample_hmc, sample_slice

__all__ = [
    "GP",
    "KERNELS",
    "Flat",
    "FunctionDraw",
    "Gamma",
    "Hyperparameter",
    "KernelName",
    "Likelihood",
    "LogNormal",
    "Model",
    "Observations",
    "Outputs",
    "Samples",
    "Standardised",
    "Tamed",
    "cholesky",
    "draw_function",
    "fit_map",
    "gradient_posterior",
    "joint_draws",
    "sample_hmc",
    "sample_slice",
    "yeo_johnson",
]
