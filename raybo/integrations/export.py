"""A study in the form that another program reads: once, or repeatedly while the study runs.

    csv           a row per trial
    reports       a CSV with a row per step that a trial has reported
    json          everything that is known about the study
    optuna        Optuna's journal file, which optuna-dashboard and its viewers open, also while it grows
    tensorboard   a directory of event files
    mlflow        runs of an MLflow tracking store, given by its URI

Each export brings its destination up to date with the study, so it may be called whenever something has happened.
"""

from __future__ import annotations

import csv
import importlib
import io
import json
import logging
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from raybo.common.arguments import a_name, truth
from raybo.common.errors import MethodError, RayboError
from raybo.common.files import STANDARD_OUTPUT, write_file
from raybo.common.messages import in_words, nearest, shown
from raybo.journal import Tail, as_path, require_no_journal
from raybo.journal.notes import read_notes
from raybo.methods.best import EXPECTED
from raybo.space import Opaque, object_to_json
from raybo.study.columns import as_cell, columns_of, columns_of_reports
from raybo.study.study import Study

if TYPE_CHECKING:
    from raybo.journal import Description
    from raybo.record.events import Trial

log = logging.getLogger("raybo")

Exporter: TypeAlias = Callable[[Study], None]

EXPORTS: dict[str, str] = {  # name: what makes an exporter for a destination; loaded when used
    "csv": "raybo.integrations.export:csv_exporter",
    "reports": "raybo.integrations.export:reports_exporter",
    "json": "raybo.integrations.export:json_exporter",
    "optuna": "raybo.integrations.optuna_journal:optuna_exporter",
    "tensorboard": "raybo.integrations.tensorboard:tensorboard_exporter",
    "mlflow": "raybo.integrations.mlflow:mlflow_exporter",
}


def exporter(to: str, destination: str, *, raw: bool = False) -> Exporter:
    """What brings a destination up to date with a study.

    Args:
        to: one of `EXPORTS`.
        destination: a file, or "-" for standard output; for "tensorboard" a directory, for "mlflow" a tracking URI.
        raw: leave a CSV's texts as they are, though a spreadsheet may take them for formulas: see `as_cell`.
    Raises:
        MethodError: there is no such format, or it has no use for `raw` or "-".
        JournalError: the destination is a journal.
        MissingExtra: the package that it needs is not installed.
    """
    if not isinstance(to, str) or to not in EXPORTS:
        raise MethodError(f"there is no export to {shown(to)}{nearest(str(to), list(EXPORTS))}")
    a_name(destination, "destination")
    if truth(raw, "raw") and to not in ("csv", "reports"):
        raise MethodError(f"raw applies to csv and reports only, not to {to}; leave it out")
    require_no_journal(_file_of(destination))
    if destination == STANDARD_OUTPUT and to in ("tensorboard", "mlflow"):
        raise MethodError(f"an export to {to} cannot go to standard output; give a directory or a URI")
    module, _, name = EXPORTS[to].partition(":")
    make = getattr(importlib.import_module(module), name)
    try:
        return cast(Exporter, make(destination, raw=raw) if raw else make(destination))
    except RayboError:
        raise
    except Exception as error:  # whatever another program's package raises about a destination
        raise MethodError(f"{to} cannot be written to {destination}: {in_words(error)}") from error


def _file_of(destination: str) -> str:
    """The file that a destination names, if it does, also as a store of MLflow's."""
    return destination.removeprefix("sqlite:///")


class Recorder:
    """Keeps a destination up to date while a study runs: `raybo.tune(..., watch=Recorder("job.db", "mlflow", uri))`.

    Args:
        journal: the study's, as given to `storage`.
        to, destination: as in `exporter`.
    Raises:
        MethodError: the destination is the journal; or as `exporter`.
    """

    def __init__(self, journal: Path | str, to: str, destination: str) -> None:
        self.journal = as_path(journal)
        a_name(destination, "destination")
        require_no_journal(_file_of(destination), journal)  # which need not be there yet
        if os.path.realpath(_file_of(destination)) == os.path.realpath(journal):
            raise MethodError(f"{destination}: it is the study's own journal; give another place for the export")
        self._export = exporter(to, destination)
        self._tail = Tail(self.journal)
        self._study: Study | None = None
        self._times = 0  # that the journal was read from its beginning
        self.destination = destination
        self._last = -1
        self._has_failed = False

    def __call__(self, status: Any) -> None:
        """Bring it up to date with what is committed; does nothing if nothing has happened since.

        A failure is reported once, in a warning, and does not affect the study.
        """
        if status.last_event == self._last:
            return
        self._last = status.last_event
        try:
            self._export(self._now())
        except Exception as error:  # noqa: BLE001  # whatever it is, the study goes on without its copy
            if not self._has_failed:
                log.warning("%s is no longer up to date: %s", self.destination, in_words(error))
            self._has_failed = True

    def _now(self) -> Study:
        """The study with what has been committed until now; what was read before is not read again."""
        events = self._tail.read()
        if self._study is None or self._times != self._tail.times:
            self._study, self._times = Study(self._tail.description, [], self.journal), self._tail.times
        self._study.extend(events)
        return self._study


def csv_exporter(destination: str, *, raw: bool = False) -> Exporter:
    """A file with a row per trial: number, state, value, seconds, attempt, reason, parameters, contexts, metrics.

    With one metric and no context, also what a model expects of each finished trial, and the standard deviation.
    Texts are as `as_cell` makes them, unless they are wanted raw.
    """

    def export(study: Study) -> None:
        _write_csv(destination, columns_of(study.trials, study.space, study.context, study.expectations), raw)

    return export


def reports_exporter(destination: str, *, raw: bool = False) -> Exporter:
    """A file with a row per step that a trial has reported: trial, step, value, seconds, attempt, and other metrics.

    Texts are as `as_cell` makes them, unless they are wanted raw.
    """

    def export(study: Study) -> None:
        _write_csv(destination, columns_of_reports(study.events), raw)

    return export


def _write_csv(destination: str, columns: Mapping[str, Sequence[Any]], raw: bool) -> None:
    def cell(value: Any) -> Any:
        return value if raw else as_cell(value)

    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    quoting = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL)
    for row in (list(columns), *zip(*columns.values(), strict=True)):
        cells = [cell(value) for value in row]
        # a return ends a line for whoever reads the file, but not for the writer
        (quoting if any("\r" in str(one) for one in cells) else writer).writerow(cells)
    require_no_journal(destination)  # it may have come since
    write_file(destination, text.getvalue())


def json_exporter(destination: str) -> Exporter:
    """A file with the study's description and everything about each trial; what JSON lacks is given as its repr."""

    def export(study: Study) -> None:
        require_no_journal(destination)  # it may have come since
        write_file(destination, json.dumps(plain(study_as_json(study)), indent=1) + "\n")

    return export


def study_as_json(study: Study, last: int | None = None) -> dict[str, Any]:
    """Everything about a study, with its last trials or all of them."""
    best = study.furthest if study.incumbent is None else study.best  # as `Study.best`
    notes = [] if study.path is None else [asdict(note) for note in read_notes(study.path)]
    return {
        "study": described(study.description),
        "planned": study.planned,
        "ended": study.ended,
        "best": None if best is None else best.number,
        "best_expected": None if study.incumbent is None else study.best_expected.number,
        **({"front": [trial.number for trial in study.front]} if study.goals.k > 1 else {}),
        **({"notes": notes} if notes else {}),
        "trials": [trial_as_json(study, trial) for trial in study.trials[-last if last else 0 :]],
    }


def trial_as_json(study: Study, trial: Trial) -> dict[str, Any]:
    """Everything about a trial."""
    several = not study.goals.is_plain
    expected = (study.expectations or {}).get(trial.number)
    return {
        "number": trial.number,
        "state": str(trial.state),
        "value": trial.value,
        **({"values": trial.values, "violations": trial.violations} if several else {}),
        **({} if expected is None else dict(zip(EXPECTED, expected, strict=True))),
        "config": trial.config,
        "context": trial.context,
        "seconds": trial.seconds,
        "suggest_seconds": trial.suggest_seconds,
        "suggest_processor_seconds": trial.suggest_processor_seconds,
        "attempt": trial.attempt,
        "reason": trial.reason,
        "tags": trial.tags,
        "details": trial.details,
        **({"reports": trial.reports, "checkpoint": trial.checkpoint} if trial.step else {}),
    }


def summary_of(study: Study) -> dict[str, Any]:
    """What there is to say about a study beside its description: how it ended, its rules, what is expected of its best.

    Entries with nothing to say are empty, or left out.
    """
    told: dict[str, Any] = {"ended": study.ended}
    if study.space.rules:
        told["where"] = [rule.text for rule in study.space.rules]
    if study.incumbent is None:
        return told
    for name, trial in (("best", study.best), ("best_expected", study.best_expected)):
        told[name] = {"trial": trial.number, "value": trial.value}
        if (expected := study.expected(trial)) is not None:
            told[name] |= dict(zip(EXPECTED, expected, strict=True))
    return told


def described(description: Description) -> dict[str, Any]:
    """What a study is about, as JSON."""
    return {name: plain(value) for name, value in description.to_json().items()}


def plain(value: Any) -> Any:
    """The value as JSON can hold it."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return repr(value) if isinstance(value, Opaque) else object_to_json(value)
