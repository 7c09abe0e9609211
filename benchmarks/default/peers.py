"""Other libraries' tuners as they come, behind ask and tell.

Each is optional: a missing one raises ImportError with the package to install. HEBO 0.3.6 runs in an environment of
its own, with numpy below 2 and scikit-learn below 1.6, though it asks for a numpy that is older than raybo's and a
pymoo that is not compiled any more: it is installed without what it depends on, see PACKAGES.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import raybo
from benchmarks.conditional import suggested
from raybo.space import Array, Config


@dataclass(frozen=True)
class Named:
    """A trial of a peer: its configuration, and what the peer calls it."""

    config: Config
    handle: Any


class Optuna:
    """A sampler of Optuna. Conditional spaces are asked branch by branch."""

    def __init__(self, space: raybo.Space, seed: int, sampler: str) -> None:
        import optuna

        from raybo.integrations.optuna import RayboSampler

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        make = RayboSampler if sampler == RayboSampler.__name__ else getattr(optuna.samplers, sampler)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._study = optuna.create_study(sampler=make(seed=seed))
        self._space, self._failed = space, optuna.trial.TrialState.FAIL

    def ask(self) -> Named:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            trial = self._study.ask()
            return Named(suggested(trial, self._space.template, ()), trial)

    def tell(self, trial: Named, value: float) -> None:
        self._study.tell(trial.handle, value)

    def fail(self, trial: Named, reason: str) -> None:
        self._study.tell(trial.handle, state=self._failed)


class BoTorch:
    """SingleTaskGP with its defaults, log expected improvement, multi-start L-BFGS-B; ten Sobol points first.

    Configurations are relaxed to the cube and rounded; a failed trial counts as the worst value seen.
    """

    def __init__(self, space: raybo.Space, seed: int, initial: int = 10) -> None:
        import torch
        from scipy.stats import qmc

        torch.set_num_threads(1)
        torch.manual_seed(seed)
        self._space = space
        self._design = qmc.Sobol(space.d, rng=np.random.default_rng(seed)).random(16)[:initial]
        self._X: list[Array] = []
        self._y: list[float] = []
        self._asked = 0

    def ask(self) -> Named:
        x = self._design[self._asked] if self._asked < len(self._design) else self._proposed()
        self._asked += 1
        config = self._space.decode(x[None, :])[0]
        return Named(config, self._space.encode([config])[0])

    def _proposed(self) -> Array:
        import torch
        from botorch.acquisition import LogExpectedImprovement
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import SingleTaskGP
        from botorch.models.transforms import Standardize
        from botorch.optim import optimize_acqf
        from gpytorch.mlls import ExactMarginalLogLikelihood

        y = np.array(self._y)
        y = np.where(np.isfinite(y), y, np.max(y[np.isfinite(y)], initial=0.0))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tX, ty = torch.tensor(np.array(self._X)), -torch.tensor(y)[:, None]
            model = SingleTaskGP(tX, ty, outcome_transform=Standardize(1))
            fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
            worth = LogExpectedImprovement(model, best_f=ty.max())
            bounds = torch.tensor([[0.0] * self._space.d, [1.0] * self._space.d], dtype=torch.float64)
            found, _ = optimize_acqf(worth, bounds, q=1, num_restarts=10, raw_samples=512)
        x: Array = found.numpy()[0]
        return x

    def tell(self, trial: Named, value: float) -> None:
        self._X.append(trial.handle)
        self._y.append(value)

    def fail(self, trial: Named, reason: str) -> None:
        self.tell(trial, math.inf)


def flat(space: raybo.Space) -> dict[str, Any]:
    """A space's parameters by name; ValueError if one is open only under conditions."""
    if space.cube.is_conditional:
        raise ValueError("this peer knows no conditional space")
    return dict(zip(space.names, space.parameters.values(), strict=True))


class Hebo:
    """HEBO as it comes. A failed trial counts as the worst value seen."""

    def __init__(self, space: raybo.Space, seed: int) -> None:
        import torch
        from hebo.design_space.design_space import DesignSpace
        from hebo.optimizers.hebo import HEBO

        rows: list[dict[str, Any]] = []
        for name, p in flat(space).items():
            if isinstance(p, raybo.Categorical):
                rows.append({"name": name, "type": "cat", "categories": list(p.choices)})
            elif isinstance(p, raybo.Integer):
                rows.append({"name": name, "type": "pow_int" if p.log else "int", "lb": p.low, "ub": p.high})
            else:
                rows.append({"name": name, "type": "pow" if p.log else "num", "lb": p.low, "ub": p.high})
        self._optimiser = HEBO(DesignSpace().parse(rows), scramble_seed=seed)
        np.random.seed(seed)  # noqa: NPY002 - HEBO draws from it
        torch.manual_seed(seed)
        self._worst = -math.inf

    def ask(self) -> Named:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rows = self._optimiser.suggest(1)
        return Named({k: getattr(v, "item", lambda v=v: v)() for k, v in rows.iloc[0].items()}, rows)

    def tell(self, trial: Named, value: float) -> None:
        self._worst = max(self._worst, value)
        self._optimiser.observe(trial.handle, np.array([[value]]))

    def fail(self, trial: Named, reason: str) -> None:
        self.tell(trial, self._worst if math.isfinite(self._worst) else 0.0)


class Smac:
    """SMAC3's facade for hyperparameters, deterministic."""

    def __init__(self, space: raybo.Space, seed: int) -> None:
        import tempfile

        from ConfigSpace import Categorical, ConfigurationSpace, Float, Integer
        from smac import HyperparameterOptimizationFacade, Scenario

        known = ConfigurationSpace(seed=seed)
        self._choices: dict[str, list[Any]] = {}
        for name, p in flat(space).items():
            if isinstance(p, raybo.Categorical):
                self._choices[name] = list(p.choices)
                known.add(Categorical(name, list(range(len(p.choices)))))
            elif isinstance(p, raybo.Integer):
                known.add(Integer(name, (p.low, p.high), log=p.log))
            else:
                known.add(Float(name, (p.low, p.high), log=p.log))
        folder = tempfile.mkdtemp(prefix="smac")
        scenario = Scenario(known, deterministic=True, n_trials=10_000, seed=seed, output_directory=folder)
        design = HyperparameterOptimizationFacade.get_initial_design(scenario, n_configs=10)
        self._facade = HyperparameterOptimizationFacade(
            scenario, lambda config, seed=0: 0.0, initial_design=design, overwrite=True, logging_level=False
        )

    def ask(self) -> Named:
        info = self._facade.ask()
        config = dict(info.config)
        return Named({k: self._choices[k][v] if k in self._choices else v for k, v in config.items()}, info)

    def tell(self, trial: Named, value: float) -> None:
        from smac.runhistory.dataclasses import TrialValue

        self._facade.tell(trial.handle, TrialValue(cost=value))

    def fail(self, trial: Named, reason: str) -> None:
        from smac.runhistory.dataclasses import TrialValue
        from smac.runhistory.enumerations import StatusType

        self._facade.tell(trial.handle, TrialValue(cost=math.inf, status=StatusType.CRASHED))


ONE_BY_ONE = {"botorch", "hebo"}  # nothing is said to them of the trials that run
PEERS: dict[str, Callable[[raybo.Space, int], Any]] = {
    "optuna": lambda space, seed: Optuna(space, seed, "TPESampler"),
    "optuna-gp": lambda space, seed: Optuna(space, seed, "GPSampler"),
    "optuna-raybo": lambda space, seed: Optuna(space, seed, "RayboSampler"),
    "botorch": BoTorch,
    "hebo": Hebo,
    "smac": Smac,
}
PACKAGES = {
    "optuna": "optuna",
    "optuna-gp": "optuna torch",
    "optuna-raybo": "optuna",
    "botorch": "botorch",
    "hebo": "'numpy<2' 'scikit-learn<1.6' 'pandas<2.3' pymoo==0.6.1.3 torch gpytorch disjoint-set; "
    "pip install --no-deps HEBO==0.3.6",
    "smac": "'smac>=2.4'",
}
