"""Handle a study from outside: the command that runs it, what it has written, and the processes to kill."""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from threading import Timer
from typing import Any

from raybo import journal
from raybo.common.errors import JournalError
from raybo.record.events import Event
from raybo.record.events import Kind as EventKind
from tests.faults.cluster import Cluster
from tests.faults.disk import Disk
from tests.faults.plan import Kind, Place, PlannedStudy

RETRIES = 6  # a trial whose worker is killed more often is lost, which is an outcome like any other
MARK = "RAYBO_FAULTS"  # environment variable by which the processes of a study with a Ray of its own are known
HERE = Path(__file__).parents[2]
# the same as on the hosts: a raylet that does not answer is counted as dead in seconds rather than in a minute
SOON = {
    "RAY_health_check_period_ms": "500",
    "RAY_health_check_timeout_ms": "1000",
    "RAY_health_check_failure_threshold": "4",
}


class Running:
    """A study that runs.

    Attributes:
        events: what its journal held when it was last looked at.
        lines: what its trials had written then.
        shrunk: what the journal once held and held no longer, in words; empty while it only grew.
        recoveries: what was killed of the study actor, the raylet and the GCS, and seconds from then to the next
            trial begun.
        rays_lost: how many local Rays have died under the command that runs now.
        ray_lost: when the last of them died, by the monotonic clock.
        freed: when the disk was given room again, by the monotonic clock.
    """

    def __init__(
        self,
        planned: PlannedStudy,
        directory: Path,
        cluster: Cluster | None = None,
        disk: Disk | None = None,
        source: Path = HERE,
    ) -> None:
        self.planned, self.cluster, self.disk, self.source = planned, cluster, disk, source
        self.directory = directory
        # its stem is the name of a detached study
        self.journal = (directory if disk is None else disk.make_directory()) / f"study{planned.number}.db"
        self.log, self.announced, self.errors = directory / "log", directory / "announced", directory / "errors"
        self.events: list[Event] = []
        self._tail = journal.Tail(self.journal)
        self.lines: list[dict[str, Any]] = []
        self.shrunk: list[str] = []
        self.recoveries: list[tuple[Kind, float]] = []
        self.rays_lost = 0
        self.ray_lost = self.freed = -math.inf
        self._read_to = 0
        self._read_at: list[tuple[int, int]] = []
        self._killed: tuple[Kind, float, set[int]] | None = None  # what, when, and which workers there had been
        self._stopped: list[tuple[Timer, int]] = []  # processes that are continued when it is time
        self.ended = 0.0  # when, by the monotonic clock
        self._mark = uuid.uuid4().hex
        self.type()

    def type(self) -> None:
        """Give the command, for the first time or again."""
        self._errors_before = self.errors.stat().st_size if self.errors.exists() else 0
        self.rays_lost = 0
        self.driver = self.start(self.announced, self.errors)

    def start(self, announced: Path, errors: Path) -> subprocess.Popen[Any]:
        """Start the command, and return its process.

        Args:
            announced, errors: files for its announcements and its standard error.
        """
        planned = self.planned
        settings: dict[str, Any] = {
            "storage": str(self.journal), "announced": str(announced), "trials": planned.trials,
            "method": planned.method, "seed": planned.seed, "workers": planned.workers, "retries": RETRIES,
            "scheduler": planned.scheduler and planned.scheduler[0],
            "scheduler_options": planned.scheduler[1] if planned.scheduler else {},
            "detach": planned.place is Place.DETACHED, "reports": planned.reports,
            "settings": {"log": str(self.log), "seconds": planned.trial_seconds},
        }  # fmt: skip
        if self.cluster is not None:
            settings["address"] = self.cluster.hosts.address
        command = [sys.executable, "-m", "tests.faults.driver", json.dumps(settings)]
        with errors.open("ab") as file:
            redirected: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": file, "preexec_fn": _as_in_a_terminal}
            if self.cluster is not None:
                return self.cluster.hosts.run(*command, cwd=self.source, **redirected)
            environment = {**os.environ, **SOON, MARK: self._mark, "OPENBLAS_NUM_THREADS": "1"}
            return subprocess.Popen(command, env=environment, cwd=self.source, start_new_session=True, **redirected)

    def look(self) -> int:
        """Read what has been written since; returns how many events the journal holds."""
        if journal.exists(self.journal) and (stamp := self._stamp()) != self._read_at:
            self._read_at = stamp  # before the reading: what is written meanwhile is read the next time
            try:
                events = read_on(self._tail, self.events)
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
        """Changes whenever the journal does, which need not be opened otherwise."""
        stamps = []
        for path in (self.journal, self.journal.with_name(f"{self.journal.name}-wal")):
            with contextlib.suppress(FileNotFoundError):
                stamps.append((path.stat().st_mtime_ns, path.stat().st_size))
        return stamps

    def _take(self, lines: list[dict[str, Any]]) -> None:
        self.lines += lines
        for line in lines:
            if self._killed is not None and line["what"] == "begin":
                kind, at, before = self._killed
                if line["at"] > at and line["pid"] not in before:
                    self.recoveries.append((kind, line["at"] - at))
                    self._killed = None

    # ---- the targets of kills

    def worker(self, which: float) -> int | None:
        """A process that runs a trial, if there is one within reach."""
        open_: dict[int, bool] = {}
        for line in self.lines:
            open_[line["pid"]] = line["what"] == "begin"
        beyond = set() if self.cluster is None else self.cluster.out_of_reach()
        pids = [pid for pid, is_open in open_.items() if is_open and pid not in beyond and _lives(pid)]
        return pids[int(which * len(pids))] if pids else None

    def actor(self) -> int | None:
        """The process that writes the journal, if it is there yet."""
        with contextlib.suppress(OSError, ValueError):
            pid = json.loads(Path(f"{self.journal}-lock").read_text(encoding="utf-8"))["process"]
            if Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"ray::") and _lives(pid):
                return int(pid)
        return None

    def of_own_ray(self, name: str) -> int | None:
        """A process of the study's own Ray, by the name of its program: the command is its parent."""
        for path in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                before, _, after = path.read_text(encoding="utf-8").rpartition(")")
                state, parent = after.split()[:2]
                if before.endswith(f"({name}") and int(parent) == self.driver.pid and state != "Z":
                    return int(path.parent.name)
        return None

    def kill(self, pid: int | None, how: signal.Signals, kind: Kind | None = None) -> bool:
        """Send a signal to a process; whether it was there.

        Args:
            kind: what it is, where the time until trials run again is of interest.
        """
        at = time.time()
        if pid is None or not _kill(pid, how):
            return False
        if kind is not None:
            self._killed = kind, at, {line["pid"] for line in self.lines}
        return True

    def stop(self, pid: int | None, seconds: float) -> bool:
        """Stop a process, and continue it so many seconds later; return True if it was there."""
        if pid is None or any(timer.is_alive() for timer, _ in self._stopped) or not _kill(pid, signal.SIGSTOP):
            return False
        self._stopped.append((Timer(seconds, _kill, (pid, signal.SIGCONT)), pid))
        self._stopped[-1][0].start()
        return True

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """No trial ends meanwhile."""
        held = Path(f"{self.log}-held")
        held.touch()
        try:
            yield
        finally:
            held.unlink()

    def order(self, moment: str, whom: tuple[str, ...], which: float) -> bool:
        """Have the next trial that comes to that moment of a step kill; whether one has done so."""
        order, taken = Path(f"{self.log}-{moment}"), Path(f"{self.log}-{moment}-taken")
        if taken.exists():
            taken.unlink()
            return True
        if not order.exists():
            written = Path(f"{self.log}-order")
            written.write_text(json.dumps({"whom": whom, "which": which, "lock": f"{self.journal}-lock"}))
            os.rename(written, order)
        return False

    def has_paused(self) -> bool:
        """Return True if a trial waits for others, as of the last look at the journal."""
        waiting: set[int | None] = set()
        for event in self.events:
            if event.kind is EventKind.PAUSED:
                waiting.add(event.trial)
            elif event.kind in (EventKind.RESUMED, EventKind.PRUNED, EventKind.STOPPED):
                waiting.discard(event.trial)
        return bool(waiting)

    # ---- the command

    def wait(self, patience: float) -> int | None:
        """Wait for the end of the command; return its exit status, None if it runs for longer than that."""
        try:
            return self.driver.wait(timeout=patience)
        except subprocess.TimeoutExpired:
            return None

    def error_output(self) -> str:
        """Return what the command has written to standard error since it began."""
        return self.errors.read_bytes()[self._errors_before :].decode(errors="replace").strip()

    def forget_actor(self) -> None:
        """The study actor that was killed need not come back: the command has ended, too."""
        if self.planned.place is not Place.DETACHED:
            self._killed = None

    # ---- the end

    def left(self) -> list[str]:
        """Processes of the study that live."""
        if self.cluster is not None:
            return self.cluster.left()
        processes = []
        for path in Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):
                if f"{MARK}={self._mark}".encode() in path.read_bytes():
                    processes.append(f"{path.parent.name} {path.with_name('cmdline').read_text()[:80]}")
        return processes

    def keep_logs(self) -> None:
        """Keep what Ray has logged, of a study that hangs."""
        for root in [Path(self.cluster.hosts.directory, "ray")] if self.cluster else self._own_rays():
            for logs in root.glob("session_*/logs"):
                shutil.copytree(logs, self.directory / logs.parent.name, dirs_exist_ok=True, symlinks=True)

    def _own_rays(self) -> Iterator[Path]:
        return Path("/tmp").glob(f"raybo-{self.driver.pid}-*/ray")

    def keep_journal(self) -> None:
        """Copy the journal from the disk that is filled to where the rest of the study is."""
        if self.disk is not None:
            with contextlib.suppress(shutil.Error):  # of what goes meanwhile, as the study's processes die
                shutil.copytree(self.journal.parent, self.directory, symlinks=True, dirs_exist_ok=True)

    def end(self) -> None:
        """Kill the command if it still runs, and continue what was stopped."""
        for timer, pid in self._stopped:
            if timer.is_alive():
                timer.cancel()
                _kill(pid, signal.SIGCONT)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.driver.pid, signal.SIGKILL)
        self.driver.wait()
        self.ended = time.monotonic()

    def kill_left(self) -> None:
        """Kill what is left, of a study with a Ray of its own."""
        for line in self.left() if self.cluster is None else ():
            _kill(int(line.split()[0]), signal.SIGKILL)


def read_on(tail: journal.Tail, known: list[Event]) -> list[Event]:
    """Return a journal's events, of which these were known at the last look."""
    times, events = tail.times, tail.read()
    return [*known, *events] if tail.times == times else events


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
