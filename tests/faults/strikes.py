"""Strike a running study, kind by kind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace

from tests.faults.checks import Complaint, Wrong, read_announced
from tests.faults.job import JUDGED, SAVED
from tests.faults.plan import Kill, Kind, Place
from tests.faults.running import Running

HUNG_SECONDS = 180.0  # without an event: Ray on a machine that is loaded ten times over needs up to 60 to start
WORD_SECONDS = 90.0  # in which a command says that the head of its cluster is gone: 45, and slow machines
FAREWELL_SECONDS = 12.0  # in which a detached study that has ended answers still
HEAD_GONE = r"has died|nothing answers at|cannot join the Ray cluster"  # as the study runs, or as it is begun
DISK = r"disk is full|disk I/O error|make room on the disk|No space left|check the disk"

# each says whether it met somebody, or what was wrong
Strike = Callable[[Running, Kill], "bool | Complaint"]


def _on_worker(how: signal.Signals) -> Strike:
    return lambda running, kill: running.kill(running.worker(kill.which), how)


def _on_actor(running: Running, _: Kill) -> bool:
    return running.kill(running.actor(), signal.SIGKILL, Kind.ACTOR)


def _on_both(running: Running, kill: Kill) -> bool:
    return running.kill(running.worker(kill.which), signal.SIGKILL) and _on_actor(running, kill)


def _on_driver(how: signal.Signals) -> Strike:
    """Kill the command and give it again."""

    def strike(running: Running, _: Kill) -> bool | Complaint:
        if running.driver.poll() is not None:
            return False
        os.killpg(running.driver.pid, how) if how is signal.SIGHUP else running.driver.send_signal(how)
        if (code := running.wait(HUNG_SECONDS)) is None:
            return Complaint(Wrong.HUNG, f"the command did not end in {HUNG_SECONDS:g} s")
        if code == 0:
            return False  # it had come to its end
        running.forget_actor()
        running.type()
        return True

    return strike


def _on_node(running: Running, kill: Kill) -> bool:
    assert running.cluster is not None
    return running.cluster.lose(kill)


def _on_raylet(running: Running, kill: Kill) -> bool:
    """Of a study's own Ray; of a cluster, that of a node without the study actor."""
    if running.cluster is not None:
        return running.cluster.lose(kill)
    if kill.kind is Kind.STOPPED_RAYLET:
        return _loses_ray(running, running.stop(running.of_own_ray("raylet"), kill.seconds))
    return _loses_ray(running, running.kill(running.of_own_ray("raylet"), signal.SIGKILL, Kind.RAYLET))


def _on_gcs(running: Running, _: Kill) -> bool | Complaint:
    """Of a study's own Ray; of a cluster, which is built again then, and the command given again."""
    if running.cluster is None:
        return _loses_ray(running, running.kill(running.of_own_ray("gcs_server"), signal.SIGKILL, Kind.GCS))
    if running.driver.poll() is not None:
        return False
    begun = time.monotonic()
    running.cluster.lose_head()
    code = running.wait(HUNG_SECONDS)
    took = time.monotonic() - begun
    if code is None or took > WORD_SECONDS:
        return Complaint(Wrong.HUNG, f"{took:.0f} s after the head of its cluster was gone the command had not ended")
    if code != 0 and (wrong := in_a_line(running, HEAD_GONE)):
        return wrong
    running.forget_actor()
    running.cluster.build_again()
    if code != 0:
        running.type()
    return True


def _loses_ray(running: Running, struck: bool) -> bool:
    if struck:
        running.rays_lost += 1
        running.ray_lost = time.monotonic()
    return struck


def _on_stopped(whom: Callable[[Running, Kill], int | None]) -> Strike:
    return lambda running, kill: running.stop(whom(running, kill), kill.seconds)


def _on_disk(running: Running, _: Kill) -> bool | Complaint:
    """Fill it, until the command ends; give the command on the full disk; make room, and give it again."""
    assert running.disk is not None
    if running.driver.poll() is not None:
        return False
    running.disk.fill()
    try:
        if (code := running.wait(HUNG_SECONDS)) is None:
            return Complaint(Wrong.HUNG, f"the command did not end in {HUNG_SECONDS:g} s on a full disk")
        if code == 0:
            return False  # what it had to write was less than what was left in its log
        if wrong := in_a_line(running, DISK):
            return wrong
        if running.planned.place is Place.DETACHED:
            time.sleep(FAREWELL_SECONDS)
        running.type()
        if running.wait(HUNG_SECONDS) is None:
            return Complaint(Wrong.HUNG, "the command does not end on a disk that is full already")
        if wrong := in_a_line(running, DISK):
            return wrong
    finally:
        running.disk.free()
        running.freed = time.monotonic()
    running.forget_actor()
    running.type()
    return True


def _by_a_second(running: Running, _: Kill) -> bool | Complaint:
    """Give the command a second time while it runs: it must be refused."""
    if running.driver.poll() is not None or running.actor() is None:
        return False
    errors, announced = running.directory / "second", running.directory / "announced-second"
    for path in (errors, announced):
        path.unlink(missing_ok=True)
    first = running.actor()
    with running.held():  # however long it takes to start
        second, give_up = running.start(announced, errors), time.monotonic() + HUNG_SECONDS
        while second.poll() is None and running.actor() in (first, None) and time.monotonic() < give_up:
            time.sleep(0.1)
    try:
        code = second.wait(HUNG_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(second.pid, signal.SIGKILL)
        second.wait()
        return Complaint(Wrong.WRITERS, "a second command on the journal was not refused")
    output = errors.read_text(encoding="utf-8", errors="replace").strip()
    if code == 0 and running.driver.poll() == 0:
        finished = {line["finished"] for line in read_announced(announced)}
        if len(finished) > 1:
            return Complaint(Wrong.WRITERS, f"a second command went on from {min(finished)} to {max(finished)} trials")
        return False  # it came when the first had ended
    if code != 1 or len(output.splitlines()) != 1 or "another study is writing it" not in output:
        return Complaint(Wrong.WRITERS, f"a second command on the journal ended with {code}: {output[-500:]}")
    return True


def _at(moment: str, *whom: str) -> Strike:
    """By a trial itself, which knows when it is at that moment."""
    return lambda running, kill: running.order(moment, whom, kill.which)


def _while_paused(strike: Strike) -> Strike:
    return lambda running, kill: running.has_paused() and strike(running, kill)


def in_a_line(running: Running, pattern: str) -> Complaint | None:
    """Return what is wrong with the command's end, which is to have status 1 and a line that says why."""
    code, output = running.driver.returncode, running.error_output()
    last = output.splitlines()[-1] if output else ""
    if code == 1 and "Traceback" not in output and last.startswith("Error: ") and re.search(pattern, last):
        return None
    return Complaint(Wrong.UNSAID, f"with {code}: {output[-500:]}")


STRIKES: dict[Kind, Strike] = {
    Kind.WORKER: _on_worker(signal.SIGKILL),
    Kind.SEGFAULT: _on_worker(signal.SIGSEGV),
    Kind.ACTOR: _on_actor,
    Kind.BOTH: _on_both,
    Kind.DRIVER_KILL: _on_driver(signal.SIGKILL),
    Kind.DRIVER_TERM: _on_driver(signal.SIGTERM),
    Kind.DRIVER_INT: _on_driver(signal.SIGINT),
    Kind.DRIVER_HUP: _on_driver(signal.SIGHUP),
    Kind.NODE: _on_node,
    Kind.CUT: _on_node,
    Kind.CUT_A_WHILE: _on_node,
    Kind.RAYLET: _on_raylet,
    Kind.GCS: _on_gcs,
    Kind.STOPPED_WORKER: _on_stopped(lambda running, kill: running.worker(kill.which)),
    Kind.STOPPED_ACTOR: _on_stopped(lambda running, _: running.actor()),
    Kind.STOPPED_DRIVER: _on_stopped(lambda running, _: running.driver.pid),
    Kind.STOPPED_RAYLET: _on_raylet,
    Kind.FULL: _on_disk,
    Kind.SECOND: _by_a_second,
    Kind.SAVED_WORKER: _at(SAVED, "worker"),
    Kind.SAVED_ACTOR: _at(SAVED, "study"),
    Kind.SAVED_BOTH: _at(SAVED, "study", "worker"),
    Kind.JUDGED_WORKER: _at(JUDGED, "worker"),
    Kind.JUDGED_ACTOR: _at(JUDGED, "study"),
    Kind.JUDGED_BOTH: _at(JUDGED, "study", "worker"),
    Kind.PAUSED_ACTOR: _while_paused(_on_actor),
    Kind.PAUSED_DRIVER: _while_paused(_on_driver(signal.SIGKILL)),
    Kind.PAUSED_NODE: _while_paused(lambda running, kill: _on_node(running, replace(kill, kind=Kind.NODE))),
}
