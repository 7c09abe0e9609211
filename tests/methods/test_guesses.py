"""The methods' use of a user's guesses."""

from __future__ import annotations

import json

import numpy as np
import pytest

from raybo import methods, spaces
from raybo.acquisition.guess_weight import Belief, Believing
from raybo.common.errors import SpaceError
from raybo.methods.parts.guesses import held
from raybo.record.origin import Origin
from raybo.reporting.summary import range_in_words
from raybo.searcher import Searcher
from raybo.space import Categorical, Float, Integer, Ordinal, Space
from raybo.space.template import template_from_json
from raybo.testing.methods import context_of, observed
from tests.methods.test_contract import SLOW

GUESSED = {
    "lr": Float(1e-5, 1, log=True, guess=1e-3),
    "n": Integer(1, 12, guess=3),
    "k": Categorical(["a", "b", "c"], guess="b"),
    "size": Ordinal([8, 16, 32], guess=32),
    "z": Float(0, 1),
}


@pytest.mark.parametrize("name", [name for name in methods.METHODS if name not in SLOW])
def test_the_first_trial_is_at_the_guesses(name):
    searcher = Searcher(GUESSED, name, seed=2, trials=20, **context_of(methods.make(name)))
    first, second = searcher.ask(2)
    assert first.config == {"lr": 1e-3, "n": 3, "k": "b", "size": 32, "z": 0.5}
    assert first.origin is Origin.GUESSED
    assert second.origin is None
    told = searcher.explain(first)
    assert told.startswith("where the best was guessed to lie")
    assert ("no further use" in told) == (name not in ("auto", "ei", "gp-ucb"))
    for trial in (first, second):
        searcher.tell(trial, 1.0, **observed(methods.make(name), trial.number))
    for number in range(2, 10):
        searcher.tell(searcher.ask(), float(number % 3), **observed(methods.make(name), number))


NEXT = {
    "lr": Float(1e-5, 1, log=True, guess=1e-3, next_guesses=[0.1]),
    "n": Integer(1, 12, guess=3, next_guesses=[9]),
    "k": Categorical(["a", "b", "c"], guess="b"),
    "z": Float(0, 1),
}
SEVERAL = {
    "lr": Float(1e-5, 1, log=True, guess=1e-3, next_guesses=(0.1, 0.3, 1e-3)),
    "n": Integer(1, 12, guess=3, next_guesses=[9.0]),
    "k": Categorical(["a", None, "c"], guess="a", next_guesses=["a", None]),
    "size": Ordinal([8, 16, 32], guess=16, next_guesses=[32, 32, 8]),
}


@pytest.mark.parametrize("name", ["auto", "random", "turbo"])
def test_next_guesses_are_tried_one_after_the_other(name):
    searcher = Searcher(SEVERAL, name, seed=2, trials=20)
    trials = searcher.ask(5)
    assert [tuple(trial.config.values()) for trial in trials[:4]] == [
        (1e-3, 3, "a", 16),
        (0.1, 9, "a", 32),
        (0.3, 3, None, 32),
        (1e-3, 3, "a", 8),
    ]
    assert [trial.tags.get("next_guess") for trial in trials] == [None, 1, 2, 3, None]
    assert [trial.origin for trial in trials[3:]] == [Origin.GUESSED, None]


def test_a_next_guess_that_was_tried_gives_way_to_the_one_after_it():
    searcher = Searcher(SEVERAL, "auto", seed=2)
    searcher.add({"lr": 0.1, "n": 9, "k": "a", "size": 32}, 1.0)
    assert [trial.tags.get("next_guess") for trial in searcher.ask(4)] == [None, 2, 3, None]


def test_several_next_guesses_are_kept_and_checked():
    read = Space.from_json(json.loads(json.dumps(Space(SEVERAL).to_json())))
    assert read == Space(SEVERAL)
    assert [each.next_guesses for each in read.parameters.values()] == [each.next_guesses for each in SEVERAL.values()]
    assert range_in_words(SEVERAL["k"]) == "a, None, c, guessed a, then a, then None"
    assert range_in_words(SEVERAL["size"]) == "8, 16, 32, in this order, guessed 16, then 32, then 32, then 8"
    assert range_in_words(NEXT["n"]) == "1 to 12, integers, guessed 3, then 9"
    assert SEVERAL["n"].next_guesses == (9,)
    assert "guess='a', next_guesses=['a', None]" in repr(SEVERAL["k"])
    with pytest.raises(SpaceError, match=r"'d' is not one of .*; next guesses must be values of the parameter"):
        Space({"k": Categorical(["a", "b"], guess="a", next_guesses=["d"])})
    with pytest.raises(SpaceError, match=r"next_guesses must be a list of values of the parameter, got 0\.5"):
        Float(0, 1, guess=0.3, next_guesses=0.5)


@pytest.mark.parametrize("name", ["auto", "random", "turbo"])
def test_the_second_trial_is_at_the_next_guesses(name):
    searcher = Searcher(NEXT, name, seed=2, trials=20)
    first, second, third = searcher.ask(3)
    assert first.config == {"lr": 1e-3, "n": 3, "k": "b", "z": 0.5}
    assert second.config == {"lr": 0.1, "n": 9, "k": "b", "z": 0.5}
    assert [trial.origin for trial in (first, second, third)] == [Origin.GUESSED, Origin.GUESSED, None]
    assert searcher.explain(second) == "at number 1 of the next guesses"


def test_known_next_guesses_are_not_repeated():
    searcher = Searcher(NEXT, "auto", seed=2)
    searcher.add({"lr": 0.1, "n": 9, "k": "b", "z": 0.5}, 1.0)
    assert [trial.origin for trial in searcher.ask(2)] == [Origin.GUESSED, None]
    other = Searcher(NEXT, "auto", seed=2)
    other.add({"lr": 1e-3, "n": 3, "k": "b", "z": 0.5}, 1.0)
    assert [trial.config["n"] for trial in other.ask(1)] == [9]


def test_first_points_with_guesses_differ():
    """In a space of few points too, asked for one by one and together."""
    space = {name: Categorical(["a", "b", "c"], guess="a") for name in "xyz"}
    for seed in range(12):
        together = Searcher(space, mode="min", seed=seed).ask(4)
        assert len({tuple(trial.config.values()) for trial in together}) == 4
        one_by_one = Searcher({"x": Ordinal([8, 16, 32, 64], guess=16)}, mode="min", seed=seed)
        values = [one_by_one.tell(one_by_one.ask(), i * 7 % 5).config["x"] for i in range(4)]
        assert sorted(values) == [8, 16, 32, 64]


@pytest.mark.parametrize(("values", "favoured"), [([3.0, 0.0], [0.1, 9]), ([0.0, 3.0], [1e-3, 3])])
def test_the_better_guess_is_believed(values, favoured):
    searcher = Searcher(NEXT, "auto", "min", seed=2, initial=8)
    for value in values:
        searcher.tell(searcher.ask(), value)
    belief = held(searcher.history)
    assert [*searcher.space.decode(belief.guess[None, :])[0].values()][:2] == pytest.approx(favoured)
    while held(searcher.history) is not None and len(searcher.trials) < 12:
        trial = searcher.ask()
        searcher.tell(trial, 3.0 if "by_guess" in trial.tags else 1.0)
    assert held(searcher.history) is None  # others than those it led to are better


def test_a_guess_that_breaks_a_constraint_is_not_believed():
    searcher = Searcher(NEXT, "auto", metric="loss", mode="min", constraints={"size": "<= 1"}, seed=2, initial=8)
    searcher.tell(searcher.ask(), {"loss": 3.0, "size": 0.5})
    searcher.tell(searcher.ask(), {"loss": 0.0, "size": 2.0})
    assert held(searcher.history).guess == pytest.approx(searcher.space.cube.guesses())


def test_next_guesses_are_kept_and_checked():
    space = Space(NEXT)
    assert Space.from_json(json.loads(json.dumps(space.to_json()))) == space
    assert repr(NEXT["n"]) == "Integer(low=1, high=12, log=False, step=1, guess=3, next_guesses=[9])"
    with pytest.raises(SpaceError, match=r"next_guesses=\[3\] without a guess"):
        Integer(1, 12, next_guesses=[3])
    with pytest.raises(SpaceError, match="next guesses must be values of the parameter"):
        Integer(1, 12, guess=3, next_guesses=[9, 13])


def test_next_guesses_that_break_a_rule_move_to_where_it_holds():
    space = Space(NEXT, where=["n < 8"])
    searcher = Searcher(space, "random", seed=0)
    first, second = searcher.ask(), searcher.ask()
    assert (first.config["n"], second.config["n"]) == (3, 7)
    assert second.origin is Origin.GUESSED
    trees = Space(spaces.xgboost(), where="n_estimators * learning_rate <= 60")
    asked = Searcher(trees, "random", seed=0).ask(4)
    assert all(trial.config["n_estimators"] * trial.config["learning_rate"] <= 60 for trial in asked)


def test_rules_of_a_branch_that_the_guesses_close_do_not_apply():
    branches = [{"k": "A", "p": Integer(1, 9, guess=8)}, {"k": "B", "q": Integer(1, 9, guess=2)}]
    space = Space({"m": Categorical(branches, guess=branches[1]), "w": Integer(1, 9, guess=9)}, where="m.A.p * w <= 20")
    assert Searcher(space, "random", seed=0).ask().config == {"m": {"k": "B", "q": 2}, "w": 9}
    with pytest.raises(SpaceError, match=r"the guesses break the rule 'm.A.p \* w <= 20': m.A.p=8, w=9"):
        Space({"m": Categorical(branches), "w": Integer(1, 9, guess=9)}, where="m.A.p * w <= 20")


@pytest.mark.parametrize("given", ["add", "enqueue"])
def test_the_belief_is_in_a_guess_whose_result_is_the_users(given):
    searcher = Searcher({"x": Float(0, 1, guess=0.2, next_guesses=[0.8, 0.6])}, "ei", mode="max", seed=0)
    if given == "add":
        searcher.add({"x": 0.2}, 0.0)
    else:
        searcher.enqueue({"x": 0.2})
    for _ in range(2 + (given == "enqueue")):
        trial = searcher.ask()
        searcher.tell(trial, -abs(trial.config["x"] - 0.2))
    assert held(searcher.history).guess == pytest.approx([0.2])


def test_the_only_next_guess_of_an_earlier_journal_is_read():
    former = {"type": "float", "low": 0, "high": 1, "log": False, "step": None, "guess": 0.2, "next_guess": 0.8}
    assert template_from_json(former) == Float(0, 1, guess=0.2, next_guesses=[0.8])


def test_known_guesses_are_not_repeated():
    searcher = Searcher(GUESSED, "auto", seed=2)
    searcher.add({"lr": 1e-3, "n": 3, "k": "b", "size": 32, "z": 0.5}, 1.0)
    assert searcher.ask().origin is None
    other = Searcher(GUESSED, "auto", seed=2)
    other.add({"lr": 1e-2, "n": 3, "k": "b", "size": 32, "z": 0.5}, 1.0)
    assert other.ask().origin is Origin.GUESSED


def test_without_guesses_proposals_are_as_they_were():
    plain = Space({"x": Float(0, 1), "k": Categorical(["a", "b"])})
    assert plain.cube.guess is None
    assert Belief.of(plain.cube) is None
    assert "guess" not in json.dumps(plain.to_json())


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Float(0, 1, guess=2), "Float: 2.0 lies outside"),
        (lambda: Float(0, 1, guess="a"), "Float: a number is needed"),
        (lambda: Integer(0, 9, guess=1.5), "Integer: a whole number is needed"),
        (lambda: Categorical(["a"], guess="b"), "Categorical: 'b' is not one of"),
        (lambda: Ordinal([1, 2], guess=3), "Ordinal: 3 is not one of"),
    ],
)
def test_a_guess_must_be_a_value(make, told):
    with pytest.raises(SpaceError) as refused:
        make()
    assert str(refused.value).startswith(told)
    assert "guess" in str(refused.value)


def test_guesses_keep_the_rules():
    with pytest.raises(SpaceError, match=r"the guesses break the rule 'a < b': a=0.9, b=0.1"):
        Space({"a": Float(0, 1, guess=0.9), "b": Float(0, 1, guess=0.1)}, where="a < b")
    space = Space({"a": Float(0, 1, guess=0.9), "b": Float(0, 1)}, where="a < b")  # the middle of b is moved
    assert space.accept(Searcher(space, "random", seed=0).ask().config)


def test_guesses_are_part_of_what_a_space_is():
    space = Space(GUESSED)
    assert Space.from_json(json.loads(json.dumps(space.to_json()))) == space
    assert space != Space({**GUESSED, "n": Integer(1, 12, guess=4)})
    branches = [{"kind": "l2", "w": Float(0, 1, guess=0.2)}, "off"]
    nested = Space({"m": Categorical(branches, guess=branches[0])})
    assert Space.from_json(json.loads(json.dumps(nested.to_json()))) == nested
    assert Searcher(nested, "sobol", seed=0).ask().config == {"m": {"kind": "l2", "w": 0.2}}


def test_log_prior_peaks_at_the_guess_with_gradient():
    belief = Belief.of(Space(GUESSED).cube)
    X = np.random.default_rng(0).random((30, 5))
    value, gradient = belief.log_density(X)
    assert (value <= 0.0).all()
    assert belief.log_density(belief.guess[None, :])[0] == pytest.approx(0.0)
    for axis in (0, 1, 3, 4):
        step = 1e-6 * np.eye(5)[axis]
        slope = (belief.log_density(X + step)[0] - belief.log_density(X - step)[0]) / 2e-6
        np.testing.assert_allclose(gradient[:, axis], slope, atol=1e-7)
    assert (gradient[:, 4] == 0.0).all()
    others = X.copy()
    others[:, 4] = 0.123
    np.testing.assert_array_equal(belief.log_density(others)[0], value)


def test_samples_follow_the_guess_prior():
    """Of 4,000: the share within two widths on each axis, to four standard errors."""
    belief = Belief.of(Space(GUESSED).cube)
    points = np.array([belief.drawn(x) for x in np.random.default_rng(1).random((4_000, 5))])
    assert ((points >= 0.0) & (points <= 1.0)).all()
    near = np.abs(points[:, 0] - belief.guess[0]) < 0.3
    assert near.mean() == pytest.approx(0.8 * 0.954 + 0.2 * 0.6, abs=0.03)
    assert (np.floor(3 * points[:, 2]) == 1).mean() == pytest.approx(0.8 + 0.2 / 3, abs=0.03)
    assert points[:, 4].mean() == pytest.approx(0.5, abs=0.02)


def test_a_belief_fades():
    class Nothing:
        def value(self, X):
            return np.zeros(len(X))

        def value_and_gradient(self, X):
            return np.zeros(len(X)), np.zeros_like(X)

    belief, X = Belief.of(Space(GUESSED).cube), np.random.default_rng(0).random((9, 5))
    assert (
        np.abs(Believing(Nothing(), belief, 0.1).value(X)) < np.abs(Believing(Nothing(), belief, 1.0).value(X))
    ).all()
    value, gradient = Believing(Nothing(), belief, 0.5).value_and_gradient(X)
    np.testing.assert_allclose(value, 0.5 * belief.log_density(X)[0])
    np.testing.assert_allclose(gradient, 0.5 * belief.log_density(X)[1])


@pytest.mark.slow
def test_right_guesses_help_and_wrong_ones_fade():
    """Over six seeds: the median regret after ten trials is lower with it; after thirty a wrong one is forgotten."""

    def regret(guess, seed, trials):
        space = {f"x{i}": Float(0, 1, guess=guess) for i in range(3)}
        searcher = Searcher(space, "auto", seed=seed, trials=30)
        for _ in range(trials):
            trial = searcher.ask()
            searcher.tell(trial, -sum((x - 0.2) ** 2 for x in trial.config.values()))
        return -searcher.best.value

    early = {guess: np.median([regret(guess, seed, 10) for seed in range(6)]) for guess in (None, 0.25)}
    assert early[0.25] < early[None]
    assert np.median([regret(1.0, seed, 30) for seed in range(3)]) < 1e-2


def told_of(guess, trials):
    """The tags of a short study's trials."""
    searcher = Searcher({f"x{i}": Float(0, 1, guess=guess) for i in range(2)}, "auto", seed=1, trials=40)
    for _ in range(trials):
        trial = searcher.ask()
        searcher.tell(trial, -sum((x - 0.2) ** 2 for x in trial.config.values()))
    return [record.tags for record in searcher.history.records]


def test_four_points_show_whether_a_guess_holds():
    """The guesses, one drawn to them and two that are not; then the model."""
    tags = told_of(0.25, 6)
    assert ["by_guess" in each for each in tags] == [False, False, True, False, False, False]
    assert ["acquisition" in each for each in tags] == 4 * [False] + 2 * [True]
    assert ["acquisition" in each for each in told_of(None, 6)] == 3 * [False] + 3 * [True]


def test_guesses_weight_improvement_only(monkeypatch):
    """The acquisitions differ in nothing but what is weighted."""
    weighted = []
    monkeypatch.setattr(
        "raybo.methods.default.auto.believing",
        lambda acquisition, history: weighted.append(type(acquisition).__name__) or acquisition,
    )
    names = [each["acquisition"] for each in told_of(0.25, 24) if "acquisition" in each]
    assert {"ucb", "log-ei"} <= set(names)
    assert set(weighted) == {"LogAverage"}


def test_classes_declare_whether_they_use_guesses():
    assert {name for name in methods.METHODS if methods.load(name).uses_guesses} >= {"auto", "ei", "gp-ucb"}


def test_a_belief_that_results_contradict_is_given_up():
    """After a design whose guessed half is the worse one, no point is drawn to the guess any more; else they are."""
    for guess, is_held in ((0.25, True), (1.0, False)):
        searcher = Searcher({f"x{i}": Float(0, 1, guess=guess) for i in range(3)}, "auto", seed=1, trials=30)
        for _ in range(8):
            trial = searcher.ask()
            searcher.tell(trial, -sum((x - 0.2) ** 2 for x in trial.config.values()))
        assert (held(searcher.history) is not None) == is_held
    assert held(Searcher({"x": Float(0, 1)}, "auto").history) is None


@pytest.mark.parametrize("is_first", [True, False])
def test_branch_guesses_open_their_branch_only(is_first):
    branches = [
        {"kind": "svm", "C": Float(1e-3, 1e3, log=True, guess=500.0)},
        {"kind": "forest", "depth": Integer(1, 20)},
    ]
    space = Space({"model": Categorical(branches if is_first else branches[::-1])})
    assert Searcher(space, seed=0).ask().config == {"model": {"kind": "svm", "C": 500.0}}
    belief = Belief.of(space.cube)
    models = [{"kind": "svm", "C": 500.0}, {"kind": "svm", "C": 1.0}, {"kind": "forest", "depth": 3}]
    at, away, elsewhere = belief.log_density(space.encode([{"model": model} for model in models]))[0]
    assert at == pytest.approx(0.0)
    densities = np.exp(belief.log_density(space.cube.snap(np.random.default_rng(0).random((4_000, 3))))[0])
    assert np.exp(elsewhere) == pytest.approx(densities.mean(), rel=0.02)  # as likely as the guessed branch as a whole
    assert away < elsewhere < at


def test_a_choices_own_guess_wins():
    branches = [{"kind": "a", "x": Float(0, 1, guess=0.9)}, {"kind": "b", "y": Float(0, 1, guess=0.2)}, "off"]
    first = lambda choice: Searcher(Space({"m": choice}), "random", seed=0).ask().config["m"]  # noqa: E731
    assert first(Categorical(branches, guess="off")) == "off"
    assert first(Categorical(branches)) == {"kind": "a", "x": 0.9}
    assert first(Categorical([{"kind": "c", "inner": Categorical(branches[1:])}, *branches[:1]])) == {
        "kind": "c",
        "inner": {"kind": "b", "y": 0.2},
    }
