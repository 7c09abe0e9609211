"""What it is worth to tell raybo the context: hyperparameters for validation data whose mix of segments shifts.

    python -m benchmarks.shifting_segments --seeds 12 --trials 40

Every run tunes trials/shifting_segments.py with as many trials. Context-blind tuning is not told which mix each trial
met, and recommends the best trial that it saw; the others are told. What is printed is the mean loss over all mixes of
what each recommends, from every held-out row, and how often it is better than the first method's with the same seed.
"""

from __future__ import annotations

import argparse

import numpy as np

import raybo
from trials.shifting_segments import shifting_segments

RUNS = {  # name: method, whether it is told the context
    "gp-ucb, blind": ("gp-ucb", False),
    "auto, blind": ("auto", False),
    "gp-ucb, context declared": ("gp-ucb", True),
    "sbo-kde": ("sbo-kde", True),
    "drbo-kde": ("drbo-kde", True),
}


def recommended(method: str, told: bool, seed: int, trials: int) -> float:
    """The mean loss over all mixes of what a run recommends."""
    context = shifting_segments.context if told else None
    searcher = raybo.Searcher(shifting_segments.space, method, "min", seed, trials, context)
    expected = {}
    for _ in range(trials):
        trial = searcher.ask()
        result = shifting_segments(trial.config, seed=seed)
        expected[trial.number] = result["expected"]
        searcher.tell(trial, result["loss"], context={"hard_share": result["hard_share"]} if told else None)
    return float(expected[searcher.best.number])


def main() -> None:
    """Run every method with every seed, and print a line a method."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--trials", type=int, default=40)
    arguments = parser.parse_args()
    found = {
        name: np.array([recommended(*run, seed, arguments.trials) for seed in range(arguments.seeds)])
        for name, run in RUNS.items()
    }
    first = next(iter(found.values()))
    print(f"{'':26} mean loss   median   worst   better than the first")
    for name, losses in found.items():
        won = f"{np.sum(losses < first)} of {arguments.seeds}"
        print(f"{name:26} {losses.mean():9.4f} {np.median(losses):8.4f} {losses.max():7.4f}   {won}")


if __name__ == "__main__":
    main()
