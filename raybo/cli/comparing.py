"""Commands that compare methods: on the user's own objective, and as the papers did."""

from __future__ import annotations

import math
import re
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from raybo.cli.arguments import FILE, JSON, PATH, SETTINGS, at_most_one, pairs
from raybo.cli.console import make_console, say, say_json, saying_how_to_go_on, writing
from raybo.cli.job_output import job_output
from raybo.common.errors import MethodError, RayboError

if TYPE_CHECKING:
    from raybo.experiments import Experiment, Figure, Verdict
    from raybo.experiments.results import Row
    from raybo.experiments.run import Run


WORKERS = click.option("--workers", type=int, metavar="K", help="Number of parallel runs.  [default: as many as fit]")
ADDRESS = click.option(
    "--address", metavar="auto|HOST:PORT", help="The Ray cluster to run on.  [default: a local Ray of its own]"
)
IN_PROCESS = click.option(
    "--in-process", is_flag=True, help="Run one after another in this process, without starting Ray."
)
HERE = click.option("--here", is_flag=True, hidden=True, help="What 0.2 called --in-process.")
OUT = click.option("--out", type=PATH, hidden=True, help="What 0.1 called --output.")


BETWEEN_METHODS = re.compile(r",(?!\s*(?:[-+.\d]|\w+=))")  # a number or NAME=VALUE belongs to the option before it

F = TypeVar("F", bound="Callable[..., Any] | click.Command")


def _output(default: str) -> Callable[[F], F]:
    help_text = f"Directory for the results.  [default: {default}]"
    return click.option("-o", "--output", type=PATH, metavar="DIR", help=help_text)


@click.command()
@FILE
@click.option(
    "--methods",
    "names",
    required=True,
    metavar="A,B,...",
    help="The methods, by name or as package.module:Class; options as A:key=value:key=value, a scheduler as "
    "A@NAME:key=value. A value may be a list, as in "
    "A:key=0.1,0.2 or A:key=name=0.1,name=2.",
)
@click.option("--repeats", default=10, show_default=True, metavar="R", help="Runs per method, paired by seed.")
@click.option("--trials", default=50, show_default=True, metavar="N", help="Trials per run.")
@click.option("--seed", default=0, show_default=True, metavar="S", help="Seed of the first run; the others count up.")
@SETTINGS
@click.option("--scheduler", metavar="NAME", help="Scheduler for methods that name none.")
@click.option(
    "--optimum",
    type=float,
    metavar="V",
    help="The best possible value, if known: regret is measured against it rather than the best value of any run.",
)
@click.option(
    "--per",
    metavar="seconds|NAME",
    help="Compare at equal cost, that of the cheapest run: the seconds of the trials, or a number that they return.  "
    "[default: at equal trials]",
)
@WORKERS
@ADDRESS
@IN_PROCESS
@HERE
@_output("compare-FILE in the current directory")
@OUT
@JSON
@click.pass_context
def compare(
    ctx: click.Context,
    file: str,
    names: str,
    repeats: int,
    trials: int,
    seed: int,
    settings: tuple[str, ...],
    scheduler: str | None,
    optimum: float | None,
    per: str | None,
    workers: int | None,
    address: str | None,
    in_process: bool,
    here: bool,
    output: Path | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Compare methods on your own objective.

    Draws curves and a table, and gives a verdict on each pair of methods. Every run is a study with one worker, kept
    in DIR/runs: run the same command again to continue, or with more repeats to add to it. With a scheduler the budget
    is the steps of N whole trials, so the steps that it saves buy more trials. Jobs with several metrics are compared
    by the hypervolume of the front; with constraints, a trial that breaks one counts as the worst value seen.

    \b
        raybo compare job.py --methods auto,random
        raybo compare job.py --methods auto,auto@median,gp-ucb:solver=cg --repeats 20 --trials 30
        raybo compare job.py --methods ei,ei:hyperparameters=lengthscale=0.3,noise_variance=1e-4

    --json prints an object with the keys directory, runs and verdicts. A run: problem, method, seed, mode and numbers,
    the measures of runs.csv by name. A verdict: problem, claim, verdict, better and worse (medians), difference and
    interval (95%) in the claim's favour, p (corrected for all claims) and pairs.
    """
    at_most_one(ctx, "in_process", "here", "address")
    at_most_one(ctx, "in_process", "here", "workers")
    at_most_one(ctx, "output", "out")
    from raybo.experiments import Entry, Experiment, Problem
    from raybo.experiments.run import runs
    from raybo.job.loading import study_name

    entries = []
    for text in map(str.strip, BETWEEN_METHODS.split(names)):
        method, options = _name_and_options(text.partition("@")[0])
        rule, rule_options = _name_and_options(text.partition("@")[2])
        entries.append(Entry(text, method, options, scheduler=rule or scheduler, scheduler_options=rule_options))
    problem = Problem(study_name(file), file, trials, optimum=optimum, settings=pairs(settings, "--set"))
    experiment = Experiment(
        name="compare",
        title=f"{file}, {trials} trials per run" + (f", at equal {per}" if per else ""),
        problems=[problem],
        entries=entries,
        repeats=repeats,
        curve="best_value" if optimum is None else "simple_regret",
        first_seed=seed,
        command=_command(file, names, trials, settings, scheduler, optimum, per, seed),
        per=per,
    )
    directory = output or out or Path(f"compare-{problem.name}")
    rows, verdicts = _compare(experiment, directory, None, workers, address, in_process or here, as_json=as_json)
    if beaten := _better_than(optimum, rows):
        say(beaten, err=True)
    if as_json:
        say_json(_as_json(directory, rows, verdicts))
    has_result = any(math.isfinite(row.numbers.get("final_value", math.nan)) for row in rows)
    if rows and not has_result and not any(_has_finished(run.path) for run in runs(experiment, directory)):
        raise RayboError(f"compare: no trial of any run has finished; the journals are in {directory}")


def _has_finished(path: Path) -> bool:
    """Return True if a run has a trial that was not pruned and has not failed."""
    from raybo.record.states import State
    from raybo.study.study import load

    return path.is_file() and load(path).count(State.FINISHED) > 0


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME ...]")
@click.option("--all", "everything", is_flag=True, help="Reproduce everything, the cheapest first.")
@click.option("--hours", type=float, metavar="H", help="Stop after H hours; 0 only writes the results so far.")
@click.option("--repeats", type=int, metavar="R", help="Runs per method.  [default: the experiment's]")
@WORKERS
@ADDRESS
@IN_PROCESS
@HERE
@_output("reproduction")
@OUT
@JSON
@click.pass_context
def reproduce(
    ctx: click.Context,
    names: tuple[str, ...],
    everything: bool,
    hours: float | None,
    repeats: int | None,
    workers: int | None,
    address: str | None,
    in_process: bool,
    here: bool,
    output: Path | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Reproduce the papers' figures and tables.

    Works in a clone of the repository; without a NAME it lists what can be reproduced. A NAME may be a pattern such as
    uhe-*. Results go to DIR/NAME, and all claims to DIR/claims.md. The same command continues where it stopped; when
    the hours are up, results are written for the runs that are complete.

    \b
        raybo reproduce
        raybo reproduce inexact-fig3 --repeats 6
        raybo reproduce --all --hours 8

    --json prints a list of objects with the keys name, title and hours (null for what is only computed); with a NAME,
    or --all, they have also the keys of `raybo compare --json`, with no runs while none is complete.
    """
    at_most_one(ctx, "in_process", "here", "address")
    at_most_one(ctx, "in_process", "here", "workers")
    at_most_one(ctx, "output", "out")
    at_most_one(ctx, "names", "everything")
    directory = output or out or Path("reproduction")
    from raybo.experiments import Figure
    from raybo.experiments.papers import find_experiments
    from raybo.experiments.summary import write_summary

    if hours is not None and not 0.0 <= hours < math.inf:
        raise MethodError(f"hours must be a number from 0, got {hours}")
    until = None if hours is None else time.monotonic() + 3_600.0 * hours
    root, known = find_experiments(Path.cwd())
    if not names and not everything:
        typed = [each for each in ctx.params if ctx.get_parameter_source(each) is ParameterSource.COMMANDLINE]
        if any(each != "as_json" for each in typed):
            raise click.UsageError("give the NAME of what is to be reproduced, or --all")
        _list(known, as_json)
        return
    found = []
    for name in _chosen(names, everything, known):
        experiment, place = known[name], directory / name
        rows: Sequence[Row] = ()
        verdicts: Sequence[Verdict] = ()
        if isinstance(experiment, Figure):
            experiment.write(place)
            if not as_json:
                say(f"{name} is in {place}")
        else:
            if repeats is not None:
                experiment = replace(experiment, repeats=repeats)
            rows, verdicts = _compare(
                experiment, place, root, workers, address, in_process or here, until, as_json=as_json
            )
        found.append({**_facts(experiment), **_as_json(place, rows, verdicts)})
    summary = write_summary(known, directory)
    if as_json:
        say_json(found)
    else:
        say(f"all claims are in {summary}")


def _list(known: Mapping[str, Experiment | Figure], as_json: bool) -> None:
    """Print what can be reproduced."""
    if as_json:
        say_json([_facts(experiment) for experiment in known.values()])
        return
    for facts in map(_facts, known.values()):
        cost = "" if facts["hours"] is None else f"{facts['hours']:g} h"
        say(f"{facts['name']:22s} {cost:>7s}  {facts['title']}")


def _facts(experiment: Experiment | Figure) -> dict[str, Any]:
    """Return what an experiment is, as JSON shows it."""
    return {"name": experiment.name, "title": experiment.title, "hours": getattr(experiment, "hours", None)}


def _chosen(names: tuple[str, ...], everything: bool, known: Mapping[str, Experiment | Figure]) -> list[str]:
    """Return the chosen experiments: in the order of the names, or the cheapest first."""
    from fnmatch import fnmatch

    from raybo.common.messages import nearest

    if everything:
        return sorted(known, key=lambda name: getattr(known[name], "hours", 0.0))
    chosen: list[str] = []
    for pattern in names:
        found = [name for name in known if fnmatch(name, pattern)]
        if not found:
            raise MethodError(f"there is no experiment {pattern!r}{nearest(pattern, list(known))}")
        chosen += [name for name in found if name not in chosen]
    return chosen


def _compare(
    experiment: Experiment,
    out: Path,
    root: Path | None,
    workers: int | None,
    address: str | None,
    in_process: bool,
    until: float | None = None,
    *,
    as_json: bool = False,
) -> tuple[Sequence[Row], Sequence[Verdict]]:
    """Run an experiment, and return its rows and verdicts, which are printed as a table unless they go into JSON."""
    from rich.progress import Progress

    from raybo.experiments import compare as run
    from raybo.experiments import table
    from raybo.experiments.results import columns
    from raybo.reporting.table_layout import text_table

    console = make_console()
    with Progress(console=console, transient=True, disable=as_json or not console.is_terminal) as progress:
        bar = progress.add_task(experiment.name, total=None)

        def watch(done: int, total: int, finished: Run) -> None:
            progress.update(bar, completed=done, total=total)
            if not console.is_terminal and not as_json:
                with writing():
                    say(f"{done}/{total} runs: {finished.problem.name}, {finished.entry.name}, seed {finished.seed}")

        with (
            saying_how_to_go_on(f"The runs so far are in {out}; the same command continues."),
            job_output(quiet=False, as_json=as_json and in_process),
        ):
            rows, verdicts = run(
                experiment,
                out,
                root=root,
                workers=workers,
                address=address,
                watch=watch,
                in_process=in_process,
                until=until,
            )
    is_judged = "final_value" in columns(experiment)
    if without := [row for row in rows if is_judged and not math.isfinite(row.numbers.get("final_value", math.nan))]:
        say(_no_result(experiment, out, without, len(rows)), err=True)
    if as_json:
        return rows, verdicts
    if until is not None and not rows:
        say(f"{experiment.name}: none of its runs is complete")
        return rows, verdicts
    with writing():
        console.print(text_table(*table(experiment, rows)))
        for verdict in verdicts:
            say(f"{verdict.problem}: {verdict.claim.text}: {_in_words(verdict, len(verdicts))}")
        console.print(f"table, curves, figure and journals are in {out}", style="dim", soft_wrap=True)
    return rows, verdicts


def _no_result(experiment: Experiment, out: Path, without: Sequence[Row], count: int) -> str:
    """Say that some of so many runs have no result, and why the last trial of the first of them failed."""
    from raybo.experiments.run import runs
    from raybo.record.states import FAILURES
    from raybo.study.study import load

    first = without[0]
    which = (first.problem, first.method, first.seed)
    found = (run.path for run in runs(experiment, out) if (run.problem.name, run.entry.name, run.seed) == which)
    trials = [trial for path in found for trial in load(path).trials]
    failed = [trial.reason for trial in trials if trial.state in FAILURES]
    why = f", whose last failure is: {failed[-1]}" if failed else ""
    if any(trial.violations for trial in trials):
        why = ", of which no trial keeps the constraints"
    begin = "the only run has" if count == 1 else f"{len(without)} of the {count} runs have"
    return f"{begin} no result, the first being {first.problem}, {first.method}, seed {first.seed}{why}"


def _in_words(verdict: Verdict, claims: int) -> str:
    """Return the verdict on one of so many claims in words, for a terminal."""
    from raybo.experiments.verdicts import pairs_needed

    pairs = f"{verdict.repeats} pair{'' if verdict.repeats == 1 else 's'} of runs"
    if not verdict.is_judged:
        return f"not judged ({pairs}, {pairs_needed(claims)} are needed{f' for {claims} claims' * (claims > 1)})"
    return f"{verdict.word} (p = {verdict.corrected:.3f}, {pairs})"


def _command(
    file: str,
    methods: str,
    trials: int,
    settings: tuple[str, ...],
    scheduler: str | None,
    optimum: float | None,
    per: str | None,
    seed: int,
) -> str:
    """Return the command as typed, without the repeats and the options that change no result."""
    words = ["raybo", "compare", file, "--methods", methods, "--trials", str(trials)]
    words += [word for setting in settings for word in ("--set", setting)]
    chosen = (("--scheduler", scheduler), ("--optimum", optimum), ("--per", per), ("--seed", seed or None))
    for option, given in chosen:
        words += [] if given is None else [option, str(given)]
    return shlex.join(words)


def _as_json(out: Path, rows: Sequence[Row], verdicts: Sequence[Verdict]) -> dict[str, Any]:
    def as_json(verdict: Verdict) -> dict[str, Any]:
        difference, *interval = verdict.effect
        return {
            "problem": verdict.problem,
            "claim": verdict.claim.text,
            "verdict": verdict.word,
            "better": verdict.better,
            "worse": verdict.worse,
            "difference": difference,
            "interval": interval,
            "p": verdict.corrected,
            "pairs": verdict.repeats,
        }

    return {
        "directory": str(out),
        "runs": [asdict(row) for row in rows],
        "verdicts": [as_json(verdict) for verdict in verdicts],
    }


def _name_and_options(text: str) -> tuple[str, dict[str, str]]:
    from raybo.methods import METHODS
    from raybo.schedulers import SCHEDULERS

    name, *options = text.strip().split(":")
    if options and "=" not in options[0] and name not in (*METHODS, *SCHEDULERS):  # package.module:Class
        name = f"{name}:{options.pop(0)}"
    return name, pairs(tuple(options), "--methods")


def _better_than(optimum: float | None, rows: Sequence[Row]) -> str:
    """Return a line on the run that is furthest beyond the optimum; empty if none is, or it is not known."""
    found = [row for row in rows if row.numbers.get("final_regret", 0.0) < 0.0]
    if optimum is None or not found:
        return ""
    row = min(found, key=lambda row: row.numbers["final_regret"])
    return (
        f"{row.method}, seed {row.seed}, reached {row.numbers['final_value']:.6g}, which is better than --optimum "
        f"{optimum:g}: regrets below 0 are noise, or the optimum is wrong"
    )
