"""What a journal is about, and in words what another study does differently."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from typing import Any, cast

from raybo.record.goals import Goals, Mode
from raybo.space import Space, label

SINCE_0_2 = ("metrics", "constraints", "steps", "value", "scheduler", "scheduler_options", "generation")


@dataclass(frozen=True)
class Description:
    """What a journal is about. A study is continued only with the same one.

    Attributes:
        objective: name of the objective.
        settings: keyword parameters that the objective was given, as JSON values.
        metric, mode: what is wanted.
        space: `Space.to_json()`.
        method, options: the method and what it was given.
        seed: of every random stream.
        context: `Space.to_json()` of the contexts; None where none is declared.
        steps: how many steps a whole run has; None where that is not declared.
        value: which of a trial's reports is its value, "last" or "best".
        scheduler, scheduler_options: the rule that ends trials early and what it was given; None where none does.
        metrics: what is wanted of each of several metrics, of which `metric` is the first; None where there is one.
        constraints: which bounds returned numbers have to keep; None where there are none.
        generation: of the rules by which methods propose; 1 are those of raybo 0.1.
    """

    objective: str
    metric: str
    mode: str
    space: Mapping[str, Any]
    method: str
    seed: int
    settings: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    context: Mapping[str, Any] | None = None
    metrics: Mapping[str, str] | None = None
    constraints: Mapping[str, str] | None = None
    generation: int = 1
    steps: int | None = None
    value: str = "last"
    scheduler: str | None = None
    scheduler_options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def goals(self) -> Goals:
        """What is wanted; ValueError where it is nonsense."""
        return Goals.of(self.metrics, self.constraints, metric=self.metric, mode=cast(Mode, self.mode))

    @property
    def judged(self) -> str | None:
        """The metric that the scheduler looks at; None for the first."""
        return self.scheduler_options.get("metric")

    def to_json(self) -> dict[str, Any]:
        """As a journal keeps it: what 0.1 does not know is left out where it says nothing."""
        said = asdict(self)
        for field_ in fields(self):
            default = field_.default_factory() if field_.default_factory is not MISSING else field_.default
            if field_.name in SINCE_0_2 and said[field_.name] == default:
                del said[field_.name]
        return said

    def differences(self, other: Description) -> list[str]:
        """What another description says differently, in words."""
        told = []
        for name in ("objective", "settings", "metric", "mode", "method", "options", "seed", *SINCE_0_2):
            mine, theirs = getattr(self, name), getattr(other, name)
            is_ordered = name in ("metrics", "constraints")  # their numbers are kept by their places
            if as_text(mine) != as_text(theirs) or (is_ordered and list(mine or ()) != list(theirs or ())):
                told.append(f"{name} is {_shown(mine)} in the journal and {_shown(theirs)} now")
        if as_text(self.space) != as_text(other.space):
            told += _space_differences(self.space, other.space) or ["the constants of the space differ"]
        elif order := _order_differs(self.space, other.space):
            told.append(f"the order of the parameters is {order}")
        if as_text(self.context) != as_text(other.context):
            told += [f"context {text}" for text in _space_differences(self.context, other.context)]
        elif order := _order_differs(self.context, other.context):
            told.append(f"the order of the context's numbers is {order}")
        return told


def _shown(value: Any) -> str:
    return json.dumps(value) if isinstance(value, (dict, list)) else repr(value)


def as_text(value: Any) -> str:
    """JSON, in which 1, 1.0 and True differ, and a tuple is the list that it is read back as."""
    return json.dumps(value, sort_keys=True)


def _order_differs(mine: Mapping[str, Any] | None, theirs: Mapping[str, Any] | None) -> str:
    """In words, where two spaces that are alike otherwise have their parameters, which are kept by place, in another.

    Empty where they do not.
    """
    before, now = ([] if space is None else Space.from_json(space).names for space in (mine, theirs))
    return "" if before == now else f"{', '.join(before)} in the journal and {', '.join(now)} now"


def _space_differences(mine: Mapping[str, Any] | None, theirs: Mapping[str, Any] | None) -> list[str]:
    before, now = ({} if space is None else Space.from_json(space).parameters for space in (mine, theirs))
    told = []
    for path in [*before, *(path for path in now if path not in before)]:
        a, b = before.get(path), now.get(path)
        if a is None or b is None or as_text(a.to_json()) != as_text(b.to_json()):
            told.append(f"{label(path)} is {a or 'absent'} in the journal and {b or 'absent'} now")
    rules = [(space or {}).get("where", []) for space in (mine, theirs)]
    if rules[0] != rules[1]:
        told.append(f"where is {rules[0]} in the journal and {rules[1]} now")
    return told
