"""A study as JSON: everything that is known about it and its trials."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from raybo.journal.notes import read_notes
from raybo.methods.findings import EXPECTED
from raybo.space import Opaque, object_to_json
from raybo.study.study import Study

if TYPE_CHECKING:
    from raybo.record.description import Description
    from raybo.record.trial import Trial


def study_as_json(study: Study, last: int | None = None) -> dict[str, Any]:
    """Return everything about a study, with its last trials or all of them."""
    furthest = None if study.goals.k > 1 or study.furthest is None else study.furthest.number
    known = study.incumbent is not None
    notes = [] if study.path is None else [asdict(note) for note in read_notes(study.path)]
    return {
        "study": described(study.description),
        "planned": study.planned,
        "ended": study.ended,
        "best": study.best.number if known else furthest,
        "best_expected": study.best_expected.number if known else furthest,
        "recommended": study.recommended.number if known else furthest,
        **({"front": [trial.number for trial in study.front]} if study.goals.k > 1 else {}),
        **({"notes": notes} if notes else {}),
        "trials": [trial_as_json(study, trial) for trial in study.trials[-last if last else 0 :]],
    }


def trial_as_json(study: Study, trial: Trial) -> dict[str, Any]:
    """Return everything about a trial."""
    several = not study.goals.is_plain
    expected = (study.expectations or {}).get(trial.number)
    return {
        "number": trial.number,
        "state": str(trial.state),
        "value": trial.value,
        **({"values": trial.values, "violations": trial.violations} if several else {}),
        **({} if expected is None else dict(zip(EXPECTED, expected, strict=True))),
        "config": trial.config,
        **({"fidelity": trial.fidelity} if trial.fidelity else {}),
        "context": trial.context,
        "seconds": trial.seconds,
        "suggest_seconds": trial.suggest_seconds,
        "suggest_processor_seconds": trial.suggest_processor_seconds,
        "attempt": trial.attempt,
        "reason": trial.reason,
        "explanation": study.explain(trial),
        "tags": trial.tags,
        "details": trial.details,
        **({"reports": trial.reports, "checkpoint": trial.checkpoint} if trial.step else {}),
    }


def described(description: Description) -> dict[str, Any]:
    """Return the description of a study."""
    return {name: plain(value) for name, value in description.to_json().items()}


def plain(value: Any) -> Any:
    """Return a value that JSON can hold; what it lacks is given as its repr."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return repr(value) if isinstance(value, Opaque) else object_to_json(value)
