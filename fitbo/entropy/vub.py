"""The variational upper bound of Hershey and Olsen, with its optimal variational weights.

With D_ij = KL(N_i || N_j) and H_i = log(2 pi e v_i)/2,

    H <= sum_i w_i (H_i - log S_i),    S_i = sum_j w_j exp(-D_ij),
    D_ij = (log(v_j/v_i) + v_i/v_j + (m_i - m_j)^2/v_j - 1) / 2.

It follows from E_i[log p] >= log sum_j w_j exp(E_i[log N_j]). Gradients run through D with the
responsibilities R_ij = w_i w_j exp(-D_ij)/S_i. Cost M^2 per mixture, in blocks.

[1] Hershey, Olsen, Approximating the Kullback Leibler divergence between Gaussian mixture models,
    ICASSP 2007.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fitbo.entropy.protocol import Flat, Gradient, blocks, centred, shares
from fitbo.mixture import LOG_2PI, Array


@dataclass(frozen=True)
class VUB(Flat):
    """``H <= H_c - sum_i w_i log sum_j w_j exp(-KL_ij)``; tight for far-apart components."""

    tolerance: ClassVar[float] = 1e-9
    upper_bound: ClassVar[bool] = True

    def _compute(self, means: Array, variances: Array, weights: Array, gradient: bool) -> Gradient:
        m, _, v, scale = centred(means, variances, weights)
        value = 0.5 * LOG_2PI + np.log(scale[:, 0])
        by_mean, by_variance = np.zeros((2, *m.shape))
        for rows, i in blocks(len(m), m.shape[1], m.shape[1]):
            mi, vi, wi = m[rows, i, None], v[rows, i, None], weights[rows, i, None]
            precision = 1 / v[rows][:, None, :]
            gap = mi - m[rows][:, None, :]
            # w_j exp(-D_ij) up to factors that depend on i alone: exp((1 + log v_i)/2) and so on.
            pull = vi + gap * gap
            pull *= precision
            heights = (weights[rows] * np.sqrt(1 / v[rows]))[:, None, :]
            log_total, share = shares(-0.5 * pull, heights)
            # H_i - log S_i = log(2 pi)/2 - log_total: v_i cancels.
            value[rows] -= np.einsum("bik,bik->b", wi, log_total)
            if gradient:
                share *= wi
                drift = gap * precision * share
                by_mean[rows, i] += drift.sum(2)
                by_mean[rows] -= drift.sum(1)
                by_variance[rows, i] += 0.5 * (share * precision).sum(2)
                by_variance[rows] += (0.5 * share * precision * (1 - pull)).sum(1)
        return value, by_mean / scale, by_variance / scale**2
