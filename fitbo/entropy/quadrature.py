"""The entropy by numerical integration: the truth the other backends are measured against.

``H = -int p log p dy`` over panels of Gauss-Legendre nodes. The panels follow the mixture's own
scales: one is halved until it is at most a few times as wide as the smallest standard deviation
that matters there, so a spike of width 1e-5 in a range of 1 costs some forty panels and not 1e5
nodes. Each panel then checks itself and is halved again if needed.

A panel's error is judged from the Legendre coefficients c_k of its integrand: when they decay
geometrically the n-point rule, exact to degree 2n - 1, errs by about c_{2n} ~ c_n^2 / c_0.

Gradients: with c(y) = -log p(y), and because int dN_j/dm_j dy = int dN_j/dv_j dy = 0,

    dH/dm_j = w_j int c(y) N_j (y - m_j)/v_j dy,
    dH/dv_j = w_j int c(y) N_j ((y - m_j)^2/v_j - 1)/(2 v_j) dy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.polynomial import legendre

from fitbo.entropy.protocol import NEGLIGIBLE_WEIGHT, Flat, Gradient
from fitbo.mixture import Array, exp_in_place

NODES, NODE_WEIGHTS = legendre.leggauss(16)
# Row k gives the k-th Legendre coefficient of a function from its values at the nodes.
TO_COEFFICIENTS = (
    legendre.legvander(NODES, len(NODES) - 1) * NODE_WEIGHTS[:, None] * (np.arange(16) + 0.5)
).T
BLOCK = 1 << 16  # densities evaluated at once: half a megabyte
WIDEST = 10.0  # standard deviations a panel may span before it is worth evaluating


@dataclass(frozen=True)
class Quad(Flat):
    """Entropy to an absolute tolerance of ``tol`` nats; cost about M x range / smallest std."""

    tol: float = 1e-8
    upper_bound: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not 1e-13 <= self.tol <= 0.1:
            raise ValueError(f"tol must lie between 1e-13 and 0.1 nats, got {self.tol}")

    @property
    def tolerance(self) -> float:
        """The ``tol`` that was asked for."""
        return self.tol

    def _compute(self, means: Array, variances: Array, weights: Array, gradient: bool) -> Gradient:
        centre = np.vecdot(weights, means)[:, None]
        scale = np.sqrt(np.vecdot(weights, variances + (means - centre) ** 2))[:, None]
        m, s = (means - centre) / scale, np.sqrt(variances) / scale
        height = weights / (s * np.sqrt(2 * np.pi))

        value = np.log(scale[:, 0])
        by_mean, by_variance = np.zeros((2, *m.shape))
        panels = self._layout(m, s, weights)
        step = max(1, BLOCK // (len(NODES) * m.shape[1]))
        while panels.owner.size:
            halve = np.zeros(len(panels.owner), dtype=bool)
            for start in range(0, len(halve), step):
                part = panels.at(slice(start, start + step))
                o, half = part.owner, 0.5 * (part.high - part.low)
                y = (0.5 * (part.high + part.low))[:, None] + half[:, None] * NODES
                z = y[:, :, None] - m[o][:, None, :]
                z /= s[o][:, None, :]
                bells = z * z
                bells *= -0.5
                exp_in_place(bells)
                p = np.matmul(bells, height[o][:, :, None])[:, :, 0]
                # Where p underflows to 0 so does p log p.
                surprise = -np.log(np.maximum(p, 1e-300))
                integrand = p * surprise
                done = (_error(integrand, half) <= part.budget) | (half < part.finest)
                halve[start : start + step] = ~done
                np.add.at(value, o[done], half[done] * (integrand[done] @ NODE_WEIGHTS))
                if gradient:
                    c = (half[:, None] * NODE_WEIGHTS * surprise)[done][:, None, :]
                    bells, z, o = bells[done], z[done], o[done]
                    k, sd = height[o], s[o]
                    np.add.at(by_mean, o, np.matmul(c, bells * z)[:, 0] * k / sd)
                    bend = np.matmul(c, bells * (z * z - 1))[:, 0]
                    np.add.at(by_variance, o, 0.5 * bend * k / sd**2)
            panels = panels.at(halve).halved()
        return value, by_mean / scale, by_variance / scale**2

    def _layout(self, m: Array, s: Array, weights: Array) -> _Panels:
        """Panels narrow enough for every component that matters in them."""
        reach = 1 + np.sqrt(2 * np.log(1 / self.tol))  # in units of s: beyond it, p log p < tol
        felt = weights > NEGLIGIBLE_WEIGHT
        left = np.where(felt, m - reach * s, np.inf)
        right = np.where(felt, m + reach * s, -np.inf)
        unknown = np.full(len(m), np.inf)
        panels = _Panels(np.arange(len(m)), left.min(1), right.max(1), unknown, unknown)
        kept = [panels.at(slice(0))]
        step = max(1, BLOCK // m.shape[1])
        while panels.owner.size:
            smallest = np.empty(len(panels.owner))
            for start in range(0, len(smallest), step):
                part = panels.at(slice(start, start + step))
                outside = left[part.owner] >= part.high[:, None]
                outside |= right[part.owner] <= part.low[:, None]
                inside = np.where(outside, np.inf, s[part.owner]).min(1)
                smallest[start : start + step] = inside
            panels = panels._replace(finest=smallest / 4)
            width = panels.high - panels.low
            # The last condition ends it where rounding leaves nothing to halve.
            fine = (width <= WIDEST * smallest) | (width <= 1e-15 * abs(panels.high))
            kept.append(panels.at(fine))
            panels = panels.at(~fine).halved()
        laid = _Panels(*map(np.concatenate, zip(*kept, strict=True)))
        share = self.tol / np.bincount(laid.owner, minlength=len(m))
        return laid._replace(budget=share[laid.owner])


class _Panels(NamedTuple):
    """Intervals to integrate over, (P,) each.

    owner     the mixture that a panel belongs to
    budget    the error it may make
    finest    half-width below which the integrand is resolved whatever the error estimate says,
              which by then sees only rounding
    """

    owner: np.ndarray
    low: Array
    high: Array
    budget: Array
    finest: Array

    def at(self, which: slice | np.ndarray) -> _Panels:
        """Some of the panels."""
        return _Panels(*(array[which] for array in self))

    def halved(self) -> _Panels:
        """Each panel as two, which share its budget: all the left halves, then the right."""
        middle = 0.5 * (self.low + self.high)
        low, high = np.concatenate([self.low, middle]), np.concatenate([middle, self.high])
        owner, _, _, budget, finest = (np.concatenate([array, array]) for array in self)
        return _Panels(owner, low, high, budget / 2, finest)


def _error(integrand: Array, half: Array) -> Array:
    """Estimated error of each panel's integral, (P, n) -> (P,)."""
    size = abs(integrand @ TO_COEFFICIENTS.T)
    last = size[:, -1] + size[:, -2]
    largest = np.maximum(size.max(1), 1e-300)
    return 2 * half * last * np.minimum(10 * last / largest, 1.0)
