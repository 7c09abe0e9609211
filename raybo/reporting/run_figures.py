"""Figures of how a study went: the best so far, the workers' time, the time of suggestions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from raybo.record.budget import Budget, used_by_each
from raybo.record.events import Told
from raybo.record.origin import Origin
from raybo.record.states import FAILURES, State
from raybo.record.trial import Trial
from raybo.reporting.formatting import config_line, shown
from raybo.reporting.frame import MARKED, Frame
from raybo.reporting.report_figure import ReportFigure
from raybo.reporting.subsample import MOST, subsample, subsample_note
from raybo.reporting.theme import (
    BLUE,
    GREY,
    ORANGE,
    RED,
    STATE_COLOURS,
    escaped,
    figure,
    mark_size,
    plotly,
)
from raybo.reporting.timeline import Span, busy_share, joined, pauses_of, spans
from raybo.space import Array
from raybo.study.study import Study

HOVER_CHARACTERS = 300
LANES = 64  # that a timeline shows


def best_so_far(study: Study) -> ReportFigure | None:
    """Every value, the best of them so far, and where trials failed; None before the first trial."""
    if not study.trials:
        return None
    go = plotly()
    done = [trial for trial in study.trials if trial.state is State.FINISHED]
    values = np.array([trial.value for trial in done], dtype=np.float64)
    frame = Frame.of(study.goal, values)
    fig = figure(height=420)
    added = np.array([trial.origin is Origin.ADDED for trial in done], dtype=bool)
    broken = np.array([bool(trial.violations) for trial in done], dtype=bool)
    for mask, name, symbol, colour in (
        (~added & ~broken, "trial", "circle", BLUE),
        (added & ~broken, "added", "diamond-open", GREY),
        (broken, "breaks a constraint", "x-thin-open", GREY),
    ):
        inside = mask & ~frame.is_outside
        if inside.any():
            chosen = subsample(study, [trial for trial, wanted in zip(done, inside, strict=True) if wanted])
            fig.add_trace(
                go.Scatter(
                    x=[trial.number for trial in chosen],
                    y=[trial.value for trial in chosen],
                    mode="markers",
                    name=name,
                    marker={"color": colour, "symbol": symbol, "size": mark_size(len(done)), "opacity": 0.65},
                    text=[hover(study, trial) for trial in chosen],
                    hoverinfo="text",
                )
            )
    if done:
        best = best_line(study, done)
        steps = [
            0,
            *(1 + np.flatnonzero(np.diff(best) != 0.0)),
        ]  # NaN differs from itself: from the first on it is known
        fig.add_trace(
            go.Scatter(
                x=[*(done[i].number for i in steps), len(study.trials) - 1],
                y=[*best[steps], best[-1]],
                mode="lines",
                name="best so far",
                line={"color": ORANGE, "width": 2.5, "shape": "hv"},
                hoverinfo="skip",
            )
        )
    if frame.is_outside.any():
        outside = subsample(study, [trial for trial, is_far in zip(done, frame.is_outside, strict=True) if is_far])
        fig.add_trace(
            go.Scatter(
                x=[trial.number for trial in outside],
                y=[frame.worst] * len(outside),
                mode="markers",
                name="far worse",
                marker={"color": BLUE, "symbol": frame.symbol, "size": 9},
                text=[hover(study, trial) for trial in outside],
                hoverinfo="text",
            )
        )
    for states, name, symbol, colour in (
        (FAILURES, "failed", "x", RED),
        ((State.PRUNED,), "pruned", "line-ns-open", STATE_COLOURS[State.PRUNED]),
        ((State.PAUSED,), "paused", "pentagon-open", STATE_COLOURS[State.PAUSED]),
        ((State.STOPPED,), "stopped", "square-open", GREY),
        ((State.PENDING,), "running or enqueued", "triangle-up-open", STATE_COLOURS[State.PENDING]),
    ):
        chosen = subsample(study, [trial for trial in study.trials if trial.state in states])
        if chosen:
            fig.add_trace(
                go.Scatter(
                    x=[trial.number for trial in chosen],
                    y=[frame.foot] * len(chosen),
                    mode="markers",
                    name=name,
                    marker={"color": colour, "symbol": symbol, "size": 8},
                    text=[hover(study, trial) for trial in chosen],
                    hoverinfo="text",
                )
            )
    margin = 0.03 * max(1, len(study.trials) - 1)
    fig.update_xaxes(title="trial", range=[-margin, len(study.trials) - 1 + margin])
    fig.update_yaxes(title=escaped(study.description.metric), **frame.layout)
    kept = "feasible " if study.goals.constraints else ""
    ended = ", at the bottom if it has no value" if len(done) < len(study.trials) else ""
    far = MARKED if frame.is_outside.any() else ""
    caption = (
        f"Objective value of each trial in the order of proposal{ended}, and the best {kept}value so far."
        f"{far}{subsample_note(done)}"
    )
    return ReportFigure("best-so-far", "Best so far", caption, fig)


def best_by_cost(study: Study) -> ReportFigure | None:
    """The best value over what trials have cost; None unless the study has a budget or says what trials cost."""
    cost, budget = study.history.cost, study.history.budget
    if (cost is None and budget is None) or study.goals.k > 1:
        return None
    counted = budget if cost is None and budget is not None else Budget(1.0, cost=cost)
    spent = np.cumsum(used_by_each(study.events, counted))
    done = [i for i, event in enumerate(study.events) if isinstance(event, Told)]
    if not done:
        return None
    best = best_line(study, [study.trials[cast(int, study.events[i].trial)] for i in done])
    fig = figure(height=360)
    fig.add_trace(
        plotly().Scatter(
            x=[*spent[done], spent[-1]],
            y=[*best, best[-1]],
            mode="lines",
            name="best so far",
            line={"color": ORANGE, "width": 2.5, "shape": "hv"},
        )
    )
    unit = cost or ("seconds of trials" if counted.is_time else "money")
    fig.update_xaxes(title=escaped(unit), rangemode="tozero")
    fig.update_yaxes(title=escaped(study.description.metric))
    spending = f"sum of {cost}" if cost else "seconds" if counted.is_time else "cost"
    caption = f"The best value so far over the {spending} of the trials that had ended."
    return ReportFigure("best-by-cost", "Best so far by cost", caption, fig)


def best_line(study: Study, done: Sequence[Trial]) -> Array:  # (n,)
    """The best value by each of the finished trials; those that break a constraint do not count, NaN before others."""
    values = np.array([trial.value if trial.feasible else np.nan for trial in done], dtype=np.float64)
    known = np.flatnonzero(~np.isnan(values))
    if not len(known):
        return values
    filled = np.where(np.isnan(values), study.goal.worst_of(values), values)
    return np.where(np.arange(len(values)) < known[0], np.nan, study.goal.best_so_far(filled))


def timeline(study: Study) -> ReportFigure | None:
    """Draw what each worker ran, and when; None if no times are known."""
    found = spans(study)
    if not found:
        return None
    go = plotly()
    unit, word = (1.0, "seconds") if max(s.end for s in found) < 600 else (60.0, "minutes")
    lanes = sorted({(span.host, span.lane) for span in found})[:LANES]
    names = {lane: _lane_name(lane, lanes) for lane in lanes}
    fig = figure(height=max(200, min(900, 110 + 26 * len(lanes))), barmode="overlay", bargap=0.25)
    bars = joined(found) if len(found) > MOST else found
    for state in State:
        chosen = [span for span in bars if span.state is state and (span.host, span.lane) in names]
        if chosen:
            fig.add_trace(
                go.Bar(
                    base=[span.begin / unit for span in chosen],
                    x=[(span.end - span.begin) / unit for span in chosen],
                    y=[names[span.host, span.lane] for span in chosen],
                    orientation="h",
                    name="running" if state is State.PENDING else str(state),
                    marker={"color": STATE_COLOURS[state], "line": {"color": "white", "width": _seam(found)}},
                    text=[
                        f"trial {span.trial}: {state}<br>{span.end - span.begin:.3g} s from {span.begin:.4g} s"
                        for span in chosen
                    ],
                    textposition="none",
                    hoverinfo="text",
                )
            )
    order = [names[lane] for lane in lanes]
    fig.update_yaxes(categoryorder="array", categoryarray=order[::-1], automargin=True, showgrid=False)
    fig.update_xaxes(title=f"{word} since the study began")
    many = " Trials that followed each other closely share a bar, named by the first." if len(bars) < len(found) else ""
    share = f"they were busy {100.0 * busy_share(study, found):.0f}% of the time"
    away = (
        "while the study ran; its pauses do not count" if pauses_of(study) else "between the first trial and the last"
    )
    caption = f"A row for each worker, a bar for each trial, white where it was idle; {share} {away}.{many}"
    return ReportFigure("timeline", "Timeline of the workers", caption, fig)


def suggestions(study: Study) -> ReportFigure | None:
    """Draw the time of each suggestion beside that of each trial; None if the method proposed nothing."""
    asked = [trial for trial in study.trials if trial.suggest_seconds > 0.0]
    if not asked:
        return None
    go = plotly()
    fig = figure(height=320)
    ran = subsample(study, [trial for trial in study.trials if trial.seconds])
    few = subsample(study, asked)
    rows: list[tuple[str, Sequence[Trial], list[float | None], str]] = [
        ("trial", ran, [trial.seconds for trial in ran], "#b9bfc6"),
        ("suggestion", few, [trial.suggest_seconds for trial in few], BLUE),
    ]
    for name, trials, seconds, colour in rows:
        fig.add_trace(
            go.Scatter(
                x=[trial.number for trial in trials],
                y=seconds,
                mode="markers",
                name=name,
                marker={"color": colour, "size": mark_size(len(study.trials)) - 1.0},
                hovertemplate="trial %{x}: %{y:.3g} s<extra></extra>",
            )
        )
    fig.update_xaxes(title="trial")
    fig.update_yaxes(title="seconds", type="log", dtick=1, exponentformat="power")
    median = float(np.median([trial.suggest_seconds for trial in asked]))
    caption = (
        f"How long the method took to suggest each trial (median {_seconds(median)}), compared with how long the trial "
        f"itself took; the scale is logarithmic.{subsample_note(asked)}"
    )
    return ReportFigure("suggestions", "Time per suggestion", caption, fig)


def hover(study: Study, trial: Trial) -> str:
    """Return the text about a trial under the pointer."""
    result = (
        f"{trial.value:.6g}" if trial.value is not None else ": ".join(filter(None, [str(trial.state), trial.reason]))
    )
    text = escaped(config_line(study, trial)[:HOVER_CHARACTERS]).replace(", ", "<br>")
    others = ", ".join(f"{name} {shown(value)}" for name, value in (trial.details.get("metrics") or {}).items())
    more = f"<br>{escaped(others[:HOVER_CHARACTERS])}" if others else ""
    return f"<b>trial {trial.number}</b>: {escaped(result[:HOVER_CHARACTERS])}<br>{text}{more}"


def _lane_name(lane: tuple[str, int], lanes: Sequence[tuple[str, int]]) -> str:
    hosts = {host for host, _ in lanes if host}
    return f"{escaped(lane[0] or 'unknown') if len(hosts) > 1 else 'worker'} {lane[1] + 1}"


def _seam(found: list[Span]) -> float:
    return 0.5 if len(found) <= 300 else 0.0


def _seconds(seconds: float) -> str:
    return f"{1_000 * seconds:.3g} ms" if seconds < 1.0 else f"{seconds:.3g} s"
