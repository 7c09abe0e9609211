"""The schedulers by name: rules by which trials that report as they go are ended early, or wait for the others.

A scheduler is a frozen dataclass of options, as a method is, and keeps nothing between calls: a verdict is a pure
function of the history in the journal's order. So a continued study decides as it would have without the interruption,
and every verdict can be checked against the journal.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast

from raybo.common.arguments import by_name
from raybo.common.errors import MethodError
from raybo.common.messages import nearest, shown
from raybo.common.options import read
from raybo.record.history import History
from raybo.schedulers.verdict import GO, Verdict

SCHEDULERS: dict[str, str] = {  # name: where it lives; loaded when used
    "median": "raybo.schedulers.median:Median",
    "asha": "raybo.schedulers.asha:Asha",
    "hyperband": "raybo.schedulers.hyperband:Hyperband",
    "curve": "raybo.schedulers.curve:Curve",
}

__all__ = ["GO", "SCHEDULERS", "Scheduler", "Verdict", "describe", "load", "make"]


class Scheduler(Protocol):
    """What every scheduler is. Its functions are pure, and change nothing."""

    def decides(self, history: History, trial: int, step: int) -> bool:
        """Whether a verdict other than to go on can be given of the trial at that step, as things stand.

        The step may be one that it has yet to report. A trial waits for its verdict where this holds, so it must be
        cheap: it is asked of many steps at a time.
        """
        ...

    def decide(self, history: History, trial: int, step: int) -> Verdict:
        """The verdict on a trial that has just reported this step, the last of its record."""
        ...

    def next_promoted(self, history: History) -> int | None:
        """The paused trial that a free worker goes on with; None where a new one is to be proposed."""
        ...


def load(name: str) -> type:
    """The class of a scheduler; MethodError, with the nearest name, where there is none."""
    if not isinstance(name, str) or name not in SCHEDULERS:
        raise MethodError(f"there is no scheduler {name!r}{nearest(str(name), list(SCHEDULERS))}")
    module, _, cls = SCHEDULERS[name].partition(":")
    return cast(type, getattr(importlib.import_module(module), cls))


def make(name: str, options: Mapping[str, Any], steps: int | None, metrics: Sequence[str] = ()) -> Scheduler:
    """A scheduler with its options.

    Args:
        name: which one.
        options: those that differ from the defaults; text is read as their type.
        steps: how many steps a whole run has; None where that is not declared.
        metrics: names of those that it may look at; any where there are none.
    Raises:
        MethodError: the name, an option or a value is wrong, no steps are declared, there is no such metric, or the
            grace that was given leaves nothing of a run to judge.
    """
    cls = load(name)
    if steps is None:
        raise MethodError(
            f"the scheduler {name} needs trials that report as they go; say with steps= how many reports a whole run "
            "makes"
        )
    values = read(name, cls, by_name(options, "scheduler_options", f"{name}'s options by name"))
    if (grace := values.get("grace")) is not None and grace >= steps:
        raise MethodError(f"{name}: grace must be below the steps of a whole run, {steps}, got {grace}")
    metric = values.get("metric")
    if metrics and metric is not None and metric not in metrics:
        raise MethodError(f"{name}: metric must be {' or '.join(metrics)}, got {shown(metric)}")
    try:
        return cast(Scheduler, cls(**values))
    except MethodError as error:  # a scheduler does not know under which name it is registered
        raise MethodError(f"{name}: {error}") from None


def describe(name: str) -> tuple[str, list[tuple[str, Any, str]]]:
    """A scheduler's docstring, and its options as (name, default, meaning)."""
    cls = load(name)
    fields = [(f.name, f.default, f.metadata.get("meaning", "")) for f in dataclasses.fields(cls)]
    return (cls.__doc__ or "").strip(), fields
