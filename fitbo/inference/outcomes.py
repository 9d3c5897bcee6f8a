"""Where outcome constraints hold: a process for each, and the probability that all of them do.

    c     (n,)   excess: by how much a constraint is broken at a point told; <= 0 where it holds
    t     (n,)   sign(c) log(1 + |c|/s), s the median of |c|: as [1] has it, about the bound
    z     (n,)   t, standardised; the bound lies at b
    m, v  (B, T) mean and variance of z under each of T thetas

    P_j(x) = 1/T sum_t Phi((b - m_t)/sqrt(v_t)),        P(x) = prod_j P_j(x).

Constraint values of engineering problems span decades far from the bound, and what matters is next
to it: t is linear there and a logarithm elsewhere. The hyperparameters are draws of Laplace's
approximation about the mode, which depends on the data alone.

The acquisition function is multiplied by P, with the improvement measured from the best feasible
value. While none is known, the point of the largest P is evaluated.

[1] Eriksson, Poloczek, Scalable constrained Bayesian optimization, AISTATS 2021.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

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

    def log_probability(self, U: Array, gradient: bool = False) -> tuple[Array, Array]:
        """log P_j at U (B, d), (B,), and its slope (B, d), which is empty unless ``gradient``."""
        m, v, dm, dv = self.process.predict(U, gradient)
        v = v + FINEST
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
    """The probability that an evaluation succeeds and all constraints hold, (B, dim) -> (B,)."""

    constraints: tuple[Bounded, ...]
    success: Chance | None = None

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


def scaled(c: Array) -> tuple[Array, float]:
    """z (n,) of excesses c (n,), and the bound b."""
    size = float(np.median(abs(c)))
    size = size if size > 0 else float(abs(c).max()) or 1.0
    t = np.sign(c) * np.log1p(abs(c) / size)
    middle, spread = float(t.mean()), float(t.std())
    spread = spread if spread > 1e-12 else 1.0
    return (t - middle) / spread, -middle / spread


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
        z, bound = scaled(c[known])
        near = known[chosen(X[known], abs(z - bound), MOST)]
        at = np.searchsorted(known, near)
        few = chosen(X[near], abs(z[at] - bound), ROUGH)
        noise = NO_NOISE if settings.deterministic is True else None
        density = PlainPosterior(X[near][few], z[at][few], KERNEL, noise=noise)
        start = density._prior.location[None]
        modes, _ = climb(density.value_and_grad, start, BOUND, ITERATIONS, ACCURACY)
        thetas = draws(density, modes, np.random.default_rng([*seed, j]))[::EACH]
        found.append(Bounded(Process.condition(X[near], z[at], thetas, KERNEL), bound))
    return tuple(found)


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
