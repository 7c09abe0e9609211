"""Search spaces: what a user tunes, and how it fills the unit cube.

A `Space` names parameters and deals in configurations; its `Cube` is the same space as the methods see it: one axis of
[0, 1] per parameter. On a categorical axis only equality has meaning. `snap` moves a point to the one that will really
be run: encode(decode(x)).
"""

from raybo.space.branches import branches_of, choice_names, position_of_text, written
from raybo.space.context import Reading, context_space, read_context, read_text
from raybo.space.cube import Cube
from raybo.space.numeric import named
from raybo.space.objects import Opaque, object_from_json, object_to_json, same
from raybo.space.parameters import Array, Categorical, Float, Integer, Ordinal, Parameter
from raybo.space.paths import Path, label
from raybo.space.sobol import LARGEST_DIMENSION, scrambled_sobol
from raybo.space.space import Config, Row, Space

__all__ = [
    "LARGEST_DIMENSION",
    "Array",
    "Categorical",
    "Config",
    "Cube",
    "Float",
    "Integer",
    "Opaque",
    "Ordinal",
    "Parameter",
    "Path",
    "Reading",
    "Row",
    "Space",
    "branches_of",
    "choice_names",
    "context_space",
    "label",
    "named",
    "object_from_json",
    "object_to_json",
    "position_of_text",
    "read_context",
    "read_text",
    "same",
    "scrambled_sobol",
    "written",
]
