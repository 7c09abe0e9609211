"""Variants of the default method beside each other and beside other libraries, on problems of many kinds.

    python -m benchmarks.default auto ei --on small --seeds 3         minutes
    python -m benchmarks.default auto --on validation --seeds 10 --against optuna botorch hebo smac      hours

A variant is a method of raybo with options (`auto`, `ei:incumbent=mean`), or MODULE.CLASS of one that is not
registered. The first variant is what the others are compared with, in pairs of equal seeds. Runs are kept in a CSV
file, and the same command goes on where it was stopped. Regret 0 is the optimum, 1 what random search reaches with the
whole budget; figures are means over problems of medians over seeds. `auto@8` in the table is `auto` with 8 workers: so
many trials are asked for before the first is told.

pip install 'raybo[benchmarks,laboratory]' smac for the problems and the peers; what is missing is left out, and told.
HEBO needs an environment of its own, see peers.py; its runs can be kept in the same file.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import warnings
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from rich.console import Console
from rich.table import Table as TrialOutput

from benchmarks.default.peers import ONE_BY_ONE, PACKAGES, PEERS
from benchmarks.default.runs import AFTER, OPTIMUM, Run, Table, run, task_of
from benchmarks.default.score import (
    BEST_ELSEWHERE,
    ELSEWHERE,
    MEASURES,
    RANDOM,
    Scores,
    difference,
    group,
    ranks,
    scales,
    scores,
    targets_reached,
)
from benchmarks.default.sets import PROBLEMS, SETS
from benchmarks.default.variants import with_workers
from benchmarks.figures import console

RANDOM_SEEDS = 15


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.default", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("variants", nargs="*", default=["auto"], help="the first is compared with [default: auto]")
    parser.add_argument("--on", default="small", help=f"{', '.join(SETS)}, or names of problems with commas between")
    parser.add_argument("--against", nargs="+", default=[], choices=list(PEERS), metavar="PEER", help=", ".join(PEERS))
    parser.add_argument("--seeds", type=int, default=3, help="runs of each variant on each problem [default: 3]")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument(
        "--workers", type=int, nargs="+", default=[1], metavar="K", help="trials that run at once [default: 1]"
    )
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("laboratory.csv"), help="where runs are kept")
    parser.add_argument("--by-problem", action="store_true", help="a row for each problem too")
    given = parser.parse_args(arguments)
    names = [p.name for p in SETS[given.on]] if given.on in SETS else given.on.split(",")
    for name in names:
        if name not in PROBLEMS:
            parser.error(f"there is no problem {name!r}; there are: {', '.join(PROBLEMS)}")
    variants = [
        variant if workers == 1 else f"{variant}@{workers}"
        for variant in (*given.variants, *given.against)
        for workers in given.workers
    ]
    for variant in variants:
        alone, workers = with_workers(variant)
        if workers > 1 and alone in ONE_BY_ONE:
            parser.error(f"{alone} asks for one trial at a time: leave out --workers")
    seeds = range(given.first_seed, given.first_seed + given.seeds)
    table = Table(given.out)
    wanted = [(name, OPTIMUM, 0) for name in names]
    wanted += [(name, RANDOM, seed) for name in names for seed in range(RANDOM_SEEDS)]
    wanted += [(name, variant, seed) for seed in seeds for variant in variants for name in names]
    names = fill(table, wanted, given.processes, names)
    report(table, names, variants, set(seeds), given.by_problem)


def fill(table: Table, wanted: list[tuple[str, str, int]], processes: int, names: list[str]) -> list[str]:
    """Run what is missing; the problems that could be run."""
    progress = Console(stderr=True)
    missing = table.missing(wanted)
    left_out: set[str] = set()
    for name in {problem for problem, _, _ in missing}:
        try:
            task_of(name)
        except (ImportError, OSError) as error:
            left_out.add(name)
            progress.print(f"{name} is left out: {error}", markup=False, highlight=False)
    for variant in {with_workers(variant)[0] for _, variant, _ in missing} & PEERS.keys():
        try:
            PEERS[variant](task_of("levy5").space, 0)
        except ImportError as error:
            sys.exit(f"{variant} cannot be run: {error}; pip install {PACKAGES[variant]}")
    missing = [key for key in missing if key[0] not in left_out]
    if missing:
        spawning = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(processes, spawning, initializer=warnings.simplefilter, initargs=("ignore",)) as pool:
            coming = {pool.submit(run, *key): key for key in missing}
            for count, future in enumerate(as_completed(coming), start=1):
                try:
                    table.add(future.result())
                except ValueError as error:
                    progress.print(f"{coming[future]}: {error}", markup=False, highlight=False)
                if count % 50 == 0:
                    progress.print(f"{count} of {len(missing)} runs", highlight=False)
    return [name for name in names if name not in left_out]


def report(table: Table, names: list[str], variants: list[str], seeds: set[int], by_problem: bool) -> None:
    """Print what the runs say."""
    every = list(table.runs.values())
    scale = scales(every)
    chosen: list[Run] = [r for r in every if r.variant == RANDOM or (r.variant in variants and r.seed in seeds)]
    found = scores(chosen, scale)
    out = console()
    variants = [variant for variant in variants if variant in found]
    common = [name for name in names if all(name in found[variant].problems for variant in variants)]
    groups = {name: mine for name in ("synthetic", "jobs") if (mine := group(common, name))}
    for title, mine in {**({"all": common} if len(groups) > 1 else {}), **groups}.items():
        out.print(summary(f"{title}, {len(mine)} problems, {len(seeds)} seeds", found, variants, mine))
        if all(PROBLEMS[name].is_seeded for name in mine):
            out.print(course(chosen, variants, mine))
        if judged := [name for name in mine if name in found[variants[0]].regrets[BEST_ELSEWHERE]]:
            out.print(elsewhere(found, variants, judged))
        if by_problem and title in groups:
            out.print(each(found, variants, mine))


def summary(title: str, found: dict[str, Scores], variants: list[str], problems: list[str]) -> TrialOutput:
    """A row per variant: its figures, and its differences from the first."""
    made = TrialOutput(title=title, title_justify="left")
    headings = "variant", *MEASURES, "final less the first's", "mean less the first's", "problems won", "ranks", "ms"
    for heading in headings:
        made.add_column(heading)
    ranked = [ranks(found, variants, measure, problems) for measure in ("final", "mean")]
    for variant in dict.fromkeys([*variants, RANDOM]):
        mine = found[variant]
        row = [variant, *(f"{mine.of(measure, problems):.3f}" for measure in MEASURES)]
        if variant in (variants[0], RANDOM):
            row += ["", "", ""]
        else:
            final, mean = (difference(mine, found[variants[0]], m, problems) for m in ("final", "mean"))
            row += [f"{d.mean:+.3f} ({d.low:+.3f} to {d.high:+.3f})" for d in (final, mean)]
            row.append(f"{final.won}:{final.lost}, p {final.p:.2g}; {mean.won}:{mean.lost}, p {mean.p:.2g}")
        row.append("; ".join(f"{each[variant]:.2f}" for each in ranked) if variant in variants else "")
        made.add_row(*row, f"{mine.cost(problems):.1f}")
    return made


def course(runs: list[Run], variants: list[str], problems: list[str]) -> TrialOutput:
    """A row per variant: the share of targets that it has reached after some trials and at the end."""
    measures = [f"after {n}" for n in AFTER if n < max(PROBLEMS[name].trials for name in problems)] + ["final"]
    made = TrialOutput(title="targets of COCO reached, 1e2 to 1e-8", title_justify="left")
    for heading in ("variant", *measures):
        made.add_column(heading)
    for variant in dict.fromkeys([*variants, RANDOM]):
        made.add_row(variant, *(f"{targets_reached(runs, variant, problems, each):.3f}" for each in measures))
    return made


def elsewhere(found: dict[str, Scores], variants: list[str], problems: list[str]) -> TrialOutput:
    """A row per variant: what its best and its recommended configurations are worth on other splits and seeds."""
    made = TrialOutput(
        title=f"on other splits, {len(problems)} problems; 1 is random's best on its own", title_justify="left"
    )
    for heading in ("variant", *ELSEWHERE, *(f"{measure}, less the first's" for measure in ELSEWHERE)):
        made.add_column(heading)
    for variant in dict.fromkeys([*variants, RANDOM]):
        row = [variant, *(f"{found[variant].of(measure, problems):.3f}" for measure in ELSEWHERE)]
        for measure in ELSEWHERE if variant not in (variants[0], RANDOM) else ():
            less = difference(found[variant], found[variants[0]], measure, problems)
            row.append(f"{less.mean:+.3f} ({less.low:+.3f} to {less.high:+.3f})")
        made.add_row(*row)
    return made


def each(found: dict[str, Scores], variants: list[str], problems: list[str]) -> TrialOutput:
    """A row per problem: final and mean regret of each variant."""
    made = TrialOutput()
    for heading in ("problem", *variants):
        made.add_column(heading)
    for name in problems:
        made.add_row(
            name, *(f"{found[v].of('final', [name]):.3f}  {found[v].of('mean', [name]):.3f}" for v in variants)
        )
    return made


if __name__ == "__main__":
    main()
