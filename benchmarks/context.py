"""Time of the methods over contexts, side by side in one run on one thread.

python -m benchmarks.context [--evaluations 100] [--seeds 1] [--methods gp-ucb,sbo-kde,...] [--ask 100]

First the whole studies of the published runtime comparison: 100 evaluations of Ackley's function in two numbers and one
context, 10 of them the design. Then where the time of one suggestion of sbo-kde goes, with 1,024 atoms.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np

from raybo import methods
from raybo.acquisition import ContextConfidence
from raybo.context import Density, Expectation, best_expected, fit_joint
from raybo.history import Event, History, Kind
from raybo.space import Array, Float, Space
from raybo.threads import limit_threads

METHODS = "gp-ucb,sbo-kde,drbo-kde,stableopt,drbo-mmd-minimax,drbo-mmd"
PUBLISHED = {  # seconds for 100 evaluations, Huang et al. (2024), table 1
    "gp-ucb": 11.35,
    "sbo-kde": 30.57,
    "drbo-kde": 180.61,
    "stableopt": 32.75,
    "drbo-mmd-minimax": 119.04,
    "drbo-mmd": 5254.65,
}
DECISIONS, CONTEXTS = Space({"x1": Float(0, 1), "x2": Float(0, 1)}), Space({"c": Float(0, 1)})


def ackley(x: Array, c: Array) -> float:
    """On [0, 1]^3, maximised; 0 at the middle."""
    z = 65.536 * np.concatenate([x, c]) - 32.768
    return float(20.0 * np.exp(-0.2 * np.sqrt(np.mean(z * z))) + np.exp(np.mean(np.cos(2.0 * np.pi * z))) - 20.0 - np.e)


def study(name: str, evaluations: int, seed: int) -> tuple[History, float]:
    """A whole study's history, and the seconds that its proposals took."""
    history, environment = History(DECISIONS.cube, 1.0, CONTEXTS.cube), np.random.default_rng(seed)
    method, seconds = methods.make(name, kappa=1.5, initial=10), 0.0
    for number in range(evaluations):
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(number,)))
        begun = time.process_time()
        proposal = method.propose(history, rng)
        seconds += time.process_time() - begun
        c = np.clip(environment.normal(0.5, 0.15, 1), 0.0, 1.0)
        history.apply(Event(Kind.ASKED, number, {"x": proposal.x.tolist(), "tags": proposal.tags}))
        history.apply(Event(Kind.TOLD, number, {"value": ackley(proposal.x, c), "c": c.tolist()}))
    return history, seconds


def median_seconds(action: Callable[[], object], repeats: int = 7) -> float:
    """Of several calls of a function without arguments."""
    seconds = []
    for _ in range(repeats):
        begun = time.process_time()
        action()
        seconds.append(time.process_time() - begun)
    return statistics.median(seconds)


def where_it_goes(n: int) -> None:
    """The parts of one suggestion of sbo-kde with n finished trials."""
    history, _ = study("sbo-kde", n, 0)
    rng = np.random.default_rng(0)
    density = Density.of(history.contexts, CONTEXTS.cube)
    joint = fit_joint(history, density, rng)
    acquisitions = {}
    for m in (64, 1024):
        atoms, p = density.atoms(m, rng)
        acquisitions[m] = ContextConfidence(joint.gp, atoms, Expectation(p), 1.5)
    some, one = rng.random((512, 2)), rng.random((1, 2))
    method = methods.make("sbo-kde", kappa=1.5, initial=10)
    parts = {
        "the whole suggestion": lambda: method.propose(history, np.random.default_rng(1)),
        "density and 1,024 atoms": lambda: Density.of(history.contexts, CONTEXTS.cube).atoms(1024, rng),
        "fit from nothing": lambda: fit_joint(history, density, rng),
        "512 candidates, 64 atoms": lambda: acquisitions[64].value(some),
        "one gradient, 1,024 atoms": lambda: acquisitions[1024].value_and_gradient(one),
        "the recommendation": lambda: best_expected(history),
    }
    for part, action in parts.items():
        print(f"  {part:26s} {1e3 * median_seconds(action):8.1f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--evaluations", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--methods", default=METHODS)
    parser.add_argument("--ask", type=int, default=100, help="finished trials of the suggestion that is taken apart")
    arguments = parser.parse_args()
    with limit_threads(1):
        study("sbo-kde", 12, 0)  # loads what is loaded once
        print(f"{arguments.evaluations} evaluations of Ackley 2+1, seconds of one processor (published: 100)")
        print(f"{'method':18s} {'seconds':>8s} {'/ sbo-kde':>10s} {'published':>10s} {'/ sbo-kde':>10s}")
        names = arguments.methods.split(",")
        rounds: dict[str, list[float]] = {name: [] for name in names}
        for seed in range(arguments.seeds):
            for name in names:
                rounds[name].append(study(name, arguments.evaluations, seed)[1])
        seconds = {name: statistics.median(values) for name, values in rounds.items()}
        base = seconds.get("sbo-kde", float("nan"))
        for name in names:
            published = PUBLISHED.get(name, float("nan"))
            print(
                f"{name:18s} {seconds[name]:8.2f} {seconds[name] / base:10.2f} {published:10.2f} "
                f"{published / PUBLISHED['sbo-kde']:10.2f}"
            )
        print(f"sbo-kde with {arguments.ask} finished trials")
        where_it_goes(arguments.ask)


if __name__ == "__main__":
    main()
