"""Tables for a terminal: a study's trials, its best configuration, the methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from raybo.methods.best import interval
from raybo.record.origin import Origin
from raybo.record.states import FAILURES, State
from raybo.record.trial import Trial
from raybo.reporting.curves_in_text import reports_anything, steps_of
from raybo.reporting.formatting import named, shown
from raybo.reporting.front_view import constraints_line, front_view
from raybo.reporting.notes_view import notes_view
from raybo.reporting.table_layout import Named, add_column, named_grid
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
Describe: TypeAlias = Callable[[str], tuple[str, list[tuple[str, Any, str]]]]  # a name's text and options
# characters of a window in which there are columns; the reason has one of its own; also where a row is one line
NARROW, WIDE, ROOMY = 56, 110, 150


def study_view(study: Study, last: int) -> Group:
    """Return the output of `raybo show`: a heading, the last trials, why they were tried, and the best one."""
    parts: list[RenderableType] = [heading(study), trials_table(study, study.trials[-last:])]
    if study.count(State.FINISHED) or study.furthest is not None:
        parts += [best_view(study), *confirmations(study)]
    if study.ended:
        parts.append(Text(f"ended: {study.ended}", style="dim"))
    return Group(*parts, *notes_view(study))


def heading(study: Study) -> Text:
    """Return the objective of the study, and how many trials are in which state."""
    description = study.description
    failed = study.count(*FAILURES)
    return Text.assemble(
        (description.objective, "bold"),
        f": {goals_in_words(study)}, method {description.method}, "
        f"{f'scheduler {description.scheduler}, ' if description.scheduler else ''}seed {description.seed}; "
        f"{study.count(State.FINISHED)} finished, {failed} failed, {study.count(State.STOPPED)} stopped, "
        f"{study.count(State.PENDING)} pending"
        + "".join(f", {study.count(state)} {state}" for state in (State.PRUNED, State.PAUSED) if study.count(state))
        + of_planned(study)
        + _without_context(study),
    )


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
        has_why = options.max_width >= (ROOMY if self.one_line else WIDE)
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        values = ["" if trial.value is None else f"{trial.value:.6g}" for trial in self.trials]
        others = [
            (name, ["" if trial.value is None else f"{trial.values[name]:.6g}" for trial in self.trials])
            for name in self.study.goals.needed[1:]
        ]
        seconds = ["" if trial.seconds is None else f"{trial.seconds:.2f}" for trial in self.trials]
        add_column(table, "trial", (str(trial.number) for trial in self.trials), right=True)
        table.add_column("state", no_wrap=True, min_width=8)
        add_column(table, self.study.description.metric, values, right=True)
        for name, cells in others:
            add_column(table, name, cells, right=True)
        add_column(table, "s", seconds, right=True)
        has_steps = reports_anything(self.study)
        steps = [steps_of(self.study, trial) for trial in self.trials]
        if has_steps:
            add_column(table, "steps", steps, right=True)
        if self.study.context is not None:
            table.add_column("context", ratio=1)
        table.add_column("configuration", ratio=3)
        if has_why:
            table.add_column("why", overflow="fold", ratio=2, no_wrap=self.one_line)
        for i, (trial, value, took, step) in enumerate(zip(self.trials, values, seconds, steps, strict=True)):
            why, style = self._why(trial)
            state = _state(trial) + (f" ({trial.attempt} attempts)" if trial.attempt > 1 else "")
            below = "" if has_why or self.one_line else why
            most = 1 if self.one_line else None
            table.add_row(
                str(trial.number),
                Text(state, style=STYLES[trial.state], overflow="ellipsis"),
                value,
                *(cells[i] for _, cells in others),
                took,
                *([step] if has_steps else []),
                *([] if self.study.context is None else [Named(named(trial.context or {}), most)]),
                Named(config_values(self.study, trial), most, below, style or "dim"),
                *([Text(why, style, overflow="ellipsis" if self.one_line else "fold")] if has_why else []),
            )
        yield table

    def _below_one_another(self) -> RenderResult:
        """For a window that has no room for columns: result, configuration and reason, one below the other."""
        for trial in self.trials:
            value = "" if trial.value is None else f" {trial.value:.6g}"
            if trial.values:
                value = "".join(f" {name} {trial.values[name]:.6g}" for name in self.study.goals.needed)
            yield Text.assemble(f"{trial.number} ", (_state(trial), STYLES[trial.state]), value)
            if not self.one_line:
                yield Padding(Named(config_values(self.study, trial), None, *self._why(trial)), (0, 0, 0, 2))

    def _why(self, trial: Trial) -> tuple[str, str]:
        """Return why it was tried, or why it failed; and the style of that text."""
        if trial.reason and trial.state is not State.FINISHED:
            return trial.reason, "red" if trial.state in FAILURES else STYLES[trial.state]
        if trial.violations:
            return self.study.broken(trial), "yellow"
        return self.study.explain(trial), ""


def of_planned(study: Study) -> str:
    """Say how many trials are planned, and how many run a configuration again; empty if none are planned."""
    again = sum(trial.origin is Origin.CONFIRMED for trial in study.trials)
    planned = f" of {study.planned} planned" if study.planned else ""
    return planned + (f" and {again} to confirm" if planned and again else "")


def _state(trial: Trial) -> str:
    return "infeasible" if trial.violations else str(trial.state)


def best_view(study: Study, context: Mapping[str, Any] | None = None, *, one_line: bool = False) -> Group:
    """The best trial and its configuration, a line for each parameter or one for all; or the best for a context.

    With several metrics their front; where no trial keeps all constraints, which one comes nearest; where none has
    finished, the pruned one that came furthest.
    """
    limits = [] if one_line else constraints_line(study)
    if context is None and (furthest := study.furthest) is not None:
        words = Text.assemble(("no trial has finished; ", "yellow"), f"{furthest_in_words(study, furthest)}")
        values = config_values(study, furthest)
        return Group(words, Named(values, most_lines=1) if one_line else named_grid(values), *limits)
    if context is None and study.goals.k > 1 and study.front:
        return Group(front_view(study, one_line=one_line), *limits)
    if context is None and not study.goals.is_plain and not study.front:
        return Group(Text(study.nearest, "yellow"), *limits)
    metric = study.description.metric
    if one_line:  # while it runs, what is seen several times a second
        best = study.best
        words = Text.assemble("best ", (f"{metric} {best.value:.6g}", "bold green"), f" (trial {best.number})")
        return Group(words, Named(config_values(study, best), most_lines=1))
    if context is None:
        about, mark, why = study.recommendation.partition(";")
        words = Text.assemble("recommended: ", (about, "bold green"), mark + why)
        return Group(words, named_grid(config_values(study, study.recommended)), *limits)
    best = study.best_for(context)
    words = Text.assemble(
        f"best at {context_line(context)}: ", (f"trial {best.number}, {metric} {best.value:.6g}", "bold green")
    )
    if "expected" in best.details:
        words.append(f"; the model expects {interval(best.details['expected'], best.details['expected_sd'])} there")
    return Group(words, named_grid(config_values(study, best)), *limits)


def furthest_in_words(study: Study, trial: Trial) -> str:
    """Say which trial came furthest if none has finished, and its value there."""
    step, value = trial.reports[-1]
    return f"trial {trial.number} came furthest, {study.description.metric} {value:.6g} at step {step}, and was pruned"


def confirmations(study: Study) -> list[RenderableType]:
    """Return a table of the configurations that were run again at the end, the recommended one first; empty if none."""
    found = study.confirmed
    if not found:
        return []
    metric = study.description.metric
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    has_broken = any(each.infeasible for each in found)
    for name in (
        "trial",
        f"mean {metric}",
        "standard error",
        "runs",
        *["infeasible"] * has_broken,
        f"searched {metric}",
    ):
        table.add_column(name, justify="right")
    for each in found:
        error = "" if each.error is None else f"{each.error:.2g}"
        runs = f"{len(each.values)} of {each.planned}" if len(each.values) < each.planned else str(each.planned)
        infeasible = [str(each.infeasible)] * has_broken
        table.add_row(str(each.trial.number), f"{each.mean:.6g}", error, runs, *infeasible, f"{each.trial.value:.6g}")
    return [table]


def options_table(names: Sequence[str], describe: Describe) -> Group:
    """Every method, or every scheduler: what it does, and its options with their defaults."""
    parts: list[RenderableType] = []
    for name in names:
        text, options = describe(name)
        paragraphs = text.split("\n\n")
        parts.append(Text.assemble((name, "bold"), "  ", " ".join(paragraphs[0].split())))
        parts += [Text("    " + " ".join(paragraph.split()), style="italic") for paragraph in paragraphs[1:]]
        grid = Table.grid(padding=(0, 2))
        for option, default, meaning in options:
            grid.add_row(Text(f"    {option}={shown(default)}"), Text(meaning, style="dim"))
        parts += [grid, Text("")] if options else [Text("")]
    return Group(*parts)


def goals_in_words(study: Study) -> str:
    """Return the goals of the study: the metric and its mode, or all metrics and constraints."""
    return f"{study.mode} {study.description.metric}" if study.goals.is_plain else str(study.goals)


def config_line(study: Study, trial: Trial) -> str:
    """A configuration on one line."""
    return ", ".join(f"{name}={value}" for name, value in config_values(study, trial))


def config_values(study: Study, trial: Trial) -> list[tuple[str, str]]:
    """Names and values of the parameters that are open in a configuration, as they are shown."""
    return named(dict(study.space.named_values(trial.config)))


def context_line(context: Mapping[str, Any] | None) -> str:
    """Return a context on one line; empty if it is unknown."""
    return ", ".join(f"{name}={value}" for name, value in named(context or {}))


def _without_context(study: Study) -> str:
    """Say how many trials are left out of what is learned about contexts."""
    if study.context is None:
        return ""
    unknown = sum(trial.state is State.FINISHED and trial.context is None for trial in study.trials)
    return f"; {unknown} finished without a context" if unknown else ""
