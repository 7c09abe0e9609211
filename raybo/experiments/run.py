"""Runs an experiment: every run is a study of its own with one worker, several studies at a time, through `raybo.tune`,
or one after another in this process.

Each run's journal is kept under the output directory, so that an experiment that was interrupted continues trial by
trial, and every run can be looked at with `raybo show`.
"""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import raybo
from raybo.common.errors import JournalError
from raybo.common.files import make_directory
from raybo.engine.description import searcher_for
from raybo.experiments.held_out import evaluate
from raybo.experiments.in_process import tune_here
from raybo.experiments.model_error import keep_model_errors
from raybo.experiments.plan import Entry, Experiment, Problem
from raybo.job.loading import load_objective
from raybo.job.objective import Objective
from raybo.journal.clean import clean_description
from raybo.record.states import COUNTED
from raybo.study.study import Study


@dataclass(frozen=True)
class Run:
    """One entry on one problem with one seed, and where its journal is."""

    problem: Problem
    entry: Entry
    seed: int
    path: Path

    def __hash__(self) -> int:
        return hash(self.path)


def runs(experiment: Experiment, directory: Path) -> list[Run]:
    """Every run of an experiment, the repeats outermost, so that an unfinished one compares its entries evenly.

    Those of costly entries come last.
    """
    return [
        Run(problem, entry, seed, directory / "runs" / file_name(problem.name) / f"{file_name(entry.name)}-{seed}.db")
        for costly in (False, True)
        for seed in range(experiment.first_seed, experiment.first_seed + experiment.repeats)
        for problem in experiment.problems
        for entry in experiment.entries
        if entry.costly == costly
    ]


def file_name(name: str) -> str:
    """A name as part of a path."""
    return re.sub(r"[^A-Za-z0-9._=-]+", "-", name).strip("-") or "unnamed"


class OutOfTime(KeyboardInterrupt):
    """The time that was given is over; what has been run so far is kept."""


def run_all(
    experiment: Experiment,
    directory: Path,
    root: Path,
    at_a_time: int,
    watch: Callable[[int, int, Run], None] | None = None,
    until: float | None = None,
) -> dict[Run, Study]:
    """Run what has not been run yet, and return every run's study.

    Args:
        experiment: what to run.
        directory: where journals are kept.
        root: directory that the problems' targets are relative to.
        at_a_time: how many studies run at the same time; Ray must be connected, with room for as many trials. 0: one
            after another in this process, without Ray.
        watch: called with the number of finished runs, of all runs, and the run that has just finished.
        until: when to stop, by the monotonic clock; then the runs that are complete are returned.
    Raises:
        RayboError: a method, an option or an objective is wrong, or a journal is another study's.
    """
    objectives = {problem.name: bound_objective(problem, root) for problem in experiment.problems}
    todo = runs(experiment, directory)
    finished: dict[Run, Study] = {}
    stopping = threading.Event()

    def stop_if_asked(status: object = None) -> None:
        if stopping.is_set():  # Ctrl-C reaches the main thread only
            raise KeyboardInterrupt
        if until is not None and time.monotonic() >= until:
            raise OutOfTime

    def add(run: Run, study: Study) -> None:
        finished[run] = study
        if watch is not None:
            watch(len(finished), len(todo), run)

    if at_a_time == 0:
        for run in todo:
            with contextlib.suppress(OutOfTime):  # later ones may be complete
                add(run, _run(run, objectives[run.problem.name], stop_if_asked, in_process=True))
        return finished
    with ThreadPoolExecutor(at_a_time) as pool:
        pending = {pool.submit(_run, run, objectives[run.problem.name], stop_if_asked): run for run in todo}
        try:
            while pending:
                done, _ = wait(pending, return_when=FIRST_COMPLETED)
                for future in done:
                    run = pending.pop(future)
                    with contextlib.suppress(OutOfTime):
                        add(run, future.result())
        except BaseException:  # Ctrl-C too: the other studies must stop before it is passed on
            stopping.set()
            for future in pending:
                future.cancel()
            raise
    return {run: finished[run] for run in todo if run in finished}


def _run(run: Run, objective: Objective, stop_if_asked: Callable[..., None], in_process: bool = False) -> Study:
    """The study of a run, with what is evaluated apart from it."""
    if run.problem.seeded is not None:
        objective = objective.with_settings(**{run.problem.seeded: run.seed})
    study = _tuned(run, objective, stop_if_asked, in_process)
    if run.problem.held_out is not None:
        evaluate(study, objective, run.problem.held_out, in_process=in_process, before=stop_if_asked)
    if run.problem.model_error:
        keep_model_errors(study, objective, before=stop_if_asked)
    return study


def _tuned(run: Run, objective: Objective, stop_if_asked: Callable[..., None], in_process: bool) -> Study:
    make_directory(run.path.parent)
    study = raybo.load(run.path) if run.path.exists() else None
    if study is not None and study.events:
        _require_same(run, objective, study)
    while (trials := trials_wanted(study, run.problem.trials)) is not None:
        stop_if_asked()
        study = _continued(run, objective, trials, stop_if_asked, in_process)
    assert study is not None
    return study


def _require_same(run: Run, objective: Objective, study: Study) -> None:
    """JournalError if what is kept is a run of something else, or a longer one: it would be shown as it is.

    Under a scheduler a run may take more steps than its budget, as trials that wait are still finished.
    """
    entry, earlier = run.entry, study.description
    rule = (entry.scheduler, entry.scheduler_options or {})
    now = searcher_for(objective, entry.method, run.seed, entry.options_for(run.problem), earlier, rule)
    if different := earlier.differences(clean_description(now.description)):
        raise JournalError(
            f"{run.path}: it holds a run of something else: {'; '.join(different)}; give the same settings, or another "
            "directory with --output"
        )
    if not _spends_steps(study) and (ended := study.count(*COUNTED)) > run.problem.trials:
        raise JournalError(
            f"{run.path}: it holds {ended} trials, more than the {run.problem.trials} of this comparison; give as many "
            "trials, or another directory with --output"
        )


def _continued(
    run: Run, objective: Objective, trials: int, stop_if_asked: Callable[..., None], in_process: bool
) -> Study:
    """The study of a run with so many trials in all."""
    options = run.entry.options_for(run.problem)
    if in_process:
        return tune_here(
            objective,
            trials=trials,
            method=run.entry.method,
            seed=run.seed,
            storage=run.path,
            options=options,
            between=stop_if_asked,
            scheduler=run.entry.scheduler,
            scheduler_options=run.entry.scheduler_options,
        )
    return raybo.tune(
        objective,
        trials=trials,
        method=run.entry.method,
        seed=run.seed,
        storage=run.path,
        workers=1,
        watch=stop_if_asked,
        scheduler=run.entry.scheduler,
        scheduler_options=run.entry.scheduler_options,
        keep_checkpoints="none",
        **options,
    )


def bound_objective(problem: Problem, root: Path) -> Objective:
    """The problem's objective under its settings."""
    file, _, name = problem.target.partition(":")
    target = str(root / file) + (f":{name}" if name else "")
    return load_objective(target).with_settings(**problem.settings)


def trials_wanted(study: Study | None, budget: int) -> int | None:
    """Return how many trials a run is to have in all, as far as is known; None if it is complete.

    Where a scheduler ends trials early the budget is in steps, those of `budget` whole runs: what is saved buys further
    trials, until less than a whole run is left.
    """
    if study is None:
        return budget
    ended = study.count(*COUNTED)
    if not _spends_steps(study):
        return None if ended >= budget else budget
    if ended < (planned := max(budget, study.planned or 0)):
        return planned
    more = budget - -(-steps_spent(study) // cast(int, study.steps))
    return None if more < 1 else ended + more


def _spends_steps(study: Study) -> bool:
    """True if the budget is in steps, as a scheduler ends trials early."""
    return study.steps is not None and study.description.scheduler is not None


def steps_spent(study: Study) -> int:
    """The steps that all trials have been run for."""
    return sum(trial.step for trial in study.trials)
