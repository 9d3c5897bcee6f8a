"""Maximum-entropy densities on [-1, 1] from moments: the numerical core, free of the rest."""

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
