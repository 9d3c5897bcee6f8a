"""More data for a surrogate whose hyperparameters stay: its factors are bordered, not made anew.

    c  (T, n)  covariances of a new point with the n data,  a = L^-1 c
    r  (T,)    the standard deviation of its g given the data, noise included: r^2 = k - |a|^2

    [ L    0 ]^-1   [  L^-1           0   ]
    [ a^T  r ]    = [ -a^T L^-1 / r   1/r ]

costs n^2 for each theta where a factorisation costs n^3. The data's own etas stay as well, so the
old g do not change, and the likelihood of theta gains the density of the new value,

    log p(y_new | y, theta) = -z^2/2 - log r - log g_new + const,   z = (g_new - a.L^-1 g)/r,

by which its weight is multiplied: -inf where a new value lies below theta's eta. Of equal lowest
values, the Jacobian's -log g_new counts one (``warp``), so that it is taken of all data anew. The
prior is stated for the gap y_min - eta, so a new minimum changes it too: log p(log gap) - log gap
is the density of eta. Data are added one by one, and nothing is rounded twice, so that the result
is the same to the last bit however they came.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fitbo.mixture import Array
from fitbo.surrogate.batched import DataCovariance, Surrogate
from fitbo.surrogate.differences import squared_differences
from fitbo.surrogate.etas import gap_quantiles, weights_of
from fitbo.surrogate.hyperparameters import GAP
from fitbo.surrogate.warp import MEAN_VARIANCE, NUGGET, log_jacobian, noise_in_g, warp

LEAST = 1e-12  # share of its variance that a datum keeps, however near it is to another


def extended(surrogate: Surrogate, X: Array, y: Array, stated: Array | None = None) -> Surrogate:
    """The surrogate with k more data at X (k, d), and the weights that they leave to its thetas.

    y (n + k,): all values, on the scale of the first n, and so the variances that they state.
    """
    n, theta = len(y) - len(X), surrogate.theta
    own_eta, log_weights = surrogate.own_eta, surrogate.log_weights
    if own_eta is None or log_weights is None:
        own_eta, before = y[:n].min() - theta.gap, y[:n] - y[:n].min()
        log_weights = -_prior_of_eta(theta.gap) - log_jacobian(warp(before, theta.gap), before)
    excess, lowest = y - y.min(), y.min()
    gap = lowest - own_eta
    alive = gap > 0
    gap = np.where(alive, gap, np.median(gap[alive]) if alive.any() else 1.0)
    # Of each theta's own eta, and not by way of the gap, which another minimum would round anew.
    g = np.sqrt(2 * np.maximum(y - own_eta[:, None], np.finfo(np.float64).tiny))
    noise = noise_in_g(theta.noise_variance, g, stated)
    covariance, factor, r = _bordered(surrogate, X, noise[:, n:])
    for m in range(n, len(y)):
        z = np.vecdot(factor[:, m, : m + 1], g[:, : m + 1])
        log_weights = log_weights - 0.5 * z * z - np.log(r[m - n])
    gaps = gap_quantiles(factor, excess, gap, surrogate.etas)
    log_p = log_weights + log_jacobian(g, excess) + _prior_of_eta(gap)
    return replace(
        surrogate,
        covariance=covariance,
        theta=replace(theta, gap=gap),
        eta=lowest - gaps.ravel(),
        inverse_factor=factor,
        alpha=weights_of(factor, excess, gaps),
        noise=noise,
        stated=stated,
        weights=_normalised(np.where(alive, log_p, -np.inf)),
        own_eta=own_eta,
        log_weights=log_weights,
    )


def expecting(
    surrogate: Surrogate, X: Array, counts: np.ndarray, stated: Array | None = None
) -> Surrogate:
    """The surrogate as if at X (k, d) each sample had seen what it expects: g = m.

    That is no surprise to it: L'^-1 [g, m] = [L^-1 g, 0], so alpha' = [alpha, 0], the mean of g
    stays everywhere, and so do weights and etas. Only variances fall, and what there is to improve
    upon, where it ``counts`` (k,).

    stated (k,): the variances that the values will state.
    """
    (T, K), k = surrogate.alpha.shape[:2], len(X)
    m = surrogate._latent(X, gradient=False).m.T.reshape(T, K, k)
    noise = noise_in_g(surrogate.theta.noise_variance, abs(m).mean(1), stated)
    covariance, factor, _ = _bordered(surrogate, X, noise)
    if surrogate.stated is not None and stated is not None:
        stated = np.concatenate([surrogate.stated, stated])
    return replace(
        surrogate,
        covariance=covariance,
        inverse_factor=factor,
        alpha=np.concatenate([surrogate.alpha, np.zeros((T, K, k))], axis=2),
        noise=np.concatenate([surrogate.noise, noise], axis=1),
        stated=stated,
        expected=surrogate.eta.reshape(T, K) + 0.5 * np.where(counts, m * m, np.inf).min(2),
    )


def _bordered(surrogate: Surrogate, X: Array, noise: Array) -> tuple[DataCovariance, Array, Array]:
    """Covariances and L^-1 with X (k, d) too, of this noise in g (T, k), and r (k, T) of each."""
    kernel, theta = surrogate.covariance.kernel, surrogate.theta
    s2 = theta.signal_variance
    n, points = len(surrogate.X_data), np.concatenate([surrogate.X_data, X])
    factor = np.zeros((len(s2), len(points), len(points)))
    factor[:, :n, :n] = surrogate.inverse_factor
    deviations = np.empty((len(X), len(s2)))
    for m in range(n, len(points)):
        c = kernel.correlation(theta, squared_differences(points[m : m + 1], points[:m]))
        c = s2[:, None] * c + MEAN_VARIANCE
        inverse = factor[:, :m, :m]
        a = np.einsum("tij,tj->ti", inverse, c, optimize=True)
        own = s2 * (1 + NUGGET) + MEAN_VARIANCE + noise[:, m - n]
        r = deviations[m - n] = np.sqrt(np.maximum(own - np.vecdot(a, a), LEAST * own))
        factor[:, m, :m] = -(a[:, None, :] @ inverse)[:, 0] / r[:, None]
        factor[:, m, m] = 1 / r
    return DataCovariance(points, kernel), factor, deviations


def _normalised(log_weights: Array) -> Array:
    """Weights that sum to one; all of it to the first where nothing is left."""
    top = np.nanmax(log_weights)
    if not np.isfinite(top):
        return np.eye(1, len(log_weights))[0]
    weights = np.exp(np.nan_to_num(log_weights, nan=-np.inf) - top)
    return np.asarray(weights / weights.sum())


def _prior_of_eta(gap: Array) -> Array:
    """The log prior density of eta = y_min - gap, but for a constant, (T,)."""
    location, scale = GAP
    return -0.5 * ((np.log(gap) - location) / scale) ** 2 - np.log(gap)
