"""Objectives: a user's training function, together with what raybo must know to tune it."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeAlias, cast, get_args

from raybo.common.arguments import by_name, finite_number, one_of, truth, whole_number
from raybo.common.errors import ObjectiveError, RayboError, SpaceError
from raybo.common.messages import ELSEWHERE, in_words, nearest, shown
from raybo.common.parsing import convert
from raybo.common.refusals import refusing
from raybo.job.reports import require_own_thread
from raybo.job.shared_data import is_data
from raybo.record.fidelity import Fidelities, fidelities_of
from raybo.record.goals import Goals, Mode
from raybo.record.history import ONE
from raybo.space import Space, context_space

Value: TypeAlias = Literal["last", "best"]  # which of a trial's reports is its value
Spread: TypeAlias = Literal["pack", "strict-pack", "spread", "strict-spread"]  # of processes over nodes

RESERVED = {  # Ray's own resources: what asks for them
    "CPU": "num_cpus",
    "GPU": "num_gpus",
    "memory": "memory",
    "object_store_memory": "memory",
}


class _Documentation:
    """The class's own docstring; for an objective, that of its function, as a decorated function would show it."""

    def __init__(self, own: str | None) -> None:
        self.own = own

    def __get__(self, objective: Objective | None, kind: type[Objective]) -> str | None:
        return self.own if objective is None else objective.function.__doc__


@dataclass(frozen=True)
class Objective:
    """A function of a configuration, its search space, and what its trials need. Made by `raybo.objective`.

    Calling it calls the function: `gradient_boosting({"learning_rate": 0.1, ...}, folds=5)`. With several metrics,
    `metric` and `mode` are those of the first, and `goals` holds them all.

    Attributes:
        function: what is called with a configuration.
        declared_space: the space as it was declared; `space` is what comes of it under the settings.
        metric: name of the metric in the result.
        mode: "max" or "min".
        declared_context: likewise the contexts, see `context`.
        num_cpus: CPUs that one process of a trial occupies, from 0.
        num_gpus: GPUs that it occupies, from 0.
        memory: bytes that Ray must find free for one process, from 0; None for any.
        resources: custom Ray resources of one process: amounts, from 0, by name.
        trial_seconds: time limit of one trial, above 0; None for no limit.
        settings: the keyword parameters that are fixed, by name; see `with_settings`.
        declared_steps: likewise the steps of a whole run, see `steps`.
        value: which of a trial's reports is its value, "last" or "best".
        goals: the direction of each metric, and the constraints.
        processes: how many one trial has, from 1, or a function of the configuration; see `processes_of`.
        spread: where they are placed: "pack", "strict-pack", "spread" or "strict-spread", see `raybo.objective`.
        declared_fidelity: likewise what makes the job cheap, see `fidelity`.
        nested: whether the function starts its processes itself.
    Example:
        >>> @raybo.objective(space={"x": raybo.Float(0, 1)}, metric="loss", mode="min")
        ... def job(config, *, power=2):
        ...     return (config["x"] - 1) ** power
        >>> job.name, job.metric, job.space.names
        ('job', 'loss', ['x'])
        >>> job.with_settings(power="4")({"x": 3.0})
        16.0
    """

    __doc__ = cast(str, _Documentation(__doc__))

    function: Callable[..., Any]
    declared_space: Space | Mapping[str, Any] | Callable[..., Any]
    metric: str
    mode: Mode
    declared_context: Space | Mapping[str, Any] | Callable[..., Any] | None = None
    num_cpus: float = 1
    num_gpus: float = 0
    memory: float | None = None
    resources: Mapping[str, float] = field(default_factory=dict)
    trial_seconds: float | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    declared_steps: int | Callable[..., int] | None = None
    value: Value = "last"
    goals: Goals = ONE
    processes: int | Callable[[Mapping[str, Any]], int] = 1
    spread: Spread = "pack"
    declared_fidelity: Fidelities | None = None
    nested: bool = False

    def __call__(self, config: Mapping[str, Any], **settings: Any) -> Any:
        """Call the function with this configuration."""
        return self.function(config, **{**self.settings, **settings})

    @property
    def name(self) -> str:
        """The function's name."""
        return str(getattr(self.function, "__name__", type(self.function).__name__))

    @property
    def space(self) -> Space:
        """The space under the current settings; SpaceError if it is not valid, ObjectiveError if making it fails."""
        try:
            declared = self._made(self.declared_space, "space")
            if isinstance(declared, Space):
                return declared
            return Space(cast("Mapping[str, Any]", declared))
        except SpaceError as error:
            raise SpaceError(f"{_place_of(self.function)}{error}") from None

    @property
    def context(self) -> Space | None:
        """The space of its contexts; None if it declares none. Raises as `space` does."""
        space = self.space
        try:
            context = context_space(self._made(self.declared_context, "context"), space)
        except SpaceError as error:
            raise SpaceError(f"{_place_of(self.function)}{error}") from None
        if context is not None and self.metric in context.names:
            raise ObjectiveError(f"{self.name}: {self.metric!r} is its metric and a context too; rename one of them")
        if context is not None and self.goals.k > 1:
            raise ObjectiveError(
                f"{self.name}: a context needs a single metric; leave out the context, or the other metrics"
            )
        return context

    @property
    def steps(self) -> int | None:
        """The number of steps of a whole run under the current settings; None if none is declared.

        Raises:
            ObjectiveError: it cannot be computed, or is not a whole number from 1.
        """
        steps = self._made(self.declared_steps, "number of steps")
        return None if steps is None else whole_number(steps, f"{self.name}: steps", error=ObjectiveError)

    @property
    def fidelity(self) -> Fidelities | None:
        """Return the fidelity that makes the job cheap, by name, or None; ObjectiveError if it is invalid."""
        found = fidelities_of(self.declared_fidelity, self.space, ObjectiveError)
        if found is not None and self.is_gang:
            raise ObjectiveError(
                f"{self.name}: fidelity does not go with several processes; leave out one or the other"
            )
        return found

    @property
    def is_gang(self) -> bool:
        """True if raybo starts several processes of a trial, or a number that depends on the configuration."""
        return self.processes != 1 and not self.nested

    @property
    def is_single(self) -> bool:
        """True if a trial is one process, whose resources Ray reserves with its task."""
        return self.processes == 1 and not self.nested

    def processes_of(self, config: Mapping[str, Any]) -> int:
        """Return how many processes a trial of this configuration has.

        Raises:
            ObjectiveError: it cannot be computed, or is not a whole number from 1.
        """
        if not callable(self.processes):
            return self.processes
        try:
            count = self.processes(dict(config))
        except Exception as error:  # whatever a user's function raises
            raise ObjectiveError(
                f"{self.name}: its number of processes cannot be computed: {in_words(error)}"
            ) from error
        return whole_number(count, f"{self.name}: processes", error=ObjectiveError)

    def _made(self, declared: Any, what: str) -> Any:
        """The declared value, under the current settings."""
        if not callable(declared) or isinstance(declared, (Space, Mapping)):
            return declared
        try:
            return declared(**_wanted(declared, {**_defaults(self.function), **self.settings}))
        except RayboError:
            raise
        except Exception as error:
            raise ObjectiveError(f"{self.name}: its {what} cannot be made: {in_words(error)}") from error

    def require_settings(self) -> None:
        """ObjectiveError if the function would be called without a parameter that has no default."""
        for parameter in list(inspect.signature(self.function).parameters.values())[1:]:
            is_variable = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
            if not is_variable and parameter.default is parameter.empty and parameter.name not in self.settings:
                raise ObjectiveError(
                    f"{self.name} needs its parameter {parameter.name!r}; give --set {parameter.name}=..., in Python "
                    f"settings={{{parameter.name!r}: ...}}, or a default"
                )

    @refusing(ObjectiveError, "metrics and constraints are dicts of texts by name")
    def wanting(self, metrics: Mapping[str, str] | None, constraints: Mapping[str, str] | None) -> Objective:
        """Return this objective with other metrics or constraints, if any are given.

        Raises:
            ObjectiveError: one of them is wrong.
        """
        mine = self.goals
        given = mine.metrics if metrics is None else metrics
        rules = mine.rules if constraints is None else constraints
        alone: tuple[str, Mode] = ("value", "max") if given is not None else (self.metric, self.mode)
        goals = goals_of(*alone, given, rules)
        _check_value(self.value, goals)
        _check_names(self.function, self.declared_steps, goals)
        return replace(self, metric=goals.names[0], mode=goals.modes[0], goals=goals)

    @refusing(ObjectiveError, "settings are the function's keyword parameters")
    def with_settings(self, /, **settings: Any) -> Objective:
        """Return this objective with some of its keyword parameters fixed; text is read as the parameter's type.

        Raises:
            ObjectiveError: the function has no such keyword parameter, or the value is of another type.
        """
        parameters = _keywords(self.function)
        try:
            hints = typing.get_type_hints(self.function)
        except (NameError, TypeError):  # a name that only a type checker imports, or no plain function
            hints = {}
        takes_any = any(p.kind is p.VAR_KEYWORD for p in inspect.signature(self.function).parameters.values())
        values = {}
        for name, value in settings.items():
            if name not in parameters and not takes_any:
                raise ObjectiveError(f"{self.name} has no parameter {name!r}{nearest(name, list(parameters))}")
            if is_data(value):
                values[name] = value
                continue
            default = parameters.get(name)
            hint = hints.get(name, Any if default is None else type(default))  # of None nothing follows
            try:
                values[name] = convert(value, hint)
            except ValueError as error:
                raise ObjectiveError(f"{self.name}: parameter {name} must be {error}, got {shown(value)}") from None
        return replace(self, settings={**self.settings, **values})


def objective(
    *misplaced: Any,
    space: Space | Mapping[str, Any] | Callable[..., Any] | None = None,
    metric: str = "value",
    mode: Mode = "max",
    context: Space | Mapping[str, Any] | Callable[..., Any] | None = None,
    num_cpus: float = 1,
    num_gpus: float = 0,
    memory: float | None = None,
    resources: Mapping[str, float] | None = None,
    trial_seconds: float | None = None,
    steps: int | Callable[..., int] | None = None,
    value: Value = "last",
    metrics: Mapping[str, str] | None = None,
    constraints: Mapping[str, str] | None = None,
    processes: int | Callable[[Mapping[str, Any]], int] = 1,
    spread: Spread = "pack",
    nested: bool = False,
    fidelity: Fidelities | None = None,
    **unknown: NoReturn,
) -> Callable[[Callable[..., Any]], Objective]:
    """Decorate a training function so that raybo can tune it.

    The function takes a configuration (a dict) and returns the metric, or a dict that holds it under its name. If it
    trains step by step, it yields the results of its steps instead, or reports them with `raybo.report`.

    Args:
        space: what to search, or a function of the objective's keyword parameters that returns it.
        metric: the metric's name in the result.
        mode: "max" or "min": whether larger or smaller values are better.
        context: variables that each trial observes but nobody controls, declared like a space; the result holds their
            values as well as the metric. They must not depend on the configuration.
        num_cpus: CPUs that one trial occupies; this and the next three are of each of its processes.
        num_gpus: GPUs that one trial occupies.
        memory: bytes of memory that Ray must find free for one trial.
        resources: custom Ray resources that one trial occupies.
        trial_seconds: time limit of one trial; None for no limit.
        steps: how many steps a whole run reports, or a function of the keyword parameters that returns this; None if
            the number is not known or nothing is reported. A scheduler needs it.
        value: which of a trial's reports is its value, the "last" or the "best".
        metrics: instead of `metric` and `mode`, up to four metrics by name, each "max" or "min"; of several, the result
            is a dict that holds all of them.
        constraints: bounds on numbers in the result: `{"memory": "<= 2e9"}`.
        processes: how many processes one trial has, or a function of the configuration that returns this. Each of them
            runs the function, with the variables that `torchrun` would set; all of them report the same steps, and the
            numbers of the first one count.
        spread: where they are placed: "pack" on as few nodes as possible, "strict-pack" on one node, "spread" over as
            many nodes as possible, "strict-spread" each on a node of its own.
        nested: whether the function starts the processes itself, with a trainer of Ray Train. It then runs once, in a
            process that takes none of their resources; raybo counts these, and begins no trial without room for them.
        fidelity: what makes the job cheap, and its range: `{"rows": raybo.Fidelity(1_000, 100_000)}`. The function
            finds it in its configuration, and only a trial at the high end is a whole run.
    Raises:
        ObjectiveError: an argument is wrong.
    Example:
        >>> @raybo.objective(space={"x": raybo.Float(0, 1)}, metric="loss", mode="min")
        ... def job(config):
        ...     return {"loss": abs(config["x"] - 0.3)}
        >>> job({"x": 0.3})
        {'loss': 0.0}
    """
    if misplaced:
        example = '@raybo.objective(space={"x": raybo.Float(0, 1)}, metric="loss", mode="min")'
        raise ObjectiveError(f"@raybo.objective needs a space and a metric: {example}; got {shown(misplaced[0])} alone")
    if unknown:
        name = next(iter(unknown))
        known = [each for each in inspect.signature(objective).parameters if each not in ("unknown", "misplaced")]
        remedy = f": {ELSEWHERE[name]}" if name in ELSEWHERE else nearest(name, known)
        raise ObjectiveError(f"objective has no argument {name!r}{remedy}")
    if space is None:
        raise ObjectiveError('an objective needs a space, such as space={"x": raybo.Float(0, 1)}')
    value = one_of(value, "value", get_args(Value), ObjectiveError)
    goals = goals_of(metric, mode, metrics, constraints)
    _check_value(value, goals)
    custom = _custom_resources({} if resources is None else resources)
    num_cpus = finite_number(num_cpus, "num_cpus", at_least=0, error=ObjectiveError)
    num_gpus = finite_number(num_gpus, "num_gpus", at_least=0, error=ObjectiveError)
    if not callable(processes):
        processes = whole_number(processes, "processes", error=ObjectiveError)
    spread = one_of(spread, "spread", get_args(Spread), ObjectiveError)
    nested = truth(nested, "nested", ObjectiveError)
    if nested and callable(processes):
        raise ObjectiveError("nested: processes must be a number, as raybo counts it before it knows the configuration")
    if memory is not None:
        memory = finite_number(memory, "memory", at_least=0, error=ObjectiveError)
    if trial_seconds is not None:
        trial_seconds = finite_number(trial_seconds, "trial_seconds", above=0, error=ObjectiveError)

    def decorate(function: Callable[..., Any]) -> Objective:
        _check_function(function)
        _check_names(function, steps, goals)
        return Objective(
            function=function,
            declared_space=space,
            metric=goals.names[0],
            mode=goals.modes[0],
            declared_context=context,
            num_cpus=num_cpus,
            num_gpus=num_gpus,
            memory=memory,
            resources=custom,
            trial_seconds=trial_seconds,
            declared_steps=steps,
            value=value,
            goals=goals,
            processes=processes,
            spread=spread,
            declared_fidelity=fidelity,
            nested=nested,
        )

    return decorate


def goals_of(
    metric: str, mode: Mode, metrics: Mapping[str, str] | None, constraints: Mapping[str, str] | None
) -> Goals:
    """The goals that a user's arguments describe; ObjectiveError if they make no sense."""
    try:
        return Goals.of(metrics, constraints, metric=metric, mode=mode)
    except ValueError as error:
        raise ObjectiveError(str(error)) from None


def _check_value(value: str, goals: Goals) -> None:
    """ObjectiveError if a trial's value is its best report and there are other numbers beside it."""
    if value == "best" and not goals.is_plain:
        raise ObjectiveError(
            "value='best' needs a single metric and no constraints; leave it out: of several numbers, those of the "
            "last report count"
        )


def _check_names(function: Callable[..., Any], steps: object, goals: Goals) -> None:
    """ObjectiveError if a job that reports names one of its numbers `step`, as a report names its step."""
    if "step" in goals.needed and (steps is not None or inspect.isgeneratorfunction(function)):
        raise ObjectiveError("in a report 'step' says which step it is; give the metric or constraint another name")


def _check_function(function: Any) -> None:
    """ObjectiveError if it cannot be called with a configuration, or would not return a result."""
    if inspect.isclass(function) or not callable(function):
        what = f"the class {function.__name__}" if inspect.isclass(function) else shown(function)
        raise ObjectiveError(f"an objective must be a function, got {what}")
    called = function if inspect.isroutine(function) or isinstance(function, partial) else type(function).__call__
    name = getattr(function, "__name__", type(function).__name__)
    if inspect.iscoroutinefunction(called) or inspect.isasyncgenfunction(called):
        raise ObjectiveError(f"{name} is async; make it a plain function, which calls asyncio.run(...) inside")
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # a builtin, whose parameters nobody can tell
        parameters = []
    if inspect.isfunction(function) and len(parameters) > 1 and parameters[0].name == "self":
        raise ObjectiveError(
            f"{name} is a method without its object; give raybo.objective(...)(thing.{name}) in place of the decorator"
        )
    if not parameters or parameters[0].kind in (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD):
        raise ObjectiveError(
            f"an objective must be a function whose first parameter is the configuration, got {shown(function)}"
        )


def _custom_resources(resources: Mapping[str, float]) -> dict[str, float]:
    """Ray's custom resources, as plain numbers; ObjectiveError if they are not valid."""
    for name in by_name(resources, "resources", "amounts by name", ObjectiveError):
        if name in RESERVED:
            raise ObjectiveError(f"resources: {name} is not a custom resource; use {RESERVED[name]}")
    return {
        name: finite_number(amount, f"resources: {name}", at_least=0, error=ObjectiveError)
        for name, amount in resources.items()
    }


_report: Callable[[Mapping[str, Any]], None] | None = None  # of the process, so that threads report to it too


def report_context(**values: Any) -> None:
    """Report the context of this trial from inside its objective, before the metric is known.

    A trial that fails or is killed afterwards keeps its context, and proposals made in the meantime take it into
    account. If the objective is not run by raybo, nothing happens.

    Args:
        values: the contexts by their declared names; those of several calls add up, and other names are ignored. The
            context is known once all of them are. A number beyond the declared range is taken as the end of it; what is
            no finite number, or none of the choices, leaves the trial without a context.
    Raises:
        ObjectiveError: this thread began before the trial that runs now.
    Example:
        >>> space, context = {"x": raybo.Float(0, 1)}, {"load": raybo.Float(0, 1)}
        >>> @raybo.objective(space=space, context=context, metric="seconds", mode="min")
        ... def serve(config):
        ...     raybo.report_context(load=0.5)
        ...     return {"seconds": 0.5 * config["x"], "load": 0.5}
        >>> serve({"x": 1.0})
        {'seconds': 0.5, 'load': 0.5}
    """
    require_own_thread("report_context")
    if _report is not None:
        _report(values)


@contextmanager
def contexts_sent_to(report: Callable[[Mapping[str, Any]], None]) -> Iterator[None]:
    """Send the values of `report_context` to a receiver within the block."""
    global _report
    before, _report = _report, report
    try:
        yield
    finally:
        _report = before


def _place_of(function: Callable[..., Any]) -> str:
    """Return the place of a function's declaration, `FILE:LINE: `; empty if it is unknown."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None or not Path(code.co_filename).is_file():
        return ""
    path = Path(code.co_filename)
    here = Path.cwd()
    return f"{path.relative_to(here) if path.is_relative_to(here) else path}:{code.co_firstlineno}: "


def _keywords(function: Callable[..., Any]) -> dict[str, Any]:
    """The parameters after the configuration that can be given by name, with their defaults."""
    parameters = list(inspect.signature(function).parameters.values())[1:]
    named = [p for p in parameters if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return {p.name: None if p.default is p.empty else p.default for p in named}


def _defaults(function: Callable[..., Any]) -> dict[str, Any]:
    parameters = list(inspect.signature(function).parameters.values())[1:]
    return {p.name: p.default for p in parameters if p.default is not p.empty}


def _wanted(function: Callable[..., Any], values: Mapping[str, Any]) -> dict[str, Any]:
    parameters = inspect.signature(function).parameters
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return dict(values)
    return {name: value for name, value in values.items() if name in parameters}
