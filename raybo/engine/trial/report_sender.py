"""What a running trial reports, inside its worker: read, sent to the study in batches, and answered by verdicts.

A report costs the job next to nothing: it is only noted, and a thread sends what there is, at most once in 50 ms. The
job waits for an answer only if there is a reason to: at steps where a verdict can be given, after steps so long that
the wait is negligible, and with a checkpoint, whose predecessors are removed once it is committed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeAlias

from raybo.common.arguments import is_number
from raybo.common.errors import ObjectiveError
from raybo.engine.trial.checkpoints import Checkpoints
from raybo.job.reports import TrialPruned, require_saved, require_step
from raybo.record.events import EventData

BATCH_SECONDS = 0.05  # between two batches that decide nothing
LONG_SECONDS = 0.1  # of a step, from which on its verdict is waited for

Read: TypeAlias = Callable[[Any], tuple[float | None, str, dict[str, Any]]]  # value, why there is none, others
DescribeBroken: TypeAlias = Callable[[float, Mapping[str, Any]], str]  # of the value and what else was said
Meet: TypeAlias = Callable[[Mapping[str, Any]], Mapping[str, Any]]  # the metrics without the contexts among them


@dataclass(frozen=True)
class Answer:
    """What the study answers to a batch of reports.

    Attributes:
        action: "go" on; else the trial is to end here: it was pruned, or paused, or is no longer the study's.
        why: in words, where it is to end.
        waits_at: the next step at which it is to wait for the answer; None where none is near.
    """

    action: Literal["go", "prune", "pause", "gone"] = "go"
    why: str = ""
    waits_at: int | None = None


Send: TypeAlias = Callable[[list[EventData]], Answer]  # waits for the answer


def breaks_none(value: float, metrics: Mapping[str, Any]) -> str:
    """That a report breaks no constraint, as there is none."""
    return ""


@dataclass(frozen=True)
class AttemptInfo:
    """What an attempt is told of its run before it begins.

    Attributes:
        steps: how many a whole run has; None where that is not declared.
        has_rule: whether a scheduler gives verdicts.
        waits_at: the first step at which the trial is to wait for one; None where none is near.
        checkpoint: name of the checkpoint to go on from; None where there is none.
        step: the one that it was reported with.
        metrics: what else an earlier attempt said with its last report.
        judged: the metric that the scheduler looks at, where that is not the first.
    """

    steps: int | None = None
    has_rule: bool = False
    waits_at: int | None = None
    checkpoint: str | None = None
    step: int = 0
    metrics: Mapping[str, Any] = field(default_factory=dict)
    judged: str | None = None

    def to_list(self) -> list[Any]:
        """Its attributes in their order, as plain data."""
        return [dict(value) if isinstance(value, Mapping) else value for value in vars(self).values()]


class ReportSender:
    """Hears one attempt of a trial.

    Args:
        course: what is known beforehand.
        send: takes a batch to the study.
        checkpoints: the trial's.
        read: makes of metrics the value, or the reason why there is none, and the other metrics.
        meet: takes the contexts among the metrics.
        broken: says in words which constraints a report breaks that must hold at every step; empty for none.
    Attributes:
        count: how many steps were reported.
        value: of the last one. metrics: what else was said with it.
        is_resumed: whether it went on from a checkpoint, behind which there are an earlier attempt's reports.
        fault: what was wrong with a report, which ends the trial as failed; empty where nothing was.
        answer: the last one.
    """

    def __init__(
        self,
        info: AttemptInfo,
        send: Send,
        checkpoints: Checkpoints,
        read: Read,
        meet: Meet,
        broken: DescribeBroken = breaks_none,
    ) -> None:
        self.info = info
        self.count, self.value = 0, 0.0
        self.metrics = info.metrics
        self.is_resumed = False
        self.fault = ""
        self.answer = Answer(waits_at=info.waits_at)
        self._read, self._send, self._meet, self._broken = read, send, meet, broken
        self._checkpoints = checkpoints
        self._step = 0  # the last one
        self._buffer: list[EventData] = []
        self._buffering = threading.Lock()
        self._sending = threading.Lock()  # one batch at a time, so that they arrive in order
        self._sent = 0.0
        self._is_closed = False
        self._news = threading.Event()
        self._thread: threading.Thread | None = None
        checkpoints.begin()
        self._begun = self._reported = time.perf_counter()

    def report(self, metrics: Any, step: int | None) -> None:
        """Take a step's metrics. Raises TrialPruned where the trial is to end."""
        self._go_on()
        if isinstance(metrics, Mapping) and "step" in metrics:
            metrics = dict(metrics)
            named = metrics.pop("step")
            step = named if step is None else step
        try:
            require_saved()  # a generator may yield within the block
            step = self._step + 1 if step is None else require_step(step)
        except ObjectiveError as error:
            self._reject(str(error))
        if step <= self._step:
            self._reject(f"steps must increase, but it reported step {step} after step {self._step}")
        if self.info.steps is not None and step > self.info.steps:
            self._reject(f"it reported step {step}, and the objective declares steps={self.info.steps}")
        if isinstance(metrics, Mapping):
            metrics = self._meet(metrics)
        value, reason, others = self._read(metrics)
        if value is None:
            self._reject(f"at step {step}, {reason}")
        if (judged := self.info.judged) is not None and not is_number(others.get(judged)):
            self._reject(f"at step {step}, it reported no number {judged!r}, which the scheduler looks at")
        now = time.perf_counter()
        is_long, self._reported = now - self._reported > LONG_SECONDS, now
        self._step, self.count, self.value, self.metrics = step, self.count + 1, value, others
        data: EventData = {"step": step, "value": value, "seconds": round(now - self._begun, 6)}
        if others:
            data["metrics"] = others
        if (saved := self._checkpoints.take()) is not None:
            data["checkpoint"] = saved
        with self._buffering:
            self._buffer.append(data)
        waits_at = self.answer.waits_at
        is_awaited = self.info.has_rule and (is_long or (waits_at is not None and step >= waits_at))
        broken = self._broken(value, others)
        if saved is not None or is_awaited or broken:
            self._flush()
            if saved is not None and self.answer.action != "gone":
                self._checkpoints.committed(saved)
            self._go_on()
            if broken:
                raise TrialPruned(f"at step {step}, {broken}")
        else:
            self._send_later()

    def checkpoint(self) -> Path | None:
        """The directory of the last checkpoint; steps that are not named are counted on from its step."""
        found = self._checkpoints.last()
        if found is not None and self.count == 0:
            self._step, self.is_resumed = self.info.step, True
        return found

    @contextmanager
    def saving(self) -> Iterator[Path]:
        """A directory that becomes the checkpoint of the next report."""
        with self._checkpoints.saving() as directory:
            yield directory

    def follow(self, steps: Generator[Any, None, Any]) -> Any:
        """Take what a generator yields as reports; returns what it returns. Raises TrialPruned where it is to end."""
        try:
            while True:
                try:
                    metrics = next(steps)
                except StopIteration as end:
                    return end.value
                self.report(metrics, None)
        finally:
            steps.close()

    def close(self) -> None:
        """Send what is left, and wait until the study has it."""
        self._is_closed = True
        self._news.set()
        self._flush()
        if self._thread is not None:
            self._thread.join()

    def end(self) -> None:
        """The run is over, by the job's will or by a verdict: remove the checkpoints that are not to be kept."""
        if self.answer.action in ("go", "prune") and not self.fault:
            self._checkpoints.end()

    def _go_on(self) -> None:
        """TrialPruned where the trial is to end; again, where the job has gone on in spite of it."""
        if self.fault or self.answer.action != "go":
            raise TrialPruned(self.fault or self.answer.why)

    def _reject(self, fault: str) -> NoReturn:
        self.fault = fault
        raise TrialPruned(fault)

    def _flush(self) -> None:
        with self._sending:
            with self._buffering:
                batch, self._buffer = self._buffer, []
            if batch and self.answer.action == "go":
                self._sent = time.monotonic()
                self.answer = self._send(batch)

    def _send_later(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._keep_sending, name="raybo-reports", daemon=True)
            self._thread.start()
        self._news.set()

    def _keep_sending(self) -> None:
        while True:
            self._news.wait()
            if self._is_closed:
                return
            self._news.clear()
            time.sleep(max(0.0, self._sent + BATCH_SECONDS - time.monotonic()))
            self._flush()


def answer_of(actor: Any, number: int, attempt: int, batch: list[EventData]) -> Answer:
    """What the study's actor answers to a batch of an attempt's reports."""
    import ray

    get: Any = ray.get
    try:
        answer: Answer = get(actor.reported.remote(number, attempt, batch))
    except ray.exceptions.RayError:
        return Answer("gone", "its study is gone")
    return answer


def offline_sender(read: Read, meet: Meet, broken: DescribeBroken = breaks_none) -> ReportSender:
    """Reports that are read and sent nowhere, of a run from the beginning to the end."""
    return ReportSender(AttemptInfo(), lambda batch: Answer(), Checkpoints(None, 1, None), read, meet, broken)
