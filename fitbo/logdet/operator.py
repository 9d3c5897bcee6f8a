"""One block product for dense, sparse and matrix-free matrices, validated once and counted.

======  =======  =========================================================================
symbol  shape    meaning
======  =======  =========================================================================
K       (n, n)   the matrix: real, symmetric, positive definite
V       (n, b)   a block of vectors; ``operator @ V`` is K V and counts b products
======  =======  =========================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

from fitbo.mixture import Array

SYMMETRY = 1e-8  # relative to the largest entry: what assembly in double precision leaves
ROUNDING = 1e-9  # relative, of moments from products in double precision
LOOSE = 100  # units of rounding that a coarser type may leave, in either


@dataclass
class Operator:
    """K as a counted block product, with its entries where it has any.

    ``matrix`` is the ndarray or CSR array behind it, None for a LinearOperator; the methods
    ``diagonal`` and ``squared_norm`` then answer None. ``rounding`` is the relative error that
    moments of its products may have.
    """

    n: int
    multiply: Callable[[Array], Array]
    matrix: Any = None
    rounding: float = ROUNDING
    shape: tuple[int, int] = field(init=False)
    products: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.shape = (self.n, self.n)

    def __matmul__(self, block: Array) -> Array:
        """K V, (n, b) -> (n, b)."""
        self.products += block.shape[1]
        out = np.asarray(self.multiply(block), dtype=np.float64)
        if not np.isfinite(out[:, 0].sum()):
            raise ValueError("a product with K must be finite, got NaN or inf; look at K's entries")
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
        """K[:, index], (n,)."""
        if self.matrix is None:
            raise ValueError(
                "a column of K needs its entries, got a LinearOperator; pass the matrix"
            )
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
    _check_shape(matrix)
    _check_real(matrix.dtype)
    loose = _loose(matrix.dtype)
    if sparse:
        matrix = sp.csr_array(matrix).astype(np.float64)
        matrix.sum_duplicates()
        entries = matrix.data
    else:
        matrix = entries = np.ascontiguousarray(matrix, dtype=np.float64)
    if not np.isfinite(entries).all():
        raise ValueError(f"K must be finite, got NaN or inf in shape {matrix.shape}")
    top = float(abs(entries).max()) if entries.size else 0.0
    asymmetry = abs(matrix - matrix.T).max()
    if asymmetry > max(SYMMETRY, loose) * top:
        raise ValueError(
            f"K must be symmetric, got K_ij - K_ji of up to {asymmetry:.2g}; "
            "pass (K + K.T) / 2 if that is what you mean"
        )
    out = Operator(matrix.shape[0], lambda block: matrix @ block, matrix)
    diagonal = np.asarray(matrix.diagonal())
    if not (diagonal > 0).all():
        raise indefinite(f"a diagonal entry of {diagonal.min():.3g}")
    return out


def indefinite(evidence: str) -> ValueError:
    """The error for a matrix that is not positive definite."""
    return ValueError(
        f"K must be positive definite, got {evidence}; add jitter to the diagonal "
        "or check how K was made"
    )


def _matrix_free(K: LinearOperator) -> Operator:
    _check_shape(K)
    dtype = np.dtype(K.dtype) if K.dtype is not None else np.dtype(np.float64)
    _check_real(dtype)
    loose = _loose(dtype)
    out = Operator(K.shape[0], K.matmat, rounding=max(ROUNDING, loose))
    x, y = np.random.default_rng(0).standard_normal((2, out.n))
    image = out @ np.column_stack([x, y])
    if not np.isfinite(image).all():
        raise ValueError("a product with K must be finite, got NaN or inf; look at K's entries")
    scale = np.linalg.norm(image) * np.linalg.norm(x)
    if abs(y @ image[:, 0] - x @ image[:, 1]) > max(SYMMETRY, loose) * scale:
        raise ValueError("K must be symmetric, got x.(K y) unlike y.(K x) for random x and y")
    out.products = 0  # validation is not part of any method's cost
    return out


def _loose(dtype: np.dtype) -> float:
    """The rounding of entries or products that are of this type."""
    return LOOSE * float(np.finfo(dtype).eps) if dtype.kind == "f" else 0.0


def _check_shape(K: Any) -> None:
    shape = tuple(K.shape)
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(f"K must be a square matrix, got shape {shape}")
    if shape[0] == 0:
        raise ValueError(f"K must have at least one row, got shape {shape}")


def _check_real(dtype: np.dtype) -> None:
    if dtype.kind == "c":
        raise ValueError(
            "K must be real, got complex entries; pass K.real if they are real in fact"
        )
    if dtype.kind not in "fiu":
        raise ValueError(f"K must hold real numbers, got dtype {dtype}")
