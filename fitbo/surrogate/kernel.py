"""Stationary kernels with one lengthscale per dimension, for M samples at once, and x-gradients.

    precisions  (M, d)     1/l^2
    table       (d, N)     squared differences of N = n1 n2 pairs of points, by dimension
    r2          (M, N)     squared scaled distances of the pairs
    rho         (M, N)     the correlation, a function of r2 but for ``Additive``; k = s^2 rho
    slope       (M, N)     d rho / d r2, finite at r2 = 0 for each kernel here
    share       (M,)       w, the additive share of the variance; 0 for most kernels; (M, 2) of
                           ``Smooth``, whose second is b
    parts       (M, d, N)  w/d times the slopes of the additive terms

    r2_m(x, x') = sum_i (x_i - x'_i)^2 / l_mi^2        is linear in 1/l^2,

so the distances of every sample are one GEMM, (M, d) with (d, N). The table does not depend on the
hyperparameters: a sampler makes it once per dataset. Differences are taken before they are squared,
so near-duplicate points keep their full relative accuracy.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from fitbo.checks import one_of
from fitbo.mixture import Array
from fitbo.shelf import Shelf
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
        """Frequencies omega (M, F, d) and amplitudes a (M, F), F >= n, of random features [1]:

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


@dataclass(frozen=True)
class Additive(Kernel):
    """``(1 - w) rho(r2) + (w/d) sum_i rho_1(r2_i)``, with the additive share w of the samples.

    The effect of each input by itself is learnt across the whole cube: an additive function of d
    inputs is d functions of one. The share is a hyperparameter like the others, and both parts have
    the same lengthscales. (A category counts as many inputs as it has choices.)
    """

    n_shares: ClassVar[int] = 1

    whole: Stationary = Matern52()  # rho
    part: Rational = Rational()  # rho_1

    @property
    def has_paths(self) -> bool:
        return self.whole.has_paths

    def split(self, share: Array) -> tuple[Array, Stationary]:
        """w (M,) and rho, of the samples with these shares."""
        return share, self.whole

    def correlation(self, theta: Hyperparameters, table: Array) -> Array:
        w, whole = self.split(theta.share)
        precisions, share = theta.precisions, w[:, None]
        rho = whole.value(precisions @ table)
        rho *= 1 - share
        term, weight = np.empty_like(rho), share / len(table)
        for half, row in zip(0.5 * precisions.T, table, strict=True):
            np.multiply(half[:, None], row, out=term)
            rho += self.part.of_half(term, weight)
        return rho

    def correlation_and_slopes(self, theta: Hyperparameters, table: Array) -> Slopes:
        w, whole = self.split(theta.share)
        precisions, share = theta.precisions, w[:, None]
        rho, slope = whole.value_and_slope(precisions @ table)
        for each in (rho, slope):
            each *= 1 - share
        terms, parts = self.part.value_and_slope(precisions[:, :, None] * table)
        weight = share / len(table)
        rho += weight * terms.sum(1)
        parts *= weight[:, None]
        return rho, slope, parts

    def by_odds(self, theta: Hyperparameters, r2: Array, rho: Array) -> Array:
        """d rho/d log odds of each share, (M, n_shares, N), given r2 and rho (M, N).

        With R the kernel without its additive part, (1 - w)(rho - R).
        """
        w, whole = self.split(theta.share)
        return ((1 - w[:, None]) * (rho - whole.value(r2)))[:, None]

    def rows(self, share: Array, r2: Array) -> tuple[Array, Array]:
        additive, whole = self.split(share)
        w = additive[:, None]
        rho, slope = whole.value_and_slope(r2.sum(1))
        terms, slopes = self.part.value_and_slope(r2)
        slopes *= w[:, :, None] / r2.shape[1]
        slopes += ((1 - w) * slope)[:, None]
        return (1 - w) * rho + w * terms.mean(1), slopes

    def spectrum(
        self, theta: Hyperparameters, n: int, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        M, d = theta.lengthscales.shape
        each = -(-n // d)
        w, rho = self.split(theta.share)
        whole, a = rho.spectrum(theta, n, rng)
        axis = rng.standard_normal((M, each, d)) * self.part.scales((M, each, d), rng)
        axis /= theta.lengthscales[:, None]
        along = (axis[:, :, :, None] * np.eye(d)).reshape(M, each * d, d)
        share = w[:, None]
        b = np.tile(np.sqrt(share / (each * d)), each * d)
        omega = np.concatenate([whole, along], axis=1)
        return omega, np.concatenate([np.sqrt(1 - share) * a, b], axis=1)


@dataclass(frozen=True, eq=False)
class Blend(Stationary):
    """``(1 - b) rho(r2) + b exp(-r2/2)``, each of the M samples with its own b (M,)."""

    b: Array
    rough: Stationary = Matern52()
    smooth: RBF = RBF()

    def value(self, r2: Array) -> Array:
        b = self._share(r2)
        return (1 - b) * self.rough.value(r2.copy()) + b * self.smooth.value(r2)

    def value_and_slope(self, r2: Array) -> tuple[Array, Array]:
        b = self._share(r2)
        rough, smooth = self.rough.value_and_slope(r2.copy()), self.smooth.value_and_slope(r2)
        rho, slope = ((1 - b) * x + b * y for x, y in zip(rough, smooth, strict=True))
        return rho, slope

    def scales(self, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        chosen = rng.random(shape) < self.b.reshape(-1, *[1] * (len(shape) - 1))
        return np.where(chosen, self.smooth.scales(shape, rng), self.rough.scales(shape, rng))

    def _share(self, r2: Array) -> Array:
        return self.b.reshape(-1, *[1] * (r2.ndim - 1))


@dataclass(frozen=True)
class Smooth(Additive):
    """``Additive`` with rho = (1 - b) Matern-5/2 + b RBF: how smooth f is, is sampled too.

    A smooth function goes on as it began: from values about a minimum, none of them close to it,
    follows where it lies. A rough one must be evaluated there. Without noise it makes no difference
    (results/ablation); with noise the values nearby have to be many, and where they may lie decides
    how much they say.
    """

    n_shares: ClassVar[int] = 2

    def split(self, share: Array) -> tuple[Array, Stationary]:
        return share[:, 0], Blend(share[:, 1], self.whole)

    def by_odds(self, theta: Hyperparameters, r2: Array, rho: Array) -> Array:
        """Of w as before; of b, (1 - w) b (1 - b) (exp(-r2/2) - rho_rough)."""
        w, b = theta.share.T[:, :, None]
        rough, smooth = self.whole.value(r2.copy()), RBF().value(r2)
        blend = rough + b * (smooth - rough)
        by_w, by_b = (1 - w) * (rho - blend), (1 - w) * b * (1 - b) * (smooth - rough)
        return np.stack([by_w, by_b], axis=1)


KERNELS: Shelf[Kernel] = Shelf(
    "fitbo.kernels",
    {
        "rbf": RBF(),
        "matern32": Matern32(),
        "matern52": Matern52(),
        "additive": Additive(),
        "smooth": Smooth(),
    },
)


def named_kernel(kernel: str | Kernel) -> Kernel:
    """A kernel from its name or from itself."""
    if not isinstance(kernel, str):
        return kernel
    one_of("kernel", kernel, KERNELS)
    return KERNELS[kernel]


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


def _exp_minus(a: Array, out: Array | None = None) -> Array:
    decay = np.negative(a, out=out)
    return np.exp(decay, out=decay)
