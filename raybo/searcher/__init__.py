"""Ask and tell over a space with one method, without Ray; in memory, or kept in a journal.

searcher   `Searcher`
described  what a searcher's arguments describe; a journal fills in what they leave out
kept       the journal of a searcher, open for writing
"""

from __future__ import annotations

from raybo.searcher.searcher import NO_CONTEXT, Searcher, Stream, scheduler_for, seed_for, trial_seed

__all__ = ["NO_CONTEXT", "Searcher", "Stream", "scheduler_for", "seed_for", "trial_seed"]
