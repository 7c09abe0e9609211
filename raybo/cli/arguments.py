"""What commands are given: options that several share, and how their values are read."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from raybo.error_text import first_line

F = TypeVar("F", bound=Callable[..., Any])

TARGET = click.argument("target", metavar="FILE[:NAME]")


def _workers(text: str) -> int | str:
    """A number of workers, or `max`."""
    return text if text == "max" else int(cast(Any, click.INT)(text))


SEARCH = (  # of `raybo tune`, which `raybo submit` passes on as they are
    click.option(
        "--trials", default=50, show_default=True, metavar="N", help="Trials to run, those of the journal included."
    ),
    click.option(
        "--method", metavar="M", help="How to search, see `raybo methods`.  [default: auto, or the journal's]"
    ),
    click.option(
        "--seed", type=int, metavar="S", help="Seed of every random stream.  [default: drawn, or the journal's]"
    ),
    click.option(
        "--workers",
        type=_workers,
        metavar="K|max",
        help="Trials that run at the same time; max: some wait besides, so that a cluster grows.  "
        "[default: as many as there is room for]",
    ),
    click.option("--max-minutes", type=float, metavar="T", help="Stop the study after this time."),
    click.option(
        "--trial-seconds", type=float, metavar="T", help="Stop a trial that runs longer, and count it as failed."
    ),
    click.option(
        "--retries", default=2, show_default=True, metavar="N", help="Fresh starts of a trial whose worker was lost."
    ),
    click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="KEY=VALUE",
        help="A keyword parameter of the objective; repeatable.",
    ),
    click.option(
        "--option", "options", multiple=True, metavar="KEY=VALUE", help="An option of the method; repeatable."
    ),
    click.option(
        "--scheduler",
        metavar="S",
        help="End trials early that report as they go, see `raybo schedulers`.  [default: none, or the journal's]",
    ),
    click.option(
        "--scheduler-option",
        "scheduler_options",
        multiple=True,
        metavar="KEY=VALUE",
        help="An option of the scheduler; repeatable.",
    ),
    click.option(
        "--artifacts",
        metavar="DIRECTORY|URI",
        help="Where the trials' directories and checkpoints are kept.  [default: beside the journal]",
    ),
    click.option(
        "--keep-checkpoints",
        type=click.Choice(["all", "last", "none"]),
        default="last",
        show_default=True,
        help="Which checkpoints of trials that have ended are kept.",
    ),
    click.option(
        "--from",
        "known_from",
        type=Path,
        metavar="OTHER.db",
        help="Begin with the results of another study, where they fit the space.",
    ),
    click.option(
        "--enqueue",
        type=Path,
        metavar="FILE.json",
        help="A list of configurations to run first; those with values enter as known results.",
    ),
    click.option(
        "--log",
        "logs",
        multiple=True,
        metavar="FORM=WHERE",
        help="Keep an export up to date, see `raybo export`; repeatable.",
    ),
    click.option(
        "--fresh-workers",
        is_flag=True,
        help="Run every trial in a new process, for jobs that leave something behind in theirs.",
    ),
    click.option(
        "--retry-failed", is_flag=True, help="Run the trials again that have failed, under their own numbers."
    ),
    click.option(
        "--keep-going", is_flag=True, help="Go on where the first trials all fail alike, which else ends the study."
    ),
    click.option("--target", "wanted", type=float, metavar="V", help="Stop once a trial is at least as good."),
    click.option(
        "--patience", type=int, metavar="N", help="Stop once so many trials have finished since the best one."
    ),
    click.option(
        "--stop-below-gain",
        type=float,
        metavar="G",
        help="Stop once three proposals in a row are expected to better the best by less, in the metric's units.",
    ),
    click.option(
        "--confirm",
        metavar="KxR",
        help="At the end run the K most promising configurations R times more, with other seeds, and recommend by the "
        "means.",
    ),
    click.option(
        "--default",
        "defaults",
        multiple=True,
        metavar="NAME=VALUE",
        help="With --from: what a parameter was there that its space does not have; repeatable.",
    ),
    click.option(
        "-q", "--quiet", is_flag=True, help="Print nothing but the result; neither what the trials themselves print."
    ),
)


def all_of(options: Sequence[Callable[[F], F]]) -> Callable[[F], F]:
    """One decorator that adds all of these options, in this order."""

    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def default_storage(target: str) -> Path:
    """Where a study is kept when nobody says: named after the objective's file, in the current directory."""
    from raybo.objectives import study_name

    return Path(f"{study_name(target)}.db")


def pairs(texts: tuple[str, ...], option: str) -> dict[str, str]:
    """KEY=VALUE texts as a dict; UsageError where a text is not one."""
    found = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise click.UsageError(f"{option} takes KEY=VALUE, got {text!r}")
        found[key.strip().replace("-", "_")] = value
    return found


def named_values(texts: tuple[str, ...], option: str) -> dict[str, str]:
    """NAME=VALUE texts as a dict, names as they are; UsageError where a text is not one."""
    for text in texts:
        if not text.partition("=")[0] or "=" not in text:
            raise click.UsageError(f"{option} takes NAME=VALUE, got {text!r}")
    return {text.partition("=")[0].strip(): text.partition("=")[2] for text in texts}


def read_list(path: Path) -> list[Any]:
    """The list in a JSON file; UsageError where there is none."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise click.UsageError(f"{path}: not a list of configurations in JSON ({first_line(error)})") from None
    if not isinstance(content, list):
        raise click.UsageError(f"{path}: a list of configurations is needed")
    return content
