"""The kernels by name: stationary ones, and sums of them whose shares are sampled.

table       (d, N)     squared differences of N pairs of points, by dimension
r2, rho     (M, N)     squared scaled distances and correlations of the pairs
share       (M,)       w, the additive share of the variance; 0 for most kernels; (M, 2) of
                       ``Smooth``, whose second is b
parts       (M, d, N)  w/d times the slopes of the additive terms
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fitbo.checks import one_of
from fitbo.mixture import Array
from fitbo.shelf import Shelf
from fitbo.surrogate.hyperparameters import Hyperparameters
from fitbo.surrogate.stationary import (
    RBF,
    Kernel,
    Matern32,
    Matern52,
    Rational,
    Slopes,
    Stationary,
)

GAUSSIAN, MATERN52, RATIONAL = RBF(), Matern52(), Rational()


@dataclass(frozen=True)
class Additive(Kernel):
    """``(1 - w) rho(r2) + (w/d) sum_i rho_1(r2_i)``, with the additive share w of the samples.

    The effect of each input by itself is learnt across the whole cube: an additive function of d
    inputs is d functions of one. The share is a hyperparameter like the others, and both parts have
    the same lengthscales. (A category counts as many inputs as it has choices.)
    """

    n_shares: ClassVar[int] = 1

    whole: Stationary = MATERN52  # rho
    part: Rational = RATIONAL  # rho_1

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
    rough: Stationary = MATERN52
    smooth: RBF = GAUSSIAN

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
        rough, smooth = self.whole.value(r2.copy()), GAUSSIAN.value(r2)
        blend = rough + b * (smooth - rough)
        by_w, by_b = (1 - w) * (rho - blend), (1 - w) * b * (1 - b) * (smooth - rough)
        return np.stack([by_w, by_b], axis=1)


KERNELS: Shelf[Kernel] = Shelf(
    "fitbo.kernels",
    {
        "rbf": GAUSSIAN,
        "matern32": Matern32(),
        "matern52": MATERN52,
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
