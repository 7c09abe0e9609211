"""The variants that can be run: raybo's methods by name, and the peers of benchmarks.default.peers."""

from __future__ import annotations

import importlib
from typing import Any, Protocol, cast

import raybo
from benchmarks.searches import parse_method
from raybo.methods import METHODS
from raybo.space import Config

ABLATIONS = {  # `auto` with fewer models
    "auto-plain": "benchmarks.default.ablations.Plain",
    "auto-without-warped": "benchmarks.default.ablations.WithoutWarped",
    "auto-without-summed": "benchmarks.default.ablations.WithoutSummed",
}
FIRST = "auto-0.1"  # the rules of generation 1, which every change must beat
EARLIER = {FIRST: 1, "auto-0.2": 2}  # `auto` by the rules of earlier releases, with their generation


def with_workers(variant: str) -> tuple[str, int]:
    """A variant's name without the number of workers that may follow it, as in `auto@8`, and that number."""
    alone, _, workers = variant.partition("@")
    return alone, int(workers or 1)


class Asked(Protocol):
    """A trial of whatever searcher."""

    @property
    def config(self) -> Config:
        """Return the search to run."""
        ...


class Asks(Protocol):
    """Ask and tell, minimising."""

    def ask(self) -> Any:
        """The next trial, an `Asked`."""
        ...

    def tell(self, trial: Any, value: float) -> object:
        """Its value."""
        ...

    def fail(self, trial: Any, reason: str) -> object:
        """It has none."""
        ...


def searcher(variant: str, space: raybo.Space, seed: int, trials: int) -> Asks:
    """A searcher for a variant.

    Args:
        variant: METHOD[:option=value ...] of raybo, MODULE.CLASS[:option=value ...] of a method that is not
            registered, one of ABLATIONS or EARLIER, or a peer's name.
    Raises:
        ImportError: the peer's package is not installed.
    """
    from benchmarks.default.peers import PEERS

    name, options = parse_method(ABLATIONS.get(variant, variant))
    if name in PEERS:
        return cast(Asks, PEERS[name](space, seed))
    if name in EARLIER:
        return raybo.Searcher(space, "auto", "min", seed, trials, generation=EARLIER[name])
    if "." in name:
        module, _, cls = name.rpartition(".")
        importlib.import_module(module)
        METHODS[name] = f"{module}:{cls}"
    return raybo.Searcher(space, name, "min", seed, trials, **options)
