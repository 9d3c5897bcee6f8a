"""Moment matching: the entropy of the Gaussian with the mixture's mean and variance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fitbo.entropy.protocol import Flat, Gradient
from fitbo.mixture import LOG_2PI, Array


@dataclass(frozen=True)
class MM(Flat):
    """``H <= log(2 pi e V)/2``, V the mixture's variance: an upper bound, and the cheapest.

    dH/dm_j = w_j (m_j - E[y]) / V,    dH/dv_j = w_j / (2 V).

    The paper calls this two-moment MaxEnt, which holds on the whole line only: on a bounded domain
    two moments give a truncated Gaussian.
    """

    tolerance: ClassVar[float] = 1e-9
    upper_bound: ClassVar[bool] = True

    def _compute(self, means: Array, variances: Array, weights: Array, gradient: bool) -> Gradient:
        centred = means - np.vecdot(weights, means)[:, None]
        variance = np.vecdot(weights, variances + centred**2)
        value = 0.5 * (LOG_2PI + 1 + np.log(variance))
        return value, weights * centred / variance[:, None], 0.5 * weights / variance[:, None]
