"""Test functions: published values, their optima, and what their keywords do."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest
from scipy.optimize import minimize

import raybo
from trials import synthetic
from trials.synthetic import PROBLEMS, at

NUMERIC = [name for name in PROBLEMS if name != "mixed"]


def bounds(name: str) -> np.ndarray:  # (d, 2)
    parameters = PROBLEMS[name].objective.space.parameters.values()
    return np.array([[parameter.low, parameter.high] for parameter in parameters])


def value(name: str, config: dict[str, object], **settings: object) -> float:
    objective = PROBLEMS[name].objective
    result = objective(config, **settings)
    return result[objective.metric] if isinstance(result, dict) else result


# ---- values


@pytest.mark.parametrize(
    ("name", "centre", "corner", "third"),  # the third: lower end plus 0.3 of the range
    [
        ("branin", 24.129964413622, 308.129096011607, 23.846560461005),
        ("rastrigin3", 0.0, 86.774141177358, 13.936975657601),
        ("hartmann3", -0.628022015071, -0.067974116590, -0.698322873776),
        ("hartmann4", -2.008925066727, -0.837148468463, -2.971435636912),
        ("levy5", 0.988378216468, 334.656235807384, 12.709455411697),
        ("hartmann6", -0.505314991702, -0.005089112884, -1.018818055673),
    ],
)
def test_values_published_with_the_inexact_acquisition_experiments(name, centre, corner, third):
    low, high = bounds(name).T
    for share, expected in ((0.5, centre), (0.0, corner), (0.3, third)):
        assert value(name, at(*(low + share * (high - low)))) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("name", "x", "expected"),
    [
        ("branin", (0, 0), 55.6021126),
        ("branin", (2.5, 7.5), 24.1299641),
        ("deceptive", (0.1, 0.2), 0.25),
        ("deceptive", (0.35, 0.7), 0.47265625),
        ("deceptive", (0.9, 0.9), 0.330625),
        ("deceptive", (0.5, 0.5), 0.0025),
        ("deceptive", (1 / 3, 0), 0.81),
        ("deceptive", (0.8 / 3, 1.6 / 3), 0.0),
        *(("deceptive", corner, 0.64) for corner in ((0, 0), (0, 1), (1, 0), (1, 1))),
        ("h1", (0, 0), 0.0),
        ("h1", (1, 2), 0.1181091639),
        ("trap", (0.1,), 2.0),
        ("trap", (0.3,), 0.2706706),
        ("trap", (0.5,), 0.0006709),
        ("trap", (0.88,), 0.5413411),
        ("trap", (0.89,), 2.4261226),
        ("goldstein_price", (-0.6, -0.4), 30.0),  # its other minima
        ("goldstein_price", (1.8, 0.2), 84.0),
        ("goldstein_price", (1.2, 0.8), 840.0),
        ("ackley", (1, 1, 1, 1, 1), 3.6253849384403627),
        ("rosenbrock", (0, 0, 0, 0), 3.0),
        ("zakharov", (1, 1, 1, 1), 654.0),  # 4 + 5^2 + 5^4
        ("dixon_price", (1, 1, 1, 1, 1), 14.0),  # 0 + 2 + 3 + 4 + 5
        ("schwefel", (0, 0, 0), 3 * 418.98288727243374),
        ("alpine1", (math.pi / 2, 0, 0, 0), 1.1 * math.pi / 2),
    ],
)
def test_published_values(name, x, expected):
    assert value(name, at(*x)) == pytest.approx(expected, rel=1e-6, abs=1e-7)


def test_h1_follows_the_printed_formula():
    assert value("h1", at(1, 2), inside=True) == pytest.approx(0.1303592242, abs=1e-9)
    assert value("h1", at(8.6998, 6.7665), inside=True) == pytest.approx(2.0, abs=1e-8)


def loop(name: str, x: list[float]) -> float:
    """The sums of the literature, term by term."""
    n = range(len(x))
    if name == "ackley":
        mean_square, mean_cosine = sum(v * v for v in x) / len(x), sum(math.cos(2 * math.pi * v) for v in x) / len(x)
        return -20 * math.exp(-0.2 * math.sqrt(mean_square)) - math.exp(mean_cosine) + 20 + math.e
    if name == "rosenbrock":
        return sum(100 * (x[i + 1] - x[i] ** 2) ** 2 + (x[i] - 1) ** 2 for i in n[:-1])
    if name == "zakharov":
        slope = sum(0.5 * (i + 1) * x[i] for i in n)
        return sum(v * v for v in x) + slope**2 + slope**4
    if name == "dixon_price":
        return (x[0] - 1) ** 2 + sum((i + 1) * (2 * x[i] ** 2 - x[i - 1]) ** 2 for i in n[1:])
    if name == "schwefel":
        return 418.98288727243374 * len(x) - sum(v * math.sin(math.sqrt(abs(v))) for v in x)
    if name == "alpine1":
        return sum(abs(v * math.sin(v) + 0.1 * v) for v in x)
    if name == "rastrigin3":
        return 10 * len(x) + sum(v * v - 10 * math.cos(2 * math.pi * v) for v in x)
    assert name == "levy5"
    w = [1 + (v - 1) / 4 for v in x]
    first, last = math.sin(math.pi * w[0]) ** 2, (w[-1] - 1) ** 2 * (1 + math.sin(2 * math.pi * w[-1]) ** 2)
    return first + sum((v - 1) ** 2 * (1 + 10 * math.sin(math.pi * v + 1) ** 2) for v in w[:-1]) + last


@pytest.mark.parametrize(
    "name", ["ackley", "rosenbrock", "zakharov", "dixon_price", "schwefel", "alpine1", "rastrigin3", "levy5"]
)
def test_sums_agree_with_the_loop(name):
    for config in PROBLEMS[name].objective.space.sample(np.random.default_rng(1), 50):
        assert value(name, config) == pytest.approx(loop(name, list(config.values())), rel=1e-12)


def test_deceptive_is_continuous_where_its_pieces_meet():
    for joint in (0.8 / 3, 1 / 3, (1 + 4 / 3) / 5):
        below, above = (value("deceptive", at(joint + step, 0.9)) for step in (-1e-9, 1e-9))
        assert below == pytest.approx(above, abs=1e-7)


# ---- optima


@pytest.mark.parametrize("name", PROBLEMS)
def test_optimisers_attain_the_optimum(name):
    problem = PROBLEMS[name]
    assert problem.mode == problem.objective.mode
    for config in problem.optimisers:
        assert value(name, problem.objective.space.accept(config)) == pytest.approx(problem.optimum, abs=1e-9)


@pytest.mark.parametrize("name", PROBLEMS)
def test_no_random_point_beats_the_optimum(name):
    problem = PROBLEMS[name]
    values = np.array(
        [value(name, config) for config in problem.objective.space.sample(np.random.default_rng(2), 3_000)]
    )
    excess = values - problem.optimum if problem.mode == "max" else problem.optimum - values
    assert excess.max() < 0
    assert np.ptp(values) > 0


@pytest.mark.parametrize("name", NUMERIC)
def test_no_local_search_beats_the_optimum(name):
    """From the best random points and from near the optimisers."""
    problem, ends = PROBLEMS[name], bounds(name)
    rng = np.random.default_rng(3)

    def excess(x: np.ndarray) -> float:
        over = value(name, at(*x)) - problem.optimum
        return over if problem.mode == "max" else -over

    sample = rng.uniform(*ends.T, size=(300, len(ends)))
    best = sample[np.argsort([-excess(x) for x in sample])[:4]]
    known = np.array([list(config.values()) for config in problem.optimisers])
    near = known + 0.003 * np.ptp(ends, axis=1) * rng.normal(size=known.shape)
    for start in np.clip(np.concatenate([best, near]), *ends.T):
        found = minimize(lambda x: -excess(x), start, method="L-BFGS-B", bounds=ends)
        assert -found.fun <= 1e-8


def test_mixed_choices_have_lower_local_optima():
    for model, (height, log_rate, depth, _) in synthetic.HILLS.items():
        assert value("mixed", {"model": model, "rate": 10**log_rate, "depth": depth}) == pytest.approx(height)
    assert max(height for height, *_ in synthetic.HILLS.values()) == PROBLEMS["mixed"].optimum


# ---- keywords


@pytest.mark.parametrize("name", ["ackley", "rosenbrock", "zakharov", "dixon_price", "schwefel", "alpine1"])
def test_dimension_is_a_keyword_that_shapes_the_space(name):
    objective = PROBLEMS[name].objective
    assert objective.space.d == len(PROBLEMS[name].optimisers[0])
    seven = objective.with_settings(d="7")
    assert seven.space.names == [f"x{i}" for i in range(1, 8)]
    (config,) = seven.space.sample(np.random.default_rng(4), 1)
    assert seven(config) == pytest.approx(loop(name, list(config.values())), rel=1e-12)


def test_half_width_shapes_the_space_of_h1():
    assert synthetic.h1.space == raybo.Space({"x1": raybo.Float(-100, 100), "x2": raybo.Float(-100, 100)})
    easier = synthetic.h1.with_settings(half_width="25")
    assert easier.space == raybo.Space({"x1": raybo.Float(-25, 25), "x2": raybo.Float(-25, 25)})


@pytest.mark.parametrize("name", PROBLEMS)
def test_noise_belongs_to_the_configuration(name):
    a, b = PROBLEMS[name].objective.space.sample(np.random.default_rng(5), 2)
    error = value(name, a, noise=0.5) - value(name, a)
    assert error != 0
    assert value(name, dict(reversed(a.items())), noise=0.5) - value(name, a) == error
    assert value(name, a, noise=1.0) - value(name, a) == pytest.approx(2 * error, rel=1e-6)
    assert value(name, b, noise=0.5) - value(name, b) != pytest.approx(error, rel=1e-3)


def test_noise_is_standard_normal():
    """Mean and deviation of 2,000 errors, each within 4.5 standard errors: false alarm below 2e-5."""
    configs = synthetic.branin.space.sample(np.random.default_rng(6), 2_000)
    errors = [value("branin", config, noise=3.0) - value("branin", config) for config in configs]
    assert abs(statistics.fmean(errors)) < 4.5 * 3.0 / math.sqrt(2_000)
    assert statistics.stdev(errors) == pytest.approx(3.0, abs=4.5 * 3.0 / math.sqrt(4_000))


def test_every_objective_is_a_known_problem():
    found = {name for name, thing in vars(synthetic).items() if isinstance(thing, raybo.Objective)}
    assert found == set(PROBLEMS)
    assert all(problem.objective is getattr(synthetic, name) for name, problem in PROBLEMS.items())
