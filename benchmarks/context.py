"""Methods over contexts: time side by side in one run on one thread, and regret beside the published code's.

First whole studies of the published runtime comparison: 100 evaluations of Ackley's function in two numbers and one
context, 10 of them the design, in seconds of the processor. Then one suggestion of sbo-kde with 1,024 atoms, and where
its time goes. Then the cumulative regret of the expectation on Ackley and Newsvendor, as in the experiments
context-fig1 and context-fig1-newsvendor; the targets are what the published code reaches, on Ackley its range's end.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial

import numpy as np

from benchmarks.figures import Figure, Figures, at_most, command
from benchmarks.searches import processes, published
from raybo import Searcher, methods
from raybo.acquisition import ContextConfidence
from raybo.common.threads import limit_threads
from raybo.context import Density, Expectation, best_expected, fit_joint
from raybo.experiments import Entry, Problem
from raybo.record.history import History
from trials.context import ackley
from trials.papers.unknown_context import ACKLEY, DRBO, FIRST_SEED, NEWSVENDOR, OPTIONS, SBO

QUICK = {"seeds": 2, "names": "sbo-kde,drbo-kde"}
PUBLISHED = {  # seconds for 100 evaluations, table 1
    "gp-ucb": 11.35,
    "sbo-kde": 30.57,
    "drbo-kde": 180.61,
    "stableopt": 32.75,
    "drbo-mmd-minimax": 119.04,
    "drbo-mmd": 5254.65,
}
TARGETS = {"drbo-kde": 3.0, "drbo-mmd": 20.0}  # times sbo-kde's
assert ackley.context is not None
DECISIONS, CONTEXTS = ackley.space, ackley.context
REGRETS = [  # and the highest that is as good as the published code
    (ACKLEY, SBO, 258.0),
    (ACKLEY, DRBO, 258.0),
    (NEWSVENDOR, SBO, 13.4),
    (NEWSVENDOR, DRBO, 13.8),
]


def study(name: str, evaluations: int) -> tuple[History, float]:
    """A whole study's history on Ackley, and the processor's seconds that its proposals took."""
    searcher = Searcher(DECISIONS, name, "max", 0, evaluations, CONTEXTS, **OPTIONS)
    seconds = 0.0
    for _ in range(evaluations):
        begun = time.process_time()
        trial = searcher.ask()
        seconds += time.process_time() - begun
        result = ackley(trial.config)
        searcher.tell(trial, result[ackley.metric], {name: result[name] for name in CONTEXTS.names})
    return searcher.history, seconds


def median_milliseconds(action: Callable[[], object], repeats: int = 7) -> float:
    """Of several calls of a function without arguments, by the processor's clock."""
    seconds = []
    for _ in range(repeats):
        begun = time.process_time()
        action()
        seconds.append(time.process_time() - begun)
    return 1e3 * statistics.median(seconds)


def parts(history: History) -> dict[str, Callable[[], object]]:
    """The parts of one suggestion of sbo-kde."""
    rng, cube = np.random.default_rng(0), CONTEXTS.cube
    density = Density.of(history.contexts, cube)
    joint = fit_joint(history, density, rng)
    acquisitions = {}
    for m in (64, 1024):
        atoms, p = density.atoms(m, rng)
        acquisitions[m] = ContextConfidence(joint.gp, atoms, Expectation(p), OPTIONS["kappa"])
    some, one = rng.random((512, 2)), rng.random((1, 2))
    return {
        "density and 1,024 atoms": lambda: Density.of(history.contexts, cube).atoms(1024, rng),
        "fit from nothing": lambda: fit_joint(history, density, rng),
        "512 candidates, 64 atoms": lambda: acquisitions[64].value(some),
        "one gradient, 1,024 atoms": lambda: acquisitions[1024].value_and_gradient(one),
        "the recommendation": lambda: best_expected(history),
    }


def cumulative_regret(problem: Problem, entry: Entry, seed: int) -> float:
    """Of the expectation over contexts, the design included."""
    assert problem.optimum is not None
    found = published(problem, entry, FIRST_SEED + seed)
    return float(np.sum(problem.optimum - found.metric("expected")))


def figures(names: str = ",".join(PUBLISHED), evaluations: int = 100, seeds: int = 5) -> Figures:
    """Times, one suggestion taken apart, regrets."""
    with limit_threads(1):
        study("sbo-kde", 12)  # loads what is loaded once
        history, base = study("sbo-kde", evaluations)
        for name in names.split(","):
            if name == "sbo-kde":
                yield Figure(f"{evaluations} suggestions of {name}", f"{base:.1f} s; published {PUBLISHED[name]:.0f} s")
                continue
            seconds = study(name, evaluations)[1]
            published = PUBLISHED[name] / PUBLISHED["sbo-kde"]
            note = f"{seconds:.1f} s; published {published:.1f} times, {PUBLISHED[name]:.0f} s"
            what = f"{evaluations} suggestions of {name} over sbo-kde's"
            found = at_most(TARGETS.get(name, np.inf), seconds / base, what, note=note)
            yield found if name in TARGETS else Figure(what, found.measured)
        method = methods.make("sbo-kde", **OPTIONS)
        taken = median_milliseconds(lambda: method.propose(history, np.random.default_rng(1)))
        yield at_most(250, taken, f"one suggestion of sbo-kde, n = {evaluations}, 1,024 atoms", "ms")
        detail = ", ".join(f"{part} {median_milliseconds(action):.1f}" for part, action in parts(history).items())
        yield Figure("its parts, in ms", detail)
    if seeds:
        with processes() as pool:
            for problem, entry, target in REGRETS:
                regrets = list(pool.map(partial(cumulative_regret, problem, entry), range(seeds)))
                what = f"cumulative regret, {problem.name}, {entry.name}, mean of {seeds}"
                yield at_most(target, statistics.mean(regrets), what, unit="")


if __name__ == "__main__":
    command(figures)
