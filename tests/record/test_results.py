"""Extras of a result are kept by one rule, whoever runs the trials."""

import json
import math

import numpy as np
import pytest

import raybo
from raybo.engine.trial.task import run_trial
from raybo.record.results import EXTRAS, JSON_CHARACTERS, NESTED, TEXT_CHARACTERS, extras

SPACE = {"x": raybo.Float(0, 1)}
GOALS = {"metric": "loss", "constraints": {"memory": "<= 3"}}


class Unprintable:
    def __repr__(self):
        raise RuntimeError("no")


RESULTS = {
    "numbers": {"a": np.float32(0.5), "b": 3, "c": np.True_, "d": np.array(2.5), "huge": 10**400, "nan": math.nan},
    "texts": {"short": "so", "long": "x" * 10_000, "surrogate": "\ud800", 5: "of a number"},
    "lists": {"list": [1, (2.0, None)], "array": np.eye(2), "dict": {"a": [math.inf]}, "long": [0] * 10_000},
    "not JSON": {"set": {1}, "object": Unprintable(), "within": [object()], "delta": np.timedelta64(5, "s")},
    "many": {f"m{i}": i for i in range(100)},
}


@pytest.mark.parametrize("what", RESULTS)
def test_tell_and_tune_keep_the_same_extras(what):
    result = {"loss": 1, **RESULTS[what], "memory": np.float32(2)}
    searcher = raybo.Searcher(SPACE, "random", seed=0, **GOALS)
    _, of_tune = run_trial(lambda config: result, {"x": 0.5}, {}, searcher.goals, 1)
    for _ in range(2):
        told = searcher.tell(searcher.ask(), result)
    added = searcher.add({"x": 0.25}, result)
    for trial in (told, added):
        of_tell = trial.details["metrics"]
        assert json.dumps(of_tell) == json.dumps(of_tune["metrics"])
        assert of_tell["memory"] == 2.0
    reported = searcher.ask()
    searcher.report(reported, result)
    assert {**searcher.trials[reported.number].details["metrics"], "memory": 2.0} == of_tune["metrics"]


def test_extras_are_plain_and_bounded():
    result = {name: value for one in RESULTS.values() for name, value in one.items()} | {"loss": 1.0}
    plain = extras(result, "loss")
    assert len(plain) == EXTRAS
    assert json.loads(json.dumps(plain)) == plain
    assert "loss" not in plain
    assert not {"set", "object", "within", "delta"} & set(plain)
    assert len(extras({"text": "x" * 10_000}, "loss")["text"]) == TEXT_CHARACTERS
    assert extras({"list": [0] * (JSON_CHARACTERS // 3 - 1)}, "loss")
    assert not extras({"list": [0] * (JSON_CHARACTERS // 3 + 1)}, "loss")


def nested(levels):
    """Return a list in a list in a list, `levels` of them."""
    value = []
    for _ in range(levels - 1):
        value = [value]
    return value


def test_what_is_nested_too_deep_is_left_out():
    deepest = nested(NESTED)
    assert extras({"lists": deepest, "deeper": [deepest], "dict": {"a": deepest}}, "loss") == {"lists": deepest}
