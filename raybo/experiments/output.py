"""What an experiment leaves behind: runs.csv, curves.csv, a figure, and a page with a table and the verdicts."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from raybo.errors import MissingExtra
from raybo.experiments.measures import curve, measure, optimum
from raybo.experiments.plan import Curve, Experiment, Measure, Problem
from raybo.experiments.run import Run
from raybo.experiments.verdicts import LEVEL, Verdict
from raybo.space import Array
from raybo.study import Study

MEASURES: dict[Measure, str] = {
    "final_value": "final value",
    "final_regret": "simple regret",
    "cumulative_regret": "cumulative regret",
    "processor_seconds": "suggestions, processor s",
}
FOUND_MEASURES: dict[Measure, str] = {"missed": "missed the optimum"}
MODEL_MEASURES: dict[Measure, str] = {"final_model_error": "squared error of the model"}
RECOMMENDED_MEASURES: dict[Measure, str] = {"recommended_regret": "regret of the recommendation"}
HELD_OUT_MEASURES: dict[Measure, str] = {
    "early_held_out": "best after a fifth",
    "mean_held_out": "best, mean of the run",
    "best_held_out": "best",
    "final_held_out": "last",
    "processor_seconds": "suggestions, processor s",
}
AXIS: dict[Curve, str] = {
    "best_value": "best value so far",
    "simple_regret": "simple regret",
    "cumulative_regret": "cumulative regret",
    "held_out": "held-out value of the recommendation",
    "best_held_out": "best held-out value so far",
    "model_error": "mean squared error of the posterior mean",
}


def write(
    experiment: Experiment, studies: Mapping[Run, Study], verdicts: Sequence[Verdict], directory: Path
) -> list[Path]:
    """Write everything to the directory and return the files.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    directory.mkdir(parents=True, exist_ok=True)
    files = [directory / name for name in ("runs.csv", "curves.csv", "figure.png", "README.md")]
    _write_runs(experiment, studies, files[0])
    _write_curves(experiment, studies, files[1])
    _draw(experiment, studies, files[2])
    files[3].write_text(page(experiment, studies, verdicts), encoding="utf-8")
    return files


def table(experiment: Experiment, studies: Mapping[Run, Study]) -> tuple[list[str], list[list[str]]]:
    """A heading and a row for each problem and entry: medians over the repeats, with quartiles."""
    kinds = _measures(experiment)
    heading = ["problem", "method", "runs", *kinds.values()]
    rows = []
    for problem in experiment.problems:
        for entry in experiment.entries:
            found = _measured(experiment, studies, problem, entry.name)
            cells = [_share(found[kind]) if kind == "missed" else _with_quartiles(found[kind]) for kind in kinds]
            rows.append([problem.name, entry.name, str(len(found["processor_seconds"])), *cells])
    return heading, rows


def page(experiment: Experiment, studies: Mapping[Run, Study], verdicts: Sequence[Verdict]) -> str:
    """The table and the verdicts as Markdown."""
    lines = [f"# {experiment.title}", "", f"`{experiment.name}`: {experiment.repeats} repeats.", ""]
    lines += ["![curves](figure.png)", "", *_markdown(*table(experiment, studies))]
    lines += ["", "Medians over the repeats, [quartiles]. Suggestions: seconds spent proposing, in the whole run."]
    if experiment.is_held_out:
        lines += [
            "Values are those of what a method recommends, evaluated apart from the trials that it learnt from and not "
            "charged to its budget: the best so far, after a fifth of the run, on average over it, and at its end; and "
            "the last recommendation. In the figure the thin lines are the recommendations themselves."
        ]
    elif metrics := sorted({problem.metric for problem in experiment.problems if problem.metric is not None}):
        lines += [
            f"Values and regret are those of the metric {', '.join(metrics)}, which no method sees. The recommendation "
            "is the trial that the study calls its best when it ends."
        ]
    elif any(problem.optimum is None for problem in experiment.problems):
        lines += ["Where the optimum is not known, regret is against the best value of any run."]
    kinds = _measures(experiment)
    if "missed" in kinds:
        basins = "; ".join(f"{problem.name}: {problem.found_within:g}" for problem in experiment.problems)
        lines += [f"The optimum is missed by the runs whose simple regret ends above a bound ({basins})."]
    if "final_model_error" in kinds:
        lines += ["The model's error is that of the posterior mean on a grid, squared, when the run ends."]
    if verdicts:
        rows = [
            [
                v.claim.text + (f" ({v.claim.source})" if v.claim.source else ""),
                v.problem,
                f"{v.better:.4g}",
                f"{v.worse:.4g}",
                f"{min(v.p_holds, v.p_fails):.3f}",
                f"**{v.word}**",
            ]
            for v in verdicts
        ]
        lines += ["", "## Claims", ""]
        lines += _markdown(["claim", "problem", "median of the better", "median of the other", "p", "verdict"], rows)
        lines += [
            "",
            f"Wilcoxon's signed-rank test over runs paired by seed, one-sided, at {LEVEL:.0%}: *holds* where the "
            "claimed difference is significant, *does not hold* where the opposite is, *undecided* otherwise.",
        ]
    return "\n".join(lines) + "\n"


def _measured(
    experiment: Experiment, studies: Mapping[Run, Study], problem: Problem, entry: str
) -> dict[Measure, Array]:
    best = optimum(problem, studies)
    runs = [run for run in studies if run.problem == problem and run.entry.name == entry]
    return {
        kind: np.array([measure(kind, studies[run], problem, best) for run in runs]) for kind in _measures(experiment)
    }


def _measures(experiment: Experiment) -> dict[Measure, str]:
    """The columns of the tables, and their headings."""
    if experiment.is_held_out:
        return HELD_OUT_MEASURES
    measures = dict(MEASURES)
    if any(problem.metric for problem in experiment.problems):
        measures |= RECOMMENDED_MEASURES
    if all(problem.found_within is not None for problem in experiment.problems):
        measures |= FOUND_MEASURES
    if all(problem.model_error for problem in experiment.problems):
        measures |= MODEL_MEASURES
    return measures


def _curves(studies: Mapping[Run, Study], problem: Problem, entry: str, kind: Curve) -> Array:  # (repeats, n)
    best = optimum(problem, studies)
    curves = [
        curve(kind, study, problem, best)
        for run, study in studies.items()
        if run.problem == problem and run.entry.name == entry
    ]
    shortest = min(len(one) for one in curves)
    return np.array([one[:shortest] for one in curves])


def _write_runs(experiment: Experiment, studies: Mapping[Run, Study], path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        kinds = _measures(experiment)
        writer.writerow(["problem", "method", "seed", *kinds])
        for problem in experiment.problems:
            best = optimum(problem, studies)
            for run, study in studies.items():
                if run.problem == problem:
                    numbers = [repr(measure(kind, study, problem, best)) for kind in kinds]
                    writer.writerow([problem.name, run.entry.name, run.seed, *numbers])


def _write_curves(experiment: Experiment, studies: Mapping[Run, Study], path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        spread = ["median", "lower quartile", "upper quartile", "mean", "sd"]
        writer.writerow(["problem", "method", "curve", "evaluation", *spread])
        kinds: list[Curve] = (
            ["best_value", "held_out", "best_held_out"] if experiment.is_held_out else [experiment.curve]
        )
        for problem, kind in product(experiment.problems, kinds):
            first = 1 + (problem.initial if kind == "cumulative_regret" else 0)
            for entry in experiment.entries:
                found = _curves(studies, problem, entry.name, kind)
                low, median, high = np.quantile(found, [0.25, 0.5, 0.75], axis=0)
                columns = zip(median, low, high, found.mean(axis=0), found.std(axis=0), strict=True)
                for i, numbers in enumerate(columns):
                    writer.writerow([problem.name, entry.name, kind, first + i, *(f"{x:.10g}" for x in numbers)])


def _draw(experiment: Experiment, studies: Mapping[Run, Study], path: Path) -> None:
    """A panel a problem: the mean over the repeats, and a band of one standard error on both sides."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra("figures need matplotlib: pip install 'raybo[plot]'") from None
    n = len(experiment.problems)
    columns = min(n, 3)
    rows = -(-n // columns)
    figure = Figure(figsize=(4.2 * columns, 3.3 * rows), layout="constrained")
    panels: Any = figure.subplots(rows, columns, squeeze=False)
    for panel, problem in zip(panels.flat, experiment.problems, strict=False):
        first = 1 + (problem.initial if experiment.curve == "cumulative_regret" else 0)
        for entry in experiment.entries:
            found = _curves(studies, problem, entry.name, experiment.curve)
            mean, error = found.mean(axis=0), found.std(axis=0) / np.sqrt(len(found))
            evaluations = np.arange(first, first + len(mean))
            (line,) = panel.plot(evaluations, mean, label=entry.name, linewidth=1.5)
            if experiment.curve == "best_held_out":
                present = _curves(studies, problem, entry.name, "held_out").mean(axis=0)
                panel.plot(evaluations, present, color=line.get_color(), linewidth=0.6, alpha=0.6)
            panel.fill_between(evaluations, mean - error, mean + error, color=line.get_color(), alpha=0.15, linewidth=0)
        if experiment.curve == "model_error" or (experiment.curve == "simple_regret" and problem.optimum is not None):
            panel.set_yscale("log")
        panel.set_title(problem.name)
        panel.set_xlabel("evaluations")
        panel.grid(alpha=0.25)
    for panel in panels.flat[n:]:
        panel.set_visible(False)
    panels[0, 0].set_ylabel(AXIS[experiment.curve])
    panels[0, 0].legend(frameon=False)
    figure.suptitle(f"{experiment.title}: mean and standard error of {experiment.repeats} runs", fontsize="medium")
    figure.savefig(path, dpi=150)


def _share(flags: Array) -> str:
    return f"{int(flags.sum())} of {len(flags)}"


def _with_quartiles(numbers: Array) -> str:
    low, median, high = np.quantile(numbers, [0.25, 0.5, 0.75])
    return f"{median:.4g} [{low:.4g}, {high:.4g}]"


def _markdown(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [heading, ["---"] * len(heading), *rows]
    return ["| " + " | ".join(cells) + " |" for cells in lines]
