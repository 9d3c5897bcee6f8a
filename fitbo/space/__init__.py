"""The set that is searched: parameters, constraints, the map to the unit cube, initial designs.

Imports: ``checks``, and the array type of ``mixture``.
Add here: a new kind of parameter, a new initial design (one function and a line in ``DESIGNS``).
"""

from fitbo.space.design import DESIGNS
from fitbo.space.numeric import Integer, Real
from fitbo.space.parameters import Categorical, Parameter
from fitbo.space.protocol import Differentiable, Exhausted
from fitbo.space.space import ENUMERABLE, Space

__all__ = [
    "DESIGNS",
    "ENUMERABLE",
    "Categorical",
    "Differentiable",
    "Exhausted",
    "Integer",
    "Parameter",
    "Real",
    "Space",
]
