"""Many Gaussian processes at once: stacked Cholesky factors, likelihoods, conditioning.

    K       (M, n, n)  covariances of the data, noise included; lower triangles are read
    L       (M, n, n)  lower Cholesky factors, K = L L^T
    r       (M, n)     data less their mean
    jitter  (M,)       relative increase of the diagonal that made K factorise

Jitter multiplies the diagonal, ``K_ii (1 + jitter)``: it acts on the correlation matrix, so it has
an effect at any scale of the process and any spread of the diagonal (noise may differ by 1e12
between points). It is raised only for the matrices that fail.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from scipy.linalg import blas, lapack

from fitbo.mixture import LOG_2PI, Array

JITTERS = tuple(10.0**power for power in range(-12, 1))
LIKELIHOOD_JITTER = 1e-6  # beyond it K is no longer what the sampler asked about: its density is 0
FEW = 32  # rows, up to which a product is bound by memory
BORDER = 1e300  # exceeds any quadratic form a likelihood could survive


def blocks(total: int, size: int) -> Iterator[slice]:
    """Consecutive slices of at most ``size`` >= 1 that cover ``range(total)``."""
    size = max(1, size)
    for start in range(0, total, size):
        yield slice(start, min(start + size, total))


def cholesky(K: Array, max_jitter: float = 1.0) -> tuple[Array, Array]:
    """Factors (M, n, n) and the jitter each needed (M,), 0 for almost all.

    A matrix that fails at ``max_jitter`` gets a factor of NaN and a jitter of inf. A finite K with
    a positive diagonal cannot fail at jitter 1: a correlation matrix plus the identity is definite.
    """
    jitter = np.zeros(len(K))
    pending = np.arange(0)
    try:
        L = np.asarray(np.linalg.cholesky(K), dtype=np.float64)
    except np.linalg.LinAlgError:
        L = np.full(K.shape, np.nan)
        pending = _factorise_each(K, L, np.arange(len(K)))
    diagonal = np.arange(K.shape[-1])
    for level in JITTERS:
        if level > max_jitter or not pending.size:
            break
        raised = K[pending]
        raised[:, diagonal, diagonal] *= 1 + level
        factors = np.full(raised.shape, np.nan)
        failed = _factorise_each(raised, factors, np.arange(len(pending)))
        L[pending], jitter[pending] = factors, level
        pending = pending[failed]
    jitter[pending] = np.inf
    # LAPACK may take a NaN for a pivot and go on; it spreads down the factor to the last entry.
    jitter[~np.isfinite(L[:, -1, -1])] = np.inf
    return L, jitter


def _factorise_each(K: Array, L: Array, rows: np.ndarray) -> np.ndarray:
    """Write the factors of K[rows] into L and return the rows that fail.

    numpy raises for a whole stack without saying which matrix failed; halving the stack isolates
    the few that do in a logarithmic number of calls.
    """
    try:
        L[rows] = np.linalg.cholesky(K[rows])
    except np.linalg.LinAlgError:
        if len(rows) == 1:
            return rows
        halves = np.array_split(rows, [len(rows) // 2])
        return np.concatenate([_factorise_each(K, L, half) for half in halves])
    return rows[:0]


def log_likelihood(bordered: Array) -> Array:
    """log N(r; 0, K) of each sample, (M, n + 1, n + 1) -> (M,), -inf where it is hopeless.

    ``bordered`` holds K, with r as its last row and BORDER in the corner. In

        [ K    r ]   [ L    0 ] [ L^T  z ]
        [ r^T  c ] = [ z^T  l ] [ 0    l ]

    the last row of the factor is the forward substitution z = L^-1 r: one stacked Cholesky yields
    both log det K and r^T K^-1 r = z^T z, where a stacked solve would cost twice as much again.
    The corner c = BORDER must only exceed z^T z; l is not used.
    """
    L, _ = cholesky(bordered, LIKELIHOOD_JITTER)
    n = bordered.shape[-1] - 1
    z = L[:, n, :n]
    half_log_det = np.log(np.einsum("mii->mi", L)[:, :n]).sum(1)
    value = -0.5 * np.vecdot(z, z) - half_log_det - 0.5 * n * LOG_2PI
    return np.where(np.isfinite(value), value, -np.inf)


def inverse_factor(K: Array) -> tuple[Array, Array]:
    """L^-1 (M, n, n), lower triangular with explicit zeros above, and the jitter (M,).

    Prediction multiplies by the explicit L^-1, never by K^-1. ``k^T K^-1 k`` sums terms of size
    |K^-1| |k|^2 that cancel down to k(x, x); ``|L^-1 k|^2`` sums positive ones. Measured against
    long doubles at n = 100, prior variance 9.5 and condition numbers from 3e7 to 2e13: the
    variance by L^-1 errs by 2e-13 to 6e-13 throughout, by triangular solves 1e-13 to 5e-13, and by
    K^-1 from 4e-9 to 2e-3.
    """
    L, jitter = cholesky(K)
    out = np.empty_like(L)
    # A loop, because LAPACK has no stacked trtri and numpy's stacked inverse ignores the triangle
    # (three times slower at n = 100). It runs once per dataset. Transposes make the order LAPACK's.
    for j, lower in enumerate(L):
        out[j] = lapack.dtrtri(lower.T, lower=0)[0].T
    return out, jitter


def times_inverse(rows: Array, factor: Array, transposed: bool = False) -> Array:
    """rows L^-T for each sample, or rows L^-1 if ``transposed``: (M, B, n), (M, n, n) -> (M, B, n).

    A loop, because numpy's stacked product does not know that L^-1 is triangular, which saves half
    of the multiplications; for few rows reading L^-1 is the cost, and the stacked product reads on.
    """
    if rows.shape[1] < FEW:
        return rows @ (factor if transposed else factor.swapaxes(1, 2))
    out = np.empty(rows.shape)
    for j, (each, inverse) in enumerate(zip(rows, factor, strict=True)):
        # In LAPACK's order: the transposes are views, and L^-1 is seen as an upper triangle.
        out[j] = blas.dtrmm(1.0, inverse.T, each.T, lower=0, trans_a=not transposed).T
    return out


def inverses_of(K: Array, r: Array) -> tuple[Array, Array, Array, Array]:
    """log det K (M,), K^-1 (M, n, n), A = K^-1 r (M, n) and r^T A (M,) for r (M, n); NaN if none.

    K, of which the lower triangle is read, is overwritten. r^T A is |L^-1 r|^2, never negative: by
    the explicit K^-1 it came out as -5e21 where K was all but singular, a likelihood that a climb
    took for its top. A loop, because LAPACK has no stacked potri.
    """
    log_det, lower = np.empty(len(K)), _lower(K.shape[-1])
    A, square = np.full(r.shape, np.nan), np.full(len(K), np.nan)
    for j, matrix in enumerate(K):
        # In LAPACK's order: the transpose is a view, and its upper triangle is read.
        factor, failed = lapack.dpotrf(matrix.T, lower=0, overwrite_a=1)
        if failed or not np.isfinite(factor[-1, -1]):
            log_det[j], matrix[:] = np.nan, np.nan
            continue
        log_det[j] = 2 * np.log(np.diagonal(factor)).sum()
        z = blas.dtrsv(factor, r[j], trans=1)
        square[j], A[j] = z @ z, blas.dtrsv(factor, z)
        inverse = lapack.dpotri(factor, lower=0, overwrite_c=1)[0]
        matrix[:] = np.where(lower, inverse.T, inverse)
    return log_det, K, A, square


@lru_cache(maxsize=8)
def _lower(n: int) -> np.ndarray:
    """Where a matrix (n, n) has its lower triangle, the diagonal included."""
    return np.tri(n, dtype=bool)
