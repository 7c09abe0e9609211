"""A study in a notebook: its best trials as a table, and its figures one by one: `raybo.plots(study).slices()`."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from raybo.common.errors import TrialError
from raybo.reporting import curve_figures, model_figures, parameter_figures, run_figures
from raybo.reporting.emulator import LEAST_TRIALS, Emulator
from raybo.reporting.importance import Importance, importance
from raybo.reporting.report_figure import ReportFigure
from raybo.reporting.story_figures import stories
from raybo.reporting.summary import summary
from raybo.reporting.theme import TOOLBAR
from raybo.study.study import Study, require_study

if TYPE_CHECKING:
    import plotly.graph_objects as go


def plots(study: Study) -> Plots:
    """A study in a notebook: a table of its best trials, and each figure on request.

    Raises:
        TrialError: the argument is not a study.
    Example:
        >>> figure = raybo.plots(raybo.load("job.db")).best_so_far()
        >>> type(figure).__name__
        'Figure'
    """
    require_study(study, "plots")
    return Plots(study)


class Plots:
    """The figures of a study, by plotly; the surrogate is fitted once. A notebook shows the object itself as a table.

    Every method returns a `plotly.graph_objects.Figure` (`stories` a dict of them), and raises TrialError if the figure
    does not apply to the study, or MissingExtra if plotly is not installed.
    """

    def __init__(self, study: Study) -> None:
        self._study = study

    def _repr_html_(self) -> str:
        """A line about the study, and its best trials."""
        return summary(self._study)

    def best_so_far(self) -> go.Figure:
        """Every value, the best of them so far, and where trials failed."""
        return _figure(run_figures.best_so_far(self._study), "the study has no trials")

    def best_by_cost(self) -> go.Figure:
        """The best value over what trials have cost, of a study with a budget, or whose job says what trials cost."""
        return _figure(run_figures.best_by_cost(self._study), "the study has no budget, and no costs, or no result")

    def curves(self) -> go.Figure:
        """Draw the learning curve of each trial; pruned trials are pale."""
        return _figure(curve_figures.curves(self._study), "no trial has reported a step")

    def importance(self) -> go.Figure:
        """Main and total effects of each parameter, with their uncertainty."""
        made = parameter_figures.importance_bars(self._study, self._emulator, self._importance)
        return _figure(made, "the study has one parameter only")

    def slices(self) -> go.Figure:
        """The surrogate along each parameter through the recommended trial."""
        return _figure(model_figures.slices(self._study, self._emulator, self._importance.order), "")

    def contours(self) -> go.Figure:
        """Maps of the surrogate over pairs of the parameters that matter most."""
        made = model_figures.contours(self._study, self._emulator, self._importance.order)
        return _figure(made, "there is one parameter only, or no two of them in one trial")

    def parallel(self) -> go.Figure:
        """Every finished trial as a line over all parameters."""
        made = parameter_figures.parallel(self._study, list(range(self._study.space.d)))
        return _figure(made, "no trial has finished, or there is one parameter only")

    def timeline(self) -> go.Figure:
        """Draw what each worker ran, and when."""
        return _figure(run_figures.timeline(self._study), "no times are known")

    def suggestions(self) -> go.Figure:
        """The time of each suggestion next to that of each trial."""
        return _figure(run_figures.suggestions(self._study), "the method proposed nothing")

    def stories(self) -> dict[str, go.Figure]:
        """The method's own figures (arms, bounds, contexts, paths), by name; empty for most methods."""
        return {panel.key: _figure(panel, "") for panel in stories(self._study) if panel is not None}

    @cached_property
    def _emulator(self) -> Emulator:
        made = Emulator.of(self._study)
        if made is None:
            raise TrialError(f"a model of the objective needs {LEAST_TRIALS} finished trials with different values")
        return made

    @cached_property
    def _importance(self) -> Importance:
        return importance(self._emulator)


def _figure(panel: ReportFigure | None, otherwise: str) -> go.Figure:
    if panel is None:
        raise TrialError(f"there is nothing to draw: {otherwise}")
    fig = panel.figure  # with room for plotly's buttons, which a page puts above the figure
    return fig.update_layout(height=fig.layout.height + TOOLBAR, margin_t=fig.layout.margin.t + TOOLBAR)
