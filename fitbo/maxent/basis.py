"""The functions phi_i(u), i = 0..m, whose expectations are constrained, u in [-1, 1]; phi_0 = 1.

A basis is polynomials of one family up to a degree (power, Chebyshev or Legendre), and optionally
*Gaussian windows* at geometrically shrinking scales rho_k = ratio^-k about the centre,

    even:  exp(-u^2 / 2 rho_k^2)        odd:  (u / rho_k) exp(-u^2 / 2 rho_k^2).

Polynomials of low degree cannot see a narrow core in a wide domain; the windows can, and their
expectations under a Gaussian are closed forms too. Taken as part of q0 they make the paper's
general functional with a prior that knows the scales.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.polynomial import chebyshev, legendre, polynomial
from scipy.special import roots_jacobi

from fitbo.checks import one_of
from fitbo.mixture import Array

VANDER: dict[str, Callable[[Array, int], Any]] = {
    "power": polynomial.polyvander,
    "chebyshev": chebyshev.chebvander,
    "legendre": legendre.legvander,
}

WINDOW_RATIO = 4.0
PANEL_NODES = 10
FEW = 4  # degree up to which all pairs of functions cost less than what spans their products


@dataclass(frozen=True)
class Basis:
    """Polynomials 0..degree of a family, then ``n_windows`` Gaussian windows (even, odd, even..).

    ``node_scales`` is the least number of scales that the integration nodes resolve, for densities
    with a narrower core than the windows show.
    """

    family: str
    degree: int
    n_windows: int = 0
    ratio: float = WINDOW_RATIO
    node_scales: int = 0

    def __post_init__(self) -> None:
        one_of("basis", self.family, VANDER)
        if self.degree < 1 or self.n_windows < 0:
            raise ValueError(
                f"a basis needs degree >= 1 and n_windows >= 0, got {self.degree}, {self.n_windows}"
            )
        if not self.ratio > 1:
            raise ValueError(f"ratio must exceed 1, got {self.ratio}")

    @property
    def size(self) -> int:
        """m, the number of functions beyond the constant."""
        return self.degree + self.n_windows

    @property
    def scales(self) -> Array:
        """rho of each window, (n_windows,): each scale twice, once even and once odd."""
        return np.power(self.ratio, -(np.arange(self.n_windows, dtype=np.float64) // 2 + 1))

    def values(self, u: Array) -> Array:
        """phi_i(u), (..., G) -> (..., G, m + 1)."""
        polynomials = VANDER[self.family](u, self.degree)
        return np.concatenate([polynomials, self._windows(u)], axis=-1)

    def _windows(self, u: Array) -> Array:
        z = u[..., None] / self.scales
        bell = np.exp(-0.5 * z * z)
        return np.where(np.arange(self.n_windows) % 2, z * bell, bell)

    def nodes(self, refine: int = 1) -> tuple[Array, Array]:
        """Lobatto nodes and weights, (G,) each: one panel, or one between consecutive scales."""
        n_scales = max(self.node_scales, (self.n_windows + 1) // 2)
        return _nodes(self.degree, n_scales, self.ratio, refine)

    def products(self, u: Array) -> Array:
        """Functions spanning every product phi_j phi_k, the first of them phi_0^2 = 1.

        (G,) -> (G, R); see ``hessian``.
        """
        if self.degree <= FEW:
            return _pairs(self.values(u))
        span: Array = VANDER["chebyshev"](u, 2 * self.degree)
        if not self.n_windows:
            return span
        windows = self._windows(u)
        cross = VANDER[self.family](u, self.degree)[:, :, None] * windows[:, None, :]
        return np.hstack([span, cross.reshape(len(u), -1), _pairs(windows)])

    def hessian(self, expectations: Array, out: Array | None = None) -> Array:
        """E[phi_j phi_k] from the expectations of ``products``, (R, B) -> (m + 1, m + 1, B).

        Products are linear in polynomials of degree <= 2n: for the Chebyshev family
        T_j T_k = (T_{j+k} + T_{|j-k|}) / 2 is two look-ups. Other families follow by a congruence,
        so no (B, G, m, m) tensor is formed.
        """
        if self.degree <= FEW:
            return _pick(expectations, hessian_layout(0, self.size + 1), out)
        n, k, n_problems = self.degree + 1, self.n_windows, expectations.shape[1]
        block = chebyshev_products(expectations, n)
        if self.family != "chebyshev":
            to_t = chebyshev_coefficients(self.family, self.degree)
            for _ in range(2):  # A X, and as X is symmetric (A X)^T = X A^T, so twice is A X A^T
                block = (to_t @ block.reshape(n, -1)).reshape(n, n, n_problems).transpose(1, 0, 2)
        entries = np.concatenate([block.reshape(n * n, -1), expectations[2 * n - 1 :]])
        return _pick(entries, hessian_layout(n, k), out)


def _pick(entries: Array, at: np.ndarray, out: Array | None) -> Array:
    """entries[at], in ``out`` if given. Every index is in range: to clip only saves the check."""
    return np.take(entries, at, axis=0, out=out, mode="clip")


def _pairs(values: Array) -> Array:
    """f_j f_k for j <= k, row by row, (G, k) -> (G, k (k + 1)/2)."""
    first, second = np.triu_indices(values.shape[1])
    return np.asarray(values[:, first] * values[:, second])


def chebyshev_products(expectations: Array, n: int) -> Array:
    """E[T_j T_k] for j, k < n from E[T_i] for i < 2n - 1, (2n - 1, ...) -> (n, n, ...)."""
    i = np.arange(n)
    return 0.5 * (expectations[i[:, None] + i] + expectations[abs(i[:, None] - i)])


@lru_cache(maxsize=64)
def hessian_layout(n: int, k: int) -> np.ndarray:
    """Indices of the Hessian's (n + k)^2 entries in (block n^2, cross n k, squares k (k+1)/2)."""
    at = np.empty((n + k, n + k), dtype=np.intp)
    at[:n, :n] = np.arange(n * n).reshape(n, n)
    at[:n, n:] = n * n + np.arange(n * k).reshape(n, k)
    at[n:, :n] = at[:n, n:].T
    first, second = np.triu_indices(k)
    at[n + first, n + second] = n * n + n * k + np.arange(len(first))
    at[n + second, n + first] = at[n + first, n + second]
    return at


@lru_cache(maxsize=64)
def chebyshev_coefficients(family: str, degree: int) -> Array:
    """A with phi_j = sum_k A_jk T_k, (degree + 1, degree + 1), by interpolation."""
    x = chebyshev.chebpts1(degree + 1)
    t = VANDER["chebyshev"](x, degree)
    coefficients: Array = VANDER[family](x, degree).T @ t * (2.0 / (degree + 1))
    coefficients[:, 0] /= 2
    return coefficients


@lru_cache(maxsize=64)
def _nodes(degree: int, n_scales: int, ratio: float, refine: int) -> tuple[Array, Array]:
    scales = ratio ** -np.arange(n_scales + 1.0)
    edges = np.concatenate([-scales, scales[::-1]]) if n_scales else np.array([-1.0, 1.0])
    panels = []
    for low, high in pairwise(edges):
        # Enough for one scale of a window, and for the polynomials' share of the interval.
        n = (PANEL_NODES if n_scales else 64) + int(np.ceil(2.5 * degree * (high - low)))
        panels.append((low, high, *lobatto(refine * n)))
    u = np.concatenate([(a + b) / 2 + (b - a) / 2 * x for a, b, x, _ in panels])
    w = np.concatenate([(b - a) / 2 * w for a, b, _, w in panels])
    return u, w


def lobatto(n: int) -> tuple[Array, Array]:
    """Gauss-Legendre-Lobatto nodes and weights on [-1, 1], (n,) each.

    Both ends are nodes. Gauss's own rule has none there, and a polynomial exponent could grow
    unseen between the last node and the end.
    """
    inner = roots_jacobi(n - 2, 1.0, 1.0)[0]
    x = np.concatenate([[-1.0], inner, [1.0]])
    last = legendre.legval(x, [0.0] * (n - 1) + [1.0])
    return x, 2 / (n * (n - 1) * last**2)
