"""Commands that run a study here: tune, and what is to be run first."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import click

from raybo.cli.arguments import SEARCH, TARGET, all_of, default_storage, named_values, pairs, read_list
from raybo.cli.console import conclude, make_console, say

if TYPE_CHECKING:
    from raybo.engine.checkpoints import Keep
    from raybo.engine.plan import Status


@click.command()
@TARGET
@all_of(SEARCH)
@click.option(
    "--storage",
    type=Path,
    metavar="FILE.db",
    help="The journal; an existing one is continued.  [default: FILE's name with .db, here]",
)
@click.option(
    "--address", metavar="auto|HOST:PORT", help="A running Ray cluster to join.  [default: a local Ray of its own]"
)
@click.option("-m", "--module", is_flag=True, help="FILE is a module, as for `python -m`, even where such a file is.")
@click.option("--detach", is_flag=True, help="Leave the study running on its cluster; see `raybo attach`.")
def tune(
    target: str,
    trials: int,
    method: str | None,
    seed: int | None,
    storage: Path | None,
    workers: int | Literal["max"] | None,
    address: str | None,
    max_minutes: float | None,
    trial_seconds: float | None,
    retries: int,
    settings: tuple[str, ...],
    options: tuple[str, ...],
    scheduler: str | None,
    scheduler_options: tuple[str, ...],
    artifacts: str | None,
    keep_checkpoints: Keep,
    known_from: Path | None,
    enqueue: Path | None,
    logs: tuple[str, ...],
    detach: bool,
    fresh_workers: bool,
    retry_failed: bool,
    keep_going: bool,
    wanted: float | None,
    patience: int | None,
    stop_below_gain: float | None,
    confirm: str | None,
    defaults: tuple[str, ...],
    quiet: bool,
    module: bool,
) -> None:
    """Tune the objective of a Python file, or of package.module:NAME in FILE's place.

    FILE holds a function decorated with @raybo.objective; NAME chooses one of several. Every proposal and every result
    is kept in the journal: type the same command again to continue a study, whatever ended it.
    """
    from raybo.engine.driver import tune as run
    from raybo.engine.progress import Display
    from raybo.integrations.export import Recorder
    from raybo.objectives import load_objective

    objective = load_objective(target, is_module=module)
    path = storage or default_storage(target)
    console = make_console()
    chosen = pairs(options, "--option")
    if ours := next((key for key in chosen if key in inspect.signature(run).parameters), None):
        raise click.UsageError(
            f"--option {ours}: this is not an option of any method; see raybo methods and raybo tune --help"
        )
    if logs and detach:
        raise click.UsageError("--log ends with this command, and a detached study does not; use raybo export --follow")
    recorders = [Recorder(path, form, where) for form, where in pairs(logs, "--log").items()]

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
                settings=pairs(settings, "--set"),
                known_from=known_from,
                enqueue=() if enqueue is None else read_list(enqueue),
                detach=detach,
                scheduler=scheduler,
                scheduler_options=pairs(scheduler_options, "--scheduler-option"),
                artifacts=artifacts,
                keep_checkpoints=keep_checkpoints,
                fresh_workers=fresh_workers,
                retry_failed=retry_failed,
                keep_going=keep_going,
                target=wanted,
                patience=patience,
                stop_below_gain=stop_below_gain,
                confirm=confirm,
                defaults=named_values(defaults, "--default"),
                watch=_each_of([*([] if quiet else [display]), *recorders]) or False,
                **cast(Any, chosen),  # texts, which the method reads as its options' types
            )
    except KeyboardInterrupt:
        say(f"Stopped. The study is in {path}; the same command continues it.", err=True)
        raise
    if detach:
        at = f" --address {address}" if address else ""
        say(f"{path.stem} runs, kept in {path}; raybo attach {path.stem}{at} follows it, raybo stop ends it")
        return
    conclude(console, study, path)


@click.command()
@click.argument("journal", type=Path, metavar="FILE.db")
@click.argument("values", nargs=-1, required=True, metavar="NAME=VALUE ...")
@click.option(
    "--value", type=float, metavar="V", help="Its result, if it is known.  [default: unknown, so it is run first]"
)
def enqueue(journal: Path, values: tuple[str, ...], value: float | None) -> None:
    """Add a configuration to a study that is not running: to be run first, or with its result.

    Every parameter must be named. The next `raybo tune` of the study takes it from there.
    """
    from raybo.warm_start import enqueue_text

    enqueue_text(journal, dict(text.partition("=")[::2] for text in values), value)
    say("Added; the study's next run " + ("knows its result" if value is not None else "begins with it"))


def _each_of(watches: Sequence[Callable[[Status], None]]) -> Callable[[Status], None] | None:
    def watch(status: Status) -> None:
        for each in watches:
            each(status)

    return watch if watches else None
