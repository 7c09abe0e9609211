"""Recommendations are evaluated apart from the runs, stored beside them, and become curves and measures."""

from __future__ import annotations

import dataclasses
import gzip
import json
from pathlib import Path

import numpy as np
import pytest

import raybo
from raybo.experiments import Claim, Entry, Experiment, Figure, HeldOut, Problem, page
from raybo.experiments.held_out import evaluate, held_out_curve, read, recommendations
from raybo.experiments.measures import curve, measure
from raybo.experiments.output import write
from raybo.experiments.papers import find_experiments
from raybo.experiments.results import measured
from raybo.experiments.run import run_all, runs
from raybo.experiments.verdicts import judge
from raybo.job.loading import load_objective
from raybo.record.description import Description
from raybo.record.events import KINDS, Asked, Kind
from raybo.record.goals import Goals
from raybo.study.study import Study

SPACE = raybo.Space({"x": raybo.Float(0, 10)})
PLAN = HeldOut({"shift": 0.0}, last={"shift": 100.0}, metric="truth")
PROBLEM = Problem("p", "job.py", trials=5, held_out=PLAN)
JOB = """
import raybo


@raybo.objective(space={"x": raybo.Float(0, 10)}, metric="v", mode="max")
def job(config, *, shift=3.0, seed=0):
    with open("calls", "a") as file:
        file.write(f"{seed} ")
    if config["x"] > 9:
        raise ValueError("too far")
    return {"v": config["x"] + shift, "truth": 10 * config["x"] + shift}
"""


def study_of(path: Path, outcomes, centres=None, mode="max", values=None, last=None) -> Study:
    """Return a study of these outcomes (None failed), with centres (None for no tag) and held-out values."""
    events = []
    for number, value in enumerate(outcomes):
        centre = centres[number] if centres else None
        tags = {} if centre is None else {"centre": [centre / 10]}
        data = {"x": [number / 10], "values": [float(number)], "tags": tags, "seen": 0, "suggest_seconds": 0.0}
        events.append(Asked.of(number, data))
        ended = {"reason": "no"} if value is None else {"value": value}
        events.append(KINDS[Kind.FAILED if value is None else Kind.TOLD].of(number, ended))
    method = "gibo" if centres else "random"
    made = Study(Description("job", Goals(("v",), (mode,)), SPACE, method, 0), events, path)
    if values is not None:
        trials = [number for number, _ in recommendations(made)]
        held_out = {"plan": {}, "trials": trials, "values": values, "last": values[-1] if last is None else last}
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_suffix(".held-out.json").write_text(json.dumps(held_out))
    return made


# ---- what is recommended


def test_a_centre_is_recommended_from_its_trial_on(tmp_path):
    study = study_of(tmp_path / "a.db", [1.0, 9.0, 2.0, 3.0], centres=[5.0, None, None, 7.0])
    assert recommendations(study) == [(0, {"x": 5.0}), (3, {"x": 7.0})]


@pytest.mark.parametrize(("mode", "numbers"), [("max", [1, 3]), ("min", [1, 2])])
def test_best_trial_is_recommended_without_a_centre(tmp_path, mode, numbers):
    study = study_of(tmp_path / "a.db", [None, 4.0, 2.0, 5.0, 5.0], mode=mode)
    assert recommendations(study) == [(number, {"x": float(number)}) for number in numbers]


# ---- curves and measures


def test_curves_stand_until_the_next_recommendation(tmp_path):
    study = study_of(
        tmp_path / "a.db", [1.0] * 5, centres=[1.0, None, 2.0, None, 3.0], values=[4.0, 9.0, 6.0], last=5.0
    )
    np.testing.assert_array_equal(curve("held_out", study, PROBLEM, 0.0), [4, 4, 9, 9, 6])
    np.testing.assert_array_equal(curve("best_held_out", study, PROBLEM, 0.0), [4, 4, 9, 9, 9])
    expected = {"early_held_out": 4.0, "mean_held_out": 7.0, "best_held_out": 9.0, "final_held_out": 5.0}
    assert {kind: measure(kind, study, PROBLEM, 0.0) for kind in expected} == expected


def test_best_held_out_is_the_least_when_minimising(tmp_path):
    study = study_of(tmp_path / "a.db", [1.0] * 3, centres=[1.0, 2.0, 3.0], values=[4.0, 9.0, 2.0], mode="min")
    np.testing.assert_array_equal(curve("best_held_out", study, PROBLEM, 0.0), [4, 4, 2])


def test_a_failed_evaluation_counts_as_the_worst(tmp_path):
    study = study_of(tmp_path / "a.db", [None, 1.0, 2.0, 3.0], values=[4.0, None, 7.0])
    np.testing.assert_array_equal(held_out_curve(study), [4, 4, 4, 7])  # before the first one too


def test_missing_held_out_values_are_refused(tmp_path):
    with pytest.raises(raybo.JournalError, match=r"a\.held-out\.json: its held-out values cannot be read"):
        read(study_of(tmp_path / "a.db", [1.0]))


@pytest.mark.parametrize("mode", ["max", "min"])
def test_claims_and_pages_are_of_held_out_values(tmp_path, mode):
    claims = [Claim("a is better", "best_held_out", "a", "b"), Claim("b is better", "mean_held_out", "b", "a")]
    entries = [Entry("a", "random"), Entry("b", "random")]
    plan = Experiment("e", "title", [PROBLEM], entries, 7, claims, "best_held_out")
    good = {"a": 9.0, "b": 5.0} if mode == "max" else {"a": 5.0, "b": 9.0}
    noisy = {"a": 1.0, "b": 1000.0}  # the returned values are meaningless
    studies = {
        run: study_of(
            run.path,
            [noisy[run.entry.name]] * 5,
            centres=[1.0] + [None] * 4,
            mode=mode,
            values=[good[run.entry.name] + 0.01 * run.seed],
        )
        for run in runs(plan, tmp_path)
    }
    rows = measured(plan, studies)
    assert [verdict.word for verdict in judge(plan, rows)] == ["holds", "does not hold"]
    files = write(plan, studies, tmp_path)
    assert files[0].read_text().splitlines()[0] == (
        "problem,method,seed,mode,final_held_out,best_held_out,mean_held_out,early_held_out"
    )
    assert len(gzip.decompress(files[1].read_bytes()).splitlines()) == 1 + 3 * 2 * 5
    text = page(plan, rows)
    assert "1000" not in text
    assert "do not count against its budget" in text


def test_problems_are_held_out_all_or_none():
    other = dataclasses.replace(PROBLEM, name="q", held_out=None)
    with pytest.raises(raybo.MethodError, match="all or none"):
        Experiment("e", "t", [PROBLEM, other], [Entry("a", "random")], 1)


# ---- for real


def test_held_out_metric_may_come_last(tmp_path):
    """As trials/linear_policy.py does, whose reports hold the score, and not the return that figures show."""
    job = JOB.replace('    with open("calls", "a") as file:\n        file.write(f"{seed} ")\n', "")
    job = job.replace("    return {", '    raybo.report({"v": config["x"] + shift}, step=1)\n    return {')
    (tmp_path / "job.py").write_text(job)
    problem = dataclasses.replace(PROBLEM, seeded="seed")
    plan = Experiment("e", "t", [problem], [Entry("random", "random")], 1, curve="best_held_out")
    ((_, study),) = run_all(plan, tmp_path, tmp_path, 0).items()
    xs = [config["x"] for _, config in recommendations(study)]
    assert read(study).values == [10 * x for x in xs]
    assert read(study).last == 10 * xs[-1] + 100


@pytest.mark.ray
def test_recommendations_are_evaluated_once_per_plan(tmp_path, ray_session, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("job.py").write_text(JOB.replace('"calls"', repr(str(tmp_path / "calls"))))
    problem = dataclasses.replace(PROBLEM, trials=6, seeded="seed")
    plan = Experiment("e", "t", [problem], [Entry("random", "random")], 2, curve="best_held_out")
    studies = run_all(plan, tmp_path, tmp_path, 1)
    for run, study in studies.items():
        held_out = read(study)
        truth = [10 * config["x"] for _, config in recommendations(study)]
        assert held_out.values == truth
        assert held_out.last == truth[-1] + 100
        assert held_out.trials[0] == min(t.number for t in study.trials if t.state is raybo.State.FINISHED)
        assert study.description.settings["seed"] == run.seed

    calls = Path("calls").read_text()
    assert {*calls.split()} == {"0", "1"}
    run_all(plan, tmp_path, tmp_path, 1)
    assert Path("calls").read_text() == calls

    (first, *_) = studies.values()
    objective = load_objective("job.py").with_settings(seed=0)
    evaluate(first, objective, dataclasses.replace(PLAN, metric="v", last={}))
    assert read(first).last == recommendations(first)[-1][1]["x"]


def test_figure_1_of_local_optimisation_is_computed(tmp_path):
    _, experiments = find_experiments(Path(__file__).parents[2])
    figure = experiments["local-fig1"]
    assert isinstance(figure, Figure)
    figure.write(tmp_path / "new" / "local-fig1")
    files = {file.name: file for file in (tmp_path / "new" / "local-fig1").iterdir()}
    assert {*files} == {"README.md", "curves.csv", "figure.png"}
    x, f, mean, bound, parabola, wider = np.loadtxt(files["curves.csv"], delimiter=",", skiprows=1).T
    assert (f <= bound + 1e-9).all()
    assert (bound <= parabola + 1e-9).all()
    assert (parabola <= wider + 1e-9).all()
    start = np.flatnonzero(x == 0.0)
    # at x0 the bounds agree, and the parabola has the mean's slope there
    np.testing.assert_allclose(bound[start], parabola[start], rtol=1e-9)
    slope = (mean[start + 1] - mean[start - 1]) / (x[start + 1] - x[start - 1])
    np.testing.assert_allclose((parabola[start + 1] - parabola[start - 1]) / 0.02, slope, rtol=1e-3)


def test_what_breaks_a_constraint_is_not_recommended(tmp_path):
    goals = {"metrics": {"v": "max"}, "constraints": {"mem": "<= 0.5"}}
    searcher = raybo.Searcher(SPACE, "random", seed=0, storage=tmp_path / "a.db", **goals)
    for v, mem in ((3.0, 1.0), (4.0, 1.0), (1.0, 0.1), (2.0, 0.1)):
        searcher.tell(searcher.ask(), {"v": v, "mem": mem})
    searcher.close()
    assert [number for number, _ in recommendations(raybo.load(tmp_path / "a.db"))] == [2, 3]
