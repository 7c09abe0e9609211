"""Begins a study: checks the arguments, finds a Ray and starts the study actor."""

from __future__ import annotations

import contextlib
import inspect
import logging
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from raybo import journal, methods, schedulers
from raybo.common.arguments import by_name, finite_number, one_of, truth, whole_number
from raybo.common.errors import MethodError, ObjectiveError, RayError
from raybo.common.messages import ELSEWHERE, first_line, in_words, near, shown
from raybo.engine.artifacts import Mirror
from raybo.engine.follow import NAMESPACE, leave, make_named, run_to_end
from raybo.engine.plan import Plan
from raybo.engine.progress import Watch, watching
from raybo.engine.ray.connection import here, is_local, ray_for_study, starts_its_own
from raybo.engine.ray.liveness import RayDied
from raybo.engine.ray.pickling import directories_for, pickled
from raybo.engine.ray.resources import workers_available
from raybo.engine.temporary_directories import private_directory
from raybo.engine.trial.checkpoints import Keep
from raybo.engine.trial.task import LARGE_BYTES, stored
from raybo.job.loading import is_loaded_by_path, require_not_loading
from raybo.job.objective import Objective
from raybo.job.shared_data import Shared, fingerprint, is_data, sending, shared_by, size_of, token_of
from raybo.journal import Description, Journal
from raybo.journal.beside import is_uri, trial_uri
from raybo.record.events import artifacts_of
from raybo.record.history import GENERATION
from raybo.record.stopping import Limits
from raybo.schedulers import Scheduler
from raybo.searcher import Searcher
from raybo.space import object_to_json
from raybo.study import warm_start
from raybo.study.confirmation import Confirm
from raybo.study.study import Study

if TYPE_CHECKING:
    from typing_extensions import Unpack  # typing has it from Python 3.11

    from raybo.engine.plan import Status
    from raybo.methods.keywords import MethodOptions

log = logging.getLogger("raybo")

TYPING_ERROR = 0.75  # how alike an unknown option and an argument of `tune` are, for one to be the other
RAYS = 4  # local ones for a study: where every one of them dies, so would the next
RESTARTS = 100  # of a study actor that dies; each continues from the journal


def tune(
    objective: Objective,
    *,
    trials: int = 50,
    method: methods.AnyMethod | None = None,
    seed: int | None = None,
    storage: Path | str | None = None,
    workers: int | Literal["max"] | None = None,
    address: str | None = None,
    max_minutes: float | None = None,
    trial_seconds: float | None = None,
    retries: int = 2,
    settings: Mapping[str, Any] | None = None,
    metrics: Mapping[str, str] | None = None,
    constraints: Mapping[str, str] | None = None,
    known_from: Study | Path | str | None = None,
    defaults: Mapping[str, Any] | None = None,
    enqueue: Sequence[Any] = (),
    detach: bool = False,
    fresh_workers: bool = False,
    retry_failed: bool = False,
    keep_going: bool = False,
    target: float | None = None,
    patience: int | None = None,
    stop_below_gain: float | None = None,
    confirm: str | tuple[int, int] | None = None,
    scheduler: schedulers.AnyScheduler | None = None,
    scheduler_options: Mapping[str, Any] | None = None,
    artifacts: Path | str | None = None,
    keep_checkpoints: Keep = "last",
    watch: Callable[[Status], object] | Literal[False] | None = None,
    **options: Unpack[MethodOptions],
) -> Study:
    """Tune an objective on Ray, and return the study when it has ended.

    Uses the Ray that this process is connected to, else the cluster at `address`, else a local Ray of its own, which it
    shuts down afterwards. If the journal exists, its study is continued: only trials that were in flight are run again.

    Args:
        objective: a function decorated with `@raybo.objective`.
        trials: how many trials to run in total, counting those already in the journal but not results from elsewhere.
        method: a method's name, see `raybo methods`, or your own: the text "package.module:Class", a class derived from
            `raybo.methods.Method`, or one made of it with its options, if its module can be imported; None for the
            journal's, or "auto" for a new study.
        seed: seed of every random stream; None for the journal's, or a fresh one.
        storage: the journal, an SQLite file; None keeps it only while the study runs.
        workers: how many trials run at a time; None for as many as the cluster has room for, "max" for a few more,
            which wait in a queue so that an autoscaling cluster grows to its limit.
        address: "auto" or HOST:PORT of a running cluster.
        max_minutes: stop the study, and the trials that are running, after this time.
        trial_seconds: time limit of one trial; None for the objective's own.
        retries: how often a trial is restarted when its worker or node is lost.
        settings: the objective's keyword parameters.
        metrics: two to four metrics, by name, instead of the objective's own.
        constraints: bounds on returned numbers, by name, instead of the objective's own.
        known_from: another study, or its journal; its finished trials that fit the space are added as known results.
        defaults: for parameters that only this space has, the values that they had in the other study, by name (dotted
            if nested): `{"drop": 0.0}`.
        enqueue: configurations to run first, all of them, even if there are more than `trials`; a pair of a
            configuration and a value is added as a known result.
        detach: leave the study running on its cluster, under the name of its journal without `.db`, and return at once
            with what there is so far; `raybo attach NAME` follows it, `raybo stop NAME` ends it.
        fresh_workers: run every trial in a new process, for jobs that leave something behind in their process (a
            patched module, a limit, memory); it costs a second or two per trial, and whatever a job caches is computed
            again.
        retry_failed: run failed trials again, under their own numbers.
        keep_going: carry on even if the first trials all fail in the same way; otherwise the study ends after 5 of
            them, or as many as run at a time if that is more.
        target: stop once a trial reaches this value.
        patience: stop once this many trials in a row have finished without improving on the best one or, with several
            metrics, without joining the front.
        stop_below_gain: stop once three proposals in a row are expected to improve the best value by less than this, in
            the metric's units.
        confirm: how many configurations to run again at the end, and how often each, every time with another seed, as
            "5x3" or (5, 3); `Study.confirmed` has their means.
        scheduler: name of the rule that ends trials early, see `raybo schedulers`, or your own, as for a method; None
            for the journal's, or for no rule in a new study. The objective must declare its steps.
        scheduler_options: its options.
        artifacts: where the trials' directories, with their checkpoints, are kept: a directory, or a URI of a file
            system that pyarrow supports; None for the place that the journal names, if that place exists, or else
            beside the journal.
        keep_checkpoints: which checkpoints of trials that have ended to keep: "all", the "last", or "none".
        watch: called with a `Status` several times a second; `print` prints a line whenever there is news. None shows
            progress on a terminal and in a notebook, and nothing elsewhere; False never shows anything.
        options: the method's options.
    Raises:
        RayboError: an argument is wrong, the journal cannot be continued, or Ray cannot be used.
        TrialError: the first trials all failed in the same way.
        KeyboardInterrupt: Ctrl-C; the study has been stopped and its journal is whole.
    Example:
        >>> @raybo.objective(space={"x": raybo.Float(0, 1)}, metric="loss", mode="min")
        ... def job(config):
        ...     return (config["x"] - 0.3) ** 2
        >>> study = raybo.tune(job, trials=4, method="random", seed=0, storage="tuned.db")
        >>> study.count(raybo.State.FINISHED), study.best.value < 0.5
        (4, True)
    """
    require_not_loading()
    if not isinstance(objective, Objective):
        raise ObjectiveError(
            f"an objective is needed, got {shown(objective)}; decorate the function with @raybo.objective"
        )
    trials = whole_number(trials, "trials")
    if workers is not None and not (isinstance(workers, str) and workers == "max"):
        workers = whole_number(workers, "workers")
    retries = whole_number(retries, "retries", at_least=0)
    if max_minutes is not None:
        max_minutes = finite_number(max_minutes, "max_minutes", above=0)
    if trial_seconds is not None:
        trial_seconds = finite_number(trial_seconds, "trial_seconds", above=0)
    detach, fresh_workers = truth(detach, "detach"), truth(fresh_workers, "fresh_workers")
    retry_failed, keep_going = truth(retry_failed, "retry_failed"), truth(keep_going, "keep_going")
    if address is not None and not isinstance(address, str):
        raise RayError(f"address must be 'auto' or HOST:PORT, got {shown(address)}")
    if watch is not None and watch is not False and not callable(watch):
        raise MethodError(f"watch must be a function of a status, None or False, got {shown(watch)}")
    keep_checkpoints = one_of(keep_checkpoints, "keep_checkpoints", get_args(Keep))
    place = _place_of(artifacts)
    if place is not None and storage is None:
        raise RayError("artifacts are kept under the name of a permanent journal; give storage")
    if settings is not None:
        by_name(settings, "settings", "the objective's keyword parameters", ObjectiveError)
    if scheduler_options is not None:
        by_name(scheduler_options, "scheduler_options", "the scheduler's options by name")
    if defaults is not None:
        by_name(defaults, "defaults", "values by name")
    if method is not None:
        methods.name_of(method)  # which refuses what is none, or what no study could import
    limits = Limits(target, patience, stop_below_gain)
    confirmation = None if confirm is None else Confirm.of(confirm)
    if detach and storage is None:
        raise RayError("a detached study needs a permanent journal; give storage")
    bound = objective.with_settings(**(settings or {}))
    bound.require_settings()
    bound = bound.wanting(metrics, constraints)
    for what, given in (("target", target), ("stop_below_gain", stop_below_gain), ("confirm", confirm)):
        if given is not None and bound.goals.k > 1:
            raise MethodError(f"{what} needs a single metric, and there are {bound.goals.k}; leave it out")
    bound = replace(bound, declared_space=bound.space, declared_context=bound.context, declared_steps=bound.steps)
    rule = (scheduler, {} if scheduler_options is None else scheduler_options)
    with private_directory() as scratch:
        path = Path(scratch, "study.db") if storage is None else journal.as_path(storage, "storage").absolute()
        begun = time.monotonic()
        # what is wrong with the journal is better said before Ray is started
        with contextlib.closing(Journal(path)) as opened:
            description, searcher = describe(bound, method, seed, options, opened.description, rule)
            known = warm_start.known_of(enqueue, searcher.space, bound.goals)
            if known_from is not None:
                known = warm_start.known_from(known_from, bound.goals, searcher.space, defaults) + known
            elif defaults:
                raise MethodError(
                    "defaults (--default) fill in the results of another study; give known_from (--from) too"
                )
            opened.begin(description)
            events = opened.events + warm_start.enter(opened, searcher, known)
            kept_at = place or next(filter(_is_there, artifacts_of(events)), None)
        planned = partial(
            Plan,
            description=description,
            path=path,
            trials=trials + warm_start.count_added(events),
            retries=retries,
            trial_seconds=bound.trial_seconds if trial_seconds is None else float(trial_seconds),
            max_seconds=None if max_minutes is None else 60 * float(max_minutes),
            driver=os.getpid(),
            detached=detach,
            begun=begun,
            fresh_workers=fresh_workers,
            is_kept=storage is not None,
            known=events[-1].number if events else 0,
            retry_failed=retry_failed,
            keep_going=keep_going,
            artifacts=kept_at,
            limits=limits,
            confirm=confirmation,
            keep_checkpoints=keep_checkpoints,
            directories=_directories(searcher),
        )
        try:
            with watching(False if detach and watch is None else watch) as seen:
                _run(bound, planned, workers, events[-1].number if events else 0, address, seen)
        except RayError:
            if not journal.read(path)[1]:  # nothing was begun: leave nothing that the next command would have to match
                path.unlink()
            raise
        return Study(*journal.read(path), None if storage is None else path, searcher.space, searcher.context)


def _place_of(artifacts: Path | str | None) -> str | None:
    """Where trials' directories are to be, as workers find it; RayError where that is a URI that cannot be used."""
    if artifacts is None:
        return None
    if is_uri(str(artifacts)):
        Mirror(str(artifacts))
        Mirror(trial_uri("study.db", 0, str(artifacts)))  # which a URI of nothing but a scheme has none of
        return str(artifacts)
    return str(journal.as_path(artifacts, "artifacts").expanduser().absolute())


def _is_there(place: str) -> bool:
    """Whether a place that the journal names can be gone on with; a directory may be another machine's."""
    return is_uri(place) or Path(place).is_dir()


def describe(
    objective: Objective,
    method: methods.AnyMethod | None,
    seed: int | None,
    options: Mapping[str, Any],
    earlier: Description | None,
    rule: tuple[schedulers.AnyScheduler | None, Mapping[str, Any]] = (None, {}),
) -> tuple[Description, Searcher]:
    """The study's description, and a searcher for it that has seen none of its events.

    What the user says counts; where the user says nothing, what the journal says.

    Args:
        rule: the scheduler and its options.
    """
    scheduler, given = rule
    rule_name = None if scheduler is None else schedulers.name_of(scheduler)  # an unknown one is the first thing to say
    if earlier is not None and rule_name in (None, earlier.scheduler) and not isinstance(scheduler, Scheduler):
        scheduler = rule_name = earlier.scheduler
        given = given or earlier.scheduler_options
    steps = objective.steps
    if scheduler is not None and steps is None:
        raise ObjectiveError(
            f"{objective.name} declares no steps, so there is nothing for the scheduler {rule_name} to judge; say with "
            "@raybo.objective(..., steps=...) how many reports a whole run makes"
        )
    name = "auto" if method is None else methods.name_of(method)
    if earlier is not None:
        name = earlier.method if method is None else name
        seed = earlier.seed if seed is None else seed
        if name == earlier.method and not options and not isinstance(method, methods.Method):
            options = earlier.options
    method = name if method is None else method
    for option in options:
        is_known = option in ELSEWHERE or option in (known for known, _, _ in methods.describe(method)[1])
        if not is_known and (meant := near(option, list(inspect.signature(tune).parameters), TYPING_ERROR)):
            raise MethodError(f"there is no option {option!r}; did you mean {meant!r}?")
    chosen = methods.make(method, **options)
    space, context = objective.space, objective.context
    goals = objective.goals
    generation = GENERATION if earlier is None else earlier.generation
    searcher = Searcher(
        space,
        chosen,
        objective.mode,
        seed,
        context=context,
        steps=steps,
        scheduler=scheduler,
        scheduler_options=given,
        metrics=goals.metrics,
        constraints=goals.rules,
        metric=objective.metric,
        generation=generation,
    )
    description = Description(
        objective=objective.name,
        metric=objective.metric,
        mode=objective.mode,
        space=space.to_json(),
        context=None if context is None else context.to_json(),
        method=name,
        seed=searcher.seed,
        settings={key: object_to_json(_named(value)) for key, value in sorted(objective.settings.items())},
        options=methods.options_of(method, chosen, options),
        steps=steps,
        value=objective.value,
        scheduler=rule_name,
        scheduler_options=(
            {} if searcher.rule is None else schedulers.options_of(scheduler, searcher.rule.scheduler, given)
        ),
        metrics=goals.metrics,
        constraints=goals.rules,
        generation=generation,
    )
    return description, searcher


def _directories(searcher: Searcher) -> list[str]:
    """Return where the user's own method and scheduler, if any, are imported from."""
    parts = [searcher.method] if searcher.rule is None else [searcher.method, searcher.rule.scheduler]
    modules = {type(part).__module__ for part in parts}
    return [place for name in sorted(modules) if not name.startswith("raybo.") for place in directories_for(name)]


def _named(value: Any) -> Any:
    return fingerprint(value) if is_data(value) else str(value) if isinstance(value, Path) else value


def _run(
    objective: Objective,
    planned: partial[Plan],
    workers: int | Literal["max"] | None,
    after: int,
    address: str | None,
    watch: Watch | None,
) -> None:
    """Run a study; where a Ray of its own dies, on another one, which goes on from the journal.

    Args:
        planned: makes the plan from what depends on the Ray.
        after: number of the last event that is old news.
    """
    count = None if workers == "max" else workers
    cpus = None if count is None else max(os.cpu_count() or 1, int(-(-count * objective.num_cpus // 1)))
    size = _shared_bytes(objective)
    left = RAYS if starts_its_own(address) else 1
    while True:
        try:
            with ray_for_study(address, cpus, size) as ray:
                room = workers_available(ray.nodes(), objective)
                plan = planned(
                    workers=min(count or room, planned.keywords["trials"]),
                    elastic=count is None and not is_local(ray),
                    grows=workers == "max" and not is_local(ray),
                    takes_all_room=(count or room) >= room,
                    after=after,
                )
                if plan.detached and is_local(ray):
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
    """About how many bytes a study shares; what makes its data is called here. ObjectiveError where that fails."""
    given = [value for value in objective.settings.values() if is_data(value)]
    try:
        return sum(
            size_of(each.value if isinstance(each, Shared) else each)
            for each in [*shared_by(objective.function).values(), *given]
        )
    except Exception as error:  # whatever a user's function raises
        raise ObjectiveError(f"{objective.name}: its shared data cannot be created: {in_words(error)}") from error


def _run_on(ray: Any, objective: Objective, plan: Plan, watch: Watch | None) -> None:
    """Start the study's actor, and follow it to its end, or until it has begun where it is detached."""
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
    if plan.detached and data:
        raise ObjectiveError(
            f"{objective.name}: it shares data, which is lost when this command ends, but a detached study goes on; "
            "load the data inside the function, or run the study without detaching it"
        )
    if plan.detached and function.objects:  # the object would go with this process
        raise ObjectiveError(
            f"{objective.name}: it holds {size}, and a detached study may hold {LARGE_BYTES / 2**20:.0f}; load the "
            "data inside the function, or run the study without detaching it"
        )
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
        leave(ray, make_named(ray, name, lambda: ray.remote(StudyActor).options(**placed).remote(plan, sent, function)))
    except ray.exceptions.ActorAlreadyExistsError:
        raise RayError(
            f"a study named {name} is already running on this cluster; `raybo attach {name}` follows it, "
            "give another --storage to start a new one"
        ) from None


def _sent(
    ray: Any, objective: Objective
) -> tuple[Objective, bytes, dict[str, Shared[Any]], dict[tuple[str, str], str]]:
    """What goes to the study of an objective, and of its function to the workers: that, its data, and their names.

    Raises:
        ObjectiveError: something of it cannot be sent.
    """
    module = sys.modules.get(objective.function.__module__)
    if module is not None and not _importable(module):
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
        raise ObjectiveError(
            f"{objective.name}: it cannot be sent to the workers: {first_line(error)}; "
            "create such objects inside the function"
        ) from error
    named = {
        place: token_of(each, data)
        for place, each in shared_by(objective.function).items()
        if _importable(sys.modules[place[0]])
    }
    return sent, function, data, named


def _no_function(config: Mapping[str, Any]) -> None:
    """Stands for the objective's function in the study actor, which never runs it and must not have to import it."""


def _importable(module: Any) -> bool:
    """Whether a worker can import the module by name: what was loaded from a file by its path it cannot."""
    return module.__name__ != "__main__" and not is_loaded_by_path(module)
