"""Taylor expansion of the logarithm about the upper bound.

    log det K ~ n log upper - n sum_{i=1}^m E[(1 - lambda / upper)^i] / i.

Every term left out is negative, so for exact moments it overestimates; an eigenvalue of lambda /
upper = 1e-4 needs some ten thousand terms. Reference: the paper's appendix.
"""

from __future__ import annotations

import numpy as np

from fitbo.logdet.bounds import Bounds
from fitbo.logdet.info import LogdetInfo
from fitbo.logdet.trace import Task, standard_error


def estimate(task: Task) -> tuple[float, LogdetInfo]:
    """``n_moments`` terms; half as many products per probe.

    With u = 2 lambda / upper - 1 the terms are ((1 - u) / 2)^i, powers of the interval [0, upper],
    whose expectations follow from Chebyshev's by a product: no power of K is formed.
    """
    on = Bounds(0.0, task.bounds.upper)
    powers = task.moments(on) @ unit_powers(task.n_moments, -1.0).T
    order = np.arange(1, task.n_moments + 1)
    values = task.operator.n * (np.log(on.upper) - (powers[:, 1:] / order).sum(1))
    return float(values.mean()), task.info("taylor", standard_error(values), bounds=on.pair)


def unit_powers(degree: int, sign: float = 1.0) -> np.ndarray:
    """B with ((1 + sign u) / 2)^i = sum_j B_ij T_j(u) for i, j <= degree; sum_j |B_ij| = 1."""
    rows = np.zeros((degree + 1, degree + 1))
    rows[0, 0] = 1.0
    for i in range(degree):
        # u T_0 = T_1 and u T_j = (T_{j+1} + T_{j-1}) / 2.
        times_u = np.zeros(degree + 2)
        times_u[1] += rows[i, 0]
        times_u[2:] += 0.5 * rows[i, 1:]
        times_u[:degree] += 0.5 * rows[i, 1:]
        rows[i + 1] = 0.5 * (rows[i] + sign * times_u[:-1])
    return rows
