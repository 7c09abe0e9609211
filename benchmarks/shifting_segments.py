"""The gain of telling raybo the context: hyperparameters for validation data whose mix of segments shifts.

Every run tunes trials/shifting_segments.py with as many trials. Context-blind tuning is not told which mix each trial
met, and recommends the best trial that it saw; the others are told. What is measured is the mean loss over all mixes of
what each recommends, from every held-out row, and how often it is better than the first method's with the same seed.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.figures import Figure, Figures, command, missing
from benchmarks.searches import processes, search

QUICK = {"seeds": 2}
BLIND = "gp-ucb, blind"
RUNS = {  # name: method, whether it is told the context
    BLIND: ("gp-ucb", False),
    "auto, blind": ("auto", False),
    "gp-ucb, context declared": ("gp-ucb", True),
    "sbo-kde": ("sbo-kde", True),
    "drbo-kde": ("drbo-kde", True),
}


def recommended(method: str, told: bool, trials: int, seed: int) -> float:
    """The mean loss over all mixes of what a run recommends."""
    from trials.shifting_segments import shifting_segments

    found = search(shifting_segments.with_settings(seed=seed), method, seed, trials, context=told)
    return found.results[found.best]["expected"]


def figures(seeds: int = 12, trials: int = 40) -> Figures:
    """A figure per method; that of the density estimates should be below blind tuning's."""
    try:
        import xgboost  # noqa: F401  # what the objective trains
    except ImportError:
        yield missing("mean loss over all mixes", "xgboost")
        return
    with processes() as pool:
        first: np.ndarray | None = None
        for name, (method, told) in RUNS.items():
            losses = np.array(list(pool.map(partial(recommended, method, told, trials), range(seeds))))
            what, text = f"mean loss over all mixes, {name}", f"{losses.mean():.4f}, worst {losses.max():.4f}"
            if first is None:
                first = losses
                yield Figure(f"{what}, {seeds} seeds", text)
                continue
            text += f", better than blind in {np.sum(losses < first)} of {seeds}"
            if "kde" in name:
                yield Figure(what, text, f"below {first.mean():.4f}", bool(losses.mean() < first.mean()))
            else:
                yield Figure(what, text)


if __name__ == "__main__":
    command(figures)
