"""Optuna's journal file, written without Optuna: `optuna-dashboard FILE` shows the study, also while it runs.

A line is an operation on the file's studies, and trials are numbered in the order of their creation, whoever creates
them. A file begins with a study of ours, and is brought up to date by appending what it lacks: a program that follows
the file just reads on, and what others have written into it (notes, attributes, trials) stays.

The format was read from Optuna 5.0's `optuna/storages/journal/_storage.py`, and is tested against it. Optuna 4 does
not see the constraints, which it keeps elsewhere, and cannot work out durations, as our times have a time zone.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from raybo.common.errors import RayboError
from raybo.common.files import is_stream, write_file
from raybo.integrations.stream import News, StartAgain, Stream, name_of, summary_of
from raybo.integrations.study_json import described, plain
from raybo.integrations.trial_terms import choices
from raybo.record.events import Kind, Told
from raybo.record.states import State
from raybo.space import Categorical, Integer, Parameter
from raybo.study.study import Study

CREATE_STUDY = 0
STUDY_ATTRIBUTE = 2
STUDY_SYSTEM = 3
CREATE_TRIAL = 4
END_TRIAL = 6
REPORT = 7
TRIAL_ATTRIBUTE = 8
TRIAL_SYSTEM = 9
MINIMISE, MAXIMISE = 1, 2  # directions of a study
RUNNING, COMPLETE, PRUNED, FAIL = range(4)  # states of a trial
WRITER = "raybo"  # our name in the file, where each line names its writer
LOCK_SECONDS = 0.1  # between two tries to lock the file
LOCK_TRIES = 300  # as long as Optuna tries, which breaks a lock after 30 seconds
DETAILS = ("host", "metrics", "traceback", "context_note", "rule", "numbers")  # of a trial's end, kept as attributes
UNKNOWN_TIME = "1970-01-01T00:00:00+00:00"  # a trial has to begin at some time

Operation = dict[str, Any]


def optuna_exporter(destination: str) -> Stream:
    """Return an exporter to a journal file; if it holds the beginning of the study already, the rest is appended."""
    return Stream(lambda study: _File(Path(destination)))


class _File:
    """The content of a file, as far as it has been read, and operations that it may lack.

    Attributes:
        size: bytes that have been read.
        study: the operation that created our study; None if the file is empty.
        trials: how many the file has, by anyone.
        ours: of our trials, the numbers in the file and the parameters that they were created with.
        lines: ours about trials.
        attributes: the study's, as we have set them last, as lines by name.
        with_end: numbers in the file of our trials that have ended.
        new: operations on trials, each with the trial's number in our study.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = 0
        self.study: Operation | None = None
        self.trials = 0
        self.ours: list[tuple[int, Any]] = []
        self.lines: set[str] = set()
        self.attributes: dict[str, str] = {}
        self.with_end: set[int] = set()
        self.new: list[tuple[int, Operation]] = []

    def started(self, new: News) -> None:
        study, trial = new.study, new.trial
        kinds = dict(zip(study.space.names, study.space.parameters.values(), strict=True))
        values = study.space.open_values(trial.config)
        self._add(
            new,
            CREATE_TRIAL,
            study_id=0,
            datetime_start=new.event.at or UNKNOWN_TIME,
            state=RUNNING,
            distributions={name: _distribution(kinds[name]) for name, _ in values},
            params={
                name: kind.position(value, name) if isinstance(kind := kinds[name], Categorical) else value
                for name, value in values
            },
            user_attrs={"why": study.explain(trial), "suggest_seconds": trial.suggest_seconds},
        )

    def reported(self, new: News) -> None:
        step, value = new.event.report or (0, 0.0)
        self._add(new, REPORT, step=step, intermediate_value=value)

    def changed(self, new: News) -> None:
        data = new.event.data
        if new.event.kind is Kind.PAUSED:
            self._describe(new, paused_after=data.get("step", 0))
        elif new.event.kind is Kind.RESUMED:
            self._describe(new, attempt=data["attempt"])
        else:
            self._describe(new, attempt=data["attempt"], reason=data["reason"])

    def ended(self, new: News) -> None:
        study, trial, event = new.study, new.trial, new.event
        attributes: dict[str, Any] = {"seconds": trial.seconds, "reason": trial.reason or None}
        if trial.attempt > 1:  # attributes of earlier attempts are overwritten
            attributes |= {"attempt": trial.attempt, "reason": trial.reason}
        attributes |= {key: event.data.get(key) for key in DETAILS}
        attributes["context"] = trial.context
        if trial.state in (State.LOST, State.STOPPED):
            attributes["state"] = str(trial.state)
        self._describe(new, **{key: value for key, value in attributes.items() if value is not None})
        values: list[float] | None = None
        if isinstance(event, Told):
            returned = event.values(study.goals)
            values = [returned[name] for name in study.goals.names]
            margins = study.goals.margins(returned).tolist()
            for constraint, margin in zip(study.goals.constraints, margins, strict=True):
                # Optuna's are above 0 if broken; an earlier report may have broken one that holds at the end
                limit = trial.violations.get(constraint.name, -margin)
                self._add(new, TRIAL_SYSTEM, system_attr={f"constraints:{constraint.name}": limit})
        elif event.kind is Kind.PRUNED and trial.step and len(study.goals.names) == 1:
            values = [trial.reports[-1][1]]  # Optuna shows the last report of a pruned trial
        state = {Kind.TOLD: COMPLETE, Kind.PRUNED: PRUNED}.get(event.kind, FAIL)
        self._add(new, END_TRIAL, state=state, values=values, datetime_complete=event.at or UNKNOWN_TIME)

    def finish(self, study: Study) -> None:
        """Append the lines that the file lacks."""
        if is_stream(self.path):  # it cannot be read
            content = self._missing(study)
            write_file(self.path, content)
            self._read(content)
            return
        try:
            with _locked(self.path), open(self.path, "ab+") as file:
                if file.seek(0, os.SEEK_END) < self.size:
                    raise StartAgain  # it is another file by now
                file.seek(self.size)
                whole, newline, torn = file.read().rpartition(b"\n")
                self._read(whole + newline)
                if torn:  # by a writer that was killed; readers wait for the end of the line
                    if self.study is None and not _line(_of_study(study)[0]).encode().startswith(torn):
                        raise RayboError(f"{self.path}: it contains something else; give another file")
                    file.truncate(self.size)
                content = self._missing(study)
                file.write(content)
                self._read(content)
        except OSError as error:
            raise RayboError(f"{self.path}: it cannot be written ({error.strerror}); give another file") from error

    def _add(self, new: News, code: int, **fields: Any) -> None:
        self.new.append((new.trial.number, {"op_code": code, "trial_id": new.trial.number, **fields}))

    def _describe(self, new: News, **attributes: Any) -> None:
        for key, value in attributes.items():
            self._add(new, TRIAL_ATTRIBUTE, user_attr={key: value})

    def _read(self, content: bytes) -> None:
        """Take in whole lines."""
        for line in content.splitlines():
            try:
                operation = json.loads(line)
                code, is_ours = operation["op_code"], operation["worker_id"] == WRITER
            except (ValueError, KeyError, TypeError):
                raise RayboError(f"{self.path}: it contains something else; give another file") from None
            if self.study is None:
                self.study = operation
            elif code == CREATE_TRIAL:
                if is_ours:
                    self.ours.append((self.trials, operation["params"]))
                self.trials += 1
            elif is_ours and code == END_TRIAL:
                self.with_end.add(operation["trial_id"])
            elif is_ours and code in (STUDY_ATTRIBUTE, STUDY_SYSTEM):
                self.attributes[_attribute(operation)] = _line(operation)
            elif is_ours:
                self.lines.add(_line(operation))
        self.size += len(content)

    def _missing(self, study: Study) -> bytes:
        """Return the lines that bring the file up to date; RayboError if it begins with another study."""
        first, *attributes = _of_study(study)
        lines: list[str] = []
        if self.study is None:
            lines.append(_line(first))
        elif any(self.study.get(key) != value for key, value in {**first, "worker_id": WRITER}.items()):
            raise RayboError(f"{self.path}: it contains something else; give another file")
        lines += [line for each in attributes if (line := _line(each)) != self.attributes.get(_attribute(each))]
        begun = len(self.ours)
        for number, operation in self.new:
            is_new = number >= begun
            place = self.trials + number - begun if is_new else self.ours[number][0]
            if operation["op_code"] == CREATE_TRIAL:
                del operation["trial_id"]
                line = _line(operation)
                if is_new:
                    lines.append(line)
                elif json.loads(line)["params"] != self.ours[number][1]:
                    raise RayboError(f"{self.path}: it contains another study of this name; give another file")
            elif place not in self.with_end and (line := _line({**operation, "trial_id": place})) not in self.lines:
                lines.append(line)  # an end is for good there
        self.new.clear()
        return "".join(lines).encode()


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold Optuna's own lock of the file, so that nobody else numbers trials meanwhile."""
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


def _of_study(study: Study) -> list[Operation]:
    """Return the operation that creates the study, and those that describe it."""
    attributes = {key: value for key, value in described(study.description).items() if key not in ("space", "context")}
    attributes |= plain(summary_of(study))
    directions = [MAXIMISE if goal.larger_is_better else MINIMISE for goal in study.goals.each]
    return [
        {"op_code": CREATE_STUDY, "study_name": name_of(study), "directions": directions},
        {"op_code": STUDY_SYSTEM, "study_id": 0, "system_attr": {"study:metric_names": list(study.goals.names)}},
        *({"op_code": STUDY_ATTRIBUTE, "study_id": 0, "user_attr": {key: attributes[key]}} for key in attributes),
    ]


def _attribute(operation: Operation) -> str:
    """Return the name of the study's attribute that an operation sets."""
    return next(iter({**operation.get("user_attr", {}), **operation.get("system_attr", {})}), "")


def _line(operation: Operation) -> str:
    return json.dumps(plain({**operation, "worker_id": WRITER}), separators=(",", ":"), allow_nan=False) + "\n"


def _distribution(parameter: Parameter) -> str:
    """Return a parameter as Optuna writes it; it has no steps on logarithmic scales, and choices are plain values."""
    if isinstance(parameter, Categorical):
        return json.dumps({"name": "CategoricalDistribution", "attributes": {"choices": choices(parameter)}})
    name, step = "FloatDistribution", parameter.step
    if isinstance(parameter, Integer):
        name, step = "IntDistribution", 1 if parameter.log else parameter.step
    elif parameter.log:
        step = None
    attributes = {"step": step, "low": parameter.low, "high": parameter.high, "log": parameter.log}
    return json.dumps({"name": name, "attributes": attributes})
