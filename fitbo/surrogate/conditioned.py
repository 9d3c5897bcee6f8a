"""A surrogate whose every sample knows one more value of g, at a place of its own.

    M = T K      int     samples: thetas, and etas of each
    x*, g*       (M, d), (M,)  where a sample knows g, and the value
    m*, v*       (M,)    mean and variance of g there, given the data
    c            (B, M)  covariance of g(x) and g(x*), given the data

No factor is made anew: given the data, g(x) and g(x*) are jointly Gaussian, and

    m' = m + c (g* - m*)/v*,      v' = v - c^2/v*,      c = k(x, x*) - k(x, X).beta,

with beta = K^-1 k(X, x*) (n,) a second row of coefficients beside alpha, so that the product that
predicts m predicts k.beta as well, with its gradient. Of a theta with K etas the surrogate has 2 K
samples, first the K as they are and then the K that know g*, so that a functional of its mixture
may compare them. A value in the nugget's reach of a datum adds nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from fitbo.mixture import Array
from fitbo.surrogate.batched import Surrogate
from fitbo.surrogate.differences import squared_differences
from fitbo.surrogate.links import covariance_with
from fitbo.surrogate.parabola import LATENT_FLOOR, Latent
from fitbo.surrogate.warp import MEAN_VARIANCE, NUGGET

FARTHEST = 5.0  # standard deviations of g* from m*: a path's features are an approximation


@dataclass(frozen=True, eq=False, kw_only=True)
class Conditioned(Surrogate):
    """Made by ``knowing``: ``alpha`` (T, 2 K, n) holds alpha and beta, ``eta`` (2 M,) eta twice.

    place (T, K, d): x*; shift (T, K): (g* - m*)/v*; spare (T, K): v*.
    """

    place: Array
    shift: Array
    spare: Array

    def _latent(self, X: Array, gradient: bool) -> Latent:
        both = super()._latent(X, gradient)
        (T, K), (B, d) = self.shift.shape, X.shape
        k, dk = covariance_with(self, self.place, X, gradient)
        m, v = (a.reshape(B, T, 2, K) for a in (both.m, both.v))
        dm, dv = (a.reshape(B, T, 2, K, d * gradient) for a in (both.dm, both.dv))
        c, dc = k - m[:, :, 1], dk - dm[:, :, 1]
        known = v[:, :, 0] - c * c / self.spare
        least = LATENT_FLOOR * (self.theta.signal_variance[:, None] + MEAN_VARIANCE)
        fall = 2 * (c / self.spare)[..., None] * dc
        m = np.stack([m[:, :, 0], m[:, :, 0] + c * self.shift], axis=2)
        v = np.stack([v[:, :, 0], np.maximum(known, least)], axis=2)
        dm = np.stack([dm[:, :, 0], dm[:, :, 0] + dc * self.shift[..., None]], axis=2)
        slope = np.where((known > least)[..., None], dv[:, :, 0] - fall, 0.0)
        dv = np.stack([dv[:, :, 0], slope], axis=2)
        size = B, 2 * T * K
        return Latent(
            m.reshape(size), v.reshape(size), dm.reshape(*size, -1), dv.reshape(*size, -1)
        )


def knowing(surrogate: Any, x: Array, g: Array) -> Conditioned:
    """The ``Surrogate`` whose sample j knows that g is g[j] at x[j], x (M, d) and g (M,)."""
    T, K, n = surrogate.alpha.shape
    theta, s2 = surrogate.theta, surrogate.theta.signal_variance[:, None]
    place = np.ascontiguousarray(x, dtype=np.float64).reshape(T, K, -1)
    k = np.empty((T, K, n))
    for t in range(T):
        table = squared_differences(place[t], surrogate.X_data)
        k[t] = surrogate.covariance.kernel.correlation(theta[t : t + 1], table).reshape(K, n)
    k = s2[:, :, None] * k + MEAN_VARIANCE
    L = surrogate.inverse_factor
    A = k @ L.swapaxes(1, 2)
    spare = s2 * (1 + NUGGET) + MEAN_VARIANCE - np.vecdot(A, A)
    spare = np.maximum(spare, NUGGET * s2 + LATENT_FLOOR * (s2 + MEAN_VARIANCE))
    ahead = np.asarray(g).reshape(T, K) - np.vecdot(surrogate.alpha, k)
    reach = FARTHEST * np.sqrt(spare)
    given = {f.name: getattr(surrogate, f.name) for f in fields(surrogate)}
    given["eta"] = np.repeat(surrogate.eta.reshape(T, 1, K), 2, axis=1).ravel()
    given["alpha"] = np.concatenate([surrogate.alpha, A @ L], axis=1)
    return Conditioned(
        **given, place=place, shift=np.clip(ahead, -reach, reach) / spare, spare=spare
    )
