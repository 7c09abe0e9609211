"""Several metrics: above which point volume counts."""

from __future__ import annotations

import numpy as np
import pytest

import raybo
from raybo import Float, Searcher, Space
from raybo.methods.parts import local_models
from raybo.methods.parts.front_and_reference import FAR, MARGIN, best_points_of_many, still_feasible
from raybo.methods.parts.multi_objective import FitOptions, fitted_goals, local_models_of_goals
from raybo.record.pareto import hypervolume, non_dominated
from raybo.surrogate import Standardised, standard_model

SPACE = {"x": raybo.Float(0.0, 1.0), "y": raybo.Float(0.0, 1.0)}


@pytest.mark.parametrize("k", [2, 3])
def test_every_fourth_proposal_extends_the_front(k):
    names = "abc"[:k]
    searcher = raybo.Searcher(SPACE, "random", seed=0, metrics=dict.fromkeys(names, "max"))
    far = []
    for n in range(1, 17):
        trial = searcher.ask()
        x, y = trial.config["x"], trial.config["y"]
        searcher.tell(trial, dict(zip(names, (1.0 - x * x - y * y, x, y), strict=False)))
        if n < 6:
            continue
        goals = fitted_goals(searcher.history, FitOptions(standard_model()), np.random.default_rng(0))
        low, extent = goals.front.min(axis=0), np.ptp(goals.front, axis=0)
        assert (goals.reference <= low - MARGIN * extent).all()
        if np.allclose(goals.reference, low - FAR * extent):
            far.append(n)
    assert far == ([] if k == 2 else [7, 11, 15])


def study_of(n, method="auto", k=2, pending=0, space=SPACE, seed=0, **given):
    """A study of n uniform points, and some in flight: hills around different points, and a disc to be kept out of."""
    searcher = raybo.Searcher(space, method, seed=seed, **(goals_of(k) | {"constraints": RULES} | given))
    for config in searcher.space.sample(np.random.default_rng(seed), n):
        searcher.add(config, results(config, k))
    for _ in range(pending):
        searcher.ask()
    return searcher


RULES = {"away": ">= 0.04"}


def goals_of(k):
    return {"metrics": dict.fromkeys("abc"[:k], "min")} if k > 1 else {"metric": "a", "mode": "min"}


def results(config, k):
    x, y = config["x"], config["y"]
    hills = [(x - 0.2) ** 2 + (y - 0.3) ** 2, (x - 0.8) ** 2 + (y - 0.4) ** 2, (x - 0.5) ** 2 + (y - 0.9) ** 2]
    return dict(zip("abc", hills[:k], strict=False)) | {"away": (x - 0.5) ** 2 + (y - 0.4) ** 2}


@pytest.mark.parametrize("k", [1, 2, 3])
def test_local_models_match_all_observations_nearby(k):
    history = study_of(600, "random", k).history
    options = FitOptions(standard_model(), transform=Standardised.of)
    exact = fitted_goals(history, options, np.random.default_rng(0))
    of_many = local_models_of_goals(history, options, np.random.default_rng(0))
    for x in [of_many.wide.near[0], *np.random.default_rng(1).random((4, 2))]:
        close = of_many.close(x)
        for near, true in zip(close.metrics, exact.metrics, strict=True):
            assert near.gp.n < 300
            said, right = near.prediction(x), true.prediction(x)
            assert abs(said["mean"] - right["mean"]) < max(0.02, said["std"])
        assert close.prediction(x)["feasible"] == pytest.approx(exact.prediction(x)["feasible"], abs=0.05)
    wide = of_many.wide
    assert wide.is_feasible
    if k == 1:
        assert wide.incumbent == pytest.approx(exact.incumbent, abs=0.01)
    else:  # nearly all the volume of the front that all observations make
        volume = hypervolume(exact.front, exact.reference)
        assert hypervolume(wide.front, exact.reference) == pytest.approx(volume, rel=0.03)


def test_best_points_spread_over_the_front():
    searcher = study_of(900, "random", 2, constraints=None)
    best = best_points_of_many(searcher.history, np.random.default_rng(0))
    front = searcher.history.X[non_dominated(searcher.history.Y)]
    gaps = np.sqrt(((front[:, None] - best[None]) ** 2).sum(axis=2)).min(axis=1)
    assert len(best) < 120
    assert gaps.max() < 0.1  # of the cube's side
    ends = searcher.history.X[searcher.history.Y.argmax(axis=0)]
    assert all((best == end).all(axis=1).any() for end in ends)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["auto", "ei", "gp-ucb", "ei:solver=random-grid", "gp-ucb:solver=lbfgsb"])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_large_histories_give_new_replayable_proposals(method, k, monkeypatch):
    monkeypatch.setattr(local_models, "LARGE", 30)
    name, _, option = method.partition(":")
    options = dict([option.split("=")]) if option else {}
    searcher, again = (study_of(40, name, k, pending=6, **options, initial=4) for _ in range(2))
    proposals = [searcher.ask().config for _ in range(3)]
    assert proposals == [again.ask().config for _ in range(3)]
    known = [tuple(trial.config.values()) for trial in searcher.trials]
    assert len(set(known)) == len(known)
    assert "satisfies the constraints" in searcher.explain(searcher.trials[-1])


def test_large_infeasible_histories_seek_feasibility(monkeypatch):
    monkeypatch.setattr(local_models, "LARGE", 60)
    searcher = raybo.Searcher(SPACE, "auto", "min", metric="a", constraints={"y": ">= 0.9"}, seed=0)
    for x, y in np.random.default_rng(0).random((80, 2)):
        searcher.add({"x": x, "y": 0.8 * y}, {"a": x, "y": 0.8 * y})
    assert searcher.ask().config["y"] > 0.85


def test_large_histories_with_choices_and_failures(monkeypatch):
    monkeypatch.setattr(local_models, "LARGE", 30)
    space = {**SPACE, "kind": raybo.Categorical(["u", "v"]), "n": raybo.Integer(0, 3)}
    searcher = study_of(40, "auto", 2, space=space)
    searcher.fail(searcher.ask(), "no memory")
    assert len({tuple(searcher.ask().config.values()) for _ in range(5)}) == 5


def test_large_histories_learn_from_pruned_trials(monkeypatch):
    monkeypatch.setattr(local_models, "LARGE", 30)
    searcher = study_of(40, "auto", 2, constraints=None, steps=9, scheduler="asha")
    for step in (1, 2):
        trial = searcher.ask()
        searcher.report(trial, results(trial.config, 2), step)
    searcher.prune(trial)
    asked = searcher.ask()
    assert {"theta_curves", "theta_1_curves"} <= asked.tags.keys()  # a model of each metric's curves
    assert asked.config not in [known.config for known in searcher.trials[:-1]]


def test_early_violations_are_not_on_the_front():
    searcher = Searcher(
        Space({"x": Float(0, 1)}),
        "ei",
        metrics={"a": "max", "b": "max"},
        constraints={"g": "<= 0.5 at every step"},
        seed=0,
        steps=3,
    )
    for curve, is_pruned in (([0.1], True), ([0.9], True), ([0.2], False), ([0.9, 0.3], False)):
        trial = searcher.ask()
        for step, g in enumerate(curve, start=1):
            searcher.report(trial, {"a": 1.0, "b": 1.0, "g": g}, step)
        if is_pruned:
            searcher.prune(trial)
    silent = searcher.ask()
    kept = [searcher.trials[i].config["x"] for i in (0, 2, silent.number)]
    np.testing.assert_allclose(still_feasible(searcher.history)[:, 0], kept)
