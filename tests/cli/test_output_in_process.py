"""Show where the output of in-process trials goes, and how a study ends if it cannot be written."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys

import pytest

import raybo
from raybo.cli.job_output import job_output
from raybo.record.states import State
from tests.command_line import raybo_command

JOB = """
import ctypes
import os
import sys
import time
import raybo

print("said by its file")

@raybo.objective(space={"x": raybo.Float(0, 1)}, metric="score", mode="max")
def job(config, *, sleep: float = 0.0, says: int = 1):
    if says:
        print("said by Python")
        print("said on standard error", file=sys.stderr)
        if hasattr(os, "fork"):
            ctypes.CDLL(None).puts(b"said by C")
        os.system("echo said by a child")
    time.sleep(sleep)
    return {"score": config["x"], "tokens": 100}
"""
TUNE = ("tune", "job.py", "--in-process", "--method", "random", "--seed", 0)
FULL = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    (tmp_path / "job.py").write_text(JOB)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("raybo_objective_")]:
        del sys.modules[name]


@pytest.fixture
def run(capfd, monkeypatch):
    """Run the command line in this process; return exit code and what reached the descriptors of stdout and stderr."""
    return raybo_command(capfd, monkeypatch)


def test_quiet_prints_the_result_only(run):
    code, out, err = run(*TUNE, "--trials", 2, "--quiet")
    assert (code, err) == (0, "")
    assert "said by its file" in out
    assert "recommended: trial 1" in out
    assert out.count("said") == 1


@pytest.mark.parametrize(
    "command",
    [
        (*TUNE, "--trials", 2, "--json"),
        ("compare", "job.py", "--in-process", "--methods", "random", "--trials", 2, "--repeats", 1, "--json"),
    ],
)
def test_json_is_all_that_is_printed_on_standard_output(run, command):
    code, out, err = run(*command)
    assert code == 0
    assert isinstance(json.loads(out), dict)
    for speaker in ("by Python", "by C", "by a child", "on standard error"):
        assert err.count(f"said {speaker}\n") == 2


def test_what_python_captures_is_kept_apart_too(capsys, monkeypatch):
    code, out, err = raybo_command(capsys, monkeypatch)(*TUNE, "--trials", 1, "--json")
    assert code == 0
    assert json.loads(out)
    assert "said by Python\n" in err


@pytest.mark.parametrize("how", [{"quiet": True, "as_json": False}, {"quiet": False, "as_json": True}])
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_output_is_as_before_after_errors(capfd, how, error):
    def fails():
        os.write(1, b"hidden")
        raise error

    before = sys.stdout, sys.stderr, os.fstat(1).st_ino, os.fstat(2).st_ino
    with pytest.raises(error), job_output(**how):
        fails()
    assert (sys.stdout, sys.stderr, os.fstat(1).st_ino, os.fstat(2).st_ino) == before
    assert capfd.readouterr().out == ""


def test_quiet_keeps_warnings_of_raybo(capfd):
    with job_output(quiet=True, as_json=False):
        os.write(2, b"hidden")
        logging.getLogger("raybo").warning("shown")
    assert capfd.readouterr().err == "shown\n"


def test_quiet_refuses_an_export_to_standard_output(run):
    code, _, err = run(*TUNE, "--quiet", "--log", "csv=-")
    assert code == 2
    assert "give --log a file" in err


def ended(command, stdout):
    """Run a command that ends for its standard output; return the lines that it says on the other stream."""
    words = [sys.executable, "-m", "raybo.cli", *map(str, command)]
    environment = {**os.environ, "PYTHONUNBUFFERED": ""}
    done = subprocess.run(words, stdout=stdout, stderr=subprocess.PIPE, text=True, env=environment, timeout=120)
    assert done.returncode == 1
    return done.stderr.splitlines()


@pytest.fixture
def unread():
    """The end of a pipe that nobody reads."""
    reader, writer = os.pipe()
    os.close(reader)
    yield writer
    os.close(writer)


@pytest.mark.parametrize("says", [0, 1])
def test_a_pipe_that_nobody_reads_fails_no_trial(unread, says):
    *_, last = ended([*TUNE, "--trials", 40, "--set", "sleep=0.3", "--set", f"says={says}"], unread)
    assert (
        last == "Stopped, as nobody reads the output any more. The study is in job.db; the same command continues it."
    )
    study = raybo.load("job.db")
    assert study.ended == "nobody reads the output any more"
    assert len(study.trials) < 10
    assert study.count(State.FAILED, State.LOST) == 0


@pytest.mark.slow
@FULL
def test_a_full_disk_is_told_in_a_line():
    with open("/dev/full", "w") as full:
        (line,) = ended([*TUNE, "--trials", 40, "--set", "sleep=0.3", "--set", "says=0"], full)
        assert line == (
            "Error: the output cannot be written (No space left on device). The study is in job.db; "
            "the same command continues it."
        )
        (line,) = ended([*TUNE, "--trials", 2, "--storage", "other.db", "--set", "says=0", "--quiet"], full)
        assert line == "Error: the output cannot be written (No space left on device)"
    study = raybo.load("job.db")
    assert study.ended == "the output cannot be written (No space left on device)"
    assert study.count(State.FAILED, State.LOST) == 0
    assert raybo.load("other.db").count(State.FINISHED) == 2


@pytest.mark.parametrize(
    ("trials", "budget", "shown"),
    [
        (
            21,
            ("50", "--cost", "tokens"),
            "2,100 of 50 tokens used, saved in job.db; continue with --budget 4200 --cost tokens",
        ),
        (
            1,
            ("150", "--cost", "tokens"),
            "200 of 150 tokens used, saved in job.db; continue with --budget 400 --cost tokens",
        ),
        (
            1,
            ("100", "--cost", "tokens"),
            "100 of 100 tokens used, saved in job.db; continue with --budget 200 --cost tokens",
        ),
    ],
)
def test_more_than_what_is_used_of_a_budget_continues(run, trials, budget, shown):
    run(*TUNE, "--set", "says=0", "--trials", trials, "--quiet")
    out = run(*TUNE, "--set", "says=0", "--budget", *budget)[1]
    assert shown in out


def test_time_and_money_used_are_shown_too():
    from raybo.cli.conclusion import _further, _used
    from raybo.record.budget import Budget

    assert _used(3_725.0, Budget(60.0)) == "1h2m5s of 1m used"
    assert _further(Budget(60.0), 3_725.0, 1) == "--budget 2h4m10s"
    assert _further(Budget(60.0), 60.2, 1) == "--budget 2m"
    assert _used(7.5, Budget(2.0, 3.0)) == "7.5 of 2 (at 3 an hour) used"
    assert _further(Budget(2.0, 3.0), 7.5, 1) == "--budget 15 --price 3"
