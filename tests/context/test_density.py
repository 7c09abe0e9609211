from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.integrate import trapezoid

from raybo.context import Density, effective_number
from raybo.context.density import LEAST_BANDWIDTH, rule_of_thumb
from raybo.space import Categorical, Float, Integer, Space
from tests.context.histories import floats


def stream(key=0):
    return np.random.default_rng(key)


def cube(**parameters):
    return Space(parameters).cube


@pytest.mark.parametrize(
    ("D", "factors"),
    [
        (1, {1: 1.059224, 10: 0.668325, 100: 0.421685, 300: 0.338504}),
        (2, {1: 1.0, 10: 0.681292, 100: 0.464159, 300: 0.386497}),
    ],
)
def test_published_factors_of_the_rule_of_thumb(D, factors):
    for t, factor in factors.items():
        if t > 1:
            contexts = stream(t).random((t, D))
            h = rule_of_thumb(contexts, np.ones(t), 1.0)
            np.testing.assert_allclose(h / contexts.std(axis=0), factor, atol=5e-7)


def test_published_density_of_one_number():
    density = Density.of(np.array([[0.2], [0.4], [0.5], [0.9]]), floats(1))
    assert density.bandwidth[0, 0] == pytest.approx(0.204659744, abs=5e-10)
    np.testing.assert_allclose(density.pdf(np.array([[0.5], [0.0]])), [1.158408108, 0.399147852], atol=5e-10)


def test_published_density_of_two_numbers():
    density = Density.of(np.array([[0.2, 0.1], [0.4, 0.9], [0.6, 0.5]]), floats(2))
    np.testing.assert_allclose(density.bandwidth[1], [0.135976595, 0.271953189], atol=5e-10)
    assert density.pdf(np.array([[0.4, 0.5]]))[0] == pytest.approx(1.137638541, abs=5e-10)


def test_published_mass_at_the_bounds():
    density = Density.of(np.array([[0.0], [0.0], [1.0], [1.0]]), floats(1))
    assert density.bandwidth[0, 0] == pytest.approx(0.401370781, abs=5e-10)
    C = density.sample(1 << 14, stream())
    assert np.mean(C == 0.0) == pytest.approx(0.25318, abs=1e-3)
    assert np.mean(C == 1.0) == pytest.approx(0.25318, abs=1e-3)


def test_density_integrates_to_one():
    grid = np.linspace(-2.0, 3.0, 5001)[:, None]
    contexts = stream(3).random((7, 1))
    assert trapezoid(Density.of(contexts, floats(1)).pdf(grid), grid[:, 0]) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("contexts", [[[0.3]], [[0.3], [0.3], [0.3]]])
def test_constant_contexts_have_the_least_bandwidth(contexts):
    density = Density.of(np.array(contexts), floats(1))
    np.testing.assert_array_equal(density.bandwidth, LEAST_BANDWIDTH)
    assert abs(density.sample(64, stream()).mean() - 0.3) < 0.01


def test_without_contexts_it_is_uniform():
    density = Density.of(np.empty((0, 2)), floats(2))
    np.testing.assert_array_equal(density.pdf(stream().random((5, 2))), 1.0)
    C = density.sample(256, stream())
    np.testing.assert_allclose(C.mean(axis=0), 0.5, atol=0.02)
    assert density.effective == 0.0


def test_the_scale_multiplies_the_bandwidth():
    contexts = stream(1).random((20, 2))
    np.testing.assert_allclose(
        Density.of(contexts, floats(2), scale=0.25).bandwidth, 0.25 * Density.of(contexts, floats(2)).bandwidth
    )


def test_old_contexts_are_forgotten():
    contexts = np.vstack([np.full((30, 1), 0.1), np.full((30, 1), 0.9)]) + 0.01 * stream(2).random((60, 1))
    density = Density.of(contexts, floats(1), half_life=5.0)
    np.testing.assert_allclose(density.weights[1:] / density.weights[:-1], 2.0**0.2)
    assert density.weights.sum() == pytest.approx(1.0)
    assert density.effective == pytest.approx(effective_number(density.weights))
    assert density.effective == pytest.approx((1 + 2**-0.2) / (1 - 2**-0.2), rel=0.01)  # of a geometric series
    assert (density.sample(512, stream()) > 0.5).mean() > 0.95
    assert np.isfinite(Density.of(contexts, floats(1), half_life=1e-3).weights).all()


def test_a_sample_has_the_law():
    """Kolmogorov's distance of 2^13 draws; that of independent ones would be above 0.024 with probability 1e-4."""
    from scipy.special import ndtr

    density = Density.of(np.array([[0.35], [0.4], [0.62], [0.65]]), floats(1), scale=0.5)
    C = np.sort(density.sample(1 << 13, stream(4))[:, 0])
    cdf = ndtr((C[:, None] - density.contexts[:, 0]) / density.bandwidth[:, 0]) @ density.weights
    assert np.abs(cdf - (np.arange(len(C)) + 0.5) / len(C)).max() < 0.01


@given(arrays(np.float64, (9, 2), elements=st.floats(0, 1)), st.integers(0, 1000))
def test_the_order_of_contexts_does_not_matter(contexts, seed):
    shuffled = stream(seed).permutation(contexts)
    a, b = Density.of(contexts, floats(2)), Density.of(shuffled, floats(2))
    np.testing.assert_allclose(a.sample(32, stream(1)), b.sample(32, stream(1)), atol=1e-12)
    grid = stream(2).random((5, 2))
    np.testing.assert_allclose(a.pdf(grid), b.pdf(grid), rtol=1e-6, atol=1e-300)


# ---- categories


def test_categories_have_smoothed_frequencies():
    tenants = cube(tenant=Categorical(["a", "b", "c", "d"]))
    levels = tenants.levels[0]
    density = Density.of(levels[[0, 0, 0, 1]][:, None], tenants)
    C, p = density.atoms(1024, stream())
    np.testing.assert_array_equal(C[:, 0], levels)
    # one context more than were met, spread over all: (3 + 1/4) / 5, ...
    np.testing.assert_allclose(p, [0.65, 0.25, 0.05, 0.05])
    drawn = (density.sample(4096, stream())[:, 0][:, None] == levels).mean(axis=0)
    np.testing.assert_allclose(drawn, p, atol=0.01)


def test_without_contexts_categories_are_equally_likely():
    tenants = cube(tenant=Categorical(["a", "b", "c"]), region=Categorical([1, 2]))
    C, p = Density.of(np.empty((0, 2)), tenants).atoms(1024, stream())
    assert C.shape == (6, 2)
    np.testing.assert_allclose(p, 1.0 / 6.0)


def test_numbers_are_estimated_within_their_category():
    mixed = cube(load=Float(0, 1), host=Categorical(["a", "b"]))
    a, b = mixed.levels[1]
    rng = stream(5)
    low, high = np.clip(rng.normal(0.2, 0.02, 40), 0, 1), np.clip(rng.normal(0.8, 0.05, 40), 0, 1)
    contexts = np.vstack([np.column_stack([low, np.full(40, a)]), np.column_stack([high, np.full(40, b)])])
    density = Density.of(contexts, mixed)
    np.testing.assert_allclose(density.bandwidth[0, 0], rule_of_thumb(low[:, None], np.ones(40), 1.0)[0])
    np.testing.assert_allclose(density.bandwidth[40, 0], rule_of_thumb(high[:, None], np.ones(40), 1.0)[0])
    np.testing.assert_array_equal(density.bandwidth[:, 1], 0.0)
    C = density.sample(4096, stream(6))
    assert set(np.unique(C[:, 1])) == {a, b}
    of_a = C[C[:, 1] == a, 0]
    assert np.mean(np.abs(of_a - 0.2) < 0.15) > 0.98
    line = np.linspace(-1, 2, 3001)
    masses = [trapezoid(density.pdf(np.column_stack([line, np.full(3001, level)])), line) for level in (a, b)]
    np.testing.assert_allclose(masses, 0.5, atol=1e-6)


def test_atoms_of_integers_are_merged():
    hours = cube(hour=Integer(0, 5))
    density = Density.of(hours.levels[0][[1, 1, 2, 2, 3]][:, None], hours)
    C, p = density.atoms(1024, stream())
    assert len(C) <= 6
    assert np.isin(C[:, 0], hours.levels[0]).all()
    assert p.sum() == pytest.approx(1.0)
    assert p[np.argmin(np.abs(C[:, 0] - hours.levels[0][2]))] > 0.2


def test_atoms_of_numbers_are_a_sample():
    density = Density.of(stream(7).random((6, 1)), floats(1))
    C, p = density.atoms(100, stream(8))
    assert C.shape == (100, 1)
    np.testing.assert_array_equal(p, 0.01)
    np.testing.assert_array_equal(C, density.sample(100, stream(8)))


def test_mass_spread_over_categories_has_all_numbers_spread():
    """Ten contexts about 0.2 with one category, ten about 0.8 with another, none with the third."""
    names = cube(load=Float(0, 1), host=Categorical(["a", "b", "c"]))
    a, b, c = names.levels[1]
    rng = stream(5)
    met = np.vstack(
        [np.column_stack([m + 0.01 * rng.standard_normal(10), np.full(10, h)]) for m, h in ((0.2, a), (0.8, b))]
    )
    density = Density.of(met, names)
    sample = density.sample(1 << 12, stream(6))
    unseen, seen = sample[sample[:, 1] == c, 0], sample[sample[:, 1] == a, 0]
    assert density.pooled_bandwidth[0] > 0.1 > 10.0 * density.bandwidth[:, 0].max()
    assert np.mean(np.abs(unseen - 0.5) < 0.2) > 0.15  # between the two, where no context was
    assert np.mean(np.abs(seen - 0.2) < 0.1) > 0.9
