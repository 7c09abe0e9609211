"""Linear policies: the equations of motion, published sanity values, seeds, and a policy that raybo found, replayed."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import raybo
from raybo.job.loading import load_objective

pytest.importorskip("gymnasium", reason="needs the extra `control`: pip install -e '.[control]'")
pytest.importorskip("mujoco", reason="needs the extra `control`: pip install -e '.[control]'")

from trials.linear_policy import TASKS, episode, linear_policy, simulator

ROOT = Path(__file__).parents[2]
BALANCING = (0.1, 0.3, 1.0, 1.0)


def column(*weights: float) -> np.ndarray:
    return np.array(weights)[:, None]


def config(env: str, W: np.ndarray) -> dict[str, float]:
    return dict(zip(linear_policy.with_settings(env=env).space.names, W.ravel().tolist(), strict=True))


def cart_pole_step(state: np.ndarray, action: int) -> np.ndarray:
    """The equations of motion of Barto, Sutton and Anderson (1983), as published, with an explicit Euler step."""
    x, velocity, angle, spin = state
    force = 10.0 if action == 1 else -10.0
    total = (force + 0.05 * spin**2 * math.sin(angle)) / 1.1
    turning = (9.8 * math.sin(angle) - math.cos(angle) * total) / (0.5 * (4 / 3 - 0.1 * math.cos(angle) ** 2 / 1.1))
    pushing = total - 0.05 * turning * math.cos(angle) / 1.1
    return np.array([x + 0.02 * velocity, velocity + 0.02 * pushing, angle + 0.02 * spin, spin + 0.02 * turning])


def steps_from(start: tuple[float, ...], W: np.ndarray) -> int:
    """Return how long a policy balances the simulation from a given state."""
    simulation, limit, _ = simulator("CartPole")
    simulation.reset(seed=0)
    simulation.state = state = np.array(start)
    for step in range(1, limit + 1):
        state, _, fell, _, _ = simulation.step(int((state @ W)[0] > 0.0))
        if fell:
            return step
    return limit


# ---- CartPole


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        (1, (0.0104, 0.214679195748, 0.0308, -0.243068717960)),
        (0, (0.0104, -0.175539017103, 0.0308, 0.341995223776)),
    ],
)
def test_one_step_of_cart_and_pole(action, expected):
    simulation, _, _ = simulator("CartPole")
    simulation.reset(seed=0)
    simulation.state = np.array([0.01, 0.02, 0.03, 0.04])
    simulation.step(action)
    np.testing.assert_allclose(simulation.state, expected, atol=1e-12)
    np.testing.assert_allclose(cart_pole_step(np.array([0.01, 0.02, 0.03, 0.04]), action), expected, atol=1e-12)


def test_a_long_run_follows_the_equations_of_motion():
    simulation, _, _ = simulator("CartPole")
    simulation.reset(seed=3)
    state = np.array(simulation.state)
    rng = np.random.default_rng(0)
    fell = False
    while not fell:
        action = int(rng.integers(2))
        _, _, fell, _, _ = simulation.step(action)
        state = cart_pole_step(state, action)
        np.testing.assert_allclose(simulation.state, state, atol=1e-12)
    assert abs(state[0]) > 2.4 or abs(state[2]) > math.radians(12)


@pytest.mark.parametrize(
    ("start", "W", "steps"),
    [
        ((0.01, -0.02, 0.03, 0.04), BALANCING, 500),
        ((0.01, -0.02, 0.03, 0.04), (0.0, 0.0, 1.0, 0.0), 47),
        ((0.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0), 9),
    ],
)
def test_how_long_policies_balance(start, W, steps):
    assert steps_from(start, column(*W)) == steps


def test_good_weights_balance_from_every_start():
    assert [episode("CartPole", column(*BALANCING), seed) for seed in range(20)] == [(500.0, 500)] * 20


# ---- what they return


@pytest.mark.parametrize(
    ("env", "mean", "sd", "tolerance"),
    [  # MuJoCo's versions differ a little in how a hopper falls
        ("CartPole", 9.4, 0.8, 1e-9),
        ("Swimmer", 5.86, 16.3, 0.05),
        ("Hopper", 146.1, 30.5, 2.0),
    ],
)
def test_doing_nothing_returns_what_is_known(env, mean, sd, tolerance):
    W = np.zeros((TASKS[env].states, TASKS[env].actions))
    returns = np.array([episode(env, W, seed)[0] for seed in range(10)])
    assert returns.mean() == pytest.approx(mean, abs=tolerance)
    assert returns.std() == pytest.approx(sd, abs=tolerance)


@pytest.mark.parametrize(("env", "d"), [("CartPole", 4), ("Swimmer", 16), ("Hopper", 33)])
def test_spaces_have_weights_centred_at_zero(env, d):
    space = linear_policy.with_settings(env=env, bound=1.5).space
    assert space.d == d
    low, middle, high = space.decode(np.repeat([[0.0], [0.5], [1.0]], d, axis=1))
    assert {*low.values()} == {-1.5}
    assert {*middle.values()} == {0.0}
    assert {*high.values()} == {1.5}


def test_weights_are_read_row_by_row():
    W = np.random.default_rng(0).uniform(-1, 1, (11, 3))
    assert config("Hopper", W)["w4_2"] == W[3, 1]
    found = linear_policy(config("Hopper", W), env="Hopper", episodes=2)
    simulation, _, _ = simulator("Hopper")
    assert simulation.observation_space.shape == (11,)
    assert found["return"] == pytest.approx(np.mean([float(text) for text in found["returns"].split()]), rel=1e-5)


@pytest.mark.parametrize(("env", "scale", "per_step"), [("CartPole", 500, 0), ("Swimmer", 350, 0), ("Hopper", 1000, 1)])
def test_the_score_is_the_scaled_return(env, scale, per_step):
    W = np.full((TASKS[env].states, TASKS[env].actions), 0.1)
    found = linear_policy(config(env, W), env=env, episodes=2)
    assert found["score"] == pytest.approx((found["return"] - per_step * found["steps"]) / scale)


def test_the_spread_is_that_of_the_episodes():
    found = linear_policy(config("CartPole", column(0.1, 0.1, 0.1, 0.1)), episodes=6)
    returns = np.array([float(text) for text in found["returns"].split()])
    assert len(returns) == found["episodes"] == 6
    assert found["return"] == pytest.approx(returns.mean())
    assert found["return_sd"] == pytest.approx(returns.std(ddof=1))
    assert linear_policy(config("CartPole", column(*BALANCING)), episodes=1)["return_sd"] is None


def test_held_out_seeds_are_disjoint():
    weights = config("CartPole", column(0.1, 0.1, 0.1, 0.1))

    def returns(other=weights, **settings):
        return linear_policy(other, episodes=20, **settings)["returns"]

    assert returns() == returns()
    assert returns(held_out=True) == returns(held_out=True)
    assert len({returns(), returns(seed=1), returns(held_out=True), returns(seed=1, held_out=True)}) == 4
    # a policy a hair away does the same from the same start, and has other starts
    assert returns({**weights, "w1_1": 0.1 + 1e-12}) != returns()
    assert returns({**weights, "w1_1": 0.0}) == returns({**weights, "w1_1": -0.0})
    # more episodes continue the fewer
    assert linear_policy(weights, episodes=20)["returns"].startswith(linear_policy(weights, episodes=3)["returns"])


# ---- in use


def test_a_wrong_setting_is_refused_in_one_line():
    with pytest.raises(raybo.ObjectiveError, match="env must be one of CartPole, Swimmer, Hopper"):
        linear_policy.with_settings(env="swimmer")
    with pytest.raises(raybo.ObjectiveError, match="episodes must be at least 1"):
        linear_policy(config("CartPole", column(*BALANCING)), episodes=0)


@pytest.mark.parametrize("missing", ["gymnasium", "mujoco"])
def test_without_the_extra_one_line_names_it(missing, tmp_path):
    code = f"import sys; sys.modules[{missing!r}] = None; from raybo.cli import main; sys.argv[0] = 'raybo'; main()"
    command = [sys.executable, "-c", code, "tune", str(ROOT / "trials" / "linear_policy.py")]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert found.returncode == 2
    assert len(found.stderr.strip().splitlines()) == 1
    assert "pip install -e '.[control]'" in found.stderr


@pytest.mark.ray
def test_found_policies_reproduce_their_journal(tmp_path, ray_session):
    job = load_objective(str(ROOT / "trials" / "linear_policy.py")).with_settings(episodes=2)
    path = tmp_path / "policy.db"
    raybo.tune(job, trials=25, method="gibo", seed=1, storage=path, workers=1, start="centre", batch=8)
    study = raybo.load(path)
    assert study.count(raybo.State.FINISHED) == 25
    settings = study.description.settings
    for trial in (study.best, study.trials[0], study.trials[-1]):
        again = linear_policy(trial.config, **settings)
        assert again["score"] == trial.value
        assert {name: again[name] for name in trial.details["metrics"]} == trial.details["metrics"]
    assert study.best.details["metrics"]["return"] > 4 * study.trials[0].details["metrics"]["return"]
