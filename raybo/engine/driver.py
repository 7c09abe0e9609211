"""Begins a study: checks what it is given, finds a Ray and starts the study actor."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from raybo import journal, methods, warm_start
from raybo.engine.connection import here, is_local, ray_for_study
from raybo.engine.follow import NAMESPACE, leave, run_to_end
from raybo.engine.plan import Plan
from raybo.engine.resources import workers_available
from raybo.engine.task import pickled
from raybo.errors import MethodError, ObjectiveError, RayError
from raybo.journal import Description
from raybo.methods.options import read
from raybo.objectives import LOADED_BY_PATH, Objective
from raybo.searcher import Searcher
from raybo.space import Space, object_to_json
from raybo.study import Study
from raybo.words import first_line

if TYPE_CHECKING:
    from raybo.engine.plan import Status

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
    known_from: Study | Path | str | None = None,
    enqueue: Sequence[Any] = (),
    detach: bool = False,
    watch: Callable[[Status], None] | None = None,
    **options: Any,
) -> Study:
    """Tune an objective on Ray, and return the study when it has ended.

    Uses the Ray that this process is connected to, else the cluster at `address`, else a local Ray of its own, which it
    shuts down. A study whose journal exists is continued: only what was in flight is run again.

    Args:
        objective: what `@raybo.objective` made.
        trials: how many trials to run, in all; those of the journal count, results from elsewhere do not.
        method: a method's name, see `raybo methods`; None for the journal's, or "auto" for a new study.
        seed: of every random stream; None for the journal's, or a fresh one.
        storage: the journal, an SQLite file; None keeps it only for as long as the study runs.
        workers: how many trials run at a time; None for as many as the cluster has room for.
        address: "auto" or HOST:PORT of a running cluster.
        max_minutes: stop the study after this time; what runs then is stopped.
        trial_seconds: time limit of one trial; None for the objective's own.
        retries: how often a trial starts again when its worker or node is lost.
        settings: the objective's keyword parameters.
        known_from: another study, or its journal: its finished trials that fit the space enter as known results.
        enqueue: configurations to run first; a pair of a configuration and a value enters as a known result.
        detach: leave the study running on its cluster, under the name of its journal without `.db`, and return at once
            with what there is; `raybo attach NAME` follows it, `raybo stop NAME` ends it.
        watch: called with a `Status` several times a second; `print` shows a line.
        options: the method's options.
    Raises:
        RayboError: an argument is wrong, the journal cannot be continued, or Ray cannot be used.
        KeyboardInterrupt: Ctrl-C; the study has been stopped and its journal is whole.
    """
    _check(objective, trials, workers, max_minutes, trial_seconds, retries)
    if detach and storage is None:
        raise RayError("a detached study needs a journal that stays; give storage")
    bound = objective.with_settings(**(settings or {}))
    space, context = bound.space, bound.context
    with tempfile.TemporaryDirectory(prefix=f"raybo-{os.getpid()}-") as scratch:
        path = Path(scratch, "study.db") if storage is None else Path(storage).absolute()
        description = describe(bound, space, context, method, seed, options, path)
        known = [] if known_from is None else warm_start.known_from(known_from, description, space)
        known += warm_start.known_of(enqueue, space)
        # what is wrong with the journal is better said before Ray is started
        warm_start.enter(path, description, space, context, known)
        _, events = journal.read(path)
        plan = Plan(
            description=description,
            path=path,
            trials=int(trials) + warm_start.count_added(events),
            workers=int(workers or 0),
            elastic=False,
            fills=False,
            retries=int(retries),
            trial_seconds=trial_seconds if trial_seconds is not None else bound.trial_seconds,
            max_seconds=None if max_minutes is None else 60 * max_minutes,
            driver=os.getpid(),
            detached=detach,
            begun=time.monotonic(),
            after=events[-1].number if events else 0,
        )
        try:
            _run(bound, plan, address, watch)
        except RayError:
            _, last_event = journal.describe(path)
            if not last_event:  # nothing was begun: leave nothing that the next command would have to match
                path.unlink()
            raise
        found, events = journal.read(path)
        return Study(found, events, None if storage is None else path, space, context)


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
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
            raise MethodError(f"{name} must be a whole number from {least}, got {value!r}")
    for name, limit in (("max_minutes", max_minutes), ("trial_seconds", trial_seconds)):
        if limit is not None and not (isinstance(limit, (int, float)) and limit > 0):
            raise MethodError(f"{name} must be above 0, got {limit!r}")


def describe(
    objective: Objective,
    space: Space,
    context: Space | None,
    method: str | None,
    seed: int | None,
    options: Mapping[str, Any],
    path: Path,
) -> Description:
    """What is to be studied: what the user says, and where he says nothing, what the journal says."""
    earlier = journal.describe(path)[0] if journal.exists(path) else None
    same_method = earlier is not None and method in (None, earlier.method)
    name = method or (earlier.method if earlier else "auto")
    if not options and same_method:
        options = cast(Description, earlier).options
    read(name, methods.load(name), options)  # first, as an option may be called like an argument of the searcher
    searcher = Searcher(
        space,
        name,
        objective.mode,
        seed if earlier is None or seed is not None else earlier.seed,
        context=context,
        **options,
    )
    return Description(
        objective=objective.name,
        metric=objective.metric,
        mode=objective.mode,
        space=space.to_json(),
        context=None if context is None else context.to_json(),
        method=name,
        seed=searcher.seed,
        settings={key: object_to_json(_named(value)) for key, value in sorted(objective.settings.items())},
        options={key: getattr(searcher.method, key) for key in sorted(options)},
    )


def _named(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else value


def _run(objective: Objective, plan: Plan, address: str | None, watch: Callable[[Status], None] | None) -> None:
    cpus = None if not plan.workers else max(os.cpu_count() or 1, int(-(-plan.workers * objective.num_cpus // 1)))
    with ray_for_study(address, cpus) as ray:
        from raybo.engine.actor import StudyActor

        local = is_local(ray)
        if plan.detached and local:
            raise RayError(
                "a detached study needs a Ray that goes on without this command: `ray start --head` starts one, "
                "address=auto joins it"
            )
        room = workers_available(ray.nodes(), objective)
        workers, elastic = plan.workers or room, not (plan.workers or local)
        plan = replace(plan, workers=min(workers, plan.trials), elastic=elastic, fills=workers >= room)
        sent, function = _sent(ray, objective)
        placed = {"num_cpus": 0, "max_concurrency": 1_000, "scheduling_strategy": here(ray)}
        if not plan.detached:
            # restarted by the follower: what Ray may restart, Ray's memory monitor kills before any trial
            make = ray.remote(StudyActor).options(**placed).remote
            run_to_end(ray, lambda: make(plan, sent, function), RESTARTS, plan.after, watch)
            return
        name = plan.path.stem
        placed |= {"name": name, "namespace": NAMESPACE, "lifetime": "detached"}
        placed |= {"max_restarts": RESTARTS, "max_task_retries": -1}  # by Ray, as nobody else is there
        try:
            leave(ray, ray.remote(StudyActor).options(**placed).remote(plan, sent, function))
        except ray.exceptions.ActorAlreadyExistsError:
            raise RayError(
                f"a study named {name} is running there already; `raybo attach {name}` follows it, "
                "another --storage begins another"
            ) from None


def _sent(ray: Any, objective: Objective) -> tuple[Objective, bytes]:
    """What goes to the study of an objective, and of its function to the workers; ObjectiveError where it cannot."""
    module = sys.modules.get(objective.function.__module__)
    if module is not None and not _importable(module):
        ray.cloudpickle.register_pickle_by_value(module)  # for good: another study may be using it just now
    sent = replace(objective, function=_no_function, declared_space=objective.space, declared_context=objective.context)
    try:
        function = pickled(objective.function)
        ray.cloudpickle.dumps(sent)
    except Exception as error:  # whatever a user's object raises when it is pickled
        raise ObjectiveError(
            f"{objective.name}: it cannot be sent to the workers: {first_line(error)}; "
            "make such things inside the function"
        ) from error
    return sent, function


def _no_function(config: Mapping[str, Any]) -> None:
    """Stands for the objective's function in the study actor, which never runs it and must not have to import it."""


def _importable(module: Any) -> bool:
    """Whether a worker can import the module by name: what was loaded from a file by its path it cannot."""
    return module.__name__ != "__main__" and not module.__name__.startswith(LOADED_BY_PATH)
