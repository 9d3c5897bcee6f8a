"""The surrogate conditioned on data, for M hyperparameter samples at once.

==================  ===========  ===========================================================
symbol              shape        meaning
==================  ===========  ===========================================================
``inverse_factor``  (M, n, n)    L^-1, K = L L^T the covariance of the warped data
``alpha``           (M, n)       K^-1 (g - b)
``k``               (M, B, n)    covariances of candidates with data, s^2 rho + tau^2
``A``               (M, B, n)    k L^-T
==================  ===========  ===========================================================

    m = b + k alpha,      v = s^2 + tau^2 - |A|^2
    dm/dx = sum_n alpha_n dk_n/dx,      dv/dx = -2 sum_n (A L^-1)_n dk_n/dx

Prediction is one product of (B, n) with (n, n) a sample, and the gradient one more. Candidates and
samples come in blocks whose (M, B, n) arrays live and die in cache; both gradients are summed over
the data there and then (see ``kernel.x_gradient``), so what leaves a block is (M, B, d).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from fitbo.mixture import Array
from fitbo.surrogate.gp import blocks, condition_stack
from fitbo.surrogate.hyperparameters import Hyperparameters
from fitbo.surrogate.kernel import (
    Kernel,
    named_kernel,
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

    theta: Hyperparameters
    kernel: Kernel
    inverse_factor: Array = field(repr=False)
    alpha: Array = field(repr=False)
    mean: Array
    mean_variance: float

    def _latent(self, X: Array, gradient: bool) -> Latent:
        M, (B, d) = self.n_samples, X.shape
        precisions, bordered = self.theta.precisions, with_ones(self.X_data)
        m, v = np.empty((2, M, B))
        dm, dv = np.empty((2, *((M, B, d) if gradient else (0, 0, 0))))
        for rows in blocks(B, WIDE):
            table = squared_differences(X[rows], self.X_data)
            for js in blocks(M, CACHED // table.shape[1]):
                r2 = precisions[js] @ table
                if not gradient:
                    m[js, rows], v[js, rows], _ = self._moments_of_g(self.kernel.value(r2), js)
                    continue
                rho, slope = self.kernel.value_and_slope(r2)
                m[js, rows], v[js, rows], A = self._moments_of_g(rho, js)
                slope *= self.theta.signal_variance[js, None]
                slope = slope.reshape(A.shape)
                scaled = self.alpha[js, :, None] * bordered
                dm[js, rows] = x_gradient(slope, precisions[js], X[rows], scaled)
                solved = A @ self.inverse_factor[js]
                solved *= slope
                dv[js, rows] = x_gradient(solved, precisions[js], X[rows], bordered)
        dv *= -2
        prior_variance = self.theta.signal_variance[:, None] + self.mean_variance
        return floored(m, v, dm, dv, prior_variance)

    def _moments_of_g(self, rho: Array, js: slice) -> tuple[Array, Array, Array]:
        """m, v (M, B) and A (M, B, n) of the samples js, from rho (M, B n), which it overwrites."""
        alpha, s2 = self.alpha[js], self.theta.signal_variance[js, None]
        k = rho.reshape(len(alpha), -1, alpha.shape[1])
        k *= s2[:, :, None]
        k += self.mean_variance
        m = self.mean[js, None] + (k @ alpha[:, :, None])[:, :, 0]
        A = k @ self.inverse_factor[js].swapaxes(1, 2)
        return m, s2 + self.mean_variance - np.vecdot(A, A), A


def condition(
    X: ArrayLike,
    y: ArrayLike,
    log_theta: ArrayLike,
    kernel: str | Kernel = "matern52",
    rule: Rule = "moment_matched",
    mean: Mean = "marginal",
) -> Surrogate:
    """The surrogate given X (n, d), standardised y (n,) and samples log_theta (M, d + 3).

    A covariance that is not definite gets the jitter it needs, so this does not fail on valid
    input; ``Surrogate.message`` says when that happened.
    """
    X, y = dataset(X, y)
    n, d = X.shape
    theta = Hyperparameters.unpack(log_theta, d)
    g = warp(y - y.min(), theta.gap)
    b, tau2 = mean_of_g(g, mean)
    noise = noise_in_g(theta.noise_variance, g)
    M = len(g)
    covariance = DataCovariance(X, named_kernel(kernel))
    inverse_factor, alpha, jitter = np.empty((M, n, n)), np.empty((M, n)), np.empty(M)
    for js in blocks(M, CONDITION_BLOCK // n**2):
        K = np.empty((len(g[js]), n, n))
        covariance.fill(K, theta[js], noise[js], tau2)
        inverse_factor[js], alpha[js], jitter[js] = condition_stack(K, g[js] - b[js, None])
    return Surrogate(
        X_data=X,
        eta=y.min() - theta.gap,
        noise_variance=theta.noise_variance,
        jitter=jitter,
        rule=rule,
        theta=theta,
        kernel=covariance.kernel,
        inverse_factor=inverse_factor,
        alpha=alpha,
        mean=b,
        mean_variance=tau2,
    )
