"""The look of raybo's plotly figures: one set of colours, one font, one frame."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from raybo.common.errors import MissingExtra, install_command
from raybo.record.states import State
from raybo.reporting.axes import Axis

if TYPE_CHECKING:
    import plotly.graph_objects as go

BLUE, PALE, ORANGE, RED, GREY, LIGHT = "#2f5d9b", "rgba(47,93,155,0.16)", "#e07a1f", "#c23b30", "#7a8087", "#c9ced4"
SCALE = [(0.0, "#eef2f8"), (0.35, "#a9c3e0"), (0.7, "#4f83b9"), (1.0, "#16365f")]  # from worse to better
QUALITATIVE = ["#2f5d9b", "#e07a1f", "#4a9a6a", "#8d5aa5", "#c23b30", "#7a8087", "#b79a2d", "#3aa0b0"]
STATE_COLOURS = {
    State.FINISHED: BLUE,
    State.FAILED: RED,
    State.LOST: "#7d1f18",
    State.STOPPED: GREY,
    State.PENDING: "#7fb069",
    State.PRUNED: "#c9a227",
    State.PAUSED: "#3aa0b0",
}
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"
TOOLBAR = 30  # pixels that plotly's buttons take above a figure, where its legend is
LIGHTEST = 1_000  # points of a trace above which marks are drawn smaller


def plotly() -> Any:
    """Return plotly's `graph_objects`; MissingExtra if it is not installed."""
    try:
        import plotly.graph_objects as objects
    except ImportError:
        raise MissingExtra(f"figures need plotly: {install_command('plot')}") from None
    return objects


def figure(*, height: int = 380, **layout: Any) -> go.Figure:
    """An empty figure in raybo's style."""
    return dressed(plotly().Figure(), height=height, **layout)


def grid_of(rows: int, columns: int, *, height: int, **subplots: Any) -> go.Figure:
    """An empty grid of plots in raybo's style."""
    plotly()
    from plotly.subplots import make_subplots

    return dressed(make_subplots(rows=rows, cols=columns, **subplots), height=height)


def dressed(fig: go.Figure, **layout: Any) -> go.Figure:
    """Return the figure with raybo's colours, font and frame."""
    fig.update_layout(
        template="none",
        font={"family": FONT, "size": 13, "color": "#2b3036"},
        colorway=QUALITATIVE,
        paper_bgcolor="white",
        plot_bgcolor="white",
        margin={"l": 70, "r": 24, "t": 34, "b": 54},
        legend={"orientation": "h", "x": 1.0, "xanchor": "right", "y": 1.02, "yanchor": "bottom"},
        hoverlabel={"font": {"family": FONT, "size": 12}},
        **layout,
    )
    frame = {"showline": True, "linecolor": LIGHT, "gridcolor": "#eceff2", "zeroline": False, "ticks": "outside"}
    fig.update_xaxes(tickcolor=LIGHT, **frame)
    fig.update_yaxes(tickcolor=LIGHT, automargin=True, **frame)
    return fig


def axis_layout(axis: Axis) -> dict[str, Any]:
    """plotly's settings of an axis that shows a parameter."""
    low, high = axis.range
    layout: dict[str, Any] = {"title": {"text": escaped(axis.label)}}
    if axis.is_categorical:
        return {**layout, "tickvals": list(range(len(axis.labels))), "ticktext": escaped_all(axis.labels)} | {
            "range": [low, high]
        }
    if axis.is_log:
        ends = [math.log10(low), math.log10(high)]
        margin = 0.02 * (ends[1] - ends[0])
        decades = ends[1] - ends[0] >= 1.5
        ticks = {"dtick": 1, "exponentformat": "power"} if decades else {}
        return {**layout, "type": "log", "range": [ends[0] - margin, ends[1] + margin], **ticks}
    margin = 0.02 * (high - low) or 0.5
    return {**layout, "range": [low - margin, high + margin], "nticks": 6}


def mark_size(n: int) -> float:
    """Of a trial's mark among n, in pixels."""
    return 7.0 if n <= 100 else 5.0 if n <= LIGHTEST else 3.5


def escaped(text: str) -> str:
    """Text that plotly does not take for markup."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def escaped_all(texts: list[str]) -> list[str]:
    """Each of them, not to be taken for markup."""
    return [escaped(text) for text in texts]
