"""Draws of the whole process given the data, as functions that can be evaluated anywhere.

    T, K   int           thetas, and etas of each: one path for each of the M = T K samples
    R      int           rows: points, each with a path of its own
    F      int           frequencies of a theta
    omega  (T, F, d)     frequencies, a (T, F) their amplitudes
    u, v   (T, K, F)     standard normal coefficients of cosine and sine, b (T, K) of the mean
    beta   (T, K, n)     what the data add, in the covariances with them

A draw of the prior, and by Matheron's rule [1] one of the posterior:

    h(x) = tau b + s sum_f a_f (u_f cos omega_f.x + v_f sin omega_f.x)
    g(x) = h(x) + k(x).beta,     beta = K^-1 (g_data - h(X) - e),    e ~ N(0, noise in g)

so that f = eta + g^2/2 is a function that passes through the data (within their noise), and its
minimum over the space is a draw of f*. The features approximate the prior only: what the data say
enters exactly.

[1] Wilson et al., Efficiently sampling functions from Gaussian process posteriors, ICML 2020.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fitbo.mixture import Array
from fitbo.surrogate.batched import Surrogate
from fitbo.surrogate.gp import blocks
from fitbo.surrogate.phases import cos_sin
from fitbo.surrogate.warp import MEAN_VARIANCE, NUGGET

FREQUENCIES = 128
BLOCK = 1 << 20  # entries of the features held at once


@dataclass(frozen=True, eq=False)
class Paths:
    """One draw of f for each sample of a surrogate; made by ``draw_paths``."""

    surrogate: Surrogate
    omega: Array
    cosine: Array  # s a u, (T, K, F)
    sine: Array
    mean: Array
    beta: Array

    def __call__(self, X: Array) -> Array:
        """f of every path at X (B, d), (T, K, B)."""
        s = self.surrogate
        g = _prior(self.omega, self.cosine, self.sine, self.mean, X)
        g += s.update(self.beta, X)
        return s.eta.reshape(g.shape[:2])[:, :, None] + 0.5 * g * g

    def rows(self, X: Array, path: np.ndarray) -> tuple[Array, Array]:
        """f (R,) and its gradient (R, d) at X (R, d), each row on the path of this index (R,)."""
        g, dg = self.latent(X, path)
        return self.surrogate.eta[path] + 0.5 * g * g, g[:, None] * dg

    def latent(self, X: Array, path: np.ndarray) -> tuple[Array, Array]:
        """The same of g, whose sign f does not tell."""
        s, K = self.surrogate, self.surrogate.etas
        t, k = path // K, path % K
        theta, kernel = s.theta, s.covariance.kernel
        omega = self.omega[t]
        phase = np.einsum("rfd,rd->rf", omega, X)
        cos, sin = cos_sin(phase)
        u, v = self.cosine[t, k], self.sine[t, k]
        g = self.mean[t, k] + np.vecdot(u, cos) + np.vecdot(v, sin)
        dg = np.einsum("rf,rfd->rd", v * cos - u * sin, omega)
        difference = X[:, :, None] - s.X_data.T  # (R, d, n)
        q = theta.precisions[t][:, :, None]
        rho, slopes = kernel.rows(theta.share[t], difference * difference * q)
        beta, s2 = self.beta[t, k], theta.signal_variance[t]
        g += s2 * np.vecdot(rho, beta) + MEAN_VARIANCE * beta.sum(1)
        slopes = slopes * (2 * difference * q)
        dg += s2[:, None] * np.einsum("rdn,rn->rd", slopes, beta)
        return g, dg


def draw_paths(surrogate: Surrogate, rng: np.random.Generator, n: int = FREQUENCIES) -> Paths:
    """A path for each sample of the surrogate."""
    theta, kernel = surrogate.theta, surrogate.covariance.kernel
    T, K = len(theta.gap), surrogate.etas
    omega, amplitude = kernel.spectrum(theta, n, rng)
    amplitude = (np.sqrt(theta.signal_variance)[:, None] * amplitude)[:, None]
    cosine, sine = amplitude * rng.standard_normal((2, T, K, omega.shape[1]))
    mean = np.sqrt(MEAN_VARIANCE) * rng.standard_normal((T, K))
    X = surrogate.X_data
    h = _prior(omega, cosine, sine, mean, X)
    L = surrogate.inverse_factor  # and alpha = K^-1 g
    noise = surrogate.noise + NUGGET * theta.signal_variance[:, None]
    h += np.sqrt(noise)[:, None] * rng.standard_normal(h.shape)
    beta = surrogate.alpha - (L.swapaxes(1, 2) @ (L @ h.swapaxes(1, 2))).swapaxes(1, 2)
    return Paths(surrogate, omega, cosine, sine, mean, beta)


def _prior(omega: Array, cosine: Array, sine: Array, mean: Array, X: Array) -> Array:
    """h at X (B, d), (T, K, B)."""
    h = np.tile(mean[:, :, None], len(X))
    for js in blocks(len(omega), BLOCK // (omega.shape[1] * len(X))):
        phase = omega[js] @ X.T  # (T, F, B)
        cos, sin = cos_sin(phase)
        h[js] += cosine[js] @ cos
        h[js] += sine[js] @ sin
    return h
