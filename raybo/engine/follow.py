"""Follows a running study: its status while it lasts, its outcome, and its end when the user stops it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, cast

from raybo import journal
from raybo.common.errors import RayboError, RayError
from raybo.common.messages import first_line
from raybo.engine.ray.connection import ray_for_study
from raybo.engine.ray.liveness import Liveness, RayDied
from raybo.engine.ray.named_studies import NAMESPACE, study_names
from raybo.study.study import Study

if TYPE_CHECKING:
    from raybo.engine.plan import Plan
    from raybo.engine.status import Status

POLL_SECONDS = 0.2
NAME_SECONDS = 20.0  # Ray frees the name of a study that has ended within this time
STOP_SECONDS = 20.0  # a study that has not stopped by then is killed; its journal is whole all the same


class StudyLost(RayError):
    """The study's process is gone."""


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
    ray: Any, make: Callable[[], Any], restarts: int, after: int, watch: Callable[[Status], object] | None
) -> None:
    """Run a study that belongs to this process to its end, and show its status; Ctrl-C stops it.

    Args:
        ray: the module, connected.
        make: makes a study actor, which continues from the journal; called again if one is lost.
        restarts: how often it may be called again.
        after: number of the last event whose notes are not shown.
        watch: called with a `Status` several times a second.
    Raises:
        RayDied: the Ray that it runs on is gone.
        RayboError: what ended the study early.
        KeyboardInterrupt: Ctrl-C; the study has been stopped and its journal is whole.
    """
    show = _Show(ray, watch, after)
    while True:
        actor = make()
        outcome = actor.outcome.remote()
        has_died = False
        try:
            _wait(ray, actor, outcome, show)
            return
        except KeyboardInterrupt:
            _stop(ray, actor, outcome)
            show(actor)
            raise
        except RayDied:
            has_died = True
            raise
        except StudyLost:
            if not restarts:
                raise
            restarts -= 1
        finally:
            if not has_died:  # else there is no Ray to ask
                ray.kill(actor)


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


def leave(ray: Any, actor: Any) -> None:
    """Wait until a detached study has begun, so that its driver raises what is wrong with it."""
    outcome = actor.outcome.remote()
    while not ray.wait([outcome], timeout=POLL_SECONDS)[0]:
        if ray.get(actor.status.remote()) is not None:
            return
    _wait(ray, actor, outcome, _Show(ray, None, 0))


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
        try:
            _wait(ray, actor, actor.outcome.remote(), _Show(ray, watch, 0))
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
        f"`raybo show {quote(str(path))}` shows it there"
    )


def _ended(path: Path) -> Ended:
    return Ended(path, Study(*journal.read(path), path) if journal.exists(path) else None)


def _wait(ray: Any, actor: Any, outcome: Any, show: _Show) -> None:
    """Wait until the study has ended. Raises what ended it early."""
    liveness = Liveness(ray)
    try:
        done: list[Any] = []
        while not done:
            done, _ = ray.wait([outcome], timeout=POLL_SECONDS)
            if not done:
                liveness.check()
            show(actor)
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
    """Passes the status to whoever watches, and each note once."""

    def __init__(self, ray: Any, watch: Callable[[Status], object] | None, after: int) -> None:
        self.ray, self.watch, self.after, self.lines_seen = ray, watch, after, 0

    def __call__(self, actor: Any) -> None:
        if self.watch is None:
            return
        try:
            status = cast("Status | None", self.ray.get(actor.status.remote(self.after, self.lines_seen), timeout=5))
        except self.ray.exceptions.RayError:
            return  # it is lost, restarts, or is too busy to answer: the next call may get one
        if status is not None:
            self.after, self.lines_seen = status.last_event, status.lines
            self.watch(status)


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
