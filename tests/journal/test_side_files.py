"""Files of a journal are never overwritten, and those beside it may be anything."""

from __future__ import annotations

import os
import sqlite3

import pytest

import raybo
from raybo.common.errors import JournalError
from raybo.integrations.export import Recorder, exporter
from raybo.journal.notes import LONGEST, notes_path, read_notes, take_note
from raybo.reporting import draw
from raybo.study.study import load
from tests.reporting.studies import run
from tests.view.served import keep

COMPANIONS = ["job.db-ack", "job.db-lock", "job.db-wal", "job.db-shm", "job.notes.jsonl", "job.trials/0/x.csv"]


@pytest.fixture
def journal(tmp_path):
    return keep(run("random", 4), tmp_path / "job.db")


@pytest.mark.parametrize("name", [*COMPANIONS, "JOB.DB-ACK", "job.requests/a.json", "job.db-journal"])
def test_exports_refuse_files_of_a_journal(journal, name):
    destination = str(journal.parent / name)
    with pytest.raises(JournalError, match=r"(?i)it belongs to the journal job(\.db)?, which needs it"):
        exporter("csv", destination)
    assert not os.path.exists(destination)


def test_reports_refuse_the_directories_of_trials(journal):
    with pytest.raises(JournalError, match="it belongs to the journal"):
        draw(load(journal), journal.with_name("job.trials") / "0" / "page.html")


def test_links_to_files_of_a_journal_are_refused(journal):
    link = journal.with_name("out.csv")
    link.symlink_to(journal.with_name("job.db-ack"))
    with pytest.raises(JournalError, match="it belongs to the journal"):
        exporter("csv", str(link))


@pytest.mark.parametrize("name", ["new.db-wal", "new.notes.jsonl", "NEW.DB-LOCK"])
def test_logs_refuse_files_of_a_future_journal(tmp_path, name):
    with pytest.raises(JournalError, match="it belongs to the journal"):
        Recorder(tmp_path / "new.db", "csv", str(tmp_path / name))


@pytest.mark.parametrize("name", ["other.db-ack", "table.csv", "job.csv", "job.db.csv"])
def test_other_paths_are_written(journal, name):
    exporter("csv", str(journal.with_name(name)))(load(journal))
    assert journal.with_name(name).read_text().startswith("number,")


def test_a_note_needs_a_regular_file(journal):
    os.mkfifo(notes_path(journal))
    with pytest.raises(JournalError, match="the note cannot be written"):
        take_note(journal, "seen")
    assert read_notes(journal) == []


def test_forged_notes_are_shown_cut(journal):
    take_note(journal, "seen")
    line = notes_path(journal).read_text().replace("seen", "x" * 3_000_000)
    notes_path(journal).write_text(line)
    assert [len(note.text) for note in read_notes(journal)] == [LONGEST]


def test_a_journal_killed_while_created_has_no_study(tmp_path):
    path = tmp_path / "job.db"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.close()
    assert path.stat().st_size > 0
    with pytest.raises(JournalError, match="there is no study in it yet"):
        raybo.load(path)
