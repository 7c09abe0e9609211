"""The facts about a study that the page shows, as JSON.

Everything that a user may have named goes out as text in which nothing commands a terminal or turns the direction of
writing, and no text is longer than a page can bear.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any, TypeAlias

from raybo.common.errors import RayboError
from raybo.common.messages import first_line
from raybo.common.terminal import visible
from raybo.journal import clean_text
from raybo.methods.findings import EXPECTED
from raybo.record.events import Told
from raybo.record.states import COUNTED, FAILURES, State
from raybo.record.trial import Trial
from raybo.reporting.formatting import shown
from raybo.reporting.summary import failure_reasons, range_in_words
from raybo.reporting.timeline import seconds_of
from raybo.space import Categorical, Integer, Parameter, Space, choice_names
from raybo.space.branches import written
from raybo.study.study import Study
from raybo.view.followed import Followed

Json: TypeAlias = dict[str, Any]

TEXT = 300  # characters of a text in a table, at most
ROWS = 5_000  # trials in one answer, at most
REASONS = 8  # so many reasons of failures are shown, the most frequent
CHOICES = 200  # a form shows at most so many choices of a parameter
LARGEST = 2**53  # larger integers are not exact in JavaScript


def overview(name: str, followed: Followed) -> Json:
    """Return a study's line in the list of all: its description, progress and best value; or why it cannot be read."""
    about: Json = {"id": name, "file": text(followed.path.name), "path": text(str(followed.path))}
    try:
        is_running = followed.is_running()
        with followed.now() as study:
            return {**about, **_progress(study, followed), "running": is_running}
    except RayboError as error:
        return {**about, "error": text(str(error))}


def details(name: str, followed: Followed) -> Json:
    """Return everything about one study but its trials and figures.

    Raises:
        JournalError: it cannot be read.
    """
    is_running = followed.is_running()
    with followed.now() as study:
        about = study.description
        return {
            "id": name,
            "file": text(followed.path.name),
            "path": text(str(followed.path)),
            **_progress(study, followed),
            "running": is_running,
            "ended": text(study.ended),
            "seed": about.seed,
            "options": _pairs(about.options),
            "settings": _pairs(about.settings),
            "space": [
                {**_parameter(name, parameter), "opened": condition}
                for (name, parameter), condition in zip(named(study.space), study.space.cube.conditions, strict=True)
            ],
            "rules": [text(str(rule)) for rule in study.space.rules],
            "context": [] if study.context is None else [_parameter(n, p) for n, p in named(study.context)],
            "workers": [_worker(study, followed, number) for number in sorted(followed.since)],
            "failures": _failures(study),
        }


def rows(followed: Followed, since: int, times: int) -> Json:
    """Return the trials that changed after an event, at most ROWS; the next begin at `last`."""
    with followed.now() as study:
        if times != followed.times:
            since = 0
        chosen: list[int] = []
        last = max(0, min(since, len(study.events)))
        for event in study.events[last:]:
            last = event.number
            if event.trial is not None and followed.touched[event.trial] == event.number:
                chosen.append(event.trial)
                if len(chosen) == ROWS:
                    break
        return {
            "times": followed.times,
            "last": last,
            "complete": last == len(study.events),
            "parameters": [text(name) for name in study.space.names],
            "contexts": [] if study.context is None else [text(name) for name in study.context.names],
            "metric": text(study.description.metric),
            "rows": [_row(study, followed, study.trials[number]) for number in chosen],
        }


def curve(name: str, followed: Followed) -> Json:
    """Return the improvements of the best value: after which trial, and after how many seconds."""
    with followed.now() as study:
        clock = seconds_of(study.events)
        best: float | None = None
        steps: list[list[float | int | None]] = []
        ended: set[int | None] = set()  # a trial that was retried has ended once
        last_at = min(clock.values(), default=None)
        for event in study.events:
            if event.is_end:
                last_at = clock.get(event.number, last_at)
            if event.is_end and event.state in COUNTED:
                ended.add(event.trial)
            if not isinstance(event, Told) or not study.trials[event.trial].feasible:
                continue
            value = float(event.value)
            if best is None or study.goal.is_better(value, best):
                best = value
                steps.append([len(ended), clock.get(event.number), value])
        if steps and best is not None:
            steps.append([len(ended), last_at, best])
        about = study.description
        return {
            "id": name,
            "name": text(followed.path.stem),
            "objective": text(about.objective),
            "metric": text(about.metric),
            "mode": about.mode,
            "steps": steps,
        }


# ---- pieces


def named(space: Space) -> list[tuple[str, Parameter]]:
    """Return each parameter with the name that tables show."""
    return list(zip(space.names, space.parameters.values(), strict=True))


def text(value: object, most: int = TEXT) -> str:
    """Return any value as a text that a page can show."""
    told = visible(clean_text(value if isinstance(value, str) else shown(value)))
    return told if len(told) <= most else f"{told[: most - 1]}…"


def plain(value: Any) -> Any:
    """Return a value for a table: numbers as numbers, all else as text."""
    if value is None or isinstance(value, bool):
        return value if value is None else str(value)
    if isinstance(value, int):
        return value if abs(value) <= LARGEST else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return text(value)


def why(study: Study, trial: Trial) -> str:
    """Explain why the trial was proposed, or how it ended badly."""
    if trial.reason and trial.state is not State.FINISHED:
        return text(trial.reason)
    try:
        return text(study.explain(trial))
    except RayboError as error:  # of a method that this version does not have, say
        return text(first_line(error))


def values_of(space: Space, config: Mapping[str, Any]) -> list[Any]:
    """Return each parameter's value; None for inactive ones."""
    told = dict(space.named_values(config))
    return [chosen(told[name]) if name in told else None for name in space.names]


def chosen(value: Any) -> Any:
    """Return a parameter's value for a table: None, which may be a choice, as a word."""
    return plain(value if isinstance(value, (int, float, str)) else shown(value))


def config_of(space: Space, config: Mapping[str, Any]) -> list[list[Any]]:
    """Return name and value of each active parameter."""
    return [[text(name), chosen(value)] for name, value in space.named_values(config)]


def state_of(followed: Followed, trial: Trial) -> str:
    """Return a trial's state: of a pending one that no worker has taken yet that it is enqueued, or infeasible."""
    is_waiting = trial.state is State.PENDING and trial.number not in followed.since
    return "enqueued" if is_waiting else "infeasible" if trial.violations else str(trial.state)


def _row(study: Study, followed: Followed, trial: Trial) -> list[Any]:
    metrics = trial.details.get("metrics") or {}
    return [
        trial.number,
        state_of(followed, trial),
        trial.reports[-1][1] if trial.value is None and trial.reports else trial.value,  # of a pruned trial its last
        trial.seconds,
        trial.attempt,
        why(study, trial),
        values_of(study.space, trial.config),
        None if trial.context is None or study.context is None else values_of(study.context, trial.context),
        {text(name): plain(value) for name, value in metrics.items()} or None,
    ]


def _progress(study: Study, followed: Followed) -> Json:
    about = study.description
    counts = Counter({str(state): study.count(state) for state in State})
    best = None if study.context is not None else study.incumbent  # over contexts it takes a model: see figures
    events = study.events
    return {
        "times": followed.times,
        "last": len(events),
        "objective": text(about.objective),
        "metric": text(about.metric),
        "mode": about.mode,
        "metrics": [[text(n), mode] for n, mode in zip(study.goals.names, study.goals.modes, strict=True)],
        "constraints": [text(str(constraint)) for constraint in study.goals.constraints],
        "method": text(about.method),
        "planned": study.planned,
        "trials": len(study.trials),
        "counts": {state: count for state, count in counts.items() if count},
        "done": study.ran,
        "failed": study.count(*FAILURES),
        "best": None if best is None else best_trial(study, best),
        "began": next((event.at for event in events if event.at), None),
        "latest": next((event.at for event in reversed(events) if event.at), None),
    }


def best_trial(study: Study, best: Trial, expected: tuple[float, float] | None = None) -> Json:
    """Return the best or the recommended trial: its number, value, configuration, and a model's prediction, if any."""
    return {
        "number": best.number,
        "value": best.value,
        **dict(zip(EXPECTED, expected or (None, None), strict=True)),
        "config": config_of(study.space, best.config),
    }


def front_of(study: Study) -> list[Json]:
    """Return the Pareto front of a study with several metrics, in the order of the first; empty if there is one."""
    if study.goals.k == 1:
        return []
    return [
        {"number": trial.number, "values": [[text(name), value] for name, value in trial.values.items()]}
        for trial in study.front
    ]


def _worker(study: Study, followed: Followed, number: int) -> Json:
    trial = study.trials[number]
    return {
        "trial": number,
        "state": str(trial.state),
        "attempt": trial.attempt,
        "since": followed.since[number],
        "config": config_of(study.space, trial.config),
    }


def _failures(study: Study) -> list[Json]:
    return [
        {"reason": text(reason), "count": count, "first": first}
        for reason, count, first in failure_reasons(study, TEXT)[:REASONS]
    ]


def _parameter(name: str, parameter: Parameter) -> Json:
    told: Json = {"name": text(name), "range": text(range_in_words(parameter))}
    if isinstance(parameter, Categorical):
        names = written(choice_names(parameter.choices), shown)[:CHOICES]
        return {**told, "kind": "choice", "choices": [text(name) for name in names]}
    return {
        **told,
        "kind": "integer" if isinstance(parameter, Integer) else "number",
        "low": plain(parameter.low),
        "high": plain(parameter.high),
        "step": plain(parameter.step),
        "log": parameter.log,
    }


def _pairs(values: Mapping[str, Any]) -> list[list[str]]:
    return [[text(key), text(value)] for key, value in values.items()]
