"""raybo: Bayesian optimisation of machine-learning jobs on Ray."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

if TYPE_CHECKING:
    from raybo.engine.driver import tune
    from raybo.errors import (
        JournalError,
        JournalInUse,
        MethodError,
        MissingExtra,
        NumericalError,
        ObjectiveError,
        RayboError,
        RayError,
        SpaceError,
        TrialError,
    )
    from raybo.events import State, Trial
    from raybo.objectives import Objective, objective, report_context
    from raybo.reporting.plots import plots
    from raybo.reports import TrialPruned, checkpoint, report, saving
    from raybo.running_trial import CurrentTrial, current_trial
    from raybo.searcher import Searcher
    from raybo.shared_data import shared
    from raybo.space import Categorical, Float, Integer, Ordinal, Space
    from raybo.study import Study, load

_HOMES = {  # public names and where they live; loaded when first used, so that `import raybo` stays quick
    **dict.fromkeys(["Categorical", "Float", "Integer", "Ordinal", "Space"], "raybo.space"),
    **dict.fromkeys(["Objective", "objective", "report_context"], "raybo.objectives"),
    **dict.fromkeys(["State", "Trial"], "raybo.events"),
    **dict.fromkeys(["CurrentTrial", "current_trial"], "raybo.running_trial"),
    **dict.fromkeys(["TrialPruned", "checkpoint", "report", "saving"], "raybo.reports"),
    "Searcher": "raybo.searcher",
    "shared": "raybo.shared_data",
    "plots": "raybo.reporting.plots",
    **dict.fromkeys(["Study", "load"], "raybo.study"),
    "tune": "raybo.engine.driver",
    **dict.fromkeys(
        [
            "JournalError",
            "JournalInUse",
            "MethodError",
            "MissingExtra",
            "NumericalError",
            "ObjectiveError",
            "RayError",
            "RayboError",
            "SpaceError",
            "TrialError",
        ],
        "raybo.errors",
    ),
}

__all__ = [
    "Categorical",
    "CurrentTrial",
    "Float",
    "Integer",
    "JournalError",
    "JournalInUse",
    "MethodError",
    "MissingExtra",
    "NumericalError",
    "Objective",
    "ObjectiveError",
    "Ordinal",
    "RayError",
    "RayboError",
    "Searcher",
    "Space",
    "SpaceError",
    "State",
    "Study",
    "Trial",
    "TrialError",
    "TrialPruned",
    "checkpoint",
    "current_trial",
    "load",
    "objective",
    "plots",
    "report",
    "report_context",
    "saving",
    "shared",
    "tune",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'raybo' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
