"""Output of trials is captured whole, kept beside the journal, shown in lines, and lost with no worker."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import Future

import pytest

import raybo
from raybo.engine.study import trial_output
from raybo.engine.study.trial_output import TrialOutput
from raybo.engine.trial import captured_output
from raybo.engine.trial.captured_output import FILE_BYTES, KEPT_BYTES, capture_output, read_unsent
from raybo.journal.side_files import trial_directory
from raybo.record.states import State

ME = ("study", 3, 1)


@pytest.fixture(autouse=True)
def another_worker():
    yield
    captured_output._capture.cache_clear()


def catch(directory, job, send=None, owner=ME):
    """The pieces of a job's output, or only those left at its end if it is given who receives the others."""
    pieces = []
    with capture_output(directory, owner, send or (lambda *piece: pieces.append(piece)), pieces):
        job()
    return pieces


# ---- in the worker


def test_all_output_of_a_trial_is_captured(tmp_path):
    code = """
import os, subprocess, sys, warnings
from pathlib import Path
from raybo.engine.trial.captured_output import capture_output
rest = []
print("before")
with capture_output(Path(sys.argv[1]), ("study", 3, 1), lambda *_: None, rest):
    print("from Python")
    warnings.warn("a warning", stacklevel=1)
    os.write(1, b"from C\\n")
    subprocess.run(["sh", "-c", "echo from a process; echo its errors >&2"], check=True)
print("after", rest)
"""
    done = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=True)
    before, after = done.stdout.splitlines()
    assert (before, done.stderr) == ("before", "")
    for said in ("from Python", "UserWarning: a warning", "from C", "from a process", "its errors"):
        assert f"{said}\\n" in after


@pytest.mark.skipif(os.name != "posix", reason="needs the C library by its name")
@pytest.mark.parametrize(
    "captured", ["capture_output(Path(here), ('s', 3, 1), lambda *_: None, rest)", "output_to(Path(here, 'out'))"]
)
def test_what_c_has_buffered_belongs_to_its_trial(tmp_path, captured):
    code = f"""
import ctypes, sys
from pathlib import Path
from raybo.engine.trial.captured_output import capture_output
from raybo.engine.trial.rank import output_to
here, rest, puts = sys.argv[1], [], ctypes.CDLL(None).puts
puts(b"before")
with {captured}:
    puts(b"said in the trial")
puts(b"after")
print(rest[0][1] if rest else Path(here, "out").read_bytes())
"""
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path], env=buffered, capture_output=True, text=True, check=True
    )
    assert sorted(done.stdout.splitlines()) == ["after", repr(b"said in the trial\n"), "before"]


def test_output_belongs_to_the_trial_that_printed_it(tmp_path):
    assert catch(tmp_path, lambda: os.write(1, b"one")) == [(0, b"one")]
    assert catch(tmp_path, lambda: None) == []
    assert catch(tmp_path, lambda: os.write(2, b"two")) == [(0, b"two")]


def test_descriptors_are_as_before_when_the_job_raises(tmp_path):
    before = os.fstat(1).st_ino, os.fstat(2).st_ino
    with pytest.raises(ZeroDivisionError):
        catch(tmp_path, lambda: 1 / 0)
    assert (os.fstat(1).st_ino, os.fstat(2).st_ino) == before


def test_a_long_trial_is_heard_while_it_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(captured_output, "SEND_SECONDS", 0.01)
    monkeypatch.setattr("ray.wait", lambda refs, timeout: (refs, []))
    heard = []

    def send(where, data):
        heard.append((where, data))
        return Future()

    def job():
        for i in range(20):
            os.write(1, b"step %d\n" % i)
            time.sleep(0.01)

    rest = catch(tmp_path, job, send)
    assert heard
    whole = b"".join(data for _, data in heard + rest)
    assert whole == b"".join(b"step %d\n" % i for i in range(20))
    assert [where for where, _ in heard + rest] == [
        sum(len(data) for _, data in heard[:i]) for i in range(len(heard + rest))
    ]


def test_end_of_a_flood_of_output_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(captured_output, "SEND_SECONDS", 600.0)
    ((_, data),) = catch(tmp_path, lambda: os.write(1, b"x" * 2 * KEPT_BYTES + b"end"))
    assert len(data) == KEPT_BYTES
    assert data.endswith(b"xend")


def test_file_of_a_flood_of_output_begins_anew(tmp_path, monkeypatch):
    monkeypatch.setattr(captured_output, "SEND_SECONDS", 0.01)
    give_up = time.monotonic() + 60.0

    def size():
        return sum(path.stat().st_size for path in tmp_path.iterdir())

    def job():
        for i in range(4):
            os.write(1, b"%05d " % i * (FILE_BYTES // 6 + 1))
            while size() > FILE_BYTES and time.monotonic() < give_up:
                time.sleep(0.01)
            assert size() < FILE_BYTES

    pieces = catch(tmp_path, job)
    assert all(len(data) <= KEPT_BYTES for _, data in pieces)
    assert b"00003 " in b"".join(data for _, data in pieces)


def test_what_a_dead_worker_had_written_is_found(tmp_path):
    code = (
        "import os, sys; from pathlib import Path; from raybo.engine.trial.captured_output import capture_output\n"
        "with capture_output(Path(sys.argv[1]), ('study', 3, 1), lambda *a: None, []):\n"
        "    print('the last words', flush=True); os.kill(os.getpid(), 9)\n"
    )
    assert subprocess.run([sys.executable, "-c", code, tmp_path]).returncode == -signal.SIGKILL
    assert read_unsent(tmp_path, ME, 0) == (0, b"the last words\n")
    assert read_unsent(tmp_path, ME, 4) == (4, b"last words\n")
    assert read_unsent(tmp_path, ("study", 3, 2), 0) == (0, b"")
    (tmp_path / "raybo-output-other").write_bytes(b"\xff nonsense")
    assert read_unsent(tmp_path, ("another", 3, 1), 7) == (7, b"")


def test_truncated_output_file_keeps_the_byte_count(tmp_path):
    header = f"study 3 1 {captured_output.HEADER_BYTES} 1000".ljust(captured_output.HEADER_BYTES - 1) + "\n"
    (tmp_path / f"{captured_output.PREFIX}worker").write_bytes(header.encode() + b"the last words")
    assert read_unsent(tmp_path, ME, 1_004) == (1_004, b"last words")
    assert read_unsent(tmp_path, ME, 990) == (1_000, b"the last words")  # ten bytes were in the file before


# ---- in the study


@pytest.fixture
def complaints():
    return []


@pytest.fixture
def study(tmp_path, complaints):
    return TrialOutput(tmp_path / "study.db", complaints.append)


def kept(tmp_path, trial):
    return (trial_directory(tmp_path / "study.db", trial) / "output.txt").read_bytes()


def test_attempts_append_output_and_late_chunks_are_ignored(study, tmp_path):
    study.begin(0, 1)
    study.receive(0, 1, (0, b"one\ntw"))
    study.receive(0, 1, (6, b"o\nrest"))
    study.end(0)
    study.begin(0, 2)
    study.receive(0, 1, (12, b"late"))
    study.receive(0, 2, (0, "grün\n".encode()))
    study.end(0)
    study.receive(0, 2, (6, b"later"))
    assert kept(tmp_path, 0).decode() == "one\ntwo\nrest\n--- attempt 2\ngrün\n"
    assert study.since(0) == ([(0, "one"), (0, "two"), (0, "rest"), (0, "grün")], 0, 4)
    assert study.since(3) == ([(0, "grün")], 0, 4)
    assert study.since(99) == study.since(0)  # for a watcher of an earlier process of the study


def test_received_output_counts_missed_bytes_and_joins_characters(study):
    study.begin(0, 1)
    first, second = "grü".encode()[:-1], "grü\n".encode()[-2:]
    study.receive(0, 1, (0, first))
    study.receive(0, 1, (3, second))
    assert study.received(0) == 5
    study.receive(0, 1, (1_000, b"much later\n"))  # only the last of a flood is sent
    assert study.received(0) == 1_011
    assert study.since(0)[0] == [(0, "grü"), (0, "much later")]


def test_a_first_attempt_begins_the_file_anew(study, tmp_path):
    for word in (b"old", b"new"):
        study.begin(5, 1)
        study.receive(5, 1, (0, word))
        study.end(5)
    assert kept(tmp_path, 5) == b"new"


@pytest.mark.parametrize("lines", [1_000, 100])  # a piece that is written at once, and one that is less than a buffer
def test_last_100_kB_and_last_lines_are_kept(study, tmp_path, lines):
    study.begin(1, 1)
    at = 0
    for i in range(60_000 // lines):
        data = b"".join(b"%05d %06d\n" % (i, j) for j in range(lines))
        study.receive(1, 1, (at, data))
        at += len(data)
        assert len(kept(tmp_path, 1)) <= 3 * KEPT_BYTES
    study.end(1)
    assert len(kept(tmp_path, 1)) == KEPT_BYTES
    assert kept(tmp_path, 1).endswith(b"%05d %06d\n" % (60_000 // lines - 1, lines - 1))
    told, left_out, count = study.since(100)
    assert (len(told), left_out, count) == (trial_output.LINES, 60_000 - 100 - trial_output.LINES, 60_000)


def test_line_is_shown_as_on_a_terminal(study):
    study.begin(0, 1)
    study.receive(0, 1, (0, b" 10 %\r 50 %\r100 %\n" + b"y" * 50_000))
    study.end(0)
    (_, bar), (_, long) = study.since(0)[0]
    assert bar == "100 %"
    assert set(long) == {"y"}
    assert len(long) == trial_output.LINE_CHARACTERS


def test_a_study_that_is_not_kept_keeps_nothing(tmp_path):
    study = TrialOutput(None, pytest.fail)
    study.begin(0, 1)
    study.receive(0, 1, (0, b"word\n"))
    study.end(0)
    assert study.since(0)[0] == [(0, "word")]
    assert list(tmp_path.iterdir()) == []


def test_unwritable_output_is_noted_once_and_links_refused(study, tmp_path, complaints):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    trial_directory(tmp_path / "study.db", 0).mkdir(parents=True)
    (trial_directory(tmp_path / "study.db", 0) / "output.txt").symlink_to(victim)
    study.begin(0, 1)
    study.receive(0, 1, (0, b"one"))
    study.receive(0, 1, (3, b"two"))
    assert len(complaints) == 1
    assert "cannot be kept" in complaints[0]
    assert victim.read_text() == "mine"


# ---- on Ray


@pytest.mark.ray
def test_study_receives_output_and_trials_know_themselves(ray_session, tmp_path):
    @raybo.objective(space={"x": raybo.Float(0, 1)}, metric="loss", mode="min")
    def job(config):
        me = raybo.current_trial()
        assert me.config == config
        if me.number == 0:
            return 0.0  # in silence
        print(f"trial {me.number}, attempt {me.attempt}")  # noqa: T201
        (me.directory / "model").write_text(f"{me.attempt} {me.seed}")
        if me.number == 1 and me.attempt == 1:
            print("the last words", flush=True)  # noqa: T201
            os.kill(os.getpid(), signal.SIGKILL)
        if me.number == 2:
            raise ValueError("broken")
        return 1.0

    path = tmp_path / "study.db"
    lines = []
    study = raybo.tune(
        job, trials=4, method="random", seed=0, workers=2, storage=path, watch=lambda s: lines.extend(s.printed)
    )
    assert study.trials[1].attempt == 2
    assert study.count(State.FINISHED) == 3
    assert study.directory(0) is None
    texts = {i: (study.directory(i) / "output.txt").read_text() for i in (1, 2, 3)}
    assert texts[1] == "trial 1, attempt 1\nthe last words\n\n--- attempt 2\ntrial 1, attempt 2\n"
    assert texts[2] == "trial 2, attempt 1\n"
    heard = {i: [text for number, text in lines if number == i] for i in range(4)}
    assert set(heard[1]) <= {"trial 1, attempt 1", "the last words", "trial 1, attempt 2"}
    assert heard[1][:2] == ["trial 1, attempt 1", "the last words"]
    seeds = [(study.directory(i) / "model").read_text().split() for i in (1, 2, 3)]
    assert [attempt for attempt, _ in seeds] == ["2", "1", "1"]
    assert len({seed for _, seed in seeds}) == 3
    assert raybo.current_trial() is None
