"""The dual of many problems at fixed nodes, and multipliers to begin with.

Symbols and equations are those of ``fitbo.maxent.solve``, but here the problems are the last axis,
which stays contiguous: ``mu`` and ``a`` are (m + 1, B), densities (G, B).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from fitbo.maxent.basis import Basis, chebyshev_coefficients
from fitbo.mixture import Array


def dot(x: Array, y: Array) -> Array:
    """Inner products over the first axis, (m, B), (m, B) -> (B,)."""
    return np.einsum("ib,ib->b", x, y)


class Dual:
    """S of B problems at fixed nodes. Here the problems are the last axis, which stays contiguous.

    The normaliser is carried as a[0] = log Z, so that q = exp(log q0 - a.phi) integrates to one.
    """

    def __init__(
        self, mu: Array, basis: Basis, u: Array, w: Array, log_q0: Array | None, ridge: Array
    ) -> None:
        self.mu, self.basis, self.log_q0 = mu, basis, log_q0
        self.ridge = np.broadcast_to(ridge, (basis.size,))[:, None]
        self.phi = np.ascontiguousarray(basis.values(u))
        self.products = np.ascontiguousarray((basis.products(u) * w[:, None]).T)
        self.w = w

    def density(self, a: Array, rows: np.ndarray | slice = slice(None)) -> Array:
        """q at the nodes, (m + 1, b) -> (G, b)."""
        exponent = self.phi @ -a
        if self.log_q0 is not None:
            exponent += self.log_q0[:, rows]
        # Where exp(-x) is subnormal it is nothing to us and several times slower. An overflow is
        # the mark of too long a step: S becomes inf and the line search turns back.
        np.maximum(exponent, -700.0, out=exponent)
        with np.errstate(over="ignore"):
            return np.exp(exponent, out=exponent)

    def normalise(self, a: Array, q: Array, rows: np.ndarray | slice) -> tuple[Array, Array]:
        """S and log int q, given any a[0]; sets a[0] to log Z."""
        log_mass = np.log(self.w @ q)
        a[0] += log_mass
        penalty = 0.5 * dot(self.ridge * a[1:], a[1:])
        return dot(a, self.mu[:, rows]) + penalty, log_mass

    def derivatives(self, a: Array, expectations: Array, rows: np.ndarray) -> tuple[Array, Array]:
        """Gradient mu - E + ridge a (m, b) and Hessian Cov[phi] + ridge I (m, m, b)."""
        second = self.basis.hessian(expectations)
        mean = second[0, 1:]
        hessian = second[1:, 1:] - mean[:, None] * mean
        diagonal = np.einsum("iib->ib", hessian)
        # A floor of rounding size keeps the system solvable when the caller sets jitter = 0.
        diagonal += self.ridge + 4e-16 * diagonal.max(0)
        return self.mu[1:, rows] - mean + self.ridge * a[1:], hessian


def first_multipliers(dual: Dual) -> Array:
    """First multipliers: zero under a prior, else a density like p in scale and heavy in its tails.

    Where q starts far below p in the tails the first Newton steps are huge and must be cut, so the
    paper's start a = 0 and the matched Gaussian are both dear.
    """
    if dual.log_q0 is not None or dual.basis.degree < 2:
        return np.zeros_like(dual.mu)
    if dual.basis.n_windows:
        return _scale_mixture_start(dual)
    return _gaussian_start(dual)


def _gaussian_start(dual: Dual) -> Array:
    """A Gaussian with each problem's mean and twice its variance."""
    start = np.zeros_like(dual.mu)
    to_t = chebyshev_coefficients(dual.basis.family, 2)
    # phi = A (1, u, 2u^2 - 1): invert for E[u] and E[u^2], then for the parabola's coefficients.
    mean, t2 = np.linalg.solve(to_t, dual.mu[:3])[1:]
    variance = np.maximum((t2 + 1) / 2 - mean**2, 1e-8)
    parabola = np.stack([mean**2 + 0.5, -2 * mean, np.full_like(mean, 0.5)]) / (4 * variance)
    start[:3] = np.linalg.solve(to_t.T, parabola)
    return start


def _scale_mixture_start(dual: Dual) -> Array:
    """The log of a mixture of centred Gaussians with p's even windows, projected on the basis.

    Even windows are linear in the weights of such a mixture, E[even_k] = rho_k/sqrt(rho_k^2 + s^2)
    for each scale s, so on a fixed grid of scales the weights cost one small product.
    """
    from_windows, bells, project = _scale_mixture(dual.basis, len(dual.w))
    windows = dual.mu[dual.basis.degree + 1 :: 2]
    weights = from_windows @ np.concatenate([np.ones_like(windows[:1]), windows])
    weights = np.maximum(weights, 0.01)
    return np.asarray(project @ -np.log(bells @ (weights / weights.sum(0)) + 1e-12))


@lru_cache(maxsize=64)
def _scale_mixture(basis: Basis, n_nodes: int) -> tuple[Array, Array, Array]:
    rho = basis.scales[::2]
    s = 2.5 ** -np.arange(len(rho)) / 8
    u = basis.nodes(n_nodes // len(basis.nodes()[0]))[0]
    even = np.vstack([np.ones_like(s), rho[:, None] / np.hypot(rho[:, None], s)])
    bells = np.exp(-0.5 * (u[:, None] / s) ** 2) / (s * np.sqrt(2 * np.pi))
    # Only the parabola and the windows: higher polynomials would fit the far tails, wildly.
    project = np.zeros((basis.size + 1, len(u)))
    low = np.r_[0:3, basis.degree + 1 : basis.size + 1]
    project[low] = np.linalg.pinv(basis.values(u)[:, low])
    from_windows = np.asarray(np.linalg.pinv(even), dtype=np.float64)
    return from_windows, bells, project
