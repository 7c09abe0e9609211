"""What needs no Ray needs no POSIX either: it is tried without what Windows lacks, and without Ray."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from raybo.common import systems

ROOT = Path(__file__).parents[1]
JOB = """
import raybo

@raybo.objective(space={"x": raybo.Float(0, 1), "n": raybo.Integer(1, 9)}, metric="loss", mode="min", steps=3)
def job(config):
    for step in range(3):
        with raybo.saving() as directory:
            (directory / "step").write_text(str(step))
        yield (config["x"] - 0.3) ** 2 + 0.1 * (3 - step)
"""
LOOP = """
import raybo

with raybo.Searcher({"x": raybo.Float(0, 1)}, mode="min", seed=0, storage="loop.db") as searcher:
    for _ in range(6):
        trial = searcher.ask()
        searcher.tell(trial, (trial.config["x"] - 0.3) ** 2)
    searcher.enqueue({"x": 0.25})
    try:
        raybo.Searcher(storage="loop.db")
    except raybo.RayboError as error:
        assert "another study is writing it" in str(error), error
    else:
        raise AssertionError("two write one journal")
with raybo.Searcher(storage="loop.db") as searcher:
    assert searcher.ask().config == {"x": 0.25}
study = raybo.load("loop.db")
assert len(study.trials) == 7
assert study.best.value < 0.05
"""
TUNE = """
import raybo
from job import job

study = raybo.tune(job, trials=8, scheduler="median", seed=0, storage="study.db", in_process=True)
again = raybo.tune(job, trials=9, storage="study.db", in_process=True)
assert again.trials[:8] == study.trials
assert len(again.trials) == 9
assert raybo.tune(job, trials=3, in_process=True).best.value < 1
try:
    raybo.tune(job, trials=3)
except raybo.RayError as error:
    assert "install it, or run the trials one after the other in this process, --in-process" in str(error), error
else:
    raise AssertionError("it ran without Ray")
"""
COMMANDS = """
import os

from raybo.cli import cli

for command in (
    "tune job.py --trials 6 --seed 0 --in-process --quiet",
    "enqueue job.db n=7",
    "tune job.py --trials 8 --in-process",
    "show job.db",
    "show job.db --replay",
    "show job.db --trial 3",
    "export job.db --to csv -o job.csv",
    "plot job.db -o job.html",
    "studies .",
    "methods",
):
    try:
        cli.main(command.split(), standalone_mode=False)
    except SystemExit as end:
        assert not end.code, command
assert {"job.csv", "job.html"} <= set(os.listdir("."))
assert not [name for name in os.listdir(".") if name.endswith(("-lock", "-mark", "-wal"))]
"""
SEARCH = """
import raybo
from raybo.integrations.sklearn import RayboSearchCV
from sklearn.datasets import load_iris
from sklearn.svm import SVC

X, y = load_iris(return_X_y=True)
search = RayboSearchCV(SVC(), {"C": raybo.Float(0.01, 100, log=True)}, n_iter=6, cv=3, random_state=0).fit(X, y)
assert search.best_score_ > 0.9
"""
VIEW = """
import os
import re
import sys
import threading
import time
import urllib.request

import raybo
from raybo.cli import cli

searcher = raybo.Searcher({"x": raybo.Float(0, 1)}, seed=0, storage="job.db")
searcher.tell(searcher.ask(), 0.5)
searcher.close()

def look():
    while not (found := re.search(r"http://\\S+", said)):
        time.sleep(0.05)
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    page = browser.open(found[0]).read()
    studies = browser.open(found[0].partition("?")[0] + "api/studies").read()
    os._exit(0 if b"<html" in page and b"job.db" in studies else 1)

def write(text, before=sys.stdout.write):
    global said
    said += text
    return before(text)

said, sys.stdout.write = "", write
threading.Thread(target=look, daemon=True).start()
cli.main(["view", "job.db", "--no-browser"])
"""
SCRIPTS = {"loop": LOOP, "tune": TUNE, "commands": COMMANDS, "search": SEARCH, "view": VIEW}


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
def test_what_needs_no_ray_needs_no_posix(script, tmp_path):
    (tmp_path / "job.py").write_text(JOB)
    (tmp_path / "script.py").write_text(script)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "tests.without_posix", "script.py"]
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-4000:]


def test_a_byte_beyond_the_file_is_locked_on_windows(tmp_path, monkeypatch):
    calls = []

    class Windows:
        LK_NBLCK, LK_LOCK = 2, 1

        @staticmethod
        def locking(file, mode, size):
            calls.append((mode, os.lseek(file, 0, os.SEEK_CUR), size))

    monkeypatch.setattr(systems, "fcntl", None)
    monkeypatch.setitem(sys.modules, "msvcrt", Windows)
    with (tmp_path / "lock").open("w+b") as file:
        file.write(b"abc")
        file.flush()
        systems.lock(file.fileno())
        systems.lock(file.fileno(), wait=True)
        assert calls == [(2, 0x7FFF0000, 1), (1, 0x7FFF0000, 1)]
        assert os.lseek(file.fileno(), 0, os.SEEK_CUR) == 3


def test_places_are_read_and_written_without_pread(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "pread")
    monkeypatch.delattr(os, "pwrite")
    handle = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    try:
        assert systems.write_at(handle, b"abcdef", 0) == 6
        assert systems.write_at(handle, b"X", 2) == 1
        assert systems.read_at(handle, 3, 1) == b"bXd"
    finally:
        os.close(handle)


def test_an_open_file_is_removed_once_it_is_closed(tmp_path, monkeypatch):
    monkeypatch.setattr(systems, "IS_POSIX", False)
    path, seen = tmp_path / "file", []
    path.touch()
    systems.remove_open(path, lambda: seen.append(path.exists()))
    assert seen == [True]
    assert not path.exists()
    systems.remove_open(path, lambda: None)  # somebody was faster
