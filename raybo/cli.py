"""The command line. Exit status: 0 success, 1 failure, 2 wrong use, 130 stopped by Ctrl-C."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from raybo.errors import MethodError, ObjectiveError, RayboError, SpaceError

if TYPE_CHECKING:
    from rich.console import Console

    from raybo.study import Study

WRONG_USE = (MethodError, ObjectiveError, SpaceError)


def main() -> None:
    """The script `raybo`."""
    try:
        cli(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except RayboError as error:
        click.echo(f"Error: {error}", err=True)
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
    quiet: bool,
) -> None:
    """Tune the objective of a Python file.

    FILE holds a function decorated with @raybo.objective; NAME chooses one of several. Every proposal and every result
    is kept in the journal: type the same command again to continue a study, whatever ended it.
    """
    from raybo.engine.driver import tune as run
    from raybo.objectives import load_objective
    from raybo.report.live import Display

    objective = load_objective(target)
    path = storage or default_storage(target)
    console = _console()

    try:
        with Display(console, objective.metric) as display:
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
                watch=None if quiet else display,
                **_pairs(options, "--option"),
            )
    except KeyboardInterrupt:
        click.echo(f"Stopped. The study is in {path}; the same command continues it.", err=True)
        raise
    _conclude(console, study, path)


@cli.command()
@click.argument("journal", type=Path, metavar="FILE.db")
@click.option("--last", default=20, show_default=True, metavar="N", help="How many of the last trials to list.")
@click.option("--all", "everything", is_flag=True, help="List every trial.")
def show(journal: Path, last: int, everything: bool) -> None:
    """Show a study: its trials, why they were tried, and the best one. It may be running meanwhile."""
    from raybo.report.tables import study_view
    from raybo.study import load

    study = load(journal)
    _console().print(study_view(study, len(study.trials) if everything else max(1, last)))


@cli.command()
@click.argument("names", nargs=-1, metavar="[NAME ...]")
def methods(names: tuple[str, ...]) -> None:
    """List the methods: what each does, and its options."""
    from raybo import methods as registry
    from raybo.report.tables import methods_table

    for name in names:
        registry.load(name)
    _console().print(methods_table(names or list(registry.METHODS)))


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
    more = f"; --trials {2 * ended} would continue it" if ended >= (study.planned or 0) else ""
    console.print(f"{ended} trials, kept in {path}{more}", style="dim", highlight=False, soft_wrap=True)


def _pairs(texts: tuple[str, ...], option: str) -> dict[str, str]:
    pairs = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise click.UsageError(f"{option} takes KEY=VALUE, got {text!r}")
        pairs[key.strip().replace("-", "_")] = value
    return pairs


def _console() -> Console:
    from rich.console import Console

    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=140)


if __name__ == "__main__":
    main()
