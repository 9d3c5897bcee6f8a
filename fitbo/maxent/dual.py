"""The dual of many problems at fixed nodes, its Newton systems, and where to start.

Symbols and equations are those of ``fitbo.maxent.solve``, but here the problems are the last axis,
which stays contiguous: ``mu`` and ``a`` are (m + 1, B), densities (G, B).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from fitbo.maxent.basis import Basis, chebyshev_coefficients
from fitbo.mixture import Array, exp_in_place

# LAPACK has microseconds of overhead for each small matrix; a Cholesky over the batch axis has it
# once per column. Measured: faster up to about this size and from this many systems.
SMALL = 24
MANY = 32


def dot(x: Array, y: Array) -> Array:
    """Inner products over the first axis, (m, B), (m, B) -> (B,)."""
    return np.einsum("ib,ib->b", x, y)


class Dual:
    """S of B problems, with a[0] = log Z, so that q = exp(log q0 - a.phi) integrates to one."""

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
        with np.errstate(
            over="ignore"
        ):  # of too long a step: S is inf, the line search shortens it
            return exp_in_place(exponent)

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


def solve_spd(matrices: Array, right: Array) -> Array:
    """x with A x = right for each of B systems, (n, n, B), (n, B) -> (n, B). Overwrites both."""
    n, n_systems = right.shape
    if n > SMALL or n_systems < MANY:
        x = np.linalg.solve(matrices.transpose(2, 0, 1), right.T[:, :, None])[:, :, 0].T
        return np.asarray(x, dtype=np.float64)
    lower, x = matrices, right  # the lower triangle becomes the Cholesky factor
    # A pivot that rounding took below this belongs to a direction without information.
    floor = 1e-16 * np.einsum("iib->ib", matrices).max(0)
    for j in range(n):
        column = lower[j:, j]
        if j:
            column -= np.einsum("ikb,kb->ib", lower[j:, :j], lower[j, :j])
            x[j] -= np.einsum("kb,kb->b", lower[j, :j], x[:j])
        np.maximum(column[0], floor, out=column[0])
        column /= np.sqrt(column[0])
        x[j] /= column[0]
    for j in reversed(range(n)):
        if j < n - 1:
            x[j] -= np.einsum("kb,kb->b", lower[j + 1 :, j], x[j + 1 :])
        x[j] /= lower[j, j]
    return x


def first_multipliers(dual: Dual) -> Array:
    """Zero under a prior, else those of a density with p's scale and heavier tails.

    Where q starts far below p in the tails, the first Newton steps are huge and must be shortened,
    so the paper's start a = 0 and the matched Gaussian are both slow.
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

    Even windows are linear in the mixture's weights, E[even_k] = rho_k/sqrt(rho_k^2 + s^2) for each
    std s, so on a fixed grid of stds the weights cost one small product.
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
    return np.asarray(np.linalg.pinv(even), dtype=np.float64), bells, project
