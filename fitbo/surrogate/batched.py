"""The surrogate for all hyperparameter samples at once, with the symbols of ``parabola``.

With k (T, B, n) the covariances of candidates with data, s^2 rho + tau^2, and A = k L^-T (T, B, n),

    m = k alpha,      v = s^2 + tau^2 - |A|^2
    dm/dx = sum_n alpha_n dk_n/dx,      dv/dx = -2 sum_n (A L^-1)_n dk_n/dx

Prediction is one product of (B, n) with (n, n) per theta, and the gradient one more; the etas of a
theta share them (see ``etas``). Candidates and thetas come in blocks whose (T, B, n) arrays stay in
cache (an additive kernel's parts are d times as large). Both gradients are summed over the data
within a block (``kernel.x_gradient``), so what leaves it is (T, K, B, d).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from fitbo.checks import assign
from fitbo.mixture import Array
from fitbo.surrogate.differences import parts_gradient, squared_differences, with_ones, x_gradient
from fitbo.surrogate.gp import blocks, times_inverse
from fitbo.surrogate.hyperparameters import Hyperparameters, Prior, default_prior
from fitbo.surrogate.kernel import named_kernel
from fitbo.surrogate.parabola import Latent, Parabola, floored
from fitbo.surrogate.posterior import Covariance, Posterior
from fitbo.surrogate.warp import MEAN_VARIANCE, NUGGET

WIDE = 128  # candidates at once: enough for a product to reach its speed
CACHED = 1 << 16  # entries of an (M, B, n) array: half a megabyte


@dataclass(frozen=True, eq=False)
class DataCovariance(Covariance):
    """Covariances of all samples at once.

    The squared differences of the data are tabulated once, for the strict lower triangle only: exp
    is half of the cost of a likelihood, and a Cholesky reads no other part.
    """

    def __post_init__(self) -> None:
        assign(self, kernel=named_kernel(self.kernel))

    @cached_property
    def _pairs(self) -> tuple[np.ndarray, np.ndarray]:
        return np.tril_indices(len(self.X), -1)

    def _flat(self, side: int) -> np.ndarray:
        """Where those pairs are in a matrix (side, side) that is read row by row."""
        return self._pairs[0] * side + self._pairs[1]

    @cached_property
    def _table(self) -> Array:
        rows, columns = self._pairs
        return np.ascontiguousarray(((self.X[rows] - self.X[columns]) ** 2).T)

    def default_prior(self) -> Prior:
        return default_prior(self.X.shape[1], self.kernel.n_shares)

    def unpack(self, log_theta: ArrayLike) -> Hyperparameters:
        return Hyperparameters.unpack(log_theta, self.X.shape[1], self.kernel.n_shares)

    def fill(self, K: Array, theta: Hyperparameters, noise: Array) -> None:
        self._write(K, self.kernel.correlation(theta, self._table), theta, noise)

    def _write(self, K: Array, rho: Array, theta: Hyperparameters, noise: Array) -> None:
        """The lower triangle of K from the correlations (M, N), which are overwritten."""
        (M, side), n = K.shape[:2], len(self.X)
        s2 = theta.signal_variance[:, None]
        rho *= s2
        rho += MEAN_VARIANCE
        flat = K.reshape(M, -1)
        flat[:, self._flat(side)] = rho
        flat[:, : n * side : side + 1] = noise + (s2 * (1 + NUGGET) + MEAN_VARIANCE)

    @property
    def noise_column(self) -> int:
        return self.X.shape[1] + 1

    def fill_with_gradient(
        self, K: Array, theta: Hyperparameters, noise: Array
    ) -> Callable[[Array], Array]:
        """With r2_i = (x_i - x'_i)^2/l_i^2 and R the kernel without its additive part,

        dk/d log l_i = -2 s^2 (slope + parts_i) r2_i,   dk/d log s^2 = s^2 rho,
        and dk/d log odds = s^2 d rho/d log odds, of which the kernel has the rest.
        """
        rho, slope, parts = self.kernel.correlation_and_slopes(theta, self._table)
        self._write(K, rho.copy(), theta, noise)

        def gradient(G: Array) -> Array:
            (M, d), s2 = theta.lengthscales.shape, theta.signal_variance
            pairs = 2 * G.reshape(M, -1)[:, self._flat(len(self.X))]
            slopes = np.zeros((M, d + 3 + self.kernel.n_shares))
            slopes[:, :d] = (pairs * slope) @ self._table.T
            if parts is not None:
                slopes[:, :d] += np.vecdot(parts * self._table, pairs[:, None])
                by_odds = self.kernel.by_odds(theta, theta.precisions @ self._table, rho)
                slopes[:, d + 3 :] = s2[:, None] * np.vecdot(pairs[:, None], by_odds)
            slopes[:, :d] *= -2 * theta.precisions * s2[:, None]
            diagonal = np.einsum("mii->m", G)
            slopes[:, d] = s2 * (np.vecdot(pairs, rho) + (1 + NUGGET) * diagonal)
            return slopes

        return gradient


class LogPosterior(Posterior):
    """The log-density of ``log_theta`` as ``Hyperparameters`` packs it, by ``Kernel`` or name."""

    COVARIANCE: ClassVar = DataCovariance


class Surrogate(Parabola):
    """Predicts f for every sample."""

    COVARIANCE: ClassVar = DataCovariance

    theta: Hyperparameters

    @cached_property
    def _weighted_data(self) -> Array:
        """alpha [X_data, 1], (T, K, n, d + 1): used at every step of a climb."""
        return self.alpha[:, :, :, None] * with_ones(self.X_data)

    def _latent(self, X: Array, gradient: bool) -> Latent:
        (T, K, _), (B, d) = self.alpha.shape, X.shape
        kernel = self.covariance.kernel
        precisions, bordered = self.theta.precisions, with_ones(self.X_data)
        m, v = np.empty((T, K, B)), np.empty((T, B))
        dm, dv = np.empty((T, K, B, d * gradient)), np.empty((T, B, d * gradient))
        for rows in blocks(B, WIDE):
            table = squared_differences(X[rows], self.X_data)
            for js in blocks(T, CACHED // table.shape[1]):
                theta = self.theta[js]
                if not gradient:
                    rho = kernel.correlation(theta, table)
                    m[js, :, rows], v[js, rows], _ = self._moments_of_g(rho, js)
                    continue
                rho, slope, parts = kernel.correlation_and_slopes(theta, table)
                m[js, :, rows], v[js, rows], A = self._moments_of_g(rho, js)
                slope *= theta.signal_variance[:, None]
                slope = slope.reshape(A.shape)
                at = precisions[js], X[rows]
                for k in range(K):
                    dm[js, k, rows] = x_gradient(slope, *at, self._weighted_data[js, k])
                solved = times_inverse(A, self.inverse_factor[js], transposed=True)
                dv[js, rows] = x_gradient(solved * slope, *at, bordered)
                if parts is not None:
                    parts *= theta.signal_variance[:, None, None]
                    parts = parts.reshape(len(A), d, *A.shape[1:])
                    pair = *at, self.X_data
                    dm[js, :, rows] += parts_gradient(parts, *pair, self.alpha[js].swapaxes(1, 2))
                    parts *= solved[:, None]
                    dv[js, rows] += parts_gradient(parts, *pair, bordered[None, :, -1:])[:, 0]
        dv *= -2
        prior_variance = self.theta.signal_variance[:, None] + MEAN_VARIANCE
        return floored(m, v, dm, dv, prior_variance)

    def update(self, beta: Array, X: Array) -> Array:
        """sum_n beta_n k(x, x_n) at X (B, d), beta (T, K, n) -> (T, K, B)."""
        out = np.empty((*beta.shape[:2], len(X)))
        for rows in blocks(len(X), WIDE):
            table = squared_differences(X[rows], self.X_data)
            for js in blocks(len(beta), CACHED // table.shape[1]):
                k = self.covariance.kernel.correlation(self.theta[js], table)
                k *= self.theta.signal_variance[js, None]
                k += MEAN_VARIANCE
                out[js, :, rows] = beta[js] @ k.reshape(len(k), -1, beta.shape[2]).swapaxes(1, 2)
        return out

    def _moments_of_g(self, rho: Array, js: slice) -> tuple[Array, Array, Array]:
        """m (T, K, B), v (T, B), A (T, B, n) of the thetas js; rho (T, B n) is overwritten."""
        alpha, s2 = self.alpha[js], self.theta.signal_variance[js, None]
        k = rho.reshape(len(alpha), -1, alpha.shape[2])
        k *= s2[:, :, None]
        k += MEAN_VARIANCE
        A = times_inverse(k, self.inverse_factor[js])
        return alpha @ k.swapaxes(1, 2), s2 + MEAN_VARIANCE - np.vecdot(A, A), A


condition = Surrogate.condition
