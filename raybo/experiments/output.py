"""The files of an experiment: runs.csv, curves.csv.gz, a figure, and a page with a table and the verdicts."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np

from raybo.common.errors import MissingExtra, install_command
from raybo.common.files import make_directory, write_file
from raybo.experiments.curves import read_curves, write_curves
from raybo.experiments.page import page
from raybo.experiments.plan import Curve, Experiment
from raybo.experiments.results import Row, measured, of, read_reasons, read_rows, write_rows
from raybo.experiments.run import Run
from raybo.space import Array
from raybo.study.study import Study

FIGURE, PAGE = "figure.png", "README.md"
BY_MEDIAN = "simple_regret", "model_error"  # their mean would show a single run that stays far off, and little else
TITLE_CHARACTERS = 46  # of a title's line, for each panel beside another
LINE = 0.22  # height of a line of the legend, in inches
LETTER = 0.078  # width of a letter of the legend, in inches
HANDLE = 0.65  # width of the line beside a name in the legend, in inches
AXIS: dict[Curve, str] = {
    "best_value": "best value so far",
    "hypervolume": "hypervolume of the front",
    "simple_regret": "simple regret",
    "cumulative_regret": "cumulative regret",
    "held_out": "held-out value of the recommendation",
    "best_held_out": "best held-out value so far",
    "model_error": "mean squared error of the posterior mean",
    "inexactness": "accumulated inexactness",
}


def write(experiment: Experiment, studies: Mapping[Run, Study], directory: Path) -> list[Path]:
    """Write everything to the directory and return the files.

    Raises:
        MissingExtra: matplotlib is not installed.
        RayboError: the directory cannot be made.
    """
    make_directory(directory)
    runs = write_rows(measured(experiment, studies), directory)
    curves = write_curves(experiment, studies, directory)
    return [runs, curves, draw(experiment, directory), write_page(experiment, directory)]


def matplotlib_figure() -> Any:
    """Return matplotlib's `Figure`; MissingExtra if it is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra(f"figures need matplotlib: {install_command('plot')}") from None
    return Figure


def write_page(experiment: Experiment, directory: Path) -> Path:
    """Write the page of a directory's runs, with the reasons beside them for which some claims do not hold."""
    write_file(directory / PAGE, page(experiment, read_rows(directory), read_reasons(directory)))
    return directory / PAGE


def draw(experiment: Experiment, directory: Path) -> Path:
    """Draw the figure from the directory's curves: a panel per problem, and of each method what its runs came to.

    That is the mean and its standard error; of the curves in BY_MEDIAN, and of what suggestions cost, the median and
    the quartiles.

    Raises:
        MissingExtra: matplotlib is not installed.
        JournalError: the runs cannot be read.
    """
    Figure = matplotlib_figure()
    rows, curves = read_rows(directory), read_curves(directory)
    problems = [problem for problem in experiment.problems if any(row.problem == problem.name for row in rows)]
    n = len(problems)
    columns = min(n, 3)
    lines = -(-n // columns)
    entries = [entry for entry in experiment.entries if any(row.method == entry.name for row in rows)]
    fitting = (4.2 * columns) / (HANDLE + LETTER * max(len(entry.name) for entry in entries))
    ncols = max(1, min(int(fitting), len(entries)))
    legend = LINE * (1 - (-len(entries) // ncols))
    figure = Figure(figsize=(4.2 * columns, 3.3 * lines + legend), layout="constrained")
    is_by_median = experiment.draws_costs or experiment.curve in BY_MEDIAN
    panels: Any = figure.subplots(lines, columns, squeeze=False)
    for panel, problem in zip(panels.flat, problems, strict=False):
        for place, entry in enumerate(entries):
            if experiment.draws_costs:
                _draw_cost(panel, place, of(rows, problem.name, entry.name, "processor_seconds"), entry.name)
            else:
                runs = sum(row.problem == problem.name and row.method == entry.name for row in rows)
                _draw_curve(panel, place, curves, (problem.name, entry.name, experiment.curve), runs)
        if is_by_median and _spans_decades(panel):
            panel.set_yscale("log")
        panel.set_title(problem.name)
        panel.grid(alpha=0.25)
        if experiment.draws_costs:
            panel.set_xticks([])
        else:
            panel.set_xlabel("evaluations")
    for panel in panels.flat[n:]:
        panel.set_visible(False)
    panels[0, 0].set_ylabel("suggestions of a run, processor s" if experiment.draws_costs else AXIS[experiment.curve])
    found = {
        label: line for panel in panels.flat for line, label in zip(*panel.get_legend_handles_labels(), strict=True)
    }
    labels = [entry.name for entry in entries if entry.name in found]
    handles = [found[label] for label in labels]
    figure.legend(handles, labels, loc="outside lower center", ncols=ncols, frameon=False, fontsize="small")
    middle = "median and quartiles" if is_by_median else "mean and standard error"
    title = f"{experiment.title}: {middle} of {runs_in_words(rows)}"
    figure.suptitle(fill(title, TITLE_CHARACTERS * columns), fontsize="medium")
    write_file(directory / FIGURE, _with_palette(figure))
    return directory / FIGURE


def _with_palette(figure: Any) -> bytes:
    """Return the figure as a PNG of 256 colours, a third of the size of one in true colour."""
    from PIL import Image  # which matplotlib needs

    drawn, reduced = io.BytesIO(), io.BytesIO()
    figure.savefig(drawn, dpi=150, format="png")
    with Image.open(drawn) as image:
        image.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(reduced, "png", optimize=True)
    return reduced.getvalue()


def _spans_decades(panel: Any) -> bool:
    """True if all that is drawn is positive, and the largest value is ten times the smallest or more."""
    heights = np.concatenate([line.get_ydata() for line in panel.lines] or [np.ones(1)])
    return bool(heights.min() > 0.0 and heights.max() >= 10.0 * heights.min())


def _draw_curve(
    panel: Any, place: int, curves: Mapping[tuple[str, str, str], Array], key: tuple[str, str, str], runs: int
) -> None:
    if not runs or key not in curves:
        return
    colour, (name, kind) = f"C{place}", key[1:]
    evaluations, median, lower, upper, mean, sd = curves[key]
    if kind in BY_MEDIAN:
        middle, low, high = median, lower, upper
    else:
        error = sd / np.sqrt(max(runs - 1, 1))  # the file's sd divides by n
        middle, low, high = mean, mean - error, mean + error
    hidden = {"linestyle": (0, (4, 2)), "zorder": 3.0} if place % 2 else {}  # so that equal curves are seen to be two
    panel.plot(evaluations, middle, label=name, linewidth=1.5, color=colour, **hidden)
    if kind == "best_held_out":
        at, _, _, _, present, _ = curves[key[0], name, "held_out"]
        panel.plot(at, present, color=colour, linewidth=0.6, alpha=0.6)
    panel.fill_between(evaluations, low, high, color=colour, alpha=0.15, linewidth=0)


def _draw_cost(panel: Any, place: int, seconds: Mapping[int, float], name: str) -> None:
    if seconds:
        low, median, high = np.quantile([*seconds.values()], [0.25, 0.5, 0.75])
        ends = [[median - low], [high - median]]
        panel.errorbar([place], [median], ends, label=name, color=f"C{place}", fmt="o", capsize=4.0)


def runs_in_words(rows: Sequence[Row]) -> str:
    """Say how many runs each method has on each problem."""
    counts = Counter((row.problem, row.method) for row in rows).values()
    return f"{max(counts)} runs" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)} runs"
