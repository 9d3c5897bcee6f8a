"""The surrogate f = eta + g^2/2 given data: conditioning, and the predictive mixtures of f.

T, K            int        thetas, and etas of each: M = T K samples
eta             (M,)       the minimum, by theta
theta           (T,)       the hyperparameters
inverse_factor  (T, n, n)  L^-1, L L^T the covariance of the warped data
alpha           (T, K, n)  (L L^T)^-1 g, g the data as each eta warps them
noise           (T, n)     the variance of each datum in g
weights         (T,)       of the thetas, where they have been weighted since they were drawn
jitter          (T,)       what each theta's covariance needed to be factorised
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, Self, get_args

import numpy as np
from numpy.typing import ArrayLike

from fitbo.checks import one_of
from fitbo.mixture import Array, Mixture
from fitbo.surrogate.etas import gap_quantiles, weights_of
from fitbo.surrogate.gp import blocks, inverse_factor
from fitbo.surrogate.posterior import Covariance, dataset, points
from fitbo.surrogate.warp import Rule, moments_of_f, moments_vjp, noise_in_g, warp

Functional = Callable[[Mixture], tuple[Array, Array, Array]]

BLOCK = 1 << 21  # entries of a gradient held at once, (B, M, d): 16 MB
CONDITION_BLOCK = 1 << 22  # entries of the covariances factorised at once: 32 MB
NOTABLE_JITTER = 1e-8  # a raised diagonal acts as noise; up to a hundred nuggets it is ignored
# v is a difference of prior and explained variance, so its rounding error, of either sign, is this
# share of the prior variance: below it v says no more than 'known'.
LATENT_FLOOR = 1e-13
# A theta of no weight, whose factor a border made of rounding, may predict anything: its square and
# the square of that must still be numbers.
LATENT_MOST = 1e70
# A component variance must be positive, and linearised ones vanish where m = 0. A standard
# deviation of 1e-8 on standardised y is the rounding of y itself.
VARIANCE_FLOOR = 1e-16


class Latent(NamedTuple):
    """Mean and variance of g, (B, M) each, and their gradients in x, (B, M, d) each."""

    m: Array
    v: Array
    dm: Array
    dv: Array


def floored(m: Array, v: Array, dm: Array, dv: Array, prior_variance: Array) -> Latent:
    """A ``Latent`` from arrays with samples leading; where v is floored its gradient is zero.

    m (T, K, B) and dm (T, K, B, d) depend on the eta of a theta, v (T, B) and dv (T, B, d) do not.
    """
    T, K, B = m.shape
    m = np.clip(m, -LATENT_MOST, LATENT_MOST)
    floor = LATENT_FLOOR * prior_variance
    if dv.size:
        dv = np.where((v > floor)[:, :, None], dv, 0.0)
        dm = dm.reshape(T * K, B, -1)
    v = np.repeat(np.maximum(v, floor), K, axis=0)
    dv = np.repeat(dv, K, axis=0)
    return Latent(m.reshape(T * K, B).T, v.T, dm.swapaxes(0, 1), dv.swapaxes(0, 1))


@dataclass(frozen=True, eq=False)
class Parabola(ABC):
    """The surrogate, made by ``condition``. A subclass predicts g, and names its ``COVARIANCE``."""

    COVARIANCE: ClassVar[type[Covariance]]

    covariance: Any = field(repr=False)
    theta: Any
    eta: Array
    jitter: Array
    rule: Rule
    inverse_factor: Array = field(repr=False)
    alpha: Array = field(repr=False)
    noise: Array = field(repr=False)
    stated: Array | None = field(default=None, repr=False)  # variances of the values' own, (n,)
    weights: Array | None = None  # of the thetas, (T,); None: equal
    own_eta: Array | None = None  # of each theta when it was drawn, and its log-weight since,
    log_weights: Array | None = None  # its prior and the Jacobian apart
    expected: Array | None = None  # (T, K), the lowest value expected of pending points, if any

    def __post_init__(self) -> None:
        one_of("rule", self.rule, get_args(Rule))

    @classmethod
    def condition(
        cls,
        X: ArrayLike,
        y: ArrayLike,
        log_theta: ArrayLike,
        kernel: Any = "matern52",
        rule: Rule = "moment_matched",
        etas: int = 1,
        stated: Array | None = None,
    ) -> Self:
        """The surrogate given X (n, d), standardised y (n,) and samples log_theta (T, P).

        ``stated`` (n,) are variances of the values' own, beside the noise that all have.

        With ``etas`` = K > 1, the log gap of each sample is replaced by K values of its posterior
        given the other hyperparameters (see ``etas``).

        A covariance that is not definite gets the jitter it needs, so this does not fail on valid
        input; ``message`` says when that happened.
        """
        X, y = dataset(X, y)
        n, excess = len(y), y - y.min()
        covariance = cls.COVARIANCE(X, kernel)
        theta = covariance.unpack(log_theta)
        g = warp(excess, theta.gap)
        noise = noise_in_g(theta.noise_variance, g, stated)
        factor, jitter = np.empty((len(g), n, n)), np.empty(len(g))
        for js in blocks(len(g), CONDITION_BLOCK // n**2):
            K = np.empty(factor[js].shape)
            covariance.fill(K, theta[js], noise[js])
            factor[js], jitter[js] = inverse_factor(K)
        gaps = gap_quantiles(factor, excess, theta.gap, etas)
        eta, alpha = y.min() - gaps.ravel(), weights_of(factor, excess, gaps)
        return cls(covariance, theta, eta, jitter, rule, factor, alpha, noise, stated)

    def __getitem__(self, thetas: slice) -> Self:
        """The surrogate of some of the thetas only, with all their etas."""
        per_theta = ("theta", "jitter", "inverse_factor", "alpha", "noise")
        part = {name: getattr(self, name)[thetas] for name in per_theta}
        if self.expected is not None:
            part["expected"] = self.expected[thetas]
        if self.weights is not None:
            chosen = self.weights[thetas]
            part["weights"] = chosen / chosen.sum() if chosen.sum() > 0 else None
        return replace(self, eta=self.eta.reshape(-1, self.etas)[thetas].ravel(), **part)

    @property
    def sample_weights(self) -> Array | None:
        """The weights of the M samples, those of a theta being equal; None if all are."""
        return None if self.weights is None else np.repeat(self.weights / self.etas, self.etas)

    @property
    def X_data(self) -> Array:
        """The points of the data, (n, d)."""
        return self.covariance.X

    @property
    def noise_variance(self) -> Array:
        """The variance of y about f, (T,): of values that state their own, on average."""
        variance: Array = self.theta.noise_variance
        return variance if self.stated is None else variance + self.stated.mean()

    @property
    def etas(self) -> int:
        """K, values of eta for each theta."""
        return self.eta.size // self.jitter.size

    @property
    def n_samples(self) -> int:
        """M."""
        return self.eta.size

    @property
    def floor(self) -> Array | None:
        """eta (M,) if ``predict`` has the moments of eta + g^2/2; None if of a Gaussian f."""
        return self.eta if self.rule == "moment_matched" else None

    def target(self, best: float) -> float | Array:
        """The value to improve upon: ``best``, or a lower one that a sample expects, (M,)."""
        return best if self.expected is None else np.minimum(best, self.expected.ravel())

    @property
    def message(self) -> str:
        """What a user should know about the numerics; empty when all is well."""
        n_raised = int(np.count_nonzero(self.jitter > NOTABLE_JITTER))
        if not n_raised:
            return ""
        return (
            f"{n_raised} of {self.jitter.size} covariances were not positive definite and had "
            f"their diagonal raised, by up to {self.jitter.max():.0e} of itself: look for "
            f"near-duplicate points, or for more noise than the model expects"
        )

    def predict(self, X: ArrayLike, noise: bool = False) -> Mixture:
        """The mixture over the samples of f, or of y with ``noise``, at X (B, d): shape (B, M)."""
        latent = self._latent(points(X, self.X_data.shape[1]), gradient=False)
        return Mixture(*self._moments(latent, noise), self.sample_weights)

    def value_and_grad(
        self, X: ArrayLike, functional: Functional, noise: bool = True
    ) -> tuple[Array, Array]:
        """A functional of the predictive mixture and its gradient in x: (B, d) -> (B,), (B, d).

        ``functional(mixture)`` gives its value (B,) and its slopes in the means and variances
        (B, M), as an entropy's ``value_and_grad`` does. It is called on blocks of candidates.
        The slope in a floored variance is zero.
        """
        X = points(X, self.X_data.shape[1])
        values, gradient = np.empty(len(X)), np.empty(X.shape)
        for rows in blocks(len(X), BLOCK // (self.n_samples * X.shape[1])):
            latent = self._latent(X[rows], gradient=True)
            means, variances = self._moments(latent, noise)
            mixture = Mixture(means, variances, self.sample_weights)
            values[rows], by_mean, by_variance = functional(mixture)
            by_variance = np.where(variances > VARIANCE_FLOOR, by_variance, 0.0)
            by_m, by_v = moments_vjp(self.rule, latent.m, latent.v, by_mean, by_variance)
            gradient[rows] = np.einsum("bm,bmd->bd", by_m, latent.dm)
            gradient[rows] += np.einsum("bm,bmd->bd", by_v, latent.dv)
        return values, gradient

    @abstractmethod
    def _latent(self, X: Array, gradient: bool) -> Latent:
        """The prediction of g at X (B, d), v floored; dm and dv are empty unless ``gradient``."""

    def _moments(self, latent: Latent, noise: bool) -> tuple[Array, Array]:
        mean, variance = moments_of_f(self.rule, self.eta, latent.m, latent.v)
        if noise:
            variance = variance + np.repeat(self.noise_variance, self.etas)
        return mean, np.maximum(variance, VARIANCE_FLOOR)
