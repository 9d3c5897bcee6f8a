"""OMxnt: the older MaxEnt by iterative scaling, as the paper's comparison uses it.

On a grid x_g of [0, 1] the density is p = exp(-1 + sum_i n_i x^i); from n = 0 each multiplier in
turn is moved by

    n_i += log(mu_i / sum_g w x_g^i p_g),    i = 0, 1, ..., m, 0, 1, ...

It has no line search and no second derivative; with many moments it creeps, and its entropy need
not fall with m. Reference: Bandyopadhyay et al. (2005).
"""

from __future__ import annotations

import time

import numpy as np
from numpy.polynomial.chebyshev import chebvander
from numpy.typing import ArrayLike

from fitbo.logdet.bounds import Bounds
from fitbo.logdet.info import LogdetInfo, SpectralDensity
from fitbo.logdet.operator import Operator
from fitbo.logdet.taylor import unit_powers
from fitbo.logdet.trace import SEEN, chebyshev_moments, regressed_log, standard_error
from fitbo.mixture import Array

GRID = 1000
SWEEPS = 2000
TOLERANCE = 1e-9


def scale_iteratively(
    moments: ArrayLike, n_grid: int = GRID, n_sweeps: int = SWEEPS
) -> tuple[Array, Array, float]:
    """Grid midpoints x, masses p (n_grid,) and residual from power moments on [0, 1], (m + 1,)."""
    mu = np.asarray(moments, dtype=np.float64)
    x = (np.arange(n_grid) + 0.5) / n_grid
    powers = x ** np.arange(len(mu))[:, None]
    exponent = np.full(n_grid, -1.0)
    masses = np.exp(exponent) / n_grid
    for _ in range(n_sweeps):
        worst = 0.0
        for i, power in enumerate(powers):
            step = float(np.log(mu[i] / (power @ masses)))
            exponent += step * power
            masses = np.exp(exponent) / n_grid
            worst = max(worst, abs(step))
        if worst < TOLERANCE:
            break
    residual = float(abs(powers @ masses - mu).max())
    return x, masses / masses.sum(), residual


def omxnt(
    operator: Operator,
    n_moments: int,
    n_probes: int,
    bounds: Bounds,
    rng: np.random.Generator,
) -> tuple[float, LogdetInfo]:
    """n E_p[log lambda] from ``n_moments`` power moments; half as many products a probe.

    The standard error is that of n log lambda's regression on the moments, as in ``meme``.
    """
    n = operator.n
    on = Bounds(0.0, bounds.upper)
    moments = chebyshev_moments(operator, on, n_moments, n_probes, rng)
    start = time.perf_counter()
    # Rounding may take a tiny moment to zero or below, where its logarithm is no number.
    mu = np.maximum(moments.mean(0) @ unit_powers(n_moments).T, 1e-300)
    x, masses, residual = scale_iteratively(mu)
    seconds = time.perf_counter() - start
    points = bounds.upper * x
    fit = regressed_log(points, masses, chebvander(2 * x - 1, n_moments), SEEN)
    used = masses > 0
    entropy = -float(masses[used] @ np.log(masses[used] * len(x) / bounds.upper))

    def pdf(at: ArrayLike) -> Array:
        where = np.asarray(at, dtype=np.float64)
        return np.interp(where, points, masses * len(x) / bounds.upper, left=0.0, right=0.0)

    return n * float(masses @ np.log(points)), LogdetInfo(
        method="omxnt",
        products=operator.products,
        standard_error=standard_error(n * (moments @ fit)),
        bounds=on.pair,
        n_moments=n_moments,
        density=SpectralDensity.from_atoms(points, masses, pdf),
        entropy=entropy,
        residual=residual,
        converged=residual <= TOLERANCE,
        solve_seconds=seconds,
    )
