"""Promises of the methods over contexts beside the contract of every method."""

from __future__ import annotations

import json

import numpy as np
import pytest

from raybo import methods
from raybo.acquisition import ContextConfidence
from raybo.common.errors import MethodError
from raybo.context import Density, Expectation, best_expected, fit_joint
from raybo.methods.contexts.drbo_kde import radius_of
from raybo.methods.contexts.drbo_mmd import mmd_ball
from raybo.methods.contexts.over_contexts import SCREENED, Learned
from raybo.searcher import Searcher
from raybo.solvers import solve
from raybo.space import Categorical, Float, Integer, Space
from tests.context.histories import Met, demand, floats, newsvendor, newsvendor_expectation, of_ackley, of_newsvendor

NAMES = ["sbo-kde", "drbo-kde", "drbo-mmd", "drbo-mmd-minimax", "stableopt"]


def stream(*key):
    return np.random.default_rng(np.random.SeedSequence(11, spawn_key=key))


def propose(name, history, number=0, **options):
    return methods.make(name, **{"initial": 3, **options}).propose(history, stream(number))


@pytest.fixture(params=NAMES)
def name(request):
    return request.param


def run(name, trials, seed=0, **options):
    """The newsvendor, one trial at a time; every earlier suggestion left its tags."""
    history, rng = Met(floats(1), floats(1)), stream(seed, 1)
    method = methods.make(name, **{"initial": 5, **options})
    for number in range(trials):
        proposal = method.propose(history, stream(seed, 0, number))
        x = history.cube.snap(proposal.x[None, :])
        c = demand(rng, 1)
        history.trial(x[0], c[0], newsvendor(x, c)[0], tags=json.loads(json.dumps(proposal.tags)))
    return history


# ---- what they need, and what they say


def test_studies_without_context_are_refused(name):
    with pytest.raises(MethodError, match="declares no context; declare it next to the space"):
        propose(name, Met(floats(2), None))


@pytest.mark.parametrize("value", [0, -1, float("nan")])
def test_options_out_of_range_are_refused(name, value):
    known = {option for option, _, _ in methods.describe(name)[1]}
    for option in {"atoms", "points", "infimum", "initial"} & known if value == value else ():
        with pytest.raises(MethodError, match=f"^{name}: {option} must be at least 1, got"):
            methods.make(name, **{option: value})
    for option in {"bandwidth", "half_life"} & known:
        with pytest.raises(MethodError, match=f"^{name}: {option} must be above 0, got"):
            methods.make(name, **{option: value})
    if value != 0:
        with pytest.raises(MethodError, match=f"^{name}: kappa must be at least 0, got"):
            methods.make(name, kappa=value)


@pytest.mark.parametrize("radius", [-0.1, 2.1])
def test_radius_out_of_range_is_refused(radius):
    with pytest.raises(MethodError, match="radius must be in"):
        methods.make("drbo-kde", radius=radius)


def test_kappa_is_published():
    assert {methods.make(name).kappa for name in NAMES} == {1.5}


def test_the_design_lasts_until_results_vary(name):
    history = of_newsvendor(2)
    assert "sobol" in propose(name, history).tags
    flat = Met(floats(1), floats(1))
    for i in range(6):
        flat.trial([i / 6.0], [0.5], 1.0)
    assert "sobol" in propose(name, flat).tags
    blind = Met(floats(1), floats(1))
    for i in range(6):
        blind.trial([i / 6.0], None, float(i))
    assert "sobol" in propose(name, blind).tags


def test_context_methods_explain_their_proposals(name):
    method, history = methods.make(name, initial=3), of_newsvendor(8)
    assert "on average over contexts" in method.explain(propose(name, history).tags)
    history.trial([0.5], None, 1.0)
    assert "1 trials without a context left out" in method.explain(propose(name, history).tags)
    history.next_context = np.array([0.3])
    assert "at the context that is known" in method.explain(propose(name, history).tags)
    assert method.explain({"sobol": 1}) == "initial design (Sobol)"


# ---- what they find


@pytest.mark.parametrize("name", ["sbo-kde", "drbo-kde"])
def test_context_methods_find_the_best_expectation(name):
    """x* = 0.18779 with an expectation of 0.46394; at random, 1.06 less is expected."""
    history = run(name, 25)
    recommended = history.X[best_expected(history)[0], 0]
    assert newsvendor_expectation(0.18779) - newsvendor_expectation(recommended) < 0.05
    assert np.abs(history.X[-5:, 0] - 0.18779).mean() < 0.15


def test_context_proposals_are_pure(name):
    history = of_ackley(14)
    before = (history.last_event, history.C.tobytes(), history.X.tobytes())
    a, b = propose(name, history), propose(name, history.copy())
    assert a.x.tobytes() == b.x.tobytes()
    assert a.tags == b.tags
    assert json.loads(json.dumps(a.tags, allow_nan=False)) == a.tags
    assert (history.last_event, history.C.tobytes(), history.X.tobytes()) == before


def test_replaying_a_study_gives_the_same_proposals(name):
    history = run(name, 12)
    again, method = Met(floats(1), floats(1)), methods.make(name, initial=5)
    for number, record in enumerate(history.records):
        proposal = method.propose(again, stream(0, 0, number))
        np.testing.assert_array_equal(again.cube.snap(proposal.x[None, :])[0], record.x)
        assert json.loads(json.dumps(proposal.tags)) == record.tags
        again.trial(record.x, record.c, record.y, tags=record.tags)


def test_the_known_context_decides(name):
    """With demand known the stock follows it."""
    history = of_newsvendor(60, seed=2)
    found = {}
    for c in (0.1, 0.4):
        history.next_context = np.array([c])
        proposal = propose(name, history, kappa=0.2)
        assert proposal.tags["wanted"] == [c]
        found[c] = proposal.x[0]
        assert abs(found[c] - c) < 0.1
    assert found[0.1] < found[0.4]


def test_a_known_context_may_differ_from_all_met(name):
    history = of_newsvendor(12)
    history.next_context = np.array([0.95])
    assert np.isfinite(propose(name, history).x).all()


# ---- parallel, failures, other spaces


def test_workers_that_ask_at_once_are_spread(name):
    history = of_ackley(12)
    for number in range(6):
        proposal = propose(name, history, number)
        history.trial(proposal.x, None, tags=proposal.tags)
    X = history.X_pending
    distances = np.linalg.norm(X[:, None] - X, axis=2)[np.triu_indices(6, 1)]
    assert distances.min() > 1e-3


def test_failed_and_pending_trials_with_and_without_contexts(name):
    history = of_ackley(10)
    history.trial([0.2, 0.3], [0.4], failed=True)
    history.trial([0.3, 0.3], None, failed=True)
    history.trial([0.4, 0.3], [0.4])
    history.trial([0.5, 0.3])
    history.trial([0.6, 0.3], None, 1.0)
    proposal = propose(name, history)
    assert ((proposal.x >= 0) & (proposal.x <= 1)).all()
    assert proposal.tags["contexts"] == 12
    assert proposal.tags["left_out"] == 1


def test_context_methods_avoid_failed_regions():
    """Everything above 0.5 fails, whatever the context."""
    history = Met(floats(1), floats(1))
    rng = np.random.default_rng(1)
    for x in np.linspace(0.02, 0.98, 16):
        if x > 0.5:
            history.trial([x], None, failed=True)
        else:
            history.trial([x], rng.random(1), x)
    assert propose("sbo-kde", history, kappa=0.5).x[0] < 0.6


CONTEXTS = {
    "numbers": Space({"load": Float(0, 1), "hour": Float(0, 24)}),
    "an integer": Space({"hour": Integer(0, 23)}),
    "a category": Space({"tenant": Categorical(["a", "b", "c"])}),
    "mixed": Space({"load": Float(1e-3, 1, log=True), "tenant": Categorical(["a", "b", "c"]), "hour": Integer(0, 5)}),
    "one value": Space({"tenant": Categorical(["a"])}),
}
SPACE = Space({"lr": Float(1e-4, 1, log=True), "n": Integer(1, 9), "kind": Categorical(["p", "q"])})


@pytest.mark.parametrize("contexts", CONTEXTS.values(), ids=CONTEXTS)
def test_context_methods_take_every_kind_of_context(name, contexts):
    rng, history = np.random.default_rng(3), Met(SPACE.cube, contexts.cube)
    for x, c in zip(SPACE.snap(rng.random((12, 3))), contexts.snap(rng.random((12, contexts.d))), strict=True):
        history.trial(x, c, float(np.sin(4 * x[0]) * np.cos(3 * c[0]) + x[1]))
    history.trial(SPACE.snap(rng.random((1, 3)))[0])
    proposal = propose(name, history)
    assert "theta" in proposal.tags
    assert len(proposal.tags["theta"]) == 3 + contexts.d + 2
    np.testing.assert_array_equal(SPACE.snap(proposal.x[None, :])[0], proposal.x)


# ---- the parts


def test_two_stage_search_matches_an_exhaustive_one():
    history = of_ackley(40)
    density = Density.of(history.contexts, history.context_cube)
    joint = fit_joint(history, density, stream(5))
    atoms, p = density.atoms(1024, stream(6))
    meant = ContextConfidence(joint.gp, atoms, Expectation(p), 1.5)
    thorough = solve("lbfgsb", meant, history.cube, stream(7), size=256, starts=10, rounds=60, tolerance=1e-7)
    x = propose("sbo-kde", history).x
    assert meant.value(x[None, :])[0] > thorough.value - 2e-3


@pytest.mark.parametrize("name", ["sbo-kde", "drbo-kde", "stableopt"])
def test_acquisitions_reduce_bounds_over_contexts(name):
    """The mean over the law; with the largest radius the lowest anywhere; the lowest within a deviation of the mean."""
    history = of_newsvendor(30)
    density = Density.of(history.contexts, history.context_cube)
    joint = fit_joint(history, density, stream(5))
    proposal = propose(name, history, **({"radius": 2.0} if name == "drbo-kde" else {}))

    def bounds(C):
        mean, var = joint.gp.posterior(np.hstack([np.repeat(proposal.x[None, :], len(C), axis=0), C]))
        return mean + 1.5 * np.sqrt(var)

    met = history.contexts[:, 0]
    reach = np.clip([met.mean() - met.std(ddof=1), met.mean() + met.std(ddof=1)], 0.0, 1.0)
    expected = {
        "sbo-kde": lambda: bounds(density.sample(1 << 13, stream(6))).mean(),
        "drbo-kde": lambda: bounds(np.linspace(0.0, 1.0, 2_001)[:, None]).min(),
        "stableopt": lambda: bounds(np.linspace(*reach, 2_001)[:, None]).min(),
    }[name]()
    assert proposal.tags["value"] == pytest.approx(expected, abs=3e-3)


def test_worst_contexts_may_have_no_density():
    """Values fall with a context that was met in a narrow range only: the lowest mean lies outside of it."""
    history, rng = Met(floats(1), floats(1)), np.random.default_rng(2)
    for x, c in zip(rng.random((25, 1)), rng.uniform(0.45, 0.55, (25, 1)), strict=True):
        history.trial(x, c, float(x[0] - 10.0 * c[0]))
    density = Density.of(history.contexts, history.context_cube)
    gp = fit_joint(history, density, stream(5)).gp
    proposal = propose("drbo-kde", history, radius=2.0, kappa=0.0)
    C = np.linspace(0.0, 1.0, 2_001)[:, None]
    mean, _ = gp.posterior(np.hstack([np.repeat(proposal.x[None, :], len(C), axis=0), C]))
    reached = density.sample(1_024, stream(6))[:, 0]
    assert reached.max() + 0.05 < C[np.argmin(mean), 0]
    assert proposal.tags["value"] == pytest.approx(mean.min(), abs=1e-3)


@pytest.mark.parametrize(
    ("d", "t", "radius"),
    [(1, 10, 0.398107), (1, 100, 0.158489), (1, 300, 0.102130), (2, 10, 0.464159), (2, 100, 0.215443)],
)
def test_published_radii(d, t, radius):
    contexts = np.random.default_rng(t).random((t, d))
    assert radius_of(Density.of(contexts, floats(d))) == pytest.approx(radius, abs=5e-7)


def test_radii_of_few_and_forgotten_contexts():
    assert radius_of(Density.of(np.empty((0, 1)), floats(1))) == 2.0
    assert radius_of(Density.of(np.array([[0.4]]), floats(1))) == 1.0
    contexts = np.random.default_rng(1).random((100, 1))
    assert radius_of(Density.of(contexts, floats(1), half_life=5.0)) > radius_of(Density.of(contexts, floats(1)))
    tenants = Space({"tenant": Categorical(["a", "b"])}).cube
    of_categories = Density.of(np.full((100, 1), tenants.levels[0][0]), tenants)
    assert radius_of(of_categories) == pytest.approx(0.1)  # a frequency's error falls with the root of t


def test_the_mmd_ball_uses_the_context_kernel():
    history = of_ackley(30)
    density = Density.of(history.contexts, history.context_cube)
    joint = fit_joint(history, density, stream(8))
    ball = mmd_ball(Learned(density, history.contexts, joint, stream(9)), 100)
    assert len(ball.atoms) == 100
    np.testing.assert_allclose(np.diagonal(ball.kernel), 1.0)
    assert ball.p.sum() == pytest.approx(1.0)
    assert ball.radius == pytest.approx(4.145966 / np.sqrt(30), abs=1e-6)
    r = (ball.atoms[7, 0] - ball.atoms[30, 0]) / joint.gp.lengthscale[2]
    s = np.sqrt(5.0) * abs(r)
    assert ball.kernel[7, 30] == pytest.approx((1 + s + s * s / 3) * np.exp(-s), rel=1e-9)


def test_no_radius_is_no_robustness():
    """drbo-kde with a ball of one law is sbo-kde, but for its other random numbers."""
    history = of_newsvendor(30)
    a, b = propose("sbo-kde", history).x, propose("drbo-kde", history, radius=0.0).x
    np.testing.assert_allclose(a, b, atol=0.02)
    cautious = propose("drbo-kde", history, radius=2.0, kappa=0.0).x[0]
    assert cautious < propose("sbo-kde", history, kappa=0.0).x[0]  # with the worst demand, nothing is sold


def test_few_atoms_are_screened():
    assert SCREENED <= 1024
    history = of_newsvendor(12)
    for name, options in (("sbo-kde", {"atoms": 8}), ("drbo-kde", {"atoms": 8, "infimum": 4})):
        assert np.isfinite(propose(name, history, **options).x).all()


def constrained(name, seed, limits, trials=30):
    """More is better, but at a high load less is allowed."""
    searcher = Searcher(
        {"x": Float(0, 1)}, name, "max", seed, trials, metric="made", context={"load": Float(0, 1)}, constraints=limits
    )
    rng = stream(seed, 7)
    for _ in range(trials):
        trial, load = searcher.ask(), float(rng.random())
        x = trial.config["x"]
        searcher.tell(trial, {"made": x, "late": x + 0.5 * load - 0.9} if limits else x, context={"load": load})
    return searcher


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_constraints_hold_in_the_worst_contexts(name, seed):
    """At the mean load 0.65 would be allowed, in the worst twentieth of the loads 0.41."""
    searcher = constrained(name, seed, {"late": "<= 0"})
    assert 0.3 < searcher.best.config["x"] < 0.43
    assert "meets the constraints in the worst of them" in searcher.recommendation
    proposed = [trial.config["x"] for trial in searcher.trials[20:]]
    assert np.median(proposed) < 0.5
    assert all(0.0 <= trial.tags["feasible"] <= 1.0 for trial in searcher.trials[20:])
    assert searcher.best_for({"load": 0.0}).config["x"] > searcher.best.config["x"]


def test_without_constraints_the_worst_contexts_do_not_matter():
    assert constrained("sbo-kde", 0, None).best.config["x"] > 0.95


def test_a_recommendation_that_may_break_constraints_says_so():
    searcher = constrained("sbo-kde", 0, {"late": "<= -0.85"})
    assert "in the worst of them it may break constraints, as all others may" in searcher.recommendation
    assert searcher.best.config["x"] < 0.1


def test_a_blind_method_is_judged_over_contexts_too():
    assert 0.3 < constrained("random", 0, {"late": "<= 0"}).best.config["x"] < 0.43
