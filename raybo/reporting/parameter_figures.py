"""Figures of all parameters together: how much each matters, and every trial as a line over them."""

from __future__ import annotations

import math

import numpy as np

from raybo.record.states import State
from raybo.reporting.axes import Axis, axes_of, places_of
from raybo.reporting.emulator import CONDITIONED, Emulator
from raybo.reporting.importance import Importance
from raybo.reporting.report_figure import ReportFigure
from raybo.reporting.run_figures import value_range
from raybo.reporting.subsample import subsample, subsample_note
from raybo.reporting.theme import BLUE, LIGHT, SCALE, escaped, escaped_all, figure, plotly
from raybo.space import Array
from raybo.study.study import Study

BARS, LINES = 20, 14  # parameters in the figure of importance, and in that of all trials
BRIEF = 10  # characters of a category beside its line among others


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
    fig.update_xaxes(title=f"share of {escaped(objective)}'s variance", range=[0, 1.05], tickformat=".0%")
    fig.update_yaxes(automargin=True, showgrid=False)
    caption = (
        f"First-order and total Sobol indices of the surrogate: the share of {objective}'s variance over the space "
        "that a parameter explains alone, and with its interactions. Whiskers are 90 % posterior intervals. "
        f"{_trust(emulator)}"
    )
    return ReportFigure("importance", "Which parameters matter", caption, fig)


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
    low, high, is_log, _ = value_range(study, values)
    shown = (np.log10(values) if is_log else values)[rank]
    dimensions = [_dimension(axis, places[:, axis.index]) for axis in axes]
    metric = escaped(study.description.metric)
    shown = np.clip(shown, low, high)
    dimensions.append({"label": f"log10 {metric}" if is_log else metric, "values": shown})
    fig = figure(height=430)
    fig.add_trace(
        go.Parcoords(
            line={
                "color": shown,
                "colorscale": SCALE,
                "reversescale": not study.goal.larger_is_better,
            },
            dimensions=dimensions,
            labelangle=-18 if len(axes) > 6 else 0,
            labelfont={"size": 13},
            tickfont={"size": 11},
            rangefont={"size": 1, "color": "rgba(0,0,0,0)"},
        )
    )
    fig.update_layout(margin={"l": 80, "r": 70, "t": 90 if len(axes) > 6 else 60, "b": 30})
    caption = (
        "Each line is a finished trial, darker is better; drag along an axis to keep only the lines that pass there, "
        f"click it to undo.{subsample_note(finished)}"
    )
    if np.isnan(places).any():
        caption += " Where a trial does not have a parameter, its line passes through none."
    return ReportFigure("parallel", "All parameters at once", caption, fig)


def _trust(emulator: Emulator) -> str:
    r2 = max(0.0, emulator.leave_one_out_r2)
    judged = "" if r2 >= 0.5 else ", so take it with care"
    of = "" if len(emulator.history.y) <= CONDITIONED else f" (fitted to {emulator.gp.n} of the trials)"
    return f"Leave-one-out R2 of the surrogate: {r2:.2f}{of}{judged}."


def _dimension(axis: Axis, at: Array) -> dict[str, object]:
    low, high = axis.range
    places = at
    ticks: dict[float, str] = {}
    if axis.is_categorical:
        names = [text if len(text) <= BRIEF else text[: BRIEF - 2] + ".." for text in axis.labels]
        ticks = {float(k): name for k, name in enumerate(escaped_all(names))}
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
    return {"label": escaped(axis.name), "values": places, "range": [low, high], **labels}
