"""What an entropy backend is, and what the backends of this package share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, runtime_checkable

import numpy as np

from fitbo.mixture import Array, Mixture, exp_in_place

Gradient = tuple[Array, Array, Array]

NEGLIGIBLE_WEIGHT = 1e-15
PAIR_BLOCK = 1 << 16  # densities evaluated at once: half a megabyte per array


@runtime_checkable
class Entropy(Protocol):
    """``H[p]`` in nats of each mixture of a batch.

    The backends of this package also declare two class attributes, which the tests check:
    ``tolerance``, the largest error in nats of what it promises (the entropy of a single Gaussian,
    the side of its bound), and ``upper_bound``, whether it promises one. Invariances hold to
    rounding, except those that change a random draw.
    """

    def __call__(self, mixture: Mixture) -> Array:
        """H, (...,)."""
        ...

    def value_and_grad(self, mixture: Mixture) -> Gradient:
        """H (...,), dH/dmeans (..., M), dH/dvariances (..., M), at fixed weights."""
        ...


class Flat:
    """An ``Entropy`` from one function of flat arrays, ``_compute``."""

    def __call__(self, mixture: Mixture) -> Array:
        return restore(mixture, self._compute(*flatten(mixture), gradient=False)[0])

    def value_and_grad(self, mixture: Mixture) -> Gradient:
        value, by_mean, by_variance = self._compute(*flatten(mixture), gradient=True)
        return restore(mixture, value), restore(mixture, by_mean), restore(mixture, by_variance)

    def _compute(self, means: Array, variances: Array, weights: Array, gradient: bool) -> Gradient:
        """(B, M) each -> H (B,) and, valid only if asked for, dH/dmeans, dH/dvariances (B, M)."""
        raise NotImplementedError


def flatten(mixture: Mixture) -> Gradient:
    """means, variances and weights as (B, M) arrays; equal weights are one row, seen B times."""
    shape = (-1, mixture.n_components)
    return (
        mixture.means.reshape(shape),
        mixture.variances.reshape(shape),
        mixture.weights.reshape(shape),
    )


def restore(mixture: Mixture, values: Any) -> Any:
    """An array (B,) or (B, M) back in the mixture's batch shape."""
    return values.reshape(mixture.batch_shape + values.shape[1:])


def centred(means: Array, variances: Array, weights: Array) -> tuple[Array, Array, Array, Array]:
    """Means, stds and variances (B, M) in units of a scale (B, 1), and the scale: the largest std.

    The means are relative to the heaviest component's, so that a distant component's rounding does
    no harm. A component without weight is placed on the heaviest one.
    """
    heaviest = weights.argmax(1)[:, None]
    centre = np.take_along_axis(means, heaviest, 1)
    absent = weights <= NEGLIGIBLE_WEIGHT
    if absent.any():
        means = np.where(absent, centre, means)
        variances = np.where(absent, np.take_along_axis(variances, heaviest, 1), variances)
    scale = np.sqrt(variances.max(1, keepdims=True))
    return (means - centre) / scale, np.sqrt(variances) / scale, variances / scale**2, scale


def blocks(n_mixtures: int, n_points: int, n_components: int) -> Iterator[tuple[slice, slice]]:
    """Slices of (mixtures, points) whose densities under every component fit a block, in order."""
    rows = max(1, PAIR_BLOCK // (n_points * n_components))
    points = max(1, PAIR_BLOCK // n_components)
    for start in range(0, n_mixtures, rows):
        for first in range(0, n_points, points):
            yield slice(start, start + rows), slice(first, first + points)


def shares(exponent: Array, heights: Array) -> tuple[Array, Array]:
    """log sum_j h_j exp(x_j), (..., 1), and each term's share of the sum; overwrites exponent."""
    top = exponent.max(-1, keepdims=True)
    exponent -= top
    share = exp_in_place(exponent)
    share *= heights
    total = share.sum(-1, keepdims=True)
    share /= total
    return np.log(total) + top, share
