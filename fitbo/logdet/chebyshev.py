"""Chebyshev expansion of the logarithm: log det K ~ n sum_i c_i E[T_i].

c interpolates log at the m + 1 Chebyshev nodes of [lower, upper]; E[T_i] are the probe moments.
Its error falls as exp(-2 m / sqrt(kappa)), so a poor condition number is fatal. Reference: Han,
Malioutov & Shin (2015).
"""

from __future__ import annotations

import numpy as np

from fitbo.logdet.bounds import Bounds, lanczos_ends
from fitbo.logdet.info import LogdetInfo
from fitbo.logdet.operator import Operator
from fitbo.logdet.trace import chebyshev_moments, standard_error


def chebyshev(
    operator: Operator,
    n_moments: int,
    n_probes: int,
    bounds: Bounds,
    rng: np.random.Generator,
) -> tuple[float, LogdetInfo]:
    """The expansion of degree ``n_moments``; half as many products a probe.

    Without a lower bound the smallest Ritz value of a short Lanczos run stands in: no bound, so the
    moments are taken on [0, upper] and the polynomial is fitted to log on [lower, upper].
    """
    lower = bounds.lower
    if lower <= 0:
        lower = max(lanczos_ends(operator, rng)[0], 1e-12 * bounds.upper)
        on = Bounds(0.0, bounds.upper)
        moments = chebyshev_moments(operator, on, n_moments, n_probes, rng)
        coefficients = _project(lower, on, n_moments)
    elif bounds.upper - lower <= 1e-12 * bounds.upper:
        value = operator.n * float(np.log(bounds.upper))
        return value, LogdetInfo("chebyshev", operator.products, 0.0, bounds.pair)
    else:
        moments = chebyshev_moments(operator, bounds, n_moments, n_probes, rng)
        coefficients = np.polynomial.chebyshev.chebinterpolate(
            lambda u: np.log(bounds.from_unit(u)), n_moments
        )
    values = operator.n * (moments @ coefficients)
    return float(values.mean()), LogdetInfo(
        method="chebyshev",
        products=operator.products,
        standard_error=standard_error(values),
        bounds=(lower, bounds.upper),
        n_moments=n_moments,
    )


def _project(lower: float, on: Bounds, degree: int) -> np.ndarray:
    """The polynomial nearest to log at Chebyshev nodes of [lower, upper], in T_i of ``on``.

    Where lower is far from 0 many polynomials agree on [lower, upper]; least squares takes the
    smallest, which is the tamest below lower.
    """
    nodes = Bounds(lower, on.upper).from_unit(np.polynomial.chebyshev.chebpts1(4 * (degree + 1)))
    phi = np.polynomial.chebyshev.chebvander(on.to_unit(nodes), degree)
    return np.linalg.lstsq(phi, np.log(nodes), rcond=1e-12)[0]
