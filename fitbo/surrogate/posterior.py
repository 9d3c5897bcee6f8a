"""The log-posterior of the hyperparameters: what the sampler evaluates, half an ensemble a call.

    log p(theta | y) = log N(g; b, K) - sum_i log g_i + log p(theta) + const
    K_ij = s^2 rho_ij + tau^2 + delta_ij (noise_in_g_i + NUGGET s^2)

``g`` depends on theta through the gap, hence the second term (see ``parabola``). The squared
differences of the data do not depend on theta and are tabulated once, for the strict lower
triangle only: exp is half of the cost of an evaluation, and a Cholesky reads no other part.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from fitbo.mixture import Array
from fitbo.surrogate.gp import BORDER, blocks, log_likelihood
from fitbo.surrogate.hyperparameters import (
    Hyperparameters,
    as_samples,
    inside_support,
    n_parameters,
)
from fitbo.surrogate.kernel import AnyKernel, correlation, n_shares, named_kernel
from fitbo.surrogate.parabola import (
    NUGGET,
    Mean,
    log_jacobian,
    mean_of_g,
    noise_in_g,
    points,
    warp,
)
from fitbo.surrogate.prior import Prior, default_prior
from fitbo.surrogate.standardise import observations

BLOCK = 1 << 17  # entries of the covariances made at once: 1 MB, about what a core's cache holds


def dataset(X: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
    """X (n, d) and y (n,), validated together."""
    X, y = points("X", X), observations(y)
    if len(X) != len(y):
        raise ValueError(f"X and y must have the same length, got {X.shape} and {y.shape}")
    return X, y


@dataclass(frozen=True, eq=False)
class DataCovariance:
    """Fills covariance matrices of the points X (n, d) of one dataset."""

    X: Array
    kernel: AnyKernel
    _table: Array = field(init=False, repr=False)
    _rows: np.ndarray = field(init=False, repr=False)
    _columns: np.ndarray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        rows, columns = np.tril_indices(len(self.X), -1)
        table = ((self.X[rows] - self.X[columns]) ** 2).T
        for name, value in (("_table", table), ("_rows", rows), ("_columns", columns)):
            object.__setattr__(self, name, np.ascontiguousarray(value))

    def fill(self, K: Array, theta: Hyperparameters, noise: Array, mean_variance: float) -> None:
        """Write the lower triangle of K's leading (n, n) part, K (M, >= n, >= n) contiguous.

        noise (M, n): the variance of each datum in g.
        """
        M, side = K.shape[:2]
        n = len(self.X)
        s2 = theta.signal_variance[:, None]
        k = correlation(self.kernel, theta, self._table)
        k *= s2
        k += mean_variance
        flat = K.reshape(M, -1)
        flat[:, self._rows * side + self._columns] = k
        flat[:, : n * side : side + 1] = noise + (s2 * (1 + NUGGET) + mean_variance)


class Posterior(ABC):
    """The log-density of hyperparameters whose prior is ``_prior``, whatever makes the covariance.

    A subclass supplies the data, ``_prior``, ``n_parameters`` and ``_log_likelihood``.
    """

    BLOCK: ClassVar[int] = BLOCK  # entries of the covariances made at once

    y: Array
    _prior: Prior

    @property
    @abstractmethod
    def n_parameters(self) -> int:
        """P."""

    @abstractmethod
    def _log_likelihood(self, log_theta: Array) -> Array:
        """log p(y | theta) of samples inside the support, (W, P) -> (W,)."""

    def sample_prior(self, rng: np.random.Generator, n: int) -> Array:
        """n draws from the prior, (n, P): somewhere to start."""
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
        for rows in blocks(inside.size, self.BLOCK // (len(self.y) + 1) ** 2):
            value[inside[rows]] = self._log_likelihood(log_theta[inside[rows]])
        return value


@dataclass(frozen=True, eq=False)
class LogPosterior(Posterior):
    """``log_theta`` (W, P) -> log-density (W,), -inf and never NaN where it is hopeless.

    X (n, d) in the unit cube; y (n,) standardised (see ``Standardiser``); ``prior`` replaces the
    default one.
    """

    X: Array
    y: Array
    kernel: str | AnyKernel = "matern52"
    mean: Mean = "marginal"
    prior: Prior | None = None
    _prior: Prior = field(init=False, repr=False)
    _covariance: DataCovariance = field(init=False, repr=False)
    _excess: Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        X, y = dataset(self.X, self.y)
        kernel = named_kernel(self.kernel)
        shape = X.shape[1], n_shares(kernel)
        prior = default_prior(*shape) if self.prior is None else self.prior
        if prior.location.size != n_parameters(*shape):
            raise ValueError(
                f"prior must have {n_parameters(*shape)} entries for X of shape {X.shape}, "
                f"got {prior.location.size}"
            )
        mean_of_g(np.ones((1, 1)), self.mean)
        covariance = DataCovariance(X, kernel)
        for name, value in (
            ("X", X),
            ("y", y),
            ("_prior", prior),
            ("_covariance", covariance),
            ("_excess", y - y.min()),
        ):
            object.__setattr__(self, name, value)

    @property
    def n_parameters(self) -> int:
        """P = d + 3, and one more with an additive kernel."""
        return self._prior.location.size

    def _log_likelihood(self, log_theta: Array) -> Array:
        n, d = self.X.shape
        theta = Hyperparameters.unpack(log_theta, d, n_shares(self._covariance.kernel))
        g = warp(self._excess, theta.gap)
        b, tau2 = mean_of_g(g, self.mean)
        K = np.empty((len(g), n + 1, n + 1))  # its upper triangle is never read
        self._covariance.fill(K, theta, noise_in_g(theta.noise_variance, g), tau2)
        K[:, n, :n] = g - b[:, None]
        K[:, n, n] = BORDER
        return log_likelihood(K) + log_jacobian(g, self._excess)
