"""What the workers did when."""

from __future__ import annotations

import json
from dataclasses import replace

import raybo
from raybo.events import Event, Kind, State
from raybo.integrations.optuna_journal import END_TRIAL, optuna_exporter
from raybo.journal import Description
from raybo.reporting.timeline import spans
from raybo.study import Study


def retried() -> Study:
    """One trial that failed after a second, was wanted again a minute later, and finished after two."""
    searcher = raybo.Searcher({"x": raybo.Float(0, 1)}, "random", seed=0)
    asked = searcher.propose(searcher.history)
    entries = [
        (asked, 0),
        (Event(Kind.FAILED, 0, {"reason": "no", "attempt": 1}), 1),
        (Event(Kind.RETRIED, 0, {"reason": "wanted again", "attempt": 2, "losses": 0}), 60),
        (Event(Kind.TOLD, 0, {"value": 0.5, "attempt": 2}), 62),
    ]
    events = [
        replace(event, number=i, at=f"2026-01-01T00:{second // 60:02d}:{second % 60:02d}+00:00")
        for i, (event, second) in enumerate(entries, 1)
    ]
    return Study(Description("job", "value", "max", searcher.space.to_json(), "random", 0), events)


def test_a_failed_trial_that_ran_again_has_both_its_spans():
    assert [(span.begin, span.end, span.state) for span in spans(retried())] == [
        (0.0, 1.0, State.FAILED),
        (60.0, 62.0, State.FINISHED),
    ]


def test_in_optuna_a_failed_trial_that_ran_again_ends_once(tmp_path):
    optuna_exporter(str(tmp_path / "optuna.log"))(retried())
    lines = [json.loads(line) for line in (tmp_path / "optuna.log").read_text().splitlines()]
    assert [line["values"] for line in lines if line["op_code"] == END_TRIAL] == [[0.5]]


def test_a_failed_trial_that_runs_again_has_forgotten_its_end():
    study = retried()
    pending = Study(study.description, study.events[:3]).trials[0]
    assert (pending.state, pending.attempt, pending.seconds, pending.details) == (State.PENDING, 2, None, {})
    assert (study.trials[0].state, study.trials[0].value) == (State.FINISHED, 0.5)
