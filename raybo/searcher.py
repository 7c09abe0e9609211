"""Ask and tell: one method over one space, without Ray and without files."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from enum import IntEnum
from typing import Any, Literal, cast

import numpy as np

from raybo import methods
from raybo.errors import MethodError, NumericalError, TrialError
from raybo.history import Event, History, Kind, Proposal, State, Trial, advance
from raybo.space import Space
from raybo.threads import limit_threads

Mode = Literal["max", "min"]


class Stream(IntEnum):
    """What a trial's random streams are for; a number, once used, keeps its purpose."""

    PROPOSAL = 0
    FALLBACK = 1


class Searcher:
    """Proposes configurations and learns from their results.

    Args:
        space: what to search.
        method: a method's name, see `raybo methods`.
        mode: "max" or "min", what is wanted of the value.
        seed: of every random stream; drawn, and kept in `seed`, where it is None.
        trials: how many trials are planned; some methods depend on it.
        options: the method's options.
    Raises:
        MethodError: the method, an option, the mode or the number of trials is wrong.
    """

    def __init__(
        self,
        space: Space | Mapping[str, Any],
        method: str = "auto",
        mode: Mode = "max",
        seed: int | None = None,
        trials: int | None = None,
        **options: Any,
    ) -> None:
        if mode not in ("max", "min"):
            raise MethodError(f"mode must be 'max' or 'min', got {mode!r}")
        if seed is not None and (isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0):
            raise MethodError(f"seed must be a whole number from 0, got {seed!r}")
        self.space = space if isinstance(space, Space) else Space(space)
        self.method = methods.make(method, **options)
        self.mode: Mode = mode
        self.seed = int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else int(seed)
        self.history = History(self.space.cube, 1.0 if mode == "max" else -1.0)
        self.trials: list[Trial] = []
        if trials is not None:
            self.plan(trials)

    def plan(self, trials: int) -> Event:
        """Say how many trials the study means to run, in all."""
        if isinstance(trials, bool) or not isinstance(trials, (int, np.integer)) or trials < 1:
            raise MethodError(f"trials must be a whole number from 1, got {trials!r}")
        return self.apply(Event(Kind.PLANNED, None, {"trials": int(trials)}))

    def ask(self) -> Trial:
        """The next trial to run; it is pending until told or failed."""
        event = self.apply(self.propose(self.history))
        return self.trials[cast(int, event.trial)]

    def tell(self, trial: Trial | int, value: float) -> Trial:
        """A trial's result, in any order.

        Raises:
            TrialError: the trial is unknown or has ended, or the value is not a finite number (`fail` such a trial).
        """
        number = self._pending(trial)
        return self._end(number, Kind.TOLD, {"value": finite(value, number)})

    def fail(self, trial: Trial | int, reason: str) -> Trial:
        """A trial that ended without a value: data for the method, not an error."""
        return self._end(self._pending(trial), Kind.FAILED, {"reason": str(reason)})

    def add(self, config: Mapping[str, Any], value: float) -> Trial:
        """A result known from elsewhere.

        Raises:
            SpaceError: the configuration does not fit the space.
            TrialError: the value is not a finite number.
        """
        number = len(self.trials)
        told = {"value": finite(value, number)}
        self.apply(self.known(config))
        return self._end(number, Kind.TOLD, told)

    @property
    def best(self) -> Trial:
        """The best finished trial; TrialError while there is none."""
        return best_of(self.trials, self.mode)

    def explain(self, trial: Trial) -> str:
        """In a few words, why this trial was proposed."""
        return explain(self.method, trial)

    # ---- what a study engine needs beside ask and tell

    def propose(self, history: History) -> Event:
        """The event of asking for the next trial after this history. Changes nothing; may run in another thread."""
        number = len(history)
        started = time.perf_counter()
        with limit_threads(1):
            try:
                proposal = self.method.propose(history, self._stream(number, Stream.PROPOSAL))
            except NumericalError as error:  # the study goes on, and the tags say why this point
                rng = self._stream(number, Stream.FALLBACK)
                proposal = Proposal(rng.random(history.d), tags={"fallback": str(error)})
        return self._asked(history, proposal, time.perf_counter() - started)

    def known(self, config: Mapping[str, Any]) -> Event:
        """The event of asking for a configuration that the user names."""
        accepted = self.space.accept(config)
        proposal = Proposal(self.space.encode([accepted])[0], tags={"origin": "added"})
        event = self._asked(self.history, proposal, 0.0)
        return replace(event, data={**event.data, "values": self.space.pack(accepted)})

    def apply(self, event: Event) -> Event:
        """Take in an event, new or from a journal; returns it with its number."""
        if not event.number:
            event = replace(event, number=self.history.last_event + 1)
        self.history.apply(event)
        advance(self.trials, event, self.space)
        return event

    def _asked(self, history: History, proposal: Proposal, seconds: float) -> Event:
        x = self.space.snap(proposal.x[None, :])
        data = {
            "x": x[0].tolist(),
            "values": self.space.pack(self.space.decode(x)[0]),
            "tags": json.loads(json.dumps(proposal.tags)),  # what a journal would give back, from the first moment
            "seen": history.last_event,
            "suggest_seconds": round(seconds, 6),
        }
        return Event(Kind.ASKED, len(history), data)

    def _stream(self, number: int, stream: Stream) -> np.random.Generator:
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(number, stream)))

    def _pending(self, trial: Trial | int) -> int:
        return self.history.require_pending(trial.number if isinstance(trial, Trial) else trial)

    def _end(self, number: int, kind: Kind, data: Mapping[str, Any]) -> Trial:
        self.apply(Event(kind, number, data))
        return self.trials[number]


def explain(method: methods.Method, trial: Trial) -> str:
    """In a few words, why the method proposed this trial."""
    if trial.tags.get("origin") == "added":
        return "added by the user"
    if "fallback" in trial.tags:
        return f"a random point, because the model failed: {trial.tags['fallback']}"
    return method.explain(trial.tags)


def finite(value: object, number: int) -> float:
    """The value as a float; TrialError where it is not a finite number."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TrialError(f"trial {number}: a number is needed, got {value!r}; use fail() for a trial without one")
    try:
        is_finite = math.isfinite(value)
    except OverflowError:  # an integer beyond every float
        is_finite = False
    if not is_finite:
        raise TrialError(f"trial {number}: a finite number is needed, got {value!r}; use fail() for such a trial")
    return float(value)


def best_of(trials: Iterable[Trial], mode: Mode) -> Trial:
    """The finished trial with the best value, the earliest of equals; TrialError where none has finished."""
    finished = [trial for trial in trials if trial.state is State.FINISHED]
    if not finished:
        raise TrialError("no trial has finished yet, so there is no best one")
    sign = -1.0 if mode == "max" else 1.0
    return min(finished, key=lambda trial: (sign * cast(float, trial.value), trial.number))
