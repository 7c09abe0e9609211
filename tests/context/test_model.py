from __future__ import annotations

import numpy as np
import pytest

from raybo.common.errors import MethodError
from raybo.context import Density, context_model, cube_of_contexts, fit_joint, with_context
from raybo.context.model import IMAGINED, split_distances
from raybo.record.events import Stopped
from raybo.space import Categorical, Float, Space
from raybo.surrogate import Observations
from raybo.surrogate.likelihood import Likelihood
from tests.context.histories import Met, floats, of_ackley, of_newsvendor


def joint_of(history, seed=0):
    density = Density.of(history.contexts, history.context_cube)
    return fit_joint(history, density, np.random.default_rng(seed))


def test_the_model_has_the_published_priors():
    """Densities of the hyperparameters themselves: Gamma(3, 6), Gamma(2, 0.15), Gamma(1.1, 0.05), up to a constant."""
    from scipy.stats import gamma

    rng = np.random.default_rng(1)
    differences = []
    for _ in range(20):
        values = rng.uniform([0.05, 0.05, 0.1, 1e-3], [2.0, 2.0, 10.0, 3.0])
        ours = context_model().log_prior(np.log(values))[0]
        theirs = gamma.logpdf(values[:2], 3.0, scale=1 / 6.0).sum()
        theirs += gamma.logpdf(values[2], 2.0, scale=1 / 0.15) + gamma.logpdf(values[3], 1.1, scale=1 / 0.05)
        differences.append(ours - theirs)
    np.testing.assert_allclose(differences, differences[0])
    start = np.exp(context_model().start(2))
    np.testing.assert_allclose(start, [0.693, 0.693, 0.693, 2.0])
    assert np.exp(context_model().bounds(2)[3, 0]) == pytest.approx(1e-4)


def test_the_fit_is_the_most_likely_one():
    history = of_ackley(40)
    gp = joint_of(history).gp
    likelihood = Likelihood(gp.observations, gp.model)
    best = likelihood.log_posterior(gp.theta)[0]
    for move in np.random.default_rng(0).normal(0, 0.2, (50, len(gp.theta))):
        assert likelihood.log_posterior(gp.theta + move)[0] < best + 1e-2


def test_what_enters_as_what():
    history = of_newsvendor(20)
    history.trial([0.3], None, 0.7)  # finished without a context
    history.trial([0.4], [0.2], failed=True)
    history.trial([0.5], None, failed=True)
    history.trial([0.6], [0.1])  # pending, its context known
    history.trial([0.7])
    joint = joint_of(history)
    gp, Z = joint.gp, joint.gp.X
    assert joint.left_out == 1
    assert not (Z[:, 0] == 0.3).any()
    assert [int((Z[:, 0] == x).sum()) for x in (0.4, 0.5, 0.6, 0.7)] == [1, IMAGINED, 1, IMAGINED]
    assert gp.n == 20 + 2 * (1 + IMAGINED)
    worst = joint.outputs.apply(history.y.min(keepdims=True))[0]
    np.testing.assert_allclose(gp.y[(Z[:, 0] == 0.4) | (Z[:, 0] == 0.5)], worst)
    assert Z[Z[:, 0] == 0.4, 1] == 0.2
    imagined = Z[Z[:, 0] == 0.7, 1]
    assert ((imagined >= 0.0) & (imagined <= 1.0)).all()
    assert len(history.contexts) == 22  # the law knows those of failed and pending trials too


def test_pending_trials_narrow_bounds_and_leave_means():
    history, at = of_newsvendor(15), np.array([[0.35, 0.2], [0.35, 0.1], [0.9, 0.9]])
    before = joint_of(history).gp.posterior(at)
    history.trial([0.35])
    after = joint_of(history).gp.posterior(at)
    np.testing.assert_allclose(after[0], before[0], atol=1e-8)
    assert (after[1] <= before[1] + 1e-12).all()
    assert after[1][0] < before[1][0]


def test_finished_trials_with_context():
    history = Met(floats(2), floats(1))
    history.trial([0.1, 0.2], [0.3], 1.0)
    history.trial([0.4, 0.5], None, 2.0)
    history.trial([0.6, 0.7])
    Z, y = with_context(history)
    np.testing.assert_array_equal(Z, [[0.1, 0.2, 0.3]])
    np.testing.assert_array_equal(y, [1.0])


def test_distances_in_x_and_in_c_add_up():
    space = Space({"load": Float(0, 1), "host": Categorical(["a", "b"])})
    rng = np.random.default_rng(2)
    history = Met(floats(2), space.cube)
    for _ in range(12):
        history.trial(rng.random(2), space.cube.snap(rng.random((1, 2)))[0], rng.random())
    gp = joint_of(history).gp
    assert gp.observations.categorical == (False, False, False, True)
    X, C = rng.random((3, 2)), space.cube.snap(rng.random((3, 2)))
    in_x, in_c = split_distances(gp, X, C)
    np.testing.assert_allclose(in_x + in_c, gp.kernel.squared_distances(np.hstack([X, C]), gp.X), atol=1e-9)


def test_a_study_without_a_context_is_refused():
    with pytest.raises(MethodError, match="declare it next to the space"):
        cube_of_contexts(Met(floats(1), None))


def test_observations_of_one_point_and_context_are_merged():
    history = Met(floats(1), floats(1))
    for y in (1.0, 2.0, 4.0):
        history.trial([0.5], [0.5], y)
    history.trial([0.2], [0.5], 0.0)
    gp = joint_of(history).gp
    assert gp.n == 2
    assert isinstance(gp.observations, Observations)


def test_a_stopped_trial_has_no_part():
    history = of_newsvendor(6)
    number = history.trial([0.9], [0.9])
    history.apply(Stopped(number, reason="by the user"))
    assert joint_of(history).gp.n == 6
