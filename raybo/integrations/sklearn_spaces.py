"""Search spaces as scikit-learn's users write them, read as raybo's.

    raybo.Float, Integer, Categorical, Ordinal          as they are
    a list, a tuple, a one-dimensional array, a Series  a choice among its distinct values; with an order (Ordinal)
                                                        if they are three or more increasing or decreasing numbers
    range(start, stop, step)                            Integer
    scipy.stats.rv_discrete(values=(xk, pk))            a choice among xk, as a list is
    scipy.stats.loguniform (reciprocal)                 Float over its support, on a logarithmic scale
    another scipy distribution with bounds              Float, or Integer if it is discrete, over its support
    a distribution without bounds                       refused: a model over the unit cube needs a range
    a number, True, False, None                         a constant
    a list of dicts                                     a choice among them, each with parameters of its own

Only a distribution's range is kept: where to look inside it is what the search finds out.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from raybo.common.errors import SpaceError
from raybo.common.messages import shown
from raybo.common.refusals import refusing
from raybo.space import Categorical, Float, Integer, Ordinal, Space, branches_of, named, same

ALTERNATIVES = "the alternatives"  # the one parameter of a space that is a list of dicts


@refusing(SpaceError, "param_space is a dict from names to parameters, or a list of them")
def space_of(param_space: Any, where: Sequence[str] | str | None = None) -> Space:
    """The space that a user of scikit-learn means, under rules as `raybo.Space` has them.

    Raises:
        SpaceError: it is not a space, or a distribution has no bounds; names the parameter.
    """
    if isinstance(param_space, Space):
        if where:
            raise SpaceError("where: a raybo.Space has its own rules; give them there")
        return _flat(param_space)
    if isinstance(param_space, (list, tuple)) and all(isinstance(each, Mapping) for each in param_space):
        grids = [_parameters(each) for each in param_space]
        return Space(grids[0] if len(grids) == 1 else {ALTERNATIVES: Categorical(_different(grids))}, where)
    if not isinstance(param_space, Mapping):
        raise SpaceError(f"a search space is a dict from parameters to their possible values, got {shown(param_space)}")
    return _flat(Space(_parameters(param_space), where))


def _flat(space: Space) -> Space:
    """Return a space if no parameter of it is nested; SpaceError if an estimator would be given a dict of them."""
    for name, parameter in space.template.items():
        if isinstance(parameter, Mapping) or (isinstance(parameter, Categorical) and branches_of(parameter)):
            raise SpaceError(
                f"{name}: scikit-learn's parameters are not nested; write a list of dicts, one for each alternative"
            )
    return space


def candidate_of(config: Mapping[str, Any]) -> dict[str, Any]:
    """The estimator's parameters in a configuration of such a space."""
    chosen = config[ALTERNATIVES] if ALTERNATIVES in config else config
    return dict(chosen)


def _parameters(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _parameter(values, str(name)) for name, values in given.items()}


def _parameter(values: Any, name: str) -> Any:
    try:
        return _read(values, name)
    except SpaceError as error:
        raise named(error, name) from None


def _read(values: Any, name: str) -> Any:
    if isinstance(values, (Float, Integer, Categorical)):
        return values
    if isinstance(values, range) and len(values) > 0:
        return Integer(min(values), max(values), step=abs(values.step) if len(values) > 1 else 1)
    if values is None or isinstance(values, (bool, int, float, np.bool_, np.number)):
        return values.item() if isinstance(values, np.generic) else values  # a constant
    if hasattr(values, "rvs"):
        return _range_of(values, name)
    if getattr(values, "ndim", 1) != 1:
        raise SpaceError(f"{name}: an array of choices must have one axis, got shape {np.shape(values)}")
    if hasattr(values, "tolist"):  # numpy's arrays, pandas' series and indices: plain numbers
        values = values.tolist()
    if isinstance(values, (str, bytes)) or not isinstance(values, Sequence):
        raise SpaceError(
            f"{name}: a parameter must be a list of choices, a range, a scipy distribution, a number that stays, "
            "raybo.Float, raybo.Integer, raybo.Categorical or raybo.Ordinal, "
            f"got {shown(values)}; write a single value as a list"
        )
    different = _different(values)
    return Ordinal(different) if _is_ordered(different) else Categorical(different)


def _is_ordered(values: list[Any]) -> bool:
    """True if they are numbers, three or more, that go up or down."""
    if len(values) < 3 or not all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values):
        return False
    steps = {later > earlier for earlier, later in itertools.pairwise(values)}
    return len(steps) == 1 and all(math.isfinite(value) for value in values)


def _different(values: Sequence[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if not any(same(value, earlier) for earlier in found):
            found.append(value)
    return found


def _range_of(distribution: Any, name: str) -> Any:
    """The support of a scipy distribution, frozen or not."""
    family = getattr(distribution, "dist", distribution)
    if (values := getattr(family, "xk", None)) is not None:  # of rv_discrete(values=...): these, and none between them
        listed = np.asarray(values)
        return _read((listed + (distribution.support()[0] - listed.min())).tolist(), name)  # it may be moved
    kind = getattr(family, "name", type(distribution).__name__)
    try:
        low, high = (float(bound) for bound in distribution.support())
    except (AttributeError, TypeError, ValueError):  # with another interface, or without its arguments
        low = high = math.nan
    if not (math.isfinite(low) and math.isfinite(high)):
        raise SpaceError(
            f"{name}: the distribution {kind} has no bounds, and the search needs a range; give raybo.Float(low, "
            "high), with log=True for a logarithmic scale, or scipy.stats.uniform or loguniform"
        )
    log = kind in ("loguniform", "reciprocal")
    return Integer(int(low), int(high)) if hasattr(family, "pmf") else Float(low, high, log=log)
