"""Figures of all parameters together: how much each matters, and every trial as a line over them."""

from __future__ import annotations

import math
import re

import numpy as np

from raybo.record.states import State
from raybo.reporting.axes import Axis, axes_of, places_of
from raybo.reporting.emulator import CONDITIONED, Emulator
from raybo.reporting.formatting import abbreviated
from raybo.reporting.frame import Frame
from raybo.reporting.importance import Importance
from raybo.reporting.report_figure import ReportFigure
from raybo.reporting.subsample import subsample, subsample_note
from raybo.reporting.theme import BLUE, LIGHT, SCALE, escaped, escaped_all, figure, plotly
from raybo.space import Array
from raybo.study.study import Study

BARS, LINES = 20, 14  # parameters in the figure of importance, and in that of all trials
BRIEF = 10  # characters of a category beside its line among others
LABEL = 130  # characters of all names above parallel axes together
LINE = 15  # pixels of a line of such a name
DESIGNS = ("random", "sobol")  # methods whose trials are spread over the space, whatever the results
# measured by benchmarks/importance.py
SEARCHED = ", too short where a search has left regions unexplored: of known indices they held four in five"
NO_PARAMETER = "A line passes through none where the trial does not have the parameter."


def importance_bars(study: Study, emulator: Emulator, found: Importance) -> ReportFigure | None:
    """Draw first-order and total effects with their uncertainty; None if there is only one parameter."""
    if study.space.d < 2:
        return None
    go = plotly()
    axes = axes_of(study)
    order = found.order[:BARS][::-1]
    names = escaped_all([axes[i].name for i in order])
    fig = figure(height=110 + 44 * len(order), barmode="group", bargap=0.3)
    for name, index, colour in (("total", found.total, LIGHT), ("alone", found.main, BLUE)):
        middle = index[1, order]
        fig.add_trace(
            go.Bar(
                y=names,
                x=middle,
                orientation="h",
                name=name,
                marker={"color": colour},
                error_x={
                    "type": "data",
                    "symmetric": False,
                    "array": index[2, order] - middle,
                    "arrayminus": middle - index[0, order],
                    "color": "#4a5058",
                    "thickness": 1.2,
                    "width": 3,
                },
                hovertemplate="%{y}: %{x:.2f}<extra>" + name + "</extra>",
            )
        )
    fig.update_layout(legend_traceorder="reversed")
    objective = "the objective" if study.goals.k == 1 else study.description.metric
    if found.is_log:
        objective = f"log {study.description.metric}"
    fig.update_xaxes(title=f"share of the variance of {escaped(objective)}", range=[0, 1.05], tickformat=".0%")
    fig.update_yaxes(automargin=True, showgrid=False)
    caption = (
        f"First-order and total Sobol indices: the share of the variance of {objective} over the space that a "
        f"parameter explains alone, and with its interactions. Whiskers are 90% posterior intervals"
        f"{'' if study.description.method in DESIGNS else SEARCHED}. {_trust(emulator)}{emulator.left_out}"
    )
    return ReportFigure("importance", "Parameter importance", caption, fig)


def parallel(study: Study, order: list[int]) -> ReportFigure | None:
    """Draw every finished trial as a line over all parameters; None if there is one parameter or no result."""
    finished = [trial for trial in study.trials if trial.state is State.FINISHED]
    if study.space.d < 2 or not finished:
        return None
    done = subsample(study, finished)
    go = plotly()
    axes = [axes_of(study)[i] for i in order[:LINES]]
    values = np.array([trial.value for trial in done], dtype=np.float64)
    # the best lines are drawn last, above the others
    rank = np.argsort(study.goal.maximised(values), kind="stable")
    places = places_of(study, done)[rank]
    frame = Frame.of(study.goal, values)
    shown = (np.log10(values) if frame.is_log else values)[rank]
    metric = study.description.metric
    names = [wrapped(name, LABEL // (len(axes) + 1)) for name in (*(axis.label for axis in axes), metric)]
    if frame.is_log:
        names[-1] = f"log10 {names[-1]}"
    dimensions = [_dimension(axis, places[:, axis.index], name) for axis, name in zip(axes, names[:-1], strict=True)]
    shown = np.clip(shown, frame.low, frame.high)
    dimensions.append({"label": names[-1], "values": shown})
    fig = figure(height=430)
    fig.add_trace(
        go.Parcoords(
            line={
                "color": shown,
                "colorscale": SCALE,
                "reversescale": not study.goal.larger_is_better,
            },
            dimensions=dimensions,
            labelfont={"size": 12},
            tickfont={"size": 11},
            rangefont={"size": 1, "color": "rgba(0,0,0,0)"},
        )
    )
    lines = max(name.count("<br>") for name in names)
    fig.update_layout(height=430 + LINE * lines, margin={"l": 80, "r": 70, "t": 60 + LINE * lines, "b": 30})
    caption = (
        "Each line is a finished trial, darker is better. Drag along an axis to select the lines that pass there; "
        f"click it to undo.{subsample_note(finished)}"
    )
    if np.isnan(places).any():
        caption += f" {NO_PARAMETER}"
    return ReportFigure("parallel", "Parallel coordinates", caption, fig)


def wrapped(name: str, width: int) -> str:
    """Return a name in lines of at most so many characters, for plotly, broken after dots and underscores if it can."""
    lines = [""]
    for part in re.split(r"(?<=[._ ])", name):
        while len(part) > width:
            lines[-1:] = [lines[-1], part[:width]] if lines[-1] else [part[:width]]
            part = part[width:]
        if len(lines[-1]) + len(part) > width and lines[-1]:
            lines.append("")
        lines[-1] += part
    return "<br>".join(escaped_all([line for line in lines if line]))


def _trust(emulator: Emulator) -> str:
    r2 = max(0.0, emulator.leave_one_out_r2)
    judged = "" if r2 >= 0.5 else ", so take it with care"
    of = "" if len(emulator.history.y) <= CONDITIONED else f" (fitted to {emulator.gp.n} of the trials)"
    return f"Leave-one-out R2 of the surrogate: {r2:.2f}{of}{judged}."


def _dimension(axis: Axis, at: Array, name: str) -> dict[str, object]:
    low, high = axis.range
    places = at
    ticks: dict[float, str] = {}
    if axis.is_categorical:
        ticks = {float(k): name for k, name in enumerate(escaped_all(abbreviated(axis.choices, BRIEF)))}
    elif axis.is_log:
        places, low, high = np.log10(at), math.log10(low), math.log10(high)
        whole = list(range(math.ceil(low - 1e-9), math.floor(high + 1e-9) + 1))
        ticks = {float(t): f"{10.0**t:.3g}" for t in (whole if len(whole) > 1 else np.linspace(low, high, 4))}
    else:
        ticks = {float(t): f"{t:.3g}" for t in np.linspace(low, high, 5)} if np.isnan(at).any() else {}
    if np.isnan(at).any():  # a line has to pass somewhere: below the axis where the parameter is not open
        low -= 1.0 if axis.is_categorical else 0.15 * (high - low)
        ticks = {low + 0.5 if axis.is_categorical else low: "none", **ticks}
        places = np.where(np.isnan(at), next(iter(ticks)), places)
    labels = {"tickvals": list(ticks), "ticktext": list(ticks.values())} if ticks else {}
    return {"label": name, "values": places, "range": [low, high], **labels}
