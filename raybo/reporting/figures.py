"""All figures that apply to a study, in the order in which a report shows them."""

from __future__ import annotations

from raybo.reporting.curve_figures import curves
from raybo.reporting.emulator import Emulator
from raybo.reporting.goal_figures import front, hypervolumes, margins, success
from raybo.reporting.importance import importance
from raybo.reporting.model_figures import contours, slices
from raybo.reporting.parameter_figures import importance_bars, parallel
from raybo.reporting.prior_figures import prior_profiles, prior_weights
from raybo.reporting.report_figure import ReportFigure
from raybo.reporting.run_figures import best_by_cost, best_so_far, suggestions, timeline
from raybo.reporting.story_figures import stories
from raybo.study.study import Study


def report_figures(study: Study) -> list[ReportFigure]:
    """Return the figures of a study, each only if it applies.

    Raises:
        MissingExtra: plotly is not installed.
    """
    made: list[ReportFigure | None] = [
        front(study),
        hypervolumes(study),
        best_so_far(study),
        best_by_cost(study),
        curves(study),
        margins(study),
        prior_profiles(study),
        prior_weights(study),
    ]
    made += stories(study)
    emulator = Emulator.of(study)
    order = list(range(study.space.d))
    if emulator is not None:
        found = importance(emulator)
        order = found.order
        made += [
            importance_bars(study, emulator, found),
            slices(study, emulator, order),
            contours(study, emulator, order),
            success(study, emulator, order),
        ]
    made += [parallel(study, order), timeline(study), suggestions(study)]
    return [panel for panel in made if panel is not None]
