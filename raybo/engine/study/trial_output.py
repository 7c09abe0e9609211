"""The output of a study's trials, as the study receives it: kept beside the journal, shown to watchers by line."""

from __future__ import annotations

import codecs
import os
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from raybo.common import systems
from raybo.common.errors import RayboError
from raybo.common.files import write_file
from raybo.common.messages import first_line
from raybo.engine.study.ray_stacks import RayStacks
from raybo.engine.trial.captured_output import KEPT_BYTES, Chunk
from raybo.journal.side_files import OUTPUT, is_uri, trial_directory

LINES = 200  # the last lines of all trials are held for watchers
LINE_CHARACTERS = 1_000


@dataclass
class _AttemptOutput:
    """The output of one attempt, as far as it was received."""

    attempt: int
    received: int = 0  # bytes, with those that were left out
    is_kept: bool = False  # some of it is
    stacks: RayStacks = field(default_factory=RayStacks)
    decoder: Any = field(default_factory=lambda: codecs.getincrementaldecoder("utf-8")("replace"))
    line: str = ""  # the last one, without its end


class TrialOutput:
    """Collects the output of trials.

    Args:
        journal: the last 100 kB of each trial are kept beside it; None if nothing is kept.
        warn: called once with the reason if something cannot be kept.
        artifacts: a directory in which they are kept instead; None, or a URI, for beside the journal.
    """

    def __init__(self, journal: Path | None, warn: Callable[[str], None], artifacts: str | None = None) -> None:
        self.journal = journal
        self.artifacts = None if is_uri(artifacts) else artifacts
        self._warn = warn
        self._has_warned = False
        self._attempts: dict[int, _AttemptOutput] = {}
        self._lines: deque[tuple[int, int, str]] = deque(maxlen=LINES)
        self._count = 0

    def begin(self, trial: int, attempt: int) -> None:
        """Begin an attempt; what an earlier one still sends is ignored."""
        self._attempts[trial] = _AttemptOutput(attempt)

    def received(self, trial: int) -> int:
        """Return how many bytes of the running attempt are known."""
        return self._attempts[trial].received

    def receive(self, trial: int, attempt: int, chunk: Chunk) -> None:
        """Add a chunk of what an attempt has printed."""
        output = self._attempts.get(trial)
        if output is None or output.attempt != attempt or not chunk[1]:
            return
        output.received = chunk[0] + len(chunk[1])
        self._take(trial, output, output.stacks.without(chunk[1]))

    def end(self, trial: int) -> None:
        """End the running attempt."""
        output = self._attempts.pop(trial)
        self._take(trial, output, output.stacks.rest())
        if output.line:
            self._add(trial, output.line)
        if output.received and self.journal is not None:
            self._shorten(trial_directory(self.journal, trial, self.artifacts) / OUTPUT, KEPT_BYTES)

    def since(self, count: int) -> tuple[list[tuple[int, str]], int, int]:
        """Return the lines after the first `count`, with their trials; how many are left out; how many there are."""
        if count > self._count:  # counted by an earlier process of this study
            count = 0
        new = [(trial, text) for number, trial, text in self._lines if number > count]
        return new, self._count - count - len(new), self._count

    def _take(self, trial: int, output: _AttemptOutput, data: bytes) -> None:
        if not data:
            return
        self._keep(trial, output, data)
        *lines, output.line = (output.line + output.decoder.decode(data)).split("\n")
        output.line = output.line[-LINE_CHARACTERS:]
        for line in lines:
            self._add(trial, line)

    def _add(self, trial: int, line: str) -> None:
        self._count += 1
        line = line.rstrip("\r").rpartition("\r")[2]  # what a terminal shows of a progress bar
        self._lines.append((self._count, trial, line[:LINE_CHARACTERS]))

    def _keep(self, trial: int, output: _AttemptOutput, data: bytes) -> None:
        if self.journal is None:
            return
        path = trial_directory(self.journal, trial, self.artifacts) / OUTPUT
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            anew = os.O_TRUNC if output.attempt == 1 and not output.is_kept else 0
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | systems.NOFOLLOW | systems.CLOEXEC | anew
            with open(os.open(path, flags, 0o666), "wb") as file:
                if output.attempt > 1 and not output.is_kept:
                    file.write(f"\n--- attempt {output.attempt}\n".encode())
                file.write(data)
                file.flush()
                output.is_kept = True
                size = os.fstat(file.fileno()).st_size  # `file.tell` counts from where it was opened
            if size > 2 * KEPT_BYTES:
                self._shorten(path, KEPT_BYTES)
        except OSError as error:
            self._report(path, error)

    def _shorten(self, path: Path, size: int) -> None:
        try:
            if path.stat().st_size > size:
                write_file(path, path.read_bytes()[-size:])
        except (OSError, RayboError) as error:
            self._report(path, error)

    def _report(self, path: Path, error: Exception) -> None:
        if not self._has_warned:
            self._warn(f"{path}: the trials' output cannot be kept ({first_line(error)})")
        self._has_warned = True
