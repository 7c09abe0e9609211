"""Tests printed in docs/independent.md and docs/evidence/default.md follow from the runs, by numpy and csv alone."""

from __future__ import annotations

import csv
import math
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tests.by_definition import signed_rank

pytestmark = pytest.mark.slow

DOCS = Path(__file__).parents[1] / "docs"

VARIANTS = {"Optuna's TPE": "optuna", "Optuna's GP sampler": "optuna-gp", "BoTorch": "botorch", "SMAC": "smac"}
VARIANTS |= {"HEBO": "hebo", "without the warped model": "auto-without-warped", "the plain model alone": "auto-plain"}
VARIANTS |= {"without the summed model": "auto-without-summed"}
OF_TREES = "(xgboost|extra-trees|forest|gradient|lightgbm|histogram)-"
TREES = {
    "development": "xgboost-(australian|diabetes)|extra-trees-vehicle|forest-kc1|gradient-friedman|lightgbm-wine",
    "validation": "first-study|xgboost-vehicle|histogram-made|forest-d.*|extra-trees-(digits|friedman)|lightgbm-a.*",
    "fresh": ".*-(cancer|friedman[23]|hastie|sparse|wilt|quantiles)",
}
SETS = {
    "BBOB in 2 dimensions": r"bbob-2d-.*",
    "BBOB in 5 dimensions": r"bbob-5d-.*",
    "BBOB in 10 dimensions": r"bbob-10d-.*",
    "HPOBench's networks": r"hpobench-.*",
    "Functions that were not developed on": r"bbob-\d+d-f(1|4|5|6|9|12|14|16|19|22)",
}


@cache
def regrets(file, measure):
    """By problem, variant and seed: 0 is the optimum, 1 the median end of random search, 3 the most that counts."""
    with (DOCS / "evidence" / file).open(newline="", encoding="utf-8") as text:
        rows = list(csv.DictReader(text))
    found = {}
    for problem in dict.fromkeys(row["problem"] for row in rows):
        mine = [row for row in rows if row["problem"] == problem]
        chance = np.median([float(row["final"]) for row in mine if row["variant"] == "random"])
        known = [float(row["final"]) for row in mine if row["variant"] == "optimum"]
        seen = [float(row["final"]) for row in mine if row["variant"] != "optimum"]
        best = known[0] if known and not math.isnan(known[0]) else min(seen)
        for row in mine:
            at = (float(row[measure]) - best) / max(chance - best, 1e-12)
            found.setdefault((problem, row["variant"]), {})[int(row["seed"])] = min(at, 3.0)
    return found


def by_problem(file, one, other, measure, problems, seeds):
    """The mean difference, problems won and lost with p, as they are printed, and how many problems and pairs."""
    found, means, pairs = regrets(file, measure), [], 0
    for problem in dict.fromkeys(problem for problem, _ in found):
        a, b = found.get((problem, one), {}), found.get((problem, other), {})
        common = [seed for seed in sorted(a.keys() & b.keys()) if seed in seeds]
        if common and re.fullmatch(problems, problem):
            means.append(np.mean([a[seed] - b[seed] for seed in common]))
            pairs += len(common)
    means = np.array(means)
    p = signed_rank(means)[0]
    least = f"{p:.0e}".replace("e-0", "e-") if p < 9.5e-4 else f"{p:.3f}" if p < 0.1 else f"{p:.2f}"
    counts = f"{(means < -1e-3).sum()} and {(means > 1e-3).sum()} (p {'< 1e-4' if p < 1e-4 else least})"
    return f"{round(means.mean(), 2) + 0.0:.2f}", counts, len(means), pairs


@pytest.mark.parametrize("heading", SETS)
def test_tests_beside_other_tuners_follow_from_the_runs(heading):
    text = (DOCS / "independent.md").read_text(encoding="utf-8")
    (section,) = [part for part in text.split("\n## ") if part.startswith(heading)]
    rows = [line for line in section.splitlines() if re.match(r"\| .+ \| \d+, \d+ \|", line)]
    assert len(rows) == 6
    for row in rows:
        name, numbers, *cells = [cell.strip() for cell in row.strip("|").split("|")]
        variant = VARIANTS.get(name, name.strip("`"))
        for measure, cell in zip(("final", "mean"), cells, strict=True):
            found = by_problem("independent/runs.csv", "auto", variant, measure, SETS[heading], range(5))
            mean, counts, problems, pairs = found
            assert numbers == f"{problems}, {pairs}"
            assert re.fullmatch(rf"{re.escape(mean)} \(-\d\.\d\d to -?\d\.\d\d\); {re.escape(counts)}", cell), (
                row,
                found,
            )


def carps_rows(runs, names):
    """Return the rows of CARP-S's tables: normalised cost, of its logarithm, rank; and `auto` less each."""
    costs, logs = [], []
    for task in dict.fromkeys(row["task"] for row in runs):
        mine = [row for row in runs if row["task"] == task]
        if {row["optimizer"] for row in mine}.issuperset(names):
            low, high = min(float(row["final"]) for row in mine), max(float(row["worst"]) for row in mine)
            finals = {(row["optimizer"], row["seed"]): float(row["final"]) - low for row in mine}
            seeds = [s for s in sorted({row["seed"] for row in mine}) if all((name, s) in finals for name in names)]
            of = np.array([[finals[name, s] for s in seeds] for name in names])
            costs.append([np.mean(each) / (high - low + 1e-8) for each in of])
            top = math.log(high - low + 1e-10) - math.log(1e-10) + 1e-8
            logs.append([np.mean(np.log(each + 1e-10) - math.log(1e-10)) / top for each in of])
    costs, logs = np.array(costs), np.array(logs)
    ranks = 1 + (costs[:, :, None] > costs[:, None]).sum(2) + ((costs[:, :, None] == costs[:, None]).sum(2) - 1) / 2
    for name, cost, log, rank in zip(names, costs.mean(0), logs.mean(0), ranks.mean(0), strict=True):
        yield rf"\| `{name}` \| {cost:.4f} \([^|]+ \| {log:.2f} \([^|]+ \| {rank:.2f} \([^|]+ \| [\d.]+ \|"
    for name, less in zip(names, (logs[:, :1] - logs).T, strict=True):
        if name != "auto":
            counts = f"{(less < 0).sum()} and {(less > 0).sum()} \\(p {signed_rank(less)[0]:.2g}\\)"
            yield rf"\| `{name}` \| {round(less.mean(), 2) + 0.0:.2f} \([^|]+ \| {counts} \|"


def test_scores_of_carps_follow_from_the_runs():
    with (DOCS / "evidence" / "independent" / "carps.csv").open(newline="", encoding="utf-8") as text:
        runs = list(csv.DictReader(text))
    page = (DOCS / "independent.md").read_text(encoding="utf-8")
    (section,) = [part for part in page.split("\n## ") if part.startswith("CARP-S")]
    printed = [line for line in section.splitlines() if line.startswith("| `") and "minus |" not in line]
    names = list(dict.fromkeys(row["optimizer"] for row in runs))
    wanted = list(carps_rows(runs, names))
    assert len(wanted) == 7
    for row, pattern in zip(printed, wanted, strict=True):
        assert re.fullmatch(pattern, row), (row, pattern)


def test_tests_of_the_default_follow_from_the_runs():
    lines = (DOCS / "evidence" / "default.md").read_text(encoding="utf-8").splitlines()
    tested = [line for line in lines if re.match(r"\| .*\d+ and \d+ \(p [^)]+\), \d+ and \d+ \(p [^)]+\) \|", line)]
    checked = 0
    for row in tested:
        name, *cells = [cell.strip() for cell in row.strip("|").split("|")]
        printed_counts = next(cell for cell in cells if "(p " in cell)
        file, one, other, seeds, problems = "default/validation.csv", "auto", VARIANTS.get(name), range(20, 22), r".*"
        if name in ("1", "2", "8", "64"):
            crew = "" if name == "1" else f"@{name}"
            file, one, other, seeds = "default/workers.csv", f"auto{crew}", f"optuna{crew}", range(20, 23)
        elif name in ("`auto` less `auto-as-numbers`", "`auto` less 0.1's"):
            other, seeds = "auto-as-numbers" if "numbers" in name else "auto-0.1", range(22, 24)
            problems = "nasbench-cifar10|kinds9|kinds6-noisy|hpolib-protein_structure|ridge|cancer-svm|deep|layers"
        elif name.startswith(("development, ", "validation, ")):
            file, one, other = "default/noise.csv", "auto-with-noise", "auto"
            seeds = range(10) if name.startswith("development") else range(50, 60)
            problems = f"{OF_TREES}.*" if name.endswith("trees") else f"(?!{OF_TREES}).*"
        elif name.startswith("far: "):
            file, one, other = "default/far.csv", "auto-looking-far", "auto"
            seeds = range(10, 16) if "development" in name else range(60, 68)
            with_first = f"(first-study|{OF_TREES}.*)"
            problems = with_first if name.endswith("trees") else f"(?!{with_first}).*"
        elif name.startswith(("rough: ", "in its place: ")):
            file, one, other = (
                "default/rough.csv",
                "auto-noise-for-far" if "place" in name else "auto-noise-if-rough",
                "auto",
            )
            seeds, problems = range(120, 123), TREES["development" if "development" in name else "validation"]
        elif name.startswith(("ranked: ", "less `")):
            file, other = "default/ranked.csv", name.split("`")[1] if "`" in name else "auto-0.2"
            part = re.search(r": (\w+), (jobs with trees)?", name)
            seeds = range(100, 116) if part[2] else range(100, 101) if part[1] == "development" else range(110, 112)
            problems = TREES[part[1]] if part[2] else f"(?!first-study|{OF_TREES}).*"
        elif name == "Optuna's TPE" and len(cells) == 3:
            seeds = range(30, 36)
        elif len(cells) > 3:  # every fourth problem, which SMAC ran on all of
            seeds, wanted = range(20, 21), {problem for problem, variant in regrets(file, "final") if variant == "smac"}
            problems = "|".join(map(re.escape, wanted))
        counts = (by_problem(file, one, other, measure, problems, seeds)[1] for measure in ("final", "mean"))
        assert printed_counts == ", ".join(counts), row
        checked += 1
    assert checked == 37
    text = " ".join(" ".join(lines).split())
    found = (
        by_problem("default/validation.csv", "auto", "auto-0.1", m, ".*", range(30, 36))[1] for m in ("mean", "final")
    )
    mean, final = (counts.replace("and", "and loses") for counts in found)
    mean = mean.replace(" (", " in the mean over the trials (")
    assert f"Of the 45 problems `auto` wins {mean}, with an interval below 0; at the end it wins {final}," in text
