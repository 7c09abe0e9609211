"""Choices that hold parameters of their own."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raybo import Categorical, Float, Integer, Space
from raybo.errors import SpaceError

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


def test_what_is_not_open_has_no_value_and_no_influence():
    assert SPACE.names == [
        "lr",
        "model",
        "model.0.C",
        "model.1.trees",
        "model.1.prune",
        "model.1.prune.1.by",
        "model.3",
    ]
    assert SPACE.values({"lr": 1.0, "model": "linear"}) == [1.0, "linear", None, None, None, None, None]
    assert SPACE.values({"lr": 1.0, "model": 11})[-1] == 11
    X = np.random.default_rng(0).random((9, SPACE.d))
    X[:, :2] = [0.5, 0.6]  # linear
    assert len(np.unique(SPACE.snap(X), axis=0)) == 1


def test_its_points_are_counted():
    assert SPACE.cube.size == np.inf
    inside = Categorical([{"n": Integer(1, 4), "m": Categorical(list("abcd"))}, "off"])
    assert Space({"a": inside, "b": Integer(1, 2)}).cube.size == (4 * 4 + 1) * 2


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ({"kind": "svm", "C": 2.0}, r"model: it fits none of the choices \(model\.0\.C: 2\.0 lies outside"),
        ({"kind": "forest", "trees": 2}, r"model\.1\.prune: missing"),
        ("cubic", r"model: it fits none of the choices"),
    ],
)
def test_what_fits_no_choice_is_refused(model, message):
    with pytest.raises(SpaceError, match=message):
        SPACE.accept({"lr": 1.0, "model": model})
