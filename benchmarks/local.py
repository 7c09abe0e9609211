"""Local methods: one step with many axes beside the same step made of BoTorch's parts, and studies of la-min-ucb.

A step is what min-ucb does in an iteration: a fit of all hyperparameters to the results, `batch` exploration points
chosen one after the other (64 raw points and 5 climbs each), and the move to the highest lower bound. Both sides do it
on the same results, on one thread, from the same start of the hyperparameters. BoTorch's side uses its standard parts:
fit_gpytorch_mll, optimize_acqf, and the trace criterion in torch, whose solves with the data's covariance are made once
a point. All seconds are the processor's, so that what else the machine does hardly matters; a study's are those of its
asks. CartPole is one episode an evaluation, as in the experiment local-fig3-cartpole.
"""

from __future__ import annotations

import contextlib
import importlib.util
import time
import warnings
from functools import partial
from typing import Any, Literal

import numpy as np

import raybo
from benchmarks.figures import Figure, Figures, at_least, at_most, command, missing
from benchmarks.searches import processes, published
from raybo.common.threads import limit_threads
from raybo.methods.many_dimensions import min_ucb  # so that scipy's threads are there to be limited
from raybo.record.events import Asked, Told
from raybo.record.history import History
from trials.papers.local import EXPERIMENTS, OURS

QUICK = {"rounds": 1, "seeds": 2}
DELTA, NOISE, BETA, LOW, HIGH = 0.2, 0.01, 3.0, 0.05, 2.0


def points(n: int, d: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Points around the cube's centre, as local search leaves them, and noisy values of a smooth function there."""
    rng = np.random.default_rng(seed)
    X = 0.5 + 2.0 * DELTA * (rng.random((n, d)) - 0.5)
    return X, smooth(X, 1) + 0.1 * rng.standard_normal(n)


def smooth(X: np.ndarray, seed: int) -> np.ndarray:
    """A function drawn from a prior with length-scale 0.15 sqrt(d), by 500 random features."""
    rng = np.random.default_rng(seed)
    d = X.shape[1]
    waves = X @ (rng.standard_normal((500, d)) / (0.15 * np.sqrt(d))).T + 2.0 * np.pi * rng.random(500)
    return np.asarray(np.cos(waves) @ rng.standard_normal(500) * np.sqrt(2.0 / 500))


def raybo_step(X: np.ndarray, y: np.ndarray, batch: int) -> tuple[float, float, float]:
    """Seconds of the fit (with the first exploration point), of the other exploration points, and of the move."""
    n, d = X.shape
    space = raybo.Space({f"x{i}": raybo.Float(0, 1) for i in range(d)})
    method = min_ucb.MinUcb(batch=batch, window=n, delta=DELTA, noise_variance=NOISE, start="best")
    history = History(space.cube)
    for x, value in zip(X, y, strict=True):
        tell(history, x, {}, float(value))
    seconds = []
    for i in range(batch + 2):
        begun = time.process_time()
        proposal = method.propose(history, np.random.default_rng(i))
        seconds.append(time.process_time() - begun)
        tell(history, proposal.x, proposal.tags, float(smooth(proposal.x[None, :], 1)[0]))
    return seconds[1], sum(seconds[2:-1]), seconds[-1]


def tell(history: History, x: np.ndarray, tags: dict[str, Any], value: float) -> None:
    """Enter a finished trial."""
    number = len(history)
    history.apply(Asked(number, x=x.tolist(), tags=tags))
    history.apply(Told(number, value=value))


def botorch_step(X: np.ndarray, y: np.ndarray, batch: int) -> tuple[float, float, float]:
    """The same with BoTorch's parts; ImportError if they are missing."""
    import torch
    from botorch.acquisition import AcquisitionFunction
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from botorch.optim import optimize_acqf
    from gpytorch.constraints import Interval
    from gpytorch.kernels import RBFKernel, ScaleKernel
    from gpytorch.mlls import ExactMarginalLogLikelihood

    torch.set_num_threads(1)
    torch.manual_seed(0)
    points = torch.tensor(X)
    values = torch.tensor((y - y.mean()) / y.std())[:, None]
    centre = points[int(np.argmax(y))]
    d = X.shape[1]

    class TraceReduction(AcquisitionFunction):  # type: ignore[misc]
        """c(z)'c(z) / (var(z) + noise), with the solves that do not depend on z made once."""

        def __init__(self, model: Any, known: Any) -> None:
            super().__init__(model)
            base = model.covar_module.base_kernel
            self.scale, self.lengthscale = model.covar_module.outputscale.detach(), base.lengthscale.detach()[0]
            self.known = known
            K = self.kernel(known, known)
            self.L = torch.linalg.cholesky(K + NOISE * torch.eye(len(known), dtype=K.dtype))
            G = -self.kernel(centre[None], known)[0, :, None] * (centre - known) / self.lengthscale**2
            self.B = torch.cholesky_solve(G, self.L)

        def kernel(self, A: Any, B: Any) -> Any:
            return self.scale * torch.exp(-0.5 * torch.cdist(A / self.lengthscale, B / self.lengthscale) ** 2)

        def forward(self, Z: Any) -> Any:
            Z = Z[:, 0, :]
            near = self.scale * torch.exp(-0.5 * (((centre - Z) / self.lengthscale) ** 2).sum(-1))
            K = self.kernel(Z, self.known)
            c = -near[:, None] * (centre - Z) / self.lengthscale**2 - K @ self.B
            half = torch.linalg.solve_triangular(self.L, K.T, upper=False)
            return (c * c).sum(-1) / (self.scale - (half * half).sum(0) + NOISE)

    class LowerConfidence(AcquisitionFunction):  # type: ignore[misc]
        """mean - beta std."""

        def forward(self, Z: Any) -> Any:
            posterior = self.model.posterior(Z[:, 0, :])
            return posterior.mean[:, 0] - BETA * posterior.variance[:, 0].sqrt()

    begun = time.process_time()
    covariance = ScaleKernel(RBFKernel(ard_num_dims=d, lengthscale_constraint=Interval(LOW, HIGH)))
    model = SingleTaskGP(
        points, values, torch.full_like(values, NOISE), covar_module=covariance, outcome_transform=None
    )
    model.covar_module.base_kernel.lengthscale = 0.5 * (LOW + HIGH)
    model.covar_module.outputscale = 2.0
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    fitted = time.process_time()
    known = points
    box = torch.stack([(centre - DELTA).clamp(0, 1), (centre + DELTA).clamp(0, 1)])
    for _ in range(batch):
        z, _ = optimize_acqf(TraceReduction(model, known), box, q=1, num_restarts=5, raw_samples=64)
        known = torch.cat([known, z])
    explored = time.process_time()
    optimize_acqf(
        LowerConfidence(model),
        torch.stack([torch.zeros(d), torch.ones(d)]).double(),
        q=1,
        num_restarts=14,
        batch_initial_conditions=points[torch.argsort(values[:, 0], descending=True)[:14], None, :],
    )
    return fitted - begun, explored - fitted, time.process_time() - explored


def study(evaluations: int, d: int, form: Literal["one-shot", "finite"]) -> tuple[float, float, float]:
    """Seconds of all asks of a study with la-min-ucb, the longest one, and the best noise-free value of its centres."""
    space = raybo.Space({f"x{i}": raybo.Float(0, 1) for i in range(d)})
    searcher = raybo.Searcher(space, "la-min-ucb", "max", seed=0, look_ahead=form, start="centre")
    rng = np.random.default_rng(0)
    seconds, best = [], -np.inf
    for _ in range(evaluations):
        begun = time.process_time()
        trial = searcher.ask()
        seconds.append(time.process_time() - begun)
        value = float(smooth(np.array([list(trial.config.values())]), 1)[0])
        if trial.tags["role"] == "centre":
            best = max(best, value)
        searcher.tell(trial, value + 0.1 * float(rng.standard_normal()))
    return sum(seconds), max(seconds), best


def cart_pole(evaluations: int, seed: int) -> float:
    """The best return that la-min-ucb sees on CartPole, as in the experiment local-fig3-cartpole."""
    experiment = next(experiment for experiment in EXPERIMENTS if experiment.name == "local-fig3-cartpole")
    entry = next(entry for entry in experiment.entries if entry.name == OURS)
    return float(published(experiment.problems[0], entry, seed, evaluations).metric("return").max())


def figures(
    dimensions: int = 100, results: int = 500, batch: int = 20, rounds: int = 3, evaluations: int = 300, seeds: int = 5
) -> Figures:
    """The step beside BoTorch's, studies of la-min-ucb, and CartPole."""
    with limit_threads(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # BoTorch's, about inputs that are not standardised and the like
        yield from steps(dimensions, results, batch, rounds)
        for form in ("one-shot", "finite"):
            total, longest, best = study(evaluations, 25, form)
            what = f"la-min-ucb, {form}, {evaluations} evaluations, d = 25"
            yield at_most(60, total, what, "s", f"longest ask {longest:.2f} s, best centre {best:.3f}")
    what, target = f"CartPole, seeds of {seeds} that reach 500 within 50 evaluations", f"at least {seeds // 2 + 1}"
    if importlib.util.find_spec("gymnasium") is None or importlib.util.find_spec("mujoco") is None:
        yield missing(what, "gymnasium[mujoco]", target)
        return
    with processes() as pool:
        best_returns = list(pool.map(partial(cart_pole, 50), range(seeds)))
    reached = sum(value >= 500 for value in best_returns)
    yield Figure(what, str(reached), target, reached > seeds // 2)


def steps(d: int, n: int, batch: int, rounds: int) -> Figures:
    """BoTorch's step over ours."""
    ours, theirs = [], []
    what = f"BoTorch's step over min-ucb's, d = {d}, n = {n}, {batch} points"
    for seed in range(rounds):
        X, y = points(n, d, seed)
        ours.append(raybo_step(X, y, batch))
        with contextlib.suppress(ImportError):
            theirs.append(botorch_step(X, y, batch))
    median = np.median([sum(parts) for parts in ours])
    fit, explore, move = np.median(ours, axis=0)
    if theirs:
        other = np.median([sum(parts) for parts in theirs])
        yield at_least(5, other / median, what, note=f"{other:.1f} and {median:.2f} s, median of {rounds}")
    else:
        yield missing(what, "botorch", "at least 5 times")
    yield Figure("min-ucb's step: fit, exploration, move", f"{fit:.2f}, {explore:.2f} and {move:.2f} s")


if __name__ == "__main__":
    command(figures)
