"""The set that is searched: parameters, constraints, the map to the unit cube, initial designs.

Imports: ``checks`` and ``mixture`` (for the array type) only.
Add here: a new kind of parameter, a new initial design (one function and a line in ``DESIGNS``).
"""

from fitbo.space.design import DESIGNS
from fitbo.space.parameters import Categorical, Integer, Parameter, Real
from fitbo.space.space import ENUMERABLE, Exhausted, Space

__all__ = [
    "DESIGNS",
    "ENUMERABLE",
    "Categorical",
    "Exhausted",
    "Integer",
    "Parameter",
    "Real",
    "Space",
]
