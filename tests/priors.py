"""Studies as priors of other studies: made in memory, and written as journals."""

from __future__ import annotations

import contextlib

from raybo.journal import Journal
from raybo.record.events import Failed, Told
from raybo.searcher import Searcher
from raybo.space import Space
from raybo.study.study import Study


def run(searcher, job, trials, fails=lambda config: False):
    """The events of so many trials of a searcher; `job` gives a configuration's value."""
    events = []
    for _ in range(trials):
        asked = searcher.apply(searcher.propose(searcher.history))
        config = searcher.trials[asked.trial].config
        end = Failed(asked.trial, reason="no") if fails(config) else Told(asked.trial, value=float(job(config)))
        events += [asked, searcher.apply(end)]
    return events


def study(space, job, trials=25, method="auto", mode="min", seed=0, **more):
    """A study that has run so many trials."""
    searcher = Searcher(Space(space), method, mode, seed)
    return Study(searcher.description, run(searcher, job, trials, **more))


def written(path, given):
    """The journal of a study."""
    with contextlib.closing(Journal(path, given.description)) as journal:
        journal.append(given.events)
    return path
