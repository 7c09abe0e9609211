"""Kim, Liu, Chen (2025), "Bayesian Optimization with Inexact Acquisition: Is Random Grid Search Sufficient?", UAI.

Figures 1 and 2 (inexact-fig1), 3 (inexact-fig3), 4 (inexact-fig4), 5 and 6 (inexact-fig6), and the M_T of the theory,
which the paper does not plot (inexact-mt). Four solvers maximise the same acquisition, GP-UCB with
kappa_t = sqrt(log(t + 1)), under the model of the paper's experiments: Matern-3/2, a single length-scale fitted by
maximum likelihood starting from 1 in raw units, unit outputscale, noise variance 1e-4, and the optimum as prior mean.

Our choices: Hartmann-4 runs 120 iterations, as in the released figure (the text differs); every run draws fresh grids;
the AutoML task uses the diagnostic breast-cancer data with 10 initial points and 100 iterations, and the prior mean of
its accuracy is 0, because its optimum is unknown.
"""

from __future__ import annotations

from dataclasses import replace

from raybo.experiments import Claim, Entry, Experiment, Problem

SOLVERS = {"random grid": "random-grid", "L-BFGS-B": "lbfgsb", "Nelder-Mead": "nelder-mead", "CG": "cg"}

# name: target, lower corner and side of the box, minimum, iterations after 10 d and after 5 d initial points
FUNCTIONS = {
    "Branin": ("branin", (-5.0, 0.0), 15.0, 0.397887357729738, 80, 20),
    "Rastrigin-3": ("rastrigin3", (-5.12,) * 3, 10.24, 0.0, 100, 45),
    "Hartmann-3": ("hartmann3", (0.0,) * 3, 1.0, -3.862779787332663, 100, 45),
    "Hartmann-4": ("hartmann4", (0.0,) * 4, 1.0, -3.729840584485593, 120, 60),
    "Levy-5": ("levy5", (-10.0,) * 5, 20.0, 0.0, 150, 50),
    "Hartmann-6": ("hartmann6", (0.0,) * 6, 1.0, -3.322368011415515, 200, 90),
}


def synthetic(points_per_axis: int, short: bool) -> tuple[list[Problem], list[Entry]]:
    """The six functions with an initial design of so many points per axis, and the four solvers."""
    problems, options = [], {}
    for name, (target, corner, side, minimum, iterations, fewer) in FUNCTIONS.items():
        initial = points_per_axis * len(corner)
        trials = initial + (fewer if short else iterations)
        problems.append(Problem(name, f"trials/synthetic.py:{target}", trials, initial, minimum))
        # values are maximised inside raybo, so the prior mean is minus the minimum
        options[name] = {
            "initial": initial,
            "lengthscale_start": 1.0 / side,
            "origin": corner,
            "prior_mean": -minimum,
        }
    entries = [
        Entry(name, "gp-ucb", {"solver": solver, "preset": "paper"}, per_problem=options)
        for name, solver in SOLVERS.items()
    ]
    return problems, entries


def claims(source: str) -> list[Claim]:
    """The random grid is cheapest, and its regret is competitive (here: at most 1.25 times) with every other solver."""
    others = [name for name in SOLVERS if name != "random grid"]
    return [
        *(
            Claim(f"the random grid is cheaper than {other}", "processor_seconds", "random grid", other, source=source)
            for other in others
        ),
        *(
            Claim(
                f"the random grid's regret is at most 1.25 times {other}'s",
                "cumulative_regret",
                "random grid",
                other,
                factor=1.25,
                source=source,
            )
            for other in others
        ),
    ]


AUTOML = Problem("AutoML", "trials/gradient_boosting.py", trials=110, initial=10, optimum=1.0)
AUTOML_OPTIONS = {"initial": 10, "preset": "paper"}  # raw units are the cube's
MAIN_PROBLEMS, MAIN_ENTRIES = synthetic(10, short=False)
SMALL_PROBLEMS, SMALL_ENTRIES = synthetic(5, short=True)

EXPERIMENTS = [
    Experiment(
        name="inexact-fig1",
        title="Cumulative regret of four solvers on six functions (figures 1 and 2)",
        problems=MAIN_PROBLEMS,
        entries=MAIN_ENTRIES,
        repeats=20,
        claims=claims("figures 1, 2"),
        curve="cumulative_regret",
        hours=1.3,
    ),
    Experiment(
        name="inexact-fig3",
        title="Four solvers on the AutoML task (figure 3)",
        problems=[AUTOML],
        entries=[
            Entry(name, "gp-ucb", {**AUTOML_OPTIONS, "solver": solver}, costly=solver in ("nelder-mead", "cg"))
            for name, solver in SOLVERS.items()
        ],
        repeats=20,
        claims=claims("figure 3"),
        curve="cumulative_regret",
        hours=0.9,
    ),
    Experiment(
        name="inexact-fig4",
        title="Growing and fixed random grids on the AutoML task (figure 4)",
        problems=[AUTOML],
        entries=[
            Entry("growing grid", "gp-ucb", AUTOML_OPTIONS),
            Entry("fixed grid", "gp-ucb", {**AUTOML_OPTIONS, "grid": "fixed"}),
        ],
        repeats=20,
        claims=[
            Claim(
                "a growing grid is better than one of 100 points",
                "cumulative_regret",
                "growing grid",
                "fixed grid",
                source="figure 4",
            )
        ],
        curve="cumulative_regret",
        hours=0.5,
    ),
    Experiment(
        name="inexact-mt",
        title="The accumulated inexactness M_T of four solvers (section 3, Theorem 3)",
        problems=[problem for problem in MAIN_PROBLEMS if problem.name in ("Branin", "Hartmann-3", "Hartmann-6")],
        entries=[replace(entry, options={**entry.options, "diagnostics": 5}) for entry in MAIN_ENTRIES],
        repeats=6,
        claims=[
            Claim(f"{other} is less inexact than the random grid", "final_inexactness", other, "random grid")
            for other in SOLVERS
            if other != "random grid"
        ],
        curve="inexactness",
        hours=0.6,
    ),
    Experiment(
        name="inexact-fig6",
        title="Cumulative regret with a smaller initial design (figures 5 and 6)",
        problems=SMALL_PROBLEMS,
        entries=SMALL_ENTRIES,
        repeats=20,
        claims=claims("figures 5, 6"),
        curve="cumulative_regret",
        hours=0.35,
    ),
]
