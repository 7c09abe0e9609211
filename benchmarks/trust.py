"""The trial to trust if values are noisy.

Five noisy problems, searched by one method; then the true value of what is recommended: the best observed, the trial
that a model expects most of, and, after 5 x 3 further runs, the one with the best mean of these. The means are also
compared with what the same number of further trials of the search would have recommended by the model. Reported: the
median and the mean over seeds of the true regret, in standard deviations of the noise.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import raybo
from benchmarks.figures import Figure, Figures, command
from benchmarks.guesses import Array, ackley, branin, hartmann6, training
from raybo.record.confirmed import confirmed
from raybo.record.events import Told
from raybo.record.origin import Origin
from raybo.study.confirmation import Confirm, still_to_run


def ridge(u: Array) -> float:
    """A flat top: many points are nearly the best, and the noise decides among them."""
    return -(max(0.0, float(np.linalg.norm(u - 0.5)) - 0.15) ** 2)


PROBLEMS: dict[str, tuple[int, Callable[[Array], float], float, float]] = {  # axes, f, its highest value, noise
    "branin": (2, branin, -0.397887, 10.0),
    "training": (4, training, 0.0, 0.15),
    "ackley": (3, ackley, 0.0, 1.0),
    "hartmann6": (6, hartmann6, 3.32237, 0.3),
    "flat top": (3, ridge, 0.0, 0.02),
}
WAYS = ("best observed", "best expected", "confirmed 5x3", "15 more, best expected")
QUICK = {"seeds": 1, "trials": 8, "problems": "flat top", "method": "random"}


def study(name: str, seed: int, trials: int, method: str) -> list[float]:
    """The true regret of each recommendation, in standard deviations of the noise."""
    d, f, highest, noise = PROBLEMS[name]
    searcher = raybo.Searcher({f"x{i}": raybo.Float(0, 1) for i in range(d)}, method, "max", seed, trials)
    rng = np.random.default_rng([seed, 1])

    def true(trial: raybo.Trial) -> float:
        return f(np.array(list(trial.config.values())))

    def further(count: int) -> None:
        for _ in range(count):
            trial = searcher.ask()
            searcher.tell(trial, true(trial) + noise * rng.standard_normal())

    further(trials)
    chosen = [searcher.best, searcher.best_expected]
    again = raybo.Searcher(searcher.space, method, "max", seed)
    for trial in searcher.trials:
        again.add(trial.config, trial.value or 0.0)
    for number in still_to_run(Confirm(5, 3), again.trials, again.history):
        asked = again.apply(again.known(again.trials[number].config, Origin.CONFIRMED, {"confirms": number}))
        value = true(again.trials[number]) + noise * rng.standard_normal()
        again.apply(Told(asked.trial, value=value))
    chosen.append(confirmed(again.trials, again.history, again.ledger.goal)[0].trial)
    further(15)
    chosen.append(searcher.best_expected)
    return [(highest - true(trial)) / noise for trial in chosen]


def figures(
    seeds: int = 20, first: int = 0, trials: int = 40, method: str = "auto", problems: str = ",".join(PROBLEMS)
) -> Figures:
    """Search with noise, on seeds from the first, and ask for recommendations."""
    for name in problems.split(","):
        found = np.array([study(name, seed, trials, method) for seed in range(first, first + seeds)])
        for way, regrets in zip(WAYS, found.T, strict=True):
            yield Figure(
                f"{name}, {way}: true regret, median (mean) over {seeds} seeds",
                f"{float(np.median(regrets)):.2f} ({regrets.mean():.2f}) sd of the noise",
            )


if __name__ == "__main__":
    command(figures)
