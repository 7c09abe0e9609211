"""Tables for a terminal: a study's trials, its best configuration, the methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from raybo.methods.findings import interval
from raybo.record.origin import Origin
from raybo.record.states import FAILURES, State
from raybo.record.trial import Trial
from raybo.reporting.formatting import config_values, context_line, shown
from raybo.reporting.front_view import constraints_line, front_view
from raybo.reporting.notes_view import notes_view
from raybo.reporting.table_layout import Named, named_grid
from raybo.reporting.trials_table import trials_table
from raybo.study.study import Study

Describe: TypeAlias = Callable[[str], tuple[str, list[tuple[str, Any, str]]]]  # a name's text and options


def study_view(study: Study, last: int, *, best: bool = False) -> Group:
    """Return the output of `raybo show`: a heading, the last or the best trials, and the best one of all."""
    trials = best_trials(study)[:last] if best else study.trials[-last:]
    parts: list[RenderableType] = [heading(study), trials_table(study, trials)]
    if study.count(State.FINISHED) or study.furthest is not None:
        parts += [best_view(study), *confirmations(study)]
    if study.ended:
        parts.append(Text(f"ended: {study.ended}", style="dim"))
    if changed := study.other_code:
        parts.append(Text(changed, style="yellow"))
    return Group(*parts, *notes_view(study))


def best_trials(study: Study) -> list[Trial]:
    """Return the feasible trials, the best first; with several metrics the Pareto front."""
    if study.goals.k > 1:
        return list(study.front)
    done = [trial for trial in study.trials if trial.feasible and trial.value is not None]
    return [done[i] for i in study.goal.best_first([trial.value or 0.0 for trial in done])] if done else []


def heading(study: Study) -> Text:
    """Return the objective of the study, and how many trials are in which state."""
    description = study.description
    failed = study.count(*FAILURES)
    return Text.assemble(
        (description.objective, "bold"),
        f": {goals_in_words(study)}, method {description.method}, "
        f"{f'scheduler {description.scheduler}, ' if description.scheduler else ''}seed {description.seed}; "
        f"{study.count(State.FINISHED)} finished, {failed} failed{_out_of_memory(study)}, "
        f"{study.count(State.STOPPED)} stopped, "
        f"{study.count(State.PENDING)} pending"
        + "".join(f", {study.count(state)} {state}" for state in (State.PRUNED, State.PAUSED) if study.count(state))
        + of_planned(study)
        + _without_context(study),
    )


def _out_of_memory(study: Study) -> str:
    count = sum(trial.out_of_memory for trial in study.trials if trial.state is State.FAILED)
    return f" ({count} out of memory)" if count else ""


def of_planned(study: Study) -> str:
    """Say how many trials are planned, and how many run a configuration again; empty if none are planned."""
    again = sum(trial.origin is Origin.CONFIRMED for trial in study.trials)
    planned = f" of {study.planned} planned" if study.planned else ""
    return planned + (f" and {again} that confirm" if planned and again else "")


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


def _without_context(study: Study) -> str:
    """Say how many trials are left out of what is learned about contexts."""
    if study.context is None:
        return ""
    unknown = sum(trial.state is State.FINISHED and trial.context is None for trial in study.trials)
    return f"; {unknown} finished without a context" if unknown else ""
