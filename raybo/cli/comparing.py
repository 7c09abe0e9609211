"""Commands that compare methods: on an objective of one's own, and as the papers did."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from raybo.cli.arguments import pairs
from raybo.cli.console import make_console, say
from raybo.errors import MethodError

if TYPE_CHECKING:
    from raybo.experiments import Experiment, Figure
    from raybo.experiments.run import Run


@click.command()
@click.argument("target", metavar="FILE[:NAME]")
@click.option(
    "--methods",
    "names",
    required=True,
    metavar="A,B,...",
    help="Methods; options as A:key=value:key=value, a scheduler as A@S:key=value.",
)
@click.option("--repeats", default=10, show_default=True, metavar="R", help="Runs of each method, paired by seed.")
@click.option("--trials", default=50, show_default=True, metavar="N", help="Trials per run.")
@click.option("--seed", default=0, show_default=True, metavar="S", help="Seed of the first run; the next ones follow.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="A keyword parameter of the objective.")
@click.option(
    "--scheduler", metavar="S", help="End trials early that report as they go, in runs that name no scheduler."
)
@click.option("--optimum", type=float, metavar="V", help="The best possible value, where it is known: adds regret.")
@click.option("--workers", type=int, metavar="K", help="Runs at a time.  [default: as many as there is room for]")
@click.option("--address", metavar="auto|HOST:PORT", help="A running Ray cluster to join.")
@click.option("--here", is_flag=True, help="One run after another in this process, without Ray.")
@click.option("--out", type=Path, metavar="DIR", help="The directory for the results.  [default: compare-FILE, here]")
def compare(
    target: str,
    names: str,
    repeats: int,
    trials: int,
    seed: int,
    settings: tuple[str, ...],
    scheduler: str | None,
    optimum: float | None,
    workers: int | None,
    address: str | None,
    here: bool,
    out: Path | None,
) -> None:
    """Compare methods on an objective of yours: curves, a table, and a verdict on each pair.

    Every run is a study with one worker, kept under DIR/runs: type the same command again to continue, or with more
    repeats to add to it. Where a scheduler ends trials early, the budget is that of N whole trials, in steps: what is
    saved buys more of them. Several metrics are compared by the hypervolume of the front, and where there are
    constraints what breaks one counts as the worst value seen.
    """
    from raybo.experiments import Entry, Experiment, Problem
    from raybo.objectives import study_name

    entries = []
    for text in names.split(","):
        method, options = _name_and_options(text.partition("@")[0])
        rule, rule_options = _name_and_options(text.partition("@")[2])
        entries.append(Entry(text, method, options, scheduler=rule or scheduler, scheduler_options=rule_options))
    problem = Problem(study_name(target), target, trials, optimum=optimum, settings=pairs(settings, "--set"))
    experiment = Experiment(
        name="compare",
        title=f"{target}, {trials} trials per run",
        problems=[problem],
        entries=entries,
        repeats=repeats,
        curve="best_value" if optimum is None else "simple_regret",
        first_seed=seed,
    )
    _compare(experiment, out or Path(f"compare-{problem.name}"), None, workers, address, here)


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME ...]")
@click.option("--all", "everything", is_flag=True, help="All of them, the cheapest first.")
@click.option("--hours", type=float, metavar="H", help="Stop after H hours; 0 writes results of the runs there are.")
@click.option("--repeats", type=int, metavar="R", help="Runs of each method.  [default: the experiment's]")
@click.option("--workers", type=int, metavar="K", help="Runs at a time.  [default: as many as there is room for]")
@click.option("--address", metavar="auto|HOST:PORT", help="A running Ray cluster to join.")
@click.option("--here", is_flag=True, help="One run after another in this process, without Ray.")
@click.option(
    "--out",
    type=Path,
    default=Path("reproduction"),
    show_default=True,
    metavar="DIR",
    help="The directory for the results.",
)
def reproduce(
    names: tuple[str, ...],
    everything: bool,
    hours: float | None,
    repeats: int | None,
    workers: int | None,
    address: str | None,
    here: bool,
    out: Path,
) -> None:
    """Reproduce figures and tables of the papers, in a clone of the repository; without a NAME, list them.

    A NAME may end in * to mean all that begin like that. Results go to DIR/NAME, all claims to DIR/claims.md. The same
    command continues where it stood; when the time is over, results are those of the runs that are complete.
    """
    from raybo.experiments import Figure
    from raybo.experiments.papers import find_experiments
    from raybo.experiments.summary import write_summary

    if hours is not None and not 0.0 <= hours < math.inf:
        raise MethodError(f"hours must be a number from 0, got {hours}")
    until = None if hours is None else time.monotonic() + 3_600.0 * hours
    root, known = find_experiments(Path.cwd())
    if not names and not everything:
        for name, experiment in known.items():
            cost = "" if isinstance(experiment, Figure) else f"{experiment.hours:g} h"
            say(f"{name:22s} {cost:>7s}  {experiment.title}")
        return
    for name in _chosen(names, everything, known):
        experiment = known[name]
        if isinstance(experiment, Figure):
            experiment.write(out / name)
            say(f"{name} is in {out / name}")
            continue
        if repeats is not None:
            experiment = replace(experiment, repeats=repeats)
        _compare(experiment, out / name, root, workers, address, here, until)
    say(f"every claim is in {write_summary(known, out)}")


def _chosen(names: tuple[str, ...], everything: bool, known: Mapping[str, Experiment | Figure]) -> list[str]:
    """The experiments that are meant: in the order of the names, or the cheapest first."""
    from fnmatch import fnmatch

    from raybo.error_text import nearest

    if everything:
        return sorted(known, key=lambda name: getattr(known[name], "hours", 0.0))
    chosen: list[str] = []
    for pattern in names:
        found = [name for name in known if fnmatch(name, pattern)]
        if not found:
            raise MethodError(f"there is no experiment {pattern!r}{nearest(pattern, list(known))}")
        chosen += found
    return chosen


def _compare(
    experiment: Experiment,
    out: Path,
    root: Path | None,
    workers: int | None,
    address: str | None,
    here: bool,
    until: float | None = None,
) -> None:
    from rich.progress import Progress

    from raybo.experiments import compare as run
    from raybo.experiments import table
    from raybo.reporting.fitted import text_table

    console = make_console()
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task(experiment.name, total=None)

        def watch(done: int, total: int, finished: Run) -> None:
            progress.update(bar, completed=done, total=total)
            if not console.is_terminal:
                say(f"{done}/{total} runs: {finished.problem.name}, {finished.entry.name}, seed {finished.seed}")

        try:
            rows, verdicts = run(
                experiment, out, root=root, workers=workers, address=address, watch=watch, here=here, until=until
            )
        except KeyboardInterrupt:
            say(f"Stopped. The runs so far are in {out}; the same command continues.", err=True)
            raise
    if until is not None and not rows:
        click.echo(f"{experiment.name}: no run of it is complete")
        return
    console.print(text_table(*table(experiment, rows)))
    for verdict in verdicts:
        p = f"p = {verdict.corrected:.3f}, " if verdict.word not in ("a look", "not measured") else ""
        say(f"{verdict.problem}: {verdict.claim.text}: {verdict.word} ({p}{verdict.repeats} pairs)")
    console.print(f"table, curves, figure and journals are in {out}", style="dim", soft_wrap=True)


def _name_and_options(text: str) -> tuple[str, dict[str, str]]:
    name, *options = text.strip().split(":")
    return name, pairs(tuple(options), "--methods")
