"""Runs a study in this process, one trial after another, without Ray, which is quicker for many short studies.

Events, their order and the proposals are those of `raybo.tune` with one worker, and each is committed before anything
follows from it: a run that was begun in one way can be continued in the other.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import raybo
from raybo.common.errors import ObjectiveError
from raybo.engine.description import searcher_for
from raybo.engine.lifecycle import Occurrence
from raybo.engine.outlet import Outlet
from raybo.engine.study.verdicts import missing_verdicts, with_value
from raybo.engine.trial.checkpoints import Checkpoints
from raybo.engine.trial.report_sender import Answer, AttemptInfo, ReportSender
from raybo.engine.trial.task import run_trial
from raybo.job.cheap_version import with_cheap_versions
from raybo.job.objective import Objective
from raybo.journal import Journal
from raybo.journal.side_files import CHECKPOINTS, trial_directory
from raybo.record.events import KINDS, Event, EventData, Kind, Reported, Resumed, Retried
from raybo.record.states import COUNTED, State
from raybo.schedulers import Verdict
from raybo.schedulers.rule import CONSTRAINT, JOB, broken_by, event_of
from raybo.searcher import Searcher
from raybo.study.study import Study


def tune_here(
    objective: Objective,
    *,
    trials: int,
    method: str,
    seed: int,
    storage: Path,
    options: Mapping[str, Any],
    between: Callable[[], None],
    scheduler: str | None = None,
    scheduler_options: Mapping[str, Any] | None = None,
) -> Study:
    """Run or continue a study; arguments as those of `raybo.tune`.

    Args:
        between: called before each trial; what it raises ends the study, whose journal is whole.
    Raises:
        RayboError: an argument is wrong, or the journal is another study's; or what a trial prints cannot be written.
        BrokenPipeError: nobody reads what a trial prints; the trial runs again when the study is continued.
    """
    if not objective.is_single:
        raise ObjectiveError(
            f"{objective.name}: trials of several processes need Ray; run some at a time, or declare one"
        )
    with contextlib.closing(Journal(storage)) as journal, Outlet() as outlet:
        rule = (scheduler, scheduler_options or {})
        searcher = searcher_for(objective, method, seed, options, journal.description, rule)
        journal.begin(searcher.description)
        for event in journal.events:
            searcher.apply(event)
        new: list[Event] = []  # a result is committed with the proposal that follows it
        if searcher.history.planned != trials:
            new.append(searcher.plan(trials))
        new += map(searcher.apply, missing_verdicts(searcher, journal.events))
        for trial in searcher.trials:
            if trial.state is State.PENDING:
                again = Retried(trial.number, reason="the study was interrupted", losses=0, attempt=trial.attempt + 1)
                new.append(searcher.apply(again))
        while True:
            number = _next(searcher, trials, new)
            if number is None:
                break
            journal.append(new)
            between()
            new = _run(objective, searcher, number, storage, journal, outlet)
        new += _end_paused(searcher)
        journal.append(new)
    return raybo.load(storage)


def _next(searcher: Searcher, trials: int, new: list[Event]) -> int | None:
    """The trial to run now: one in flight, a paused one that is promoted, or a new one; None at the end."""
    pending = next((trial.number for trial in searcher.trials if trial.state is State.PENDING), None)
    if pending is not None:
        return pending
    promoted = None if searcher.rule is None else searcher.rule.promoted(searcher.history)
    if promoted is not None:
        trial = searcher.trials[promoted]
        data: EventData = {"step": trial.step, "seen": searcher.ledger.last_event, "attempt": trial.attempt + 1}
        new.append(searcher.apply(Resumed.of(promoted, data)))
        return promoted
    if searcher.ledger.count(*COUNTED, State.PAUSED) >= trials:
        return None
    new.append(searcher.apply(searcher.propose(searcher.history)))
    return len(searcher.trials) - 1


def _run(
    objective: Objective, searcher: Searcher, number: int, storage: Path, journal: Journal, outlet: Outlet
) -> list[Event]:
    """Run a trial; returns the events of its end, which are still to be committed."""
    trial = searcher.trials[number]
    ending: list[Event] = []
    step, said = searcher.history.records[number].checkpoint or 0, trial.details.get("metrics", {})
    info = AttemptInfo(searcher.steps, True, 1, trial.checkpoint, step, said, searcher.history.judged_metric)
    checkpoints = Checkpoints(trial_directory(storage, number) / CHECKPOINTS, trial.attempt, trial.checkpoint)

    def answer(batch: list[EventData]) -> Answer:
        """As `Judge.receive`, of one step at a time, as the trial waits at each."""
        reports: list[Reported] = []
        for data in batch:
            record = searcher.history.records[number]
            is_known = data["step"] <= record.step
            reported: EventData = {**data, "attempt": trial.attempt, **({"repeated": True} if is_known else {})}
            reports.append(searcher.apply(Reported.of(number, reported)))
            verdict, rule = broken_by(reports[-1], searcher.goals), CONSTRAINT
            if searcher.rule is not None and not is_known and not verdict.prune:
                verdict, rule = searcher.rule.judge(searcher.history, number), searcher.rule.name
            if verdict.action != "go":
                event = event_of(verdict, rule, number, data["step"], reports[-1].number)
                ending.append(searcher.apply(replace(event, seconds=data["seconds"], attempt=trial.attempt)))
                journal.append([*reports, *ending])
                return Answer(verdict.action, verdict.why)
        journal.append(reports)
        return Answer(waits_at=1)

    occurrence, data = run_trial(
        with_cheap_versions(objective.function, objective.fidelity, objective.metric),
        {**trial.config, **trial.fidelity},
        objective.settings,
        objective.goals,
        max(1, int(objective.num_cpus)),
        searcher.context,
        None,
        partial(ReportSender, info, answer, checkpoints),
    )
    if ending:
        return []
    outlet.require(occurrence, data)
    if occurrence is Occurrence.RETURNED:
        kind, data = Kind.TOLD, with_value(searcher.trials[number], data, searcher.ledger.goal, objective.value)
    else:
        kind = Kind.PRUNED if occurrence is Occurrence.LEFT else Kind.FAILED
        data = {"rule": JOB, **data} if occurrence is Occurrence.LEFT else data
    return [searcher.apply(KINDS[kind].of(number, {**data, "attempt": trial.attempt}))]


def _end_paused(searcher: Searcher) -> list[Event]:
    """Prune the trials that are still paused at the end of the study."""
    verdict = Verdict("prune", "the study ended before it was its turn")
    return [
        searcher.apply(event_of(verdict, "study", trial.number, trial.step, searcher.ledger.last_event))
        for trial in searcher.trials
        if trial.state is State.PAUSED
    ]
