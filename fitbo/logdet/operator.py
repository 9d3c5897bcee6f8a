"""One block product for dense, sparse and matrix-free matrices, validated once and counted.

K    (n, n)   the matrix: real, symmetric, positive definite
V    (n, b)   a block of vectors; ``operator @ V`` is K V and counts b products
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

from fitbo.mixture import Array

SYMMETRY = 1e-8  # relative to the largest entry: asymmetry left by assembly in double precision
ROUNDING = 1e-9  # relative, of moments from products in double precision
LOOSE = 100  # units of rounding allowed in entries or products of a coarser type


@dataclass
class Operator:
    """K as a counted block product, with its entries where it has any.

    ``matrix`` is the ndarray or CSR array behind it, None for a LinearOperator, of which
    ``diagonal`` and ``squared_norm`` are None too. ``rounding`` is the relative error that moments
    of its products may have.
    """

    n: int
    multiply: Callable[[Array], Array]
    matrix: Any = None
    rounding: float = ROUNDING
    products: int = field(default=0, init=False)

    def __matmul__(self, block: Array) -> Array:
        """K V, (n, b) -> (n, b)."""
        self.products += block.shape[1]
        out = np.asarray(self.multiply(block), dtype=np.float64)
        if not np.isfinite(out[:, 0].sum()):
            raise ValueError("a product with K must be finite, got NaN or inf; check K's entries")
        return out

    @property
    def sparse(self) -> bool:
        return bool(sp.issparse(self.matrix))

    def diagonal(self) -> Array | None:
        """K_ii, (n,)."""
        return None if self.matrix is None else np.asarray(self.matrix.diagonal())

    def squared_norm(self) -> float | None:
        """||K||_F^2 = tr K^2, by reading K once as a product does."""
        if self.matrix is None:
            return None
        entries = self.matrix.data if self.sparse else self.matrix
        return float(np.vdot(entries, entries))

    def column(self, index: int) -> Array:
        """K[:, index], (n,); for a K with entries."""
        column = self.matrix[:, [index]]
        return np.asarray(column.toarray() if self.sparse else column, dtype=np.float64)[:, 0]


def as_operator(K: Any) -> Operator:
    """K as an ``Operator``, or an error that says what is wrong with it.

    Symmetry is tested on the entries, or for a LinearOperator on two random vectors,
    x.(K y) = y.(K x).
    """
    if isinstance(K, Operator):
        return K
    if isinstance(K, LinearOperator):
        return _matrix_free(K)
    sparse = sp.issparse(K)
    matrix: Any = K if sparse else np.asarray(K)
    loose = _rounding(matrix.shape, matrix.dtype)
    if sparse:
        matrix = sp.csr_array(matrix).astype(np.float64)
        matrix.sum_duplicates()
        entries = matrix.data
    else:
        matrix = entries = np.ascontiguousarray(matrix, dtype=np.float64)
    if not np.isfinite(entries).all():
        raise ValueError(f"K must be finite, got NaN or inf in shape {matrix.shape}")
    asymmetry = abs(matrix - matrix.T).max()
    if asymmetry > max(SYMMETRY, loose) * abs(entries).max(initial=0.0):
        raise ValueError(
            f"K must be symmetric, got K_ij - K_ji of up to {asymmetry:.2g}; "
            "pass (K + K.T) / 2 if that is what you mean"
        )
    diagonal = np.asarray(matrix.diagonal())
    if not (diagonal > 0).all():
        raise indefinite(f"a diagonal entry of {diagonal.min():.3g}")
    return Operator(matrix.shape[0], lambda block: matrix @ block, matrix)


def indefinite(evidence: str) -> ValueError:
    """The error for a matrix that is not positive definite."""
    return ValueError(
        f"K must be positive definite, got {evidence}; add jitter to the diagonal "
        "or check how K was made"
    )


def _matrix_free(K: LinearOperator) -> Operator:
    loose = _rounding(K.shape, np.dtype(np.float64 if K.dtype is None else K.dtype))
    out = Operator(K.shape[0], K.matmat, rounding=max(ROUNDING, loose))
    x, y = np.random.default_rng(0).standard_normal((2, out.n, 1))
    Kx, Ky = out @ x, out @ y
    scale = np.hypot(np.linalg.norm(Kx), np.linalg.norm(Ky)) * np.linalg.norm(x)
    if abs(np.vdot(y, Kx) - np.vdot(x, Ky)) > max(SYMMETRY, loose) * scale:
        raise ValueError("K must be symmetric, got x.(K y) unlike y.(K x) for random x and y")
    out.products = 0  # validation is not part of any method's cost
    return out


def _rounding(shape: tuple[int, ...], dtype: np.dtype) -> float:
    """The relative rounding of entries or products of this type; an error if K cannot be used."""
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(f"K must be a square matrix, got shape {shape}")
    if shape[0] == 0:
        raise ValueError(f"K must have at least one row, got shape {shape}")
    if dtype.kind == "c":
        raise ValueError("K must be real, got complex entries; pass K.real if K.imag is zero")
    if dtype.kind not in "fiu":
        raise ValueError(f"K must hold real numbers, got dtype {dtype}")
    return LOOSE * float(np.finfo(dtype).eps) if dtype.kind == "f" else 0.0
