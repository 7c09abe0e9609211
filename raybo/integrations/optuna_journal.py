"""Optuna's journal file, written without Optuna: `optuna-dashboard FILE` shows the study, also while it runs.

A line is an operation on the file's studies, and trials are numbered in the order of their creation, whoever creates
them. A file begins with a study of ours, and is brought up to date by appending what it lacks: a program that follows
the file just reads on, and what others have written into it (notes, attributes, trials) stays.

    0 create study      2 attribute of a study    3 the same, of the system
    4 create a trial    8 attribute of a trial    9 the same, of the system    6 end a trial
    7 intermediate value

The format was read from Optuna 5.0's `optuna/storages/journal/_storage.py`, and is tested against it. Optuna 4 does
not see the constraints, which it keeps elsewhere, and cannot work out durations, as our times have a time zone.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from raybo.common.errors import RayboError
from raybo.common.files import is_stream, write_file
from raybo.integrations.export import Exporter, described, plain, summary_of
from raybo.integrations.trial_terms import choices, news
from raybo.record.events import Event, Kind, State, Told
from raybo.record.trial import Trial
from raybo.space import Categorical, Integer, Parameter
from raybo.study.study import Study

CREATE_STUDY, STUDY_ATTRIBUTE, STUDY_SYSTEM, CREATE_TRIAL, END_TRIAL = 0, 2, 3, 4, 6
REPORT, TRIAL_ATTRIBUTE, TRIAL_SYSTEM = 7, 8, 9
MINIMISE, MAXIMISE = 1, 2
RUNNING, COMPLETE, PRUNED, FAIL = 0, 1, 2, 3
WRITER = "raybo"
LOCK_TRIES, LOCK_SECONDS = 300, 0.1  # Optuna gives a lock up after 30 seconds too
KEPT = ("host", "metrics", "traceback", "context_note", "rule", "numbers")  # of a trial's details


def optuna_exporter(destination: str) -> Exporter:
    """A journal file; where it holds the beginning of the study already, the rest is appended."""
    path = Path(destination)
    written = _Written()

    def export(study: Study) -> None:
        nonlocal written
        if is_stream(path):  # which cannot be read again
            new = "".join(written.lacking(study, path)).encode()
            write_file(path, new)
            written.take(new, path)
            return
        try:
            with _locked(path), open(path, "ab+") as file:
                if file.seek(0, os.SEEK_END) < written.read:  # it is another file by now
                    written = _Written()
                file.seek(written.read)
                whole, newline, torn = file.read().rpartition(b"\n")
                written.take(whole + newline, path)
                if torn:  # of a writer that was killed, and who reads the file waits for its end
                    if written.study is None and not _text(_of_study(study)[0]).encode().startswith(torn):
                        raise RayboError(f"{path}: it contains something else; give another file")
                    file.truncate(written.read)
                new = "".join(written.lacking(study, path)).encode()
                file.write(new)
                written.take(new, path)
        except OSError as error:
            raise RayboError(f"{path}: it cannot be written ({error.strerror}); give another file") from error

    return export


@dataclass
class _Written:
    """What a file holds of our study, as far as it has been read.

    Attributes:
        read: bytes.
        study: the operation that created our study; None where the file is empty.
        created: trials, by anyone.
        ours: our trials' numbers in the file, and the parameters that they were created with.
        said: attributes of trials that we have set, as text.
        told: the study's attributes as we have set them last, as text by name.
        ended: our trials that have ended.
        events: of the study, that the file holds.
    """

    read: int = 0
    study: dict[str, Any] | None = None
    created: int = 0
    ours: list[tuple[int, Any]] = field(default_factory=list)
    said: set[str] = field(default_factory=set)
    told: dict[str, str] = field(default_factory=dict)
    ended: set[int] = field(default_factory=set)
    events: int = 0

    def take(self, content: bytes, path: Path) -> None:
        """Read whole lines."""
        for line in content.splitlines():
            try:
                operation = json.loads(line)
                code, is_ours = operation["op_code"], operation["worker_id"] == WRITER
            except (ValueError, KeyError, TypeError):
                raise RayboError(f"{path}: it contains something else; give another file") from None
            if self.study is None:
                self.study = operation
            elif code == CREATE_TRIAL:
                if is_ours:
                    self.ours.append((self.created, operation["params"]))
                self.created += 1
            elif is_ours and code == END_TRIAL:
                self.ended.add(operation["trial_id"])
            elif is_ours and code in (STUDY_ATTRIBUTE, STUDY_SYSTEM):
                self.told[_named(operation)] = _text(operation)
            elif is_ours:
                self.said.add(_text(operation))
        self.read += len(content)

    def lacking(self, study: Study, path: Path) -> Iterator[str]:
        """The lines that bring the file up to date.

        Raises:
            RayboError: it begins with another study.
        """
        first, *attributes = _of_study(study)
        if self.study is None:
            yield _text(first)
        elif any(self.study.get(key) != value for key, value in {**first, "worker_id": WRITER}.items()):
            raise RayboError(f"{path}: it contains something else; give another file")
        if self.events > len(study.events):
            return
        for operation in attributes:
            if (text := _text(operation)) != self.told.get(_named(operation)):
                yield text
        begun = len(self.ours)
        for event, trial in news(study, self.events):  # without failures that were retried: an end is for good there
            is_new = trial.number >= begun
            place = self.created + trial.number - begun if is_new else self.ours[trial.number][0]
            for operation in _operations(study, event, trial):
                text = _text({**operation, "trial_id": place})
                if operation["op_code"] == CREATE_TRIAL:
                    if is_new:
                        yield _text(operation)
                    elif json.loads(text)["params"] != self.ours[trial.number][1]:
                        raise RayboError(f"{path}: it contains another study of this name; give another file")
                elif place not in self.ended and text not in self.said:
                    yield text
        self.events = len(study.events)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Optuna's own lock of the file, so that nobody else numbers trials meanwhile."""
    lock = path.with_name(f"{path.name}.lock")
    for _ in range(LOCK_TRIES):
        try:
            lock.symlink_to(path)
            break
        except FileExistsError:
            time.sleep(LOCK_SECONDS)
    else:  # of a program that was killed; Optuna too goes on after a while
        lock.unlink(missing_ok=True)
        lock.symlink_to(path)
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)


def _of_study(study: Study) -> list[dict[str, Any]]:
    """The operation that creates the study, and those that describe it."""
    d = study.description
    name = study.path.stem if study.path is not None else d.objective
    told = {key: value for key, value in described(d).items() if key not in ("space", "context")}
    told |= plain(summary_of(study))
    return [
        {
            "op_code": CREATE_STUDY,
            "study_name": name,
            "directions": [MAXIMISE if goal.larger_is_better else MINIMISE for goal in study.goals.each],
        },
        {"op_code": STUDY_SYSTEM, "study_id": 0, "system_attr": {"study:metric_names": list(study.goals.names)}},
        *({"op_code": STUDY_ATTRIBUTE, "study_id": 0, "user_attr": {key: value}} for key, value in told.items()),
    ]


def _named(operation: dict[str, Any]) -> str:
    """Which attribute of the study an operation sets."""
    return next(iter({**operation.get("user_attr", {}), **operation.get("system_attr", {})}), "")


def _text(operation: dict[str, Any]) -> str:
    return json.dumps(plain({**operation, "worker_id": WRITER}), separators=(",", ":"), allow_nan=False) + "\n"


def _operations(study: Study, event: Event, trial: Trial) -> list[dict[str, Any]]:
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
                "user_attrs": {"why": study.explain(trial), "suggest_seconds": trial.suggest_seconds},
            }
        ]
    if event.kind is Kind.RETRIED:
        return [_attribute(trial, "attempt", event.data["attempt"]), _attribute(trial, "reason", event.data["reason"])]
    if event.kind is Kind.RESUMED:
        return [_attribute(trial, "attempt", event.data["attempt"])]
    if event.kind is Kind.PAUSED:
        return [_attribute(trial, "paused_after", event.data.get("step", 0))]
    if event.kind in (Kind.BEGUN, Kind.CONTEXT_OBSERVED):
        return []
    if event.kind is Kind.REPORTED:
        if event.report is None:
            return []
        step, reported = event.report
        return [{"op_code": REPORT, "trial_id": trial.number, "step": step, "intermediate_value": reported}]
    known: dict[str, Any] = {"seconds": trial.seconds, "reason": trial.reason or None}
    if trial.attempt > 1:  # what was said of an attempt before is not left there
        known |= {"attempt": trial.attempt, "reason": trial.reason}
    known |= {key: event.data.get(key) for key in KEPT}
    known["context"] = trial.context
    if trial.state in (State.LOST, State.STOPPED):
        known["state"] = str(trial.state)
    # Optuna shows a pruned trial with its last report, where one value is all that there is
    is_told = event.kind is Kind.PRUNED and trial.step and len(study.goals.names) == 1
    last = [trial.reports[-1][1]] if is_told else None
    ended = {
        "op_code": END_TRIAL,
        "trial_id": trial.number,
        "state": {Kind.TOLD: COMPLETE, Kind.PRUNED: PRUNED}.get(event.kind, FAIL),
        "values": _values(study, event) if isinstance(event, Told) else last,
        "datetime_complete": at,
    }
    attributes = [_attribute(trial, key, value) for key, value in known.items() if value is not None]
    return [*attributes, *(_constraints(study, trial, event) if isinstance(event, Told) else []), ended]


def _values(study: Study, event: Told) -> list[float]:
    values = event.values(study.goals)
    return [values[name] for name in study.goals.names]


def _constraints(study: Study, trial: Trial, event: Told) -> list[dict[str, Any]]:
    """The constraints as Optuna 5 keeps them, by name: none is above 0 where all are kept."""
    goals, broken = study.goals, trial.violations  # perhaps by an earlier report
    margins = zip(goals.constraints, goals.margins(event.values(goals)).tolist(), strict=True)
    told = [{f"constraints:{each.name}": broken.get(each.name, -margin)} for each, margin in margins]
    return [{"op_code": TRIAL_SYSTEM, "trial_id": event.trial, "system_attr": each} for each in told]


def _attribute(trial: Trial, key: str, value: Any) -> dict[str, Any]:
    return {"op_code": TRIAL_ATTRIBUTE, "trial_id": trial.number, "user_attr": {key: value}}


def _distribution(parameter: Parameter) -> str:
    """A parameter as Optuna writes it; it has no steps on logarithmic scales, and choices are plain values."""
    if isinstance(parameter, Categorical):
        return json.dumps({"name": "CategoricalDistribution", "attributes": {"choices": choices(parameter)}})
    name, step = "FloatDistribution", parameter.step
    if isinstance(parameter, Integer):
        name, step = "IntDistribution", 1 if parameter.log else parameter.step
    elif parameter.log:
        step = None
    attributes = {"step": step, "low": parameter.low, "high": parameter.high, "log": parameter.log}
    return json.dumps({"name": name, "attributes": attributes})
