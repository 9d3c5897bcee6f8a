"""Deflation by pivoted Cholesky: the large eigenvalues exactly, the rest by any method.

After k pivots p_1..p_k, each the largest diagonal entry that is left,

    K = [[K_11, K_12], [K_21, K_22]],    log det K = sum_i log d_i + log det S,

with d_i the pivots and S = K_22 - W W^T the Schur complement, W = K_21 L_11^-T. S is positive
definite of size n - k. Its largest eigenvalue is no larger than K's (for kernels, much smaller) and
its smallest no smaller, so a lower bound for K holds for S, and S's trace bounds it from above:
both up to the rounding of the difference, which is relative to K_22, not to S (``bounds``). Each of
the k columns of K that are read counts as a product.
"""

from __future__ import annotations

import numpy as np

from fitbo.logdet.bounds import Bounds
from fitbo.logdet.operator import LOOSE, ROUNDING, Operator, indefinite
from fitbo.mixture import Array


class Deflated(Operator):
    """S of a matrix with entries, with ``pivots`` (k,) and ``factor`` W (n - k, k)."""

    def __init__(self, whole: Operator, rank: int) -> None:
        diagonal = whole.diagonal()
        if diagonal is None:
            raise ValueError(
                "deflation needs the entries of K, got a LinearOperator; pass them or deflation=0"
            )
        if not 0 < rank < whole.n:
            raise ValueError(f"deflation must be below n = {whole.n}, got {rank}")
        self.pivots, rest, self.factor = _pivoted_cholesky(whole, diagonal, rank)
        block = whole.matrix[rest][:, rest]
        super().__init__(len(rest), lambda v: block @ v - self.factor @ (self.factor.T @ v))
        self._block, self._sparse = block, whole.sparse
        self.products = whole.products + rank

    def bounds(self, given: Bounds) -> Bounds:
        """Of S, from those of K; sets ``rounding``. An error if S is nothing but rounding."""
        size = min(given.upper, float(self._block.diagonal().sum()))
        unit = float(np.finfo(np.float64).eps) * size
        trace = float(self.diagonal().sum())
        if trace <= self.n * unit:
            raise indefinite(f"a remainder of trace {trace:.3g} after {len(self.pivots)} pivots")
        upper = max(min(given.upper, trace), given.lower) + LOOSE * unit
        self.rounding = max(ROUNDING, LOOSE * unit / upper)
        return Bounds(max(0.0, given.lower - LOOSE * unit), upper)

    def diagonal(self) -> Array:
        return np.asarray(self._block.diagonal()) - np.einsum("ik,ik->i", self.factor, self.factor)

    @property
    def norm_products(self) -> int:
        return self.factor.shape[1]

    def squared_norm(self) -> float:
        """tr S^2 = ||K_22||^2 - 2 tr W^T K_22 W + ||W^T W||^2, which takes k more products."""
        self.products += self.norm_products
        inner = self.factor.T @ self.factor
        entries = self._block.data if self._sparse else self._block
        cross = np.vdot(self.factor, self._block @ self.factor)
        return float(np.vdot(entries, entries) - 2 * cross + np.vdot(inner, inner))


def _pivoted_cholesky(
    whole: Operator, diagonal: Array, rank: int
) -> tuple[Array, np.ndarray, Array]:
    """Pivots (k,), the indices that are left (n - k,), and W (n - k, k)."""
    left = diagonal.astype(np.float64)
    columns = np.zeros((whole.n, rank))
    pivots = np.empty(rank)
    chosen = np.zeros(whole.n, dtype=bool)
    for k in range(rank):
        p = int(np.where(chosen, -np.inf, left).argmax())
        if left[p] <= 0:
            raise indefinite(f"a pivot of {left[p]:.3g}")
        pivots[k], chosen[p] = left[p], True
        column = whole.column(p) - columns[:, :k] @ columns[p, :k]
        columns[:, k] = column / np.sqrt(pivots[k])
        left -= columns[:, k] ** 2
    rest = np.flatnonzero(~chosen)
    return pivots, rest, columns[rest]
