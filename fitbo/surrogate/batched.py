"""The surrogate conditioned on data, for all hyperparameter samples at once.

==================  ===========  ===========================================================
symbol              shape        meaning
==================  ===========  ===========================================================
``T, K``            int          thetas, and etas of each: M = T K samples
``inverse_factor``  (T, n, n)    L^-1, L L^T the covariance of the warped data
``alpha``           (T, K, n)    (L L^T)^-1 (g - b), g the data as each eta warps them
``k``               (T, B, n)    covariances of candidates with data, s^2 rho + tau^2
``A``               (T, B, n)    k L^-T
==================  ===========  ===========================================================

    m = b + k alpha,      v = s^2 + tau^2 - |A|^2
    dm/dx = sum_n alpha_n dk_n/dx,      dv/dx = -2 sum_n (A L^-1)_n dk_n/dx

Prediction is one product of (B, n) with (n, n) a theta, and the gradient one more; the etas of a
theta share them (see ``etas``). Candidates and thetas come in blocks whose (T, B, n) arrays live
and die in cache (an additive kernel's parts are d times as large); both gradients are summed over
the data there and then (``kernel.x_gradient``), so what leaves a block is (T, K, B, d).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from fitbo.mixture import Array
from fitbo.surrogate.etas import gap_quantiles, weights_of
from fitbo.surrogate.gp import blocks, inverse_factor
from fitbo.surrogate.hyperparameters import Hyperparameters
from fitbo.surrogate.kernel import (
    AnyKernel,
    correlation,
    correlation_and_slopes,
    n_shares,
    named_kernel,
    parts_gradient,
    squared_differences,
    with_ones,
    x_gradient,
)
from fitbo.surrogate.parabola import (
    Latent,
    Mean,
    Parabola,
    Rule,
    floored,
    mean_of_g,
    noise_in_g,
    warp,
)
from fitbo.surrogate.posterior import DataCovariance, dataset

WIDE = 128  # candidates at once: enough for a product to reach its speed
CACHED = 1 << 16  # entries of an (M, B, n) array: half a megabyte
CONDITION_BLOCK = 1 << 22  # entries of the covariances factorised at once: 32 MB


@dataclass(frozen=True, eq=False)
class Surrogate(Parabola):
    """Predicts f for every sample; made by ``condition``."""

    PER_THETA: ClassVar = (*Parabola.PER_THETA, "theta", "inverse_factor", "alpha", "mean")

    theta: Hyperparameters
    kernel: AnyKernel
    inverse_factor: Array = field(repr=False)
    alpha: Array = field(repr=False)
    mean: Array
    mean_variance: float

    @cached_property
    def _weighted_data(self) -> Array:
        """alpha [X_data, 1], (T, K, n, d + 1): a climb asks for it at every step."""
        return self.alpha[:, :, :, None] * with_ones(self.X_data)

    def _latent(self, X: Array, gradient: bool) -> Latent:
        (T, K, _), (B, d) = self.alpha.shape, X.shape
        precisions, bordered = self.theta.precisions, with_ones(self.X_data)
        m, v = np.empty((T, K, B)), np.empty((T, B))
        dm, dv = np.empty((T, K, B, d * gradient)), np.empty((T, B, d * gradient))
        for rows in blocks(B, WIDE):
            table = squared_differences(X[rows], self.X_data)
            for js in blocks(T, CACHED // table.shape[1]):
                theta = self.theta[js]
                if not gradient:
                    rho = correlation(self.kernel, theta, table)
                    m[js, :, rows], v[js, rows], _ = self._moments_of_g(rho, js)
                    continue
                rho, slope, parts = correlation_and_slopes(self.kernel, theta, table)
                m[js, :, rows], v[js, rows], A = self._moments_of_g(rho, js)
                slope *= theta.signal_variance[:, None]
                slope = slope.reshape(A.shape)
                at = precisions[js], X[rows]
                for k in range(K):
                    dm[js, k, rows] = x_gradient(slope, *at, self._weighted_data[js, k])
                solved = A @ self.inverse_factor[js]
                dv[js, rows] = x_gradient(solved * slope, *at, bordered)
                if parts.size:
                    parts *= theta.signal_variance[:, None, None]
                    parts = parts.reshape(len(A), d, *A.shape[1:])
                    pair = *at, self.X_data
                    dm[js, :, rows] += parts_gradient(parts, *pair, self.alpha[js].swapaxes(1, 2))
                    parts *= solved[:, None]
                    dv[js, rows] += parts_gradient(parts, *pair, bordered[None, :, -1:])[:, 0]
        dv *= -2
        prior_variance = self.theta.signal_variance[:, None] + self.mean_variance
        return floored(m, v, dm, dv, prior_variance)

    def _moments_of_g(self, rho: Array, js: slice) -> tuple[Array, Array, Array]:
        """m (T, K, B), v (T, B), A (T, B, n) of the thetas js; rho (T, B n) is overwritten."""
        alpha, s2 = self.alpha[js], self.theta.signal_variance[js, None]
        k = rho.reshape(len(alpha), -1, alpha.shape[2])
        k *= s2[:, :, None]
        k += self.mean_variance
        m = self.mean[js, :, None] + alpha @ k.swapaxes(1, 2)
        A = k @ self.inverse_factor[js].swapaxes(1, 2)
        return m, s2 + self.mean_variance - np.vecdot(A, A), A


def condition(
    X: ArrayLike,
    y: ArrayLike,
    log_theta: ArrayLike,
    kernel: str | AnyKernel = "matern52",
    rule: Rule = "moment_matched",
    mean: Mean = "marginal",
    etas: int = 1,
) -> Surrogate:
    """The surrogate given X (n, d), standardised y (n,) and samples log_theta (T, P).

    With ``etas`` = K > 1, the log gap of each sample gives way to K values of
    its posterior given the others (see ``etas``).

    A covariance that is not definite gets the jitter it needs, so this does not fail on valid
    input; ``Surrogate.message`` says when that happened.
    """
    X, y = dataset(X, y)
    n, d = X.shape
    kernel = named_kernel(kernel)
    theta = Hyperparameters.unpack(log_theta, d, n_shares(kernel))
    g = warp(y - y.min(), theta.gap)
    tau2 = mean_of_g(g, mean)[1]
    noise = noise_in_g(theta.noise_variance, g)
    T = len(g)
    covariance = DataCovariance(X, kernel)
    factor, jitter = np.empty((T, n, n)), np.empty(T)
    for js in blocks(T, CONDITION_BLOCK // n**2):
        K = np.empty((len(g[js]), n, n))
        covariance.fill(K, theta[js], noise[js], tau2)
        factor[js], jitter[js] = inverse_factor(K)
    excess = y - y.min()
    gaps = gap_quantiles(factor, excess, theta.gap, etas, mean)
    alpha, b = weights_of(factor, excess, gaps, mean)
    return Surrogate(
        X_data=X,
        eta=y.min() - gaps.ravel(),
        noise_variance=theta.noise_variance,
        jitter=jitter,
        rule=rule,
        theta=theta,
        kernel=covariance.kernel,
        inverse_factor=factor,
        alpha=alpha,
        mean=b,
        mean_variance=tau2,
    )
