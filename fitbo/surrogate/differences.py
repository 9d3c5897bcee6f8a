"""Differences of points, squared for kernels, and the gradients that follow from them.

A table of squared differences does not depend on the hyperparameters: a sampler makes it once per
dataset. Differences are taken before they are squared, so near-duplicate points keep their full
relative accuracy.
"""

from __future__ import annotations

import numpy as np

from fitbo.mixture import Array


def squared_differences(X1: Array, X2: Array) -> Array:
    """(n1, d), (n2, d) -> (d, n1 n2): entry (i, a n2 + b) is (X1[a, i] - X2[b, i])^2."""
    difference = X1.T[:, :, None] - X2.T[:, None, :]
    difference *= difference
    return difference.reshape(X1.shape[1], -1)


def x_gradient(weighted: Array, precisions: Array, X: Array, bordered: Array) -> Array:
    """sum_n C[m, b, n] d k_m(x_b, x_n)/dx_b, given ``weighted = C s^2 slope``, (M, B, n).

    d r2/dx_i = 2 (x_i - x_ni)/l_i^2 is linear in x_n, so with ``bordered = [X_data, 1]`` and
    S = weighted @ bordered

        sum_n weighted[m, b, n] d r2/dx_bi = (2/l_mi^2) (x_bi S[m, b, d] - S[m, b, i])

    and no array of shape (M, B, n, d) exists. Coefficients that are the same for every candidate,
    C[m, b, n] = alpha[m, n], may scale ``bordered`` instead, which is smaller.
    precisions (M, d), X (B, d), bordered (n, d + 1) or (M, n, d + 1) -> (M, B, d).
    """
    S = weighted @ bordered
    gradient = X * S[:, :, -1:] - S[:, :, :-1]
    gradient *= 2 * precisions[:, None, :]
    return gradient


def parts_gradient(
    parts: Array, precisions: Array, X: Array, X_data: Array, coefficients: Array
) -> Array:
    """The same for the additive terms: sum_n C[m, n, k] parts[m, i, b, n] d r2_i/dx_bi.

    parts (M, d, B, n), X_data (n, d), coefficients C (M or 1, n, K) -> (M, K, B, d).
    """
    C = coefficients[:, None]
    gradient = X.T[:, :, None] * (parts @ C) - (parts * X_data.T[:, None]) @ C
    gradient *= 2 * precisions[:, :, None, None]
    return gradient.transpose(0, 3, 2, 1)


def with_ones(X: Array) -> Array:
    """[X, 1], (n, d) -> (n, d + 1)."""
    return np.concatenate([X, np.ones((len(X), 1))], axis=1)
