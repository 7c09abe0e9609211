"""The median rule against a trace by hand, and the paper's sentence."""

from __future__ import annotations

import numpy as np
import pytest

from raybo.record.events import Kind
from raybo.schedulers import make
from tests.schedulers.studies import ask, curve, empty, end, report


def finished(history, *curves):
    for values in curves:
        end(history, curve(history, values))


def test_a_trace_by_hand():
    """Running averages at step 3: 2, 4 and 6 of the finished ones; the median is 4."""
    rule = make("median", {"startup": 3, "grace": 2}, 5)
    history = empty(5)
    finished(history, [1, 2, 3, 4, 5], [6, 4, 2, 0, 0], [6, 6, 6, 6, 6])
    trial = ask(history)
    report(history, trial, 3.0, 1)
    report(history, trial, 1.0, 2)
    assert not rule.decides(history, trial, 2)
    report(history, trial, 2.0, 3)
    verdict = rule.decide(history, trial, 3)
    assert verdict.prune
    assert verdict.why == "best by step 3: 3, median of the 3 finished 4"
    assert verdict.numbers == {"best": 3.0, "cutoff": 4.0, "others": 3}
    report(history, trial, 3.0, 4)  # the averages are 2.5, 3 and 6 by now
    assert rule.decide(history, trial, 4).action == "go"  # as good as the median is not worse
    assert not rule.decides(history, trial, 5)


def test_explanations_of_minimised_metrics_keep_the_sign():
    rule = make("median", {"startup": 1}, 3)
    history = empty(3, sign=-1.0)
    finished(history, [5, 4, 3])
    trial = curve(history, [7, 6])
    assert rule.decide(history, trial, 2).why == "best by step 2: 6, median of the 1 finished 4.5"
    assert rule.decide(history, trial, 2).prune


def test_median_uses_finished_trials_up_to_the_step():
    rule = make("median", {"startup": 1}, 9)
    history = empty(9)
    finished(history, [0.0, 1.0])  # ended early by its own will
    for kind in (Kind.PRUNED, Kind.PAUSED, Kind.FAILED):
        end(history, curve(history, [9, 9, 9]), kind)
    trial = curve(history, [0.4, 0.4, 0.4])
    assert rule.decide(history, trial, 3).numbers["cutoff"] == 0.5
    end(history, trial, Kind.PRUNED)
    late = empty(9)
    end(late, curve(late, [1.0], steps=[8]))
    assert rule.decide(late, curve(late, [0.0, 0.0]), 2).action == "go"  # nobody had reported so soon


@pytest.mark.parametrize("seed", range(5))
def test_median_rule_follows_the_papers_sentence(seed):
    """Random curves at random steps, against the sentence word by word."""
    rng = np.random.default_rng(seed)
    history, rule = empty(20), make("median", {"startup": 2}, 20)
    done = {}
    for _ in range(12):
        steps = sorted(rng.choice(np.arange(1, 21), 8, replace=False).tolist())
        values = rng.standard_normal(8).round(1)
        trial = ask(history)
        for i, step in enumerate(steps):
            report(history, trial, values[i], step)
            averages = [np.mean(v[np.array(s) <= step]) for s, v in done.values() if min(s) <= step]
            due = len(done) >= 2 and 1 < step < 20 and len(averages) > 0
            expected = due and max(values[: i + 1]) < np.median(averages)
            assert rule.decide(history, trial, step).prune == expected
        if rng.random() < 0.7:
            end(history, trial)
            done[trial] = steps, values
