"""Plans of comparisons: problems, methods, repeats and claims, as plain data. A paper's figure is one `Experiment`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from raybo.common.arguments import a_list, a_name, finite_number, one_of, whole_number
from raybo.common.errors import MethodError
from raybo.common.messages import shown
from raybo.searcher import seed_for

Measure = Literal[
    "final_regret",
    "cumulative_regret",
    "recommended_regret",
    "final_value",
    "processor_seconds",
    "final_held_out",
    "best_held_out",
    "mean_held_out",
    "early_held_out",
    "missed",
    "final_model_error",
    "final_inexactness",
    "final_hypervolume",
]
GREATER_IS_BETTER: frozenset[Measure] = frozenset(  # where the objective is maximised
    {"final_value", "final_hypervolume", "final_held_out", "best_held_out", "mean_held_out", "early_held_out"}
)
Curve = Literal[
    "simple_regret",
    "cumulative_regret",
    "best_value",
    "hypervolume",
    "held_out",
    "best_held_out",
    "model_error",
    "inexactness",
]


@dataclass(frozen=True)
class HeldOut:
    """The evaluation of recommendations apart from the trials, which noise and selection make look too good.

    Attributes:
        settings: the objective's keyword parameters for it, by name: fresh seeds and more episodes, say, or no noise.
        last: those that differ for the last recommendation.
        metric: what is measured, of the results' names; None for what is tuned. It has the mode of what is tuned.
    """

    settings: Mapping[str, Any]
    last: Mapping[str, Any] = field(default_factory=dict)
    metric: str | None = None


@dataclass(frozen=True)
class Problem:
    """One objective with its budget.

    Attributes:
        name: as tables and figures show it.
        target: FILE or FILE:NAME of the objective, relative to the experiment's root.
        trials: evaluations per run, from 1.
        initial: how many of them are the initial design, which cumulative regret leaves out; from 0, below `trials`.
        optimum: the best possible value, finite, in the objective's own sign; None if it is not known, and then the
            best value of any run stands for it.
        settings: the objective's keyword parameters.
        seeded: the keyword parameter that is the run's seed; None for none.
        metric: what values and regret are of, among the metrics that a trial returns: what it expects over contexts,
            say; None for what is tuned. It has the mode of what is tuned.
        held_out: how recommendations are evaluated, beside the budget; None if the trials' values are what counts.
        found_within: the simple regret, from 0, up to which the optimum counts as found; None if nobody asks.
        model_error: whether the surrogate is compared with the objective after each trial; see `model_error`.
    """

    name: str
    target: str
    trials: int
    initial: int = 0
    optimum: float | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    seeded: str | None = None
    metric: str | None = None
    held_out: HeldOut | None = None
    found_within: float | None = None
    model_error: bool = False


@dataclass(frozen=True)
class Entry:
    """One method with its options.

    Attributes:
        name: as tables and figures show it.
        method, options: as for `raybo.tune`; the method by its name, or as "package.module:Class".
        per_problem: options that differ from problem to problem.
        costly: whether it runs after all the others, which are then complete however far it gets.
        scheduler, scheduler_options: as for `raybo.tune`; the budget is then that of so many whole runs, in steps.
    """

    name: str
    method: str
    options: Mapping[str, Any] = field(default_factory=dict)
    per_problem: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    costly: bool = False
    scheduler: str | None = None
    scheduler_options: Mapping[str, Any] = field(default_factory=dict)

    def options_for(self, problem: Problem) -> dict[str, Any]:
        """The options on this problem."""
        return {**self.options, **self.per_problem.get(problem.name, {})}


@dataclass(frozen=True)
class Claim:
    """A claim: `better` has at most `factor` times the measure of `worse`, for a measure of which less is better.

    Judged problem by problem over the repeats, paired by seed, see `verdicts`.

    Attributes:
        text: the claim in words.
        measure: less is better of final_regret, cumulative_regret, recommended_regret (of the trial that the study
            calls its best), missed (1 where the optimum was not found, else 0), final_model_error, final_inexactness,
            processor_seconds (of all suggestions). These are compared by the metric's own mode, and without `factor`:
            final_value, final_hypervolume (where there are several metrics), and held-out evaluations: the last
            recommendation's (final_held_out), the best one (best_held_out), the best so far on average over the run
            (mean_held_out) and after a fifth of it (early_held_out).
        better, worse: names of entries.
        problems: names of the problems that it speaks of; empty for all.
        factor: above 0: 1 for "better than", more for "not much worse than".
        source: where the claim is made.
    """

    text: str
    measure: Measure
    better: str
    worse: str
    problems: Sequence[str] = ()
    factor: float = 1.0
    source: str = ""


@dataclass(frozen=True)
class Experiment:
    """Problems x entries x repeats, what is drawn of them, and what is claimed.

    Attributes:
        name: as `raybo reproduce` knows it.
        title: what it shows.
        problems, entries: at least one of each, every one with a name of its own.
        claims: what is judged; if there are none, `compare` claims that each entry ends better than those before it.
        repeats: runs of each entry on each problem, from 1; run r, counted from 0, has seed `first_seed` + r for every
            entry.
        curve: what the figure shows against the evaluations; "hypervolume" where the problems have several metrics.
        first_seed: from 0, see `repeats`.
        hours: about what all its runs take of one processor; the cheapest are reproduced first.
        draws_costs: whether the figure shows what suggestions cost, in place of the curves.
        per: what the runs of a problem are compared at equal amounts of: "seconds" of their trials, or a number that
            these return; None for trials.
        command: what makes its page, but for the repeats; `raybo reproduce` and its name unless given.
    Raises:
        MethodError: a number is out of its range; the curve or a measure is unknown; there is no problem or no entry,
            or two have one name; a claim speaks of what is not compared, or has a factor that its measure does not
            take; or recommendations are held out on some problems only.
    Example:
        >>> from raybo.experiments import Claim, Entry, Experiment, Problem
        >>> experiment = Experiment(
        ...     name="mine",
        ...     title="Expected improvement against random search",
        ...     problems=[Problem("My job", "job.py", trials=20)],
        ...     entries=[Entry("EI", "ei", {"initial": 5}), Entry("Random", "random")],
        ...     repeats=6,
        ...     claims=[Claim("EI ends better than chance", "final_value", "EI", "Random")],
        ... )
        >>> len(experiment.problems) * len(experiment.entries) * experiment.repeats  # studies
        12
    """

    name: str
    title: str
    problems: Sequence[Problem]
    entries: Sequence[Entry]
    repeats: int
    claims: Sequence[Claim] = ()
    curve: Curve = "best_value"
    first_seed: int = 0
    hours: float = 1.0
    draws_costs: bool = False
    command: str = ""
    per: str | None = None

    def __post_init__(self) -> None:
        a_name(self.name, "an experiment's name")
        if self.per is not None:
            a_name(self.per, f"{self.name}: per")
        for part, kind in (("problems", Problem), ("entries", Entry), ("claims", Claim)):
            items = a_list(getattr(self, part), f"{self.name}: {part}", kind.__name__)
            if wrong := [item for item in items if not isinstance(item, kind)]:
                raise MethodError(f"{self.name}: {part} must be a list of {kind.__name__}, got {shown(wrong[0])} in it")
            object.__setattr__(self, part, items)
        one_of(self.curve, f"{self.name}: curve", get_args(Curve))
        problems, entries = [problem.name for problem in self.problems], [entry.name for entry in self.entries]
        for what, names in (("problem", problems), ("method", entries)):
            if not names:
                raise MethodError(f"{self.name}: it has no {what} to compare")
            if doubled := next((name for name in names if names.count(name) > 1), None):
                raise MethodError(f"{self.name}: {what} {doubled!r} is named twice; each needs a name of its own")
        for problem in self.problems:  # what is wrong is better said before the first run
            whole_number(problem.trials, "trials")
            whole_number(problem.initial, "initial", at_least=0, at_most=problem.trials - 1)
            if problem.optimum is not None:
                finite_number(problem.optimum, "optimum")
        whole_number(self.repeats, "repeats")
        seed_for(self.first_seed)
        if len({problem.held_out is None for problem in self.problems}) > 1:
            raise MethodError(f"{self.name}: recommendations are held out on some problems; do so on all or none")
        for claim in self.claims:
            one_of(claim.measure, f"{self.name}: the measure of {claim.text!r}", get_args(Measure))
            finite_number(claim.factor, f"{self.name}: the factor of {claim.text!r}", above=0)
            if claim.factor != 1.0 and (claim.measure == "missed" or claim.measure in GREATER_IS_BETTER):
                raise MethodError(f"{self.name}: {claim.text!r}: {claim.measure} takes no factor; leave it out")
            if claim.better == claim.worse:
                raise MethodError(f"{self.name}: a claim compares {claim.better!r} with itself")
            if missing := {claim.better, claim.worse} - set(entries) or set(claim.problems) - set(problems):
                raise MethodError(f"{self.name}: a claim speaks of {min(missing)!r}, which is not compared")

    @property
    def is_held_out(self) -> bool:
        """True if recommendations are evaluated apart from the trials."""
        return self.problems[0].held_out is not None


@dataclass(frozen=True)
class Figure:
    """A figure that is computed, without runs.

    Attributes:
        name, title: as an experiment's.
        write: writes its files to a directory.
    """

    name: str
    title: str
    write: Callable[[Path], None]
