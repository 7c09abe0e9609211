"""Commands that run a study on this machine, and give it configurations to run."""

from __future__ import annotations

import contextlib
import inspect
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from raybo.cli.arguments import (
    DASHBOARD_VARIABLE,
    FILE,
    JOURNAL,
    JSON,
    PATH,
    SEARCH,
    all_of,
    default_storage,
    logs_of,
    named_values,
    named_values_of,
    pairs,
    read_list,
)
from raybo.cli.conclusion import conclude, require_result
from raybo.cli.console import make_console, make_display, say, say_json, saying_how_to_go_on, writing
from raybo.cli.job_output import job_output
from raybo.common.files import STANDARD_OUTPUT

if TYPE_CHECKING:
    from raybo.engine.progress import Watch


@click.command()
@FILE
@all_of(SEARCH)
@click.option(
    "--storage",
    type=PATH,
    metavar="FILE.db",
    help="The study's journal; an existing one is continued.  [default: FILE.db in the current directory]",
)
@click.option(
    "--address", metavar="auto|HOST:PORT", help="The Ray cluster to run on.  [default: a local Ray of its own]"
)
@click.option(
    "-m",
    "--module",
    is_flag=True,
    help="Read FILE as a module name, as `python -m` does, even if there is a file of that name.",
)
@click.option("--detach", is_flag=True, help="Leave the study running on its cluster: see `raybo attach`.")
@click.option(
    "--in-process", is_flag=True, help="Run the trials one after the other in this process, without starting Ray."
)
@JSON
def tune(
    file: str,
    storage: Path | None,
    address: str | None,
    module: bool,
    detach: bool,
    settings: tuple[str, ...],
    options: tuple[str, ...],
    scheduler_options: tuple[str, ...],
    known_from: Path | None,
    defaults: tuple[str, ...],
    enqueue: Path | None,
    priors: tuple[str, ...],
    logs: tuple[str, ...],
    quiet: bool,
    as_json: bool,
    **search: Any,
) -> None:
    """Tune the objective in a Python file.

    FILE contains a function decorated with @raybo.objective; NAME picks one of several. package.module:NAME works too.
    Every proposal and every result is kept in the journal: run the same command again to continue a study, whatever
    ended it.

    \b
        raybo tune job.py
        raybo tune job.py --trials 100 --workers 4 --seed 0
        raybo tune job.py --set folds=10 --method gp-ucb --option solver=cg
        raybo tune job.py --address auto --detach

    --json prints nothing until the study has ended, and then what `raybo show FILE.db --json` prints; with --detach, an
    object with the keys name and journal.
    """
    from raybo.engine.driver import tune as run
    from raybo.engine.progress import Each
    from raybo.integrations.export import Recorder
    from raybo.integrations.study_json import study_as_json
    from raybo.job.loading import load_objective

    with job_output(quiet=False, as_json=as_json):  # its file may print too
        objective = load_objective(file, is_module=module)
    path = storage or default_storage(file)
    console = make_console()
    chosen = pairs(options, "--option")
    if ours := next((key for key in chosen if key in inspect.signature(run).parameters), None):
        raise click.UsageError(f"--option {ours}: not a method option; see raybo methods, and raybo tune --help")
    if logs and detach:
        raise click.UsageError(
            "--log stops when this command does, and --detach ends it at once; use raybo export --follow"
        )
    here: bool = search["in_process"]
    if quiet and here and any(where == STANDARD_OUTPUT for _, where in logs_of(logs)):
        raise click.UsageError("--quiet with --in-process lets nothing through to standard output; give --log a file")
    recorders = [Recorder(path, form, where) for form, where in logs_of(logs)]

    with (
        saying_how_to_go_on(f"The study is in {path}; the same command continues it."),
        contextlib.nullcontext() if quiet or as_json else make_display(console) as display,
        job_output(quiet=quiet and here, as_json=as_json and here),
    ):
        watches: list[Watch] = [*([] if display is None else [display]), *recorders]
        study = run(
            objective,
            storage=path,
            address=address,
            detach=detach,
            settings=pairs(settings, "--set"),
            scheduler_options=pairs(scheduler_options, "--scheduler-option"),
            known_from=known_from,
            defaults=named_values(defaults, "--default"),
            enqueue=() if enqueue is None else read_list(enqueue),
            prior=priors,
            watch=Each(watches) if watches else False,
            **search,  # the others, as `raybo.tune` names them
            **cast(Any, chosen),  # texts, which the method reads as its options' types
        )
    if detach and as_json:
        say_json({"name": path.stem, "journal": str(path)})
        return
    if as_json:
        require_result(study, path)
        with writing():
            say_json(study_as_json(study))
        return
    if detach:
        address = address or ("auto" if os.environ.get(DASHBOARD_VARIABLE) else None)  # else that names a dashboard
        at = f" --address {address}" if address else ""
        say(f"{path.stem} is running, saved in {path}")
        say(f"raybo attach {path.stem}{at} follows it, raybo stop {path.stem}{at} stops it")
        return
    with writing():
        conclude(console, study, path)


@click.command()
@JOURNAL
@click.argument("values", nargs=-1, required=True, metavar="NAME=VALUE ...")
@click.option(
    "--value",
    metavar="V|JSON",
    help="The configuration's result, if known: a number, or with several metrics or constraints a JSON object of all "
    "of them. The configuration is then not run.",
)
@JSON
def enqueue(journal: Path, values: tuple[str, ...], value: str | None, as_json: bool) -> None:
    """Queue a configuration for a study to run next.

    A running study runs it as soon as a worker is free; otherwise the study's next run starts with it. Parameters that
    are left out are proposed by the method. A result that is already known can be added while the study is not running;
    it needs every parameter.

    \b
        raybo enqueue job.db learning_rate=0.1 depth=4
        raybo enqueue job.db learning_rate=0.1
        raybo enqueue job.db learning_rate=0.2 depth=4 --value 0.93
        raybo enqueue two-goals.db learning_rate=0.1 --value '{"accuracy": 0.93, "seconds": 12}'

    --json prints an object with the keys journal, and next: what happens next, in words.
    """
    from raybo.study.enqueueing import enqueue_text

    texts = named_values_of(journal, values, "NAME=VALUE")
    then = enqueue_text(journal, texts, None if value is None else _result(value))
    if as_json:
        say_json({"journal": str(journal), "next": then})
    else:
        say(then)


def _result(text: str) -> float | dict[str, Any]:
    """Read a result as it is typed: a number, or a JSON object of numbers."""
    try:
        return float(text)
    except ValueError:
        pass
    try:
        numbers = json.loads(text)
    except (ValueError, RecursionError):
        numbers = None
    if not isinstance(numbers, dict):
        raise click.UsageError(f"--value takes a number, or a JSON object with one number per metric, got {text!r}")
    return numbers
