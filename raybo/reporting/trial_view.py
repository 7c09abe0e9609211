"""Everything about one trial, for a terminal."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from raybo.common import systems
from raybo.common.errors import TrialError
from raybo.common.messages import time_shown
from raybo.common.terminal import without_colours
from raybo.journal.side_files import OUTPUT
from raybo.record.code_changes import differences, last_code
from raybo.record.events import Event, Kind
from raybo.record.states import FAILURES
from raybo.record.trial import Trial
from raybo.reporting.curves_in_text import spark_line, verdict_in_words
from raybo.reporting.formatting import config_values, shown
from raybo.reporting.notes_view import notes_view
from raybo.reporting.table_layout import named_grid
from raybo.reporting.trials_table import STYLES
from raybo.study.study import Study

TAG_CHARACTERS = 100  # of a tag's value
OUTPUT_LINES = 40  # of what it printed, the last


def trial_view(study: Study, number: int) -> Group:
    """Return the output of `raybo show --trial`: result, configuration, reason, tags, events, traceback, output, files.

    Raises:
        TrialError: there is no such trial.
    """
    if not 0 <= number < len(study.trials):
        raise TrialError(f"trial {number}: no such trial; the study has {len(study.trials)}, numbered from 0")
    trial = study.trials[number]
    parts: list[RenderableType] = [_heading(study, trial)]
    parts += _section("configuration", config_values(study, trial))
    parts += _section("fidelity", [(name, f"{at:,}") for name, at in trial.fidelity.items()])
    tags = [(key, _brief(value)) for key, value in trial.tags.items()]
    parts += [Text("\nreason", style="bold"), Text(f"  {study.explain(trial)}")]
    parts += _section("tags", tags)
    returned = trial.details.get("metrics") or {}
    metrics = {**(trial.context or {}), **{name: v for name, v in returned.items() if name not in trial.values}}
    parts += _section("other metrics", [(name, shown(value)) for name, value in metrics.items()])
    parts += _curve(study, trial)
    happened = [event for event in study.events if event.trial == number and event.kind is not Kind.REPORTED]
    parts += _section("events", [_described(event) for event in happened])
    ran, last = study.code_of(trial), last_code(study.events)
    if ran is not None and last is not None and (changes := differences(ran, last)):
        parts += [Text(f"\nran under other code than the last run: {', '.join(changes)}", style="yellow")]
    if trace := trial.details.get("traceback"):
        parts += [Text("\ntraceback", style="bold"), Text(str(trace).rstrip())]
    parts += notes_view(study, number)
    if directory := study.directory(trial):
        parts += _output(directory / OUTPUT, earliest(happened))
    if places := study.files(trial):
        parts += [Text("\nfiles", style="bold"), *(Text(f"  {place}") for place in places)]
    return Group(*parts)


def _heading(study: Study, trial: Trial) -> Text:
    text = Text.assemble(
        (f"trial {trial.number}", "bold"),
        f" of {study.description.objective}: ",
        ("infeasible" if trial.violations else str(trial.state), STYLES[trial.state]),
    )
    if trial.value is not None:
        values = trial.values or {study.description.metric: trial.value}
        text.append("".join(f", {name} {value!r}" for name, value in values.items()))
        if study.goals.k > 1 and any(trial.number == each.number for each in study.front):
            text.append(", on the front", style="bold green")
        elif study.incumbent is not None and study.best.number == trial.number:
            text.append(", the best so far", style="bold green")
        if trial.violations:
            text.append(f"; {study.broken(trial)}", style="yellow")
    elif trial.reason:
        text.append(f": {trial.reason}", style="red" if trial.state in FAILURES else "")
    return text


def _section(title: str, rows: list[tuple[str, str]]) -> list[RenderableType]:
    if not rows:
        return []
    return [Text(f"\n{title}", style="bold"), named_grid(rows)]


def _curve(study: Study, trial: Trial) -> list[RenderableType]:
    """Return its learning curve as a line of blocks, and the verdict on it; nothing if it has reported nothing."""
    if not trial.step or trial.fidelity:
        return []
    values = [value for _, value in trial.reports]
    first, last, best = trial.reports[0], trial.reports[-1], study.goal.best_of(values)
    at = next(step for step, value in trial.reports if value == best)
    figures = f"{shown(first[1])} at step {first[0]}"
    if len(values) > 1:
        figures += f", {shown(last[1])} at step {last[0]}, best {shown(best)} at step {at}"
    lines = [Text("\nlearning curve", style="bold"), Text(f"  {spark_line(values)}"), Text(f"  {figures}")]
    if verdict := verdict_in_words(trial):
        lines.append(Text(f"  {verdict}", style=STYLES[trial.state]))
    return list(lines)


def earliest(events: Sequence[Event]) -> float:
    """Return the earliest time that events of a trial tell, in seconds since 1970; minus infinity if they tell none.

    That is when it was asked for, unless the computer's clock was set back since.
    """
    told = ((event.timestamp, event.data.get("seconds") or 0.0) for event in events)
    return min((at - float(seconds) for at, seconds in told if at is not None), default=-math.inf)


def _output(path: Path, begun: float) -> list[RenderableType]:
    """Return the end of its output; nothing if that is older than the trial, of another study of this name."""
    try:
        with open(os.open(path, os.O_RDONLY | systems.NOFOLLOW | systems.NONBLOCK), "rb") as file:
            if os.fstat(file.fileno()).st_mtime + 1 < begun:
                return []
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - OUTPUT_LINES * 1_000))
            lines = without_colours(file.read().decode(errors="replace")).splitlines()
    except OSError:
        return []
    title = f"\nend of the output ({path.name})" if size and len(lines) > OUTPUT_LINES else "\noutput"
    return [Text(title, style="bold"), Text("\n".join(lines[-OUTPUT_LINES:]))] if lines else []


def _described(event: Event) -> tuple[str, str]:
    data, at = event.data, time_shown(event.at)
    attempt = f"attempt {data['attempt']}" if "attempt" in data else ""
    seconds = f"{data['seconds']:.3f} s" if isinstance(data.get("seconds"), (int, float)) else ""
    words = {
        Kind.ASKED: f"proposed in {1_000 * float(data.get('suggest_seconds', 0.0)):.1f} ms",
        Kind.TOLD: "finished",
        Kind.RETRIED: f"retried: {data.get('reason', '')}",
        Kind.CONTEXT_OBSERVED: "context observed",
        Kind.PRUNED: f"pruned: {data.get('reason', '')}",
        Kind.PAUSED: f"paused: {data.get('reason', '')}",
        Kind.RESUMED: f"resumed after step {data.get('step', 0)}",
    }.get(event.kind, str(event.kind))
    host = f"on {data['host']}" if data.get("host") else ""
    return at or f"event {event.number}", ", ".join(part for part in (words, attempt, seconds, host) if part)


def _brief(value: object) -> str:
    if isinstance(value, (list, tuple)):
        text = "[" + ", ".join(_brief(item) for item in value) + "]"
    else:
        text = shown(value)
    return text if len(text) <= TAG_CHARACTERS else text[: TAG_CHARACTERS - 3] + "..."
