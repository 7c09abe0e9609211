"""One description of a study: an argument is declared once, and a constraint is parsed once."""

import contextlib
import dataclasses
import inspect

import pytest
from click import Option

import raybo
from raybo.cli.tuning import tune as command
from raybo.engine.description import searcher_for
from raybo.engine.run_options import RunOptions
from raybo.experiments.in_process import tune_here
from raybo.journal import Journal, read
from raybo.record.description import Description
from raybo.record.goals import Constraint

RULE = {"memory": "<= 3"}


@pytest.fixture
def parses(monkeypatch):
    """The constraints that have been parsed, one by one."""
    parsed, parse = [], Constraint.read.__func__

    def count(cls, name, text):
        parsed.append(name)
        return parse(cls, name, text)

    monkeypatch.setattr(Constraint, "read", classmethod(count))
    return parsed


@pytest.fixture
def job(parses):
    @raybo.objective(space={"x": raybo.Float(0, 1)}, metric="loss", mode="min", constraints=RULE)
    def job(config):
        return {"loss": config["x"], "memory": 1.0}

    return job


def test_constraint_is_parsed_once_per_study(job, parses, tmp_path, monkeypatch):
    """By the decorator; the driver, the journal and the searcher take what it made."""
    path, known = tmp_path / "study.db", []
    monkeypatch.setattr("raybo.engine.driver._run", lambda *_: known.append(read(path, searcher.description)))
    searcher = searcher_for(job, "random", 0, {}, None)
    study = raybo.tune(job, trials=2, method="random", seed=0, storage=path)
    assert (study.description, len(known)) == (searcher.description, 1)
    assert parses == ["memory"]


def test_constraint_is_parsed_twice_per_continued_study(job, parses, tmp_path):
    """By the decorator, and from the journal before it is known whose it is."""
    path, arguments = tmp_path / "study.db", {"method": "random", "seed": 0, "options": {}, "between": lambda: None}
    tune_here(job, trials=2, storage=path, **arguments)
    parses.clear()
    description = read(path)[0]
    with contextlib.closing(Journal(path, description)) as journal:
        assert journal.description is description
    raybo.Searcher.of(description)
    assert parses == ["memory"]


def test_description_survives_json_exactly(job):
    description = searcher_for(job, "ei", 3, {"initial": 4}, None).description
    assert Description.from_json(description.to_json()) == description
    assert description.goals.rules == {"memory": "<= 3.0"}


def test_every_run_option_is_an_argument_of_tune():
    parameters = inspect.signature(raybo.tune).parameters
    for field in dataclasses.fields(RunOptions):
        assert parameters[field.name].default == field.default, field.name
        assert f"        {field.name}: " in raybo.tune.__doc__, field.name


def test_every_run_option_is_a_command_option():
    options = {parameter.name: parameter for parameter in command.params if isinstance(parameter, Option)}
    for field in dataclasses.fields(RunOptions):
        assert f"--{field.name.replace('_', '-')}" in options[field.name].opts
        assert options[field.name].help


def test_plan_is_run_as_the_options_say(job, tmp_path, monkeypatch):
    plans = []
    monkeypatch.setattr("raybo.engine.driver._run", lambda _, options, planned, *__: plans.append((options, planned)))
    raybo.tune(job, trials=3, storage=tmp_path / "study.db", target=0.5, confirm="2x3", retries=0, workers="max")
    ((options, planned),) = plans
    assert planned.keywords["options"] is options
    assert (options.trials, options.retries, options.workers, options.limits.target) == (3, 0, "max", 0.5)
