"""Figures of a study's priors: where earlier studies expect the best, and how much each of them counts."""

from __future__ import annotations

import math

import numpy as np

from raybo.methods.parts.earlier_studies import COMPARED, by_agreement, expectations
from raybo.record.origin import Origin
from raybo.record.states import State
from raybo.reporting.axes import axes_of, places_of
from raybo.reporting.report_figure import ReportFigure
from raybo.reporting.theme import BLUE, LIGHT, ORANGE, QUALITATIVE, axis_layout, escaped, figure, grid_of, plotly
from raybo.space import Array
from raybo.study.study import Study

PROFILES = 8  # parameters at most, those along which the expectation changes most
OVER = 128  # points of the cube that a profile is the mean of
PLACES = 33  # of an axis
STUDIES = len(QUALITATIVE)  # that have a line, those that count most in the end
MOMENTS = 25  # at which weights are computed


def prior_profiles(study: Study) -> ReportFigure | None:
    """Draw what the earlier studies expect along each parameter, averaged over the others; None without priors."""
    if not study.history.priors:
        return None
    go, models = plotly(), expectations(study.history)
    known = sorted({axis for prior in study.history.priors for axis in prior.axes})
    cube = study.space.cube.uniform(np.random.default_rng(0), OVER)
    profiles: list[tuple[int, Array, Array]] = []
    for axis in (one for one in axes_of(study) if one.index in known):
        u, places = axis.grid(PLACES)
        X = np.repeat(cube[None, :, :], len(u), axis=0)
        X[:, :, axis.index] = u[:, None]
        flat = X.reshape(-1, study.space.d)
        # a study that does not know the parameter expects the same of every value
        each = [model.mean(flat).reshape(len(u), OVER).mean(axis=1) for model in models if axis.index in model.axes]
        profiles.append((axis.index, places, np.mean(each, axis=0)))
    profiles.sort(key=lambda profile: -float(np.ptp(profile[2])))
    shown = profiles[:PROFILES]
    columns = min(4, len(shown))
    rows = math.ceil(len(shown) / columns)
    fig = grid_of(rows, columns, height=60 + 230 * rows, horizontal_spacing=0.07, vertical_spacing=0.25 / rows)
    first = [trial for trial in study.trials if trial.origin is Origin.PRIOR]
    at = places_of(study, first)
    for k, (index, places, scores) in enumerate(shown):
        axis, where = axes_of(study)[index], {"row": k // columns + 1, "col": k % columns + 1}
        mode = "markers" if axis.is_categorical else "lines"
        marks = {"color": BLUE, "size": 9}
        fig.add_trace(
            go.Scatter(x=places, y=scores, mode=mode, line={"color": BLUE, "width": 2}, marker=marks, showlegend=False),
            **where,
        )
        for place in at[:, index].tolist():
            if math.isfinite(place):
                line = {"color": ORANGE, "dash": "dot", "width": 1.4}
                fig.add_vline(x=place, line=line, **where)
        fig.update_xaxes(**axis_layout(axis), **where)
    fig.update_yaxes(title="expected score", col=1)
    left = (
        f" The {len(profiles) - len(shown)} along which least changes are left out." if len(profiles) > PROFILES else ""
    )
    caption = (
        "What the earlier studies expect of a value, averaged over all other parameters: 0 is the mean over the "
        f"space and 1 its standard deviation. Dotted lines are the first trials that followed from it.{left}"
    )
    return ReportFigure("prior-profiles", "Where earlier studies expect the best", caption, fig)


def prior_weights(study: Study) -> ReportFigure | None:
    """The weight of each earlier study after each result; None without priors, or before the second result."""
    history = study.history
    done = [number for number, record in enumerate(history.records) if record.state is State.FINISHED][:COMPARED]
    if not history.priors or len(done) < 2:
        return None
    go = plotly()
    X, y = history.X[: len(done)], history.y[: len(done)]
    expected = np.array([model.mean(X) for model in expectations(history)])
    moments = np.unique(np.linspace(1, len(done), min(len(done), MOMENTS)).astype(int))
    say = np.array([by_agreement(expected[:, :n], y[:n]) for n in moments])
    fig = figure(height=340)
    order = np.argsort(-say[-1], kind="stable")[:STUDIES]
    for i in order.tolist():
        name = escaped(history.priors[i].study)
        x = [done[n - 1] for n in moments]
        fig.add_trace(go.Scatter(x=x, y=say[:, i], mode="lines", name=name, line={"width": 2, "shape": "hv"}))
    even = 1.0 / len(history.priors)
    fig.add_hline(y=even, line={"color": LIGHT, "dash": "dash", "width": 1.2})
    fig.update_xaxes(title="trial")
    fig.update_yaxes(title="weight", range=[-0.02, 1.04])
    left = f" Of {len(history.priors)} studies those that count most now are drawn." if len(order) < len(say[0]) else ""
    caption = (
        "How well the expectations of each earlier study have agreed with the results up to a trial, as a share of all "
        f"of them; the dashed line is an equal share. A weight of 0 says that a study misleads.{left}"
    )
    return ReportFigure("prior-weights", "Weights of the earlier studies", caption, fig)
