"""Explains in a few words why a trial was proposed: by a method, by guesses or priors, or by a user."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from raybo import methods
from raybo.common.errors import MethodError, RayboError, TrialError
from raybo.common.messages import in_words
from raybo.methods import History, Proposal
from raybo.methods.method import EXPECTS, IN_UNITS
from raybo.methods.parts.trial_costs import cost_in_words
from raybo.record.events import Tags
from raybo.record.goals import Goals
from raybo.record.origin import NEXT_GUESS, Origin
from raybo.record.trial import Trial


def is_proposed(tags: Tags) -> bool:
    """Return True if a trial with these tags was proposed by a method, guesses or priors, and not named by a user."""
    return tags.get("origin") in (None, Origin.GUESSED, Origin.PRIOR)


@dataclass(frozen=True, kw_only=True)
class Absent(methods.Method):
    """Stands for a journal's method that cannot be made here; proposes and explains nothing."""

    why: str

    def propose(self, history: History, rng: np.random.Generator) -> Proposal:
        """Raise MethodError."""
        raise MethodError(self.why)

    def explain(self, tags: Tags) -> str:
        """Return that nothing is known."""
        return "unknown, as its method cannot be used here"


def method_of(name: str, options: Mapping[str, Any]) -> methods.Method:
    """Return the method of a journal, to explain its trials; one that stands for it if it cannot be made here."""
    try:
        return methods.make(methods.kept(name), **options)
    except MethodError as error:
        return Absent(why=str(error))


def explain(method: methods.Method, trial: Trial, goals: Goals) -> str:
    """Return in a few words why this trial was proposed."""
    if trial.origin is Origin.ADDED:
        return f"known from {trial.tags['from']}" if "from" in trial.tags else "added by the user"
    if trial.origin is Origin.ENQUEUED:
        names = trial.tags.get("given")
        return f"enqueued by the user with {', '.join(names)}; the rest proposed" if names else "enqueued by the user"
    if trial.origin is Origin.CONFIRMED:
        return f"to confirm trial {trial.tags['confirms']}"
    if NEXT_GUESS in trial.tags:
        return f"at number {int(trial.tags[NEXT_GUESS])} of the next guesses"
    if trial.origin is Origin.GUESSED:
        further = (
            "the search favours the best guess's neighbourhood"
            if method.uses_guesses
            else "the method makes no further use of it"
        )
        return f"where the best was guessed to lie; {further}"
    if trial.origin is Origin.PRIOR:
        with reading_tags(f"trial {trial.number}: its tags"):
            return _like_earlier_studies(trial.tags)
    if "fallback" in trial.tags:
        return f"a random point, because the model failed: {trial.tags['fallback']}"
    with reading_tags(f"trial {trial.number}: its tags"):
        why = method.explain(
            {**trial.tags, IN_UNITS: in_units(trial.tags, goals)} if EXPECTS in trial.tags else trial.tags
        )
        at = " and ".join(f"at {value:,} {name}" for name, value in trial.fidelity.items())
        return "; ".join(filter(None, [why, at, cost_in_words(trial.tags)]))


def in_units(tags: Tags, goals: Goals) -> str:
    """Return what models expected of a point, in the units of the metrics: `accuracy 0.971 expected (0.96 to 0.98)`."""
    parts, expects = [], tags[EXPECTS]
    for name, goal, (low, mean, high, *_) in zip(goals.names, goals.each, expects, strict=True):
        ends = sorted((goal.value_of(low), goal.value_of(high)))
        parts.append(f"{name} {goal.value_of(mean):.4g} expected ({ends[0]:.4g} to {ends[1]:.4g})")
    text = ", ".join(parts)
    if not goals.is_plain:
        return text
    best = [f"best so far {goals.each[0].value_of(y):.4g}" for y in expects[0][3:]]  # none until a trial has finished
    return ", ".join([text, *best])


@contextlib.contextmanager
def reading_tags(whose: str) -> Iterator[None]:
    """Raise what a method raises over tags that are not its own as a TrialError; nobody else can check them.

    Args:
        whose: begins the message.
    """
    try:
        yield
    except RayboError:  # of a method that refuses something, which is no fault of the tags
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        raise TrialError(
            f"{whose} are not what the method writes ({in_words(error)}, {Path(frame.filename).name}:{frame.lineno}); "
            "was the journal changed by hand, or by another version?"
        ) from error


def _like_earlier_studies(tags: Tags) -> str:
    """Return why a first point of earlier studies was proposed."""
    weights = [f"{weight:.2g}" for weight in tags["priors"]]
    who = "an earlier study" if len(weights) == 1 else f"{len(weights)} earlier studies ({_few(weights)})"
    return f"like {who}: expected among the best {max(1.0, 100.0 * tags['best_share']):.0f}%"


def _few(weights: Sequence[str]) -> str:
    return ", ".join(weights) if len(weights) <= 6 else ", ".join([*weights[:5], "..."])
