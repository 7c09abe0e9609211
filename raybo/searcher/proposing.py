"""Proposes the next trial, by guesses, earlier studies or the method, and makes the event of asking for it."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Mapping
from dataclasses import replace
from enum import IntEnum
from typing import Any

import numpy as np

from raybo import methods
from raybo.common.errors import MethodError, NumericalError
from raybo.common.messages import first_line, shown
from raybo.common.threads import limit_threads
from raybo.methods.explaining import is_proposed, reading_tags
from raybo.methods.findings import expected_gain
from raybo.methods.parts.prior_points import led
from raybo.methods.parts.trial_costs import TrialCosts, cost_tags
from raybo.record.contexts import ContextFields
from raybo.record.description import Description
from raybo.record.events import Asked, Tags
from raybo.record.history import History, Proposal
from raybo.record.origin import NEXT_GUESS, Origin, origin_of
from raybo.space import Array, Row, Space

Seconds = tuple[float, float]  # of wall time, and of this thread's processor time


class Stream(IntEnum):
    """The purposes of a trial's random streams; a number, once used, keeps its purpose."""

    PROPOSAL = 0
    FALLBACK = 1
    TRIAL = 2  # of the job's own, as `current_trial().seed`
    REST = 3  # what a configuration leaves out that is given in part, if the proposal has no value for it
    PRIOR = 4  # of a first point that earlier studies lead to


def trial_seed(study: int, number: int) -> int:
    """The seed that a trial is given for its own random numbers, below 2**32: the same at every attempt."""
    return int(np.random.SeedSequence(study, spawn_key=(number, Stream.TRIAL)).generate_state(1)[0])


def random_stream(study: int, number: int, purpose: Stream) -> np.random.Generator:
    """Return a trial's random numbers for one purpose, from the study's seed."""
    return np.random.default_rng(np.random.SeedSequence(study, spawn_key=(number, purpose)))


def proposed(
    history: History,
    method: methods.Method,
    description: Description,
    context: ContextFields,
    *,
    with_gain: bool = False,
) -> Asked:
    """Return the event of asking for the trial that is proposed after a history.

    Args:
        history: what is known.
        method: proposes, unless guesses or earlier studies do.
        description: the study's.
        context: the fields of the context that the trial will have; empty if it is not known in advance.
        with_gain: add how much the proposal is expected to gain, unless it is one of a design or a guess.
    Raises:
        MethodError: the method proposed something else than a point of the cube with tags that are JSON.
        TrialError: the method cannot read the tags in the history.
    """
    if context:
        history = history.with_next_context(np.array(context["c"]))
    proposal, row, x, seconds = proposal_for(history, method, description)
    tags = proposal.tags if history.budget is None else {**proposal.tags, **cost_tags(history, x[0], proposal.fidelity)}
    asked = replace(asked_for(history, x, row, tags, seconds, context), fidelity=proposal.fidelity)
    if with_gain and not proposal.in_design and asked.origin is None:
        costs = TrialCosts.of(history)
        return replace(asked, gain=expected_gain(history, x[0]), takes=None if costs is None else costs.at(x[0]))
    return asked


def named(history: History, space: Space, config: Mapping[str, Any], tags: Tags) -> Asked:
    """Return the event of asking for a configuration that the user names; SpaceError if it does not fit the space."""
    row = space.pack(config)
    space.require_allowed(row)
    return asked_for(history, space.snap(space.points([row])), row, tags, (0.0, 0.0), {})


def proposal_for(
    history: History, method: methods.Method, description: Description
) -> tuple[Proposal, Row, Array, Seconds]:
    """Return what is proposed after a history, its row, its runnable point (1, d), and the time that it took."""
    proposal, seconds = _proposal(history, method, description.seed)
    _require_proposal(proposal, history, description.method)
    space = description.space
    x = space.snap(proposal.x[None, :])
    row = space.rows(x)[0]
    if origin_of(proposal.tags) is Origin.GUESSED:
        row = space.as_guessed(row, int(proposal.tags.get(NEXT_GUESS, 0)))
    return proposal, row, x, seconds


def _proposal(history: History, method: methods.Method, seed: int) -> tuple[Proposal, Seconds]:
    """Return what is proposed, and the time that it took."""
    number = len(history)
    started, processor = time.perf_counter(), time.thread_time()
    is_tagged = history.records.are_tagged
    reading = reading_tags(f"trial {number}: the tags before it") if is_tagged else contextlib.nullcontext()
    with limit_threads(1), reading:
        try:
            seen = methods.seen(method, history)
            proposal = _guessed(history) or _expected_best(seen, random_stream(seed, number, Stream.PRIOR))
            if proposal is None:  # the method goes on as if earlier studies had led to nothing
                own = number - len(led(history)) if history.priors else number
                proposal = method.propose(seen, random_stream(seed, own, Stream.PROPOSAL))
        except NumericalError as error:  # the study goes on, and the tags say why this point
            rng = random_stream(seed, number, Stream.FALLBACK)
            proposal = Proposal(history.cube.uniform(rng, 1)[0], tags={"fallback": str(error)})
    return proposal, (time.perf_counter() - started, time.thread_time() - processor)


def asked_for(history: History, x: Array, row: Row, tags: Tags, seconds: Seconds, context: ContextFields) -> Asked:
    """Return the event of asking for a point of the cube (1, d), whose row this is."""
    return Asked(
        len(history),
        x=x[0].tolist(),
        values=row,
        tags=json.loads(json.dumps(tags)),  # what a journal would give back, from the first moment
        seen=history.last_event,
        spent=history.spent,
        suggest_seconds=round(seconds[0], 6),
        suggest_processor_seconds=round(seconds[1], 6),
        **context,
    )


def _require_proposal(proposal: object, history: History, whose: str) -> None:
    """MethodError if a method proposed something that is not a point of the cube, or tags that no journal keeps."""
    if not isinstance(proposal, Proposal):
        raise MethodError(f"{whose}: propose must return a Proposal, got {shown(proposal)}")
    x = proposal.x
    if not (isinstance(x, np.ndarray) and x.shape == (history.d,) and x.dtype == np.float64):
        raise MethodError(f"{whose}: a proposal's x must be an array of {history.d} floats, got {shown(x)}")
    if not ((x >= 0.0) & (x <= 1.0)).all():
        raise MethodError(f"{whose}: a proposal's x must lie in [0, 1]^{history.d}, got {shown(x)}")
    try:
        json.dumps(proposal.tags)
    except (TypeError, ValueError) as error:
        raise MethodError(f"{whose}: a proposal's tags must be JSON: {first_line(error)}") from None
    levels = () if history.fidelity is None else history.fidelity.levels[:-1]
    if proposal.fidelity is not None and (type(proposal.fidelity) is not int or proposal.fidelity not in levels):
        raise MethodError(
            f"{whose}: a proposal's fidelity must be one of the levels below a whole run, or None, got "
            f"{shown(proposal.fidelity)}"
        )


def _expected_best(history: History, rng: np.random.Generator) -> Proposal | None:
    """The next of the first points where earlier studies expect the best; None if there is none."""
    if not history.priors:
        return None
    from raybo.methods.parts.earlier_studies import first_point

    return first_point(history, rng)


def _guessed(history: History) -> Proposal | None:
    """The point at the guesses, and then that at the next ones, if there are any and nothing else was proposed."""
    if history.cube.guess is None:
        return None
    made = 0
    for record in history.records:
        if is_proposed(record.tags):
            if origin_of(record.tags) is not Origin.GUESSED:
                return None
            made += 1
    for turn, x in enumerate([history.cube.guess, *history.cube.next_guesses][made:], made):
        if not any(np.array_equal(record.x, x) for record in history.records):
            return Proposal(x, {"origin": Origin.GUESSED.value, **({NEXT_GUESS: turn} if turn else {})})
    return None
