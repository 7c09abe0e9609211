"""One outcome of a trial from the ends of its processes, by table."""

from __future__ import annotations

import pytest

from raybo.engine.lifecycle import Occurrence
from raybo.engine.study.rank_endings import RankEnding, ending_of_all

GOOD, RAISED, LOST, MEMORY, BAD, LEFT = (
    Occurrence.RETURNED,
    Occurrence.RAISED,
    Occurrence.WORKER_LOST,
    Occurrence.OUT_OF_MEMORY,
    Occurrence.BAD_RESULT,
    Occurrence.LEFT,
)
RESET = "RuntimeError: [gloo/transport/tcp/pair.cc:537] Read error: Connection reset by peer"


def outcome(*endings, count=3):
    """Of endings as (rank, occurrence, reason), in the order in which they are heard."""
    found = {
        rank: RankEnding(occurrence, {"reason": reason} if reason else {"value": 1.0 + rank}, float(at))
        for at, (rank, occurrence, reason) in enumerate(endings)
    }
    return ending_of_all(found, count)


def test_the_value_is_the_first_ranks():
    assert outcome((2, GOOD, ""), (0, GOOD, ""), (1, GOOD, "")) == (GOOD, {"value": 1.0})
    assert outcome((0, GOOD, "")) == (GOOD, {"value": 1.0})


@pytest.mark.parametrize(
    ("endings", "occurrence", "reason"),
    [
        ([(0, RAISED, RESET), (1, LOST, "its worker died")], LOST, "rank 1 of 3: its worker died"),
        ([(0, RAISED, RESET), (2, RAISED, "ValueError: bug")], RAISED, "rank 2 of 3: ValueError: bug"),
        ([(0, RAISED, "ConnectionResetError: [Errno 104]"), (1, BAD, "no loss")], BAD, "rank 1 of 3: no loss"),
        ([(0, RAISED, "DistBackendError: NCCL error"), (1, LOST, "died")], LOST, "rank 1 of 3: died"),
        ([(0, RAISED, "EOFError"), (2, RAISED, RESET)], RAISED, "rank 0 of 3: EOFError"),
        ([(1, LOST, "died"), (0, MEMORY, "too little memory")], MEMORY, "rank 0 of 3: too little memory"),
        ([(1, LOST, "died"), (0, Occurrence.OVER_LIMIT, "too long")], Occurrence.OVER_LIMIT, "rank 0 of 3: too long"),
        ([(2, RAISED, "KeyError: 'b'"), (1, RAISED, "KeyError: 'a'")], RAISED, "rank 2 of 3: KeyError: 'b'"),
        ([(0, GOOD, ""), (1, RAISED, "ValueError: late")], RAISED, "rank 1 of 3: ValueError: late"),
        ([(1, LEFT, "it diverges"), (0, RAISED, RESET)], LEFT, "rank 1 of 3: it diverges"),
        ([(1, LEFT, "it diverges"), (0, LEFT, "it diverges")], LEFT, "it diverges"),
        ([(0, RAISED, "ValueError: gradient of 'connections' is nan"), (1, LOST, "died")], LOST, "rank 1 of 3: died"),
    ],
)
def test_the_cause_outranks_its_echoes(endings, occurrence, reason):
    found, data = outcome(*endings)
    assert (found, data["reason"]) == (occurrence, reason)


@pytest.mark.parametrize(
    ("reason", "is_echo"),
    [
        (RESET, True),
        ("DistNetworkError: The client socket has timed out", True),
        ("BrokenPipeError: [Errno 32] Broken pipe", True),
        ("ConnectionRefusedError: [Errno 111]", True),
        ("ValueError: no such loss", False),
        ("RuntimeError: shape mismatch", False),
        ("KeyError: 'connection'", False),
    ],
)
def test_lost_connections_are_echoes(reason, is_echo):
    assert RankEnding(Occurrence.RAISED, {"reason": reason}, 0.0).is_echo is is_echo
    assert not RankEnding(Occurrence.WORKER_LOST, {"reason": reason}, 0.0).is_echo
