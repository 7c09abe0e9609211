"""auto: its design, its models and their weights, conditional spaces, and studies that raybo 0.1 began."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import spearmanr

from raybo import Categorical, Float, Space
from raybo.methods import make
from raybo.methods.default import auto
from raybo.methods.default.auto_of_0_1 import propose_as_0_1
from raybo.methods.default.committee import MEMBERS, NO_SAY, convene, model_of
from raybo.methods.parts.running_trials import predicted
from raybo.record.events import Asked, Told
from raybo.record.history import History
from raybo.searcher import Searcher
from raybo.surrogate import GP, Likelihood, Observations, Tamed
from tests.schedulers.studies import curve, empty, end

CONDITIONAL = {"model": Categorical([{"a": Float(0, 1)}, {"b": Float(0, 1), "c": Float(0, 1)}])}
PLAIN = {"a": Float(0, 1), "b": Float(0, 1), "c": Categorical(["x", "y"])}
NOBODY = np.empty((0, 2))


def studied(space, trials=24, add=False, planned=None):
    searcher = Searcher(space, "auto", "max", 0, planned)
    if add:
        searcher.add({"model": {"a": 0.5}}, 0.2)
    for _ in range(trials):
        trial = searcher.ask()
        point = searcher.history.records[-1].x
        searcher.tell(trial, -float(np.sum((point - 0.3) ** 2)))
    return searcher


def committee(function, n=30, noise=0.0, seed=0, **settings):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    y = function(X) + noise * rng.standard_normal(n)
    given = {"believed": NOBODY, "last": {}, "turn": 0, "best": X[np.argmax(y)]} | settings
    return convene(X, y, Tamed.of(y), (False, False), **given), X, y


def weights(found):
    return dict(zip(MEMBERS, found.tags["weights"], strict=True))


# ---- the design


def test_the_middle_comes_before_two_sobol_points():
    for given in (None, 4, 40):
        trials = studied(PLAIN, 4, planned=given).trials
        assert trials[0].tags["middle"]
        assert all(0.4 <= trials[0].config[name] <= 0.6 for name in "ab")
        assert ["sobol" in trial.tags for trial in trials] == [False, True, True, False]
        assert "acquisition" in trials[3].tags
    searcher = studied(PLAIN, 1)
    assert searcher.explain(searcher.trials[0]) == "initial design (the middle of the space)"


def test_models_wait_for_three_values():
    """However many are in flight, and those that failed do not count; unless a number of points is given."""
    searcher = Searcher(PLAIN, "auto", "max", 0)
    trials = searcher.ask(6)
    for trial in trials[:3]:
        searcher.fail(trial, "it failed")
    for trial in trials[3:5]:
        searcher.tell(trial, float(trial.number))
    assert "sobol" in searcher.ask().tags
    searcher.tell(trials[5], 1.0)
    assert "acquisition" in searcher.ask().tags
    given = Searcher(PLAIN, "auto", "max", 0, initial=5)
    for _ in range(5):
        given.tell(given.ask(), 1.0)
    assert ["models" in trial.tags for trial in [*given.trials, given.ask()]] == [False] * 5 + [True]


def test_branches_and_metrics_begin_with_ten_points():
    plain = {"a": Float(0, 1), "b": Float(0, 1)}
    branches = Searcher(CONDITIONAL, "auto", "max", 0)
    several = Searcher(plain, "auto", seed=0, metrics={"f": "max", "g": "min"})
    for number in range(11):
        value = float(number % 4)
        branches.tell(branches.ask(), value)
        several.tell(several.ask(), {"f": value, "g": value})
    for searcher in (branches, several):
        assert ["acquisition" in trial.tags for trial in searcher.trials] == [False] * 10 + [True]


# ---- the models and their weights


@pytest.mark.parametrize(
    "function", [lambda X: -np.sin(14 * X).sum(axis=1), lambda X: X[:, 0] * X[:, 1], lambda X: np.log(X[:, 0])]
)
def test_weights_are_those_of_the_rule(function):
    """min(1, exp((L - L_plain) / 4)), computed from the hyperparameters in the tags."""
    found, X, y = committee(function, n=20, noise=0.2)
    values = Tamed.of(y).apply(y)

    def log_posterior(name):
        likelihood = Likelihood(Observations.of(X, values), model_of(name, (False, False)))
        return likelihood.log_posterior(np.array(found.tags["models"][name]))[0]

    plain = log_posterior("plain")
    expected = {name: min(1.0, np.exp((log_posterior(name) - plain) / 4)) for name in MEMBERS}
    assert weights(found) == pytest.approx(expected, abs=0.01)


def test_only_models_with_weight_are_asked():
    for seed in range(4):
        found, _, _ = committee(lambda X: X[:, 0], noise=1.0, seed=seed)
        kept = [weight for weight in weights(found).values() if weight >= NO_SAY]
        assert len(found.members) == len(found.weights) == len(kept)
        assert found.weights[0] == 1.0
        assert max(found.weights) == 1.0


def test_the_acquisitions_are_weighted_means_over_the_models():
    """Each computed from the models' posteriors alone."""
    found, _, _ = committee(lambda X: -np.sin(9 * X).sum(axis=1))
    X = np.random.default_rng(1).random((100, 2))
    moments = [gp.posterior(X) for gp in found.members]
    bounds = [mean + 1.5 * np.sqrt(var) for mean, var in moments]
    np.testing.assert_allclose(found.bound(1.5).value(X), np.average(bounds, axis=0, weights=found.weights))
    draws = np.random.default_rng(2).standard_normal((20_000, 1))
    gains = [np.maximum(mean + np.sqrt(var) * draws - found.incumbent, 0.0).mean(axis=0) for mean, var in moments]
    expected = np.average(gains, axis=0, weights=found.weights)
    likely = expected > 0.05
    assert likely.sum() > 3
    np.testing.assert_allclose(np.exp(found.improvement().value(X))[likely], expected[likely], rtol=0.1)


def test_every_model_is_unsure_of_predicted_values():
    """Twelve trials finished and one still runs: its value is predicted, and not known as theirs are."""
    history = empty(2)
    for x in np.random.default_rng(0).random((12, 2)):
        end(history, curve(history, [10.0 * x[1], 10.0 * x[0]], x))
    running = np.array([0.9, 0.9])
    curve(history, [5.0], running)
    seen = predicted(history)
    assert seen.errors[-1] > 1.0
    for gp in auto.committee_of(seen).members:
        assert gp.posterior(running[None])[1][0] > 5 * gp.posterior(seen.X[:-1])[1].max()


def test_hyperparameters_are_kept_or_fitted_in_turn():
    first, _, _ = committee(lambda X: -np.sin(9 * X).sum(axis=1), n=32)
    kept, _, _ = committee(lambda X: -np.sin(8 * X).sum(axis=1), n=32, last=first.tags["models"], is_kept=True)
    assert kept.tags["models"] == first.tags["models"]
    for turn in (0, 1):
        found, _, _ = committee(lambda X: -np.sin(8 * X).sum(axis=1), n=32, last=first.tags["models"], turn=turn)
        same = [found.tags["models"][name] == first.tags["models"][name] for name in MEMBERS]
        assert same == [bool((turn + place) % 2) for place in range(3)]


def test_pending_points_shrink_the_variance_alone():
    believed = np.array([[0.31, 0.77]])
    alone, _, _ = committee(lambda X: -np.sin(9 * X).sum(axis=1))
    beside, _, _ = committee(lambda X: -np.sin(9 * X).sum(axis=1), believed=believed)
    for one, other in zip(alone.members, beside.members, strict=True):
        np.testing.assert_allclose(one.posterior(believed)[0], other.posterior(believed)[0], rtol=1e-3, atol=1e-3)
        assert other.posterior(believed)[1] <= one.posterior(believed)[1]


@pytest.mark.parametrize(
    "space", [{"c": Categorical(["x", "y", "z"]), "e": Categorical([1, 2, 3, 4])}, {"x": Float(0, 1)}]
)
def test_spaces_of_choices_or_one_axis_are_modelled(space):
    searcher = Searcher(space, "auto", "max", 0)
    for value in range(12):
        searcher.tell(searcher.ask(), float(value % 4))
    assert "models" in searcher.trials[-1].tags
    assert "fallback" not in searcher.trials[-1].tags


def test_a_choices_worth_is_learnt_across_configurations():
    """Five choices of four that add up, sixteen results: what was not run is predicted, in every of eight draws."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        worth, chosen = rng.standard_normal((5, 4)), rng.integers(4, size=(200, 5))
        X, y = (chosen + 0.5) / 4, worth[np.arange(5), chosen].sum(axis=1)
        known = X[:16], y[:16], Tamed.of(y[:16]), (True,) * 5
        models = convene(*known, believed=np.empty((0, 5)), last={}, turn=0, best=np.empty(5)).members
        for gp in models:
            assert np.corrcoef(gp.posterior(X[16:])[0], y[16:])[0, 1] > 0.5


def test_where_results_are_many_one_model_is_left(monkeypatch):
    monkeypatch.setattr(auto, "MANY", 20)
    tags = [trial.tags for trial in studied(PLAIN, 23).trials]
    assert "models" in tags[19]
    assert all("models" not in each and "theta" in each for each in tags[20:])


# ---- conditional spaces


@pytest.mark.slow
def test_conditional_spaces_are_searched_by_expected_improvement():
    for add in (False, True):
        trials = [trial for trial in studied(CONDITIONAL, add=add).trials if trial.origin is None]
        assert "log-ei" in {trial.tags.get("acquisition") for trial in trials}
        assert "ucb" not in {trial.tags.get("acquisition") for trial in trials}


def test_other_spaces_have_both_acquisitions():
    tags = [trial.tags for trial in studied(PLAIN, 30).trials]
    assert {"ucb", "log-ei"} <= {each.get("acquisition") for each in tags}


def test_values_are_only_standardised_in_conditional_spaces(monkeypatch):
    seen = []
    known = auto.convene

    def spied(X, y, outputs, *args, **options):
        seen.append((type(outputs).__name__, outputs.apply(y)))
        return known(X, y, outputs, *args, **options)

    monkeypatch.setattr(auto, "convene", spied)
    values = studied(CONDITIONAL, 14).history.y[:-1]
    name, last = seen[-1]
    assert name == "Standardised"
    np.testing.assert_allclose(last, (values - values.mean()) / values.std())
    studied(PLAIN, 12)
    assert seen[-1][0] == "Tamed"


# ---- studies that raybo 0.1 began


@pytest.mark.parametrize("space", [CONDITIONAL, PLAIN])
def test_studies_of_0_1_continue_by_its_rule(space):
    """From any length on, `auto` proposes what 0.1's rule does, bit for bit."""
    history, method = History(Space(space).cube), make("auto")
    history.generation = 1
    names = set()
    for number in range(24):
        old = propose_as_0_1(history, np.random.default_rng(number), None)
        new = method.propose(history, np.random.default_rng(number))
        assert (new.x.tolist(), new.tags) == (old.x.tolist(), old.tags)
        names.add(old.tags.get("acquisition"))
        x = history.cube.snap(old.x[None, :])[0]
        history.apply(Asked(number, x=x.tolist(), tags=old.tags))
        history.apply(Told(number, value=-float(np.sum((x - 0.3) ** 2))))
    assert {"ucb", "log-ei"} <= names


def test_added_trials_are_no_points_of_the_design():
    searcher = Searcher(PLAIN, "auto", "max", 0)
    searcher.add({"a": 0.5, "b": 0.5, "c": "x"}, 0.2)
    assert searcher.ask().tags["middle"]


def rough(config, rng):
    return float(rng.normal())


def smooth(config, rng):
    return -((config["x"] - 0.3) ** 2) - (config["y"] - 0.6) ** 2


def test_the_reason_of_a_far_proposal_says_that_it_explores_and_why():
    tags = {"mean": 0.5, "std": 0.1}
    why = "exploring, as the model cannot yet rank the best trials: expected"
    assert auto.Auto().explain({"acquisition": "wide", **tags}).startswith(why)
    why = "exploring, as the most promising point is all but known: expected"
    assert auto.Auto().explain({"acquisition": "far", **tags}).startswith(why)


def looked_far(function, generation=None, trials=24):
    """The trials of a study that were proposed far away, as the model could not rank the better half."""
    searcher = Searcher({"x": Float(0, 1), "y": Float(0, 1)}, "auto", seed=3, generation=generation)
    rng = np.random.default_rng(0)
    for _ in range(trials):
        trial = searcher.ask()
        searcher.tell(trial, function(trial.config, rng))
    return [trial.number for trial in searcher.trials if trial.tags.get("acquisition") == "wide"]


def test_every_fourth_proposal_is_far_away_if_the_model_cannot_rank():
    assert looked_far(rough) == [11, 15, 19, 23]
    assert looked_far(smooth) == []


def test_studies_of_0_2_do_not_look_far():
    assert looked_far(rough, generation=2) == []


def test_the_better_half_is_ranked_leaving_each_out():
    rng = np.random.default_rng(1)
    X, y = rng.random((15, 2)), rng.integers(0, 6, 15).astype(float)  # with ties
    model = model_of("plain", (False, False))
    gp = GP.of(Observations.of(X, y, (False, False)), model, model.start(2))
    better = y >= np.median(y)
    expected = spearmanr(y[better], gp.leave_one_out()[better]).statistic
    assert auto.rank_correlation(gp, 15) == pytest.approx(expected)
    believing = gp.believing(rng.random((3, 2)))  # pending trials have no part in it
    assert auto.rank_correlation(believing, 15) == pytest.approx(expected)
    assert auto.rank_correlation(replace(gp, observations=replace(gp.observations, y=np.zeros(15))), 15) == 0.0


def test_only_seen_values_are_ranked(monkeypatch):
    """Repeated points count once, and points that still run not at all."""
    ranked = []
    monkeypatch.setattr(auto, "LOOKS", 1)
    monkeypatch.setattr(auto, "rank_correlation", lambda gp, n: ranked.append((gp.n, n)) or 1.0)
    searcher, rng = Searcher({"x": Float(0, 1), "y": Float(0, 1)}, seed=0), np.random.default_rng(0)
    for _ in range(12):
        x, y = rng.random(2)
        for _ in range(3):
            searcher.add({"x": x, "y": y}, rng.normal())
    searcher.ask(3)
    assert ranked == [(12, 12), (13, 12), (14, 12)]
