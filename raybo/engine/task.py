"""One trial, inside a Ray worker: runs the objective and returns plain data, whatever the objective does.

Nothing that the user's code raises or returns has to survive pickling: only numbers and text leave the worker. What
kills the worker is the study's to notice.
"""

from __future__ import annotations

import contextlib
import copyreg
import inspect
import json
import logging
import math
import socket
import sys
import time
import traceback
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, cast

import numpy as np

from raybo.engine.artifacts import kept_directory
from raybo.engine.checkpoints import Keep
from raybo.engine.connection import logs_directory
from raybo.engine.forks import part_with_forks
from raybo.engine.lifecycle import Occurrence
from raybo.engine.niceness import give_way
from raybo.engine.output import Piece, caught
from raybo.engine.resources import resources_of
from raybo.engine.trial_reports import Broken, Course, Meet, Read, TrialReports, answer_of, unheard
from raybo.error_text import in_words
from raybo.events import Data, context_data
from raybo.goal import Goals
from raybo.loading import directories_of
from raybo.objectives import Objective, reports_to
from raybo.reports import TrialPruned, heard_by
from raybo.running_trial import CurrentTrial, running
from raybo.shared_data import Shared, receive
from raybo.space import Config, Reading, Space, read_context
from raybo.threads import limit_threads

LARGE_BYTES = 10 * 2**20  # of a function with the data that it holds, from which on it is sent as an object
TRACEBACK_CHARACTERS = 4_000
REASON_CHARACTERS = 250
METRICS_KEPT = 50
NAME_CHARACTERS = 200
JSON_CHARACTERS = 10_000  # of a metric that is no scalar; longer ones are left out
NESTED = 20  # levels of it
NOTE_CHARACTERS = 300


class TrialTask:
    """What runs trials: takes a trial's configuration and who listens to it, and returns as `run_trial`.

    Args:
        function: Ray's remote function.
        objects: what the user's function needs of Ray's object store; goes with every trial.
    """

    def __init__(self, function: Any, objects: list[Any]) -> None:
        self._function = function
        self._objects = objects

    def remote(self, config: Config, number: int, attempt: int, seed: int, course: Course) -> Any:
        """Submit a trial; as the method of a remote function."""
        # one argument, as Ray packs each by itself; of plain data, which it does not pickle
        return self._function.remote([config, number, attempt, seed, course.to_list(), self._objects])


@dataclass(frozen=True)
class Parcel:
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
class Home:
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
    listens: bool
    artifacts: str | None = None
    keep: Keep = "last"


def trial_task(objective: Objective, parcel: Parcel, home: Home, fresh_workers: bool = False) -> TrialTask:
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

    def trial(told: list[Any]) -> tuple[Occurrence, Data, list[Piece]]:
        config, number, attempt, seed, course, objects = told
        course = Course(*course)
        give_way()
        part_with_forks()
        send = None
        if home.listens:  # the limit counts from here, not from when the trial was submitted
            actor.started.remote(number, attempt, ray.get_runtime_context().get_node_id())
            send = partial(actor.context_observed.remote, number, attempt)
        rest: list[Piece] = []
        speak = partial(actor.printed.remote, number, attempt)
        with (
            kept_directory(journal, number, attempt, artifacts, course.checkpoint, keep) as (kept, checkpoints),
            caught(logs_directory(ray), (home.name, number, attempt), speak, rest),
            running(CurrentTrial(number, attempt, seed, config, kept)),
        ):
            listen = partial(TrialReports, course, partial(answer_of, actor, number, attempt), checkpoints)
            if tokens:
                references = objects[len(objects) - len(tokens) :]
                receive({t: partial(ray.get, r) for t, r in zip(tokens, references, strict=True)}, named)
            job = unpickled(inline) if inline else _unpickled_from_store(objects[0])
            return *run_trial(job, config, settings, goals, threads, context, send, listen), rest

    calls = {"max_calls": 1} if fresh_workers else {}
    remote = cast(Any, ray).remote(max_retries=0, **calls, **resources_of(objective))(trial)
    return TrialTask(remote, parcel.objects)


def stored(ray: Any, function: bytes, data: Mapping[str, Shared[Any]], named: Mapping[tuple[str, str], str]) -> Parcel:
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
    return Parcel(b"" if is_large else function, objects, list(data), found)


def run_trial(
    function: Callable[..., Any],
    config: Mapping[str, Any],
    settings: Mapping[str, Any],
    wanted: Goals | str,
    threads: int,
    context: Space | None = None,
    send: Callable[[Data], None] | None = None,
    listen: Callable[[Read, Meet, Broken], TrialReports] | None = None,
) -> tuple[Occurrence, Data]:
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
    data: Data = {
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

    reports = (listen or unheard)(read, meet, broken)
    try:
        with limit_threads(threads), reports_to(report), heard_by(reports), contextlib.closing(reports):
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
        if context is not None and isinstance(result, Mapping):
            met |= {name: result[name] for name in context.names if name in result}
            others = {name: other for name, other in others.items() if name not in context.names}
        if left := _left_out(result, {needed[0], *others, *(() if context is None else context.names)}):
            data["metrics_left"] = left
    except TrialPruned as end:
        reports.end()
        told = _read_context(context, met) if met else Data()
        data = {**data, "seconds": _since(begun), **told, "reason": str(end) or "the job gave it up"}
        return Occurrence.BAD_RESULT if reports.fault else Occurrence.LEFT, data
    except BaseException as error:  # noqa: BLE001  # SystemExit too: whatever the objective raises is its result
        told = _read_context(context, met) if met else Data()
        return Occurrence.RAISED, {**data, "seconds": _since(begun), **told, **_described(error)}
    data = {**data, "seconds": _since(begun), **_read_context(context, met)}
    if others:
        data["metrics"] = others
    if value is None:
        return Occurrence.BAD_RESULT, {**data, "reason": reason}
    reports.end()
    return Occurrence.RETURNED, {**data, "value": value} if is_whole else data


def pickled(function: Callable[..., Any], data: Mapping[str, Shared[Any]] | None = None) -> bytes:
    """The user's function for Ray to send, with the memoised functions that it calls, and data as further parameters.

    Those are pickled by name otherwise, which a worker cannot find where the file was loaded by its path. The directory
    of that file goes along, as what lies beside it is imported by name.
    """
    from ray import cloudpickle

    memoised: Any = type(unpickled)
    reduce: Any = lambda f: (_memoised, (f.__wrapped__, f.cache_parameters()))  # noqa: E731
    dumps: Any = cloudpickle.dumps
    copyreg.pickle(memoised, reduce)
    try:
        return cast(
            bytes,
            dumps((_directories_of(function), _logging(), dumps(_WithData(function, data) if data else function))),
        )
    finally:
        copyreg.dispatch_table.pop(memoised, None)


@dataclass(frozen=True)
class _WithData:
    """A function some of whose parameters are shared data."""

    function: Callable[..., Any]
    data: Mapping[str, Shared[Any]]

    def __call__(self, config: Mapping[str, Any], **settings: Any) -> Any:
        return self.function(config, **settings, **{name: each.value for name, each in self.data.items()})


def _directories_of(function: Callable[..., Any]) -> list[str]:
    """Where a worker may find what lies beside the user's file: in its own working directory, else at the same path."""
    module = sys.modules.get(function.__module__)
    if module is None or module.__name__ == "__main__":
        return []
    found = []
    for directory in directories_of(module):
        found += [str(directory.relative_to(Path.cwd()))] if directory.is_relative_to(Path.cwd()) else []
        found.append(str(directory))
    return found


def _logging() -> tuple[int, str | None] | None:
    """How the user has set up logging, which a worker does not do again: level and format; None where that was not."""
    root = logging.getLogger()
    if not root.handlers:
        return None
    return root.level, getattr(root.handlers[0].formatter, "_fmt", None)


def _memoised(function: Callable[..., Any], parameters: Mapping[str, Any]) -> Callable[..., Any]:
    wrapped: Callable[..., Any] = lru_cache(**parameters)(function)
    return wrapped


@lru_cache(maxsize=1)
def unpickled(function: bytes) -> Callable[..., Any]:
    """The user's function from what its own driver sent over Ray; once per worker, so that what it caches stays."""
    from ray import cloudpickle

    loads: Any = cloudpickle.loads
    directories, said, inner = loads(function)
    if said is not None and not logging.getLogger().handlers:
        logging.basicConfig(level=said[0], format=said[1])
    for directory in (str(Path.cwd() / directory) for directory in directories):
        if Path(directory).is_dir() and directory not in sys.path:
            sys.path.append(directory)
    return cast("Callable[..., Any]", loads(inner))


@lru_cache(maxsize=1)
def _unpickled_from_store(reference: Any) -> Callable[..., Any]:
    import ray

    return unpickled.__wrapped__(cast(Any, ray).get(reference))


def read_results(result: Any, needed: Sequence[str]) -> tuple[float | None, str, dict[str, Any]]:
    """As `read_result`, of the first name; the others are among the metrics, and where one is no number there is none.

    Args:
        needed: names of the numbers that the result must hold, at least one.
    """
    value, reason, others = read_result(result, needed[0])
    if value is None or len(needed) == 1:
        return value, reason, others
    if not isinstance(result, Mapping):
        names = ", ".join(map(repr, needed))
        return None, f"it returned a single number; return a dict with {names}", others
    numbers: dict[str, Any] = {}
    for name in needed[1:]:
        number, reason, _ = read_result(result, name)
        if number is None:
            return None, reason, others
        numbers[name] = number
    return value, "", {**numbers, **{name: other for name, other in others.items() if name not in numbers}}


def read_result(result: Any, metric: str) -> tuple[float | None, str, dict[str, Any]]:
    """The value in what an objective returned, or the reason why there is none; and its other metrics."""
    others: dict[str, Any] = {}
    if isinstance(result, Mapping):
        if metric not in result:
            keys = ", ".join(repr(key) for key in list(result)[:10]) or "nothing"
            return None, f"it returned no {metric!r} but {keys}", others
        for key, other in result.items():
            if key != metric and len(others) < METRICS_KEPT:
                with contextlib.suppress(Exception):  # a user's object may raise at anything
                    others[str(key)] = _kept(other)
        result = result[metric]
    elif result is None:
        return None, f"it returned None; return the number, or a dict with {metric!r}", others
    if isinstance(result, np.ndarray) and result.ndim == 0:
        result = result[()]
    if isinstance(result, (bool, np.bool_)) or not isinstance(result, (int, float, np.integer, np.floating)):
        return None, f"its {metric} is not a number but {' '.join(_short(result).split())}", others
    if not math.isfinite(result):
        return None, f"its {metric} is {float(result)}, not a finite number", others
    return float(result), "", others


def _read_context(context: Space | None, met: Mapping[str, Any]) -> Data:
    """What an event holds of the context that a trial reported."""
    if context is None:
        return {}
    try:
        reading = read_context(context, met)
    except Exception as error:  # noqa: BLE001  # a user's object may fail even to be compared or printed
        reading = Reading(note=f"the context cannot be read: {type(error).__name__}")
    if reading.note:
        reading = replace(reading, note=" ".join(reading.note.split())[:NOTE_CHARACTERS])
    return context_data(context, reading)


def _described(error: BaseException) -> Data:
    reason = in_words(error)[:REASON_CHARACTERS]
    with contextlib.suppress(Exception):  # an exception may fail even to print itself
        frames = error.__traceback__
        while frames is not None and frames.tb_frame.f_code.co_filename == __file__:  # the user's job begins below
            frames = frames.tb_next
        lines = traceback.format_exception(type(error), error, frames)
        return {"reason": reason, "traceback": "".join(lines)[-TRACEBACK_CHARACTERS:]}
    return {"reason": reason}


def _since(begun: float) -> float:
    return round(time.perf_counter() - begun, 6)


def _left_out(result: Any, known: set[str]) -> list[str]:
    """What a trial returned that is not kept, by name."""
    names = [str(name)[:NAME_CHARACTERS] for name in result] if isinstance(result, Mapping) else []
    return [name for name in names if name not in known][:METRICS_KEPT]


def _kept(value: Any) -> Any:
    """What is kept of a further metric: plain values, and lists and dicts of them. Raises for others."""
    if _is_plain(value):
        return _plain(value)
    kept = _as_json(value)
    if len(json.dumps(kept)) > JSON_CHARACTERS:
        raise ValueError("too long")
    return kept


def _as_json(value: Any, depth: int = 0) -> Any:
    if isinstance(value, np.ndarray) and value.size <= JSON_CHARACTERS:
        value = value.tolist()
    if _is_plain(value):
        return _plain(value)
    if depth == NESTED or len(value) > JSON_CHARACTERS:
        raise ValueError("too much")
    if isinstance(value, Mapping):
        return {str(_plain(key)): _as_json(item, depth + 1) for key, item in value.items() if _is_plain(key)}
    if isinstance(value, (list, tuple)):
        return [_as_json(item, depth + 1) for item in value]
    raise TypeError("no JSON")


def _is_plain(value: Any) -> bool:
    if isinstance(value, np.timedelta64):  # one of numpy's integers, and no number
        return False
    return value is None or isinstance(value, (bool, int, float, str, np.integer, np.floating, np.bool_))


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return str(value[:1_000])
    if value is None or isinstance(value, (bool, np.bool_)):
        return None if value is None else bool(value)
    if isinstance(value, (int, np.integer)):
        return int(value) if abs(int(value)) < 2**63 else _short(value)
    return float(value) if math.isfinite(value) else repr(float(value))


def _short(value: Any) -> str:
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001  # a user's object may fail even to print itself
        text = f"<{type(value).__name__}>"
    return text if len(text) <= 200 else text[:197] + "..."
