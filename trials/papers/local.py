"""Fan, Wang, Ng, Hu (2024), "Minimizing UCB: a Better Local Search Strategy in Local Bayesian Optimization", NeurIPS.

Figures 2 (local-fig2) and 3 (local-fig3), and parts of both; figure 1 is in local_fig1.py. Four local methods,
by the noise-free or held-out value of what they recommend, which is not charged to the budget. MPD is compared as its
paper has it, and as its code was released, which is what the claims about it are made of.

Resolved here, where the paper is silent: settings are those of the code that it builds on (Mueller, von Rohr, Trimpe
2021; Nguyen et al. 2022); b1 = 1 and b2 = GIBO's batch for MinUCB, 4 for LA-MinUCB; figure 2 has ten objectives and one
run on each, from a Sobol point that all methods share; figure 3 has one episode an evaluation, starts at W = 0, and
weights between -2 and 2, so that a length in weights is a quarter of it in sides of the cube.
"""

from __future__ import annotations

import math
import runpy
from pathlib import Path
from statistics import NormalDist
from typing import Any

from raybo.experiments import Claim, Entry, Experiment, HeldOut, Problem

GP_SAMPLES = runpy.run_path(str(Path(__file__).parents[1] / "gp_samples.py"))
METHODS = {
    "GIBO": "gibo",
    "MPD": "mpd",
    "MPD as released": "mpd",
    "MinUCB": "min-ucb",
    "LA-MinUCB": "la-min-ucb",
}
AS_PUBLISHED = {"initial": 0, "restart": False}  # no design before the start, and one run
OURS, COMPARED_MPD = "LA-MinUCB", "MPD as released"
LITERAL = "LA-MinUCB, anywhere"  # the look-ahead explores the whole cube, as its algorithm is printed


def entries(shared: dict[str, dict[str, Any]], own: dict[str, dict[str, dict[str, Any]]]) -> list[Entry]:
    """The methods, with the options on each problem that all share, and those of each."""
    return [
        Entry(name, method, per_problem={problem: {**shared[problem], **own[name][problem]} for problem in shared})
        for name, method in METHODS.items()
    ]


def claims(source: str) -> list[Claim]:
    """What the paper says of its curves."""
    others = [name for name in METHODS if name != OURS]
    return [
        *(
            Claim(f"{OURS} ends best: better than {name}", "best_held_out", OURS, name, source=source)
            for name in others
        ),
        *(
            Claim(f"{OURS} is fastest: better than {name} on average", "mean_held_out", OURS, name, source=source)
            for name in others
        ),
        Claim("MinUCB ends slightly better than GIBO", "best_held_out", "MinUCB", "GIBO", source=source),
        *(
            Claim(
                f"MPD rises fastest: better than {name} after a fifth",
                "early_held_out",
                COMPARED_MPD,
                name,
                source=source,
            )
            for name in METHODS
            if not name.startswith("MPD")
        ),
        Claim("MPD stalls: GIBO ends better", "best_held_out", "GIBO", COMPARED_MPD, source=source),
        Claim("GIBO is slow: MinUCB is better on average", "mean_held_out", "MinUCB", "GIBO", source=source),
    ]


# ---- figure 2: samples of a Gaussian process whose hyperparameters are known


def samples(name: str, title: str, dimensions: tuple[int, ...], repeats: int, hours: float) -> Experiment:
    """Objective r in run r, 500 evaluations."""
    problems, shared = [], {}
    own: dict[str, dict[str, dict[str, Any]]] = {method: {} for method in METHODS}
    for d in dimensions:
        problem = f"{d} dimensions"
        problems.append(
            Problem(
                problem,
                "trials/gp_samples.py",
                trials=500,
                settings={"dimension": d},
                seeded="index",
                held_out=HeldOut({"noise": 0.0}),
            )
        )
        shared[problem] = {
            **AS_PUBLISHED,
            "start": "sobol",
            "lengthscale": tuple(GP_SAMPLES["lengthscales"](d).tolist()),
            "outputscale": 1.0,
            "noise_variance": 0.01,
            "mean": "zero",
            "standardise": False,
            "delta": 0.2,
            "window": 5 * d,
        }
        own["GIBO"][problem] = {"batch": d, "learning_rate": 0.25, "early_stop": 0.1}
        own["MPD"][problem] = {"batch": d}
        own[COMPARED_MPD][problem] = {"batch": d, "variant": "released"}
        own["MinUCB"][problem] = {"batch": d}
        own[OURS][problem] = {"batch": 4}
    literal = {problem: {**shared[problem], **own[OURS][problem], "local": False} for problem in shared}
    said = [
        *claims("figure 2"),
        Claim(f"{LITERAL} ends best: better than {OURS}", "best_held_out", LITERAL, OURS, source="its algorithm"),
    ]
    compared = [*entries(shared, own), Entry(LITERAL, "la-min-ucb", per_problem=literal, costly=True)]
    return Experiment(name, title, problems, compared, repeats, said, "best_held_out", hours=hours)


# ---- figure 3: linear policies

SIDE = 4.0  # of the box of weights
STRIDE = 0.01  # of MPD's walk, in weights
# the released walk ends where the slope, and not the probability of ascent, has fallen to what 0.65 stands for: 0.1485,
# which is as many times steeper in sides of the cube
STEEP_ENOUGH = NormalDist().cdf(math.sqrt(SIDE) * NormalDist().inv_cdf(0.65))

# batch, window; in weights: delta, least and largest length-scale; noise variance; GIBO's learning rates
TASKS: dict[str, tuple[int, int, float, float, float, float, tuple[float, ...]]] = {
    "CartPole": (8, 20, 0.1, 0.01, 0.3, 0.5, (0.8, 0.8, 0.3)),
    "Swimmer": (16, 32, 0.1, 0.01, 0.3, 0.01, (0.5,)),
    "Hopper": (32, 128, 0.2, 0.01, 0.5, 0.02, (0.6,)),
}


def policies(name: str, title: str, budgets: dict[str, int], repeats: int, hours: float) -> Experiment:
    """The tasks with so many evaluations each; those of the paper are not stated, GIBO's are FULL."""
    problems, shared = [], {}
    own: dict[str, dict[str, dict[str, Any]]] = {method: {} for method in METHODS}
    for task, trials in budgets.items():
        batch, window, delta, low, high, noise, rates = TASKS[task]
        problems.append(
            Problem(
                task,
                "trials/linear_policy.py",
                trials=trials,
                settings={"env": task, "episodes": 1, "bound": SIDE / 2},
                seeded="seed",
                held_out=HeldOut({"held_out": True, "episodes": 10}, last={"episodes": 100}, metric="return"),
            )
        )
        shared[task] = {
            **AS_PUBLISHED,
            "start": "centre",
            "lengthscale_low": low / SIDE,
            "lengthscale_high": high / SIDE,
            "noise_variance": noise,
            "delta": delta / SIDE,
            "window": window,
        }
        own["GIBO"][task] = {"batch": batch, "learning_rate": rates, "refit": "full"}
        own["MPD"][task] = {"batch": batch, "stride": STRIDE / SIDE}
        own[COMPARED_MPD][task] = {**own["MPD"][task], "variant": "released", "probability": STEEP_ENOUGH}
        own["MinUCB"][task] = {"batch": batch}
        own[OURS][task] = {"batch": 4}
        if task == "Hopper":
            own["GIBO"][task]["weight_decay"] = 1e-5
    return Experiment(
        name, title, problems, entries(shared, own), repeats, claims("figure 3"), "best_held_out", hours=hours
    )


FULL = {"CartPole": 100, "Swimmer": 2000, "Hopper": 8000}

EXPERIMENTS = [
    samples("local-fig2", "Four local methods on samples of a Gaussian process (figure 2)", (25, 50, 100), 10, 0.8),
    policies("local-fig3", "Four local methods on linear policies (figure 3)", FULL, 10, 15.0),
    policies("local-fig3-cartpole", "Linear policies for CartPole (figure 3)", {"CartPole": 100}, 10, 0.1),
    policies(
        "local-fig3-swimmer",
        "Linear policies for Swimmer, 500 of 2,000 evaluations (figure 3)",
        {"Swimmer": 500},
        10,
        0.8,
    ),
    policies(
        "local-fig3-hopper",
        "Linear policies for Hopper, 1,000 of 8,000 evaluations (figure 3)",
        {"Hopper": 1000},
        6,
        0.9,
    ),
]
