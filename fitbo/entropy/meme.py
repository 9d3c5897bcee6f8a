"""MEMe: the entropy of the maximum-entropy density that shares the mixture's moments.

A mixture is scaled to u = (y - c)/h in [-1, 1], its moments there are closed forms, and the dual of
the MaxEnt problem is minimised for the whole batch at once. Every dual value bounds the entropy
from above, so the result is an upper bound that tightens with each moment:

    H(p) <= log h + S(a),    S(a) = log Z(a) + a.mu + sum_i ridge_i a_i^2 / 2.

Z is checked on twice the nodes, and that finer value is the one returned.

    c       centre: mean of the m_j weighted by w_j / s_j, so that it sits where the density is high
    h       half-width: max_j |m_j - c| + 8 s_j, beyond which lies less than 1e-15 of the mass
    a_i     multiplier of the i-th function; by the envelope theorem dH/dmu_i = a_i

The paper's algorithm ends in ``-(1 + a.mu)``: the sign is wrong, and ``log h`` is missing.

Gradients are exact. At fixed c and h they are the multipliers times the moments' gradients. How H
changes with c and h then follows from its invariances, with no further integral: H is unchanged
when means and c shift together, and grows by log r when means, stds, c and h all scale by r:

    dH/dc = -sum_j dH/dm_j,    dH/dlog h = 1 - sum_j ((m_j - c) dH/dm_j + 2 v_j dH/dv_j).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from fitbo.checks import whole
from fitbo.entropy.moment_matching import MM
from fitbo.entropy.protocol import NEGLIGIBLE_WEIGHT, Flat, Gradient, flatten, restore
from fitbo.maxent import Basis, mixture_gradient, mixture_moments, solve
from fitbo.mixture import Array, Mixture

REACH = 8.0
NODE_SCALES = 4
RIDGE, RIDGE_MOST = 1e-11, 1e-7  # RIDGE degree^4: a faint smoothness prior on log q
SOLVER: Any = {"jitter": 1e-12, "gap": 1e-10, "max_iterations": 60}
MASS_TOLERANCE = 1e-6
REFINED = 4
STEP_DOWN_FROM = 40
BLOCK = 1 << 22  # numbers in the largest array: 32 MB
CACHED = 1 << 15  # numbers per array where no solve is involved: a handful stay in cache


@dataclass(frozen=True, eq=False)
class MEMeInfo:
    """How each mixture's value was found; arrays of the batch shape.

    n_moments    constraints in force: fewer than asked for where the full solve did not converge,
                 0 where none did and moment matching stands in
    iterations   Newton steps of the solve that was used
    residual     its largest moment error
    """

    n_moments: np.ndarray
    iterations: np.ndarray
    residual: Array


@dataclass(frozen=True)
class MEMe(Flat):
    """MaxEnt from ``n_moments`` constraints in power moments.

    The constraints are nested: the first two polynomials, then 2 x ``windows`` Gaussian windows
    (see ``fitbo.maxent.basis``) that resolve a narrow core in a wide domain, then the polynomials
    of degree 3 and on. ``windows=0`` is the paper's method.
    """

    n_moments: int = 10
    windows: int = 4
    family: ClassVar[str] = "power"
    tolerance: ClassVar[float] = 1e-6
    upper_bound: ClassVar[bool] = True

    def __post_init__(self) -> None:
        whole("n_moments", self.n_moments, least=2)
        whole("windows", self.windows, least=0)

    def value_and_info(self, mixture: Mixture) -> tuple[Array, MEMeInfo]:
        """H and how it was found."""
        (value, _, _), info = self._solve(*flatten(mixture), gradient=False)
        return restore(mixture, value), MEMeInfo(*(restore(mixture, array) for array in info))

    def _compute(self, means: Array, variances: Array, weights: Array, gradient: bool) -> Gradient:
        return self._solve(means, variances, weights, gradient)[0]

    def basis(self, n_moments: int) -> Basis:
        """The first ``n_moments`` functions of the nested sequence."""
        n_windows = min(2 * self.windows, max(n_moments - 2, 0))
        return Basis(self.family, n_moments - n_windows, n_windows, node_scales=NODE_SCALES)

    def _ladder(self) -> Iterator[tuple[Basis, int]]:
        """What to try: the full basis, the same on finer nodes, then ever fewer moments.

        One fewer at a time, so that the largest number that converges is used; from large numbers,
        where a solve is expensive and one moment means little, a fifth fewer.
        """
        yield self.basis(self.n_moments), 1
        yield self.basis(self.n_moments), REFINED
        m = self.n_moments
        while m > 2:
            m -= 1 if m <= STEP_DOWN_FROM else m // 5
            yield self.basis(m), REFINED

    def _solve(
        self, means: Array, variances: Array, weights: Array, gradient: bool
    ) -> tuple[Gradient, tuple[np.ndarray, np.ndarray, Array]]:
        """What ``_compute`` returns, and the fields of a ``MEMeInfo``, (B,) each."""
        n_mixtures = len(means)
        value, residual = np.empty(n_mixtures), np.zeros(n_mixtures)
        used, iterations = np.zeros((2, n_mixtures), dtype=np.intp)
        by_mean, by_variance = np.empty((2, *means.shape))
        nodes = len(self.basis(self.n_moments).nodes()[0]) * 2 * REFINED
        step = max(1, BLOCK // max((self.n_moments + 1) ** 2, nodes))
        for start in range(0, n_mixtures, step):
            pending = np.arange(start, min(start + step, n_mixtures))
            near: Array | None = None
            for basis, refine in self._ladder():
                log_h, mu = np.empty(len(pending)), np.empty((len(pending), basis.size + 1))
                for part, scaled in _scaled(pending, means, variances, weights):
                    log_h[part] = np.log(scaled.h[:, 0])
                    mu[part] = mixture_moments(basis, scaled.a, scaled.s2, scaled.weights)
                mu /= mu[:, :1]
                density = solve(mu, basis, ridge=_ridge(basis), refine=refine, start=near, **SOLVER)
                log_mass = density.log_mass(2 * refine)
                good = density.converged & (abs(log_mass) < MASS_TOLERANCE)
                rows = pending[good]
                value[rows] = (log_h + density.dual + log_mass)[good]
                used[rows], iterations[rows] = basis.size, density.iterations[good]
                residual[rows] = density.residual[good]
                multipliers = density.multipliers[good]
                for part, scaled in _scaled(
                    rows[: gradient * len(rows)], means, variances, weights
                ):
                    at = rows[part]
                    by_mean[at], by_variance[at] = scaled.gradient(basis, multipliers[part])
                pending = pending[~good]
                if not pending.size:
                    break
                # Where the nodes alone were too few, finer ones need no new start.
                fewer = refine > 1 or not density.converged[~good].all()
                near = None if fewer else density.multipliers[~good]
            if pending.size:
                rest = Mixture(means[pending], variances[pending], weights[pending])
                value[pending], by_mean[pending], by_variance[pending] = MM().value_and_grad(rest)
        return (value, by_mean, by_variance), (used, iterations, residual)


@dataclass(frozen=True)
class MEMeL(MEMe):
    """MaxEnt from Legendre moments: the paper's best, and ours."""

    family: ClassVar[str] = "legendre"


@dataclass(frozen=True)
class MEMeC(MEMe):
    """MaxEnt from Chebyshev moments."""

    family: ClassVar[str] = "chebyshev"


def _ridge(basis: Basis) -> Array:
    """None on the parabola, so that two moments are exactly moment matching."""
    degrees = np.arange(1.0, basis.degree + 1)
    polynomials = np.where(degrees > 2, np.minimum(RIDGE * degrees**4, RIDGE_MOST), 0.0)
    return np.concatenate([polynomials, np.full(basis.n_windows, RIDGE)])


def _scaled(
    rows: np.ndarray, means: Array, variances: Array, weights: Array
) -> Iterator[tuple[slice, _Scaled]]:
    """The mixtures of these rows, as many at once as stay in cache, and where in ``rows`` they are.

    Each block is copied first: the passes over it then wait for the memory once.
    """
    step = max(1, CACHED // means.shape[1])
    copies = np.empty((2, step, means.shape[1]))
    for start in range(0, len(rows), step):
        at = rows[start : start + step]
        which = slice(at[0], at[-1] + 1) if at[-1] - at[0] + 1 == len(at) else at
        block = copies[:, : len(at)]
        block[0], block[1] = means[which], variances[which]
        yield slice(start, start + step), _Scaled.of(block[0], block[1], weights[which])


class _Scaled(NamedTuple):
    """Mixtures in u = (y - c)/h.

    h             half-width, (B, 1)
    a, s2         means and variances of u, (B, M)
    pull          w_j / s_j, in proportion to dc/dm_j, (B, M)
    furthest      which component decides h, (B,)
    """

    weights: Array
    h: Array
    a: Array
    s2: Array
    pull: Array
    furthest: np.ndarray

    @classmethod
    def of(cls, means: Array, variances: Array, weights: Array) -> _Scaled:
        ignored = weights <= NEGLIGIBLE_WEIGHT
        some_ignored = ignored.any()
        if some_ignored:
            weights = np.where(ignored, 0.0, weights)
            weights /= weights.sum(1, keepdims=True)
        s = np.sqrt(variances)
        pull = weights / s
        a = means - (np.vecdot(pull, means) / pull.sum(1))[:, None]
        reach = REACH * s
        reach += abs(a)
        if some_ignored:
            reach[ignored] = 0.0
        furthest = reach.argmax(1)
        h = np.take_along_axis(reach, furthest[:, None], 1)
        per_h = 1 / h
        a *= per_h
        s *= per_h
        s *= s
        if some_ignored:
            # Components without weight, wherever they are, must not overflow the recursions.
            a[ignored], s[ignored] = 0.0, 1 / REACH**2
        return cls(weights, h, a, s, pull, furthest)

    def gradient(self, basis: Basis, multipliers: Array) -> tuple[Array, Array]:
        """dH/dm and dH/dv (B, M) at the multipliers (B, m + 1)."""
        by_a, by_s2 = mixture_gradient(basis, self.a, self.s2, self.weights, multipliers)
        by_log_h = 1 - (np.vecdot(self.a, by_a) + 2 * np.vecdot(self.s2, by_s2))[:, None]
        index = np.arange(len(by_a)), self.furthest
        side = np.sign(self.a[index])[:, None]
        # c moves every a, and h with it, as the furthest component is measured from c. Units of h.
        by_c = -by_a.sum(1, keepdims=True) - by_log_h * side
        drag = by_c / self.pull.sum(1, keepdims=True) * self.pull
        by_a += drag
        drag *= self.a
        drag /= self.s2
        drag *= 0.5
        by_s2 -= drag
        by_a[index] += (by_log_h * side)[:, 0]
        by_s2[index] += by_log_h[:, 0] * 0.5 * REACH / np.sqrt(self.s2[index])
        by_a /= self.h
        by_s2 /= self.h**2
        return by_a, by_s2
