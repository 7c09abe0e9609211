"""Figures of a method's own story: the method says what there is to tell, and this module draws it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from raybo.methods.explaining import reading_tags
from raybo.methods.story import OverTrials, PathInSpace, Scale, Series, Story
from raybo.reporting.axes import axes_of
from raybo.reporting.context_figures import density, expected_and_lucky
from raybo.reporting.report_figure import ReportFigure
from raybo.reporting.theme import (
    BLUE,
    GREY,
    LIGHT,
    ORANGE,
    QUALITATIVE,
    SCALE,
    axis_layout,
    escaped,
    figure,
    grid_of,
    mark_size,
    plotly,
)
from raybo.study.study import Study

TONES = {"main": BLUE, "accent": ORANGE, "muted": GREY}
SYMBOLS = ("circle", "square")  # of marks, one series after the other
SHOWN = len(QUALITATIVE)  # groups that have a colour of their own


def stories(study: Study) -> list[ReportFigure | None]:
    """Return the figures of this study's method, and those of the contexts if there are any."""
    return [method_figure(study), density(study), expected_and_lucky(study)]


def method_figure(study: Study) -> ReportFigure | None:
    """Return the figure of the method's own story; None if it has none."""
    with reading_tags("the trials' tags"):
        story = study.method.story(study.trials, study.space.names)
        return None if story is None else ReportFigure(story.key, story.title, story.caption, draw_story(story, study))


def draw_story(story: Story, study: Study) -> Any:
    """Draw a story: one plot, or two side by side."""
    places: list[dict[str, int]] = [{}]
    if len(story.plots) == 1:
        fig = figure(height=story.height)
    else:
        wide = any(isinstance(plot, PathInSpace) for plot in story.plots)
        widths: dict[str, Any] = {"column_widths": [0.58, 0.42]} if wide else {}
        fig = grid_of(1, 2, height=story.height, horizontal_spacing=0.12, **widths)
        places = [{"row": 1, "col": 1}, {"row": 1, "col": 2}]
    for plot, where in zip(story.plots, places, strict=True):
        if isinstance(plot, PathInSpace):
            _draw_path(fig, plot, study, where)
        else:
            _draw_over_trials(fig, plot, where)
    return fig


def _draw_over_trials(fig: Any, plot: OverTrials, where: Mapping[str, int]) -> None:
    widest = max(len(series.trials) for series in plot.series)
    marks = 0
    for series in plot.series:
        if series.group is not None and series.group >= SHOWN:
            continue
        trace = _trace(series, mark_size(widest))
        if series.look == "marks":
            trace["marker"]["symbol"] = SYMBOLS[marks % len(SYMBOLS)]
            marks += 1
        fig.add_trace(plotly().Scatter(x=list(series.trials), y=list(series.values), **trace), **where)
    fig.update_xaxes(title="trial", **where)
    fig.update_yaxes(**_axis(plot.scale), **where)


def _trace(series: Series, size: float) -> dict[str, Any]:
    """plotly's settings of a series."""
    colour = None if series.tone is None else TONES[series.tone]
    if series.group is not None:
        colour = QUALITATIVE[series.group]
    own = {} if colour is None else {"color": colour}
    value = f"%{{y:.{series.digits}{'f' if series.is_share else 'g'}}}"
    at_most = "at most " if series.look == "limit" else ""
    box = escaped(series.name) if series.group is not None else ""
    hover = "trial %{x}" + ("" if series.look == "marks" else f": {at_most}{value}") + f"<extra>{box}</extra>"
    looks: dict[str, dict[str, Any]] = {
        "followed": {"mode": "lines", "line": {**own, "width": 1.8}},
        "stands": {"mode": "lines", "line": {**own, "width": 2, "shape": "hv"}},
        "limit": {"mode": "lines", "line": {**own, "width": 1.4, "dash": "dash", "shape": "hv"}},
        "measured": {
            "mode": "lines+markers",
            "line": {"color": LIGHT, "width": 1.2},
            "marker": {"color": colour or BLUE, "size": size},
        },
        "moves": {"mode": "lines+markers", "line": {"color": colour or BLUE, "width": 1.2}, "marker": {"size": size}},
        "marks": {"mode": "markers", "marker": {**own, "size": size}},
    }
    in_legend = bool(series.name) and series.look not in ("limit", "measured", "moves")
    named = {"name": escaped(series.name)} if series.name and series.look != "limit" else {}
    return {**looks[series.look], **named, **({} if in_legend else {"showlegend": False}), "hovertemplate": hover}


def _axis(scale: Scale) -> dict[str, Any]:
    """plotly's settings of a vertical axis."""
    layout: dict[str, Any] = {"title": scale.title}
    if scale.limits is not None:
        layout["range"] = list(scale.limits)
    if scale.from_zero:
        layout["rangemode"] = "tozero"
    if scale.is_log:
        layout["type"] = "log"
    if scale.ticks:
        layout["tickvals"] = [at for at, _ in scale.ticks]
        if any(text is not None for _, text in scale.ticks):
            layout["ticktext"] = [f"{at:g}" if text is None else escaped(text) for at, text in scale.ticks]
    elif scale.is_log:
        layout |= {"dtick": 1, "exponentformat": "power"}
    return layout


def _draw_path(fig: Any, path: PathInSpace, study: Study, where: Mapping[str, int]) -> None:
    """Draw the path over the two parameters along which it went farthest; over trials if there is only one."""
    go = plotly()
    widest = np.argsort(-np.ptp(path.points, axis=0), kind="stable")[:2]
    axes = [axes_of(study)[int(i)] for i in widest]
    decoded = [axis.places(axis.parameter.decode(path.points[:, axis.index])) for axis in axes]
    is_line = len(axes) == 1
    x, y = (np.array(path.trials, dtype=np.float64), decoded[0]) if is_line else (decoded[0], decoded[1])
    name = escaped(path.name)
    fig.add_trace(
        go.Scatter(
            x=x,
            y=y,
            mode="lines+markers",
            name=name,
            line={"color": GREY, "width": 1.2},
            marker={
                "size": 9,
                "color": list(range(len(x))),
                "colorscale": SCALE,
                "line": {"color": GREY, "width": 0.8},
            },
            text=[f"{name} {k + 1}, trial {number}" for k, number in enumerate(path.trials)],
            hoverinfo="text",
        ),
        **where,
    )
    for end, at, symbol in (("first", 0, "circle-open"), ("last", -1, "star")):
        fig.add_trace(
            go.Scatter(
                x=[x[at]],
                y=[y[at]],
                mode="markers",
                name=end,
                marker={"size": 15, "symbol": symbol, "color": ORANGE, "line": {"color": ORANGE, "width": 2}},
                hoverinfo="skip",
            ),
            **where,
        )
    fig.update_xaxes({"title": {"text": "trial"}} if is_line else axis_layout(axes[0]), **where)
    fig.update_yaxes(axis_layout(axes[-1]), **where)
