"""The probit classifier beside what it approximates: the mode, the evidence and the probabilities by brute force."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr

from raybo.acquisition import LogProbabilityOfImprovement, Observed
from raybo.surrogate import Classifier
from raybo.surrogate.classification import LENGTHSCALES, OFFSETS, OUTPUTSCALES, _approximated, _probit

CATEGORICAL = (False, False)


def rule(n, seed=0):
    X = np.random.default_rng(seed).random((n, 2))
    return X, X.sum(axis=1) < 1.1


def likely(classifier, X):
    return np.exp(LogProbabilityOfImprovement(Observed(classifier.gp), -classifier.offset).value(X))


def test_the_posterior_mean_at_the_points_is_the_mode():
    X, succeeded = rule(12)
    labels = np.where(succeeded, 1.0, -1.0)
    found = _approximated(X, labels, CATEGORICAL, 0.4, 4.0, 1.0)
    f = found.gp.posterior(X)[0]
    slope, _, _ = _probit(labels, f + 1.0)
    np.testing.assert_allclose(found.gp.kernel.matrix(X, X) @ slope, f, atol=1e-5)  # where the gradient vanishes


@pytest.mark.parametrize(("outputscale", "error", "share"), [(1.0, 0.1, 0.04), (4.0, 0.2, 0.08)])  # Laplace's own
def test_evidence_and_probabilities_are_near_those_by_sampling(outputscale, error, share):
    X, succeeded = rule(5, seed=3)
    labels = np.where(succeeded, 1.0, -1.0)
    found = _approximated(X, labels, CATEGORICAL, 0.4, outputscale, 0.0)
    Z = np.random.default_rng(1).random((6, 2))
    K = found.gp.kernel.matrix(np.vstack([X, Z]), np.vstack([X, Z])) + 1e-9 * np.eye(11)
    f = np.random.default_rng(2).standard_normal((400_000, 11)) @ np.linalg.cholesky(K).T
    weights = ndtr(labels * f[:, :5]).prod(axis=1)
    assert found.log_evidence == pytest.approx(np.log(weights.mean()), abs=error)
    sampled = weights @ ndtr(f[:, 5:]) / weights.sum()
    np.testing.assert_allclose(likely(found, Z), sampled, atol=share)


def test_the_hyperparameters_are_those_of_the_highest_evidence_and_prior():
    X, succeeded = rule(40)
    found = Classifier.of(X, succeeded, CATEGORICAL)
    lengthscale, outputscale, noise = np.exp(found.gp.theta)
    assert noise == 1.0
    assert min(abs(lengthscale - each) for each in LENGTHSCALES) < 1e-12
    assert min(abs(outputscale - each) for each in OUTPUTSCALES) < 1e-12
    assert found.offset in OFFSETS
    short = _approximated(X, np.where(succeeded, 1.0, -1.0), CATEGORICAL, LENGTHSCALES[0], 1.0, 0.0)
    assert found.log_evidence > short.log_evidence + 5.0


def test_a_rule_is_learnt_and_an_accident_poisons_nothing():
    X, succeeded = rule(50)
    Z, holds = rule(400, seed=9)
    assert ((likely(Classifier.of(X, succeeded, CATEGORICAL), Z) > 0.5) == holds).mean() > 0.93
    alone = np.arange(50) != 7
    assert likely(Classifier.of(X, alone, CATEGORICAL), X[[7]])[0] > 0.5


def test_labels_of_one_kind_and_equal_points_are_no_trouble():
    X = np.array([[0.2, 0.3], [0.2, 0.3], [0.2, 0.3], [0.7, 0.1]])
    mixed = likely(Classifier.of(X, [True, False, True, True], CATEGORICAL), X)
    assert 0.5 < mixed[0] < mixed[3]
    assert (likely(Classifier.of(X, [False] * 4, CATEGORICAL), X) < 0.4).all()
    assert (likely(Classifier.of(X[:1], [True], CATEGORICAL), X) > 0.6).all()
    one_of_two = Classifier.of(np.array([[0.0], [1.0]]), [True, False], (True,))
    assert likely(one_of_two, np.array([[0.0]]))[0] > 0.5 > likely(one_of_two, np.array([[1.0]]))[0]
