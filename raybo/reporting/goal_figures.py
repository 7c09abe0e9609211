"""Figures of several metrics, of constraints and of failures: the front, the margins, where trials succeed."""

from __future__ import annotations

import math
from collections.abc import Sequence, Set
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from raybo.common.errors import NumericalError
from raybo.methods.parts.failure_model import success_at
from raybo.record.goals import Goal
from raybo.record.pareto import hypervolume
from raybo.record.states import FAILURES, State
from raybo.record.trial import Trial
from raybo.reporting.axes import axes_of, centre, leader, pairs_of, places_of
from raybo.reporting.emulator import Emulator
from raybo.reporting.frame import MARKED, Frame
from raybo.reporting.report_figure import ReportFigure
from raybo.reporting.run_figures import hover
from raybo.reporting.subsample import subsample, subsample_note
from raybo.reporting.theme import (
    BLUE,
    GREY,
    LIGHT,
    ORANGE,
    RED,
    SCALE,
    axis_layout,
    escaped,
    figure,
    grid_of,
    mark_size,
    plotly,
)
from raybo.space import Array
from raybo.study.study import Study

MAP = 41  # coordinates along each side of the map
MARKS = 1_000  # trials of one kind that are marked on it


def front(study: Study) -> ReportFigure | None:
    """Every pair of metrics with its trials, those on the front joined; None with one metric, or no result."""
    done = [trial for trial in study.trials if trial.state is State.FINISHED]
    if study.goals.k == 1 or not done:
        return None
    go = plotly()
    pairs = list(combinations(study.goals.names, 2))
    columns = min(3, len(pairs))
    rows = math.ceil(len(pairs) / columns)
    fig = grid_of(rows, columns, height=80 + 400 * rows, horizontal_spacing=0.09, vertical_spacing=0.3 / rows)
    numbers = {trial.number for trial in study.front}
    kept = subsample(study, [trial for trial in done if trial.feasible and trial.number not in numbers])
    broken = subsample(study, [trial for trial in done if trial.violations])
    size = mark_size(len(done))
    axes = {axis.name: axis for axis in front_axes(study, done)}
    shades = {"cmin": -0.5 * len(study.trials), "cmax": len(study.trials)}  # the first would be white on white
    for i, (a, b) in enumerate(pairs):
        where = {"row": i // columns + 1, "col": i % columns + 1}
        if study.goals.k == 2 and study.front:
            xs, ys = front_line(study, a, b)
            line = {"color": ORANGE, "width": 1.6}
            fig.add_trace(go.Scatter(x=xs, y=ys, mode="lines", line=line, showlegend=False, hoverinfo="skip"), **where)
        for name, trials, marker in (
            ("breaks a constraint", broken, {"color": GREY, "symbol": "x-thin", "line": {"color": GREY, "width": 1.3}}),
            ("dominated", kept, {"color": [t.number for t in kept], "colorscale": SCALE, **shades, "opacity": 0.9}),
            ("on the front", study.front, {"color": ORANGE, "line": {"color": "white", "width": 0.8}}),
        ):
            if trials:
                inside = marker.get("symbol", "circle")
                symbols = [_symbol(axes[a], axes[b], trial) or inside for trial in trials]
                fig.add_trace(
                    go.Scatter(
                        x=axes[a].places(trials),
                        y=axes[b].places(trials),
                        mode="markers",
                        name=name,
                        legendgroup=name,
                        showlegend=i == 0,
                        marker={"size": size + (1.5 if name == "on the front" else 0.0), **marker, "symbol": symbols},
                        text=[_hover_text(study, trial) for trial in trials],
                        hoverinfo="text",
                    ),
                    **where,
                )
        fig.update_xaxes(title=_axis(study, a), **axes[a].frame.layout, **where)
        fig.update_yaxes(title=_axis(study, b), **axes[b].frame.layout, **where)
    stairs = " The line bounds the region that it dominates." if study.goals.k == 2 else ""
    far = MARKED if any(axis.outside for axis in axes.values()) else ""
    caption = (
        "Finished trials by their metrics; those that no other dominates are the Pareto front. Dominated ones are "
        f"darker the later they were proposed.{stairs}{far}"
    )
    return ReportFigure("front", "Pareto front", caption, fig)


@dataclass(frozen=True, eq=False)
class FrontAxis:
    """The axis of a metric where a front is drawn.

    Attributes:
        name: the metric's.
        frame: holds the front, but for what is far worse than both most trials and the rest of the front.
        outside: numbers of the trials that are far worse than the frame.
    """

    name: str
    frame: Frame
    outside: Set[int]

    def places(self, trials: Sequence[Trial]) -> list[float]:
        """Return where trials are drawn along it: those outside just within its worse end."""
        return [self.frame.worst if trial.number in self.outside else trial.values[self.name] for trial in trials]


def front_axes(study: Study, done: Sequence[Trial]) -> list[FrontAxis]:
    """Return the axis of each metric for some finished trials."""
    axes = []
    for name, goal in zip(study.goals.names, study.goals.each, strict=True):
        values, front = (np.array([trial.values[name] for trial in trials]) for trials in (done, study.front))
        frame = Frame.of(goal, values, inside=front)
        far = {trial.number for trial, is_far in zip(done, frame.is_outside, strict=True) if is_far}
        axes.append(FrontAxis(name, frame, far))
    return axes


def _symbol(across: FrontAxis, up: FrontAxis, trial: Trial) -> str:
    """Return the mark of a trial that is outside one of two frames; empty if it is within both."""
    if trial.number in up.outside:
        return up.frame.symbol
    return across.frame.symbol_across if trial.number in across.outside else ""


def hypervolumes(study: Study) -> ReportFigure | None:
    """The hypervolume after each trial, above one reference; None with one metric, or no feasible trial."""
    if study.goals.k == 1 or not study.front:
        return None
    go = plotly()
    reference = study.reference()
    done = [trial for trial in study.trials if trial.state is State.FINISHED]
    at = study.goals.maximised(reference)
    known: list[Array] = []
    volumes: list[float] = []
    for trial in done:
        y = study.goals.maximised(trial.values)
        is_news = bool(trial.feasible) and not any((other >= y).all() for other in known)
        if is_news:
            known = [*(other for other in known if not (y >= other).all()), y]
        volumes.append(hypervolume(np.array(known), at) if is_news or not volumes else volumes[-1])
    fig = figure(height=320)
    fig.add_trace(
        go.Scatter(
            x=[trial.number for trial in done],
            y=volumes,
            mode="lines",
            line={"color": ORANGE, "width": 2.5, "shape": "hv"},
            hovertemplate="trial %{x}: %{y:.6g}<extra></extra>",
            showlegend=False,
        )
    )
    fig.update_xaxes(title="trial")
    frame = Frame.of(Goal("max"), np.array(volumes))  # from 0 it would be a flat line
    fig.update_yaxes(title="hypervolume", **frame.layout)
    point = ", ".join(f"{name} {value:.4g}" for name, value in reference.items())
    caption = (
        f"Hypervolume of the Pareto front, above the worst values of the feasible trials as reference point ({point})."
    )
    return ReportFigure("hypervolume", "Hypervolume", caption, fig)


def margins(study: Study) -> ReportFigure | None:
    """Each constrained number over the trials, and its bound; None if nothing is constrained."""
    done = [trial for trial in study.trials if trial.state is State.FINISHED]
    if not study.goals.constraints or not done:
        return None
    go = plotly()
    count = len(study.goals.constraints)
    columns = min(2, count)
    rows = math.ceil(count / columns)
    fig = grid_of(rows, columns, height=60 + 260 * rows, horizontal_spacing=0.09, vertical_spacing=min(0.3, 0.3 / rows))
    for i, constraint in enumerate(study.goals.constraints):
        where = {"row": i // columns + 1, "col": i % columns + 1}
        for name, is_kept, colour, symbol in (("kept", True, BLUE, "circle"), ("broken", False, RED, "x")):
            trials = [trial for trial in done if (constraint.name not in trial.violations) is is_kept]
            fig.add_trace(
                go.Scatter(
                    x=[trial.number for trial in trials],
                    y=[trial.values[constraint.name] for trial in trials],
                    mode="markers",
                    name=name,
                    legendgroup=name,
                    showlegend=i == 0,
                    marker={"color": colour, "symbol": symbol, "size": mark_size(len(done)), "opacity": 0.75},
                    text=[_hover_text(study, trial) for trial in trials],
                    hoverinfo="text",
                ),
                **where,
            )
        fig.add_hline(y=constraint.bound, line={"color": ORANGE, "width": 1.6, "dash": "dash"}, **where)
        fig.update_xaxes(title="trial", **where)
        fig.update_yaxes(title=escaped(constraint.name), **where)
    wanted = ", ".join(map(str, study.goals.constraints))
    caption = f"What trials returned for each constrained number; the dashed line is the bound ({wanted})."
    return ReportFigure("margins", "Constraints", caption, fig)


def success(study: Study, emulator: Emulator, order: list[int]) -> ReportFigure | None:
    """Draw the probability of success over the two most important parameters; None if no trial has failed."""
    failed = [trial for trial in study.trials if trial.state in FAILURES]
    if not failed or study.space.d < 2:
        return None
    axes = [axes_of(study)[i] for i in order]
    pairs = pairs_of(study, axes)
    if not pairs:
        return None
    a, b = pairs[0]
    through = centre(study, a, b) or leader(study)
    assert through is not None
    (u, x), (v, y) = a.grid(MAP), b.grid(MAP)
    X = emulator.around(through.number, {a.index: np.tile(u, len(v)), b.index: np.repeat(v, len(u))})
    try:
        likely = 100.0 * success_at(study.history, X).reshape(len(v), len(u))
    except NumericalError:
        return None
    go = plotly()
    fig = figure(height=430)
    colours = {"colorscale": SCALE, "zmin": 0.0, "zmax": 100.0, "hovertemplate": "%{z:.0f}%<extra></extra>"}
    bar = {"title": {"text": "succeeds, %", "side": "right"}, "thickness": 14}
    fig.add_trace(go.Heatmap(x=x, y=y, z=likely, colorbar=bar, **colours))
    done = [trial for trial in study.trials if trial.state is State.FINISHED]
    for name, trials, colour, symbol in (("finished", done, LIGHT, "circle"), ("failed", failed, RED, "x")):
        trials = subsample(study, trials, MARKS)
        at = places_of(study, trials)
        fig.add_trace(
            go.Scatter(
                x=at[:, a.index],
                y=at[:, b.index],
                mode="markers",
                name=name,
                marker={"color": colour, "symbol": symbol, "size": 7, "line": {"color": "#2b3036", "width": 0.7}},
                text=[hover(study, trial) for trial in trials],
                hoverinfo="text",
            )
        )
    fig.update_xaxes(axis_layout(a))
    fig.update_yaxes(axis_layout(b))
    caption = (
        "The probability of success, by a model of the failures so far, over the two most important parameters; "
        f"all others are as in trial {through.number}, and marks are all trials, whatever their other values."
        f"{subsample_note(done, MARKS)}"
    )
    return ReportFigure("success", "Probability of success", caption, fig)


def front_line(study: Study, a: str, b: str) -> tuple[list[float], list[float]]:
    """Return the corners of the line that bounds what a front of two metrics dominates."""
    xs: list[float] = []
    ys: list[float] = []
    for trial in study.front:  # the best of the first metric first: the second improves along it
        if xs:
            xs.append(trial.values[a])
            ys.append(ys[-1])
        xs.append(trial.values[a])
        ys.append(trial.values[b])
    return xs, ys


def _axis(study: Study, name: str) -> str:
    goal = study.goals.each[study.goals.names.index(name)]
    return f"{escaped(name)} ({'larger' if goal.larger_is_better else 'smaller'} is better)"


def _hover_text(study: Study, trial: Trial) -> str:
    values = ", ".join(f"{escaped(name)} {value:.6g}" for name, value in trial.values.items())
    broken = f"<br>{escaped(study.broken(trial))}" if trial.violations else ""
    return f"{hover(study, trial)}<br>{values}{broken}"
