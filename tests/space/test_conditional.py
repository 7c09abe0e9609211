"""Choices that hold parameters of their own."""

from __future__ import annotations

import copy
import json
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import raybo
from raybo import Categorical, Float, Integer, Space
from raybo.common.errors import SpaceError

SPACE = Space(
    {
        "lr": Float(1e-3, 1, log=True),
        "model": Categorical(
            [
                {"kind": "svm", "C": Float(0, 1)},
                {"kind": "forest", "trees": Integer(1, 4), "prune": Categorical([False, {"by": Float(2, 3)}])},
                "linear",
                Integer(10, 12),
            ]
        ),
    }
)


@given(st.integers(0, 2**32))
def test_points_and_configurations_agree(seed):
    X = np.random.default_rng(seed).random((8, SPACE.d))
    configs = SPACE.decode(X)
    assert [SPACE.accept(config) for config in configs] == configs
    snapped = SPACE.snap(X)
    np.testing.assert_allclose(SPACE.encode(configs), snapped, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(SPACE.snap(snapped), snapped)
    rows = json.loads(json.dumps([SPACE.pack(config) for config in configs]))
    assert repr(SPACE.rows(X)) == repr(rows)  # with None for what is not open
    assert [SPACE.unpack(row) for row in rows] == configs
    assert Space.from_json(json.loads(json.dumps(SPACE.to_json()))) == SPACE


def test_closed_parameters_have_no_influence():
    assert SPACE.names == [
        "lr",
        "model",
        "model.svm.C",
        "model.forest.trees",
        "model.forest.prune",
        "model.forest.prune.by",
        "model.integer",
    ]
    assert SPACE.values({"lr": 1.0, "model": "linear"}) == [1.0, "linear", None, None, None, None, None]
    assert SPACE.values({"lr": 1.0, "model": 11})[-1] == 11
    X = np.random.default_rng(0).random((9, SPACE.d))
    X[:, :2] = [0.5, 0.6]  # linear
    assert len(np.unique(SPACE.snap(X), axis=0)) == 1


def test_points_of_conditional_spaces_are_counted():
    assert SPACE.cube.size == np.inf
    inside = Categorical([{"n": Integer(1, 4), "m": Categorical(list("abcd"))}, "off"])
    assert Space({"a": inside, "b": Integer(1, 2)}).cube.size == (4 * 4 + 1) * 2


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ({"kind": "svm", "C": 2.0}, r"model: .* fits none of the choices \(model\.svm\.C: 2\.0 lies outside"),
        ({"kind": "forest", "trees": 2}, r"model\.forest\.prune: missing"),
        ("cubic", r"model: 'cubic' fits none of the choices"),
    ],
)
def test_what_fits_no_choice_is_refused(model, message):
    with pytest.raises(SpaceError, match=message):
        SPACE.accept({"lr": 1.0, "model": model})


def test_branches_have_readable_names():
    def names(*choices):
        return Space({"m": Categorical(list(choices))}).names[1:]

    x = Float(0, 1)
    assert names({"kind": "svm", "x": x}, {"kind": "knn", "x": x}) == ["m.svm.x", "m.knn.x"]
    assert names({"svm": {"x": x}}, {"knn": {"x": x}}) == ["m.svm.x", "m.knn.x"]
    assert names("off", {"rate": x}) == ["m.rate"]
    assert names({"lr": x}, {"lr": x, "momentum": x}) == ["m.lr.lr", "m.lr-momentum.lr", "m.lr-momentum.momentum"]
    kernels = [{"kind": "svm", "kernel": kernel, "C": x} for kernel in ("rbf", "poly")]
    assert names(*kernels) == ["m.svm-rbf.C", "m.svm-poly.C"]
    assert names({"depth": 1, "x": x}, {"depth": 2, "x": x}) == ["m.depth=1.x", "m.depth=2.x"]
    assert names({"a": 1, "x": x}, {"a": 1, "x": x, "y": x}) == ["m.a=1-1.x", "m.a=1-2.x", "m.a=1-2.y"]
    assert names("svm", {"kind": "svm", "x": x}) == ["m.svm-2.x"]
    assert names(None, x, Integer(1, 3)) == ["m.float", "m.integer"]
    assert names(["adam", x], ["sgd", x]) == ["m.adam.1", "m.sgd.1"]


def test_names_survive_the_way_to_a_worker():
    assert pickle.loads(pickle.dumps(SPACE)).names == SPACE.names == copy.deepcopy(SPACE).names  # noqa: S301  # ours


@pytest.mark.parametrize("read", [Space, Space.from_tune])
def test_two_parameters_of_one_name_are_refused(read):
    space = {"a.b": Float(0, 1), "a": {"b": Float(0, 1)}}
    if read == Space.from_tune:
        tune = pytest.importorskip("ray.tune")
        space = {"a.b": tune.uniform(0, 1), "a": {"b": tune.uniform(0, 1)}}
    with pytest.raises(SpaceError, match=r"a\.b: two parameters have this name, as a dot also joins nested names"):
        read(space)
    with pytest.raises(SpaceError, match=r"context a\.b: the space has a parameter of that name"):
        raybo.Searcher({"a": {"b": Float(0, 1)}}, context={"a.b": Float(0, 1)})
