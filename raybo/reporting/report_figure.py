"""One figure of a report, with its title and its caption."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import plotly.graph_objects as go


@dataclass(frozen=True, eq=False)
class ReportFigure:
    """A figure of a report.

    Attributes:
        key: names it in the page, and in tests.
        title: what it shows.
        caption: how to read it, in a sentence or two.
        figure: plotly's.
    """

    key: str
    title: str
    caption: str
    figure: go.Figure
