"""The output of a benchmark: figures, each with its target if it has one, and the table that they make.

A benchmark is a module with a function `figures` that yields them as they are measured. Its keyword parameters are its
command line (`seeds: int = 10` is `--seeds 10`), their defaults the full run; `QUICK` holds those of a quick one.
"""

from __future__ import annotations

import argparse
import inspect
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from rich.console import Console
from rich.table import Table
from rich.text import Text


@dataclass(frozen=True)
class Figure:
    """One measured number.

    Attributes:
        what: what was measured.
        measured: the number, with its unit.
        target: what it should be; empty if nobody said.
        met: whether it is so; None if there is no target, or what it needs is missing.
    """

    what: str
    measured: str
    target: str = ""
    met: bool | None = None


Figures: TypeAlias = Iterator[Figure]


def at_least(target: float, value: float, what: str, unit: str = "times", note: str = "") -> Figure:
    """A figure that should not be lower; `note` is written behind the number."""
    return Figure(what, _measured(value, unit, note), f"at least {target:g} {unit}".rstrip(), bool(value >= target))


def at_most(target: float, value: float, what: str, unit: str = "times", note: str = "") -> Figure:
    """A figure that should not be higher; `note` is written behind the number."""
    return Figure(what, _measured(value, unit, note), f"at most {target:g} {unit}".rstrip(), bool(value <= target))


def _measured(value: float, unit: str, note: str) -> str:
    digits = 0 if abs(value) >= 99.5 else 1 if abs(value) >= 9.95 else 2
    return f"{value:,.{digits}f} {unit}".rstrip() + (f" ({note})" if note else "")


def missing(what: str, package: str, target: str = "") -> Figure:
    """A figure that could not be measured, as a rival is not installed."""
    return Figure(what, f"left out: {package} is not installed", target)


def timed(figures: Iterable[Figure]) -> Iterator[tuple[Figure, float]]:
    """The figures, and the seconds that each kept one waiting."""
    begun = time.monotonic()
    for figure in figures:
        yield figure, time.monotonic() - begun
        begun = time.monotonic()


def table(title: str, rows: Iterable[tuple[str, Figure, float]]) -> Table:
    """A row per figure, under the name of its benchmark."""
    made = Table(title=title, title_justify="left")
    for heading in ("benchmark", "what", "measured", "target"):
        made.add_column(heading, overflow="fold")
    made.add_column("met")
    made.add_column("s", justify="right")
    before = ""
    for name, figure, seconds in rows:
        if before not in ("", name):
            made.add_section()
        met = {True: Text("yes", "green"), False: Text("no", "bold red"), None: Text("")}[figure.met]
        texts = [Text(text) for text in ("" if name == before else name, figure.what, figure.measured, figure.target)]
        made.add_row(*texts, met, f"{seconds:.0f}" if seconds >= 0.5 else "")
        before = name
    return made


def console() -> Console:
    """Return the console for tables: as wide as the terminal, and wide enough if there is none."""
    found = Console()
    return found if found.is_terminal else Console(width=180)


def command(figures: Callable[..., Figures]) -> None:
    """The command line of one benchmark: its module's docstring, its function's parameters, its table."""
    parameters = inspect.signature(figures, eval_str=True).parameters
    name = figures.__globals__["__spec__"].name.rpartition(".")[2]
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks.{name}",
        description=figures.__globals__["__doc__"],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for parameter in parameters.values():
        parser.add_argument(
            f"--{parameter.name.replace('_', '-')}",
            type=parameter.annotation,
            default=parameter.default,
            metavar=parameter.annotation.__name__.upper(),
            help="[default: %(default)s]",
        )
    parser.add_argument("--quick", action="store_true", help="with the parameters of a quick run")
    given: dict[str, Any] = vars(parser.parse_args())
    if given.pop("quick"):
        changed = {key: value for key, value in given.items() if value != parameters[key].default}
        given |= {**figures.__globals__["QUICK"], **changed}
    progress = Console(stderr=True)
    rows = []
    for figure, seconds in timed(figures(**given)):
        progress.print(f"{figure.what}: {figure.measured}", markup=False, highlight=False, soft_wrap=True)
        rows.append((name, figure, seconds))
    console().print(table("", rows))
