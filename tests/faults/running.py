"""A study from outside: the command that runs it, what it has written, and the processes that a kill may meet."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from raybo import journal
from raybo.errors import JournalError
from raybo.events import Event
from tests.faults.cluster import Cluster
from tests.faults.plan import Place, PlannedStudy

RETRIES = 6  # a trial whose worker is killed more often is lost, which is an outcome like any other
MARK = "RAYBO_FAULTS"  # environment variable by which the processes of a study with a Ray of its own are known
HERE = Path(__file__).parents[2]


class Running:
    """A study that runs.

    Attributes:
        events: what its journal held when it was last looked at.
        lines: what its trials had written then.
        shrunk: what the journal once held and held no longer, in words; empty while it only grew.
        recoveries: seconds from each kill of the study actor to the next trial begun.
    """

    def __init__(
        self, planned: PlannedStudy, directory: Path, cluster: Cluster | None = None, source: Path = HERE
    ) -> None:
        self.planned, self.cluster, self.source = planned, cluster, source
        self.journal = directory / f"study{planned.number}.db"  # its stem is the name of a detached study
        self.log, self.announced, self.errors = directory / "log", directory / "announced", directory / "errors"
        self.events: list[Event] = []
        self.lines: list[dict[str, Any]] = []
        self.shrunk: list[str] = []
        self.recoveries: list[float] = []
        self._read_to = 0
        self._read_at: list[tuple[int, int]] = []
        self._actor_killed: tuple[float, set[int]] | None = None  # when, and which workers there had been
        self.ended = 0.0  # when, by the monotonic clock
        self._mark = uuid.uuid4().hex
        self.driver = self._start()

    def _start(self) -> subprocess.Popen[Any]:
        planned = self.planned
        settings: dict[str, Any] = {
            "storage": str(self.journal), "announced": str(self.announced), "trials": planned.trials,
            "method": planned.method, "seed": planned.seed, "workers": planned.workers, "retries": RETRIES,
            "detach": planned.place is Place.DETACHED,
            "settings": {"log": str(self.log), "seconds": planned.trial_seconds},
        }  # fmt: skip
        if self.cluster is not None:
            settings["address"] = self.cluster.hosts.address
        command = [sys.executable, "-m", "tests.faults.driver", json.dumps(settings)]
        with self.errors.open("ab") as errors:
            said: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": errors, "preexec_fn": _as_in_a_terminal}
            if self.cluster is not None:
                return self.cluster.hosts.run(*command, cwd=self.source, **said)
            environment = {**os.environ, MARK: self._mark, "OPENBLAS_NUM_THREADS": "1"}
            return subprocess.Popen(command, env=environment, cwd=self.source, start_new_session=True, **said)

    def look(self) -> int:
        """Read what has been written since; returns how many events the journal holds."""
        if journal.exists(self.journal) and (stamp := self._stamp()) != self._read_at:
            self._read_at = stamp  # before the reading: what is written meanwhile is read the next time
            try:
                events = journal.read(self.journal)[1]
            except JournalError as error:
                self.shrunk.append(f"it could not be read: {error}")
                return len(self.events)
            if events[: len(self.events)] != self.events:
                self.shrunk.append(f"of {len(self.events)} events that it held, some are gone or are others")
            self.events = events
        if self.log.exists():
            with self.log.open("rb") as log:
                log.seek(self._read_to)
                new = log.read()
            whole = new[: new.rfind(b"\n") + 1]
            self._read_to += len(whole)
            self._take([json.loads(line) for line in whole.splitlines()])
        return len(self.events)

    def _stamp(self) -> list[tuple[int, int]]:
        """Changes whenever the journal does: to read it costs more than everything else that the harness does."""
        found = []
        for path in (self.journal, self.journal.with_name(f"{self.journal.name}-wal")):
            with contextlib.suppress(FileNotFoundError):
                found.append((path.stat().st_mtime_ns, path.stat().st_size))
        return found

    def _take(self, lines: list[dict[str, Any]]) -> None:
        self.lines += lines
        for line in lines:
            if self._actor_killed is not None and line["what"] == "begin":
                at, before = self._actor_killed
                if line["at"] > at and line["pid"] not in before:
                    self.recoveries.append(line["at"] - at)
                    self._actor_killed = None

    # ---- whom a kill may meet

    def kill_worker(self, which: float, how: signal.Signals) -> bool:
        """Kill a process that runs a trial, if there is one within reach."""
        open_: dict[int, bool] = {}
        for line in self.lines:
            open_[line["pid"]] = line["what"] == "begin"
        beyond = set() if self.cluster is None else self.cluster.out_of_reach()
        pids = [pid for pid, is_open in open_.items() if is_open and pid not in beyond and _lives(pid)]
        return bool(pids) and _kill(pids[int(which * len(pids))], how)

    def kill_actor(self) -> bool:
        """Kill the process that writes the journal, if it is there yet."""
        with contextlib.suppress(OSError, ValueError):
            held = json.loads(Path(f"{self.journal}-lock").read_text(encoding="utf-8"))
            if Path(f"/proc/{held['process']}/cmdline").read_bytes().startswith(b"ray::") and _lives(held["process"]):
                at = time.time()
                if _kill(held["process"], signal.SIGKILL):
                    self._actor_killed = at, {line["pid"] for line in self.lines}
                    return True
        return False

    def kill_driver(self, how: signal.Signals, patience: float) -> bool | None:
        """Kill the command and give it again; whether it was killed, None where it did not end."""
        if self.driver.poll() is not None:
            return False
        os.killpg(self.driver.pid, how) if how is signal.SIGHUP else self.driver.send_signal(how)
        try:
            code = self.driver.wait(timeout=patience)
        except subprocess.TimeoutExpired:
            return None
        if code == 0:
            return False  # it had come to its end
        if self.planned.place is not Place.DETACHED:
            self._actor_killed = None
        self.driver = self._start()
        return True

    # ---- the end

    def left(self) -> list[str]:
        """Processes of the study that live."""
        if self.cluster is not None:
            return self.cluster.left()
        found = []
        for path in Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):
                if f"{MARK}={self._mark}".encode() in path.read_bytes():
                    found.append(f"{path.parent.name} {path.with_name('cmdline').read_text()[:80]}")
        return found

    def keep_logs(self) -> None:
        """Keep what Ray has logged, of a study that hangs."""
        root = Path(self.cluster.hosts.directory, "ray") if self.cluster else next(self._own_ray(), Path("none"))
        for logs in root.glob("session_*/logs"):
            shutil.copytree(logs, self.journal.with_name(logs.parent.name), dirs_exist_ok=True, symlinks=True)

    def _own_ray(self) -> Iterator[Path]:
        return Path("/tmp").glob(f"raybo-{self.driver.pid}-*")

    def end(self) -> None:
        """Kill the command if it still runs."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.driver.pid, signal.SIGKILL)
        self.driver.wait()
        self.ended = time.monotonic()

    def kill_left(self) -> None:
        """Kill what is left, of a study with a Ray of its own."""
        for line in self.left() if self.cluster is None else ():
            _kill(int(line.split()[0]), signal.SIGKILL)


def _as_in_a_terminal() -> None:
    """A command takes its signals, although the harness may have been begun in the background or by nohup."""
    for how in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(how, signal.SIG_DFL)


def _lives(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    return False


def _kill(pid: int, how: signal.Signals) -> bool:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, how)
        return True
    return False
