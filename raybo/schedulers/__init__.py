"""The schedulers by name: rules by which trials that report as they go are ended early, or wait for the others.

A scheduler is a frozen dataclass of options, derived from `Scheduler`, and keeps nothing between calls: a verdict is a
pure function of the history in the journal's order. So a continued study decides as it would have without the
interruption, and every verdict can be checked against the journal. A file here whose docstring begins with its own name
("asha: ...") is a scheduler, and needs no other registration.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from raybo.common.arguments import by_name
from raybo.common.errors import MethodError
from raybo.common.messages import shown
from raybo.common.options import option
from raybo.common.registry import Registry, discover
from raybo.record.history import History
from raybo.schedulers.scheduler import Scheduler
from raybo.schedulers.verdict import GO, Verdict

SCHEDULERS = discover(Path(__file__).parent, __name__)  # "module:Class" by name; imported when used
REGISTRY: Registry[Scheduler] = Registry("scheduler", Scheduler, SCHEDULERS)  # type: ignore[type-abstract]
AnyScheduler: TypeAlias = str | type[Scheduler] | Scheduler  # a name, "package.module:Class", a class, or a scheduler

__all__ = [
    "GO",
    "SCHEDULERS",
    "AnyScheduler",
    "History",
    "Scheduler",
    "Verdict",
    "describe",
    "label",
    "load",
    "make",
    "name_of",
    "option",
    "options_of",
]

load = REGISTRY.load
label = REGISTRY.label
name_of = REGISTRY.name_of
options_of = REGISTRY.options_of
describe = REGISTRY.describe


def make(
    scheduler: AnyScheduler, options: Mapping[str, Any], steps: int | None, metrics: Sequence[str] = ()
) -> Scheduler:
    """Return a scheduler with its options; one that is made already is returned as it is.

    Args:
        scheduler: a name, "package.module:Class", a class derived from `Scheduler`, or one made of it.
        options: those that differ from the defaults; text is read as their type.
        steps: how many steps a whole run has; None if that is not declared.
        metrics: names of those that it may look at; any if there are none.
    Raises:
        MethodError: the name, an option or a value is wrong, no steps are declared, there is no such metric, or the
            grace period leaves nothing of a run to judge.
    """
    load(scheduler)  # an unknown name is reported first
    name = label(scheduler)
    if steps is None:
        raise MethodError(
            f"the scheduler {name} needs trials that report intermediate results; say with steps= how many reports a "
            "whole run makes"
        )
    made = REGISTRY.make(scheduler, by_name(options, "scheduler_options", f"{name}'s options by name"))
    grace = getattr(made, "grace", None)  # an option that some have
    if grace is not None and grace >= steps and ("grace" in options or made is scheduler):
        raise MethodError(f"{name}: grace must be below the steps of a whole run, {steps}, got {grace}")
    if metrics and made.metric is not None and made.metric not in metrics:
        raise MethodError(f"{name}: metric must be {' or '.join(metrics)}, got {shown(made.metric)}")
    return made
