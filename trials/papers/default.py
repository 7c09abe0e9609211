"""No paper: evidence for the default method, `auto`, beside the methods that it is built from.

Twelve functions in 2 to 10 dimensions (valleys, many basins, steep walls, noise, a mixed space), 60 evaluations each.
`auto` has three first points. `ei` and `gp-ucb` have ten, as `auto` had when this was first run; `ei` also runs with
three.
"""

from __future__ import annotations

from raybo.experiments import Claim, Entry, Experiment, Problem

SYNTHETIC = "trials/synthetic.py"
PROBLEMS = [
    Problem("Branin", f"{SYNTHETIC}:branin", 60, optimum=0.397887357729738),
    Problem("Goldstein-Price", f"{SYNTHETIC}:goldstein_price", 60, optimum=3.0),
    Problem("Hartmann-3", f"{SYNTHETIC}:hartmann3", 60, optimum=-3.862779787332663),
    Problem("Schwefel-3", f"{SYNTHETIC}:schwefel", 60, optimum=0.0),
    Problem("Zakharov-4", f"{SYNTHETIC}:zakharov", 60, optimum=0.0),
    Problem("Rosenbrock-4", f"{SYNTHETIC}:rosenbrock", 60, optimum=0.0),
    Problem("Ackley-5", f"{SYNTHETIC}:ackley", 60, optimum=0.0),
    Problem("Levy-5", f"{SYNTHETIC}:levy5", 60, optimum=0.0),
    Problem("Hartmann-6", f"{SYNTHETIC}:hartmann6", 60, optimum=-3.322368011415515),
    Problem("Ackley-10", f"{SYNTHETIC}:ackley", 60, optimum=0.0, settings={"d": 10}),
    Problem("Dixon-Price-5", f"{SYNTHETIC}:dixon_price", 60, optimum=0.0),
    Problem("mixed", f"{SYNTHETIC}:mixed", 60, optimum=0.93),
]
ENTRIES = [
    Entry("random", "random"),
    Entry("gp-ucb, climbing", "gp-ucb", {"solver": "lbfgsb", "initial": 10}),
    Entry("ei", "ei", {"initial": 10}),
    Entry("ei, three first points", "ei", {"initial": 3}),
    Entry("auto", "auto"),
]

EXPERIMENTS = [
    Experiment(
        name="auto-default",
        title="The default method beside its building blocks",
        problems=PROBLEMS,
        entries=ENTRIES,
        repeats=12,
        claims=[
            Claim(f"auto ends with less regret than {other}", "final_regret", "auto", other)
            for other in ("random", "gp-ucb, climbing", "ei", "ei, three first points")
        ],
        curve="simple_regret",
        hours=0.5,
    )
]
