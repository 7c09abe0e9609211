"""Promises of the GP methods beyond the contract of all methods: schedules, models, pending and failed points."""

from __future__ import annotations

import math

import numpy as np
import pytest

import raybo
from raybo.context import context_model
from raybo.methods import make
from raybo.methods.parts.fitting import fitted
from raybo.methods.parts.next_point import APART
from raybo.record.states import State
from raybo.surrogate import fit_map, standard_model
from tests.surrogate.conftest import naive_kernel

GP_METHODS = ["gp-ucb", "gp-ts", "ei", "auto"]
PLANE = raybo.Space({"x": raybo.Float(0, 1), "y": raybo.Float(0, 1)})


def bowl(config) -> float:
    return -((config["x"] - 0.3) ** 2) - (config["y"] - 0.6) ** 2


def run(method, trials, *, space=PLANE, seed=0, objective=bowl, **options) -> raybo.Searcher:
    searcher = raybo.Searcher(space, method=method, mode="max", seed=seed, **options)
    for _ in range(trials):
        trial = searcher.ask()
        searcher.tell(trial, objective(trial.config))
    return searcher


def test_gp_ucb_follows_the_published_schedules():
    searcher = run("gp-ucb", 9, initial=5)
    modelled = [trial.tags for trial in searcher.trials[5:]]
    assert [tags["t"] for tags in modelled] == [1, 2, 3, 4]
    np.testing.assert_allclose(
        [tags["kappa"] for tags in modelled], [0.832554611, 1.048147074, 1.177410023, 1.268636241], rtol=1e-9
    )
    assert [tags["evaluations"] for tags in modelled] == [100, 200, 300, 400]
    assert all("sobol" in trial.tags for trial in searcher.trials[:5])


def test_fixed_grids_stay_and_pending_asks_count():
    searcher = run("gp-ucb", 6, initial=4, grid="fixed")
    asked = [searcher.ask() for _ in range(3)]
    assert [trial.tags["t"] for trial in asked] == [3, 4, 5]
    assert all(trial.tags["evaluations"] == 100 for trial in asked)


def test_the_papers_preset_is_its_published_model():
    """Computed independently: Matern-3/2, the fitted length-scale, unit scale, noise 1e-4, raw values; then argmax."""
    searcher = run("gp-ucb", 5, initial=4, preset="paper", prior_mean=0.0)
    X, y = searcher.history.X, searcher.history.y
    trial = searcher.ask()
    length = np.full(2, np.exp(trial.tags["theta"][0]))

    def kernel(A, B):
        return np.array([[naive_kernel("matern32", a, b, length, (False, False)) for b in B] for a in A])

    inverse = np.linalg.inv(kernel(X, X) + 1e-4 * np.eye(5))

    def bound(Z):
        K = kernel(Z, X)
        return K @ inverse @ y + trial.tags["kappa"] * np.sqrt(1.0 - np.einsum("ij,jk,ik->i", K, inverse, K))

    rng = np.random.default_rng(np.random.SeedSequence(0, spawn_key=(5, 0)))
    grid = rng.random((200, 2))
    np.testing.assert_allclose(searcher.history.records[5].x, grid[np.argmax(bound(grid))])


def test_the_papers_preset_fits_every_trial_afresh(monkeypatch):
    """From 1 in raw units, whatever was found before, and however many results there are."""
    began = []

    def noted(observations, model, starts, **named):
        began.append([np.exp(start[0]) for start in starts])
        return fit_map(observations, model, starts, **named)

    monkeypatch.setattr("raybo.methods.parts.fitting.fit_map", noted)
    searcher = run("gp-ucb", 8, initial=4, preset="paper", lengthscale_start=0.2)
    for i in range(200):  # from which on fits are else kept for some trials
        searcher.add({"x": (i % 20) / 19, "y": (i // 20) / 9}, 0.0)
    for _ in range(4):
        searcher.tell(searcher.ask(), 0.0)
    np.testing.assert_allclose(began, [[0.2]] * 8)


def test_an_origin_must_be_the_spaces():
    searcher = raybo.Searcher(PLANE, method="gp-ucb", initial=1, preset="paper", origin=(0.0, 1.0, 2.0))
    searcher.tell(searcher.ask(), 0.0)
    with pytest.raises(raybo.MethodError, match="origin gives 3 numbers for 2 axes"):
        searcher.ask()
    with pytest.raises(raybo.MethodError, match="origin must be a finite number"):
        make("gp-ucb", origin=(math.nan,))


def test_the_model_of_contexts_over_the_parameters_alone(monkeypatch):
    models = []

    def noted(observations, model, starts, **named):
        models.append(model)
        return fit_map(observations, model, starts, **named)

    monkeypatch.setattr("raybo.methods.parts.fitting.fit_map", noted)
    run("gp-ucb", 6, initial=4, preset="contexts")
    assert models == [context_model()] * 2


@pytest.mark.parametrize("kappa", ["theory", 2.5])
def test_gp_ucb_takes_its_exploration_options(kappa):
    searcher = run("gp-ucb", 5, initial=4, kappa=kappa, R=0.1)
    assert searcher.trials[4].tags["kappa"] > 1.0
    if kappa == 2.5:
        assert searcher.trials[4].tags["kappa"] == 2.5


@pytest.mark.parametrize(
    ("method", "solver", "c"),
    [("gp-ucb", "lbfgsb", 1), ("gp-ucb", "random-grid", 2), ("gp-ts", "lbfgsb", 2), ("gp-ts", "random-grid", 3)],
)
def test_theorem_exploration_matches_method_and_solver(method, solver, c):
    """Kim, Liu, Chen (2025), Theorems 3, 7 and 8 and Algorithm 2 differ in the constant c alone."""
    fixed = "lengthscale=0.3,outputscale=1,noise_variance=0.01"
    options = {"kappa": "theory", "B": 0.5, "R": 0.2, "delta": 0.05, "hyperparameters": fixed}
    searcher = run(method, 6, initial=5, solver=solver, **options)
    X, kappa = searcher.history.X, searcher.ask().tags["kappa"]
    K = np.array([[naive_kernel("matern52", a, b, [0.3, 0.3], [False, False]) for b in X] for a in X])
    gain = 0.5 * np.linalg.slogdet(np.eye(6) + K / 0.01)[1]
    assert kappa == pytest.approx(0.5 + 0.2 * np.sqrt(2.0 * (gain + 1.0 + np.log(c / 0.05))), rel=1e-9)


@pytest.mark.parametrize("options", [{}, {"points_per_round": 2_500}, {"solver": "lbfgsb"}, {"solver": "nelder-mead"}])
def test_inflation_widens_every_kind_of_draw(options):
    """Joint on a small grid, of random features on a large one and under a climber: Theorem 4 knows no difference."""
    history = run("gp-ts", 6, initial=5).history
    plain, wide = (
        make("gp-ts", initial=5, inflation=inflation, **options)
        .propose(history, np.random.default_rng(4))
        .tags["drawn"]
        for inflation in (0.0, 20.0)
    )
    assert wide > plain + 5.0


def test_inexactness_is_measured_when_asked_for():
    searcher = run("gp-ucb", 8, initial=4, diagnostics=2)
    measured = [trial.tags.get("inexactness") for trial in searcher.trials]
    assert [entry is not None for entry in measured] == [False] * 4 + [False, True, False, True]
    for entry in measured[5::2]:
        assert entry["gap"] >= 0.0
        assert 0.0 <= entry["eta"] <= 1.0
        assert entry["solver_evaluations"] in (200, 400)


@pytest.mark.parametrize("method", ["gp-ucb", "gp-ts", "ei"])
@pytest.mark.parametrize("solver", ["random-grid", "lbfgsb", "nelder-mead", "cg"])
@pytest.mark.parametrize("kernel", ["rbf", "matern32", "matern52"])
def test_every_solver_with_every_kernel(method, solver, kernel):
    searcher = run(method, 7, initial=5, solver=solver, kernel=kernel)
    x = searcher.history.X[5:]
    assert ((x >= 0.0) & (x <= 1.0)).all()
    assert len(np.unique(searcher.history.X, axis=0)) == 7


@pytest.mark.parametrize(("method", "trials"), [("gp-ucb", 7), ("gp-ts", 6), ("ei", 6)])
@pytest.mark.parametrize("estimate", [pytest.param("mcmc", marks=pytest.mark.slow), "slice"])
def test_sampled_hyperparameters(method, trials, estimate):
    searcher = run(method, trials, initial=5, hyperparameters=estimate)
    assert all(len(trial.tags["theta"]) == 4 for trial in searcher.trials[5:])
    again = run(method, trials, initial=5, hyperparameters=estimate)
    assert [t.config for t in again.trials] == [t.config for t in searcher.trials]


@pytest.mark.slow
@pytest.mark.parametrize("method", GP_METHODS)
def test_sixty_four_points_in_flight_keep_apart(method):
    searcher = run(method, 8, initial=6)
    for _ in range(64):
        searcher.ask()
    X = searcher.history.X_pending
    distance = np.sqrt(((X[:, None] - X[None]) ** 2).mean(axis=2))
    assert distance[np.triu_indices(64, 1)].min() >= APART


@pytest.mark.parametrize("estimate", ["map", "uhe", "slice", "lengthscale=0.4"])
def test_in_flight_points_reduce_only_variance(estimate):
    searcher = run("ei", 9, initial=8, hyperparameters=estimate)
    searcher.ask()
    before = fitted(searcher.history, standard_model(), np.random.default_rng(0), estimate=estimate)
    for _ in range(2):
        searcher.ask()
    after = fitted(searcher.history, standard_model(), np.random.default_rng(0), estimate=estimate)
    newest, Z = searcher.history.X_pending[1:], np.random.default_rng(1).random((50, 2))
    assert len(before.members) == len(after.members) == (10 if estimate == "slice" else 1)
    for one, other in zip(before.members, after.members, strict=True):
        assert other.n == one.n + 2
        np.testing.assert_allclose(other.posterior(Z)[0], one.posterior(Z)[0], rtol=1e-8, atol=1e-9)
        assert (other.posterior(newest)[1] < one.posterior(newest)[1]).all()


@pytest.mark.parametrize("method", GP_METHODS)
def test_the_search_leaves_a_region_that_fails(method):
    """Half of the square fails: of the modelled trials most go elsewhere."""
    searcher = raybo.Searcher(PLANE, method=method, mode="max", seed=1, initial=8)
    for _ in range(25):
        trial = searcher.ask()
        if trial.config["x"] < 0.5:
            searcher.fail(trial, "diverged")
        else:
            searcher.tell(trial, -trial.config["x"])  # better towards the region
    modelled = searcher.trials[8:]
    assert sum(trial.state is State.FAILED for trial in modelled) <= len(modelled) // 2


@pytest.mark.parametrize("method", ["gp-ucb", "ei", "auto"])
def test_a_smooth_bowl_is_found(method):
    """Regret of the best of 25 trials below a hundredth of random search's expectation, 1 / (25 pi)."""
    assert -run(method, 25, initial=6).best.value < 0.01 / (25 * np.pi)


@pytest.mark.parametrize("method", ["ei", "auto"])
def test_mixed_spaces_vary_every_kind(method):
    space = raybo.Space(
        {
            "kind": raybo.Categorical(["bad", "good", "ugly", "other"]),
            "rate": raybo.Float(1e-4, 1.0, log=True),
            "depth": raybo.Integer(1, 12),
        }
    )

    def job(config):
        return {"bad": 0.0, "good": 1.0, "ugly": 0.3, "other": 0.5}[config["kind"]] - 0.2 * (
            abs(np.log10(config["rate"]) + 2) + abs(config["depth"] - 7) / 3
        )

    best = run(method, 45, space=space, objective=job, seed=2, initial=10).best
    assert best.config["kind"] == "good"
    assert best.config["depth"] == 7
    assert best.value > 0.9


def test_fits_are_kept_while_data_hardly_grow():
    searcher = raybo.Searcher(PLANE, method="ei", mode="max", seed=0, initial=1)
    rng = np.random.default_rng(0)
    for x, y in rng.random((299, 2)):
        searcher.add({"x": x, "y": y}, bowl({"x": x, "y": y}))
    thetas = []
    for _ in range(8):
        trial = searcher.ask()
        searcher.tell(trial, bowl(trial.config))
        thetas.append(tuple(trial.tags["theta"]))
    assert 2 <= len(set(thetas)) <= 4  # every third, at three hundred


def test_caches_change_no_digit(monkeypatch):
    """Two hundred and fifty observations and more: asked in turn, and each again from the history alone."""
    searcher = raybo.Searcher(PLANE, method="ei", mode="max", seed=3, initial=1)
    rng = np.random.default_rng(1)
    for x, y in rng.random((245, 2)):
        searcher.add({"x": x, "y": y}, bowl({"x": x, "y": y}))
    asked = []
    for _ in range(12):
        history = searcher.history.copy()
        asked.append((history, searcher.ask()))
        if len(asked) % 3:
            searcher.tell(asked[-1][1], bowl(asked[-1][1].config))
    for history, trial in asked:
        monkeypatch.setattr("raybo.methods.parts.fitting._base", None)
        again = searcher.propose(history)
        assert again.data["x"] == searcher.history.records[trial.number].x.tolist()
        assert again.data["tags"] == trial.tags


@pytest.mark.parametrize(("method", "options"), [("gp-ucb", {"points_per_round": 0}), ("gp-ucb", {"delta": 1.0})])
def test_options_out_of_range_are_refused(method, options):
    with pytest.raises(raybo.MethodError, match=method):
        raybo.Searcher(PLANE, method=method, **options)
