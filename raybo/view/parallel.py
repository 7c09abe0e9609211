"""All parameters at once, drawn with plain lines: plotly's own compiles a program, which the page's policy forbids."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from raybo.reporting.parameter_figures import NO_PARAMETER
from raybo.reporting.report_figure import ReportFigure
from raybo.reporting.theme import LIGHT, SCALE, escaped, figure, plotly
from raybo.space import Array

SHADES = 8  # lines are drawn in so many shades, one trace each
MOST_LINES = 600  # lines at most: half of them the best, the others an even choice of the rest
CAPTION = "Each line is a finished trial, darker is better."


def plain_lines(panel: ReportFigure) -> ReportFigure:
    """Return the panel with plain lines in place of plotly's parallel coordinates; any other unchanged."""
    trace = panel.figure.data[0]
    if trace.type != "parcoords":
        return panel
    better = np.asarray(trace.line.color, dtype=np.float64) * (-1.0 if trace.line.reversescale else 1.0)
    order = _chosen(better)
    axes = [_Axis(dimension) for dimension in trace.dimensions]
    heights = np.column_stack([axis.heights for axis in axes])[order]  # (n, axes)
    shades = np.floor(SHADES * np.linspace(0.0, 1.0, len(order), endpoint=False)).astype(int)
    made = figure(height=430, showlegend=False)
    for shade in range(SHADES):
        lines = heights[shades == shade]
        if not len(lines):
            continue
        gaps = np.column_stack([lines, np.full(len(lines), np.nan)])
        made.add_trace(
            plotly().Scatter(
                x=np.tile([*range(len(axes)), None], len(lines)).tolist(),
                y=[None if np.isnan(y) else y for y in gaps.ravel()],
                mode="lines",
                line={"color": _colour((shade + 0.5) / SHADES), "width": 1.2},
                hoverinfo="skip",
            )
        )
    for place, axis in enumerate(axes):
        made.add_shape(type="line", x0=place, x1=place, y0=0.0, y1=1.0, line={"color": LIGHT, "width": 1})
        for at, words in axis.ticks:
            made.add_annotation(x=place, y=at, text=words, showarrow=False, xanchor="left", xshift=4, font={"size": 11})
    made.update_xaxes(
        tickvals=list(range(len(axes))),
        ticktext=[axis.label for axis in axes],
        side="top",
        range=[-0.1, len(axes) - 0.4],
        showgrid=False,
        showline=False,
        tickangle=0,
    )
    made.update_yaxes(visible=False, range=[-0.04, 1.04])
    made.update_layout(
        height=panel.figure.layout.height, margin={"l": 30, "r": 30, "t": panel.figure.layout.margin.t, "b": 20}
    )
    left = f" The best half of the lines, and an even choice of the rest: {len(order)} of {len(better)}."
    none = f" {NO_PARAMETER}" if NO_PARAMETER in panel.caption else ""
    return replace(panel, figure=made, caption=CAPTION + (left if len(order) < len(better) else "") + none)


class _Axis:
    """One axis: the heights of its values between 0 and 1, and its labels."""

    def __init__(self, dimension: Any) -> None:
        values = np.asarray(dimension.values, dtype=np.float64)
        low, high = dimension.range or (float(values.min()), float(values.max()))
        width = (high - low) or 1.0
        self.label = str(dimension.label)  # escaped already
        self.heights: Array = (values - low) / width
        if dimension.tickvals is None:
            told = [(t, escaped(f"{t:.3g}")) for t in np.linspace(low, high, 5)]
        else:
            told = list(zip(dimension.tickvals, dimension.ticktext, strict=True))
        self.ticks = [((float(t) - low) / width, str(words)) for t, words in told]


def _chosen(better: Array) -> list[int]:
    """Return the trials to draw, the worst first."""
    order = np.argsort(better, kind="stable")
    if len(order) <= MOST_LINES:
        return [int(i) for i in order]
    half = MOST_LINES // 2
    rest = order[: len(order) - half]
    even = rest[np.linspace(0, len(rest) - 1, MOST_LINES - half).astype(int)]
    return [int(i) for i in (*even, *order[len(order) - half :])]


def _colour(share: float) -> str:
    """Return a colour of the figures' common scale, without its lightest, the background's."""
    at = 0.25 + 0.75 * share
    for (a, first), (b, second) in pairwise(SCALE):
        if a <= at <= b:
            parts = [
                round(
                    int(first[i : i + 2], 16)
                    + (at - a) / (b - a) * (int(second[i : i + 2], 16) - int(first[i : i + 2], 16))
                )
                for i in (1, 3, 5)
            ]
            return f"rgb({parts[0]},{parts[1]},{parts[2]})"
    return SCALE[-1][1]
