"""Public calls refuse whatever they cannot use in one line, also what no check has foreseen."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from raybo.common.errors import RayboError
from raybo.common.messages import in_words, shortened

P = ParamSpec("P")
R = TypeVar("R")


def refusing(error: type[RayboError], rule: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a public function that takes users' objects, which may raise anything when they are looked at.

    Errors of raybo and of the machine pass, and Python's own of a call that does not fit the signature.

    Args:
        error: raised in place of any other exception, which is its cause.
        rule: what the arguments must be.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        name = function.__qualname__.removesuffix(".__init__").removesuffix(".__post_init__")

        @functools.wraps(function)
        def call(*args: P.args, **named: P.kwargs) -> R:
            try:
                return function(*args, **named)
            except (RayboError, OSError):  # of raybo's own, or of the machine
                raise
            except RecursionError as fault:
                raise error(f"{name}: {rule}, not one that is nested too deep or holds itself") from fault
            except Exception as fault:
                if fault.__traceback__ is not None and fault.__traceback__.tb_next is None:
                    raise  # not from inside: an argument is missing, or unknown
                raise error(f"{name}: {rule}; got {shortened(in_words(fault), 300)}") from fault

        return call

    return decorate
