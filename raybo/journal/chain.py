"""The chain of checksums over a journal: each event's holds its content and the checksum of the event before it.

What is changed, missing or in another place shows at the first event whose checksum does not follow. It tells damage,
not forgery: whoever can write a journal can compute checksums.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

BYTES = 16  # by chance, damage passes once in 2^128


def beginning(description: str) -> str:
    """The checksum before the first event, of what is studied, as the journal's text."""
    return blake2b(description.encode("utf-8", "surrogatepass"), digest_size=BYTES).hexdigest()


def following(before: str, number: int, kind: str, trial: int | None, at: str, data: str) -> str:
    """The checksum of an event, as it stands in its row, after that of the event before it."""
    row: tuple[Any, ...] = (before, number, kind, trial, at, data)
    return blake2b("\0".join(map(str, row)).encode("utf-8", "surrogatepass"), digest_size=BYTES).hexdigest()
