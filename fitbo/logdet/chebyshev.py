"""Chebyshev expansion of the logarithm: log det K ~ n sum_i c_i E[T_i].

c interpolates log at the m + 1 Chebyshev nodes of [lower, upper]; E[T_i] are the probe moments.
The error falls as exp(-2 m / sqrt(kappa)), so the method fails where the condition number is large.
Reference: Han, Malioutov & Shin (2015).
"""

from __future__ import annotations

import numpy as np
from numpy.polynomial.chebyshev import chebinterpolate, chebpts1, chebvander

from fitbo.logdet.bounds import Bounds, lanczos_ends
from fitbo.logdet.info import LogdetInfo
from fitbo.logdet.trace import Task, standard_error


def estimate(task: Task) -> tuple[float, LogdetInfo]:
    """The expansion of degree ``n_moments``; half as many products per probe.

    Without a lower bound the smallest Ritz value of a short Lanczos run stands in. It is no bound,
    so the moments are taken on [0, upper] and the polynomial is fitted to log on [lower, upper].
    """
    if exact := task.multiple_of_identity("chebyshev"):
        return exact
    lower, upper = task.bounds.pair
    if lower <= 0:
        lower = max(lanczos_ends(task.operator, task.rng)[0], 1e-12 * upper)
        on = Bounds(0.0, upper)
        coefficients = _project(lower, on, task.n_moments)
    else:
        on = task.bounds
        coefficients = chebinterpolate(lambda u: np.log(on.from_unit(u)), task.n_moments)
    moments = task.moments(on)
    values = task.operator.n * (moments @ coefficients)
    error = standard_error(values)
    return float(values.mean()), task.info("chebyshev", error, bounds=(lower, upper))


def _project(lower: float, on: Bounds, degree: int) -> np.ndarray:
    """The polynomial nearest to log at Chebyshev nodes of [lower, upper], in T_i of ``on``.

    Where lower is far from 0 many polynomials agree on [lower, upper]; least squares takes the
    smallest, which varies least below lower.
    """
    nodes = Bounds(lower, on.upper).from_unit(chebpts1(4 * (degree + 1)))
    phi = chebvander(on.to_unit(nodes), degree)
    return np.linalg.lstsq(phi, np.log(nodes), rcond=1e-12)[0]
