"""Parts of messages: an error in one line, a short repr, numbers and times, a suggestion for a misspelt name, other
libraries' names.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence

NEAR = 0.6  # likeness, from 0 to 1, of what is offered: below it, a guess is no help

ELSEWHERE = {  # what other libraries call it: what raybo says instead
    **dict.fromkeys(["n_trials", "max_evals", "num_samples", "n_iter", "n_calls"], "raybo calls it trials"),
    **dict.fromkeys(["n_jobs", "max_concurrent_trials", "max_concurrent", "parallelism"], "raybo calls it workers"),
    **dict.fromkeys(["sampler", "algo", "search_alg", "algorithm"], "raybo calls it method, a name such as 'ei'"),
    **dict.fromkeys(["callbacks", "callback"], "raybo calls it watch, a function of a status"),
    **dict.fromkeys(["random_state", "rstate"], "raybo calls it seed"),
    **dict.fromkeys(["show_progress_bar", "show_progressbar", "verbose"], "raybo calls it watch; False shows nothing"),
    "direction": "raybo calls it mode, 'max' or 'min', given to the objective or the searcher",
    "pruner": "raybo calls it scheduler, a name such as 'asha'",
    "timeout": "raybo calls it budget, in seconds or as '2h'",
    "time_budget_s": "raybo calls it budget, in seconds or as '2h'",
    "study_name": "a study is named after its journal; raybo calls it storage",
    "load_if_exists": "a journal that exists is always continued; raybo calls it storage",
    "points_to_evaluate": "raybo calls it enqueue, a list of configurations",
    "param_space": "raybo calls it space, given to the objective",
}


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message; its type if that is empty or cannot be printed."""
    try:
        return next(line.strip() for line in str(error).splitlines() if line.strip())
    except Exception:  # noqa: BLE001  # a user's exception may raise when it is printed
        return type(error).__name__


def in_words(error: BaseException) -> str:
    """Return an error's type and the first line of its message."""
    line, kind = first_line(error), type(error).__name__
    return kind if line == kind else f"{kind}: {line}"


def shown(value: object) -> str:
    """Return the repr of a value in at most 200 characters; its type if that fails."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001  # a user's object may raise when it is printed, or be nested too deep
        return f"<{type(value).__name__}>"
    return text if len(text) <= 200 else text[:197] + "..."


def shortened(text: str, most: int = 1_500) -> str:
    """Return a message cut to a readable length in the middle: culprit and remedy are at its ends."""
    return text if len(text) <= most else f"{text[: 2 * most // 3]} ... {text[-most // 3 :]}"


def counted(number: int, thing: str) -> str:
    """Return a count with its noun: `1 trial`, `2 trials`."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def three_figures(number: float) -> str:
    """Return a number to three figures, without an exponent if it is large: `0.0123`, `45.6`, `31,000`."""
    rounded = float(f"{number:.3g}")
    return f"{rounded:,.0f}" if abs(rounded) >= 100.0 else f"{rounded:g}"


def time_in_words(seconds: float) -> str:
    """Return a duration to three figures, in the unit in which people say it: `45 s`, `12.5 min`, `3.2 h`, `5 days`."""
    for most, size, unit in ((120.0, 1.0, "s"), (7_200.0, 60.0, "min"), (172_800.0, 3_600.0, "h")):
        if seconds < most:
            return f"{three_figures(seconds / size)} {unit}"
    return f"{three_figures(seconds / 86_400.0)} days"


def time_shown(at: str) -> str:
    """Return a time of ISO 8601 as it is shown: `2026-01-31 12:00:00.000 UTC`."""
    return at.replace("T", " ").replace("+00:00", " UTC")


def nearest(name: str, known: Sequence[str]) -> str:
    """Return the end of a message about an unknown name: the likely one, or all that there are."""
    if likely := near(name, known):
        return f"; did you mean {likely!r}?"
    return f"; available: {', '.join(known)}" if known else "; it has none"


def near(name: str, known: Sequence[str], likeness: float = NEAR) -> str:
    """Return the most similar name; empty if none is similar enough."""
    spelled = {each.lower().replace("_", "-"): each for each in reversed(known)}
    matches = difflib.get_close_matches(name.lower().replace("_", "-"), spelled, n=1, cutoff=likeness)
    return spelled[matches[0]] if matches else ""
