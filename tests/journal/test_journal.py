"""The journal: what is committed stays, one process writes, any may read, and nothing that is no journal is touched."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import fcntl
import json
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from concurrent import futures
from pathlib import Path

import pytest

import raybo.journal
from raybo.common.errors import JournalError, JournalInUse
from raybo.journal import Journal, exists, in_use, lock, read
from raybo.journal.schema import SCHEMA
from raybo.record.description import Description
from raybo.record.events import Asked, Failed, Planned, Retried, Told
from raybo.record.goals import Goals
from raybo.space import Categorical, Float, Integer, Space
from raybo.study.study import load

SPACE = Space({"lr": Float(1e-3, 1, log=True), "n": Integer(1, 9), "m": {"c": Categorical(["a", None])}})
DESCRIPTION = Description(
    objective="job",
    goals=Goals(("loss",), ("min",)),
    space=SPACE,
    method="gp-ucb",
    seed=2**62 + 1,
    settings={"folds": 5},
    options={"kappa": 2.0},
)
PAIR = [("f", "<= 1"), ("g", "<= 2")]
EVENTS = [
    Planned(trials=3, number=1),
    Asked(0, x=[0.1, 1 / 3, 0.25], values=[0.1, 3, 0], tags={"t": [None, 2**53 + 1]}, seen=1, number=2),
    Asked(1, x=[0.2, 0.5, 0.75], values=[0.2, 5, 1], tags={"t": 5e-324}, seen=2, number=3),
    Told(0, value=1.7976931348623157e308, metrics={"ünï": "nan"}, number=4),
    Retried(1, reason="its worker died", attempt=2, number=5),
    Failed(1, reason="gone", cause="lost", attempt=2, number=6),
]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "study.db"


@pytest.fixture
def written(path):
    """A whole, closed journal."""
    with contextlib.closing(Journal(path, DESCRIPTION)) as journal:
        journal.append(EVENTS)
    return path


def told(number):
    return Planned(trials=number, number=number)


def numbers(path):
    return [event.number for event in read(path)[1]]


def program(text, *arguments):
    """Another process that runs this text, with `Journal`, DESCRIPTION and `path` at hand."""
    prelude = f"""
import os, signal, sqlite3, sys, time
from pathlib import Path
sys.path[:0] = {sys.path!r}
from tests.journal.test_journal import DESCRIPTION, EVENTS, told
from raybo.journal import Journal, read
path = Path(sys.argv[1])
"""
    command = [sys.executable, "-c", prelude + text, *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@contextlib.contextmanager
def running(text, *arguments):
    """Run such a process within the block, which begins once it has printed something."""
    process = program(text, *arguments)
    try:
        process.said = process.stdout.readline().strip()
        yield process
    finally:
        process.kill()
        process.communicate()


# ---- what is committed


def test_everything_comes_back_as_it_was_written(path):
    with contextlib.closing(Journal(path, DESCRIPTION)) as journal:
        journal.append(EVENTS[:3])
        journal.append(EVENTS[3:])
        stamped = read(path)[1]
        assert [dataclasses.replace(event, at="") for event in stamped] == EVENTS
        assert all(event.at.endswith("+00:00") for event in stamped)
    assert read(path) == (DESCRIPTION, stamped)


def test_a_commit_waits_for_the_disk(path):
    """synchronous=FULL: in WAL mode anything less may lose the last commits in a power cut."""
    with contextlib.closing(Journal(path, DESCRIPTION)) as journal:
        assert journal._connection.execute("PRAGMA synchronous").fetchone() == (2,)
        assert journal._connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_closed_journal_is_one_file(written):
    assert os.listdir(written.parent) == ["study.db"]


def test_a_journal_is_continued(written):
    with contextlib.closing(Journal(written, DESCRIPTION)) as journal:
        journal.append([told(7)])
    assert numbers(written) == [1, 2, 3, 4, 5, 6, 7]


def test_a_batch_of_events_is_written_atomically(path):
    with contextlib.closing(Journal(path, DESCRIPTION)) as journal:
        journal.append(EVENTS[:2])
        with pytest.raises(JournalError, match="something else has written to it"):
            journal.append([told(3), told(4), told(2)])  # the last number is taken
        assert numbers(path) == [1, 2]
        with pytest.raises(TypeError):
            journal.append([told(3), Told(0, value=object(), number=4)])
        assert numbers(path) == [1, 2]
        journal.append([told(3)])
    assert numbers(path) == [1, 2, 3]


def test_what_was_appended_survives_sigkill(path):
    text = "journal = Journal(path, DESCRIPTION); journal.append(EVENTS); os.kill(os.getpid(), signal.SIGKILL)"
    process = program(text, path)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert numbers(path) == [1, 2, 3, 4, 5, 6]
    with contextlib.closing(Journal(path, DESCRIPTION)) as journal:  # the lock went with the process
        journal.append([told(7)])
    assert numbers(path) == [1, 2, 3, 4, 5, 6, 7]
    assert os.listdir(path.parent) == ["study.db"]


@pytest.mark.slow
def test_a_kill_in_the_middle_leaves_whole_transactions(path):
    """Writers of pairs are killed at arbitrary moments: the journal never holds half a pair, nor a hole."""
    text = """
journal = Journal(path, DESCRIPTION)
n = len(read(path)[1])
journal.append([told(n + 1), told(n + 2)])
print("begun", flush=True)  # not before: a busy machine may not come to it in the time that follows
while True:
    n += 2
    journal.append([told(n + 1), told(n + 2)])
"""
    seen = 0
    for i in range(4):
        with running(text, path) as process:
            time.sleep(0.02 * (i + 1))
            process.kill()
            process.wait()
        found = numbers(path)
        assert found == list(range(1, len(found) + 1))
        assert len(found) % 2 == 0
        assert len(found) > seen
        seen = len(found)


# ---- readers and the writer


def test_readers_see_committed_events_during_writing(path):
    with contextlib.closing(Journal(path, DESCRIPTION)) as journal:
        for n in range(1, 6):
            journal.append([told(n)])
            assert numbers(path) == list(range(1, n + 1))
            assert load(path).planned == n


def test_readers_and_writers_do_not_block_each_other(path):
    hold = """
connection = sqlite3.connect(path, isolation_level=None)
connection.execute("BEGIN")
print(connection.execute("SELECT count(*) FROM event").fetchone()[0], flush=True)
sys.stdin.readline()
print(connection.execute("SELECT count(*) FROM event").fetchone()[0], len(read(path)[1]), flush=True)
"""
    with contextlib.closing(Journal(path, DESCRIPTION)) as journal:
        journal.append(EVENTS[:1])
        with running(hold, path) as reader:  # in the middle of a read transaction
            assert reader.said == "1"
            for event in EVENTS[1:]:
                journal.append([event])
            out, _ = reader.communicate("go\n", timeout=100)
            assert out.split() == ["1", "6"]  # a snapshot of its own; a fresh look sees all


def test_reading_does_not_change_a_byte(written):
    before = written.read_bytes(), written.stat().st_mtime_ns, os.listdir(written.parent)
    read(written)
    load(written)
    assert (written.read_bytes(), written.stat().st_mtime_ns, os.listdir(written.parent)) == before


def test_a_killed_writers_journal_is_readable(path):
    """The write-ahead log still holds the events; a copy of both files on a read-only medium is enough."""
    with running("j = Journal(path, DESCRIPTION); j.append(EVENTS); print('done', flush=True); time.sleep(99)", path):
        copy = path.parent / "elsewhere"
        copy.mkdir()
        for suffix in ("", "-wal"):
            (copy / f"study.db{suffix}").write_bytes(Path(f"{path}{suffix}").read_bytes())
    assert numbers(copy / "study.db") == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("look", ["read(path)", "Journal.__init__"])
def test_readers_elsewhere_leave_the_writers_log_alone(path, look):
    """SQLite's last reader removes the log as it leaves, unless the writer holds its locks; and a process loses all
    its locks on a file whenever it closes that file once, by whatever handle. Lost would be all that follows.
    """
    again = """
try:
    Journal(path, DESCRIPTION)
except Exception:
    pass
"""
    text = f"""
journal = Journal(path, DESCRIPTION)
journal.append(EVENTS[:2])
{again if look == "Journal.__init__" else look}
print("ready", flush=True)
sys.stdin.readline()
journal.append(EVENTS[2:])
print("written", flush=True)
time.sleep(99)
"""
    with running(text, path) as writer:
        for _ in range(2):
            reader = program("print(len(read(path)[1]))", path)
            assert reader.communicate(timeout=100)[0].split() == ["2"]
        writer.stdin.write("go\n")
        writer.stdin.flush()
        assert writer.stdout.readline() == "written\n"
        assert numbers(path) == [1, 2, 3, 4, 5, 6]
        writer.kill()
        writer.wait()
    assert numbers(path) == [1, 2, 3, 4, 5, 6]


# ---- one writer


def test_a_second_writer_in_this_process_is_refused(path):
    with contextlib.closing(Journal(path, DESCRIPTION)) as journal:
        with pytest.raises(JournalInUse, match=f"another study is writing it \\(process {os.getpid()} on "):
            Journal(path, DESCRIPTION)
        journal.append(EVENTS)  # the first continues
    Journal(path, DESCRIPTION).close()
    assert numbers(path) == [1, 2, 3, 4, 5, 6]


def test_a_second_writer_elsewhere_is_refused(path):
    with running("journal = Journal(path, DESCRIPTION); print(os.getpid(), flush=True); time.sleep(99)", path) as first:
        with pytest.raises(JournalInUse) as caught:
            Journal(path, DESCRIPTION)
        assert str(caught.value).startswith(f"{path}: another study is writing it (process {first.said} on ")
        assert "\n" not in str(caught.value)
        first.kill()  # SIGKILL: the system gives the lock back
        first.wait()
        Journal(path, DESCRIPTION).close()


def test_a_lock_file_without_holder_is_ignored(written):
    lock = written.with_name("study.db-lock")
    lock.write_text('{"driver": 1, "process": 1, "host": "elsewhere"}')
    Journal(written, DESCRIPTION).close()
    assert not lock.exists()


def dead_process():
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def undead_process():
    """Killed, and not yet waited for."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    process.kill()
    while Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
        time.sleep(0.01)
    return process


def hold_lock(path, **holder):
    """Hold the journal's lock as another study would."""
    handle = open(path.with_name(path.name + "-lock"), "a+", encoding="utf-8")
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    if holder:
        json.dump(holder, handle)
        handle.flush()
    return handle


def test_a_dead_drivers_writer_is_waited_for(written, monkeypatch):
    import socket

    text = """
journal = Journal(path, DESCRIPTION, driver=int(sys.argv[2]))
print("open", flush=True)
sys.stdin.readline()
time.sleep(0.5)
journal.close()
"""
    with running(text, written, dead_process()) as writer:
        writer.stdin.write("go\n")
        writer.stdin.flush()
        Journal(written, DESCRIPTION).close()  # waits, and is not refused
    monkeypatch.setattr(lock, "WAIT_SECONDS", 0.3)
    undead = undead_process()
    for driver in (dead_process(), undead.pid):
        with hold_lock(written, driver=driver, process=1, host=socket.gethostname()):
            begun = time.monotonic()
            with pytest.raises(JournalInUse):
                Journal(written, DESCRIPTION)
            assert time.monotonic() - begun >= 0.3
        written.with_name("study.db-lock").unlink()
    undead.communicate()


def test_living_or_remote_drivers_are_not_waited_for(written, monkeypatch):
    import socket

    monkeypatch.setattr(lock, "WAIT_SECONDS", 1e9)  # would hang
    for holder in (
        {"driver": os.getpid(), "process": 1, "host": socket.gethostname()},
        {"driver": 1, "process": 1, "host": socket.gethostname()},
        {"driver": dead_process(), "process": 1, "host": "elsewhere"},
    ):
        with hold_lock(written, **holder), pytest.raises(JournalInUse, match=f"process {holder['driver']} on "):
            Journal(written, DESCRIPTION)
        written.with_name("study.db-lock").unlink()


def test_a_lock_without_owner_is_read_again(written, monkeypatch):
    monkeypatch.setattr(lock, "WAIT_SECONDS", 0.2)
    with hold_lock(written), pytest.raises(JournalInUse):
        Journal(written, DESCRIPTION)


def test_two_processes_may_begin_one_study_together(path):
    """Each either writes or is refused with one line; nobody finds half a journal."""
    text = """
from raybo.common.errors import JournalInUse
print("ready", flush=True)
sys.stdin.readline()
for _ in range(40):
    try:
        Journal(path, DESCRIPTION).close()
    except JournalInUse:
        pass
"""
    with running(text, path) as one, running(text, path) as other:
        for process in (one, other):
            process.stdin.write("go\n")
            process.stdin.flush()
        assert [one.wait(100), other.wait(100)] == [0, 0]
    assert read(path) == (DESCRIPTION, [])


def test_a_reader_waits_for_the_first_transaction(written):
    """SQLite writes a transaction page by page, and the first page already counts those that are still to come."""
    text = """
import sqlite3
connection = sqlite3.connect(path, isolation_level=None)
connection.execute("PRAGMA journal_mode=DELETE")
connection.execute("BEGIN EXCLUSIVE")
connection.execute("CREATE TABLE more (x)")
print("in the middle", flush=True)
sys.stdin.readline()
connection.execute("COMMIT")
"""
    with running(text, written) as writer, futures.ThreadPoolExecutor(1) as pool:
        whole = written.read_bytes()
        os.truncate(written, 4096)
        reading = pool.submit(read, written)
        assert not futures.wait([reading], 0.3).done
        with open(written, "r+b") as file:
            file.write(whole)
        writer.stdin.write("go\n")
        writer.stdin.flush()
        assert reading.result(100) == (DESCRIPTION, read(written)[1])


def test_a_study_begun_during_the_wait_is_found(path, monkeypatch):
    acquire = lock.acquire

    def overtaken(*arguments):
        monkeypatch.setattr(lock, "acquire", acquire)
        with contextlib.closing(Journal(path, DESCRIPTION)) as other:
            other.append([told(1)])
        return acquire(*arguments)

    monkeypatch.setattr(lock, "acquire", overtaken)
    with contextlib.closing(Journal(path, DESCRIPTION)) as journal:
        journal.append([told(2)])
    assert numbers(path) == [1, 2]
    path.unlink()
    monkeypatch.setattr(lock, "acquire", overtaken)
    with pytest.raises(JournalError, match=r"seed is .* in the journal and 1 now"):
        Journal(path, dataclasses.replace(DESCRIPTION, seed=1))
    assert numbers(path) == [1]
    assert os.listdir(path.parent) == ["study.db"]


def test_changed_order_of_names_is_a_difference():
    """Parameters, contexts, metrics and constraints: in another order, every known result would be another's."""
    one, other = (Space({name: Float(0, 1) for name in names}) for names in ("ab", "ba"))
    told = {
        "space": "the order of the parameters is a, b in the journal and b, a now",
        "context": "the order of the context's numbers is a, b in the journal and b, a now",
    }
    for name, text in told.items():
        before, now = (dataclasses.replace(DESCRIPTION, **{name: space}) for space in (one, other))
        assert before.differences(now) == [text]
        assert before.differences(before) == []
    for goals in (lambda pairs: Goals.of(dict.fromkeys(dict(pairs), "max")), lambda pairs: Goals.of(None, dict(pairs))):
        before, now = (dataclasses.replace(DESCRIPTION, goals=goals(pairs)) for pairs in (PAIR, PAIR[::-1]))
        assert before.differences(now)


def test_a_lock_on_a_removed_file_is_void(path, monkeypatch):
    lock_path, flock, removed = path.with_name(path.name + "-lock"), fcntl.flock, []

    def flock_in_vain(handle, operation):
        flock(handle, operation)
        if not removed:  # its last holder, who has let it go, takes it away before we look
            removed.append(lock_path.unlink())

    monkeypatch.setattr(fcntl, "flock", flock_in_vain)
    with contextlib.closing(Journal(path, DESCRIPTION)):
        assert removed
        assert in_use(path)
        with pytest.raises(JournalInUse):
            Journal(path, DESCRIPTION)


def test_writing_without_the_lock_is_refused(path):
    path.with_name("study.db-lock").mkdir()
    with pytest.raises(JournalError, match=r"study.db: it cannot be locked \(.*directory"):
        Journal(path, DESCRIPTION)
    assert not path.exists()


def test_a_file_system_without_locks_is_refused_immediately(path, monkeypatch):
    def has_none(handle, operation):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", has_none)
    began = time.monotonic()
    with pytest.raises(JournalError, match=r"study.db: it cannot be locked \(No locks available\); keep it on"):
        Journal(path, DESCRIPTION)
    assert time.monotonic() - began < lock.WAIT_SECONDS / 2
    assert list(path.parent.iterdir()) == []
    path.with_name("study.db-lock").touch()
    assert not in_use(path)


# ---- another study


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"objective": "other"}, "objective is 'job' in the journal and 'other' now"),
        ({"goals": Goals(("accuracy",), ("min",))}, "metric is 'loss' in the journal and 'accuracy' now"),
        ({"goals": Goals(("loss",), ("max",))}, "mode is 'min' in the journal and 'max' now"),
        ({"method": "random"}, "method is 'gp-ucb' in the journal and 'random' now"),
        ({"seed": 3}, f"seed is {2**62 + 1} in the journal and 3 now"),
        ({"settings": {"folds": 10}}, 'settings is {"folds": 5} in the journal and {"folds": 10} now'),
        ({"options": {}}, 'options is {"kappa": 2.0} in the journal and {} now'),
        (
            {"space": Space({"lr": Float(1e-3, 2, log=True), "n": Integer(1, 9), "k": Integer(0, 1)})},
            "lr is Float(low=0.001, high=1.0, log=True, step=None) in the journal and "
            "Float(low=0.001, high=2.0, log=True, step=None) now; "
            "m.c is Categorical(choices=['a', None]) in the journal and absent now; "
            "k is absent in the journal and Integer(low=0, high=1, log=False, step=1) now",
        ),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_another_studys_journal_is_refused_with_the_differences(written, change, words):
    before = written.read_bytes()
    with pytest.raises(JournalError) as caught:
        Journal(written, dataclasses.replace(DESCRIPTION, **change))
    message = str(caught.value)
    assert message.startswith(
        f"{written}: it is the journal of another study: {words}; continue it with the same settings, or"
    )
    assert "\n" not in message
    assert written.read_bytes() == before
    assert os.listdir(written.parent) == ["study.db"]


@pytest.mark.parametrize("end", ["journal.close()", "os.kill(os.getpid(), signal.SIGKILL)"])
def test_a_study_without_events_may_be_replaced(path, end):
    program(f"journal = Journal(path, DESCRIPTION); {end}", path).communicate()
    assert read(path) == (DESCRIPTION, [])
    other = dataclasses.replace(DESCRIPTION, goals=Goals(("loss",), ("max",)), seed=3)
    with contextlib.closing(Journal(path, other)) as journal:
        assert read(path) == (other, [])
        journal.append([told(1)])
    assert (read(path)[0], numbers(path)) == (other, [1])
    assert os.listdir(path.parent) == ["study.db"]
    with pytest.raises(JournalError, match="journal of another study"):
        Journal(path, DESCRIPTION)


def test_all_that_differs_is_told_at_once():
    other = dataclasses.replace(DESCRIPTION, goals=Goals(("loss",), ("max",)), seed=0)
    assert len(DESCRIPTION.differences(other)) == 2
    assert DESCRIPTION.differences(DESCRIPTION) == []


# ---- what is no journal


def refused(path, words):
    """Both ways in refuse it with one line that begins with its name, and its bytes stay as they were."""
    before = path.read_bytes() if path.is_file() else None
    listed = sorted(os.listdir(path.parent)) if path.parent.is_dir() else None
    for use in (lambda: read(path), lambda: load(path), lambda: Journal(path, DESCRIPTION)):
        with pytest.raises(JournalError) as caught:
            use()
        assert str(caught.value).startswith(f"{path}: ")
        assert words in str(caught.value), str(caught.value)
        assert "\n" not in str(caught.value)
    assert (path.read_bytes() if path.is_file() else None) == before
    assert (sorted(os.listdir(path.parent)) if path.parent.is_dir() else None) == listed


def test_text_is_no_journal(path):
    path.write_text("number,value\n1,2\n" * 100)
    refused(path, "it is not a raybo journal (not an SQLite file); give another file")
    path.with_suffix(".py").write_text("a job, whose journal was meant")
    refused(path.with_suffix(".py"), f"(not an SQLite file); did you mean '{path}'?")


def test_a_few_bytes_are_no_journal(path):
    path.write_bytes(b"SQLite format 3\0")
    refused(path, "not an SQLite file")


def test_a_directory_is_no_journal(path):
    path.mkdir()
    refused(path, "it is a directory; give a file")


@pytest.mark.timeout(20)
def test_a_pipe_is_refused_without_waiting(path):
    os.mkfifo(path)
    refused(path, "it is not a regular file; give a file")


def test_the_database_of_another_program_is_no_journal(path):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE event (number)")
        connection.execute("CREATE TABLE study (description)")
        connection.commit()
    refused(path, "it is an SQLite file of another program; give another file")


def change_header(path, offset, value):
    data = bytearray(path.read_bytes())
    data[offset : offset + 4] = value.to_bytes(4, "big")
    path.write_bytes(bytes(data))


def test_a_newer_versions_journal_is_left_alone(written):
    change_header(written, 60, SCHEMA + 1)
    refused(written, f"a newer raybo wrote it (schema {SCHEMA + 1}, this one reads {SCHEMA})")


def test_a_truncated_journal_is_refused_at_every_length(path):
    with contextlib.closing(Journal(path, DESCRIPTION)) as journal:
        journal.append([told(n) for n in range(1, 400)])
    whole = path.read_bytes()
    page = int.from_bytes(whole[16:18], "big")
    assert len(whole) > 6 * page
    lengths = {1, 15, 16, 99, 100, 101, 511, page - 1, len(whole) - 1, len(whole) - page, len(whole) - page - 1}
    lengths |= {page * n + k for n in range(1, len(whole) // page) for k in (0, 1)}
    for length in sorted(lengths):
        path.write_bytes(whole[:length])
        refused(path, "it is damaged (" if length >= 512 else "it is ")
    path.write_bytes(whole[:-1])
    refused(path, "it is damaged (truncated in the middle of a page); restore it from a copy")
    path.write_bytes(whole)
    assert len(read(path)[1]) == 399


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("UPDATE event SET data = substr(data, 1, 5)", "it is damaged ("),
        ("UPDATE event SET kind = 'forgotten'", "it is damaged (event 1: there is no kind 'forgotten')"),
        ("UPDATE study SET description = '{}'", "it is damaged ("),
        ("UPDATE study SET description = 'x'", "it is damaged ("),
        ("DELETE FROM study", "it is damaged ("),
        ("DROP TABLE study", "no such table: study"),
        ("DROP TABLE event", "no such table: event"),
    ],
)
def test_a_journal_that_somebody_has_edited_is_refused(written, statement, words):
    with contextlib.closing(sqlite3.connect(written)) as connection:
        connection.execute(statement)
        connection.commit()
    refused(written, words)


def test_a_journal_with_a_page_overwritten_is_refused(path):
    with contextlib.closing(Journal(path, DESCRIPTION)) as journal:
        journal.append([told(n) for n in range(1, 400)])
    data = bytearray(path.read_bytes())
    page = int.from_bytes(data[16:18], "big")
    for n in range(1, len(data) // page):
        broken = bytes(data[: n * page]) + b"\xff" * page + bytes(data[(n + 1) * page :])
        path.write_bytes(broken)
        refused(path, "it is damaged (")


def test_a_journal_with_swapped_pages_is_refused(path):
    """Every page makes sense by itself: only the order of the events shows the damage."""
    with contextlib.closing(Journal(path, DESCRIPTION)) as journal:
        journal.append([told(n) for n in range(1, 400)])
    data = path.read_bytes()
    page = int.from_bytes(data[16:18], "big")
    for n in range(4, len(data) // page):  # the first three hold the header, the study and the tree's root
        before = data[(n - 1) * page : n * page]
        path.write_bytes(data[: n * page] + before + data[(n + 1) * page :])
        refused(path, "it is damaged (")


def test_a_read_only_journal_is_read_not_continued(written):
    written.chmod(stat.S_IRUSR | stat.S_IRGRP)
    before = written.read_bytes()
    assert numbers(written) == [1, 2, 3, 4, 5, 6]
    with pytest.raises(JournalError, match=r"it is read-only \(-r--r-----\); make it writable or use another file"):
        Journal(written, DESCRIPTION)
    assert written.read_bytes() == before
    assert os.listdir(written.parent) == ["study.db"]


def test_what_is_not_there_cannot_be_read(path):
    with pytest.raises(JournalError, match=r"no such file; `raybo tune \.\.\. --storage .*study.db` makes one"):
        read(path)
    assert not path.exists()
    with pytest.raises(JournalError, match=r"--storage '.*my study.db'` makes one"):
        read(path.with_name("my study.db"))
    path.with_name("study.db").touch()
    with pytest.raises(JournalError, match=r"no such file; did you mean '.*study.db'\?"):
        read(path.with_name("studdy.db"))
    path.unlink()
    with pytest.raises(JournalError, match=r"the directory .* does not exist; make it first"):
        Journal(path.parent / "nowhere" / "study.db", DESCRIPTION)
    assert os.listdir(path.parent) == []


def test_an_empty_file_is_nothing_yet(path):
    path.touch()  # as mktemp leaves one
    assert not exists(path)
    Journal(path, DESCRIPTION).close()
    assert exists(path)
    assert read(path) == (DESCRIPTION, [])


def test_a_full_disk_leaves_no_partial_write(path):
    with contextlib.closing(Journal(path, DESCRIPTION)) as journal:
        journal.append([told(1)])
        (pages,) = journal._connection.execute("PRAGMA page_count").fetchone()
        journal._connection.execute(f"PRAGMA max_page_count={pages}")
        with pytest.raises(JournalError, match="full") as caught:
            journal.append([Told(0, value=0.5, traceback="x" * 10**6, number=2)])
        assert "\n" not in str(caught.value)
        assert numbers(path) == [1]
        journal._connection.execute("PRAGMA max_page_count=1000000")
        journal.append([told(2)])
    assert numbers(path) == [1, 2]


def test_reading_a_journal_never_unpickles():
    for file in Path(raybo.journal.__file__).parent.glob("*.py"):
        assert "pickle" not in file.read_text(encoding="utf-8").replace("unpickled", ""), file
