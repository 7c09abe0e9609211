"""The study that users hold: trials in order, the best one, tables."""

from __future__ import annotations

import builtins
import contextlib
import math
import re

import pytest

import raybo
from raybo.common.errors import JournalError, MissingExtra, TrialError, install_command
from raybo.journal import Journal
from raybo.record.description import Description
from raybo.record.events import KINDS, Asked, Failed, Planned, Retried, Stopped, Told
from raybo.record.goals import Goals
from raybo.record.states import State
from raybo.space import Categorical, Float, Integer, Space
from raybo.study.study import Study, load

SPACE = Space({"lr": Float(1e-3, 1, log=True), "m": {"n": Integer(1, 9), "c": Categorical(["a", None])}})


def description(mode="max", space=SPACE):
    return Description("job", Goals(("accuracy",), (mode,)), space, "random", 3)


def events():
    def asked(number, values):
        return Asked(number, x=[0.5] * 3, values=values, tags={"t": number}, seen=0)

    listed = [
        Planned(trials=9),
        asked(0, [0.1, 3, 0]),
        asked(1, [0.2, 4, 1]),
        asked(2, [0.3, 5, 0]),
        asked(3, [0.4, 6, 1]),
        asked(4, [0.5, 7, 1]),
        asked(5, [0.6, 8, 1]),
        Told(2, value=0.75, seconds=1.5, attempt=1, host="h", metrics={"f1": 0.5}),
        Told(0, value=0.75, seconds=2.5, attempt=1),
        Failed(1, reason="ValueError: no", traceback="...", attempt=1),
        Retried(3, reason="its worker died", attempt=2),
        Failed(3, reason="its worker died", cause="lost", attempt=2),
        Stopped(4, reason="stopped by the user", attempt=1),
    ]
    return [KINDS[e.kind].of(e.trial, e.data, number=number) for number, e in enumerate(listed, 1)]


@pytest.fixture
def study():
    return Study(description(), events())


def test_reruns_are_no_trials_of_the_plan():
    def trial(number, tags):
        return [
            Asked(number, x=[0.5] * 3, values=[0.1, 3, 0], tags=tags, seen=0),
            Told(number, value=0.5, seconds=1.0, attempt=1),
        ]

    begun = [Planned(trials=2), *trial(0, {}), *trial(1, {"origin": "confirmed", "confirms": 0})]
    done = [*begun, *trial(2, {})]
    ends = [
        Study(description(), [KINDS[e.kind].of(e.trial, e.data, number=n) for n, e in enumerate(listed, 1)]).ended
        for listed in (begun, done)
    ]
    assert ends == ["", "all 2 trials have been run"]


def test_trials_are_listed_as_asked_with_their_outcomes(study):
    assert [trial.number for trial in study.trials] == list(range(6))
    assert [str(trial.state) for trial in study.trials] == [
        "finished",
        "failed",
        "finished",
        "lost",
        "stopped",
        "pending",
    ]
    assert [trial.value for trial in study.trials] == [0.75, None, 0.75, None, None, None]
    assert study.trials[2].config == {"lr": 0.3, "m": {"n": 5, "c": "a"}}
    assert study.trials[2].details == {"host": "h", "metrics": {"f1": 0.5}}
    assert study.trials[1].details == {"traceback": "..."}
    assert study.trials[3].attempt == 2
    assert study.trials[4].tags == {"t": 4}
    assert study.planned == 9
    assert study.count(State.FAILED, State.LOST) == 2


def test_the_best_is_the_earliest_of_equals(study):
    assert study.best.number == 0
    assert "2 of 9 trials finished, best accuracy 0.75 (trial 0)" in repr(study)
    worse = Study(description("min"), [*events(), Told(5, value=-1.0, number=14)])
    assert worse.best.number == 5


def test_a_study_without_results_has_no_best():
    study = Study(description(), events()[:7])
    with pytest.raises(TrialError, match="no trial has finished yet"):
        _ = study.best
    assert "0 of 9 trials finished" in repr(study)
    assert Study(description(), []).trials == []


def test_study_is_loaded_from_a_journal(tmp_path, study):
    path = tmp_path / "job.db"
    with contextlib.closing(Journal(path, description())) as journal:
        journal.append(events())
    for loaded in (load(path), raybo.load(str(path))):
        assert loaded.trials == study.trials
        assert loaded.best == study.best
        assert (loaded.path, loaded.mode, loaded.description) == (path, "max", description())
    with pytest.raises(JournalError, match="no such file"):
        load(tmp_path / "none.db")


# ---- as a table


def test_the_dataframe_has_trials_as_rows(study):
    frame = study.to_dataframe()
    facts = ["number", "state", "value", "seconds", "attempt", "reason", "expected", "expected_sd"]
    assert list(frame.columns) == [*facts, "lr", "m.n", "m.c", "f1"]
    assert list(frame["number"]) == list(range(6))
    assert list(frame["m.n"]) == [3, 4, 5, 6, 7, 8]
    assert list(frame["lr"]) == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
    assert frame["value"][0] == 0.75
    assert math.isnan(frame["value"][1])
    assert frame["reason"][1] == "ValueError: no"
    assert frame["f1"][2] == 0.5
    assert len(Study(description(), []).to_dataframe()) == 0


def test_further_metrics_never_overwrite_other_columns():
    asked = {"x": [0.5, 0.5, 0.5], "values": [0.1, 3, 0], "tags": {}, "seen": 0}
    metrics = {"value": 3, "curve": [1, 2.5], "lr": "words"}
    told = [Asked.of(0, asked, number=1), Told(0, value=0.5, metrics=metrics, number=2)]
    row = Study(description(), told).to_dataframe().iloc[0]
    assert (row["value"], row["metric.value"], row["curve"], row["metric.lr"]) == (0.5, 3, "[1, 2.5]", "words")


def test_a_metric_that_is_not_finite_leaves_its_column_numbers():
    told = []
    for number, value in enumerate((0.5, "nan", None, "inf")):
        asked = {"x": [0.5, 0.5, 0.5], "values": [0.1, 3, 0], "tags": {}, "seen": 0}
        told += [Asked.of(number, asked), Told(number, value=0.5, metrics={"m": value, "text": str(value)})]
    frame = Study(description(), told).to_dataframe()
    assert (frame["m"].dtype, frame["text"].dtype) == ("float64", object)
    assert list(frame["m"].fillna(-1)) == [0.5, -1, -1, math.inf]


def test_parameters_never_take_the_place_of_another_column():
    space = Space({"value": Integer(0, 9), "state": Integer(0, 9), "a": {"b": Integer(0, 9)}, "seconds": Integer(0, 9)})
    data = {"x": [0.5] * 4, "values": [1, 2, 3, 4], "tags": {}}
    told = [Asked.of(0, data, number=1), Told(0, value=0.5, number=2)]
    frame = Study(description(space=space), told).to_dataframe()
    row = frame.iloc[0]
    assert row["value"] == 0.5
    assert row["state"] == "finished"
    assert sorted(row[name] for name in frame.columns[8:]) == [1, 2, 3, 4]
    assert len(set(frame.columns)) == 12


def test_without_pandas_the_remedy_is_told(study, monkeypatch):
    real = builtins.__import__

    def without(name, *arguments, **keywords):
        if name == "pandas":
            raise ImportError(name)
        return real(name, *arguments, **keywords)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtra, match=re.escape(f"to_dataframe needs pandas: {install_command('pandas')}")):
        study.to_dataframe()


# ---- where its trials' files are


def kept_in(tmp_path, *places):
    """A study of six trials that was given these places, one after another."""
    told = events()
    for place in places:
        told.append(Planned(trials=9, artifacts=place, number=len(told) + 1))
    tmp_path.mkdir(exist_ok=True)
    path = tmp_path / "s.db"
    with contextlib.closing(Journal(path)) as opened:
        opened.begin(description())
        opened.append(told)
    return load(path)


def test_a_trials_directory_is_where_artifacts_are_kept(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    study = kept_in(tmp_path, str(first), str(second))
    assert study.artifacts == [str(second), str(first)]
    assert study.directory(0) is None
    places = [place / "s.trials" / "0" for place in (tmp_path, first, second)]
    for place in places:  # of several, where the last attempt may have been
        place.mkdir(parents=True)
        assert study.directory(study.trials[0]) == place
        assert study.files(0) == [str(place)]
    assert study.directory(1) is None
    assert kept_in(tmp_path / "other").artifacts == []


def test_files_under_a_uri_are_named_output_shown(tmp_path):
    study = kept_in(tmp_path, str(tmp_path / "first"), "s3://bucket/prefix")
    assert study.directory(0) is None
    assert study.files(0) == ["s3://bucket/prefix/s.trials/0"]
    (tmp_path / "s.trials" / "0").mkdir(parents=True)
    assert study.files(0) == ["s3://bucket/prefix/s.trials/0", str(tmp_path / "s.trials" / "0")]


def test_a_relative_place_is_nothing_that_raybo_writes(tmp_path):
    with pytest.raises(JournalError, match="artifacts"):
        kept_in(tmp_path, "first")
