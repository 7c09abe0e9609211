"""The local methods by their defaults beside random search: the best score of linear policies after `--trials` trials.

pip install 'raybo[control]'. Random search finds a policy that balances CartPole within a hundred trials, so a local
method must not be worse: neither its median nor its worst seed is below random's. An evaluation is the mean of
`--episodes` episodes; one of Swimmer's takes 20 times as long as the others'.
"""

from __future__ import annotations

import importlib.util
from functools import partial

import numpy as np

from benchmarks.figures import Figure, Figures, command, missing
from benchmarks.searches import parse_method, processes, search

QUICK = {"seeds": 2, "tasks": "CartPole", "methods": "min-ucb,ars"}
IN_BRIEF = {"seeds": 10, "tasks": "CartPole", "methods": "ars,min-ucb"}


def best_score(task: str, method: str, trials: int, episodes: int, seed: int) -> float:
    """The best score of a search."""
    from trials.linear_policy import linear_policy

    name, options = parse_method(method)
    objective = linear_policy.with_settings(env=task, episodes=episodes)
    return float(search(objective, name, seed, trials, options).metric("score").max())


def figures(
    tasks: str = "CartPole,Hopper,Swimmer",
    methods: str = "ars,min-ucb,gibo,mpd,la-min-ucb,turbo",
    seeds: int = 20,
    first: int = 20,
    trials: int = 100,
    episodes: int = 5,
) -> Figures:
    """Median and worst of each method on each task, which should be no lower than random's."""
    if importlib.util.find_spec("gymnasium") is None or importlib.util.find_spec("mujoco") is None:
        yield missing("the local methods beside random search", "gymnasium[mujoco]")
        return
    with processes() as pool:
        for task in tasks.split(","):
            bar = None
            for method in ("random", *methods.split(",")):
                run = partial(best_score, task, method, trials, episodes)
                scores = np.array(list(pool.map(run, range(first, first + seeds))))
                low, median = float(scores.min()), float(np.median(scores))
                what = f"{task}, {method}, best score of {trials} trials, {seeds} seeds"
                text = f"median {median:.3f}, worst {low:.3f}"
                if bar is None:
                    bar = median, low
                    yield Figure(what, text)
                else:
                    target = f"median at least {bar[0]:.3f}, worst {bar[1]:.3f}"
                    yield Figure(what, text, target, median >= bar[0] and low >= bar[1])


if __name__ == "__main__":
    command(figures)
