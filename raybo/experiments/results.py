"""The measures of an experiment's runs: a row each, written to `runs.csv` and read back from it.

Tables, verdicts and pages are made of these rows alone, so that whoever has the file can make them again.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast, get_args

from raybo.common.errors import JournalError
from raybo.common.files import write_file
from raybo.experiments.measures import floor, measure, optimum, worst_seen
from raybo.experiments.plan import Experiment, Measure, Problem
from raybo.experiments.run import Run
from raybo.study.columns import as_cell, from_cell
from raybo.study.study import Study

FILE, REASONS = "runs.csv", "reasons.md"
KEYS = ("problem", "method", "seed", "mode")
MEASURES: dict[Measure, str] = {
    "final_value": "final value",
    "final_regret": "simple regret",
    "cumulative_regret": "cumulative regret",
    "processor_seconds": "suggestions, processor s",
}
HYPERVOLUME_MEASURES: dict[Measure, str] = {
    "final_hypervolume": "hypervolume",
    "processor_seconds": "suggestions, processor s",
}
HELD_OUT_MEASURES: dict[Measure, str] = {
    "early_held_out": "best after a fifth",
    "mean_held_out": "best, mean of the run",
    "best_held_out": "best",
    "final_held_out": "last",
    "processor_seconds": "suggestions, processor s",
}
RECOMMENDED_MEASURES: dict[Measure, str] = {"recommended_regret": "regret of the recommendation"}
FOUND_MEASURES: dict[Measure, str] = {"missed": "missed the optimum"}
INEXACT_MEASURES: dict[Measure, str] = {"final_inexactness": "accumulated inexactness"}
MODEL_MEASURES: dict[Measure, str] = {"final_model_error": "squared error of the model"}


@dataclass(frozen=True)
class Row:
    """One run.

    Attributes:
        problem, method: names of its problem and its entry.
        seed: of the run, by which runs are paired.
        mode: "max" or "min", what is wanted of the objective; of several metrics "max", as it is of their volume.
        numbers: its measures; one that is not known is left out.
    """

    problem: str
    method: str
    seed: int
    mode: str
    numbers: Mapping[Measure, float]


def columns(experiment: Experiment) -> dict[Measure, str]:
    """Return the measures of an experiment's runs, with the headings of its table."""
    if experiment.is_held_out:
        return HELD_OUT_MEASURES
    if experiment.curve == "hypervolume":
        return HYPERVOLUME_MEASURES
    found = dict(MEASURES)
    if any(problem.metric for problem in experiment.problems):
        found |= RECOMMENDED_MEASURES
    if all(problem.found_within is not None for problem in experiment.problems):
        found |= FOUND_MEASURES
    if experiment.curve == "inexactness":
        found |= INEXACT_MEASURES
    if all(problem.model_error for problem in experiment.problems):
        found |= MODEL_MEASURES
    return found


def measured(experiment: Experiment, studies: Mapping[Run, Study]) -> list[Row]:
    """Return a row for each run, by problem, entry and seed."""
    kinds = columns(experiment)
    rows = []
    for problem in experiment.problems:
        runs = [run for run in studies if run.problem == problem]
        if not runs:
            continue
        shared = against(experiment, problem, studies)
        order = [entry.name for entry in experiment.entries]
        for run in sorted(runs, key=lambda run: (order.index(run.entry.name), run.seed)):
            found = {kind: measure(kind, studies[run], problem, *shared) for kind in kinds}
            numbers = {kind: number for kind, number in found.items() if not math.isnan(number)}
            mode = "max" if experiment.curve == "hypervolume" else studies[run].mode
            rows.append(Row(problem.name, run.entry.name, run.seed, mode, numbers))
    return rows


def against(
    experiment: Experiment, problem: Problem, studies: Mapping[Run, Study]
) -> tuple[float, Mapping[str, float], float]:
    """Return the reference of a problem's runs (the optimum, or the reference point) and the worst value."""
    if experiment.curve == "hypervolume":
        return math.nan, worst_seen(problem, studies), math.nan
    return optimum(problem, studies), {}, floor(problem, studies)


def write_rows(rows: Sequence[Row], directory: Path) -> Path:
    """Write them to the directory's file."""
    file = directory / FILE
    kinds = [kind for kind in get_args(Measure) if any(kind in row.numbers for row in rows)]
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow([*KEYS, *kinds])
    for row in rows:
        numbers = [repr(row.numbers[kind]) if kind in row.numbers else "" for kind in kinds]
        writer.writerow([as_cell(row.problem), as_cell(row.method), row.seed, row.mode, *numbers])
    write_file(file, text.getvalue())
    return file


def read_rows(directory: Path) -> list[Row]:
    """Return the rows of the directory's file.

    Raises:
        JournalError: there is none, or it cannot be read.
    """
    file = directory / FILE
    try:
        with file.open(newline="", encoding="utf-8") as text:
            return [
                Row(
                    from_cell(row["problem"]),
                    from_cell(row["method"]),
                    int(row["seed"]),
                    row["mode"],
                    {cast(Measure, kind): float(row[kind]) for kind in row if kind not in KEYS and row[kind]},
                )
                for row in csv.DictReader(text)
            ]
    except (OSError, KeyError, ValueError) as error:
        raise JournalError(f"{file}: it cannot be read as the results of runs ({error})") from error


def read_reasons(directory: Path) -> str:
    """Read the reasons for which some claims do not hold, written by hand beside the runs; empty if there are none."""
    file = directory / REASONS
    return file.read_text(encoding="utf-8").strip() if file.exists() else ""


def of(rows: Sequence[Row], problem: str, method: str, kind: Measure) -> dict[int, float]:
    """Return one measure of a problem's and an entry's runs by seed, as far as it is known."""
    return {
        row.seed: row.numbers[kind]
        for row in rows
        if row.problem == problem and row.method == method and kind in row.numbers
    }
