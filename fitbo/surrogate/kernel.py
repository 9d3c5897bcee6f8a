"""Stationary kernels with a lengthscale a dimension, for M samples at once, and their x-gradient.

=================  ================  =========================================================
symbol             shape             meaning
=================  ================  =========================================================
``precisions``     (M, d)            1/l^2
``r2``             (M, N)            squared scaled distances of N pairs of points
``rho``            (M, N)            the correlation, rho(r2) but for ``Additive``; k = s^2 rho
``slope``          (M, N)            d rho / d r2, finite at r2 = 0 for each kernel here
``table``          (d, N)            squared differences, one row a dimension, N = n1 n2 pairs
``share``          (M,)              w, of the variance that is additive; 0 for most kernels
``parts``          (M, d, N)         w/d times the slopes of the additive terms
=================  ================  =========================================================

    r2_m(x, x') = sum_i (x_i - x'_i)^2 / l_mi^2        is linear in 1/l^2,

so the distances of every sample are one GEMM, (M, d) with (d, N). The table does not depend on the
hyperparameters: a sampler makes it once a dataset. Differences are taken before they are squared,
so near-duplicate points keep their full relative accuracy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from fitbo.checks import one_of
from fitbo.mixture import Array
from fitbo.surrogate.hyperparameters import Hyperparameters


class Kernel(Protocol):
    """A correlation function of the squared scaled distance. Both methods overwrite ``r2``."""

    def value(self, r2: Array) -> Array:
        """rho(r2), any shape."""
        ...

    def value_and_slope(self, r2: Array) -> tuple[Array, Array]:
        """rho(r2) and d rho / d r2."""
        ...


@dataclass(frozen=True)
class RBF:
    """``rho = exp(-r2/2)``."""

    def value(self, r2: Array) -> Array:
        r2 *= -0.5
        return np.exp(r2, out=r2)

    def value_and_slope(self, r2: Array) -> tuple[Array, Array]:
        rho = self.value(r2)
        return rho, -0.5 * rho


@dataclass(frozen=True)
class Matern32:
    """``rho = (1 + a) exp(-a)``, a = sqrt(3 r2);  slope ``-(3/2) exp(-a)``."""

    def value(self, r2: Array) -> Array:
        return self.value_and_slope(r2)[0]

    def value_and_slope(self, r2: Array) -> tuple[Array, Array]:
        r2 *= 3.0
        a = np.sqrt(r2, out=r2)
        decay = _exp_minus(a)
        a += 1.0
        a *= decay
        decay *= -1.5
        return a, decay


@dataclass(frozen=True)
class Matern52:
    """``rho = (1 + a + a^2/3) exp(-a)``, a = sqrt(5 r2);  slope ``-(5/6)(1 + a) exp(-a)``."""

    def value(self, r2: Array) -> Array:
        r2 *= 5.0
        a = np.sqrt(r2)
        rho = r2
        rho *= 1 / 3
        rho += a
        rho += 1.0
        rho *= _exp_minus(a, out=a)
        return rho

    def value_and_slope(self, r2: Array) -> tuple[Array, Array]:
        r2 *= 5.0
        a = np.sqrt(r2)
        decay = _exp_minus(a)
        rho, linear = r2, a
        linear += 1.0
        rho *= 1 / 3
        rho += linear
        rho *= decay
        linear *= decay
        linear *= -5 / 6
        return rho, linear


@dataclass(frozen=True)
class Rational:
    """``rho = (1 + r2/2)^-2``, slope ``-(1 + r2/2)^-3``: smooth, and no exponential to pay for."""

    def value(self, r2: Array, weight: ArrayLike = 1.0) -> Array:
        """``weight`` rho(r2): the factor costs nothing here."""
        r2 *= 0.5
        r2 += 1.0
        r2 *= r2
        return np.divide(weight, r2, out=r2)

    def value_and_slope(self, r2: Array) -> tuple[Array, Array]:
        r2 *= 0.5
        r2 += 1.0
        slope = np.reciprocal(r2, out=r2)
        rho = slope * slope
        slope *= rho
        return rho, np.negative(slope, out=slope)


@dataclass(frozen=True)
class Additive:
    """``(1 - w) rho(r2) + (w/d) sum_i rho_1(r2_i)``, with the additive share w of the samples.

    What a function owes to its inputs one by one is learnt across the whole cube: an additive
    function of d inputs is d functions of one. The share is a hyperparameter like the others, and
    both parts have the same lengthscales. (A category is as many inputs as it has choices.)
    """

    whole: Kernel = Matern52()  # rho
    part: Rational = Rational()  # rho_1


AnyKernel = Kernel | Additive

KERNELS: dict[str, AnyKernel] = {
    "rbf": RBF(),
    "matern32": Matern32(),
    "matern52": Matern52(),
    "additive": Additive(),
}


def named_kernel(kernel: str | AnyKernel) -> AnyKernel:
    """A kernel from its name or from itself."""
    if not isinstance(kernel, str):
        return kernel
    one_of("kernel", kernel, KERNELS)
    return KERNELS[kernel]


def n_shares(kernel: AnyKernel) -> int:
    """How many hyperparameters a kernel has besides lengthscales and variance: 1 if additive."""
    return int(isinstance(kernel, Additive))


def squared_differences(X1: Array, X2: Array) -> Array:
    """(n1, d), (n2, d) -> (d, n1 n2): entry (i, a n2 + b) is (X1[a, i] - X2[b, i])^2."""
    difference = X1.T[:, :, None] - X2.T[:, None, :]
    difference *= difference
    return difference.reshape(X1.shape[1], -1)


def correlation(kernel: AnyKernel, theta: Hyperparameters, table: Array) -> Array:
    """rho for every sample and pair, M samples of theta and (d, N) -> (M, N)."""
    precisions = theta.precisions
    if not isinstance(kernel, Additive):
        return kernel.value(precisions @ table)
    rho, share = kernel.whole.value(precisions @ table), theta.share[:, None]
    rho *= 1 - share
    term = np.empty_like(rho)
    for precision, row in zip(precisions.T, table, strict=True):
        np.multiply(precision[:, None], row, out=term)
        rho += kernel.part.value(term, share / len(table))
    return rho


def correlation_and_slopes(
    kernel: AnyKernel, theta: Hyperparameters, table: Array
) -> tuple[Array, Array, Array]:
    """rho and slope (M, N), and the parts (M, d, N), which are empty but for an additive kernel.

    d rho/dx_i = (slope + parts_i) d r2_i/dx_i.
    """
    precisions = theta.precisions
    if not isinstance(kernel, Additive):
        rho, slope = kernel.value_and_slope(precisions @ table)
        return rho, slope, np.empty((len(rho), 0, rho.shape[1]))
    rho, slope = kernel.whole.value_and_slope(precisions @ table)
    for whole in (rho, slope):
        whole *= 1 - theta.share[:, None]
    terms, parts = kernel.part.value_and_slope(precisions[:, :, None] * table)
    weight = np.tile(theta.share[:, None, None] / len(table), len(table))
    rho += (weight @ terms)[:, 0]
    parts *= weight[:, :, :1]
    return rho, slope, parts


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


def _exp_minus(a: Array, out: Array | None = None) -> Array:
    decay = np.negative(a, out=out)
    return np.exp(decay, out=decay)
