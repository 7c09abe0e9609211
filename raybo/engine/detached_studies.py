"""The studies that run detached on a cluster, and how far each of them has got."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from raybo.engine.ray.connection import ray_for_study
from raybo.engine.ray.named_studies import NAMESPACE, study_names

if TYPE_CHECKING:
    from raybo.engine.plan import Plan
    from raybo.engine.status import Status

ANSWER_SECONDS = 10.0  # a study's process is waited for as long


@dataclass(frozen=True)
class Detached:
    """A study that runs on a cluster.

    Attributes:
        name: its journal's, without `.db`.
        plan: what it runs; None if it does not answer.
        status: how far it is; None if it does not answer, or has not opened its journal yet.
    """

    name: str
    plan: Plan | None = None
    status: Status | None = None


def studies_on(address: str) -> list[Detached]:
    """Return the detached studies of a cluster, by name.

    Raises:
        RayError: nothing answers at the address, or the cluster refuses.
    """
    with ray_for_study(address, None) as ray:
        names = sorted(study_names(ray))
        asked = [(name, _ask(ray, name)) for name in names]  # ask all of them before waiting for one
        return [_answered(ray, name, references) for name, references in asked]


def _ask(ray: Any, name: str) -> list[Any]:
    try:
        actor = ray.get_actor(name, namespace=NAMESPACE)
    except ValueError:  # it has just ended
        return []
    return [actor.get_plan.remote(), actor.status.remote()]


def _answered(ray: Any, name: str, references: list[Any]) -> Detached:
    try:
        plan, status = ray.get(references, timeout=ANSWER_SECONDS) if references else (None, None)
    except (ray.exceptions.RayActorError, ray.exceptions.GetTimeoutError):
        return Detached(name)
    return Detached(name, cast("Plan | None", plan), cast("Status | None", status))
