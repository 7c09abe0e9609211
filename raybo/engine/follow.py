"""Follows a running study: its status while it lasts, its outcome, and its end when the user stops it."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, cast

from raybo import journal
from raybo.common.errors import RayboError, RayError
from raybo.common.messages import first_line
from raybo.engine.lost_studies import SILENT_SECONDS, Deaths, Silence
from raybo.engine.ray.connection import ray_for_study
from raybo.engine.ray.liveness import Liveness, RayDied
from raybo.engine.ray.named_studies import NAMESPACE, study_names
from raybo.journal.lock import process_here
from raybo.record.events import Kind
from raybo.study.study import Study

if TYPE_CHECKING:
    from raybo.engine.plan import Plan
    from raybo.engine.status import Status

POLL_SECONDS = 0.2
NAME_SECONDS = 20.0  # Ray frees the name of a study that has ended within this time
ASK_SECONDS = 2.0  # between two questions whether a study that nobody watches still answers
ANSWER_SECONDS = 5.0
STOP_SECONDS = 20.0  # a study that has not stopped by then is killed; its journal is whole all the same


log = logging.getLogger("raybo")


class StudyLost(RayError):
    """The study's process is gone."""


class StudySilent(StudyLost):
    """The study's process is there, and neither answers nor writes any more."""


@dataclass(frozen=True)
class Ended:
    """A detached study that has ended.

    Attributes:
        path: its journal, on the machine where the study was started.
        study: what the journal holds; None if it is on another machine.
    """

    path: Path
    study: Study | None


def run_to_end(
    ray: Any,
    make: Callable[[], Any],
    path: Path,
    restarts: int,
    after: int,
    watch: Callable[[Status], object] | None,
) -> None:
    """Run a study that belongs to this process to its end, and show its status; Ctrl-C stops it.

    Args:
        ray: the module, connected.
        make: makes a study actor, which continues from the journal; called again if one is lost.
        path: the journal.
        restarts: how often it may be called again.
        after: number of the last event whose notes are not shown.
        watch: called with a `Status` several times a second.
    Raises:
        RayDied: the Ray that it runs on is gone.
        RayboError: what ended the study early.
        KeyboardInterrupt: Ctrl-C; the study has been stopped and its journal is whole.
    """
    show = _Show(ray, path, watch, after)
    deaths = Deaths(restarts)
    while True:
        actor = make()
        outcome = actor.outcome.remote()
        has_died = False
        try:
            _wait(ray, actor, outcome, show, deaths.timeout)
            return
        except KeyboardInterrupt:
            _stop(ray, actor, outcome)
            show(actor)
            raise
        except RayDied:
            has_died = True
            raise
        except StudyLost as lost:
            deaths.add(type(lost.__cause__ or lost).__name__, _achieved(path))
            if deaths.is_hopeless:
                raise StudyLost(
                    f"the study's own process was lost {deaths.alike} times in a row, and the study got no further in "
                    f"between ({first_line(lost.__cause__ or lost)}); what has finished is in the journal"
                ) from lost
            if deaths.left < 0:
                raise
            if isinstance(lost, StudySilent):
                log.warning("%s; a new one continues from the journal", lost)
                _kill_silent(path)
        finally:
            if not has_died:  # else there is no Ray to ask
                ray.kill(actor)


def _achieved(path: Path) -> int:
    """Return how many events the journal holds; that trials start again is no achievement."""
    return sum(event.kind is not Kind.RETRIED for event in journal.read(path)[1])


def _kill_silent(path: Path) -> None:
    """Kill the process that writes the journal, if it is on this machine: Ray's way to kill it may need its help."""
    process = process_here(path)
    if process is not None and process != os.getpid():
        with contextlib.suppress(OSError):
            os.kill(process, signal.SIGKILL)


def make_named(ray: Any, name: str, make: Callable[[], Any]) -> Any:
    """Return the actor of a detached study. An actor of this name whose study has ended is removed first.

    Raises:
        ActorAlreadyExistsError: a study of this name is running.
    """
    give_up = time.monotonic() + NAME_SECONDS
    while True:
        try:
            return make()
        except ray.exceptions.ActorAlreadyExistsError:
            if time.monotonic() > give_up or not _remove_ended(ray, name):
                raise
        time.sleep(POLL_SECONDS)  # Ray frees a name once it has noticed that its actor is gone


def _remove_ended(ray: Any, name: str) -> bool:
    """Remove the actor of this name unless its study runs; False if it stays."""
    try:
        actor = ray.get_actor(name, namespace=NAMESPACE)
        if not ray.get(actor.has_ended.remote(), timeout=30):
            return False
    except (ValueError, ray.exceptions.RayActorError):
        return True
    except ray.exceptions.GetTimeoutError:
        return False
    ray.kill(actor)
    return True


def leave(ray: Any, actor: Any, path: Path) -> None:
    """Wait until a detached study has begun, so that its driver raises what is wrong with it."""
    outcome = actor.outcome.remote()
    begun: list[Status] = []
    show = _Show(ray, path, begun.append, 0)
    _wait(ray, actor, outcome, show, SILENT_SECONDS, lambda: bool(begun))


def attach(name: str, address: str, watch: Callable[[Status], object] | None = None) -> Ended:
    """Follow a detached study to its end; Ctrl-C leaves it running.

    Args:
        name: its journal's, without `.db`.
        address: "auto" or HOST:PORT of the cluster that it runs on.
        watch: called with a `Status` several times a second.
    Raises:
        RayboError: no such study runs there; the message names its journal if it has ended; or what ended
            it early.
    """
    with ray_for_study(address, None) as ray:
        actor, plan = _find(ray, name)
        show = _Show(ray, plan.path, watch, 0)
        try:
            while True:
                try:
                    _wait(ray, actor, actor.outcome.remote(), show, SILENT_SECONDS)
                    break
                except StudySilent as silent:
                    log.warning("%s; a new one continues from the journal", silent)
                    ray.kill(actor, no_restart=False)
                    _kill_silent(plan.path)
        except StudyLost:
            ended = _ended(plan.path)
            if ended.study is None or not ended.study.ended:
                raise
            return ended  # its process ends soon after the study
    return _ended(plan.path)


def stop(name: str, address: str) -> Ended:
    """End a detached study: trials that run are stopped and recorded. Raises the errors that `attach` raises."""
    with ray_for_study(address, None) as ray:
        actor, plan = _find(ray, name)
        _stop(ray, actor, actor.outcome.remote())
        ray.kill(actor)
    return _ended(plan.path)


def _find(ray: Any, name: str) -> tuple[Any, Plan]:
    try:
        actor = ray.get_actor(name, namespace=NAMESPACE)
        return actor, cast("Plan", ray.get(actor.get_plan.remote(), timeout=30))
    except ray.exceptions.GetTimeoutError:
        raise RayError(f"the study {name} does not answer; try again, or end it by stopping its process") from None
    except (ValueError, ray.exceptions.RayActorError):
        names = study_names(ray)
        running = f"available: {', '.join(sorted(names))}" if names else "no study is"
        raise RayError(
            f"no detached study named {name} is running on this cluster ({running}); {_where(name)}"
        ) from None


def _where(name: str) -> str:
    """Say where the journal of a study that does not run is, and which command shows it."""
    path = Path(f"{name}.db")
    if journal.exists(path):
        return f"its journal is {path.absolute()}: `raybo show {quote(str(path))}` shows it"
    return (
        f"if it has ended, its journal is where it was started, {path} or what --storage named: "
        f"`raybo show {quote(str(path))}` shows it there; for a job, give the address of the dashboard, "
        "--address http://HOST:8265"
    )


def _ended(path: Path) -> Ended:
    return Ended(path, Study(*journal.read(path), path) if journal.exists(path) else None)


def _wait(
    ray: Any,
    actor: Any,
    outcome: Any,
    show: _Show,
    timeout: float,
    is_enough: Callable[[], bool] = lambda: False,
) -> None:
    """Wait until the study has ended. Raises what ended it early.

    Args:
        ray: the module, connected.
        actor: the study's.
        outcome: the reference to its outcome.
        show: shows its status.
        timeout: seconds for which it may neither answer nor write.
        is_enough: the wait is over, too, once this is true.
    """
    liveness = Liveness(ray)
    show.silence = Silence()
    try:
        done: list[Any] = []
        while not done and not is_enough():
            done, _ = ray.wait([outcome], timeout=POLL_SECONDS)
            if not done:
                liveness.check()
            show(actor)
            if show.silence.seconds > timeout and not done:
                raise StudySilent(f"the study's own process has neither answered nor written for {timeout:.0f} s")
        if done:
            ray.get(outcome)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, RayboError):
            raise error.cause from None
        raise
    except (ray.exceptions.RayActorError, ray.exceptions.OutOfMemoryError) as error:
        raise StudyLost(
            f"the study's own process was lost for good ({first_line(error)}); the same command continues the study"
        ) from error


class _Show:
    """Passes the status to the watcher, and each note once; notices if the study neither answers nor writes."""

    def __init__(self, ray: Any, path: Path, watch: Callable[[Status], object] | None, after: int) -> None:
        self.ray, self.path, self.watch, self.after, self.lines_seen = ray, path, watch, after, 0
        self.silence = Silence()
        self._asked = -ASK_SECONDS
        self._written: list[tuple[int, int]] = []

    def __call__(self, actor: Any) -> None:
        if self.watch is None and time.monotonic() < self._asked + ASK_SECONDS:
            return
        self._asked = time.monotonic()
        is_heard, status = self._has_written(), None
        try:
            if self.watch is None:
                self.ray.get(actor.has_ended.remote(), timeout=ANSWER_SECONDS)
            else:
                asked = actor.status.remote(self.after, self.lines_seen)
                status = cast("Status | None", self.ray.get(asked, timeout=ANSWER_SECONDS))
            is_heard = True
        except self.ray.exceptions.RayError:
            return  # it is lost, restarts, or is too busy to answer: the next call may get one
        finally:
            self.silence.look(time.monotonic(), is_heard)
        if status is not None and self.watch is not None:
            self.after, self.lines_seen = status.last_event, status.lines
            self.watch(status)

    def _has_written(self) -> bool:
        """Return True if the journal has changed since the last call."""
        before, self._written = self._written, []
        for path in (self.path, self.path.with_name(f"{self.path.name}-wal")):
            with contextlib.suppress(OSError):
                status = path.stat()
                self._written.append((status.st_mtime_ns, status.st_size))
        return self._written != before


def _stop(ray: Any, actor: Any, outcome: Any) -> None:
    """Have the study stop and record its trials. A second Ctrl-C ends the wait; the journal is whole in any case."""
    actor.stop.remote()
    give_up = time.monotonic() + STOP_SECONDS
    try:
        while time.monotonic() < give_up:
            if ray.wait([outcome], timeout=0.5)[0]:
                return
    except KeyboardInterrupt:
        return
