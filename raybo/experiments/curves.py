"""The curves of an experiment's runs, summarised: written to `curves.csv.gz` and read back from it.

A row per evaluation of a curve: the median, the quartiles, the mean and the standard deviation over the runs. They are
most of what a clone holds, so they are compressed. `zcat curves.csv.gz` shows them, and `pandas.read_csv` reads them.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Mapping
from itertools import product
from pathlib import Path

import numpy as np

from raybo.common.errors import JournalError
from raybo.common.files import write_file
from raybo.experiments.measures import curve
from raybo.experiments.plan import Curve, Entry, Experiment, Problem
from raybo.experiments.results import against
from raybo.experiments.run import Run
from raybo.space import Array
from raybo.study.columns import as_cell, from_cell
from raybo.study.study import Study

FILE = "curves.csv.gz"
SPREAD = "median", "lower quartile", "upper quartile", "mean", "sd"


def write_curves(experiment: Experiment, studies: Mapping[Run, Study], directory: Path) -> Path:
    """Write the curves to the directory's file and return it; equal curves give equal bytes."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(["problem", "method", "curve", "evaluation", *SPREAD])
    kinds: list[Curve] = ["best_value", "held_out", "best_held_out"] if experiment.is_held_out else [experiment.curve]
    for problem, kind in product(experiment.problems, kinds):
        first = 1 + (problem.initial if kind in ("cumulative_regret", "inexactness") else 0)
        for entry in experiment.entries:
            curves = _curves(experiment, studies, problem, entry, kind)
            if not len(curves):
                continue
            low, median, high = np.quantile(curves, [0.25, 0.5, 0.75], axis=0)
            columns = zip(median, low, high, curves.mean(axis=0), curves.std(axis=0), strict=True)
            for i, numbers in enumerate(columns):
                writer.writerow(
                    [as_cell(problem.name), as_cell(entry.name), kind, first + i, *(f"{x:.10g}" for x in numbers)]
                )
    write_file(directory / FILE, compressed(text.getvalue()))
    return directory / FILE


def read_curves(directory: Path) -> dict[tuple[str, str, str], Array]:
    """Return evaluations, median, quartiles, mean and standard deviation, (6, n), by problem, method and curve.

    Raises:
        JournalError: the directory's file is missing or unreadable.
    """
    file = directory / FILE
    rows: dict[tuple[str, str, str], list[list[float]]] = {}
    try:
        with gzip.open(file, "rt", newline="", encoding="utf-8") as text:
            for row in csv.DictReader(text):
                numbers = [float(row[name]) for name in ("evaluation", *SPREAD)]
                rows.setdefault((from_cell(row["problem"]), from_cell(row["method"]), row["curve"]), []).append(numbers)
    except (OSError, EOFError, zlib.error, KeyError, ValueError) as error:
        raise JournalError(f"{file}: it cannot be read as the curves of runs ({error})") from error
    return {key: np.array(numbers).T for key, numbers in rows.items()}


def compressed(text: str) -> bytes:
    """Return the text as a gzip file without a name or a time, so that it depends on the text alone."""
    data = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=data, mtime=0) as file:
        file.write(text.encode())
    return data.getvalue()


def _curves(
    experiment: Experiment, studies: Mapping[Run, Study], problem: Problem, entry: Entry, kind: Curve
) -> Array:  # (repeats, n)
    """Return the curves of the existing runs, cut to the length of the shortest."""
    runs = [run for run in studies if run.problem == problem and run.entry == entry]
    if not runs:
        return np.empty((0, 0))
    shared = against(experiment, problem, studies)
    curves = [curve(kind, studies[run], problem, *shared) for run in runs]
    shortest = min(len(one) for one in curves)
    return np.array([one[:shortest] for one in curves])
