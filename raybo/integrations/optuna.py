"""raybo as a sampler of Optuna: `optuna.create_study(sampler=RayboSampler())`."""

from __future__ import annotations

import contextlib
import hashlib
import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from raybo import methods
from raybo.common.arguments import whole_number
from raybo.common.errors import MethodError, MissingExtra, install_command
from raybo.common.options import pointing_elsewhere
from raybo.record.goals import Goals
from raybo.searcher import seed_for

try:
    from optuna import Study
    from optuna.distributions import BaseDistribution
    from optuna.samplers import BaseSampler, RandomSampler
    from optuna.trial import FrozenTrial, TrialState
except ImportError:
    raise MissingExtra(f"a sampler for Optuna needs optuna: {install_command('optuna')}") from None

from raybo.integrations.optuna_spaces import ShownSpace, uniform_seed
from raybo.integrations.optuna_trials import CONSTRAINTS, Kept, params_of, searcher_of, seconds_of
from raybo.record.budget import seconds_of as seconds_of_text

if TYPE_CHECKING:
    from typing_extensions import Unpack  # typing has it from Python 3.11

    from raybo.methods import AnyMethod
    from raybo.methods.keywords import MethodOptions

PLACES = {  # of Optuna's arguments that are none of a sampler
    **dict.fromkeys(["direction", "directions", "pruner", "storage", "study_name"], "give it to create_study"),
    **dict.fromkeys(["n_jobs", "callbacks", "show_progress_bar"], "give it to study.optimize"),
    "n_trials": "give it to study.optimize; trials says how many are planned",
    "timeout": "give budget, in seconds or as '2h'",
    "n_startup_trials": "the method has a design of its own",
}
FIRST = 10  # trials, among which choices that have not been tried come first: what they open is not known yet
ROUNDS = 3  # of a proposal, while another process has kept the same meanwhile
NEIGHBOURS = 8  # trials that have just begun, of which the proposals are worked out too


class RayboSampler(BaseSampler):
    """An Optuna sampler that asks any of raybo's methods.

    A proposal is a function of the study's storage, the seed and the trial's number, and is kept with its trial: any
    number of processes may work on a study, each with a sampler of its own, and a study continues as if it had never
    been interrupted.

    Branches are known once finished trials show them: a parameter that is there only where a categorical parameter has
    certain values, or only from some value of an integer on. So the first ten trials prefer choices that have not been
    tried. Of the first trial's parameters the method proposes each alone. Where a range changes, or a parameter comes
    and goes for no reason that is seen, it is drawn at random, as Optuna's `RandomSampler` draws it.

    Several directions (two to four), constraints, what pruned trials have reported, failed trials, and those that still
    run are all used.

    Args:
        method: a method's name, see `raybo methods`, or your own, as for `raybo.Searcher`.
        seed: seed of every random stream; None to derive it from the study's name, which all its processes know.
        trials: how many trials are planned; some methods depend on it.
        constraints_func: returns the constraints of a trial, each broken if it is above 0; those of pruned trials say
            nothing to the method. Optuna 5 has `trial.set_constraint` instead.
        budget: the time that all trials may take, added up, as "90s", "45m", "2h", "1h30m", "1d" or in seconds: what
            you give to `optimize` as `timeout`, times its `n_jobs`. Proposals weigh what a trial takes, and `optimize`
            ends after the trial that uses it up; called again, it still runs one trial.
        options: the method's options.
    Raises:
        MethodError: the method or an option does not exist, the method needs a context, or the budget is not a
            duration.
        MissingExtra: Optuna is not installed.
    Example:
        >>> import optuna
        >>> from raybo.integrations.optuna import RayboSampler
        >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
        >>> study = optuna.create_study(sampler=RayboSampler(seed=0))
        >>> study.optimize(lambda trial: (trial.suggest_float("x", 0, 1) - 0.3) ** 2, n_trials=12)
        >>> study.best_value < 0.01
        True
    """

    def __init__(
        self,
        method: AnyMethod = "auto",
        *,
        seed: int | None = None,
        trials: int | None = None,
        constraints_func: Callable[[FrozenTrial], Sequence[float]] | None = None,
        budget: float | str | None = None,
        **options: Unpack[MethodOptions],
    ) -> None:
        with pointing_elsewhere(options, PLACES):
            self._method = methods.make(method, **options)
        if self._method.needs_context:
            raise MethodError(f"{methods.label(method)} needs a context, which Optuna's trials do not have; use auto")
        self._seed = None if seed is None else seed_for(seed)
        self._trials = None if trials is None else whole_number(trials, "trials")
        if constraints_func is not None:
            limited = Goals.of(constraints={"constraint": "<= 0"})
            methods.require_goals(self._method, limited, has_context=False)
        self._constraints_func = constraints_func
        self._budget = None if budget is None else seconds_of_text(budget)

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """Return the parameters that the finished trials show to belong to the space, by name."""
        return dict(_shown(study.get_trials(deepcopy=False)).distributions)

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Return the method's proposal, the parameters of its branches among it, and keep it with the trial."""
        params: dict[str, Any] = {}
        known: set[int] = set()
        for _ in range(ROUNDS):
            trials = study.get_trials(deepcopy=False)
            others = [each for each in trials if each.number != trial.number]
            shown = _shown(trials).only(search_space)
            if params and _with_params(params, others, shown) <= known:
                break
            if not shown.distributions:
                return {}
            params = self._proposed(study, trial, others, shown)
            known = _with_params(params, others, shown)
        return params

    def _proposed(
        self, study: Study, trial: FrozenTrial, others: Sequence[FrozenTrial], shown: ShownSpace
    ) -> dict[str, Any]:
        """Return the method's proposal beside the other trials, and keep it with the trial."""
        seed = self._seed_of(study, trial.number)
        searcher = searcher_of(study, others, shown, self._method, self._trials, seed, self._budget)
        spent = None if self._budget is None else sum(map(seconds_of, others))
        for number in _begun_together(others, trial.number, shown):
            searcher.seed = self._seed_of(study, number)
            searcher.apply(searcher.propose(searcher.history, spent=spent))
        searcher.seed = seed
        asked = searcher.propose(searcher.history, spent=spent)
        known = [params_of(each, shown) for each in others]
        for _ in range(NEIGHBOURS):  # the design may have come to this point while others were taken into account
            if "sobol" not in asked.tags or shown.params(asked.point) not in known:
                break
            searcher.apply(asked)
            asked = searcher.propose(searcher.history, spent=spent)
        params = shown.params(asked.point)
        first: list[str] = []
        if trial.number < FIRST:
            tried = [params_of(each, shown) for each in others if each.number < trial.number]
            for name, choices in shown.untried(tried).items():
                if name in params:
                    params[name] = choices[trial.number % len(choices)]
                    first.append(name)
        Kept(shown.to_json(params), asked.tags, shown.fingerprint, first).keep(study, trial)
        return params

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Return where the method starts, for the first trial; for others a random value."""
        seed = self._seed_of(study, trial.number, zlib.crc32(param_name.encode()))
        shown = ShownSpace({}).only({param_name: param_distribution})
        if trial.number == 0 and shown.distributions:
            searcher = searcher_of(study, [], shown, self._method, self._trials, seed)
            return shown.params(searcher.propose(searcher.history).point)[param_name]
        return RandomSampler(seed=seed).sample_independent(study, trial, param_name, param_distribution)

    def after_trial(self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None) -> None:
        """Keep what `constraints_func` says of a trial, and end `optimize` once the budget is used.

        Raises:
            ValueError: what it says is not a sequence of numbers, or holds NaN.
        """
        self._end_if_used(study, trial)
        if self._constraints_func is None or state not in (TrialState.COMPLETE, TrialState.PRUNED):
            return
        numbers = [float(number) for number in self._constraints_func(trial)]
        if any(map(math.isnan, numbers)):
            raise ValueError(f"constraints_func must return numbers, got {numbers} for trial {trial.number}")
        study._storage.set_trial_system_attr(trial._trial_id, CONSTRAINTS, numbers)

    def _end_if_used(self, study: Study, trial: FrozenTrial) -> None:
        """End `optimize` if the budget is used, with the trial that is about to be recorded as ended."""
        if self._budget is None or trial.datetime_start is None:
            return
        others = [each for each in study.get_trials(deepcopy=False) if each.number != trial.number]
        took = (datetime.now(timezone.utc) - trial.datetime_start.astimezone()).total_seconds()
        if sum(map(seconds_of, others)) + took >= self._budget:
            with contextlib.suppress(RuntimeError):  # asked and told by hand, where there is no loop to end
                study.stop()

    def explain(self, trial: FrozenTrial) -> str:
        """Return in a few words why a trial of a study with this sampler was proposed."""
        kept = Kept.of(trial)
        if kept is None:
            return "not proposed as a whole: each parameter was drawn alone, or given by the user"
        if set(kept.params) & set(trial.system_attrs.get("fixed_params", ())):
            return "given by the user, in part or as a whole"
        if "fallback" in kept.tags:
            return f"a random point, because the model failed: {kept.tags['fallback']}"
        why = self._method.explain(kept.tags)
        return f"{why}; {', '.join(kept.first)}: a choice not tried before" if kept.first else why

    def _seed_of(self, study: Study, *parts: int) -> int:
        seed = self._seed
        if seed is None:
            seed = int.from_bytes(hashlib.sha256(study.study_name.encode()).digest()[:8], "big")
        return uniform_seed(seed, *parts)


def _shown(trials: Sequence[FrozenTrial]) -> ShownSpace:
    """Return the space that the complete trials show; the pruned ones where none is complete."""
    for state in (TrialState.COMPLETE, TrialState.PRUNED):
        if ended := [trial for trial in trials if trial.state is state]:
            return ShownSpace.of(ended)
    return ShownSpace({})


def _with_params(params: Mapping[str, Any], trials: Sequence[FrozenTrial], shown: ShownSpace) -> set[int]:
    """Return the numbers of the trials that have these parameters."""
    return {trial.number for trial in trials if params_of(trial, shown) == params}


def _begun_together(trials: Sequence[FrozenTrial], number: int, shown: ShownSpace) -> list[int]:
    """Return the numbers of trials that began just before this one and whose proposals are not known yet.

    Their processes are at work on them. A proposal being a function of the storage, this one makes it as well, so that
    trials that begin together differ. One that a known proposal has overtaken may have died, and does not count.
    """
    running = [trial for trial in trials if trial.state is TrialState.RUNNING]
    waits = {trial.number for trial in running if shown.point(params_of(trial, shown)) is None}
    before = [trial for trial in trials if trial.number < number and trial.state is not TrialState.WAITING]
    last = max((trial.number for trial in before if trial.number not in waits), default=-1)
    return sorted(each for each in waits if last < each < number)[-NEIGHBOURS:]
