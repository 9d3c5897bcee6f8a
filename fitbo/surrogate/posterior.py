"""The posterior of the hyperparameters, whatever makes the covariance of g.

    log p(theta | y) = log N(g; 0, K) - sum_i log g_i + log p(theta) + const
    K_ij = k(x_i, x_j) + tau^2 + delta_ij (noise_in_g_i + NUGGET k(x_i, x_i))

``g`` depends on theta through the gap, hence the second term (see ``warp``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from fitbo.checks import assign, finite
from fitbo.mixture import LOG_2PI, Array
from fitbo.surrogate.gp import BORDER, blocks, inverses_of, log_likelihood
from fitbo.surrogate.hyperparameters import Prior, Theta, as_samples, inside_support
from fitbo.surrogate.standardise import observations
from fitbo.surrogate.warp import log_jacobian, noise_in_g, noise_in_y, warp

BLOCK = 1 << 17  # entries of the covariances made at once: 1 MB, about what a core's cache holds


@dataclass(frozen=True, eq=False)
class Covariance(ABC):
    """The covariance of the warped data at X (n, d), as a function of the hyperparameters."""

    X: Array
    kernel: Any  # what a subclass makes of the name or kernel that it is given

    @property
    @abstractmethod
    def noise_column(self) -> int:
        """Where log noise is in ``log_theta``; log gap follows it."""

    @abstractmethod
    def default_prior(self) -> Prior:
        """The prior of ``log_theta``, of P entries."""

    @abstractmethod
    def unpack(self, log_theta: ArrayLike) -> Theta:
        """log_theta (M, P) inside the support, by name."""

    @abstractmethod
    def fill(self, K: Array, theta: Any, noise: Array) -> None:
        """Write the lower triangle of K's leading (n, n) part, K (M, >= n, >= n) contiguous.

        noise (M, n): the variance of each observation in g.
        """

    def fill_with_gradient(self, K: Array, theta: Any, noise: Array) -> Callable[[Array], Array]:
        """As ``fill``; returns a function of G (M, n, n), symmetric, with values (M, P):

        sum_ab G_ab dK_ab/d log_theta, noise and gap left 0.
        """
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Posterior:
    """``log_theta`` (W, P) -> log-density (W,), -inf and never NaN where it cannot be evaluated.

    X (n, d) in the unit cube; y (n,) standardised (see ``Standardiser``); ``prior`` replaces the
    default one, and ``noise``, location and scale, that of log noise. ``stated`` (n,) are variances
    of the values' own, beside the noise that all have.
    """

    COVARIANCE: ClassVar[type[Covariance]]

    X: Array
    y: Array
    kernel: Any = "matern52"
    prior: Prior | None = None
    noise: tuple[float, float] | None = None
    stated: Array | None = None
    _prior: Prior = field(init=False, repr=False)
    _covariance: Covariance = field(init=False, repr=False)

    def __post_init__(self) -> None:
        X, y = dataset(self.X, self.y)
        covariance = self.COVARIANCE(X, self.kernel)
        default = covariance.default_prior()
        prior = default if self.prior is None else self.prior
        if prior.location.size != default.location.size:
            raise ValueError(
                f"prior must have {default.location.size} entries for this kernel and X of shape "
                f"{X.shape}, got {prior.location.size}"
            )
        if self.noise is not None:
            location, scale = prior.location.copy(), prior.scale.copy()
            column = covariance.noise_column
            location[column], scale[column] = self.noise
            prior = Prior(location, scale)
        assign(self, X=X, y=y, _prior=prior, _covariance=covariance)

    @property
    def n_parameters(self) -> int:
        """P."""
        return self._prior.location.size

    def sample_prior(self, rng: np.random.Generator, n: int) -> Array:
        """n draws from the prior, (n, P): a start for the sampler."""
        return self._prior.sample(rng, n)

    def __call__(self, log_theta: ArrayLike) -> Array:
        log_theta = as_samples(log_theta, self.n_parameters)
        value = self.log_likelihood(log_theta)
        alive = np.isfinite(value)
        value[alive] += self._prior(log_theta[alive])
        return value

    def log_likelihood(self, log_theta: ArrayLike) -> Array:
        """log p(y | theta), the Jacobian included: (W, P) -> (W,)."""
        log_theta = as_samples(log_theta, self.n_parameters)
        value = np.full(len(log_theta), -np.inf)
        inside = np.flatnonzero(inside_support(log_theta))
        n, excess = len(self.y), self.y - self.y.min()
        for rows in blocks(inside.size, BLOCK // (n + 1) ** 2):
            theta = self._covariance.unpack(log_theta[inside[rows]])
            g, noise, jacobian = self._warped(theta, excess)
            K = np.empty((len(g), n + 1, n + 1))  # its upper triangle is never read
            self._covariance.fill(K, theta, noise)
            K[:, n, :n] = g
            K[:, n, n] = BORDER
            value[inside[rows]] = log_likelihood(K) + jacobian
        return value

    def _warped(self, theta: Theta, excess: Array) -> tuple[Array, Array, Array]:
        """The data as g (M, n), their variances in g (M, n), and the log-Jacobian (M,)."""
        g = warp(excess, theta.gap)
        noise = noise_in_g(theta.noise_variance, g, self.stated)
        return g, noise, log_jacobian(g, excess)

    def _slopes(
        self, theta: Theta, g: Array, excess: Array, A: Array, G: Array
    ) -> tuple[Array, Array]:
        """The slopes of log p in log noise and log gap, (M,) each; A and G's diagonal (M, n)."""
        e = noise_in_y(theta.noise_variance, self.stated)
        return warp_gradient(theta, g, excess, A, G, e)

    def value_and_grad(self, log_theta: ArrayLike) -> tuple[Array, Array]:
        """The log-density and its gradient, (W, P) -> (W,), (W, P); zero where it is -inf.

        With A = K^-1 g and G = (A A^T - K^-1)/2,

            d log p = sum_ab G_ab dK_ab - A.dg - sum_i dg_i/g_i + d log p(theta)
        """
        log_theta = as_samples(log_theta, self.n_parameters)
        values, slopes = np.full(len(log_theta), -np.inf), np.zeros(log_theta.shape)
        inside = np.flatnonzero(inside_support(log_theta))
        n, excess = len(self.y), self.y - self.y.min()
        column = self._covariance.noise_column
        for part in blocks(inside.size, BLOCK // (n**2 * self.X.shape[1])):
            rows = inside[part]
            theta = self._covariance.unpack(log_theta[rows])
            g, noise, jacobian = self._warped(theta, excess)
            K = np.empty((len(g), n, n))
            pulled_back = self._covariance.fill_with_gradient(K, theta, noise)
            log_det, inverse, A, square = inverses_of(K, g)
            fit = -0.5 * (square + log_det + n * LOG_2PI) + jacobian
            G = A[:, :, None] * A[:, None]
            G -= inverse
            G *= 0.5
            slope = pulled_back(G)
            by_noise, by_gap = self._slopes(theta, g, excess, A, np.einsum("mii->mi", G))
            slope[:, column] += by_noise
            slope[:, column + 1] += by_gap
            slope -= (log_theta[rows] - self._prior.location) / self._prior.scale**2
            sound = np.isfinite(fit) & np.isfinite(slope).all(1)
            values[rows[sound]] = (fit + self._prior(log_theta[rows]))[sound]
            slopes[rows[sound]] = slope[sound]
        return values, slopes


def warp_gradient(
    theta: Theta, g: Array, excess: Array, A: Array, G: Array, e: Array
) -> tuple[Array, Array]:
    """The slopes of log p in log noise and log gap, (M,) each; g, A and G's diagonal are (M, n).

    With e^2 = noise + s^2, (M, n or 1), the noise in g is e^2/(g^2 + 2e), so

        d/d log noise = noise (g^2 + e)/(g^2 + 2e)^2,    d/dg = -2 g e^2/(g^2 + 2e)^2,

    and dg/d log gap = gap/g.
    """
    noise, gap = theta.noise_variance, theta.gap
    wide = (g * g + 2 * e) ** 2
    by_g = -A - 2 * g * e * e / wide * G - 1 / g
    by_gap = gap * (by_g / g).sum(1)
    equals = np.count_nonzero(excess == 0) - 1  # of the lowest value, which count once
    if equals:
        by_gap += equals * gap / np.square(g.min(1))
    return noise * (G * (g * g + e) / wide).sum(1), by_gap


def dataset(X: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
    """X (n, d) and y (n,), validated together."""
    X, y = points(X), observations(y)
    if len(X) != len(y):
        raise ValueError(f"X and y must have the same length, got {X.shape} and {y.shape}")
    return X, y


def points(X: ArrayLike, d: int | None = None) -> Array:
    """X as a finite contiguous float64 array of shape (B, d), d >= 1, or an error."""
    array = np.ascontiguousarray(X, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] < 1 or (d is not None and array.shape[1] != d):
        raise ValueError(f"X must have shape (B, {d or 'd'}), got {array.shape}")
    finite("X", array)
    return array
