"""One trial: whatever the objective returns or raises, plain data leaves the worker."""

from __future__ import annotations

import enum
import json
import math
import os
import pickle
import subprocess
import sys
import threading
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_info, threadpool_limits

import raybo
from raybo.engine.lifecycle import Occurrence
from raybo.engine.ray import pickling
from raybo.engine.ray.pickling import pickled
from raybo.engine.trial.result import read_result, read_results
from raybo.engine.trial.task import TRACEBACK_CHARACTERS, run_trial
from raybo.job.loading import load_objective
from raybo.record.results import EXTRAS

PLAIN = (type(None), bool, int, float, str)


def run(function, config=None, settings=None, metric="loss", threads=1):
    """A run, checked for what holds of every one."""
    occurrence, data = run_trial(function, config or {"x": 1}, settings or {}, metric, threads)
    assert json.loads(json.dumps(data)) == data  # what the journal will make of it
    assert pickle.loads(pickle.dumps(data)) == data  # noqa: S301
    assert all(type(value) in PLAIN for value in data.values() if not isinstance(value, (dict, list)))
    assert all(type(value) in (*PLAIN, list, dict) for value in data.get("metrics", {}).values())
    assert data["seconds"] >= 0
    assert data["host"]
    assert ("value" in data) == (occurrence is Occurrence.RETURNED)
    assert ("reason" in data) == (occurrence is not Occurrence.RETURNED)
    if "reason" in data:
        assert data["reason"].strip()
        assert len(data["reason"].splitlines()) == 1
        assert len(data["reason"]) < 400
    assert len(data.get("traceback", "")) <= TRACEBACK_CHARACTERS
    return occurrence, data


def raising(error):
    def objective(config):
        raise error

    return objective


# ---- a number, or a dict that holds it


class Whole(enum.IntEnum):
    FIVE = 5


class Half(float):
    pass


@pytest.mark.parametrize(
    "value",
    [
        *(0, 1, -2.5, 1e308, 5e-324, 2**70, Whole.FIVE, Half(0.5)),
        *(np.float32(0.5), np.float64(3), np.longdouble(2), np.int8(-3), np.uint64(2**64 - 1)),
        *(np.array(3.0), np.array(4), Fraction(1, 2), Decimal("0.5")),  # as `Searcher.tell` and Ray Tune's searcher do
    ],
    ids=repr,
)
def test_finite_number_is_a_result(value):
    for returned in (value, {"loss": value}, {"other": 1, "loss": value}):
        occurrence, data = run(lambda config, returned=returned: returned)
        assert occurrence is Occurrence.RETURNED
        assert type(data["value"]) is float
        assert data["value"] == float(value)


BAD = [
    (math.nan, "its loss is nan, not a finite number"),
    (-math.inf, "its loss is -inf, not a finite number"),
    (np.float32("inf"), "its loss is inf, not a finite number"),
    (True, "its loss is not a number but True"),
    (np.bool_(False), "its loss is not a number but "),
    ("0.5", "its loss is not a number but '0.5'"),
    (1 + 2j, "its loss is not a number but (1+2j)"),
    (np.timedelta64(5, "ns"), "its loss is not a number but np.timedelta64(5,'ns')"),
    (np.timedelta64(5, "s"), "its loss is not a number but np.timedelta64(5,'s')"),
    (np.array(np.timedelta64(5, "ns")), "its loss is not a number but array(5, dtype='timedelta64[ns]')"),
    (np.ma.masked, "its loss is not a number but masked"),
    (np.ma.masked_invalid([np.nan]).mean(), "its loss is not a number but masked"),
    (np.ma.array(0.5, mask=True), "its loss is not a number but masked_array(data=--,"),
    ([0.5], "its loss is not a number but [0.5]"),
    ((0.5, 1), "its loss is not a number but (0.5, 1)"),
    (np.array([0.5]), "its loss is not a number but array([0.5])"),
    (np.zeros((9, 9)), "its loss is not a number but array([[0., 0., 0."),
    (threading.Lock(), "its loss is not a number but <unlocked _thread.lock object"),
    ("x" * 10**6, "its loss is not a number but 'xxxxxxxx"),
]


@pytest.mark.parametrize(("value", "words"), BAD, ids=range(len(BAD)))
def test_result_without_a_finite_number_fails(value, words):
    for returned in (value, {"loss": value}):
        occurrence, data = run(lambda config, returned=returned: returned)
        assert occurrence is Occurrence.BAD_RESULT
        assert data["reason"].startswith(words)


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        (None, "it returned None; return the number, or a dict with 'loss'"),
        ({}, "it returned no 'loss' but nothing"),
        ({"accuracy": 1.0, "f1": 2}, "it returned no 'loss' but 'accuracy', 'f1'"),
        ({"loss": None}, "its loss is not a number but None"),
    ],
    ids=repr,
)
def test_missing_metric_error_names_the_others(returned, words):
    occurrence, data = run(lambda config: returned)
    assert (occurrence, data["reason"]) == (Occurrence.BAD_RESULT, words)


def test_result_beyond_every_float_fails():
    occurrence, _ = run(lambda config: 10**400)
    assert occurrence is not Occurrence.RETURNED


def test_other_metrics_are_kept_as_json():
    class Text(str):
        pass

    endless = []
    endless.append(endless)
    others = {
        "f": np.float32(0.5),
        "i": np.int64(3),
        "b": np.True_,
        "t": Text("text"),
        "none": None,
        "nan": math.nan,
        "long": np.longdouble(2),
        "enum": Whole.FIVE,
        "half": Half(0.5),
        5: 6,
        (1, 2): 3,
        "huge": 10**5_000,  # no JSON
        "text": "x" * 10**6,
        "list": [1],
        "array": np.zeros((2, 1)),
        "scalar": np.array(2.5),
        "nested": {"a": (1, np.float32(2)), 3: [math.inf]},
        "set": {1},
        "within": [object()],
        "endless": endless,
        "long list": [0] * 10**6,
        "delta": np.timedelta64(5, "s"),
        "surrogate": "\ud800",
    }
    occurrence, data = run(lambda config: {"loss": 1, **others})
    metrics = data["metrics"]
    assert occurrence is Occurrence.RETURNED
    assert {
        key: metrics[key] for key in ("f", "i", "b", "t", "none", "nan", "long", "enum", "half", "5", "(1, 2)")
    } == {
        "f": 0.5,
        "i": 3,
        "b": True,
        "t": "text",
        "none": None,
        "nan": "nan",
        "long": 2.0,
        "enum": 5,
        "half": 0.5,
        "5": 6,
        "(1, 2)": 3,
    }
    assert len(metrics["text"]) == 1_000
    assert (metrics["list"], metrics["array"], metrics["scalar"]) == ([1], [[0.0], [0.0]], 2.5)
    assert metrics["nested"] == {"a": [1, 2.0], "3": ["inf"]}
    assert set(data["metrics_left"]) == {"delta", "set", "within", "endless", "long list"}
    assert not set(data["metrics_left"]) & set(metrics)
    assert "loss" not in metrics
    many = {f"m{i}": i for i in range(1_000)}
    assert len(run(lambda config: {"loss": 1, **many})[1]["metrics"]) == EXTRAS


def test_what_a_failed_trial_returned_is_kept_too():
    returned = {"loss": 0.5, "seconds": math.nan, "note": "hi"}
    value, reason, kept = read_results(returned, ("loss", "seconds"))
    assert (value, reason) == (None, "its seconds is nan, not a finite number")
    assert kept == {"loss": 0.5, "seconds": "nan", "note": "hi"}
    for needed in (("Loss",), ("Loss", "seconds")):
        value, reason, kept = read_results(returned, needed)
        assert (value, reason) == (None, f"it returned no {needed[0]!r} but 'loss', 'seconds', 'note'")
        assert kept == {"loss": 0.5, "seconds": "nan", "note": "hi"}
    assert "metrics_left" not in run(lambda config: {"Loss": 0.5})[1]


@given(st.recursive(st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text()), st.lists, max_leaves=3))
def test_any_result_is_a_number_or_a_reason(result):
    for returned in (result, {"loss": result, "other": result}):
        value, reason, _ = read_result(returned, "loss")
        assert (value is None) != (reason == "")
        assert value is None or math.isfinite(value)


# ---- raised


class Unprintable(Exception):
    def __str__(self):
        raise RuntimeError("no")


class Odd(Exception):
    """Cannot be made again from its arguments, and holds what no pickle takes."""

    def __init__(self, lock, other):
        super().__init__("odd")
        self.lock = lock


RAISED = [
    (ValueError("bad rate"), "ValueError: bad rate"),
    (ValueError(), "ValueError"),
    (ValueError("first\nsecond"), "ValueError: first"),
    (ValueError("\n\n  third"), "ValueError: third"),
    (KeyError("x"), "KeyError: 'x' (test_task.py:56: raise error)"),
    (SystemExit(), "SystemExit"),
    (SystemExit(0), "SystemExit: 0"),
    (SystemExit("bye"), "SystemExit: bye"),
    (KeyboardInterrupt(), "KeyboardInterrupt"),
    (GeneratorExit(), "GeneratorExit"),
    (Unprintable(), "Unprintable"),
    (Odd(threading.Lock(), 1), "Odd: odd"),
    (ValueError("\ud800"), "ValueError: \ud800"),
]


@pytest.mark.parametrize(("error", "words"), RAISED, ids=range(len(RAISED)))
def test_any_exception_is_an_outcome_with_its_traceback(error, words):
    occurrence, data = run(raising(error))
    assert occurrence is Occurrence.RAISED
    assert data["reason"] == words
    assert "in objective" in data["traceback"]
    assert "run_trial" not in data["traceback"]  # the user's frames only


def test_running_out_of_memory_is_an_outcome_of_its_own():
    occurrence, data = run(raising(MemoryError()))
    assert occurrence is Occurrence.OUT_OF_MEMORY
    assert data["reason"].startswith("out of memory: ")
    assert "in objective" in data["traceback"]


def test_traceback_with_shared_data_shows_users_frames_only():
    function = pickling.unpickled.__wrapped__(pickled(raising_with_data, {"data": raybo.shared(np.zeros(3))}))
    _, data = run(function)
    assert data["reason"] == "ValueError: (3,)"
    assert "raising_with_data" in data["traceback"]
    assert "self.function" not in data["traceback"]


def raising_with_data(config, *, data):
    raise ValueError(str(data.shape))


def test_a_huge_message_is_cut():
    occurrence, data = run(raising(ValueError("x" * 10**7)))
    assert occurrence is Occurrence.RAISED
    assert data["reason"].startswith("ValueError: xxx")


def test_the_cause_of_an_error_is_told():
    def objective(config):
        try:
            raise KeyError("inner")
        except KeyError as error:
            raise ValueError("outer") from error

    _, data = run(objective)
    assert "inner" in data["traceback"]
    assert data["traceback"].rstrip().endswith("ValueError: outer")


def test_recursion_without_end_is_a_failed_trial():
    def objective(config):
        return objective(config)

    occurrence, data = run(objective)
    assert occurrence is Occurrence.RAISED
    assert data["reason"].startswith("RecursionError: ")


def test_wrong_signature_is_a_failed_trial():
    _, data = run(lambda: 1)
    assert data["reason"].startswith("TypeError: ")


# ---- how it is called


def test_objective_gets_copies_of_configuration_and_settings():
    config = {"x": 1, "y": {"z": 2}}

    def objective(config, *, folds=5):
        config["x"] = 99
        return {"loss": folds}

    assert run(objective, config, {"folds": 3})[1]["value"] == 3.0
    assert config == {"x": 1, "y": {"z": 2}}


@pytest.mark.parametrize("threads", [1, 2])
def test_numerical_libraries_keep_to_the_trials_threads(threads):
    with threadpool_limits(limits=4):
        before = [pool["num_threads"] for pool in threadpool_info()]
        assert max(before) == 4
        value = run(lambda config: max(pool["num_threads"] for pool in threadpool_info()), threads=threads)[1]["value"]
        assert value == threads
        assert [pool["num_threads"] for pool in threadpool_info()] == before


@pytest.mark.parametrize("moved", [False, True])
def test_worker_imports_what_is_beside_the_file(tmp_path, monkeypatch, moved):
    """On another node of a cluster the working directory is a copy, at another place."""
    from ray import cloudpickle

    here = tmp_path / "here"
    Path(here, "jobs").mkdir(parents=True)
    Path(here, "jobs", "scale_of_job.py").write_text("SCALE = 2.0\n")
    Path(here, "jobs", "job.py").write_text(
        "import raybo\nimport scale_of_job\n\n\n@raybo.objective(space={'x': raybo.Float(0, 1)})\n"
        "def job(config):\n    return scale_of_job.SCALE * config['x']\n"
    )
    monkeypatch.chdir(here)
    monkeypatch.setattr(sys, "path", list(sys.path))
    function = load_objective("jobs/job.py").function
    module = sys.modules[function.__module__]
    cloudpickle.register_pickle_by_value(module)
    Path(tmp_path, "sent").write_bytes(pickled(function))
    cloudpickle.unregister_pickle_by_value(module)
    for name in (module.__name__, "scale_of_job"):
        del sys.modules[name]
    place = here
    if moved:
        place = here.rename(tmp_path / "there")
    program = (
        "import sys; from raybo.engine.ray.pickling import unpickled; "
        "print(unpickled(open(sys.argv[1], 'rb').read())({'x': 0.25}))"
    )
    worker = [sys.executable, "-c", program, str(tmp_path / "sent")]
    environment = {**os.environ, "PYTHONPATH": str(Path(raybo.__file__).parents[1])}
    assert subprocess.run(worker, cwd=place, env=environment, capture_output=True, text=True).stdout == "0.5\n"


# ---- with Ray


@pytest.mark.ray
def test_large_data_in_a_function_reaches_every_trial(ray_session, tmp_path):
    data = np.zeros(100 * 2**20, dtype=np.uint8)
    data[-1] = 7

    @raybo.objective(space={"x": raybo.Float(0, 1)})
    def holding(config):
        return float(data[-1]) + data.nbytes

    study = raybo.tune(holding, trials=3, method="random", storage=tmp_path / "study.db", workers=1)
    assert [trial.value for trial in study.trials] == [7 + data.nbytes] * 3


@pytest.mark.ray
def test_fresh_workers_know_nothing_of_earlier_trials(ray_session, tmp_path):
    @raybo.objective(space={"x": raybo.Float(0, 1)}, metric="value")
    def spoiling(config):
        if getattr(sys, "spoiled", False):
            raise RuntimeError("spoiled")
        sys.spoiled = True
        return {"value": config["x"], "process": os.getpid()}

    for fresh in (True, False):
        study = raybo.tune(
            spoiling, trials=3, method="random", storage=tmp_path / f"{fresh}.db", workers=1, fresh_workers=fresh
        )
        assert (study.count(raybo.State.FAILED) == 0) is fresh
        if fresh:
            assert len({trial.details["metrics"]["process"] for trial in study.trials}) == 3
