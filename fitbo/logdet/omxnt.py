"""OMxnt: the older MaxEnt by iterative scaling, as the paper's comparison uses it.

On a grid x_g of [0, 1] the density is p = exp(-1 + sum_i n_i x^i); from n = 0 each multiplier in
turn is moved by

    n_i += log(mu_i / sum_g w x_g^i p_g),    i = 0, 1, ..., m, 0, 1, ...

It has no line search and no second derivative; with many moments it converges very slowly, and its
entropy need not fall with m. Reference: Bandyopadhyay et al. (2005).
"""

from __future__ import annotations

import time

import numpy as np
from numpy.polynomial.chebyshev import chebvander
from numpy.typing import ArrayLike

from fitbo.logdet.bounds import Bounds
from fitbo.logdet.info import LogdetInfo, SpectralDensity
from fitbo.logdet.taylor import unit_powers
from fitbo.logdet.trace import SEEN, Task, regressed_log, standard_error
from fitbo.mixture import Array

GRID = 1000
SWEEPS = 2000
TOLERANCE = 1e-9


def scale_iteratively(moments: ArrayLike, n_sweeps: int = SWEEPS) -> tuple[Array, Array, float]:
    """Grid midpoints x, masses p (GRID,) and residual from power moments on [0, 1], (m + 1,)."""
    mu = np.asarray(moments, dtype=np.float64)
    x = (np.arange(GRID) + 0.5) / GRID
    powers = x ** np.arange(len(mu))[:, None]
    exponent = np.full(GRID, -1.0)
    masses = np.exp(exponent) / GRID
    for _ in range(n_sweeps):
        worst = 0.0
        for i, power in enumerate(powers):
            step = float(np.log(mu[i] / (power @ masses)))
            exponent += step * power
            masses = np.exp(exponent) / GRID
            worst = max(worst, abs(step))
        if worst < TOLERANCE:
            break
    residual = float(abs(powers @ masses - mu).max())
    return x, masses / masses.sum(), residual


def estimate(task: Task) -> tuple[float, LogdetInfo]:
    """n E_p[log lambda] from ``n_moments`` power moments; half as many products per probe."""
    n, on = task.operator.n, Bounds(0.0, task.bounds.upper)
    moments = task.moments(on)
    start = time.perf_counter()
    # Rounding may take a tiny moment to zero or below, where it has no logarithm.
    mu = np.maximum(moments.mean(0) @ unit_powers(task.n_moments).T, 1e-300)
    x, masses, residual = scale_iteratively(mu)
    seconds = time.perf_counter() - start
    points, heights = on.upper * x, masses * len(x) / on.upper
    # The standard error is that of log lambda's regression on the moments, as in ``meme``.
    fit = regressed_log(points, masses, chebvander(2 * x - 1, task.n_moments), SEEN)
    used = heights > 0  # a mass may vanish where the interval is long

    def pdf(at: ArrayLike) -> Array:
        return np.interp(np.asarray(at, dtype=np.float64), points, heights, left=0.0, right=0.0)

    return n * float(masses @ np.log(points)), task.info(
        "omxnt",
        standard_error(n * (moments @ fit)),
        bounds=on.pair,
        density=SpectralDensity.from_atoms(points, masses, pdf),
        entropy=-float(masses[used] @ np.log(heights[used])),
        residual=residual,
        converged=residual <= TOLERANCE,
        solve_seconds=seconds,
    )
