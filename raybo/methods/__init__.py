"""The methods by name. A method is a frozen dataclass of options with one function, `propose(history, rng)`.

It keeps nothing between calls: what it must remember it writes into the proposal's tags and reads back from the
history. So a journal's prefix always gives the proposal that followed it.
"""

from __future__ import annotations

import dataclasses
import importlib
from typing import Any, Protocol, cast

import numpy as np

from raybo.error_text import nearest
from raybo.errors import MethodError
from raybo.history import History, Proposal, Tags
from raybo.methods.shared.options import read

METHODS: dict[str, str] = {  # name: where it lives; loaded when used
    "auto": "raybo.methods.auto:Auto",
    "random": "raybo.methods.random:Random",
    "sobol": "raybo.methods.sobol:Sobol",
    "gp-ucb": "raybo.methods.gp_ucb:GpUcb",
    "gp-ts": "raybo.methods.gp_ts:GpTs",
    "ei": "raybo.methods.ei:Ei",
    "map": "raybo.methods.map:Map",
    "mcmc": "raybo.methods.mcmc:Mcmc",
    "uhe": "raybo.methods.uhe:Uhe",
    "uhe-checked": "raybo.methods.uhe_checked:UheChecked",
    "ra-bo": "raybo.methods.ra_bo:RaBo",
    "exp3-random": "raybo.methods.exp3_random:Exp3Random",
    "portfolio": "raybo.methods.portfolio:Portfolio",
    "wang-defreitas": "raybo.methods.wang_defreitas:WangDeFreitas",
    "a-gp-ucb": "raybo.methods.a_gp_ucb:AGpUcb",
    "min-ucb": "raybo.methods.min_ucb:MinUcb",
    "la-min-ucb": "raybo.methods.la_min_ucb:LaMinUcb",
    "gibo": "raybo.methods.gibo:Gibo",
    "mpd": "raybo.methods.mpd:Mpd",
    "turbo": "raybo.methods.turbo:Turbo",
    "ars": "raybo.methods.ars:Ars",
    "sbo-kde": "raybo.methods.sbo_kde:SboKde",
    "drbo-kde": "raybo.methods.drbo_kde:DrboKde",
    "drbo-mmd": "raybo.methods.drbo_mmd:DrboMmd",
    "drbo-mmd-minimax": "raybo.methods.drbo_mmd_minimax:DrboMmdMinimax",
    "stableopt": "raybo.methods.stableopt:StableOpt",
}


class Method(Protocol):
    """What every method is."""

    def propose(self, history: History, rng: np.random.Generator) -> Proposal:
        """The next point to try, a pure function of the history and the random stream."""
        ...

    def explain(self, tags: Tags) -> str:
        """In a few words, why a proposal with these tags was made."""
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


def describe(name: str) -> tuple[str, list[tuple[str, Any, str]]]:
    """A method's docstring, and its options as (name, default, meaning)."""
    cls = load(name)
    fields = [(f.name, f.default, f.metadata.get("meaning", "")) for f in dataclasses.fields(cls)]
    return (cls.__doc__ or "").strip(), fields
