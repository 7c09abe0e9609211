"""The figures on the page on budgets follow from the kept runs."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks import budget, stops

DOCS = Path(__file__).parents[1] / "docs" / "evidence"
PAGE = (DOCS / "budget.md").read_text()
ROWS = DOCS / "stops.jsonl"


def kept(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_regret_with_cost_is_that_of_the_kept_searches():
    rows = kept(DOCS / "budget.jsonl")
    tasks, arms = dict.fromkeys(row["problem"] for row in rows), ("cost", "plain")
    found = [
        [[row["regret"] for row in rows if (row["problem"], row["arm"]) == (t, arm)] for arm in arms] for t in tasks
    ]
    means = np.mean(found, axis=2)
    assert np.shape(found) == (10, 2, 3)
    share = budget._share("lcbench", "cost", means, 3)
    assert f"the same rule has {share.measured.split(';')[0]})" in PAGE
    assert ((means[:, 0] < means[:, 1]).sum(), share.met) == (8, True)


@pytest.mark.parametrize("kind", ["boosting", "lcbench"])
def test_the_shares_are_those_of_the_kept_searches(kind):
    rows = kept(ROWS)
    names = list(dict.fromkeys(row["problem"] for row in rows if row["kind"] == kind))
    seeds = sorted({row["seed"] for row in rows})
    assert len(names) == 30
    problems = [SimpleNamespace(kind=kind, name=name) for name in names]
    found = list(stops.figures(kind, problems, range(seeds[0], seeds[-1] + 1), ROWS))
    shares = [f"{figure.measured.split(';')[0]})" for figure in found]
    for price, share in zip(stops.PRICES, shares, strict=True):
        [line, _] = [line for line in PAGE.splitlines() if line.startswith(f"| {price:g} |")]
        assert share in line


@pytest.mark.parametrize(
    ("kind", "seeds"), [("boosting", (800, 2)), ("boosting", (900, 2)), ("lcbench", (800, 4)), ("lcbench", (900, 2))]
)
def test_the_further_shares_are_those_of_the_kept_searches(kind, seeds):
    path, (first, count) = DOCS / "stops-further.jsonl", seeds
    found = [row["problem"] for row in kept(path) if (row["kind"], row["seed"]) == (kind, first)]
    problems = [SimpleNamespace(kind=kind, name=name) for name in found]
    assert len(problems) == 30
    figures = list(stops.figures(kind, problems, range(first, first + count), path))
    for price, figure in zip(stops.PRICES, figures, strict=True):
        [_, line] = [line for line in PAGE.splitlines() if line.startswith(f"| {price:g} |")]
        assert f"{figure.measured.split(';')[0]})" in line
