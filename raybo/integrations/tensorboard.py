"""A study in TensorBoard: the trials' results as scalars over the trials, and every configuration in HPARAMS.

A trial has a run of its own, `trial-NUMBER`: its curves over steps as they come in, and once it has ended, its
configuration with its final numbers. How the study ended, and its rules, are under TEXT. What a model expects of each
trial is written once the study has ended.

The event files are written by tensorboardX, which needs no deep-learning framework. It stores numbers in 32 bits.
"""

from __future__ import annotations

import os
import re
import time
import weakref
from pathlib import Path
from typing import Any

from tensorboardX import summary
from tensorboardX.event_file_writer import EventsWriter
from tensorboardX.proto.event_pb2 import Event, SessionLog
from tensorboardX.record_writer import directory_check

from raybo.common.errors import RayboError
from raybo.integrations.stream import News, StartAgain, Stream
from raybo.integrations.trial_terms import Names, parameters
from raybo.journal.side_files import is_uri
from raybo.record.events import Kind
from raybo.record.states import FAILURES, State
from raybo.study.study import Study

REFUSED = re.compile(r"[^-/\w.]")  # in tags
EXACT = 2**53  # whole numbers beyond it are shown as text: a number is a float there
OWN = ("best", "failed", "seconds", "suggest_seconds", "expected", "expected_sd")  # tags that are not a user's
OPEN_RUNS = 100  # files of running trials that are kept open at most; a closed one is continued by another file
OWNER = "raybo-study"  # a file that names the study that a directory holds


def tensorboard_exporter(destination: str) -> Stream:
    """Return an exporter to a directory for `tensorboard --logdir`."""
    if not is_uri(destination):
        Path(destination).mkdir(parents=True, exist_ok=True)
    names = Names(lambda name: REFUSED.sub("_", name).lstrip("/") or "_", OWN)

    def open_runs(study: Study) -> _Runs | None:
        if not study.events:
            return None
        _claim(destination, study)
        return _Runs(destination, names)

    return Stream(open_runs, names)


class _Runs:
    """The runs of one study in a directory; everything is written anew, and replaces what an earlier writer left."""

    def __init__(self, directory: str, names: Names) -> None:
        self.directory = directory
        self.names = names
        self.main = _Run(directory, is_first=True)
        self.open: dict[int, _Run] = {}  # by trial, the last used last
        self.begun: set[int] = set()
        self.with_end: set[int] = set()
        self.failures = 0
        self.best: float | None = None
        self.texts: dict[str, str] = {}  # of the study, by name

    def started(self, new: News) -> None:
        """Wait: a trial is seen by its first report or its end."""

    def reported(self, new: News) -> None:
        run, (step, _) = self._run(new.trial.number), new.event.report or (0, 0.0)
        for name, number in new.numbers.items():
            run.scalar(self.names[name], number, step, new.at)

    def changed(self, new: News) -> None:
        if new.event.kind is Kind.RETRIED and new.trial.number in self.with_end:
            raise StartAgain  # files are only appended to

    def ended(self, new: News) -> None:
        study, trial, at, numbers = new.study, new.trial, new.at, new.numbers
        self.with_end.add(trial.number)
        self.failures += trial.state in FAILURES
        if trial.feasible and trial.value is not None and study.goals.k == 1:
            self.best = trial.value if self.best is None else study.goal.best_of([self.best, trial.value])
        own = {"seconds": trial.seconds, "suggest_seconds": trial.suggest_seconds}
        own |= {"best": self.best, "failed": float(self.failures)}
        values = {} if trial.value is None else {name: numbers[name] for name in study.goals.needed}
        for name, value in {**own, **values}.items():  # the user's names win
            if value is not None:
                self.main.scalar(self.names[name], value, trial.number, at)
        config = parameters(study.space, trial.config)
        if study.context is not None and trial.context is not None:
            config += parameters(study.context, trial.context)
        metrics = {f"hparam/{self.names[name]}": number for name, number in numbers.items()}
        is_success = trial.state is State.FINISHED
        self._run(trial.number).configuration(config, metrics, trial.number, at, is_success=is_success)
        self.open.pop(trial.number).close()

    def finish(self, study: Study) -> None:
        """Write its rules and how it ended; if it has ended, what a model expects of its trials."""
        texts = {"ended": study.ended, "where": "; ".join(rule.text for rule in study.space.rules)}
        if texts["ended"] and texts["ended"] != self.texts.get("ended"):
            for number, (mean, sd) in (study.expectations or {}).items():
                self.main.scalar("expected", mean, number)
                self.main.scalar("expected_sd", sd, number)
        for name, text in texts.items():
            if text != self.texts.get(name, ""):
                self.main.text(f"study/{name}", text, len(study.trials))
                self.texts[name] = text
        for run in (self.main, *self.open.values()):
            run.flush()

    def _run(self, number: int) -> _Run:
        """Return the open run of a trial."""
        run = self.open.pop(number, None)
        if run is None:
            run = _Run(os.path.join(self.directory, f"trial-{number}"), is_first=number not in self.begun)
            self.begun.add(number)
        self.open[number] = run
        if len(self.open) > OPEN_RUNS:
            self.open.pop(next(iter(self.open))).close()
        return run


class _Run:
    """An event file of a run, written without tensorboardX's threads, a pair of which per trial would cost the most."""

    def __init__(self, directory: str, *, is_first: bool) -> None:
        directory_check(directory)
        # files are read in the order of their names, which otherwise differ by seconds only
        self._file = EventsWriter(os.path.join(directory, "events"), f".{time.time_ns()}")
        self.close = weakref.finalize(self, self._file.close)
        if is_first:
            self._write(0, None, session_log=SessionLog(status=SessionLog.START))

    def scalar(self, name: str, value: float, step: int, at: float | None = None) -> None:
        self._write(step, at, summary=summary.scalar(name, value))

    def text(self, name: str, text: str, step: int) -> None:
        self._write(step, None, summary=summary.text(name, text))

    def configuration(
        self, config: list[tuple[str, Any]], metrics: dict[str, float], step: int, at: float | None, *, is_success: bool
    ) -> None:
        """Write a configuration and the numbers that came of it, for HPARAMS."""
        about, begin, end = summary.hparams({name: _shown(value) for name, value in config}, metrics)
        for part in (about, begin, *([end] if is_success else [])):
            self._write(0, at, summary=part)
        for name, value in metrics.items():
            self.scalar(name, value, step, at)

    def flush(self) -> None:
        self._file.flush()

    def _write(self, step: int, at: float | None, **content: Any) -> None:
        self._file.write_event(Event(wall_time=time.time() if at is None else at, step=step, **content))


def _claim(destination: str, study: Study) -> None:
    """Make the directory this study's; RayboError if it is another's."""
    if is_uri(destination):
        return
    d = study.description
    identity = f"{d.objective}, {d.method}, seed {d.seed}, begun {study.events[0].at}\n"
    owner = Path(destination, OWNER)
    try:
        if owner.is_file() and owner.read_text(encoding="utf-8") != identity:
            raise RayboError(f"{destination}: it contains another study; give another directory")
        owner.write_text(identity, encoding="utf-8")
    except OSError as error:
        raise RayboError(f"{destination}: it cannot be written ({error.strerror}); give another directory") from error


def _shown(value: Any) -> bool | float | str:
    """Return a parameter's value for HPARAMS; what is not exact there as a number is text."""
    if isinstance(value, (bool, float, str)):
        return value
    return value if isinstance(value, int) and abs(value) <= EXACT else repr(value)
