"""The job of several processes: alone, and by two ranks that have the same weights."""

from __future__ import annotations

import numpy as np
import pytest

import raybo
from raybo.record.states import State
from trials.distributed_network import begun, distributed_network, gradient, predicted

GOOD = {"learning_rate": 0.5, "units": 32, "batch_size": 16}


def test_one_process_learns_the_digits():
    accuracies = [each["accuracy"] for each in distributed_network(GOOD, epochs=6)]
    assert accuracies[-1] > 0.92 > accuracies[0] > 0.5


def test_network_gradient_matches_finite_differences():
    rng = np.random.default_rng(0)
    X, targets = rng.random((5, 64)), np.eye(10)[[0, 3, 3, 9, 1]]
    weights, way = begun(4)[0], rng.standard_normal(75 * 4 + 10)

    def loss(weights):
        return -np.log((predicted(weights, X)[1] * targets).sum(axis=1)).mean()

    slope = (loss(weights + 1e-5 * way) - loss(weights - 1e-5 * way)) / 2e-5
    assert slope == pytest.approx(gradient(weights, X, targets) @ way, rel=1e-6)


@pytest.mark.slow
@pytest.mark.ray
def test_two_ranks_learn_the_digits(ray_session, tmp_path):
    study = raybo.tune(
        distributed_network, trials=1, method="random", enqueue=[GOOD], workers=1, storage=tmp_path / "a.db"
    )
    trial = study.trials[0]
    assert trial.state is State.FINISHED, trial.reason
    assert trial.value > 0.8
    assert trial.checkpoint is not None
