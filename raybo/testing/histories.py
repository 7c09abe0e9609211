"""Spaces and histories on which every method must propose, and what must hold of each proposal."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from raybo.methods import Method
from raybo.record.events import Asked, Event, EventData, Failed, Planned, Stopped, Tags, Told
from raybo.record.goals import Goals
from raybo.record.history import History, Proposal
from raybo.space import Array, Categorical, Float, Integer, Ordinal, Space

End: TypeAlias = float | str | None  # a value, "failed", "lost", "stopped", or None for pending

SPACES = {
    "mixed": Space(
        {
            "lr": Float(1e-4, 1, log=True),
            "n": Integer(1, 12),
            "c": Categorical(["a", "b", "c"]),
            "s": Float(0, 1, step=0.1),
            "big": Integer(1, 10**9, log=True),
        }
    ),
    "one float": Space({"x": Float(-5, 5)}),
    "one integer": Space({"n": Integer(0, 4)}),
    "one choice": Space({"c": Categorical(["a", "b"])}),
    "a single choice": Space({"c": Categorical(["only"])}),
    "a single choice beside a float": Space({"x": Float(0, 1), "c": Categorical([None])}),
    "six floats": Space({f"x{i}": Float(0, 1) for i in range(6)}),
    "an order and a logit": Space({"n": Ordinal([8, 16, 32, 64]), "x": Float(0.5, 0.9999, scale="logit")}),
    "ruled": Space(
        {
            "depth": Integer(1, 64),
            "width": Integer(1, 64),
            "c": Categorical(["a", "b", "c"]),
            "lr": Float(1e-4, 1, log=True),
            "size": Ordinal([8, 16, 32, 64]),
            "free": Float(0, 1),
        },
        where=["depth * width <= 64", "c != 'a' or lr < 1e-2", "size <= 2 * depth + 8"],
    ),
    "hardly anything is allowed": Space(
        {**{f"x{i}": Float(0, 1) for i in range(5)}, "m": Categorical(["off", {"kind": "l2", "w": Float(0, 1)}])},
        where=["x0 + x1 + x2 + x3 + x4 < 0.3", "m.l2.w > x0"],
    ),
}
CONTEXT = Space({"load": Float(0, 10)})  # declared if a method works with nothing else


def stream(*key: int) -> np.random.Generator:
    """Return a random stream of the tests' own."""
    return np.random.default_rng(np.random.SeedSequence(7, spawn_key=key))


POINTS = stream(1).random((14, SPACES["mixed"].d))
CENTRE = np.full((14, SPACES["mixed"].d), 0.5)
VALUES: list[float] = np.cos(4 * POINTS).sum(axis=1).tolist()
HISTORIES: dict[str, tuple[Array, Sequence[End], int | None]] = {  # points, how each trial ended, trials planned
    "nothing planned": (POINTS, VALUES, None),
    "all pending": (POINTS, [None] * 14, 20),
    "all failed": (POINTS, ["failed"] * 14, 20),
    "all lost": (POINTS, ["lost"] * 14, 20),
    "all stopped": (POINTS, ["stopped"] * 14, 20),
    "one finished, others failed": (POINTS, [1.0] + ["failed"] * 13, 20),
    "one finished, others pending": (POINTS, [1.0] + [None] * 13, 20),
    "every kind": (POINTS, [*VALUES[:10], "failed", "lost", "stopped", None], 20),
    "failed first": (POINTS, ["failed", "failed", *VALUES[2:]], 20),
    "constant values": (POINTS, [3.25] * 14, 20),
    "all zero": (POINTS, [0.0] * 14, 20),
    "ties": (POINTS, [float(i % 2) for i in range(14)], 20),
    "the same point": (CENTRE, VALUES, 20),
    "the same point and value": (CENTRE, [1.0] * 14, 20),
    "the same point pending": (CENTRE, [*VALUES[:7], *[None] * 7], 20),
    "the same point failed": (CENTRE, [*VALUES[:7], *["failed"] * 7], 20),
    "huge values": (POINTS, [1e300 * v / 8 for v in VALUES], 20),
    "huge of both signs": (POINTS, [1.7e308, -1.7e308, *VALUES[2:]], 20),
    "tiny values": (POINTS, [1e-300 * v for v in VALUES], 20),
    "denormal values": (POINTS, [5e-324 * (i % 3) for i in range(14)], 20),
    "one outlier": (POINTS, [*VALUES[:13], -1e12], 20),
    "nearly constant": (POINTS, [1e9 + 1e-7 * v for v in VALUES], 20),
    "corners": (np.round(POINTS), VALUES, 20),
    "more than planned": (POINTS, VALUES, 5),
    "the only one planned": (POINTS[:1], VALUES[:1], 1),
}

LAST = 2  # trials of a history whose tags are always the method's own


_proposed: dict[tuple[Any, ...], str] = {}  # tags as JSON: by their method and all that came before


def _tags_of(method: Method, history: History, *before: Any) -> Tags:
    """Return a method's tags for the next trial, asked once for all the tests whose histories begin alike."""
    if before not in _proposed:
        _proposed[before] = json.dumps(method.propose(history, stream(len(history))).tags)
    tags: Tags = json.loads(_proposed[before])
    return tags


def history_of(
    space: Space,
    points: Array,
    ends: Sequence[End],
    *,
    sign: float = 1.0,
    planned: int | None = None,
    method: Method | None = None,
    begun: Method | None = None,
    asks_each: bool = True,
) -> History:
    """Return a history of trials at these points, (n, d), snapped to the space.

    Args:
        space, points: where the trials are.
        ends: how each ended, values in the user's sign.
        sign: 1 to maximise them, -1 to minimise them.
        planned: how many trials are planned; None if unknown.
        method: tags are its own, as it may rely on having asked for its trials itself; None for no tags.
        begun: asked for all but the last two trials, as in a study whose options were changed; None for `method`.
        asks_each: True to ask for the tags of every trial. False, for a method that does not build on the tags before:
            after its initial design, the last tags of the design stand for those of all but the last two trials.
    """
    cube = CONTEXT.cube if method is not None and method.needs_context else None
    history = History(space.cube, Goals(modes=("max" if sign > 0 else "min",)), cube)
    if planned is not None:
        history.apply(Planned(trials=planned))
    X, ended = space.snap(np.array(points, dtype=float)), tuple(map(repr, ends))
    asked = [method if begun is None or left <= LAST else begun for left in range(len(X), 0, -1)]
    is_design, tags = True, {}
    for number, (x, end) in enumerate(zip(X, ends, strict=True)):
        asking = asked[number]
        if asking is not None and (is_design or asks_each or number >= len(X) - LAST):
            before = (tuple(asked[: number + 1]), space, sign, planned, X[:number].tobytes(), ended[:number])
            tags = _tags_of(asking, history, *before)
            is_design = "sobol" in tags
        history.apply(Asked(number, x=x.tolist(), tags=tags))
        if end is not None:
            history.apply(_end_of(number, end, has_context=cube is not None and bool(number % 6)))
    return history


def _end_of(number: int, end: float | str, *, has_context: bool) -> Event:
    context: EventData = {"c": [0.5 + 0.4 * math.sin(number)]} if has_context else {}
    if end == "failed":
        return Failed.of(number, {"reason": "raised", **context})
    if end == "lost":
        return Failed.of(number, {"reason": "gone", "kind": "lost", **context})
    if end == "stopped":
        return Stopped.of(number, {"reason": "by the user", **context})
    return Told.of(number, {"value": float(end), **context})


def state_of(history: History) -> object:
    """Return everything of a history that a method could have changed."""
    records = [(r.x.tobytes(), json.dumps(r.tags), r.state, r.y, tuple(r.reports)) for r in history.records]
    return history.planned, history.last_event, history.goals, records


def check_proposal(method: Method, history: History, number: int = 99) -> Proposal:
    """Return one proposal, which is in the cube, has plain tags, is repeatable and explained; the history is untouched.

    Args:
        number: of the random stream.
    """
    before = state_of(history)
    proposal = method.propose(history, stream(number))
    assert isinstance(proposal, Proposal)
    x = proposal.x
    assert x.shape == (history.d,)
    assert x.dtype == np.float64
    assert np.isfinite(x).all()
    assert ((x >= 0) & (x <= 1)).all()
    snapped = history.cube.snap(x[None, :])[0]
    np.testing.assert_array_equal(history.cube.snap(snapped[None, :])[0], snapped)
    assert json.loads(json.dumps(proposal.tags, allow_nan=False)) == json.loads(json.dumps(proposal.tags))
    assert state_of(history) == before, "propose changed the history"
    again = method.propose(history.copy(), stream(number))
    assert again.x.tobytes() == x.tobytes(), "the same history and stream gave another point"
    assert again.tags == proposal.tags, "the same history and stream gave other tags"
    reason = method.explain(json.loads(json.dumps(proposal.tags)))
    assert reason
    assert "\n" not in reason
    return proposal
