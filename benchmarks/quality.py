"""Simple regret of methods on the papers' functions after the papers' budgets, over seeds, beside random's.

Quartiles are over the seeds; a method may have options, as in gp-ucb:solver=lbfgsb. The first method is what the others
are compared with.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.figures import Figure, Figures, at_least, command
from benchmarks.searches import parse_method, processes, simple_regret

QUICK = {"seeds": 2, "methods": "random,auto", "problems": "branin,hartmann6"}
BUDGETS = {"branin": 100, "hartmann6": 260, "levy5": 200}  # initial design and iterations of the UAI 2025 experiments
TARGETS = [(problem, method) for problem in ("branin", "hartmann6") for method in ("gp-ucb", "auto")]


def figures(
    seeds: int = 10,
    methods: str = "random,sobol,gp-ucb,gp-ucb:solver=lbfgsb,auto",
    problems: str = "branin,hartmann6,levy5",
) -> Figures:
    """The first method's median regret over that of each."""
    with processes() as pool:
        for problem in problems.split(","):
            base = None
            for text in methods.split(","):
                method, options = parse_method(text)
                run = partial(simple_regret, problem, method, BUDGETS[problem], options)
                low, median, high = np.quantile(list(pool.map(run, range(seeds))), [0.25, 0.5, 0.75])
                note = f"regret {median:.2g} [{low:.2g}, {high:.2g}] over {seeds} seeds"
                if base is None:
                    base = text, median
                    yield Figure(f"{problem}, {text}, {BUDGETS[problem]} trials", note)
                    continue
                found = at_least(10, base[1] / median, f"{problem}, {base[0]}'s regret over that of {text}", note=note)
                yield found if (problem, text) in TARGETS else Figure(found.what, found.measured)


if __name__ == "__main__":
    command(figures)
