"""Spaces: nesting, rows of the journal, descriptions in JSON, and the refusal of everything that is no space."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import raybo
from raybo.common.errors import SpaceError
from raybo.space import Categorical, Float, Integer, Opaque, Ordinal, Space

NAMES = st.text(min_size=1, max_size=4)
PARAMETERS = st.sampled_from(
    [
        Float(-1.0, 1.0),
        Float(1e-6, 1e3, log=True),
        Float(0.0, 1.0, step=0.05),
        Float(0.5, 8.0, log=True, step=0.5),
        Integer(-5, 5),
        Integer(1, 4_096, log=True),
        Integer(0, 10**9),
        Integer(1, 2**62, log=True),
        Integer(0, 100, step=20),
        Categorical(["a", "b", "c"]),
        Categorical([True, 1, 1.0, None, (1, 2), [3], {"k": math.inf}, "x"]),
        Categorical(["only"]),
    ]
)
TREES = st.recursive(
    PARAMETERS, lambda inside: st.dictionaries(NAMES, inside, min_size=1, max_size=4), max_leaves=8
).filter(lambda tree: isinstance(tree, dict))


def sample(space, n, seed=0):
    return space.sample(np.random.default_rng(seed), n)


def leaves(tree):
    return [x for value in tree.values() for x in leaves(value)] if isinstance(tree, dict) else [tree]


def shape(tree):
    return {key: shape(value) for key, value in tree.items()} if isinstance(tree, dict) else None


# ---- there and back


@given(TREES)
def test_configurations_match_the_shape_of_the_space(tree):
    space = Space(tree)
    assert space.d == len(leaves(tree)) == len(space.names)
    for config in sample(space, 5):
        assert list(config) == list(tree)
        for path, parameter in space.parameters.items():
            value = config
            for key in path:
                value = value[key]
            assert parameter.accept(value, "p") is value or parameter.accept(value, "p") == value
        assert space.accept(config) == config


@given(TREES)
def test_journal_rows_round_trip_bit_for_bit(tree):
    space = Space(tree)
    for config in sample(space, 5):
        row = json.loads(json.dumps(space.pack(config)))
        back = space.unpack(row)
        assert list(back) == list(config)
        assert repr(back) == repr(config)  # floats to the last bit, True and not 1
        assert space.pack(back) == row


@given(TREES)
def test_a_point_is_the_row_of_its_configuration(tree):
    space = Space(tree)
    X = np.random.default_rng(2).random((5, space.d))
    rows = space.rows(X)
    assert repr(rows) == repr([space.pack(config) for config in space.decode(X)])  # to the last bit, and 1 is no 1.0
    np.testing.assert_array_equal(space.points(rows), space.encode(space.decode(X)))


@given(TREES)
def test_a_description_survives_json(tree):
    space = Space(tree)
    again = Space.from_json(json.loads(json.dumps(space.to_json())))
    assert again == space
    assert hash(again) == hash(space)
    assert again.names == space.names
    X = np.random.default_rng(1).random((5, space.d))
    assert [repr(config) for config in again.decode(X)] == [repr(config) for config in space.decode(X)]


def test_encoding_many_configurations_is_encoding_each():
    space = Space({"a": Float(0, 1), "b": {"c": Integer(1, 9), "d": Categorical(["p", "q"])}})
    configs = sample(space, 7)
    np.testing.assert_array_equal(space.encode(configs), np.vstack([space.encode([config]) for config in configs]))
    assert space.encode([]).shape == (0, 3)
    assert space.decode(np.empty((0, 3))) == []
    assert sample(space, 0) == []


def test_rounding_errors_beyond_the_range_are_clipped():
    assert Space({"a": Float(0, 0.3)}).accept({"a": 0.1 + 0.2}) == {"a": 0.3}
    tiny = Space({"a": Float(1e-12, 1.0, log=True)})
    with pytest.raises(SpaceError, match="outside"):
        tiny.accept({"a": 0.0})  # far away on a logarithmic scale


def test_opaque_objects_have_stable_descriptions():
    class Optimiser:
        pass

    def step():
        """A function, whose repr holds an address."""

    make = lambda: Space({"o": Categorical([Optimiser(), Optimiser, step, np.arange(2), np.arange(2), math.nan])})  # noqa: E731
    text = json.dumps(make().to_json())
    assert json.loads(text) == make().to_json()
    assert "0x" not in text
    again = Space.from_json(json.loads(text))  # two arrays that look alike are two choices still
    assert again == make()
    assert [again.unpack([i])["o"] for i in range(5)] == list(again.template["o"].choices)[:5]
    assert isinstance(again.unpack([0])["o"], Opaque)
    assert "Optimiser" in repr(again.unpack([0])["o"])


def test_different_spaces_are_different():
    base = Space({"a": Float(0, 1)})
    for other in (
        {"a": Float(0, 2)},
        {"b": Float(0, 1)},
        {"a": Float(0, 1, step=0.5)},
        {"a": Integer(0, 1)},
        {"a": {"a": Float(0, 1)}},
        {"a": Float(0, 1), "b": Float(0, 1)},
    ):
        assert Space(other) != base
    assert Space({"a": Categorical([True])}) != Space({"a": Categorical([2])})
    assert base != "a space"


def test_dotted_names_are_not_paths():
    space = Space({"a.b": Integer(0, 1), "a": {"c": Integer(2, 3)}})
    config = sample(space, 1)[0]
    assert config["a.b"] in (0, 1)
    assert config["a"]["c"] in (2, 3)
    assert Space.from_json(space.to_json()) == space


def test_pairs_are_taken_for_a_mapping():
    assert Space([("a", Float(0, 1)), ("b", Integer(1, 2))]) == Space({"a": Float(0, 1), "b": Integer(1, 2)})


# ---- what is refused, in one line that names the culprit


BAD_PARAMETERS = [
    (lambda: Float(1, 0), "Float: low must be below high, got low=1.0, high=0.0"),
    (lambda: Integer(5, 4), "Integer: low must be below high"),
    (lambda: Float(0, 1, log=True), "Float: a logarithmic scale needs low above 0, got low=0.0"),
    (lambda: Float(-1, 1, log=True), "Float: a logarithmic scale needs low above 0"),
    (lambda: Integer(0, 9, log=True), "Integer: a logarithmic scale needs low above 0"),
    (lambda: Float(math.nan, 1), "Float: low must be a finite number, got nan"),
    (lambda: Float(0, math.inf), "Float: high must be a finite number, got inf"),
    (lambda: Float("0", 1), "Float: low must be a finite number, got '0'"),
    (lambda: Float(None, 1), "Float: low must be a finite number, got None"),
    (lambda: Float(False, True), "Float: low must be a finite number, got False"),
    (lambda: Float(-1e308, 1e308), "Float: the range is too wide"),
    (lambda: Float(1e-200, 1e200, log=True), "Float: the range is too wide"),
    (lambda: Integer(1, int(1.79e308) + 1, step=int(1.79e308)), "Integer: the range is too wide"),
    (lambda: Integer(1, int(1.79e308) + 1, log=True, step=int(1.79e308)), "Integer: the range is too wide"),
    (lambda: Float(0, 1.7e308, step=1.7e308), "Float: the range is too wide"),
    (lambda: Float(0, 1, step=0), "Float: step must be a finite number above 0, got 0.0"),
    (lambda: Float(0, 1, step=-0.1), "Float: step must be a finite number above 0"),
    (lambda: Float(0, 1, step=math.nan), "Float: step must be a finite number above 0"),
    (lambda: Float(0, 1, step=0.3), "Float: high must be low plus a whole number of steps"),
    (lambda: Float(0, 1, step=2), "Float: high must be low plus a whole number of steps"),
    (lambda: Float(0, 1, step=1e-320), "Float: high must be low plus a whole number of steps"),
    (lambda: Integer(0.5, 3), "Integer: low must be a whole number, got low=0.5"),
    (lambda: Integer(0, math.inf), "Integer: high must be a whole number, got high=inf"),
    (lambda: Integer(0, 10**400), "Integer: high must be a whole number"),
    (lambda: Integer(0, 9, step=2), "Integer: high must be low plus a whole number of steps"),
    (
        lambda: Integer(1, 10, step=2),
        "Integer: high must be low plus a whole number of steps, got low=1, high=10, step=2; use high=9 or 11",
    ),
    (lambda: Integer(0, 9, step=0), "Integer: step must be a positive number, got step=0"),
    (lambda: Categorical([]), "Categorical: a choice needs at least one value, got an empty list"),
    (lambda: Categorical("abc"), "Categorical: choices must be a list, got 'abc'"),
    (lambda: Categorical({1, 2}), "Categorical: choices must be a list"),
    (lambda: Categorical(None), "Categorical: choices must be a list, got None"),
    (lambda: Categorical(["a", "b", "a"]), "Categorical: each choice may be given once, got 'a' twice"),
    (lambda: Ordinal([1, 1]), "Ordinal: each choice may be given once, got 1 twice"),
    (lambda: Ordinal([Float(0, 1)]), "Ordinal: a value of an Ordinal cannot contain parameters"),
    (lambda: Float(0, 1, guess=2), "Float: 2.0 lies outside [0.0, 1.0]; a guess must be a value of the parameter"),
]
BAD_SPACES = [
    ({"lr": b"x"}, "lr: a parameter must be Float, Integer, Categorical or Ordinal, got b'x'"),
    ({"lr": [1, 2]}, "lr: a parameter must be Float, Integer, Categorical or Ordinal, got [1, 2]; use Categorical"),
    ({"lr": 0.1}, "a space needs at least one parameter, got none"),
    ({"lr": (0, 1)}, "lr: a parameter must be"),
    ({1: Float(0, 1)}, "a parameter's name must be a non-empty string, got 1"),
    ({"": Float(0, 1)}, "a parameter's name must be a non-empty string, got ''"),
    ({None: Float(0, 1)}, "a parameter's name must be a non-empty string, got None"),
    ({"m": {2: Float(0, 1)}}, "a parameter's name must be a non-empty string, got 2"),
    ([("lr", Float(0, 1)), ("lr", Float(0, 2))], "lr: each name may be used once"),
    ({}, "a space needs at least one parameter"),
    ({"m": {}}, "a space needs at least one parameter"),
    (None, "a space is a dict from names to parameters, got None"),
    (3, "a space is a dict from names to parameters, got 3"),
    ("lr", "a space is a dict from names to parameters, got 'lr'"),
    ([("lr",)], "a space is a dict from names to parameters"),
]


@pytest.mark.parametrize(("make", "words"), BAD_PARAMETERS, ids=[f"{i}" for i in range(len(BAD_PARAMETERS))])
def test_wrong_parameters_are_refused_where_they_are_made(make, words):
    with pytest.raises(SpaceError) as caught:
        make()
    message = str(caught.value)
    assert message.startswith(words)
    assert "\n" not in message


@pytest.mark.parametrize(("bad", "words"), BAD_SPACES, ids=[f"{i}" for i in range(len(BAD_SPACES))])
def test_what_is_no_space_is_refused(bad, words):
    with pytest.raises(SpaceError) as caught:
        Space(bad)
    message = str(caught.value)
    assert message.startswith(words)
    assert "\n" not in message


SPACE = Space({"lr": Float(1e-3, 1, log=True), "n": Integer(2, 10, step=2), "m": {"c": Categorical(["a", "b"])}})
GOOD = {"lr": 0.1, "n": 4, "m": {"c": "a"}}
BAD_CONFIGS = [
    ({**GOOD, "lr": 2.0}, "lr: 2.0 lies outside"),
    ({**GOOD, "lr": 0.0}, "lr: 0.0 lies outside"),
    ({**GOOD, "lr": math.nan}, "lr: a number is needed, got nan"),
    ({**GOOD, "lr": "0.1"}, "lr: a number is needed, got '0.1'"),
    ({**GOOD, "lr": None}, "lr: a number is needed, got None"),
    ({**GOOD, "lr": True}, "lr: a number is needed, got True"),
    ({**GOOD, "lr": 10**400}, "lr: a number is needed"),
    ({**GOOD, "n": 3}, "n: 3 is not a whole number of steps of 2 from 2"),
    ({**GOOD, "n": 12}, "n: 12 lies outside"),
    ({**GOOD, "n": 2.5}, "n: a whole number is needed, got 2.5"),
    ({**GOOD, "m": {"c": "z"}}, "m.c: 'z' is not one of"),
    ({**GOOD, "m": {}}, "m.c: missing from the configuration"),
    ({**GOOD, "m": "c"}, "m.c: missing from the configuration"),
    ({"lr": 0.1}, "n: missing from the configuration"),
    ({**GOOD, "rate": 1}, "rate: not a parameter of the space, which has lr, n, m"),
    ({**GOOD, "m": {"c": "a", "d": 1}}, "m.d: not a parameter of the space"),
    (None, "a configuration is a dict of parameters, got None"),
    ([0.1, 4, "a"], "a configuration is a dict of parameters"),
]


@pytest.mark.parametrize(("bad", "words"), BAD_CONFIGS, ids=[f"{i}" for i in range(len(BAD_CONFIGS))])
def test_a_configuration_that_does_not_fit_is_refused(bad, words):
    for use in (SPACE.accept, SPACE.pack, lambda config: SPACE.encode([config])):
        with pytest.raises(SpaceError) as caught:
            use(bad)
        assert str(caught.value).startswith(words)
        assert "\n" not in str(caught.value)


def test_order_of_parameters_matters_for_equality():
    """Points and journals keep values by their places."""
    a, b = ({name: Float(0, 1) for name in names} for names in ("xy", "yx"))
    assert Space(a) != Space(b)
    assert Space({"m": a}) != Space({"m": b})
    assert Space(a) == Space(dict(a))


def test_plain_values_are_constants():
    space = Space({"rate": Float(0, 1), "verbose": 0, "model": {"kind": "svm", "depth": Integer(1, 3), "seed": None}})
    assert space.names == ["rate", "model.depth"]
    config = {"rate": 0.5, "verbose": 0, "model": {"kind": "svm", "depth": 2, "seed": None}}
    assert space.accept(config) == config
    assert space.decode(space.encode([config])) == [config]
    assert Space.from_json(space.to_json()) == space
    with pytest.raises(SpaceError, match="verbose: it is always 0 in this space, got 1"):
        space.accept({**config, "verbose": 1})
    trial = raybo.Searcher(space, "random", seed=0).ask()
    assert trial.config["model"]["kind"] == "svm"


def test_numpy_numbers_are_constants():
    space = raybo.Space({"x": raybo.Float(0, 1), "classes": np.int64(3), "flag": np.bool_(True)})
    assert space.accept({"x": 0.5, "classes": 3, "flag": True}) == {"x": 0.5, "classes": 3, "flag": True}
