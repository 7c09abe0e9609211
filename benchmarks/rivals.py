"""One suggestion of raybo beside one of BoTorch and of Optuna's GPSampler: time, and regret after equal evaluations.

pip install 'raybo[benchmarks]' for both of them. Time: processor seconds, median over the asks around n = 100 in 6
dimensions, on one thread, each told in turn, in one run. BoTorch: SingleTaskGP, log EI, `optimize_acqf` with 10
restarts and 512 raw samples. Optuna: GPSampler as it comes. Quality: simple regret on four functions after `--trials`
evaluations, median and quartiles over the seeds, ten Sobol points first for BoTorch and raybo, Optuna's own start-up
for Optuna. `--seeds 0` leaves the quality out, `--asks 0` the time.
"""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import raybo
from benchmarks.figures import Figure, Figures, at_least, command, missing
from benchmarks.searches import processes
from raybo.common.threads import limit_threads
from trials.synthetic import PROBLEMS

QUICK = {"seeds": 1, "asks": 6, "problems": "branin,hartmann6"}
N = 100  # observations around which an ask is timed
Ask = Callable[[], dict[str, float]]
Tell = Callable[[dict[str, float], float], object]


def raybo_rival(space: raybo.Space, method: str, seed: int, trials: int) -> tuple[Ask, Tell]:
    """A searcher of ours, minimising."""
    searcher = raybo.Searcher(space, method=method, mode="min", seed=seed, trials=trials)
    asked: list[Any] = []

    def ask() -> dict[str, float]:
        asked.append(searcher.ask())
        return dict(asked[-1].config)

    return ask, lambda config, value: searcher.tell(asked[-1], value)


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
    distributions: dict[str, Any] = {
        name: optuna.distributions.FloatDistribution(parameter.low, parameter.high)
        for name, parameter in zip(space.names, space.parameters.values(), strict=True)
        if isinstance(parameter, raybo.Float)
    }
    asked: list[Any] = []

    def ask() -> dict[str, float]:
        asked.append(study.ask(distributions))
        return dict(asked[-1].params)

    return ask, lambda config, value: study.tell(asked[-1], value)


RIVALS: dict[str, tuple[str, float, Callable[[raybo.Space, int], tuple[Ask, Tell]]]] = {  # package, target, who
    "BoTorch": ("botorch", 10.0, botorch_rival),
    "Optuna's GPSampler": ("optuna, or the torch that it needs,", 5.0, optuna_rival),
}


def rival(name: str, space: raybo.Space, seed: int, trials: int) -> tuple[Ask, Tell]:
    """A rival by its name, or raybo with a method's; ImportError if it is missing."""
    return RIVALS[name][2](space, seed) if name in RIVALS else raybo_rival(space, name, seed, trials)


def signed(name: str, config: dict[str, float]) -> float:
    """The problem's value, to be minimised."""
    known = PROBLEMS[name]
    result = known.objective(config)
    value = result[known.objective.metric] if isinstance(result, dict) else result
    return float(value if known.mode == "min" else -value)


def ask_seconds(name: str, asks: int) -> float | None:
    """Median seconds of the asks around N observations of Hartmann-6; None if it, or what it needs, is missing."""
    seconds: list[float] = []
    try:
        searched("hartmann6", N + asks // 2, name, 0, seconds)
    except ImportError:
        return None
    return statistics.median(seconds[-asks:])


def regret(problem: str, trials: int, name: str, seed: int) -> float:
    """Simple regret of one search; NaN if the rival, or what it needs, is missing."""
    known = PROBLEMS[problem]
    try:
        lowest = searched(problem, trials, name, seed, [])
    except ImportError:
        return float("nan")
    return lowest - (known.optimum if known.mode == "min" else -known.optimum)


def searched(problem: str, trials: int, name: str, seed: int, seconds: list[float]) -> float:
    """The lowest value of one search on one thread; the seconds of each ask are added to the list."""
    ask, tell = rival(name, PROBLEMS[problem].objective.space, seed, trials)
    lowest = np.inf
    with limit_threads(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the rivals' experimental features
        for _ in range(trials):
            begun = time.process_time()
            config = ask()
            seconds.append(time.process_time() - begun)
            value = signed(problem, config)
            tell(config, value)
            lowest = min(lowest, value)
    return lowest


def times(methods: list[str], asks: int) -> Figures:
    """Each rival's suggestion over ours."""
    theirs = {name: ask_seconds(name, asks) for name in RIVALS}
    for method in methods:
        ours = ask_seconds(method, asks)
        assert ours is not None
        for name, seconds in theirs.items():
            package, target, _ = RIVALS[name]
            what = f"{name}'s suggestion over {method}'s, n = {N}, d = 6"
            if seconds is None:
                yield missing(what, package, f"at least {target:g} times")
            else:
                yield at_least(target, seconds / ours, what, note=f"{1e3 * seconds:.0f} and {1e3 * ours:.1f} ms")


def qualities(methods: list[str], problems: list[str], seeds: int, trials: int) -> Figures:
    """Our median regret on each problem, which should be no higher than each rival's."""
    with processes() as pool:
        for problem in problems:
            found = {
                name: np.quantile(
                    list(pool.map(partial(regret, problem, trials, name), range(seeds))), [0.25, 0.5, 0.75]
                )
                for name in (*methods, *RIVALS)
            }
            theirs = [found[name][1] for name in RIVALS if not np.isnan(found[name][1])]
            for name, (low, median, high) in found.items():
                what = f"{problem}, {name}, regret after {trials} evaluations, median of {seeds}"
                text = f"{median:.2g} [{low:.2g}, {high:.2g}]"
                if np.isnan(median):
                    yield missing(what, RIVALS[name][0])
                elif name in RIVALS or not theirs:
                    yield Figure(what, text)
                else:
                    yield Figure(what, text, f"at most {min(theirs):.2g}", bool(median <= min(theirs)))


def figures(
    methods: str = "auto",
    seeds: int = 10,
    trials: int = 60,
    asks: int = 20,
    problems: str = "branin,hartmann6,ackley,rosenbrock",
) -> Figures:
    """Times, and then qualities."""
    if asks:
        yield from times(methods.split(","), asks)
    if seeds:
        yield from qualities(methods.split(","), problems.split(","), seeds, trials)


if __name__ == "__main__":
    command(figures)
