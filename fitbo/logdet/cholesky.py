"""The exact log-determinant: 2 sum_i log L_ii of the Cholesky factor.

Dense by LAPACK. Sparse by SuperLU in its symmetric mode, where with pivots from the diagonal
P K P^T = L U has U = D L^T: K is positive definite if and only if every U_ii is positive, and
log det K = sum_i log U_ii.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgError
from scipy.linalg import cholesky as factor
from scipy.sparse.linalg import splu

from fitbo.logdet.info import LogdetInfo
from fitbo.logdet.operator import Operator, indefinite


def estimate(operator: Operator) -> tuple[float, LogdetInfo]:
    """log det K to rounding; K must be an ndarray or sparse."""
    if operator.matrix is None:
        raise ValueError(
            'method="cholesky" needs the entries of K, got a LinearOperator; '
            "pass the matrix or choose another method"
        )
    if operator.sparse:
        pivots = _sparse_pivots(operator.matrix)
    else:
        try:
            pivots = factor(operator.matrix, lower=True, check_finite=False).diagonal() ** 2
        except LinAlgError as error:
            raise indefinite(f"a failed Cholesky factorisation ({error})") from None
    return float(np.log(pivots).sum()), LogdetInfo("cholesky", 0, 0.0)


def _sparse_pivots(matrix: sp.csr_array) -> np.ndarray:
    """Diagonal of D in P K P^T = L D L^T, (n,)."""
    options = {"SymmetricMode": True}
    try:
        factors = splu(matrix.tocsc(), "MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options)
    except RuntimeError as error:  # what SuperLU raises for an exactly singular matrix
        raise indefinite(f"a failed factorisation ({error})") from None
    pivots = np.asarray(factors.U.diagonal())
    # A zero on the diagonal makes SuperLU pivot off it, which only an indefinite matrix needs.
    if not (pivots > 0).all() or (factors.perm_r != factors.perm_c).any():
        raise indefinite(f"a pivot of {pivots.min():.3g}")
    return pivots
