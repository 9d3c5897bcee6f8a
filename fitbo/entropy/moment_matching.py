"""Moment matching: the entropy of the Gaussian with the mixture's mean and variance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fitbo.entropy.protocol import Gradient, flatten, restore
from fitbo.mixture import LOG_2PI, Array, Mixture


@dataclass(frozen=True)
class MM:
    """``H <= log(2 pi e V)/2``, V the mixture's variance: an upper bound, and the cheapest.

    dH/dm_j = w_j (m_j - E[y]) / V,    dH/dv_j = w_j / (2 V).

    The paper calls this two-moment MaxEnt; that holds on the whole line only. On a bounded domain
    two moments give a truncated Gaussian.
    """

    tolerance: ClassVar[float] = 1e-9
    upper_bound: ClassVar[bool] = True

    def __call__(self, mixture: Mixture) -> Array:
        return self.value_and_grad(mixture)[0]

    def value_and_grad(self, mixture: Mixture) -> Gradient:
        means, variances, weights = flatten(mixture)
        centred = means - np.vecdot(weights, means)[:, None]
        variance = np.vecdot(weights, variances + centred**2)
        value = 0.5 * (LOG_2PI + 1 + np.log(variance))
        by_mean = weights * centred / variance[:, None]
        by_variance = 0.5 * weights / variance[:, None]
        return restore(mixture, value), restore(mixture, by_mean), restore(mixture, by_variance)
