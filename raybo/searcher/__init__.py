"""Ask and tell over a space with one method, without Ray; in memory, or kept in a journal.

searcher   `Searcher`
proposing  the next proposal, checked, and a trial's random streams
last_verdicts  the verdicts on reports, until they are carried out
described  what a searcher's arguments describe; a journal fills in what they leave out
kept       the journal of a searcher, open for writing
priors     the earlier studies that a user gives
earlier_study  what one of them knows of this one
"""

from __future__ import annotations

from raybo.searcher.described import method_or_earlier, scheduler_for, scheduler_or_earlier, seed_for
from raybo.searcher.proposing import Stream, random_stream, trial_seed
from raybo.searcher.searcher import NO_CONTEXT, Searcher

__all__ = [
    "NO_CONTEXT",
    "Searcher",
    "Stream",
    "method_or_earlier",
    "random_stream",
    "scheduler_for",
    "scheduler_or_earlier",
    "seed_for",
    "trial_seed",
]
