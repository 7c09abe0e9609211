"""Runs compared at equal cost."""

from __future__ import annotations

import pytest

import raybo
from raybo.common.errors import MethodError
from raybo.experiments import Entry, Experiment, Problem, compare
from raybo.record.budget import Budget, used_by_each

JOB = """
import raybo


@raybo.objective(space={"x": raybo.Float(0, 1)}, metric="y", mode="max")
def job(config):
    return {"y": config["x"], "tokens": 1 + 9 * config["x"]}
"""


STEPS = """
import raybo


@raybo.objective(space={"x": raybo.Float(0, 1)}, metric="y", mode="max", steps=9)
def job(config):
    for step in range(1, 10):
        yield {"y": config["x"] - 1 / step, "tokens": 10 * step}
"""


def test_pruned_trials_cost_what_they_reported_last(tmp_path):
    (tmp_path / "job.py").write_text(STEPS)
    entries = [Entry("whole", "random"), Entry("pruned", "random", scheduler="asha")]
    plan = Experiment("e", "title", [Problem("p", "job.py", 12)], entries, 1, per="tokens")
    compare(plan, tmp_path / "out", root=tmp_path, in_process=True)
    runs = [raybo.load(path) for path in sorted((tmp_path / "out").rglob("*.db"))]
    cheapest = min(runs, key=lambda run: sum(trial.step for trial in run.trials))
    assert cheapest.count(raybo.State.PRUNED)
    used = [used_by_each(run.events, Budget(1.0, cost="tokens")) for run in runs]
    assert [sum(each) for each in used] == [10 * sum(trial.step for trial in run.trials) for run in runs]


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
