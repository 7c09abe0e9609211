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

from raybo.common.errors import MissingExtra, RayboError, install_command
from raybo.integrations.export import Exporter
from raybo.integrations.trial_terms import Names, news, numbers_of, numbers_said, parameters, time_of
from raybo.journal.beside import is_uri
from raybo.record.events import FAILURES, Kind, State
from raybo.record.trial import Trial
from raybo.study.study import Study

REFUSED = re.compile(r"[^-/\w.]")  # in tags
EXACT = 2**53  # whole numbers beyond it are shown as text: a number is a float there
OWN = ("best", "failed", "seconds", "suggest_seconds", "expected", "expected_sd")  # tags that are not a user's
OPEN_RUNS = 100  # files of trials under way that are kept open; another one is begun where more are
OWNER = "raybo-study"  # a file that says of which study a directory is


def tensorboard_exporter(destination: str) -> Exporter:
    """A directory for `tensorboard --logdir`.

    Raises:
        MissingExtra: tensorboardX is not installed.
    """
    try:
        import tensorboardX  # noqa: F401
    except ImportError:
        raise MissingExtra(f"TensorBoard's files need tensorboardX: {install_command('tensorboard')}") from None
    if not is_uri(destination):
        Path(destination).mkdir(parents=True, exist_ok=True)
    runs: _Runs | None = None

    def export(study: Study) -> None:
        nonlocal runs
        if not study.events:  # when it began, by which it is known, is yet to be said
            return
        if runs is None or runs.must_begin_again(study):
            _own(destination, study)
            runs = _Runs(destination)
        try:
            runs.add(study)
        except BaseException:  # what has been written of it is not known: all of it follows once more
            runs = None
            raise

    return export


class _Runs:
    """The runs of one study in a directory; what an earlier export left of them is taken back, as all of it follows."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.main = _Run(directory, is_anew=True)
        self.open: dict[int, _Run] = {}  # of trials, the last used last
        self.begun: set[int] = set()
        self.ended: set[int] = set()
        self.failed = 0
        self.names = Names(_allowed, OWN)
        self.best: float | None = None
        self.told: dict[str, str] = {}  # texts of the study, by name
        self.seen = 0

    def must_begin_again(self, study: Study) -> bool:
        """Whether a trial goes on whose end has been written: files are only added to."""
        new = study.events[self.seen :]
        return any(event.kind is Kind.RETRIED and event.trial in self.ended for event in new)

    def add(self, study: Study) -> None:
        """What has happened since the last time."""
        for name in study.goals.needed:
            self.names[name]  # they come first
        for event, trial in news(study, self.seen):
            at = time_of(event)
            if event.report is not None:
                for name, number in numbers_said(study, event).items():
                    self._run(trial).scalar(self.names[name], number, event.report[0], at)
            elif event.is_end:
                self._end(study, trial, at)
        self.seen = len(study.events)
        self._summarise(study)
        for run in (self.main, *self.open.values()):
            run.flush()

    def _run(self, trial: Trial) -> _Run:
        """The run of a trial, open to be written."""
        run = self.open.pop(trial.number, None)
        if run is None:
            is_anew = trial.number not in self.begun
            run = _Run(os.path.join(self.directory, f"trial-{trial.number}"), is_anew=is_anew)
            self.begun.add(trial.number)
        self.open[trial.number] = run
        if len(self.open) > OPEN_RUNS:
            self.open.pop(next(iter(self.open))).close()
        return run

    def _end(self, study: Study, trial: Trial, at: float | None) -> None:
        numbers = numbers_of(study, trial)
        self.ended.add(trial.number)
        if trial.state in FAILURES:
            self.failed += 1
        if trial.feasible and trial.value is not None and study.goals.k == 1:
            self.best = trial.value if self.best is None else study.goal.best_of([self.best, trial.value])
        own = {"seconds": trial.seconds, "suggest_seconds": trial.suggest_seconds}
        own |= {"best": self.best, "failed": float(self.failed)}
        wanted = {} if trial.value is None else {name: numbers[name] for name in study.goals.needed}
        for name, value in {**own, **wanted}.items():  # the user's names win
            if value is not None:
                self.main.scalar(self.names[name], value, trial.number, at)
        values = parameters(study.space, trial.config)
        if study.context is not None and trial.context is not None:
            values += parameters(study.context, trial.context)
        run = self._run(trial)
        metrics = {f"hparam/{self.names[name]}": number for name, number in numbers.items()}
        run.configuration(values, metrics, trial.number, at, has_finished=trial.state is State.FINISHED)
        self.open.pop(trial.number).close()

    def _summarise(self, study: Study) -> None:
        """Its rules and how it ended, as texts; once it has ended, what a model expects of its trials, as scalars."""
        where = "; ".join(rule.text for rule in study.space.rules)
        texts = {"ended": study.ended, "where": where}
        if texts["ended"] and texts["ended"] != self.told.get("ended"):
            for number, (mean, sd) in (study.expectations or {}).items():
                self.main.scalar("expected", mean, number)
                self.main.scalar("expected_sd", sd, number)
        for name, text in texts.items():
            if text != self.told.get(name, ""):
                self.main.text(f"study/{name}", text, len(study.trials))
                self.told[name] = text


class _Run:
    """An event file of a run, written without tensorboardX's threads, a pair of which per trial would cost the most."""

    def __init__(self, directory: str, *, is_anew: bool) -> None:
        from tensorboardX.event_file_writer import EventsWriter
        from tensorboardX.proto.event_pb2 import SessionLog
        from tensorboardX.record_writer import directory_check

        directory_check(directory)
        # files are read in the order of their names, which otherwise differ by seconds only
        self._file = EventsWriter(os.path.join(directory, "events"), f".{time.time_ns()}")
        self.close = weakref.finalize(self, self._file.close)
        if is_anew:
            self._write(0, None, session_log=SessionLog(status=SessionLog.START))

    def scalar(self, name: str, value: float, step: int, at: float | None = None) -> None:
        """A number at a step."""
        from tensorboardX.summary import scalar

        self._write(step, at, summary=scalar(name, value))

    def text(self, name: str, text: str, step: int) -> None:
        """A text at a step."""
        from tensorboardX.summary import text as summary

        self._write(step, None, summary=summary(name, text))

    def configuration(
        self,
        values: list[tuple[str, Any]],
        metrics: dict[str, float],
        step: int,
        at: float | None,
        *,
        has_finished: bool,
    ) -> None:
        """A configuration, with the numbers that came of it, for HPARAMS."""
        from tensorboardX.summary import hparams

        about, begin, end = hparams({name: _shown(value) for name, value in values}, metrics)
        for summary in (about, begin, *([end] if has_finished else [])):  # the end says that it was a success
            self._write(0, at, summary=summary)
        for name, value in metrics.items():
            self.scalar(name, value, step, at)

    def flush(self) -> None:
        """See to it that it can be read."""
        self._file.flush()

    def _write(self, step: int, at: float | None, **what: Any) -> None:
        from tensorboardX.proto.event_pb2 import Event as Written

        self._file.write_event(Written(wall_time=time.time() if at is None else at, step=step, **what))


def _own(destination: str, study: Study) -> None:
    """RayboError where the directory is another study's; else it is this one's from now on."""
    if is_uri(destination) or not study.events:
        return
    d = study.description
    mine = f"{d.objective}, {d.method}, seed {d.seed}, begun {study.events[0].at}\n"
    owner = Path(destination, OWNER)
    try:
        if owner.is_file() and owner.read_text(encoding="utf-8") != mine:
            raise RayboError(f"{destination}: it contains another study; give another directory")
        owner.write_text(mine, encoding="utf-8")
    except OSError as error:
        raise RayboError(f"{destination}: it cannot be written ({error.strerror}); give another directory") from error


def _shown(value: Any) -> bool | float | str:
    """A parameter's value as HPARAMS has it: what is not exact there as a number is text."""
    if isinstance(value, (bool, float, str)):
        return value
    return value if isinstance(value, int) and abs(value) <= EXACT else repr(value)


def _allowed(name: str) -> str:
    return REFUSED.sub("_", name).lstrip("/") or "_"
