"""Checks of users' arguments: the one place that defines what counts as a number, a bool or a name.

The caller passes the argument's name and the error to raise. Returned values are plain Python, so that no numpy number
gets into a journal.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard, TypeVar

import numpy as np

from raybo.common.errors import MethodError
from raybo.common.messages import shown

Word = TypeVar("Word", bound=str)

MOST = 2**31 - 1  # trials, steps and the like: as far as a journal counts


def is_real(value: object) -> TypeGuard[float]:
    """Return True if it is a number, finite or not, and not a bool."""
    is_other = isinstance(value, (bool, np.timedelta64))  # numpy counts a duration among its integers
    return not is_other and isinstance(value, (int, float, np.integer, np.floating))


def is_number(value: object) -> TypeGuard[float]:
    """Return True if it is a finite number and not a bool."""
    try:
        return is_real(value) and math.isfinite(value)
    except OverflowError:  # a whole number beyond every float
        return False


def number_in(value: object) -> float | None:
    """Return a measured value as a float: anything that converts, such as a tensor of one number or a Decimal.

    Return None if it is not a number, NaN if it is one that fails to convert, an infinite float if it is beyond floats.
    """
    if isinstance(value, (bool, np.bool_, np.timedelta64, np.datetime64)):  # the last two may convert as whole numbers
        return None
    if isinstance(value, np.ndarray) and (value.dtype.kind in "mM" or np.ma.is_masked(value)):
        return None  # the mean of nothing but masked numbers is masked too; `item` gives the 0.0 below the mask
    try:
        plain: Any = value.item() if getattr(value, "ndim", None) == 0 else value  # type: ignore[attr-defined]
        if isinstance(plain, bool) or getattr(value, "ndim", None) or not hasattr(plain, "__float__"):
            return None
        return float(plain)
    except OverflowError:  # a whole number or a fraction
        return -math.inf if plain < 0 else math.inf
    except Exception:  # noqa: BLE001  # an array of objects, a Decimal that signals
        return math.nan


def not_finite(value: object, number: float) -> str:
    """Say why a measured value, of which `number_in` made that number, is not a finite float."""
    try:
        is_beyond = math.isinf(number) and bool(value != number)
    except Exception:  # noqa: BLE001  # whatever a user's object raises
        is_beyond = False
    return "too large for a float" if is_beyond else f"{number}, not a finite number"


def whole_number(
    value: Any, name: str, at_least: int = 1, error: type[Exception] = MethodError, at_most: int | None = MOST
) -> int:
    """Return a whole number within the bounds; numpy integers and tensors of one are accepted, floats are not."""
    try:
        number = at_least - 1 if isinstance(value, bool) else operator.index(value)
    except Exception:  # noqa: BLE001  # whatever a user's object raises
        number = at_least - 1
    is_beyond = at_most is not None and number > at_most
    if number < at_least or is_beyond:
        raise error(f"{name} must be a whole number from {at_least}{f' to {at_most}' * is_beyond}, got {shown(value)}")
    return number


def finite_number(
    value: Any,
    name: str,
    *,
    above: float | None = None,
    at_least: float | None = None,
    error: type[Exception] = MethodError,
) -> float:
    """Return a finite number within the bounds; a whole one stays an int."""
    if not is_number(value) or (above is not None and value <= above) or (at_least is not None and value < at_least):
        bound = "" if above is None else f" above {above:g}"
        bound = bound if at_least is None else f" from {at_least:g}"
        raise error(f"{name} must be a finite number{bound}, got {shown(value)}")
    return int(value) if isinstance(value, (int, np.integer)) else float(value)


def truth(value: Any, name: str, error: type[Exception] = MethodError) -> bool:
    """Return the value if it is a bool."""
    if not isinstance(value, (bool, np.bool_)):
        raise error(f"{name} must be True or False, got {shown(value)}")
    return bool(value)


def one_of(value: Any, name: str, words: Sequence[Word], error: type[Exception] = MethodError) -> Word:
    """Return the value if it is one of the words."""
    for word in words:
        if isinstance(value, str) and value == word:
            return word
    *first, last = map(repr, words)
    raise error(f"{name} must be {', '.join(first)} or {last}, got {shown(value)}")


def a_name(value: Any, name: str, error: type[Exception] = MethodError) -> str:
    """Return the value if it is non-empty text."""
    if not isinstance(value, str) or not value:
        raise error(f"{name} must be a name, got {shown(value)}")
    return plain_text(value)


def plain_text(text: str) -> str:
    """Return text as a `str` itself: a class derived from it may have a hash or a comparison that raises."""
    return str.__str__(text)


def a_list(value: Any, name: str, items: str, error: type[Exception] = MethodError) -> list[Any]:
    """Return the items of any iterable but text or a mapping."""
    try:
        if not isinstance(value, (str, bytes, Mapping)):
            return list(value)
    except Exception:  # noqa: BLE001  # whatever a user's object raises
        pass
    raise error(f"{name} must be a list of {items}, got {shown(value)}")


def keys_of(value: Any) -> list[Any] | None:
    """Return the keys of a mapping; None if it is none, or raises when it is read."""
    try:
        return list(value) if isinstance(value, Mapping) else None
    except Exception:  # noqa: BLE001  # whatever a user's object raises
        return None


def by_name(value: Any, name: str, items: str, error: type[Exception] = MethodError) -> dict[str, Any]:
    """Return a mapping whose keys are names, as a dict."""
    if (keys := keys_of(value)) is None:
        raise error(f"{name} must be a dict of {items}, got {shown(value)}")
    for key in keys:
        if not isinstance(key, str) or not key:
            raise error(f"{name}: a name must be text, got {shown(key)}")
    try:
        return {plain_text(key): inside for key, inside in value.items()}
    except Exception:  # noqa: BLE001  # whatever a user's object raises
        raise error(f"{name} must be a dict of {items}, got {shown(value)}") from None
