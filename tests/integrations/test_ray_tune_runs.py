"""RayboSearch runs inside real Tuners: early stopping, failures, placeholders, a killed and restored experiment."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import warnings

import pytest

pytest.importorskip("ray.tune")

from ray import tune

import raybo
from raybo.integrations.ray_tune import RayboSearch
from raybo.record.states import State
from tests.integrations.tune_xgboost import TRIALS

pytestmark = [
    pytest.mark.ray,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # Ray's own
]


class Thing:
    """An object that no JSON can hold."""


def fit(tmp_path, train, search, space, samples, **config):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tune.Tuner(
            train,
            param_space=space,
            tune_config=tune.TuneConfig(
                search_alg=search, metric="loss", mode="min", num_samples=samples, reuse_actors=True, **config
            ),
            run_config=tune.RunConfig(storage_path=str(tmp_path), verbose=0),
        ).fit()


def test_tuner_handles_failures_objects_and_conditional_spaces(ray_session, tmp_path):
    thing = Thing()
    space = {
        "x": tune.uniform(0, 1),
        "model": tune.choice(["plain", {"kind": "deep", "layers": tune.randint(1, 4)}]),
        "constant": thing,
        "kinds": tune.choice([Thing]),
    }

    def train(config):
        assert type(config["constant"]).__name__ == "Thing"
        assert config["kinds"].__name__ == "Thing"
        if config["x"] == 0.5:
            raise ValueError("as asked")
        if config["x"] == 0.25:
            return {"loss": float("nan")}
        return {"loss": config["x"] + (0 if config["model"] == "plain" else config["model"]["layers"])}

    points = [{"x": 0.5}, {"x": 0.25}, {"x": 0.75, "model": "plain"}, {"x": 0.125, "model/layers": 2}]
    search = RayboSearch(method="random", seed=0, points_to_evaluate=points)
    results = fit(tmp_path, train, search, space, 7, max_concurrent_trials=2)
    trials = search._asker.trials
    assert len(results) == len(trials) == 7
    assert search._asker.history.planned == 7
    assert [trial.state for trial in trials[:3]] == [State.FAILED, State.FAILED, State.FINISHED]
    assert [trial.value for trial in trials[2:4]] == [0.75, 2.125]
    assert {trial.state for trial in trials[2:]} == {State.FINISHED}


def test_a_budget_ends_a_tuner(ray_session, tmp_path):
    def train(config):
        time.sleep(0.1 + 0.5 * config["x"])
        return {"loss": (config["x"] - 0.4) ** 2}

    search = RayboSearch({"x": raybo.Float(0, 1)}, "loss", "min", seed=0, budget="5s")
    results = fit(tmp_path, train, search, None, 500, max_concurrent_trials=1)
    seconds = [result.metrics["time_total_s"] for result in sorted(results, key=lambda one: one.metrics["timestamp"])]
    assert len(seconds) == len(search._asker.trials) < 50
    assert sum(seconds[:-1]) < 5.0 <= sum(seconds)  # the last began within it
    assert not results.num_errors


@pytest.mark.timeout(900)
def test_a_killed_tuner_restores_and_completes_all_trials(tmp_path):
    (tmp_path / "held").touch()  # however late it is killed, there are trials left
    command = [sys.executable, "-m", "tests.integrations.tune_xgboost", str(tmp_path)]
    driver = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)
    try:
        deadline = time.monotonic() + 400
        while ended(tmp_path) < 5:
            assert driver.poll() is None, driver.stderr.read().decode()[-2000:]
            assert time.monotonic() < deadline
            time.sleep(0.1)
    finally:
        os.kill(driver.pid, signal.SIGKILL)
        driver.communicate()
    before = ended(tmp_path)
    assert before < TRIALS
    (tmp_path / "held").unlink()

    done = subprocess.run(command, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr[-3000:]
    summary = json.loads(done.stdout.splitlines()[-1])
    assert len(summary["ends"]) == TRIALS
    assert summary["errors"] == 0
    assert min(iteration for iteration, _ in summary["ends"]) < 4  # ASHA stopped some of them
    state = saved(tmp_path)
    results = [event for event in state["events"] if event[0] == "told"]
    assert len(results) == TRIALS
    values = sorted(event[2]["value"] for event in results)
    assert values == pytest.approx(sorted(accuracy for _, accuracy in summary["ends"]))


def saved(tmp_path):
    """The newest saved state."""
    return json.loads(max(tmp_path.glob("kc1/searcher-state-*.json")).read_text())


def ended(tmp_path):
    """Return how many trials have ended by the newest saved state; Tune may just be copying it."""
    try:
        return sum(kind == "told" for kind, _, _ in saved(tmp_path)["events"])
    except ValueError:  # there is none yet, or half of one
        return 0
