"""A configuration given in part: what it says, what it leaves out, and what completes it."""

from __future__ import annotations

import numpy as np
import pytest

from raybo.common.errors import SpaceError
from raybo.space import Categorical, Float, Integer, Space
from raybo.space.partial import checked, completed, given, left_out, only, partial_row

MODELS = [
    {"kind": "svm", "C": Float(0, 1), "inner": Categorical(["none", {"gamma": Float(0, 1)}])},
    {"kind": "knn", "k": Integer(1, 9)},
]
SPACE = Space({"model": Categorical(MODELS), "x": Float(0, 1), "net": {"depth": Integer(1, 9), "act": "relu"}})
# the row: model, model.svm.C, model.svm.inner, model.svm.inner.gamma, model.knn.k, x, net.depth


@pytest.mark.parametrize(
    ("config", "row"),
    [
        ({"x": 0.5}, [None, None, None, None, None, 0.5, None]),
        ({"model": {"kind": "knn"}}, [1, None, None, None, None, None, None]),
        ({"model": {"C": 0.5}}, [0, 0.5, None, None, None, None, None]),
        ({"model": {"inner": {"gamma": 0.5}}}, [0, None, 1, 0.5, None, None, None]),
        ({"net": {"act": "relu", "depth": 3}}, [None, None, None, None, None, None, 3]),
        ({"model": {"kind": "knn", "k": 2}, "x": 0, "net": {"depth": 3}}, [1, None, None, None, 2, 0.0, 3]),
    ],
)
def test_a_part_says_what_it_implies(config, row):
    assert partial_row(SPACE, config) == row
    assert checked(SPACE, row) == row


def test_a_whole_configuration_is_a_part():
    for config in SPACE.sample(np.random.default_rng(0), 30):
        row = partial_row(SPACE, config)
        assert row == SPACE.pack(config)
        assert left_out(SPACE, row) == []


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ({}, "at least one parameter must be given: model, model.svm.C"),
        ({"y": 1}, "y: not a parameter of the space, which has model, x, net"),
        ({"net.depth": 3}, "net.depth: in a configuration what is nested is given nested, a dict of 'net'"),
        ({"x": 1.5}, "x: 1.5 lies outside"),
        ({"net": {"act": "tanh", "depth": 3}}, "net.act: it is always 'relu'"),
        ({"net": 3}, "net: it holds parameters of its own, got 3"),
        ({"model": {}}, "model: {} fits 2 of the choices"),
        ({"model": {"kind": "tree"}}, "model: {'kind': 'tree'} fits none of the choices"),
        ({"model": {"kind": "svm", "k": 3}}, "fits none of the choices"),
        ({"model": {"kind": "svm", "C": 3.0}}, "C: 3.0 lies outside"),
        (["x"], "a configuration is a dict of parameters"),
    ],
)
def test_a_part_that_does_not_fit_is_refused(config, why):
    with pytest.raises(SpaceError) as refused:
        partial_row(SPACE, config)
    assert why in str(refused.value)
    assert "\n" not in str(refused.value)


def test_what_is_left_out_is_named():
    row = partial_row(SPACE, {"model": {"C": 0.5}, "x": 0.5})
    assert left_out(SPACE, row) == ["model.svm.inner", "net.depth"]
    assert given(SPACE, row) == ["model", "model.svm.C", "x"]
    assert only(SPACE, SPACE.pack({"model": {"kind": "knn", "k": 2}, "x": 0.5, "net": {"depth": 3}}), ["x"]) == [
        *[None] * 5, 0.5, None,
    ]  # fmt: skip


def test_a_proposal_completes_a_part():
    proposal = SPACE.pack({"model": {"kind": "svm", "C": 0.25, "inner": "none"}, "x": 0.75, "net": {"depth": 7}})
    rng = np.random.default_rng(0)
    assert completed(SPACE, partial_row(SPACE, {"x": 0.5}), proposal, rng) == [0, 0.25, 0, None, None, 0.5, 7]
    row = completed(SPACE, partial_row(SPACE, {"model": {"kind": "knn"}}), proposal, rng)
    assert row[:4] == [1, None, None, None]
    assert 1 <= row[4] <= 9  # which the proposal leaves closed
    assert row[5:] == [0.75, 7]
    row = completed(SPACE, partial_row(SPACE, {"model": {"inner": {"gamma": 0.5}}}), proposal, rng)
    assert row == [0, 0.25, 1, 0.5, None, 0.75, 7]


def test_completed_configurations_keep_the_rules():
    space = Space({"a": Integer(1, 8), "b": Integer(1, 8), "c": Float(0, 1)}, where="a * b <= 16")
    rng = np.random.default_rng(0)
    row = completed(space, partial_row(space, {"a": 8}), [2, 8, 0.25], rng)
    assert row[0] == 8
    assert row[1] <= 2
    assert completed(space, partial_row(space, {"a": 4}), [2, 3, 0.25], rng) == [4, 3, 0.25]
    strict = Space({"a": Float(0, 1), "b": Float(0, 1), "c": Float(0, 1)}, where="a + b <= 1")
    with pytest.raises(SpaceError, match=r"breaks the rule 'a \+ b <= 1': a=0.9, b=0.8; so does all else"):
        completed(strict, [0.9, 0.8, None], [0.1, 0.1, 0.5], rng)
