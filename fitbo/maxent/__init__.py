"""Maximum-entropy densities on [-1, 1] from moments: bases, expectations, the convex dual.

Imports: ``checks`` and ``mixture`` only.
Add here: a basis of constrained functions, or a better solver of the dual.
"""

from fitbo.maxent.basis import VANDER, Basis
from fitbo.maxent.moments import gaussian_moments, mixture_gradient, mixture_moments
from fitbo.maxent.solve import MaxEntDensity, solve

FAMILIES = tuple(VANDER)

__all__ = [
    "FAMILIES",
    "Basis",
    "MaxEntDensity",
    "gaussian_moments",
    "mixture_gradient",
    "mixture_moments",
    "solve",
]
