"""Where outcome constraints hold: a process for each, and the probability that all of them do.

    c     (n,)   excess: by how much a constraint is broken at a point told; <= 0 where it holds
    t     (n,)   c itself, or sign(c) log(1 + |c|/s), s the median of |c| [1]
    z     (n,)   t, standardised; the bound lies at b
    m, v  (B, T) mean and variance of z under each of T thetas

    P_j(x) = 1/T sum_t Phi((b - m_t)/sqrt(v_t)),        P(x) = prod_j P_j(x).

Some constraint values span decades far from the bound, and what matters is next to it, where the
logarithm is linear; others are linear in x, which the logarithm would spoil. So t is that of the
two under which the values c are more probable at the mode of the posterior,

    log p(c) = log p(z) + sum_i log dz/dc_i.

On the welded beam and the pressure vessel (seed 101, best feasible after 30 evaluations): the
logarithm 1.86 and 6165, c itself 2.35 and 5889, the more probable 1.98 and 5889. The
hyperparameters are draws of Laplace's approximation about the mode: all depends on the data alone.

The acquisition function is multiplied by P, with the improvement measured from the best feasible
value. While none is known, the point of the largest P is evaluated.

[1] Eriksson, Poloczek, Scalable constrained Bayesian optimization, AISTATS 2021.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr, logsumexp

from fitbo.acquisition.feasibility import Chance
from fitbo.inference.fit import BOUND, MOST, ROUGH, chosen
from fitbo.inference.local import draws
from fitbo.inference.settings import NO_NOISE, Settings
from fitbo.mixture import LOG_2PI, Array
from fitbo.sampling.laplace import climb
from fitbo.surrogate.plain import PlainPosterior, Process

LEVEL = 0.9  # probability that all constraints hold, at least, of what is recommended
ITERATIONS, ACCURACY = 20, 1e-4
EACH = 2  # of the draws of a neighbourhood's model, one in so many: 16 thetas
SCREENING = 4  # thetas by which candidates are ranked
KERNEL = "additive"
FINEST = 1e-8  # variance of z: nothing is known better than to a ten-thousandth of its spread


@dataclass(frozen=True, eq=False)
class Bounded:
    """One constraint: its process, and where its bound lies in z."""

    process: Process
    bound: float
    finest: float = FINEST

    def log_probability(self, U: Array, gradient: bool = False) -> tuple[Array, Array]:
        """log P_j at U (B, d), (B,), and its slope (B, d), which is empty unless ``gradient``."""
        m, v, dm, dv = self.process.predict(U, gradient)
        v = v + self.finest
        s = np.sqrt(v)
        z = (self.bound - m) / s
        each = log_ndtr(z)
        value = logsumexp(each, axis=1) - np.log(each.shape[1])
        if not gradient:
            return value, np.empty((len(U), 0))
        share = np.exp(each - value[:, None]) / each.shape[1]
        ratio = share * np.exp(-0.5 * (z * z + LOG_2PI) - each)  # dlog P/dz
        slope = -np.einsum("bt,btd->bd", ratio / s, dm)
        return value, slope - np.einsum("bt,btd->bd", 0.5 * ratio * z / v, dv)


@dataclass(frozen=True, eq=False)
class Feasible:
    """The probability that an evaluation succeeds and all constraints hold, (B, dim) -> (B,).

    Of the constraints that have been measured; ``complete`` if that is all of them.
    """

    constraints: tuple[Bounded, ...]
    success: Chance | None = None
    complete: bool = True

    def __call__(self, U: Array) -> Array:
        p = self.probability(U)
        return p if self.success is None else p * self.success(U)

    def probability(self, U: Array) -> Array:
        """P: that all constraints hold, (B,)."""
        return np.exp(sum((c.log_probability(U)[0] for c in self.constraints), np.zeros(len(U))))

    def log_weight(self, U: Array, gradient: bool = False) -> tuple[Array, Array]:
        """log P, and that of success weighted as ``Success`` does; with the slope (B, dim)."""
        value, slope = np.zeros(len(U)), np.zeros((len(U), U.shape[1] * gradient))
        parts = [c.log_probability(U, gradient) for c in self.constraints]
        if self.success is not None:
            parts.append(self.success.log_weight(U, gradient))
        for part, by_x in parts:
            value, slope = value + part, slope + by_x
        return value, slope

    def acceptable(self, U: Array) -> np.ndarray:
        """What may be recommended, (B,)."""
        good = self.probability(U) >= LEVEL
        return good if self.success is None else good & self.success.acceptable(U)

    def tempered(self) -> Feasible:
        """The same as if z were known to its spread only: where none holds, the least broken."""
        return replace(self, constraints=tuple(replace(c, finest=1.0) for c in self.constraints))

    def rough(self) -> Feasible:
        """The same by a few of the thetas, to rank candidates."""
        few = tuple(replace(c, process=c.process[:SCREENING]) for c in self.constraints)
        return replace(self, constraints=few)


@dataclass(frozen=True, eq=False)
class Nothing:
    """A worth of zero everywhere: what is weighted by P is P alone."""

    def __call__(self, U: Array) -> Array:
        return np.zeros(len(U))

    def value_and_grad(self, U: Array) -> tuple[Array, Array]:
        """(B,), (B, d)."""
        return np.zeros(len(U)), np.zeros(U.shape)


NOTHING = Nothing()


class Scale(NamedTuple):
    """z (n,), the bound b in z, and log dz/dc (n,)."""

    z: Array
    bound: float
    log_slope: Array


def scales(c: Array) -> list[Scale]:
    """The two forms of excesses c (n,): the logarithm about the bound, and c itself."""
    size = float(np.median(abs(c)))
    size = size if size > 0 else float(abs(c).max()) or 1.0
    u = c / size
    found = []
    for t, slope in ((np.sign(u) * np.log1p(abs(u)), 1 / (1 + abs(u))), (u, np.ones(len(u)))):
        middle, spread = float(t.mean()), float(t.std())
        spread = spread if spread > 1e-12 else 1.0
        log_slope = np.log(slope / spread)  # but for the size, which they share
        found.append(Scale((t - middle) / spread, -middle / spread, log_slope))
    return found


def learn_outcomes(
    X: Array, excess: Array, settings: Settings, seed: Sequence[int]
) -> tuple[Bounded, ...]:
    """A model of each constraint that is known at a point at least; excess (n, k), NaN: not known.

    ``seed`` is of all random numbers.
    """
    found = []
    for j, c in enumerate(excess.T):
        known = np.flatnonzero(np.isfinite(c))
        if not known.size:
            continue
        c, at = c[known], X[known]
        near = chosen(at, abs(c), MOST)
        c, at = c[near], at[near]
        few = chosen(at, abs(c), ROUGH)
        tried = [(*_mode(at, scale, few, settings), scale) for scale in scales(c)]
        _, density, modes, scale = max(tried, key=lambda each: each[0])
        thetas = draws(density, modes, np.random.default_rng([*seed, j]))[::EACH]
        found.append(Bounded(Process.condition(at, scale.z, thetas, KERNEL), scale.bound))
    return tuple(found)


def _mode(
    X: Array, scale: Scale, few: np.ndarray, settings: Settings
) -> tuple[float, PlainPosterior, Array]:
    """log p(c) of a few values up to a constant, the density of theta, and its mode (1, P)."""
    noise = NO_NOISE if settings.deterministic is True else None
    density = PlainPosterior(X[few], scale.z[few], KERNEL, noise=noise)
    start = density._prior.location[None]
    modes, values = climb(density.value_and_grad, start, BOUND, ITERATIONS, ACCURACY)
    return float(values[0] + scale.log_slope[few].sum()), density, modes


def violation(excess: Array) -> Array:
    """How much is broken at the points told, (n, k) -> (n,): the sum of log(1 + c/s), c > 0."""
    broken = np.maximum(np.nan_to_num(excess, nan=np.inf), 0.0)
    sizes = np.array(
        [np.median(abs(c[np.isfinite(c)])) if (c == c).any() else 1.0 for c in excess.T]
    )
    return np.log1p(broken / np.where(sizes > 0, sizes, 1.0)).sum(1)


def rough_of(chance: Chance | None) -> Chance | None:
    """What ranks candidates in place of the probability itself."""
    return chance.rough() if isinstance(chance, Feasible) else chance
