"""The arguments of `raybo.tune`: their meaning, types, ranges, and how the command line spells and explains them.

An argument about the run of a study is a field of `RunOptions`, from which the command line makes its option. One
about its subject is a field of `raybo.record.description.Description`.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar

from raybo import journal, methods, schedulers
from raybo.common.arguments import by_name
from raybo.common.errors import MethodError, ObjectiveError, RayError
from raybo.common.messages import shown
from raybo.engine.run_options import Keep, RunOptions
from raybo.engine.trial.artifacts import Mirror
from raybo.job.loading import require_not_loading
from raybo.job.objective import Objective
from raybo.journal.side_files import is_uri, trial_uri
from raybo.record.budget import require_beside_goals
from raybo.record.fidelity import Fidelities

if TYPE_CHECKING:
    from typing_extensions import Unpack  # typing has it from Python 3.11

    from raybo.engine.status import Status
    from raybo.methods.keywords import MethodOptions
    from raybo.searcher.priors import Given
    from raybo.study.study import Study

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class Arguments:
    """The arguments of one call of `raybo.tune`, checked.

    Attributes:
        objective: with its settings and goals, and with its space, contexts and steps made from them.
        run: how to run the study.
        storage: the journal; None if it is not kept.
        method, seed, options, scheduler, scheduler_options: what is studied, beside the objective, as the user said it.
        known_from, defaults, enqueue, prior: what the study begins with.
        watch: who is shown the progress.
    """

    objective: Objective
    run: RunOptions
    storage: Path | None
    method: methods.AnyMethod | None
    seed: int | None
    options: Mapping[str, Any]
    scheduler: schedulers.AnyScheduler | None
    scheduler_options: Mapping[str, Any]
    known_from: Study | Path | str | None
    defaults: Mapping[str, Any] | None
    enqueue: Sequence[Any]
    prior: Given
    watch: Callable[[Status], object] | Literal[False] | None


def _place(value: str) -> str:
    """Return where the trials' directories go, as workers find it; RayError if it is a URI that cannot be used."""
    if is_uri(value):
        Mirror(value)
        Mirror(trial_uri("study.db", 0, value))  # a URI of nothing but a scheme has no directories
        return value
    return str(journal.as_path(value, "artifacts").expanduser().absolute())


def tune_arguments(
    objective: Objective,
    *,
    trials: int | None = None,
    method: methods.AnyMethod | None = None,
    seed: int | None = None,
    storage: Path | str | None = None,
    workers: int | Literal["max"] | None = None,
    address: str | None = None,
    budget: float | str | None = None,
    price: float | None = None,
    cost: str | None = None,
    let_finish: bool = False,
    max_minutes: float | None = None,
    trial_seconds: float | None = None,
    retries: int = 2,
    settings: Mapping[str, Any] | None = None,
    metrics: Mapping[str, str] | None = None,
    constraints: Mapping[str, str] | None = None,
    fidelity: Fidelities | None = None,
    known_from: Study | Path | str | None = None,
    defaults: Mapping[str, Any] | None = None,
    enqueue: Sequence[Any] = (),
    prior: Given = (),
    detach: bool = False,
    in_process: bool = False,
    fresh_workers: bool = False,
    retry_failed: bool = False,
    retry_oom: bool = False,
    same_code: bool = False,
    keep_going: bool = False,
    target: float | None = None,
    patience: int | None = None,
    stop_below_gain: float | None = None,
    stop_when_not_worth: float | None = None,
    confirm: str | tuple[int, int] | None = None,
    scheduler: schedulers.AnyScheduler | None = None,
    scheduler_options: Mapping[str, Any] | None = None,
    artifacts: Path | str | None = None,
    keep_checkpoints: Keep = "last",
    processes: int | None = None,
    watch: Callable[[Status], object] | Literal[False] | None = None,
    **options: Unpack[MethodOptions],
) -> Arguments:
    """Tune an objective on Ray, and return the study when it has ended.

    Uses the Ray that this process is connected to, else the cluster at `address`, else a local Ray of its own, which it
    shuts down afterwards. If the journal exists, its study is continued: only trials that were in flight are run again.

    Args:
        objective: a function decorated with `@raybo.objective`.
        trials: how many trials to run in total, counting those already in the journal but not results from elsewhere;
            None for 50 or, with a budget, for as many as it allows.
        method: a method's name, see `raybo methods`, or your own: the text "package.module:Class", a class derived from
            `raybo.methods.Method`, or one made of it with its options, if its module can be imported; None for the
            journal's, or "auto" for a new study.
        seed: seed of every random stream; None for the journal's, or a fresh one.
        storage: the journal, an SQLite file; None keeps it only while the study runs.
        workers: how many trials run at a time; None for as many as the cluster has room for, "max" for a few more,
            which wait in a queue so that an autoscaling cluster grows to its limit.
        address: "auto" or HOST:PORT of a running cluster.
        budget: the time that the study may take in total, as "90s", "45m", "2h", "1h30m", "1d" or in seconds, from the
            start of the first command; what earlier commands took counts. Trials that run at its end are stopped, and
            the model learns nothing from them. With `price`, an amount of money.
        price: of a process-hour, in the currency of `budget`. What a trial costs is then its time
            times the number of its processes times this.
        cost: the name of a number that a trial returns as its cost, where its seconds are not it: `{"accuracy": 0.9,
            "cost": 3.2}`. Proposals weigh it in place of the seconds, and `budget` limits its sum.
        let_finish: when the budget is spent, start no new trials but let running ones finish.
        max_minutes: deprecated, use `budget`; in minutes, and without `trials` stops after 50 at the latest.
        trial_seconds: time limit of one trial; None for the objective's own.
        retries: how often a trial is restarted when its worker or node is lost.
        settings: the objective's keyword parameters.
        metrics: up to four metrics, by name, instead of the objective's own.
        constraints: bounds on returned numbers, by name, instead of the objective's own.
        fidelity: what makes the job cheap, instead of the objective's own: `{"rows": raybo.Fidelity(1_000, 100_000)}`.
        known_from: another study, or its journal; its finished trials that fit the space are added as known results.
        defaults: for parameters that only this space has, the values that they had in the other study, by name (dotted
            if nested): `{"drop": 0.0}`.
        enqueue: configurations to run first, all of them, even if there are more than `trials`; the method proposes
            what one leaves out. A pair of a configuration and a value is added as a known result.
        prior: earlier studies of the same job or of similar ones, on other data say: studies, journals, directories or
            patterns of journals, or "auto" for those that fit next to this study's journal. The first trials are where
            they expect the best; their values are never mixed with this study's, so metric, scale and ranges may
            differ. What they know is kept in the journal, and their own journals are not needed again.
        detach: leave the study running on its cluster, under the name of its journal without `.db`, and return at once
            with what there is so far; `raybo attach NAME` follows it, `raybo stop NAME` ends it.
        in_process: run the trials in this process, one after the other, without Ray, which takes seconds to start. The
            journal is the same, so either continues the other. A trial that takes too long is ended where Python can
            be interrupted (the main thread, not on Windows), else at its next report; one that ends this process ends
            the command; what trials print is not kept; `watch` is called in another thread.
        fresh_workers: run every trial in a new process, for jobs that leave state behind in their process (a
            patched module, a limit, memory); it costs a second or two per trial, and whatever a job caches is computed
            again.
        retry_failed: run failed trials again, under their own numbers; not those that ran out of memory.
        retry_oom: run those again that ran out of memory, likewise.
        same_code: refuse to continue a study if its trials ran under other code: the function, what it uses of its own
            module, modules next to it that these import, and the versions of packages; otherwise a warning says so, and
            `Study.other_code` which trials these are.
        keep_going: carry on even if the first trials all fail in the same way; otherwise the study ends after 5 of
            them, or as many as run at a time if that is more. Without a number of trials, also carry on if 50 in a row
            fail, or cost nothing of a budget of `cost`.
        target: stop once a trial reaches this value.
        patience: stop once this many trials in a row have finished without improving on the best one or, with several
            metrics, without joining the front.
        stop_below_gain: stop once three proposals in a row are expected to improve the best value by less than this, in
            the metric's units.
        stop_when_not_worth: stop once the next proposal is expected to improve the best value by less than this per
            worker-hour or, with `price`, per unit of money; what it takes is learnt from the trials.
        confirm: how many configurations to run again at the end, and how often each, every time with another seed, as
            "5x3" or (5, 3); `Study.confirmed` has their means.
        scheduler: name of the rule that ends trials early, see `raybo schedulers`, or your own, as for a method; None
            for the journal's, or for no rule in a new study. The objective must declare its steps.
        scheduler_options: its options.
        artifacts: where the trials' directories, with their checkpoints, are kept: a directory, or a URI of a file
            system that pyarrow supports; None for the place that the journal names, if that place exists, or else
            next to the journal.
        keep_checkpoints: which checkpoints of trials that have ended to keep: "all", the "last", or "none".
        processes: how many processes one trial has; None for what the objective declares.
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
    given = dict(locals())  # by name; a field of RunOptions is called as its argument
    require_not_loading()
    if not isinstance(objective, Objective):
        raise ObjectiveError(
            f"an objective is needed, got {shown(objective)}; decorate the function with @raybo.objective"
        )
    run = RunOptions(**{field.name: given[field.name] for field in dataclasses.fields(RunOptions)})
    if run.artifacts is not None:
        run = replace(run, artifacts=_place(run.artifacts))
    if watch is not None and watch is not False and not callable(watch):
        raise MethodError(f"watch must be a function of a status, None or False, got {shown(watch)}")
    if storage is None and run.artifacts is not None:
        raise RayError("artifacts are kept under the name of a permanent journal; give storage")
    if storage is None and run.detach:
        raise RayError("a detached study needs a permanent journal; give storage")
    for name in ("workers", "address", "detach", "fresh_workers"):
        if run.in_process and getattr(run, name) not in (None, False) and (name, run.workers) != ("workers", 1):
            raise RayError(f"in_process runs one trial after the other in this process, without Ray; leave out {name}")
    if settings is not None:
        by_name(settings, "settings", "the objective's keyword parameters", ObjectiveError)
    if scheduler_options is not None:
        by_name(scheduler_options, "scheduler_options", "the scheduler's options by name")
    if defaults is not None:
        by_name(defaults, "defaults", "values by name")
    if defaults and known_from is None:
        raise MethodError("defaults (--default) fill in the results of another study; give known_from (--from) too")
    if method is not None:
        methods.name_of(method)  # refuses what is none, or what no study could import
    bound = _bound(objective, settings or {}, metrics, constraints)
    require_beside_goals(run.cost, bound.goals.names)
    if fidelity is not None:
        bound = replace(bound, declared_fidelity=fidelity)
    if run.processes is not None:
        bound = replace(bound, processes=run.processes)
    if run.in_process and not bound.is_single:
        remedy = "leave it out" if bound.nested else "leave it out, or give processes=1"
        raise RayError(f"in_process runs each trial as one process, this one; {remedy}")
    if run.trial_seconds is None:
        run = replace(run, trial_seconds=bound.trial_seconds)
    for name in ("target", "stop_below_gain", "stop_when_not_worth", "confirm"):
        if getattr(run, name) is not None and bound.goals.k > 1:
            raise MethodError(f"{name} needs a single metric, and there are {bound.goals.k}; leave it out")
    return Arguments(
        objective=bound,
        run=run,
        storage=None if storage is None else journal.as_path(storage, "storage").absolute(),
        method=method,
        seed=seed,
        options=options,
        scheduler=scheduler,
        scheduler_options={} if scheduler_options is None else scheduler_options,
        known_from=known_from,
        defaults=defaults,
        enqueue=enqueue,
        prior=prior,
        watch=watch,
    )


def taking(signature: Callable[P, Arguments]) -> Callable[[Callable[[Arguments], R]], Callable[P, R]]:
    """Return a decorator: the function takes the parameters of another function, which makes its argument of them."""

    def decorate(function: Callable[[Arguments], R]) -> Callable[P, R]:
        @functools.wraps(signature)
        def call(*args: P.args, **named: P.kwargs) -> R:
            return function(signature(*args, **named))

        for name in ("__name__", "__qualname__", "__module__"):
            setattr(call, name, getattr(function, name))
        return call

    return decorate


def _bound(
    objective: Objective,
    settings: Mapping[str, Any],
    metrics: Mapping[str, str] | None,
    constraints: Mapping[str, str] | None,
) -> Objective:
    """Return the objective with its settings and goals, and its space, contexts and steps made once for all."""
    bound = objective.with_settings(**settings)
    bound.require_settings()
    if metrics is not None or constraints is not None:
        bound = bound.wanting(metrics, constraints)
    return replace(bound, declared_space=bound.space, declared_context=bound.context, declared_steps=bound.steps)
