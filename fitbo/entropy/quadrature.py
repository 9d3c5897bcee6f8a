"""The entropy by numerical integration: the truth the other backends are measured against.

``H = -int p log p dy`` over panels of Gauss-Legendre nodes. The panels come from the mixture's own
scales: one is halved until it is no wider than a few of the smallest deviations whose component is
felt there, so a spike of deviation 1e-5 in a range of 1 costs some forty panels and not 1e5 nodes.
Each panel then checks itself and is halved again if it must be.

A panel's error is judged from the Legendre coefficients c_k of its integrand: when they decay
geometrically the n-point rule, exact to degree 2n - 1, errs by about c_{2n} ~ c_n^2 / c_0.

Gradients: with c(y) = -log p(y), and because int dN_j/dm_j dy = int dN_j/dv_j dy = 0,

    dH/dm_j = w_j int c(y) N_j (y - m_j)/v_j dy,
    dH/dv_j = w_j int c(y) N_j ((y - m_j)^2/v_j - 1)/(2 v_j) dy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.polynomial import legendre

from fitbo.entropy.protocol import Gradient, flatten, restore
from fitbo.mixture import Array, Mixture

NODES, NODE_WEIGHTS = legendre.leggauss(16)
# Row k gives the k-th Legendre coefficient of a function from its values at the nodes.
TO_COEFFICIENTS = (
    legendre.legvander(NODES, len(NODES) - 1) * NODE_WEIGHTS[:, None] * (np.arange(16) + 0.5)
).T
BLOCK = 1 << 16  # densities evaluated at once: half a megabyte
NEGLIGIBLE_WEIGHT = 1e-15
MAX_HALVINGS = 60
WIDEST = 10.0  # deviations a panel may span before it is worth evaluating


@dataclass(frozen=True)
class Quad:
    """Entropy to an absolute tolerance of ``tol`` nats; cost about range/smallest deviation x M."""

    tol: float = 1e-8
    tolerance: ClassVar[float] = 1e-8
    upper_bound: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not 1e-13 <= self.tol <= 1:
            raise ValueError(f"tol must lie between 1e-13 and 1 nat, got {self.tol}")

    def __call__(self, mixture: Mixture) -> Array:
        return self._integrate(mixture, gradient=False)[0]

    def value_and_grad(self, mixture: Mixture) -> Gradient:
        return self._integrate(mixture, gradient=True)

    def _integrate(self, mixture: Mixture, gradient: bool) -> Gradient:
        means, variances, weights = flatten(mixture)
        centre = np.vecdot(weights, means)[:, None]
        scale = np.sqrt(np.vecdot(weights, variances + (means - centre) ** 2))[:, None]
        m, s = (means - centre) / scale, np.sqrt(variances) / scale
        height = weights / (s * np.sqrt(2 * np.pi))

        value = np.log(scale[:, 0])
        shape = means.shape if gradient else (0, 0)
        by_mean, by_variance = np.zeros(shape), np.zeros(shape)
        owner, low, high = self._layout(m, s, weights)
        budget = (self.tol / np.bincount(owner, minlength=len(m)))[owner]
        step = max(1, BLOCK // (len(NODES) * m.shape[1]))
        for _ in range(MAX_HALVINGS):
            halve = np.zeros(len(owner), dtype=bool)
            for start in range(0, len(owner), step):
                part = slice(start, start + step)
                o, half = owner[part], 0.5 * (high[part] - low[part])
                y = (0.5 * (high[part] + low[part]))[:, None] + half[:, None] * NODES
                z = y[:, :, None] - m[o][:, None, :]
                z /= s[o][:, None, :]
                bells = z * z
                bells *= -0.5
                # Below -700 exp is subnormal: nothing to us, and several times slower.
                np.exp(np.maximum(bells, -700.0, out=bells), out=bells)
                p = np.matmul(bells, height[o][:, :, None])[:, :, 0]
                # Where p underflows to 0 so does p log p.
                surprise = -np.log(np.maximum(p, 1e-300))
                integrand = p * surprise
                halve[part] = _error(integrand, half) > budget[part]
                done = ~halve[part]
                np.add.at(value, o[done], half[done] * (integrand[done] @ NODE_WEIGHTS))
                if gradient:
                    c = (half[:, None] * NODE_WEIGHTS * surprise)[done][:, None, :]
                    bells, z, o = bells[done], z[done], o[done]
                    k, sd = height[o], s[o]
                    np.add.at(by_mean, o, np.matmul(c, bells * z)[:, 0] * k / sd)
                    bend = np.matmul(c, bells * (z * z - 1))[:, 0]
                    np.add.at(by_variance, o, 0.5 * bend * k / sd**2)
            if not halve.any():
                break
            owner, low, high = _halves(owner[halve], low[halve], high[halve])
            budget = np.concatenate([0.5 * budget[halve]] * 2)
        return (
            restore(mixture, value),
            restore(mixture, by_mean / scale) if gradient else by_mean,
            restore(mixture, by_variance / scale**2) if gradient else by_variance,
        )

    def _layout(self, m: Array, s: Array, weights: Array) -> tuple[np.ndarray, Array, Array]:
        """Panels (owner, low, high) such that each is narrow for every component felt in it."""
        reach = 1 + np.sqrt(2 * np.log(1 / self.tol))  # deviations beyond which p log p < tol
        felt = weights > NEGLIGIBLE_WEIGHT
        left = np.where(felt, m - reach * s, np.inf)
        right = np.where(felt, m + reach * s, -np.inf)
        owner, low, high = np.arange(len(m)), left.min(1), right.max(1)
        kept: list[tuple[np.ndarray, Array, Array]] = []
        step = max(1, BLOCK // m.shape[1])
        for _ in range(MAX_HALVINGS):
            fine = np.empty(len(owner), dtype=bool)
            for start in range(0, len(owner), step):
                part = slice(start, start + step)
                o, a, b = owner[part], low[part], high[part]
                outside = (left[o] >= b[:, None]) | (right[o] <= a[:, None])
                smallest = np.where(outside, np.inf, s[o]).min(1)
                fine[part] = b - a <= WIDEST * smallest
            kept.append((owner[fine], low[fine], high[fine]))
            owner, low, high = _halves(owner[~fine], low[~fine], high[~fine])
            if not len(owner):
                break
        kept.append((owner, low, high))
        owner, low, high = (np.concatenate(parts) for parts in zip(*kept, strict=True))
        return owner, low, high


def _error(integrand: Array, half: Array) -> Array:
    """Estimated error of each panel's integral, (P, n) -> (P,)."""
    size = abs(integrand @ TO_COEFFICIENTS.T)
    last = size[:, -1] + size[:, -2]
    largest = np.maximum(size.max(1), 1e-300)
    return 2 * half * last * np.minimum(10 * last / largest, 1.0)


def _halves(owner: np.ndarray, low: Array, high: Array) -> tuple[np.ndarray, Array, Array]:
    middle = 0.5 * (low + high)
    return (
        np.concatenate([owner, owner]),
        np.concatenate([low, middle]),
        np.concatenate([middle, high]),
    )
