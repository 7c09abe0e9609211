from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raybo.solvers import SOLVERS, Solution, solve
from raybo.solvers.inexactness import Inexactness, accuracy, measure
from tests.solvers.problems import DOMAINS, Broken, Flat, Hill, Narrow, Nothing, Waves, every_point


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("domain", ["line", "box", "mixed", "few categories", "many integers", "many categories"])
def test_the_reference_is_never_below_the_solution(solver, domain):
    domain = DOMAINS[domain]
    for function in (Hill(domain), Waves(domain), Flat(), Broken(domain)):
        found = solve(solver, function, domain, np.random.default_rng(0), size=20)
        result = measure(function, domain, np.random.default_rng(1), found, fixed_shift=50.0, points=256)
        assert result.gap >= 0.0
        assert 0.0 <= result.eta <= 1.0
        assert 0.0 <= result.eta_fixed <= 1.0
        assert result.lowest <= result.value <= result.highest
        assert result.shift >= 0.0
        assert result.solver_evaluations == found.evaluations


def test_the_reference_finds_the_maximum():
    for name in ("few categories", "many integers", "many categories"):
        domain = DOMAINS[name]
        function = Waves(domain)
        found = solve("random-grid", function, domain, np.random.default_rng(0), size=3)
        result = measure(function, domain, np.random.default_rng(1), found, points=1024)
        values = function.value(every_point(domain))
        assert result.highest == pytest.approx(values.max(), abs=1e-12)
        if name == "few categories":  # listed completely
            assert result.shift == max(0.0, -values.min())
    domain = DOMAINS["box"]
    found = solve("random-grid", Waves(domain), domain, np.random.default_rng(0), size=3)
    result = measure(Waves(domain), domain, np.random.default_rng(1), found)
    assert result.highest == pytest.approx(4.0, abs=1e-9)
    assert result.gap == pytest.approx(4.0 - found.value, abs=1e-9)


def test_the_solution_itself_is_polished():
    """Its hill is too narrow for the reference set."""
    domain = DOMAINS["box"]
    x = np.full(4, 0.82)
    found = Solution(x=x, value=float(Narrow().value(x[None])[0]), evaluations=1, seconds=0.0)
    result = measure(Narrow(), domain, np.random.default_rng(0), found, points=64)
    assert found.value > 0.0
    assert result.highest == pytest.approx(1.0, abs=1e-9)
    assert result.gap == pytest.approx(1.0 - found.value, abs=1e-9)


def test_an_exact_solution_is_exact():
    domain = DOMAINS["line"]
    found = solve("lbfgsb", Hill(domain), domain, np.random.default_rng(0), tolerance=1e-14)
    result = measure(Hill(domain), domain, np.random.default_rng(0), found)
    assert result.gap < 1e-12
    assert result.eta == pytest.approx(1.0, abs=1e-12)


def test_a_function_without_values():
    domain = DOMAINS["box"]
    found = solve("random-grid", Nothing(), domain, np.random.default_rng(0), size=5)
    result = measure(Nothing(), domain, np.random.default_rng(0), found, points=64)
    assert result.gap == 0.0
    assert result.eta == 1.0
    assert json.loads(json.dumps(result.to_json(), allow_nan=False))["value"] is None


def test_a_solution_without_a_value():
    """The one point that was tried has none, and the reference finds others."""
    domain = DOMAINS["box"]
    found = solve("random-grid", Nothing(), domain, np.random.default_rng(0), size=1)
    result = measure(Broken(domain), domain, np.random.default_rng(0), replace(found, x=np.full(4, 0.1)), points=64)
    assert result.gap == np.inf
    assert result.eta == 0.0
    assert np.isfinite(result.shift)
    json.dumps(result.to_json(), allow_nan=False)


def test_the_log_is_json():
    result = Inexactness(0.5, 0.75, -0.25, 1.0, 10, 0.001, 0.1)
    logged = json.loads(json.dumps(result.to_json(), allow_nan=False))
    assert logged["gap"] == 0.25
    assert logged["shift"] == 0.25
    assert logged["eta"] == 0.75
    assert logged["eta_fixed"] == pytest.approx(1.5 / 1.75)


@given(value=st.floats(-1e3, 1e3), gain=st.floats(0, 1e3), shift=st.floats(0, 1e4))
def test_accuracy_is_a_share(value, gain, shift):
    eta = accuracy(value, value + gain, shift)
    assert 0.0 <= eta <= 1.0
    if gain == 0.0:
        assert eta == 1.0
    if value + shift > 0.0:
        assert eta == pytest.approx((value + shift) / (value + gain + shift))
