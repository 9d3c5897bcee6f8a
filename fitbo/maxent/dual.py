"""The dual of many problems at fixed nodes, its Newton systems, and where to start.

Symbols and equations are those of ``fitbo.maxent.solve``, but here the problems are the last axis,
which stays contiguous: ``mu`` and ``a`` are (m + 1, B), densities (G, B).
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from fitbo.maxent.basis import Basis, chebyshev_coefficients
from fitbo.mixture import Array, exp_in_place

# LAPACK has microseconds of overhead for each small matrix; a Cholesky over the batch axis has it
# once per column. Measured: faster up to about this size and from this many systems.
SMALL = 24
MANY = 100
KEPT = 40  # size of a basis whose tables, up to some megabytes, are kept for the next solve
# Of the start: tails that are too light make the first Newton steps far too long.
LEAST_WEIGHT, LEAST_DENSITY, LEAN_RIDGE, LEAN_MOST, NEAR = 0.01, 1e-8, 1e-2, 2.0, 0.125
LARGEST = 0.4  # correction of a step, relative to the step: beyond, the third order is no guide


def dot(x: Array, y: Array) -> Array:
    """Inner products over the first axis, (m, B), (m, B) -> (B,)."""
    return np.einsum("ib,ib->b", x, y)


class Dual(NamedTuple):
    """S of B problems, with a[0] = log Z, so that q = exp(log q0 - a.phi) integrates to one.

    w           (G,)          weights of the nodes
    phi         (G, m + 1)    the functions there
    means       (m + 1, G)    the same, weighted: E[phi] = means @ q
    products    (R, G)        their products, weighted, the first of them 1
    ridge       (m, 1)
    log_q0      (G, B)        None where it is flat
    """

    mu: Array
    basis: Basis
    w: Array
    phi: Array
    means: Array
    products: Array
    ridge: Array
    log_q0: Array | None

    @classmethod
    def of(cls, mu: Array, basis: Basis, refine: int, log_q0: Array | None, ridge: Array) -> Dual:
        """The dual on the basis's own nodes."""
        # Of subclasses two different ones may be equal: their nodes are not among the fields.
        tables = _kept_tables if type(basis) is Basis and basis.size <= KEPT else _tables
        ridges = np.broadcast_to(ridge, (basis.size,))[:, None]
        return cls(mu, basis, *tables(basis, refine), ridges, log_q0)

    def at(self, which: slice | np.ndarray) -> Dual:
        """Some of the problems."""
        log_q0 = None if self.log_q0 is None else self.log_q0[:, which]
        return self._replace(mu=self.mu[:, which], log_q0=log_q0)

    def density(self, a: Array) -> Array:
        """q at the nodes, (m + 1, B) -> (G, B)."""
        exponent = self.phi @ -a
        if self.log_q0 is not None:
            exponent += self.log_q0
        return exp_in_place(exponent)

    def evaluate(self, a: Array) -> tuple[Array, Array]:
        """S (B,) and q at the nodes (G, B), given any a[0].

        Sets a[0] to log Z. Both are inf or nan where q overflows.
        """
        with np.errstate(over="ignore", invalid="ignore"):  # the line search rejects such steps
            q = self.density(a)
            mass = self.w @ q
            q *= 1 / mass
        a[0] += np.log(mass)
        return dot(a, self.mu) + 0.5 * dot(self.ridge * a[1:], a[1:]), q

    def derivatives(self, a: Array, q: Array, jitter: float) -> tuple[Array, Array]:
        """Gradient mu - E + ridge a (m, B) and the Newton system, see ``solve_spd``.

        The system is that of second moments E[phi phi^T], the constant included, whose pivot makes
        covariances of the others; its solution is the step of all multipliers.
        """
        systems = np.empty((len(a) + 1, *a.shape))
        second = self.basis.hessian(self.products @ q, out=systems[:-1])
        gradient = self.mu[1:] - second[0, 1:] + self.ridge * a[1:]
        diagonal = np.einsum("iib->ib", second)[1:]
        # A floor of rounding size keeps the system solvable when the caller sets jitter = 0.
        diagonal += self.ridge + jitter + 4e-16 * (diagonal - second[0, 1:] ** 2).max(0)
        systems[-1, 0] = 0.0
        np.negative(gradient, out=systems[-1, 1:])
        return gradient, systems

    def bend(self, step: Array, q: Array, systems: Array) -> tuple[Array, Array]:
        """Chebyshev's third-order correction of a Newton step (m, B), and its size squared (B,).

        Along the step, with v = step.phi, the gradient of S departs from linear by half the third
        derivative, -cov(phi, v^2)/2. A second solve with the same matrix corrects for it:

            H bend = cov(phi, v^2)/2,    size^2 = bend.H.bend / step.H.step.

        ``step`` (m + 1, B) and ``systems`` are those that ``solve_spd`` returned and left behind:
        the constant's part of the step gives v the mean zero. A correction larger than LARGEST is
        scaled down to it, and one that overflows is 0, of size inf.
        """
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            v = self.phi @ step
            v *= v
            v *= q
            third = self.means @ v
            variance = third[0].copy()
            # E[phi] is the first column of the matrix, and of its factor, as the first pivot is 1.
            third -= variance * systems[:-1, 0]
            third *= 0.5
            systems[-1] = third
            bend = solve_spd(systems, factored=True)
            size2 = abs(dot(bend, third)) / variance
            bend *= np.minimum(LARGEST / np.sqrt(size2), 1.0)
        finite = np.isfinite(size2)
        if not finite.all():
            bend[:, ~finite], size2[~finite] = 0.0, np.inf
        return bend[1:], size2


def _tables(basis: Basis, refine: int) -> tuple[Array, Array, Array, Array]:
    """w, phi, means and products of a ``Dual``."""
    u, w = basis.nodes(refine)
    products = np.ascontiguousarray((basis.products(u) * w[:, None]).T)
    phi = np.ascontiguousarray(basis.values(u))
    return w, phi, np.ascontiguousarray((phi * w[:, None]).T), products


_kept_tables = lru_cache(maxsize=8)(_tables)


def solve_spd(systems: Array, factored: bool = False) -> Array:
    """x with A x = b for each of B systems: A, and b^T below it, (n + 1, n, B) -> (n, B).

    Overwrites A with its factor, or leaves it where LAPACK is faster: either way the systems may be
    given another b, and be solved for it as ``factored``.
    """
    n, n_systems = systems.shape[1:]
    if n > SMALL or n_systems < MANY:
        x = np.linalg.solve(systems[:n].transpose(2, 0, 1), systems[n].T[:, :, None])[:, :, 0].T
        return np.asarray(x, dtype=np.float64)
    lower, x = systems, systems[n]  # become the Cholesky factor L, L^-1 b and then x
    if factored:
        for j in range(n):
            x[j] /= lower[j, j]
            x[j + 1 :] -= lower[j + 1 : n, j] * x[j]
    else:
        # A pivot that rounding took below this belongs to a direction without information.
        floor = 1e-16 * np.einsum("iib->ib", systems[:n]).max(0)
        for j in range(n):
            column = lower[j:, j]
            if j:
                column -= np.einsum("ikb,kb->ib", lower[j:, :j], lower[j, :j])
            np.sqrt(np.maximum(column[0], floor), out=column[0])
            column[1:] /= column[0]
    for j in reversed(range(n)):
        x[j] /= lower[j, j]
        x[:j] -= lower[j, :j] * x[j]
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
    """The log of a mixture of Gaussians with about p's windows and mean, projected on the basis.

    The mixture is p ~ sum_k (v_k + l_k u/s_k) N(u; 0, s_k^2) on a fixed grid of stds. Even windows
    are linear in the weights v, odd ones and the mean in the leanings l:

        E[even] = rho / (rho^2 + s^2)^(1/2),    E[odd] = rho^2 s / (rho^2 + s^2)^(3/2),    E[u] = s,

    so that both cost one small product. The projection weighs a node by 1/(1 + (u/NEAR)^4):
    the far tails, which carry nothing, must not spoil the fit where the mass is.
    """
    from_even, from_odd, bells, leaning, project = _scale_mixture(dual.basis, len(dual.w))
    windows = dual.mu[dual.basis.degree + 1 :]
    weights = from_even @ np.concatenate([dual.mu[:1], windows[::2]])
    weights = np.maximum(weights, LEAST_WEIGHT)
    weights /= weights.sum(0)
    p = bells @ weights
    lean = leaning @ (from_odd @ np.concatenate([dual.mu[1:2], windows[1::2]]))
    lean /= p
    np.log(p, out=p)
    p += np.clip(lean, -LEAN_MOST, LEAN_MOST, out=lean)
    return np.asarray(project @ p)


@lru_cache(maxsize=64)
def _scale_mixture(basis: Basis, n_nodes: int) -> tuple[Array, Array, Array, Array, Array]:
    rho = basis.scales[::2, None]
    s = 2.0 ** -np.arange(len(rho) + 1.0) / 8
    u = basis.nodes(n_nodes // len(basis.nodes()[0]))[0]
    even = np.vstack([np.ones_like(s), rho / np.hypot(rho, s)])
    odd = np.vstack([s, (rho**2 * s / (rho**2 + s**2) ** 1.5)[: basis.n_windows // 2]])
    bells = np.exp(-0.5 * (u[:, None] / s) ** 2) / (s * np.sqrt(2 * np.pi))
    leaning = u[:, None] / s * bells
    # Only the parabola and the windows: higher polynomials would fit the far tails, wildly.
    project = np.zeros((basis.size + 1, len(u)))
    low = np.r_[0:3, basis.degree + 1 : basis.size + 1]
    root = 1 / np.hypot(1.0, (u / NEAR) ** 2)
    project[low] = -np.linalg.pinv(basis.values(u)[:, low] * root[:, None]) * root
    from_odd = np.linalg.solve(odd.T @ odd + LEAN_RIDGE * np.eye(len(s)), odd.T)
    inverses = (np.asarray(x, dtype=np.float64) for x in (np.linalg.pinv(even), from_odd))
    return *inverses, bells + LEAST_DENSITY, leaning, project  # floored, as the weights sum to 1
