"""Matrices whose log-determinant is known, in all the forms that K may take."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, aslinearoperator


def grid_laplacian(side: int) -> sp.csr_array:
    """2-D Dirichlet Laplacian: eigenvalues 4 - 2 cos(pi i/(s+1)) - 2 cos(pi j/(s+1))."""
    line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(side, side))
    eye = sp.eye_array(side)
    return sp.csr_array(sp.kron(line, eye) + sp.kron(eye, line))


def grid_eigenvalues(side: int) -> np.ndarray:
    angle = np.pi * np.arange(1, side + 1) / (side + 1)
    return (4 - 2 * np.cos(angle)[:, None] - 2 * np.cos(angle)).ravel()


def with_spectrum(eigenvalues: np.ndarray, seed: int = 0) -> np.ndarray:
    """A dense matrix with these eigenvalues and random eigenvectors."""
    n = len(eigenvalues)
    q, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((n, n)))
    K = (q * eigenvalues) @ q.T
    return (K + K.T) / 2


def kernel(n: int, lengthscale: float, noise: float, seed: int = 0) -> np.ndarray:
    x = np.random.default_rng(seed).standard_normal((n, 3))
    squares = ((x[:, None] - x) ** 2).sum(-1)
    return np.exp(-0.5 * squares / lengthscale**2) + noise * np.eye(n)


def forms(dense: np.ndarray) -> dict[str, np.ndarray | sp.sparray | sp.spmatrix | LinearOperator]:
    return {
        "ndarray": dense,
        "csr_array": sp.csr_array(dense),
        "coo_matrix": sp.coo_matrix(dense),
        "operator": aslinearoperator(dense),
    }
