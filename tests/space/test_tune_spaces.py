"""Ray Tune's search spaces, with its real domains: what is decoded obeys them, and constants are left alone."""

from __future__ import annotations

import collections
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ray import tune

from raybo.common.errors import SpaceError
from raybo.space import Categorical, Float, Integer, Space
from raybo.space.tune import is_domain

KEYS = st.text(st.characters(codec="ascii", categories=["L"]), min_size=1, max_size=3)


class Thing:
    """A constant that differs from others by its identity only."""


@st.composite
def ranges(draw, low=-1000, whole=False):
    low = draw(st.integers(low, 1000))
    high = low + draw(st.integers(2, 3000))
    return (low, high) if whole else (low / 8, high / 8)


@st.composite
def quantised(draw, low=-300):
    q = draw(st.integers(1, 400)) / 16
    low = draw(st.integers(low, 300))
    return low * q, (low + draw(st.integers(1, 200))) * q, q


@st.composite
def domains(draw):
    kind = draw(st.sampled_from([*FLOATS, *INTEGERS, "choice"]))
    if kind == "choice":
        return tune.choice(draw(st.lists(st.one_of(st.integers(0, 3), st.booleans(), st.none()), min_size=1)))
    positive = "log" in kind
    if kind in ("quniform", "qloguniform"):
        arguments = draw(quantised(1 if positive else -300))
    elif kind in FLOATS:
        arguments = draw(ranges(1 if positive else -1000))
    else:
        arguments = draw(ranges(1 if positive else -1000, whole=True))
        if kind.startswith("q"):
            arguments += (draw(st.integers(1, (arguments[1] - arguments[0]) // 2)),)
    return getattr(tune, kind)(*arguments)


FLOATS = ("uniform", "loguniform", "quniform", "qloguniform")
INTEGERS = ("randint", "lograndint", "qrandint", "qlograndint")
CONSTANTS = st.sampled_from(
    [None, 3, 0.5, "adam", True, math.inf, b"x", Thing(), np.arange(3), len, Thing, frozenset({1}), ("a", 1), [], {}]
)
TREES = st.recursive(
    st.one_of(domains(), domains(), CONSTANTS),
    lambda inside: st.one_of(
        st.dictionaries(KEYS, inside, max_size=4), st.lists(inside, max_size=3), st.lists(inside, max_size=3).map(tuple)
    ),
    max_leaves=10,
).filter(lambda tree: isinstance(tree, dict) and domains_in(tree))


def domains_in(tree):
    if isinstance(tree, dict):
        return [found for value in tree.values() for found in domains_in(value)]
    if isinstance(tree, (list, tuple)):
        return [found for value in tree for found in domains_in(value)]
    return [tree] if is_domain(tree) else []


def check(declared, got):
    """The configuration beside the param_space: every domain obeyed, everything else the same object."""
    if is_domain(declared):
        check_domain(declared, got)
    elif isinstance(declared, dict):
        assert type(got) is type(declared)
        assert list(got) == list(declared)
        for key, value in declared.items():
            check(value, got[key])
    elif type(declared) in (list, tuple):
        assert type(got) is type(declared)
        assert len(got) == len(declared)
        for a, b in zip(declared, got, strict=True):
            check(a, b)
    else:
        assert got is declared


def check_domain(domain, value):
    assert domain.is_valid(value)
    if isinstance(domain, tune.search.sample.Categorical):
        return
    whole = isinstance(domain, tune.search.sample.Integer)
    assert type(value) is (int if whole else float)
    q = getattr(domain.get_sampler(), "q", None)
    if q is not None:
        assert abs(value / q - round(value / q)) < 1e-9
    if whole and q in (None, 1):
        assert value < domain.upper  # Tune leaves it out, although its is_valid does not
    if not whole and q is None:
        assert value < domain.upper or domain.lower == domain.upper  # the same


@given(TREES)
def test_every_decoded_configuration_obeys_the_param_space(tree):
    space = Space.from_tune(tree)
    assert space.d == len(domains_in(tree))
    X = np.vstack([np.zeros(space.d), np.ones(space.d), np.random.default_rng(0).random((6, space.d))])
    for config in space.decode(X):
        check(tree, config)
        assert space.pack(space.unpack(space.pack(config))) == space.pack(config)


@pytest.mark.parametrize(
    ("domain", "highest"),
    [
        (tune.uniform(0, 1), 1 - 2**-53),
        (tune.uniform(-1, 0), -(2**-53)),  # so that it can be divided by
        (tune.uniform(1, 2), math.nextafter(2, 1)),
        (tune.loguniform(1e-3, 1), 1 - 2**-53),
        (tune.quniform(0, 1, 0.25), 1.0),
        (tune.qloguniform(0.25, 1, 0.25), 1.0),
        (tune.randint(0, 5), 4),
        (tune.lograndint(1, 5), 4),
        (tune.qrandint(0, 6, 2), 6),
        (tune.qrandint(0, 6, 1), 5),
        (tune.qlograndint(2, 6, 2), 6),
        (tune.uniform(1.0, 1.0), 1.0),
        (tune.loguniform(2.0, 2.0), 2.0),
        (tune.quniform(1.0, 1.0, 0.5), 1.0),
        (tune.quniform(0.0, 0.0, 0.5), 0.0),
    ],
    ids=lambda value: repr(value) if isinstance(value, (int, float)) else value.domain_str,
)
def test_upper_bounds_follow_tune(domain, highest):
    space = Space.from_tune({"a": domain})
    values = [config["a"] for config in space.decode(np.linspace(0, 1, 1_001)[:, None])]
    assert max(values) == pytest.approx(highest, rel=1e-15, abs=1e-16)
    assert max(values) <= highest
    assert min(values) == pytest.approx(space.parameters[("a",)].low)
    given = space.accept({"a": space.parameters[("a",)].high})  # a user may ask for the edge
    assert given["a"] == space.parameters[("a",)].high


@given(TREES)
def test_the_description_survives_json(tree):
    space = Space.from_tune(tree)
    assert Space.from_json(json.loads(json.dumps(space.to_json()))) == space


@given(st.sampled_from(INTEGERS), st.data())
def test_exactly_the_integers_that_tune_draws(kind, data):
    low = data.draw(st.integers(1, 20))
    high = low + data.draw(st.integers(2, 12))
    q = data.draw(st.integers(1, 4)) if kind.startswith("q") else None
    domain = getattr(tune, kind)(low, high, *([q] if q else []))
    try:
        drawn = {int(v) for v in domain.sample(size=3_000, random_state=0)}
    except ValueError:
        drawn = {v for v in range(low, high + 1) if q and v % q == 0}
        if len(drawn) != 1:  # the only value of a domain, which Ray 2.50 cannot draw
            with pytest.raises(SpaceError):
                Space.from_tune({"a": domain})
            return
    space = Space.from_tune({"a": domain})
    ours = {config["a"] for config in space.decode(np.linspace(0, 1, 2_001)[:, None])}
    assert ours == drawn


@pytest.mark.parametrize(
    ("domain", "parameter"),
    [
        (tune.uniform(-1, 2), Float(-1, 2)),
        (tune.loguniform(1e-4, 1e-1), Float(1e-4, 1e-1, log=True)),
        (tune.quniform(-1, 1, 0.25), Float(-1, 1, step=0.25)),
        (tune.qloguniform(1e-4, 1e-3, 1e-4), Float(1e-4, 1e-3, log=True, step=1e-4)),
        (tune.randint(0, 2**62), Integer(0, 2**62 - 1)),
        (tune.lograndint(1, 9), Integer(1, 8, log=True)),
        (tune.qrandint(1, 9, 2), Integer(2, 8, step=2)),
        (tune.qrandint(0, 10, 1), Integer(0, 9)),
        (tune.qlograndint(2, 12, 3), Integer(3, 12, log=True, step=3)),
        (tune.randint(3, 4), Categorical([3])),
        (tune.qrandint(4, 5, 4), Categorical([4])),
        (tune.choice(["a", "b", "a"]), Categorical(["a", "b"])),
    ],
)
def test_each_domain_has_its_parameter(domain, parameter):
    assert Space.from_tune({"p": domain}) == Space({"p": parameter})


def test_nested_constants_keep_their_types_and_identity():
    ordered, named, array = collections.OrderedDict(b=1, a=2), collections.namedtuple("P", "x y")(1, 2), np.zeros(3)
    tree = {"lr": tune.uniform(0, 1), "model": {"o": ordered, "p": named, 5: array, "l": [array, {"k": array}]}}
    config = Space.from_tune(tree).decode(np.array([[0.5]]))[0]
    model = config["model"]
    assert model["o"] is ordered
    assert model["p"] is named
    assert model[5] is model["l"][0] is model["l"][1]["k"] is array


REFUSED = [
    ({"m": {"a": tune.randn()}}, "m.a: tune's normal of float cannot be searched"),
    ({"m": {"a": tune.qrandn(0, 1, 0.1)}}, "m.a: tune's normal of float cannot be searched"),
    ({"m": [1, tune.sample_from(lambda config: 1)]}, "m.1: tune's"),
    ({"m": {"a": tune.grid_search([1, 2])}, "b": tune.uniform(0, 1)}, "m.a: grid_search is not a range"),
    ({"a": tune.grid_search([1, 2])}, "a: grid_search is not a range"),
    ({"a": tune.choice([])}, "a: a choice needs at least one value"),
    ({"m": {"a": tune.uniform(1, 0)}}, "m.a: low must be below high"),
    ({"m": {"a": tune.randint(3, 3)}}, "m.a: low must be below high"),
    ({"m": {1: tune.uniform(0, 1)}}, "m.1: a parameter's name must be a string, got 1"),
    ({1: tune.uniform(0, 1)}, "a parameter's name must be a string, got 1"),
    ({"a": 1}, "a space needs at least one parameter"),
    ([tune.uniform(0, 1)], "a Ray Tune search space is a dict"),
    (None, "a Ray Tune search space is a dict, got None"),
    ({"m": collections.namedtuple("P", "x")(tune.uniform(0, 1))}, "m: domains may stand in dicts, lists and tuples"),
]


@pytest.mark.parametrize(("tree", "words"), REFUSED, ids=[f"{i}" for i in range(len(REFUSED))])
def test_unsupported_domains_are_refused_with_their_path(tree, words):
    with pytest.raises(SpaceError) as caught:
        Space.from_tune(tree)
    assert str(caught.value).startswith(words)
    assert "\n" not in str(caught.value)


def test_tune_domains_in_a_space_suggest_from_tune():
    with pytest.raises(SpaceError, match=r"^a: .*use Space.from_tune"):
        Space({"a": tune.uniform(0, 1)})


# ---- constants

DOMAIN = tune.uniform(0, 1)
FIXED = {
    "x": DOMAIN,
    "model": {"kind": "tree", "shape": [3, 4]},
    "rates": [DOMAIN, 5],
    "w": np.arange(3),
    "n": math.nan,
}


def fitting(**changes):
    return {"x": 0.5, "model": {"kind": "tree", "shape": [3, 4]}, "rates": [0.25, 5], **changes}


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"model": {"kind": "forest", "shape": [3, 4]}}, "model: it is always {'kind': 'tree', 'shape': [3, 4]}"),
        ({"model": {"kind": "tree", "shape": [3]}}, "model: it is always"),
        ({"model": {"kind": "tree", "shape": [3, 4], "more": 1}}, "model: it is always"),
        ({"rates": [0.25, 6]}, "rates.1: it is always 5 in this space, got 6"),
        ({"rates": [0.25, 5, 7]}, "rates: it has 2 items in the space, got 3"),
        ({"w": np.arange(4)}, "w: it is always array([0, 1, 2])"),
    ],
)
def test_another_value_for_a_constant_is_refused(bad, words):
    space = Space.from_tune(FIXED)
    for use in (space.accept, space.pack, lambda config: space.encode([config])):
        with pytest.raises(SpaceError) as caught:
            use(fitting(**bad))
        assert str(caught.value).startswith(words)


def test_constants_may_be_left_out_or_repeated():
    space = Space.from_tune(FIXED)
    full = space.accept(fitting())
    assert full["w"] is FIXED["w"]
    for config in (full, fitting(w=np.arange(3), n=math.nan), {"x": 0.5, "rates": [0.25]}):
        assert space.pack(config) == [0.5, 0.25]
    assert Space.from_json(space.to_json()).pack(fitting()) == [0.5, 0.25]
