"""The arguments of `raybo.tune`: their meaning, types, ranges, and how the command line spells and explains them.

An argument that says how to run a study is a field of `RunOptions`, from which the command line makes its option. One
that says what is studied is a field of `raybo.record.description.Description`.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar, get_args

from raybo import journal, methods, schedulers
from raybo.common.arguments import by_name, finite_number, one_of, truth, whole_number
from raybo.common.errors import MethodError, ObjectiveError, RayError
from raybo.common.messages import ELSEWHERE, near, shown
from raybo.engine.trial.artifacts import Mirror
from raybo.engine.trial.checkpoints import Keep
from raybo.job.loading import require_not_loading
from raybo.job.objective import Objective
from raybo.job.shared_data import fingerprint, is_data
from raybo.journal.beside import is_uri, trial_uri
from raybo.record.description import Description
from raybo.record.history import GENERATION
from raybo.record.stopping import Limits
from raybo.schedulers import Scheduler
from raybo.searcher import Searcher, scheduler_for, seed_for
from raybo.space import object_to_json
from raybo.study.confirmation import Confirm

if TYPE_CHECKING:
    from typing_extensions import Unpack  # typing has it from Python 3.11

    from raybo.engine.status import Status
    from raybo.methods.keywords import MethodOptions
    from raybo.study.study import Study

P = ParamSpec("P")
R = TypeVar("R")

TYPING_ERROR = 0.75  # likeness from which an unknown option is taken for a misspelt argument of `tune`


def _workers(workers: Any, name: str) -> int | Literal["max"]:
    return "max" if isinstance(workers, str) and workers == "max" else whole_number(workers, name)


def _place(value: Any, name: str) -> str:
    """Return where the trials' directories go, as workers find it; RayError if it is a URI that cannot be used."""
    if is_uri(str(value)):
        Mirror(str(value))
        Mirror(trial_uri("study.db", 0, str(value)))  # a URI of nothing but a scheme has no directories
        return str(value)
    return str(journal.as_path(value, name).expanduser().absolute())


def _address(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise RayError(f"{name} must be 'auto' or HOST:PORT, got {shown(value)}")
    return value


def _keep(value: Any, name: str) -> Keep:
    return one_of(value, name, get_args(Keep))


def _confirm(value: Any, name: str) -> Confirm:
    return Confirm.of(value)


def argument(default: Any, check: Callable[[Any, str], Any], help: str = "", metavar: str | None = None) -> Any:
    """Declare a field of `RunOptions`.

    Args:
        default: its value unless it is given; if this is None, None is allowed.
        check: returns the checked value of an argument of this name.
        help: its text in `raybo tune --help`; a field without one gets no option of its own there.
        metavar: the name of its value there.
    """
    return dataclasses.field(default=default, metadata={"check": check, "help": help, "metavar": metavar})


POSITIVE = partial(finite_number, above=0)


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How a study is run, which a command that continues it may change; `tune_arguments` says what each field means.

    Raises:
        MethodError, RayError: a value is wrong; names the argument.
    """

    trials: int = argument(50, whole_number, "Trials to run in total, including those already in the journal.", "N")
    workers: int | Literal["max"] | None = argument(
        None,
        _workers,
        "Trials to run at the same time; max keeps some queued, so that an autoscaling cluster grows.  "
        "[default: as many as fit]",
        "K|max",
    )
    max_minutes: float | None = argument(None, POSITIVE, "Stop the study after this long.", "MINUTES")
    trial_seconds: float | None = argument(
        None, POSITIVE, "Stop any trial that runs longer than this, and count it as failed.", "SECONDS"
    )
    retries: int = argument(
        2, partial(whole_number, at_least=0), "How often to restart a trial whose worker was lost.", "N"
    )
    artifacts: str | None = argument(
        None,
        _place,
        "Where to keep the trials' directories and checkpoints.  [default: beside the journal]",
        "DIRECTORY|URI",
    )
    keep_checkpoints: Keep = argument("last", _keep, "Which checkpoints of finished trials to keep.")
    fresh_workers: bool = argument(
        False, truth, "Run every trial in a new process, for jobs that leave something behind in theirs."
    )
    retry_failed: bool = argument(False, truth, "Run failed trials again, under their old numbers.")
    keep_going: bool = argument(False, truth, "Carry on even if the first trials all fail in the same way.")
    target: float | None = argument(None, finite_number, "Stop once a trial reaches this value.", "V")
    patience: int | None = argument(
        None,
        whole_number,
        "Stop once N trials in a row have not improved on the best one, or on the front of several metrics.",
        "N",
    )
    stop_below_gain: float | None = argument(
        None,
        POSITIVE,
        "Stop once three proposals in a row promise an improvement smaller than this, in the metric's units.",
        "G",
    )
    confirm: Confirm | None = argument(
        None,
        _confirm,
        "Finally, run the K most promising configurations R more times each with new seeds, and recommend the one "
        "with the best mean.",
        "KxR",
    )
    address: str | None = argument(None, _address)
    detach: bool = argument(False, truth)

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value is not None or field.default is not None:
                object.__setattr__(self, field.name, field.metadata["check"](value, field.name))

    @property
    def limits(self) -> Limits:
        """The limits that end the study before all its trials have been run."""
        return Limits(self.target, self.patience, self.stop_below_gain)


@dataclass(frozen=True)
class Arguments:
    """The arguments of one call of `raybo.tune`, checked.

    Attributes:
        objective: with its settings and goals, and with its space, contexts and steps made from them.
        run: how to run the study.
        storage: the journal; None if it is not kept.
        method, seed, options, scheduler, scheduler_options: what is studied, beside the objective, as the user said it.
        known_from, defaults, enqueue: what the study begins with.
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
    watch: Callable[[Status], object] | Literal[False] | None


def tune_arguments(
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
) -> Arguments:
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
    given = dict(locals())  # by name; a field of RunOptions is called as its argument
    require_not_loading()
    if not isinstance(objective, Objective):
        raise ObjectiveError(
            f"an objective is needed, got {shown(objective)}; decorate the function with @raybo.objective"
        )
    run = RunOptions(**{field.name: given[field.name] for field in dataclasses.fields(RunOptions)})
    if watch is not None and watch is not False and not callable(watch):
        raise MethodError(f"watch must be a function of a status, None or False, got {shown(watch)}")
    if storage is None and run.artifacts is not None:
        raise RayError("artifacts are kept under the name of a permanent journal; give storage")
    if storage is None and run.detach:
        raise RayError("a detached study needs a permanent journal; give storage")
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
    if run.trial_seconds is None:
        run = replace(run, trial_seconds=bound.trial_seconds)
    for name in ("target", "stop_below_gain", "confirm"):
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


def searcher_for(
    objective: Objective,
    method: methods.AnyMethod | None,
    seed: int | None,
    options: Mapping[str, Any],
    earlier: Description | None,
    rule: tuple[schedulers.AnyScheduler | None, Mapping[str, Any]] = (None, {}),
) -> Searcher:
    """Return the searcher of a study, which knows none of its events; its `description` is the study's.

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
        if not is_known and (meant := near(option, list(inspect.signature(tune_arguments).parameters), TYPING_ERROR)):
            raise MethodError(f"there is no option {option!r}; did you mean {meant!r}?")
    made = methods.make(method, **options)
    made_rule = scheduler_for(scheduler, given, steps, objective.goals)
    description = Description(
        objective=objective.name,
        goals=objective.goals,
        space=objective.space,
        method=name,
        seed=seed_for(seed),
        settings={key: object_to_json(_named(value)) for key, value in sorted(objective.settings.items())},
        options=methods.options_of(method, made, options),
        context=objective.context,
        steps=steps,
        value=objective.value,
        scheduler=rule_name,
        scheduler_options={} if made_rule is None else schedulers.options_of(scheduler, made_rule, given),
        generation=GENERATION if earlier is None else earlier.generation,
    )
    return Searcher.of(description, made, made_rule)


def _named(value: Any) -> Any:
    return fingerprint(value) if is_data(value) else str(value) if isinstance(value, Path) else value
