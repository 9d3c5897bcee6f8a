"""Many small symmetric positive definite systems at once."""

from __future__ import annotations

import numpy as np

from fitbo.mixture import Array

# LAPACK spends microseconds of overhead on each small matrix; a Cholesky written over the batch
# axis spends it once per column. Measured to pay up to about this size and from this many systems.
SMALL = 24
MANY = 32


def solve_spd(matrices: Array, right: Array) -> Array:
    """x with A x = right for each of B systems, (n, n, B), (n, B) -> (n, B). Overwrites both."""
    n, n_systems = right.shape
    if n > SMALL or n_systems < MANY:
        x = np.linalg.solve(matrices.transpose(2, 0, 1), right.T[:, :, None])[:, :, 0].T
        return np.asarray(x, dtype=np.float64)
    lower, x = matrices, right  # the lower triangle becomes the Cholesky factor
    # A pivot that rounding took below this belongs to a direction that says nothing.
    floor = 1e-16 * np.einsum("iib->ib", matrices).max(0)
    for j in range(n):
        column = lower[j:, j]
        if j:
            column -= np.einsum("ikb,kb->ib", lower[j:, :j], lower[j, :j])
            x[j] -= np.einsum("kb,kb->b", lower[j, :j], x[:j])
        np.maximum(column[0], floor, out=column[0])
        column /= np.sqrt(column[0])
        x[j] /= column[0]
    for j in reversed(range(n)):
        if j < n - 1:
            x[j] -= np.einsum("kb,kb->b", lower[j + 1 :, j], x[j + 1 :])
        x[j] /= lower[j, j]
    return x
