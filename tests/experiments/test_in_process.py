"""Studies in this process match those of `raybo.tune` with one worker, resume, and end when time is over."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

import raybo
from raybo.common.errors import JournalError, MissingExtra
from raybo.experiments import Entry, Experiment, HeldOut, Problem, compare
from raybo.experiments.in_process import tune_here
from raybo.experiments.results import read_rows
from raybo.job.loading import load_objective
from raybo.record.events import Kind
from raybo.record.states import State
from raybo.study.replay import replay

JOB = """
import raybo


@raybo.objective(space={"x": raybo.Float(0, 1), "n": raybo.Integer(1, 9)}, metric="v", mode="min",
                 context={"c": raybo.Float(0, 1)})
def job(config, *, shift=0.0):
    if config["n"] == 9:
        raise ValueError("nine")
    return {"v": (config["x"] - 0.3) ** 2 + shift, "c": config["x"] / 2, "twice": 2.0}
"""


@pytest.fixture
def job(tmp_path):
    Path(tmp_path, "job.py").write_text(JOB)
    return load_objective(str(tmp_path / "job.py"))


def run(job, path, trials=8, between=lambda: None, method="sbo-kde"):
    return tune_here(job, trials=trials, method=method, seed=3, storage=path, options={"initial": 3}, between=between)


def untimed(study):
    """The events, without what no two runs share."""
    compared = ("x", "values", "tags", "value", "c", "context", "metrics", "reason", "trials")
    return [
        (event.kind, event.trial, {k: event.data[k] for k in compared if k in event.data}) for event in study.events
    ]


def test_an_in_process_study_replays_from_its_journal(job, tmp_path):
    study = run(job, tmp_path / "a.db")
    assert study.count(State.FINISHED, State.FAILED) == len(study.trials) == study.planned == 8
    assert [event.number for event in study.events] == list(range(1, len(study.events) + 1))
    assert study.trials[0].context is not None
    assert study.trials[0].details["metrics"] == {"twice": 2.0}
    assert all(trial.suggest_processor_seconds is not None for trial in study.trials)
    assert not [again for again in replay(study) if again.differs]


def test_an_interrupted_study_continues_with_the_same_trials(job, tmp_path):
    whole = run(job, tmp_path / "whole.db")
    for stop in (0, 3, 7):
        left = iter(range(stop))

        def between(left=left):
            if next(left, None) is None:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            run(job, tmp_path / f"{stop}.db", between=between)
        assert raybo.load(tmp_path / f"{stop}.db").count(State.PENDING) == 1
        resumed = run(job, tmp_path / f"{stop}.db")
        events = [event for event in untimed(resumed) if event[0] is not Kind.RETRIED]
        assert events == untimed(whole)
        assert resumed.trials[stop].attempt == 2


def test_ctrl_c_in_a_trial_is_no_failure_of_it(tmp_path):
    """It used to be: the trial failed, and the study went on."""
    interrupts = [2]

    @raybo.objective(space={"x": raybo.Float(0, 1)}, metric="v", mode="min")
    def job(config):
        if raybo.current_trial().number in interrupts:
            interrupts.clear()
            raise KeyboardInterrupt
        return config["x"]

    with pytest.raises(KeyboardInterrupt):
        run(job, tmp_path / "a.db", method="gp-ucb")
    assert [trial.state for trial in raybo.load(tmp_path / "a.db").trials][2:] == [State.PENDING]
    assert run(job, tmp_path / "a.db", method="gp-ucb").count(State.FINISHED) == 8
    whole = run(job, tmp_path / "b.db", method="gp-ucb")
    assert whole.trials[7].config == raybo.load(tmp_path / "a.db").trials[7].config


@pytest.mark.slow
def test_in_process_runs_equal_runs_on_ray(job, tmp_path):
    here = run(job, tmp_path / "here.db", method="gp-ucb")
    on_ray = raybo.tune(job, trials=8, method="gp-ucb", seed=3, storage=tmp_path / "ray.db", workers=1, initial=3)
    assert [(t.config, t.value) for t in here.trials] == [(t.config, t.value) for t in on_ray.trials]


def test_missing_matplotlib_is_reported_before_the_first_run(job, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    plan = Experiment("e", "title", [Problem("p", "job.py", 4)], [Entry("a", "random")], 1)
    with pytest.raises(MissingExtra, match="figures need matplotlib"):
        compare(plan, tmp_path / "out", root=tmp_path, in_process=True)
    assert not (tmp_path / "out").exists()


def test_an_experiment_out_of_time_stops_and_continues(job, tmp_path):
    """Results are of the runs that are complete, wherever they are in the order."""
    entries = [Entry("costly", "random", costly=True), Entry("a", "random"), Entry("b", "sobol")]
    plan = Experiment("e", "title", [Problem("p", "job.py", 4)], entries, 2)
    out = tmp_path / "out"
    assert compare(plan, out, root=tmp_path, in_process=True, until=0.0)[0] == []
    assert not (out / "runs.csv").exists()
    seen = []

    def watch(done, of, finished):
        seen.append((finished.entry.name, finished.seed, done, of))
        if done == 3:
            now[0] = time.monotonic() + 1e9

    now = [0.0]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("raybo.experiments.run.time.monotonic", lambda: now[0])
        rows, _ = compare(plan, out, root=tmp_path, in_process=True, until=1.0, watch=watch)
    assert [run[:2] for run in seen] == [("a", 0), ("b", 0), ("a", 1)]
    assert [(row.method, row.seed) for row in read_rows(out)] == [(row.method, row.seed) for row in rows]
    assert {(row.method, row.seed) for row in rows} == {("a", 0), ("a", 1), ("b", 0)}
    assert "| p | b | 1 |" in (out / "README.md").read_text()
    rows, verdicts = compare(plan, out, root=tmp_path, in_process=True)
    assert len(rows) == 6
    assert {verdict.word for verdict in verdicts} == {"not judged"}


def test_complete_runs_are_written_without_time_left(job, tmp_path):
    """With what was evaluated apart from the runs, which is not evaluated again."""
    problem = Problem("p", "job.py", 4, held_out=HeldOut({"shift": 1.0}))
    plan = Experiment("e", "title", [problem], [Entry("a", "random")], 2)
    rows, _ = compare(plan, tmp_path / "out", root=tmp_path, in_process=True)
    assert len(rows) == 2
    assert compare(plan, tmp_path / "out", root=tmp_path, in_process=True, until=0.0)[0] == rows


def test_complete_runs_of_another_experiment_are_refused(job, tmp_path):
    """They used to be: only runs that were continued were compared with what is run now."""
    out = tmp_path / "out"

    def compared(*entries, **of_problem):
        plan = Experiment("e", "title", [Problem("p", "job.py", 4, **of_problem)], [*entries], 1)
        return compare(plan, out, root=tmp_path, in_process=True)[0]

    entry = Entry("a", "gp-ucb", {"initial": 2})
    first = compared(entry)
    assert compared(entry) == first
    with pytest.raises(JournalError, match=r"a-0.db: .* settings is {} .* and {\"shift\": 5.0} now; .* --output$"):
        compared(entry, settings={"shift": 5.0})
    with pytest.raises(JournalError, match=r"options is {\"initial\": 2} .* and {\"initial\": 3} now"):
        compared(Entry("a", "gp-ucb", {"initial": 3}))
    with pytest.raises(JournalError, match=r"it holds 4 trials, more than the 3 of this comparison; .* --output$"):
        compare(Experiment("e", "title", [Problem("p", "job.py", 3)], [entry], 1), out, root=tmp_path, in_process=True)
    Path(tmp_path, "job.py").write_text(JOB.replace("Float(0, 1), ", "Float(0, 20), "))
    with pytest.raises(JournalError, match=r"x is Float.* and Float.*high=20\.0"):
        compared(entry)
