"""Ask and tell: one method over one space, without Ray and without files."""

from __future__ import annotations

import json
import math
import time
import warnings
from collections.abc import Mapping
from dataclasses import replace
from enum import IntEnum
from typing import Any, cast

import numpy as np

from raybo import methods
from raybo.best import best_trial
from raybo.errors import MethodError, NumericalError, TrialError
from raybo.history import Event, History, Kind, Mode, Origin, Proposal, Trial, advance
from raybo.space import Space, context_data, context_space, read_context
from raybo.threads import limit_threads

NO_CONTEXT = "its context is not known; it counts for its value, and is left out of what is learned about contexts"


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
        context: what each trial meets and nobody chooses, declared like a space: `{"demand": raybo.Float(0, 1)}`.
        options: the method's options.
    Raises:
        SpaceError: the space or the context is not one.
        MethodError: the method, an option, the mode or the number of trials is wrong, or the method needs a context.
    """

    def __init__(
        self,
        space: Space | Mapping[str, Any],
        method: str = "auto",
        mode: Mode = "max",
        seed: int | None = None,
        trials: int | None = None,
        context: Space | Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        if mode not in ("max", "min"):
            raise MethodError(f"mode must be 'max' or 'min', got {mode!r}")
        if seed is not None and (isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0):
            raise MethodError(f"seed must be a whole number from 0, got {seed!r}")
        self.space = space if isinstance(space, Space) else Space(space)
        self.context = context_space(context, self.space)
        self.method = methods.make(method, **options)
        if self.context is None and methods.needs_context(method):
            raise MethodError(f"{method} needs a context; declare one beside the space, or use gp-ucb")
        self.mode: Mode = mode
        self.seed = int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else int(seed)
        sign = 1.0 if mode == "max" else -1.0
        self.history = History(self.space.cube, sign, None if self.context is None else self.context.cube)
        self.trials: list[Trial] = []
        self._warned = False
        if trials is not None:
            self.plan(trials)

    def plan(self, trials: int) -> Event:
        """Say how many trials the study means to run, in all."""
        if isinstance(trials, bool) or not isinstance(trials, (int, np.integer)) or trials < 1:
            raise MethodError(f"trials must be a whole number from 1, got {trials!r}")
        return self.apply(Event(Kind.PLANNED, None, {"trials": int(trials)}))

    def ask(self, context: Mapping[str, Any] | None = None) -> Trial:
        """The next trial to run; it is pending until told or failed.

        Args:
            context: what that trial will meet, where it is known beforehand: methods over contexts tune for it.
        Raises:
            TrialError: the context is not one that is declared.
        """
        event = self.apply(self.propose(self.history, context))
        return self.trials[cast(int, event.trial)]

    def tell(self, trial: Trial | int, value: float, context: Mapping[str, Any] | None = None) -> Trial:
        """A trial's result, in any order, with the context that it met.

        Where a context is declared and none is told, the trial counts for its value, but not for what is learned about
        contexts; the first one is warned of.

        Raises:
            TrialError: the trial is unknown or has ended, the value is not a finite number (`fail` such a trial), or
                the context is not one that is declared.
        """
        number = self._pending(trial)
        ended = self._end(number, Kind.TOLD, {"value": finite(value, number), **self._read(context, number)})
        if self.context is not None and ended.context is None and not self._warned:
            self._warned = True
            warnings.warn(f"trial {number}: {NO_CONTEXT}", stacklevel=2)
        return ended

    def fail(self, trial: Trial | int, reason: str, context: Mapping[str, Any] | None = None) -> Trial:
        """A trial that ended without a value: data for the method, not an error. Its context counts all the same."""
        number = self._pending(trial)
        return self._end(number, Kind.FAILED, {"reason": str(reason), **self._read(context, number)})

    def add(self, config: Mapping[str, Any], value: float, context: Mapping[str, Any] | None = None) -> Trial:
        """A result known from elsewhere, with the context that it met.

        Raises:
            SpaceError: the configuration does not fit the space.
            TrialError: the value is not a finite number, or the context is not one that is declared.
        """
        number = len(self.trials)
        told = {"value": finite(value, number), **self._read(context, number)}
        self.apply(self.known(config))
        return self._end(number, Kind.TOLD, told)

    @property
    def best(self) -> Trial:
        """The best finished trial; where a context is declared, the one with the best estimated expectation over it.

        A lucky context does not make a trial the best. The estimate and its standard deviation, in the user's units,
        are `best.details["expected"]` and `["expected_sd"]`; `best.value` is what the trial measured.

        Raises:
            TrialError: no trial has finished.
        """
        return best_trial(self.trials, self.history)

    def best_for(self, context: Mapping[str, Any]) -> Trial:
        """The finished trial with the best estimated value where the context is the given one; told as in `best`.

        Raises:
            TrialError: no trial has finished, or the context is not one that is declared.
        """
        c = np.array(told_context(self.context, context, "best_for")["c"])
        return best_trial(self.trials, self.history, c)

    def explain(self, trial: Trial) -> str:
        """In a few words, why this trial was proposed."""
        return explain(self.method, trial)

    # ---- what a study engine needs beside ask and tell

    def propose(self, history: History, context: Mapping[str, Any] | None = None) -> Event:
        """The event of asking for the next trial after this history. Changes nothing; may run in another thread.

        Args:
            history: what is known.
            context: what the trial will meet, where that is known first.
        """
        number = len(history)
        if met := self._read(context, number):
            history = history.wanting(np.array(met["c"]))
        started, processor = time.perf_counter(), time.thread_time()
        with limit_threads(1):
            try:
                proposal = self.method.propose(history, self._stream(number, Stream.PROPOSAL))
            except NumericalError as error:  # the study goes on, and the tags say why this point
                rng = self._stream(number, Stream.FALLBACK)
                proposal = Proposal(rng.random(history.d), tags={"fallback": str(error)})
        spent = time.perf_counter() - started, time.thread_time() - processor
        return self._asked(history, proposal, spent, met)

    def known(self, config: Mapping[str, Any]) -> Event:
        """The event of asking for a configuration that the user names."""
        accepted = self.space.accept(config)
        proposal = Proposal(self.space.encode([accepted])[0], tags={"origin": Origin.ADDED})
        event = self._asked(self.history, proposal, (0.0, 0.0), {})
        return replace(event, data={**event.data, "values": self.space.pack(accepted)})

    def apply(self, event: Event) -> Event:
        """Take in an event, new or from a journal; returns it with its number."""
        if not event.number:
            event = replace(event, number=self.history.last_event + 1)
        self.history.apply(event)
        advance(self.trials, event, self.space, self.context)
        return event

    def _asked(self, history: History, proposal: Proposal, spent: tuple[float, float], met: Mapping[str, Any]) -> Event:
        x = self.space.snap(proposal.x[None, :])
        data = {
            "x": x[0].tolist(),
            "values": self.space.pack(self.space.decode(x)[0]),
            "tags": json.loads(json.dumps(proposal.tags)),  # what a journal would give back, from the first moment
            "seen": history.last_event,
            "suggest_seconds": round(spent[0], 6),
            "suggest_processor_seconds": round(spent[1], 6),
            **met,
        }
        return Event(Kind.ASKED, len(history), data)

    def _stream(self, number: int, stream: Stream) -> np.random.Generator:
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(number, stream)))

    def _read(self, context: Mapping[str, Any] | None, number: int) -> dict[str, Any]:
        """What an event of this trial holds of a context; nothing where none is given."""
        return {} if context is None else told_context(self.context, context, f"trial {number}")

    def _pending(self, trial: Trial | int) -> int:
        return self.history.require_pending(trial.number if isinstance(trial, Trial) else trial)

    def _end(self, number: int, kind: Kind, data: Mapping[str, Any]) -> Trial:
        self.apply(Event(kind, number, data))
        return self.trials[number]


def explain(method: methods.Method, trial: Trial) -> str:
    """In a few words, why the method proposed this trial."""
    if trial.origin is Origin.ADDED:
        return f"known from {trial.tags['from']}" if "from" in trial.tags else "added by the user"
    if trial.origin is Origin.ENQUEUED:
        return "asked for by the user"
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


def told_context(declared: Space | None, context: Mapping[str, Any], who: str) -> dict[str, Any]:
    """What an event holds of a context that a user tells.

    Raises:
        TrialError: none is declared, or this one is missing a value or rejected; begun with `who`.
    """
    if declared is None:
        raise TrialError(f"{who}: a context was given, but none is declared; give context= beside the space")
    if not isinstance(context, Mapping):
        raise TrialError(f"{who}: a context is a dict, got {context!r}")
    if unknown := [name for name in context if name not in declared.names]:
        raise TrialError(f"{who}: {unknown[0]!r} is no declared context; there is {', '.join(declared.names)}")
    reading = read_context(declared, context)
    if reading.values is None:
        raise TrialError(f"{who}: {reading.note or f'context {reading.missing[0]}: missing'}")
    return context_data(declared, reading)
