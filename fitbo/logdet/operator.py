"""One block product for dense, sparse and matrix-free matrices, validated once and counted.

K    (n, n)   the matrix: real, symmetric, positive definite
V    (n, b)   a block of vectors; ``operator @ V`` is K V and counts b products
e    int      a power of two taken out, log det K = log det(K / 2^e) + n e log 2

e is 0 while the largest entry of K lies within 2^-128 and 2^129, else what brings it there, so that
squares neither overflow nor vanish. The division is exact but where it makes a number subnormal.
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
SIGN = 1e-12  # relative to the largest Ritz value, in double precision: below it no sign is known
LOOSE = 100  # units of rounding allowed in entries or products of a coarser type
ORDINARY = 128  # largest |log2| of K's largest entry that needs no scaling: 3e-39 to 7e38
FAR = 600  # products with vectors of size 2^-600 are finite


@dataclass
class Operator:
    """K as a counted block product, with its entries where it has any.

    ``matrix`` is the ndarray or CSR array behind it, None for a LinearOperator, of which
    ``diagonal`` and ``squared_norm`` are None too. ``rounding`` is the relative error that moments
    of its products may have. All of them are those of K / 2^exponent.
    """

    n: int
    multiply: Callable[[Array], Array]
    matrix: Any = None
    rounding: float = ROUNDING
    exponent: int = 0
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

    @property
    def sign(self) -> float:
        """The share of the largest Ritz value below which the sign of another means nothing."""
        return self.rounding if self.rounding > ROUNDING else SIGN

    @property
    def norm_products(self) -> int:
        """Products that ``squared_norm`` takes."""
        return 0

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
    if exponent := _exponent(entries):
        entries = np.ldexp(entries, -exponent)
        if sparse:
            matrix = sp.csr_array((entries, matrix.indices, matrix.indptr), matrix.shape)
        else:
            matrix = entries
    asymmetry = abs(matrix - matrix.T).max()
    if asymmetry > max(SYMMETRY, loose) * abs(entries).max(initial=0.0):
        raise ValueError(
            f"K must be symmetric, got K_ij - K_ji of up to {asymmetry:.2g}; "
            "pass (K + K.T) / 2 if that is what you mean"
        )
    diagonal = np.asarray(matrix.diagonal())
    if not (diagonal > 0).all():
        raise indefinite(f"a diagonal entry of {diagonal.min():.3g}")
    return Operator(matrix.shape[0], lambda block: matrix @ block, matrix, exponent=exponent)


def indefinite(evidence: str) -> ValueError:
    """The error for a matrix that is not positive definite."""
    return ValueError(
        f"K must be positive definite, got {evidence}; add jitter to the diagonal "
        "or check how K was made"
    )


def _exponent(values: Array, shift: int = 0) -> int:
    """e that brings 2^shift max |values| / 2^e within 2^-ORDINARY and 2^(ORDINARY + 1)."""
    largest = float(abs(values).max(initial=0.0))
    if largest == 0 or not np.isfinite(largest):
        return 0
    e = int(np.frexp(largest)[1]) - 1 + shift
    return e - min(max(e, -ORDINARY), ORDINARY)


def _matrix_free(K: LinearOperator) -> Operator:
    dtype = np.dtype(np.float64 if K.dtype is None else K.dtype)
    loose = _rounding(K.shape, dtype)
    out = Operator(K.shape[0], K.matmat, rounding=max(ROUNDING, loose))
    x, y = np.random.default_rng(0).standard_normal((2, out.n, 1))
    # Products in a coarser type have no numbers out of the ordinary, and no room for scaled probes.
    if dtype.itemsize >= np.dtype(np.float64).itemsize:
        _scale(out, K, x)
    Kx, Ky = out @ x, out @ y
    scale = np.hypot(np.linalg.norm(Kx), np.linalg.norm(Ky)) * np.linalg.norm(x)
    if abs(np.vdot(y, Kx) - np.vdot(x, Ky)) > max(SYMMETRY, loose) * scale:
        raise ValueError("K must be symmetric, got x.(K y) unlike y.(K x) for random x and y")
    out.products = 0  # validation is not part of any method's cost
    return out


def _scale(out: Operator, K: LinearOperator, x: Array) -> None:
    """Make ``out`` the products of K / 2^e, with e from K x.

    Half of the power is taken from the vector, half from the product, so that neither overflows.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        image = np.asarray(K.matmat(x), dtype=np.float64)
        if np.isfinite(image).all():
            e = _exponent(image)
        else:
            e = _exponent(np.asarray(K.matmat(np.ldexp(x, -FAR)), dtype=np.float64), FAR)
    if e:
        half = e // 2
        out.exponent = e
        out.multiply = lambda v: np.ldexp(K.matmat(np.ldexp(v, -half)), half - e)


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
