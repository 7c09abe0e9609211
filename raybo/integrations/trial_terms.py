"""A study in other programs' terms: what is new in it, and the parameters, numbers and times of a trial.

What every export says about a trial is defined here, once. Each export knows how much of that its program can hold.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, TypeAlias

from raybo.common.arguments import is_number
from raybo.record.events import Event, Kind
from raybo.record.trial import Trial
from raybo.space import Categorical, Parameter, Space, choice_names
from raybo.study.study import Study

Plain: TypeAlias = "bool | int | float | str | None"  # a value that every program can hold; floats are finite


def news(study: Study, seen: int) -> list[tuple[Event, Trial]]:
    """The events about trials after the first so many of a study, each with its trial as it is now.

    The end of a failed trial that has been started again since is left out if both are new: it did not end there.
    """
    new = study.events[seen:]
    again = {event.trial: event.number for event in new if event.kind is Kind.RETRIED}
    return [
        (event, study.trials[event.trial])
        for event in new
        if event.trial is not None and not (event.is_end and event.number < again.get(event.trial, 0))
    ]


def parameters(space: Space, config: Mapping[str, Any]) -> list[tuple[str, Plain]]:
    """Name and value of each parameter that is open in a configuration; choices are told as in `choices`."""
    kinds = dict(zip(space.names, space.parameters.values(), strict=True))
    return [(name, _told(kinds[name], value, name)) for name, value in space.open_values(config)]


def choices(parameter: Categorical) -> list[Plain]:
    """Its choices, no two texts alike: those with parameters of their own by their names, other objects as texts."""
    told: list[Plain] = []
    named = choice_names(parameter.choices)
    taken = {choice for choice in named if isinstance(choice, str)}
    for k, choice in enumerate(named):
        if not _is_plain(choice):
            text = repr(choice)
            choice = f"{text} ({k + 1})" if text in taken else text
            taken.add(choice)
        told.append(choice)
    return told


def _told(parameter: Parameter, value: Any, name: str) -> Plain:
    return choices(parameter)[parameter.position(value, name)] if isinstance(parameter, Categorical) else value


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, (bool, int, str)) or (isinstance(value, float) and math.isfinite(value))


def numbers_of(study: Study, trial: Trial) -> dict[str, float]:
    """The numbers that a trial ended with: metrics, what is constrained, and whatever else it returned that is one."""
    told = {**(trial.details.get("metrics") or {}), **trial.values, study.description.metric: trial.value}
    return {name: float(value) for name, value in told.items() if is_number(value)}


def numbers_said(study: Study, report: Event) -> dict[str, float]:
    """The numbers that a trial has reported of a step."""
    told = {**(report.data.get("metrics") or {}), study.description.metric: report.data["value"]}
    return {name: float(value) for name, value in told.items() if is_number(value)}


def time_of(event: Event) -> float | None:
    """When it was written, in seconds since 1970; None where that is not known."""
    return datetime.fromisoformat(event.at).timestamp() if event.at else None


class Names:
    """A program's names for a user's, no two alike: if a@1 is a_1 there, a#1 is a_1_2.

    A name is given when it is first asked for, and stays.

    Args:
        allowed: makes a text of characters that the program takes.
        taken: names that are the program's own, which a user's may take over only by being just that.
        longest: characters of a name at most; None for no limit.
    """

    def __init__(self, allowed: Callable[[str], str], taken: Iterable[str] = (), longest: int | None = None) -> None:
        self._allowed = allowed
        self._longest = longest
        self._names = {name: name for name in taken}
        self._taken = set(self._names)

    def __getitem__(self, name: str) -> str:
        """The program's name for it."""
        if name not in self._names:
            self._names[name] = self.another(name)
        return self._names[name]

    def another(self, name: str) -> str:
        """A name for another thing of that name."""
        text = self._allowed(name)[: self._longest]
        count, free = 1, text
        while free in self._taken:
            count += 1
            end = f"_{count}"
            free = text[: self._longest and self._longest - len(end)] + end
        self._taken.add(free)
        return free
