"""The model ``f(x) = eta + g(x)^2/2``, g a Gaussian process: an f that cannot fall below eta.

===============  ==========  ====================================================================
symbol           shape       meaning
===============  ==========  ====================================================================
``excess``       (n,)        y - y_min >= 0, on standardised y
``gap``          (M,)        y_min - eta > 0
``g``            (M, n)      the warped data, g_i = sqrt(2 (y_i - eta)) = sqrt(2 (excess_i + gap))
``m``, ``v``     (B, M)      mean and variance of g at a candidate, for each sample
===============  ==========  ====================================================================

**Jacobian.** dg/dy = 1/g, so p(y) = N(g; b, K) prod_i 1/g_i. Without the product every sample of
eta would be scored in its own units. (The map is two to one; as in FITBO the data take the
branch g > 0, so that p integrates over y to the probability of that branch.) A law of g has no
equal values; where y is rounded or a count, k of the lowest may be equal, and as the gap vanishes p
would grow as gap^(-k/2), until eta sits on y_min and nothing seems left to be found. So equals of
the lowest count once.

**Noise** lives in y. A variance ``noise = e^2`` in y is, to first order, ``noise/g_i^2`` in g. That
holds while e is small against y_i - eta = g_i^2/2. Nearer to eta it grows without bound, and then
the smallest y fits any process whatever: samples with eta close to y_min get a datum for nothing,
and the posterior of eta leans towards y_min. In truth g is never more uncertain than sqrt(2 e)
(y = eta gives Var g = 0.24 e), so the variance used is ``noise/(g_i^2 + 2 e)``: the first-order
one for g_i^2 >> 2 e, and e/2 at g = 0. Measured on 12 draws of a smooth process in two
dimensions (n = 30, prior median of the gap 0.1): true gap 0.38, posterior median 0.02 without the
bound and 0.23 with it.

**Mean.** A zero-mean g would predict f = eta, the minimum itself, wherever there are no data.

- ``marginal`` (default): ``b ~ N(0, tau^2)`` integrated out, which adds tau^2 to every
  covariance. With y - eta of 1 to 5 deviations g is of the size of 1 to 3, so tau = 3. Far from
  data the prediction returns to the generalised-least-squares mean, shrunk by a factor
  1/(1 + Var/tau^2) near one, and the variance carries the mean's own uncertainty. Noise aside it
  is a proper density of y, for a single point too.
- ``empirical``: b = mean_i g_i, known exactly. The data are used twice: with n = 1 the residual
  vanishes for every eta, and the density of y does not integrate.

**Prediction.** From g ~ N(m, v), for each sample:

    linearised       mean eta + m^2/2          variance m^2 v
    moment_matched   mean eta + (m^2 + v)/2    variance m^2 v + v^2/2     (exact moments of g^2/2)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, NamedTuple, Self, get_args

import numpy as np
from numpy.typing import ArrayLike

from fitbo.checks import one_of
from fitbo.mixture import Array, Mixture
from fitbo.surrogate.gp import blocks

Rule = Literal["moment_matched", "linearised"]
Mean = Literal["marginal", "empirical"]
Functional = Callable[[Mixture], tuple[Array, Array, Array]]

BLOCK = 1 << 21  # entries of a gradient held at once, (B, M, d): 16 MB
MEAN_VARIANCE = 9.0  # tau^2
# A share of the signal variance that every covariance carries on its diagonal. It keeps noise-free
# and duplicate data factorisable without a jitter that would come and go with the hyperparameters;
# in g it is a deviation of 1e-5 of the signal's.
NUGGET = 1e-10
# A raised diagonal acts as noise: below this share it is a hundred nuggets, and no one's business.
NOTABLE_JITTER = 1e-8
# v is a difference of prior and explained variance, so rounding leaves an error of this share of
# the prior variance, of either sign: below it v says no more than 'known'.
LATENT_FLOOR = 1e-13
# A component variance must be positive, and linearised ones vanish where m = 0. A deviation of
# 1e-8 on standardised y is the rounding of y itself.
VARIANCE_FLOOR = 1e-16


def warp(excess: Array, gap: Array) -> Array:
    """g_i = sqrt(2 (excess_i + gap)) > 0: (n,), (M,) -> (M, n)."""
    return np.sqrt(2 * (excess + gap[:, None]))


def log_jacobian(g: Array, excess: Array) -> Array:
    """sum_i log dg/dy = -sum_i log g_i, the equals of the lowest once: (M, n), (n,) -> (M,)."""
    equals = np.count_nonzero(excess == 0) - 1
    value = -np.log(g).sum(1)
    return value + equals * np.log(g.min(1)) if equals else value


def noise_in_g(noise_variance: Array, g: Array) -> Array:
    """The variance in g of noise in y, noise/(g_i^2 + 2 e), e^2 = noise: (M,), (M, n) -> (M, n)."""
    e = np.sqrt(noise_variance)[:, None]
    return e * e / (g * g + 2 * e)


def mean_of_g(g: Array, mean: Mean) -> tuple[Array, float]:
    """b (M,), subtracted from g, and tau^2, added to every covariance. g (M, n)."""
    one_of("mean", mean, get_args(Mean))
    if mean == "marginal":
        return np.zeros(len(g)), MEAN_VARIANCE
    return g.mean(1), 0.0


def moments_of_f(rule: Rule, eta: Array, m: Array, v: Array) -> tuple[Array, Array]:
    """Mean and variance of f = eta + g^2/2 by the rule: (M,), (B, M), (B, M) -> (B, M) each."""
    if rule == "linearised":
        return eta + 0.5 * m * m, m * m * v
    return eta + 0.5 * (m * m + v), (m * m + 0.5 * v) * v


def moments_vjp(
    rule: Rule, m: Array, v: Array, by_mean: Array, by_variance: Array
) -> tuple[Array, Array]:
    """Slopes in the moments of f to slopes in m and v, all (B, M)."""
    by_m = m * (by_mean + 2 * v * by_variance)
    if rule == "linearised":
        return by_m, m * m * by_variance
    return by_m, 0.5 * by_mean + (m * m + v) * by_variance


class Latent(NamedTuple):
    """Mean and variance of g, (B, M) each, and their gradients in x, (B, M, d) each."""

    m: Array
    v: Array
    dm: Array
    dv: Array


def floored(m: Array, v: Array, dm: Array, dv: Array, prior_variance: Array) -> Latent:
    """From arrays with samples leading to a ``Latent``; where v is floored its gradient is zero.

    m (T, K, B) and dm (T, K, B, d) differ between the etas of a theta, v (T, B) and dv (T, B, d)
    do not.
    """
    T, K, B = m.shape
    floor = LATENT_FLOOR * prior_variance
    if dv.size:
        dv = np.where((v > floor)[:, :, None], dv, 0.0)
        dm = dm.reshape(T * K, B, -1)
    v = np.repeat(np.maximum(v, floor), K, axis=0)
    dv = np.repeat(dv, K, axis=0)
    return Latent(m.reshape(T * K, B).T, v.T, dm.swapaxes(0, 1), dv.swapaxes(0, 1))


@dataclass(frozen=True, eq=False)
class Parabola(ABC):
    """The predictive mixtures of f, from whatever process predicts g.

    A subclass supplies ``_latent``, and in ``PER_THETA`` the fields that have an entry for each.

    eta (M,): the presumed minimum, K values for each of T thetas; noise_variance (T,): of y about
    f; jitter (T,): what each theta's covariance needed; X_data (n, d): where the data are.
    """

    PER_THETA: ClassVar[tuple[str, ...]] = ("noise_variance", "jitter")

    X_data: Array
    eta: Array
    noise_variance: Array
    jitter: Array
    rule: Rule

    def __getitem__(self, thetas: slice) -> Self:
        """The surrogate of some of the thetas only, with all their etas."""
        part = {name: getattr(self, name)[thetas] for name in self.PER_THETA}
        eta = self.eta.reshape(-1, self.etas)[thetas]
        return replace(self, eta=eta.ravel(), **part)

    @property
    def etas(self) -> int:
        """K, values of eta for each theta."""
        return self.eta.size // self.noise_variance.size

    def __post_init__(self) -> None:
        one_of("rule", self.rule, get_args(Rule))

    @property
    def n_samples(self) -> int:
        """M."""
        return self.eta.size

    @property
    def floor(self) -> Array | None:
        """eta where f is taken as the parabola it is, (M,); None where a Gaussian stands for it.

        The moments of ``predict`` are then those of floor + g^2/2, and g's can be had from them.
        """
        return self.eta if self.rule == "moment_matched" else None

    @property
    def message(self) -> str:
        """What a user should know of the numerics; empty when all is well."""
        n_raised = int(np.count_nonzero(self.jitter > NOTABLE_JITTER))
        if not n_raised:
            return ""
        return (
            f"{n_raised} of {self.jitter.size} covariances were not positive definite and had "
            f"their diagonal raised, by up to {self.jitter.max():.0e} of itself: look for "
            f"near-duplicate points, or for a model that expects less noise than there is"
        )

    def predict(self, X: ArrayLike, noise: bool = False) -> Mixture:
        """The mixture over the samples of f, or of y with ``noise``, at X (B, d): shape (B, M)."""
        latent = self._latent(self._candidates(X), gradient=False)
        return Mixture(*self._moments(latent, noise))

    def value_and_grad(
        self, X: ArrayLike, functional: Functional, noise: bool = True
    ) -> tuple[Array, Array]:
        """A functional of the predictive mixture and its gradient in x: (B, d) -> (B,), (B, d).

        ``functional(mixture)`` gives its value (B,) and its slopes in the means and in the
        variances (B, M), as an entropy's ``value_and_grad`` does. It is called on blocks of B.
        Where a floor holds a variance its slope is zero.
        """
        X = self._candidates(X)
        values, gradient = np.empty(len(X)), np.empty(X.shape)
        for rows in blocks(len(X), BLOCK // (self.n_samples * X.shape[1])):
            latent = self._latent(X[rows], gradient=True)
            means, variances = self._moments(latent, noise)
            values[rows], by_mean, by_variance = functional(Mixture(means, variances))
            by_variance = np.where(variances > VARIANCE_FLOOR, by_variance, 0.0)
            by_m, by_v = moments_vjp(self.rule, latent.m, latent.v, by_mean, by_variance)
            gradient[rows] = np.einsum("bm,bmd->bd", by_m, latent.dm)
            gradient[rows] += np.einsum("bm,bmd->bd", by_v, latent.dv)
        return values, gradient

    def gradients(self, X: ArrayLike, noise: bool = False) -> tuple[Array, Array]:
        """d means/dx and d variances/dx of ``predict``, (B, M, d) each."""
        latent = self._latent(self._candidates(X), gradient=True)
        free = (self._moments(latent, noise)[1] > VARIANCE_FLOOR).astype(np.float64)
        ones, zeros = np.ones_like(free), np.zeros_like(free)

        def chain(by_mean: Array, by_variance: Array) -> Array:
            by_m, by_v = moments_vjp(self.rule, latent.m, latent.v, by_mean, by_variance)
            return by_m[:, :, None] * latent.dm + by_v[:, :, None] * latent.dv

        return chain(ones, zeros), chain(zeros, free)

    @abstractmethod
    def _latent(self, X: Array, gradient: bool) -> Latent:
        """The prediction of g at X (B, d), v floored; dm and dv are empty unless ``gradient``."""

    def _moments(self, latent: Latent, noise: bool) -> tuple[Array, Array]:
        mean, variance = moments_of_f(self.rule, self.eta, latent.m, latent.v)
        if noise:
            variance = variance + np.repeat(self.noise_variance, self.etas)
        return mean, np.maximum(variance, VARIANCE_FLOOR)

    def _candidates(self, X: ArrayLike) -> Array:
        return points("X", X, self.X_data.shape[1])


def points(name: str, X: ArrayLike, d: int | None = None) -> Array:
    """X as a finite contiguous float64 array of shape (B, d), d >= 1, or an error."""
    array = np.ascontiguousarray(X, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] < 1 or (d is not None and array.shape[1] != d):
        expected = "d" if d is None else str(d)
        raise ValueError(f"{name} must have shape (B, {expected}), got {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got NaN or inf in shape {array.shape}")
    return array
