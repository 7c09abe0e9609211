"""Makes a description of a searcher's arguments; what they leave out is as the journal has it, if there is one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from raybo import methods, schedulers
from raybo.common.arguments import by_name, whole_number
from raybo.common.errors import MethodError, SpaceError
from raybo.common.messages import shown
from raybo.record.description import Description
from raybo.record.fidelity import fidelities_of
from raybo.record.goals import Goals, Mode
from raybo.record.history import GENERATION
from raybo.schedulers import Scheduler
from raybo.space import Space, context_space

if TYPE_CHECKING:
    from raybo.searcher.journaled import Kept

MOST_SEED = 2**128  # as large as those that numpy draws

Made = tuple[Description, methods.Method, Scheduler | None]  # with what it names


def described(
    space: Space | Mapping[str, Any] | None,
    context: Space | Mapping[str, Any] | None,
    method: tuple[methods.AnyMethod | None, Mapping[str, Any]],
    goals: tuple[str | None, Mode | None, Mapping[str, str] | None, Mapping[str, str] | None],
    seed: int | None,
    steps: int | None,
    scheduler: tuple[schedulers.AnyScheduler | None, Mapping[str, Any]],
    generation: int | None,
    kept: Kept | None,
    fidelity: Any,
) -> Made:
    """Return what `Searcher`'s arguments describe, with the method and the scheduler; it documents them.

    Args:
        method, scheduler: with the options of each.
        goals: metric, mode, metrics and constraints.
        kept: the journal, which says what the arguments leave out.
        fidelity: as the user gave it.
    """
    earlier = None if kept is None else kept.description
    if space is None:
        if earlier is None:
            raise SpaceError('a searcher needs a space, such as {"x": raybo.Float(0, 1)}, or a journal that has one')
        space = earlier.space
    space = space if isinstance(space, Space) else Space(space)
    context = earlier.context if context is None and earlier is not None else context_space(context, space)
    named, options = method_or_earlier(*method, earlier)
    made = methods.make(named, **options)
    wanted = goals_or_earlier(*goals, earlier)
    steps = earlier.steps if steps is None and earlier is not None else steps
    steps = None if steps is None else whole_number(steps, "steps")
    rule, rule_options = scheduler_or_earlier(*scheduler, earlier)
    made_rule = scheduler_for(rule, rule_options, steps, wanted)
    fidelities = fidelities_of(fidelity, space, MethodError)
    if earlier is not None:
        seed, generation = (
            ours if given is None else given for given, ours in ((seed, earlier.seed), (generation, earlier.generation))
        )
    is_kept = kept is not None  # then a name must be found by another process, and options must be JSON
    description = Description(
        objective="" if kept is None else kept.path.stem,
        goals=wanted,
        space=space,
        method=methods.name_of(named) if is_kept else methods.label(named),
        seed=seed_for(seed),
        options=methods.options_of(named, made, options) if is_kept else _values(made, options),
        context=context,
        steps=steps,
        scheduler=None if rule is None else schedulers.name_of(rule) if is_kept else schedulers.label(rule),
        scheduler_options={} if made_rule is None else _options_of(rule, made_rule, rule_options, is_kept),
        generation=GENERATION if generation is None else whole_number(generation, "generation"),
        fidelity=earlier.fidelity if fidelities is None and earlier is not None else fidelities,
    )
    if earlier is not None:
        description = replace(description, objective=earlier.objective, settings=earlier.settings, value=earlier.value)
    return description, made, made_rule


def require_possible(description: Description, method: methods.Method) -> None:
    """MethodError if the method cannot do what is described, or if this release is too old for it."""
    methods.require_goals(method, description.goals, has_context=description.context is not None)
    if description.fidelity is not None:
        _require_fidelity(description, method)
    if description.generation > GENERATION:
        raise MethodError(f"generation must be from 1 to {GENERATION}, got {shown(description.generation)}")


def _require_fidelity(description: Description, method: methods.Method) -> None:
    """MethodError if there is something in a description that does not go with cheap versions of the job."""
    if not method.chooses_fidelity:
        raise MethodError(f"{methods.label(method)} does not choose a fidelity; leave fidelity out, or use auto")
    for what, is_there in {
        "several metrics or constraints": not description.goals.is_plain,
        "a context": description.context is not None,
        "steps": description.steps is not None,
        "a scheduler": description.scheduler is not None,
    }.items():
        if is_there:
            raise MethodError(f"fidelity does not go with {what}; leave out one or the other")


def _values(made: methods.Method | Scheduler, options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: getattr(made, name) for name in sorted(options)}


def seed_for(seed: int | None) -> int:
    """Return the seed that a user gave, or draw one; MethodError if it is not a whole number from 0 to 2**128."""
    if seed is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    return whole_number(seed, "seed", at_least=0, at_most=MOST_SEED)


def _options_of(
    rule: schedulers.AnyScheduler | None, made: Scheduler, given: Mapping[str, Any], is_kept: bool
) -> dict[str, Any]:
    """Return a scheduler's options as a description has them, with the metric that it looks at by itself."""
    options = schedulers.options_of(rule, made, given) if is_kept else _values(made, given)
    return dict(options) if made.metric is None else {**options, "metric": made.metric}


def scheduler_for(
    scheduler: schedulers.AnyScheduler | None, options: Mapping[str, Any], steps: int | None, goals: Goals
) -> Scheduler | None:
    """Return the scheduler that a user's arguments name; None if they name none, MethodError if they are wrong."""
    if scheduler is not None:
        return schedulers.make(scheduler, options, steps, goals.names)
    if by_name(options, "scheduler_options", "a scheduler's options by name"):
        raise MethodError("scheduler_options are given, but no scheduler; see `raybo schedulers`")
    return None


def method_or_earlier(
    method: methods.AnyMethod | None, options: Mapping[str, Any], earlier: Description | None
) -> tuple[methods.AnyMethod, Mapping[str, Any]]:
    """Return the method and its options as given, or as the journal has them, or the default method."""
    if earlier is None:
        return "auto" if method is None else method, options
    if method is None or (not isinstance(method, methods.Method) and methods.name_of(method) == earlier.method):
        return methods.kept(earlier.method), options or earlier.options
    return method, options


def scheduler_or_earlier(
    scheduler: schedulers.AnyScheduler | None, options: Mapping[str, Any], earlier: Description | None
) -> tuple[schedulers.AnyScheduler | None, Mapping[str, Any]]:
    """Return the scheduler and its options as given, or as the journal has them."""
    if earlier is None:
        return scheduler, options
    name = None if scheduler is None else schedulers.name_of(scheduler)  # an unknown one is reported first
    if isinstance(scheduler, Scheduler) or name not in (None, earlier.scheduler):
        return scheduler, options
    return earlier.scheduler, options or earlier.scheduler_options


def goals_or_earlier(
    metric: str | None,
    mode: Mode | None,
    metrics: Mapping[str, str] | None,
    constraints: Mapping[str, str] | None,
    earlier: Description | None,
) -> Goals:
    """Return the goals as given, with what is missing from the journal; MethodError if they make no sense."""
    if earlier is not None:
        constraints = earlier.goals.rules if constraints is None else constraints
        if metrics is None and metric is None and mode is None:
            metrics = earlier.goals.metrics
        if metrics is None and earlier.goals.k == 1:
            metric = earlier.metric if metric is None else metric
            mode = earlier.mode if mode is None else mode
    try:
        return Goals.of(metrics, constraints, metric=metric, mode=mode)
    except ValueError as error:
        raise MethodError(str(error)) from None
