"""One trial, inside a Ray worker: runs the objective and returns plain data, whatever the objective does.

Nothing that the user's code raises or returns has to survive pickling: only numbers and text leave the worker. The
study itself notices that a worker was killed.
"""

from __future__ import annotations

import contextlib
import inspect
import socket
import sysconfig
import time
import traceback
from collections.abc import Callable, Generator, Mapping, Sequence
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
from raybo.engine.ray.draining import is_any_draining
from raybo.engine.ray.placement import in_bundle
from raybo.engine.ray.priority import lower_priority
from raybo.engine.ray.resources import resources_of
from raybo.engine.ray.signals import end_on_sigterm
from raybo.engine.run_options import Keep
from raybo.engine.trial import rank
from raybo.engine.trial.artifacts import trial_files
from raybo.engine.trial.captured_output import Chunk, capture_output
from raybo.engine.trial.child_processes import isolate_child_processes
from raybo.engine.trial.rank import Gathering, alone, output_to, seated, sender_of, without_result
from raybo.engine.trial.report_sender import GONE, AttemptInfo, MakeSender, ReportSender, answer_of, offline_sender
from raybo.engine.trial.result import left_out, read_result, read_results
from raybo.engine.trial.shortages import NO_MEMORY, REASON_CHARACTERS, lacked_memory, lacked_room
from raybo.job.cheap_version import with_cheap_versions
from raybo.job.current_trial import CurrentTrial, running
from raybo.job.objective import Objective, contexts_sent_to
from raybo.job.reports import ProcessLost, TrialPruned, reports_sent_to
from raybo.job.shared_data import Shared, receive
from raybo.record.contexts import context_data
from raybo.record.events import EventData
from raybo.record.goals import Goals
from raybo.space import Config, Reading, Space, read_context

LARGE_BYTES = 10 * 2**20  # a pickled function of this size or more is sent as an object
TRACEBACK_CHARACTERS = 4_000
NOTE_CHARACTERS = 300
TERSE = (LookupError, AssertionError)  # errors whose messages say little without the line that raised them
LIBRARIES = tuple(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib"))
OURS = __file__, pickling.__file__, rank.__file__  # a traceback leaves out the lines of these files


class TrialTask:
    """Ray's remote function that runs trials: it returns what `run_trial` returns, and the output that was not sent.

    Args:
        function: Ray's remote function.
        objects: references to what the user's function needs of Ray's object store; they go with every trial.
    """

    def __init__(self, function: Any, objects: list[Any]) -> None:
        self._function = function
        self._objects = objects

    def remote(self, config: Config, number: int, attempt: int, seed: int, info: AttemptInfo) -> Any:
        """Submit a trial, as a remote function's method of this name does."""
        # one argument, as Ray packs each separately; plain data, as it does not pickle that
        return self._function.remote([config, number, attempt, seed, info.to_list(), self._objects, None])

    def remote_in(
        self, group: Any, index: int, config: Config, number: int, attempt: int, seed: int, info: AttemptInfo
    ) -> Any:
        """Submit one process of a trial that has several, into its bundle of a placement group."""
        task = self._function.options(scheduling_strategy=in_bundle(group, index))
        return task.remote([config, number, attempt, seed, info.to_list(), self._objects, index])


@dataclass(frozen=True)
class PackedFunction:
    """The user's function as it travels to the workers.

    Attributes:
        function: pickled; empty if it is large, and then the first of the objects.
        objects: references to objects in Ray's object store, which live as long as these.
        tokens: of the shared data that the other objects are, in their order.
        named: module, name and token of the shared data that a worker finds by name.
    """

    function: bytes
    objects: list[Any]
    tokens: list[str]
    named: list[tuple[str, str, str]]


@dataclass(frozen=True)
class StudyHandle:
    """The study that trials belong to, as they see it.

    Attributes:
        actor: the study's, which receives what trials print.
        name: unique on this Ray.
        journal: the trials' directories are beside it.
        notifies: whether trials send the actor their begin, and the context that they have observed.
        artifacts: the place of the trials' directories instead; None for beside the journal.
        keep: which checkpoints of trials that have ended are kept.
        cost: name of the number that a trial returns as its cost; None if it is its seconds.
        is_kept: whether the trials' directories are kept when the study has ended.
    """

    actor: Any
    name: str
    journal: Path
    notifies: bool
    artifacts: str | None = None
    keep: Keep = "last"
    cost: str | None = None
    is_kept: bool = True


def trial_task(
    objective: Objective, packed: PackedFunction, study: StudyHandle, fresh_workers: bool = False
) -> TrialTask:
    """Return the remote function of a study's trials.

    Args:
        objective: what is tuned; its own function is not used.
        packed: its function.
        study: the one that they belong to.
        fresh_workers: run every trial in a new process.
    """
    import ray

    # what does not change is in a closure, which Ray sends to a worker once
    settings, goals, context = dict(objective.settings), objective.goals, objective.context
    fidelities = objective.fidelity
    is_gang, nested = objective.is_gang, objective.processes if objective.nested else None
    threads = max(1, int(objective.num_cpus))
    inline, tokens, named = packed.function, packed.tokens, packed.named

    actor, journal, artifacts, keep, cost = study.actor, study.journal, study.artifacts, study.keep, study.cost

    def trial(arguments: list[Any]) -> tuple[Occurrence, EventData, list[Chunk]]:
        config, number, attempt, seed, info, objects, index = arguments  # index: of several processes
        info = AttemptInfo(*info)
        lower_priority()
        end_on_sigterm()  # again for each trial: the one before may have set a handler of its own
        isolate_child_processes()
        send_context = None
        if study.notifies and not index:
            if index is None:  # the limit counts from here, not from when the trial was submitted
                here: Any = ray.get_runtime_context()
                actor.started.remote(number, attempt, here.get_node_id(), here.get_worker_id())
            send_context = partial(actor.context_observed.remote, number, attempt)
        rest: list[Chunk] = []
        send_output = partial(actor.printed.remote, number, attempt)
        files = trial_files(journal, number, attempt, artifacts, info.checkpoint, keep, index or 0)
        gathering = None if index is None else Gathering(actor, number, attempt, index)
        with contextlib.ExitStack() as held:
            if not index:  # first, as it hears too what becomes of the trial's files
                captured = capture_output(logs_directory(ray), (study.name, number, attempt), send_output, rest)
                held.enter_context(captured)
            directory, checkpoints = held.enter_context(files)
            if index:
                held.enter_context(output_to(directory / f"output-{index}.txt" if study.is_kept else None))
            node = ray.get_runtime_context().get_node_id()
            current = CurrentTrial(
                number, attempt, seed, config, directory, _asks_leaving=partial(is_any_draining, (node,))
            )
            send = partial(answer_of, actor, number, attempt)
            make_sender: MakeSender = partial(ReportSender, info, send, checkpoints)
            if gathering is None and is_gang:
                held.enter_context(alone())
            elif gathering is not None:
                seat = held.enter_context(seated(gathering, index, info, checkpoints))
                if seat is None:
                    return Occurrence.STOPPED, {"reason": GONE.why}, rest
                current = replace(current, **seat.place, _asks_leaving=partial(is_any_draining, seat.nodes))
                make_sender = sender_of(gathering, seat, info, send, checkpoints)
            elif nested is not None:
                current = replace(current, world_size=cast(int, nested), _is_nested=True)
            held.enter_context(running(current))
            if tokens:
                references = objects[len(objects) - len(tokens) :]
                receive({t: partial(ray.get, r) for t, r in zip(tokens, references, strict=True)}, named)
            job = pickling.unpickled(inline) if inline else pickling.unpickled_from_store(objects[0])
            job = with_cheap_versions(job, fidelities, goals.names[0])
            if index:
                job = without_result(job, goals.needed)
            occurrence, data = run_trial(
                job, config, settings, goals, threads, context, send_context, make_sender, cost=cost
            )
            if gathering is not None:  # before it cleans up, which may wait for the others
                gathering.end(occurrence, data)
            return occurrence, data, rest

    # what its process owns, such as a trainer, ends with it
    calls = {"max_calls": 1} if fresh_workers or objective.nested else {}
    remote = cast(Any, ray).remote(max_retries=0, **calls, **resources_of(objective))(trial)
    return TrialTask(remote, packed.objects)


def stored(
    ray: Any, function: bytes, data: Mapping[str, Shared[Any]], named: Mapping[tuple[str, str], str]
) -> PackedFunction:
    """Return a pickled function ready to travel: its shared data, and itself if large, are in Ray's object store.

    Ray refuses definitions of remote functions from 95 MiB on, and never removes smaller ones.

    Args:
        function: pickled.
        data: shared data by token.
        named: tokens of the data that a worker finds, by module and name.
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
    send_context: Callable[[EventData], None] | None = None,
    make_sender: MakeSender | None = None,
    passing: tuple[type[BaseException], ...] = (),
    cost: str | None = None,
) -> tuple[Occurrence, EventData]:
    """Run the objective once.

    Args:
        function: the user's function.
        config: the configuration.
        settings: its keyword parameters.
        wanted: the goals, whose numbers it must return; a name for a single value.
        threads: numerical threads that it may use.
        context: the space of the contexts; None if none is declared.
        send_context: called with an event's data when the objective reports its context before its end.
        make_sender: makes the sender of its reports, given how they are read; None to send them nowhere.
        passing: what is raised on, because it comes from outside the objective.
        cost: name of the number that it returns as its cost, if it does.
    Returns:
        what happened, and the data of the event that records it; without a value if that is one of its reports.
    """
    data: EventData = {
        "host": socket.gethostname(),
        "started": datetime.now(timezone.utc).isoformat(timespec="milliseconds"),
    }
    contexts: dict[str, Any] = {}

    def report(values: Mapping[str, Any]) -> None:
        contexts.update(values)
        observed = _read_context(context, contexts)
        if send_context is not None and "c" in observed:
            send_context(observed)

    needed = (wanted,) if isinstance(wanted, str) else wanted.needed
    costs = () if cost is None else (cost,)

    def take_context(metrics: Mapping[str, Any]) -> Mapping[str, Any]:
        if context is None or not (values := {name: metrics[name] for name in context.names if name in metrics}):
            return metrics
        report(values)
        return {name: metric for name, metric in metrics.items() if name not in values}

    begun = time.perf_counter()

    def read(metrics: Any) -> tuple[float | None, str, dict[str, Any]]:
        return read_result(_with_first(metrics, (*needed, *costs)), needed[0])

    def broken(value: float, others: Mapping[str, Any]) -> str:
        return "" if isinstance(wanted, str) else wanted.broken_by({**others, needed[0]: value})

    reports = (make_sender or offline_sender)(read, take_context, broken)
    try:
        with limit_threads(threads), contexts_sent_to(report), reports_sent_to(reports), contextlib.closing(reports):
            result = function(dict(config), **settings)
            if inspect.isgenerator(result):
                result = reports.follow(cast("Generator[Any, None, Any]", result))
        if reports.fault:  # the job has swallowed the error, or a thread of it has died of it
            raise TrialPruned(reports.fault)
        is_whole = not (reports.count or reports.is_resumed) or not (
            result is None or (isinstance(result, Mapping) and needed[0] not in result)
        )
        if not is_whole:  # the value is one of the reports, whatever else it returned
            last = {name: reports.metrics[name] for name in needed[1:] if name in reports.metrics}
            result = {**last, **cast("Mapping[str, Any]", result or {}), needed[0]: reports.value}
        value, reason, others = read_results(_with_first(result, costs), needed)
        if value is None and not is_whole and not reports.count:  # the number of an earlier attempt is none of its own
            others.pop(needed[0], None)
        if context is not None and isinstance(result, Mapping):
            contexts |= {name: result[name] for name in context.names if name in result}
            others = {name: other for name, other in others.items() if name not in context.names}
        if left := left_out(result, {needed[0], *others, *(() if context is None else context.names)}):
            data["metrics_left"] = left
    except TrialPruned as end:
        reports.end()
        observed = _read_context(context, contexts) if contexts else EventData()
        data = {**data, "seconds": _since(begun), **observed, "reason": str(end) or "the job gave it up"}
        return Occurrence.BAD_RESULT if reports.fault else Occurrence.LEFT, data
    except passing:
        raise
    except ProcessLost as lost:
        return Occurrence.WORKER_LOST, {"reason": str(lost)}
    except BaseException as error:  # noqa: BLE001  # SystemExit too: whatever the objective raises is its result
        if (full := lacked_room(error)) is not None:
            return Occurrence.WORKER_LOST, {"reason": full}
        observed = _read_context(context, contexts) if contexts else EventData()
        described = {**data, "seconds": _since(begun), **observed, **_described(error)}
        if lacked_memory(error):
            return Occurrence.OUT_OF_MEMORY, {**described, "reason": f"{NO_MEMORY}: {described['reason']}"}
        return Occurrence.RAISED, described
    data = {**data, "seconds": _since(begun), **_read_context(context, contexts)}
    if others:
        data["metrics"] = others
    if value is None:
        return Occurrence.BAD_RESULT, {**data, "reason": reason}
    reports.end()
    return Occurrence.RETURNED, {**data, "value": value} if is_whole else data


def _with_first(result: Any, names: Sequence[str]) -> Any:
    """Return a result whose numbers of these names come first, as only 50 are kept; other results stay as they are."""
    if not isinstance(result, Mapping):
        return result
    return {**{name: result[name] for name in names if name in result}, **result}


def _read_context(context: Space | None, values: Mapping[str, Any]) -> EventData:
    """Return the event fields of the context that a trial reported."""
    if context is None:
        return {}
    try:
        reading = read_context(context, values)
    except Exception as error:  # noqa: BLE001  # a user's object may fail even to be compared or printed
        reading = Reading(note=f"the context cannot be read: {type(error).__name__}")
    if reading.note:
        reading = replace(reading, note=" ".join(reading.note.split())[:NOTE_CHARACTERS])
    return dict(context_data(context, reading))


def _described(error: BaseException) -> EventData:
    reason = in_words(error)
    if isinstance(error, TERSE):
        reason += _line_of(error)
    reason = reason[:REASON_CHARACTERS]
    with contextlib.suppress(Exception):  # an exception may fail even to print itself
        frames = error.__traceback__
        while frames is not None and frames.tb_frame.f_code.co_filename in OURS:  # the user's job begins below
            frames = frames.tb_next
        lines = traceback.format_exception(type(error), error, frames)
        return {"reason": reason, "traceback": "".join(lines)[-TRACEBACK_CHARACTERS:]}
    return {"reason": reason}


def _line_of(error: BaseException) -> str:
    """Return the innermost line of the user's own code in an error's traceback, in parentheses; empty if unknown."""
    with contextlib.suppress(Exception):  # whatever becomes of a traceback must not hide the error
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename not in OURS]
        own = [frame for frame in frames if not frame.filename.startswith(LIBRARIES)]
        at = (own or frames)[-1]
        return f" ({Path(at.filename).name}:{at.lineno}{f': {at.line}' if at.line else ''})"
    return ""


def _since(begun: float) -> float:
    return round(time.perf_counter() - begun, 6)
