"""What y tells about f* when the hyperparameters are not known: theta as a nuisance.

    theta_j       j < M       the samples, of weights w
    F             (P, M)      P draws of f* for each sample, minima of its paths
    f_q           (Q,)        values of f*, at the quantiles (q + 1/2)/Q of all draws
    p(q | j)      (Q, M)      density of f_q given sample j
    w_q           (..., Q, M)  p(theta_j | f_q), proportional to w_j p(q | j)
    m, v          (..., M)    g ~ N(m, v) at the candidate, f = eta + g^2/2; s = sqrt(v)
    c             (Q, M)      sqrt(2 (f_q - eta)): given f_q, |g| >= c

``maxvalue`` has I(y; f* | theta), an average over samples that each know their own f*. But no one
tells which theta is true, and what y tells about f* itself is

    I(y; f*) = H[sum_j w_j p(y | j)] - 1/Q sum_q H[sum_j w_qj p(y | j, f_q)]:

f* makes some theta likelier and others impossible, and within each cuts off what lies below it.
Both terms are entropies of mixtures, by any backend, and their difference is small against either:
the backend's error must be smaller still. A component is taken for a Gaussian with its exact
moments: those of f before, and after those of g^2/2 with g truncated to |g| >= c, with the noise of
y added. With x = (g - m)/s and b1 = (c - m)/s, b2 = -(c + m)/s,

    E[x^k | |g| >= c] = (N_k - I_k)/Z,   I_k = (k - 1) I_(k-2) + b2^(k-1) phi(b2) - b1^(k-1) phi(b1)

are closed forms, N_k those of N(0, 1), and so are the slopes of the expectation of a polynomial of
g: its covariances with x/s and with (x^2 - 1)/(2 v).

**p(f* | theta)**: log(f* - eta) of the paths of one theta is taken for normal, with a mean of its
own and a variance common to all, that of the draws about those means (of all draws if P = 1), times
1 + 1/P for the mean's own error. The weights before are the averages of those after,
w_j = 1/Q sum_q w_qj, as for a joint law they must be.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.special import logsumexp, ndtr

from fitbo.acquisition.improvement import by_moments, parabola
from fitbo.acquisition.information import Acquisition
from fitbo.acquisition.maxvalue import MOST, spread
from fitbo.acquisition.normal import phi
from fitbo.checks import assign, finite
from fitbo.entropy import Entropy, backend
from fitbo.entropy.protocol import Gradient
from fitbo.mixture import LOG_2PI, Array, Mixture, quantile

VALUES = 8  # Q
RESOLUTION = 0.01  # of the spread of f*: what is finer counts as noise
LEAST_NOISE = 1e-16
LEAST_SPREAD = 1e-3  # standard deviation of log(f* - eta) given theta, at least
LEAST_GAP = 1e-12
OF_NORMAL = (1.0, 0.0, 1.0, 0.0, 3.0, 0.0, 15.0)  # N_k


@dataclass(frozen=True, eq=False)
class MarginalGain(Acquisition):
    """I(y; f*), theta being integrated out.

    minimum (P, M) or (M,): draws of f* of each sample; floor (M,): eta, the components being
    parabolas; noise: the variance of y about f, (M,) or one for all; entropy: of the mixtures;
    weights (M,): of the samples, whose draws are then weighted alike; None: equal.
    """

    minimum: Array
    floor: Array
    noise: Array | float = 0.0
    entropy: str | Entropy | Callable[[Mixture], Array] = "memel"
    weights: Array | None = None
    values: Array = field(init=False)
    log_density: Array = field(init=False, repr=False)
    _entropy: Entropy = field(init=False, repr=False)

    def __post_init__(self) -> None:
        finite("minimum", self.minimum)
        finite("floor", self.floor)
        finite("noise", self.noise, least=0)
        draws = np.atleast_2d(np.asarray(self.minimum, dtype=np.float64))
        weights = None if self.weights is None else np.tile(self.weights, len(draws))
        values = quantile(draws.ravel(), (np.arange(VALUES) + 0.5) / VALUES, weights)
        noise = np.asarray(self.noise) + (RESOLUTION * spread(draws)) ** 2 + LEAST_NOISE
        log_density = log_densities(values, draws, self.floor)
        assign(self, minimum=draws, noise=noise, values=values, log_density=log_density)
        assign(self, _entropy=backend(self.entropy))

    def value_and_grad(self, mixture: Mixture) -> Gradient:
        after = self.posterior(mixture.weights)  # (..., Q, M)
        before = after.mean(-2)
        mean, var = mixture.means, mixture.variances
        noise = np.broadcast_to(self.noise, mean.shape)
        value, by_mean, by_var = self._entropy.value_and_grad(Mixture(mean, var + noise, before))
        c2 = 2 * np.maximum(self.values[:, None] - self.floor, 0.0)
        a, m2, v, _ = parabola(mean, var, 0.0, self.floor)
        m, wide = np.sqrt(m2), v[..., None, :]
        cut = Truncated.of(m[..., None, :], wide, np.sqrt(c2))
        at = Mixture(self.floor + cut.mean, cut.variance + noise[..., None, :], after)
        cost, of_mean, of_var = self._entropy.value_and_grad(at)
        by_m = (of_mean * cut.mean_m + of_var * cut.variance_m).mean(-2)
        by_v = (of_mean * cut.mean_v + of_var * cut.variance_v).mean(-2)
        less_mean, less_var = by_moments(a, m2, by_m / (2 * m), by_v)
        return value - cost.mean(-1), by_mean - less_mean, by_var - less_var

    def posterior(self, weights: Array) -> Array:
        """p(theta_j | f_q) given the weights (..., M), (..., Q, M)."""
        with np.errstate(divide="ignore"):  # log 0 = -inf is the right log-weight
            log_w = np.log(weights)[..., None, :] + self.log_density
        total = logsumexp(log_w, axis=-1, keepdims=True)
        # A value that no sample with any weight allows says nothing about them.
        some = np.isfinite(total)
        log_w = np.where(some, log_w - np.where(some, total, 0.0), 0.0)
        w = np.where(some, np.exp(log_w), weights[..., None, :])
        return np.asarray(w / w.sum(-1, keepdims=True))


def log_densities(values: Array, draws: Array, eta: Array) -> Array:
    """log p(f* = values (Q,) | sample), from draws (P, M) and eta (M,): (Q, M)."""
    gaps = np.log(np.maximum(draws - eta, LEAST_GAP))
    P, M = gaps.shape
    mean = gaps.mean(0)
    free = (P - 1) * M if P > 1 else max(M - 1, 1)
    about = mean if P > 1 else mean.mean()
    variance = (1 + 1 / P) * max(np.square(gaps - about).sum() / free, LEAST_SPREAD**2)
    above = values[:, None] - eta
    t = np.log(np.where(above > 0, above, 1.0))
    log_p = -0.5 * ((t - mean) ** 2 / variance + np.log(variance) + LOG_2PI) - t
    return np.where(above > 0, log_p, -np.inf)


@dataclass(frozen=True, eq=False)
class Truncated:
    """Mean and variance of g^2/2, g ~ N(m, v) truncated to |g| >= c, and their slopes."""

    mean: Array
    variance: Array
    mean_m: Array
    variance_m: Array
    mean_v: Array
    variance_v: Array

    @classmethod
    def of(cls, m: Array, v: Array, c: Array) -> Truncated:
        """For m, c >= 0, of which no more than m + MOST s counts (see ``maxvalue``)."""
        s = np.sqrt(v)
        capped = c - m > MOST * s
        c = np.where(capped, m + MOST * s, c)
        one, two = (c - m) / s, -(c + m) / s
        p1, p2 = phi(one), phi(two)
        Z = ndtr(-one) + ndtr(two)
        # one^k p1 and two^k p2, by products: powers of arrays are slow.
        at_one, at_two = ([p] for p in (p1, p2))
        for _ in range(5):
            at_one.append(at_one[-1] * one)
            at_two.append(at_two[-1] * two)
        inside = [ndtr(one) - ndtr(two), p2 - p1]
        for k in range(2, 7):
            inside.append((k - 1) * inside[k - 2] + at_two[k - 1] - at_one[k - 1])
        x = [(whole - part) / Z for whole, part in zip(OF_NORMAL, inside, strict=True)]

        zero = np.zeros_like(Z)

        def expected(h: list[Array]) -> list[Array]:
            """E h, h a polynomial in x of degree 4, and its slopes in m, v and c."""
            e0, e1, e2 = (sum((a * x[i + k] for i, a in enumerate(h)), zero) for k in range(3))
            at_c = sum((a * (at_one[i] + at_two[i]) for i, a in enumerate(h)), zero)
            by_c = ((p1 + p2) * e0 - at_c) / (s * Z)
            return [e0, (e1 - e0 * x[1]) / s, (e2 - e0 * x[2]) / (2 * v), by_c]

        # Of (g^2 - m^2)/2 = m s x + v x^2/2, which does not cancel where s is small.
        bent = 0.5 * v
        mean, mean_m, mean_v, mean_c = expected([zero, m * s, bent])
        square, by_m, by_v, by_c = expected([zero, zero, m * m * v, m * s * v, bent * bent])
        variance_m, variance_v, variance_c = (
            e - 2 * mean * d
            for e, d in zip((by_m, by_v, by_c), (mean_m, mean_v, mean_c), strict=True)
        )
        variance = np.maximum(square - mean * mean, 0.0)
        mean_c, variance_c = (np.where(capped, a, 0.0) for a in (mean_c, variance_c))
        bend = MOST / (2 * s)
        return cls(
            mean + 0.5 * m * m,
            variance,
            mean_m + mean_c,
            variance_m + variance_c,
            mean_v + bend * mean_c,
            variance_v + bend * variance_c,
        )
