"""The command line. Exit status: 0 success, 1 failure, 2 wrong use, 130 stopped by Ctrl-C."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from raybo.errors import MethodError, ObjectiveError, RayboError, SpaceError

if TYPE_CHECKING:
    from rich.console import Console

    from raybo.engine.plan import Status
    from raybo.experiments import Experiment
    from raybo.experiments.run import Run
    from raybo.study import Study

WRONG_USE = (MethodError, ObjectiveError, SpaceError)


def main() -> None:
    """The script `raybo`."""
    try:
        cli(prog_name="raybo", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except RayboError as error:
        click.echo(f"Error: {' '.join(str(error).split())}", err=True)  # one line, whatever the user's values look like
        sys.exit(2 if isinstance(error, WRONG_USE) else 1)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    except BrokenPipeError:  # the reader has seen enough: `raybo show ... | head`
        sys.stderr.close()
        sys.exit(0)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="raybo")
def cli() -> None:
    """Tune machine-learning jobs by Bayesian optimisation on Ray.

    Decorate your training function with @raybo.objective, then:

    \b
        raybo tune job.py            tune it, here, on all cores
        raybo show job.db            see what happened
    """


@cli.command()
@click.argument("target", metavar="FILE[:NAME]")
@click.option(
    "--trials", default=50, show_default=True, metavar="N", help="Trials to run, those of the journal included."
)
@click.option("--method", metavar="M", help="How to search, see `raybo methods`.  [default: auto, or the journal's]")
@click.option("--seed", type=int, metavar="S", help="Seed of every random stream.  [default: drawn, or the journal's]")
@click.option(
    "--storage",
    type=Path,
    metavar="FILE.db",
    help="The journal; an existing one is continued.  [default: FILE's name with .db, here]",
)
@click.option(
    "--workers", type=int, metavar="K", help="Trials that run at a time.  [default: as many as there is room for]"
)
@click.option(
    "--address", metavar="auto|HOST:PORT", help="A running Ray cluster to join.  [default: a local Ray of its own]"
)
@click.option("--max-minutes", type=float, metavar="T", help="Stop the study after this time.")
@click.option("--trial-seconds", type=float, metavar="T", help="Stop a trial that runs longer, and count it as failed.")
@click.option(
    "--retries", default=2, show_default=True, metavar="N", help="Fresh starts of a trial whose worker was lost."
)
@click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="A keyword parameter of the objective; repeatable."
)
@click.option("--option", "options", multiple=True, metavar="KEY=VALUE", help="An option of the method; repeatable.")
@click.option(
    "--from", "known_from", type=Path, metavar="OTHER.db", help="Begin with the results of another study that fit."
)
@click.option(
    "--enqueue", type=Path, metavar="FILE.json", help="A list of configurations to run first; with values, as results."
)
@click.option(
    "--log",
    "logs",
    multiple=True,
    metavar="FORM=WHERE",
    help="Keep an export up to date, see `raybo export`; repeatable.",
)
@click.option("--detach", is_flag=True, help="Leave the study running on its cluster; see `raybo attach`.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but the result.")
def tune(
    target: str,
    trials: int,
    method: str | None,
    seed: int | None,
    storage: Path | None,
    workers: int | None,
    address: str | None,
    max_minutes: float | None,
    trial_seconds: float | None,
    retries: int,
    settings: tuple[str, ...],
    options: tuple[str, ...],
    known_from: Path | None,
    enqueue: Path | None,
    logs: tuple[str, ...],
    detach: bool,
    quiet: bool,
) -> None:
    """Tune the objective of a Python file.

    FILE holds a function decorated with @raybo.objective; NAME chooses one of several. Every proposal and every result
    is kept in the journal: type the same command again to continue a study, whatever ended it.
    """
    from raybo.engine.driver import tune as run
    from raybo.integrations.export import Recorder
    from raybo.objectives import load_objective
    from raybo.report.live import Display

    objective = load_objective(target)
    path = storage or default_storage(target)
    console = _console()
    chosen = _pairs(options, "--option")
    if ours := next((key for key in chosen if key in inspect.signature(run).parameters), None):
        raise click.UsageError(f"--option {ours}: it is no option of a method; see raybo methods, raybo tune --help")
    if logs and detach:
        raise click.UsageError("--log ends with this command, and a detached study does not; use raybo export --follow")
    recorders = [Recorder(path, form, where) for form, where in _pairs(logs, "--log").items()]

    try:
        with Display(console) as display:
            study = run(
                objective,
                trials=trials,
                method=method,
                seed=seed,
                storage=path,
                workers=workers,
                address=address,
                max_minutes=max_minutes,
                trial_seconds=trial_seconds,
                retries=retries,
                settings=_pairs(settings, "--set"),
                known_from=known_from,
                enqueue=() if enqueue is None else _read_list(enqueue),
                detach=detach,
                watch=_all_of([*([] if quiet else [display]), *recorders]),
                **chosen,
            )
    except KeyboardInterrupt:
        click.echo(f"Stopped. The study is in {path}; the same command continues it.", err=True)
        raise
    if detach:
        at = f" --address {address}" if address else ""
        click.echo(f"{path.stem} runs, kept in {path}; raybo attach {path.stem}{at} follows it, raybo stop ends it")
        return
    _conclude(console, study, path)


@cli.command()
@click.argument("name", metavar="NAME")
@click.option("--address", default="auto", show_default=True, metavar="auto|HOST:PORT", help="The cluster it runs on.")
def attach(name: str, address: str) -> None:
    """Follow a study that was begun with --detach. Ctrl-C leaves it running.

    NAME is its journal's, without `.db`.
    """
    from raybo.engine.follow import attach as run
    from raybo.report.live import Display

    console = _console()
    try:
        with Display(console) as display:
            study = run(name, address, display)
    except KeyboardInterrupt:
        click.echo(f"{name} goes on; raybo stop {name} ends it", err=True)
        raise
    if study is not None and study.path is not None:
        _conclude(console, study, study.path)


@cli.command()
@click.argument("name", metavar="NAME")
@click.option("--address", default="auto", show_default=True, metavar="auto|HOST:PORT", help="The cluster it runs on.")
def stop(name: str, address: str) -> None:
    """End a study that was begun with --detach; its journal keeps what has finished, and can be continued."""
    from raybo.engine.follow import stop as run

    study = run(name, address)
    where = "" if study is None else f"; the study is in {study.path}"
    click.echo(f"Stopped{where}")


@cli.command()
@click.argument("journal", type=Path, metavar="FILE.db")
@click.option("--last", default=20, show_default=True, metavar="N", help="How many of the last trials to list.")
@click.option("--all", "everything", is_flag=True, help="List every trial.")
@click.option("--trial", type=int, metavar="N", help="Everything about one trial instead.")
@click.option("--watch", is_flag=True, help="Follow a study that is running, until it ends; Ctrl-C only stops looking.")
@click.option("--replay", "again", is_flag=True, help="Propose every trial again from the journal alone, and compare.")
@click.option(
    "--context", multiple=True, metavar="NAME=VALUE", help="The best one where the context is this instead; repeatable."
)
def show(
    journal: Path, last: int, everything: bool, trial: int | None, watch: bool, again: bool, context: tuple[str, ...]
) -> None:
    """Show a study: its trials, why they were tried, and the best one. It may be running meanwhile."""
    from raybo.report.tables import best_view, study_view
    from raybo.report.trial_view import trial_view
    from raybo.report.watch import watch_study
    from raybo.space import read_text
    from raybo.study import load

    if again:
        _replay(load(journal))
    elif trial is not None:
        _console().print(trial_view(load(journal), trial))
    elif context:
        study = load(journal)
        told = [text.partition("=")[::2] for text in context]
        _console().print(best_view(study, {name: read_text(study.context, name, value) for name, value in told}))
    elif watch:
        watch_study(journal, _console(), max(1, last))
    else:
        study = load(journal)
        _console().print(study_view(study, len(study.trials) if everything else max(1, last)))


@cli.command()
@click.argument("journal", type=Path, metavar="FILE.db")
@click.option("-o", "--output", type=Path, metavar="FILE", help="A page (.html) or a picture.  [default: FILE.html]")
def plot(journal: Path, output: Path | None) -> None:
    """Draw a study: a page with all its figures (.html), or a picture for a paper (.png, .svg, .pdf)."""
    from raybo.report import draw
    from raybo.study import load

    path = output or Path(f"{journal.stem}.html")
    draw(load(journal), path)
    click.echo(f"Wrote {path}")


@cli.command()
@click.argument("journal", type=Path, metavar="FILE.db")
@click.option(
    "--to",
    required=True,
    metavar="FORM",
    help="csv, json, optuna (a journal file for optuna-dashboard), tensorboard (a directory), mlflow (a tracking URI).",
)
@click.option("-o", "--output", required=True, metavar="WHERE", help="The file, directory or URI to write.")
@click.option("--follow", is_flag=True, help="Keep it up to date until the study ends; Ctrl-C only stops that.")
def export(journal: Path, to: str, output: str, follow: bool) -> None:
    """Write a study in a form that other programs read: once, or for as long as it runs."""
    from raybo.integrations.export import exporter
    from raybo.report.watch import follow as keep_following
    from raybo.study import load

    study = load(journal)
    write = exporter(to, output)
    if follow:
        study = keep_following(journal, write)
    else:
        write(study)
    click.echo(f"Wrote {len(study.trials)} trials to {output}")


@cli.command()
@click.argument("journal", type=Path, metavar="FILE.db")
@click.argument("values", nargs=-1, required=True, metavar="NAME=VALUE ...")
@click.option("--value", type=float, metavar="V", help="Its result, where it is known.  [default: it is run first]")
def enqueue(journal: Path, values: tuple[str, ...], value: float | None) -> None:
    """Add a configuration to a study that is not running: to be run first, or with its result.

    Every parameter must be named. The next `raybo tune` of the study takes it from there.
    """
    from raybo import warm_start
    from raybo.study import load

    texts = dict(text.partition("=")[::2] for text in values)
    config = warm_start.read_config(load(journal).space, texts)
    warm_start.enqueue(journal, config, value)
    click.echo("Added; the study's next run " + ("knows its result" if value is not None else "begins with it"))


@cli.command()
@click.argument("names", nargs=-1, metavar="[NAME ...]")
def methods(names: tuple[str, ...]) -> None:
    """List the methods: what each does, and its options."""
    from raybo import methods as registry
    from raybo.report.tables import methods_table

    for name in names:
        registry.load(name)
    _console().print(methods_table(names or list(registry.METHODS)))


@cli.command()
@click.argument("target", metavar="FILE[:NAME]")
@click.option("--methods", "names", required=True, metavar="A,B,...", help="Methods; options as A:key=value:key=value.")
@click.option("--repeats", default=5, show_default=True, metavar="R", help="Runs of each method, paired by seed.")
@click.option("--trials", default=50, show_default=True, metavar="N", help="Trials a run.")
@click.option("--seed", default=0, show_default=True, metavar="S", help="Seed of the first run; the next ones follow.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="A keyword parameter of the objective.")
@click.option("--optimum", type=float, metavar="V", help="The best possible value, where it is known: adds regret.")
@click.option("--workers", type=int, metavar="K", help="Runs at a time.  [default: as many as there is room for]")
@click.option("--address", metavar="auto|HOST:PORT", help="A running Ray cluster to join.")
@click.option("--out", type=Path, metavar="DIR", help="Where results go.  [default: compare-FILE, here]")
def compare(
    target: str,
    names: str,
    repeats: int,
    trials: int,
    seed: int,
    settings: tuple[str, ...],
    optimum: float | None,
    workers: int | None,
    address: str | None,
    out: Path | None,
) -> None:
    """Compare methods on an objective of yours: curves, a table, and a verdict on each pair.

    Every run is a study with one worker, kept under DIR/runs: type the same command again to continue, or with more
    repeats to add to it.
    """
    from raybo.experiments import Entry, Experiment, Problem

    entries = [Entry(text, *_method_and_options(text)) for text in names.split(",")]
    problem = Problem(default_storage(target).stem, target, trials, optimum=optimum, settings=_pairs(settings, "--set"))
    experiment = Experiment(
        name="compare",
        title=f"{target}, {trials} trials a run",
        problems=[problem],
        entries=entries,
        repeats=repeats,
        curve="best_value" if optimum is None else "simple_regret",
        first_seed=seed,
    )
    _compare(experiment, out or Path(f"compare-{problem.name}"), None, workers, address)


@cli.command()
@click.argument("names", nargs=-1, metavar="[NAME ...]")
@click.option("--repeats", type=int, metavar="R", help="Runs of each method.  [default: the experiment's]")
@click.option("--workers", type=int, metavar="K", help="Runs at a time.  [default: as many as there is room for]")
@click.option("--address", metavar="auto|HOST:PORT", help="A running Ray cluster to join.")
@click.option("--out", type=Path, default=Path("reproduction"), show_default=True, metavar="DIR", help="Where to.")
def reproduce(names: tuple[str, ...], repeats: int | None, workers: int | None, address: str | None, out: Path) -> None:
    """Reproduce figures and tables of the papers, in a clone; without a NAME, list them.

    A NAME may end in * to mean all that begin so. Results go to DIR/NAME, and the same command continues there.
    """
    from fnmatch import fnmatch

    from raybo.experiments import Figure
    from raybo.experiments.papers import find_experiments
    from raybo.methods.options import nearest

    root, known = find_experiments(Path.cwd())
    if not names:
        for name, experiment in known.items():
            click.echo(f"{name:28s} {experiment.title}")
        return
    for pattern in names:
        chosen = [name for name in known if fnmatch(name, pattern)]
        if not chosen:
            raise MethodError(f"there is no experiment {pattern!r}{nearest(pattern, list(known))}")
        for name in chosen:
            experiment = known[name]
            if isinstance(experiment, Figure):
                experiment.write(out / name)
                click.echo(f"{name} is in {out / name}")
                continue
            if repeats is not None:
                experiment = replace(experiment, repeats=repeats)
            _compare(experiment, out / name, root, workers, address)


def _replay(study: Study) -> None:
    from raybo.errors import TrialError
    from raybo.replay import replay

    replayed = list(replay(study))
    different = [again for again in replayed if again.differs]
    for again in different:
        click.echo(f"trial {again.trial}: proposed again, its {' and its '.join(again.differs)} differ")
    if different:
        raise TrialError(f"{len(different)} of {len(replayed)} proposals differ; was another version or machine used?")
    click.echo(f"{len(replayed)} proposals made again from the journal alone: every one is the same")


def _compare(experiment: Experiment, out: Path, root: Path | None, workers: int | None, address: str | None) -> None:
    from rich.progress import Progress

    from raybo.experiments import compare as run
    from raybo.experiments import table
    from raybo.report.tables import comparison_table

    console = _console()
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task(experiment.name, total=None)

        def watch(done: int, total: int, finished: Run) -> None:
            progress.update(bar, completed=done, total=total)
            if not console.is_terminal:
                click.echo(f"{done}/{total} runs: {finished.problem.name}, {finished.entry.name}, seed {finished.seed}")

        try:
            studies, verdicts = run(experiment, out, root=root, workers=workers, address=address, watch=watch)
        except KeyboardInterrupt:
            click.echo(f"Stopped. The runs so far are in {out}; the same command continues.", err=True)
            raise
    console.print(comparison_table(*table(experiment, studies)))
    for verdict in verdicts:
        p = min(verdict.p_holds, verdict.p_fails)
        click.echo(f"{verdict.problem}: {verdict.claim.text}: {verdict.word} (p = {p:.3f}, {verdict.repeats} pairs)")
    console.print(f"table, curves, figure and journals are in {out}", style="dim", soft_wrap=True)


def _method_and_options(text: str) -> tuple[str, dict[str, str]]:
    name, *pairs = text.strip().split(":")
    return name, _pairs(tuple(pairs), "--methods")


def default_storage(target: str) -> Path:
    """Where a study is kept when nobody says: named after the objective's file, in the current directory."""
    file, _, name = target.partition(":")
    return Path(f"{Path(file).stem}-{name}.db" if name else f"{Path(file).stem}.db")


def _conclude(console: Console, study: Study, path: Path) -> None:
    from raybo.errors import TrialError
    from raybo.history import State
    from raybo.report.tables import best_view

    ended = study.count(State.FINISHED, State.FAILED, State.LOST)
    if not study.count(State.FINISHED):
        last = next((t for t in reversed(study.trials) if t.state in (State.FAILED, State.LOST)), None)
        why = f"; the last one: {last.reason}" if last else ""
        raise TrialError(f"none of {len(study.trials)} trials has finished{why}; see raybo show {path}")
    console.print(best_view(study))
    ran = ended - sum(trial.tags.get("origin") == "added" for trial in study.trials)
    more = f"; --trials {2 * max(1, ran)} would continue it" if ended >= (study.planned or 0) else ""
    console.print(f"{ended} trials, kept in {path}{more}", style="dim", highlight=False, soft_wrap=True)


def _pairs(texts: tuple[str, ...], option: str) -> dict[str, str]:
    pairs = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise click.UsageError(f"{option} takes KEY=VALUE, got {text!r}")
        pairs[key.strip().replace("-", "_")] = value
    return pairs


def _read_list(path: Path) -> list[Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise click.UsageError(f"{path}: no list of configurations in JSON ({error})") from None
    if not isinstance(content, list):
        raise click.UsageError(f"{path}: a list of configurations is needed")
    return content


def _all_of(watches: Sequence[Callable[[Status], None]]) -> Callable[[Status], None] | None:
    def watch(status: Status) -> None:
        for each in watches:
            each(status)

    return watch if watches else None


def _console() -> Console:
    from rich.console import Console

    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=140)


if __name__ == "__main__":
    main()
