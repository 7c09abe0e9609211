"""The reports of a running trial, inside its worker: checked, sent to the study in batches, answered by verdicts.

A report costs the job next to nothing: it is put into a buffer, which a thread sends at most once in 50 ms. The job
waits for an answer only at steps at which a verdict can be given, after steps so long that the wait is negligible, and
with a checkpoint, as earlier ones are removed once it is committed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NoReturn, Protocol, TypeAlias

from raybo.common.arguments import is_number
from raybo.common.errors import ObjectiveError
from raybo.common.messages import in_words
from raybo.engine.trial.checkpoints import Checkpoints
from raybo.job.reports import TrialPruned, require_saved, require_step
from raybo.record.events import EventData

BATCH_SECONDS = 0.05  # between two batches on which no verdict is given
LONG_SECONDS = 0.1  # after a step that took as long, the job always waits for the answer

Read: TypeAlias = Callable[[Any], tuple[float | None, str, dict[str, Any]]]  # value, fault, other metrics
DescribeBroken: TypeAlias = Callable[[float, Mapping[str, Any]], str]  # of the value and the other metrics
TakeContext: TypeAlias = Callable[[Mapping[str, Any]], Mapping[str, Any]]  # the metrics without the contexts among them


@dataclass(frozen=True)
class Answer:
    """The study's answer to a batch of reports.

    Attributes:
        action: "go" to continue; else the trial is to end here: it is pruned, paused, or no longer the study's, or it
            fails, as its processes do not report alike or the scheduler raised.
        why: the reason in words if it is to end.
        waits_at: the next step at which it is to wait for the answer; None if none is near.
    """

    action: Literal["go", "prune", "pause", "gone", "fault"] = "go"
    why: str = ""
    waits_at: int | None = None


GONE = Answer("gone", "its study has given it up")
Send: TypeAlias = Callable[[list[EventData]], Answer]  # waits for the answer


class Others(Protocol):
    """The other processes of the trial, which get each verdict at the same step as this one."""

    def gather(self, step: int, name: str) -> tuple[Sequence[int], str]:
        """Wait until all have reported a step with which this process has saved a checkpoint.

        Returns:
            the ranks that have saved a part of it, and why it is none; empty if it is one.
        """
        ...

    def is_due(self, step: int) -> bool:
        """True if all are to meet at this step."""
        ...

    def meet(self, step: int) -> Answer:
        """Wait until all have reported this step, and return the answer to all of them."""
        ...


def breaks_none(value: float, metrics: Mapping[str, Any]) -> str:
    """Return that no constraint is broken, as there is none."""
    return ""


@dataclass(frozen=True)
class AttemptInfo:
    """The facts of a run that an attempt needs before it begins.

    Attributes:
        steps: how many steps a whole run has; None if that is not declared.
        has_rule: whether a scheduler gives verdicts.
        waits_at: the first step at which the trial is to wait for one; None if none is near.
        checkpoint: name of the checkpoint to continue from; None if there is none.
        step: the step that the checkpoint was reported with.
        metrics: other metrics in the last report of an earlier attempt.
        judged: the metric that the scheduler looks at; None for the first.
    """

    steps: int | None = None
    has_rule: bool = False
    waits_at: int | None = None
    checkpoint: str | None = None
    step: int = 0
    metrics: Mapping[str, Any] = field(default_factory=dict)
    judged: str | None = None

    def to_list(self) -> list[Any]:
        """Return its attributes in their order, as plain data."""
        return [dict(value) if isinstance(value, Mapping) else value for value in vars(self).values()]


class ReportSender:
    """Sends the reports of one attempt of a trial to its study.

    Args:
        info: what is known beforehand.
        send: takes a batch to the study.
        checkpoints: the trial's.
        read: reads metrics: returns the value, or the reason why there is none, and the other metrics.
        take_context: takes the contexts from the metrics.
        broken: describes the constraints that a report breaks and that must hold at every step; empty for none.
        others: the other processes of the trial; None if this is the only one.
    Attributes:
        count: how many steps were reported.
        value: the value in the last report. metrics: its other metrics.
        is_resumed: whether it continued from a checkpoint, so that there are reports of an earlier attempt.
        fault: the fault of a report, which ends the trial as failed; empty if there is none.
        answer: the study's last answer.
    """

    def __init__(
        self,
        info: AttemptInfo,
        send: Send,
        checkpoints: Checkpoints,
        read: Read,
        take_context: TakeContext,
        broken: DescribeBroken = breaks_none,
        others: Others | None = None,
    ) -> None:
        self.info = info
        self.count, self.value = 0, 0.0
        self.metrics = info.metrics
        self.is_resumed = False
        self.fault = ""
        self.answer = Answer(waits_at=info.waits_at)
        self._read, self._send, self._take_context, self._broken = read, send, take_context, broken
        self._checkpoints = checkpoints
        self._others = others
        self._agreed = Answer()  # of all processes of the trial
        self._step = 0  # the last one
        self._buffer: list[EventData] = []
        self._reporting = threading.RLock()  # one report at a time, whichever threads make them
        self._buffering = threading.Lock()
        self._sending = threading.Lock()  # one batch at a time, so that they arrive in order
        self._sent = 0.0
        self._is_closed = False
        self._news = threading.Event()
        self._thread: threading.Thread | None = None
        checkpoints.begin()
        self._begun = self._reported = time.perf_counter()

    def report(self, metrics: Any, step: int | None) -> None:
        """Report a step's metrics. Raises TrialPruned if the trial is to end."""
        with self._reporting:
            try:
                data, broken, is_long = self._read_step(metrics, step)
            except Exception as error:  # noqa: BLE001  # a user's mapping may raise at anything
                self._reject(f"a report cannot be read: {in_words(error)}")
            step, saved = data["step"], data.get("checkpoint")
            if self._others is not None and saved is not None:
                self._merge(self._others, step, saved)
            with self._buffering:
                self._buffer.append(data)
        if self._others is not None:
            self._meet(self._others, step, saved)
            return
        waits_at = self.answer.waits_at
        is_awaited = self.info.has_rule and (is_long or (waits_at is not None and step >= waits_at))
        if saved is not None or is_awaited or broken:
            self._flush()
            if saved is not None and self.answer.action != "gone":
                self._checkpoints.committed(saved)
            self._require_go()
            if broken:
                raise TrialPruned(f"at step {step}, {broken}")
        else:
            self._send_later()

    def _read_step(self, metrics: Any, step: int | None) -> tuple[EventData, str, bool]:
        """Return a report's event, the constraints that it breaks, and whether its step took long."""
        self._require_go()
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
            metrics = self._take_context(metrics)
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
        return data, self._broken(value, others), is_long

    def refuse(self, fault: str) -> None:
        """Have the trial fail for a report that was refused before it came here; the first fault counts."""
        self.fault = self.fault or fault

    def _merge(self, others: Others, step: int, saved: str) -> None:
        """Wait for the parts that other processes have saved of a checkpoint, and merge them into it."""
        ranks, fault = others.gather(step, saved)
        if fault := fault or self._checkpoints.merge(saved, ranks):
            self._reject(f"at step {step}, {fault}")

    def _meet(self, others: Others, step: int, saved: str | None) -> None:
        """Send a report, and meet the others if it is time; only there all of them hear that the trial is to end."""
        if saved is None:
            self._send_later()
        else:
            self._flush()
            if self.answer.action != "gone":
                self._checkpoints.committed(saved)
        if others.is_due(step):
            self._flush()
            if self.fault:
                self._reject(self.fault)
            self._agreed = others.meet(step)
            if self._agreed.action == "fault":
                self._reject(self._agreed.why)
            self._require_go()

    def checkpoint(self) -> Path | None:
        """Return the directory of the last checkpoint; steps without a number are counted on from its step."""
        found = self._checkpoints.last()
        if found is not None and self.count == 0:
            self._step, self.is_resumed = self.info.step, True
        return found

    @contextmanager
    def saving(self) -> Iterator[Path]:
        """Yield a directory that becomes the checkpoint of the next report."""
        with self._checkpoints.saving() as directory:
            yield directory

    def follow(self, steps: Generator[Any, None, Any]) -> Any:
        """Report what a generator yields, and return what it returns. Raises TrialPruned if the trial is to end."""
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
        """Remove the checkpoints that are not to be kept of a run that has ended by itself or by a verdict."""
        if self.answer.action in ("go", "prune") and not self.fault:
            self._checkpoints.end()

    def _require_go(self) -> None:
        """Raise TrialPruned if the trial is to end, and again if the job has caught it and continued."""
        answer = self.answer if self._others is None else self._agreed
        if self.fault or answer.action != "go":
            raise TrialPruned(self.fault or answer.why)

    def _reject(self, fault: str) -> NoReturn:
        self.refuse(fault)
        raise TrialPruned(fault)

    def _flush(self) -> None:
        with self._sending:
            with self._buffering:
                batch, self._buffer = self._buffer, []
            if batch and self.answer.action == "go":
                self._sent = time.monotonic()
                self.answer = self._send(batch)
                if self.answer.action == "fault":
                    self.refuse(self.answer.why)

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


MakeSender: TypeAlias = Callable[[Read, TakeContext, DescribeBroken], ReportSender]


def answer_of(actor: Any, number: int, attempt: int, batch: list[EventData]) -> Answer:
    """Send a batch of an attempt's reports to the study's actor, and return its answer."""
    import ray

    get: Any = ray.get
    try:
        answer: Answer = get(actor.reported.remote(number, attempt, batch))
    except ray.exceptions.RayError:
        return Answer("gone", "its study is gone")
    return answer


def offline_sender(read: Read, take_context: TakeContext, broken: DescribeBroken = breaks_none) -> ReportSender:
    """Return a sender that checks the reports of a whole run and sends them nowhere."""
    return ReportSender(AttemptInfo(), lambda batch: Answer(), Checkpoints(None, 1, None), read, take_context, broken)
