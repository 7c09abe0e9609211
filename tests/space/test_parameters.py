"""Axes: what coordinates stand for, how evenly, and that nothing is lost on the way there and back."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raybo.common.errors import SpaceError
from raybo.space import Categorical, Float, Integer, Space
from raybo.space.levels import LISTED_LEVELS


def finite(low, high):
    return st.floats(low, high, allow_nan=False, allow_infinity=False)


@st.composite
def floats(draw):
    if draw(st.booleans()):
        low = 10 ** draw(finite(-250, 200))
        return Float(low, low * 10 ** draw(finite(0.01, 100)), log=True)
    low = draw(finite(-1e6, 1e6))
    return Float(low, low + 10 ** draw(finite(-3, 9)))


@st.composite
def stepped(draw):
    hundredths, steps = draw(st.integers(1, 10_000)), draw(st.integers(1, 3_000))
    log = draw(st.booleans())
    low = draw(st.integers(1 if log else -10_000, 10_000))
    return Float(low / 100, (low + steps * hundredths) / 100, log=log, step=hundredths / 100)


@st.composite
def integers(draw):
    log = draw(st.booleans())
    low = draw(st.integers(1, 2**40) if log else st.integers(-(2**62), 2**62))
    step = draw(st.sampled_from([1, 1, 2, 7, 1000]))
    return Integer(low, low + step * draw(st.one_of(st.integers(1, 2_000), st.integers(1, 2**62))), log, step)


categories = st.lists(
    st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.text(max_size=3), st.tuples(st.integers(0, 3))),
    min_size=1,
    max_size=12,
    unique_by=lambda value: (type(value), value),
).map(Categorical)

parameters = st.one_of(floats(), stepped(), integers(), categories)
coordinates = st.lists(finite(0.0, 1.0), min_size=1, max_size=20).map(lambda u: np.array(u)[:, None])


@given(parameters, coordinates)
def test_every_coordinate_decodes_to_a_valid_value(parameter, u):
    space = Space({"p": parameter})
    for config in space.decode(u):
        accepted = space.accept(config)
        assert accepted == config
        assert type(accepted["p"]) is type(config["p"])


@given(parameters, coordinates)
def test_snap_is_encode_of_decode_and_idempotent(parameter, u):
    space = Space({"p": parameter})
    snapped = space.snap(u)
    np.testing.assert_array_equal(snapped, space.encode(space.decode(u)) if parameter.count else u)
    np.testing.assert_array_equal(space.snap(snapped), snapped)
    assert ((snapped >= 0) & (snapped <= 1)).all()
    assert space.decode(snapped) == space.decode(u)


@given(floats(), coordinates)
def test_floats_come_back_to_the_last_digits(parameter, u):
    space = Space({"p": parameter})
    configs = space.decode(u)
    again = space.decode(space.encode(configs))
    scale = abs(parameter.low) + parameter.high - parameter.low
    for config, back in zip(configs, again, strict=True):
        allowed = 1e-12 * (500 * config["p"] if parameter.log else scale)  # 500: the exponent is multiplied by the log
        assert abs(config["p"] - back["p"]) <= allowed


@given(integers().filter(lambda parameter: parameter.count < 2**40), st.data())
def test_integers_come_back_exactly(parameter, data):
    space = Space({"p": parameter})
    values = data.draw(st.lists(st.integers(0, parameter.count - 1), min_size=1, max_size=20))
    configs = [{"p": parameter.low + parameter.step * i} for i in values]
    assert space.decode(space.encode(configs)) == configs


@given(stepped(), st.data())
def test_stepped_floats_come_back_exactly(parameter, data):
    space = Space({"p": parameter})
    values = data.draw(st.lists(st.integers(0, parameter.count - 1), min_size=1, max_size=20))
    configs = [space.accept({"p": parameter.low + parameter.step * i}) for i in values]
    assert space.decode(space.encode(configs)) == configs


@pytest.mark.parametrize("high", [10**9, 2**53 + 1, 2**62, 2**62 - 1, 2**64, 10**30])
@pytest.mark.parametrize("log", [False, True])
def test_huge_integers_round_trip_within_their_range(high, log):
    space = Space({"p": Integer(1, high, log=log)})
    u = np.concatenate([np.linspace(0, 1, 1_001), np.random.default_rng(0).random(1_000)])[:, None]
    values = [config["p"] for config in space.decode(u)]
    assert all(type(value) is int and 1 <= value <= high for value in values)
    assert values[0] == 1
    assert abs(values[1_000] - high) <= 1e-13 * high
    back = [config["p"] for config in space.decode(space.snap(u))]
    assert all(abs(a - b) <= 1e-13 * (a if log else high) for a, b in zip(values, back, strict=True))


# ---- uniform coordinates are uniform values


@pytest.mark.parametrize(
    "parameter",
    [
        Integer(-3, 6),
        Integer(0, 1),
        Integer(0, 90, step=10),
        Float(0.1, 0.9, step=0.1),
        Float(-1.0, 1.0, step=0.25),
        Categorical(list("abcdefg")),
        Categorical([None]),
        Integer(0, 4_999),  # beyond the listed levels
    ],
)
def test_evenly_spread_coordinates_give_every_value_equally_often(parameter):
    each = 8
    u = (np.arange(each * parameter.count) + 0.5) / (each * parameter.count)
    values, counts = np.unique([repr(v) for v in parameter.decode(u)], return_counts=True)
    assert len(values) == parameter.count
    assert set(counts) == {each}


def test_log_integers_own_log_scaled_intervals():
    parameter, n = Integer(1, 100, log=True), 200_000
    values = np.array(parameter.decode((np.arange(n) + 0.5) / n))
    for value in (1, 2, 7, 50, 100):
        share = math.log((value + 0.5) / (value - 0.5)) / math.log(100.5 / 0.5)
        assert abs((values == value).mean() - share) < 2 / n


def test_a_log_float_is_uniform_in_its_logarithm():
    u = np.linspace(0, 1, 11)
    values = Float(1e-5, 1e5, log=True).decode(u)
    np.testing.assert_allclose(np.log10(values), np.linspace(-5, 5, 11), atol=1e-12)
    assert values[0] == 1e-5
    assert values[-1] == 1e5


def test_stepped_floats_are_exact_decimals():
    assert Float(0.1, 0.9, step=0.1).decode(np.linspace(0, 1, 9)) == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
    assert Float(0, 1e-18, step=5e-19).decode(np.array([0.0, 0.5, 1.0])) == [0.0, 5e-19, 1e-18]
    third = Float(1 / 3, 1.0, step=1 / 3)
    assert third.decode(np.array([0.0, 1.0])) == [1 / 3, 1.0]
    assert third.accept(1 / 3, "p") == 1 / 3


# ---- levels


@given(parameters)
def test_levels_are_exactly_the_runnable_coordinates(parameter):
    cube = Space({"p": parameter}).cube
    (levels,) = cube.levels
    if parameter.count is None or parameter.count > LISTED_LEVELS:
        assert levels is None
        return
    assert len(levels) == parameter.count
    assert (np.diff(levels) > 0).all()
    np.testing.assert_array_equal(cube.snap(levels[:, None])[:, 0], levels)
    assert len({repr(value) for value in parameter.decode(levels)}) == parameter.count


def test_the_size_of_a_cube_counts_its_points():
    assert Space({"a": Integer(1, 3), "b": Categorical(["x", "y"])}).cube.size == 6
    assert math.isinf(Space({"a": Integer(1, 3), "b": Float(0, 1)}).cube.size)


def test_snap_clips_without_changing_its_argument():
    cube = Space({"a": Float(0, 1), "b": Integer(0, 3), "c": Categorical([1, 2]), "d": Integer(0, 5_000)}).cube
    X = np.array([[-1.0, -1.0, -1.0, -1.0], [2.0, 2.0, 2.0, 2.0]])
    before = X.copy()
    np.testing.assert_allclose(cube.snap(X), [[0, 0.125, 0.25, 0.5 / 5001], [1, 0.875, 0.75, 5000.5 / 5001]])
    np.testing.assert_array_equal(X, before)


# ---- choices


class Odd:
    """Compares with nothing, and prints its address."""

    def __eq__(self, other):
        raise TypeError("no")

    __hash__ = None


def test_choices_are_matched_by_identity_first():
    array, nan, odd = np.arange(3), math.nan, Odd()
    choices = [True, 1, 1.0, "1", None, nan, array, np.arange(3), (1, [2]), {"a": 1}, odd, np.sin, float, print]
    space = Space({"c": Categorical(choices)})
    for position, choice in enumerate(choices):
        assert space.pack({"c": choice}) == [position]
        assert space.unpack([position])["c"] is choice
    u = (np.arange(len(choices)) + 0.5)[:, None] / len(choices)
    assert all(a["c"] is b for a, b in zip(space.decode(u), choices, strict=True))


def test_equal_values_of_other_types_match():
    space = Space({"c": Categorical([1, "a"])})
    assert space.accept({"c": np.int64(1)})["c"] is space.template["c"].choices[0]
    with pytest.raises(SpaceError, match=r"^c: 2 is not one of"):
        space.accept({"c": 2})


def test_numbers_of_numpy_become_plain_ones():
    space = Space({"i": Integer(np.int64(1), np.int64(9), step=np.int8(2)), "f": Float(np.float32(0.5), np.int64(2))})
    config = space.decode(np.array([[0.5, 0.5]]))[0]
    assert {type(v) for v in config.values()} == {int, float}
    assert Space.from_json(json.loads(json.dumps(space.to_json()))) == space
    assert Space({"i": Integer(1.0, 5.0)}) == Space({"i": Integer(1, 5)})


# ---- one value


ONE = [
    Float(1.0, 1.0),
    Float(-0.5, -0.5),
    Float(2.0, 2.0, log=True),
    Float(0.0, 0.0, step=1.0),
    Float(2.0, 2.0, log=True, step=0.5),
    Integer(3, 3),
    Integer(-3, -3, step=7),
    Integer(3, 3, log=True),
    Categorical([None]),
]


@pytest.mark.parametrize("parameter", ONE, ids=repr)
def test_a_parameter_of_one_value_is_a_constant(parameter):
    space = Space({"x": Float(0, 1), "p": parameter})
    value = parameter.choices[0] if isinstance(parameter, Categorical) else parameter.low
    X = np.random.default_rng(0).random((7, 2))
    assert [config["p"] for config in space.decode(X)] == [value] * 7
    snapped = space.snap(X)
    np.testing.assert_array_equal(snapped, np.column_stack([X[:, 0], np.full(7, 0.5)]))
    np.testing.assert_array_equal(space.encode(space.decode(X))[:, 1], snapped[:, 1])
    config = space.accept({"x": 0.25, "p": value})
    assert space.unpack(space.pack(config)) == config
    assert Space.from_json(json.loads(json.dumps(space.to_json()))) == space
    np.testing.assert_array_equal(space.cube.levels[1], [0.5])
    assert Space({"p": parameter}).cube.size == 1
    if not isinstance(parameter, Categorical):
        with pytest.raises(SpaceError, match=r"p: .* lies outside"):
            space.accept({"x": 0.25, "p": value + 1})


@pytest.mark.parametrize("log", [2, 1, 0.1, "false", None])
def test_a_step_passed_as_log_is_refused(log):
    for kind in (Float, Integer):
        with pytest.raises(SpaceError, match=r"^\w+: log must be True or False, got log=.*; a step is given as step="):
            kind(1, 10, log)
    assert Space({"x": Integer(1, 10, np.True_)}).to_json()["items"]["x"]["log"] is True
    told = Space({"x": Integer(1, 10, log=True)}).to_json()
    told["items"]["x"]["log"] = 2  # as a journal of 0.1 may have it
    assert Space.from_json(told).parameters[("x",)] == Integer(1, 10, log=True)


def test_a_logarithmic_scale_must_tell_its_values_apart():
    with pytest.raises(SpaceError, match=r"^Integer: a logarithmic scale cannot tell .*; use log=False$"):
        Integer(2**60, 2**60 + 10, log=True)
    for wide in (Integer(1, 10**18, log=True), Integer(10**9, 10**9 + 9, log=True), Integer(2**60, 2**60 + 10)):
        assert Space({"n": wide}).decode(np.array([[0.0], [1.0]])) == [{"n": wide.low}, {"n": wide.high}]


def test_half_a_step_is_no_step_however_many_there_are():
    with pytest.raises(SpaceError, match=r"use high=1000000.0 or 1000001.0"):
        Float(0, 1_000_000.5, step=1).check("x")
    Float(0, 1e6 * 0.1, step=0.1).check("x")
