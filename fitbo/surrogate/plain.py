"""A plain Gaussian process for all hyperparameter samples at once: values as they are, no warp.

The covariance, priors and predictions are those of ``batched``, with the symbols of ``parabola``:
g is z itself, so that

    log p(theta | z) = log N(z; 0, K) + log p(theta) + const,   K = k + tau^2 + delta (noise + ...).

The gap has no meaning here; its column keeps its prior.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fitbo.mixture import Array
from fitbo.surrogate.batched import DataCovariance, LogPosterior, Surrogate
from fitbo.surrogate.gp import inverse_factor
from fitbo.surrogate.hyperparameters import Theta
from fitbo.surrogate.parabola import Latent
from fitbo.surrogate.posterior import dataset
from fitbo.surrogate.stationary import Kernel


class PlainPosterior(LogPosterior):
    """The log-density of ``log_theta`` given z (n,) at X (n, d)."""

    def _warped(self, theta: Theta, excess: Array) -> tuple[Array, Array, Array]:
        g = np.broadcast_to(self.y, (len(theta.gap), len(self.y)))
        return g, theta.noise_variance[:, None], np.zeros(len(g))

    def _slopes(
        self, theta: Theta, g: Array, excess: Array, A: Array, G: Array
    ) -> tuple[Array, Array]:
        return theta.noise_variance * G.sum(1), np.zeros(len(G))


@dataclass(frozen=True, eq=False)
class Process:
    """Processes given z (n,) at X (n, d), one for each of T samples."""

    surrogate: Surrogate

    @classmethod
    def condition(cls, X: Array, z: Array, log_theta: Array, kernel: str | Kernel) -> Process:
        X, z = dataset(X, z)
        covariance = DataCovariance(X, kernel)
        theta = covariance.unpack(log_theta)
        T, n = len(theta.gap), len(z)
        noise = np.tile(theta.noise_variance[:, None], n)
        K = np.empty((T, n, n))
        covariance.fill(K, theta, noise)
        factor, jitter = inverse_factor(K)
        alpha = (factor.swapaxes(1, 2) @ (factor @ z)[:, :, None]).swapaxes(1, 2)
        eta = np.zeros(T)
        return cls(Surrogate(covariance, theta, eta, jitter, "linearised", factor, alpha, noise))

    def __getitem__(self, samples: slice) -> Process:
        """Some of the samples."""
        return Process(self.surrogate[samples])

    def predict(self, X: Array, gradient: bool = False) -> Latent:
        """Mean and variance of the process at X (B, d), without noise: (B, T) each."""
        return self.surrogate._latent(X, gradient)
