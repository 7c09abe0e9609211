"""Studies by the clock: its time is that of the trials where the study is quick, and the study's where it is slow."""

from __future__ import annotations

import numpy as np
import pytest

import raybo
from benchmarks import clockwork
from benchmarks.clockwork import log_normal, simulate
from raybo.searcher import Searcher


@raybo.objective(space={"x": raybo.Float(0, 1), "y": raybo.Float(0, 1)}, metric="value", mode="min")
def bowl(config):
    return (config["x"] - 0.3) ** 2 + (config["y"] - 0.6) ** 2


def test_workers_are_busy_where_trials_are_long():
    """Forty trials of 100 s on 4 workers take ten rounds, and what the study's process spends is next to nothing."""
    simulation = simulate(bowl, "random", 4, 40, lambda number: 100.0)
    assert len(simulation.values) == 40
    assert 1_000.0 <= simulation.seconds < 1_020.0
    assert simulation.busy == pytest.approx(4_000.0)
    assert simulation.busy_share > 0.98
    assert max(simulation.waits) < 10.0


def test_workers_wait_where_the_study_is_slow(monkeypatch):
    """With a second for every start and every result, two a trial, a trial of a second keeps half a worker busy."""
    monkeypatch.setattr(clockwork, "RAY_SECONDS", 1.0)
    simulation = simulate(bowl, "random", 4, 40, lambda number: 1.0)
    assert 78.0 < simulation.seconds < 100.0
    assert 0.08 < simulation.busy_share < 0.16
    assert simulation.served > 75.0


def test_one_worker_matches_a_plain_searcher():
    simulation = simulate(bowl, "auto", 1, 14, lambda number: 1.0, seed=3)
    searcher = Searcher(bowl.space, "auto", "min", seed=3, trials=14)
    values = []
    for _ in range(14):
        trial = searcher.ask()
        values.append(bowl(trial.config))
        searcher.tell(trial, values[-1])
    np.testing.assert_array_equal(simulation.values, values)
    np.testing.assert_array_equal(simulation.best(), np.minimum.accumulate(values))
    assert (np.diff(simulation.ends) >= 1.0).all()


def test_durations_have_the_requested_mean_and_spread():
    """Of 20,000: the mean within 2 % (five standard errors are 1.9 %), the same for the same number."""
    seconds = log_normal(60.0, 0.5)
    drawn = np.array([seconds(number) for number in range(20_000)])
    assert abs(drawn.mean() / 60.0 - 1.0) < 0.02
    assert np.log(drawn).std() == pytest.approx(0.5, rel=0.03)
    assert seconds(7) == drawn[7]
