from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raybo.acquisition import (
    LogExpectedImprovement,
    LogProbabilityOfImprovement,
    best_posterior_mean,
)
from raybo.acquisition.improvement import SERIES_FROM, log_tau
from tests.acquisition.small_gp import (
    FixedPosterior,
    expected_improvement,
    gradient_error,
    probability_of_improvement,
    random_gp,
)

PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803")
ALL = [expected_improvement, LogExpectedImprovement, probability_of_improvement, LogProbabilityOfImprovement]
ROW = np.zeros((1, 1))  # a fixed posterior does not look at it


def exact_log_tau(z: float) -> float:
    """log(phi(z) + z Phi(z)) in 80 digits: Phi by its power series near 0, by Laplace's continued fraction far out."""
    with localcontext() as context:
        context.prec = 80
        a = abs(Decimal(z))
        log_density = -a * a / 2 - (2 * PI).ln() / 2
        if a < 4:
            term = total = a
            for k in range(1, 200):
                term *= -a * a / (2 * k)
                total += term / (2 * k + 1)
            tail = Decimal(1) / 2 - total / (2 * PI).sqrt()
            h = 1 - a * tail / log_density.exp()
        else:
            fraction = a
            for k in range(600, 0, -1):
                fraction = a + k / fraction
            h = 1 - a / fraction
        log_below = log_density + h.ln()
        return float(log_below if z <= 0 else (Decimal(z) + log_below.exp()).ln())


@pytest.mark.parametrize(
    "z", [0.0, -1e-9, 1e-9, -0.3, 0.3, -1.0, 2.5, -3.9, -7.0, 9.0, -15.0, -19.9, -20.1, -26.0, 40.0]
)
def test_log_tau_is_exact(z):
    assert log_tau(np.array([z]))[0] == pytest.approx(exact_log_tau(z), rel=1e-13, abs=2e-13)


@pytest.mark.parametrize("z", [-38.5, -100.0, -1e3, -1e5, -1e8])
def test_log_tau_is_exact_far_below(z):
    """The part that the leading term, -z^2 / 2, would drown is compared on its own as well."""
    value, exact = log_tau(np.array([z]))[0], exact_log_tau(z)
    assert value == pytest.approx(exact, rel=1e-14)
    if abs(z) <= 1e3:
        assert value + 0.5 * z * z == pytest.approx(exact + 0.5 * z * z, rel=1e-9)


def test_log_tau_is_finite_and_increasing_over_decades():
    z = np.concatenate([-np.logspace(12, -8, 4001), [0.0], np.logspace(-8, 12, 4001)])
    values = log_tau(z)
    assert np.isfinite(values).all()
    assert np.all(np.diff(values) >= 0.0)
    assert np.all(np.diff(values[np.abs(z) > 1e-4][: 1 + np.sum(z < -1e-4)]) > 0.0)


def test_log_tau_has_no_seam():
    z = -SERIES_FROM + np.linspace(-1e-3, 1e-3, 2001)
    steps = np.diff(log_tau(z))
    assert np.ptp(steps) < 1e-2 * steps.mean()


@pytest.mark.parametrize(
    ("u", "std", "nu", "expected"),
    [
        (0.0, 1.0, 1.0, 0.3989422804),
        (-1.0, 0.5, 1.0, 0.0416577353),
        (-1.0, 0.5, 2.0, 0.1977965574),
        (-2.0, 0.3, 0.5, 1.0717888e-6),
    ],
)
def test_published_rescaled_values(u, std, nu, expected):
    """Wang & de Freitas (2014), eq. (8): u = (mean - incumbent) / std."""
    gp = FixedPosterior([u * std], [std])
    assert expected_improvement(gp, 0.0, nu).value(ROW)[0] == pytest.approx(expected, rel=1e-7)
    assert LogExpectedImprovement(gp, 0.0, nu).value(ROW)[0] == pytest.approx(np.log(expected), rel=1e-7)


def test_published_small_value():
    gp = FixedPosterior([-0.5], [0.5])
    assert expected_improvement(gp, 0.0, 0.1).value(ROW)[0] == pytest.approx(3.74e-26, rel=2e-3)


@given(mean=st.floats(-3, 3), std=st.floats(0.05, 3), incumbent=st.floats(-3, 3), nu=st.floats(0.3, 3))
def test_against_integration(mean, std, incumbent, nu):
    """E max(f - incumbent, 0) by Gauss-Legendre quadrature over the ten deviations that matter."""
    gp, s = FixedPosterior([mean], [std]), nu * std
    nodes, weights = np.polynomial.legendre.leggauss(200)

    def expectation(function, s):
        low = max(incumbent, mean - 10.0 * s)
        width = max(mean - low, 0.0) + 10.0 * s
        f = low + 0.5 * width * (nodes + 1.0)
        density = np.exp(-0.5 * ((f - mean) / s) ** 2) / (s * np.sqrt(2.0 * np.pi))
        return 0.5 * width * np.sum(weights * function(f) * density)

    improvement = expectation(lambda f: f - incumbent, s)
    assert expected_improvement(gp, incumbent, nu).value(ROW)[0] == pytest.approx(improvement, rel=1e-8, abs=1e-200)
    probability = expectation(np.ones_like, std)
    assert probability_of_improvement(gp, incumbent).value(ROW)[0] == pytest.approx(probability, rel=1e-8, abs=1e-200)


@given(mean=st.floats(-30, 3), std=st.floats(1e-3, 3), incumbent=st.floats(-3, 3), nu=st.floats(0.1, 10))
def test_logarithms_are_logarithms(mean, std, incumbent, nu):
    gp = FixedPosterior([mean], [std])
    value = expected_improvement(gp, incumbent, nu).value(ROW)[0]
    if value > 1e-290:
        assert LogExpectedImprovement(gp, incumbent, nu).value(ROW)[0] == pytest.approx(
            np.log(value), rel=1e-10, abs=1e-10
        )
    probability = probability_of_improvement(gp, incumbent).value(ROW)[0]
    if probability > 1e-290:
        log_probability = LogProbabilityOfImprovement(gp, incumbent).value(ROW)[0]
        assert log_probability == pytest.approx(np.log(probability), rel=1e-10, abs=1e-10)


@pytest.mark.parametrize("acquisition", ALL)
@pytest.mark.parametrize("incumbent", [-2.0, 0.3, 1.5])
def test_improvement_gradient_matches_finite_differences(acquisition, incumbent):
    gp, _, _ = random_gp(7, n=30, d=3, lengthscale=[0.2, 0.4, 0.9])
    assert gradient_error(acquisition(gp, incumbent), np.random.default_rng(1).random((60, 3))) < 1e-6


@pytest.mark.parametrize("acquisition", [expected_improvement, LogExpectedImprovement])
@pytest.mark.parametrize("nu", [0.2, 4.0])
def test_rescaled_improvement_gradient_matches_finite_differences(acquisition, nu):
    gp, _, y = random_gp(8, n=30, d=3)
    assert gradient_error(acquisition(gp, float(y.max()), nu), np.random.default_rng(2).random((60, 3))) < 1e-6


@pytest.mark.parametrize("acquisition", [LogExpectedImprovement, LogProbabilityOfImprovement])
@pytest.mark.parametrize("incumbent", [10.0, 1e3, 1e6, -40.0])
def test_improvement_gradient_in_the_tails(acquisition, incumbent):
    """Also where EI and PI are 0 to the last bit; above, PI's logarithm is flat, and only EI's has a gradient."""
    gp, _, _ = random_gp(9, n=15, d=2, noise_variance=1e-2)
    if acquisition is LogProbabilityOfImprovement and incumbent < 0.0:
        values, gradient = acquisition(gp, incumbent).value_and_gradient(np.full((1, 2), 0.4))
        assert np.isfinite(values).all()
        assert np.isfinite(gradient).all()
    else:
        assert gradient_error(acquisition(gp, incumbent), np.random.default_rng(3).random((30, 2))) < 1e-6


@pytest.mark.parametrize("acquisition", ALL)
def test_finite_where_f_is_known(acquisition):
    gp, X, y = random_gp(4, noise_variance=1e-14)
    for incumbent in (float(y.max()), float(y.min()) - 1.0, 100.0):
        values, gradient = acquisition(gp, incumbent).value_and_gradient(np.vstack([X, X[:1] + 1e-12]))
        assert np.isfinite(values).all()
        assert np.isfinite(gradient).all()
    known = FixedPosterior([-0.5, 0.0, 0.5], [0.0, 0.0, 0.0])
    np.testing.assert_allclose(expected_improvement(known, 0.0).value(ROW), [0.0, 0.0, 0.5], atol=1e-11)


def test_same_maximiser_as_the_logarithm():
    gp, _, y = random_gp(5, n=12)
    X = np.random.default_rng(0).random((500, 2))
    incumbent = float(y.max())
    assert np.argmax(expected_improvement(gp, incumbent).value(X)) == np.argmax(
        LogExpectedImprovement(gp, incumbent).value(X)
    )


def test_large_and_small_nu():
    gp, _, _ = random_gp(6, n=12)
    X = np.random.default_rng(0).random((500, 2))
    mean, var = gp.posterior(X)
    best = best_posterior_mean(gp, X)
    assert best == mean.max()
    assert np.argmax(LogExpectedImprovement(gp, best, 1e-4).value(X)) == np.argmax(mean)
    assert np.argmax(LogExpectedImprovement(gp, best, 1e4).value(X)) == np.argmax(var)


def test_bounds_of_lemma_9():
    """Wang & de Freitas (2014): |mean - f| <= ph std brackets EI_nu between functions of the true improvement."""
    rng = np.random.default_rng(0)
    m = 20_000
    f, top = rng.normal(0.0, 2.0, m), rng.normal(0.0, 2.0, m)
    std, ph, nu = rng.gamma(1.0, 1.0, m), rng.gamma(2.0, 1.0, m), rng.gamma(2.0, 0.7, m) + 1e-3
    mean = f + ph * std * rng.uniform(-1.0, 1.0, m)
    ei = np.array(
        [
            expected_improvement(FixedPosterior([a], [s]), b, c).value(ROW)[0]
            for a, s, b, c in zip(mean, std, top, nu, strict=True)
        ]
    )
    improvement = np.maximum(0.0, f - top)
    ratio = np.exp(log_tau(-ph / nu) - log_tau(ph / nu))
    assert np.all(np.maximum(improvement - ph * std, ratio * improvement) <= ei + 1e-9)
    assert np.all(ei <= improvement + (ph + nu) * std + 1e-9)


def test_ratio_of_tau():
    one = np.array([1.0])
    assert np.exp(log_tau(one) - 0.0)[0] - np.exp(log_tau(-one))[0] == pytest.approx(1.0, abs=1e-14)
    assert np.exp(log_tau(-one) - log_tau(one))[0] == pytest.approx(0.0769078563, abs=5e-11)
