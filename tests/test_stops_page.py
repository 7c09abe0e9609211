"""What the page says of when to stop is what the rule makes of the searches that are kept."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks import stops

DOCS = Path(__file__).parents[1] / "docs" / "evidence"
ROWS = DOCS / "stops.jsonl"


@pytest.mark.parametrize("kind", ["boosting", "lcbench"])
def test_the_shares_are_those_of_the_kept_searches(kind):
    rows = [json.loads(line) for line in ROWS.read_text().splitlines()]
    names = list(dict.fromkeys(row["problem"] for row in rows if row["kind"] == kind))
    seeds = sorted({row["seed"] for row in rows})
    assert len(names) == 10
    problems = [SimpleNamespace(kind=kind, name=name) for name in names]
    found = list(stops.figures(kind, problems, range(seeds[0], seeds[-1] + 1), ROWS))
    shares = [f"{figure.measured.split(';')[0]})" for figure in found]
    page = (DOCS / "budget.md").read_text()
    for price, share in zip(stops.PRICES, shares, strict=True):
        [line] = [line for line in page.splitlines() if line.startswith(f"| {price:g} |")]
        assert share in line
