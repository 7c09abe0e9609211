"""The figure of what trials have reported: every curve, pale if its trial was pruned, and the scheduler's rungs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from raybo.record.states import State
from raybo.record.trial import Trial, saved_share
from raybo.reporting.frame import Frame
from raybo.reporting.report_figure import ReportFigure
from raybo.reporting.theme import BLUE, GREY, LIGHT, ORANGE, STATE_COLOURS, escaped, figure, plotly
from raybo.space import Array
from raybo.study.study import Study

DRAWN = 200_000  # points of all curves, above which steps between are left out


def curves(study: Study) -> ReportFigure | None:
    """Draw every learning curve; None if no trial has reported anything."""
    reporting = [trial for trial in study.trials if trial.step]
    if not reporting:
        return None
    go = plotly()
    stride = 1 + sum(len(trial.reports) for trial in reporting) // DRAWN
    best = {trial.number for trial in study.front}
    if study.goals.k == 1 and study.incumbent is not None:
        best = {study.best.number}  # of equal ones, and over contexts, the one that is named everywhere
    fig = figure(height=420)
    for name, chosen, line in (
        ("pruned", [t for t in reporting if t.state is State.PRUNED], {"color": LIGHT, "width": 1.0}),
        (
            "finished",
            [t for t in reporting if t.state is State.FINISHED and t.number not in best],
            {"color": BLUE, "width": 1.2},
        ),
        (
            "failed or stopped",
            [t for t in reporting if t.state not in _SHOWN],
            {"color": GREY, "width": 1.0, "dash": "dot"},
        ),
        (
            "running or paused",
            [t for t in reporting if t.state in _RUN],
            {"color": STATE_COLOURS[State.PENDING], "width": 1.5},
        ),
        (
            "best" if study.goals.k == 1 else "front",
            [t for t in reporting if t.number in best],
            {"color": ORANGE, "width": 3.0},
        ),
    ):
        if chosen:
            x, y, text = _joined(chosen, stride)
            lone = all(len(trial.reports) == 1 for trial in chosen)  # a line of one point is not seen
            fig.add_trace(
                go.Scatter(
                    x=x, y=y, text=text, name=name, line=line, mode="markers" if lone else "lines", hoverinfo="text+x+y"
                )
            )
    for rung in rungs(study):
        fig.add_vline(x=rung, line={"color": GREY, "width": 1, "dash": "dash"})
    frame = Frame.of(study.goal, _values(reporting))
    fidelities = study.description.fidelity
    fig.update_xaxes(title="step" if fidelities is None else escaped(", ".join(fidelities)))
    fig.update_yaxes(title=escaped(study.description.metric), **frame.layout)
    pruned = study.count(State.PRUNED)
    saved = saved_share(study.trials, study.steps)
    caption = "Each line is a trial, as it reported."
    if pruned:
        rules = {trial.details.get("rule") for trial in study.trials if trial.state is State.PRUNED}
        by = f" by {study.description.scheduler}" if rules == {study.description.scheduler} else ""
        share = f", which saved {100 * saved:.0f}% of the steps of the trials that ended" if saved else ""
        caption += f" The {pruned} pale ones were pruned{by}{share}."
    caption += " Dashed lines are rungs, at which trials are compared." if rungs(study) else ""
    judged = study.description.judged
    caption += f" The scheduler judges {judged}." if judged not in (None, study.description.metric) else ""
    if fidelities is not None:
        caption = f"Each point is a trial at fewer {', '.join(fidelities)} than a whole run has."
    caption += frame.note
    return ReportFigure("curves", "Learning curves" if fidelities is None else "Cheap versions", caption, fig)


def rungs(study: Study) -> list[int]:
    """The steps at which the scheduler compared trials rung by rung, as the journal tells them."""
    rungs = (event.data.get("numbers", {}).get("rung") for event in study.events)
    return sorted({rung for rung in rungs if isinstance(rung, int)})


def _joined(trials: Sequence[Trial], stride: int) -> tuple[list[int | None], list[float | None], list[str]]:
    """Many curves as one line with gaps, which a browser draws quickly."""
    x: list[int | None] = []
    y: list[float | None] = []
    text: list[str] = []
    for trial in trials:
        reports = trial.reports
        chosen = reports[::-1][::stride][::-1]  # the last one among them
        x += [*(step for step, _ in chosen), None]
        y += [*(value for _, value in chosen), None]
        text += [f"trial {trial.number}"] * (len(chosen) + 1)
    return x, y, text


def _values(trials: Sequence[Trial]) -> Array:
    return np.array([value for trial in trials for _, value in trial.reports], dtype=np.float64)


_RUN = (State.PENDING, State.PAUSED)
_SHOWN = (State.PRUNED, State.FINISHED, *_RUN)
