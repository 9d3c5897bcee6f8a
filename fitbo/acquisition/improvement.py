"""The expected improvement of a Gaussian f, or of a parabola of one, and its probability.

    mean   (..., M)  E f of each component
    var    (..., M)  its variance, B below
    best   float     the value to improve upon, or (M,), of each component its own
    floor  (..., M)  eta, the lower bound of f = eta + g^2/2
    m, v   (..., M)  g ~ N(m, v), s = sqrt(v)
    c      (..., M)  sqrt(2 (best - eta)): f improves where |g| < c

For a Gaussian f it is s h(z) with z = (best - mean)/s (h and k as in ``normal``). But a Gaussian of
large variance reaches far below eta, so candidates in unknown corners look better than they are.
With a floor it is, without approximation,

    I = E max(best - f, 0) = 1/2 int_{-c}^{c} (c^2 - g^2) N(g; m, v) dg
      = c s (h_1 + h_2) - v (k_1 - k_2)/2,            at z_1 = (c - m)/s, z_2 = -(c + m)/s,
    dI/dm = -c (Phi_1 + Phi_2) + s (h_1 - h_2)
    dI/dv = (d^2 I/dm^2)/2 = (c (phi_1 + phi_2)/s - Phi_1 + Phi_2)/2

The terms cancel where the window is narrow, e = c/s small: there, with u = m/s,

    I = (2 c^3/3 s) phi(u) (1 + (u^2 - 1) e^2/10 + ...).

The probability that f improves is that of the window,

    P = Phi_1 - Phi_2,   dP/dm = (phi_2 - phi_1)/s,   dP/dv = (z_2 phi_2 - z_1 phi_1)/(2 v),

which vanishes as v grows, where that of a Gaussian with the same moments tends to a quarter.

Moment matching loses nothing: a = mean - eta = (m^2 + v)/2 and B = m^2 v + v^2/2 give back
m^2 = sqrt(4 a^2 - 2 B) and v = 2 a - m^2. (For the moments of f; with noise in B they would not.)
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from fitbo.acquisition.normal import phi, scaled
from fitbo.entropy.protocol import Gradient
from fitbo.mixture import LOG_2PI, Array

# Of e max(1, u). Here the expansion's next term is 1e-9, and the formula errs by less than 1e-6 in
# log I, for u > 100 by more; but there log I < -5000, and such a point is never chosen.
NARROW = 0.02
LEAST_SQUARE = 1e-6  # of m^2 against a: the derivatives are divided by m
LEAST_GAP = 1e-12  # of best - eta: a sample's minimum may lie above the value to improve upon


def log_improvement(
    mean: Array, var: Array, best: float | Array, floor: Array | None = None
) -> Gradient:
    """log E max(best - f, 0), and its derivatives in ``mean`` and ``var``, (..., M) each."""
    if floor is None:
        s = np.sqrt(var)
        at = scaled((best - mean) / s)
        log_value = np.log(s) + at.log_scale + np.log(at.h)
        return log_value, -at.below / (s * at.h), at.density / (2 * var * at.h)
    a, m2, v, c2 = parabola(mean, var, best, floor)
    log_value, by_m2, by_v = _of_parabola(m2, v, c2)
    return log_value, *by_moments(a, m2, by_m2, by_v)


def log_average(weights: Array, log_values: Array) -> tuple[Array, Array]:
    """The share of each of ``weights e^log_values`` in their sum, (..., M), and its log, (...,)."""
    with np.errstate(divide="ignore"):  # log 0 = -inf is the right log-weight
        terms = np.log(weights) + log_values
    top = terms.max(-1, keepdims=True)
    share = np.exp(terms - top)
    total = share.sum(-1, keepdims=True)
    return share / total, (top + np.log(total))[..., 0]


def probability(
    mean: Array, var: Array, best: float | Array, floor: Array | None = None
) -> Gradient:
    """P(f < best), and its derivatives in ``mean`` and ``var``, (..., M) each."""
    if floor is None:
        s = np.sqrt(var)
        z = (best - mean) / s
        return ndtr(z), -phi(z) / s, -z * phi(z) / (2 * var)
    a, m2, v, c2 = parabola(mean, var, best, floor)
    m, s, c = np.sqrt(m2), np.sqrt(v), np.sqrt(c2)
    one, two = (c - m) / s, -(c + m) / s
    by_m2 = (phi(two) - phi(one)) / (2 * m * s)
    by_v = (two * phi(two) - one * phi(one)) / (2 * v)
    return ndtr(one) - ndtr(two), *by_moments(a, m2, by_m2, by_v)


def parabola(
    mean: Array, var: Array, best: float | Array, floor: Array
) -> tuple[Array, Array, Array, Array]:
    """a, m^2, v and c^2 from the moments of f."""
    a = np.maximum(mean - floor, LEAST_GAP)  # positive but for rounding, if eta is far below
    m2 = np.sqrt(np.maximum(4 * a * a - 2 * var, (LEAST_SQUARE * a) ** 2))
    v = 2 * var / (2 * a + m2)
    c2 = 2 * np.maximum(best - floor, LEAST_GAP)
    return a, m2, v, np.broadcast_to(c2, v.shape)


def by_moments(a: Array, m2: Array, by_m2: Array, by_v: Array) -> tuple[Array, Array]:
    """Derivatives in m^2 and v to those in mean and var: dm^2/da = 4 a/m^2, dm^2/dB = -1/m^2."""
    return 2 * by_v + (by_m2 - by_v) * (4 * a / m2), (by_v - by_m2) / m2


def _of_parabola(m2: Array, v: Array, c2: Array) -> Gradient:
    """log I, and its derivatives in m^2 and in v."""
    m, s, c = np.sqrt(m2), np.sqrt(v), np.sqrt(c2)
    one, two = scaled((c - m) / s), scaled(-(c + m) / s)
    rest = np.exp(two.log_scale - one.log_scale)
    value = c * s * (one.h + rest * two.h) - 0.5 * v * (one.k - rest * two.k)
    by_m = s * (one.h - rest * two.h) - c * (one.below + rest * two.below)
    curvature = c / s * (one.density + rest * two.density) - (one.below - rest * two.below)
    u2, e2 = m2 / v, c2 / v
    narrow = e2 * np.maximum(1.0, u2) < NARROW**2
    value = np.where(narrow, 1.0, value)
    expansion = np.where(narrow, 1 + 0.1 * (u2 - 1) * e2, 1.0)
    return (
        np.where(
            narrow,
            np.log(2 / 3 * c * e2 * s * expansion) - 0.5 * (u2 + LOG_2PI),
            one.log_scale + np.log(value),
        ),
        np.where(narrow, (0.1 * e2 / expansion - 0.5) / v, by_m / (2 * m * value)),
        np.where(
            narrow,
            (0.5 * (u2 - 1) + 0.1 * e2 * (1 - 2 * u2) / expansion) / v,
            0.5 * curvature / value,
        ),
    )
