"""The benchmark of ending early: simulated workers, budgets, and that kept runs are not run again."""

from __future__ import annotations

import numpy as np
import pytest

import raybo
from benchmarks import early, early_problems
from benchmarks.early_runs import LooksThenBest, OptunaSearch, Problem, RayboSearch, run

SPACE = raybo.Space({"x": raybo.Float(0, 1), "n": raybo.Integer(1, 9)})


def curve(config):
    return (1 - (config["x"] - 0.3) ** 2) * np.arange(1, 14) / 13


TOY = Problem("toy", SPACE, 13, curve, best=1.0, chance=0.9)


@pytest.mark.parametrize("workers", [1, 5])
@pytest.mark.parametrize(
    "made",
    [
        lambda: RayboSearch(TOY, 0, "random", None),
        lambda: RayboSearch(TOY, 0, "random", "asha", variant="promote", eta="2"),
        lambda: RayboSearch(TOY, 0, "auto", "curve"),
        lambda: LooksThenBest(TOY, 0, 10 * 13),
        lambda: LooksThenBest(TOY, 0, 2 * 13),  # with five workers, some are free before enough looks are done
        lambda: OptunaSearch(TOY, 0, "hyperband"),
    ],
)
def test_recommendations_stay_within_the_budget(made, workers):
    course = run(TOY, made(), 10 * 13, 0, workers)
    assert all(at <= 10 * 13 for at, _ in course.spent)
    assert course.after(0) is None
    assert 0.0 <= TOY.regret(course.after(10 * 13)) < 2.0
    again = run(TOY, made(), 10 * 13, 0, workers)
    assert course.spent == again.spent


def test_without_a_scheduler_a_run_is_a_run():
    course = run(TOY, RayboSearch(TOY, 0, "random", None), 5 * 13, 0)
    assert course.spent[-1][0] % 13 == 0
    best = max(at for at, _ in course.spent)
    assert course.after(best) == pytest.approx(max(value for at, value in course.spent if at % 13 == 0))


def test_runs_that_are_kept_are_not_run_again(tmp_path, monkeypatch):
    monkeypatch.setitem(early.PROBLEMS, "toy", lambda: TOY)
    given = {"seeds": 2, "problems": "toy", "entries": "random,looks", "budgets": "2,4", "out": str(tmp_path / "a.csv")}
    first = list(early.figures(**given))
    assert len((tmp_path / "a.csv").read_text().splitlines()) == 2 + 4
    monkeypatch.setitem(early.PROBLEMS, "toy", None)
    assert [figure.measured for figure in early.figures(**given)] == [figure.measured for figure in first]


def test_jobs_run_only_as_far_as_needed(monkeypatch):
    runs = []

    @raybo.objective(space=SPACE, metric="loss", mode="min", steps=26)
    def job(config):
        runs.append(0)
        for step in range(26):
            runs[-1] += 1
            with raybo.saving() as directory:
                (directory / "model").write_text("trained")
            yield {"loss": config["x"] * step}

    monkeypatch.setitem(early_problems.JOBS, "job", job)
    monkeypatch.setitem(early_problems.REFERENCES, "job", (0.0, -1.0))
    problem = early_problems.of_job.__wrapped__("job")
    curve = problem.curve({"x": 0.5, "n": 1})
    assert runs == []
    assert [curve[place] for place in range(3)] == [0.0, -0.5, -1.0]
    assert runs == [2, 6]
    assert problem.curve({"x": 0.5, "n": 1})[5] == -2.5  # the same configuration again
    assert runs == [2, 6]
    assert (curve[-1], curve[25]) == (-12.5, -12.5)
    assert runs == [2, 6, 26]


def test_jobs_are_tabulated_in_their_own_units(tmp_path, monkeypatch):
    monkeypatch.setitem(early.PROBLEMS, "boosting", lambda: TOY)
    monkeypatch.setitem(early.PROBLEMS, "network", lambda: TOY)
    given = {"seeds": 1, "problems": "jobs", "entries": "random", "budgets": "2", "out": str(tmp_path / "a.csv")}
    told = [figure.what for figure in early.figures(**given)]
    assert told == [f"random of {name}, 1 worker: regret after whole runs" for name in ("boosting", "network")]
