"""Monte Carlo with common random numbers.

    H = -E[log p(y)] ~ -(1/n) sum_k log p(y_k),   y_k = m_{j(k)} + s_{j(k)} e_k.

The normals e_k and the uniforms that choose j(k), one in each of n equal strata, are drawn once at
construction, so H is a smooth function of means and deviations and its pathwise gradient is exact:

    dH = -(1/n) sum_k [ l'(y_k) dy_k + sum_j r_j(y_k) dlog N_j(y_k) ],   l = log p, r_j = w_j N_j/p.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from fitbo.checks import whole
from fitbo.entropy.protocol import PAIR_BLOCK, Gradient, centred, restore, shares
from fitbo.mixture import LOG_2PI, Array, Mixture


@dataclass(frozen=True)
class MC:
    """Unbiased, with an error near 0.7/sqrt(n_samples) nats: 0.07 at the default."""

    n_samples: int = 100
    seed: int = 0
    tolerance: ClassVar[float] = 0.5
    upper_bound: ClassVar[bool] = False
    _uniforms: Array = field(init=False, repr=False, compare=False)
    _normals: Array = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        whole("n_samples", self.n_samples, least=1)
        whole("seed", self.seed, least=0)
        rng = np.random.default_rng(self.seed)
        strata = (np.arange(self.n_samples) + rng.random(self.n_samples)) / self.n_samples
        object.__setattr__(self, "_uniforms", strata)
        object.__setattr__(self, "_normals", rng.standard_normal(self.n_samples))

    def __call__(self, mixture: Mixture) -> Array:
        return self._evaluate(mixture, gradient=False)[0]

    def value_and_grad(self, mixture: Mixture) -> Gradient:
        return self._evaluate(mixture, gradient=True)

    def _evaluate(self, mixture: Mixture, gradient: bool) -> Gradient:
        m, variances, weights, scale = centred(mixture)
        s = np.sqrt(variances) / scale
        value = np.zeros(len(m))
        shape = m.shape if gradient else (0, 0)
        by_mean, by_deviation = np.zeros(shape), np.zeros(shape)
        chosen = self._components(weights)
        for rows, part in self._blocks(m.shape):
            j, e, sj = chosen[rows, part], self._normals[part], s[rows][:, None, :]
            y = np.take_along_axis(s[rows], j, 1) * e
            y += np.take_along_axis(m[rows], j, 1)
            z = (y[:, :, None] - m[rows][:, None, :]) / sj
            log_total, r = shares(-0.5 * z * z, weights[rows][:, None, :] / sj)
            value[rows] -= log_total.sum((1, 2)) / self.n_samples
            if gradient:
                r /= self.n_samples
                push = r * z / sj  # r_j dlog N_j/dm_j, and -r_j dlog N_j/dy
                by_mean[rows] -= push.sum(1)
                by_deviation[rows] -= (push * z).sum(1) - r.sum(1) / s[rows]
                slope = push.sum(2)
                index = np.arange(len(j))[:, None], j
                np.add.at(by_mean[rows], index, slope)
                np.add.at(by_deviation[rows], index, slope * e)
        value += 0.5 * LOG_2PI + np.log(scale[:, 0])
        if gradient:
            by_mean, by_variance = by_mean / scale, by_deviation / (2 * s * scale**2)
            return (
                restore(mixture, value),
                restore(mixture, by_mean),
                restore(mixture, by_variance),
            )
        return restore(mixture, value), by_mean, by_deviation

    def _blocks(self, shape: tuple[int, ...]) -> Iterator[tuple[slice, slice]]:
        """Mixtures and samples whose densities fit a block."""
        n_mixtures, m = shape
        rows = max(1, PAIR_BLOCK // (self.n_samples * m))
        part = max(1, PAIR_BLOCK // m)
        for start in range(0, n_mixtures, rows):
            for first in range(0, self.n_samples, part):
                yield slice(start, start + rows), slice(first, first + part)

    def _components(self, weights: Array) -> np.ndarray:
        """j(k): the component whose share of [0, 1] holds the k-th uniform, (B, n)."""
        edges = np.cumsum(weights, axis=1)
        edges /= edges[:, -1:]
        if (edges == edges[:1]).all():
            edges = edges[:1]
        found = np.empty((len(edges), self.n_samples), dtype=np.intp)
        for row, edge in zip(found, edges, strict=True):
            row[:] = np.searchsorted(edge, self._uniforms, side="right")
        found = np.minimum(found, weights.shape[1] - 1)
        return np.broadcast_to(found, (len(weights), self.n_samples))
