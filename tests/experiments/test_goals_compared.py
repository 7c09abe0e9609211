"""Methods are compared on several metrics by hypervolume, and under constraints by their feasible trials."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import raybo
from raybo.common.errors import MethodError, ObjectiveError
from raybo.experiments import Entry, Experiment, Problem, compare, table
from raybo.experiments.measures import floor, hypervolumes, optimum, values, worst_seen
from raybo.experiments.results import read_rows
from raybo.experiments.run import runs

JOBS = """
import raybo

SPACE = {"x": raybo.Float(0, 1), "y": raybo.Float(0, 1)}


@raybo.objective(space=SPACE, metrics={"gain": "max", "cost": "min"}, constraints={"size": "<= 1.2"})
def two(config):
    x, y = config["x"], config["y"]
    return {"gain": x, "cost": x * x + y, "size": x + y}


@raybo.objective(space=SPACE, metric="v", mode="min", constraints={"size": "<= 1.2"})
def one(config):
    return {"v": -config["x"], "size": config["x"] + config["y"]}


@raybo.objective(space=SPACE, metric="v", mode="min", constraints={"size": "<= 0"})
def never(config):
    return {"v": -10.0 - config["x"], "size": 1.0}
"""


def compared(tmp_path, name, methods=("random", "sobol"), **more):
    tmp_path.mkdir(exist_ok=True)
    Path(tmp_path, "jobs.py").write_text(JOBS)
    problem = Problem(name, f"jobs.py:{name}", 6, **more)
    plan = Experiment("e", "title", [problem], [Entry(method, method) for method in methods], 2)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(raybo, "tune", None)  # everything is in this process
        return plan, compare(plan, tmp_path / "out", root=tmp_path, in_process=True)


def test_several_metrics_are_compared_by_hypervolume(tmp_path):
    plan, (rows, verdicts) = compared(tmp_path, "two")
    studies = {run: raybo.load(run.path) for run in runs(plan, tmp_path / "out")}
    at = worst_seen(plan.problems[0], studies)
    for name, worst in (("gain", min), ("cost", max)):
        seen = [trial.values[name] for study in studies.values() for trial in study.trials if trial.feasible]
        assert at[name] == worst(seen)
    for run, study in studies.items():
        curve = hypervolumes(study, at)
        assert len(curve) == 6
        assert (np.diff(curve) >= 0.0).all()
        assert curve[-1] == pytest.approx(study.hypervolume(at))
        (row,) = (row for row in rows if (row.method, row.seed) == (run.entry.name, run.seed))
        assert (row.mode, row.numbers["final_hypervolume"]) == ("max", curve[-1])
    assert [verdict.claim.measure for verdict in verdicts] == ["final_hypervolume"]
    assert read_rows(tmp_path / "out") == rows
    text = Path(tmp_path, "out", "README.md").read_text()
    assert "| problem | method | runs | hypervolume |" in text
    assert table(plan, rows)[0][:4] == ["problem", "method", "runs", "hypervolume"]  # of the plan, unchanged
    assert "its reference point is the worst value of each metric" in text


def test_infeasible_trials_count_as_the_worst_value_seen(tmp_path):
    plan, (rows, _) = compared(tmp_path, "one")
    for run in runs(plan, tmp_path / "out"):
        study = raybo.load(run.path)
        worst = max(trial.value for trial in study.trials)
        expected = [trial.value if trial.feasible else worst for trial in study.trials]
        assert not all(trial.feasible for trial in study.trials)
        np.testing.assert_array_equal(values(study), expected)
        (row,) = (row for row in rows if (row.method, row.seed) == (run.entry.name, run.seed))
        assert row.numbers["final_value"] == study.best.value


def test_an_infeasible_run_counts_as_the_overall_worst(tmp_path):
    """Not as the worst that it has itself seen: what breaks a constraint is often the better for it."""
    plan, _ = compared(tmp_path, "one")
    problem, studies = plan.problems[0], {run: raybo.load(run.path) for run in runs(plan, tmp_path / "out")}
    assert floor(problem, studies) == max(trial.value for study in studies.values() for trial in study.trials)
    best = min(trial.value for study in studies.values() for trial in study.trials if trial.feasible)
    assert optimum(problem, studies) == best
    hopeless, (none, verdicts) = compared(tmp_path / "none", "never")
    infeasible = {run: raybo.load(run.path) for run in runs(hopeless, tmp_path / "none" / "out")}
    run, study = next(iter(infeasible.items()))
    np.testing.assert_array_equal(values(study, floor=3.0), [3.0] * 6)
    shared = {**studies, replace(run, problem=problem): study}
    assert optimum(problem, shared) == best
    assert floor(problem, shared) == floor(problem, studies)
    assert not any("final_value" in row.numbers for row in none)
    assert {verdict.word for verdict in verdicts} == {"not judged"}


def test_plans_unfit_for_several_metrics_are_refused_early(tmp_path):
    with pytest.raises(ObjectiveError, match="several metrics have no one optimum; leave it out"):
        compared(tmp_path, "two", optimum=1.0)
    with pytest.raises(MethodError, match="turbo takes one metric and no constraints"):
        compared(tmp_path, "two", ("random", "turbo"))
    both = [Problem(name, f"jobs.py:{name}", 6) for name in ("one", "two")]
    plan = Experiment("e", "title", both, [Entry("random", "random")], 1)
    with pytest.raises(ObjectiveError, match="with one metric and with several cannot be compared in one"):
        compare(plan, tmp_path / "out", root=tmp_path, in_process=True)
    assert not Path(tmp_path, "out", "runs").exists()
