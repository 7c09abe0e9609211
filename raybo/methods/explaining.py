"""Why a trial was proposed, in a few words: by a method, by the guesses, or by a user."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Iterator
from pathlib import Path

from raybo import methods
from raybo.common.errors import TrialError
from raybo.common.messages import in_words
from raybo.record.events import Origin, Tags
from raybo.record.trial import Trial


def is_proposed(tags: Tags) -> bool:
    """Whether a trial with these tags was proposed here, by a method or by the guesses, and not named by a user."""
    return tags.get("origin") in (None, Origin.GUESSED)


def explain(method: methods.Method, trial: Trial) -> str:
    """In a few words, why the method proposed this trial."""
    if trial.origin is Origin.ADDED:
        return f"known from {trial.tags['from']}" if "from" in trial.tags else "added by the user"
    if trial.origin is Origin.ENQUEUED:
        return "asked for by the user"
    if trial.origin is Origin.CONFIRMED:
        return f"to confirm trial {trial.tags['confirms']}"
    if trial.origin is Origin.GUESSED:
        uses = method_uses_guesses(method)
        further = "the search favours its neighbourhood" if uses else "the method makes no further use of it"
        return f"where the best was guessed to lie; {further}"
    if "fallback" in trial.tags:
        return f"a random point, because the model failed: {trial.tags['fallback']}"
    with reading_tags(f"trial {trial.number}: its tags"):
        return method.explain(trial.tags)


@contextlib.contextmanager
def reading_tags(whose: str) -> Iterator[None]:
    """While a method reads tags, which nobody else can check: what it raises over tags not its own, as a TrialError.

    Args:
        whose: begins the message.
    """
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        raise TrialError(
            f"{whose} are not what the method writes ({in_words(error)}, {Path(frame.filename).name}:{frame.lineno}); "
            "was the journal changed by hand, or by another version?"
        ) from error


def method_uses_guesses(method: methods.Method) -> bool:
    """Whether a method goes on to search near a space's guesses; of others they are the first trial, and no more."""
    return bool(getattr(method, "uses_guesses", False))
