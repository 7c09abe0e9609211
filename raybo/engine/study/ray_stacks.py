"""Leaves out, of what a trial has printed, the stack that Ray prints into it when it ends the trial's worker."""

from __future__ import annotations

import re

# such as [2026-11-25 03:53:10,840 C 19452 19452] memory_store.cc:352:  An unexpected system state has occurred
_HEAD = re.compile(rb"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} C \d+ \d+\] .*\.cc:\d+: ")
_PART_OF_HEAD = re.compile(rb"\[(\d{0,4}|\d{4}-[\d :,-]*( ?C[^\n]{0,200})?)\Z")
# such as /usr/lib/libpython3.11.so.1.0(PyEval_EvalCode+0x224) [0x7ff21ec508e4] PyEval_EvalCode
_OF_A_STACK = re.compile(rb"(\*\*\* StackTrace Information \*\*\*|.*\[0x[0-9a-f]+\].*|\s*)\n?\Z")
INSTEAD = b"(here Ray ended the worker of this attempt, with a stack of its own code that is left out)\n"


class RayStacks:
    """Takes Ray's stacks out of the output of one attempt, which comes in pieces."""

    def __init__(self) -> None:
        self._held = b""  # the end of a piece, which may be the beginning of Ray's
        self._is_open = False  # the line that this ends has been returned in part
        self._is_inside = False

    def without(self, data: bytes) -> bytes:
        """Return a piece without them; the beginning of a line that may be one of theirs comes with the next piece."""
        *lines, last = (self._held + data).split(b"\n")
        kept = [self._kept(line + b"\n") for line in lines]
        part = _PART_OF_HEAD.search(last)
        start = 0 if self._is_inside else len(last) if part is None else part.start()
        self._held = last[start:]
        self._is_open |= start > 0
        return b"".join(kept) + last[:start]

    def rest(self) -> bytes:
        """Return what was held back, when nothing more comes."""
        held, self._held = self._held, b""
        return self._kept(held)

    def _kept(self, line: bytes) -> bytes:
        """Return a line, or the rest of one, unless it is Ray's."""
        was_open, self._is_open = self._is_open, False
        if self._is_inside and _OF_A_STACK.match(line):
            return b""
        head = _HEAD.search(line)
        self._is_inside = head is not None
        if head is None:
            return line
        before = line[: head.start()]
        return (before + b"\n" if before or was_open else b"") + INSTEAD
