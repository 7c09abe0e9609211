"""One trial, inside a Ray worker: runs the objective and returns plain data, whatever the objective does.

Nothing that the user's code raises or returns has to survive pickling: only numbers and text leave the worker. It is up
to the study to notice that a worker was killed.
"""

from __future__ import annotations

import contextlib
import inspect
import socket
import time
import traceback
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any, cast

from raybo.common.messages import in_words
from raybo.common.threads import limit_threads
from raybo.engine.lifecycle import Occurrence
from raybo.engine.ray import pickling
from raybo.engine.ray.connection import logs_directory
from raybo.engine.ray.priority import lower_priority
from raybo.engine.ray.resources import resources_of
from raybo.engine.trial.artifacts import trial_files
from raybo.engine.trial.captured_output import Chunk, capture_output
from raybo.engine.trial.checkpoints import Keep
from raybo.engine.trial.child_processes import isolate_child_processes
from raybo.engine.trial.report_sender import (
    AttemptInfo,
    DescribeBroken,
    Meet,
    Read,
    ReportSender,
    answer_of,
    offline_sender,
)
from raybo.engine.trial.result import left_out, read_result, read_results
from raybo.job.current_trial import CurrentTrial, running
from raybo.job.objective import Objective, contexts_sent_to
from raybo.job.reports import TrialPruned, reports_sent_to
from raybo.job.shared_data import Shared, receive
from raybo.record.contexts import context_data
from raybo.record.events import EventData
from raybo.record.goals import Goals
from raybo.space import Config, Reading, Space, read_context

LARGE_BYTES = 10 * 2**20  # of a function with the data that it holds, from which on it is sent as an object
TRACEBACK_CHARACTERS = 4_000
REASON_CHARACTERS = 250
NOTE_CHARACTERS = 300
OURS = __file__, pickling.__file__  # what a traceback need not show


class TrialTask:
    """What runs trials: takes a trial's configuration and who listens to it, and returns as `run_trial`.

    Args:
        function: Ray's remote function.
        objects: what the user's function needs of Ray's object store; goes with every trial.
    """

    def __init__(self, function: Any, objects: list[Any]) -> None:
        self._function = function
        self._objects = objects

    def remote(self, config: Config, number: int, attempt: int, seed: int, info: AttemptInfo) -> Any:
        """Submit a trial; as the method of a remote function."""
        # one argument, as Ray packs each by itself; of plain data, which it does not pickle
        return self._function.remote([config, number, attempt, seed, info.to_list(), self._objects])


@dataclass(frozen=True)
class PackedFunction:
    """The user's function as it travels to the workers.

    Attributes:
        function: as `pickled` makes it; empty where that is large, and the first of the objects.
        objects: references to what lies in Ray's object store for as long as these exist.
        tokens: which shared data the others of the objects are, in their order.
        named: module, name and token of those that a worker finds by name.
    """

    function: bytes
    objects: list[Any]
    tokens: list[str]
    named: list[tuple[str, str, str]]


@dataclass(frozen=True)
class StudyHandle:
    """The study that trials belong to.

    Attributes:
        actor: the study's, which hears what trials print.
        name: no other study's on this Ray.
        journal: beside which the trials' directories are.
        listens: whether trials say to the actor that they begin, and which context they have observed.
        artifacts: where the trials' directories are instead; None for beside the journal.
        keep: which checkpoints of trials that have ended are kept.
    """

    actor: Any
    name: str
    journal: Path
    notifies: bool
    artifacts: str | None = None
    keep: Keep = "last"


def trial_task(
    objective: Objective, parcel: PackedFunction, home: StudyHandle, fresh_workers: bool = False
) -> TrialTask:
    """The remote function of a trial.

    Args:
        objective: what is tuned; its own function is not used.
        parcel: its function.
        home: the study.
        fresh_workers: run every trial in a new process.
    """
    import ray

    # what does not change is in a closure, which Ray sends to a worker once
    settings, goals, context = dict(objective.settings), objective.goals, objective.context
    threads = max(1, int(objective.num_cpus))
    inline, tokens, named = parcel.function, parcel.tokens, parcel.named

    actor, journal, artifacts, keep = home.actor, home.journal, home.artifacts, home.keep

    def trial(told: list[Any]) -> tuple[Occurrence, EventData, list[Chunk]]:
        config, number, attempt, seed, info, objects = told
        info = AttemptInfo(*info)
        lower_priority()
        isolate_child_processes()
        send = None
        if home.notifies:  # the limit counts from here, not from when the trial was submitted
            actor.started.remote(number, attempt, ray.get_runtime_context().get_node_id())
            send = partial(actor.context_observed.remote, number, attempt)
        rest: list[Chunk] = []
        speak = partial(actor.printed.remote, number, attempt)
        with (
            trial_files(journal, number, attempt, artifacts, info.checkpoint, keep) as (kept, checkpoints),
            capture_output(logs_directory(ray), (home.name, number, attempt), speak, rest),
            running(CurrentTrial(number, attempt, seed, config, kept)),
        ):
            listen = partial(ReportSender, info, partial(answer_of, actor, number, attempt), checkpoints)
            if tokens:
                references = objects[len(objects) - len(tokens) :]
                receive({t: partial(ray.get, r) for t, r in zip(tokens, references, strict=True)}, named)
            job = pickling.unpickled(inline) if inline else pickling.unpickled_from_store(objects[0])
            return *run_trial(job, config, settings, goals, threads, context, send, listen), rest

    calls = {"max_calls": 1} if fresh_workers else {}
    remote = cast(Any, ray).remote(max_retries=0, **calls, **resources_of(objective))(trial)
    return TrialTask(remote, parcel.objects)


def stored(
    ray: Any, function: bytes, data: Mapping[str, Shared[Any]], named: Mapping[tuple[str, str], str]
) -> PackedFunction:
    """What `pickled` made and the data that it shares, those put into Ray's object store; the function too if large.

    Ray refuses definitions of remote functions from 95 MiB, and keeps smaller ones for good.

    Args:
        function: pickled.
        data: what is shared, by token.
        named: the tokens of those that a worker finds by module and name.
    """
    is_large = len(function) >= LARGE_BYTES
    objects = [ray.put(function)] if is_large else []
    objects += [ray.put(each.value) for each in data.values()]
    found = [(module, name, token) for (module, name), token in named.items()]
    return PackedFunction(b"" if is_large else function, objects, list(data), found)


def run_trial(
    function: Callable[..., Any],
    config: Mapping[str, Any],
    settings: Mapping[str, Any],
    wanted: Goals | str,
    threads: int,
    context: Space | None = None,
    send: Callable[[EventData], None] | None = None,
    listen: Callable[[Read, Meet, DescribeBroken], ReportSender] | None = None,
) -> tuple[Occurrence, EventData]:
    """Run the objective once.

    Args:
        function: the user's function.
        config: the configuration.
        settings: its keyword parameters.
        wanted: the numbers that it must return; a name where that is one value.
        threads: numerical threads that it may use.
        context: the space of the contexts; None where none is declared.
        send: called with an event's data when the objective reports its context before its end.
        listen: makes what hears the steps that it reports, of how these are read; None for what listens to nobody.
    Returns:
        what happened, and the data of the event that records it: without a value, where that is one of its reports.
    """
    data: EventData = {
        "host": socket.gethostname(),
        "started": datetime.now(timezone.utc).isoformat(timespec="milliseconds"),
    }
    met: dict[str, Any] = {}

    def report(values: Mapping[str, Any]) -> None:
        met.update(values)
        told = _read_context(context, met)
        if send is not None and "c" in told:
            send(told)

    needed = (wanted,) if isinstance(wanted, str) else wanted.needed

    def meet(metrics: Mapping[str, Any]) -> Mapping[str, Any]:
        if context is None or not (values := {name: metrics[name] for name in context.names if name in metrics}):
            return metrics
        report(values)
        return {name: metric for name, metric in metrics.items() if name not in values}

    begun = time.perf_counter()

    def read(metrics: Any) -> tuple[float | None, str, dict[str, Any]]:
        if isinstance(metrics, Mapping):  # what is named comes first, as only so many numbers are kept
            metrics = {**{name: metrics[name] for name in needed if name in metrics}, **metrics}
        return read_result(metrics, needed[0])

    def broken(value: float, others: Mapping[str, Any]) -> str:
        return "" if isinstance(wanted, str) else wanted.broken_by({**others, needed[0]: value})

    reports = (listen or offline_sender)(read, meet, broken)
    try:
        with limit_threads(threads), contexts_sent_to(report), reports_sent_to(reports), contextlib.closing(reports):
            result = function(dict(config), **settings)
            if inspect.isgenerator(result):
                result = reports.follow(cast("Generator[Any, None, Any]", result))
        is_whole = not (reports.count or reports.is_resumed) or not (
            result is None or (isinstance(result, Mapping) and needed[0] not in result)
        )
        if not is_whole:  # the value is one of the reports, whatever else it returned
            last = {name: reports.metrics[name] for name in needed[1:] if name in reports.metrics}
            result = {**last, **cast("Mapping[str, Any]", result or {}), needed[0]: reports.value}
        value, reason, others = read_results(result, needed)
        if (
            value is None and not is_whole and not reports.count
        ):  # what stands for an earlier attempt's is no number of it
            others.pop(needed[0], None)
        if context is not None and isinstance(result, Mapping):
            met |= {name: result[name] for name in context.names if name in result}
            others = {name: other for name, other in others.items() if name not in context.names}
        if left := left_out(result, {needed[0], *others, *(() if context is None else context.names)}):
            data["metrics_left"] = left
    except TrialPruned as end:
        reports.end()
        told = _read_context(context, met) if met else {}
        data = {**data, "seconds": _since(begun), **told, "reason": str(end) or "the job gave it up"}
        return Occurrence.BAD_RESULT if reports.fault else Occurrence.LEFT, data
    except BaseException as error:  # noqa: BLE001  # SystemExit too: whatever the objective raises is its result
        told = _read_context(context, met) if met else {}
        return Occurrence.RAISED, {**data, "seconds": _since(begun), **told, **_described(error)}
    data = {**data, "seconds": _since(begun), **_read_context(context, met)}
    if others:
        data["metrics"] = others
    if value is None:
        return Occurrence.BAD_RESULT, {**data, "reason": reason}
    reports.end()
    return Occurrence.RETURNED, {**data, "value": value} if is_whole else data


def _read_context(context: Space | None, met: Mapping[str, Any]) -> EventData:
    """What an event holds of the context that a trial reported."""
    if context is None:
        return {}
    try:
        reading = read_context(context, met)
    except Exception as error:  # noqa: BLE001  # a user's object may fail even to be compared or printed
        reading = Reading(note=f"the context cannot be read: {type(error).__name__}")
    if reading.note:
        reading = replace(reading, note=" ".join(reading.note.split())[:NOTE_CHARACTERS])
    return dict(context_data(context, reading))


def _described(error: BaseException) -> EventData:
    reason = in_words(error)[:REASON_CHARACTERS]
    with contextlib.suppress(Exception):  # an exception may fail even to print itself
        frames = error.__traceback__
        while frames is not None and frames.tb_frame.f_code.co_filename in OURS:  # the user's job begins below
            frames = frames.tb_next
        lines = traceback.format_exception(type(error), error, frames)
        return {"reason": reason, "traceback": "".join(lines)[-TRACEBACK_CHARACTERS:]}
    return {"reason": reason}


def _since(begun: float) -> float:
    return round(time.perf_counter() - begun, 6)
