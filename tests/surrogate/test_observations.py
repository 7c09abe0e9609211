"""Repeated points merged, and many points thinned."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from raybo.surrogate import Observations


def test_repeats_become_means_counts_and_scatters():
    X = np.array([[0.5], [0.1], [0.5], [0.9], [0.5]])
    o = Observations.of(X, np.array([1.0, 2.0, 4.0, 7.0, 4.0]))
    np.testing.assert_array_equal(o.X[:, 0], [0.5, 0.1, 0.9])
    np.testing.assert_allclose(o.y, [3.0, 2.0, 7.0])
    np.testing.assert_array_equal(o.counts, [3.0, 1.0, 1.0])
    np.testing.assert_allclose(o.scatter, [6.0, 0.0, 0.0])
    np.testing.assert_allclose(o.noise(0.3), [0.1, 0.3, 0.3])


def test_points_differ_by_an_ulp_but_zeros_agree():
    X = np.array([[0.5], [np.nextafter(0.5, 1.0)], [0.0], [-0.0]])
    assert len(Observations.of(X, np.arange(4.0)).X) == 3


def test_unequally_uncertain_values_are_not_merged():
    X, added = np.array([[0.5], [0.1], [0.5], [0.5]]), np.array([0.2, 0.0, 0.2, 0.0])
    o = Observations.of(X, np.arange(4.0), added=added)
    np.testing.assert_array_equal(o.X[:, 0], [0.5, 0.1, 0.5])
    np.testing.assert_allclose(o.noise(0.1), [0.15, 0.1, 0.1])
    np.testing.assert_allclose(o.first(2).with_more(X[:1], np.zeros(1)).noise(0.1), [0.15, 0.1, 0.1])
    assert Observations.of(X, np.arange(4.0), added=np.zeros(4)).added is None


def test_the_first_points_are_those():
    o = Observations.of(np.array([[0.5], [0.1], [0.5]]), np.array([1.0, 2.0, 3.0]))
    first = o.first(1)
    np.testing.assert_array_equal([first.X[0, 0], first.y[0], first.counts[0], first.scatter[0]], [0.5, 2.0, 2.0, 2.0])
    np.testing.assert_array_equal(o.first(9).X, o.X)


def test_no_observations_are_observations_too():
    o = Observations.of(np.empty((0, 2)), np.empty(0))
    assert o.X.shape == (0, 2)
    assert o.thinned(10) is o


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.floats(-5, 5)), min_size=1, max_size=25))
def test_merging_keeps_totals(rows):
    X, y = np.array([r[:2] for r in rows]) / 3.0, np.array([r[2] for r in rows])
    o = Observations.of(X, y)
    assert len(np.unique(o.X, axis=0)) == len(o.X)
    assert o.counts.sum() == len(y)
    np.testing.assert_allclose(o.counts @ o.y, y.sum(), atol=1e-9)
    np.testing.assert_allclose((o.counts * o.y**2).sum() + o.scatter.sum(), (y**2).sum(), atol=1e-9)


def test_thinning_keeps_the_best_and_spreads_the_rest():
    rng = np.random.default_rng(4)
    o = Observations.of(rng.random((1_500, 2)), rng.standard_normal(1_500))
    kept = o.thinned(300)
    assert kept.X.shape == (300, 2)
    place = np.array([np.flatnonzero((o.X == x).all(axis=1))[0] for x in kept.X])
    assert (np.diff(place) > 0).all()
    assert set(np.argsort(-o.y)[:60]) <= set(place)
    assert np.diff(place).max() < 20
    np.testing.assert_array_equal(kept.y, o.y[place])
