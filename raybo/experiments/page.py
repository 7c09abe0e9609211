"""An experiment's results as text: the table of its runs, and the page with its verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from raybo.common.messages import shown
from raybo.experiments.plan import Experiment, Measure
from raybo.experiments.results import HYPERVOLUME_MEASURES, Row, columns, of
from raybo.experiments.verdicts import LEVEL, SLOWER, Verdict, judge, pairs_needed
from raybo.space import Array

HOW = (
    "Each claim is tested on runs paired by seed: by Wilcoxon's signed-rank test, or McNemar's for a missed optimum; "
    f"two-sided at {LEVEL:.0%}, with Holm's correction over all judged claims. *Holds*: the difference is "
    "significant, as claimed. *Does not hold*: it is significant the other way. *Undecided*: neither. *Not judged*: "
    "with so few pairs and so many claims, no result could have been significant. The difference says how much better "
    "the first side is than the second, or than the stated multiple of it; positive favours the claim. It is the "
    "Hodges-Lehmann estimate (for missed optima, the difference in shares), with a 95 % interval that is not corrected."
)
COSTS = f"A verdict on processor seconds must survive either side being {SLOWER:g} times slower."
FEWEST = pairs_needed(1)
DECIMALS = 15  # of a difference, beyond which there is only rounding
UNTIMED = "The cost of suggestions was not measured in these runs."


def table(experiment: Experiment, rows: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    """A heading and a row for each problem and entry that has runs: medians over the repeats, with quartiles.

    Args:
        experiment: what was run.
        rows: its runs, as `compare` returns them.
    Returns:
        the names of the columns, and the cells of each row as text.
    """
    kinds = _known(experiment, rows)
    heading = ["problem", "method", "runs"]
    for kind, words in kinds.items():
        heading += [words, *(["its mean (sd)"] if kind == "final_regret" else [])]
    lines = []
    for problem in experiment.problems:
        for entry in experiment.entries:
            runs = sum(row.problem == problem.name and row.method == entry.name for row in rows)
            if runs:
                found = {kind: np.array([*of(rows, problem.name, entry.name, kind).values()]) for kind in kinds}
                cells = [cell for kind in kinds for cell in _cells(kind, found[kind])]
                lines.append([problem.name, entry.name, str(runs), *cells])
    return heading, lines


def page(experiment: Experiment, rows: Sequence[Row], reasons: str = "") -> str:
    """The table and the verdicts as Markdown, and why some claims do not hold.

    Args:
        experiment: what was run.
        rows: its runs, as `compare` returns them.
        reasons: why some claims do not hold, in Markdown; empty for nothing.
    """
    verdicts = judge(experiment, rows)
    repeats = len({row.seed for row in rows})
    command = experiment.command or f"raybo reproduce {experiment.name}"
    lines = [f"# {experiment.title}", "", f"`{command} --repeats {repeats}`", ""]
    lines += ["![curves](figure.png)", "", *as_table(*table(experiment, rows))]
    lines += ["", " ".join(_notes(experiment, rows))]
    tested_verdicts = [verdict for verdict in verdicts if verdict.repeats >= FEWEST]
    if tested_verdicts:
        heading = ["claim", "problem", "pairs", "claimed better", "the other", "difference", "p", "verdict"]
        is_of_costs = any(verdict.claim.measure == "processor_seconds" for verdict in tested_verdicts)
        how = f"{HOW} {COSTS}" if is_of_costs else HOW
        lines += ["", "## Claims", "", *as_table(heading, [_verdict(verdict) for verdict in tested_verdicts]), "", how]
    if few := len(verdicts) - len(tested_verdicts):
        lines += ["", f"Not judged, with fewer than {FEWEST} pairs of runs: {few} of {len(verdicts)} claims."]
    lines += ["", "## Why some claims do not hold", "", reasons] if reasons else []
    lines += ["", "## What was run", "", *_problems(experiment, rows), "", *_methods(experiment, rows)]
    return "\n".join(lines) + "\n"


def _problems(experiment: Experiment, runs: Sequence[Row]) -> list[str]:
    """A row for each problem that has runs: its objective and its budget."""
    rows = []
    for problem in experiment.problems:
        if problem.name not in {run.problem for run in runs}:
            continue
        settings = _options(problem.settings)
        settings += [f"{problem.seeded}=the seed"] if problem.seeded is not None else []
        objective = ", ".join([f"`{problem.target}`", *settings])
        if held := problem.held_out:
            last = ["; at last", *_options(held.last)] if held.last else []
            objective += f"; held out: {', '.join(_options(held.settings))}{' '.join(last)}"
        rows.append([problem.name, objective, str(problem.trials), str(problem.initial or "")])
    return as_table(["problem", "objective", "evaluations", "initial design"], rows)


def _methods(experiment: Experiment, runs: Sequence[Row]) -> list[str]:
    """A row for each method that has runs: what it is in raybo, with its options; slashes where problems differ."""
    rows = []
    for entry in experiment.entries:
        if entry.name not in {run.method for run in runs}:
            continue
        by_problem = [entry.options_for(problem) for problem in experiment.problems]
        words = []
        for option in dict.fromkeys(option for options in by_problem for option in options):
            values = dict.fromkeys(_option(options[option]) for options in by_problem if option in options)
            words.append(f"{option}={'/'.join(values)}")
        scheduler = [] if entry.scheduler is None else [f"with {entry.scheduler}", *_options(entry.scheduler_options)]
        rows.append([entry.name, ", ".join([f"`{entry.method}`", *words, *scheduler])])
    return as_table(["method", "in raybo"], rows)


def _options(options: Mapping[str, object]) -> list[str]:
    return [f"{name}={_option(value)}" for name, value in options.items()]


def _option(value: object) -> str:
    if isinstance(value, (list, tuple)) and len(value) > 4:
        return f"({len(value)} values)"
    return value if isinstance(value, str) else shown(value)


def _known(experiment: Experiment, rows: Sequence[Row]) -> dict[Measure, str]:
    several = any("final_hypervolume" in row.numbers for row in rows)  # which their jobs say, and no experiment
    kinds = HYPERVOLUME_MEASURES if several else columns(experiment)
    return {kind: heading for kind, heading in kinds.items() if any(kind in row.numbers for row in rows)}


def _notes(experiment: Experiment, rows: Sequence[Row]) -> list[str]:
    kinds = _known(experiment, rows)
    notes = ["Medians over the repeats, [quartiles]."]
    if "processor_seconds" in kinds:
        notes += ["Suggestions: processor seconds spent on proposals over the whole run, by the study's process."]
    else:
        notes += [UNTIMED]
    if experiment.is_held_out:
        notes += [
            "Values are those of the method's recommendations. They are evaluated separately: the method does not see "
            "the results, and they do not count against its budget. Columns give the best recommendation so far (after "
            "a fifth of the run, averaged over the run, and at its end) and the last one. Thin lines in the figure are "
            "the individual recommendations."
        ]
    elif apart := [
        f"{problem.name}: {problem.metric}" for problem in experiment.problems if problem.metric is not None
    ]:
        where = "" if len(apart) == len(experiment.problems) else f" on {len(apart)} of the problems"
        notes += [
            f"Values and regret{where} are measured by a metric that no method sees ({'; '.join(apart)}). The "
            "recommendation is the trial that the study considers best when it ends."
        ]
    elif experiment.curve == "hypervolume":
        notes += [
            "The hypervolume is what a run's front dominates; its reference point is the worst value of each metric in "
            "any feasible trial of any run."
        ]
    elif any(problem.optimum is None for problem in experiment.problems):
        notes += ["Where the optimum is unknown, regret is relative to the best value of any run."]
    if "missed" in kinds:
        basins = "; ".join(f"{problem.name}: {problem.found_within:g}" for problem in experiment.problems)
        notes += [f"A run has missed the optimum if its simple regret ends above a bound ({basins})."]
    if "final_inexactness" in kinds:
        notes += [
            "The accumulated inexactness M_T is the sum of 1 - eta over all steps, where eta is the share of the "
            "acquisition's maximum that the solver reached. It is measured against a much more thorough search at "
            "every fifth step and interpolated in between; the cost of suggestions includes this measurement."
        ]
    if "final_model_error" in kinds:
        notes += ["The model's error is the mean squared error of the posterior mean on a grid at the end of the run."]
    return notes


def _verdict(v: Verdict) -> list[str]:
    text = v.claim.text + (f" ({v.claim.source})" if v.claim.source else "")
    cells = [text, v.problem, str(v.repeats), f"{v.better:.4g}", f"{v.worse:.4g}"]
    return (
        [*cells, *tested(v.effect, v.corrected, v.word)]
        if v.is_judged
        else [*cells, effect_in_words(v.effect), "", v.word]
    )


def tested(effect: tuple[float, float, float], p: float, word: str) -> list[str]:
    """Three cells of a table: the difference with its interval, the p-value and the verdict."""
    return [effect_in_words(effect), f"{p:.3f}" if p >= 0.0005 else "<0.001", f"**{word}**"]


def effect_in_words(effect: tuple[float, float, float]) -> str:
    """Write a difference and its interval; what is left of equal numbers by rounding is 0."""
    estimate, low, high = (round(number, DECIMALS) + 0.0 for number in effect)
    return f"{estimate:.3g} [{low:.3g}, {high:.3g}]"


def _cells(kind: Measure, numbers: Array) -> list[str]:
    if len(numbers) == 0:
        return ["", ""] if kind == "final_regret" else [""]
    if kind == "missed":
        return [f"{int(numbers.sum())} of {len(numbers)}"]
    low, median, high = np.quantile(numbers, [0.25, 0.5, 0.75])
    cell = f"{median:.4g} [{low:.4g}, {high:.4g}]"
    if kind != "final_regret":
        return [cell]
    return [cell, f"{numbers.mean():.3g} ({numbers.std(ddof=1):.2g})" if len(numbers) > 1 else f"{numbers.mean():.3g}"]


def as_table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a Markdown table."""
    lines = [heading, ["---"] * len(heading), *rows]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |" for cells in lines]
