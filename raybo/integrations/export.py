"""A study in the form that another program reads: once, or repeatedly while the study runs.

    csv           a row per trial
    reports       a CSV with a row per step that a trial has reported
    json          everything that is known about the study
    optuna        Optuna's journal file, which optuna-dashboard and its viewers open, also while it grows
    tensorboard   a directory of event files
    mlflow        runs of an MLflow tracking store, given by its URI
    wandb         runs of a Weights & Biases project, PROJECT or ENTITY/PROJECT

Each export brings its destination up to date with the study, so it may be called whenever something has happened.

A further format for a program that follows a study is a `stream.Writer` in a module of its own, a function that returns
a `stream.Stream` of it, and a line in `FORMATS`; tests/integrations/test_export_contract.py asks for a reader.
"""

from __future__ import annotations

import importlib
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from raybo.common.arguments import a_name, truth
from raybo.common.errors import MethodError, MissingExtra, RayboError, install_command
from raybo.common.files import STANDARD_OUTPUT
from raybo.common.messages import in_words, nearest, shown
from raybo.integrations.stream import Exporter
from raybo.journal import Tail, as_path, require_no_journal
from raybo.study.study import Study

log = logging.getLogger("raybo")


@dataclass(frozen=True)
class Format:
    """A format of exports.

    Attributes:
        maker: "module:function" in this package, which returns an exporter to a destination; imported when it is used.
        package: the package that it needs, if any; raybo's extra of the format's name installs it.
        is_file: True if the destination is a file, which may be standard output.
        is_csv: True if it may be raw.
    """

    maker: str
    package: str = ""
    is_file: bool = True
    is_csv: bool = False


FORMATS: dict[str, Format] = {
    "csv": Format("text_files:csv_exporter", is_csv=True),
    "reports": Format("text_files:reports_exporter", is_csv=True),
    "json": Format("text_files:json_exporter"),
    "optuna": Format("optuna_journal:optuna_exporter"),
    "tensorboard": Format("tensorboard:tensorboard_exporter", "tensorboardX", is_file=False),
    "mlflow": Format("mlflow:mlflow_exporter", "mlflow", is_file=False),
    "wandb": Format("wandb:wandb_exporter", "wandb", is_file=False),
}


def exporter(to: str, destination: str, *, raw: bool = False) -> Exporter:
    """Return a function that brings a destination up to date with a study.

    Args:
        to: one of `FORMATS`.
        destination: a file, or "-" for standard output; for "tensorboard" a directory, for "mlflow" a tracking URI,
            for "wandb" a project.
        raw: leave a CSV's texts as they are, though a spreadsheet may take them for formulas: see `as_cell`.
    Raises:
        MethodError: there is no such format, or it has no use for `raw` or "-".
        JournalError: the destination is a journal.
        MissingExtra: the package that it needs is not installed.
    """
    if not isinstance(to, str) or to not in FORMATS:
        raise MethodError(f"there is no export to {shown(to)}{nearest(str(to), list(FORMATS))}")
    form = FORMATS[to]
    a_name(destination, "destination")
    if truth(raw, "raw") and not form.is_csv:
        raise MethodError(f"raw applies to csv and reports only, not to {to}; leave it out")
    require_no_journal(_file_of(destination))
    if destination == STANDARD_OUTPUT and not form.is_file:
        raise MethodError(f"an export to {to} cannot go to standard output; give a directory or a URI")
    try:
        if form.package:
            _require(form.package, to)
        module, _, name = form.maker.partition(":")
        make = cast("Callable[..., Exporter]", getattr(importlib.import_module(f"raybo.integrations.{module}"), name))
        return make(destination, raw=raw) if raw else make(destination)
    except RayboError:
        raise
    except Exception as error:  # whatever another program's package raises about a destination
        raise MethodError(f"{to} cannot be written to {destination}: {in_words(error)}") from error


def _require(package: str, to: str) -> None:
    try:
        importlib.import_module(package)
    except ImportError:
        raise MissingExtra(f"an export to {to} needs {package}: {install_command(to)}") from None


def _file_of(destination: str) -> str:
    """Return the file that a destination may name, also as a store of MLflow's."""
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
        self._times = 0  # how often the journal was read from its beginning
        self.destination = destination
        self._last = -1
        self._has_failed = False

    def __call__(self, status: Any) -> None:
        """Bring it up to date with what is committed; does nothing if nothing has happened since.

        The first failure is reported in a warning; failures do not affect the study.
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
        """Return the study with what has been committed until now; only what is new is read."""
        events = self._tail.read()
        if self._study is None or self._times != self._tail.times:
            self._study, self._times = Study(self._tail.description, [], self.journal), self._tail.times
        self._study.extend(events)
        return self._study
