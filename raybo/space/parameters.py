"""The kinds of parameter: `Float`, `Integer`, `Categorical` and `Ordinal`."""

from __future__ import annotations

from typing import TypeAlias

from raybo.space.choices import Categorical, Ordinal
from raybo.space.levels import Array
from raybo.space.numeric import Float, Integer, Scale

__all__ = ["Array", "Categorical", "Float", "Integer", "Ordinal", "Parameter", "Scale"]

Parameter: TypeAlias = Float | Integer | Categorical
