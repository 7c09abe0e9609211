"""Runs a study in this process, one trial after another, without Ray: many short studies are over sooner so.

Events, their order and the proposals are those of `raybo.tune` with one worker, and each is committed before anything
follows from it: a run that was begun in one way can be continued in the other.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import raybo
from raybo.engine.driver import describe
from raybo.engine.lifecycle import Occurrence
from raybo.engine.task import run_trial
from raybo.events import COUNTED, Data, Event, Kind, State
from raybo.journal import Journal
from raybo.objectives import Objective
from raybo.study import Study


def tune_here(
    objective: Objective,
    *,
    trials: int,
    method: str,
    seed: int,
    storage: Path,
    options: Mapping[str, Any],
    between: Callable[[], None],
) -> Study:
    """Run or continue a study; arguments as those of `raybo.tune`.

    Args:
        between: called before each trial; what it raises ends the study, whose journal is whole.
    Raises:
        RayboError: an argument is wrong, or the journal is another study's.
    """
    with contextlib.closing(Journal(storage)) as journal:
        description, searcher = describe(objective, method, seed, options, journal.description)
        journal.begin(description)
        for event in journal.events:
            searcher.apply(event)
        new: list[Event] = []  # a result is committed with the proposal that follows it
        if searcher.history.planned != trials:
            new.append(searcher.plan(trials))
        for trial in searcher.trials:
            if trial.state is State.PENDING:
                reason: Data = {"reason": "the study was interrupted", "losses": 0, "attempt": trial.attempt + 1}
                new.append(searcher.apply(Event(Kind.RETRIED, trial.number, reason)))
        while True:
            pending = next((trial for trial in searcher.trials if trial.state is State.PENDING), None)
            if pending is None:
                if sum(trial.state in COUNTED for trial in searcher.trials) >= trials:
                    break
                new.append(searcher.apply(searcher.propose(searcher.history)))
                pending = searcher.trials[-1]
            journal.append(new)
            between()
            occurrence, data = run_trial(
                objective.function,
                pending.config,
                objective.settings,
                objective.goals,
                max(1, int(objective.num_cpus)),
                searcher.context,
            )
            kind = Kind.TOLD if occurrence is Occurrence.RETURNED else Kind.FAILED
            new = [searcher.apply(Event(kind, pending.number, {**data, "attempt": pending.attempt}))]
        journal.append(new)
    return raybo.load(storage)
