"""One writer per journal, whichever path leads to it and whatever becomes of the lock file; no other file is harmed."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from raybo.common.errors import JournalError, JournalInUse
from raybo.journal import Journal, in_use, lock, read
from raybo.record.description import Description
from raybo.record.events import Planned
from raybo.record.goals import Goals
from raybo.space import Float, Space

DESCRIPTION = Description(
    objective="job",
    goals=Goals(("loss",), ("min",)),
    space=Space({"x": Float(0, 1)}),
    method="random",
    seed=0,
)


def told(number):
    return Planned(trials=number, number=number)


@pytest.fixture
def path(tmp_path):
    (tmp_path / "kept").mkdir()
    return tmp_path / "kept" / "real.db"


@contextlib.contextmanager
def writing_elsewhere(path, name=""):
    """Another process, of this name, that writes the journal: `go` makes it commit one event more and close."""
    script = textwrap.dedent(
        f"""
        import pathlib, sys
        if {name!r}:
            pathlib.Path("/proc/self/comm").write_text({name!r})
        from tests.journal.test_lock import DESCRIPTION, Journal, told
        journal = Journal({str(path)!r}, DESCRIPTION)
        journal.append([told(1)])
        print("open", flush=True)
        sys.stdin.readline()
        journal.append([told(2)])
        journal.close()
        """
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "open\n"
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def go(process):
    process.stdin.write("go\n")
    process.stdin.flush()
    assert process.wait(60) == 0


def test_two_links_to_a_journal_are_one_journal(path, tmp_path):
    for name in ("a.db", "b.db"):
        (tmp_path / name).symlink_to(path)
    (tmp_path / "c.db").symlink_to("b.db")
    with writing_elsewhere(tmp_path / "a.db") as writer:
        assert sorted(file.name for file in tmp_path.iterdir()) == ["a.db", "b.db", "c.db", "kept"]
        for name in ("a.db", "b.db", "c.db", "kept/real.db"):
            assert in_use(tmp_path / name)
            with pytest.raises(JournalInUse, match=f"another study is writing it .process {writer.pid} on "):
                Journal(tmp_path / name, DESCRIPTION)
        assert [event.number for event in read(tmp_path / "b.db")[1]] == [1]
        go(writer)
    assert not in_use(tmp_path / "c.db")
    with contextlib.closing(Journal(tmp_path / "c.db", DESCRIPTION)) as journal:
        assert [event.number for event in journal.events] == [1, 2]
    assert os.listdir(path.parent) == ["real.db"]


def test_one_writer_remains_without_the_lock_file(path):
    with writing_elsewhere(path) as writer:
        for _ in range(2):
            lock.lock_file(path).unlink(missing_ok=True)
            with pytest.raises(JournalInUse, match="without its lock file"):
                Journal(path, DESCRIPTION)
            assert not lock.lock_file(path).exists()
        go(writer)
    assert [event.number for event in read(path)[1]] == [1, 2]
    with contextlib.closing(Journal(path, DESCRIPTION)):
        assert in_use(path)


def test_the_same_within_one_process(path):
    """Opening and closing the file once would take SQLite's locks from the writer."""
    with contextlib.closing(Journal(path, DESCRIPTION)) as journal:
        journal.append([told(1)])
        lock.lock_file(path).unlink()
        with pytest.raises(JournalInUse):
            Journal(path, DESCRIPTION)
        script = f"from raybo.journal import read; read({str(path)!r})"  # the last to leave removes the log, if it can
        subprocess.run([sys.executable, "-c", script], check=True)
        assert path.with_name("real.db-wal").exists()
        journal.append([told(2)])
    assert [event.number for event in read(path)[1]] == [1, 2]


def test_a_journal_with_two_names_is_refused(path, tmp_path):
    Journal(path, DESCRIPTION).close()
    os.link(path, tmp_path / "hard.db")
    for name in path, tmp_path / "hard.db":
        with pytest.raises(JournalError, match=r"another name \(a hard link\)"):
            Journal(name, DESCRIPTION)
        assert not lock.lock_file(name).exists()
    (tmp_path / "hard.db").unlink()
    Journal(path, DESCRIPTION).close()


def test_a_killed_writer_holds_nothing(path):
    with writing_elsewhere(path) as writer:
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        with contextlib.closing(Journal(path, DESCRIPTION)) as journal:
            journal.append([told(2)])
    assert [event.number for event in read(path)[1]] == [1, 2]


@pytest.mark.parametrize("how", ["link", "hard link", "text", "fifo", "directory"])
def test_other_files_at_the_lock_path_are_untouched(path, tmp_path, how):
    victim, beside = tmp_path / "victim", lock.lock_file(path)
    victim.write_text("precious")
    if how == "link":
        beside.symlink_to(victim)
    elif how == "hard link":
        os.link(victim, beside)
    elif how == "text":
        beside.write_text("precious")
    elif how == "fifo":
        os.mkfifo(beside)
    else:
        beside.mkdir()
    before = os.lstat(beside)
    with pytest.raises(JournalError, match="it cannot be locked") as caught:
        Journal(path, DESCRIPTION)
    assert "\n" not in str(caught.value)
    assert victim.read_text() == "precious"
    assert os.lstat(beside).st_ino == before.st_ino
    assert how != "text" or beside.read_text() == "precious"
    assert not path.exists()


def test_a_disk_still_full_gives_one_line(path):
    Journal(path, DESCRIPTION).close()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
    try:
        with pytest.raises(JournalError, match=r"it cannot be locked \(.*\); make room on the disk") as caught:
            Journal(path, DESCRIPTION)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert "\n" not in str(caught.value)
    assert not lock.lock_file(path).exists()
    Journal(path, DESCRIPTION).close()


@pytest.mark.parametrize("text", ["", "{", '{"driver": 1, "proc', '{"driver": 1, "process": 1, "host": "elsewhere"}'])
def test_a_truncated_lock_file_is_taken_over(path, text):
    lock.lock_file(path).write_text(text)
    Journal(path, DESCRIPTION).close()
    assert os.listdir(path.parent) == ["real.db"]


@pytest.mark.slow
def test_a_lock_that_says_nonsense_is_a_lock(path, monkeypatch):
    monkeypatch.setattr(lock, "WAIT_SECONDS", 0.1)
    for nonsense in ("{}", "}", "[1]", json.dumps({"driver": "x"}), "[" * 5_000):
        with writing_elsewhere(path):
            lock.lock_file(path).write_text(nonsense)
            with pytest.raises(JournalInUse, match="another study is writing it"):
                Journal(path, DESCRIPTION)
        lock.lock_file(path).unlink()
        Path(path).unlink()


@pytest.mark.skipif(not Path("/proc/self/comm").exists(), reason="the system does not name processes there")
def test_a_writer_of_any_name_holds_its_journal(path):
    cut = "x" * 14 + "\N{LATIN SMALL LETTER E WITH ACUTE}"  # the system keeps 15 bytes
    with writing_elsewhere(path, cut), pytest.raises(JournalInUse, match="another study is writing it"):
        Journal(path, DESCRIPTION)


@pytest.mark.parametrize(
    ("holder", "is_superseded"),
    [
        ({}, True),
        ({"host": "another"}, False),
        ({"driver": 1}, False),
        ({"process": 4242}, False),  # the driver writes itself
    ],
)
def test_a_replaced_study_process_holds_no_lock(holder, is_superseded):
    held_by = {"host": socket.gethostname(), "driver": 4242, "process": 4243, **holder}
    assert lock._is_superseded(held_by, 4242) is is_superseded
    assert not lock._is_superseded({**held_by, "driver": os.getpid()}, os.getpid())  # we are no study's process
