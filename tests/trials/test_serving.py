"""The simulated server: times computed by hand, leaps that change nothing, and waits that grow with load."""

from __future__ import annotations

import numpy as np
import pytest

from trials.serving import (
    COMPUTED,
    KEYS_AND_VALUES,
    READ,
    Replica,
    Request,
    documents,
    serve,
    serving,
)

CONFIG = {"gpus_per_replica": 1, "max_seqs": 8, "backlog_share": 0.0, "max_tokens": 512, "chunked_prefill": True}


def replica(**changes):
    return Replica({**CONFIG, **changes}, documents(np.random.default_rng(0)))


def requests(seed, n=60, until=40.0):
    rng = np.random.default_rng(seed)
    times, prompts, answers = np.sort(rng.random(n) * until), rng.integers(5, 900, n), rng.integers(1, 80, n)
    return [Request(*each) for each in zip(times, prompts, answers, strict=True)]


def test_a_lone_request_takes_known_times():
    server = replica()
    server.run(30.0, [Request(12.0, 300, 4)])
    (arrived, waited), *_ = server.waited
    assert (arrived, waited) == (12.0, pytest.approx(server.fixed + 300 / COMPUTED))
    assert server.made == 4
    alone = replica()
    alone.begin(Request(0.0, 300, 4))
    alone.read()
    begun = alone.now
    alone.answer(3)
    kept = KEYS_AND_VALUES * (301 + 302 + 303) / READ
    assert alone.now - begun == pytest.approx(3 * alone.fixed + kept)
    assert (alone.reserved, alone.context, alone.answering) == (0, 0, [])


@pytest.mark.parametrize("changes", [{}, {"chunked_prefill": False}, {"backlog_share": 0.5, "gpus_per_replica": 2}])
def test_leaps_change_nothing(changes, monkeypatch):
    """Many iterations at once are as many, one after the other."""
    at_once = replica(**changes)
    at_once.run(50.0, requests(1))
    monkeypatch.setattr(Replica, "steps_until", lambda self, time: 1)
    step_by_step = replica(**changes)
    step_by_step.run(50.0, requests(1))
    assert at_once.made == pytest.approx(step_by_step.made, abs=8)  # some tokens more or less as the warm-up ends
    assert len(at_once.waited) == len(step_by_step.waited) == 60
    np.testing.assert_allclose(at_once.waited, step_by_step.waited, rtol=1e-6)


def test_nothing_exceeds_places_and_memory():
    server = replica(max_seqs=5, backlog_share=0.4)
    waiting = requests(2, n=200)
    most = []
    admit = server.admit

    def watched():
        admit()
        most.append((len(server.reading) + len(server.answering), server.of_backlog, server.reserved))

    server.admit = watched
    server.run(50.0, waiting)
    places, backlog, reserved = np.max(most, axis=0)
    assert (places, backlog) == (5, 2)
    assert reserved <= server.room


def test_people_wait_longer_under_load():
    config = {**CONFIG, "gpus_per_replica": 2, "max_seqs": 128, "backlog_share": 0.8, "max_tokens": 1024}
    quiet, busy = (serve(config, load, 120.0, np.random.default_rng(0)) for load in (3.0, 12.0))
    assert busy["first_token"] > 1.3 * quiet["first_token"]
    assert busy["throughput"] > quiet["throughput"]
    without = serve({**config, "backlog_share": 0.0}, 3.0, 120.0, np.random.default_rng(0))
    assert without["throughput"] < 0.5 * quiet["throughput"]
    assert without["first_token"] < quiet["first_token"]


def test_a_trial_returns_its_load_and_what_counts():
    result = serving(CONFIG, minutes=0.5, seed=3)
    assert set(result) == {serving.metric, *serving.context.names, *(rule.name for rule in serving.goals.constraints)}
    assert result == serving(CONFIG, minutes=0.5, seed=3)
    assert result != serving(CONFIG, minutes=0.5, seed=4)
