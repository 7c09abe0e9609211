"""A study under signals, from outside: the command that runs it, its processes, what it has written and left."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from raybo import journal
from raybo.common.errors import JournalError
from raybo.record.events import Event
from raybo.record.states import COUNTED
from tests.faults import given
from tests.faults.promises import Process
from tests.faults.running import HERE, MARK, _as_in_a_terminal, _kill, _lives, read_on

GONE_SECONDS = 30.0  # in which everything of a command's Ray is gone, on a machine that is loaded many times over
ENDLESS = 100_000  # trials
LINES = (
    r"the local Ray has died \(its (raylet|gcs_server) ended with .*\); starting another one, and continuing .*",
    r"Error: (the local Ray|no local Ray|Ray on this machine) .*",
    r"Stopped\. The study is in .*; the same command continues it\.",
)
# that Ray itself prints if it is killed while this process connects to it, which nothing can keep it from
OF_RAY = re.compile(r"\[\d{4}-.* [WE] \d+ \d+\] \w+\.(cc|h):\d+: Failed to .*")
# a command that is just connecting to the object store of a raylet that is killed is aborted by Ray, with its stack
ABORTED = re.compile(
    r"\[\d{4}-.* C \d+ \d+\] plasma_store_provider\.cc:\d+: .*"
    r"|\*\*\* StackTrace Information \*\*\*|\S+\(\S*\) \[0x[0-9a-f]+\].*"
)


@dataclass
class Left:
    """A command that has ended, whose processes and directory have to go."""

    mark: str
    command: int
    ended: float  # by the clock of `given`


class Session:
    """A study, given as a command again and again.

    Attributes:
        command: the process that runs it; None before the first.
        lines: what its trials have written.
        events: what its journal held at the last look.
        left: commands that have ended.
        rays_lost: how many Rays have died under the command that runs.
    """

    def __init__(self, directory: Path, seed: int, source: Path = HERE) -> None:
        self.directory, self.seed, self.source = directory, seed, source
        self.journal, self.log, self.errors = directory / "job.db", directory / "log", directory / "errors"
        self.command: subprocess.Popen[Any] | None = None
        self.events: list[Event] = []
        self._tail = journal.Tail(self.journal)
        self.lines: list[dict[str, Any]] = []
        self.left: list[Left] = []
        self.viewer: subprocess.Popen[Any] | None = None
        self.rays_lost = 0
        self._mark = ""
        self._stamp: list[tuple[int, int]] = []
        self._read_to = self._errors_from = 0

    # ---- the command

    def give(self, trials: int = ENDLESS) -> None:
        """Give the command, for so many trials in all."""
        self._mark = uuid.uuid4().hex
        self.said_before()
        self.rays_lost = 0
        arguments = ["tests/faults/job.py:signalled", "--storage", str(self.journal), "--trials", str(trials)]
        arguments += ["--method", "random", "--seed", str(self.seed), "--workers", "2", "--retries", "1000"]
        arguments += ["--set", f"log={self.log}"]
        environment = {**os.environ, MARK: self._mark, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(self.source)}
        with self.errors.open("ab") as errors:
            self.command = subprocess.Popen(
                [sys.executable, "-m", "raybo.cli", "tune", *arguments],
                env=environment,
                cwd=self.source,
                start_new_session=True,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                preexec_fn=_as_in_a_terminal,
            )

    def is_running(self) -> bool:
        """Return True if the command runs."""
        return self.command is not None and self.command.poll() is None

    def has_ended(self) -> None:
        """Note that the command has ended: what it has started has to go."""
        assert self.command is not None
        self.command.wait()
        self.left.append(Left(self._mark, self.command.pid, given.now()))

    def end(self) -> None:
        """End the command, at once, if it runs."""
        if self.command is not None and self.command.poll() is None:
            self.command.kill()
            self.has_ended()

    def strange(self) -> list[str]:
        """Return the lines that the command has written to standard error, and that it should not have."""
        return [line for line in self.said() if not any(re.fullmatch(known, line) for known in LINES)]

    def said(self) -> list[str]:
        """Return the lines that the command has written to standard error."""
        text = self.errors.read_bytes()[self._errors_from :].decode(errors="replace") if self.errors.exists() else ""
        return [line for line in text.splitlines() if line.strip()]

    def said_before(self) -> None:
        """Mark the command's output so far as read; from now on, `said` returns what is new."""
        self._errors_from = self.errors.stat().st_size if self.errors.exists() else 0

    # ---- what it has written

    def look(self) -> list[Event]:
        """Read what has been written since the last look, and return the events."""
        stamp = []
        for path in (self.journal, self.journal.with_name(f"{self.journal.name}-wal")):
            with contextlib.suppress(FileNotFoundError):
                stamp.append((path.stat().st_mtime_ns, path.stat().st_size))
        if stamp != self._stamp and journal.exists(self.journal):
            self._stamp = stamp
            with contextlib.suppress(JournalError):  # just being created
                self.events = read_on(self._tail, self.events)
        if self.log.exists():
            with self.log.open("rb") as log:
                log.seek(self._read_to)
                new = log.read()
            whole = new[: new.rfind(b"\n") + 1]
            self._read_to += len(whole)
            self.lines += [json.loads(line) for line in whole.splitlines()]
        return self.events

    def ended(self) -> int:
        """Return how many trials have ended with a result or a failure."""
        return sum(event.state in COUNTED for event in self.look())

    # ---- its processes

    def process(self, of: Process, which: float) -> int | None:
        """Return a process of the study; None if there is none now."""
        assert self.command is not None
        if of is Process.COMMAND:
            return self.command.pid if self.command.poll() is None else None
        if of is Process.VIEWER:
            return self.viewer.pid if self.viewer is not None and self.viewer.poll() is None else None
        if of is Process.STUDY:
            return self.study()
        if of is Process.WORKER:
            self.look()
            open_ = {line["pid"]: line["what"] == "begin" for line in self.lines[-50:]}
            found = [pid for pid, is_open in open_.items() if is_open and _lives(pid)]
        else:
            raylets = list(_children(self.command.pid, "raylet"))
            found = raylets if of is Process.RAYLET else list(_children(self.command.pid, "gcs_server"))
            if of is Process.AGENT:
                found = [pid for raylet in raylets for pid in _children(raylet) if _is_agent(pid)]
        return found[int(which * len(found))] if found else None

    def study(self) -> int | None:
        """Return the process that writes the journal, if it is an actor."""
        with contextlib.suppress(OSError, ValueError):
            pid = json.loads(Path(f"{self.journal}-lock").read_text(encoding="utf-8"))["process"]
            if Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"ray::") and _lives(pid):
                return int(pid)
        return None

    def order(self, moment: str, process: int, how: int, delay: float) -> None:
        """Order the next trial that comes to a moment to send a signal; process 0 is its own."""
        written = Path(f"{self.log}-order")
        written.write_text(json.dumps({"process": process, "signal": int(how), "delay": delay}))
        os.rename(written, f"{self.log}-{moment}")

    def taken(self, moment: str) -> dict[str, Any] | None:
        """Return what was done by an order, once it is."""
        taken = Path(f"{self.log}-{moment}-taken")
        if not taken.exists():
            return None
        found: dict[str, Any] = json.loads(taken.read_text())
        taken.unlink()
        return found

    def withdraw(self, moment: str) -> None:
        """Withdraw an order that nobody has carried out."""
        Path(f"{self.log}-{moment}").unlink(missing_ok=True)

    def view(self) -> None:
        """Begin to view the study."""
        if self.viewer is None or self.viewer.poll() is not None:
            with (self.directory / "viewer").open("wb") as output:  # what an earlier one said is none of its own
                self.viewer = subprocess.Popen(
                    [sys.executable, "-m", "raybo.cli", "view", str(self.journal), "--no-browser", "--port", "0"],
                    env={**os.environ, "PYTHONPATH": str(self.source)},
                    cwd=self.source,
                    start_new_session=True,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    preexec_fn=_as_in_a_terminal,
                )

    # ---- the end

    def not_gone(self) -> Iterator[str]:
        """Yield what is left of commands that ended so long ago that nothing should be; it is not looked for again."""
        for left in list(self.left):
            there = list(_of_mark(left.mark)) + [str(path) for path in Path("/tmp").glob(f"raybo-{left.command}-*")]
            late = given.now() > left.ended + GONE_SECONDS
            if not there or late:
                self.left.remove(left)
            if there and late:
                yield f"{GONE_SECONDS:.0f} s after command {left.command} had ended: {', '.join(there)}"

    def close(self) -> None:
        """End everything."""
        self.end()
        if self.viewer is not None and self.viewer.poll() is None:
            self.viewer.kill()
            self.viewer.wait()
        for left in self.left:
            for line in _of_mark(left.mark):
                _kill(int(line.split()[0]), signal.SIGKILL)


def _children(parent: int, name: str = "") -> Iterator[int]:
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            before, _, after = path.read_text(encoding="utf-8").rpartition(")")
            state, of = after.split()[:2]
            if int(of) == parent and state != "Z" and (not name or before.endswith(f"({name}")):
                yield int(path.parent.name)


def _is_agent(pid: int) -> bool:
    with contextlib.suppress(OSError):
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
        return b"Agent" in command or b"/agent" in command
    return False


def _of_mark(mark: str) -> Iterator[str]:
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if f"{MARK}={mark}".encode() in path.read_bytes():
                yield f"{path.parent.name} {path.with_name('cmdline').read_text()[:60]}"
