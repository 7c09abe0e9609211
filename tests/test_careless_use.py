"""What users get wrong is told in one line, wherever it first enters: never a traceback, and nothing is begun."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import raybo
from raybo import warm_start
from raybo.cli import cli
from raybo.engine.driver import tune
from raybo.errors import JournalError, MethodError, ObjectiveError, RayboError, SpaceError, TrialError
from raybo.integrations.export import Recorder, exporter
from raybo.journal import Journal, exists, read
from raybo.space import Space
from tests.test_journal_damage import DESCRIPTION, history

SPACE = {"x": raybo.Float(0, 1)}


@raybo.objective(space=SPACE)
def job(config):
    return config["x"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"resources": {"CPU": 1}}, "resources: CPU is not a custom resource; use num_cpus"),
        ({"resources": {"memory": 1}}, "resources: memory is not a custom resource; use memory"),
        ({"resources": {"disk": "much"}}, "resources: disk must be a number from 0, got 'much'"),
        ({"resources": {"disk": float("nan")}}, "resources: disk must be a number from 0"),
        ({"resources": {1: 1}}, "resources: a name must be text, got 1"),
        ({"resources": ["disk"]}, "resources must be a dict"),
        ({"metric": 3}, "metric must be a name, got 3"),
        ({"mode": ["max"]}, "mode must be 'max' or 'min'"),
        ({"trial_seconds": True}, "trial_seconds must be above 0"),
        ({"trial_seconds": float("inf")}, "trial_seconds must be above 0"),
    ],
)
def test_an_argument_of_an_objective(arguments, words):
    with pytest.raises(ObjectiveError, match=words):
        raybo.objective(space=SPACE, **arguments)(lambda config: 0.0)


@pytest.mark.parametrize("function", [max, dict, lambda: 0.0, 3])
def test_what_is_no_function_of_a_configuration(function):
    with pytest.raises(ObjectiveError, match="an objective must be a function"):
        raybo.objective(space=SPACE)(function)


class Unequal:
    def __eq__(self, other):
        raise RuntimeError("not today")

    __hash__ = None


class Unprintable:
    def __repr__(self):
        raise RuntimeError("not today")


def test_choices_that_cannot_be_compared_or_printed():
    assert Space({"c": raybo.Categorical([Unequal(), Unequal()])}).d == 1
    space = {"c": raybo.Categorical([Unprintable(), 1])}
    with pytest.raises(
        SpaceError, match="a Unprintable cannot be told in text: its repr raises RuntimeError: not today"
    ):
        tune(raybo.objective(space=space)(lambda config: 0.0), trials=1)


@pytest.mark.parametrize("name", ["a\0b.db", "x" * 300 + ".db"])
def test_names_that_no_file_can_have(name):
    for use in (exists, read, raybo.load, lambda path: Journal(path, DESCRIPTION)):
        with pytest.raises(JournalError, match="no file can be looked for there"):
            use(name)
    with pytest.raises(JournalError, match="no file can be looked for there"):
        tune(job, trials=1, storage=name)


@pytest.mark.parametrize(
    "arguments", [{"max_minutes": True}, {"max_minutes": float("inf")}, {"max_minutes": "1"}, {"trials": 1.0}]
)
def test_an_argument_of_tune(arguments):
    with pytest.raises(MethodError, match=next(iter(arguments))):
        tune(job, **{"trials": 1, **arguments})


def nested(levels):
    value = 1.0
    for _ in range(levels):
        value = [value]
    return value


def test_what_is_enqueued(tmp_path):
    for entries in (5, "x", {"x": 1}, [nested(5_000)]):
        with pytest.raises(SpaceError, match="enqueue: "):
            warm_start.known_of(entries, job.space)
    (tmp_path / "job.py").write_text(
        "import raybo\njob = raybo.objective(space={'x': raybo.Float(0, 1)})(lambda c: 0.0)\n"
    )
    deep = tmp_path / "deep.json"
    for text in ("[" * 100_000 + "]" * 100_000, '["\xff', json.dumps({"x": 1})):
        deep.write_text(text, encoding="latin-1")
        told = CliRunner().invoke(cli, ["tune", str(tmp_path / "job.py"), "--enqueue", str(deep)])
        assert told.exit_code == 2
        assert "deep.json: " in told.output
    assert not Path("job.db").exists()


def test_destinations_that_an_exporter_refuses(tmp_path):
    pytest.importorskip("tensorboardX")
    pytest.importorskip("mlflow")
    (tmp_path / "job.py").write_text("")
    for form, where in (("tensorboard", str(tmp_path / "job.py")), ("mlflow", "zz://q")):
        with pytest.raises(RayboError, match=f"{form} cannot be written to "):
            exporter(form, where)


def test_an_exporter_that_raises_is_told_once_and_the_study_goes_on(tmp_path, caplog, monkeypatch):
    path = tmp_path / "study.db"
    journal = Journal(path, DESCRIPTION)
    journal.append(history(2))
    recorder = Recorder(path, "csv", str(tmp_path / "out.csv"))

    def fail(study):
        raise RuntimeError("acc@5 is no name")

    monkeypatch.setattr(recorder, "_export", fail)
    for number in range(3):
        recorder(type("Status", (), {"last_event": number}))
    journal.close()
    assert [record.getMessage() for record in caplog.records] == [
        f"{tmp_path / 'out.csv'} is no longer up to date: RuntimeError: acc@5 is no name"
    ]
    monkeypatch.setattr("raybo.integrations.export.exporter", lambda to, where, raw: fail)
    told = CliRunner().invoke(cli, ["export", str(path), "--to", "csv", "-o", str(tmp_path / "out.csv")])
    assert isinstance(told.exception, RayboError)
    assert "it cannot be written as csv: RuntimeError: acc@5 is no name" in str(told.exception)


@pytest.mark.parametrize("number", [True, False, np.bool_(True), 1.0, "1", None])
def test_only_a_number_is_a_trial(number):
    searcher = raybo.Searcher(SPACE, "random", seed=0)
    searcher.ask(), searcher.ask()
    for use in (lambda: searcher.tell(number, 1.0), lambda: searcher.fail(number, "no")):
        with pytest.raises(TrialError, match="no such trial"):
            use()
    assert searcher.tell(np.int64(1), 1.0).number == 1


def test_tags_that_no_method_wrote():
    searcher = raybo.Searcher(SPACE, "gp-ucb", seed=0)
    trial = searcher.ask()
    trial.tags.clear()
    trial.tags["kappa"] = "x"
    with pytest.raises(TrialError, match="its tags are not what its method writes"):
        searcher.explain(trial)
