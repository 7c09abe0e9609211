"""Blocks of rows, small enough for the work to stay in the processor's cache."""

from __future__ import annotations

# Numbers in a block, 96 kB. Fresh arrays beyond malloc's 128 kB cost page faults, which were seen to take up to eight
# times as long as the arithmetic.
BLOCK = 12_288
FOR_SOLVES = 16  # rows of a block at least, if there are triangular solves with them: these are slow on fewer


def block_rows(width: int, least: int = 1) -> int:
    """Return how many rows of `width` numbers make a block, at least `least`."""
    return max(least, BLOCK // max(1, width))


def blocks(m: int, width: int, least: int = 1) -> list[slice]:
    """Return m rows of `width` numbers, in blocks."""
    rows = block_rows(width, least)
    return [slice(i, min(i + rows, m)) for i in range(0, m, rows)]
