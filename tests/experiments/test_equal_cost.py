"""Runs compared at equal cost."""

from __future__ import annotations

import pytest

from raybo.common.errors import MethodError
from raybo.experiments import Entry, Experiment, Problem, compare

JOB = """
import raybo


@raybo.objective(space={"x": raybo.Float(0, 1)}, metric="y", mode="max")
def job(config):
    return {"y": config["x"], "tokens": 1 + 9 * config["x"]}
"""


def test_runs_are_cut_at_the_cost_of_the_cheapest(tmp_path):
    (tmp_path / "job.py").write_text(JOB)
    entries = [Entry("a", "random"), Entry("b", "sobol")]

    def rows(per, out="out"):
        plan = Experiment("e", "title", [Problem("p", "job.py", 12)], entries, 2, per=per)
        return compare(plan, tmp_path / out, root=tmp_path, in_process=True)[0]

    whole, equal = rows(None), rows("tokens")
    assert [(row.method, row.seed) for row in whole] == [(row.method, row.seed) for row in equal]
    values = [(row.numbers["final_value"], cut.numbers["final_value"]) for row, cut in zip(whole, equal, strict=True)]
    assert all(cut <= value for value, cut in values)
    assert any(cut < value for value, cut in values)
    assert len(rows("seconds")) == 4
    with pytest.raises(
        MethodError, match=r"p, a, seed 0: no trial says what it cost; return 'dollars' with the result"
    ):
        rows("dollars")
