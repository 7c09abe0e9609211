"""Ask and tell: one method over one space, without Ray."""

from __future__ import annotations

import contextlib
import json
import time
import warnings
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import IntEnum
from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np

from raybo import methods, schedulers
from raybo.common.arguments import whole_number
from raybo.common.errors import MethodError, NumericalError, TrialError
from raybo.common.messages import first_line, shown
from raybo.common.refusals import refusing
from raybo.common.threads import limit_threads
from raybo.methods.best import Recommender, expected_gain
from raybo.methods.explaining import explain, is_proposed, reading_tags
from raybo.record.contexts import ContextFields, told_context
from raybo.record.description import Description
from raybo.record.events import (
    Asked,
    Begun,
    ContextObserved,
    EarlierStudy,
    Event,
    Failed,
    Planned,
    Pruned,
    Reported,
    Resumed,
    Retried,
    Tags,
    Told,
    TrialEvent,
)
from raybo.record.goals import Mode
from raybo.record.history import GENERATION, History, Proposal
from raybo.record.ledger import Ledger
from raybo.record.origin import Origin, origin_of
from raybo.record.results import reported, told
from raybo.record.states import State
from raybo.record.trial import Trial
from raybo.schedulers import GO, Scheduler, Verdict
from raybo.schedulers.rule import JOB, Rule, broken_by, event_of
from raybo.searcher.described import described, scheduler_for
from raybo.space import Array, Row, Space

if TYPE_CHECKING:
    from pathlib import Path

    from typing_extensions import Self, Unpack  # typing has them from Python 3.11

    from raybo.methods.keywords import MethodOptions
    from raybo.searcher.kept import Kept
    from raybo.searcher.priors import Given

E = TypeVar("E", bound=Event)

NO_CONTEXT = "its context is not known; its value counts, but nothing is learned from it about contexts"


class Stream(IntEnum):
    """The purposes of a trial's random streams; a number, once used, keeps its purpose."""

    PROPOSAL = 0
    FALLBACK = 1
    TRIAL = 2  # of the job's own, as `current_trial().seed`


def trial_seed(study: int, number: int) -> int:
    """The seed that a trial is given for its own random numbers, below 2**32: the same at every attempt."""
    return int(np.random.SeedSequence(study, spawn_key=(number, Stream.TRIAL)).generate_state(1)[0])


OF_TRIAL = "a trial is its number or what ask returned, and goes with a value, a text or a context as declared"


class Searcher:
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
        scheduler: the name of the rule that ends trials early, see `raybo schedulers`, or your own, as for a method;
            None for no rule.
        scheduler_options: its options.
        generation: which version of the methods' and schedulers' rules to use, None for the newest; 1 for a study
            started with raybo 0.1, 2 with 0.2.
        storage: the journal, an SQLite file that is made if it is not there; None keeps the trials in memory only. See
            below.
        prior: earlier studies of the same job or of like ones: studies, journals, directories of journals, or "auto"
            for those that fit beside `storage`. The first trials are where they expect the best. Their values are
            compared within each of them alone.
        options: the method's options.
    Raises:
        SpaceError: the space or the context is not valid, there is no space, or a prior has no parameter in common.
        MethodError: the method, the scheduler, an option, the mode, the seed, a metric, a constraint, or the number of
            trials or steps is wrong; the method needs a context, or does not support several metrics or constraints; or
            the scheduler needs steps.
        JournalInUse: another process, or another searcher, is writing the journal.
        JournalError: the journal cannot be written, or is about another study; a prior cannot be read, or says nothing
            of this study.
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
        **options: Unpack[MethodOptions],
    ) -> None:
        kept = None if storage is None else _kept(storage)
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
            )
            self._begin(description, made, rule)
            priors = [] if isinstance(prior, tuple) and not prior else _priors(prior, description, kept)
            if kept is not None:
                kept.begin(description)
                self._replay(kept.events)
            self._kept = kept  # from here on, events are written
            for earlier in priors:
                self.apply(earlier)
            self._commit()
            if trials is not None and whole_number(trials, "trials") != self.ledger.planned:
                self.plan(trials)
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
            method = methods.make(description.method, **description.options)
        if scheduler is None:
            scheduler = scheduler_for(
                description.scheduler, description.scheduler_options, description.steps, description.goals
            )
        searcher = cls.__new__(cls)
        searcher._begin(description, method, scheduler)
        return searcher

    def _begin(self, description: Description, method: methods.Method, scheduler: Scheduler | None) -> None:
        """Begin with no trials, after a check that the method can do what is described."""
        if description.context is None and method.needs_context:
            raise MethodError(f"{methods.label(method)} needs a context; declare one beside the space, or use gp-ucb")
        methods.require_goals(method, description.goals, has_context=description.context is not None)
        if description.generation > GENERATION:
            raise MethodError(f"generation must be from 1 to {GENERATION}, got {shown(description.generation)}")
        self.description, self.method = description, method
        self.space, self.context, self.goals = description.space, description.context, description.goals
        self.mode, self.seed, self.steps = description.mode, description.seed, description.steps
        name = description.scheduler
        self.rule = None if scheduler is None or name is None else Rule(name, scheduler)
        judged = None if self.rule is None else self.rule.metric
        self.ledger = Ledger(self.space, self.goals, self.context, self.steps, judged, description.generation)
        self.history = self.ledger.history
        self.trials = self.ledger.trials
        self._recommender = Recommender(self.ledger)
        self._warned = False
        self._enqueued: deque[int] = deque()  # what the user wants to be run next, and nobody was given yet
        # the last verdict on each trial, the last event that it had seen, and whose it is
        self._verdicts: dict[int, tuple[Verdict, int, str]] = {}

    def _replay(self, events: Sequence[Event]) -> None:
        """Take in a journal's events, with the verdict on each trial's last report if nothing has followed it."""
        last = {event.trial: event for event in events}
        begun = {event.trial for event in events if isinstance(event, TrialEvent) and not isinstance(event, Asked)}
        for event in events:
            self.ledger.apply(event)
            if isinstance(event, Reported) and last[event.trial] is event and not event.repeated:
                self._judge(event)
        self._enqueued.extend(
            trial.number for trial in self.pending if trial.origin is Origin.ENQUEUED and trial.number not in begun
        )

    def close(self) -> None:
        """Close the journal, so that others may write it. Does nothing without one, and the second time."""
        if self._kept is not None:
            self._kept.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def plan(self, trials: int) -> Event:
        """Say how many trials the study will run in total; MethodError if it is not a whole number from 1."""
        event = self.apply(Planned(trials=whole_number(trials, "trials")))
        self._commit()
        return event

    @property
    def pending(self) -> list[Trial]:
        """The trials that were asked for and have not ended, in order; those of earlier processes too."""
        return [self.trials[number] for number in self.history.records.numbers(State.PENDING).tolist()]

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
            TrialError: n is not a whole number from 1, no context is declared, or the one given does not match it.
            JournalError: the journal cannot be written.
        """
        if isinstance(n, Mapping):
            n, context = None, n
        numbers = [self._next(context) for _ in range(1 if n is None else whole_number(n, "ask: n", error=TrialError))]
        self._commit()
        return self.trials[numbers[0]] if n is None else [self.trials[number] for number in numbers]

    @refusing(TrialError, OF_TRIAL)
    def tell(
        self, trial: Trial | int, value: float | Mapping[str, Any], context: Mapping[str, Any] | None = None
    ) -> Trial:
        """Tell the result of a trial, with the context that it observed; trials may be told in any order.

        With several metrics or constraints, the result is a dict with a number for each of them. Of whatever else is
        in it, up to 50 items are kept in `trial.details["metrics"]`, as they are of what a job returns to `tune`:
        numbers, text of up to 1,000 characters, and lists, dicts and arrays of up to 10 kB as JSON. What JSON cannot
        hold is left out.

        If a context is declared but none is given, the trial's value counts, but nothing is learned from it about
        contexts; the first such trial raises a warning.

        Raises:
            TrialError: the trial is unknown or not pending, a number that is needed is missing or not finite (`fail`
                such a trial), no context is declared, or this one does not match the declared one.
        """
        number = self._pending(trial)
        ended = self._apply(Told(number, **told(value, number, self.goals), **self._read(context, number)))
        if self.context is not None and ended.context is None and not self._warned:
            self._warned = True
            warnings.warn(f"trial {number}: {NO_CONTEXT}", stacklevel=2)
        return ended

    @refusing(TrialError, OF_TRIAL)
    def fail(self, trial: Trial | int, reason: str, context: Mapping[str, Any] | None = None) -> Trial:
        """Say that a trial ended without a value. This is data for the method, not an error; its context counts too.

        Raises:
            TrialError: the trial is unknown or not pending, no context is declared, or this one does not match the
                declared one.
        """
        number = self._pending(trial)
        return self._apply(Failed(number, reason=str(reason), **self._read(context, number)))

    @refusing(TrialError, OF_TRIAL)
    def report(self, trial: Trial | int, value: float | Mapping[str, Any], step: int | None = None) -> Verdict:
        """Report the result of one step of a trial; returns the verdict on whether the trial should continue.

        It should continue unless the verdict says `prune` or `pause`; the methods of these names carry them out. A
        report that breaks a constraint that must hold at every step gets the verdict `prune`, whatever the scheduler
        says; a trial that is told a result all the same is not feasible.

        Args:
            trial: which one.
            value: what `tell` would be given if the trial ended here. With several metrics or constraints, a dict,
                which needs the first metric and the one that the scheduler uses; a plain number is the first metric's.
            step: which step, counted from 1 and increasing; None for the one after the last reported.
        Raises:
            TrialError: the trial is unknown or not pending, a number that is needed is missing or not finite, or the
                step is not a whole number, not above the earlier ones, or beyond the last of a run.
        """
        number = self._pending(trial)
        step = self._step(number, step)
        data = reported(value, number, self.goals, self.history.judged_metric)
        record = self.history.records[number]
        again: dict[str, Any] = {"attempt": record.attempt} if record.attempt > 1 else {}
        if step <= record.step:
            again["repeated"] = True
        event = self.apply(Reported(number, step=step, **data, **again))
        self._commit()
        return self._judge(event)

    def _judge(self, event: Reported) -> Verdict:
        """Return the verdict on the last report."""
        number = event.trial
        verdict, rule = broken_by(event, self.goals), JOB
        if self.rule is not None and not verdict.prune and not event.repeated:
            verdict, rule = self.rule.judge(self.history, number), self.rule.name
        self._verdicts[number] = verdict, self.ledger.last_event, rule
        return verdict

    @refusing(TrialError, OF_TRIAL)
    def prune(self, trial: Trial | int, why: str = "") -> Trial:
        """End a trial, because of the verdict on its last report or for a reason of your own.

        Raises:
            TrialError: the trial is unknown, or neither pending nor paused.
        """
        number = self.history.require(trial, *Pruned.before)
        why = "" if why is None else str(why)
        verdict, seen, rule = self._verdicts.pop(number, (GO, self.ledger.last_event, JOB))
        if why or not verdict.prune:
            return self._carry_out(
                Verdict("prune", why or "pruned by the user"), "user", number, self.ledger.last_event
            )
        return self._carry_out(verdict, rule, number, seen)

    def pause(self, trial: Trial | int) -> Trial:
        """Make a trial wait, as the verdict on its last report says; `promoted` returns it when it should continue.

        Raises:
            TrialError: the trial is unknown or not pending, or the verdict on its last report is not to pause.
        """
        number = self._pending(trial)
        verdict, seen, rule = self._verdicts.get(number, (GO, 0, JOB))
        if not verdict.pause:
            raise TrialError(f"trial {number}: no scheduler has paused it; continue it, or prune it")
        return self._carry_out(verdict, rule, number, seen)

    @refusing(TrialError, OF_TRIAL)
    def retry(self, trial: Trial | int, reason: str = "") -> Trial:
        """Say that a trial starts again, under its own number: it was interrupted, or has failed.

        It is pending, and may report from step 1 again; of the steps that it repeats nothing is learned.

        Raises:
            TrialError: the trial is unknown, or neither pending nor failed.
        """
        number = self.history.require(trial, *Retried.before)
        attempt = self.history.records[number].attempt + 1
        return self._apply(Retried(number, reason=str(reason) or "it starts again", attempt=attempt))

    def promoted(self) -> Trial | None:
        """A paused trial that should continue now and is pending again; None if you should `ask` for a new one."""
        number = None if self.rule is None else self.rule.promoted(self.history)
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

        Raises:
            SpaceError: the configuration does not fit the space.
            TrialError: a number that is needed is missing or not finite, no context is declared, or this one does not
                match the declared one.
        """
        number = len(self.trials)
        result = Told(number, **told(value, number, self.goals), **self._read(context, number))
        return self._apply(self.known(config), result)

    @property
    def recommended(self) -> Trial:
        """The trial whose configuration to use: that for which a model expects the best value, see `best_expected`.

        As with noise the best value measured is partly luck, it need not be `best`. If configurations were run again to
        confirm them, it is the one with the best mean of these runs.

        Raises:
            TrialError: as `best`.
        """
        return self._recommender.recommended

    @property
    def recommendation(self) -> str:
        """Which trial is recommended, and why, in a sentence; TrialError as `best`."""
        return self._recommender.sentence

    @property
    def best(self) -> Trial:
        """The feasible trial with the best value measured; with noise that is partly luck, and `recommended` is not.

        If a context is declared, it is the one with the best estimated expectation over it.

        A lucky context does not make a trial the best. With a context, the estimate and its standard deviation, in the
        user's units, are `best.details["expected"]` and `["expected_sd"]`, once enough trials have finished for a
        model; `best.value` is what the trial measured. If no trial has finished, it is the best of the pruned trials
        that got furthest, and its `value` is None.

        Raises:
            TrialError: no trial has finished or was pruned, none satisfies all constraints, or there are several
                metrics.
        """
        return self._recommender.best

    @property
    def best_expected(self) -> Trial:
        """The finished trial for which a model expects the best value: with noise, the luckiest is not the best.

        Its `details["expected"]` and `["expected_sd"]` hold that estimate and its standard deviation. It is `best`
        itself if a context is declared, or if too few trials have finished for a model.

        Raises:
            TrialError: no trial has finished or was pruned, none satisfies all constraints, or there are several
                metrics.
        """
        return self._recommender.best_expected

    def expected(self, trial: Trial | int) -> tuple[float, float] | None:
        """The value that a model expects of a trial's configuration, and its standard deviation, in the user's units.

        None if too few trials have finished for a model, and with several metrics. If a context is declared, the
        estimate by which `best` or `best_for` chose this trial; None for other trials.

        Raises:
            TrialError: there is no such trial.
        Example:
            >>> searcher = raybo.Searcher({"x": raybo.Float(0, 1)}, seed=0)
            >>> trials = [searcher.tell(trial, trial.config["x"]) for trial in searcher.ask(8)]
            >>> mean, sd = searcher.expected(searcher.best)
            >>> abs(mean - searcher.best.value) < 0.1
            True
        """
        return self._recommender.expected(trial)

    @property
    def front(self) -> list[Trial]:
        """The finished, feasible trials that no other dominates, ordered by the first metric, best first."""
        return self.ledger.in_order(self.ledger.front)

    def hypervolume(self, reference: Mapping[str, float] | None = None) -> float:
        """The volume that the front dominates, in the product of the metrics' units.

        Args:
            reference: the point from which the volume is measured, by metric; by default, the worst value of each
                metric among the feasible trials.
        Raises:
            TrialError: the reference is not a finite number for each metric.
        """
        return self.ledger.hypervolume(reference)

    def best_for(self, context: Mapping[str, Any]) -> Trial:
        """The finished trial with the best estimated value in the given context; `details` as in `best`.

        Raises:
            TrialError: no trial has finished, no context is declared, or this one does not match the declared one.
        """
        return self._recommender.best_for(context)

    def explain(self, trial: Trial | int) -> str:
        """In a few words, why this trial was proposed; TrialError if there is no such trial."""
        found = trial if isinstance(trial, Trial) else self.trials[self.history.require(trial)]
        return explain(self.method, found, self.goals)

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
        number = len(history)
        spent = None if spent is None else round(spent, 6)
        history = history.with_spent(spent)
        known_first = self._read(context, number)
        if known_first:
            history = history.with_next_context(np.array(known_first["c"]))
        started, processor = time.perf_counter(), time.thread_time()
        is_tagged = history.records.are_tagged
        reading = reading_tags(f"trial {number}: the tags before it") if is_tagged else contextlib.nullcontext()
        with limit_threads(1), reading:
            try:
                rng, seen = self._stream(number, Stream.PROPOSAL), methods.seen(self.method, history)
                proposal = _guessed(history) or _expected_best(seen, rng) or self.method.propose(seen, rng)
            except NumericalError as error:  # the study goes on, and the tags say why this point
                rng = self._stream(number, Stream.FALLBACK)
                proposal = Proposal(history.cube.uniform(rng, 1)[0], tags={"fallback": str(error)})
        taken = time.perf_counter() - started, time.thread_time() - processor
        self._require_proposal(proposal, history)
        x = self.space.snap(proposal.x[None, :])
        row = self.space.rows(x)[0]
        if origin_of(proposal.tags) is Origin.GUESSED:
            row = self.space.as_guessed(row)
        asked = self._asked(history, x, row, proposal.tags, taken, known_first)
        asked = asked if spent is None else replace(asked, spent=spent)
        if with_gain and not proposal.in_design and asked.origin is None:
            gain = expected_gain(history, x[0])
            return replace(asked, gain=gain)
        return asked

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
        row = self.space.pack(config)
        self.space.require_allowed(row)
        x = self.space.snap(self.space.points([row]))
        return self._asked(self.history, x, row, {"origin": origin, **(source or {})}, (0.0, 0.0), {})

    def apply(self, event: E) -> E:
        """Take in an event, new or from a journal; returns it with its number.

        With `storage`, the next method that says so to the user commits it.
        """
        if self._kept is None:
            return self.ledger.apply(event)
        return self._kept.add(self.ledger.apply(self._kept.ready(event)))

    def _asked(
        self, history: History, x: Array, row: Row, tags: Tags, spent: tuple[float, float], context: ContextFields
    ) -> Asked:
        return Asked(
            len(history),
            x=x[0].tolist(),
            values=row,
            tags=json.loads(json.dumps(tags)),  # what a journal would give back, from the first moment
            seen=history.last_event,
            suggest_seconds=round(spent[0], 6),
            suggest_processor_seconds=round(spent[1], 6),
            **context,
        )

    def _require_proposal(self, proposal: object, history: History) -> None:
        """MethodError if a method proposed something that is no point of the cube, or tags that no journal keeps."""
        whose = self.description.method
        if not isinstance(proposal, Proposal):
            raise MethodError(f"{whose}: propose must return a Proposal, got {shown(proposal)}")
        x = proposal.x
        if not (isinstance(x, np.ndarray) and x.shape == (history.d,) and x.dtype == np.float64):
            raise MethodError(f"{whose}: a proposal's x must be an array of {history.d} floats, got {shown(x)}")
        if not ((x >= 0.0) & (x <= 1.0)).all():
            raise MethodError(f"{whose}: a proposal's x must lie in [0, 1]^{history.d}, got {shown(x)}")
        try:
            json.dumps(proposal.tags)
        except (TypeError, ValueError) as error:
            raise MethodError(f"{whose}: a proposal's tags must be JSON: {first_line(error)}") from None

    def _stream(self, number: int, stream: Stream) -> np.random.Generator:
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(number, stream)))

    def _read(self, context: Mapping[str, Any] | None, number: int) -> ContextFields:
        """Return the fields of this trial's event for a context; none if no context is given."""
        return {} if context is None else told_context(self.context, context, f"trial {number}")

    def _step(self, number: int, step: int | None) -> int:
        """The step of a report, checked; TrialError where it is none, not above those before, or beyond the last."""
        record = self.history.records[number]
        last = record.step
        if record.attempt > 1:
            last = record.last_run[-1][0] if record.last_run and record.resumed_after is None else 0
        at = last + 1 if step is None else whole_number(step, f"trial {number}: step", error=TrialError)
        if at <= last:
            raise TrialError(f"trial {number}: steps must increase, but step {at} comes after step {last}")
        if self.steps is not None and at > self.steps:
            raise TrialError(f"trial {number}: step {at} is beyond the last step; a whole run has {self.steps}")
        return at

    def _carry_out(self, verdict: Verdict, rule: str, number: int, seen: int) -> Trial:
        return self._apply(event_of(verdict, rule, number, self.history.records[number].step, seen))

    def _pending(self, trial: Trial | int) -> int:
        return self.history.require_pending(trial)

    def _apply(self, *events: TrialEvent) -> Trial:
        """The trial after events of it, which are committed."""
        for event in events:
            self.apply(event)
        self._commit()
        return self.trials[events[-1].trial]

    def _commit(self) -> None:
        if self._kept is not None:
            self._kept.commit()

    def _next(self, context: Mapping[str, Any] | None) -> int:
        """The number of the next trial to run: one that was enqueued, or a proposal. The caller commits it."""
        if not self._enqueued:
            return self.apply(self.propose(self.history, context)).trial
        number = self._enqueued[0]
        known_first = self._read(context, number)
        self.apply(Begun(number, attempt=1))
        if known_first:
            self.apply(ContextObserved(number, **known_first))
        return self._enqueued.popleft()


def _kept(storage: Path | str) -> Kept:
    """Return the journal, opened."""
    from raybo.searcher.kept import Kept  # SQLite takes its time, and most searchers need none

    return Kept(storage)


def _priors(given: Given, description: Description, kept: Kept | None) -> list[EarlierStudy]:
    """Return what the earlier studies know that the journal does not hold yet."""
    from raybo.searcher.earlier_study import Wanted  # likewise
    from raybo.searcher.priors import new_priors

    known = [event for event in ([] if kept is None else kept.events) if isinstance(event, EarlierStudy)]
    return new_priors(given, Wanted.by(description, None if kept is None else kept.path), known)


def _expected_best(history: History, rng: np.random.Generator) -> Proposal | None:
    """The next of the first points where earlier studies expect the best; None if there is none."""
    if not history.priors:
        return None
    from raybo.methods.parts.earlier_studies import first_point

    return first_point(history, rng)


def _guessed(history: History) -> Proposal | None:
    """The point at the guesses, if there are any and nothing has been proposed yet."""
    if (x := history.cube.guess) is None or any(is_proposed(record.tags) for record in history.records):
        return None
    if any(np.array_equal(record.x, x) for record in history.records):
        return None
    return Proposal(x, {"origin": Origin.GUESSED.value})
