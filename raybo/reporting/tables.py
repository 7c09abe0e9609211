"""Tables for a terminal: a study's trials, its best configuration, the methods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from raybo import methods
from raybo.events import FAILURES, State, Trial
from raybo.space import Categorical, Float, Integer
from raybo.study import Study

STYLES = {State.FINISHED: "", State.FAILED: "red", State.LOST: "red", State.STOPPED: "dim", State.PENDING: "cyan"}


def study_view(study: Study, last: int) -> Group:
    """What `raybo show` prints: a heading, the last trials, why they were tried, and the best one."""
    description = study.description
    ended = study.count(State.FINISHED)
    failed = study.count(*FAILURES)
    heading = Text.assemble(
        (description.objective, "bold"),
        f": {description.mode} {description.metric}, method {description.method}, seed {description.seed}; "
        f"{ended} finished, {failed} failed, {study.count(State.STOPPED)} stopped, {study.count(State.PENDING)} pending"
        + (f" of {study.planned} planned" if study.planned else "")
        + _without_context(study),
    )
    parts: list[RenderableType] = [heading, trials_table(study, study.trials[-last:])]
    return Group(*parts, *([best_view(study)] if ended else []))


def trials_table(study: Study, trials: Sequence[Trial]) -> Table:
    """A row a trial: number, state, value, seconds, configuration, and why it was tried or how it ended."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name, justify in (("trial", "right"), ("state", "left"), (study.description.metric, "right"), ("s", "right")):
        table.add_column(Text(name), justify=justify, no_wrap=True)  # type: ignore[arg-type]
    if study.context is not None:
        table.add_column("context", overflow="fold", ratio=1)
    table.add_column("configuration", overflow="fold", ratio=3)
    table.add_column("why", overflow="fold", ratio=2)
    for trial in trials:
        state = f"{trial.state}" + (f" ({trial.attempt} attempts)" if trial.attempt > 1 else "")
        why = escape(study.explain(trial))
        if trial.reason and trial.state is not State.FINISHED:
            why = f"[red]{escape(trial.reason)}[/red]"
        table.add_row(
            str(trial.number),
            Text(state, style=STYLES[trial.state]),
            "" if trial.value is None else f"{trial.value:.6g}",
            "" if trial.seconds is None else f"{trial.seconds:.2f}",
            *([] if study.context is None else [escape(context_line(trial.context))]),
            escape(config_line(study, trial)),
            why,
        )
    return table


def best_view(study: Study, context: Mapping[str, Any] | None = None) -> Group:
    """The best trial and its configuration, a line a parameter; the best for a context, where one is given."""
    best = study.best if context is None else study.best_for(context)
    metric = study.description.metric
    heading = Text.assemble("best ", (f"{metric} {best.value:.6g}", "bold green"), f" (trial {best.number})")
    if "expected" in best.details:
        heading = Text.assemble(
            "best expected " if context is None else f"best at {context_line(context)}: ",
            (f"{metric} {best.details['expected']:.6g}", "bold green"),
            f" ± {best.details['expected_sd']:.2g} (trial {best.number}, which measured {best.value:.6g}"
            f"{'' if best.context is None else f' at {context_line(best.context)}'})",
        )
    grid = Table.grid(padding=(0, 2))
    for name, value in study.space.open_values(best.config):
        grid.add_row(Text(f"  {name}"), Text(shown(value)))
    return Group(heading, grid)


def methods_table(names: Sequence[str]) -> Group:
    """Every method: what it does, and its options with their defaults."""
    parts: list[RenderableType] = []
    for name in names:
        text, options = methods.describe(name)
        paragraphs = text.split("\n\n")
        parts.append(Text.assemble((name, "bold"), "  ", " ".join(paragraphs[0].split())))
        parts += [Text("    " + " ".join(paragraph.split()), style="italic") for paragraph in paragraphs[1:]]
        grid = Table.grid(padding=(0, 2))
        for option, default, meaning in options:
            grid.add_row(Text(f"    {option}={shown(default)}"), Text(meaning, style="dim"))
        parts += [grid, Text("")] if options else [Text("")]
    return Group(*parts)


def config_line(study: Study, trial: Trial) -> str:
    """A configuration on one line."""
    return ", ".join(f"{name}={shown(value)}" for name, value in study.space.open_values(trial.config))


def context_line(context: Mapping[str, Any] | None) -> str:
    """A context on one line; empty where it is not known."""
    return ", ".join(f"{name}={shown(value)}" for name, value in (context or {}).items())


def _without_context(study: Study) -> str:
    """How many trials are left out of what is learned about contexts."""
    if study.context is None:
        return ""
    unknown = sum(trial.state is State.FINISHED and trial.context is None for trial in study.trials)
    return f"; {unknown} finished without a context" if unknown else ""


def shown(value: Any) -> str:
    """A value as people read it: floats with six figures, a choice that holds parameters by what is fixed in it."""
    if isinstance(value, Mapping):
        fixed = {key: of for key, of in value.items() if not isinstance(of, (Float, Integer, Categorical, Mapping))}
        return " ".join(f"{key}={shown(of)}" for key, of in fixed.items()) or "..."
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def text_table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """A plain table of text."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in heading:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*(escape(cell) for cell in row))
    return table
