"""Pages of figures without runs agree with the files beside them."""

from __future__ import annotations

import csv
import runpy
from pathlib import Path

import numpy as np

from raybo.experiments.papers import find_experiments

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "reproduction"


def cells(name, beginning):
    """Of the page's table rows that begin so."""
    lines = (RESULTS / name / "README.md").read_text(encoding="utf-8").splitlines()
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.startswith(f"| {beginning}")]


def test_trap_values_stay_below_the_maximum():
    best = [float(row[2]) for method in ("EI, slice", "Algorithm 1") for row in cells("wang-defreitas-fig1", method)]
    assert len(best) == 6
    assert max(best) <= 4.0


def test_lengthscale_page_matches_its_estimates():
    with (RESULTS / "uhe-fig1" / "estimates.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    estimates = {}
    for row in rows:
        estimates.setdefault(row["results"], []).append([float(row[name]) for name in ("most likely", "5 %", "95 %")])
    off, wide = [], []
    for name, numbers in estimates.items():
        likely, low, high = np.log(np.array(numbers) / 0.1).T
        covered = int(((low <= 0) & (high >= 0)).sum())
        assert covered >= 85  # of 100, of which 90 are due
        page = cells("uhe-fig1", name)[1]
        assert page[2:] == [f"{np.exp(np.median(np.abs(likely))):.3g} times", f"{covered} of 100"]
        off, wide = [*off, np.abs(likely)], [*wide, np.median(high - low)]
    text = (RESULTS / "uhe-fig1" / "README.md").read_text(encoding="utf-8")
    assert f"further off in {int((off[0] > off[1]).sum())} of 100 pairs" in text
    claims = runpy.run_path(str(ROOT / "trials" / "papers" / "unknown_hyperparameters_fig1.py"))["claims"]
    assert claims(*off)[-1] in text.split("\n## Claims\n")[1]
    assert wide[0] > wide[1]


def test_table_2_verdicts_follow_from_its_errors():
    table = runpy.run_path(str(ROOT / "trials" / "papers" / "unknown_context_table2.py"))
    errors = {law: {} for law in table["PUBLISHED"]}
    with (RESULTS / "context-table2" / "errors.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            errors[row["law"]].setdefault((int(row["contexts"]), False), []).append(float(row["whole line"]))
    errors = {law: {key: np.array(values) for key, values in by_key.items()} for law, by_key in errors.items()}
    assert table["claims"](errors) == cells("context-table2", "the error ")
    level = {law: dict.fromkeys(by_key, errors["normal"][10, False]) for law, by_key in errors.items()}
    words = [row[-1] for row in table["claims"](level)]  # no error falls, and none is larger
    assert words == ["**undecided**"] * 6 + ["**does not hold**"] * 4


def test_further_claims_follow_from_the_kept_runs(tmp_path):
    _, found = find_experiments(ROOT)
    found["further-claims"].write(tmp_path)
    assert (tmp_path / "README.md").read_bytes() == (RESULTS / "further-claims" / "README.md").read_bytes()
