"""The code that a study's trials ran under, as fingerprints that its runs have recorded, and how these differ."""

from __future__ import annotations

from collections.abc import Sequence

from raybo.record.event_fields import Code
from raybo.record.events import AttemptEvent, Event, Planned

MOST_SPANS = 4  # of numbers of trials that are named


def last_code(events: Sequence[Event]) -> Code | None:
    """Return the code of the study's last run; None if it is not known, as in journals of 0.2."""
    return next((e.code for e in reversed(events) if isinstance(e, Planned) and e.code is not None), None)


def codes_of(events: Sequence[Event]) -> dict[int, Code]:
    """Return the code under which each trial has ended, by its number; those of which it is not known are left out."""
    found: dict[int, Code] = {}
    code: Code | None = None
    for event in events:
        if isinstance(event, Planned) and event.code is not None:
            code = event.code
        elif isinstance(event, AttemptEvent) and event.is_end and event.attempt is not None and code is not None:
            found[event.trial] = code
    return found


def other_code(events: Sequence[Event], now: Code | None) -> str:
    """Return in words which trials have ended under other code than this, and what differs; empty if none has."""
    if now is None:
        return ""
    trials: dict[str, list[int]] = {}
    for number, code in sorted(codes_of(events).items()):
        if found := differences(code, now):
            trials.setdefault(", ".join(found), []).append(number)
    return "; ".join(f"{_named(numbers)} ran under other code ({what})" for what, numbers in trials.items())


def differences(before: Code, now: Code) -> list[str]:
    """Return in words what differs between two fingerprints, part by part."""
    old, new = before.get("sources", {}), now.get("sources", {})
    found = []
    for name in sorted({*old, *new}):
        if old.get(name) != new.get(name):
            found.append(f"{name} {'is new' if name not in old else 'differs' if name in new else 'is not used now'}")
    old, new = before.get("packages", {}), now.get("packages", {})
    both = sorted({*old} & {*new})  # what has come or gone did so with a source
    return found + [f"{name} was {old[name]} and is {new[name]}" for name in both if old[name] != new[name]]


def _named(numbers: Sequence[int]) -> str:
    """Return increasing numbers of trials in words: `trial 3`, `trials 0-49, 60`."""
    spans: list[tuple[int, int]] = []
    for number in numbers:
        if spans and number == spans[-1][1] + 1:
            spans[-1] = spans[-1][0], number
        else:
            spans.append((number, number))
    words = [str(first) if first == last else f"{first}-{last}" for first, last in spans[:MOST_SPANS]]
    more = " and others" if len(spans) > MOST_SPANS else ""
    return f"trial{'s' if len(numbers) > 1 else ''} {', '.join(words)}{more}"
