"""The table of a study's trials on a terminal: a column for each parameter that varies, where they fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from raybo.record.states import FAILURES, State
from raybo.record.trial import Trial
from raybo.reporting.axes import axes_of
from raybo.reporting.curves_in_text import reports_anything, steps_of
from raybo.reporting.formatting import config_values, named
from raybo.reporting.table_layout import UNBOUNDED, Named, add_column, is_number
from raybo.study.study import Study

STYLES = {
    State.FINISHED: "",
    State.FAILED: "red",
    State.LOST: "red",
    State.STOPPED: "dim",
    State.PENDING: "cyan",
    State.PRUNED: "yellow",
    State.PAUSED: "cyan",
}
# characters of a window in which there are columns; the reason has one of its own; also where a row is one line
NARROW, WIDE, ROOMY = 56, 110, 150
CONTEXT, LEAST_WHY = 20, 24  # characters of these columns beside a column for each parameter
BETWEEN = 3  # characters between two columns


def trials_table(study: Study, trials: Sequence[Trial], *, one_line: bool = False) -> Trials:
    """A row for each trial: number, state, value, seconds, configuration, and why it was tried or how it ended.

    Args:
        study: theirs.
        trials: which.
        one_line: whether a row must not take more than a line; what has no room there is left out.
    """
    return Trials(study, trials, one_line)


@dataclass(frozen=True)
class Trials:
    """The table of `trials_table`, laid out for the width that it is given."""

    study: Study
    trials: Sequence[Trial]
    one_line: bool

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if options.max_width < NARROW + (0 if self.study.context is None else 20):
            yield from self._below_one_another()
            return
        varying, constant = self._parameters()
        table = self._results()
        for name, cells in varying:
            justify: Literal["left", "right"] = (
                "right" if all(not cell or is_number(cell) for cell in cells) else "left"
            )
            width = max(map(cell_len, cells))
            table.add_column(Text(name, overflow="ellipsis"), justify=justify, no_wrap=True, min_width=width)
        room = options.max_width - console.measure(table, options=options.update(width=UNBOUNDED)).maximum
        if varying and room >= 0:
            yield from self._in_columns(table, varying, constant, room)
        else:
            yield self._in_words(self._results(), options)

    def _parameters(self) -> tuple[list[tuple[str, list[str]]], list[tuple[str, str]]]:
        """Return the parameters that differ between the trials, with a cell for each; and the others' values."""
        configs = [dict(config_values(self.study, trial)) for trial in self.trials]
        names = [axis.name for axis in axes_of(self.study) if any(axis.name in config for config in configs)]
        labels = {axis.name: axis.label for axis in axes_of(self.study)}
        cells = {name: [config.get(name, "") for config in configs] for name in names}
        raw = [dict(self.study.space.named_values(trial.config)) for trial in self.trials]
        constant = {name for name in names if len({repr(config.get(name)) for config in raw}) == 1}
        varying = [(labels[name], column) for name, column in cells.items() if name not in constant]
        return varying, [(name, column[0]) for name, column in cells.items() if name in constant]

    def _results(self) -> Table:
        """Return the columns of how trials ended, without rows."""
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        add_column(table, "trial", (str(trial.number) for trial in self.trials), right=True)
        table.add_column("state", no_wrap=True, min_width=max([8, *(len(self._state(t)) for t in self.trials)]))
        for name, cells in self._values():
            add_column(table, name, cells, right=True)
        return table

    def _values(self) -> list[tuple[str, list[str]]]:
        """Return the columns of numbers: the metrics, the seconds, and the fidelity, or the steps if trials report."""
        trials, study = self.trials, self.study
        names = [study.description.metric, *study.goals.needed[1:]]
        columns = [(name, [self._value(trial, name) for trial in trials]) for name in names]
        columns.append(("s", ["" if trial.seconds is None else f"{trial.seconds:.2f}" for trial in trials]))
        if (cost := study.history.cost) is not None:
            columns.append((cost, [_cost(trial, cost) for trial in trials]))
        if study.description.fidelity is not None:
            columns += [
                (name, [f"{trial.fidelity[name]:,}" for trial in trials]) for name in study.description.fidelity
            ]
        elif reports_anything(study):
            columns.append(("steps", [steps_of(study, trial) for trial in trials]))
        return columns

    def _value(self, trial: Trial, name: str) -> str:
        if name == self.study.description.metric:
            return "" if trial.value is None else f"{trial.value:.6g}"
        return "" if trial.value is None else f"{trial.values[name]:.6g}"

    def _state(self, trial: Trial) -> str:
        state = "recommended" if trial.number == self._recommended else _state(trial)
        return state + (f" ({trial.attempt} attempts)" if trial.attempt > 1 else "")

    @cached_property
    def _recommended(self) -> int | None:
        """The number of the recommended trial; None if there is none, or while a study is followed."""
        if self.one_line or self.study.incumbent is None:
            return None
        return self.study.recommended.number

    def _row(self, i: int) -> list[RenderableType]:
        """Return the cells of `_results` of one trial."""
        trial = self.trials[i]
        state = Text(self._state(trial), style=STYLES[trial.state], overflow="ellipsis")
        return [str(trial.number), state, *(cells[i] for _, cells in self._values())]

    def _in_columns(
        self, table: Table, varying: list[tuple[str, list[str]]], constant: list[tuple[str, str]], room: int
    ) -> RenderResult:
        """A column for each parameter that varies; reasons in what is left of the width, or below."""
        if self.study.context is not None:
            table.add_column("context", min_width=CONTEXT)
            room -= CONTEXT + BETWEEN
        has_why = room >= LEAST_WHY + BETWEEN
        if has_why:
            table.add_column("reason", overflow="ellipsis", no_wrap=True, max_width=room - BETWEEN)
        for i, trial in enumerate(self.trials):
            why, style = self._why(trial)
            context = [] if self.study.context is None else [Named(named(trial.context or {}), 1)]
            reason = [Text(why, style, overflow="ellipsis")] if has_why else []
            table.add_row(*self._row(i), *(Text(cells[i], "dim") for _, cells in varying), *context, *reason)
        yield table
        if self.one_line:
            return
        if constant:
            yield Text("the same in each:", "dim")
            yield Padding(Named(constant), (0, 0, 0, 2), expand=False)
        for trial in self.trials:
            why, style = self._why(trial)
            if style and not (has_why and len(why) <= room - BETWEEN):
                yield Text(f"trial {trial.number}: {why}", style)

    def _in_words(self, table: Table, options: ConsoleOptions) -> Table:
        """One column for all parameters, with their names in each row."""
        has_why = options.max_width >= (ROOMY if self.one_line else WIDE)
        if self.study.context is not None:
            table.add_column("context", ratio=1)
        table.add_column("configuration", ratio=3)
        if has_why:
            table.add_column("reason", overflow="fold", ratio=2, no_wrap=self.one_line)
        for i, trial in enumerate(self.trials):
            why, style = self._why(trial)
            below = "" if has_why or self.one_line else why
            most = 1 if self.one_line else None
            table.add_row(
                *self._row(i),
                *([] if self.study.context is None else [Named(named(trial.context or {}), most)]),
                Named(config_values(self.study, trial), most, below, style or "dim"),
                *([Text(why, style, overflow="ellipsis" if self.one_line else "fold")] if has_why else []),
            )
        return table

    def _below_one_another(self) -> RenderResult:
        """For a window that has no room for columns: result, configuration and reason, one below the other."""
        for trial in self.trials:
            value = "" if trial.value is None else f" {trial.value:.6g}"
            if trial.values:
                value = "".join(f" {name} {trial.values[name]:.6g}" for name in self.study.goals.needed)
            yield Text.assemble(f"{trial.number} ", (self._state(trial), STYLES[trial.state]), value)
            if not self.one_line:
                yield Padding(
                    Named(config_values(self.study, trial), None, *self._why(trial)), (0, 0, 0, 2), expand=False
                )

    def _why(self, trial: Trial) -> tuple[str, str]:
        """Return why it was tried, or why it failed; and the style of that text."""
        if trial.reason and trial.state is not State.FINISHED:
            return trial.reason, "red" if trial.state in FAILURES else STYLES[trial.state]
        if trial.violations:
            return self.study.broken(trial), "yellow"
        return self.study.explain(trial), ""


def _state(trial: Trial) -> str:
    return "infeasible" if trial.violations else str(trial.state)


def _cost(trial: Trial, name: str) -> str:
    """Return what a trial said that it cost, as text; empty if it did not say."""
    value = trial.details.get("metrics", {}).get(name)
    return f"{value:.4g}" if isinstance(value, (int, float)) else ""
