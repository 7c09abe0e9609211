"""What a study looks like: the live display, tables for a terminal, figures, and the report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from raybo.errors import RayboError

if TYPE_CHECKING:
    from raybo.study import Study

PICTURES = (".png", ".svg", ".pdf")

__all__ = ["draw"]


def draw(study: Study, path: Path | str) -> None:
    """Draw a study in the form that the file's name ends in: .html is a page of figures, .png, .svg or .pdf a picture.

    Raises:
        MissingExtra: what draws it is not installed.
        RayboError: the name ends otherwise, or the file cannot be written.
    """
    path = Path(path)
    if path.suffix.lower() in (".html", ".htm"):
        from raybo.report.page import write_report

        write_report(study, path)
    elif path.suffix.lower() in PICTURES:
        from raybo.report.image import write_image

        write_image(study, path)
    else:
        raise RayboError(f"{path}: its name must end in .html for a page, or {', '.join(PICTURES)} for a picture")
