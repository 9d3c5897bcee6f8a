"""The model ``f(x) = eta + g(x)^2/2``, g a Gaussian process: an f that cannot fall below eta.

    excess  (n,)    y - y_min >= 0, on standardised y
    gap     (M,)    y_min - eta > 0
    g       (M, n)  the warped data, g_i = sqrt(2 (y_i - eta)) = sqrt(2 (excess_i + gap))
    m, v    (B, M)  mean and variance of g at a candidate, for each sample

**Jacobian.** dg/dy = 1/g, so p(y) = N(g; 0, K) prod_i 1/g_i. Without the product every sample of
eta would be scored in its own units. (The map is two to one; as in FITBO the data take the branch
g > 0, so p integrates over y to the probability of that branch.) A continuous g has no equal
values, but a rounded y or a count may have k equal lowest ones: then p would grow as gap^(-k/2) as
the gap vanishes, until eta reaches y_min. So equal lowest values count once.

**Noise** is in y. A variance ``noise = e^2`` in y is, to first order, ``noise/g_i^2`` in g. That
holds while e is small against y_i - eta = g_i^2/2. Nearer to eta it diverges, so the smallest y
would fit any process, and the posterior of eta would lean towards y_min. In truth g is never more
uncertain than sqrt(2 e) (y = eta gives Var g = 0.24 e), so the variance used is
``noise/(g_i^2 + 2 e)``: the first-order one for g_i^2 >> 2 e, and e/2 at g = 0. Measured on 12
draws of a smooth process in two dimensions (n = 30, prior median of the gap 0.1): true gap 0.38,
posterior median 0.02 without the bound and 0.23 with it. A value may state a variance of its own,
s_i^2, as the mean of several measurements does: then e_i^2 = noise + s_i^2 takes the place of e^2.

**Mean.** A zero-mean g would predict f = eta, the minimum itself, wherever there are no data. So g
has a constant mean ``b ~ N(0, tau^2)``, integrated out, which adds tau^2 to every covariance. For
y - eta of 1 to 5 standard deviations g is about 1 to 3, so tau = 3. Far from data the prediction
returns to the generalised-least-squares mean, shrunk by a factor 1/(1 + Var/tau^2) near one, and
the variance includes the mean's own uncertainty. Noise aside this is a proper density of y, even
for a single point; with the empirical mean of g it would not be, as the data would be used twice.

**Prediction.** From g ~ N(m, v), for each sample:

    linearised       mean eta + m^2/2          variance m^2 v
    moment_matched   mean eta + (m^2 + v)/2    variance m^2 v + v^2/2     (exact moments of g^2/2)
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from fitbo.mixture import Array

Rule = Literal["moment_matched", "linearised"]

MEAN_VARIANCE = 9.0  # tau^2
# The share of the signal variance added to the diagonal of every covariance. It keeps noise-free
# and duplicate data factorisable without a jitter that would vary with the hyperparameters; in g it
# is a standard deviation of 1e-5 of the signal's.
NUGGET = 1e-10


def warp(excess: Array, gap: Array) -> Array:
    """g_i = sqrt(2 (excess_i + gap)) > 0: (n,), (M,) -> (M, n)."""
    return np.sqrt(2 * (excess + gap[:, None]))


def log_jacobian(g: Array, excess: Array) -> Array:
    """sum_i log dg/dy = -sum_i log g_i, equal lowest values once: (M, n), (n,) -> (M,)."""
    equals = np.count_nonzero(excess == 0) - 1
    value = -np.log(g).sum(1)
    return value + equals * np.log(g.min(1)) if equals else value


def noise_in_y(noise_variance: Array, stated: Array | None) -> Array:
    """e_i, with e_i^2 = noise + s_i^2 the variance of y_i about f: (M,), (n,) -> (M, n or 1)."""
    variance = noise_variance[:, None]
    return np.sqrt(variance if stated is None else variance + stated)


def noise_in_g(noise_variance: Array, g: Array, stated: Array | None = None) -> Array:
    """The variance in g of noise in y, e_i^2/(g_i^2 + 2 e_i): (M,), (M, n) -> (M, n).

    stated (n,): s_i^2, what each value states besides the noise that all have.
    """
    e = noise_in_y(noise_variance, stated)
    return e * e / (g * g + 2 * e)


def moments_of_f(rule: Rule, eta: Array, m: Array, v: Array) -> tuple[Array, Array]:
    """Mean and variance of f = eta + g^2/2 by the rule: (M,), (B, M), (B, M) -> (B, M) each."""
    if rule == "linearised":
        return eta + 0.5 * m * m, m * m * v
    return eta + 0.5 * (m * m + v), (m * m + 0.5 * v) * v


def moments_vjp(
    rule: Rule, m: Array, v: Array, by_mean: Array, by_variance: Array
) -> tuple[Array, Array]:
    """Slopes in the moments of f to slopes in m and v, all (B, M)."""
    by_m = m * (by_mean + 2 * v * by_variance)
    if rule == "linearised":
        return by_m, m * m * by_variance
    return by_m, 0.5 * by_mean + (m * m + v) * by_variance
