"""The rivals of raybo in `benchmarks.goals`: each makes a pair of functions, ask and tell.

BoTorch: a SingleTaskGP for each number, qLogNEHVI with the problem's reference, constrained log EI; ten Sobol points
first; for numbers alone. Optuna: its samplers as they come, constraints given to them; NSGA-II with generations of 20,
as the usual 50 would leave 60 evaluations to chance.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

import raybo
from benchmarks.conditional import suggested
from raybo.space import Array

Ask: TypeAlias = Callable[[], dict[str, Any]]
Tell: TypeAlias = Callable[[dict[str, float]], object]  # of what was asked last

INITIAL = 10
OURS = ("auto", "ei", "gp-ucb", "random")
RIVALS = {"BoTorch": "botorch", "Optuna GP": "optuna", "Optuna TPE": "optuna", "NSGA-II": "optuna"}


def searcher(name: str, space: raybo.Space, goals: Any, reference: Sequence[float], seed: int, n: int) -> Any:
    """Ask and tell of a method of ours, or a rival, for the goals.

    Args:
        reference: for BoTorch, above which volume counts, in the user's units; empty with one metric.
        n: how many trials are planned.
    """
    if name in RIVALS:
        make = _botorch if name == "BoTorch" else _optuna
        return make(name, space, goals, reference, seed)
    wanted: dict[str, Any] = {"metrics": goals.metrics, "constraints": goals.rules, "metric": goals.names[0]}
    ours = raybo.Searcher(space, name, goals.modes[0], seed, n, **wanted)
    asked: list[Any] = []

    def ask() -> dict[str, Any]:
        asked.append(ours.ask())
        return dict(asked[-1].config)

    return ask, lambda told: ours.tell(asked[-1], told)


def _optuna(name: str, space: raybo.Space, goals: Any, reference: Sequence[float], seed: int) -> tuple[Ask, Tell]:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    limits = (lambda trial: trial.user_attrs["constraints"]) if goals.constraints else None
    samplers: dict[str, Any] = {
        "Optuna GP": optuna.samplers.GPSampler,
        "Optuna TPE": optuna.samplers.TPESampler,
        "NSGA-II": optuna.samplers.NSGAIISampler,
    }
    more = {"population_size": 20} if name == "NSGA-II" else {}
    sampler = samplers[name](seed=seed, constraints_func=limits, **more)
    study = optuna.create_study(directions=["maximize"] * goals.k, sampler=sampler)
    asked: list[Any] = []

    def ask() -> dict[str, Any]:
        asked.append(study.ask())
        config: dict[str, Any] = suggested(asked[-1], space.template, ())
        return config

    def tell(told: dict[str, float]) -> None:
        if goals.constraints:
            asked[-1].set_user_attr("constraints", (-goals.margins(told)).tolist())
        study.tell(asked[-1], goals.maximised(told).tolist())

    return ask, tell


def _botorch(name: str, space: raybo.Space, goals: Any, reference: Sequence[float], seed: int) -> tuple[Ask, Tell]:
    import torch
    from botorch.acquisition.analytic import LogConstrainedExpectedImprovement, LogProbabilityOfFeasibility
    from botorch.acquisition.multi_objective.logei import qLogNoisyExpectedHypervolumeImprovement
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import ModelListGP, SingleTaskGP
    from botorch.models.transforms import Standardize
    from botorch.optim import optimize_acqf
    from gpytorch.mlls import SumMarginalLogLikelihood
    from scipy.stats import qmc

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    warnings.simplefilter("ignore")
    design = qmc.Sobol(space.d, rng=np.random.default_rng(seed)).random(16)[:INITIAL]
    X: list[Array] = []
    Y: list[Array] = []
    bounds = torch.tensor([[0.0] * space.d, [1.0] * space.d], dtype=torch.float64)
    k = goals.k

    def proposed() -> Any:
        tX, tY = torch.tensor(np.array(X)), torch.tensor(np.array(Y))
        models = [SingleTaskGP(tX, tY[:, [j]], outcome_transform=Standardize(1)) for j in range(tY.shape[1])]
        model = ModelListGP(*models)
        fit_gpytorch_mll(SumMarginalLogLikelihood(model.likelihood, model))
        if k > 1:
            point = goals.maximised(dict(zip(goals.names, reference, strict=True)))
            worth: Any = qLogNoisyExpectedHypervolumeImprovement(model, point.tolist(), tX, prune_baseline=True)
        else:
            limits = {j: (0.0, None) for j in range(1, tY.shape[1])}  # margins must not be negative
            feasible = (tY[:, 1:] >= 0.0).all(dim=1)
            if feasible.any():
                worth = LogConstrainedExpectedImprovement(model, tY[feasible, 0].max(), 0, limits)
            else:
                worth = LogProbabilityOfFeasibility(model, limits)
        found, _ = optimize_acqf(worth, bounds, q=1, num_restarts=10, raw_samples=512)
        return found.numpy()

    def ask() -> dict[str, Any]:
        point = design[[len(X)]] if len(X) < INITIAL else proposed()
        X.append(space.snap(point)[0])
        config: dict[str, Any] = space.decode(point)[0]
        return config

    def tell(told: dict[str, float]) -> None:
        Y.append(np.concatenate([goals.maximised(told), goals.margins(told)]))

    return ask, tell
