"""Figures of the contexts that trials observed: their estimated law, and how luck with them affected the values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from raybo.common.errors import NumericalError
from raybo.context import Density, expected, fit_joint
from raybo.record.states import State
from raybo.record.trial import Trial
from raybo.reporting.axes import Axis
from raybo.reporting.report_figure import ReportFigure
from raybo.reporting.run_figures import hover
from raybo.reporting.theme import BLUE, ORANGE, PALE, RED, axis_layout, escaped, figure, grid_of, mark_size, plotly
from raybo.space import Array
from raybo.study.study import Study

CURVE = 201
SEED = 0
ATOMS = 256


def density(study: Study) -> ReportFigure | None:
    """Draw the estimated density of each context with its observations; None if no context is declared or known."""
    history = study.history
    if study.context is None or len(history.contexts) == 0:
        return None
    assert history.context_cube is not None
    law = Density.of(history.contexts, history.context_cube)
    parameters = study.context.parameters.values()
    axes = [Axis(i, name, p, name) for i, (name, p) in enumerate(zip(study.context.names, parameters, strict=True))]
    columns = min(3, len(axes))
    rows = -(-len(axes) // columns)
    fig = grid_of(rows, columns, height=60 + 270 * rows, horizontal_spacing=0.07, vertical_spacing=0.28 / rows)
    for k, axis in enumerate(axes):
        where = {"row": k // columns + 1, "col": k % columns + 1}
        met = history.contexts[:, axis.index]
        if axis.is_categorical:
            _draw_shares(fig, axis, law, met, where)
        else:
            _draw_density(fig, axis, law, met, where, legend=k == 0)
        fig.update_xaxes(axis_layout(axis), title_standoff=6, **where)
    caption = (
        f"The distribution of the context, estimated from the {len(history.contexts)} that were met (the strokes below "
        "the curve); densities are per declared range."
    )
    return ReportFigure("contexts", "The contexts", caption, fig)


def _draw_shares(fig: Any, axis: Axis, law: Density, met: Array, where: dict[str, int]) -> None:
    u, at = axis.grid(CURVE)
    shares = [float(law.weights[np.isclose(met, level)].sum()) for level in u]
    fig.add_trace(plotly().Bar(x=at, y=shares, marker={"color": BLUE}, showlegend=False), **where)
    fig.update_yaxes(title="share of those met" if where["col"] == 1 else "", rangemode="tozero", **where)


def _draw_density(fig: Any, axis: Axis, law: Density, met: Array, where: dict[str, int], legend: bool) -> None:
    go = plotly()
    u, at = axis.grid(CURVE)
    curve = marginal(law, axis.index, u)
    fig.add_trace(
        go.Scatter(
            x=at,
            y=curve,
            mode="lines",
            fill="tozeroy",
            fillcolor=PALE,
            line={"color": BLUE, "width": 2},
            name="estimated density",
            showlegend=legend,
            hovertemplate="%{x:.4g}: %{y:.3g}<extra></extra>",
        ),
        **where,
    )
    fig.add_trace(
        go.Scatter(
            x=axis.places(axis.parameter.decode(met)),
            y=np.full(len(met), -0.05 * float(curve.max())),
            mode="markers",
            marker={"symbol": "line-ns-open", "size": 11, "color": ORANGE, "line": {"width": 1.2}},
            name="context met",
            showlegend=legend,
            hovertemplate="%{x:.4g}<extra></extra>",
        ),
        **where,
    )
    limits = [-0.1 * curve.max(), 1.1 * curve.max()]
    fig.update_yaxes(title="density" if where["col"] == 1 else "", range=limits, **where)


def marginal(law: Density, axis: int, u: Array) -> Array:  # (m,) -> (m,)
    """The estimated density of one numeric context at coordinates u, whatever the others are."""
    width = law.bandwidth[:, axis]
    distances = (u[:, None] - law.contexts[:, axis]) / width
    return np.asarray(np.exp(-0.5 * np.square(distances)) / (np.sqrt(2.0 * np.pi) * width) @ law.weights)


def expected_and_lucky(study: Study) -> ReportFigure | None:
    """Draw trials' values beside the expected values over all contexts; None without contexts."""
    history = study.history
    known = [
        trial for trial in study.trials if trial.state is State.FINISHED and history.records[trial.number].c is not None
    ]
    if study.context is None or history.context_cube is None or len(known) < 5:
        return None
    try:
        middle, low, high = _expectations(study, known)
    except NumericalError:
        return None
    go = plotly()
    values = np.array([trial.value for trial in known], dtype=np.float64)
    fig = figure(height=430)
    fig.add_trace(
        go.Scatter(
            x=values,
            y=middle,
            mode="markers",
            name="trial",
            marker={"color": BLUE, "size": mark_size(len(known)), "opacity": 0.6},
            error_y={
                "type": "data",
                "symmetric": False,
                "array": np.abs(high - middle),
                "arrayminus": np.abs(middle - low),
                "thickness": 0.7,
                "width": 0,
                "color": "rgba(47,93,155,0.35)",
            },
            text=[hover(study, trial) for trial in known],
            hoverinfo="text",
        )
    )
    ends = [float(min(values.min(), middle.min())), float(max(values.max(), middle.max()))]
    line = {"color": "#9aa1a9", "width": 1, "dash": "dot"}
    fig.add_trace(go.Scatter(x=ends, y=ends, mode="lines", line=line, name="as expected", hoverinfo="skip"))
    lucky, numbers = int(study.goal.best_first(values)[0]), [trial.number for trial in known]
    chosen = study.best.number  # estimated as here, from other atoms: near ties may come out another way
    steady = numbers.index(chosen) if chosen in numbers else int(study.goal.best_first(middle)[0])
    for name, which, symbol, colour in (
        ("best value measured", lucky, "triangle-up", RED),
        ("best expectation", steady, "star", ORANGE),
    ):
        fig.add_trace(
            go.Scatter(
                x=[values[which]],
                y=[middle[which]],
                mode="markers",
                name=f"{name}: trial {known[which].number}",
                marker={"color": colour, "symbol": symbol, "size": 15, "line": {"color": "white", "width": 1}},
                hoverinfo="skip",
            )
        )
    metric = escaped(study.description.metric)
    fig.update_xaxes(title=f"{metric} as measured, at the context met")
    fig.update_yaxes(title=f"{metric} expected over contexts")
    is_star = study.recommended.number == known[steady].number  # further runs may recommend another
    verdict = (
        "Here both are the same trial."
        if lucky == steady
        else f"The best value measured is not the best expectation{': the star is recommended' * is_star}."
    )
    caption = (
        "Each trial's value against the posterior mean of its configuration's expectation over the estimated "
        f"distribution of the context, with one posterior standard deviation. {verdict}"
    )
    return ReportFigure("expected", "Expected and measured", caption, fig)


def _expectations(study: Study, trials: Sequence[Trial]) -> tuple[Array, Array, Array]:  # (n,) each
    """Draw the posterior means over all contexts of the trials' configurations, with one standard deviation."""
    history = study.history
    assert history.context_cube is not None
    rng = np.random.default_rng(SEED)
    law = Density.of(history.contexts, history.context_cube)
    joint = fit_joint(history, law, rng)
    atoms, p = law.atoms(ATOMS, rng)
    mean, std = expected(joint.gp, np.array([history.records[trial.number].x for trial in trials]), atoms, p)
    middle, low, high = (study.goal.value_of(joint.outputs.invert(z)) for z in (mean, mean - std, mean + std))
    return middle, low, high
