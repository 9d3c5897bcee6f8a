"""Stationary kernels with one lengthscale per dimension, for M samples at once.

    precisions  (M, d)     1/l^2
    table       (d, N)     squared differences of N = n1 n2 pairs of points (``differences``)
    r2          (M, N)     squared scaled distances of the pairs
    rho         (M, N)     the correlation, a function of r2 but for ``Additive``; k = s^2 rho
    slope       (M, N)     d rho / d r2, finite at r2 = 0 for each kernel here

    r2_m(x, x') = sum_i (x_i - x'_i)^2 / l_mi^2        is linear in 1/l^2,

so the distances of every sample are one GEMM, (M, d) with (d, N).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from fitbo.mixture import Array
from fitbo.surrogate.hyperparameters import Hyperparameters

Slopes = tuple[Array, Array, Array | None]  # rho, slope, and the parts of an additive kernel


class Kernel(ABC):
    """The correlation of g at pairs of points, for M samples of theta."""

    n_shares: ClassVar[int] = 0  # hyperparameters besides lengthscales and variance

    @property
    def has_paths(self) -> bool:
        """Whether the process can be drawn: whether ``rows`` and ``spectrum`` are defined."""
        kind = type(self)
        return kind.rows is not Kernel.rows and kind.spectrum is not Kernel.spectrum

    @abstractmethod
    def correlation(self, theta: Hyperparameters, table: Array) -> Array:
        """rho for every sample and pair, (M, N)."""

    @abstractmethod
    def correlation_and_slopes(self, theta: Hyperparameters, table: Array) -> Slopes:
        """The same with the slopes: d rho/dx_i = (slope + parts_i) d r2_i/dx_i."""

    def rows(self, share: Array, r2: Array) -> tuple[Array, Array]:
        """rho (R, n) and its slopes in each r2_i (R, d or 1, n), every row with a theta of its own.

        share (R,) or (R, 2); r2 (R, d, n): the scaled squared differences by dimension.
        """
        raise NotImplementedError(f"{type(self).__name__} has no paths: define rows and spectrum")

    def spectrum(
        self, theta: Hyperparameters, n: int, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        """Frequencies omega (M, F, d) and amplitudes a (M, F), F >= n, of random features:

        rho(x, x') = E sum_f a_f^2 cos(omega_f.(x - x')),   sum_f a_f^2 = 1.
        """
        raise NotImplementedError(f"{type(self).__name__} has no paths: define rows and spectrum")


class Stationary(Kernel):
    """A kernel that is a function of the squared scaled distance, which its methods overwrite."""

    @property
    def has_paths(self) -> bool:
        return type(self).scales is not Stationary.scales

    def value(self, r2: Array) -> Array:
        """rho(r2), any shape."""
        return self.value_and_slope(r2)[0]

    @abstractmethod
    def value_and_slope(self, r2: Array) -> tuple[Array, Array]:
        """rho(r2) and d rho / d r2."""

    def scales(self, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        """Draws of sigma: rho is the mean of exp(-sigma^2 r2/2), a mixture of Gaussians."""
        raise NotImplementedError(f"{type(self).__name__} has no paths: define scales")

    def correlation(self, theta: Hyperparameters, table: Array) -> Array:
        return self.value(theta.precisions @ table)

    def correlation_and_slopes(self, theta: Hyperparameters, table: Array) -> Slopes:
        return *self.value_and_slope(theta.precisions @ table), None

    def rows(self, share: Array, r2: Array) -> tuple[Array, Array]:
        rho, slope = self.value_and_slope(r2.sum(1))
        return rho, slope[:, None]

    def spectrum(
        self, theta: Hyperparameters, n: int, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        M, d = theta.lengthscales.shape
        omega = rng.standard_normal((M, n, d)) / theta.lengthscales[:, None]
        omega *= self.scales((M, n, 1), rng)
        return omega, np.full((M, n), n**-0.5)


@dataclass(frozen=True)
class RBF(Stationary):
    """``rho = exp(-r2/2)``."""

    def value(self, r2: Array) -> Array:
        r2 *= -0.5
        return np.exp(r2, out=r2)

    def value_and_slope(self, r2: Array) -> tuple[Array, Array]:
        rho = self.value(r2)
        return rho, -0.5 * rho

    def scales(self, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        return np.ones(shape)


@dataclass(frozen=True)
class Matern32(Stationary):
    """``rho = (1 + a) exp(-a)``, a = sqrt(3 r2);  slope ``-(3/2) exp(-a)``."""

    def value_and_slope(self, r2: Array) -> tuple[Array, Array]:
        r2 *= 3.0
        a = np.sqrt(r2, out=r2)
        decay = _exp_minus(a)
        a += 1.0
        a *= decay
        decay *= -1.5
        return a, decay

    def scales(self, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        return np.sqrt(3 / rng.chisquare(3, shape))


@dataclass(frozen=True)
class Matern52(Stationary):
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

    def scales(self, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        return np.sqrt(5 / rng.chisquare(5, shape))


@dataclass(frozen=True)
class Rational(Stationary):
    """``rho = (1 + r2/2)^-2``, slope ``-(1 + r2/2)^-3``: smooth, without the cost of an exp."""

    def value(self, r2: Array) -> Array:
        r2 *= 0.5
        return self.of_half(r2, 1.0)

    def of_half(self, half: Array, weight: ArrayLike) -> Array:
        """``weight`` rho of r2/2, which is overwritten: neither factor costs a pass here."""
        half += 1.0
        half *= half
        return np.divide(weight, half, out=half)

    def value_and_slope(self, r2: Array) -> tuple[Array, Array]:
        r2 *= 0.5
        r2 += 1.0
        slope = np.reciprocal(r2, out=r2)
        rho = slope * slope
        slope *= rho
        return rho, np.negative(slope, out=slope)

    def scales(self, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        return np.sqrt(rng.gamma(2.0, 1.0, shape))


def _exp_minus(a: Array, out: Array | None = None) -> Array:
    decay = np.negative(a, out=out)
    return np.exp(decay, out=decay)
