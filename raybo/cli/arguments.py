"""Arguments and options that several commands share, and the reading of their values."""

from __future__ import annotations

import dataclasses
import json
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import NoneType
from typing import Any, TypeVar

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from raybo.common.messages import first_line
from raybo.engine.run_options import RunOptions

F = TypeVar("F", bound=Callable[..., Any])

PATH = click.Path(path_type=Path, readable=False)  # whatever it is: whoever opens it says what is wrong


def complete_files(ctx: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    return [CompletionItem(typed, type="file")]


def _methods(ctx: click.Context, parameter: click.Parameter, typed: str) -> list[str]:
    from raybo.methods import METHODS

    return [name for name in METHODS if name.startswith(typed)]


def _schedulers(ctx: click.Context, parameter: click.Parameter, typed: str) -> list[str]:
    from raybo.schedulers import SCHEDULERS

    return [name for name in SCHEDULERS if name.startswith(typed)]


def complete_formats(ctx: click.Context, parameter: click.Parameter, typed: str) -> list[str]:
    from raybo.integrations.export import FORMATS

    return [name for name in FORMATS if name.startswith(typed)]


FILE = click.argument("file", metavar="FILE[:NAME]", shell_complete=complete_files)
JOURNAL = click.argument("journal", type=PATH, metavar="FILE.db")
METHOD_NAMES = click.argument("names", nargs=-1, metavar="[NAME ...]", shell_complete=_methods)
SCHEDULER_NAMES = click.argument("names", nargs=-1, metavar="[NAME ...]", shell_complete=_schedulers)
SETTINGS = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Set a keyword parameter of the objective; repeatable.",
)
DASHBOARD_VARIABLE = "RAY_API_SERVER_ADDRESS"  # Ray's own: the address of the dashboard to which jobs are submitted
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON instead, as described above.")


def _workers(text: str) -> int | str:
    """Read a number of workers, or `max`."""
    try:
        return text if text == "max" else int(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is neither a whole number nor max.") from None


def _run_options() -> Iterator[Callable[[F], F]]:
    """Yield an option for each field of `RunOptions` that has a help text, with the field's type and default."""
    hints = typing.get_type_hints(RunOptions, localns={"Confirm": str})
    for field in dataclasses.fields(RunOptions):
        if not field.metadata["help"]:
            continue
        name = f"--{field.name.replace('_', '-')}"
        kinds = [kind for kind in (typing.get_args(hints[field.name]) or (hints[field.name],)) if kind is not NoneType]
        about: dict[str, Any] = {"help": field.metadata["help"], "metavar": field.metadata["metavar"]}
        if kinds == [bool]:
            yield click.option(name, is_flag=True, help=about["help"])
        elif field.default is None:
            yield click.option(name, type=TYPES.get(field.name, kinds[0]), **about)
        else:
            kind = click.Choice(kinds) if isinstance(field.default, str) else kinds[0]
            yield click.option(name, type=kind, default=field.default, show_default=True, **about)


TYPES: Mapping[str, Any] = {"workers": _workers, "budget": str}  # of run options that are read from text otherwise
TRIALS, *RUN = _run_options()
SEARCH = (  # of `raybo tune`, which `raybo submit` passes on as they are
    TRIALS,
    click.option(
        "--method",
        metavar="M",
        shell_complete=_methods,
        help="How to search: see `raybo methods`; your own as package.module:Class.  [default: auto, or the journal's]",
    ),
    click.option("--seed", type=int, metavar="S", help="Random seed.  [default: random, or the journal's]"),
    click.option("--option", "options", multiple=True, metavar="KEY=VALUE", help="Set a method option; repeatable."),
    click.option(
        "--scheduler",
        metavar="NAME",
        shell_complete=_schedulers,
        help="Stop unpromising trials early, if the objective reports intermediate results: see `raybo schedulers`; "
        "your own as package.module:Class.  [default: none, or the journal's]",
    ),
    click.option(
        "--scheduler-option",
        "scheduler_options",
        multiple=True,
        metavar="KEY=VALUE",
        help="Set a scheduler option; repeatable.",
    ),
    SETTINGS,
    click.option(
        "--fidelity",
        metavar="NAME=LOW:HIGH",
        help="Also run cheaper versions of the job: NAME is passed in its configuration, from LOW (cheapest) to HIGH "
        "(a full run), e.g. rows=1000:100000.  [default: what the objective declares]",
    ),
    *RUN,
    click.option(
        "--from",
        "known_from",
        type=PATH,
        metavar="OTHER.db",
        help="Start from another study's results, as far as they fit the search space.",
    ),
    click.option(
        "--default",
        "defaults",
        multiple=True,
        metavar="NAME=VALUE",
        help="With --from: the value that a parameter missing from the other study had there; repeatable.",
    ),
    click.option(
        "--prior",
        "priors",
        multiple=True,
        metavar="OLD.db|DIR|auto",
        help="Start where an earlier study of a similar job did best: a journal, a directory or quoted pattern (all "
        "journals that fit), or auto (journals next to this study's); repeatable. See `raybo priors`.",
    ),
    click.option(
        "--enqueue",
        type=PATH,
        metavar="FILE.json",
        help="A JSON list of configurations to run first; the method proposes what they leave out. Those with a value "
        "are added as known results.",
    ),
    click.option(
        "--log",
        "logs",
        multiple=True,
        metavar="FORMAT=WHERE",
        help="Keep an export up to date while the study runs: see `raybo export`; repeatable.",
    ),
    click.option("-q", "--quiet", is_flag=True, help="Print only the result, and nothing that the trials print."),
)


def all_of(options: Sequence[Callable[[F], F]]) -> Callable[[F], F]:
    """Return one decorator that adds all of these options, in this order."""

    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def at_most_one(ctx: click.Context, *names: str) -> None:
    """Raise UsageError if more than one of these parameters was given on the command line."""
    given = [
        parameter.opts[-1] if isinstance(parameter, click.Option) else str(parameter.metavar)
        for parameter in ctx.command.params
        if parameter.name in names and ctx.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE
    ]
    if len(given) > 1:
        raise click.UsageError(f"{given[0]} and {given[1]} cannot be used together; leave one out")


def default_storage(file: str) -> Path:
    """Return the default journal: in the current directory, named after the objective's file."""
    from raybo.job.loading import study_name

    return Path(f"{study_name(file)}.db")


def pairs(texts: tuple[str, ...], option: str, form: str = "KEY=VALUE") -> dict[str, str]:
    """Return KEY=VALUE texts as a dict; UsageError if one is malformed, or a key is given two values."""
    found: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise click.UsageError(f"{option} takes {form}, got {text!r}")
        _add(found, key.strip().replace("-", "_"), value, option)
    return found


def logs_of(texts: tuple[str, ...]) -> list[tuple[str, str]]:
    """Return FORMAT and WHERE of each `--log`; UsageError if one is malformed."""
    return [item for text in texts for item in pairs((text,), "--log", "FORMAT=WHERE").items()]


def named_values(texts: tuple[str, ...], option: str, known: Iterable[str] = ()) -> dict[str, str]:
    """Return NAME=VALUE texts as a dict, names unchanged; UsageError if one is malformed, or a name has two values.

    A name ends at the first `=`, but for known ones that hold one; of several the longest.
    """
    longer = sorted((name for name in known if "=" in name), key=len, reverse=True)
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if (whole := next((each for each in longer if text.startswith(f"{each}=")), None)) is not None:
            name, value = whole, text[len(whole) + 1 :]
        if not equals or not name:
            takes = "NAME=VALUE is needed" if option == "NAME=VALUE" else f"{option} takes NAME=VALUE"
            raise click.UsageError(f"{takes}, got {text!r}")
        _add(found, name.strip(), value, "" if option == "NAME=VALUE" else option)
    return found


def named_values_of(journal: Path, texts: tuple[str, ...], option: str) -> dict[str, str]:
    """Return the texts as `named_values` does, where names of the study's parameters and contexts may hold a `=`."""
    from raybo.journal import exists, read

    known: list[str] = []
    if any(text.count("=") > 1 for text in texts) and exists(journal):
        description, _ = read(journal)
        known = [*description.space.names, *(description.context.names if description.context else ())]
    return named_values(texts, option, known)


def _add(found: dict[str, str], name: str, value: str, option: str) -> None:
    if found.get(name, value) != value:
        what = f"{option} {name}".strip()
        raise click.UsageError(f"{what} is given two values, {found[name]!r} and {value!r}; leave one out")
    found[name] = value


def read_list(path: Path) -> list[Any]:
    """Return the list in a JSON file; UsageError if the file does not hold one."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise click.UsageError(f"{path}: cannot be read ({error.strerror or first_line(error)})") from None
    except (ValueError, RecursionError) as error:
        raise click.UsageError(f"{path}: not a list of configurations in JSON ({first_line(error)})") from None
    if not isinstance(content, list):
        raise click.UsageError(f"{path}: must hold a list of configurations")
    return content
