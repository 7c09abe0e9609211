"""Linear policies that balance, swim and hop: the weights of action = state W in gymnasium's simulations.

    pip install -e '.[control]'
    raybo tune trials/linear_policy.py
    raybo tune trials/linear_policy.py --method la-min-ucb --set env=Swimmer

Each parameter is one weight: w3_1 takes the third number of the state to the first action, and all weights 0, which do
nothing, are the middle of the space. There is no bias, no normalisation of states and no squashing of actions.

An evaluation runs some episodes. `score`, which is tuned, is their mean return, for Hopper without the point that it
earns with every step for being upright, and scaled; `return` is the plain one, `return_sd` its spread. Episodes start
at random, and each is reported with the mean so far, so that a scheduler can end bad policies early. Their seeds
follow from the weights and from `seed`, so that the same configuration always scores the same, while another one meets
other starts; `held_out` takes fresh ones, for a policy that was chosen for its score.

Sizes and scales as in the experiments of Fan, Wang, Ng, Hu (NeurIPS 2024) and Mueller, von Rohr, Trimpe (NeurIPS 2021).
On one core an episode takes 5 ms (CartPole balanced), 50 ms (Swimmer), or up to 100 ms (Hopper).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

import raybo

try:
    import gymnasium
    import mujoco  # noqa: F401  # whose want gymnasium would tell only in the middle of a trial
except ImportError:
    raise raybo.MissingExtra("it needs gymnasium and MuJoCo: pip install -e '.[control]'") from None

Array: TypeAlias = NDArray[np.float64]
Env: TypeAlias = Literal["CartPole", "Swimmer", "Hopper"]


@dataclass(frozen=True)
class Task:
    """A simulation: its name in gymnasium, its sizes, and score = sum over steps of (reward - per_step) / scale."""

    id: str
    states: int
    actions: int
    scale: float
    per_step: float = 0.0


TASKS: dict[Env, Task] = {
    "CartPole": Task("CartPole-v1", states=4, actions=1, scale=500.0),
    "Swimmer": Task("Swimmer-v5", states=8, actions=2, scale=350.0),
    "Hopper": Task("Hopper-v5", states=11, actions=3, scale=1000.0, per_step=1.0),
}


def weights(env: Env, bound: float) -> raybo.Space:
    """The box of weights, each from -bound to bound."""
    task = TASKS[env]
    names = [f"w{i}_{j}" for i in range(1, task.states + 1) for j in range(1, task.actions + 1)]
    return raybo.Space({name: raybo.Float(-bound, bound) for name in names})


@raybo.objective(space=weights, metric="score", mode="max", steps=lambda episodes=5: max(1, episodes))
def linear_policy(
    config: dict[str, Any],
    *,
    env: Env = "CartPole",
    episodes: int = 5,
    seed: int = 0,
    held_out: bool = False,
    bound: float = 2.0,
) -> dict[str, Any]:
    """The mean score of some episodes with these weights, and what the episodes returned."""
    if episodes < 1:
        raise raybo.ObjectiveError(f"linear_policy: episodes must be at least 1, got {episodes}")
    task = TASKS[env]
    W = np.array(list(config.values()), dtype=np.float64).reshape(task.states, task.actions) + 0.0  # no minus zero
    random = np.random.SeedSequence([seed, held_out, *np.frombuffer(W.tobytes(), np.uint32).tolist()])
    results = []
    for start in random.generate_state(episodes):
        results.append(episode(env, W, int(start)))
        returns, steps = np.array(results).T
        score = float(np.mean(returns - task.per_step * steps)) / task.scale
        raybo.report({"score": score}, step=len(results))
    return {
        "score": score,
        "return": float(returns.mean()),
        "return_sd": float(returns.std(ddof=1)) if episodes > 1 else None,
        "steps": float(steps.mean()),
        "episodes": episodes,
        "returns": " ".join(f"{total:.6g}" for total in returns),
    }


def episode(env: Env, W: Array, seed: int) -> tuple[float, int]:  # W (states, actions)
    """The return of one episode and its number of steps."""
    simulation, limit, discrete = simulator(env)
    state, _ = simulation.reset(seed=seed)
    total, steps, fell = 0.0, 0, False
    while steps < limit and not fell:
        action = state @ W
        state, reward, fell, _, _ = simulation.step(int(action[0] > 0.0) if discrete else action)
        total += reward
        steps += 1
    return float(total), steps


@lru_cache(maxsize=1)  # once a process: to make one takes longer than to run it
def simulator(env: Env) -> tuple[Any, int, bool]:
    """The simulation, without gymnasium's wrappers, which cost time; its limit of steps; if actions are 0 and 1."""
    made = gymnasium.make(TASKS[env].id, disable_env_checker=True)
    assert made.spec is not None
    assert made.spec.max_episode_steps is not None
    return made.unwrapped, made.spec.max_episode_steps, isinstance(made.action_space, gymnasium.spaces.Discrete)
