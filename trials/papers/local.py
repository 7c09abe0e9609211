"""Fan, Wang, Ng, Hu (2024), "Minimizing UCB: a Better Local Search Strategy in Local Bayesian Optimization", NeurIPS.

Figures 2 (local-fig2) and 3 (local-fig3), and parts of both; figure 1 is in local_fig1.py. Four local methods are
compared by the noise-free or held-out value of their recommendations; evaluating those does not count against the
budget. MPD runs both as its paper defines it and as its code was released; claims about MPD itself are about the
latter.

Our choices, where the paper is silent: settings follow the code that it builds on (Mueller, von Rohr, Trimpe 2021;
Nguyen et al. 2022); b1 = 1, and b2 is GIBO's batch for MinUCB and 4 for LA-MinUCB; all methods explore within delta of
their current point; figure 2 has eleven objectives (ten pairs could not decide its claims) with one run each, starting
from a Sobol point shared by all methods; figure 3 has one episode per evaluation, starts at W = 0, and keeps weights
between -2 and 2, so a length in weights is four times that in the unit cube.

LA-MinUCB departs from its paper in one point: the algorithm as printed lets it explore anywhere. In that form it runs
in figure 2 as "LA-MinUCB, anywhere"; the claims about LA-MinUCB are judged with the limit.

On the noisy tasks a method is judged by its last policy, over 100 fresh episodes (final_held_out). The best of all its
recommendations would be a maximum over noisy means of 10 episodes, which favours methods that recommend more often:
LA-MinUCB does so every 5 evaluations, the others every 9 on CartPole, 17 on Swimmer and 33 on Hopper. Samples of a
Gaussian process are held out without noise, so no maximum is inflated; there the best so far counts (best_held_out), as
in the paper's plots. Speed is judged by the best so far everywhere, as plotted, since runs keep nothing else about it;
on the tasks that favours LA-MinUCB.

Batches differ too: per move LA-MinUCB explores 4 points, the others 25, 50 or 100 on samples (GIBO at most that, as it
may stop early) and 8, 16 or 32 on the tasks. So figures 2 and 3 cannot separate the gain from looking ahead from the
gain from moving more often. local-batch, which is ours, does: it adds MinUCB with 4 points to the runs of figure 2. In
100 dimensions the others first move after 101 of 500 evaluations, and until then all recommend the shared starting
point; claims about the value after a fifth of the run are made only where that is after everybody's first move.
"""

from __future__ import annotations

import math
import runpy
from pathlib import Path
from statistics import NormalDist
from typing import Any

from raybo.experiments import Claim, Entry, Experiment, HeldOut, Problem
from raybo.experiments.measures import EARLY_SHARE
from raybo.experiments.plan import Measure

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
OUR_BATCH = 4
SMALL = f"MinUCB, {OUR_BATCH} points"
LITERAL = "LA-MinUCB, anywhere"  # the look-ahead explores the whole cube, as its algorithm is printed


def entries(shared: dict[str, dict[str, Any]], own: dict[str, dict[str, dict[str, Any]]]) -> list[Entry]:
    """The methods, with the options on each problem that all share, and those of each."""
    return [
        Entry(name, method, per_problem={problem: {**shared[problem], **own[name][problem]} for problem in shared})
        for name, method in METHODS.items()
    ]


def titled(title: str, source: str, others: str) -> str:
    """With what each move explores, which is not the same for all."""
    return f"{title} ({source}; per move {OURS} explores {OUR_BATCH} points, the others {others})"


def has_moved(problem: Problem, batch: int) -> bool:
    """True if a fifth of the evaluations is beyond the first move."""
    return round(EARLY_SHARE * problem.trials) > 1 + batch


def claims(source: str, ends: Measure, early: list[str]) -> list[Claim]:
    """Return the paper's claims on its curves: at their ends, and after a fifth if all methods have moved by then."""
    others = [name for name in METHODS if name != OURS]
    return [
        *(Claim(f"{OURS} ends best: better than {name}", ends, OURS, name, source=source) for name in others),
        *(
            Claim(f"{OURS} is fastest: better than {name} on average", "mean_held_out", OURS, name, source=source)
            for name in others
        ),
        Claim("MinUCB ends slightly better than GIBO", ends, "MinUCB", "GIBO", source=source),
        *(
            Claim(
                f"MPD as released rises fastest: better than {name} after a fifth",
                "early_held_out",
                COMPARED_MPD,
                name,
                problems=early,
                source=source,
            )
            for name in METHODS
            if early and not name.startswith("MPD")
        ),
        Claim("MPD as released stalls: GIBO ends better", ends, "GIBO", COMPARED_MPD, source=source),
        Claim("GIBO is slow: MinUCB is better on average", "mean_held_out", "MinUCB", "GIBO", source=source),
    ]


# ---- figure 2: samples of a Gaussian process whose hyperparameters are known


def samples(name: str, title: str, dimensions: tuple[int, ...], repeats: int, hours: float) -> Experiment:
    """Objective r in run r, 500 evaluations."""
    problems, shared, early = [], {}, []
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
        if has_moved(problems[-1], batch=d):
            early.append(problem)
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
        own[OURS][problem] = {"batch": OUR_BATCH}
    literal = {problem: {**shared[problem], **own[OURS][problem], "local": False} for problem in shared}
    said = [
        *claims("figure 2", "best_held_out", early),
        Claim(f"{LITERAL} ends best: better than {OURS}", "best_held_out", LITERAL, OURS, source="ours"),
    ]
    compared = [*entries(shared, own), Entry(LITERAL, "la-min-ucb", per_problem=literal, costly=True)]
    title = titled(title, "figure 2", "one per dimension")
    return Experiment(name, title, problems, compared, repeats, said, "best_held_out", hours=hours)


def batches(name: str, title: str, of: Experiment, repeats: int, hours: float) -> Experiment:
    """The look-ahead and the small batch of LA-MinUCB apart, on the same samples."""
    kept = {entry.name: entry for entry in of.entries}
    options = {problem: {**own, "batch": OUR_BATCH} for problem, own in kept["MinUCB"].per_problem.items()}
    small = Entry(SMALL, "min-ucb", per_problem=options)
    pairs = (OURS, SMALL), (SMALL, "MinUCB")
    said = [
        Claim(f"{one} ends better than {other}", "best_held_out", one, other, source="ours") for one, other in pairs
    ]
    compared = [kept[OURS], small, kept["MinUCB"]]
    return Experiment(name, title, of.problems, compared, repeats, said, "best_held_out", hours=hours)


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
    problems, shared, early = [], {}, []
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
        if has_moved(problems[-1], batch):
            early.append(task)
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
        own[OURS][task] = {"batch": OUR_BATCH}
        if task == "Hopper":
            own["GIBO"][task]["weight_decay"] = 1e-5
    said = claims("figure 3", "final_held_out", early)
    title = titled(title, "figure 3", ", ".join(str(TASKS[task][0]) for task in budgets))
    return Experiment(name, title, problems, entries(shared, own), repeats, said, "best_held_out", hours=hours)


FULL = {"CartPole": 100, "Swimmer": 2000, "Hopper": 8000}

SAMPLES = samples("local-fig2", "Four local methods on samples of a Gaussian process", (25, 50, 100), 11, 1.2)
EXPERIMENTS = [
    SAMPLES,
    batches("local-batch", "What LA-MinUCB gains from looking ahead, and what from small batches", SAMPLES, 8, 0.4),
    policies("local-fig3", "Four local methods on linear policies", FULL, 10, 15.0),
    policies("local-fig3-cartpole", "Linear policies for CartPole", {"CartPole": 100}, 10, 0.1),
    policies("local-fig3-swimmer", "Linear policies for Swimmer", {"Swimmer": 2000}, 10, 3.0),
    policies(
        "local-fig3-hopper",
        "Linear policies for Hopper, 1,000 of 8,000 evaluations",
        {"Hopper": 1000},
        10,
        0.6,
    ),
]
