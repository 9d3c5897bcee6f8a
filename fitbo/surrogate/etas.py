"""Several values of the minimum eta for each theta, at the cost of one covariance.

Symbols are those of ``parabola``, with theta the other hyperparameters, gaps (T, K) the values of
y_min - eta, and z = L^-1 g (T, n, K). Given theta, eta is one-dimensional, with posterior

    log p(gap | theta, y) = -|z|^2/2 - sum_i log g_i + log p(gap) + const.

(equal lowest values count once, as in ``warp``). L depends on eta only through the noise, which
is noise/(g^2 + ...) in g. It is kept at the sampler's gap, so one factor serves every eta, here and
in prediction. Without noise that is exact; with noise it changes the weight of the few lowest data
only.
"""

from __future__ import annotations

import numpy as np

from fitbo.mixture import Array
from fitbo.surrogate.hyperparameters import GAP
from fitbo.surrogate.warp import log_jacobian, warp

NODES = 24  # of the tabulated posterior
MARGIN = 1.0  # by which the first table, in log gap, exceeds the range of the sampler's gaps
TAILS = 1e-3  # share of the posterior that the second table leaves out at either end


def gap_quantiles(inverse_factor: Array, excess: Array, gap: Array, etas: int) -> Array:
    """Gaps at the quantiles (k + 1/2)/etas of each theta's posterior, (T, etas).

    excess (n,): y - y_min; gap (T,): the sampler's, returned as they are if ``etas`` is 1. The
    posterior is tabulated in log gap over the range of the sampler's gaps, then again over the
    range that holds all but ``TAILS`` of it, and interpolated linearly.
    """
    if etas == 1:
        return gap[:, None]
    low = np.full(len(gap), np.log(gap.min()) - MARGIN)
    high = np.full(len(gap), np.log(gap.max()) + MARGIN)
    wanted = (np.arange(etas) + 0.5) / etas
    for shares in ([TAILS, 1 - TAILS], wanted):
        nodes = np.linspace(low, high, NODES, axis=1)
        p = _posterior(inverse_factor, excess, nodes)
        mass = np.cumsum(0.5 * (p[:, 1:] + p[:, :-1]), axis=1)
        below = np.concatenate([np.zeros((len(gap), 1)), mass / mass[:, -1:]], axis=1)
        found = np.stack([np.interp(shares, row, at) for row, at in zip(below, nodes, strict=True)])
        low, high = found[:, 0], found[:, -1]
    return np.exp(found)


def weights_of(inverse_factor: Array, excess: Array, gaps: Array) -> Array:
    """alpha = L^-T L^-1 g, for gaps (T, K) -> (T, K, n)."""
    z = inverse_factor @ _warped(excess, gaps).swapaxes(1, 2)
    return (inverse_factor.swapaxes(1, 2) @ z).swapaxes(1, 2)


def _posterior(inverse_factor: Array, excess: Array, log_gap: Array) -> Array:
    """p(log gap | theta, y) up to a factor, (T, K) -> (T, K)."""
    g, (location, scale) = _warped(excess, np.exp(log_gap)), GAP
    z = inverse_factor @ g.swapaxes(1, 2)
    log_p = -0.5 * np.einsum("tnk,tnk->tk", z, z)
    log_p += log_jacobian(g.reshape(-1, len(excess)), excess).reshape(log_gap.shape)
    log_p -= 0.5 * ((log_gap - location) / scale) ** 2
    return np.exp(log_p - log_p.max(1, keepdims=True))


def _warped(excess: Array, gaps: Array) -> Array:
    return warp(excess, gaps.ravel()).reshape(*gaps.shape, -1)
