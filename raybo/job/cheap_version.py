"""Runs a job at less than its full fidelity: the result is then a report at that fidelity, not the trial's value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import isgenerator
from typing import Any

from raybo.common.arguments import number_in
from raybo.common.errors import ObjectiveError
from raybo.job.reports import TrialPruned, report
from raybo.record.fidelity import Fidelities, ran_at


def with_cheap_versions(job: Callable[..., Any], fidelities: Fidelities | None, metric: str) -> Callable[..., Any]:
    """Return a job that reports its result if its configuration says less than a whole run, and ends there.

    Args:
        job: the user's function.
        fidelities: what makes it cheap; None for nothing, and then the job is returned as it is.
        metric: of its result.
    """
    if fidelities is None:
        return job
    ((name, fidelity),) = fidelities.items()

    @wraps(job)
    def run(config: Mapping[str, Any], **settings: Any) -> Any:
        at = config[name]  # the job may change its configuration
        result = job(config, **settings)
        if isgenerator(result):
            raise ObjectiveError("a job with a fidelity returns its result at once, and this one yields steps")
        if at == fidelity.high:
            return result
        report(result, step=at)
        value = number_in(result[metric] if isinstance(result, Mapping) else result)
        raise TrialPruned(ran_at(fidelities, at, metric, value))

    return run
