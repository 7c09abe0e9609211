"""The methods by name. A method is a frozen dataclass of options with one function, `propose(history, rng)`.

It keeps nothing between calls: what it must remember, it writes into the proposal's tags and reads back from the
history. So a journal's prefix always gives the proposal that followed it.

Each family of methods has a folder, named after its page in docs/, with the code that only that family shares. Beside
the folders is what methods of several families are built on:

options            an option of a method: its field, its checks, and its value from text
hyperparameters    the option `hyperparameters`
design             where to look before there is a model
apart              points that must not be proposed again, and how far to stay from each
fitting            from a history to a fitted surrogate
unfinished         what trials that have reported but not finished count for
regional           the same for thousands of trials
refits             which trials a fit is made for, and where it starts
keywords           all options, for type checkers
story              what a method's tags tell about a study, for a report to draw

A paper is cited in the class's docstring, which users read; notes at the top of a file are about that paper.
"""

from __future__ import annotations

import dataclasses
import importlib
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np

from raybo.common.errors import MethodError
from raybo.common.messages import nearest
from raybo.common.options import read
from raybo.record.events import Tags
from raybo.record.goals import Goals
from raybo.record.history import History, Proposal

METHODS: dict[str, str] = {  # name: where it lives; loaded when used
    "auto": "raybo.methods.default.auto:Auto",
    "random": "raybo.methods.default.random:Random",
    "sobol": "raybo.methods.default.sobol:Sobol",
    "gp-ucb": "raybo.methods.inexact_maximisation.gp_ucb:GpUcb",
    "gp-ts": "raybo.methods.inexact_maximisation.gp_ts:GpTs",
    "ei": "raybo.methods.default.ei:Ei",
    "map": "raybo.methods.unknown_hyperparameters.map:Map",
    "mcmc": "raybo.methods.unknown_hyperparameters.mcmc:Mcmc",
    "uhe": "raybo.methods.unknown_hyperparameters.uhe:Uhe",
    "uhe-checked": "raybo.methods.unknown_hyperparameters.uhe_checked:UheChecked",
    "ra-bo": "raybo.methods.unknown_hyperparameters.ra_bo:RaBo",
    "exp3-random": "raybo.methods.unknown_hyperparameters.exp3_random:Exp3Random",
    "portfolio": "raybo.methods.unknown_hyperparameters.portfolio:Portfolio",
    "wang-defreitas": "raybo.methods.unknown_hyperparameters.wang_defreitas:WangDeFreitas",
    "a-gp-ucb": "raybo.methods.unknown_hyperparameters.a_gp_ucb:AGpUcb",
    "min-ucb": "raybo.methods.many_dimensions.min_ucb:MinUcb",
    "la-min-ucb": "raybo.methods.many_dimensions.la_min_ucb:LaMinUcb",
    "gibo": "raybo.methods.many_dimensions.gibo:Gibo",
    "mpd": "raybo.methods.many_dimensions.mpd:Mpd",
    "turbo": "raybo.methods.many_dimensions.turbo:Turbo",
    "ars": "raybo.methods.many_dimensions.ars:Ars",
    "sbo-kde": "raybo.methods.contexts.sbo_kde:SboKde",
    "drbo-kde": "raybo.methods.contexts.drbo_kde:DrboKde",
    "drbo-mmd": "raybo.methods.contexts.drbo_mmd:DrboMmd",
    "drbo-mmd-minimax": "raybo.methods.contexts.drbo_mmd_minimax:DrboMmdMinimax",
    "stableopt": "raybo.methods.contexts.stableopt:StableOpt",
}


class Method(Protocol):
    """What every method is."""

    def propose(self, history: History, rng: np.random.Generator) -> Proposal:
        """The next point to try, a pure function of the history and the random stream."""
        ...

    def explain(self, tags: Tags) -> str:
        """In a few words, why a proposal with these tags was made."""
        ...


@runtime_checkable
class ChecksGoals(Protocol):
    """A method that takes several metrics or constraints, but not with every option."""

    def check_goals(self, goals: Goals) -> None:
        """MethodError where an option does not go with these goals, which are not one metric without constraints."""
        ...


def load(name: str) -> type:
    """The class of a method; MethodError, with the nearest name, where there is none."""
    if not isinstance(name, str) or name not in METHODS:
        raise MethodError(f"there is no method {name!r}{nearest(str(name), list(METHODS))}")
    module, _, cls = METHODS[name].partition(":")
    return cast(type, getattr(importlib.import_module(module), cls))


def make(name: str, /, **options: Any) -> Method:
    """A method with its options; MethodError where the name, an option or a value is wrong."""
    cls = load(name)
    values = read(name, cls, options)
    try:
        return cast(Method, cls(**values))
    except MethodError as error:  # a method does not know under which name it is registered
        raise MethodError(f"{name}: {error}") from None


def needs_context(name: str) -> bool:
    """Whether a method works only on a study that declares a context."""
    return bool(getattr(load(name), "needs_context", False))


def seen(method: Method, history: History) -> History:
    """The history as a method sees it: with values predicted for unfinished trials, unless it models their reports.

    Such a model needs to know how many steps a whole run has.
    """
    models_reports = getattr(method, "models_reports", False) and history.steps is not None
    if models_reports or not (history.reports_in_order and history.goals.is_plain):
        return history
    from raybo.methods.parts.running_trials import predicted

    return predicted(history)


def require_goals(name: str, method: Method, goals: Goals, *, has_context: bool) -> None:
    """MethodError where a method, or a study with contexts, does not take several metrics or constraints."""
    if goals.is_plain:
        return
    if has_context:
        raise MethodError("a context needs a single metric and no constraints; leave out one or the other")
    if not getattr(load(name), "takes_goals", False):
        those = [other for other in METHODS if getattr(load(other), "takes_goals", False)]
        raise MethodError(
            f"{name} takes one metric and no constraints; {', '.join(those[:-1])} and {those[-1]} take several metrics "
            "and constraints"
        )
    if isinstance(method, ChecksGoals):
        method.check_goals(goals)


def describe(name: str) -> tuple[str, list[tuple[str, Any, str]]]:
    """A method's docstring, and its options as (name, default, meaning)."""
    cls = load(name)
    fields = [(f.name, f.default, f.metadata.get("meaning", "")) for f in dataclasses.fields(cls)]
    return (cls.__doc__ or "").strip(), fields
