"""The page receives what has changed, and nothing that a terminal or a browser would execute."""

from __future__ import annotations

import json
import math
import os
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

import raybo
from raybo.journal import Journal, Tail
from raybo.record.description import Description
from raybo.record.events import Begun, Ended, Kind, Planned, Pruned, Reported, Retried, Stopped, Told
from raybo.record.goals import Goals
from raybo.record.origin import Origin
from raybo.reporting.figures import report_figures
from raybo.study.enqueueing import enqueue
from raybo.study.study import Study, load
from raybo.view import facts
from raybo.view.figures import Figures, as_bytes
from raybo.view.followed import Followed
from raybo.view.journals import Shelf, identifier
from raybo.view.parallel import _Axis, _colour, plain_lines
from raybo.view.trial import trial_page
from tests.reporting.studies import failed_study, run
from tests.view.served import BEARER, address, asking, keep

pytestmark = pytest.mark.usefixtures("few_draws")

HOSTILE = "<script>alert(1)</script>\x1b[31m\u202egpj\ud800\x07" + "x" * 5_000


def grown(path, study, begin, end):
    journal = Journal(path, study.description)
    journal._insert(study.events[begin:end])
    journal.close()


def test_a_tail_reads_only_what_has_come_since(tmp_path):
    study = run("random", 20)
    path = keep(study, tmp_path / "s.db", 7)
    tail = Tail(path)
    assert tail.read() == load(path).events
    assert tail.read() == []
    for begin, end in ((7, 8), (8, 8), (8, 30)):
        grown(path, study, begin, end)
        assert [event.number for event in tail.read()] == list(range(begin + 1, end + 1))
    assert tail.times == 1
    path.unlink()
    keep(run("random", 5, seed=1), path)
    again = tail.read()
    assert again == load(path).events
    assert tail.times == 2


def test_tail_notices_an_unstarted_study_being_replaced(tmp_path):
    study = run("random", 3)
    path = keep(study, tmp_path / "s.db", 0)
    tail = Tail(path)
    assert tail.read() == []
    other = replace(study.description, seed=7)
    Journal(path, other).close()  # it gives way
    assert tail.read() == []
    assert (tail.description, tail.times) == (other, 2)


def test_tail_notices_damage_and_a_deleted_file(tmp_path):
    import sqlite3

    study = run("random", 10)
    path = keep(study, tmp_path / "s.db", 10)
    tail = Tail(path)
    tail.read()
    grown(path, study, 10, 15)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE event SET at = '2020-01-01T00:00:00+00:00' WHERE number = 12")
    connection.close()
    with pytest.raises(raybo.JournalError, match="event 12 has been changed"):
        tail.read()
    path.unlink()
    with pytest.raises(raybo.JournalError, match="no such file"):
        tail.read()


def test_an_extended_study_equals_a_whole_one(tmp_path):
    whole = run("random", 20)
    study = Study(whole.description, whole.events[:9])
    before = study.best.number if study.count(raybo.view.facts.State.FINISHED) else None
    study.extend(whole.events[9:])
    assert repr(study.trials) == repr(whole.trials)
    assert study.best.number == whole.best.number
    assert study.planned == whole.planned
    assert before is None or before <= 9


def test_rows_hold_exactly_the_changed_trials(tmp_path):
    study = run("random", 30)
    path = keep(study, tmp_path / "s.db", 1)
    followed = Followed(path)
    seen, last, times = {}, 0, 0
    for begin in range(1, len(study.events), 9):
        grown(path, study, begin, begin + 9)
        news = facts.rows(followed, last, times)
        touched = {event.trial for event in study.events[last : begin + 9]} - {None}
        assert {row[0] for row in news["rows"]} == touched
        seen |= {row[0]: row for row in news["rows"]}
        last, times = news["last"], news["times"]
        assert news["complete"]
    assert [seen[i] for i in range(30)] == facts.rows(Followed(path), 0, 0)["rows"][:0] + sorted(
        facts.rows(Followed(path), 0, 0)["rows"]
    )
    assert {json.dumps(row[-1]) for row in seen.values() if row[1] == "finished"} == {'{"f1": 0.5}'}
    assert facts.rows(followed, last, times)["rows"] == []
    assert len(facts.rows(followed, last, times + 1)["rows"]) == 30  # rows of another journal are void
    for wild in (10**11, -5):
        assert facts.rows(followed, wild, times)["complete"]


def test_a_pruned_trial_shows_its_last_report(tmp_path):
    with raybo.Searcher({"x": raybo.Float(0, 1)}, "random", steps=4, storage=tmp_path / "s.db") as searcher:
        trial = searcher.ask()
        searcher.report(trial, 0.25, 1)
        searcher.report(trial, 0.5, 2)
        searcher.prune(trial)
        searcher.tell(searcher.ask(), 0.75)
    rows = facts.rows(Followed(tmp_path / "s.db"), 0, 0)["rows"]
    assert {tuple(row[:3]) for row in rows} == {(0, "pruned", 0.5), (1, "finished", 0.75)}


def test_rows_come_in_parts_of_a_bearable_length(tmp_path, monkeypatch):
    monkeypatch.setattr(facts, "ROWS", 7)
    followed = Followed(keep(run("random", 30), tmp_path / "s.db"))
    numbers, last = [], 0
    while True:
        news = facts.rows(followed, last, followed.times)
        assert len(news["rows"]) <= 7
        numbers += [row[0] for row in news["rows"]]
        last = news["last"]
        if news["complete"]:
            break
    assert sorted(numbers) == list(range(30))


def test_workers_show_pending_trials_and_their_start(tmp_path):
    study = run("random", 20)
    followed = Followed(keep(study, tmp_path / "s.db"))
    details = facts.details("x", followed)
    (pending,) = [trial.number for trial in study.trials if trial.state == "pending"]
    assert [worker["trial"] for worker in details["workers"]] == [pending]
    asked = next(event.at for event in load(followed.path).events if event.trial == pending)
    assert details["workers"][0]["since"] == asked
    assert details["running"] is False
    assert details["counts"]["finished"] + details["failed"] + 1 == 20


def test_enqueued_trials_occupy_no_worker_before_they_begin(tmp_path):
    searcher = raybo.Searcher({"x": raybo.Float(0, 1)}, "random", seed=0)
    events = [searcher.apply(searcher.known({"x": x}, Origin.ENQUEUED)) for x in (0.25, 0.5)]
    events.append(searcher.apply(Begun(0, attempt=1)))
    study = Study(Description("job", Goals(("value",), ("max",)), searcher.space, "random", 0), events)
    followed = Followed(keep(study, tmp_path / "s.db"))
    assert [worker["trial"] for worker in facts.details("x", followed)["workers"]] == [0]
    assert {row[0]: row[1] for row in facts.rows(followed, 0, 0)["rows"]} == {0: "pending", 1: "enqueued"}


def hostile_study():
    name = HOSTILE[:60].replace("\ud800", "")
    space = {name: raybo.Float(0, 1), "choice": raybo.Categorical([HOSTILE.replace("\ud800", ""), None, "=1+1"])}
    return failed_study(space, HOSTILE, name=HOSTILE, metric=HOSTILE[:50])


def commands_in(text):
    return [
        c for c in text if (ord(c) < 32 and c not in "\n\t") or 0x202A <= ord(c) <= 0x202E or 0xD800 <= ord(c) < 0xE000
    ]


def test_hostile_names_become_plain_bounded_text(tmp_path):
    path = keep(hostile_study(), tmp_path / "s.db")
    (tmp_path / "s.trials" / "1").mkdir(parents=True)
    (tmp_path / "s.trials" / "1" / "output.txt").write_bytes(HOSTILE.encode("utf-8", "surrogatepass") * 30)
    os.mkdir(os.fsencode(tmp_path) + b"/s.trials/1/\xff<b>")
    with open(os.fsencode(tmp_path) + b"/s.trials/1/\xff<b>/\x1b]0;x\x07", "w") as file:
        file.write("x")

    async def question(client):
        paths = ["/api/studies", *(address(path, rest) for rest in ("", "/rows", "/curve", "/trials/1", "/trials/0"))]
        for where in paths:
            answer = await client.get(where, headers=BEARER)
            assert answer.status == 200, where
            assert answer.content_type == "application/json"
            for text in texts(await answer.json()):
                assert commands_in(text) == [], where
                assert len(text) <= 20_001
        body = (await client.get(address(path, "/rows"), headers=BEARER)).content
        assert len(await body.read()) < 30_000
        page = await (await client.get(address(path, "/trials/1"), headers=BEARER)).json()
        assert len(page["files"]) == 2
        for file in page["files"]:
            got = await client.get(address(path, "/trials/1/file"), params={"key": file["key"]}, headers=BEARER)
            assert got.status == 200
            assert got.content_type == "application/octet-stream"
            assert got.headers["Content-Disposition"].startswith("attachment; filename=")
            assert got.headers["X-Content-Type-Options"] == "nosniff"

    asking(path)(question)


def texts(value):
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)
    elif isinstance(value, str):
        yield value


def test_a_trial_s_page_holds_all_of_it(tmp_path):
    study = run("random", 12, failing=0.4)
    followed = Followed(keep(study, tmp_path / "s.db"))
    failed = next(trial for trial in study.trials if trial.state == "failed")
    page = trial_page(followed, failed.number)
    assert page["reason"] == "ValueError: <i>diverged</i>"
    assert "Traceback" in page["traceback"]
    assert [event["kind"] for event in page["events"]] == ["asked", "failed"]
    assert dict(page["config"])["lr"] == failed.config["lr"]
    assert page["why"] == "a uniform random point"
    assert trial_page(followed, 12) is None
    assert trial_page(followed, -1) is None


def test_what_a_method_notes_may_be_infinite(tmp_path):
    study = run("random", 3, failing=0.0)
    asked = next(event for event in study.events if event.kind is Kind.ASKED)
    asked.data["tags"]["log_ei"] = -math.inf
    asked.data["tags"]["std"] = math.nan
    page = trial_page(Followed(keep(study, tmp_path / "s.db")), 0)
    assert {("log_ei", "-inf"), ("std", "nan")} <= {tuple(tag) for tag in page["tags"]}
    as_bytes(page)


def test_how_a_study_ended_is_told(tmp_path):
    study = run("random", 12)
    number = study.events[-1].number + 1
    ended = Ended(reason="no improvement in the last 5 trials that finished", number=number)
    path = keep(Study(study.description, [*study.events, ended]), tmp_path / "s.db")
    assert facts.details("s", Followed(path))["ended"] == "no improvement in the last 5 trials that finished"
    assert facts.details("t", Followed(keep(study, tmp_path / "t.db", 20)))["ended"] == ""


def test_curves_are_where_the_best_became_better(tmp_path):
    study = run("random", 25, mode="min")
    curve = facts.curve("x", Followed(keep(study, tmp_path / "s.db")))
    values = [step[2] for step in curve["steps"]]
    assert values == sorted(values, reverse=True)
    assert values[-1] == study.best.value
    assert [step[0] for step in curve["steps"]] == sorted(step[0] for step in curve["steps"])


def test_what_breaks_a_constraint_is_on_no_curve(tmp_path):
    searcher = raybo.Searcher({"x": raybo.Float(0, 1)}, "random", seed=0, constraints={"m": "<= 1"})
    events = []
    for number, (value, m) in enumerate([(0.1, 0.5), (0.9, 3.0), (0.4, 0.5)]):
        events.append(searcher.apply(searcher.propose(searcher.history)))
        events.append(searcher.apply(Told(number, value=value, metrics={"m": m})))
    description = Description("job", searcher.goals, searcher.space, "random", 0)
    curve = facts.curve("s", Followed(keep(Study(description, events), tmp_path / "s.db")))
    assert [(ended, value) for ended, _, value in curve["steps"]] == [(1, 0.1), (3, 0.4), (3, 0.4)]


def test_pruned_trials_count_among_those_that_have_ended(tmp_path):
    searcher = raybo.Searcher({"x": raybo.Float(0, 1)}, "random", seed=0, steps=3)
    events = [searcher.apply(Planned(trials=4))]
    for number, value in enumerate((0.1, None, None, 0.4)):
        events.append(searcher.apply(searcher.propose(searcher.history)))
        ended = Pruned(number, reason="no", rule="asha") if value is None else Told(number, value=value)
        events.append(searcher.apply(ended))
    events.append(searcher.apply(searcher.propose(searcher.history)))
    events.append(searcher.apply(Stopped(4, reason="by the user")))  # which counts for none
    description = Description("job", Goals(("value",), ("max",)), searcher.space, "random", 0)
    followed = Followed(keep(Study(description, events), tmp_path / "s.db"))
    overview = facts.overview("s", followed)
    assert (overview["done"], overview["planned"], overview["counts"]) == (
        4,
        4,
        {"finished": 2, "pruned": 2, "stopped": 1},
    )
    assert [step[0] for step in facts.curve("s", followed)["steps"]] == [1, 4, 4]


def test_a_directory_shows_present_and_later_journals(tmp_path):
    with pytest.raises(raybo.JournalError, match="no journal"):
        Shelf([tmp_path])
    with pytest.raises(raybo.JournalError, match="no such file"):
        Shelf([tmp_path / "none.db"])
    keep(run("random", 4), tmp_path / "b.db")
    (tmp_path / "text.db").write_text("no journal")
    shelf = Shelf([tmp_path])
    assert [f.path.name for f in shelf.all().values()] == ["b.db"]
    keep(run("random", 4), tmp_path / "a.db")
    assert [f.path.name for f in shelf.all().values()] == ["a.db", "b.db"]

    def meanwhile(path):  # a journal that another thread finds while one is looked for
        shelf._followed.setdefault(tmp_path / f"{len(shelf._followed)}.db", Followed(path))
        return identifier(path)

    second = identifier(tmp_path / "a.db")  # the second that it knows
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("raybo.view.journals.identifier", meanwhile)
        assert shelf.find(second).path.name == "a.db"
    shelf = Shelf([tmp_path])
    data = bytearray((tmp_path / "a.db").read_bytes())
    data[-2_000:] = b"\xff" * 2_000
    (tmp_path / "a.db").write_bytes(bytes(data))
    overviews = [facts.overview(name, followed) for name, followed in shelf.all().items()]
    assert "damaged" in overviews[0]["error"]
    assert overviews[1]["trials"] == 4


@pytest.mark.slow
def test_figures_are_redrawn_only_after_new_events(tmp_path):
    study = run("random", 20)
    path = keep(study, tmp_path / "s.db", 25)
    figures = Figures(Followed(path))

    def drawn():
        give_up = time.monotonic() + 120
        while (now := figures.latest()) is None or figures.is_drawing():
            assert time.monotonic() < give_up
            time.sleep(0.05)
        return figures.latest() if now is None else now

    first = drawn()
    assert first.last == 25
    assert not first.error
    study_now = load(path)
    best, expected = study_now.recommended, study_now.expected(study_now.recommended)
    told = [first.recommended[name] for name in ("number", "value", "expected", "expected_sd", "why")]
    assert told == [best.number, best.value, *expected, study_now.recommendation]
    assert [panel["key"] for panel in first.panels] == [panel.key for panel in report_figures(load(path))]
    assert figures.latest() is first
    assert not figures.is_drawing()
    figures._rests_until = float("inf")
    grown(path, study, 25, 30)
    assert figures.latest() is first  # it rests
    assert not figures.is_drawing()
    figures._rests_until = 0.0
    figures.latest()
    give_up = time.monotonic() + 120
    while figures.drawn is first and time.monotonic() < give_up:
        time.sleep(0.05)
    assert figures.drawn.last == 30


def test_colours_of_lines_lie_between_those_of_the_scale():
    assert _colour(1.0) == "rgb(22,54,95)"
    assert _colour(0.6) == "rgb(79,131,185)"
    assert _colour(0.8) == "rgb(50,92,140)"  # halfway between both


def test_ticks_lie_between_the_ends_of_their_axis():
    axis = _Axis(SimpleNamespace(values=[2.0, 4.0], range=(2.0, 6.0), label="x", tickvals=[2, 5], ticktext=["a", "b"]))
    assert axis.heights.tolist() == [0.0, 0.5]
    assert axis.ticks == [(0.0, "a"), (0.75, "b")]


@pytest.mark.parametrize(
    ("value", "shown"), [(None, None), (True, "True"), (3, 3), (0.5, 0.5), (float("inf"), "inf"), (2**60, str(2**60))]
)
def test_cells_of_a_table_are_numbers_or_text(value, shown):
    made = facts.plain(value)
    assert (made, type(made)) == (shown, type(shown))


def test_no_figure_needs_what_the_policy_forbids():
    for panel in report_figures(run("random", 25)):
        plain = plain_lines(panel)
        kinds = {trace.type for trace in plain.figure.data}
        assert kinds <= {"scatter", "bar", "heatmap", "contour"}, (panel.key, kinds)
        if panel.key == "parallel":
            assert plain.figure.data
            done = sum(trial.value is not None for trial in run("random", 25).trials)
            assert sum(sum(y is None for y in trace.y) for trace in plain.figure.data) == done
            json.loads(plain.figure.to_json())
        else:
            assert plain is panel


def test_lost_and_retried_trials_are_followed(tmp_path):
    study = run("random", 3)
    asked = study.events[1]
    events = [
        study.events[0],
        asked,
        Retried(0, reason="lost", attempt=2, number=3, at="2026-01-01T00:10:00+00:00"),
    ]
    followed = Followed(keep(Study(study.description, events), tmp_path / "s.db"))
    (worker,) = facts.details("x", followed)["workers"]
    assert (worker["attempt"], worker["since"]) == (2, "2026-01-01T00:10:00+00:00")


def test_reports_mark_enqueued_trials_running_in_older_journals(tmp_path):
    """Journals of before do not say that it has begun."""
    study = run("random", 3)
    asked = study.events[1]
    enqueued = replace(asked, tags={**asked.tags, "origin": "enqueued"})
    reported = Reported(0, step=1, value=0.5, attempt=1, number=3, at="2026-01-01T00:10:00+00:00")
    followed = Followed(keep(Study(study.description, [study.events[0], enqueued, reported]), tmp_path / "s.db"))
    (worker,) = facts.details("x", followed)["workers"]
    assert worker["since"] == "2026-01-01T00:10:00+00:00"


def test_trials_that_break_a_constraint_are_infeasible(tmp_path):
    searcher = raybo.Searcher(
        {"x": raybo.Float(0, 1)}, "random", constraints={"mem": "<= 1"}, storage=tmp_path / "s.db", seed=0
    )
    for memory in (0.5, 5.0):
        searcher.tell(searcher.ask(), {"value": 0.5, "mem": memory})
    searcher.close()
    followed = Followed(tmp_path / "s.db")
    assert [row[1] for row in facts.rows(followed, 0, 0)["rows"]] == ["finished", "infeasible"]
    assert trial_page(followed, 1)["state"] == "infeasible"


def test_results_that_come_while_a_study_is_watched_are_not_among_the_planned(tmp_path):
    journal = tmp_path / "s.db"
    with raybo.Searcher({"x": raybo.Float(0, 1)}, "random", storage=journal, seed=0) as searcher:
        searcher.plan(4)
        for _ in range(2):
            searcher.tell(searcher.ask(), 0.5)
    followed = Followed(journal)
    with followed.now() as study:
        assert (study.ran, study.ended) == (2, "")
    for x in (0.1, 0.2):
        enqueue(journal, {"x": x}, x)
    with followed.now() as study:
        assert (study.ran, study.ended) == (load(journal).ran, load(journal).ended) == (2, "")
