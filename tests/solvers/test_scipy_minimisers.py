"""The published comparison solvers, and the settings that make them what they are."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import optimize

import raybo.solvers.scipy_minimisers
from raybo.solvers import solve
from raybo.solvers.published import raw
from raybo.solvers.scipy_minimisers import BOX, WAVE, minimise
from raybo.solvers.solution import Search
from tests.solvers.problems import DOMAINS, Counted, Hill, Waves


@pytest.fixture
def calls(monkeypatch):
    """The arguments of scipy's minimise."""
    seen = []

    def spy(function, x0, **options):
        seen.append({"x0": x0, **options})
        return optimize.minimize(function, x0, **options)

    monkeypatch.setattr(raybo.solvers.scipy_minimisers, "scipy_minimize", spy)
    return seen


@pytest.mark.parametrize(
    ("name", "method", "options", "bounded"),
    [
        ("lbfgsb", "L-BFGS-B", {"gtol": 0.01, "maxiter": 800}, True),
        ("nelder-mead", "Nelder-Mead", {"xatol": 0.01, "fatol": 0.01}, False),
        ("cg", "CG", {"gtol": 0.01, "maxiter": 800}, False),
    ],
)
def test_published_settings(calls, name, method, options, bounded):
    domain = DOMAINS["box"]
    found = solve(name, Hill(domain), domain, np.random.default_rng(0), preset="paper")
    assert len(calls) == found.climbs == 10
    for call in calls:
        assert call["method"] == method
        assert call["options"] == options
        assert (call["bounds"] is not None) == bounded
        assert call["jac"] is None  # finite differences, as published
    starts = np.stack([call["x0"] for call in calls])
    assert len(np.unique(starts)) == 40
    assert starts.min() >= 0.0
    assert starts.max() <= 1.0


def test_published_solvers_with_analytic_gradients(calls):
    domain = DOMAINS["box"]
    for name in ("lbfgsb", "cg"):
        counted = Counted(Hill(domain))
        exact = solve(name, counted, domain, np.random.default_rng(0), preset="paper", gradient="analytic")
        by_differences = solve(name, Hill(domain), domain, np.random.default_rng(0), preset="paper")
        assert calls[0]["jac"] is True
        assert exact.value == pytest.approx(by_differences.value, abs=1e-3)
        assert exact.evaluations == counted.rows
        assert 2 * exact.evaluations < by_differences.evaluations


def test_the_best_point_seen_where_no_run_succeeds(monkeypatch):
    """A minimiser that always fails, at a worse point than it has seen."""
    domain = DOMAINS["line"]
    hill = Counted(Hill(domain))

    def failing(function, x0, **options):
        function(np.array([0.36]))
        return optimize.OptimizeResult(x=x0, fun=function(x0), success=False)

    monkeypatch.setattr(raybo.solvers.scipy_minimisers, "scipy_minimize", failing)
    found = solve("nelder-mead", hill, domain, np.random.default_rng(0), preset="paper")
    assert found.converged == 0
    assert found.climbs == 10
    np.testing.assert_array_equal(found.x, [0.36])
    assert found.evaluations == hill.rows


def test_only_successful_runs_count(monkeypatch):
    """One success at 0.5 among failures that saw the top."""
    domain = DOMAINS["line"]
    outcomes = iter([True] + [False] * 9)

    def mostly_failing(function, x0, **options):
        function(np.array([0.37]))
        return optimize.OptimizeResult(x=np.array([0.5]), fun=function(np.array([0.5])), success=next(outcomes))

    monkeypatch.setattr(raybo.solvers.scipy_minimisers, "scipy_minimize", mostly_failing)
    found = solve("cg", Hill(domain), domain, np.random.default_rng(0), preset="paper", gradient="fd")
    assert found.converged == 1
    np.testing.assert_array_equal(found.x, [0.5])


CLIPPED = raw(1.0, np.zeros(1), is_bounded=False)
SCALED = raw(0.25, np.full(1, -1.0), is_bounded=False)


@pytest.mark.parametrize("chart", [BOX, CLIPPED, SCALED, WAVE], ids=["box", "clipped", "scaled", "wave"])
def test_charts_of_the_box_invert(chart):
    x = np.linspace(0.01, 0.99, 50)
    np.testing.assert_allclose(chart.point(chart.coordinates(x)), x, atol=1e-12)
    z = np.linspace(-3.3, 3.3, 68) if chart.bounds is None else np.linspace(0.01, 0.99, 50)
    assert np.all((chart.point(z) >= 0.0) & (chart.point(z) <= 1.0))
    slope = (chart.point(z + 1e-6) - chart.point(z - 1e-6)) / 2e-6
    np.testing.assert_allclose(chart.slope(z), slope, atol=1e-8)


def test_outside_the_box_a_clipped_function_is_flat():
    """Kept for the published conjugate gradients: a run that steps out of the box sees no way back."""
    assert not CLIPPED.slope(np.array([-0.1, 1.1])).any()


LOW, SIDE = np.array([-5.0, 0.0]), 15.0


class Valley:
    """A function of two raw coordinates in [-5, 10] x [0, 15], as one of the cube's."""

    def raw(self, z):
        return -0.1 * (z[..., 1] - 0.2 * z[..., 0] ** 2 - 1.0) ** 2 - np.sin(0.7 * z[..., 0]) - 0.05 * z[..., 0] ** 2

    def value(self, X):
        return self.raw(LOW + SIDE * X)


@pytest.mark.parametrize(
    ("name", "method", "options"),
    [
        ("lbfgsb", "L-BFGS-B", {"gtol": 0.01, "maxiter": 400}),
        ("nelder-mead", "Nelder-Mead", {"xatol": 0.01, "fatol": 0.01}),
        ("cg", "CG", {"gtol": 0.01, "maxiter": 400}),
    ],
)
def test_published_solvers_work_in_raw_units(name, method, options):
    """The script's own loop in raw units: the same starts, ends and numbers of evaluations."""
    valley, high = Valley(), LOW + SIDE
    runs = [
        optimize.minimize(
            lambda z: -valley.raw(np.clip(z, LOW, high)),
            LOW + SIDE * start,
            method=method,
            bounds=list(zip(LOW, high, strict=True)) if name == "lbfgsb" else None,
            options=options,
        )
        for start in np.random.default_rng(4).random((10, 2))
    ]
    best = min((run for run in runs if run.success), key=lambda run: run.fun)
    domain = SimpleNamespace(
        d=2,
        levels=(None, None),
        categorical=(False, False),
        snap=lambda X: X,
        is_ruled=False,
        uniform=lambda rng, n: rng.random((n, 2)),
    )
    found = solve(name, valley, domain, np.random.default_rng(4), preset="paper", unit=1 / SIDE, origin=tuple(LOW))
    np.testing.assert_allclose(LOW + SIDE * found.x, np.clip(best.x, LOW, high), atol=1e-6)
    assert found.value == pytest.approx(-best.fun, abs=1e-9)
    assert found.evaluations == pytest.approx(sum(run.nfev for run in runs), rel=0.02)  # by rounding
    in_the_cube = solve(name, valley, domain, np.random.default_rng(4), preset="paper")
    assert in_the_cube.evaluations != pytest.approx(found.evaluations, rel=0.03)


def test_smooth_coordinates_leave_the_faces():
    """A start on a face, where the sine's slope vanishes, still climbs to a maximum inside."""
    domain = DOMAINS["box"]
    search = Search(Hill(domain), domain)
    end = minimise(search, np.array([0.0, 1.0, 0.0, 1.0]), np.arange(4), "CG", WAVE, {"gtol": 1e-8}, "analytic")
    np.testing.assert_allclose(end.end, 0.37, atol=1e-4)


def test_a_zero_coordinate_does_not_shrink_the_simplex():
    domain = DOMAINS["line"]
    search = Search(Waves(domain), domain)
    end = minimise(search, np.array([0.0]), np.arange(1), "Nelder-Mead", BOX, {"xatol": 1e-6, "fatol": 1e-9}, None)
    assert end.value == pytest.approx(1.0, abs=1e-6)
    assert search.evaluations < 80
