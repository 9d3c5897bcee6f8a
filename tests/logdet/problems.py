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


def stationary(n: int, dimension: int, lengthscale: float, noise: float, nu: float) -> np.ndarray:
    """A kernel matrix of random inputs: nu = 1/2, 5/2 (Matern) or inf (squared-exponential)."""
    x = np.random.default_rng(11).standard_normal((n, dimension))
    r = np.sqrt(((x[:, None] - x) ** 2).sum(-1)) / lengthscale
    a = np.sqrt(5) * r
    forms = {0.5: np.exp(-r), 2.5: (1 + a + a * a / 3) * np.exp(-a), np.inf: np.exp(-0.5 * r * r)}
    return forms[nu] + noise * np.eye(n)


def benign(n: int = 120) -> dict[str, np.ndarray | sp.csr_array]:
    """Matrices on which the default must be right and silent, of condition numbers up to 1e12."""
    rng = np.random.default_rng(5)
    found: dict[str, np.ndarray | sp.csr_array] = {
        f"kernel nu={nu} d={d} l={length} noise={noise}": stationary(n, d, length, noise, nu)
        for nu in (0.5, 2.5, np.inf)
        for d, length in ((1, 1.0), (3, 0.3), (3, 2.0))
        for noise in (1e-1, 1e-3)
    }
    found["kernel nu=inf d=1 l=1 noise=1e-9"] = stationary(n, 1, 1.0, 1e-9, np.inf)
    found["kernel nu=inf d=2 l=2 noise=1e-7"] = stationary(n, 2, 2.0, 1e-7, np.inf)
    G = rng.standard_normal((n, 2 * n))
    found["Wishart"] = G @ G.T / (2 * n)
    found["Laplacian, grid"] = grid_laplacian(12)
    found["Laplacian, squared"] = sp.csr_array(grid_laplacian(12) @ grid_laplacian(12))
    A = sp.random_array((n, n), density=0.03, rng=rng)
    A = A + A.T
    found["Laplacian, random graph"] = sp.csr_array(sp.diags_array(A.sum(1) + 0.01) - A)
    for kappa in (1e1, 1e3, 1e5):
        found[f"geometric {kappa:g}"] = with_spectrum(np.geomspace(1 / kappa, 1, n))
    for kappa in (1e4, 1e8, 1e12):
        bulk = np.linspace(0.5, 1, n)
        found[f"half at {1 / kappa:g}"] = with_spectrum(np.where(bulk < 0.75, 1 / kappa, bulk))
        found[f"one at {1 / kappa:g}"] = with_spectrum(np.append(bulk[1:], 1 / kappa))
        found[f"one at {kappa:g}"] = with_spectrum(np.append(bulk[1:], kappa))
    found["diagonal"] = sp.csr_array(sp.diags_array(rng.permutation(np.geomspace(0.01, 1, n))))
    return found


def hopeless(n: int = 250) -> dict[str, np.ndarray]:
    """Matrices with eigenvalues that the default number of products cannot show."""
    rng = np.random.default_rng(5)
    G = rng.standard_normal((n, n - 15))
    return {
        "no noise": stationary(n, 1, 1.0, 0.0, np.inf),
        "noise of rounding": stationary(n, 3, 2.0, 1e-13, np.inf),
        "noise 1e-10": stationary(n, 2, 0.5, 1e-10, np.inf),
        "geometric 1e12": with_spectrum(np.geomspace(1e-12, 1, n)),
        "geometric 1e15": with_spectrum(np.geomspace(1e-15, 1, n)),
        "twenty at 1e-15": with_spectrum(np.append(np.linspace(0.01, 1, n - 20), [1e-15] * 20)),
        "deficient Wishart": G @ G.T / n + 1e-14 * np.eye(n),
        "diagonal": np.diag(np.geomspace(1e-18, 1, n)),
    }


def true_logdet(K: np.ndarray | sp.csr_array) -> float:
    return float(np.linalg.slogdet(K.toarray() if sp.issparse(K) else K)[1])
