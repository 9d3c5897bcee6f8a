"""Several values of the minimum eta for each theta, at the price of one covariance.

==================  ===========  ===========================================================
symbol              shape        meaning
==================  ===========  ===========================================================
``theta``           (T,)         the other hyperparameters, with one gap each, the sampler's
``inverse_factor``  (T, n, n)    L^-1 of the covariance of the warped data, given theta
``gaps``            (T, K)       K values of y_min - eta for each theta
``g``               (T, K, n)    the data as each eta warps them
``alpha``           (T, K, n)    K^-1 (g - b)
==================  ===========  ===========================================================

Given theta, eta is one-dimensional, with posterior

    log p(gap | theta, y) = -|L^-1 (g - b)|^2/2 - sum_i log g_i + log p(gap) + const.

(the equals of the lowest datum counted once, as in ``parabola``).

L depends on eta only through the noise, which is noise/(g^2 + ...) in g. It is held at the
sampler's own gap: then one factor serves every eta, here and in prediction. Without noise that is
exact, and with noise it changes the weight of the few lowest data only.
"""

from __future__ import annotations

import numpy as np

from fitbo.mixture import Array
from fitbo.surrogate.parabola import Mean, log_jacobian, mean_of_g, warp
from fitbo.surrogate.prior import GAP

NODES = 24  # of the tabulated posterior
MARGIN = 1.0  # how far, in log gap, the first table goes beyond the sampler's own gaps
TAILS = 1e-3  # share of the posterior that the second table leaves out at either end


def gap_quantiles(inverse_factor: Array, excess: Array, gap: Array, etas: int, mean: Mean) -> Array:
    """Gaps at the quantiles (k + 1/2)/etas of each theta's posterior, (T, etas).

    excess (n,): y - y_min; gap (T,): the sampler's, returned as they are where ``etas`` is 1. The
    posterior is tabulated in log gap over the range of the sampler's, then again over the range
    that holds all but ``TAILS`` of it, and taken for linear between nodes.
    """
    if etas == 1:
        return gap[:, None]
    low = np.full(len(gap), np.log(gap.min()) - MARGIN)
    high = np.full(len(gap), np.log(gap.max()) + MARGIN)
    wanted = (np.arange(etas) + 0.5) / etas
    for shares in ([TAILS, 1 - TAILS], wanted):
        nodes = np.linspace(low, high, NODES, axis=1)
        p = _posterior(inverse_factor, excess, nodes, mean)
        mass = np.cumsum(0.5 * (p[:, 1:] + p[:, :-1]), axis=1)
        below = np.concatenate([np.zeros((len(gap), 1)), mass / mass[:, -1:]], axis=1)
        found = np.stack([np.interp(shares, row, at) for row, at in zip(below, nodes, strict=True)])
        low, high = found[:, 0], found[:, -1]
    return np.exp(found)


def _posterior(inverse_factor: Array, excess: Array, log_gap: Array, mean: Mean) -> Array:
    """p(log gap | theta, y) but for a factor, (T, nodes) -> (T, nodes)."""
    T, nodes = log_gap.shape
    g = warp(excess, np.exp(log_gap).ravel())
    r = (g - mean_of_g(g, mean)[0][:, None]).reshape(T, nodes, -1)
    z = inverse_factor @ r.swapaxes(1, 2)
    location, scale = GAP
    log_p = -0.5 * np.einsum("tng,tng->tg", z, z) + log_jacobian(g, excess).reshape(T, nodes)
    log_p -= 0.5 * ((log_gap - location) / scale) ** 2
    return np.exp(log_p - log_p.max(1, keepdims=True))


def weights_of(
    inverse_factor: Array, excess: Array, gaps: Array, mean: Mean
) -> tuple[Array, Array]:
    """alpha (T, K, n) and b (T, K), for gaps (T, K)."""
    T, K = gaps.shape
    g = warp(excess, gaps.ravel())
    b = mean_of_g(g, mean)[0]
    r = (g - b[:, None]).reshape(T, K, -1)
    z = inverse_factor @ r.swapaxes(1, 2)
    return (inverse_factor.swapaxes(1, 2) @ z).swapaxes(1, 2), b.reshape(T, K)
