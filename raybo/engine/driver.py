"""The driver's side of a study: checks what it is given, finds a Ray, starts the study actor and follows it."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from raybo import journal, methods
from raybo.engine.connection import first_line, here, ray_for_study, workers_available
from raybo.engine.plan import Plan
from raybo.engine.task import pickled
from raybo.errors import MethodError, ObjectiveError, RayboError, RayError
from raybo.journal import Description, Journal
from raybo.methods.options import read
from raybo.objectives import Objective
from raybo.searcher import Searcher
from raybo.space import Space
from raybo.space.parameters import object_to_json
from raybo.study import Study

if TYPE_CHECKING:
    from raybo.engine.plan import Status

POLL_SECONDS = 0.2
STOP_SECONDS = 20.0  # after which a study that does not stop is killed; its journal is whole all the same
RESTARTS = 100  # of a study actor that dies; each continues from the journal


def tune(
    objective: Objective,
    *,
    trials: int = 50,
    method: str | None = None,
    seed: int | None = None,
    storage: Path | str | None = None,
    workers: int | None = None,
    address: str | None = None,
    max_minutes: float | None = None,
    trial_seconds: float | None = None,
    retries: int = 2,
    settings: Mapping[str, Any] | None = None,
    watch: Callable[[Status], None] | None = None,
    **options: Any,
) -> Study:
    """Tune an objective on Ray, and return the study when it has ended.

    Uses the Ray that this process is connected to, else the cluster at `address`, else a local Ray of its own, which it
    shuts down. A study whose journal exists is continued: only what was in flight is run again.

    Args:
        objective: what `@raybo.objective` made.
        trials: how many trials to run, in all; those of the journal count.
        method: a method's name, see `raybo methods`; None for the journal's, or "auto" for a new study.
        seed: of every random stream; None for the journal's, or a fresh one.
        storage: the journal, an SQLite file; None keeps it only for as long as the study runs.
        workers: how many trials run at a time; None for as many as the cluster has room for.
        address: "auto" or HOST:PORT of a running cluster.
        max_minutes: stop the study after this time; what runs then is stopped.
        trial_seconds: time limit of one trial; None for the objective's own.
        retries: how often a trial starts again when its worker or node is lost.
        settings: the objective's keyword parameters.
        watch: called with a `Status` several times a second; `print` shows a line.
        options: the method's options.
    Raises:
        RayboError: an argument is wrong, the journal cannot be continued, or Ray cannot be used.
        KeyboardInterrupt: Ctrl-C; the study has been stopped and its journal is whole.
    """
    _check(objective, trials, workers, max_minutes, trial_seconds, retries)
    bound = objective.with_settings(**(settings or {}))
    space = bound.space
    with tempfile.TemporaryDirectory(prefix=f"raybo-{os.getpid()}-") as scratch:
        path = Path(scratch, "study.db") if storage is None else Path(storage).absolute()
        description = _describe(bound, space, method, seed, options, path)
        Journal(path, description).close()  # what is wrong with it is better said before Ray is started
        try:
            _run(bound, description, path, trials, workers, address, max_minutes, trial_seconds, retries, watch)
        except RayError:
            if not journal.read(path)[1]:  # nothing was begun: leave nothing that the next command would have to match
                path.unlink()
            raise
        found, events = journal.read(path)
        return Study(found, events, None if storage is None else path, space)


def _check(
    objective: object,
    trials: object,
    workers: object,
    max_minutes: float | None,
    trial_seconds: float | None,
    retries: object,
) -> None:
    if not isinstance(objective, Objective):
        raise ObjectiveError(f"an objective is needed, got {objective!r}; decorate the function with @raybo.objective")
    for name, value, least in (("trials", trials, 1), ("workers", workers, 1), ("retries", retries, 0)):
        if value is None and name == "workers":
            continue
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise MethodError(f"{name} must be a whole number from {least}, got {value!r}")
    for name, limit in (("max_minutes", max_minutes), ("trial_seconds", trial_seconds)):
        if limit is not None and not (isinstance(limit, (int, float)) and limit > 0):
            raise MethodError(f"{name} must be above 0, got {limit!r}")


def _describe(
    objective: Objective, space: Space, method: str | None, seed: int | None, options: Mapping[str, Any], path: Path
) -> Description:
    """What is to be studied: what the user says, and where he says nothing, what the journal says."""
    earlier = journal.read(path)[0] if journal.exists(path) else None
    same_method = earlier is not None and method in (None, earlier.method)
    name = method or (earlier.method if earlier else "auto")
    if not options and same_method:
        options = cast(Description, earlier).options
    read(name, methods.load(name), options)  # first, as an option may be called like an argument of the searcher
    searcher = Searcher(
        space, name, objective.mode, seed if earlier is None or seed is not None else earlier.seed, **options
    )
    return Description(
        objective=objective.name,
        metric=objective.metric,
        mode=objective.mode,
        space=space.to_json(),
        method=name,
        seed=searcher.seed,
        settings={key: object_to_json(_named(value)) for key, value in sorted(objective.settings.items())},
        options={key: getattr(searcher.method, key) for key in sorted(options)},
    )


def _named(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else value


def _run(
    objective: Objective,
    description: Description,
    path: Path,
    trials: int,
    workers: int | None,
    address: str | None,
    max_minutes: float | None,
    trial_seconds: float | None,
    retries: int,
    watch: Callable[[Status], None] | None,
) -> None:
    cpus = None if workers is None else max(os.cpu_count() or 1, int(-(-workers * objective.num_cpus // 1)))
    with ray_for_study(address, cpus) as ray:
        from raybo.engine.actor import StudyActor

        custom = dict(objective.resources)
        room = workers_available(ray, objective.num_cpus, objective.num_gpus, objective.memory, custom)
        limit = trial_seconds if trial_seconds is not None else objective.trial_seconds
        plan = Plan(
            description=description,
            path=path,
            trials=trials,
            workers=min(workers or room, trials),
            retries=retries,
            trial_seconds=limit,
            max_seconds=None if max_minutes is None else 60 * max_minutes,
            driver=os.getpid(),
        )
        module = sys.modules.get(objective.function.__module__)
        if module is not None and not _importable(module):
            ray.cloudpickle.register_pickle_by_value(module)  # for good: another study may be using it just now
        sent = replace(objective, function=_no_function, declared_space=objective.space)
        try:
            function = pickled(objective.function)
            ray.cloudpickle.dumps(sent)
        except Exception as error:  # whatever a user's object raises when it is pickled
            raise ObjectiveError(
                f"{objective.name}: it cannot be sent to the workers: {first_line(error)}; "
                "make such things inside the function"
            ) from error
        actor = (
            ray.remote(StudyActor)
            .options(
                num_cpus=0,
                max_restarts=RESTARTS,
                max_task_retries=-1,
                max_concurrency=1_000,
                scheduling_strategy=here(ray),
            )
            .remote(plan, sent)
        )
        _follow(ray, actor, function, watch)


def _no_function(config: Mapping[str, Any]) -> None:
    """Stands for the objective's function in the study actor, which never runs it and must not have to import it."""


def _importable(module: Any) -> bool:
    """Whether a worker can import the module by name: what was loaded from a file by its path it cannot."""
    return module.__name__ != "__main__" and not module.__name__.startswith("raybo_objective_")


def _follow(ray: Any, actor: Any, function: bytes, watch: Callable[[Status], None] | None) -> None:
    """Wait for the study's end and show its status meanwhile; Ctrl-C stops it."""
    running = actor.run.remote(function)
    notes = 0
    try:
        while True:
            done, _ = ray.wait([running], timeout=POLL_SECONDS)
            notes = _show(ray, actor, watch, notes)
            if done:
                ray.get(running)
                break
    except KeyboardInterrupt:
        _stop(ray, actor, running)
        _show(ray, actor, watch, notes)
        raise
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, RayboError):
            raise error.cause from None
        raise
    except ray.exceptions.RayActorError as error:
        raise RayError(
            f"the study's own process was lost for good ({first_line(error)}); the same command continues the study"
        ) from error
    finally:
        ray.kill(actor)


def _show(ray: Any, actor: Any, watch: Callable[[Status], None] | None, notes: int) -> int:
    if watch is None:
        return notes
    try:
        status = cast("Status | None", ray.get(actor.status.remote(notes), timeout=5))
    except (ray.exceptions.RayActorError, ray.exceptions.GetTimeoutError):
        return notes  # it restarts, or is too busy to answer: the next call will say
    if status is None:
        return notes
    watch(status)
    return notes + len(status.notes)


def _stop(ray: Any, actor: Any, running: Any) -> None:
    """Let the study record what it stops. A second Ctrl-C ends the wait; the journal is whole in any case."""
    actor.stop.remote()
    give_up = time.monotonic() + STOP_SECONDS
    try:
        while time.monotonic() < give_up:
            if ray.wait([running], timeout=0.5)[0]:
                return
    except KeyboardInterrupt:
        return
