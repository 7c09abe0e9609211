"""Collects all facts of one trial, as JSON for the page."""

from __future__ import annotations

import os
from typing import Any

from raybo.common.errors import RayboError
from raybo.common.terminal import visible, without_colours
from raybo.journal.side_files import OUTPUT
from raybo.record.events import Event
from raybo.reporting.trial_view import earliest
from raybo.study.study import Study
from raybo.view.facts import Json, config_of, plain, state_of, text, why
from raybo.view.files import Left, listed, opened
from raybo.view.followed import Followed

LONG = 20_000  # the last so many characters of a traceback or of a trial's output are shown
TAG = 500  # characters of a tag's value, at most
EVENTS = 500  # the last so many events of a trial are shown
TOLD = (
    "reason",
    "host",
    "attempt",
    "seconds",
    "step",
    "value",
    "rule",
    "context_note",
    "checkpoint",
    "suggest_seconds",
)


def trial_page(followed: Followed, number: int) -> Json | None:
    """Return a trial's result, configuration, explanation, events and files; None if there is no such trial.

    Raises:
        JournalError: the study cannot be read.
    """
    with followed.now() as study:
        if not 0 <= number < len(study.trials):
            return None
        trial = study.trials[number]
        events = [event for event in study.events if event.trial == number]
        details = trial.details
        found: Json = {
            "number": number,
            "of": len(study.trials),
            "times": followed.times,
            "last": followed.touched[number],
            "metric": text(study.description.metric),
            "state": state_of(followed, trial),
            "value": trial.value,
            "reason": text(trial.reason, 2_000),
            "seconds": trial.seconds,
            "attempt": trial.attempt,
            "since": followed.since.get(number),
            "origin": str(trial.origin.value) if trial.origin else None,
            "why": why(study, trial) if not trial.reason else _explained(study, trial),
            "config": config_of(study.space, trial.config),
            "fidelity": [[text(name), at] for name, at in trial.fidelity.items()],
            "context": [[text(k), plain(v)] for k, v in (trial.context or {}).items()],
            "metrics": [[text(k), _long(v)] for k, v in (details.get("metrics") or {}).items()],
            "host": text(details.get("host", "")),
            "tags": [[text(k), _long(v)] for k, v in trial.tags.items()],
            "traceback": visible(str(details.get("traceback", ""))[-LONG:]),
            "reports": [list(report) for report in getattr(trial, "reports", [])],
            "events": [_event(event) for event in events[-EVENTS:]],
            "earlier": max(0, len(events) - EVENTS),
        }
        directory, places = study.directory(trial), study.files(trial)
    left = [] if directory is None else listed(directory)
    found["files"] = [_left(one) for one in left]
    found["directory"] = text(", ".join(places), 2_000)
    found["output"] = "" if directory is None else _output(left, directory, earliest(events))
    return found


def _explained(study: Study, trial: Any) -> str:
    try:
        return text(study.explain(trial))
    except RayboError:
        return ""


def _event(event: Event) -> Json:
    data = dict(event.data)
    return {
        "number": event.number,
        "at": event.at,
        "kind": str(event.kind),
        "told": [[key, plain(data[key])] for key in TOLD if key in data],
    }


def _left(left: Left) -> Json:
    name = text(b"/".join(left.parts).decode("utf-8", "backslashreplace"))
    return {"key": left.key, "name": name, "size": left.size, "changed": left.changed}


def _output(left: list[Left], directory: Any, begun: float) -> str:
    """Return the end of its output; empty if that is older than the trial, of another study of this name."""
    own = next((one for one in left if one.parts == (os.fsencode(OUTPUT),)), None)
    if own is None or own.changed + 1 < begun:
        return ""
    try:
        with opened(directory, own.key) as (file, _):
            file.seek(max(0, os.fstat(file.fileno()).st_size - 4 * LONG))
            told = visible(without_colours(file.read(4 * LONG).decode(errors="replace")))
    except OSError:
        return ""
    return told if len(told) <= LONG else f"…{told[-LONG:]}"


def _long(value: object) -> Any:
    return plain(value) if isinstance(value, float) else text(value, TAG)
