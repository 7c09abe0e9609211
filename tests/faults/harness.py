"""Run one study of a plan, kill what the plan says, and check the study when it has ended."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import raybo
from raybo.engine.driver import RAYS
from tests.faults import checks
from tests.faults.checks import Complaint, Wrong
from tests.faults.cluster import Cluster
from tests.faults.disk import Disk
from tests.faults.plan import LOSE_NODES, WHILE_PAUSED, Kill, Kind, Place, PlannedStudy
from tests.faults.running import HERE, Running
from tests.faults.strikes import DISK, HUNG_SECONDS, STRIKES, in_a_line

POLL_SECONDS = 0.1
AFTER_RAY_SECONDS = 20.0  # in which the writer on a local Ray that has died may still be there
LATE_SECONDS = 60.0  # after the disk has room again, in which a detached study that had none may still be met
LOADED = r"no local Ray could be started|the local Ray died while starting"  # by a machine that is too busy
LOADED_TOO_MUCH = "no local Ray could be started"
GIVEN_AGAIN = 10  # a study's command, for that


@dataclass
class Report:
    """The outcome of one study.

    Attributes:
        kills: how many of each kind.
        complaints: what did not hold; empty where all did.
        recoveries: what was killed of the study actor, the raylet and the GCS, and seconds from then to the next
            trial begun.
        retried: trials that ran again, and why.
        again: commands that had ended with a line that says why, and were given again, by that reason.
        seconds: what it took, checks included.
        later: the study, where its processes are still to be looked for: the next one may run meanwhile.
    """

    planned: PlannedStudy
    kills: Counter[Kind] = field(default_factory=Counter)
    complaints: list[Complaint] = field(default_factory=list)
    recoveries: list[tuple[Kind, float]] = field(default_factory=list)
    retried: Counter[str] = field(default_factory=Counter)
    again: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    later: Running | None = None


def run(
    planned: PlannedStudy,
    directory: Path,
    cluster: Cluster | None = None,
    disk: Disk | None = None,
    source: Path = HERE,
) -> Report:
    """Run a study to its end under its kills, and check it.

    Args:
        cluster: where it runs, unless it has a Ray of its own.
        disk: where its journal is, if it is to be full for a while.
        source: the clone whose raybo is killed; the checks are always this one's.
    """
    report, begun = Report(planned), time.monotonic()
    filled = disk if any(kill.kind is Kind.FULL for kill in planned.kills) else None
    running = Running(planned, directory, None if planned.place is Place.OWN else cluster, filled, source)
    try:
        _kill_until_done(running, report)
        running.look()
        if running.cluster is not None:
            running.cluster.settle()
        if not report.complaints:
            report.complaints += _checked(running)
    finally:
        running.end()
        if report.complaints:
            running.keep_journal()
    if running.cluster is not None:
        report.complaints += look_for_processes(running)
    else:
        report.later = running
    report.recoveries = running.recoveries
    report.retried = Counter(
        event.data["reason"] for event in running.events if event.kind is raybo.record.events.Kind.RETRIED
    )
    report.seconds = time.monotonic() - begun
    return report


def _kill_until_done(running: Running, report: Report) -> None:
    """Strike as planned until the command has ended by itself; kills that come too late are left out."""
    ahead = list(reversed(running.planned.kills))
    seen, since = 0, time.monotonic()  # the last event, and when it came
    struck_after, strike_at = 0, None  # the event after which the last kill came; when the next is due
    while (code := running.driver.poll()) is None or _is_repeated(running, report):
        now = time.monotonic()
        if code is not None:
            since = now
        time.sleep(max(0.0, min(POLL_SECONDS, (strike_at or now + POLL_SECONDS) - now)))
        events, now = running.look(), time.monotonic()
        if events > seen:
            seen, since = events, now
        if now - since > HUNG_SECONDS:
            report.complaints.append(Complaint(Wrong.HUNG, f"no event for {HUNG_SECONDS:g} s after event {events}"))
            running.keep_logs()
            return
        if not ahead or events < struck_after + ahead[-1].events:
            continue
        _put_off(running, ahead)
        if strike_at is None:
            strike_at = now + ahead[-1].delay
        if now >= strike_at and (happened := STRIKES[ahead[-1].kind](running, ahead[-1])) is not False:
            report.kills[ahead.pop().kind] += 1
            struck_after, strike_at, since = events, None, time.monotonic()
            if happened is not True:
                report.complaints.append(happened)
                return
    if code != 0:
        last = running.errors.read_text(encoding="utf-8", errors="replace").strip()[-500:]
        report.complaints.append(Complaint(Wrong.UNFINISHED, f"the command ended with {code}: {last}"))


def _is_repeated(running: Running, report: Report) -> bool:
    """Start the command again if it ended as it should and a user would repeat it; return True if it was started."""
    if running.driver.returncode == 0:
        return False
    if running.rays_lost >= RAYS and not in_a_line(running, "has died"):
        why = f"{RAYS} local Rays had died"
    elif time.monotonic() < running.freed + LATE_SECONDS and not in_a_line(running, DISK):
        why = "the disk had been full"
    elif report.again[LOADED_TOO_MUCH] < GIVEN_AGAIN and not in_a_line(running, LOADED):
        why = LOADED_TOO_MUCH
    else:
        return False
    report.again[why] += 1
    running.forget_actor()
    running.type()
    return True


def _put_off(running: Running, ahead: list[Kill]) -> None:
    """Take another kill first if the next would have to wait long for its target."""
    if not _is_possible(running, ahead[-1]):
        other = next((kill for kill in reversed(ahead) if _is_possible(running, kill)), None)
        if other is not None:
            ahead.remove(other)
            ahead.append(other)


def _is_possible(running: Running, kill: Kill) -> bool:
    if kill.kind in WHILE_PAUSED and not running.has_paused():
        return False
    if kill.kind in LOSE_NODES and running.cluster is not None:
        return bool(running.cluster.up)
    if kill.kind is Kind.SECOND:  # where the journal has no writer just now, any command may take it
        return time.monotonic() > running.ray_lost + AFTER_RAY_SECONDS
    return True


def _checked(running: Running) -> list[Complaint]:
    study = raybo.load(running.journal)
    return [
        *[Complaint(Wrong.LOST, f"the journal: {text}") for text in running.shrunk],
        *checks.of_what_was_seen(study, running.events),
        *checks.of_the_journal(study, running.planned.trials),
        *checks.of_what_was_announced(study, checks.read_announced(running.announced)),
        *checks.of_what_ran(study, running.lines),
        *checks.of_replay(study),
        *checks.of_reports(study),
    ]


def look_for_processes(running: Running) -> list[Complaint]:
    """Return what is left of an ended study; helpers of Ray take half a minute to notice that a command was killed."""
    give_up = running.ended + HUNG_SECONDS
    while (left := running.left()) and time.monotonic() < give_up:
        time.sleep(0.5)
    running.kill_left()
    return [Complaint(Wrong.LEFT, line) for line in left]
