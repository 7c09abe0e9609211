"""What a Ray Tune search saves of itself: the events of its study and the ids of Tune's trials, as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from raybo.errors import JournalError
from raybo.events import Event, Kind
from raybo.space import Space, object_from_json, object_to_json

FORMAT = 1


@dataclass(frozen=True)
class SavedSearch:
    """A search as it was at one moment.

    Attributes:
        metric, mode, method, options, seed: what it was given, or took from Tune; None where that is not known yet.
        space, context: what it searches, and the space of the contexts; None where there is none.
        samples: how many trials Tune means to run; None where it did not say.
        events: of the study, in order.
        trials: the numbers of Tune's trials, by id.
        latest: the last report with a finite value of each trial that runs, by id.
        points: configurations that are still to be run first.
    """

    metric: str | None
    mode: str | None
    method: str
    options: Mapping[str, Any]
    seed: int | None
    space: Space | None
    context: Space | None
    samples: int | None
    events: Sequence[Event]
    trials: Mapping[str, int]
    latest: Mapping[str, Event]
    points: Sequence[Any]

    def write(self, path: Path) -> None:
        """Write it to a file."""
        state = {
            "format": FORMAT,
            "metric": self.metric,
            "mode": self.mode,
            "method": self.method,
            "options": self.options,
            "seed": self.seed,
            "space": None if self.space is None else self.space.to_json(),
            "context": None if self.context is None else self.context.to_json(),
            "samples": self.samples,
            "events": [[event.kind.value, event.trial, event.data] for event in self.events],
            "trials": self.trials,
            "latest": {key: event.data for key, event in self.latest.items()},
            "points": [object_to_json(point) for point in self.points],
        }
        path.write_text(json.dumps(state), encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> SavedSearch:
        """What a file holds; JournalError where it is no saved search."""
        try:
            state = json.loads(path.read_text(encoding="utf-8"))
            if state["format"] != FORMAT:
                raise JournalError(f"{path}: it was saved by another version of raybo")
            return cls(
                metric=state["metric"],
                mode=state["mode"],
                method=state["method"],
                options=state["options"],
                seed=state["seed"],
                space=None if state["space"] is None else Space.from_json(state["space"]),
                context=None if state["context"] is None else Space.from_json(state["context"]),
                samples=state["samples"],
                events=[Event(Kind(kind), trial, data) for kind, trial, data in state["events"]],
                trials=dict(state["trials"]),
                latest={key: Event(Kind.TOLD, None, data) for key, data in state["latest"].items()},
                points=[object_from_json(point) for point in state["points"]],
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise JournalError(f"{path}: it is not a saved RayboSearch ({error!r})") from None
