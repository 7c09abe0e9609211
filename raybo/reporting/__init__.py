"""The appearance of a study: tables for a terminal, figures, and the report.

On a terminal
    watch             a study that another process runs, followed through its journal
    table_layout      tables in windows of any width
    tables            the best trial, the output of `raybo show`, methods
    trials_table      the table of trials
    trial_view        everything about one trial
    notes_view        the user's notes
Figures
    run_figures       how it went: the best so far, the workers' time, the time of suggestions
    timeline          what the workers did when
    parameter_figures all parameters together: importance, parallel coordinates
    importance        which parameters matter
    model_figures     the surrogate along parameters, and over pairs of them
    emulator          the surrogate itself
    context_figures   the contexts that trials observed
    story_figures     what the method noted
    axes              how a parameter fills an axis
    frame             how a metric's values fill one
    theme             colours, fonts, frames
    report_figure     a figure with its text
Where they are put together
    figures           all that apply to a study, in order
    summary           the facts, as HTML
    page              the report: one HTML file
    packed            what it holds compressed
    image             one picture, for a paper
    plots             figures one by one, for a notebook
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from raybo.common.errors import RayboError
from raybo.common.files import STANDARD_OUTPUT
from raybo.journal import require_no_journal

if TYPE_CHECKING:
    from raybo.study.study import Study

PICTURES = (".png", ".svg", ".pdf")

__all__ = ["draw"]


def draw(study: Study, path: Path | str) -> None:
    """Draw a study in the form that the file's name ends in: .html is a page of figures, .png, .svg or .pdf a picture.

    "-" is standard output, for a page.

    Raises:
        MissingExtra: what draws it is not installed.
        RayboError: the name ends otherwise, or the file cannot be written, or is a journal.
    """
    path = Path(path)
    require_no_journal(path)  # which may be called what it likes
    if str(path) == STANDARD_OUTPUT or path.suffix.lower() in (".html", ".htm"):
        from raybo.reporting.page import write_report

        write_report(study, path)
    elif path.suffix.lower() in PICTURES:
        from raybo.reporting.image import write_image

        write_image(study, path)
    else:
        raise RayboError(f"{path}: its name must end in .html for a page, or {', '.join(PICTURES)} for a picture")
