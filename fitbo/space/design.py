"""Initial designs: points of the unit cube chosen without knowledge of the function."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fitbo.mixture import Array


def sobol(n: int, dim: int, rng: np.random.Generator) -> Array:
    """The first n points of a scrambled Sobol sequence, (n, dim)."""
    from scipy.stats import qmc  # half a second to import

    exponent = max(0, (n - 1).bit_length())  # powers of two keep the sequence balanced
    return qmc.Sobol(dim, scramble=True, rng=rng).random_base2(exponent)[:n]


def latin(n: int, dim: int, rng: np.random.Generator) -> Array:
    """A Latin hypercube, (n, dim): one point in each of n slices of every coordinate."""
    from scipy.stats import qmc

    return np.asarray(qmc.LatinHypercube(dim, rng=rng).random(n))


def uniform(n: int, dim: int, rng: np.random.Generator) -> Array:
    """Independent uniform points, (n, dim)."""
    return rng.random((n, dim))


DESIGNS: dict[str, Callable[[int, int, np.random.Generator], Array]] = {
    "sobol": sobol,
    "latin": latin,
    "uniform": uniform,
}
