"""One study under seeded kills: `run` does it, `complaints` says what does not hold of what is left."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import raybo
from raybo.history import Kind, State
from raybo.replay import replay
from raybo.study import Study

METHODS = ("auto", "random", "gp-ucb", "uhe", "turbo", "ei")
RETRIES = 6  # a trial whose worker is killed more often is lost, which is an outcome like any other
HUNG_SECONDS = 90.0  # without an event: Ray on a loaded machine needs up to 30 to start
MARK = "RAYBO_FAULTS"  # environment variable by which a study's processes are known


@dataclass
class Report:
    """What happened to one study.

    Attributes:
        kills: how many of each kind.
        complaints: what did not hold, in words; empty where all did.
        recoveries: seconds from each kill of the actor to the next trial that began.
    """

    method: str
    trials: int
    kills: Counter[str] = field(default_factory=Counter)
    complaints: list[str] = field(default_factory=list)
    recoveries: list[float] = field(default_factory=list)


class Victims:
    """A running study as the harness sees it from outside."""

    def __init__(self, directory: Path, settings: dict[str, Any]) -> None:
        self.journal, self.log, self.announced = directory / "s.db", directory / "log", directory / "announced"
        self.mark = uuid.uuid4().hex
        said = {"storage": str(self.journal), "announced": str(self.announced), "settings": {"log": str(self.log)}}
        self.settings = json.dumps({**settings, **said})
        self.driver = self.start()

    def start(self) -> subprocess.Popen[bytes]:
        """Start the driver, for the first time or again."""
        return subprocess.Popen(
            [sys.executable, "-m", "tests.faults.driver", self.settings],
            env={**os.environ, MARK: self.mark, "OPENBLAS_NUM_THREADS": "1"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=_interruptible,
        )

    def events(self) -> int:
        """How many events the journal holds."""
        return len(raybo.load(self.journal).events) if self.journal.exists() else 0

    def actor(self) -> int | None:
        """The study actor's process."""
        with contextlib.suppress(OSError, ValueError):
            held = json.loads(Path(f"{self.journal}-lock").read_text(encoding="utf-8"))
            return int(held["process"]) if held["process"] != held["driver"] else None
        return None

    def workers(self) -> list[int]:
        """Processes that run a trial now."""
        open_: dict[int, bool] = {}
        for line in self.lines():
            open_[line["pid"]] = line["what"] == "begin"
        return [pid for pid, is_open in open_.items() if is_open and Path(f"/proc/{pid}").exists()]

    def lines(self) -> list[dict[str, Any]]:
        """What the trials wrote down."""
        if not self.log.exists():
            return []
        return [json.loads(line) for line in self.log.read_text(encoding="utf-8").splitlines()]

    def processes(self) -> list[int]:
        """Every process of the study that lives."""
        found = []
        for path in Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):
                if f"{MARK}={self.mark}".encode() in path.read_bytes():
                    found.append(int(path.parent.name))
        return found

    def end(self) -> None:
        """Kill whatever is left."""
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.driver.wait()
        assert self.driver.stderr is not None
        self.driver.stderr.close()


def _interruptible() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _kill_driver(how: signal.Signals) -> Callable[[Victims], bool]:
    def kill(victims: Victims) -> bool:
        if victims.driver.poll() is not None:
            return False
        os.killpg(victims.driver.pid, how) if how is signal.SIGHUP else victims.driver.send_signal(how)
        try:
            victims.driver.wait(timeout=HUNG_SECONDS)
        except subprocess.TimeoutExpired:
            return False  # told as hung by who waits for events
        assert victims.driver.stderr is not None
        victims.driver.stderr.close()
        victims.driver = victims.start()
        return True

    return kill


def _kill_actor(victims: Victims) -> bool:
    return (pid := victims.actor()) is not None and _sigkill(pid)


def _kill_worker(victims: Victims) -> bool:
    return any(_sigkill(pid) for pid in victims.workers()[:1])


def _kill_workers_and_actor(victims: Victims) -> bool:
    return all([_kill_worker(victims), _kill_actor(victims)])


def _sigkill(pid: int) -> bool:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
        return True
    return False


KILLS: dict[str, tuple[int, Callable[[Victims], bool]]] = {  # name: how often of twenty, how
    "worker": (8, _kill_worker),
    "actor": (6, _kill_actor),
    "worker and actor": (2, _kill_workers_and_actor),
    "driver, SIGKILL": (1, _kill_driver(signal.SIGKILL)),
    "driver, SIGINT": (1, _kill_driver(signal.SIGINT)),
    "driver, SIGTERM": (1, _kill_driver(signal.SIGTERM)),
    "driver, SIGHUP": (1, _kill_driver(signal.SIGHUP)),
}


def run(directory: Path, seed: int, kills: int, trials: int = 40, method: str | None = None) -> Report:
    """Run a study to its end under at most so many kills, and check it."""
    rng = random.Random(seed)
    report = Report(method or METHODS[seed % len(METHODS)], trials)
    settings = {"trials": trials, "method": report.method, "seed": seed, "workers": 2, "retries": RETRIES}
    victims = Victims(directory, settings)
    try:
        _kill_until_done(victims, rng, kills, report)
        if not report.complaints:
            report.complaints += complaints(victims, trials)
    finally:
        victims.end()
    return report


def _kill_until_done(victims: Victims, rng: random.Random, kills: int, report: Report) -> None:
    seen, since, wait_for = 0, time.monotonic(), rng.randint(2, 6)
    killed_actor_at: float | None = None
    names = [name for name, (often, _) in KILLS.items() for _ in range(often)]
    while (code := victims.driver.poll()) is None:
        time.sleep(0.02 + 0.2 * rng.random())
        events = victims.events()
        if killed_actor_at is not None:
            after = [line["at"] for line in victims.lines() if line["what"] == "begin" and line["at"] > killed_actor_at]
            if after:
                report.recoveries.append(min(after) - killed_actor_at)
                killed_actor_at = None
        if events >= seen + wait_for and report.kills.total() < kills:
            name = rng.choice(names)
            if KILLS[name][1](victims):
                report.kills[name] += 1
                if name == "actor":
                    killed_actor_at = time.time()
            seen, since, wait_for = events, time.monotonic(), rng.randint(2, 6)
        elif events > seen and report.kills.total() >= kills:
            seen, since = events, time.monotonic()
        elif time.monotonic() - since > HUNG_SECONDS:
            report.complaints.append(f"hung: no event for {HUNG_SECONDS:g} seconds after event {events}")
            return
    if code != 0:
        assert victims.driver.stderr is not None
        report.complaints.append(f"the driver ended with {code}: {victims.driver.stderr.read().decode()[-500:]}")


def complaints(victims: Victims, trials: int) -> list[str]:
    """What does not hold of a study that has ended."""
    study = raybo.load(victims.journal)
    return [
        *_of_the_journal(study, trials),
        *_of_what_was_announced(study, victims.announced),
        *_of_what_ran(study, victims.lines()),
        *[
            f"trial {again.trial}: proposed again, its {again.differs} differ"
            for again in replay(study)
            if again.differs
        ],
        *_of_processes(victims),
    ]


def _of_the_journal(study: Study, trials: int) -> list[str]:
    found = []
    if [event.number for event in study.events] != list(range(1, len(study.events) + 1)):
        found.append("event numbers have gaps or doubles")
    if [trial.number for trial in study.trials] != list(range(len(study.trials))):
        found.append("trial numbers have gaps or doubles")
    ended = study.count(State.FINISHED, State.FAILED, State.LOST)
    if ended != trials or study.count(State.PENDING):
        found.append(f"{ended} of {trials} trials have ended, {study.count(State.PENDING)} are pending")
    ends = Counter(event.trial for event in study.events if event.kind in (Kind.TOLD, Kind.FAILED, Kind.STOPPED))
    found += [f"trial {trial} ended {times} times" for trial, times in ends.items() if times != 1]
    retried = Counter(event.trial for event in study.events if event.kind is Kind.RETRIED)
    for trial in study.trials:
        if trial.attempt != 1 + retried[trial.number]:
            found.append(f"trial {trial.number}: attempt {trial.attempt} after {retried[trial.number]} retries")
    values = {trial.number: trial.value for trial in study.trials if trial.value is not None}
    if values and study.best.number != min(values, key=lambda number: (values[number], number)):
        found.append(f"the best is said to be trial {study.best.number}, and is not")
    return found


def _of_what_was_announced(study: Study, announced: Path) -> list[str]:
    lines = announced.read_text(encoding="utf-8").splitlines() if announced.exists() else []
    told = [event for event in study.events if event.kind is Kind.TOLD]
    found = []
    for line in lines:
        with contextlib.suppress(json.JSONDecodeError):  # the last line of a driver that was killed as it wrote
            said = json.loads(line)
            known = [event for event in told if event.number <= said["event"]]
            if len(known) != said["finished"]:
                found.append(
                    f"{said['finished']} results were announced by event {said['event']}, {len(known)} are there"
                )
            if said["best"] and all([e.trial, e.data["value"]] != said["best"] for e in known):
                found.append(f"the best that was announced, {said['best']}, is not there")
    return found


def _of_what_ran(study: Study, lines: list[dict[str, Any]]) -> list[str]:
    begun: dict[str, list[float]] = {}
    for line in lines:
        if line["what"] == "begin":
            begun.setdefault(json.dumps(line["config"], sort_keys=True), []).append(line["at"])
    told = {
        event.trial: datetime.fromisoformat(event.at).timestamp() for event in study.events if event.kind is Kind.TOLD
    }
    found = []
    for trial in study.trials:
        times = begun.get(json.dumps(trial.config, sort_keys=True), [])
        if len(times) > trial.attempt:
            found.append(f"trial {trial.number} began {len(times)} times in {trial.attempt} attempts")
        if trial.number in told and any(at > told[trial.number] + 0.01 for at in times):
            found.append(f"trial {trial.number} ran again after it had finished")
        if trial.number in told and not times:
            found.append(f"trial {trial.number} has a result and never ran")
    return found


def _of_processes(victims: Victims) -> list[str]:
    give_up = time.monotonic() + HUNG_SECONDS
    while (left := victims.processes()) and time.monotonic() < give_up:
        time.sleep(0.2)
    return [f"processes are left: {left}"] if left else []
