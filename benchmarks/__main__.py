"""Every number that raybo claims, each beside its target where it has one, in one table from one run.

python -m benchmarks [--quick] [--only NAME ...]

Each benchmark runs in a process of its own: first, one after the other, those that time something or use every
processor themselves, then the others, one for each processor. One that takes hours by itself runs with fewer seeds,
rivals and problems here. Seconds are those of this machine, beside whatever else it does; a ratio is of two things
measured in the same run. `python -m benchmarks.NAME --help` tells what one measures and how to change it. What is not
installed is left out, and the table says so: pip install 'raybo[benchmarks,trials,tune,control,plot]'.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias

from rich.console import Console

from benchmarks.apart import FAILED, measured
from benchmarks.figures import Figure, console, table

ALONE = (
    "startup",
    "first_study",
    "dispatch",
    "gangs",
    "idle",
    "looked_at",
    "long_study",
    "report",
    "tune_fronts",
    "submit",
    "overhead",
    "search_cv",
    "suggestion",
    "proposals",
    "scaling",
    "rivals",
    "thousand_workers",
    "quality",
    "unknown",
    "context",
    "shifting_segments",
    "local",
    "local_defaults",
    "conditional",
    "faults",
)
BESIDE_OTHERS = (
    "refit",
    "optuna_sampler",
    "many_trials",
    "early",
    "serving",
    "goals",
    "guesses",
    "priors",
    "budget",
    "carps",
    "spaces",
    "trust",
    "failures",
    "importance",
)
NAMES = ALONE + BESIDE_OTHERS
Row: TypeAlias = tuple[str, Figure, float]  # the benchmark's name, a figure, its seconds
QUICKLY = "quick: fewer seeds, rounds and trials than the targets are about"


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--quick", action="store_true", help="with fewer seeds, trials and rounds, to see that all is well"
    )
    parser.add_argument("--only", nargs="+", choices=NAMES, default=NAMES, metavar="NAME", help=", ".join(NAMES))
    given = parser.parse_args()
    progress, begun = Console(stderr=True), time.monotonic()

    def rows_of(name: str) -> list[Row]:
        rows = []
        for figure, seconds in measured(name, given.quick, threads=None if name in ALONE else 1):
            said = f"{name}: {figure.what}: {figure.measured}"
            progress.print(said, markup=False, highlight=False, soft_wrap=True)
            rows.append((name, figure, seconds))
        return rows

    found = [rows_of(name) for name in given.only if name in ALONE]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found += pool.map(rows_of, [name for name in given.only if name in BESIDE_OTHERS])
    rows = [row for several in found for row in several]
    title = f"raybo on this machine, {(time.monotonic() - begun) / 60:.0f} minutes"
    console().print(table(f"{title} ({QUICKLY})" if given.quick else title, rows))
    missed = [figure for _, figure, _ in rows if figure.met is False]
    print(f"{sum(figure.met is True for _, figure, _ in rows)} targets are met, {len(missed)} are not")
    sys.exit(1 if any(figure.what == FAILED for figure in missed) else 0)


if __name__ == "__main__":
    main()
