"""Rules between parameters: what they may say, what they mean, and that they are never code."""

from __future__ import annotations

import copy
import itertools
import math
import pickle
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raybo.common.errors import SpaceError
from raybo.searcher import Searcher
from raybo.space import Categorical, Float, Integer, Ordinal, Space
from raybo.space.rules import read_rule

UNIT = {name: Float(0, 1) for name in "abc"}


def holds(text, **values):
    """Return True if a rule over numbers holds."""
    rule = read_rule(text, list(values), [Float(-1e9, 1e9)] * len(values))
    return bool(np.ravel(rule.holds({i: np.array([float(v)]) for i, v in enumerate(values.values())}))[0])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("depth * width <= 64", True),
        ("depth * width < 64", False),
        ("max(depth, width) > 2 * c", True),
        ("min(depth, width, c) == c", True),
        ("1 < c < depth < width", True),
        ("1 < c < width < depth", False),
        ("not (c > 3 or depth == 4) and width >= 1", False),
        ("abs(c - depth) % 2 == 0 and -c < 0", True),
        ("c ** 2 == depth and depth / c == c", True),
        ("log(exp(c)) == c and +c != depth", True),
        ("-7 % depth == 1", True),
        ("c == 0 or depth / (c - 2) > 1", False),
        ("c == 2 or depth / (c - 2) > 1", True),
        ("depth / (c - 2) > 1 or c == 2", True),
        ("not (depth / (c - 2) > 1)", False),
        ("log(c - 2) < 5", False),
        ("(c - 3) ** 0.5 < 5", False),
        ("not exp(1000 * c) < 0", False),
        ("c < 1 and depth / 0.0 > c or width == 16", True),
    ],
)
def test_rules_mean_what_they_say(text, expected):
    assert holds(text, depth=4, width=16, c=2) is expected


expressions = st.recursive(
    st.sampled_from(["a", "b", "c", "1", "2.5", "-3"]),
    lambda inside: st.one_of(
        st.tuples(inside, st.sampled_from(["+", "-", "*", "/", "%"]), inside).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        st.tuples(st.sampled_from(["min", "max"]), inside, inside).map(lambda t: f"{t[0]}({t[1]}, {t[2]})"),
        inside.map(lambda t: f"abs({t})"),
    ),
    max_leaves=8,
)
numbers = st.sampled_from([-2.0, -0.5, 0.0, 0.5, 1.0, 3.0])


@given(expressions, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), expressions, numbers, numbers, numbers)
def test_rules_agree_with_python(left, comparison, right, a, b, c):
    text = f"{left} {comparison} {right}"
    values = {"a": a, "b": b, "c": c}
    try:
        expected = eval(text, {"min": min, "max": max, "abs": abs}, values)  # texts of this file's own making
    except ZeroDivisionError:
        expected = False
    try:
        found = holds(text, **values)
    except SpaceError:  # it names no parameter, or divides by nothing
        found = expected
    assert found is expected


HOSTILE = [
    "a.__class__ < 1",
    "().__class__.__mro__ == a",
    "__import__('os').system('true') < a",
    "open('/etc/passwd') < a",
    "[x for x in (1,)] == a",
    "(lambda: 1)() < a",
    "f'{a}' < 1",
    "a[0] < 1",
    "a if b else c",
    "a := 3",
    "a in (1, 2)",
    "a is b",
    "a & b < 1",
    "a // b < 1",
    "a @ b < 1",
    "await a < 1",
    "9 ** 9 ** 9 ** 9 < a",
    "9 ** 9 ** 99 < a",
    "a < 1e999",
    "a < " + "9" * 5_000,
    "a < " + "9" * 3_900,
    "-" * 600 + "a < 1",
    "(" * 190 + "a" + ")" * 190 + " < 1 and " * 2 + "a < b",
    "(" * 1_500 + "a" + ")" * 1_500 + " < 1",
    "not " * 500 + "a < 1",
    "+".join(["a"] * 400) + " < 1",
    "max(*[a, b]) < 1",
    "max(a, b, key=abs) < 1",
    "max(a) < 1",
    "abs(a, b) < 1",
    "pow(a, b) < 1",
    "a < 'x'",
    "a < None",
    "a < True",
    "a < 1j",
    "a",
    "not a",
    "a + 1",
    "1 < 2",
    "a < 1\nb < 1",
    "a < 1; b < 1",
    "a\x00 < 1",
    "a b",
    "",
    "  ",
    "nothing < 1",
    "a.b < 1",
    "k < 'x'",
    "k == 'z'",
    "k + 1 < 2",
    "k == a",
    "'x' == 'x'",
    "-'x' == k",
    "`a < 1",
    "`` < 1",
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_invalid_rules_are_refused_in_one_line(text):
    started = time.process_time()
    with pytest.raises(SpaceError) as refused:
        Space({**UNIT, "k": Categorical(["x", "y"])}, where=[text])
    assert str(refused.value).startswith("where")
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 400
    assert time.process_time() - started < 2.0


@pytest.mark.parametrize("where", [3, [3], [None], b"a < b", {"a": 1}, [["a < b"]]])
def test_where_is_text(where):
    with pytest.raises(SpaceError, match=r"^where(: a rule is a string| must be a list of rules as strings)"):
        Space(UNIT, where=where)


def test_where_may_be_one_rule_or_none():
    assert [rule.text for rule in Space(UNIT, where=" a < b ").rules] == ["a < b"]
    assert Space(UNIT, where=[]) == Space(UNIT, where=None) == Space(UNIT)


# ---- choices, nested and quoted names


def allowed(space, configs):
    found = []
    for config in configs:
        try:
            space.accept(config)
        except SpaceError:
            found.append(False)
        else:
            found.append(True)
    return found


def test_choices_are_compared_with_their_values():
    space = Space(
        {
            "kernel": Categorical(["rbf", "poly"]),
            "degree": Ordinal([1, 2, 4]),
            "size": Ordinal(["small", "medium", "large"]),
            "bias": Categorical([True, False]),
            "depth": Categorical([None, 4, 8]),
            "twin": Categorical(["poly", "sigmoid"]),
        },
        where=[
            "kernel == 'poly' or degree == 1",
            "size <= 'medium' or bias",
            "depth == None or depth * degree <= 8",
            "'small' != size or not bias",
            "kernel != twin",
        ],
    )
    values = [
        dict(zip(space.names, row, strict=True))
        for row in itertools.product(*[p.choices for p in space.parameters.values()])
    ]
    expected = [
        (v["kernel"] == "poly" or v["degree"] == 1)
        and (v["size"] != "large" or v["bias"])
        and (v["depth"] is None or v["depth"] * v["degree"] <= 8)
        and (v["size"] != "small" or not v["bias"])
        and v["kernel"] != v["twin"]
        for v in values
    ]
    assert allowed(space, values) == expected
    assert space.cube.size == sum(expected)


def test_nested_names_are_dotted_and_others_quoted():
    space = Space(
        {"model": {"depth": Integer(1, 9), "learning-rate": Float(0, 1)}, "class": Float(0, 1)},
        where=["model.depth * `model.learning-rate` <= 1", "`class` > `model.learning-rate`"],
    )
    inside = {"model": {"depth": 2, "learning-rate": 0.4}, "class": 0.5}
    assert allowed(space, [inside, {**inside, "class": 0.3}]) == [True, False]


def test_rules_ignore_configurations_with_closed_parameters():
    space = Space({"a": Float(0, 1), "m": Categorical(["off", {"kind": "l2", "w": Float(0, 1)}])}, where=["m.l2.w < a"])
    configs = [
        {"a": 0.1, "m": "off"},
        {"a": 0.1, "m": {"kind": "l2", "w": 0.5}},
        {"a": 0.6, "m": {"kind": "l2", "w": 0.5}},
    ]
    assert allowed(space, configs) == [True, False, True]
    X = np.random.default_rng(0).random((200, 3))
    snapped = space.snap(X)
    for config in space.decode(snapped):
        space.accept(config)
    is_off = X[:, 1] < 0.5
    np.testing.assert_array_equal(snapped[is_off, 0], X[is_off, 0])


def test_a_branch_is_compared_by_its_name():
    space = Space({"a": Float(0, 1), "m": Categorical(["off", {"kind": "l2", "w": Float(0, 1)}])}, where="m == 'l2'")
    assert all(config["m"] != "off" for config in space.sample(np.random.default_rng(0), 50))


def test_a_context_has_no_rules():
    from raybo import Searcher

    with pytest.raises(SpaceError, match="observed and not chosen"):
        Searcher(UNIT, "sbo-kde", context=Space({"p": Float(0, 1), "q": Float(0, 1)}, where="p < q"))


# ---- the space


RULED = {
    "product": Space({"d": Integer(1, 64), "w": Integer(1, 64), "lr": Float(1e-5, 1, log=True)}, where="d * w <= 64"),
    "simplex": Space({f"x{i}": Float(0, 1) for i in range(10)}, where=" + ".join(f"x{i}" for i in range(10)) + " <= 1"),
    "ring": Space(UNIT, where="0.2 < ((a - 0.5) ** 2 + (b - 0.5) ** 2) ** 0.5 < 0.22"),
    "two groups": Space({n: Float(0, 1) for n in "abcd"}, where=["a < b / 10", "c + d > 1.9"]),
    "integers": Space({"a": Integer(0, 1000), "b": Integer(0, 1000)}, where="a + b == 1000"),
    "corners": Space(UNIT, where="(a < 0.05 or a > 0.95) and (b < 0.05 or b > 0.95) and a != b"),
    "choices": Space({"k": Categorical(list("pqr")), "a": Float(0, 1)}, where=["k != 'p' or a > 0.9", "k != 'q'"]),
}


@pytest.mark.parametrize("space", RULED.values(), ids=RULED)
def test_snap_repairs_only_points_that_break_rules(space):
    X = np.random.default_rng(1).random((300, space.d))
    snapped = space.snap(X)
    assert space.cube.allows(snapped).all()
    np.testing.assert_array_equal(space.snap(snapped), snapped)
    for config in space.decode(snapped):
        space.accept(config)
    placed = Space(dict(space.template)).snap(X)
    good = space.cube.allows(X)
    np.testing.assert_array_equal(snapped[good], placed[good])
    np.testing.assert_array_equal(Space.from_json(space.to_json()).snap(X), snapped)  # the same in every process


@pytest.mark.parametrize("space", RULED.values(), ids=RULED)
def test_uniform_points_are_allowed_and_differ(space):
    X = space.cube.uniform(np.random.default_rng(2), 200)
    snapped = space.snap(X)
    assert space.cube.allows(X).all()
    assert len(np.unique(snapped, axis=0)) > 50
    assert (np.ptp(snapped, axis=0) > 0.05).all()


def test_uniform_points_are_uniform():
    """A half-square's: each coordinate's mean is a third of the way, to four standard errors (1 in 10,000)."""
    space = Space({"a": Float(0, 1), "b": Float(0, 1), "c": Float(0, 1)}, where="a < b")
    X = space.cube.uniform(np.random.default_rng(3), 4_000)
    expected, error = np.array([1 / 3, 2 / 3, 1 / 2]), math.sqrt(1 / 12 / 4_000)
    np.testing.assert_allclose(X.mean(axis=0), expected, atol=4 * error)


def test_what_no_rule_names_stays_where_it_was():
    space = Space({n: Float(0, 1) for n in "abcde"}, where="a + b < 0.1")
    X = np.random.default_rng(4).random((100, 5))
    np.testing.assert_array_equal(space.snap(X)[:, 2:], X[:, 2:])


def test_repaired_points_move_no_further_than_needed():
    """Across a straight edge: hardly further than to the nearest point that is allowed, which is some way beside."""
    space = Space({"a": Float(0, 1), "b": Float(0, 1)}, where="a + b <= 1")
    X = np.random.default_rng(5).random((500, 2))
    X = X[X.sum(axis=1) > 1]
    snapped = space.snap(X)
    moved, least = np.linalg.norm(snapped - X, axis=1), (X.sum(axis=1) - 1) / math.sqrt(2)
    assert (moved <= 1.2 * least + 0.05).all()
    assert np.median(moved / least) < 1.1
    assert (snapped.sum(axis=1) > 1 - 1e-3).all()


@pytest.mark.parametrize(
    ("where", "blamed"),
    [
        (["a + b < 0"], "'a + b < 0'"),
        (["a < 0.5", "b > 2"], "'b > 2'"),
        (["a == b"], "'a == b' (if it asks continuous parameters to be equal"),
        (["c < 0.5", "a > 0.6", "a < 0.4"], "together with"),
    ],
)
def test_unsatisfiable_rules_are_refused_by_name(where, blamed):
    with pytest.raises(SpaceError) as refused:
        Space(UNIT, where=where)
    assert blamed in str(refused.value)


def test_broken_rules_are_reported_with_their_values():
    with pytest.raises(SpaceError) as refused:
        RULED["product"].accept({"d": 8, "w": 9, "lr": 0.1})
    assert str(refused.value) == "the configuration breaks the rule 'd * w <= 64': d=8, w=9"


def test_rules_are_part_of_what_a_space_is():
    with_rule, without = Space(UNIT, where="a < b"), Space(UNIT)
    assert with_rule != without
    assert with_rule != Space(UNIT, where="a < c")
    assert Space.from_json(with_rule.to_json()) == with_rule
    assert "where" not in without.to_json()
    assert repr(with_rule).endswith("where=['a < b'])")


@pytest.mark.parametrize("copied", [lambda it: pickle.loads(pickle.dumps(it)), copy.deepcopy], ids=["pickle", "copy"])  # noqa: S301
def test_what_has_rules_can_be_pickled_and_copied(copied):
    choice = Categorical(["p", {"kind": "q", "z": Integer(1, 9)}])
    space = Space({**UNIT, "choice": choice}, where=["a * b <= 0.2", "choice == 'p' or c < 0.5", "choice.q.z > 2"])
    searcher = Searcher(space, "random", seed=0)
    searcher.ask(3)
    again = copied(searcher)
    assert again.space == space
    assert [trial.config for trial in again.ask(20)] == [trial.config for trial in searcher.ask(20)]


@pytest.mark.parametrize(
    ("text", "near", "far"),
    [
        ("x < 0.5", (0.51, 0.9), (0.9, 0.9)),
        ("x < 0.5 and y < 0.5", (0.51, 0.51), (0.51, 0.9)),
        ("x < 0.5 or y < 0.5", (0.51, 0.9), (0.7, 0.7)),
        ("not (x < 0.5 and y < 0.5)", (0.49, 0.0), (0.3, 0.3)),  # one of the two is enough
        ("not (x < 0.5 or y < 0.5)", (0.4, 0.4), (0.4, 0.0)),
        ("x == y", (0.5, 0.6), (0.5, 0.9)),
        ("0.4 < x < 0.6", (0.65, 0.5), (0.1, 0.5)),
    ],
)
def test_lack_shrinks_towards_satisfying_a_rule(text, near, far):
    rule = read_rule(text, ["x", "y"], [Float(0, 1), Float(0, 1)])
    lack = rule.lack({axis: np.array([near[axis], far[axis]]) for axis in (0, 1)})
    assert 0.0 < lack[0] < lack[1]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("size < 'm'", [True, False, False]),
        ("'m' < size", [False, False, True]),
        ("'m' >= size", [True, True, False]),
        ("'s' < size <= 'm'", [False, True, False]),
    ],
)
def test_ordinals_compare_on_either_side(text, wanted):
    rule = read_rule(text, ["size"], [Ordinal(["s", "m", "l"])])
    assert rule.holds({0: np.arange(3.0)}).tolist() == wanted


def test_non_finite_results_stay_undefined():
    assert holds("min(1 / a, 5) < 6", a=2)
    assert not holds("min(1 / a, 5) < 6", a=0)
    assert not holds("max(log(a), 5) > 4", a=0)


def test_what_just_misses_a_rule_lacks_something():
    rule = read_rule("x < 0.5", ["x"], [Float(0, 1)])
    lack = rule.lack({0: np.array([0.4, 0.5])})
    assert lack[0] == 0.0 < lack[1] < 1e-6


def test_rules_on_closed_parameters_do_not_apply():
    model = Categorical([{"kind": "svm", "C": Float(0, 1)}, {"kind": "line"}])
    space = Space({"m": model, "x": Float(0, 1)}, where="m.svm.C + x < 0.4")
    line = {"m": {"kind": "line"}, "x": 0.9}
    assert space.accept(line) == line
    with pytest.raises(SpaceError, match=r"m\.svm\.C"):
        space.accept({"m": {"kind": "svm", "C": 0.2}, "x": 0.9})
    found = space.sample(np.random.default_rng(0), 60)
    assert max(config["x"] for config in found if config["m"]["kind"] == "line") > 0.9
    assert max(config["x"] for config in found if config["m"]["kind"] == "svm") < 0.4


@pytest.mark.parametrize(
    ("rule", "config"),
    [
        ("a + b <= 0.3", {"a": 0.1, "b": 0.2}),
        ("0.3 >= a + b", {"a": 0.1, "b": 0.2}),
        ("a + b == 0.3", {"a": 0.1, "b": 0.2}),
        ("a * 3 == 0.3", {"a": 0.1, "b": 0.0}),
    ],
)
def test_sums_of_steps_are_compared_but_for_rounding(rule, config):
    parameters = {"a": Float(0, 1, step=0.1), "b": Float(0, 1, step=0.1)}
    assert Space(parameters, where=rule).accept(config) == config
    for other in ("<", ">", "!="):
        with pytest.raises(SpaceError, match="breaks the rule"):
            Space(parameters, where=rule.replace("<=", other).replace(">=", other).replace("==", other)).accept(config)


def test_all_sums_of_steps_that_make_one_are_allowed():
    names = ("a", "b", "c")
    space = Space({name: Float(0, 1, step=0.1) for name in names}, where="a + b + c == 1")
    assert space.cube.size == 66


def test_whole_and_small_numbers_are_compared_exactly():
    space = Space({"a": Integer(0, 2 * 10**15), "b": Integer(0, 2 * 10**15)}, where="a < b")
    assert space.accept({"a": 10**15, "b": 10**15 + 1})
    small = Space({"a": Float(1e-15, 1, log=True), "b": Float(1e-15, 1, log=True)}, where="a < b")
    assert small.accept({"a": 1e-14, "b": 1.1e-14})


def test_names_in_rules_are_quoted_nested_and_normalised():
    space = Space(
        {"opt": {"learning-rate": Float(0, 1)}, "µ": Float(0, 1)}, where=["opt.`learning-rate` < 0.5", "µ < 0.5"]
    )
    with pytest.raises(SpaceError, match="learning-rate"):
        space.accept({"opt": {"learning-rate": 0.7}, "µ": 0.1})
    with pytest.raises(SpaceError, match=r"breaks the rule 'µ < 0\.5'"):
        space.accept({"opt": {"learning-rate": 0.1}, "µ": 0.7})
    with pytest.raises(SpaceError, match=r"it cannot be read \(invalid syntax\); write `lambda` in backquotes"):
        Space({"lambda": Float(0, 1), "alpha": Float(0, 1)}, where="lambda < alpha")


def test_only_what_a_broken_rule_names_gives_way_to_a_guess():
    rest = {f"z{i}": Float(0, 1) for i in range(8)}
    space = Space({"x": Float(0, 1, guess=0.9), "y": Float(0, 1), **rest}, where="x + y <= 1")
    (config,) = space.decode(space.cube.guess[None, :])
    assert config == {"x": 0.9, "y": pytest.approx(0.1, abs=1e-3), **dict.fromkeys(rest, 0.5)}


def test_the_branch_of_a_guess_stays_open_under_a_rule():
    model = Categorical([{"kind": "a"}, {"kind": "b", "lr": Float(0, 1, guess=0.2)}])
    others = {f"n{i}": Float(0, 1) for i in range(5)}
    space = Space({"model": model, **others}, where="n0 + n1 + n2 <= 0.4")
    (config,) = space.decode(space.cube.guess[None, :])
    assert config["model"] == {"kind": "b", "lr": pytest.approx(0.2)}
    assert (config["n3"], config["n4"]) == (0.5, 0.5)


@pytest.mark.parametrize(
    ("parameters", "rule", "guessed"),
    [
        ({"depth": Integer(1, 64, guess=32), "width": Integer(1, 64)}, "depth * width <= 64", {"depth": 32}),
        ({"lr": Float(0, 1, guess=0.9), "wd": Float(0, 1)}, "lr + wd <= 1", {"lr": 0.9}),
    ],
)
def test_a_guess_holds_where_a_rule_lets_the_rest_give_way(parameters, rule, guessed):
    space = Space(parameters, where=rule)
    (config,) = space.decode(space.cube.guess[None, :])
    assert {name: pytest.approx(value) for name, value in guessed.items()} == {name: config[name] for name in guessed}
    assert space.accept(config) == config
