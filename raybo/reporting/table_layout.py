"""Tables in windows of any width: what does not fit is wrapped or cut between values, never inside a number."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

MOST = 40  # characters of a text that a column is kept wide enough for
CUT = "…"
UNBOUNDED = 10_000  # characters: a table as wide as it likes


@dataclass(frozen=True)
class Named:
    """Values with their names, `lr=0.01, depth=3`: as many on a line as fit, and a long name loses its beginning.

    Attributes:
        values: names and values, as they are to be shown.
        most_lines: lines at most; what is left of the values is replaced by an ellipsis. None for all that are needed.
        then: a text below them.
        style: of that text.
    """

    values: Sequence[tuple[str, str]]
    most_lines: int | None = None
    then: str = ""
    style: str = ""

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        pieces = [f"{name}={value}," for name, value in self.values] or [""]
        # not narrower than a value that must stay whole, with the end of its name
        least = max(
            (cell_len(f"{CUT}{name[-6:]}={value},") for name, value in self.values if is_number(value)), default=8
        )
        whole = max(cell_len(" ".join(pieces)), cell_len(self.then))
        return Measurement(min(least, options.max_width), min(max(whole, least), options.max_width))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = lines_of(self.values, options.max_width)
        if self.most_lines is not None and len(lines) > self.most_lines:
            lines = lines_of(self.values, options.max_width, room_at_end=len(CUT) + 1)[: self.most_lines]
            lines[-1] = f"{lines[-1]} {CUT}"
        yield Text("\n".join(lines), no_wrap=True, overflow="ellipsis")
        if self.then:
            yield Text(self.then, self.style)


def lines_of(values: Sequence[tuple[str, str]], width: int, room_at_end: int = 0) -> list[str]:
    """Return lines `name=value, ...` of at most so many characters, broken between values; one at least."""
    lines, line = [], ""
    for i, (name, value) in enumerate(values):
        piece = piece_of(name, value, width - 1 - room_at_end) + ("," if i < len(values) - 1 else "")
        longer = f"{line} {piece}" if line else piece
        if line and cell_len(longer) > width - room_at_end:
            lines.append(line)
            longer = piece
        line = longer
    return [*lines, line]


def piece_of(name: str, value: str, width: int) -> str:
    """Return `name=value` in at most so many characters if possible: the name loses its beginning, a text its end."""
    text = f"{name}={value}"
    if cell_len(text) <= width:
        return text
    room = width - cell_len(value) - 2  # for the name beside the ellipsis and the sign of equality
    if room < 3 and not is_number(value):
        kept = name if cell_len(name) <= width // 2 else CUT + name[-max(1, width // 2 - 1) :]
        return f"{kept}={value}"[: max(1, width - 1)] + CUT
    return f"{CUT}{name[-room:]}={value}" if room > 0 else value


def add_column(table: Table, name: str, cells: Iterable[str], *, right: bool = False, folds: bool = False) -> None:
    """Add a column that stays as wide as its longest number; its other texts are cut, or folded, to fit."""
    least = max([1, *(cell_len(word) for cell in cells for word in cell.split() if is_number(word))])
    table.add_column(
        Text(name, overflow="ellipsis", no_wrap=not folds),
        justify="right" if right else "left",
        no_wrap=not folds,
        overflow="fold" if folds else "ellipsis",
        min_width=min(least, MOST),
    )


def named_grid(rows: Sequence[tuple[str, str]]) -> Table:
    """Return a table with a line for each name and its value."""
    grid = Table.grid(padding=(0, 2))
    add_column(grid, "", (), folds=True)
    add_column(grid, "", (value for _, value in rows), folds=True)
    for name, value in rows:
        grid.add_row(Text(f"  {name}"), Text(value))
    return grid


def text_table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """Return a plain table of text."""
    rows = list(rows)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for i, name in enumerate(heading):
        add_column(table, name, (row[i] for row in rows), folds=True)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return table


def is_number(text: str) -> bool:
    """True if a text is a number, perhaps with a sign or a comma after it."""
    try:
        float(text.strip(",;()±%"))
    except ValueError:
        return False
    return True
