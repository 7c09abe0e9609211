"""Figures of a method's own story, from the tags that it left with the trials."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from raybo.events import Trial
from raybo.methods.shared.exp3 import probabilities
from raybo.report.axes import axes_of
from raybo.report.context_figures import density, expected_and_lucky
from raybo.report.panel import Panel
from raybo.report.theme import (
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
from raybo.space import Array
from raybo.study import Study


def stories(study: Study) -> list[Panel | None]:
    """The figures that the method of this study has to tell; None for those that it has not."""
    return [
        bandit(study),
        lengthscales(study),
        density(study),
        expected_and_lucky(study),
        local_path(study),
        region(study),
        inexactness(study),
    ]


def bandit(study: Study) -> Panel | None:
    """How likely each arm of an EXP3 bandit was, and which one was drawn; None where there was no bandit."""
    drawn = [trial for trial in study.trials if "log_weights" in trial.tags and "gamma" in trial.tags]
    if not drawn:
        return None
    go = plotly()
    fig = figure(height=330)
    p = [probabilities(np.array(trial.tags["log_weights"]), trial.tags["gamma"])[0] for trial in drawn]
    fig.add_trace(
        go.Scatter(
            x=[trial.number for trial in drawn],
            y=p,
            mode="lines",
            name="probability of a random point",
            line={"color": ORANGE, "width": 2, "shape": "hv"},
            hovertemplate="trial %{x}: %{y:.3f}<extra></extra>",
        )
    )
    for arm, name, at, symbol in (
        (1, "arm 1: a random point", 1.06, "circle"),
        (2, "arm 2: the acquisition", -0.06, "square"),
    ):
        chosen = [trial for trial in drawn if trial.tags.get("arm") == arm]
        if chosen:
            fig.add_trace(
                go.Scatter(
                    x=[trial.number for trial in chosen],
                    y=[at] * len(chosen),
                    mode="markers",
                    name=name,
                    marker={"color": BLUE if arm == 2 else GREY, "symbol": symbol, "size": mark_size(len(drawn))},
                    hovertemplate="trial %{x}<extra></extra>",
                )
            )
    fig.update_xaxes(title="trial")
    fig.update_yaxes(title="probability", range=[-0.13, 1.13], tickvals=[0, 0.25, 0.5, 0.75, 1])
    random = sum(trial.tags.get("arm") == 1 for trial in drawn)
    caption = (
        "The line is how likely EXP3 was to draw a random point, which falls as the acquisition earns more and rises "
        "as random points do; marks say "
        f"which arm was drawn ({random} of {len(drawn)} times the random point)."
    )
    return Panel("bandit", "Which way to choose", caption, fig)


def lengthscales(study: Study) -> Panel | None:
    """Length-scales and their upper bounds over time, where the method moves them; None elsewhere."""
    told = [
        trial
        for trial in study.trials
        if _is_point(trial.tags.get("lengthscale", trial.tags.get("upper")), study.space.d)
    ]
    if not told:
        return None
    go = plotly()
    fig = figure(height=380)
    numbers = [trial.number for trial in told]
    names = study.space.names
    has_bounds = all("upper" in trial.tags for trial in told)
    for i in range(min(study.space.d, len(QUALITATIVE))):
        colour = QUALITATIVE[i]
        used = [(t.tags["lengthscale"][i] if "lengthscale" in t.tags else math.exp(t.tags["theta"][i])) for t in told]
        fig.add_trace(
            go.Scatter(
                x=numbers,
                y=used,
                mode="lines",
                name=escaped(names[i]),
                line={"color": colour, "width": 1.8},
                hovertemplate="trial %{x}: %{y:.3g}<extra>" + escaped(names[i]) + "</extra>",
            )
        )
        if has_bounds:
            fig.add_trace(
                go.Scatter(
                    x=numbers,
                    y=[trial.tags["upper"][i] for trial in told],
                    mode="lines",
                    showlegend=False,
                    line={"color": colour, "width": 1.4, "dash": "dash", "shape": "hv"},
                    hovertemplate="trial %{x}: at most %{y:.3g}<extra>" + escaped(names[i]) + "</extra>",
                )
            )
    fig.update_xaxes(title="trial")
    fig.update_yaxes(title="length-scale, in sides of the cube", type="log", dtick=1, exponentformat="power")
    bounds = ", dashed lines the upper bounds that are cut when the model was too sure" if has_bounds else ""
    more = "" if study.space.d <= len(QUALITATIVE) else f" The first {len(QUALITATIVE)} parameters are shown."
    caption = (
        f"Solid lines are the length-scales that the model used{bounds}; shorter ones make the search look at more "
        f"places.{more}"
    )
    return Panel("lengthscales", "Length-scales over time", caption, fig)


def local_path(study: Study) -> Panel | None:
    """Where the centre of a local search went; None where there was no such centre."""
    found = _centres(study)
    if len(found) < 2:
        return None
    go = plotly()
    numbers = [trial.number for trial, _ in found]
    centres = np.array([centre for _, centre in found])
    moved = np.linalg.norm(np.diff(centres, axis=0), axis=1)
    widest = np.argsort(-np.ptp(centres, axis=0), kind="stable")[:2]
    fig = grid_of(1, 2, height=430, horizontal_spacing=0.12, column_widths=[0.58, 0.42])
    axes = [axes_of(study)[int(i)] for i in widest]
    decoded = [axis.places(axis.parameter.decode(centres[:, axis.index])) for axis in axes]
    is_line = len(axes) == 1
    x, y = (np.array(numbers, dtype=np.float64), decoded[0]) if is_line else (decoded[0], decoded[1])
    fig.add_trace(
        go.Scatter(
            x=x,
            y=y,
            mode="lines+markers",
            name="centre",
            line={"color": GREY, "width": 1.2},
            marker={
                "size": 9,
                "color": list(range(len(centres))),
                "colorscale": SCALE,
                "line": {"color": GREY, "width": 0.8},
            },
            text=[f"centre {k + 1}, trial {number}" for k, number in enumerate(numbers)],
            hoverinfo="text",
        ),
        row=1,
        col=1,
    )
    for name, at, symbol in (("first", 0, "circle-open"), ("last", -1, "star")):
        fig.add_trace(
            go.Scatter(
                x=[x[at]],
                y=[y[at]],
                mode="markers",
                name=name,
                marker={"size": 15, "symbol": symbol, "color": ORANGE, "line": {"color": ORANGE, "width": 2}},
                hoverinfo="skip",
            ),
            row=1,
            col=1,
        )
    fig.add_trace(
        go.Scatter(
            x=numbers[1:],
            y=moved,
            mode="lines+markers",
            name="step",
            showlegend=False,
            line={"color": BLUE, "width": 1.2},
            marker={"size": mark_size(len(moved))},
            hovertemplate="trial %{x}: %{y:.3g}<extra></extra>",
        ),
        row=1,
        col=2,
    )
    fig.update_xaxes({"title": {"text": "trial"}} if is_line else axis_layout(axes[0]), row=1, col=1)
    fig.update_yaxes(axis_layout(axes[-1]), row=1, col=1)
    fig.update_xaxes(title="trial", row=1, col=2)
    fig.update_yaxes(title="step, in sides of the unit cube", rangemode="tozero", row=1, col=2)
    of = "" if study.space.d <= 2 else ", over the two parameters along which it went farthest"
    caption = (
        f"Left, the path of the local search's centre from light to dark{of}; right, how far each move went: steps "
        "that shrink mean that the search has settled."
    )
    return Panel("local-path", "The path of the local search", caption, fig)


def region(study: Study) -> Panel | None:
    """The side of a trust region over time; None where there was none."""
    told = [
        (trial.number, trial.tags["region"]) for trial in study.trials if isinstance(trial.tags.get("region"), dict)
    ]
    if not told:
        return None
    go = plotly()
    fig = figure(height=320)
    for run in sorted({tag["run"] for _, tag in told}):
        own = [(number, tag["length"]) for number, tag in told if tag["run"] == run]
        fig.add_trace(
            go.Scatter(
                x=[number for number, _ in own],
                y=[length for _, length in own],
                mode="lines",
                line={"shape": "hv", "width": 2},
                name=f"run {run}",
                hovertemplate="trial %{x}: %{y:.3g}<extra></extra>",
            )
        )
    fig.update_xaxes(title="trial")
    halves = {2.0**k: f"1/{2**-k}" if k < 0 else str(2**k) for k in range(-8, 2)}
    fig.update_yaxes(title="side of the region", type="log", tickvals=list(halves), ticktext=list(halves.values()))
    caption = (
        "The side of the trust region, in sides of the unit cube: it doubles after successes and halves after "
        "failures, and a new run begins where it has become too small."
    )
    return Panel("region", "The trust region", caption, fig)


def inexactness(study: Study) -> Panel | None:
    """How far the inner solver stayed below the acquisition's maximum; None where that was not measured."""
    told = [(trial.number, trial.tags["inexactness"]) for trial in study.trials if "inexactness" in trial.tags]
    if not told:
        return None
    go = plotly()
    fig = grid_of(1, 2, height=340, horizontal_spacing=0.12)
    numbers = [number for number, _ in told]
    for column, name, title in ((1, "eta", "accuracy (1 is exact)"), (2, "gap", "gap to the maximum, in sd")):
        fig.add_trace(
            go.Scatter(
                x=numbers,
                y=[tag.get(name) for _, tag in told],
                mode="lines+markers",
                line={"color": LIGHT, "width": 1.2},
                marker={"color": BLUE, "size": mark_size(len(told))},
                showlegend=False,
                hovertemplate="trial %{x}: %{y:.4g}<extra></extra>",
            ),
            row=1,
            col=column,
        )
        fig.update_xaxes(title="trial", row=1, col=column)
        fig.update_yaxes(title=title, row=1, col=column)
    fig.update_yaxes(range=[-0.03, 1.05], row=1, col=1)
    fig.update_yaxes(rangemode="tozero", row=1, col=2)
    etas = [tag["eta"] for _, tag in told if tag.get("eta") is not None]
    mean = f" It was {np.mean(etas):.3f} on average." if etas else ""
    caption = (
        "How exactly the acquisition was maximised, against a much more thorough search: its value relative to the "
        f"highest one after the shift that makes it non-negative (left), and the difference (right).{mean}"
    )
    return Panel("inexactness", "Inexactness of the inner solver", caption, fig)


def _centres(study: Study) -> list[tuple[Trial, Array]]:
    """The trials that moved the centre, with where it went."""
    found: list[tuple[Trial, Array]] = []
    for trial in study.trials:
        centre = trial.tags.get("centre")
        if not _is_point(centre, study.space.d):
            continue
        point = np.array(centre, dtype=np.float64)
        if not found or not np.array_equal(found[-1][1], point):
            found.append((trial, point))
    return found


def _is_point(value: object, d: int) -> bool:
    return (
        isinstance(value, Sequence)
        and len(value) == d
        and all(isinstance(v, (int, float)) and math.isfinite(v) for v in value)
    )
