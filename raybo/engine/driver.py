"""Begins a study: checks the arguments, finds a Ray and starts the study actor."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from raybo import journal
from raybo.common.errors import JournalError, ObjectiveError, RayError
from raybo.common.messages import first_line, in_words
from raybo.engine.arguments import Arguments, taking, tune_arguments
from raybo.engine.description import searcher_for
from raybo.engine.follow import leave, make_named, run_to_end
from raybo.engine.in_process import InProcess
from raybo.engine.plan import Plan
from raybo.engine.progress import Watch, announce, watching
from raybo.engine.ray.connection import here, is_local, ray_for_study, starts_its_own
from raybo.engine.ray.liveness import RayDied
from raybo.engine.ray.named_studies import NAMESPACE
from raybo.engine.ray.pickling import culprit, directories_for, importable, pickled, unsendable, used_by
from raybo.engine.ray.resources import workers_available
from raybo.engine.run_options import RunOptions
from raybo.engine.temporary_directories import private_directory
from raybo.engine.trial.artifacts import claim, require_own
from raybo.engine.trial.task import LARGE_BYTES, stored
from raybo.job.code_fingerprint import code_of
from raybo.job.objective import Objective
from raybo.job.shared_data import Shared, is_data, sending, shared_by, size_of, token_of
from raybo.journal import Journal, requests
from raybo.journal.side_files import is_uri
from raybo.record.budget import budget_of
from raybo.record.code_changes import last_code, other_code
from raybo.record.description import Description
from raybo.record.event_fields import Code
from raybo.record.events import EarlierStudy, Event, Planned, artifacts_of
from raybo.searcher import Searcher
from raybo.searcher.priors import AUTO, new_priors
from raybo.searcher.wanted import Wanted, identity_of
from raybo.study import warm_start
from raybo.study.study import Study

log = logging.getLogger("raybo")

RAYS = 4  # local ones for a study: if all of them die, so would the next
RESTARTS = 100  # a study actor that dies is restarted so many times; each continues from the journal


@taking(tune_arguments)
def tune(given: Arguments) -> Study:
    # tunes an objective on Ray, and returns the study when it has ended; its docstring is that of `tune_arguments`
    with private_directory() if given.storage is None else contextlib.nullcontext("") as scratch:
        path = given.storage or Path(scratch, "study.db")
        started = time.monotonic()
        code = code_of(given.objective)
        run, searcher, description, events = _begin(given, path, code)  # a wrong journal is refused before Ray starts
        place = _artifacts(run, events)
        last = events[-1].number if events else 0
        planned = partial(
            Plan,
            description=description,
            path=path,
            options=run,
            trials=None if (wanted := run.wanted_trials) is None else wanted + warm_start.count_added(events),
            driver=os.getpid(),
            begun=started,
            is_kept=given.storage is not None,
            known=last,
            artifacts=place,
            directories=_directories(searcher),
            code=code,
        )
        try:
            with watching(False if run.detach and given.watch is None else given.watch) as watch:
                if run.in_process:
                    InProcess(planned(workers=1, after=last), given.objective, watch).run()
                else:
                    _run(given.objective, run, planned, last, watch)
        except RayError:
            if not journal.read(path, description)[1]:  # nothing has begun: leave nothing for the next command to match
                path.unlink()
            raise
        description, events = journal.read(path, description)
        if place is not None:
            claim(path, place, events)
        return Study(description.over(searcher.space, searcher.context), events, given.storage)


def _begin(given: Arguments, path: Path, code: Code | None) -> tuple[RunOptions, Searcher, Description, list[Event]]:
    """Begin or continue the study's journal, with what is known from elsewhere, and let the journal go.

    Returns:
        the options of the run, a searcher that knows of no trials, the description as the journal keeps it, and the
        journal's events.
    """
    goals = given.objective.goals
    with contextlib.closing(Journal(path)) as opened:
        run = _continued(given.run, opened.events, path)
        if (place := _artifacts(run, opened.events)) is not None:
            require_own(path, place, opened.events)
        searcher = searcher_for(
            given.objective,
            given.method,
            given.seed,
            given.options,
            opened.description,
            (given.scheduler, given.scheduler_options),
        )
        known = warm_start.known_of(given.enqueue, searcher.space, goals)
        if given.known_from is not None:
            _require_other(given.known_from, path)
            known = warm_start.known_from(given.known_from, goals, searcher.space, given.defaults) + known
        description = searcher.description.without_objects()
        wanted = Wanted.by(searcher.description, given.storage, identity_of(opened.description, opened.events))
        earlier = [event for event in opened.events if isinstance(event, EarlierStudy)]
        priors = new_priors(given.prior, wanted, earlier)
        named = given.prior if isinstance(given.prior, (list, tuple)) else [given.prior]
        if any(isinstance(each, str) and each == AUTO for each in named) and not (priors or earlier or wanted.identity):
            log.warning("%s: no journal in its directory can serve as a prior for this study", path.name)
        changed = "" if last_code(opened.events) == code else other_code(opened.events, code)
        if changed and given.run.same_code:
            raise JournalError(
                f"{path}: {changed}; restore that code, use another file, or leave out --same-code (same_code=True)"
            )
        if opened.description is None and (name := goals.doubtful):
            log.warning('%s: %s is being maximised (the default); use mode="min" to minimise it', path.name, name)
        opened.begin(description)
        requests.forget_stops(path)
        if changed:
            log.warning("%s: %s; the study continues and flags these trials", path.name, changed)
        return run, searcher, description, opened.events + warm_start.enter(opened, searcher, known, priors)


def _require_other(known_from: object, path: Path) -> None:
    """Raise JournalError if the results of a study's own journal are to enter it."""
    source = known_from.path if isinstance(known_from, Study) else known_from
    if isinstance(source, (str, os.PathLike)) and os.path.realpath(source) == os.path.realpath(path):
        raise JournalError(f"{path}: it is this study's own journal, which has its results; leave out --from")


def _continued(run: RunOptions, events: Sequence[Event], path: Path) -> RunOptions:
    """Return the options, with the cost that the trials in the journal have, unless the options say what counts.

    Raises:
        JournalError: the journal's budget is not a duration, and the new one's unit is not given.
    """
    before = next((event for event in reversed(events) if isinstance(event, Planned)), None)
    if before is None or run.price is not None or run.cost is not None or run.max_minutes is not None:
        return run
    if run.budget is None:
        return replace(run, cost=before.cost)
    if (earlier := budget_of(before)) is None or earlier.is_time:
        return run
    unit = f"--cost {earlier.cost}" if earlier.cost else f"--price {earlier.price:g}"
    raise JournalError(f"{path}: its budget is {earlier}; give {unit} too, or a time by --max-minutes")


def _artifacts(run: RunOptions, events: Sequence[Event]) -> str | None:
    """Return the place of the trials' directories, as given or as the journal has it; None for beside the journal."""
    return run.artifacts or next(filter(_is_there, artifacts_of(events)), None)


def _is_there(place: str) -> bool:
    """Return True if a place that the journal names can still be used; a directory may be another machine's."""
    return is_uri(place) or Path(place).is_dir()


def _directories(searcher: Searcher) -> list[str]:
    """Return where the user's own method and scheduler, if any, are imported from."""
    parts = [searcher.method] if searcher.rule is None else [searcher.method, searcher.rule.scheduler]
    modules = {type(part).__module__ for part in parts}
    return [place for name in sorted(modules) if not name.startswith("raybo.") for place in directories_for(name)]


def _run(objective: Objective, options: RunOptions, planned: partial[Plan], after: int, watch: Watch | None) -> None:
    """Run a study; if a Ray of its own dies, continue from the journal on another one.

    Args:
        planned: makes the plan from what depends on the Ray.
        after: number of the last event that is not to be shown.
    """
    workers, address = options.workers, options.address
    if why := unsendable({**used_by(objective.function), **objective.settings}):
        raise _not_sent(objective, why)  # before Ray, whose own pickle knows more, is started
    count = None if workers == "max" else workers
    each = objective.num_cpus * (1 if callable(objective.processes) else objective.processes)
    cpus = None if count is None else max(os.cpu_count() or 1, int(-(-count * each // 1)))
    size = _shared_bytes(objective)
    is_own = starts_its_own(address)
    left = RAYS if is_own else 1
    if is_own:
        announce(watch, "Starting Ray ...")
    while True:
        try:
            with ray_for_study(address, cpus, size) as ray:
                room = workers_available(ray.nodes(), objective)
                plan = planned(
                    workers=min(count or room, planned.keywords["trials"] or sys.maxsize),
                    elastic=count is None and not is_local(ray),
                    grows=workers == "max" and not is_local(ray),
                    takes_all_room=(count or room) >= room and objective.is_single,
                    after=after,
                )
                if plan.options.detach and is_local(ray):
                    raise RayError(
                        "a detached study needs a Ray that outlives this command: start one with `ray start "
                        "--head`, and give address=auto"
                    )
                _run_on(ray, objective, plan, watch)
                return
        except RayDied as died:
            left -= 1
            if not left:
                raise RayDied(f"{died}; what has finished is in the journal, the same command continues") from died
            log.warning("%s; starting another one, and continuing from the journal", died)
            after = len(journal.read(planned.keywords["path"])[1])


def _shared_bytes(objective: Objective) -> int:
    """Return about how many bytes a study shares; its data is made here, or ObjectiveError raised if that fails."""
    given = [value for value in objective.settings.values() if is_data(value)]
    try:
        return sum(
            size_of(each.value if isinstance(each, Shared) else each)
            for each in [*shared_by(objective.function).values(), *given]
        )
    except Exception as error:  # whatever a user's function raises
        raise ObjectiveError(f"{objective.name}: its shared data cannot be created: {in_words(error)}") from error


def _run_on(ray: Any, objective: Objective, plan: Plan, watch: Watch | None) -> None:
    """Start the study's actor, and follow it to its end or, if it is detached, until it has begun."""
    from raybo.engine.actor import StudyActor

    sent, pickle, data, named = _sent(ray, objective)
    held = len(pickle) + sum(size_of(each.value) for each in data.values())
    size = f"{held / 2**20:.0f} MiB of data"
    try:
        function = stored(ray, pickle, data, named)
    except (ray.exceptions.RayError, MemoryError, OSError) as error:
        raise ObjectiveError(
            f"{objective.name}: it holds {size}, for which Ray has no room ({first_line(error)}); load the data inside "
            "the function"
        ) from error
    if plan.options.detach and data:
        raise ObjectiveError(
            f"{objective.name}: it shares data, which is lost when this command ends, but a detached study goes on; "
            "load the data inside the function, or run the study without detaching it"
        )
    if plan.options.detach and function.objects:  # the object would go with this process
        raise ObjectiveError(
            f"{objective.name}: it holds {size}, and a detached study may hold {LARGE_BYTES / 2**20:.0f}; load the "
            "data inside the function, or run the study without detaching it"
        )
    placed = {"num_cpus": 0, "max_concurrency": 1_000, "scheduling_strategy": here(ray)}
    if not plan.options.detach:
        # restarted by the follower: what Ray may restart, Ray's memory monitor kills before any trial
        make = ray.remote(StudyActor).options(**placed).remote
        run_to_end(ray, lambda: make(plan, sent, function), plan.path, RESTARTS, plan.after, watch)
        return
    name = plan.path.stem
    placed |= {"name": name, "namespace": NAMESPACE, "lifetime": "detached"}
    placed |= {"max_restarts": RESTARTS, "max_task_retries": -1}  # by Ray, as nobody else is there
    try:
        make = ray.remote(StudyActor).options(**placed).remote
        leave(ray, make_named(ray, name, lambda: make(plan, sent, function)), plan.path)
    except ray.exceptions.ActorAlreadyExistsError:
        raise RayError(
            f"a study named {name} is already running on this cluster; `raybo attach {name}` follows it, "
            "give another --storage to start a new one"
        ) from None


def _sent(
    ray: Any, objective: Objective
) -> tuple[Objective, bytes, dict[str, Shared[Any]], dict[tuple[str, str], str]]:
    """Return the objective for the study's actor and, for the workers, its pickled function, its data and their names.

    Raises:
        ObjectiveError: something of it cannot be sent.
    """
    module = sys.modules.get(objective.function.__module__)
    if module is not None and not importable(module):
        ray.cloudpickle.register_pickle_by_value(module)  # for good: another study may be using it just now
    settings = objective.settings
    given = {k: v if isinstance(v, Shared) else Shared(v) for k, v in settings.items() if is_data(v)}
    plain = {name: value for name, value in settings.items() if name not in given}
    sent = replace(objective, function=_no_function, settings=plain)
    try:
        with sending() as data:
            function = pickled(objective.function, given)
        ray.cloudpickle.dumps(sent)
    except Exception as error:  # whatever a user's object raises when it is pickled
        why = culprit({**used_by(objective.function), **settings}, ray.cloudpickle.dumps) or first_line(error)
        raise _not_sent(objective, why) from error
    named = {
        place: token_of(each, data)
        for place, each in shared_by(objective.function).items()
        if importable(sys.modules[place[0]])
    }
    return sent, function, data, named


def _not_sent(objective: Objective, why: str) -> ObjectiveError:
    return ObjectiveError(
        f"{objective.name}: it cannot be sent to the workers: {why}; create such objects inside the function"
    )


def _no_function(config: Mapping[str, Any]) -> None:
    """Stands for the objective's function in the study actor, which never runs it and must not have to import it."""
