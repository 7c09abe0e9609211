"""raybo: Bayesian optimisation of machine-learning jobs on Ray."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.3.0"

if TYPE_CHECKING:
    from raybo import spaces as spaces
    from raybo.common.errors import (
        JournalError,
        JournalInUse,
        MethodError,
        MissingExtra,
        NumericalError,
        ObjectiveError,
        PathError,
        RayboError,
        RayError,
        SpaceError,
        TrialError,
    )
    from raybo.engine.driver import tune
    from raybo.job.current_trial import CurrentTrial, current_trial
    from raybo.job.objective import Objective, objective, report_context
    from raybo.job.reports import TrialPruned, checkpoint, report, saving
    from raybo.job.shared_data import shared
    from raybo.record.fidelity import Fidelity
    from raybo.record.states import State
    from raybo.record.trial import Trial
    from raybo.reporting.plots import plots
    from raybo.searcher import Searcher
    from raybo.space import Categorical, Float, Integer, Ordinal, Space
    from raybo.study.study import Study, load

_HOMES = {  # public names and where they live; loaded when first used, so that `import raybo` stays quick
    **dict.fromkeys(["Categorical", "Float", "Integer", "Ordinal", "Space"], "raybo.space"),
    **dict.fromkeys(["Objective", "objective", "report_context"], "raybo.job.objective"),
    "Fidelity": "raybo.record.fidelity",
    "State": "raybo.record.states",
    "Trial": "raybo.record.trial",
    **dict.fromkeys(["CurrentTrial", "current_trial"], "raybo.job.current_trial"),
    **dict.fromkeys(["TrialPruned", "checkpoint", "report", "saving"], "raybo.job.reports"),
    "Searcher": "raybo.searcher",
    "shared": "raybo.job.shared_data",
    "plots": "raybo.reporting.plots",
    **dict.fromkeys(["Study", "load"], "raybo.study.study"),
    "tune": "raybo.engine.driver",
    **dict.fromkeys(
        [
            "JournalError",
            "JournalInUse",
            "MethodError",
            "MissingExtra",
            "NumericalError",
            "ObjectiveError",
            "PathError",
            "RayError",
            "RayboError",
            "SpaceError",
            "TrialError",
        ],
        "raybo.common.errors",
    ),
}

_MODULES = ("spaces",)  # that are used by their names in this one

__all__ = [
    "Categorical",
    "CurrentTrial",
    "Fidelity",
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
    "PathError",
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

_ELSEWHERE = {  # names that other tuners have for it
    **dict.fromkeys(("float", "uniform", "loguniform", "real"), "Float"),
    **dict.fromkeys(("int", "randint"), "Integer"),
    **dict.fromkeys(("choice", "categorical"), "Categorical"),
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"raybo.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'raybo' has no attribute {name!r}{_hint(name)}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def _hint(name: str) -> str:
    """Return what was probably meant, as the end of a message."""
    if name.startswith("_"):
        return ""
    from raybo.common.messages import near

    likely = _ELSEWHERE.get(name.removeprefix("suggest_").lower()) or near(name, __all__)
    return f"; did you mean raybo.{likely}?" if likely else ""


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
