"""A terminal that shows whatever is printed but obeys raybo alone, as names, choices and reasons may hold anything."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from raybo.common.terminal import visible


class SafeConsole(Console):
    """A console whose texts cannot command the terminal; colours and live displays are rich's own."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render as `Console.render`, with commands in texts made visible. All that is printed passes here."""
        for segment in super().render(renderable, options):
            text = segment.text if segment.control else visible(segment.text)
            yield segment if text == segment.text else Segment(text, segment.style)
