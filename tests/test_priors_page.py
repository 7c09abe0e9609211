"""Checks docs/evidence/priors.md: its rows are read from the runs that are kept."""

from __future__ import annotations

import json

import numpy as np
import pytest

from benchmarks.priors import PARTS, share_of
from benchmarks.rows_jobs import KINDS
from tests.kept_runs import DOCS

ARMS = {
    "twenty-nine similar studies": "like:29",
    "nine similar studies": "like:9",
    "four similar studies": "like:4",
    "three similar studies": "like:3",
    "one similar study": "like:1",
    "one misleading study": "misleading:1",
    "a study of the very same job": "same:1",
    "the same, entered by `--from`": "entered:1",
}
OF_KIND = {"of these, boosting": "boosting", "forests": "forest", "support vector machines": "svm"}
PAGE = (DOCS / "evidence" / "priors.md").read_text(encoding="utf-8")


def row(words, file, part, seeds, arm):
    """A row of a table: regrets as shares of those without priors, with intervals over tasks."""
    rows = [json.loads(line) for line in (DOCS / "evidence" / file).read_text(encoding="utf-8").splitlines()]
    known = {(each["arm"], each["task"], each["seed"]): each["regret"] for each in rows}
    cells = []
    for budget in (5, 10, 20, 40):
        pairs = [
            (task, np.array([known[name, task, seed][budget - 1] for name in (arm, "none:0")]))
            for task in part
            for seed in seeds
        ]
        cells.append(share_of(arm, budget, pairs).measured.partition(";")[0] + ")")
    return f"| {words} | {' | '.join(cells)} |"


@pytest.mark.parametrize("seed", [2001, 2003])
@pytest.mark.parametrize("words", [words for words in ARMS if not words.startswith("four")])
def test_rows_of_networks_match_the_runs(words, seed):
    table = PAGE.partition(f"| priors, seed {seed} |")[2].partition("\n\n")[0]
    if f"| {words} |" in table:
        assert row(words, "priors.jsonl", PARTS["fresh"], [seed], ARMS[words]) in table
    else:
        assert (words, seed) == ("twenty-nine similar studies", 2003)


@pytest.mark.parametrize(
    "words", [words for words in (*ARMS, *OF_KIND) if words[:5] not in ("twent", "nine ", "three")]
)
def test_rows_of_small_jobs_match_the_runs(words):
    part = [task for task in PARTS["small"] if task.split()[0] == OF_KIND.get(words, task.split()[0])]
    assert set(OF_KIND.values()) == set(KINDS)
    found = row(words, "priors-small.jsonl", part, range(3001, 3005), ARMS.get(words, "like:4"))
    assert found in PAGE.partition("| priors, small jobs |")[2]
