"""What an entropy backend is: a callable on mixtures that also knows its gradient."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, runtime_checkable

import numpy as np

from fitbo.mixture import Array, Mixture

Gradient = tuple[Array, Array, Array]

NEGLIGIBLE_WEIGHT = 1e-15
PAIR_BLOCK = 1 << 16  # pairs of components evaluated at once: half a megabyte an array


@runtime_checkable
class Entropy(Protocol):
    """``H[p]`` in nats of each mixture of a batch.

    The backends of this package also declare two class attributes, which their tests hold them to:
    ``tolerance``, the nats by which one may miss what it promises (the entropy of a single
    Gaussian, the side of its bound), and ``upper_bound``, whether it promises one. Invariances hold
    to rounding, but for those that change a random draw.
    """

    def __call__(self, mixture: Mixture) -> Array:
        """H, (...,)."""
        ...

    def value_and_grad(self, mixture: Mixture) -> Gradient:
        """H (...,), dH/dmeans (..., M), dH/dvariances (..., M), at fixed weights."""
        ...


def flatten(mixture: Mixture) -> Gradient:
    """means, variances and weights as contiguous (B, M) arrays."""
    shape = (-1, mixture.n_components)
    return (
        mixture.means.reshape(shape),
        mixture.variances.reshape(shape),
        np.ascontiguousarray(mixture.weights).reshape(shape),
    )


def centred(mixture: Mixture) -> tuple[Array, Array, Array, Array]:
    """means, variances and weights (B, M), and a scale (B, 1), for sums over pairs of components.

    The means are from the heaviest component's, beside which a far one's rounding does no harm, and
    in units of the scale, the largest deviation; the variances as they are. A component without
    weight is put where the heaviest is.
    """
    means, variances, weights = flatten(mixture)
    heaviest = weights.argmax(1)[:, None]
    centre = np.take_along_axis(means, heaviest, 1)
    absent = weights <= NEGLIGIBLE_WEIGHT
    if absent.any():
        means = np.where(absent, centre, means)
        variances = np.where(absent, np.take_along_axis(variances, heaviest, 1), variances)
    scale = np.sqrt(variances.max(1, keepdims=True))
    return (means - centre) / scale, variances, weights, scale


def restore(mixture: Mixture, values: Any) -> Any:
    """An array (B,) or (B, M) back in the mixture's batch shape."""
    return values.reshape(mixture.batch_shape + values.shape[1:])


def pair_blocks(shape: tuple[int, ...]) -> Iterator[tuple[slice, slice]]:
    """Slices of (mixtures, components) whose pairs with all components fit a block, in order."""
    n_mixtures, m = shape
    rows = max(1, PAIR_BLOCK // m**2)
    components = min(m, max(1, PAIR_BLOCK // m))
    for start in range(0, n_mixtures, rows):
        for first in range(0, m, components):
            yield slice(start, start + rows), slice(first, first + components)


def shares(exponent: Array, heights: Array) -> tuple[Array, Array]:
    """log sum_j h_j exp(x_j), (..., 1), and each term's share of the sum; overwrites exponent."""
    top = exponent.max(-1, keepdims=True)
    exponent -= top
    # Below -700 exp is subnormal: nothing to us, and several times slower.
    share = np.exp(np.maximum(exponent, -700.0, out=exponent), out=exponent)
    share *= heights
    total = share.sum(-1, keepdims=True)
    share /= total
    return np.log(total) + top, share
