"""One suggestion of raybo beside one of BoTorch and of Optuna's GPSampler: time, and regret after equal evaluations.

pip install 'raybo[benchmarks]' && python -m benchmarks.rivals [--seeds 10] [--trials 60] [--methods auto,ei]

Time: median over the asks around n = 100 in 6 dimensions, on one thread, each told in turn, in one run. BoTorch:
SingleTaskGP, log EI, `optimize_acqf` with 10 restarts and 512 raw samples. Optuna: GPSampler as it comes. Quality:
simple regret on four functions after `--trials` evaluations, median and quartiles over the seeds, ten Sobol points
first for BoTorch and raybo, Optuna's own start-up for Optuna.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import raybo
from raybo.threads import limit_threads
from trials.synthetic import PROBLEMS

FUNCTIONS = ("branin", "hartmann6", "ackley", "rosenbrock")
Ask = Callable[[], dict[str, float]]
Tell = Callable[[dict[str, float], float], None]


def raybo_rival(space: raybo.Space, method: str, seed: int, trials: int) -> tuple[Ask, Tell]:
    """A searcher of ours, minimising."""
    searcher = raybo.Searcher(space, method=method, mode="min", seed=seed, trials=trials)
    asked: list[Any] = []

    def ask() -> dict[str, float]:
        asked.append(searcher.ask())
        return dict(asked[-1].config)

    return ask, lambda config, value: searcher.tell(asked[-1], value) and None


def botorch_rival(space: raybo.Space, seed: int, initial: int = 10) -> tuple[Ask, Tell]:
    """SingleTaskGP with its defaults, log EI and multi-start L-BFGS-B, minimising."""
    import torch
    from botorch.acquisition import LogExpectedImprovement
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from botorch.models.transforms import Standardize
    from botorch.optim import optimize_acqf
    from gpytorch.mlls import ExactMarginalLogLikelihood
    from scipy.stats import qmc

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    design = space.decode(qmc.Sobol(space.d, rng=np.random.default_rng(seed)).random(16)[:initial])
    X: list[np.ndarray] = []
    y: list[float] = []
    bounds = torch.tensor([[0.0] * space.d, [1.0] * space.d], dtype=torch.float64)

    def ask() -> dict[str, float]:
        if len(y) < initial:
            return design[len(y)]
        tX, ty = torch.tensor(np.array(X)), -torch.tensor(y, dtype=torch.float64)[:, None]
        model = SingleTaskGP(tX, ty, outcome_transform=Standardize(1))
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        acquisition = LogExpectedImprovement(model, best_f=ty.max())
        found, _ = optimize_acqf(acquisition, bounds, q=1, num_restarts=10, raw_samples=512)
        return space.decode(found.numpy())[0]

    def tell(config: dict[str, float], value: float) -> None:
        X.append(space.encode([config])[0])
        y.append(value)

    return ask, tell


def optuna_rival(space: raybo.Space, seed: int) -> tuple[Ask, Tell]:
    """GPSampler with its defaults, minimising."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=optuna.samplers.GPSampler(seed=seed), direction="minimize")
    distributions = {
        name: optuna.distributions.FloatDistribution(p.low, p.high)
        for name, p in zip(space.names, space.parameters.values(), strict=True)
    }
    asked: list[Any] = []

    def ask() -> dict[str, float]:
        asked.append(study.ask(distributions))
        return dict(asked[-1].params)

    return ask, lambda config, value: study.tell(asked[-1], value) and None


def rivals(methods: list[str], space: raybo.Space, seed: int, trials: int) -> dict[str, tuple[Ask, Tell]]:
    """Everybody, fresh."""
    ours = {f"raybo {method}": raybo_rival(space, method, seed, trials) for method in methods}
    return {**ours, "BoTorch": botorch_rival(space, seed), "Optuna GPSampler": optuna_rival(space, seed)}


def signed(name: str, config: dict[str, float]) -> float:
    """The problem's value, to be minimised."""
    known = PROBLEMS[name]
    result = known.objective(config)
    value = result[known.objective.metric] if isinstance(result, dict) else result
    return float(value if known.mode == "min" else -value)


def time_table(methods: list[str], n: int, asks: int) -> None:
    """Milliseconds of a suggestion around n observations of Hartmann-6."""
    space = PROBLEMS["hartmann6"].objective.space
    print(f"one suggestion around n = {n}, d = {space.d}, one thread: median over {asks} asks")
    medians = {}
    for name, (ask, tell) in rivals(methods, space, 0, n + asks).items():
        seconds = []
        for i in range(n + asks // 2):
            begun = time.perf_counter()
            config = ask()
            if i >= n - asks // 2:
                seconds.append(time.perf_counter() - begun)
            tell(config, signed("hartmann6", config))
        medians[name] = statistics.median(seconds)
    for name, median in medians.items():
        ratios = "  ".join(f"{medians[m] / median:6.1f} x {m}" for m in ("BoTorch", "Optuna GPSampler"))
        print(f"  {name:18s} {1e3 * median:8.1f} ms   time of the others over it: {ratios}", flush=True)


def quality_table(methods: list[str], seeds: int, trials: int) -> None:
    """Simple regret after the same number of evaluations."""
    print(f"simple regret after {trials} evaluations: median [quartiles] over {seeds} seeds")
    for problem in FUNCTIONS:
        space, optimum = PROBLEMS[problem].objective.space, PROBLEMS[problem].optimum
        best: dict[str, list[float]] = {}
        for seed in range(seeds):
            for name, (ask, tell) in rivals(methods, space, seed, trials).items():
                lowest = np.inf
                for _ in range(trials):
                    config = ask()
                    value = signed(problem, config)
                    tell(config, value)
                    lowest = min(lowest, value)
                best.setdefault(name, []).append(lowest - optimum)
        for name, regrets in best.items():
            low, median, high = np.quantile(regrets, [0.25, 0.5, 0.75])
            print(f"  {problem:12s} {name:18s} {median:9.2e} [{low:.2e}, {high:.2e}]", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", default="auto,ei")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--asks", type=int, default=20)
    parser.add_argument("--only", choices=["time", "quality"])
    arguments = parser.parse_args()
    methods = arguments.methods.split(",")
    warnings.simplefilter("ignore")  # of the rivals' experimental features
    with limit_threads(1):
        if arguments.only != "quality":
            time_table(methods, 100, arguments.asks)
        if arguments.only != "time":
            quality_table(methods, arguments.seeds, arguments.trials)


if __name__ == "__main__":
    main()
