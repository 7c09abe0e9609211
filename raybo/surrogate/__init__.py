"""The surrogate: an exact Gaussian process, what is assumed of f, and how its hyperparameters are found."""

from raybo.surrogate.fit import fit_map
from raybo.surrogate.gp import GP
from raybo.surrogate.kernels import KERNELS, KernelName
from raybo.surrogate.likelihood import Likelihood, Observations, cholesky
from raybo.surrogate.model import Flat, Gamma, Hyperparameter, LogNormal, Model
from raybo.surrogate.outputs import Standardised

__all__ = [
    "GP",
    "KERNELS",
    "Flat",
    "Gamma",
    "Hyperparameter",
    "KernelName",
    "Likelihood",
    "LogNormal",
    "Model",
    "Observations",
    "Standardised",
    "cholesky",
    "fit_map",
]
