"""Max-value entropy search about f*, the minimum of each sample's path, with the noise of y.

    f*        (M,)      each sample's minimum, of a draw of the whole process
    m, v      (..., M)  g ~ N(m, v) at the candidate, f = eta + g^2/2; s = sqrt(v)
    c         (M,)      sqrt(2 (f* - eta)): given f*, |g| >= c
    n         (..., M)  variance of the noise in g, noise/(m^2 + v + 2 e), e^2 = noise (``warp``)
    z         (..., M)  g plus that noise, z ~ N(m, v + n); y = eta + z^2/2
    rho       (..., M)  v/(v + n), the share of g in z
    b1, b2    (..., M)  (c - m)/s and -(c + m)/s, the ends of what f* excludes

What y tells about f* is what z tells, for one is a function of the other; and z is how the
surrogate itself sees an observation: by z it is conditioned. Given f* no value lies below it, so g
is a Gaussian truncated to |g| >= c [1], of probability

    Z = 1 - (Phi(b1) - Phi(b2)),

and z, a truncated Gaussian plus noise, is no truncated Gaussian. By Bayes' rule its density is

    q(z) = N(z; m, v + n) A(z)/Z,    A(z) = P(|g| >= c | z) = Phi((mu - c)/t) + Phi((-mu - c)/t),

with g | z ~ N(mu, t^2), mu = m + rho (z - m) and t^2 = n rho. So the fall of the entropy is

    H[z] - H[z | f*] = E_q[log A] - log Z + (1 - E_q[(z - m)^2]/(v + n))/2
                     = -log Z - (J + rho W/2)/Z,

    W = b1 phi(b1) - b2 phi(b2),    J = -int N(mu; m, rho v) A log A dmu.

Without noise J = 0, rho = 1, and it is that of the truncated Gaussian. A log A vanishes but within
some t of |mu| = c, and A is even: J is an integral over mu > 0 of a smooth function that vanishes
at its ends or, at mu = 0, is even, where the trapezoidal rule converges geometrically. Its slopes
are those of the Gaussian, d N/dm = N x/r and d N/d(r^2) = N (x^2 - 1)/(2 r^2) with r^2 = rho v and
x = (mu - m)/r, and of A in t^2. The rest is the chain rule through

    d(r^2) = rho (2 - rho) dv - rho^2 dn,    d(t^2) = (1 - rho)^2 dv + rho^2 dn.

Without a floor f itself is Gaussian and truncated to f >= f*: a parabola seen from far away.

An average over the samples, each with its own f*: I(y; f* | theta), theta and eta being given.
Where noise prevails it may be negative, for the truncated law is not quite that of f given f*.

[1] Wang, Jegelka, Max-value entropy search for efficient Bayesian optimization, ICML 2017; with
    noise: Takeno et al., Multi-fidelity Bayesian optimization with max-value entropy search,
    ICML 2020.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.special import ndtr

from fitbo.acquisition.improvement import by_moments, parabola
from fitbo.acquisition.information import Acquisition, average
from fitbo.acquisition.normal import phi
from fitbo.checks import assign, finite, whole
from fitbo.entropy.protocol import Gradient
from fitbo.mixture import Array, Mixture
from fitbo.surrogate.gp import blocks

# Of J: its error is then below 1e-9, but where f* excludes the middle of a law that is mostly
# noise, when the zeros of A come near the real axis and it is below 1e-5.
NODES = 24
CACHED = 1 << 13  # nodes of J at once: arrays that stay in cache, and need no new memory
REACH = 8.0  # in standard deviations: beyond, nothing is integrated
# Standard deviations of g that f* may exclude above its mean: f* is a draw, found by a search, and
# may be one that the candidate's own law excludes.
MOST = 4.0
# Of the spread of f*: what is finer tells nothing about it. Without noise a path whose minimum was
# found 1e-7 too high would exclude what is known next to the data, and gain without bound.
FINEST = 1e-3
LEAST_NOISE = 1e-20
FAR = 1e3  # standard deviations from a parabola's tip to where it is a straight line
TINY = 1e-300


class Slopes(NamedTuple):
    """A gain, and its derivatives in m, v, n and c, (..., M) each."""

    value: Array
    m: Array
    v: Array
    n: Array
    c: Array


@dataclass(frozen=True, eq=False)
class MaxValueGain(Acquisition):
    """``sum_j w_j (H[z] - H[z | f*_j])``, each sample j with its own minimum.

    minimum (M,): f* of each sample; floor (M,): eta, the components being parabolas, or None;
    noise: the variance of y about f, (M,) or one for all; nodes: of the quadrature.
    """

    finest: ClassVar[float] = FINEST

    minimum: Array
    floor: Array | None = None
    noise: Array | float = 0.0
    nodes: int = NODES

    def __post_init__(self) -> None:
        finite("minimum", self.minimum)
        finite("noise", self.noise, least=0)
        whole("nodes", self.nodes, least=2)
        minimum = np.asarray(self.minimum, dtype=np.float64)
        if self.floor is not None:
            finite("floor", self.floor)
            minimum = np.maximum(minimum, self.floor)
        noise = np.asarray(self.noise) + (self.finest * spread(minimum)) ** 2 + LEAST_NOISE
        assign(self, minimum=minimum, noise=noise)

    def value_and_grad(self, mixture: Mixture) -> Gradient:
        value, by_mean, by_variance = self.of_components(mixture.means, mixture.variances)
        w = mixture.weights
        return average(mixture, value), w * by_mean, w * by_variance

    def of_components(self, mean: Array, var: Array) -> Gradient:
        """The gain of each component, and its slopes in the moments of f, (..., M) each."""
        if self.floor is None:
            c = FAR * np.sqrt(var)
            noise = np.broadcast_to(self.noise, c.shape)
            return truncation(mean - self.minimum + c, var, noise, c, self.nodes)[:3]
        a, m2, v, c2 = parabola(mean, var, self.minimum, self.floor)
        n, by_g2 = in_g(self.noise, m2 + v)
        m = np.sqrt(m2)
        gain = truncation(m, v, n, np.sqrt(c2), self.nodes)
        slope = gain.n * by_g2
        return gain.value, *by_moments(a, m2, gain.m / (2 * m) + slope, gain.v + slope)


def in_g(noise: Array | float, g2: Array) -> tuple[Array, Array]:
    """The variance in g of noise in y where E g^2 is g2, and its slope in g2."""
    wide = g2 + 2 * np.sqrt(noise)
    n = noise / wide
    return n, -n / wide


def spread(minimum: Array) -> float:
    """The interquartile range of f*."""
    low, high = np.quantile(minimum, [0.25, 0.75])
    return float(high - low)


def truncation(m: Array, v: Array, n: Array, c: Array, nodes: int = NODES) -> Slopes:
    """H[z] - H[z | |g| >= c] of z = g + noise, for m >= 0, c >= 0; see the head of this module.

    What exceeds m + MOST s in c does not count.
    """
    s, total = np.sqrt(v), v + n
    capped = c - m > MOST * s
    gap = np.where(capped, MOST * s, c - m)  # m itself may be larger by many digits
    rho = v / total
    one, two = gap / s, -(gap + 2 * m) / s
    p1, p2 = phi(one), phi(two)
    excluded, Z = ndtr(one) - ndtr(two), ndtr(-one) + ndtr(two)
    W = one * p1 - two * p2
    J = _blurred(m, v, n, rho, gap, nodes)
    T = J.value + 0.5 * rho * W
    value = np.where(excluded < 0.5, -np.log1p(-np.minimum(excluded, 0.5)), -np.log(Z)) - T / Z
    bend1, bend2 = p1 * (1 - one * one), p2 * (1 - two * two)
    T_m = J.m - 0.5 * rho * (bend1 - bend2) / s
    T_v = J.v - 0.25 * rho * (one * bend1 - two * bend2) / v + 0.5 * W * (1 - rho) / total
    T_n = J.n - 0.5 * W * rho / total
    T_c = J.c + 0.5 * rho * (bend1 + bend2) / s
    rest = 1 - T / Z
    by_m = -((p1 - p2) / s * rest + T_m) / Z
    by_v = -(W / (2 * v) * rest + T_v) / Z
    by_c = ((p1 + p2) / s * rest - T_c) / Z
    through = np.where(capped, by_c, 0.0)
    by_m, by_v = by_m + through, by_v + through * MOST / (2 * s)
    return Slopes(value, by_m, by_v, -T_n / Z, by_c - through)


def _blurred(m: Array, v: Array, n: Array, rho: Array, gap: Array, nodes: int) -> Slopes:
    """J and its slopes, by blocks; gap is c - m."""
    flat = [np.broadcast_to(a, rho.shape).ravel() for a in (m, v, n, rho, gap)]
    out = np.empty((5, rho.size))
    for some in blocks(rho.size, CACHED // nodes):
        part: list[Array] = [a[some] for a in flat]
        out[:, some] = _blur(nodes, *part)
    return Slopes(*out.reshape(5, *rho.shape))


def _blur(nodes: int, m: Array, v: Array, n: Array, rho: Array, gap: Array) -> Slopes:
    """The same for arrays (k,)."""
    r, t = np.sqrt(rho * v), np.sqrt(rho * n)
    low = np.maximum(np.maximum(gap - REACH * t, -REACH * r), -m)
    width = np.maximum(np.minimum(gap + REACH * t, REACH * r) - low, 0.0)
    beyond = low[:, None] + width[:, None] * np.linspace(0.0, 1.0, nodes)  # mu - m
    mirrored = -(beyond + 2 * m[:, None])  # -mu - m
    over, under = beyond / r[:, None], mirrored / r[:, None]
    p, q = phi(over), phi(under)
    up, down = (beyond - gap[:, None]) / t[:, None], (mirrored - gap[:, None]) / t[:, None]
    A = np.maximum(ndtr(up) + ndtr(down), TINY)
    log_A = np.log(A)
    weights = np.full(nodes, 1 / (nodes - 1))
    weights[[0, -1]] *= 0.5
    h = -A * log_A * weights
    k, bell_up, bell_down = (1 + log_A) * weights, phi(up), phi(down)
    unit = width / r
    value = unit * np.vecdot(p + q, h)
    by_m = unit * np.vecdot(over * p + under * q, h) / r
    by_r2 = unit * np.vecdot((over * over - 1) * p + (under * under - 1) * q, h) / (2 * r * r)
    by_t2 = unit * np.vecdot(p + q, k * (up * bell_up + down * bell_down)) / (2 * t * t)
    by_c = unit * np.vecdot(p + q, k * (bell_up + bell_down)) / t
    by_v = by_r2 * rho * (2 - rho) + by_t2 * (1 - rho) ** 2
    return Slopes(value, by_m, by_v, (by_t2 - by_r2) * rho * rho, by_c)
