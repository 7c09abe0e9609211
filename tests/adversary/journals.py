"""Damaged and forged journals: each is read as it was, or refused in a line; none is read as something else."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
import tempfile
import traceback
import warnings
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any

import raybo
from raybo.common.errors import RayboError
from raybo.journal import Journal
from raybo.record.description import Description
from raybo.record.events import KINDS, Event, Kind, Planned
from raybo.record.goals import Goals
from tests.adversary import values
from tests.adversary.faults import Case, fingerprint, last_lines, run_command

SPACE = {
    "lr": raybo.Float(1e-5, 1.0, log=True),
    "layers": raybo.Integer(1, 8),
    "optimiser": raybo.Categorical(["sgd", {"name": "adam", "beta": raybo.Float(0.5, 1.0)}]),
}
TRIALS = 30
FLIPS = 8  # damaged copies per case
FORGERIES = 4
READERS = (
    ["show", "study.db"],
    ["show", "study.db", "--all"],
    ["show", "study.db", "--trial", "3"],
    ["show", "study.db", "--trial", "29"],
    ["export", "study.db", "--to", "csv", "-o", "out.csv"],
    ["export", "study.db", "--to", "json", "-o", "out.json"],
    ["enqueue", "study.db", "lr=0.1", "layers=2", "optimiser=sgd"],
    ["show", "study.db", "--replay"],
    ["export", "study.db", "--to", "optuna", "-o", "out.log"],
    ["plot", "study.db", "-o", "out.html"],
)


METHODS = (
    "ei",
    "uhe",
    "turbo",
    "exp3-random",
    "gp-ucb",
    "ars",
    "portfolio",
    "wang-defreitas",
    "random",
)  # with all kinds of tags


@lru_cache(maxsize=20)
def original(*, open_log: bool, method: str = "ei") -> dict[str, bytes]:
    """The files of a study with values, failures and a trial in flight.

    Args:
        open_log: what was committed last stands in the write-ahead log, as a killed writer leaves it.
    """
    with tempfile.TemporaryDirectory(prefix="rb-") as scratch:
        path = Path(scratch, "study.db")
        searcher = raybo.Searcher(SPACE, method, "min", 1)
        description = Description("job", Goals(("loss",), ("min",)), searcher.space, method, 1)
        journal = Journal(path, description)
        try:
            for batch in _batches(searcher):
                journal.append(batch)
            if open_log:
                return _files(path)
        finally:
            journal.close()
        return _files(path)


def _batches(searcher: raybo.Searcher) -> list[list[Event]]:
    batches = [[searcher.apply(Planned(trials=40))]]
    for number in range(TRIALS):
        batches.append([searcher.apply(searcher.propose(searcher.history))])
        if number == TRIALS - 1:
            break
        end = (
            (Kind.FAILED, {"reason": "ValueError: no"})
            if number % 9 == 4
            else (Kind.TOLD, {"value": 1.0 / (1 + number)})
        )
        batches.append([searcher.apply(KINDS[end[0]].of(number, {**end[1], "seconds": 0.5, "attempt": 1}))])
    return batches


def _files(path: Path) -> dict[str, bytes]:
    return {
        each.name: each.read_bytes() for each in path.parent.iterdir() if each.is_file() and "lock" not in each.name
    }


def lay(files: dict[str, bytes], directory: Path) -> Path:
    for name, content in files.items():
        (directory / name).write_bytes(content)
    return directory / "study.db"


OF_A_TRIAL = (
    *("number", "state", "value", "config", "context", "tags", "attempt", "reason", "seconds", "suggest_seconds"),
    *("suggest_processor_seconds", "details", "checkpoint", "values", "violations", "reports", "last_run"),
)


def reading(path: Path) -> str:
    """Everything that a user is shown of a study, as one text."""
    study = raybo.load(path)
    trials = [{name: getattr(trial, name) for name in OF_A_TRIAL} for trial in study.trials]
    events = [[e.kind.value, e.trial, dict(e.data), e.number] for e in study.events]
    return json.dumps([study.description.to_json(), trials, events], default=str, sort_keys=True)


def attack_damage(rng: Random, directory: Path) -> Case:
    """Bits of the file, or of its write-ahead log, are flipped, or its end is cut off."""
    open_log = rng.random() < 0.5
    files = original(open_log=open_log)
    name = "study.db-wal" if open_log and rng.random() < 0.8 else "study.db"
    whole = _reading_of(files, directory / "whole")
    case = Case(f"{name}, log open: {open_log}", tried=FLIPS)
    for i in range(FLIPS):
        content = bytearray(files[name])
        place = rng.randrange(len(content))
        if rng.random() < 0.15:
            done, content = f"cut at {place}", content[:place]
        else:
            bit = 1 << rng.randrange(8)
            content[place] ^= bit
            done = f"bit {bit} of byte {place} flipped"
        got = _reading_of({**files, name: bytes(content)}, directory / f"flip{i}")
        if isinstance(got, RayboError):
            if "\n" in str(got).strip():
                case.faults.append(f"{done}: refused in several lines")
        elif isinstance(got, BaseException):
            case.faults.append(f"{done}: {type(got).__name__}: {got}")
        elif got != whole:
            case.faults.append(f"{done}: read, and read as something else")
    return case


def _reading_of(files: dict[str, bytes], directory: Path) -> str | BaseException:
    directory.mkdir()
    path = lay(files, directory)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return reading(path)
    except Exception as error:  # judged by the caller
        return error
    finally:
        shutil.rmtree(directory)


def attack_forgery(rng: Random, directory: Path) -> Case:
    """Somebody writes JSON of his own into the tables: every command answers, or refuses in a line."""
    case = Case("forged", tried=0)
    for i in range(FORGERIES):
        where = directory / f"forged{i}"
        where.mkdir()
        method = rng.choice(METHODS)
        path = lay(original(open_log=False, method=method), where)
        what = f"{method}, {_forge(path, rng)}"
        for arguments in rng.sample(READERS, 3):
            case.tried += 1
            kept = fingerprint(where)
            _, wrong = run_command(arguments, where)
            case.faults += [f"{what}; raybo {' '.join(arguments)}: {each}" for each in wrong]
            if arguments[0] == "show" and fingerprint(where) != kept:
                case.faults.append(f"{what}; raybo {' '.join(arguments)}: the directory was changed")
        shutil.rmtree(where)
    return case


def _forge(path: Path, rng: Random) -> str:
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        if rng.random() < 0.8:  # without checksums, as in an older journal; they would be the first to fail
            connection.execute("UPDATE event SET checksum = NULL")
            connection.execute("UPDATE study SET closed_at = NULL")
        if rng.random() < 0.25:
            (text,) = connection.execute("SELECT description FROM study").fetchone()
            forged, what = _altered(json.loads(text), rng)
            connection.execute("UPDATE study SET description = ?", (forged,))
            return f"the description: {what}"
        number = rng.randrange(1, 2 * TRIALS)
        if rng.random() < 0.3:
            column, value = rng.choice(
                [
                    ("kind", "dreamt"),
                    ("kind", 7),
                    ("trial", 10**6),
                    ("trial", "x"),
                    ("trial", None),
                    ("trial", -1),
                    ("at", 5),
                    ("at", "\x1b[2J"),
                    ("data", None),
                    ("data", b"\xff"),
                    ("number", 10**9),
                    ("data", "[" * 5000),
                ]
            )
            with contextlib.suppress(sqlite3.Error):
                connection.execute(f"UPDATE event SET {column} = ? WHERE number = ?", (value, number))
            return f"event {number}: {column} = {value!r}"[:200]
        (text,) = connection.execute("SELECT data FROM event WHERE number = ?", (number,)).fetchone()
        forged, what = _altered(json.loads(text), rng)
        connection.execute("UPDATE event SET data = ? WHERE number = ?", (forged, number))
        return f"event {number}: {what}"


def _altered(content: Any, rng: Random) -> tuple[str, str]:
    """The JSON with one thing in it changed, removed or added."""
    places = list(_places(content))
    holder, key = rng.choice(places)
    pick = rng.random()
    if pick < 0.25:
        del holder[key]
        what = f"{key!r} removed"
    elif pick < 0.4 and isinstance(holder, dict):
        holder[values.text(rng).encode("utf-8", "replace").decode()] = 1
        what = "a key more"
    else:
        holder[key] = rng.choice(
            [
                None,
                True,
                -1,
                0,
                10**30,
                1e308,
                "",
                "\x1b[31m",
                "nan",
                [],
                {},
                [[]],
                {"x": 1},
                [None] * 5,
                "x" * 5_000,
                0.5,
            ]
        )
        what = f"{key!r} = {holder[key]!r}"[:120]
    text = json.dumps(content)
    if rng.random() < 0.05:
        text = text.replace("0.", "NaN, 0.", 1)
        what += ", and no JSON"
    return text, what


def _places(content: Any) -> Any:
    pairs = content.items() if isinstance(content, dict) else enumerate(content)
    for key, value in list(pairs):
        yield content, key
        if isinstance(value, (dict, list)):
            yield from _places(value)


def attack_two_writers(rng: Random, directory: Path) -> Case:
    """By whatever name a journal that is being written is opened, it is in use."""
    path = lay(original(open_log=False), directory)
    (directory / "linked.db").symlink_to(path)
    (directory / "below").mkdir()
    searcher = raybo.Searcher(SPACE, "ei", "min", 1)
    description = Description("job", Goals(("loss",), ("min",)), searcher.space, "ei", 1)
    names: list[Callable[[], Path]] = [
        lambda: path,
        lambda: directory / "linked.db",
        lambda: directory / "below" / ".." / "study.db",
    ]
    first, second = rng.choice(names)(), rng.choice([*names, lambda: directory / "hard.db"])()
    unlinked = rng.random() < 0.3
    case = Case(f"{first.name} and {second.name}" + (", the lock file is deleted" if unlinked else ""))
    holder = Journal(first, description)
    os.link(path, directory / "hard.db")  # with it from the start, the first would have been refused
    try:
        if unlinked:
            for lock in directory.glob("*-lock"):
                lock.unlink()
        try:
            Journal(second, description).close()
            case.faults.append("a second writer was let in")
        except RayboError:
            pass
        except Exception:  # the fault that is looked for
            case.faults.append(last_lines(traceback.format_exc()))
    finally:
        try:
            holder.close()
        except Exception:  # likewise
            case.faults.append(f"the first writer cannot close: {last_lines(traceback.format_exc())}")
    return case
