"""A study as a file of text, CSV or JSON, that is replaced whenever the study has grown."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from raybo.common.files import write_file
from raybo.integrations.stream import Exporter
from raybo.integrations.study_json import plain, study_as_json
from raybo.journal import require_no_journal
from raybo.study.columns import as_cell, columns_of, columns_of_reports
from raybo.study.study import Study


def csv_exporter(destination: str, *, raw: bool = False) -> Exporter:
    """Return an exporter to a file with a row per trial, with the columns of `columns_of`.

    With one metric and no context, they include what a model expects of each finished trial. Texts are as `as_cell`
    makes them, unless they are wanted raw.
    """

    def text(study: Study) -> str:
        return _csv(columns_of(study.trials, study.space, study.context, study.expectations), raw)

    return _replacing(destination, text)


def reports_exporter(destination: str, *, raw: bool = False) -> Exporter:
    """Return an exporter to a file with a row per step that a trial has reported, as `csv_exporter`."""
    return _replacing(destination, lambda study: _csv(columns_of_reports(study.events), raw))


def json_exporter(destination: str) -> Exporter:
    """Return an exporter to a file with the study's description and everything about each trial."""
    return _replacing(destination, lambda study: json.dumps(plain(study_as_json(study)), indent=1) + "\n")


def _replacing(destination: str, text: Callable[[Study], str]) -> Exporter:
    def export(study: Study) -> None:
        content = text(study)
        require_no_journal(destination)  # one may have been written since the exporter was made
        write_file(destination, content)

    return export


def _csv(columns: Mapping[str, Sequence[Any]], raw: bool) -> str:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    quoting = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL)
    for row in (list(columns), *zip(*columns.values(), strict=True)):
        cells = [value if raw else as_cell(value) for value in row]
        # readers take a carriage return for the end of a line; the writer does not
        (quoting if any("\r" in str(cell) for cell in cells) else writer).writerow(cells)
    return text.getvalue()
