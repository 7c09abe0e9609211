"""Measure how often a tuned server keeps people waiting: throughput alone beside throughput within a bound.

Studies of `trials/serving.py` by `sbo-kde`, in pairs of one seed: one of the throughput alone, one with the constraint
on the wait. What each recommends then serves sixty times five minutes under loads as they come, and twelve times under
the load that is exceeded one time in twenty.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from benchmarks.figures import Figure, Figures, command
from raybo import Searcher
from raybo.space import Config
from trials.serving import BOUND, SPREAD, USUAL, serve, serving

QUICK = {"seeds": 1, "trials": 25}
SECONDS, RUNS, TAIL_RUNS = 300.0, 60, 12
TAIL = USUAL * float(np.exp(1.645 * SPREAD))
WITHIN, ALONE = "within the bound", "throughput alone"


def recommended(seed: int, trials: int, limits: dict[str, str] | None) -> Config:
    """Return the configuration that a study recommends."""
    searcher = Searcher(
        serving.space,
        "sbo-kde",
        metric="throughput",
        seed=seed,
        trials=trials,
        context=serving.context,
        constraints=limits,
    )
    for number in range(trials):
        trial = searcher.ask()
        result = serving(trial.config, seed=1_000 * seed + number)
        searcher.tell(trial, result if limits else result["throughput"], context={"load": result["load"]})
    return searcher.recommended.config


def late(config: Config, loads: Iterable[float]) -> tuple[float, float]:
    """Return the share of runs in which the bound is broken, and tokens a second."""
    runs = [serve(config, load, SECONDS, np.random.default_rng([7, i])) for i, load in enumerate(loads)]
    return (
        float(np.mean([run["first_token"] > BOUND for run in runs])),
        float(np.mean([run["throughput"] for run in runs])),
    )


def figures(seeds: int = 5, trials: int = 60) -> Figures:
    usual = np.random.default_rng(5).lognormal(np.log(USUAL), SPREAD, RUNS).tolist()
    tokens = {}
    for name, limits in ((ALONE, None), (WITHIN, {"first_token": f"<= {BOUND}"})):
        configs = [recommended(seed, trials, limits) for seed in range(seeds)]
        as_they_come = [late(config, usual) for config in configs]
        at_tail = [late(config, [TAIL] * TAIL_RUNS)[0] for config in configs]
        tokens[name] = float(np.mean([rate for _, rate in as_they_come]))
        yield Figure(f"{name}: bound broken, loads as they come", listed(share for share, _ in as_they_come))
        yield Figure(f"{name}: bound broken at {TAIL:.1f} requests a second", listed(at_tail))
    lost = 100.0 * (1.0 - tokens[WITHIN] / tokens[ALONE])
    yield Figure(f"tokens a second, {WITHIN}", f"{tokens[WITHIN]:.0f}, {lost:.0f} % fewer than {ALONE}")


def listed(shares: Iterable[float]) -> str:
    """Return shares, one of each seed, as percentages."""
    return ", ".join(f"{100.0 * share:.0f}" for share in shares) + " %"


if __name__ == "__main__":
    command(figures)
