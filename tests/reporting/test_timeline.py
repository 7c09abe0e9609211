"""The timeline shows what each worker did when."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from itertools import pairwise

import numpy as np
import pytest

import raybo
from raybo.integrations.optuna_journal import END_TRIAL, optuna_exporter
from raybo.record.description import Description
from raybo.record.events import KINDS, Failed, Kind, Planned, Pruned, Retried, Told
from raybo.record.goals import Goals
from raybo.record.origin import Origin
from raybo.record.states import State
from raybo.reporting.run_figures import timeline
from raybo.reporting.timeline import busy_share, pauses_of, seconds_of, spans
from raybo.study.study import Study


def retried() -> Study:
    """One trial that failed after a second, was wanted again a minute later, and finished after two."""
    searcher = raybo.Searcher({"x": raybo.Float(0, 1)}, "random", seed=0)
    asked = searcher.propose(searcher.history)
    entries = [
        (asked, 0),
        (Failed(0, reason="no", attempt=1), 1),
        (Retried(0, reason="wanted again", attempt=2, losses=0), 60),
        (Told(0, value=0.5, attempt=2), 62),
    ]
    events = [
        replace(event, number=i, at=f"2026-01-01T00:{second // 60:02d}:{second % 60:02d}+00:00")
        for i, (event, second) in enumerate(entries, 1)
    ]
    return Study(Description("job", Goals(("value",), ("max",)), searcher.space, "random", 0), events)


def test_a_retried_trial_has_both_its_spans():
    assert [(span.begin, span.end, span.state) for span in spans(retried())] == [
        (0.0, 1.0, State.FAILED),
        (60.0, 62.0, State.FINISHED),
    ]


def test_an_attempt_that_another_one_followed_was_lost():
    events = [event for event in retried().events if event.kind is not Kind.FAILED]
    study = Study(retried().description, [replace(event, number=i) for i, event in enumerate(events, 1)])
    assert [(span.begin, span.end, span.state) for span in spans(study)] == [
        (0.0, 60.0, State.LOST),
        (60.0, 62.0, State.FINISHED),
    ]


@pytest.mark.parametrize("set_at", [1, 2, 3, 4])
def test_times_of_a_clock_that_is_set(set_at):
    """It is set back an hour, or forward a day, before an event; the attempt that ends after it takes as long."""
    begun = datetime(2026, 1, 1, 0, 1, 0, 500_000, timezone.utc)
    for by in (timedelta(hours=-1), timedelta(days=1)):
        events = [
            replace(event, at=(datetime.fromisoformat(event.at) + by * (event.number >= set_at)).isoformat())
            for event in retried().events
        ]
        last = events[-1]
        data = {"value": 0.5, "attempt": 2, "started": (begun + by * (set_at < 4)).isoformat(), "seconds": 1.0}
        told = Told.of(0, data, number=last.number, at=last.at)
        study = Study(retried().description, [*events[:-1], told])
        times = list(seconds_of(study.events).values())
        assert times == sorted(times)
        assert all(0.0 <= span.begin <= span.end <= times[-1] for span in spans(study))
        assert spans(study)[-1].end - spans(study)[-1].begin == pytest.approx(1.0)
        assert all(0.0 <= begin <= end for begin, end in pauses_of(study))
        assert 0.0 <= busy_share(study, spans(study)) <= 1.0


def test_busy_share_leaves_out_pauses_of_the_study():
    """It was planned long before its first trial, two of ten seconds each ran with a gap of ten, and one much later."""
    searcher = raybo.Searcher({"x": raybo.Float(0, 1)}, "random", seed=0)
    events = [searcher.apply(Planned(trials=3))]
    seconds = [0]
    for number, begin in enumerate((100, 120, 500)):
        at = f"2026-01-01T00:{begin // 60:02d}:{begin % 60:02d}+00:00"
        events.append(searcher.apply(searcher.propose(searcher.history)))
        outcome = {"value": 0.5, "attempt": 1, "started": at, "seconds": 10.0, "host": "a"}
        events.append(searcher.apply(Told.of(number, outcome)))
        seconds += [begin, begin + 10]
    timed = [
        replace(event, at=f"2026-01-01T00:{second // 60:02d}:{second % 60:02d}+00:00")
        for event, second in zip(events, seconds, strict=True)
    ]
    study = Study(Description("job", Goals(("value",), ("max",)), searcher.space, "random", 0), timed)
    assert pauses_of(study) == [(0.0, 100.0), (130.0, 500.0)]
    assert busy_share(study, spans(study)) == pytest.approx(30 / 40)


def test_enqueued_trials_span_from_when_they_begin():
    searcher = raybo.Searcher({"x": raybo.Float(0, 1)}, "random", seed=0)
    kinds = [(0, 0), (1, 0), (0, 50), (0, 55)]
    events = []
    for (number, second), kind in zip(kinds, (None, None, Kind.BEGUN, Kind.TOLD), strict=True):
        made = searcher.known({"x": 0.5}, Origin.ENQUEUED) if kind is None else KINDS[kind].of(number, {"value": 0.5})
        events.append(replace(searcher.apply(made), at=f"2026-01-01T00:00:{second:02d}+00:00"))
    study = Study(Description("job", Goals(("value",), ("max",)), searcher.space, "random", 0), events)
    assert [(span.trial, span.begin, span.end) for span in spans(study)] == [(0, 50.0, 55.0)]
    running = Study(study.description, events[:3])
    assert [(span.trial, span.begin, span.state) for span in spans(running)] == [(0, 50.0, State.PENDING)]


def test_a_retried_trial_ends_once_in_optuna(tmp_path):
    optuna_exporter(str(tmp_path / "optuna.log"))(retried())
    lines = [json.loads(line) for line in (tmp_path / "optuna.log").read_text().splitlines()]
    assert [line["values"] for line in lines if line["op_code"] == END_TRIAL] == [[0.5]]


def test_a_retried_trial_is_pending_without_its_failure():
    study = retried()
    pending = Study(study.description, study.events[:3]).trials[0]
    assert (pending.state, pending.attempt, pending.seconds, pending.details) == (State.PENDING, 2, None, {})
    assert (study.trials[0].state, study.trials[0].value) == (State.FINISHED, 0.5)


def on_hosts(*runs: tuple[str, int, int]) -> Study:
    """Trials by where they ran, and the seconds in which they began and ended; nobody says where a pruned one ran."""
    searcher = raybo.Searcher({"x": raybo.Float(0, 1)}, "random", seed=0)
    moments = [(begin, 0, number) for number, (_, begin, _) in enumerate(runs)]
    moments += [(end, 1, number) for number, (_, _, end) in enumerate(runs)]
    events = []
    for second, is_end, number in sorted(moments):
        host, begin, end = runs[number]
        data = {"attempt": 1, "seconds": float(end - begin)}
        if not is_end:
            event = searcher.propose(searcher.history)
        elif host:
            event = Told.of(number, {**data, "value": 0.5, "host": host})
        else:
            event = Pruned.of(number, {**data, "reason": "2nd of 2"})
        events.append(replace(searcher.apply(event), at=f"2026-01-01T00:00:{second:02d}+00:00"))
    return Study(Description("job", Goals(("value",), ("max",)), searcher.space, "random", 0), events)


def test_pruned_trials_without_a_host_use_known_lanes():
    study = on_hosts(("a", 0, 10), ("a", 0, 4), ("", 4, 7), ("", 7, 10))
    placed = spans(study)
    assert [(span.trial, span.host, span.lane) for span in placed] == [
        (0, "a", 0),
        (1, "a", 1),
        (2, "a", 1),
        (3, "a", 1),
    ]
    assert busy_share(study, placed) == 1.0


def test_workers_are_named_by_host_if_several():
    pytest.importorskip("plotly")

    def names(*runs):
        return set(timeline(on_hosts(*runs)).figure.layout.yaxis.categoryarray)

    assert names(("", 0, 4)) == {"worker 1"}
    assert names(("a", 0, 4), ("", 1, 4)) == {"worker 1", "worker 2"}
    assert names(("a", 0, 4), ("b", 0, 4), ("", 1, 4)) == {"a 1", "b 1", "unknown 1"}


def test_a_pruned_trial_fills_a_gap_among_hosts():
    study = on_hosts(("a", 0, 4), ("b", 0, 10), ("", 4, 7), ("a", 7, 10), ("", 8, 9))
    places = {span.trial: (span.host, span.lane) for span in spans(study)}
    assert places == {0: ("a", 0), 1: ("b", 0), 2: ("a", 0), 3: ("a", 0), 4: ("", 0)}


@pytest.mark.parametrize("seed", range(20))
def test_lanes_never_overlap_and_are_fewest_possible(seed):
    rng = np.random.default_rng(seed)
    begins = np.sort(rng.integers(0, 50, 40))
    runs = [
        (str(rng.choice(["a", "b", ""])), int(begin), int(begin + length))
        for begin, length in zip(begins, rng.integers(1, 9, 40), strict=True)
    ]
    placed = spans(on_hosts(*runs))
    assert len(placed) == 40
    lanes: dict[tuple[str, int], list[tuple[float, float]]] = {}
    for span in placed:
        lanes.setdefault((span.host, span.lane), []).append((span.begin, span.end))
    for held in lanes.values():
        assert all(before[1] <= after[0] for before, after in pairwise(sorted(held)))
    for host in ("a", "b"):
        at_once = max(sum(h == host and b <= t < e for h, b, e in runs) for t in range(60))
        assert sum(h == host for h, _ in lanes) == at_once
