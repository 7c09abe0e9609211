"""The harness's checks report each kind of damage in journals made by hand, and nothing else."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

import raybo
from raybo import journal, methods
from raybo.record.description import Description
from raybo.record.events import LOST, Event, Failed, Kind, Planned, Reported, Retried, Told
from raybo.record.goals import Goals
from raybo.schedulers import SCHEDULERS
from raybo.schedulers.rule import event_of
from raybo.study.study import Study
from tests.faults import checks
from tests.faults.checks import Wrong
from tests.faults.plan import (
    AT_A_STEP,
    ON_NODES,
    REPORTED_TO,
    REPORTING,
    WHILE_PAUSED,
    Place,
    reporting_studies,
    studies,
)
from tests.faults.plan import Kind as Kill
from tests.faults.running import HERE, SOON, read_on

SPACE = raybo.Space({"x": raybo.Float(0, 1)})
TRIALS = 4
NOON = datetime(2026, 1, 1, 12, tzinfo=timezone.utc)
SECOND = timedelta(seconds=1)
RAY_SECONDS = int(SOON["RAY_health_check_failure_threshold"]) * sum(
    int(SOON[f"RAY_health_check_{name}_ms"]) / 1_000 for name in ("period", "timeout")
)


@dataclass(frozen=True)
class Left:
    """The remains of a study: its journal, what was announced, and what its trials wrote."""

    events: list[Event]
    announced: list[dict[str, Any]]
    lines: list[dict[str, Any]]

    def complaints(self) -> set[Wrong]:
        description = Description("job", Goals(("value",), ("min",)), SPACE, "random", 3)
        study = Study(description, self.events)
        complaints = [
            *checks.of_the_journal(study, TRIALS),
            *checks.of_what_was_announced(study, self.announced),
            *checks.of_what_ran(study, self.lines),
            *checks.of_replay(study),
            *checks.of_reports(study),
        ]
        return {complaint.wrong for complaint in complaints}


@pytest.fixture
def whole() -> Left:
    """Four trials, one after the other; the worker of the second was lost once, and the last is the best."""
    searcher = raybo.Searcher(SPACE, "random", "min", seed=3)
    events: list[Event] = []
    lines: list[dict[str, Any]] = []

    def record(event: Event) -> None:
        events.append(replace(searcher.apply(event), at=(NOON + len(events) * SECOND).isoformat()))

    def begin(number: int, attempt: int = 1) -> None:
        at = NOON + len(events) * SECOND - SECOND / 2
        line = {"config": searcher.trials[number].config, "attempt": attempt, "pid": 7, "at": at.timestamp()}
        lines.extend({"what": what, **line} for what in ("begin", "end"))

    record(Planned(trials=TRIALS))
    for number in range(TRIALS):
        record(searcher.propose(searcher.history))
        begin(number)
        if number == 1:
            record(Retried(number, reason="its worker died", attempt=2))
            begin(number, attempt=2)
        data = {"value": 9.0 - number, "seconds": 0.1, "attempt": 2 if number == 1 else 1}
        record(Told.of(number, data))
    announced: list[dict[str, Any]] = [
        {"event": events[4].number, "finished": 1, "best": [0, 9.0]},
        {"event": events[-1].number, "finished": 4, "best": [3, 6.0]},
        {"event": events[-1].number, "finished": 4, "returned": [3, 6.0]},
    ]
    return Left(events, announced, lines)


def of(left: Left, kind: Kind, trial: int) -> Event:
    return next(event for event in left.events if event.kind is kind and event.trial == trial)


def renumbered(events: list[Event]) -> list[Event]:
    return [replace(event, number=number) for number, event in enumerate(events, 1)]


def changed(left: Left, event: Event, **data: Any) -> Left:
    other = replace(event, **data)
    return replace(left, events=[other if each is event else each for each in left.events])


def a_result_is_gone(left: Left) -> Left:
    result = of(left, Kind.TOLD, 2)
    return replace(left, events=renumbered([event for event in left.events if event is not result]))


def an_event_number_is_left_out(left: Left) -> Left:
    return replace(left, events=[replace(e, number=e.number + (e.number > 5)) for e in left.events])


def the_last_trial_was_never_told(left: Left) -> Left:
    return replace(left, events=left.events[:-1], announced=[left.announced[0], {**left.announced[2], "finished": 3}])


def a_finished_trial_began_again(left: Left) -> Left:
    late = {**left.lines[0], "at": left.lines[-1]["at"] + 60}
    return replace(left, lines=[*left.lines, late])


def a_trial_began_once_too_often(left: Left) -> Left:
    return replace(left, lines=[left.lines[0], *left.lines])


def an_attempt_began_twice(left: Left) -> Left:
    return replace(left, lines=[{**line, "attempt": 1} for line in left.lines])


def the_last_attempt_began_again(left: Left) -> Left:
    line = next(line for line in left.lines if line["attempt"] == 2)
    others = [each for each in left.lines if each["config"] != line["config"] or each["attempt"] == 1]
    return replace(left, lines=[*others, {**line, "at": left.lines[-1]["at"] + 60}])


def an_attempt_is_not_counted(left: Left) -> Left:
    return changed(left, of(left, Kind.TOLD, 1), attempt=1)


def an_attempt_is_left_out(left: Left) -> Left:
    return changed(left, of(left, Kind.RETRIED, 1), attempt=3)


def a_result_came_from_nowhere(left: Left) -> Left:
    return replace(left, lines=left.lines[:-2])


def a_trial_ran_that_nobody_knows(left: Left) -> Left:
    return replace(left, lines=[{**left.lines[0], "config": {"x": 0.123}}, *left.lines])


def a_proposal_is_another(left: Left) -> Left:
    return changed(left, of(left, Kind.ASKED, 3), x=[0.5])


def another_best_was_returned(left: Left) -> Left:
    return replace(left, announced=[*left.announced[:2], {**left.announced[2], "returned": [0, 9.0]}])


def a_best_was_announced_that_is_not_there(left: Left) -> Left:
    return replace(left, announced=[{**left.announced[0], "best": [0, 1.0]}, *left.announced[1:]])


def a_result_was_announced_too_early(left: Left) -> Left:
    return replace(left, announced=[{**left.announced[0], "finished": 2}, *left.announced[1:]])


def nothing_was_returned(left: Left) -> Left:
    return replace(left, announced=left.announced[:2])


def a_trial_failed(left: Left) -> Left:
    result = of(left, Kind.TOLD, 0)
    failed = Failed(result.trial, reason="ValueError", attempt=1, number=result.number, at=result.at)
    announced = [{**line, "finished": line["finished"] - 1} for line in left.announced[1:]]
    return replace(left, events=[failed if event is result else event for event in left.events], announced=announced)


DAMAGES: dict[Callable[[Left], Left], set[Wrong]] = {
    a_result_is_gone: {Wrong.LOST, Wrong.UNFINISHED, Wrong.REPLAY},
    an_event_number_is_left_out: {Wrong.GAPS, Wrong.LOST},
    the_last_trial_was_never_told: {Wrong.UNFINISHED, Wrong.BEST},
    a_finished_trial_began_again: {Wrong.AGAIN, Wrong.ATTEMPTS},
    a_trial_began_once_too_often: {Wrong.ATTEMPTS},
    an_attempt_began_twice: {Wrong.ATTEMPTS},
    the_last_attempt_began_again: {Wrong.AGAIN},
    an_attempt_is_not_counted: {Wrong.ATTEMPTS},
    an_attempt_is_left_out: {Wrong.ATTEMPTS},
    a_result_came_from_nowhere: {Wrong.DOUBLED},
    a_trial_ran_that_nobody_knows: {Wrong.LOST},
    a_proposal_is_another: {Wrong.REPLAY},
    another_best_was_returned: {Wrong.BEST},
    a_best_was_announced_that_is_not_there: {Wrong.LOST},
    a_result_was_announced_too_early: {Wrong.LOST},
    nothing_was_returned: {Wrong.UNFINISHED},
    a_trial_failed: {Wrong.UNFINISHED},
}


def test_a_whole_study_gives_no_complaint(whole: Left) -> None:
    assert whole.complaints() == set()


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_each_damage_is_complained_of(whole: Left, damage: Callable[[Left], Left]) -> None:
    assert damage(whole).complaints() == DAMAGES[damage]


def test_attempt_on_a_lost_node_may_begin_late(whole: Left) -> None:
    given_up = next(line for line in whole.lines if line["attempt"] == 2) | {"attempt": 1}
    others = [line for line in whole.lines if line["config"] != given_up["config"] or line["attempt"] == 2]
    late = {**given_up, "at": whole.lines[-1]["at"] + 60}
    assert replace(whole, lines=[*others, late]).complaints() == set()


def test_trial_may_be_lost_but_not_fail(whole: Left) -> None:
    result = of(whole, Kind.TOLD, 0)
    assert result.trial is not None
    failed = Failed(result.trial, reason="the disk was full", attempt=1, number=result.number, at=result.at)
    for event, wrong in ((failed, [Wrong.UNFINISHED]), (replace(failed, cause=LOST), [])):
        events = [event if each is result else each for each in whole.events]
        study = Study(Description("job", Goals(("value",), ("min",)), SPACE, "random", 3), events)
        assert [each.wrong for each in checks.of_the_journal(study, TRIALS)] == wrong


def test_half_written_line_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "announced"
    path.write_text('{"event": 1, "finished": 0, "best": null}\n{"event": 3, "fin\n{"event": 4, "finished": 1}\n')
    assert [line["event"] for line in checks.read_announced(path)] == [1, 4]
    assert checks.read_announced(tmp_path / "none") == []


def test_the_same_seed_plans_the_same_kills() -> None:
    plan = list(islice(studies(1, hosts=True, disk=True), 24))
    assert plan == list(islice(studies(1, hosts=True, disk=True), 24))
    assert plan[5:] == list(islice(studies(1, hosts=True, disk=True, first=5), 19))
    assert plan != list(islice(studies(2, hosts=True, disk=True), 24))
    assert {study.place for study in plan} == set(Place)
    assert {kill.kind for study in plan for kill in study.kills} == set(Kill) - {*AT_A_STEP, *WHILE_PAUSED}


def test_kills_hit_steps_and_pauses_if_trials_report() -> None:
    plan = list(islice(reporting_studies(1, hosts=True), 24))
    assert plan[5:] == list(islice(reporting_studies(1, hosts=True, first=5), 19))
    assert {kill.kind for study in plan for kill in study.kills} >= {*AT_A_STEP, *WHILE_PAUSED}
    assert not any(methods.needs_context(study.method) for study in plan)
    for study in plan:
        assert study.reports
        waits = study.scheduler is not None and study.scheduler[1].get("variant") == "promote"
        assert waits or not {kill.kind for kill in study.kills} & {*WHILE_PAUSED}
    alone = [kill.kind for study in islice(reporting_studies(1, hosts=False), 24) for kill in study.kills]
    assert Kill.PAUSED_NODE not in alone


def test_rules_places_and_methods_are_crossed() -> None:
    rows, methods = len(Place) * len(REPORTED_TO), len(REPORTING)
    plan = list(islice(reporting_studies(7, hosts=True, kills=3), rows))
    rules = {str(rule) for rule in REPORTED_TO}
    assert {rule[0] for rule in REPORTED_TO if rule is not None} == set(SCHEDULERS)
    assert {(str(study.scheduler), study.place) for study in plan} == {(r, place) for r in rules for place in Place}
    assert len({study.method for study in plan}) == min(rows, methods)
    assert {len(study.kills) for study in plan} == {3}
    assert {kill.kind for study in plan for kill in study.kills} >= {*AT_A_STEP, *WHILE_PAUSED}
    crossed = list(islice(reporting_studies(1, hosts=True, kills=1), rows * methods))
    assert len({(str(study.scheduler), study.place, study.method) for study in crossed}) == rows * methods


@pytest.mark.parametrize(("moment", "whom"), [("saved", ["worker"]), ("judged", ["worker"]), ("saved", ["study"])])
def test_trial_kills_once_at_the_planned_moment(tmp_path: Path, moment: str, whom: list[str]) -> None:
    """It is the trial that knows when it is there."""
    log, lock = tmp_path / "log", tmp_path / "lock"
    with subprocess.Popen(["sleep", "60"]) as study:
        lock.write_text(json.dumps({"process": study.pid}))
        (tmp_path / f"log-{moment}").write_text(json.dumps({"whom": whom, "which": 0.5, "lock": str(lock)}))
        code = "import sys, time; from tests.faults.job import obey; [(obey(sys.argv[1], m), time.sleep(0.3)) for m in "
        code += "('judged', 'saved') * 2]"
        worker = subprocess.run([sys.executable, "-c", code, str(log)], cwd=HERE, check=False)
        assert worker.returncode == (-signal.SIGKILL if "worker" in whom else 0)
        assert study.poll() is None if "study" not in whom else study.wait(9) == -signal.SIGKILL
        study.kill()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lock", f"log-{moment}-taken"]


def test_impossible_strikes_are_not_planned() -> None:
    plan = list(islice(studies(1, hosts=False, disk=False), 24))
    assert {study.place for study in plan} == {Place.OWN}
    assert not {kill.kind for study in plan for kill in study.kills} & {*ON_NODES, Kill.FULL}


def test_stops_last_longer_than_ray_waits() -> None:
    stopped = {Kill.STOPPED_WORKER, Kill.STOPPED_ACTOR, Kill.STOPPED_DRIVER, Kill.STOPPED_RAYLET}
    kills = [kill for study in islice(studies(1, hosts=True, disk=True), 24) for kill in study.kills]
    assert all(kill.seconds > RAY_SECONDS for kill in kills if kill.kind in stopped)


def test_repeated_steps_and_wrong_verdicts_are_found() -> None:
    searcher = raybo.Searcher(
        SPACE, "random", "min", seed=3, steps=4, scheduler="median", scheduler_options={"startup": 1}
    )
    events: list[Event] = []

    def record(event: Event) -> None:
        events.append(searcher.apply(event))

    for number in range(2):
        record(searcher.propose(searcher.history))
        for step in range(1, 5):
            record(Reported(number, step=step, value=1.0 + number))
            if number == 1 and searcher.rule is not None and searcher.rule.judge(searcher.history, 1).prune:
                verdict = searcher.rule.judge(searcher.history, 1)
                record(event_of(verdict, "median", 1, step, searcher.ledger.last_event))
                break
        else:
            record(Told(number, value=1.0))
    description = Description(
        "job",
        Goals(("value",), ("min",)),
        SPACE,
        "random",
        3,
        steps=4,
        scheduler="median",
        scheduler_options={"startup": 1},
    )
    assert events[-1].kind is Kind.PRUNED
    assert list(checks.of_reports(Study(description, events))) == []
    unseen = replace(events[-1], seen=1)
    assert {each.wrong for each in checks.of_reports(Study(description, [*events[:-1], unseen]))} == {Wrong.REPLAY}
    skipped = [replace(e, step=e.step + 1) if e.report else e for e in events]
    assert Wrong.DOUBLED in {each.wrong for each in checks.of_reports(Study(description, skipped))}


def test_a_journal_is_read_on_and_whole_again_if_it_is_another(tmp_path: Path) -> None:
    path, known = tmp_path / "s.db", list[Event]()
    tail = journal.Tail(path)
    for seed, times in ((0, 1), (1, 2)):
        searcher = raybo.Searcher(SPACE, "random", seed=seed, storage=path)
        for value in (1.0, 2.0):
            searcher.tell(searcher.ask(), value)
            known = read_on(tail, known)
            assert known == journal.read(path)[1]
            assert tail.times == times
        searcher.close()
        for file in tmp_path.iterdir():
            file.unlink()


def test_seen_events_that_are_gone_or_others_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with raybo.Searcher(SPACE, "random", seed=0, storage=path) as searcher:
        for value in (1.0, 2.0):
            searcher.tell(searcher.ask(), value)
    study = raybo.load(path)
    events = study.events
    assert not [*checks.of_what_was_seen(study, events), *checks.of_what_was_seen(study, events[:-1])]
    told = next(event for event in events if isinstance(event, Told))
    for seen in ([*events, events[-1]], [replace(told, seconds=9.0) if event is told else event for event in events]):
        assert [complaint.wrong for complaint in checks.of_what_was_seen(study, seen)] == [Wrong.LOST]
