"""Shared data are made once, fingerprinted, and read by workers without a copy."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import raybo
from raybo.common.errors import JournalError, ObjectiveError, RayboError
from raybo.job.shared_data import fingerprint, is_data, receive, sending, shared_by, size_of
from raybo.record.states import State

calls: list[int] = []


def load():
    calls.append(1)
    return np.arange(5.0)


AT_HOME = raybo.shared(load)


# ---- in one process


def test_shared_data_are_made_once_outside_studies():
    data = raybo.shared(load)
    before = len(calls)
    assert data.value is data.value
    assert len(calls) == before + 1
    assert raybo.shared([1, 2]).value == [1, 2]
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(raybo.shared(np.ones(3)))).value, np.ones(3))  # noqa: S301


def test_shared_data_travel_as_a_token():
    data = raybo.shared(np.ones(10**6))
    with sending() as sent:
        text = pickle.dumps([data, data])
    assert len(text) < 1_000
    ((token, same),) = sent.items()
    assert same is data
    got = []
    receive({token: lambda: got.append(1) or "what lies there"}, [])
    first, second = pickle.loads(text)  # noqa: S301
    assert (first.value, second.value, got) == ("what lies there", "what lies there", [1])
    receive({}, [])


def test_what_a_module_shares_is_found_by_name(monkeypatch):
    assert shared_by(load) == {(__name__, "AT_HOME"): AT_HOME}
    monkeypatch.setattr(AT_HOME, "_token", "")
    monkeypatch.setattr(AT_HOME, "_made", [])
    receive({"t": lambda: "theirs"}, [(__name__, "AT_HOME", "t"), ("no.such.module", "data", "u")])
    assert AT_HOME.value == "theirs"
    receive({}, [])


ARRAY = np.arange(12.0).reshape(3, 4)
FRAME = pd.DataFrame({"a": [1, 2], "b": ["x", "y"]})
SPARSE = scipy.sparse.csr_array(np.eye(3))


@pytest.mark.parametrize("value", [ARRAY, FRAME, SPARSE, [ARRAY], (1, FRAME), {"X": ARRAY}, raybo.shared(ARRAY)])
def test_data_are_recognised_and_measured(value):
    assert is_data(value)
    assert "x" in fingerprint(value)
    assert fingerprint(value) == fingerprint(value)


@pytest.mark.parametrize("value", [1, 0.5, None, "words", [1, 2], {"a": "b"}, np.float64(2), np.int64(3), True])
def test_words_and_numbers_are_no_data(value):
    assert not is_data(value)


def test_sizes_are_those_of_the_arrays():
    assert size_of(np.zeros(10**6)) == pytest.approx(8e6, rel=0.01)
    assert size_of([np.zeros(10**6), {"a": np.zeros(10**6)}]) == pytest.approx(16e6, rel=0.01)
    assert size_of(pd.DataFrame({"a": np.zeros(10**6)})) == pytest.approx(8e6, rel=0.01)
    assert size_of(scipy.sparse.csr_array((np.ones(10**6), np.arange(10**6), [0, 10**6]))) > 1.2e7


def test_fingerprints_tell_other_data_apart():
    changed = ARRAY.copy()
    changed[1, 1] += 1e-9
    others = [changed, ARRAY.astype(np.float32), ARRAY.T, ARRAY.reshape(4, 3), [ARRAY], FRAME, FRAME.assign(a=[1, 3])]
    assert len({fingerprint(value) for value in [ARRAY, *others]}) == len(others) + 1
    assert (
        fingerprint(ARRAY)
        == fingerprint(np.asfortranarray(ARRAY))
        == "ndarray 3 x 4 of float64 " + fingerprint(ARRAY).rpartition(" ")[2]
    )
    assert fingerprint(raybo.shared(load)) == "made by load"
    assert fingerprint(np.array([object()])) == "ndarray 1"


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "dia", "lil", "dok"])
@pytest.mark.parametrize("make", [scipy.sparse.csr_array, scipy.sparse.csr_matrix])
def test_fingerprints_differ_by_positions_in_sparse_matrices(kind, make):
    dense = np.diag([1.0, 2.0, 3.0, 4.0])
    values = [dense, np.roll(dense, 1, axis=1), np.roll(dense, 1, axis=0), 2 * dense, dense[:, :3]]
    made = [make(value).asformat(kind) for value in values]
    assert all(map(is_data, made))
    assert len({fingerprint(value) for value in made}) == len(values)
    assert [fingerprint(value.copy()) for value in made] == [fingerprint(value) for value in made]


def test_fingerprints_ignore_the_order_of_sparse_values():
    unsorted = scipy.sparse.csr_array((np.array([1.0, 2.0]), np.array([3, 1]), np.array([0, 2])), shape=(1, 4))
    before = fingerprint(unsorted)
    unsorted.sort_indices()
    assert fingerprint(unsorted) == before
    assert fingerprint(scipy.sparse.coo_array((np.ones(2), ([0, 1], [0, 1])))) != fingerprint(
        scipy.sparse.coo_array((np.ones(2), ([0, 1], [1, 0])))
    )
    solid = [scipy.sparse.coo_array((np.ones(2), ([0, 1], [0, 1], [0, k]))) for k in (0, 1)]
    assert fingerprint(solid[0]) != fingerprint(solid[1])


def test_fingerprints_differ_by_table_names_types_index():
    tables = [
        FRAME,
        FRAME.rename(columns={"a": "c"}),
        FRAME[list(FRAME.columns[::-1])],
        FRAME.astype({"a": "float64"}),
        FRAME.set_axis([5, 6], axis=0),
        FRAME["a"],
        FRAME["a"].rename("b"),
        FRAME["a"].astype("float64"),
        FRAME["a"].array,
        FRAME["a"].astype("category").array,
        FRAME["a"].astype("category").cat.rename_categories([7, 8]).array,
        pd.Index([1, 2]),
        pd.Index([1, 3]),
    ]
    assert len({fingerprint(table) for table in tables}) == len(tables)
    assert [fingerprint(table.copy()) for table in tables] == [fingerprint(table) for table in tables]


def test_fingerprints_tell_the_tables_of_other_libraries_apart():
    arrow = pytest.importorskip("pyarrow")
    tables = [arrow.table({name: [1, 2], "text": [text, "b"]}) for name, text in (("x", "a"), ("y", "a"), ("x", "c"))]
    tables += [arrow.array(["a", "b"]), arrow.array(["a", "c"])]
    assert all(map(is_data, tables))
    assert len({fingerprint(table) for table in tables}) == len(tables)


def test_fingerprints_of_masked_and_unhashable_data():
    shown, hidden = (np.ma.masked_array([1.0, 2.0], mask) for mask in ([False, False], [False, True]))
    assert fingerprint(shown) != fingerprint(hidden)
    assert fingerprint(np.zeros(2, dtype=[("a", "f8"), ("b", object)])).startswith("ndarray 2")
    texts = np.array(["a"], dtype=np.dtypes.StringDType()) if hasattr(np.dtypes, "StringDType") else np.array(["a"])
    assert fingerprint(texts).startswith("ndarray 1")


def test_failing_data_source_is_an_error():
    @raybo.objective(space={"x": raybo.Float(0, 1)})
    def job(config, *, data=None):
        return 1.0

    broken = raybo.shared(lambda: 1 / 0)
    with pytest.raises(ObjectiveError, match=r"job: its shared data cannot be created: ZeroDivisionError"):
        raybo.tune(job, trials=1, settings={"data": broken})


# ---- on Ray


@pytest.mark.ray
def test_trials_share_data_that_identify_the_study(ray_session, tmp_path, monkeypatch):
    monkeypatch.setattr(AT_HOME, "_made", [])
    array, before = np.ones((1_000, 500)), len(calls)
    large = raybo.shared(array)

    @raybo.objective(space={"x": raybo.Float(0, 1)}, metric="loss", mode="min")
    def job(config, *, data=None, folds=3):
        mine = large.value
        assert not any([mine.flags.owndata, mine.flags.writeable, data.flags.owndata, data.flags.writeable])
        return {"loss": mine.sum() + data.sum() + AT_HOME.value.sum(), "folds": folds}

    path = tmp_path / "study.db"
    run = {"method": "random", "seed": 0, "storage": path, "workers": 2}
    study = raybo.tune(job, trials=3, settings={"data": array, "folds": 4}, **run)
    assert study.count(State.FINISHED) == 3, [trial.reason for trial in study.trials]
    assert study.best.value == 2 * array.size + 10
    assert study.best.details["metrics"] == {"folds": 4}
    assert len(calls) == before + 1  # in this process alone
    assert study.description.settings["data"].startswith("ndarray 1000 x 500 of float64 ")
    again = raybo.tune(job, trials=4, settings={"data": array.copy(), "folds": 4}, **run)
    assert again.count(State.FINISHED) == 4
    with pytest.raises(JournalError, match="settings"):
        raybo.tune(job, trials=5, settings={"data": 2 * array, "folds": 4}, **run)
    with pytest.raises(RayboError, match="detached"):
        raybo.tune(job, trials=5, settings={"data": array, "folds": 4}, **run, detach=True)
