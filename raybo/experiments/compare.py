"""From an experiment to its results: run, judge, write."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from raybo import methods, schedulers
from raybo.common.arguments import whole_number
from raybo.common.errors import ObjectiveError
from raybo.engine.ray.connection import ray_for_study
from raybo.engine.ray.resources import workers_available
from raybo.experiments.equal_cost import at_equal_cost
from raybo.experiments.output import matplotlib_figure, write
from raybo.experiments.plan import Claim, Experiment, Measure
from raybo.experiments.results import Row, measured
from raybo.experiments.run import Run, bound_objective, run_all
from raybo.experiments.verdicts import Verdict, judge


def compare(
    experiment: Experiment,
    directory: Path,
    *,
    root: Path | None = None,
    workers: int | None = None,
    address: str | None = None,
    watch: Callable[[int, int, Run], None] | None = None,
    in_process: bool = False,
    until: float | None = None,
) -> tuple[list[Row], list[Verdict]]:
    """Run an experiment, judge its claims, and write table, curves, figure and verdicts to a directory.

    What was run before in the same directory is not run again. Problems with several metrics are measured by the
    hypervolume of the front; with constraints, values are those of feasible trials.

    Args:
        experiment: what to run.
        directory: where journals and results are kept; made if it is not there.
        root: what the problems' files are relative to; the current directory unless given.
        workers: how many studies run at a time, from 1; as many as there is room for unless given.
        address: a running Ray cluster, as for `raybo.tune`.
        watch: called with the number of finished runs, of all runs, and the run that has just finished.
        in_process: whether the studies run one after another in this process, without Ray.
        until: when to stop, by `time.monotonic()`; results are then those of the runs that are complete.
    Returns:
        a row for each run, with its measures, and a verdict for each claim on each problem that it speaks of.
    Raises:
        MethodError: a method, an option, a scheduler or the number of workers is wrong.
        ObjectiveError: an objective cannot be loaded, or problems with one metric and with several are compared.
        JournalError: a journal is another study's, or a longer run's.
        RayError: Ray cannot be reached, or cannot run the trials.
        MissingExtra: matplotlib is not installed.
        RayboError: the directory cannot be made.
    """
    if workers is not None:
        workers = whole_number(workers, "workers")
    root = Path.cwd() if root is None else root
    objectives = [bound_objective(problem, root) for problem in experiment.problems]
    for problem, objective in zip(experiment.problems, objectives, strict=True):
        for entry in experiment.entries:  # what is wrong is better said before the first run
            made = methods.make(entry.method, **entry.options_for(problem))
            methods.require_goals(made, objective.goals, has_context=objective.context is not None)
    for objective in objectives:
        for entry in experiment.entries:
            if entry.scheduler is not None:
                schedulers.make(entry.scheduler, entry.scheduler_options, objective.steps, objective.goals.names)
    matplotlib_figure()  # likewise: runs may take hours
    experiment = _measured_by(experiment, [objective.goals.k for objective in objectives])
    if not experiment.claims:
        experiment = replace(experiment, claims=pairwise(experiment))
    if in_process:
        studies = run_all(experiment, directory, root, 0, watch, until)
    else:
        with ray_for_study(address, workers and max(workers, os.cpu_count() or 1)) as ray:
            room = min(workers_available(ray.nodes(), objective) for objective in objectives)
            studies = run_all(experiment, directory, root, min(room, workers or room), watch, until)
    if experiment.per is not None:
        studies = at_equal_cost(studies, experiment.per)
    if studies:
        write(experiment, studies, directory)
    rows = measured(experiment, studies)
    return rows, judge(experiment, rows)


def _measured_by(experiment: Experiment, metrics: Sequence[int]) -> Experiment:
    """The experiment, measured by hypervolumes where its problems have several metrics."""
    if max(metrics) == 1:
        return experiment
    if min(metrics) == 1:
        raise ObjectiveError(f"{experiment.name}: problems with one metric and with several cannot be compared in one")
    if any(problem.optimum is not None for problem in experiment.problems):
        raise ObjectiveError(f"{experiment.name}: several metrics have no one optimum; leave it out")
    return replace(experiment, curve="hypervolume")


def pairwise(experiment: Experiment) -> list[Claim]:
    """Return a user's claims on their own job: each method is better than those named before it."""
    names = [entry.name for entry in experiment.entries]
    what: Measure = "final_hypervolume" if experiment.curve == "hypervolume" else "final_value"
    return [
        Claim(f"{better} ends better than {worse}", what, better, worse)
        for i, better in enumerate(names)
        for worse in names[:i]
    ]
