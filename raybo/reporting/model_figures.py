"""Figures of the surrogate through the recommended trial: along each parameter, and over pairs of them."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np

from raybo.record.states import FAILURES, State
from raybo.record.trial import Trial
from raybo.reporting.axes import Axis, axes_of, centre, leader, leader_in_words, pairs_of, places_of
from raybo.reporting.emulator import Emulator
from raybo.reporting.frame import Frame, colour_range
from raybo.reporting.report_figure import ReportFigure
from raybo.reporting.run_figures import hover
from raybo.reporting.subsample import subsample, subsample_note
from raybo.reporting.theme import BLUE, ORANGE, RED, SCALE, axis_layout, escaped, grid_of, mark_size, plotly
from raybo.space import Array
from raybo.study.study import Study

SLICES, PAIRED, COLUMNS = 12, 4, 3  # parameters with a slice, parameters of the contours, plots in a row
CURVE, MAP = 101, 41  # coordinates along a slice, and along each side of a contour map
LEVELS = 14  # of the contours


def slices(study: Study, emulator: Emulator, order: list[int]) -> ReportFigure:
    """The surrogate along each parameter through the recommended trial."""
    go = plotly()
    axes = [axis for axis in (axes_of(study)[i] for i in order) if centre(study, axis) is not None][:SLICES]
    columns = min(COLUMNS, len(axes))
    rows = math.ceil(len(axes) / columns)
    fig = grid_of(
        rows,
        columns,
        height=60 + 270 * rows,
        shared_yaxes=True,
        horizontal_spacing=0.05,
        vertical_spacing=min(0.3, 0.26 / rows),
    )
    finished = [trial for trial in study.trials if trial.state is State.FINISHED]
    done = subsample(study, finished)
    failed = subsample(study, [trial for trial in study.trials if trial.state in FAILURES])
    places, lost = places_of(study, done), places_of(study, failed)
    values = np.array([trial.value for trial in done], dtype=np.float64)
    frame = Frame.of(study.goal, values)
    for k, axis in enumerate(axes):
        where = {"row": k // columns + 1, "col": k % columns + 1}
        u, at = axis.grid(CURVE)
        through = cast(Trial, centre(study, axis))
        X = emulator.around(through.number, {axis.index: u})
        first = k == 0
        for trace in _along(axis, at, emulator.band(X), first):
            fig.add_trace(trace, **where)
        fig.add_trace(
            go.Scatter(
                x=_spread(axis, places[:, axis.index]),
                y=values,
                mode="markers",
                name="trial",
                legendgroup="trial",
                showlegend=first,
                marker={"color": BLUE, "size": mark_size(len(done)) - 1.5, "opacity": 0.45},
                text=[f"trial {trial.number}: {trial.value:.6g}" for trial in done],
                hoverinfo="text",
            ),
            **where,
        )
        if failed:
            fig.add_trace(
                go.Scatter(
                    x=_spread(axis, lost[:, axis.index]),
                    y=[frame.foot] * len(failed),
                    mode="markers",
                    name="failed",
                    legendgroup="failed",
                    showlegend=first,
                    marker={"color": RED, "symbol": "x", "size": 6},
                    text=[f"trial {trial.number}: {escaped(trial.reason[:100])}" for trial in failed],
                    hoverinfo="text",
                ),
                **where,
            )
        fig.update_xaxes(axis_layout(axis), title_standoff=6, **where)
    fig.update_yaxes(**frame.layout)
    for row in range(1, rows + 1):
        fig.update_yaxes(title=escaped(study.description.metric), row=row, col=1)
    more = "" if len(axes) == study.space.d else f" The {len(axes)} that matter most of {study.space.d} are shown."
    more += frame.note + _elsewhere(study) + emulator.left_out + subsample_note(finished)
    caption = (
        f"Posterior median and 80% interval of the objective along one parameter, the others as in "
        f"{leader_in_words(study)}; blue marks are all finished trials, whatever their other values.{more}"
    )
    return ReportFigure("slices", f"Slices through {leader_in_words(study)}", caption, fig)


def contours(study: Study, emulator: Emulator, order: list[int]) -> ReportFigure | None:
    """Draw the surrogate over pairs of parameters through the recommended trial; None if there is one parameter."""
    if study.space.d < 2:
        return None
    go = plotly()
    axes = [axes_of(study)[i] for i in order[: 2 * PAIRED]]
    together = pairs_of(study, axes)
    chosen = [axis for axis in axes if any(axis in pair for pair in together)][:PAIRED]
    pairs = [(a, b) for a, b in together if a in chosen and b in chosen]
    if not pairs:
        return None
    columns = min(COLUMNS, len(pairs))
    rows = math.ceil(len(pairs) / columns)
    fig = grid_of(rows, columns, height=70 + 330 * rows, horizontal_spacing=0.1, vertical_spacing=min(0.3, 0.3 / rows))
    finished = [trial for trial in study.trials if trial.state is State.FINISHED]
    done = subsample(study, finished)
    failed = subsample(study, [trial for trial in study.trials if trial.state in FAILURES])
    places, lost = places_of(study, done), places_of(study, failed)
    through = cast(Trial, leader(study))
    starred = "recommended" if study.incumbent is not None else "best"
    maps = [map_of(study, emulator, a, b, MAP) for a, b in pairs]
    low, high = colour_range(study.goal, np.concatenate([z.ravel() for _, _, z in maps]))
    in_legend: set[str] = set()
    for k, ((a, b), (x, y, z)) in enumerate(zip(pairs, maps, strict=True)):
        where = {"row": k // columns + 1, "col": k % columns + 1}
        colours = {
            "colorscale": SCALE,
            "reversescale": not study.goal.larger_is_better,
            "zmin": low,
            "zmax": high,
            "showscale": k == 0,
            "colorbar": {"title": {"text": escaped(study.description.metric), "side": "right"}, "thickness": 14},
            "hovertemplate": "%{z:.4g}<extra>model</extra>",
        }
        if a.is_stepped or b.is_stepped:
            fig.add_trace(go.Heatmap(x=x, y=y, z=z, **colours), **where)
        else:
            lines = {"coloring": "heatmap", "showlines": True, "start": low, "end": high, "size": (high - low) / LEVELS}
            seam = {"color": "rgba(255,255,255,0.55)", "width": 0.8}
            fig.add_trace(go.Contour(x=x, y=y, z=z, contours=lines, line=seam, **colours), **where)
        marks = [("trial", places, "circle", "rgba(43,48,54,0.55)", 4.5, done), ("failed", lost, "x", RED, 6, failed)]
        marks.append((starred, places_of(study, [through]), "star", ORANGE, 15, [through]))
        for name, at, symbol, colour, size, trials in marks:
            is_named = name not in in_legend
            if not np.isnan(at[:, [a.index, b.index]]).any(axis=1).all():
                in_legend.add(name)
                fig.add_trace(
                    go.Scatter(
                        x=_spread(a, at[:, a.index]) if name != starred else at[:, a.index],
                        y=_spread(b, at[:, b.index]) if name != starred else at[:, b.index],
                        mode="markers",
                        name=name,
                        legendgroup=name,
                        showlegend=is_named,
                        marker={
                            "color": colour,
                            "symbol": symbol,
                            "size": size,
                            "line": {"color": "white", "width": 1.0 if name == starred else 0.5},
                        },
                        text=[hover(study, trial) for trial in trials] if k == 0 else [str(t.number) for t in trials],
                        hoverinfo="text",
                    ),
                    **where,
                )
        fig.update_xaxes(axis_layout(a), title_standoff=6, showgrid=False, **where)
        fig.update_yaxes(axis_layout(b), title_standoff=4, showgrid=False, **where)
    more = "" if len(chosen) == study.space.d else f" Pairs of the {len(chosen)} parameters that matter most."
    more += _elsewhere(study) + emulator.left_out + subsample_note(finished)
    caption = (
        f"Posterior median of the objective over two parameters, the others as in {leader_in_words(study)} (the star); "
        f"darker is better, and the worst share the palest colour. Dots are all finished trials, whatever their "
        f"other values.{more}"
    )
    return ReportFigure("contours", "Contours", caption, fig)


def _along(axis: Axis, at: Array, band: tuple[Array, Array, Array], is_first: bool) -> list[Any]:
    """The model along an axis: a bar at each step, or a line in its band."""
    go = plotly()
    middle, below, above = band
    named = {"name": "model", "legendgroup": "model", "showlegend": is_first}
    if axis.is_stepped:
        bars = {
            "type": "data",
            "symmetric": False,
            "array": above - middle,
            "arrayminus": middle - below,
            "color": ORANGE,
            "thickness": 1.2,
            "width": 0,
        }
        mark = {"symbol": "line-ew-open", "size": 13, "color": ORANGE, "line": {"width": 2.5}}
        hover = "%{y:.4g}<extra></extra>"
        return [go.Scatter(x=at, y=middle, mode="markers", marker=mark, error_y=bars, hovertemplate=hover, **named)]
    filled = go.Scatter(
        x=np.concatenate([at, at[::-1]]),
        y=np.concatenate([above, below[::-1]]),
        fill="toself",
        fillcolor="rgba(224,122,31,0.18)",
        line={"width": 0},
        hoverinfo="skip",
        showlegend=False,
    )
    line = go.Scatter(
        x=at,
        y=middle,
        mode="lines",
        line={"color": ORANGE, "width": 2.2},
        hovertemplate="%{y:.4g}<extra></extra>",
        **named,
    )
    return [filled, line]


def map_of(
    study: Study, emulator: Emulator, a: Axis, b: Axis, most: int
) -> tuple[Array, Array, Array]:  # (p,), (q,), (q, p)
    """Return the posterior median over two parameters, and its coordinates; NaN if one of them is not open."""
    (u, x), (v, y) = a.grid(most), b.grid(most)
    through = cast(Trial, centre(study, a, b))
    X = emulator.around(through.number, {a.index: np.tile(u, len(v)), b.index: np.repeat(v, len(u))})
    z = emulator.band(X)[0].reshape(len(v), len(u))
    rows = study.space.rows(X)  # where one of them is the choice that opens the other
    is_open = np.array([row[a.index] is not None and row[b.index] is not None for row in rows])
    return x, y, np.where(is_open.reshape(z.shape), z, np.nan)


def _elsewhere(study: Study) -> str:
    """Return a note if the leader lacks a parameter."""
    if len(study.space.open_values(cast(Trial, leader(study)).config)) == study.space.d:
        return ""
    return " A parameter that this trial does not have is shown through the best of those that have it."


def _spread(axis: Axis, at: Array) -> Array:
    """Marks of a category side by side, by the golden ratio, so that many are not one."""
    if not axis.is_categorical:
        return at
    return np.asarray(at + 0.5 * (np.arange(len(at)) * 0.6180339887 % 1.0 - 0.5))
