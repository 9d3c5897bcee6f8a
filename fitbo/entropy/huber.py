"""Huber's Taylor expansion of the log-mixture about the component means.

With l = log p, A = p'/p and B = p''/p at the point m_i,

    order 0:   H = -sum_i w_i l(m_i)
    order 2:   H = -sum_i w_i [l(m_i) + v_i (B - A^2)/2].

The expansion is poor where a component is wide compared with the mixture's own structure.
``split=K`` replaces the *expectation* over each component, never p itself, by K narrower ones: at
m_i + s_i d_k with variance t^2 v_i, whose moments are those of the component to order 2K - 1. All
components are split, though only the wide ones gain: a threshold would make H jump.

Gradients: p, p' and p'' at a point change by w_j times the derivatives of N_j, of which
N^(k) = (-1)^k He_k(z) N / s^k and dN/dv = N''/2, and the points themselves move with m_i and s_i.

[1] Huber, Bailey, Durrant-Whyte, Hanebeck, On entropy approximation for Gaussian mixture random
    vectors, MFI 2008.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import ClassVar

import numpy as np
from numpy.polynomial import hermite_e

from fitbo.checks import whole
from fitbo.entropy.protocol import Flat, Gradient, blocks, centred, shares
from fitbo.mixture import LOG_2PI, Array

SPLIT_SHRINK = 0.5  # t, a part's standard deviation relative to its component's


@dataclass(frozen=True)
class Huber(Flat):
    """Taylor expansion of order 0 or 2; neither a bound nor convergent, but smooth."""

    order: int = 2
    split: int = 1
    upper_bound: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.order not in (0, 2):
            raise ValueError(f"order must be 0 or 2, got {self.order}")
        whole("split", self.split, least=1)
        if self.split > 16:
            raise ValueError(f"split must be at most 16, got {self.split}")

    @property
    def tolerance(self) -> float:
        """Exact for one Gaussian at order 2; order 0 is half a nat too low."""
        return 1e-9 if self.order == 2 else 0.5 + 1e-9

    def _parts(self) -> tuple[Array, Array, float]:
        """Offsets d_k in standard deviations, weights, and the parts' variance t^2."""
        if self.split == 1:
            return np.zeros(1), np.ones(1), 1.0
        x, w = hermite_e.hermegauss(self.split)
        return x * np.sqrt(1 - SPLIT_SHRINK**2), w / w.sum(), SPLIT_SHRINK**2

    def _compute(self, means: Array, variances: Array, weights: Array, gradient: bool) -> Gradient:
        m, s, _, scale = centred(means, variances, weights)
        value = np.log(scale[:, 0])
        by_mean, by_std = np.zeros((2, *m.shape))
        offsets, portions, shrink = self._parts()
        for (offset, portion), (rows, i) in product(
            zip(offsets, portions, strict=True), blocks(len(m), m.shape[1], m.shape[1])
        ):
            # Axes: mixture, point i, component j. r slope, r bend, ...: w_j N_j^(k) / p, k = 1, 2..
            sj = s[rows][:, None, :]
            z = (m[rows, i] + offset * s[rows, i])[:, :, None] - m[rows][:, None, :]
            z /= sj
            log_total, r = shares(-0.5 * z * z, weights[rows][:, None, :] / sj)
            log_p = log_total[:, :, 0] - 0.5 * LOG_2PI
            slope = -z / sj
            bend = (z * z - 1) / sj**2
            a, b = (r * slope).sum(2), (r * bend).sum(2)
            w, v = portion * weights[rows, i], shrink * s[rows, i] ** 2
            curvature = b - a * a if self.order == 2 else np.zeros_like(b)
            value[rows] -= np.einsum("bi,bi->b", w, log_p + 0.5 * v * curvature)
            if not gradient:
                continue
            # Products: powers of arrays are slow.
            z2, sj2 = z * z, sj * sj
            third = -z * (z2 - 3) / (sj * sj2)
            fourth = (z2 * (z2 - 6) + 3) / (sj2 * sj2)
            # The bracket's derivatives by p, p' and p'' (times p), and by the point.
            c0, c1, c2 = np.ones_like(a), np.zeros_like(a), np.zeros_like(a)
            moves = a
            if self.order == 2:
                c0, c1, c2 = 1 + 0.5 * v * (2 * a * a - b), -v * a, 0.5 * v
                c = (r * third).sum(2)
                moves = a + 0.5 * v * (c - 3 * a * b + 2 * a**3)
            r *= w[:, :, None]
            by_mean[rows, i] -= w * moves
            by_std[rows, i] -= w * (moves * offset + shrink * s[rows, i] * curvature)
            c0, c1, c2 = c0[:, :, None], c1[:, :, None], c2[:, :, None]
            by_mean[rows] += (r * (c0 * slope + c1 * bend + c2 * third)).sum(1)
            spread = (r * (c0 * bend + c1 * third + c2 * fourth)).sum(1)
            by_std[rows] -= s[rows] * spread  # dN/ds = s N''
        return value, by_mean / scale, by_std / (2 * s * scale**2)
