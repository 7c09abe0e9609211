"""Ask and tell: one method over one space, without Ray."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, overload

from raybo import methods, schedulers
from raybo.common.arguments import a_name, finite_number, whole_number
from raybo.common.errors import MethodError, TrialError
from raybo.common.refusals import refusing
from raybo.methods.findings import Findings
from raybo.record.append_only import ReadOnly
from raybo.record.budget import Budget, amount_of, require_beside_goals, used_by_trials
from raybo.record.contexts import ContextFields, told_context
from raybo.record.description import Description
from raybo.record.events import (
    Asked,
    AttemptEvent,
    Begun,
    ContextObserved,
    Event,
    Failed,
    Planned,
    Pruned,
    Reported,
    Resumed,
    Retried,
    Told,
    TrialEvent,
)
from raybo.record.fidelity import Fidelities, ran_at
from raybo.record.goals import Mode
from raybo.record.history import History
from raybo.record.ledger import Ledger
from raybo.record.origin import Origin
from raybo.record.results import reported, step_of, told
from raybo.record.states import State
from raybo.record.trial import Trial
from raybo.schedulers import Scheduler, Verdict
from raybo.schedulers.rule import JOB, Rule
from raybo.searcher.described import described, require_possible, scheduler_for
from raybo.searcher.last_verdicts import LastVerdicts
from raybo.searcher.named import enqueued, held, identity, identity_of, same_as
from raybo.searcher.proposing import named, proposed
from raybo.space import Row, Space
from raybo.space.partial import partial_row

if TYPE_CHECKING:
    from pathlib import Path

    from typing_extensions import Self, Unpack  # typing has them from Python 3.11

    from raybo.methods.keywords import MethodOptions
    from raybo.searcher.journaled import Kept
    from raybo.searcher.priors import Given

E = TypeVar("E", bound=Event)

NO_CONTEXT = "its context is not known; its value counts, but nothing is learned from it about contexts"
OF_TRIAL = "a trial is its number or what ask returned, and goes with a value, a text or a context as declared"


class Searcher(Findings):
    """Proposes configurations and learns from their results.

    Args:
        space: what to search.
        method: a method's name, see `raybo methods`, or your own: the text "package.module:Class", a class derived from
            `raybo.methods.Method`, or one made of it with its options; None for "auto".
        mode: "max" or "min": whether larger or smaller values are better, None for "max"; with several metrics, say it
            in `metrics`.
        seed: seed of every random stream; None draws one and keeps it in the attribute `seed`.
        trials: how many trials are planned; some methods depend on it.
        context: variables that each trial observes but nobody controls, declared like a space:
            `{"demand": raybo.Float(0, 1)}`.
        metrics: up to four metrics by name, each "max" or "min": `{"accuracy": "max", "seconds": "min"}`.
        constraints: bounds on the numbers given to `tell`, by name: `{"memory": "<= 2e9"}`.
        metric: the name of a single metric, None for "value"; with constraints, `tell` takes a dict that holds it.
        steps: how many steps a whole run has, if trials report as they go.
        fidelity: what makes the job cheap, `{"rows": raybo.Fidelity(1_000, 100_000)}`: each trial then says in
            `trial.fidelity` at how many rows to run it, and only a whole run can be the best.
        budget: the time that the trials may take in total, as "90s", "45m", "2h", "1h30m", "1d" or in seconds, by the
            `seconds` that `tell` is given, which it then needs; what they need in parallel is added up. Proposals weigh
            what a trial is expected to take, as those of `raybo.tune` do, and `budget_left` says what is left.
        cost: the name of a number that a trial costs, where its seconds are not it: `tell` then takes a dict that holds
            it, `{"value": 0.9, "tokens": 31_000}`, and `budget` limits its sum.
        scheduler: the name of the rule that ends trials early, see `raybo schedulers`, or your own, as for a method;
            None for no rule.
        scheduler_options: its options.
        generation: which version of the methods' and schedulers' rules to use, None for the newest; 1 for a study
            started with raybo 0.1, 2 with 0.2.
        storage: the journal, an SQLite file that is made if it is not there; None keeps the trials in memory only. See
            below.
        prior: earlier studies of the same job or of similar ones: studies, journals, directories of journals, or "auto"
            for those that fit next to `storage`. The first trials are where they expect the best. Their values are
            compared within each of them alone.
        options: the method's options.
    Attributes:
        trials: every trial, in the order in which they were asked for; it grows, and cannot be changed.
        history: the same trials as methods see them, a `raybo.methods.History`.
        space: the search space.
        context: the space of the contexts; None if none is declared.
        goals: the direction of each metric, and the constraints.
        mode: "max" or "min"; with several metrics, that of the first.
        seed: seed of every random stream, as given or drawn.
        steps: how many steps a whole run has; None if this is not declared.
        method: the method, with its options.
        rule: the scheduler (`rule.scheduler`) with its name (`rule.name`); None without one.
        description: all that is studied, as a journal keeps it; `Searcher.of` makes another searcher of it.
    Raises:
        SpaceError: the space or the context is not valid, there is no space, or a prior has no parameter in common.
        MethodError: the method, the scheduler, an option, the mode, the seed, a metric, a constraint, or the number of
            trials or steps is wrong; the method needs a context, or does not support several metrics or constraints; or
            the scheduler needs steps; or the fidelity does not go with them; or the budget is not a duration, or the
            cost is not a name other than the metric's, or has no budget.
        JournalInUse: another process, or another searcher, is writing the journal.
        JournalError: the journal cannot be written, or is about another study; a prior cannot be read, or says nothing
            about this study.
    Example:
        >>> searcher = raybo.Searcher({"x": raybo.Float(0, 1)}, mode="min", seed=0)
        >>> for _ in range(12):
        ...     trial = searcher.ask()
        ...     trial = searcher.tell(trial, (trial.config["x"] - 0.3) ** 2)
        >>> searcher.best.value < 0.01
        True

    With `storage`, whatever is asked, told or reported is on the disk before the method returns: a process that is
    killed at any moment has lost nothing, and the same lines continue the study. What an argument leaves out is then
    as the journal has it, so `raybo.Searcher(storage="loop.db")` is enough. Trials that were asked for and never told
    are `pending`: tell, `retry` or `fail` them. The journal is that of `raybo.tune`, so that `raybo.load`, `raybo show`
    and `raybo view` read it at any time; one process writes it until `close`, or the end of a `with` block.

        >>> with raybo.Searcher({"x": raybo.Float(0, 1)}, mode="min", storage="loop.db") as searcher:
        ...     trial = searcher.ask()
        >>> with raybo.Searcher(storage="loop.db") as searcher:
        ...     trial = searcher.tell(searcher.pending[0], 0.5)
        >>> raybo.load("loop.db").best.value
        0.5
    """

    _kept: Kept | None = None

    def __init__(
        self,
        space: Space | Mapping[str, Any] | None = None,
        method: methods.AnyMethod | None = None,
        mode: Mode | None = None,
        seed: int | None = None,
        trials: int | None = None,
        context: Space | Mapping[str, Any] | None = None,
        metrics: Mapping[str, str] | None = None,
        constraints: Mapping[str, str] | None = None,
        metric: str | None = None,
        generation: int | None = None,
        steps: int | None = None,
        scheduler: schedulers.AnyScheduler | None = None,
        scheduler_options: Mapping[str, Any] | None = None,
        storage: Path | str | None = None,
        prior: Given = (),
        fidelity: Fidelities | None = None,
        budget: float | str | None = None,
        cost: str | None = None,
        **options: Unpack[MethodOptions],
    ) -> None:
        kept = None
        if storage is not None:
            from raybo.searcher.journaled import Kept  # SQLite takes its time, and most searchers need none

            kept = Kept(storage)
        try:
            description, made, rule = described(
                space,
                context,
                (method, options),
                (metric, mode, metrics, constraints),
                seed,
                steps,
                (scheduler, {} if scheduler_options is None else scheduler_options),
                generation,
                kept,
                fidelity,
            )
            self._begin(description, made, rule)
            priors = []
            if not (isinstance(prior, tuple) and not prior):
                from raybo.searcher.priors import priors_of  # likewise

                priors = priors_of(prior, description, kept)
            if kept is not None:
                kept.begin(description)
                self._replay(kept.events)
            self._kept = kept  # from here on, events are written
            for earlier in priors:
                self.apply(earlier)
            planned = self.history.planned if trials is None else whole_number(trials, "trials")
            allowed = self._allowed(budget, cost)
            if (planned, allowed) != (self.history.planned, self.history.budget):
                self._plan(planned, allowed)
            if kept is not None and allowed is not None:
                self._used = used_by_trials(kept.events, allowed)
            self._commit()
        except BaseException:  # whatever ends the opening must give the lock back; it is passed on
            if kept is not None:
                kept.close()
            raise

    @classmethod
    @refusing(MethodError, "a searcher is made of a study's description, with its method and scheduler")
    def of(
        cls, description: Description, method: methods.Method | None = None, scheduler: Scheduler | None = None
    ) -> Searcher:
        """Return the searcher of a study that is described; it knows none of the study's trials.

        Args:
            description: `Study.description`.
            method: the described method, if it is made already.
            scheduler: the described scheduler, if it is made already.
        Raises:
            MethodError: the method or the scheduler, or one of its options, does not exist here.
        Example:
            >>> raybo.Searcher.of(raybo.load("job.db").description).trials
            []
        """
        if method is None:
            method = methods.make(methods.kept(description.method), **description.options)
        if scheduler is None:
            scheduler = scheduler_for(
                description.scheduler, description.scheduler_options, description.steps, description.goals
            )
        searcher = cls.__new__(cls)
        searcher._begin(description, method, scheduler)
        return searcher

    def _begin(self, description: Description, method: methods.Method, scheduler: Scheduler | None) -> None:
        """Begin with no trials, after a check that the method can do what is described."""
        require_possible(description, method)
        self.description, self.method = description, method
        self.space, self.context, self.goals = description.space, description.context, description.goals
        self.mode, self.seed, self.steps = description.mode, description.seed, description.steps
        name = description.scheduler
        self.rule = None if scheduler is None or name is None else Rule(name, scheduler)
        judged = None if self.rule is None else self.rule.metric
        self.ledger = Ledger(
            self.space, self.goals, self.context, self.steps, judged, description.generation, description.fidelity
        )
        self.history = self.ledger.history
        self.trials = ReadOnly(self.ledger.trials)
        self._warned = False
        self._used = 0.0  # of the budget, by what the trials' ends have said
        self._enqueued: deque[int] = deque()  # what the user wants to be run next, and nobody was given yet
        self._added: dict[tuple[Any, ...], deque[int]] = {}  # results in the journal that were not added again yet
        self._verdicts = LastVerdicts(self.ledger, self.rule)

    def _replay(self, events: Sequence[Event]) -> None:
        """Take in a journal's events, with the verdict on each trial's last report if nothing has followed it."""
        last = {event.trial: event for event in events}
        begun = {event.trial for event in events if isinstance(event, TrialEvent) and not isinstance(event, Asked)}
        for event in events:
            self.ledger.apply(event)
            if isinstance(event, Reported) and last[event.trial] is event and not event.repeated:
                self._verdicts.judge(event)
        self._enqueued.extend(
            trial.number for trial in self.pending if trial.origin is Origin.ENQUEUED and trial.number not in begun
        )
        for trial in held(self.trials):
            if trial.origin is Origin.ADDED:
                self._added.setdefault(identity_of(self.space, trial), deque()).append(trial.number)

    def close(self) -> None:
        """Close the journal, so that others may write it. Does nothing without one, and the second time."""
        if self._kept is not None:
            self._kept.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def plan(self, trials: int) -> Event:
        """Say how many trials the study will run in total; some methods depend on it.

        Args:
            trials: a whole number from 1.
        Returns:
            the event that says so, as a journal keeps it.
        Raises:
            MethodError: `trials` is not a whole number from 1.
            JournalError: the journal cannot be written, or this searcher is closed.
        Example:
            >>> searcher = raybo.Searcher({"x": raybo.Float(0, 1)}, seed=0)
            >>> searcher.plan(40).trials, searcher.history.planned
            (40, 40)
        """
        event = self._plan(whole_number(trials, "trials"), self.history.budget)
        self._commit()
        return event

    @property
    def budget_left(self) -> float:
        """Return what is left of the budget, in seconds or units of the cost; 0 when it is used, infinite without one.

        It is counted when a trial ends: one that is pending has used nothing yet, and the last may use more than is
        left.

        Example:
            >>> searcher = raybo.Searcher({"x": raybo.Float(0, 1)}, mode="min", budget="1m", seed=0)
            >>> while searcher.budget_left:
            ...     trial = searcher.ask()
            ...     trial = searcher.tell(trial, (trial.config["x"] - 0.3) ** 2, seconds=5 + 10 * trial.config["x"])
            >>> len(searcher.trials) < 12
            True
        """
        budget = self.history.budget
        return float("inf") if budget is None else max(0.0, budget.amount - self._used)

    @property
    def pending(self) -> list[Trial]:
        """The trials that were asked for and have not ended, in order; those of earlier processes too."""
        return [self.trials[number] for number in self.history.records.numbers(State.PENDING).tolist()]

    @property
    def waiting(self) -> list[Trial]:
        """The trials that were enqueued and that `ask` has not returned yet, in order.

        Example:
            >>> searcher = raybo.Searcher({"x": raybo.Float(0, 1)}, seed=0)
            >>> trial = searcher.enqueue({"x": 0.5})
            >>> [trial.number for trial in searcher.waiting], searcher.ask().number, searcher.waiting
            ([0], 0, [])
        """
        return [self.trials[number] for number in self._enqueued if self._waits(number)]

    @overload
    def ask(self, n: None = None, context: Mapping[str, Any] | None = None) -> Trial: ...
    @overload
    def ask(self, n: int, context: Mapping[str, Any] | None = None) -> list[Trial]: ...
    @overload
    def ask(self, n: Mapping[str, Any], context: None = None) -> Trial: ...
    def ask(
        self, n: int | Mapping[str, Any] | None = None, context: Mapping[str, Any] | None = None
    ) -> Trial | list[Trial]:
        """The next trial to run, or the next n as a list; each is pending until you tell, fail, prune or pause it.

        Several are proposed one after the other, each with knowledge of those before it, so they differ as the trials
        of parallel workers do: `trials = searcher.ask(8)`.

        Args:
            n: how many; None for a single trial instead of a list. (The context may be given in its place.)
            context: the context that these trials will have, if it is known in advance: methods for contexts then tune
                for it.
        Raises:
            TrialError: n is not a whole number from 1, no context is declared, or the one given does not match it; or
                the budget is used.
            MethodError: the method proposed something else than a point of the cube with tags that are JSON.
            JournalError: the journal cannot be written, or this searcher is closed.
        """
        if isinstance(n, Mapping):
            n, context = None, n
        if not self.budget_left:
            raise TrialError(f"the budget of {self.history.budget} is used; open a searcher with a larger one to go on")
        numbers = [self._next(context) for _ in range(1 if n is None else whole_number(n, "ask: n", error=TrialError))]
        self._commit()
        return self.trials[numbers[0]] if n is None else [self.trials[number] for number in numbers]

    def enqueue(self, config: Mapping[str, Any]) -> Trial:
        """Have a configuration run before anything else is proposed: `ask` returns it.

        Parameters that it leaves out are as the method proposes them now, with knowledge of all trials. One that was
        enqueued before is not enqueued again, so that the same lines continue a study.

        Raises:
            SpaceError: the configuration, as far as it is given, does not fit the space.
            JournalError: the journal cannot be written, or this searcher is closed.
        Example:
            >>> searcher = raybo.Searcher({"x": raybo.Float(0, 1), "y": raybo.Float(0, 1)}, seed=0)
            >>> trial = searcher.enqueue({"x": 0.25})
            >>> searcher.ask().config["x"]
            0.25
        """
        row = partial_row(self.space, config)
        if (before := same_as(self.space, self.trials, row)) is not None:
            return before
        trial = self._apply(self.enqueued(self.history, row, self._spent))
        self._enqueued.append(trial.number)
        return trial

    @refusing(TrialError, OF_TRIAL)
    def tell(
        self,
        trial: Trial | int,
        value: float | Mapping[str, Any],
        context: Mapping[str, Any] | None = None,
        seconds: float | None = None,
    ) -> Trial:
        """Tell the result of a trial, with the context that it observed; trials may be told in any order.

        With several metrics, constraints or a cost, the result is a dict with a number for each. Of whatever else is in
        it, up to 50 items are kept in `trial.details["metrics"]`, as they are of what a job returns to `tune`:
        numbers, text of up to 1,000 characters, and lists, dicts and arrays of up to 10 kB as JSON. What JSON cannot
        hold is left out.

        A trial at less than the full fidelity ends as `pruned`, with a report there and without a value.

        The seconds that it took are needed by a budget of time; they also tell what a fidelity saves, and without them
        trials are expected to take in proportion to it.

        If a context is declared but none is given, the trial's value counts, but nothing is learned from it about
        contexts; the first such trial raises a warning.

        Args:
            trial: which one, or its number.
            value: a finite number, or a dict with one for each metric and each constrained number, and for the cost,
                which is above 0.
            context: a value for each declared context, by name.
            seconds: how long it ran, from 0.
        Raises:
            TrialError: the trial is unknown or not pending, a number that is needed is missing or not finite (`fail`
                such a trial), the seconds are missing or no number from 0, no context is declared, or this one does not
                match the declared one.
            JournalError: the journal cannot be written, or this searcher is closed.
        Example:
            >>> metrics = {"accuracy": "max", "latency": "min"}
            >>> searcher = raybo.Searcher({"x": raybo.Float(0, 1)}, metrics=metrics, seed=0)
            >>> searcher.tell(searcher.ask(), {"accuracy": 0.9, "latency": 0.2}).values
            {'accuracy': 0.9, 'latency': 0.2}
        """
        number = self._pending(trial)
        took = self._took(number, seconds, with_result=True)
        if (at := self.history.records[number].fidelity) is not None:
            return self._tell_cheap(number, at, value, took)
        result = told(value, number, self.goals, cost=self.history.cost)
        ended = self._end(Told(number, **result, seconds=took, **self._read(context, number)))
        if self.context is not None and ended.context is None and not self._warned:
            self._warned = True
            warnings.warn(f"trial {number}: {NO_CONTEXT}", stacklevel=2)
        return ended

    def _tell_cheap(self, number: int, at: int, value: float | Mapping[str, Any], seconds: float | None) -> Trial:
        """End a trial that was no whole run, as `raybo.job.cheap_version` has a job end it."""
        fidelities = self.description.fidelity
        assert fidelities is not None
        said = told(value, number, self.goals, cost=self.history.cost)
        self.apply(Reported(number, step=at, **said))
        reason = ran_at(fidelities, at, self.goals.names[0], said["value"])
        return self._end(Pruned(number, reason=reason, rule=JOB, seconds=seconds, metrics=said.get("metrics")))

    @refusing(TrialError, OF_TRIAL)
    def fail(
        self,
        trial: Trial | int,
        reason: str,
        context: Mapping[str, Any] | None = None,
        seconds: float | None = None,
    ) -> Trial:
        """Say that a trial ended without a value. This is data for the method, not an error; its context counts too.

        The seconds that it took, if they are known, are counted by a budget of time.

        Args:
            trial: which one, or its number.
            reason: why, in a few words; kept as `trial.reason`.
            context: a value for each declared context, by name.
            seconds: how long it ran, from 0.
        Raises:
            TrialError: the trial is unknown or not pending, the seconds are no number from 0, no context is declared,
                or this one does not match the declared one.
            JournalError: the journal cannot be written, or this searcher is closed.
        Example:
            >>> searcher = raybo.Searcher({"x": raybo.Float(0, 1)}, seed=0)
            >>> trial = searcher.fail(searcher.ask(), "the loss is NaN")
            >>> str(trial.state), trial.reason
            ('failed', 'the loss is NaN')
        """
        number = self._pending(trial)
        took = self._took(number, seconds)
        return self._end(Failed(number, reason=_said(reason), seconds=took, **self._read(context, number)))

    @refusing(TrialError, OF_TRIAL)
    def report(self, trial: Trial | int, value: float | Mapping[str, Any], step: int | None = None) -> Verdict:
        """Report the result of one step of a trial, and get the verdict on whether it should continue.

        It should continue unless the verdict says `prune` or `pause`; the methods of these names carry them out. A
        report that breaks a constraint that must hold at every step gets the verdict `prune`, whatever the scheduler
        says; a trial that is told a result all the same is not feasible.

        Args:
            trial: which one.
            value: what `tell` would be given if the trial ended here. With several metrics or constraints, a dict,
                which needs the first metric and the one that the scheduler uses; a plain number is the first metric's.
            step: which step, counted from 1 and increasing; None for the one after the last reported, and for the first
                if the trial starts again.
        Returns:
            a `raybo.schedulers.Verdict`: `prune` and `pause` are bools, both False if the trial should continue, and
            `why` says the reason in a few words.
        Raises:
            TrialError: the trial is unknown or not pending, a number that is needed is missing or not finite, or the
                step is not a whole number, not above the earlier ones, or beyond the last of a run; or the job has
                cheap versions, which have no steps.
            MethodError: the scheduler raised, or its answer is no verdict.
            JournalError: the journal cannot be written, or this searcher is closed.
        Example:
            >>> searcher = raybo.Searcher({"x": raybo.Float(0, 1)}, steps=9, scheduler="asha", seed=0)
            >>> for _ in range(8):
            ...     trial = searcher.ask()
            ...     for step in range(1, 10):
            ...         value = trial.config["x"] * step
            ...         if (verdict := searcher.report(trial, value, step)).prune:
            ...             trial = searcher.prune(trial)
            ...             break
            ...     else:
            ...         trial = searcher.tell(trial, value)
            >>> sum(trial.state is raybo.State.PRUNED for trial in searcher.trials) > 0
            True
        """
        number = self._pending(trial)
        if self.description.fidelity is not None:
            raise TrialError(f"trial {number}: a study with a fidelity has no steps to report; tell its result")
        step = step_of(step, number, self.history)
        data = reported(value, number, self.goals, self.history.judged_metric, self.history.cost)
        record = self.history.records[number]
        again: dict[str, Any] = {"attempt": record.attempt} if record.attempt > 1 else {}
        if step <= record.step:
            again["repeated"] = True
        event = self.apply(Reported(number, step=step, **data, **again))
        self._commit()
        return self._verdicts.judge(event)

    @refusing(TrialError, OF_TRIAL)
    def prune(self, trial: Trial | int, why: str = "", seconds: float | None = None) -> Trial:
        """End a trial, because of the verdict on its last report or for a reason of your own.

        The seconds since it began, or went on, are needed by a budget of time, unless the trial is paused.

        Args:
            trial: which one, or its number.
            why: your own reason; empty for that of the last verdict if it was to prune, else "pruned by the user".
            seconds: from 0.
        Raises:
            TrialError: the trial is unknown, or neither pending nor paused; or the seconds are missing or no number
                from 0.
            JournalError: the journal cannot be written, or this searcher is closed.
        Example:
            >>> searcher = raybo.Searcher({"x": raybo.Float(0, 1)}, seed=0)
            >>> trial = searcher.prune(searcher.ask(), "it is slow")
            >>> str(trial.state), trial.reason, trial.value
            ('pruned', 'it is slow', None)
        """
        number = self.history.require(trial, *Pruned.before)
        took = self._took(number, seconds, with_result=self.trials[number].state is State.PENDING)
        return self._end(replace(self._verdicts.pruning(number, _said(why)), seconds=took))

    def pause(self, trial: Trial | int, seconds: float | None = None) -> Trial:
        """Make a trial wait, as the verdict on its last report says; `promoted` returns it when it should continue.

        The seconds since it began, or went on, are needed by a budget of time.

        Args:
            trial: which one, or its number.
            seconds: from 0.
        Raises:
            TrialError: the trial is unknown or not pending, the verdict on its last report is not to pause, or the
                seconds are missing or no number from 0.
            JournalError: the journal cannot be written, or this searcher is closed.
        Example:
            >>> promote = {"variant": "promote", "eta": 2}
            >>> space = {"x": raybo.Float(0, 1)}
            >>> searcher = raybo.Searcher(space, steps=4, scheduler="asha", scheduler_options=promote, seed=0)
            >>> trial = searcher.ask()
            >>> verdict = searcher.report(trial, 0.5)
            >>> if verdict.pause:
            ...     trial = searcher.pause(trial)
            >>> str(trial.state), trial.reason == verdict.why
            ('paused', True)
        """
        number = self._pending(trial)
        took = self._took(number, seconds, with_result=True)
        return self._end(replace(self._verdicts.pausing(number), seconds=took))

    @refusing(TrialError, OF_TRIAL)
    def retry(self, trial: Trial | int, reason: str = "") -> Trial:
        """Say that a trial starts again, under its own number: it was interrupted, or has failed.

        It is pending, and may report from step 1 again; of the steps that it repeats nothing is learned.

        Args:
            trial: which one, or its number.
            reason: why, in a few words; empty for "it starts again".
        Raises:
            TrialError: the trial is unknown, or neither pending nor failed.
            JournalError: the journal cannot be written, or this searcher is closed.
        Example:
            >>> searcher = raybo.Searcher({"x": raybo.Float(0, 1)}, seed=0)
            >>> trial = searcher.fail(searcher.ask(), "no room on the disk")
            >>> trial = searcher.retry(trial)
            >>> trial.number, trial.attempt, str(trial.state)
            (0, 2, 'pending')
        """
        number = self.history.require(trial, *Retried.before)
        attempt = self.history.records[number].attempt + 1
        return self._apply(Retried(number, reason=_said(reason) or "it starts again", attempt=attempt))

    def promoted(self) -> Trial | None:
        """A paused trial that should continue now and is pending again; None if you should `ask` for a new one.

        Its next report is of the step after the one where it was paused, unless you say another. None too if the budget
        is used, and without a scheduler.

        Raises:
            MethodError: the scheduler raised, or what it names is no paused trial.
            JournalError: the journal cannot be written, or this searcher is closed.
        Example:
            >>> promote = {"variant": "promote", "eta": 2}
            >>> space = {"x": raybo.Float(0, 1)}
            >>> searcher = raybo.Searcher(space, steps=4, scheduler="asha", scheduler_options=promote, seed=0)
            >>> for value in (0.5, 0.9, 0.1, 0.2):
            ...     trial = searcher.promoted() or searcher.ask()
            ...     if searcher.report(trial, value).pause:
            ...         trial = searcher.pause(trial)
            >>> searcher.promoted().number  # among the better half of four
            0
        """
        number = None if self.rule is None or not self.budget_left else self.rule.promoted(self.history)
        if number is None:
            return None
        return self._apply(Resumed(number, attempt=self.trials[number].attempt + 1))

    def add(
        self,
        config: Mapping[str, Any],
        value: float | Mapping[str, Any],
        context: Mapping[str, Any] | None = None,
    ) -> Trial:
        """Add a result known from elsewhere, in the form that `tell` takes, with the context observed there.

        It uses nothing of a budget. One that an earlier process has added to the journal is not added again, so that
        the same lines continue a study.

        Args:
            config: a value for each parameter.
            value: a finite number, or a dict with one for each metric and each constrained number, and for the cost.
            context: a value for each declared context, by name.
        Raises:
            SpaceError: the configuration does not fit the space.
            TrialError: a number that is needed is missing or not finite, no context is declared, or this one does not
                match the declared one.
            JournalError: the journal cannot be written, or this searcher is closed.
        Example:
            >>> searcher = raybo.Searcher({"x": raybo.Float(0, 1)}, seed=0)
            >>> trial = searcher.add({"x": 0.3}, 0.9)
            >>> str(trial.state), trial.origin.value, searcher.best.value
            ('finished', 'added', 0.9)
        """
        number = len(self.trials)
        said = told(value, number, self.goals, cost=self.history.cost)
        result = Told(number, **said, **self._read(context, number))
        asked = self.known(config)
        numbers = tuple(result.values(self.goals).values())
        if before := self._added.get(identity(self.space.pack(config), {"origin": Origin.ADDED}, numbers)):
            return self.trials[before.popleft()]
        return self._apply(asked, result)

    def __repr__(self) -> str:
        """One line: method, space, how many trials there are, and the best of them."""
        done = self.ledger.count(State.FINISHED)
        wanted = self.mode if self.goals.is_plain else str(self.goals)
        what = f"{self.description.method}, {wanted}, d={self.space.d}, seed={self.seed}"
        best = self.ledger.incumbent
        so_far = f"trials: {len(self.trials)}, finished: {done}"
        if self.goals.k > 1:
            return f"Searcher({what}; {so_far}, on the front: {len(self.ledger.front)})"
        return f"Searcher({what}; {so_far}{'' if best is None else f', best: {best.value:.6g} (trial {best.number})'})"

    # ---- what a study engine needs beside ask and tell

    def propose(
        self,
        history: History,
        context: Mapping[str, Any] | None = None,
        *,
        with_gain: bool = False,
        spent: float | None = None,
    ) -> Asked:
        """The event of asking for the next trial after this history. Changes nothing; may run in another thread.

        Args:
            history: what is known.
            context: the context that the trial will have, if it is known in advance.
            with_gain: add how much the proposal is expected to gain, unless it is one of a design or a guess.
            spent: how much of the study's budget is used, in its unit; None for what the history says.
        """
        history = history.with_spent(spent)
        known_first = self._read(context, len(history))
        return proposed(history, self.method, self.description, known_first, with_gain=with_gain)

    def known(
        self, config: Mapping[str, Any], origin: Origin = Origin.ADDED, source: Mapping[str, Any] | None = None
    ) -> Asked:
        """The event of asking for a configuration that the user names.

        Args:
            config: that configuration.
            origin: whether its value comes with it, or it is to be run.
            source: further tags that say where it is from.
        Raises:
            SpaceError: the configuration does not fit the space.
        """
        return named(self.history, self.space, config, {"origin": origin, **(source or {})})

    def enqueued(self, history: History, row: Row, spent: float | None = None) -> Asked:
        """The event of asking for a configuration that is to be run, with the rest as proposed; else like `propose`.

        Args:
            history: what is known.
            row: what is given, as `raybo.space.partial` makes it.
            spent: how much of the study's budget is used, in its unit; None for what the history says.
        Raises:
            SpaceError: it breaks a rule of the space, whatever the rest is.
        """
        return enqueued(history.with_spent(spent), self.method, self.description, row)

    def apply(self, event: E) -> E:
        """Take in an event, new or from a journal; returns it with its number.

        With `storage`, the next method that says so to the user commits it.
        """
        if self._kept is None:
            return self.ledger.apply(event)
        return self._kept.add(self.ledger.apply(self._kept.ready(event)))

    def _read(self, context: Mapping[str, Any] | None, number: int) -> ContextFields:
        """Return the fields of this trial's event for a context; none if no context is given."""
        return {} if context is None else told_context(self.context, context, f"trial {number}")

    def _pending(self, trial: Trial | int) -> int:
        return self.history.require_pending(trial)

    def _allowed(self, budget: float | str | None, cost: str | None) -> Budget | None:
        """Return the budget as given, with what is left out as the journal has it; MethodError if it makes no sense."""
        before = self.history.budget
        if cost is not None:
            require_beside_goals(a_name(cost, "cost"), self.goals.names)
        if budget is None and (cost is None or (before is not None and cost == before.cost)):
            return before
        if budget is None:
            raise MethodError("cost needs a budget; give budget too")
        cost = self.history.cost if cost is None else cost
        price = None if cost is not None or before is None else before.price
        return Budget(amount_of(budget, price is None and cost is None), price, cost)

    def _plan(self, trials: int | None, budget: Budget | None) -> Planned:
        if budget is None:
            return self.apply(Planned(trials=trials, cost=self.history.cost))
        return self.apply(Planned(trials=trials, budget=budget.amount, price=budget.price, cost=budget.cost))

    @property
    def _spent(self) -> float | None:
        """Return how much of the budget is used, in its unit; None without one."""
        return None if self.history.budget is None else self._used

    def _took(self, number: int, seconds: float | None, *, with_result: bool = False) -> float | None:
        """Return the seconds of a trial as given; TrialError if they are none, or are needed with this end."""
        if seconds is not None:
            return finite_number(seconds, f"trial {number}: seconds", at_least=0, error=TrialError)
        budget = self.history.budget
        if with_result and budget is not None and budget.cost is None:
            raise TrialError(f"trial {number}: the budget needs the seconds that it took; add seconds=12.5, say")
        return None

    def _end(self, event: AttemptEvent) -> Trial:
        """The trial after its end, or a pause, which is committed and counts towards the budget."""
        if (budget := self.history.budget) is not None:
            self._used += budget.used_by(event, self.history.records[event.trial].last_metrics)
        return self._apply(event)

    def _apply(self, *events: TrialEvent) -> Trial:
        """The trial after events of it, which are committed."""
        for event in events:
            self.apply(event)
            self._verdicts.forget(event.trial)
        self._commit()
        return self.trials[events[-1].trial]

    def _commit(self) -> None:
        if self._kept is not None:
            self._kept.commit()

    def _waits(self, number: int) -> bool:
        """Return True if nothing has come of an enqueued trial yet."""
        record = self.history.records[number]
        return record.state is State.PENDING and record.attempt == 1 and not record.step

    def _next(self, context: Mapping[str, Any] | None) -> int:
        """The number of the next trial to run: one that was enqueued, or a proposal. The caller commits it."""
        while self._enqueued and not self._waits(self._enqueued[0]):
            self._enqueued.popleft()  # the user has told it, or reported, and did not ask
        if not self._enqueued:
            return self.apply(self.propose(self.history, context, spent=self._spent)).trial
        number = self._enqueued[0]
        known_first = self._read(context, number)
        self.apply(Begun(number, attempt=1))
        if known_first:
            self.apply(ContextObserved(number, **known_first))
        return self._enqueued.popleft()


def _said(reason: object) -> str:
    """Return a reason as it is kept; None says nothing."""
    return "" if reason is None else str(reason)
