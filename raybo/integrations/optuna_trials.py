"""Optuna's trials as raybo's history, and a proposal as it is kept with its trial.

    complete   told its values; failed if one of them is infinite
    pruned     pruned, with what it reported
    failed     failed
    running    pending, once its parameters are known
    waiting    not there

A complete trial without a number for each of the study's constraints is left out, and so is one outside the space.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from optuna import Study
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from raybo.integrations.optuna_spaces import ShownSpace
from raybo.methods import AnyMethod
from raybo.record.events import Asked, Failed, Pruned, Reported, Tags, Told
from raybo.record.origin import Origin
from raybo.searcher import Searcher

KEY = "raybo:proposal"  # of a trial's system attributes, with the number of the part after it
PART = 2_000  # characters of an attribute; some databases hold no more
CONSTRAINTS = "constraints"  # where Optuna keeps a list of them, or each with its name after a colon
MOST_REPORTS = 50  # steps at which trials are looked at, evenly spaced among those reported; as many more of ends


@dataclass(frozen=True)
class Kept:
    """A proposal as it is kept with its trial.

    Attributes:
        params: what was proposed, by name; a choice by its position.
        tags: what the method must remember.
        space: the fingerprint of the space that it was proposed in.
        first: names of the parameters with a choice that had not been tried, in place of the method's.
    """

    params: dict[str, Any]
    tags: Tags
    space: str
    first: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, trial: FrozenTrial) -> Kept | None:
        """Return what is kept with a trial; None if nothing is, or not all of it is written yet."""
        parts: list[str] = []
        while (part := trial.system_attrs.get(f"{KEY}:{len(parts)}")) is not None:
            parts.append(part)
        try:
            return cls(**json.JSONDecoder().raw_decode("".join(parts))[0])  # a longer one, kept before, may go on
        except ValueError:
            return None

    def keep(self, study: Study, trial: FrozenTrial) -> None:
        """Write it to the study's storage, the first part last: without it there is nothing yet."""
        text = json.dumps(asdict(self))
        for i in reversed(range(0, len(text), PART)):
            study._storage.set_trial_system_attr(trial._trial_id, f"{KEY}:{i // PART}", text[i : i + PART])


def constraints_of(trial: FrozenTrial) -> dict[str, float]:
    """Return the constraints of a trial by name; one is broken if it is above 0."""
    numbers = dict(enumerate(trial.system_attrs.get(CONSTRAINTS) or ()))
    found = {str(i): float(number) for i, number in numbers.items()}
    prefix = f"{CONSTRAINTS}:"
    return found | {
        key.removeprefix(prefix): float(number)
        for key, number in trial.system_attrs.items()
        if key.startswith(prefix) and number is not None
    }


def searcher_of(
    study: Study,
    trials: Sequence[FrozenTrial],
    shown: ShownSpace,
    method: AnyMethod,
    planned: int | None,
    seed: int,
    budget: float | None = None,
) -> Searcher:
    """Return a searcher that knows these trials, in the order of their numbers, and a budget of their seconds.

    Raises:
        MethodError: the method does not support several metrics or constraints, or there are more than four metrics.
    """
    complete = [trial for trial in trials if trial.state is TrialState.COMPLETE]
    limits = sorted({name for trial in complete for name in constraints_of(trial)})
    is_cut = any(trial.state is TrialState.PRUNED for trial in trials)
    steps = max((_step(step) for trial in trials for step in trial.intermediate_values), default=0) if is_cut else 0
    modes = ["max" if each is StudyDirection.MAXIMIZE else "min" for each in study.directions]
    goals: dict[str, Any] = {"mode": modes[0], "metric": metric_name(0)}
    if len(modes) > 1:
        goals = {"metrics": {metric_name(i): mode for i, mode in enumerate(modes)}}
    if limits:
        goals["constraints"] = dict.fromkeys(map(limit_name, limits), "<= 0")
    searcher = Searcher(shown.space, method, seed=seed, trials=planned, steps=steps or None, budget=budget, **goals)
    looked_at = _looked_at(trials) if is_cut else set()
    for trial in trials:
        _take(searcher, shown, trial, limits, looked_at)
    return searcher


def params_of(trial: FrozenTrial, shown: ShownSpace) -> dict[str, Any]:
    """Return a trial's parameters; of one that runs those too that it is going to suggest, as far as known."""
    if trial.state.is_finished():
        return trial.params
    proposed = {} if (kept := Kept.of(trial)) is None else shown.from_json(kept.params)
    return {**proposed, **trial.system_attrs.get("fixed_params", {}), **trial.params}


def seconds_of(trial: FrozenTrial) -> float:
    """Return how long a trial ran; 0 if it has not ended, or nobody knows."""
    return 0.0 if trial.duration is None else trial.duration.total_seconds()


def metric_name(i: int) -> str:
    """Return what the i-th direction is called."""
    return f"value {i}"


def limit_name(name: str) -> str:
    """Return what a constraint is called."""
    return f"constraint {name}"


def _take(
    searcher: Searcher, shown: ShownSpace, trial: FrozenTrial, limits: Sequence[str], looked_at: set[int]
) -> None:
    """Take a trial into the searcher, if it says anything."""
    if trial.state is TrialState.WAITING:
        return
    params = params_of(trial, shown)
    x = shown.point(params)
    numbers: dict[str, float] = {}
    if trial.state is TrialState.COMPLETE:
        numbers = {metric_name(i): value for i, value in enumerate(trial.values)}
        constraints = constraints_of(trial)
        if not set(constraints) >= set(limits):
            return
        numbers |= {limit_name(name): constraints[name] for name in limits}
    if x is None:
        return
    n = len(searcher.trials)
    [row] = shown.space.rows(x[None, :])
    searcher.apply(
        Asked(n, x=x.tolist(), values=row, tags=_tags(shown, trial, params), seen=searcher.history.last_event)
    )
    took = seconds_of(trial) if searcher.history.budget is not None else None
    if searcher.steps is not None:
        _report(searcher, n, trial.intermediate_values, looked_at)
    if trial.state is TrialState.COMPLETE:
        if all(map(math.isfinite, numbers.values())):
            first = metric_name(0)
            others = {name: number for name, number in numbers.items() if name != first}
            searcher.apply(Told(n, value=numbers[first], metrics=others or None, seconds=took))
        else:
            searcher.apply(Failed(n, reason="its values are not finite"))
    elif trial.state is TrialState.PRUNED:
        searcher.apply(Pruned(n, reason="pruned by Optuna", rule="optuna", seconds=took))
    elif trial.state is TrialState.FAIL:
        searcher.apply(Failed(n, reason="it failed"))


def _tags(shown: ShownSpace, trial: FrozenTrial, params: Mapping[str, Any]) -> Tags:
    """Return what the method wrote, if the trial is what it proposed and in the space of now."""
    kept = Kept.of(trial)
    if kept is None or any(params.get(name, value) != value for name, value in shown.from_json(kept.params).items()):
        return {"origin": Origin.ENQUEUED.value}
    return kept.tags if kept.space == shown.fingerprint else {"fallback": "the space of its proposal is no more"}


def _looked_at(trials: Sequence[FrozenTrial]) -> set[int]:
    """Return the steps at which trials are looked at: some of those reported, and of those at which one was pruned."""
    reported = [{_step(step) for step, value in t.intermediate_values.items() if math.isfinite(value)} for t in trials]
    ends = {max(steps) for t, steps in zip(trials, reported, strict=True) if steps and t.state is TrialState.PRUNED}
    return {*_some(set().union(*reported)), *_some(ends)}


def _some(steps: set[int]) -> list[int]:
    """Return steps evenly spaced among these, the last one with them."""
    stride = math.ceil(len(steps) / MOST_REPORTS) or 1
    return sorted(steps)[::-1][::stride]


def _report(searcher: Searcher, number: int, values: Mapping[int, float], looked_at: set[int]) -> None:
    """Report the intermediate values at these steps, and the last."""
    finite = sorted((_step(step), value) for step, value in values.items() if math.isfinite(value))
    for step, value in finite:
        if step in looked_at or step == finite[-1][0]:
            searcher.apply(Reported(number, step=step, value=value))


def _step(step: int) -> int:
    """Return a step as raybo counts them, from 1; Optuna's users begin with 0."""
    return step + 1
