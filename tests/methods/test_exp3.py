"""EXP3 and its rounds of two trials, as they are written into tags and read back."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raybo.methods.unknown_hyperparameters.exp3 import (
    learning_rate,
    log_gain,
    log_weights,
    next_turn,
    probabilities,
    rounds_of,
    scaled,
)
from raybo.record.events import KINDS, Asked, Kind, Planned
from raybo.record.history import History
from raybo.space import Float, Space

CUBE = Space({"x": Float(0, 1)}).cube
START = np.zeros(2)


def weights(logs):
    return np.exp(logs)


# ---- the published numbers


@pytest.mark.parametrize(
    ("evaluations", "gamma"),
    [(2, 0.898215), (20, 0.284041), (50, 0.179643), (60, 0.163991), (100, 0.12702684968), (200, 0.0898215)],
)
def test_gamma_of_rounds_of_two(evaluations, gamma):
    assert learning_rate(evaluations / 2) == pytest.approx(gamma, rel=2e-6)


def test_gamma_for_few_rounds():
    assert learning_rate(50) == pytest.approx(0.1270268, rel=1e-6)
    assert learning_rate(100) == pytest.approx(0.0898215, rel=1e-6)
    assert learning_rate(0.5) == 1.0


def test_three_rounds_one_after_the_other():
    gamma, logs = learning_rate(50), START.copy()
    expected = [
        (1, 0.8, (1.1069643840, 1.0), (0.5221591395, 0.4778408605)),
        (2, 0.5, (1.1069643840, 1.0687168923), (0.5076732363, 0.4923267637)),
        (1, 0.3, (1.1493005613, 1.0687168923), (0.5158581663, 0.4841418337)),
    ]
    p = probabilities(logs, gamma)
    for arm, reward, after, law in expected:
        logs[arm - 1] += log_gain(gamma, p[arm - 1], reward)
        p = probabilities(logs, gamma)
        np.testing.assert_allclose(weights(logs), after, rtol=1e-9)
        np.testing.assert_allclose(p, law, rtol=1e-9)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_two_rounds_open_at_once_in_either_order(order):
    gamma, logs = learning_rate(50), START.copy()
    for arm, reward in [((1, 0.8), (2, 0.5))[i] for i in order]:
        logs[arm - 1] += log_gain(gamma, 0.5, reward)
    np.testing.assert_allclose(weights(logs), [1.1069643840, 1.0655737909], rtol=1e-9)
    np.testing.assert_allclose(probabilities(logs, gamma), [0.5083158208, 0.4916841792], rtol=1e-9)


def test_rewards_are_on_the_scale_of_the_design():
    assert scaled(max(0.2, -1.0), -3.0, 1.0) == pytest.approx(0.8)
    assert scaled(max(-4.0, -5.0), -3.0, 1.0) == 0.0
    assert scaled(max(2.5, 0.0), -3.0, 1.0) == 1.0
    assert [scaled(v, 2.0, 2.0) for v in (1.0, 2.0, 3.0)] == [0.0, 0.5, 1.0]
    assert scaled(0.0, -1e150, 1e150) == pytest.approx(0.5)
    assert [scaled(v, 0.0, 5e-324) for v in (0.0, 5e-324)] == [0.0, 1.0]


@given(
    st.floats(-1e6, 1e6),
    st.floats(-1e6, 1e6),
    st.integers(1, 10_000),
    st.floats(0.0, 1.0),
)
def test_the_law_and_the_factor_stay_in_bounds(first, second, rounds, reward):
    gamma = learning_rate(rounds)
    p = probabilities(np.array([first, second]), gamma)
    assert p.sum() == pytest.approx(1.0, abs=1e-12)
    assert (p >= gamma / 2 * (1 - 1e-12)).all()
    assert (p <= 1 - gamma / 2 + 1e-12).all()
    assert 1.0 <= math.exp(log_gain(gamma, float(p[0]), reward)) <= math.e * (1 + 1e-12)


def test_exp3_learns_which_arm_pays():
    """Arm 2 pays 1 with probability 0.8, arm 1 with 0.3; 20 runs of 1,000 rounds. The regret's bound, 2 sqrt(e - 1)
    sqrt(g K log K) = 98, allows arm 1 at most 196 times on average, and a run may differ by luck."""
    shares = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        gamma, logs, pulls = learning_rate(1_000), START.copy(), 0
        for _ in range(1_000):
            p = probabilities(logs, gamma)
            arm = 1 if rng.random() < p[0] else 2
            pulls += arm == 2
            logs[arm - 1] += log_gain(gamma, p[arm - 1], float(rng.random() < (0.3, 0.8)[arm - 1]))
        shares.append(pulls / 1_000)
    assert np.mean(shares) > 0.8, shares
    assert min(shares) > 0.6, shares


# ---- rounds in a history


class Study:
    """A history that trials are added to as the rounds want them, with any value."""

    def __init__(self, planned: int | None, design: int = 3) -> None:
        self.history = History(CUBE)
        self.design = design
        if planned is not None:
            self.history.apply(Planned(trials=planned))
        for i in range(design):
            self.told(self.asked({"design": "uniform"}), float(i))
        self.evaluations = 40 if planned is None else planned - design

    def asked(self, tags) -> int:
        number = len(self.history)
        self.history.apply(Asked(number, x=[0.5], tags=tags))
        return number

    def told(self, number: int, value: float | str) -> None:
        kind, data = (Kind.TOLD, {"value": value}) if isinstance(value, float) else (Kind.FAILED, {"kind": value})
        self.history.apply(KINDS[kind].of(number, data))

    def turn(self, seed: int = 0):
        return next_turn(self.history, np.random.default_rng([seed, len(self.history)]), self.evaluations)

    def ask(self, seed: int = 0) -> int:
        return self.asked(self.turn(seed).tags)

    def log_weights(self):
        return log_weights(rounds_of(self.history), 0.0, float(self.design - 1))


def test_with_one_worker_rounds_are_the_published_loop():
    """Against a plain EXP3 loop with the same draws, to an odd end: the last round has one trial, and earns nothing."""
    study, gamma, logs = Study(3 + 21), learning_rate(10.5), START.copy()
    values = np.random.default_rng(5).uniform(-1.0, 3.0, 21)
    for t in range(1, 22):
        turn = study.turn()
        tags, number = turn.tags, study.asked(turn.tags)
        if t % 2 == 1:
            p = probabilities(logs, gamma)
            arm = 1 if np.random.default_rng([0, number]).random() < p[0] else 2
            assert (tags["slot"], tags["arm"], tags["round"]) == (1, arm, t // 2)
            assert turn.is_random == (arm == 1)
            assert tags["p"] == pytest.approx(p[arm - 1], rel=1e-12)
            assert tags.get("single", False) == (t == 21)
            np.testing.assert_allclose(tags["log_weights"], logs, rtol=1e-12)
        else:
            assert (tags["slot"], tags["arm"], tags["round"]) == (2, arm, t // 2 - 1)
            assert not turn.is_random
            reward = min(1.0, max(0.0, values[t - 2 : t].max() / 2.0))
            logs[arm - 1] += gamma * reward / (2 * p[arm - 1])
        study.told(number, float(values[t - 1]))
    np.testing.assert_allclose(study.log_weights(), logs, rtol=1e-12)


@given(
    st.sampled_from([1, 2, 3, 8]),
    st.integers(1, 25),
    st.integers(0, 2**32 - 1),
    st.sampled_from([True, False]),
)
@settings(max_examples=60, deadline=None)
def test_whatever_the_workers_do(workers, evaluations, seed, failing):
    """Invariants of rounds under workers that end in any order, some without a value."""
    study, rng = Study(3 + evaluations), np.random.default_rng(seed)
    running: list[int] = []
    asked = 0
    before = study.log_weights()
    while asked < evaluations or running:
        while asked < evaluations and len(running) < workers:
            turn = study.turn(seed)
            if turn.tags.get("slot") == 2:
                first = next(r for r in rounds_of(study.history) if r.number == turn.tags["round"])
                assert first.first_has_ended
                assert first.lacks_second
                assert turn.tags["arm"] == first.arm
            elif "round" in turn.tags:
                gamma, p = turn.tags["gamma"], turn.tags["p"]
                assert gamma / 2 * (1 - 1e-12) <= p <= 1 - gamma / 2 + 1e-12
            running.append(study.asked(turn.tags))
            asked += 1
        ended = running.pop(int(rng.integers(len(running))))
        study.told(ended, "lost" if failing and rng.random() < 0.2 else float(rng.normal()))
        after = study.log_weights()
        assert (after != before).sum() <= 1  # a trial ends one round at most, and that moves one weight
        assert (after >= before).all()
        assert (after - before <= 1.0 + 1e-12).all()
        before = after
    assert len(study.history) == 3 + evaluations
    rounds = rounds_of(study.history)
    open_ends = [r for r in rounds if r.lacks_second]
    owed = study.history.count_tag("owed")
    assert len(open_ends) <= owed  # what a round lacks at the end was given without waiting for it
    assert owed < workers
    assert sum(len(r.trials) for r in rounds) + owed == evaluations


@given(st.permutations(range(8)), st.integers(0, 1000))
@settings(max_examples=30, deadline=None)
def test_the_order_of_results_does_not_matter(order, seed):
    def study_ended_in(order):
        study = Study(40)
        for numbers in ([study.ask(seed) for _ in range(4)], None):
            if numbers is not None:
                for number in numbers:
                    study.told(number, float(np.sin(number)))
        seconds = [study.ask(seed) for _ in range(4)]
        more = [study.ask(seed) for _ in range(4)]
        for i in order:
            study.told([*seconds, *more][i], float(np.cos(i)))
        return study

    shuffled, straight = study_ended_in(order), study_ended_in(range(8))
    np.testing.assert_array_equal(shuffled.log_weights(), straight.log_weights())
    assert shuffled.turn().tags == straight.turn().tags


def test_a_straggler_holds_up_its_own_round_only():
    study = Study(60)
    slow = study.ask()
    for _ in range(10):
        study.told(study.ask(), 0.5)
    rounds = rounds_of(study.history)
    assert [len(r.trials) for r in rounds] == [1, 2, 2, 2, 2, 2]
    assert not rounds[0].has_ended
    study.told(slow, 1.0)
    assert study.turn().tags["round"] == 0
    assert study.turn().tags["slot"] == 2


@pytest.mark.parametrize(
    ("first", "second", "reward"),
    [
        (0.5, 1.5, 0.75),
        ("raised", 1.0, 0.5),
        (1.0, "lost", 0.5),
        ("raised", "raised", 0.0),
        ("raised", "lost", 0.0),
        ("lost", "lost", None),
    ],
)
def test_round_rewards_with_failed_trials(first, second, reward):
    study = Study(40)
    study.told(study.ask(), first)
    assert study.turn().tags["slot"] == 2  # also after a failure
    study.told(study.ask(), second)
    assert rounds_of(study.history)[0].reward(0.0, 2.0) == reward


def test_rewards_use_the_probability_when_drawn():
    """The second round opens before the first ends: its reward is divided by the p of its own draw, 1/2."""
    study = Study(3 + 100)
    firsts = [study.ask(), study.ask()]
    for number in firsts:
        study.told(number, 0.0)
    seconds = [study.ask(), study.ask()]
    gamma = learning_rate(50)
    expected = START.copy()
    for number, value in zip(seconds, (1.6, 1.0), strict=True):
        study.told(number, value)
        expected[study.history.records[number].tags["arm"] - 1] += gamma * value / 2 / (2 * 0.5)
    np.testing.assert_allclose(study.log_weights(), expected, rtol=1e-12)


def test_rounds_continue_beyond_the_plan():
    for planned in (None, 5):
        study = Study(planned)
        for _ in range(3):
            study.told(study.ask(), 1.0)
        assert [record.tags.get("round") for record in study.history.records[3:]] == [0, 0, 1]
