"""Completes a study's description: the user's arguments count, and the journal fills in the rest."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from raybo import methods, schedulers
from raybo.common.errors import MethodError, ObjectiveError
from raybo.common.messages import ELSEWHERE, near
from raybo.engine.arguments import tune_arguments
from raybo.job.objective import Objective
from raybo.job.shared_data import fingerprint, is_data
from raybo.record.description import Description
from raybo.record.history import GENERATION
from raybo.searcher import Searcher, method_or_earlier, scheduler_for, scheduler_or_earlier, seed_for
from raybo.space import object_to_json

TYPING_ERROR = 0.75  # likeness from which an unknown option is taken for a misspelt argument of `tune`


def searcher_for(
    objective: Objective,
    method: methods.AnyMethod | None,
    seed: int | None,
    options: Mapping[str, Any],
    earlier: Description | None,
    rule: tuple[schedulers.AnyScheduler | None, Mapping[str, Any]] = (None, {}),
) -> Searcher:
    """Return the searcher of a study, which knows none of its events; its `description` is the study's.

    The user's arguments count; if one is missing, the journal's value.

    Args:
        rule: the scheduler and its options.
    """
    method, options = method_or_earlier(method, options, earlier)
    method_name = methods.name_of(method)  # one that cannot be imported is told before the scheduler
    scheduler, given = scheduler_or_earlier(*rule, earlier)
    rule_name = None if scheduler is None else schedulers.name_of(scheduler)
    steps = objective.steps
    if scheduler is not None and steps is None:
        raise ObjectiveError(
            f"{objective.name} declares no steps, so there is nothing for the scheduler {rule_name} to judge; say with "
            "@raybo.objective(..., steps=...) how many reports a whole run makes"
        )
    seed = earlier.seed if seed is None and earlier is not None else seed
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
        method=method_name,
        seed=seed_for(seed),
        settings={key: object_to_json(_named(value)) for key, value in sorted(objective.settings.items())},
        options=methods.options_of(method, made, options),
        context=objective.context,
        steps=steps,
        value=objective.value,
        scheduler=rule_name,
        scheduler_options={} if made_rule is None else schedulers.options_of(scheduler, made_rule, given),
        generation=GENERATION if earlier is None else earlier.generation,
        fidelity=objective.fidelity,
    )
    return Searcher.of(description, made, made_rule)


def _named(value: Any) -> Any:
    return fingerprint(value) if is_data(value) else str(value) if isinstance(value, Path) else value
