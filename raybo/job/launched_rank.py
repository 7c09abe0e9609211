"""A rank that a launcher has started inside a trial: its trial, and the line by which it reports to it.

The trial's process (`raybo.integrations.launch`) listens on a socket, and says where in an environment variable. Each
message is one line of JSON, and so is its answer.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import threading
import traceback
from collections.abc import Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

from raybo.common.errors import ObjectiveError
from raybo.common.messages import in_words

VARIABLE = "RAYBO_LAUNCHED"  # JSON: the trial, and the path of the socket
TRACEBACK_CHARACTERS = 4_000


def rank() -> int:
    """Return the rank of this process, by the variable that launchers set; 0 without one."""
    return _number("RANK", 0)


def _number(name: str, otherwise: int) -> int:
    value = os.environ.get(name, "")
    return int(value) if value.isdecimal() else otherwise


def launched_by() -> dict[str, Any] | None:
    """Return the fields of the trial whose launcher has started this process; None if none has."""
    if VARIABLE not in os.environ:
        return None
    told = json.loads(os.environ[VARIABLE])
    return {
        **{name: told[name] for name in ("number", "attempt", "seed", "config")},
        "_directory": Path(told["directory"]),
        "rank": rank(),
        "world_size": _number("WORLD_SIZE", 1),
        "local_rank": _number("LOCAL_RANK", 0),
        "local_world_size": _number("LOCAL_WORLD_SIZE", 1),
        "node_rank": _number("GROUP_RANK", 0),
        "_asks_leaving": partial(_is_leaving, told["socket"]),
    }


def _is_leaving(address: str) -> bool:
    """Ask the trial whether its node is about to go, on a line of its own: another thread may be reporting."""
    try:
        with socket.socket(socket.AF_UNIX) as line:
            line.connect(address)
            line.sendall((json.dumps({"what": "leaving", "rank": rank()}) + "\n").encode())
            with line.makefile() as answer:
                return bool(json.loads(answer.readline() or "{}").get("leaving"))
    except OSError:  # its trial is over
        return False


@cache
def launched_receiver(ends: type[BaseException]) -> LaunchedReceiver | None:
    """Return what takes the reports of this process to its trial; None if no launcher has started it.

    Args:
        ends: raised in the job if the trial has to end.
    """
    if VARIABLE not in os.environ:
        return None
    return LaunchedReceiver(json.loads(os.environ[VARIABLE])["socket"], ends)


class LaunchedReceiver:
    """Takes the reports of a rank to its trial, and the exception that ends it.

    Args:
        address: path of the trial's socket.
        ends: raised if the trial has to end.
    """

    def __init__(self, address: str, ends: type[BaseException]) -> None:
        self._ends = ends
        line = socket.socket(socket.AF_UNIX)
        line.connect(address)
        self._line = line.makefile("rw")
        self._rank = rank()
        self._lock = threading.RLock()  # a signal handler that reports during a report gets an error, no deadlock
        self._before, sys.excepthook = sys.excepthook, self._raised

    def report(self, metrics: Any, step: int | None) -> None:
        """Take a step's metrics; wait for the answer to rank 0's report of this step, which is that to all."""
        told = dict(metrics) if isinstance(metrics, Mapping) else metrics
        self._require(self._ask("report", metrics=told, step=step))

    def refuse(self, fault: str) -> None:
        """Have the trial fail for a report that was refused."""
        self._ask("refuse", fault=fault)

    def checkpoint(self) -> Path | None:
        """Return the directory of the trial's last checkpoint."""
        found = self._require(self._ask("checkpoint"))["path"]
        return None if found is None else Path(found)

    @contextlib.contextmanager
    def saving(self) -> Iterator[Path]:
        """Yield a directory that becomes the checkpoint of the next report."""
        if self._rank:
            raise ObjectiveError(f"saving: rank {self._rank} of a launcher cannot save a checkpoint; save on rank 0")
        directory = Path(self._require(self._ask("saving"))["path"])
        try:
            yield directory
        except BaseException:  # whatever the job raises: what it has saved is not whole
            self._ask("saved", whole=False)
            raise
        self._require(self._ask("saved", whole=True))

    def _ask(self, what: str, **data: Any) -> dict[str, Any]:
        try:
            with self._lock:
                self._line.write(json.dumps({"what": what, "rank": self._rank, **data}, default=_plain) + "\n")
                self._line.flush()
                answer: dict[str, Any] = json.loads(self._line.readline() or '{"end": "its trial is over"}')
        except OSError:
            answer = {"end": "its trial is over"}
        return answer

    def _require(self, answer: dict[str, Any]) -> dict[str, Any]:
        if "fault" in answer:
            raise ObjectiveError(answer["fault"])
        if "end" in answer:
            raise self._ends(answer["end"])
        return answer

    def _raised(self, kind: type[BaseException], error: BaseException, frames: Any) -> None:
        """Tell what ends this process, before Python does."""
        if isinstance(error, self._ends):
            self._ask("ended", reason=str(error))
            return
        text = "".join(traceback.format_exception(kind, error, frames))[-TRACEBACK_CHARACTERS:]
        names = [each.__name__ for each in kind.__mro__]
        self._ask("raised", reason=in_words(error), classes=names, traceback=text)
        self._before(kind, error, frames)


def _plain(value: Any) -> Any:
    """Return what JSON does not know as what an array or a NumPy number holds, as a number, or as text."""
    with contextlib.suppress(Exception):  # of a user's object
        if hasattr(value, "tolist"):
            return value.tolist()
        return float(value)
    return str(value)
