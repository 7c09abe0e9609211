"""Optuna's journal file, written without Optuna: `optuna-dashboard FILE` shows the study, also while it runs.

A line is an operation on the studies of the file. Trials are numbered by their creation, over all studies of the file,
so a file of ours holds one study. The lines follow from a journal's events alone, times included: a longer study begins
with the lines of a shorter one, and bringing a file up to date is appending to it.

    0 create study      2 attribute of a study    3 the same, of the system
    4 create a trial    8 attribute of a trial    6 end a trial

Read in Optuna 4.5 and 5.0, `optuna/storages/journal/_storage.py`, and tested against it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from raybo.errors import RayboError
from raybo.events import Event, Kind, State, Trial
from raybo.files import is_stream, write_file
from raybo.integrations.export import Exporter, described
from raybo.space import Categorical, Integer, Parameter
from raybo.study import Study

CREATE_STUDY, STUDY_ATTRIBUTE, STUDY_SYSTEM, CREATE_TRIAL, END_TRIAL, TRIAL_ATTRIBUTE = 0, 2, 3, 4, 6, 8
MINIMISE, MAXIMISE = 1, 2
RUNNING, COMPLETE, FAIL = 0, 1, 3
KEPT = ("host", "metrics", "traceback", "context_note")  # of a trial's details


def optuna_exporter(destination: str) -> Exporter:
    """A journal file; where it holds the beginning of the study already, the rest is appended."""
    path = Path(destination)
    sent = b""  # where what has been written cannot be read again

    def export(study: Study) -> None:
        nonlocal sent
        whole = "".join(journal_lines(study)).encode()
        if is_stream(path):
            write_file(path, whole[len(sent) :])
            sent = whole
            return
        try:
            there = path.read_bytes() if path.exists() else b""
            if not whole.startswith(there):
                first = whole.partition(b"\n")[0]
                if not there.startswith(first):
                    raise RayboError(f"{path}: it holds something else; give a file of its own")
                there = b""
            if not there:
                write_file(path, whole)
                return
            with open(path, "ab") as file:
                file.write(whole[len(there) :])
        except OSError as error:
            raise RayboError(f"{path}: it cannot be written ({error.strerror}); give another file") from error

    return export


def journal_lines(study: Study) -> list[str]:
    """The study as lines of Optuna's journal."""
    d = study.description
    name = study.path.stem if study.path is not None else d.objective
    operations: list[dict[str, Any]] = [
        {
            "op_code": CREATE_STUDY,
            "study_name": name,
            "directions": [MAXIMISE if study.goal.larger_is_better else MINIMISE],
        },
        {"op_code": STUDY_SYSTEM, "study_id": 0, "system_attr": {"study:metric_names": [d.metric]}},
    ]
    told = {key: value for key, value in described(d).items() if key not in ("space", "context")}
    operations += [
        {"op_code": STUDY_ATTRIBUTE, "study_id": 0, "user_attr": {key: value}} for key, value in told.items()
    ]
    again = {event.trial: event.number for event in study.events if event.kind is Kind.RETRIED}
    for event in study.events:
        if event.kind is Kind.FAILED and event.number < again.get(event.trial, 0):  # in Optuna a trial ends for good
            continue
        if event.trial is not None:
            trial = study.trials[event.trial]
            operations += _operations(study, event, trial, study.explain(trial))
    return [json.dumps({**operation, "worker_id": "raybo"}, separators=(",", ":")) + "\n" for operation in operations]


def _operations(study: Study, event: Event, trial: Trial, why: str) -> list[dict[str, Any]]:
    at = event.at or "1970-01-01T00:00:00+00:00"
    if event.kind is Kind.ASKED:
        values = study.space.open_values(trial.config)
        kinds = dict(zip(study.space.names, study.space.parameters.values(), strict=True))
        return [
            {
                "op_code": CREATE_TRIAL,
                "study_id": 0,
                "datetime_start": at,
                "state": RUNNING,
                "distributions": {name: _distribution(kinds[name]) for name, _ in values},
                "params": {
                    name: kind.position(value, name) if isinstance(kind := kinds[name], Categorical) else value
                    for name, value in values
                },
                "user_attrs": {"why": why, "suggest_seconds": trial.suggest_seconds},
            }
        ]
    if event.kind is Kind.RETRIED:
        return [_attribute(trial, "attempt", event.data["attempt"]), _attribute(trial, "reason", event.data["reason"])]
    if event.kind is Kind.CONTEXT_OBSERVED:
        return []
    known: dict[str, Any] = {"seconds": event.data.get("seconds"), "reason": event.data.get("reason")}
    known |= {key: event.data.get(key) for key in KEPT}
    if trial.context is not None:
        known["context"] = {key: str(v) if not isinstance(v, (int, float)) else v for key, v in trial.context.items()}
    if trial.state in (State.LOST, State.STOPPED):
        known["state"] = str(trial.state)
    ended = {
        "op_code": END_TRIAL,
        "trial_id": trial.number,
        "state": COMPLETE if event.kind is Kind.TOLD else FAIL,
        "values": [event.data["value"]] if event.kind is Kind.TOLD else None,
        "datetime_complete": at,
    }
    return [*(_attribute(trial, key, value) for key, value in known.items() if value), ended]


def _attribute(trial: Trial, key: str, value: Any) -> dict[str, Any]:
    return {"op_code": TRIAL_ATTRIBUTE, "trial_id": trial.number, "user_attr": {key: value}}


def _distribution(parameter: Parameter) -> str:
    """A parameter as Optuna writes it; it has no steps on logarithmic scales, and choices are plain values."""
    if isinstance(parameter, Categorical):
        choices = [c if c is None or isinstance(c, (bool, int, float, str)) else repr(c) for c in parameter.choices]
        return json.dumps({"name": "CategoricalDistribution", "attributes": {"choices": choices}})
    name, step = "FloatDistribution", parameter.step
    if isinstance(parameter, Integer):
        name, step = "IntDistribution", 1 if parameter.log else parameter.step
    elif parameter.log:
        step = None
    attributes = {"step": step, "low": parameter.low, "high": parameter.high, "log": parameter.log}
    return json.dumps({"name": name, "attributes": attributes})
