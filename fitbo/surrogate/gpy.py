"""The same surrogate on GPy: any GPy kernel, with sums, products, periodic parts.

    kernel    = GPy.kern.Matern52(2, ARD=True) + GPy.kern.StdPeriodic(2)      or its expression,
    density   = LogPosterior(X, z, kernel)                                    "matern52 + periodic"
    surrogate = condition(X, z, log_theta, kernel)

``log_theta`` (M, q + 2) holds the logs of the kernel's q free parameters in GPy's order, of the
noise and of the gap; parameters that are fixed in GPy stay fixed.

The model of ``warp`` is unchanged; only the covariance of g comes from GPy, one sample at a
time, so this is slower than the batched path in proportion to M. It is also that path's oracle. A
``Covariance`` here moves the parameters of its own copy of the kernel: use it in one thread only.

**Prior.** A kernel's parameters are log-normal about the values it was built with, with a standard
deviation of ``KERNEL_SCALE``: build the kernel with the values that you expect. An expression
builds it with the medians of ``hyperparameters``, which also has the priors of noise and gap.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from operator import add, mul
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from fitbo.checks import assign
from fitbo.mixture import Array
from fitbo.surrogate.hyperparameters import (
    GAP,
    LENGTHSCALE,
    NOISE,
    SIGNAL,
    Prior,
    Theta,
    log_parameters,
)
from fitbo.surrogate.parabola import Latent, Parabola, floored
from fitbo.surrogate.posterior import Covariance, Posterior
from fitbo.surrogate.warp import MEAN_VARIANCE, NUGGET

Kern = Any  # GPy.kern.Kern: GPy carries no types, and importing it takes two seconds

KERNEL_SCALE = 1.25  # e^(2 * 1.25) is a factor of twelve either way
NAMES = {
    "rbf": "RBF",
    "matern32": "Matern32",
    "matern52": "Matern52",
    "exponential": "Exponential",
    "ratquad": "RatQuad",
    "periodic": "StdPeriodic",
    "linear": "Linear",
    "bias": "Bias",
}
ANISOTROPIC = ("rbf", "matern32", "matern52", "exponential", "ratquad")


def kernel_from(kernel: str | Kern, d: int) -> Kern:
    """A GPy kernel over d inputs from an expression, ``"matern52 + periodic*linear"``, or a copy.

    Products bind first; there are no brackets: build the kernel in GPy for more.
    """
    if isinstance(kernel, str):
        return _parse(kernel, d)
    if not all(hasattr(kernel, name) for name in ("K", "Kdiag", "gradients_X", "param_array")):
        raise ValueError(f"kernel must be a GPy kernel or an expression, got {kernel!r:.80}")
    if kernel.input_dim != d:
        raise ValueError(f"kernel must have input_dim {d} to suit X, got {kernel.input_dim}")
    if not (kernel.param_array > 0).all():
        raise ValueError(
            f"kernel must have positive parameters, for their logarithms are sampled, got "
            f"{kernel.param_array}"
        )
    return kernel.copy()


@dataclass(frozen=True, eq=False)
class KernelTheta(Theta):
    """M samples: of the noise, the gap and the kernel's free parameters, ``values`` (M, q)."""

    values: Array


@dataclass(frozen=True, eq=False)
class GPyCovariance(Covariance):
    """Covariances by a GPy kernel, which this object owns; ``free`` indexes its q parameters."""

    free: np.ndarray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        kernel = kernel_from(self.kernel, self.X.shape[1])
        held = [index for rule, index in kernel.constraints.items() if str(rule) == "fixed"]
        every = np.arange(kernel.size)
        free = np.setdiff1d(every, np.concatenate([every[:0], *held]))
        assign(self, kernel=kernel, free=free)

    def at(self, values: Array) -> Kern:
        """The kernel with its free parameters set to ``values``, (q,)."""
        parameters = np.array(self.kernel.param_array)
        parameters[self.free] = values
        self.kernel[:] = parameters
        return self.kernel

    def default_prior(self) -> Prior:
        location = np.log(np.array(self.kernel.param_array)[self.free])
        table = np.array([*((mu, KERNEL_SCALE) for mu in location), NOISE, GAP])
        return Prior(table[:, 0], table[:, 1])

    @property
    def noise_column(self) -> int:
        return self.free.size

    def unpack(self, log_theta: ArrayLike) -> KernelTheta:
        theta = np.exp(log_parameters(log_theta, self.free.size + 2))
        return KernelTheta(noise_variance=theta[:, -2], gap=theta[:, -1], values=theta[:, :-2])

    def fill(self, K: Array, theta: KernelTheta, noise: Array) -> None:
        n = len(self.X)
        diagonal = np.arange(n)
        for matrix, values in zip(K, theta.values, strict=True):
            matrix[:n, :n] = self.at(values).K(self.X)
        K[:, diagonal, diagonal] *= 1 + NUGGET
        K[:, :n, :n] += MEAN_VARIANCE
        K[:, diagonal, diagonal] += noise


class LogPosterior(Posterior):
    """The log-density of ``log_theta`` (W, q + 2) for a GPy kernel or an expression."""

    COVARIANCE: ClassVar = GPyCovariance


class GPySurrogate(Parabola):
    """Predicts f for every sample, one after the other."""

    COVARIANCE: ClassVar = GPyCovariance

    def _latent(self, X: Array, gradient: bool) -> Latent:
        (T, K, _), (B, d) = self.alpha.shape, X.shape
        m, v, prior_variance = np.empty((T, K, B)), np.empty((T, B)), np.empty((T, B))
        dm, dv = np.empty((T, K, B, d * gradient)), np.empty((T, B, d * gradient))
        ones = np.ones((B, 1))
        for j, values in enumerate(self.theta.values):
            kern = self.covariance.at(values)
            k = kern.K(X, self.X_data) + MEAN_VARIANCE
            A = k @ self.inverse_factor[j].T
            m[j] = self.alpha[j] @ k.T
            prior_variance[j] = kern.Kdiag(X) + MEAN_VARIANCE
            v[j] = prior_variance[j] - np.vecdot(A, A)
            if gradient:
                for alpha, slopes in zip(self.alpha[j], dm[j], strict=True):
                    slopes[:] = kern.gradients_X(ones * alpha, X, self.X_data)
                dv[j] = kern.gradients_X(-2 * A @ self.inverse_factor[j], X, self.X_data)
                dv[j] += kern.gradients_X_diag(ones[:, 0], X)
        return floored(m, v, dm, dv, prior_variance)


condition = GPySurrogate.condition


def _parse(expression: str, d: int) -> Kern:
    import GPy.kern  # type: ignore[import-untyped]

    def factor(name: str) -> Kern:
        if name not in NAMES:
            raise ValueError(f"kernel must combine {', '.join(NAMES)} by + and *, got {name!r}")
        options: dict[str, Any] = {}
        if name in ANISOTROPIC:
            lengthscale = np.full(d, np.exp(LENGTHSCALE[0]) * np.sqrt(d))
            options = {"ARD": True, "lengthscale": lengthscale, "variance": np.exp(SIGNAL[0])}
        return getattr(GPy.kern, NAMES[name])(d, **options)

    terms = [[factor(name.strip().lower()) for name in t.split("*")] for t in expression.split("+")]
    return reduce(add, [reduce(mul, factors) for factors in terms])
