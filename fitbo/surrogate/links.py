"""How g at any point goes with g at some places, given the data.

    T, K    int           thetas, and etas of each
    P       int           places a (P, d), the same for every theta
    m, v    (B, M)        mean and variance of g at x, as the surrogate predicts them
    c       (B, T, P)     covariance of g(x) and g(a)

        c = k(x, a) - k(x, X).beta,      beta = K^-1 k(X, a),

so that beta (T, P, n) is P rows of coefficients beside alpha, and the product that predicts m
predicts k.beta as well, with its gradient.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from fitbo.mixture import Array
from fitbo.surrogate.batched import WIDE, Surrogate
from fitbo.surrogate.differences import squared_differences
from fitbo.surrogate.gp import blocks
from fitbo.surrogate.warp import MEAN_VARIANCE


class Linked(NamedTuple):
    """m (B, T, K), v (B, T) and c (B, T, P) at B points, and gradients with an axis d more."""

    m: Array
    v: Array
    c: Array
    dm: Array
    dv: Array
    dc: Array


@dataclass(frozen=True, eq=False)
class Links:
    """Made by ``link``: a surrogate, the places, and a surrogate whose alpha has beta below it."""

    surrogate: Surrogate
    place: Array
    wide: Surrogate

    def __call__(self, X: Array, gradient: bool = False) -> Linked:
        """At X (B, d); the gradients are empty unless they are asked for."""
        T, K, _ = self.surrogate.alpha.shape
        (B, d), (P, _) = X.shape, self.place.shape
        both = self.wide._latent(X, gradient)
        size = B, T, K + P
        m, dm = both.m.reshape(size), both.dm.reshape(*size, d * gradient)
        v, dv = both.v.reshape(size)[:, :, 0], both.dv.reshape(*size, d * gradient)[:, :, 0]
        if gradient:
            places = np.broadcast_to(self.place, (T, P, d))
            k, dk = covariance_with(self.surrogate, places, X, gradient)
        else:
            k, dk = prior(self.surrogate, X, self.place).swapaxes(0, 1), np.empty((*size[:2], P, 0))
        return Linked(m[:, :, :K], v, k - m[:, :, K:], dm[:, :, :K], dv, dk - dm[:, :, K:])


def link(surrogate: Surrogate, place: Array) -> Links:
    """The links of a surrogate with places (P, d) of the cube."""
    L = surrogate.inverse_factor
    beta = prior(surrogate, place, surrogate.X_data) @ L.swapaxes(1, 2) @ L
    wide = replace(surrogate, alpha=np.concatenate([surrogate.alpha, beta], axis=1))
    return Links(surrogate, place, wide)


def prior(surrogate: Surrogate, X1: Array, X2: Array) -> Array:
    """k(x1, x2) of every theta, (n1, d), (n2, d) -> (T, n1, n2)."""
    theta, table = surrogate.theta, squared_differences(X1, X2)
    k = surrogate.covariance.kernel.correlation(theta, table).reshape(-1, len(X1), len(X2))
    return theta.signal_variance[:, None, None] * k + MEAN_VARIANCE


def covariance_with(
    surrogate: Surrogate, place: Array, X: Array, gradient: bool
) -> tuple[Array, Array]:
    """k(x, a) (B, T, P) with the places (T, P, d) of each theta, and its gradient in x or empty."""
    (T, P, d), theta = place.shape, surrogate.theta
    places, each = place.reshape(-1, d), np.repeat(np.arange(T), P)
    q, s2 = theta.precisions[each][:, :, None], theta.signal_variance[each]
    k, dk = np.empty((len(X), T * P)), np.empty((len(X), T * P, d * gradient))
    for rows in blocks(len(X), WIDE):
        difference = X[rows].T - places[:, :, None]  # (T P, d, B)
        r2 = difference * difference * q
        rho, slopes = surrogate.covariance.kernel.rows(theta.share[each], r2)
        k[rows] = (s2[:, None] * rho + MEAN_VARIANCE).T
        if gradient:
            slopes = slopes * (2 * s2[:, None, None] * difference * q)
            dk[rows] = slopes.transpose(2, 0, 1)
    return k.reshape(len(X), T, P), dk.reshape(len(X), T, P, -1)
