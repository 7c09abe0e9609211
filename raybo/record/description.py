"""The description of a study: one value, parsed and checked where a user's arguments enter.

The command line, `raybo.tune`, the journal, the study's actor, `Searcher` and its integrations all pass it on. A
journal keeps it as JSON, and is continued only with a description that has the same JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from raybo.record.fidelity import Fidelities, fidelities_from_json, fidelities_to_json
from raybo.record.goals import Goals, Mode
from raybo.space import Space, label

DEFAULTS_SINCE_0_2: Mapping[str, Any] = {  # left out of the JSON if they say nothing, so that it is what 0.1 writes
    "metrics": None,
    "constraints": None,
    "generation": 1,
    "steps": None,
    "value": "last",
    "scheduler": None,
    "scheduler_options": {},
    "fidelity": None,
}
RENAMED: Mapping[str, str] = {"prior": "gamma_prior"}  # options of raybo's own methods, as journals of 0.2 call them
COMPARED = (  # in this order
    *("objective", "settings", "metric", "mode", "method", "options", "seed"),
    *("metrics", "constraints", "steps", "value", "fidelity", "scheduler", "scheduler_options", "generation"),
)


@dataclass(frozen=True)
class Description:
    """A study's subject. The study is continued only with the same description.

    Attributes:
        objective: name of the objective.
        goals: the metrics with their directions, and the constraints.
        space: the search space.
        method: name of the method.
        seed: seed of every random stream.
        settings: keyword parameters that the objective was given, as JSON values.
        options: the method's options that were given.
        context: the space of the contexts; None if none is declared.
        steps: how many steps a whole run has; None if this is not declared.
        value: which of a trial's reports is its value, "last" or "best".
        scheduler: name of the rule that ends trials early; None if there is none.
        scheduler_options: the scheduler's options that were given.
        generation: version of the rules by which methods propose; 1 for those of raybo 0.1.
        fidelity: what makes the job cheap, by name; None if there are no cheap versions of it.
    """

    objective: str
    goals: Goals
    space: Space
    method: str
    seed: int
    settings: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    context: Space | None = None
    steps: int | None = None
    value: str = "last"
    scheduler: str | None = None
    scheduler_options: Mapping[str, Any] = field(default_factory=dict)
    generation: int = 1
    fidelity: Fidelities | None = None

    @property
    def metric(self) -> str:
        """The name of the first metric."""
        return self.goals.names[0]

    @property
    def mode(self) -> Mode:
        """The direction of the first metric, "max" or "min"."""
        return self.goals.modes[0]

    @property
    def judged(self) -> str | None:
        """The metric that the scheduler looks at; None for the first."""
        return self.scheduler_options.get("metric")

    def to_json(self) -> dict[str, Any]:
        """Return the description as a journal keeps it; `from_json` reads it."""
        said = {
            "objective": self.objective,
            "metric": self.metric,
            "mode": self.mode,
            "space": self.space.to_json(),
            "method": self.method,
            "seed": self.seed,
            "settings": dict(self.settings),
            "options": dict(self.options),
            "context": None if self.context is None else self.context.to_json(),
            "metrics": self.goals.metrics,
            "constraints": self.goals.rules,
            "generation": self.generation,
            "steps": self.steps,
            "value": self.value,
            "scheduler": self.scheduler,
            "scheduler_options": dict(self.scheduler_options),
            "fidelity": fidelities_to_json(self.fidelity),
        }
        silent = {name for name, default in DEFAULTS_SINCE_0_2.items() if said[name] == default}
        return {name: value for name, value in said.items() if name not in silent}

    @classmethod
    def from_json(cls, said: Mapping[str, Any]) -> Description:
        """Return the description that `to_json` wrote, by this version or an earlier one.

        Raises:
            ValueError: the space or the goals make no sense.
            TypeError, KeyError: a name is missing or unknown.
        """
        rest = {**said}
        goals = {name: rest.pop(name, None) for name in ("metric", "mode", "metrics", "constraints")}
        parsed = Goals.of(goals["metrics"], goals["constraints"], metric=goals["metric"], mode=goals["mode"])
        if (parsed.names[0], parsed.modes[0]) != (goals["metric"], goals["mode"]):
            raise ValueError("its first metric differs")
        context = rest.pop("context", None)
        rest["options"] = current_options(rest["method"], rest.get("options", {}))
        space = Space.from_json(rest.pop("space"))
        rest["fidelity"] = fidelities_from_json(rest.get("fidelity"))
        return cls(**rest, goals=parsed, space=space, context=None if context is None else Space.from_json(context))

    def over(self, space: Space, context: Space | None) -> Description:
        """Return the description over spaces that have the user's own objects, which JSON cannot hold."""
        return replace(self, space=space, context=context)

    def without_objects(self) -> Description:
        """Return the description as JSON can hold it: another process may name the user's objects differently."""
        context = None if self.context is None else Space.from_json(self.context.to_json())
        return self.over(Space.from_json(self.space.to_json()), context)

    def differences(self, other: Description) -> list[str]:
        """Return in words, one by one, what another description says differently."""
        mine, theirs = ({**DEFAULTS_SINCE_0_2, **each.to_json()} for each in (self, other))
        found = []
        for name in COMPARED:
            is_ordered = name in ("metrics", "constraints")  # a trial's numbers are kept by their places
            has_order_changed = is_ordered and list(mine[name] or ()) != list(theirs[name] or ())
            if as_text(mine[name]) != as_text(theirs[name]) or has_order_changed:
                found.append(f"{name} is {_shown(mine[name])} in the journal and {_shown(theirs[name])} now")
        for name, prefix, parts in (("space", "", "parameters"), ("context", "context ", "context's numbers")):
            before, now = mine[name], theirs[name]
            if as_text(before) != as_text(now):
                changes = _space_differences(before, now) or ["the constants of the space differ"]
                found += [f"{prefix}{text}" for text in changes]
            elif order := _order_differs(before, now):
                found.append(f"the order of the {parts} is {order}")
        return found


def current_options(method: str, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a method's options under their present names; those of a user's own method are as they are."""
    if ":" in method or not isinstance(options, Mapping):
        return options
    return {RENAMED.get(name, name): value for name, value in options.items()}


def _shown(value: Any) -> str:
    return json.dumps(value) if isinstance(value, (dict, list)) else repr(value)


def as_text(value: Any) -> str:
    """Return JSON in which 1, 1.0 and True differ, and a tuple is the list that it is read back as."""
    return json.dumps(value, sort_keys=True)


def _order_differs(mine: Mapping[str, Any] | None, theirs: Mapping[str, Any] | None) -> str:
    """Return in words how the parameters of two otherwise equal spaces differ in order; empty if they do not."""
    before, now = ([] if space is None else Space.from_json(space).names for space in (mine, theirs))
    return "" if before == now else f"{', '.join(before)} in the journal and {', '.join(now)} now"


def _space_differences(mine: Mapping[str, Any] | None, theirs: Mapping[str, Any] | None) -> list[str]:
    before, now = ({} if space is None else Space.from_json(space).parameters for space in (mine, theirs))
    found = []
    for path in [*before, *(path for path in now if path not in before)]:
        a, b = before.get(path), now.get(path)
        if a is None or b is None or as_text(a.to_json()) != as_text(b.to_json()):
            found.append(f"{label(path)} is {a or 'absent'} in the journal and {b or 'absent'} now")
    rules = [(space or {}).get("where", []) for space in (mine, theirs)]
    if rules[0] != rules[1]:
        found.append(f"where is {rules[0]} in the journal and {rules[1]} now")
    return found
