"""The entropy of the regret that remains: a ladder whose first rung is expected improvement.

    best      float     the lowest value known, or (M,), of each sample its own
    f*        (M,)      each sample's minimum, of a draw of the whole process
    m, v      (..., M)  g ~ N(m, v) at the candidate, f = eta + g^2/2; s = sqrt(v)
    c, c*     (..., M)  sqrt(2 (best - eta)) and sqrt(2 (f* - eta)): f improves where |g| < c
    D         (M,)      best - f*, the regret that remains if the evaluation improves nothing
    R         (..., M)  min(best, f(x)) - f*, the regret that remains after it

An evaluation at x tells most about f* if it leaves the least to be said about it. For any density
q of the positive reals [1],

    I(f*; f(x)) >= H[f*] - E[-log q(R)],

because given f(x) the regret is f* but for a shift. The best q with given moments of R is the
maximum-entropy one, whose cross-entropy is its entropy, so that every rung

    alpha_m(x) = -H_MaxEnt[m moments of R]

bounds the information from below, and each further moment tightens the bound:

- E R alone: the exponential law, H = 1 + log E R. As E R = E D - EI(x), the rung *is* expected
  improvement;
- E R and E log R: the gamma law of shape k, with log k - digamma(k) = log E R - E log R:

      H = k + log Gamma(k) + (1 - k) digamma(k) + log(E R / k).

  Of shape at most one: where f* is known better than exponentially, a larger k would pay for
  regret that stays as it is. With k <= 1 less regret is never worse, and k = 1 is the first rung;
- m > 2 moments E P_i(u), P_i Legendre's polynomials on [0, max D], u = 2 R/max D - 1: the law
  q = exp(-(1 + sum_i a_i P_i(u))) of ``fitbo.maxent``, whose entropy falls as m grows. It falls to
  H[R], which may exceed H[f*]: the bound is then below zero and says nothing. And with one draw of
  f* for each sample the law of D is a few atoms, which many moments see, and which an improvement
  smears: several draws for each sample are as many samples more.

Given a sample, f(x) cannot lie below f*, so g is truncated to |g| >= c*, of probability Z:

    E[phi(R)] = phi(D) - 1/Z int_{c* < |g| < c} (phi(D) - phi((g^2 - c*^2)/2)) N(g; m, v) dg,

a smooth integral over a bounded interval, cut where N vanishes, by Gauss-Legendre nodes in t,
|g| = c_0 + (c_1 - c_0) t^2, which meet the logarithm at R = 0. The slopes follow from
dN/dm = N (g - m)/v and dN/dv = N ((g - m)^2/v - 1)/(2 v), and from the envelope theorem:
dH/d(moment) is the multiplier of the maximum-entropy law, k/E R for R, 1 - k for log R and a_i for
P_i. What is returned is the gain over an evaluation that improves nothing: its logarithm with up to
two moments, and itself with more, where it may be negative: what lowers the regret may spread its
law. With one moment it is log EI, of f as it is: E R needs no truncated law, for the average over
f* of the law of f given f* is that of f.

Values with noise are not regrets: what is recommended then is no value told, and the first rung is
the knowledge gradient of ``knowledge``, which studies use where all inputs are real.

If all inputs are real numbers, two moments are the default. Where one is an integer, a choice or on
a grid, the point evaluated may be x* itself: the regret is then exactly zero with some probability,
its law has an atom and no density, and how much E log R falls depends on how small a regret counts
as none. So there the default is one moment.

[1] Cheng, Chang, Malkomes, Variational entropy search for adjusting expected improvement,
    arXiv 2501.18756 (2025), has the first two rungs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial import legendre
from scipy.special import gammaln, ndtr, polygamma, psi

from fitbo.acquisition.improvement import by_moments, log_average, log_improvement, parabola
from fitbo.acquisition.information import Acquisition, average
from fitbo.acquisition.normal import phi
from fitbo.checks import assign, finite, whole
from fitbo.entropy.protocol import NEGLIGIBLE_WEIGHT, Gradient
from fitbo.maxent import Basis, solve
from fitbo.mixture import Array, Mixture
from fitbo.surrogate.gp import blocks

NODES, WEIGHTS = np.polynomial.legendre.leggauss(28)
NODES, WEIGHTS = 0.5 * (NODES + 1), 0.5 * WEIGHTS
Lost = Callable[[Array, Array], Array]

FAINT = 1e-7  # relative fall of E R, below which differences are taken to first order
LEAST = 1e-9  # of D against best - eta: a path may pass exactly through the lowest value
LEAST_MASS = 1e-10  # of Z: f* is a draw, and may be one that the candidate's own law excludes
LEAST_SPREAD = 1e-10  # of log E R - E log R, zero where R is the same in every sample
LEAST_GAIN = 1e-200
CUT = 6.5  # standard deviations from the mean of g, beyond which nothing is integrated
NEWTON = 5
CACHED = 1 << 14  # values held at once: arrays that stay in cache
MOST_MOMENTS = 30  # moments
LEAST_REGRET = 1e-300
# Faint, and enough for the moments of laws that are atoms: a law of few of them has no entropy.
SOLVER: Any = {"jitter": 1e-12, "ridge": 1e-6, "tol": 1e-10, "gap": 1e-12, "max_iterations": 100}


class Falls(NamedTuple):
    """By how much k expectations fall below those of D, and the slopes, (k, ..., M) each."""

    value: Array
    mean: Array
    variance: Array


@dataclass(frozen=True, eq=False)
class RemainingRegret(Acquisition):
    """-H of the law of largest entropy with so many moments of the regret that remains.

    floor (M,): eta, the components being parabolas; minimum (M,) or (P, M): f* of each sample, or P
    draws of it; moments: 1 is expected improvement, 2 are those of the gamma law, more are
    polynomials (see this module).
    """

    best: float | Array
    floor: Array
    minimum: Array
    moments: int = 2

    def __post_init__(self) -> None:
        finite("best", self.best)
        check_moments(self.moments)
        for name in ("floor", "minimum"):
            finite(name, getattr(self, name))
        eta = self.floor
        # f* is at least eta, and below the best value by more than rounding.
        minimum = np.clip(self.minimum, eta, self.best - self._least)
        assign(self, floor=np.asarray(eta), minimum=np.maximum(minimum, eta))

    @property
    def _least(self) -> Array:
        """The least regret that remains in each sample, (M,)."""
        return np.asarray(LEAST * np.maximum(self.best - self.floor, LEAST))

    @property
    def _remains(self) -> Array:
        """D, which rounding leaves above zero too where a target is all but eta."""
        return np.maximum(self.best - self.minimum, self._least)

    def value_and_grad(self, mixture: Mixture) -> Gradient:
        if self.minimum.ndim == 2:
            return self._of_draws(mixture)
        if self.moments == 1:
            return self._far(mixture, np.ones(mixture.n_components))
        return self._gamma(mixture) if self.moments == 2 else self._polynomial(mixture)

    def _of_draws(self, mixture: Mixture) -> Gradient:
        """Every draw of a sample's f* as a sample of its own."""
        P, M = self.minimum.shape
        parts = (np.tile(a, P) for a in (mixture.means, mixture.variances, mixture.weights / P))
        best = np.tile(np.broadcast_to(self.best, M), P)
        each = replace(self, best=best, floor=np.tile(self.floor, P), minimum=self.minimum.ravel())
        value, *slopes = each.value_and_grad(Mixture(*parts))
        by_mean, by_variance = (a.reshape(*a.shape[:-1], P, M).sum(-2) for a in slopes)
        return value, by_mean, by_variance

    def _polynomial(self, mixture: Mixture) -> Gradient:
        """The entropy before less the one after, both of Legendre moments on [0, max D]."""
        w, D = mixture.weights, self._remains
        felt = (w > NEGLIGIBLE_WEIGHT).reshape(-1, w.shape[-1]).any(0)
        top = float(D[felt].max()) if felt.any() else 1.0

        def polynomials(R: Array) -> Array:
            u = np.clip(2 * R / top - 1, -1.0, 1.0)
            return np.asarray(np.moveaxis(legendre.legvander(u, self.moments), -1, 0))

        falls = self._falls(mixture, lambda R, at: polynomials(at) - polynomials(R))
        start = np.einsum("...m,km->...k", w, polynomials(D))
        fall = np.einsum("...m,k...m->...k", w, falls.value)
        entropy, multipliers = laws(start)
        after = solve(start - fall, Basis("legendre", self.moments), start=multipliers, **SOLVER)
        # Where the moments hardly fall, the difference of entropies is that of its first order.
        faint = abs(fall).max(-1) < FAINT
        gain = np.where(faint, np.vecdot(multipliers, fall), entropy - after.dual)
        price = np.where(faint[..., None], multipliers, after.multipliers)
        slopes = (np.einsum("...k,k...m->...m", price, a) for a in falls[1:])
        by_mean, by_variance = (w * slope for slope in slopes)
        return gain, by_mean, by_variance

    def _gamma(self, mixture: Mixture) -> Gradient:
        """The logarithm of the gain by the moments of R and log R."""
        D = np.broadcast_to(self._remains, mixture.means.shape)
        falls = self._falls(mixture, lambda R, at: np.stack([at - R, np.log(at) - np.log(R)]))
        (r, log_r), (r_m, log_r_m), (r_v, log_r_v) = falls
        w = mixture.weights
        start, start_log = average(mixture, D), average(mixture, np.log(D))
        fall, fall_log = average(mixture, r), average(mixture, log_r)
        k, entropy = gamma_entropy(start - fall, start_log - fall_log)
        k0, entropy0 = gamma_entropy(start, start_log)
        slope, slope_log = k / (start - fall), 1 - k
        gain = entropy0 - entropy
        # Where the moments hardly fall, the difference of entropies is that of its first order.
        faint = fall < FAINT * start
        gain = np.where(faint, k0 / start * fall + (1 - k0) * fall_log, gain)
        slope = np.where(faint, k0 / start, slope)[..., None]
        slope_log = np.where(faint, 1 - k0, slope_log)[..., None]
        far = gain < LEAST_GAIN
        gain = np.where(far, 1.0, gain)
        value, divided = np.log(gain), w / gain[..., None]
        by_mean = divided * (slope * r_m + slope_log * log_r_m)
        by_variance = divided * (slope * r_v + slope_log * log_r_v)
        if far.any():  # to first order, in logarithms: log D falls by the fall of R over D
            price = (k0 / start)[..., None] + (1 - k0)[..., None] / D
            beyond = self._far(mixture, price)
            value = np.where(far, beyond[0], value)
            by_mean = np.where(far[..., None], beyond[1], by_mean)
            by_variance = np.where(far[..., None], beyond[2], by_variance)
        return value, by_mean, by_variance

    def _far(self, mixture: Mixture, price: Array) -> Gradient:
        """log sum_j w_j price_j EI_j, where the expected improvement underflows."""
        each = mixture.means, mixture.variances, self.best, self.floor
        log_value, by_mean, by_variance = log_improvement(*each)
        share, value = log_average(mixture.weights * price, log_value)
        return value, share * by_mean, share * by_variance

    def _falls(self, mixture: Mixture, lost: Lost) -> Falls:
        """The expected phi(D) - phi(R) of each component; ``lost(R, D)`` gives k of them."""
        a, m2, v, c2 = parabola(mixture.means, mixture.variances, self.best, self.floor)
        m, c = np.sqrt(m2), np.sqrt(c2)
        low = np.broadcast_to(np.sqrt(2 * (self.minimum - self.floor)), c.shape)
        flat, shape = [x.ravel() for x in (m, v, c, low)], m.shape
        size = CACHED // (len(NODES) * self.moments)
        parts = [_missing(lost, *(x[some] for x in flat)) for some in blocks(m.size, size)]
        if not parts:
            parts = [_missing(lost, *flat)]
        value, by_m, by_v = (np.concatenate(p, -1) for p in zip(*parts, strict=True))
        value, by_m, by_v = (x.reshape(len(x), *shape) for x in (value, by_m, by_v))
        return Falls(value, *by_moments(a, m2, by_m / (2 * m), by_v))


def usual_moments(reals: bool) -> int:
    """How many moments are the default, in a space of real inputs or in another."""
    return 2 if reals else 1


def check_moments(moments: object) -> None:
    """An error unless it is a number of moments that the ladder has."""
    whole("moments", moments, least=1)
    if moments > MOST_MOMENTS:  # type: ignore[operator]
        raise ValueError(f"moments must be at most {MOST_MOMENTS}, got {moments}")


def laws(moments: Array) -> tuple[Array, Array]:
    """Entropies (...,) and multipliers (..., k) of the laws with these Legendre moments (..., k).

    Candidates share the samples' weights, and so the law before the evaluation: it is solved once.
    """
    flat = moments.reshape(-1, moments.shape[-1])
    rows, which = np.unique(flat, axis=0, return_inverse=True)
    entropies, multipliers = zip(*(_law(tuple(row)) for row in rows.tolist()), strict=True)
    entropy, a = np.array(entropies)[which], np.array(multipliers)[which]
    return entropy.reshape(moments.shape[:-1]), a.reshape(moments.shape)


@lru_cache(maxsize=64)
def _law(moments: tuple[float, ...]) -> tuple[float, Array]:
    found = solve(np.array(moments), Basis("legendre", len(moments) - 1), **SOLVER)
    return float(found.dual), found.multipliers


def _missing(lost: Lost, m: Array, v: Array, c: Array, low: Array) -> tuple[Array, Array, Array]:
    """The expected phi(D) - phi(R) and its slopes in m and v, (C,) each -> (k, C) each."""
    s, D = np.sqrt(v), np.maximum(0.5 * (c - low) * (c + low), LEAST_REGRET)
    # The density's middle, or, beyond it, where the tail that reaches below c is thickest.
    tail = np.minimum(m - CUT * s, c - CUT * CUT * s / np.maximum((m - c) / s, CUT))
    start = np.clip(tail, low, c)
    width = np.clip(np.maximum(m, low) + CUT * s, start, c) - start
    rise = (start - low)[:, None] + width[:, None] * (NODES * NODES)  # |g| - c*
    g = low[:, None] + rise
    R = np.maximum(0.5 * rise * (g + low[:, None]), LEAST_REGRET)  # without cancellation
    fall = lost(R, D[:, None])
    fall *= (2 * width / s)[:, None] * (NODES * WEIGHTS)
    above, below = ((sign * g - m[:, None]) / s[:, None] for sign in (1, -1))
    pa, pb = phi(above), phi(below)
    # int of the density, and of its derivatives in m and in v
    missing = np.vecdot(fall, pa + pb)
    by_m = np.vecdot(fall, above * pa + below * pb) / s
    by_v = np.vecdot(fall, (above * above - 1) * pa + (below * below - 1) * pb) / (2 * v)
    one, two = (low - m) / s, (-low - m) / s
    Z = ndtr(-one) + ndtr(two)
    # Where it is bounded it does not vary.
    q1, q2 = (np.where(Z > LEAST_MASS, phi(x), 0.0) for x in (one, two))
    Z = np.maximum(Z, LEAST_MASS)
    Z_m, Z_v = (q1 - q2) / s, (one * q1 - two * q2) / (2 * v)
    value = missing / Z
    return value, (by_m - value * Z_m) / Z, (by_v - value * Z_v) / Z


def gamma_entropy(mean: Array, mean_log: Array) -> tuple[Array, Array]:
    """Shape k <= 1 and entropy of the gamma law with these E R and, if k < 1, E log R."""
    spread = np.maximum(np.log(mean) - mean_log, LEAST_SPREAD)
    k = (3 - spread + np.sqrt((spread - 3) ** 2 + 24 * spread)) / (12 * spread)
    for _ in range(NEWTON):  # in 1/k, in which log k - digamma(k) is nearly linear
        k = 1 / (1 / k + (np.log(k) - psi(k) - spread) / (k * k * (1 / k - polygamma(1, k))))
    k = np.minimum(k, 1.0)
    return k, k + gammaln(k) + (1 - k) * psi(k) + np.log(mean / k)
