"""The state of a Ray Tune search, which it saves as JSON: the events of its study and the ids of Tune's trials."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from raybo.common.errors import JournalError
from raybo.integrations.tune_results import UNKNOWN
from raybo.record.description import Description, current_options
from raybo.record.events import KINDS, AttemptEvent, Event, Kind, Told
from raybo.record.goals import Goals, Mode
from raybo.record.history import GENERATION, ONE
from raybo.space import Opaque, Space, object_from_json, object_to_json

FORMAT = 1


def _events_from_json(rows: Any) -> list[Event]:
    return [KINDS[Kind(kind)].of(trial, data) for kind, trial, data in rows]


def _latest_from_json(reports: Any) -> dict[str, AttemptEvent]:
    return {key: Told.of(UNKNOWN, data) for key, data in reports.items()}


def _attributes_to_json(attributes: Mapping[str, Any]) -> dict[str, Any]:
    described = {name: object_to_json(value) for name, value in attributes.items()}
    return {name: value for name, value in described.items() if not _holds_opaque(object_from_json(value))}


def _holds_opaque(value: Any) -> bool:
    """True if something in it could be kept by its text only."""
    if isinstance(value, dict):
        return any(map(_holds_opaque, value.values()))
    return any(map(_holds_opaque, value)) if isinstance(value, (list, tuple)) else isinstance(value, Opaque)


# what is kept, and the way to JSON and back; None stays None
SPACE = {"write": partial(Space.to_json, exact=True), "read": Space.from_json}
EVENTS = {
    "write": lambda events: [[event.kind.value, event.trial, event.data] for event in events],
    "read": _events_from_json,
}
LATEST = {"write": lambda latest: {key: event.data for key, event in latest.items()}, "read": _latest_from_json}
POINTS = {
    "write": lambda points: [object_to_json(point) for point in points],
    "read": lambda points: [object_from_json(point) for point in points],
}
ATTRIBUTES = {
    "write": _attributes_to_json,
    "read": lambda attributes: {name: object_from_json(value) for name, value in attributes.items()},
}


@dataclass
class SearchState:
    """A search as it is at one moment.

    Attributes:
        declared: the goals as declared: the constraints, and the metrics if there are several.
        metric, mode, method, options, seed: what it was given, or took from Tune; None if that is not known yet.
        space, context: what it searches, and the space of the contexts; None if there is none.
        samples: how many trials Tune means to run; None if it did not say.
        events: of the study, in order.
        trials: the numbers of Tune's trials, by id.
        latest: the last report with a finite value of each trial that runs, by id.
        points: configurations that are still to be run first.
        attributes: what a subclass has beside that; of it, only what JSON can hold is saved.
        steps: how many iterations a whole run has; None if a trial is learned from by its end alone.
        generation: of the rules by which methods propose; 1 where raybo 0.1 began it.
        budget: the seconds that all trials may take; None for any.
    """

    metric: str | None
    mode: Mode | None
    method: str
    options: dict[str, Any]
    seed: int | None
    space: Space | None = field(default=None, metadata=SPACE)
    context: Space | None = field(default=None, metadata=SPACE)
    samples: int | None = None
    events: list[Event] = field(default_factory=list, metadata=EVENTS)
    trials: dict[str, int] = field(default_factory=dict)
    latest: dict[str, AttemptEvent] = field(default_factory=dict, metadata=LATEST)
    points: list[Any] = field(default_factory=list, metadata=POINTS)
    attributes: dict[str, Any] = field(default_factory=dict, metadata=ATTRIBUTES)
    steps: int | None = None
    declared: Goals = field(default=ONE)
    generation: int = GENERATION
    budget: float | None = None

    def write(self, path: Path) -> None:
        """Write it to a file."""
        state: dict[str, Any] = {"format": FORMAT}
        for known in fields(self):
            value, write = getattr(self, known.name), known.metadata.get("write")
            state[known.name] = value if value is None or write is None else write(value)
        declared = state.pop("declared")
        state.update(metrics=declared.metrics, constraints=declared.rules)
        if not state["attributes"]:
            del state["attributes"]  # as raybo 0.1 knows it
        for name in ("steps", "metrics", "constraints", "budget"):
            if state[name] is None:
                del state[name]  # likewise
        path.write_text(json.dumps(state), encoding="utf-8")

    @property
    def goals(self) -> Goals:
        """The goals of the search; "value" and "max" until Tune says what they are."""
        if self.declared.k > 1:
            return self.declared
        return replace(self.declared, names=(self.metric or "value",), modes=(self.mode or "max",))

    def description(self, space: Space, seed: int) -> Description:
        """Return the description of the search."""
        return Description(
            objective="",
            goals=self.goals,
            space=space,
            method=self.method,
            seed=seed,
            options=self.options,
            context=self.context,
            steps=self.steps,
            generation=self.generation,
        )

    @classmethod
    def read(cls, path: Path) -> SearchState:
        """Read a file; JournalError if it is not a saved search."""
        try:
            state = json.loads(path.read_text(encoding="utf-8"))
            if state["format"] != FORMAT:
                raise JournalError(f"{path}: it was saved by another version of raybo")
            unsaved: dict[str, Any] = {
                "attributes": {},
                "steps": None,
                "metrics": None,
                "constraints": None,
                "generation": 1,
                "budget": None,
            }
            state = {**unsaved, **state}  # what raybo 0.1 did not save
            state["declared"] = Goals.of(state.pop("metrics"), state.pop("constraints"))
            found = {}
            for known in fields(cls):
                value, read = state[known.name], known.metadata.get("read")
                found[known.name] = value if value is None or read is None else read(value)
            return cls(**{**found, "options": current_options(found["method"], found["options"])})
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise JournalError(f"{path}: it is not a saved RayboSearch ({error!r})") from None
