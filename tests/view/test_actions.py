"""The page changes a study by requests if it runs, and in its journal if it does not."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time

import pytest

import raybo
from raybo.common.errors import JournalError
from raybo.journal import Journal, in_use, requests
from raybo.journal.notes import notes_path, read_notes, take_note
from raybo.record.origin import Origin
from raybo.study import enqueueing
from raybo.study.study import load
from raybo.view import actions
from raybo.view.followed import Followed
from tests.reporting.studies import run
from tests.view.served import BEARER, address, asking, keep

SPACE = {
    "model": raybo.Categorical(
        [{"kind": "svm", "C": raybo.Float(0.1, 10, log=True)}, {"kind": "knn", "k": raybo.Integer(1, 9)}]
    ),
    "x": raybo.Float(0, 1),
}


@pytest.fixture
def journal(tmp_path):
    return keep(run("random", 6, space=SPACE), tmp_path / "s.db")


@contextlib.contextmanager
def written(path):
    """The journal while another study writes it."""
    opened = Journal(path)
    opened.begin(opened.description)
    try:
        yield
    finally:
        opened.close()


def test_a_stopped_study_enqueues_at_once(journal):
    assert actions.possible(journal, is_running=False) == {
        "stop": False, "enqueue": True, "stopping": False, "waiting": 0,
    }  # fmt: skip
    assert "next run" in actions.enqueue(Followed(journal), [1, None, 3, 0.25])
    trial = load(journal).trials[-1]
    assert trial.origin is Origin.ENQUEUED
    assert trial.config == {"model": {"kind": "knn", "k": 3}, "x": 0.25}
    with pytest.raises(raybo.TrialError, match="enqueued before, as trial 6"):
        actions.enqueue(Followed(journal), [1, None, 3, 0.25])


def test_enqueueing_keeps_readers_off_the_journal(journal, monkeypatch):
    """Its writer takes SQLite's locks from every reader of this process: the log would go from under them."""
    followed, enqueue, readers = Followed(journal), enqueueing.enqueue_row, []

    def enqueued(*arguments):
        readers.append(followed._lock.acquire(blocking=False))
        return enqueue(*arguments)

    monkeypatch.setattr(enqueueing, "enqueue_row", enqueued)
    actions.enqueue(followed, [1, None, 3, 0.25])
    assert readers == [False]


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ([1, None, 3], "4 values are needed"),
        ([1, None, 3, 1.5], "lies outside"),
        ([1, None, 3, "0.5"], "a number is needed"),
        ([1, None, 3, True], "a number is needed"),
        ([1, None, 2.5, 0.5], "whole number"),
        ([2, None, 3, 0.5], "position of a choice"),
        ([True, None, 3, 0.5], "position of a choice"),
        ([0, 1.0, 3, 0.5], "no meaning"),
        ([None, None, None, None], "at least one parameter"),
        ([1, None, 3, float("nan")], "a number is needed"),
    ],
)
def test_values_outside_the_space_change_nothing(journal, values, why):
    before = journal.read_bytes()
    with pytest.raises(raybo.SpaceError, match=why):
        actions.enqueue(Followed(journal), values)
    assert journal.read_bytes() == before


def test_requests_need_a_study_that_listens(journal):
    followed = Followed(journal)
    with pytest.raises(raybo.JournalError, match="not running"):
        actions.stop(followed)
    with written(journal):
        assert actions.possible(journal, is_running=True)["enqueue"] is False
        for change in (actions.stop, lambda f: actions.enqueue(f, [1, None, 3, 0.5])):
            with pytest.raises(raybo.JournalError, match="takes no requests"):
                change(followed)
        assert requests.listen(journal)
        assert actions.possible(journal, is_running=True)["stop"] is True
        assert "worker is free" in actions.enqueue(followed, [1, None, 3, 0.5])
        with pytest.raises(raybo.TrialError, match="is already queued"):
            actions.enqueue(followed, [1, None, 3, 0.5])
        actions.stop(followed)
        asked = requests.waiting(journal)
        assert [request.values for request in asked] == [[1, None, 3, 0.5], None]
        possible = actions.possible(journal, is_running=True)
        assert (possible["stopping"], possible["waiting"]) == (True, 1)
    requests.stop_listening(journal)
    assert len(requests.waiting(journal)) == 2  # what waits stays for the next run
    requests.forget_stops(journal)
    (left,) = requests.waiting(journal)
    left.done()
    requests.stop_listening(journal)
    assert not requests.is_listening(journal)


def test_what_is_no_request_is_passed_over(journal):
    requests.listen(journal)
    place = requests.directory(journal)
    for name, content in (
        ("1.json", "{"), ("2.json", "[]"), ("3.json", '{"ask": "enqueue"}'), ("4.json", '{"ask": "run", "values": []}'),
        ("5.json", '{"ask": "enqueue", "values": "text"}'), ("6.json", "[" * 100_000), ("7.new", '{"ask": "stop"}'),
    ):  # fmt: skip
        (place / name).write_text(content)
    (place / "8.json").symlink_to(__file__)
    os.mkfifo(place / "9.json")
    (place / "a.json").mkdir()
    assert requests.waiting(journal) == []
    requests.ask(journal)
    assert len(requests.waiting(journal)) == 1


def test_notes_are_kept_beside_the_journal(journal, capsys):
    followed = Followed(journal)
    actions.note(followed, "  looks good\n", None)
    actions.note(followed, "odd \x1b[31m\ud800 one", 3)
    assert [(note.trial, note.text) for note in read_notes(journal)] == [
        (None, "looks good"),
        (3, "odd \x1b[31m\\ud800 one"),
    ]
    assert [note["text"] for note in actions.notes(journal)] == ["looks good", "odd \\x1b[31m\\ud800 one"]
    assert [note["trial"] for note in actions.notes(journal, 3)] == [3]
    for text, trial in (
        ("", None),
        (" ", None),
        ("x" * 5_000, None),
        (3, None),
        ("x", 6),
        ("x", -1),
        ("x", True),
        ("x", "1"),
    ):
        with pytest.raises(raybo.RayboError):
            actions.note(followed, text, trial)
    with open(notes_path(journal), "a", encoding="utf-8") as file:
        file.write('not json\n{"at": "never", "trial": null, "text": "x"}\n{"a": 1}\n[]\n"x"\n')
    assert len(read_notes(journal)) == 2


def test_a_truncated_note_spares_the_other_notes(journal, monkeypatch):
    take_note(journal, "one")
    write = os.write
    monkeypatch.setattr(os, "write", lambda handle, data: write(handle, data[:20]))
    with pytest.raises(JournalError, match=r"the note cannot be written \(No space left on device\)"):
        take_note(journal, "two")
    monkeypatch.undo()
    take_note(journal, "three")
    assert [note.text for note in read_notes(journal)] == ["one", "three"]


@pytest.mark.slow
def test_notes_are_shown_on_a_terminal(journal):
    take_note(journal, "a \x1b]0;x note", 3)
    take_note(journal, "of all")

    def show(*more):
        command = [sys.executable, "-m", "raybo.cli", "show", str(journal), *more]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    shown = show()
    assert "trial 3: a \\x1b]0;x note" in shown
    assert "of all" in shown
    one = show("--trial", "3")
    assert "a \\x1b]0;x note" in one
    assert "of all" not in one


def test_notes_are_never_written_through_a_link(journal, tmp_path):
    (tmp_path / "other.txt").write_text("precious")
    notes_path(journal).symlink_to(tmp_path / "other.txt")
    with pytest.raises(raybo.JournalError, match="cannot be written"):
        take_note(journal, "x")
    assert read_notes(journal) == []
    assert (tmp_path / "other.txt").read_text() == "precious"


def test_the_page_asks_by_post(journal):
    async def question(client):
        got = await client.post(address(journal, "/enqueue"), json={"values": [0, 1.0, None, 0.5]}, headers=BEARER)
        assert "next run" in (await got.json())["told"]
        got = await client.post(address(journal, "/enqueue"), json={"values": [0, 99.0, None, 0.5]}, headers=BEARER)
        assert got.status == 409
        assert "lies outside" in (await got.json())["error"]
        got = await client.post(address(journal, "/stop"), json={}, headers=BEARER)
        assert (got.status, "not running" in (await got.json())["error"]) == (409, True)
        got = await client.post(address(journal, "/notes"), json={"text": "hm", "trial": 2}, headers=BEARER)
        assert got.status == 200
        details = await (await client.get(address(journal, "/trials/2"), headers=BEARER)).json()
        assert [note["text"] for note in details["notes"]] == ["hm"]
        for path, body in (("/enqueue", {}), ("/enqueue", {"values": {}}), ("/enqueue", {"values": 3})):
            assert (await client.post(address(journal, path), json=body, headers=BEARER)).status == 400

    asking(journal)(question)


JOB = """
import time
import raybo

@raybo.objective(space={"x": raybo.Float(0, 1)}, metric="y", mode="min")
def job(config):
    time.sleep(0.5)
    return config["x"]
"""


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.timeout(1200)
def test_a_real_study_obeys_enqueue_and_stop(tmp_path):
    (tmp_path / "job.py").write_text(JOB)
    path = tmp_path / "job.db"
    command = [sys.executable, "-m", "raybo.cli", "tune", "job.py", "--trials", "5000", "--workers", "1", "-q"]
    tune = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        wait_for(lambda: path.exists() and in_use(path) and requests.is_listening(path) and len(load(path).trials) > 2)
        followed = Followed(path)
        actions.enqueue(followed, [0.125])
        wait_for(lambda: any(t.origin is Origin.ENQUEUED and t.value == 0.125 for t in load(path).trials))
        with pytest.raises(raybo.TrialError, match="enqueued before"):
            actions.enqueue(followed, [0.125])
        actions.stop(followed)
        output, _ = tune.communicate(timeout=400)
    finally:
        if tune.poll() is None:
            tune.kill()
            tune.wait()
    assert tune.returncode == 0, output
    study = load(path)
    assert not in_use(path)
    assert not requests.is_listening(path)
    assert 2 < len(study.trials) < 5_000
    assert {str(t.state) for t in study.trials} <= {"finished", "stopped"}
    assert [t.reason for t in study.trials if t.reason] == ["stopped by the user"] * study.count(
        raybo.record.states.State.STOPPED
    )
    from raybo.study.replay import replay

    assert not any(again.differs for again in replay(study))  # proposals after it knew of it


def wait_for(holds, seconds=400):
    give_up = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < give_up
        time.sleep(0.2)
