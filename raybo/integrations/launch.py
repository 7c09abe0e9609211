"""Launchers inside a trial: `torchrun`, `accelerate launch` or any command that starts processes of its own.

The ranks report through the trial, as if they ran in it. Whatever ends the trial, even a SIGKILL, ends all of them.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import socket
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO, cast

from raybo.common.arguments import finite_number
from raybo.common.errors import ObjectiveError, RayboError
from raybo.engine.study.rank_endings import is_echo
from raybo.engine.temporary_directories import private_directory
from raybo.engine.trial.shortages import MEMORY_ERRORS, MEMORY_WORDS
from raybo.integrations import process_tree
from raybo.job.current_trial import current_trial
from raybo.job.launched_rank import VARIABLE
from raybo.job.reports import TrialPruned, checkpoint, report, saving

LEAVE_SECONDS = 1.0  # for ranks to end by themselves once the trial has to end, before SIGTERM
TAIL = 30  # of the lines on standard error, to look for a reason in
REASON_CHARACTERS = 200


class LaunchError(RayboError):
    """A command that a trial has launched has failed: the trial fails, unless its job handles it.

    Example:
        >>> import sys
        >>> from raybo.integrations.launch import LaunchError, launch
        >>> def job(config):
        ...     try:
        ...         launch([sys.executable, "-c", "raise SystemExit(3)"])
        ...     except LaunchError as error:
        ...         return str(error)
        >>> job({})
        "... -c 'raise SystemExit(3)' ended with 3"
    """


def launch(
    command: Sequence[object], *, environment: Mapping[str, str] | None = None, grace_seconds: float = 10.0
) -> None:
    """Run a command inside a trial, with the processes that it starts, and wait for its end.

    In them `raybo.current_trial()`, `report`, `checkpoint` and, on rank 0, `saving` work as in the trial. The numbers
    of rank 0 count (`RANK` in the environment; without it every process is rank 0). Either rank 0 alone reports, or all
    ranks do, and wait for it at each report. The value of the trial is its last report, unless the objective returns
    another.

    Args:
        command: the program and its arguments, which become text.
        environment: variables of the command besides this process's.
        grace_seconds: how long the processes have to end by themselves, after a verdict or SIGTERM, before SIGKILL.
    Raises:
        TrialPruned: the trial has to end, or a rank raised that.
        MemoryError: a rank ran out of memory.
        LaunchError: the command failed; names the first exception of a rank that is no lost connection.
        ObjectiveError: an argument is wrong, or a report was refused.
    Example:
        >>> import sys
        >>> from raybo.integrations.launch import launch
        >>> def job(config):
        ...     launch([sys.executable, "-c", "import raybo; raybo.report({'loss': 0.5})"])
        >>> job({})
    """
    if isinstance(command, str) or not command:
        raise ObjectiveError("launch: command must be a list of a program and its arguments, such as ['torchrun', ...]")
    grace = finite_number(grace_seconds, "launch: grace_seconds", at_least=0)
    words = [str(word) for word in command]
    with contextlib.ExitStack() as held:
        directory = held.enter_context(private_directory())
        ranks = held.enter_context(Ranks(directory / "socket", grace).listening())
        process = subprocess.Popen(  # the user's own command
            [sys.executable, process_tree.__file__, str(grace), *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **(environment or {}), VARIABLE: ranks.described()},
            encoding="utf-8",
            errors="replace",  # whatever the command prints: a pipe that nobody empties would stop it
        )
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        ranks.over = process.stdin.close
        tail: deque[str] = deque(maxlen=TAIL)
        copying = threading.Thread(target=_copy, args=(process.stderr, tail), daemon=True)
        copying.start()
        try:
            code = process.stdout.readline().strip()
        finally:
            process.stdin.close()  # ends what is left
        process.wait()
        copying.join(1.0)  # it ends with the last process
        for stream in (process.stdout, process.stderr):
            stream.close()
    ranks.raise_end()
    if code != "0":
        raise _failure(words, code, ranks.raised, tail)


def _copy(lines: TextIO, tail: deque[str]) -> None:
    """Print what the processes print, which the trial's output is to hold, and keep the last lines."""
    for line in lines:
        tail.append(line.rstrip())
        sys.stderr.write(line)


def _failure(command: list[str], code: str, raised: Sequence[dict[str, Any]], tail: Sequence[str]) -> BaseException:
    """Return the exception for a command that failed, by what its ranks have told; without that by its last line."""
    lacking = [each for each in raised if set(MEMORY_ERRORS) & set(each["classes"]) or _speaks_of_memory(each)]
    own = [each for each in raised if not is_echo(each["reason"])]
    for each in (lacking or own or raised)[:1]:
        text = f"rank {each['rank']}: {each['reason']}"
        return MemoryError(text) if lacking else LaunchError(text)
    ended = f"ended with {code}" if code.lstrip("-").isdecimal() else code or "was killed"
    last = next((line.strip() for line in reversed(tail) if line.strip()), "")
    return LaunchError(f"{shlex.join(command[:3])} {ended}{f': {last[:REASON_CHARACTERS]}' if last else ''}")


def _speaks_of_memory(raised: Mapping[str, Any]) -> bool:
    return MEMORY_WORDS.search(raised["reason"]) is not None


class Ranks:
    """The processes that a launcher has started, as they report to their trial."""

    def __init__(self, address: Path, grace: float) -> None:
        self.grace = grace
        self.raised: list[dict[str, Any]] = []
        self.over: Any = lambda: None  # ends the processes
        self.address = address
        self._end: BaseException | None = None
        self._answers: list[dict[str, Any]] = []  # to the reports of rank 0, in order
        self._news = threading.Condition()
        self._is_closed = False
        self._is_found, self._checkpoint = False, cast("str | None", None)

    def described(self) -> str:
        """Return the trial and the socket, as a rank reads them."""
        me = current_trial()
        with tempfile.TemporaryDirectory() if me is None else contextlib.nullcontext(str(me.directory)) as directory:
            names = ("number", "attempt", "seed", "config")
            trial = {name: getattr(me, name, None) for name in names}
            return json.dumps({**trial, "directory": str(directory), "socket": str(self.address)}, default=str)

    @contextlib.contextmanager
    def listening(self) -> Iterator[Ranks]:
        """Answer the ranks within the block."""
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(self.address))
            listener.listen(128)
            threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
            try:
                yield self
            finally:
                with self._news:
                    self._is_closed = True
                    self._news.notify_all()
                with contextlib.suppress(OSError):
                    listener.shutdown(socket.SHUT_RDWR)

    def raise_end(self) -> None:
        """Raise why the trial has to end, if it has to."""
        if self._end is not None:
            raise self._end

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):  # it is closed
            while True:
                threading.Thread(target=self._serve, args=(listener.accept()[0],), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        """Answer one process until it ends."""
        count = 0
        with (
            contextlib.suppress(OSError, ValueError),
            connection,
            connection.makefile("rw") as line,
            _saves() as saves,
        ):
            for text in line:
                message = json.loads(text)
                what, rank = message["what"], message["rank"]
                if what == "report":
                    count += 1
                    answer = self._report(message) if rank == 0 else self._answer(count)
                elif what == "saving":
                    answer = {"path": str(saves.enter_context(saving()))}
                elif what == "saved" and message["whole"]:
                    answer = self._trying(saves.close)
                else:
                    answer = self._other(what, message, saves)
                line.write(json.dumps(answer) + "\n")
                line.flush()

    def _other(self, what: str, message: dict[str, Any], saves: contextlib.ExitStack) -> dict[str, Any]:
        if what == "saved":  # its block has raised
            _discard(saves)
        elif what == "checkpoint":
            return {"path": self._begins_with(checkpoint)}
        elif what == "leaving":
            return {"leaving": (me := current_trial()) is not None and me.is_leaving}
        elif what == "raised":
            self.raised.append(message)
        elif what == "refuse":
            self._stop(ObjectiveError(message["fault"]))
        elif what == "ended":
            self._stop(TrialPruned(message["reason"]))
        return {}

    def _begins_with(self, find: Callable[[], Path | None]) -> str | None:
        """Return the checkpoint from which all ranks continue: none that rank 0 has saved since they began."""
        with self._news:
            if not self._is_found:
                found, self._is_found = find(), True
                self._checkpoint = None if found is None else str(found)
            return self._checkpoint

    def _report(self, message: dict[str, Any]) -> dict[str, Any]:
        self._begins_with(lambda: None)
        answer = self._trying(lambda: report(message["metrics"], message["step"]))
        with self._news:
            self._answers.append(answer)
            self._news.notify_all()
        return answer

    def _answer(self, count: int) -> dict[str, Any]:
        """Wait for the answer to rank 0's report of the same step."""
        with self._news:
            self._news.wait_for(lambda: len(self._answers) >= count or self._is_closed)
            return self._answers[count - 1] if len(self._answers) >= count else {"end": "its trial is over"}

    def _trying(self, action: Any) -> dict[str, Any]:
        try:
            action()
        except TrialPruned as end:
            self._stop(end)
            return {"end": str(end)}
        except ObjectiveError as error:
            self._stop(error)
            return {"fault": str(error)}
        except Exception as error:  # noqa: BLE001  # a full disk, say: raised in the trial
            self._stop(error)
            return {"fault": str(error)}
        return {}

    def _stop(self, why: BaseException) -> None:
        """Have the trial end, and the processes with it unless they do in time."""
        if self._end is None:
            self._end = why
            timer = threading.Timer(min(LEAVE_SECONDS, self.grace), self.over)  # they have been told, and clean up
            timer.daemon = True
            timer.start()


class _NotSaved(Exception):
    """A checkpoint is not whole: the block that saved it has raised, or its process has died."""


@contextlib.contextmanager
def _saves() -> Iterator[contextlib.ExitStack]:
    """Yield what holds the checkpoint that a process saves; one that is not whole at the end is discarded."""
    saves = contextlib.ExitStack()
    try:
        yield saves
    finally:
        _discard(saves)


def _discard(saves: contextlib.ExitStack) -> None:
    with contextlib.suppress(_NotSaved):
        saves.__exit__(_NotSaved, _NotSaved(), None)
