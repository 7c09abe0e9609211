"""The trials that a figure draws: all of them, or as many as the eye can tell apart and a page can hold."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from raybo.record.trial import Trial
from raybo.study.study import Study

MOST = 2_000  # of one kind in one figure


def subsample(study: Study, trials: Sequence[Trial], most: int = MOST) -> list[Trial]:
    """Return at most `most` of the trials, in order: the best, a fifth of them, and an even choice of the others."""
    if len(trials) <= most:
        return list(trials)
    values = np.array([np.nan if trial.value is None else trial.value for trial in trials], dtype=np.float64)
    known = np.flatnonzero(~np.isnan(values))
    best = known[study.goal.best_first(values[known])[: most // 5]] if len(known) else known
    others = np.setdiff1d(np.arange(len(trials)), best)
    even = others[np.linspace(0, len(others) - 1, most - len(best)).astype(int)]
    return [trials[i] for i in np.sort(np.concatenate([best, even]))]


def subsample_note(trials: Sequence[Trial], most: int = MOST) -> str:
    """Return the note of a caption if not all of the trials are drawn; else empty."""
    if len(trials) <= most:
        return ""
    return f" Of the {len(trials):,} trials {most:,} are drawn: the best, and an even choice of the others."
