"""raybo as a search algorithm of Ray Tune: `tune.TuneConfig(search_alg=RayboSearch(), metric=..., mode=...)`.

`tune_results` says how trials that Tune ends are treated. A result under an id that was never suggested, or that has
already ended (a restart may change ids), becomes a trial of its own if the reported configuration fits the space.
"""

from __future__ import annotations

import inspect
import logging
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from raybo import methods
from raybo.common.arguments import a_list, a_name, one_of, truth, whole_number
from raybo.common.errors import JournalError, MethodError, MissingExtra, RayboError, SpaceError, install_command
from raybo.common.messages import shortened
from raybo.common.options import pointing_elsewhere
from raybo.common.refusals import refusing
from raybo.integrations.tune_limit import Limit
from raybo.integrations.tune_points import nested, parameters_of, plain, reported, whole
from raybo.integrations.tune_results import (
    TRAINING_ITERATION,
    ended,
    is_finite,
    pruned_early,
    read_end,
    read_step,
    require_each,
    require_number,
    seconds_of,
)
from raybo.integrations.tune_state import SearchState
from raybo.record.budget import Budget
from raybo.record.budget import seconds_of as seconds_of_text
from raybo.record.events import AttemptEvent, Event, Failed, Planned, Reported, Stopped, Told
from raybo.record.goals import MODES, Goals, Mode
from raybo.record.origin import Origin
from raybo.record.states import State
from raybo.searcher import Searcher as Asker
from raybo.searcher import seed_for
from raybo.searcher.priors import new_priors
from raybo.searcher.wanted import Wanted
from raybo.space import Config, Space
from raybo.space.tune import holds_domain

if TYPE_CHECKING:
    from typing_extensions import Unpack  # typing has it from Python 3.11

    from raybo.methods import AnyMethod
    from raybo.methods.keywords import MethodOptions
    from raybo.searcher.priors import Given

try:
    from ray.tune.result import DEFAULT_METRIC
    from ray.tune.search import Searcher
    from ray.tune.search.repeater import Repeater
except ImportError as missing:
    raise MissingExtra(f"Ray Tune cannot be imported ({missing}); {install_command('tune')}") from missing

PLACES = {  # of Ray Tune's arguments that are none of a search algorithm
    **dict.fromkeys(["max_concurrent", "max_concurrent_trials"], "set TuneConfig(max_concurrent_trials=N)"),
    **dict.fromkeys(["n_trials", "trials", "num_samples"], "set TuneConfig(num_samples=N)"),
    "pruner": "set TuneConfig(scheduler=...)",
    "n_jobs": "set TuneConfig(max_concurrent_trials=N)",
    "workers": "set TuneConfig(max_concurrent_trials=N)",
    "param_space": "give space, or the Tuner its param_space",
}
logger = logging.getLogger(__name__)

FILLS = 200  # random configurations tried to complete a point that was given in part
CALLS = 10  # between the searchers of Tune's that wrap this one and the method that they call
PENDING_CAP = "TUNE_MAX_PENDING_TRIALS_PG"


class RayboSearch(Searcher):
    """A Ray Tune `Searcher` that asks any of raybo's methods.

    Args:
        space: a `raybo.Space` or a Ray Tune search space; None to take `param_space` from the Tuner.
        metric: what trials report; None to take it from `TuneConfig`.
        mode: "max" or "min"; None to take it from `TuneConfig`.
        method: a method's name, see `raybo methods`.
        points_to_evaluate: configurations to run first, in order: nested, with flat keys ("model/lr"), or partial; the
            rest of a partial one is proposed.
        evaluated_rewards: known values of these points, which are then not run; None for a point that should be run.
            With several metrics or constraints, each is a dict, as trials report it.
        context: variables that each trial observes but nobody controls, declared like a space; trials report them too.
        seed: seed of every random stream; None draws one.
        where: rules that every configuration must satisfy, as in `raybo.Space`, for a Ray Tune search space.
        steps: how many iterations a whole run has, if Tune's scheduler ends trials early: raybo then learns from such a
            trial's curve, as it does from trials that it prunes itself, instead of taking as its result the value at
            which it was stopped. None to take every trial by its last value.
        metrics: instead of `metric` and `mode`, up to four metrics by name, each "max" or "min"; trials report all of
            them, and the metric and mode of `TuneConfig` must be those of one of these.
        constraints: bounds on reported numbers, by name: `{"memory": "<= 2e9"}`. As Tune's schedulers stay in charge,
            a bound that must hold at every step ends no trial, but a trial with a report that breaks it is not
            feasible.
        prior: earlier studies of the same job or of similar ones: studies, journals, or directories of journals, as for
            `raybo.tune`. The first trials are where they expect the best.
        budget: the time that all trials may take, added up, as "90s", "45m", "2h", "1h30m", "1d" or in seconds: Tune's
            `time_budget_s` times the trials at once. Proposals weigh what a trial takes, by Tune's `time_total_s`, and
            once it is used no more are made.
        options: the method's options.
    Raises:
        SpaceError: the space or a point cannot be expressed (names the path), or a prior has no parameter in common.
        JournalError: a prior cannot be read, or says nothing about this search.
        MethodError: the method, an option, the mode, the number of rewards, a reward, or the budget is wrong.

    `save` writes JSON: the events of the study and the ids of Tune's trials. `restore` replays them.

    Example:
        >>> from ray import tune
        >>> from raybo.integrations.ray_tune import RayboSearch
        >>> search = RayboSearch({"lr": tune.loguniform(1e-4, 1)}, metric="loss", mode="min", seed=0)
        >>> config = tune.TuneConfig(search_alg=search, num_samples=20, max_concurrent_trials=4)
        >>> 1e-4 <= search.suggest("a trial's id")["lr"] < 1
        True
    """

    CKPT_FILE_TMPL = "searcher-state-{}.json"

    def __init__(
        self,
        space: Space | Mapping[str, Any] | None = None,
        metric: str | None = None,
        mode: Mode | None = None,
        method: AnyMethod = "auto",
        points_to_evaluate: Sequence[Mapping[str, Any]] | None = None,
        evaluated_rewards: Sequence[float | Mapping[str, float] | None] | None = None,
        context: Space | Mapping[str, Any] | None = None,
        seed: int | None = None,
        where: Sequence[str] | str | None = None,
        steps: int | None = None,
        metrics: Mapping[str, str] | None = None,
        constraints: Mapping[str, str] | None = None,
        prior: Given = (),
        budget: float | str | None = None,
        **options: Unpack[MethodOptions],
    ) -> None:
        if {"scheduler", "scheduler_options"} & set(options):
            raise MethodError(
                "Ray Tune's own schedulers stay in charge; give TuneConfig(scheduler=...), and steps= here"
            )
        if mode is not None:
            one_of(mode, "mode", MODES)
        if metric is not None:
            metric = a_name(metric, "metric")
        with pointing_elsewhere(options, PLACES):
            made = methods.make(method, **options)
        try:
            both = (None, None) if metrics is None else (metric, mode)  # Tune may still say which
            goals = Goals.of(metrics, constraints, metric=both[0], mode=both[1])
        except ValueError as error:
            raise MethodError(str(error)) from None
        methods.require_goals(made, goals, has_context=context is not None)
        if metrics is not None:
            if metric not in (None, goals.names[0]) or mode not in (None, goals.modes[0]):
                raise MethodError("give metric and mode for one metric, or metrics for several, not both")
            metric, mode = goals.names[0], goals.modes[0]
        super().__init__(metric=metric, mode=mode)
        given = () if points_to_evaluate is None else points_to_evaluate
        listed = a_list(given, "points_to_evaluate", "configurations")
        points = [plain(point, f"points_to_evaluate, point {i}") for i, point in enumerate(listed)]
        rewards: list[Any] = [None] * len(points)
        if evaluated_rewards is not None:
            rewards = a_list(evaluated_rewards, "evaluated_rewards", "known values")
        if len(points) != len(rewards):
            raise MethodError(f"evaluated_rewards: one for each of the {len(points)} points, got {len(rewards)}")
        self._state = SearchState(
            metric=metric,
            mode=mode,
            method=methods.name_of(method),
            options=methods.options_of(method, made, options),  # plain numbers, whatever was given
            seed=None if seed is None else seed_for(seed),
            context=context if context is None or isinstance(context, Space) else Space(context),
            points=[point for point, reward in zip(points, rewards, strict=True) if reward is None],
            steps=None if steps is None else whole_number(steps, "steps"),
            declared=goals,
            budget=None if budget is None else seconds_of_text(budget),
        )
        for i, reward in enumerate(rewards if goals.is_plain else ()):
            require_number(reward, f"evaluated_rewards: number {i}")
        self._known: list[tuple[Mapping[str, Any], Any, str]] = [  # results that wait for the space
            (point, reward, "") for point, reward in zip(points, rewards, strict=True) if reward is not None
        ]
        self._space_is_read_back = False  # from a state file, where objects are known by their text only
        self._where = where
        self._prior = prior
        self._asker: Asker | None = None
        self._limit = Limit()
        self._noted: set[str] = set()
        self._begun: dict[str, float] = {}  # of pending trials: when they were suggested, by the monotonic clock
        self._seconds: dict[str, float] = {}  # and what they had taken at their last report
        self._reported: dict[str, Any] = {}  # and the iteration of that
        if space is not None:
            self._state.space = _space_of(space, where)
            self._begin()

    @property
    def metric(self) -> str | None:  # type: ignore[override]  # Tune's own is None too, until it is known
        """The metric that trials report."""
        return self._state.metric

    @property
    def mode(self) -> Mode | None:  # type: ignore[override]
        """ "max" if larger values of the metric are better, "min" if smaller ones are."""
        return self._state.mode

    # ---- what Tune calls

    @refusing(MethodError, "a search has a metric, a mode and a space")
    def set_search_properties(self, metric: str | None, mode: str | None, config: dict[str, Any], **spec: Any) -> bool:
        """Take the metric, the mode and the search space of a Tuner; False if that would be a second space.

        Raises:
            SpaceError: the space or a point cannot be expressed.
            JournalError: a restored state belongs to another space.
        """
        given = (
            _space_of(config, self._where)
            if config and (self._state.space is None or self._space_is_read_back)
            else None
        )
        if self._state.space is None and given is None:
            _space_of(config, self._where)  # raises: there is nothing to search
        if self._state.space is not None and given is None and holds_domain(config):
            return False
        self._require_the_metric_so_far(metric, mode)
        self._require_one_of_the_metrics(metric, mode)
        if self._state.declared.metrics is None:
            self._state.metric = metric or self._state.metric
            self._state.mode = cast(Mode | None, mode) or self._state.mode
        samples = spec.get("num_samples")
        if isinstance(samples, int) and samples > 0:
            self._state.samples = samples
        if given is not None:
            if self._state.space is not None and self._state.space != given:
                raise JournalError(
                    "the restored search was over another space than this Tuner's param_space, or had its parameters "
                    "in another order"
                )
            self._state.space, self._space_is_read_back = given, False
            self._begin()
        elif self._asker is None or not self._asks_for(self._state.metric, self._state.mode):
            self._begin()
        self._require_no_repeater()
        if self._limit.most is None and not self._wrappers() and PENDING_CAP not in os.environ:
            self._note(
                "cap",
                "Ray Tune starts one trial after another for a search algorithm without a limit; to start several at "
                f"once set TuneConfig(max_concurrent_trials=N), or the environment variable {PENDING_CAP}=N",
            )
        return True

    def set_max_concurrency(self, max_concurrent: int) -> bool:
        """Take the limit of `max_concurrent_trials` or a ConcurrencyLimiter.

        True: the limit is kept here, where trials under ids that a restart has changed are learned from too. False for
        a limiter that works in batches: it withholds results until the batch has ended, but only if it limits.
        """
        self._limit.most = int(max_concurrent)
        frame = inspect.currentframe()  # Tune tells the number only, and not who asks
        limiter = None if frame is None or frame.f_back is None else frame.f_back.f_locals.get("self")
        return not getattr(limiter, "batch", False)

    @refusing(MethodError, "a trial's id is text, and its result a dict")
    def suggest(self, trial_id: str) -> Config | str | None:  # type: ignore[override]  # Tune's own says less
        """Return the configuration for a trial; None while as many are pending as are allowed.

        If the budget is used, it is `Searcher.FINISHED`, by which Tune ends the search.

        Raises:
            MethodError: there is no space or no mode yet.
        """
        asker = self._ready()
        self._require_no_repeater()
        if (number := self._pending(trial_id)) is not None:
            return asker.trials[number].config  # asked twice, answered twice
        if self._limit.is_reached(self._all_pending()):
            return None
        self._plan()
        spent = self._spent()
        if spent is not None and self._state.budget is not None and spent >= self._state.budget:
            return Searcher.FINISHED
        if self._state.points:
            point, *rest = self._state.points
            config = whole(asker.space, nested(asker.space, point), self._bases())
            event = self._apply(asker.known(config, Origin.ENQUEUED))
            self._state.points = rest
        else:
            event = self._apply(asker.propose(asker.history, spent=spent))
        self._state.trials[trial_id] = number = cast(int, event.trial)
        if self._state.budget is not None:
            self._begun[trial_id] = time.monotonic()
        return asker.trials[number].config

    @refusing(MethodError, "a trial's id is text, and its result a dict")
    def on_trial_result(self, trial_id: str, result: Mapping[str, Any]) -> None:
        """Keep the last good report of a running trial, in case it is stopped. Never raises."""
        self._limit.note_sign_of(trial_id)
        try:
            if self._asker is not None and self._pending(trial_id) is not None:
                self._reported[trial_id] = result.get(TRAINING_ITERATION)
                if (took := seconds_of(result)) is not None:
                    self._seconds[trial_id] = took
                end = self._read(trial_id, result)
                if isinstance(end, Told):
                    self._state.latest[trial_id] = end
                self._report(trial_id, result, end)
        except Exception:  # an exception here would end the user's whole experiment
            logger.exception("raybo: the report of trial %s could not be read", trial_id)

    @refusing(MethodError, "a trial's id is text, and its result a dict")
    def on_trial_complete(
        self, trial_id: str, result: Mapping[str, Any] | None = None, error: bool = False, **_: Any
    ) -> None:
        """Learn how a trial ended, by the table in `tune_results`. Never raises; the trial is never left pending."""
        latest = self._state.latest.pop(trial_id, None)
        self._limit.note_sign_of(trial_id)
        number = self._pending(trial_id)
        try:
            if self._asker is None:
                return
            if number is None:
                self._learn_stray(trial_id, result, error)
            else:
                end = self._read(trial_id, result, error, latest)
                if not error:
                    last = (result or {}).get(TRAINING_ITERATION)  # of a trial that is ended, it was not reported
                    by_itself = last is not None and last == self._reported.pop(trial_id, None)
                    self._report(trial_id, result or {}, end)
                    trial, goals = self._asker.trials[number], self._asker.goals
                    end = end if by_itself else pruned_early(trial, result or {}, end, goals, self._state.steps)
                if isinstance(end, Failed) and not error:  # Tune itself looks at one metric only, if at any
                    self._note("lacking", f"trial {trial_id} counts as failed: {end.reason}")
                self._apply(replace(end, trial=number, seconds=self._took(trial_id, result, end)))
                for abandoned in self._limit.abandoned():
                    reason = "Ray Tune did not resume it"
                    self._apply(Stopped(self._state.trials[abandoned], reason=reason))
        except Exception as reason:  # an exception here would end the user's whole experiment
            logger.exception("raybo: the result of trial %s could not be taken in", trial_id)
            if number is not None and self._pending(trial_id) is not None:
                self._apply(Failed(number, reason=f"its result could not be taken in: {reason!r}"))

    @refusing(MethodError, "a trial's id is text, and its result a dict")
    def on_pause(self, trial_id: str) -> None:
        """A paused trial stays pending."""

    @refusing(MethodError, "a trial's id is text, and its result a dict")
    def on_unpause(self, trial_id: str) -> None:
        """A paused trial stays pending."""

    # ---- what users call

    @refusing(MethodError, "a point is a configuration, and its value a number")
    def add_evaluated_point(
        self,
        parameters: Mapping[str, Any],
        value: float | Mapping[str, float] | None,
        error: bool = False,
        pruned: bool = False,
        intermediate_values: Sequence[float] | None = None,
    ) -> None:
        """Add a result known from elsewhere: a failed point if `error`, or if there is no finite value.

        A pruned point counts with its value, or else with the last finite one of its intermediate values.

        Raises:
            SpaceError: the configuration does not fit the space; raised as soon as there is a space.
            MethodError: the value is not a number, or `error` or `pruned` is not a truth value.
        """
        error, pruned = truth(error, "error"), truth(pruned, "pruned")
        if self._state.goals.is_plain and not error:
            require_number(value, "value")
        if pruned and not is_finite(value):
            value = next((v for v in reversed(intermediate_values or ()) if is_finite(v)), value)
        self._known.append((plain(parameters, "parameters"), value, "it failed elsewhere" if error else ""))
        if self._asker is not None:
            self._add_known()

    @refusing(MethodError, "a point is a configuration, and its value a number")
    def add_evaluated_points(
        self, points: Sequence[Mapping[str, Any]], values: Sequence[float | Mapping[str, float] | None]
    ) -> None:  # the plural of Tune's function
        """Add results known from elsewhere, as many values as points.

        Raises:
            SpaceError: as in `add_evaluated_point`.
            MethodError: there are not as many values as points, or a value is not a number.
        """
        points = a_list(points, "points", "configurations")
        values = a_list(values, "values", "known values")
        if len(points) != len(values):
            raise MethodError(f"values: one for each of the {len(points)} points, got {len(values)}")
        for point, value in zip(points, values, strict=True):
            self.add_evaluated_point(point, value)

    def save(self, checkpoint_path: str) -> None:
        """Write the state as JSON, with as much of a subclass's own attributes as JSON can hold."""
        known = vars(RayboSearch())
        own = {name: value for name, value in vars(self).items() if name not in known}
        replace(self._state, attributes=own).write(Path(checkpoint_path))

    def restore(self, checkpoint_path: str) -> None:
        """Restore a saved state; what this search was made with is replaced, except its points and its space's objects.

        Raises:
            JournalError: the file is not a saved state, or belongs to another space than the one given here.
        """
        given, saved = self._state, SearchState.read(Path(checkpoint_path))
        if given.space is not None and saved.space is not None and given.space != saved.space:
            raise JournalError(
                f"{checkpoint_path}: it was saved with another space than the one given, or with its parameters in "
                "another order"
            )
        self._space_is_read_back = given.space is None and saved.space is not None
        # a point given here too is taken from here, with its objects
        run = len(given.points) - len(saved.points)
        points = given.points[run:] if run >= 0 else saved.points
        self._state = replace(saved, space=given.space or saved.space, points=points, attributes={})
        self._known, self._asker = [], None
        vars(self).update(saved.attributes)
        if self._state.space is not None:
            self._begin()
        self._limit.restore(self._all_pending())

    # ---- inside

    def _begin(self) -> None:
        """Make the searcher, replay what is known, and check the points."""
        assert self._state.space is not None
        if self._state.mode is None:
            return  # until set_search_properties says it
        if self._state.metric is None:
            self._state.metric = DEFAULT_METRIC  # what Tune calls the value of a function that returns a bare number
        asker = Asker.of(self._state.description(self._state.space, seed_for(self._state.seed)))
        for event in self._state.events:
            asker.apply(event)
        self._asker, self._state.seed = asker, asker.seed
        for earlier in new_priors(self._prior, Wanted.by(asker.description), asker.history.priors):
            self._apply(earlier)
        self._prior = ()  # what they know is among the events
        bases = list(asker.space.sample(np.random.default_rng(0), FILLS))
        for i, point in enumerate(self._state.points):
            try:
                whole(asker.space, nested(asker.space, point), bases)
            except RayboError as error:
                raise type(error)(f"points_to_evaluate, point {i}: {error}") from None
        self._add_known()

    def _asks_for(self, metric: str | None, mode: str | None) -> bool:
        """True if the searcher has this metric and mode; None stands for any."""
        asker = self._ready()
        return metric in (None, asker.goals.names[0]) and mode in (None, asker.mode)

    def _require_the_metric_so_far(self, metric: str | None, mode: str | None) -> None:
        """JournalError if Tune wants another metric than that of the results that are known."""
        if self._asker is None or self._state.declared.metrics is not None or not self._state.events:
            return
        known, now = self._asker.goals.names[0], metric
        if known == DEFAULT_METRIC:  # it had no name until now
            now = None
        if not self._asks_for(now, mode):
            wanted = shortened(f"{mode or self._asker.mode} of {metric or known}", 300)
            raise JournalError(
                f"the search so far wanted {self._asker.mode} of {known}, but now {wanted} is asked for; give "
                "the metric and mode of before, or begin a new search"
            )

    def _require_one_of_the_metrics(self, metric: str | None, mode: str | None) -> None:
        """MethodError if Tune wants something else than the metrics that the search was given."""
        wanted = self._state.declared.metrics
        if wanted is None or metric is None or (metric in wanted and mode in (None, wanted[metric])):
            return
        metrics = ", ".join(f"{direction} {name}" for name, direction in wanted.items())
        asked = shortened(f"{mode} {metric}", 300)
        raise MethodError(f"Ray Tune wants {asked}, which is not one of the search's metrics: {metrics}")

    def _ready(self) -> Asker:
        if self._asker is None:
            lacking = (
                "search space; give space= or the Tuner's param_space"
                if self._state.space is None
                else "mode; give it metric= and mode=, as Ray Tune passes on TuneConfig's with a param_space only"
            )
            raise MethodError(f"RayboSearch has no {lacking}")
        return self._asker

    def _plan(self) -> None:
        asker = self._ready()
        samples, amount = self._state.samples, self._state.budget
        if samples is None and amount is None:
            return
        added = sum(trial.origin is Origin.ADDED for trial in asker.trials)
        planned, budget = None if samples is None else samples + added, None if amount is None else Budget(amount)
        if (asker.history.planned, asker.history.budget) != (planned, budget):
            self._apply(Planned(trials=planned, budget=amount))

    def _spent(self) -> float | None:
        """Return how long all trials have run; None without a budget."""
        if self._state.budget is None:
            return None
        return sum(record.seconds or 0.0 for record in self._ready().history.records)

    def _took(self, trial_id: str, result: Mapping[str, Any] | None, end: AttemptEvent) -> float | None:
        """Return how long a trial has run that ends with this report, or by an earlier one, or by the clock.

        None without a budget, or if nothing says it, as of one that was stopped while it waited.
        """
        if self._state.budget is None:
            return None
        begun = self._begun.pop(trial_id, None)
        reported, told = self._seconds.pop(trial_id, None), seconds_of(result)
        if told is not None or reported is not None:
            return told if told is not None else reported
        return None if begun is None or isinstance(end, Stopped) else time.monotonic() - begun

    def _apply(self, event: Event) -> Event:
        event = self._ready().apply(event)
        self._state.events.append(event)
        return event

    def _pending(self, trial_id: str) -> int | None:
        """Return the number of Tune's trial if it is pending."""
        number = self._state.trials.get(trial_id)
        if number is None or self._asker is None or self._asker.trials[number].state is not State.PENDING:
            return None
        return number

    def _all_pending(self) -> set[str]:
        return {trial_id for trial_id in self._state.trials if self._pending(trial_id) is not None}

    def _bases(self) -> Iterator[Config]:
        """Yield configurations to complete a partial point: the method's proposal, then random ones of any branch."""
        asker = self._ready()
        yield asker.space.unpack(asker.propose(asker.history).values)
        yield from asker.space.sample(np.random.default_rng([asker.seed, len(asker.trials)]), FILLS)

    def _add_known(self) -> None:
        asker = self._ready()
        while self._known:
            point, value, failure = self._known.pop(0)
            if value is not None and not failure:
                require_each(value, asker.goals)
            config = whole(asker.space, parameters_of(asker.space, nested(asker.space, point)))
            self._add(config, ended(value, failure, asker.goals))

    def _add(self, config: Config, end: Event) -> None:
        asked = self._apply(self._ready().known(config))
        self._apply(replace(end, trial=asked.trial))

    def _read(
        self, trial_id: str, result: Mapping[str, Any] | None, error: bool = False, latest: AttemptEvent | None = None
    ) -> AttemptEvent:
        """Return the event that ends a trial; the first without a context brings a warning."""
        end, lacking = read_end(result, error, latest, self._ready().goals, self._ready().context)
        if lacking:
            self._note("context", f"trial {trial_id}: {lacking}; only its value counts")
        return end

    def _report(self, trial_id: str, result: Mapping[str, Any], end: AttemptEvent) -> None:
        """Record a step, if it is new and counts."""
        asker, number = self._ready(), cast(int, self._pending(trial_id))
        data = read_step(result, end, asker.goals, self._state.steps)
        if data is not None and data["step"] > asker.history.records[number].step:
            self._apply(Reported.of(number, data))

    def _learn_stray(self, trial_id: str, result: Mapping[str, Any] | None, error: bool) -> None:
        """Learn from a result under an id that was never suggested, or that has ended without a value."""
        asker = self._ready()
        number = self._state.trials.get(trial_id)
        if error or not result or (number is not None and asker.trials[number].state is State.FINISHED):
            return
        end, config = self._read(trial_id, result), reported(asker.space, result)
        if isinstance(end, Told) and config is None and number is not None:
            config = asker.trials[number].config
        if isinstance(end, Told) and config is not None:
            self._state.trials[trial_id] = len(asker.trials)
            self._add(config, end)

    def _require_no_repeater(self) -> None:
        """MethodError if a Repeater asks for several metrics or constraints."""
        declared = self._state.declared
        if (declared.metrics or declared.constraints) and any(isinstance(one, Repeater) for one in self._wrappers()):
            raise MethodError("a Repeater passes on the mean of one metric; leave it out, or metrics and constraints")

    def _wrappers(self) -> list[Searcher]:
        """Return the searchers of Tune's that ask for this one, as Tune does not tell; none if it asks itself."""
        found, frame = list[Searcher](), inspect.currentframe()
        for _ in range(CALLS):
            frame = None if frame is None else frame.f_back
            asks = None if frame is None else frame.f_locals.get("self")
            if isinstance(asks, Searcher) and asks is not self:
                found.append(asks)
        return found

    def _note(self, about: str, text: str) -> None:
        if about not in self._noted:
            self._noted.add(about)
            logger.warning("raybo: %s", text)


def _space_of(given: Space | Mapping[str, Any], where: Sequence[str] | str | None) -> Space:
    if isinstance(given, Space):
        if where:
            raise SpaceError("where: a raybo.Space has its own rules; give them there")
        return given
    return Space.from_tune(given, where)
