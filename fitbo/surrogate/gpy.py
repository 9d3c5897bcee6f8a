"""The same surrogate on GPy: any GPy kernel, with sums, products, periodic parts.

    kernel    = GPy.kern.Matern52(2, ARD=True) + GPy.kern.StdPeriodic(2)      or its expression,
    density   = LogPosterior(X, z, kernel)                                    "matern52 + periodic"
    surrogate = condition(X, z, log_theta, kernel)

==============  ============  ==================================================================
symbol          shape         meaning
==============  ============  ==================================================================
``q``           int           free parameters of the kernel, in GPy's order; fixed ones stay put
``log_theta``   (M, q + 2)    (log of the kernel's parameters, log noise, log gap)
==============  ============  ==================================================================

The model of ``parabola`` is unchanged; only the covariance of g comes from GPy, one sample at a
time, so this is slower than the batched path in proportion to M. It is also that path's oracle.

**Prior.** A kernel's parameters are log-normal about the values it was built with, with a deviation
of ``KERNEL_SCALE``: state what you expect by building the kernel with it. An expression builds it
with the medians of ``prior``. Noise and gap have the priors of ``prior``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from fitbo.mixture import Array
from fitbo.surrogate.etas import gap_quantiles, weights_of
from fitbo.surrogate.gp import BORDER, blocks, inverse_factor, log_likelihood
from fitbo.surrogate.hyperparameters import log_parameters
from fitbo.surrogate.parabola import (
    NUGGET,
    Latent,
    Mean,
    Parabola,
    Rule,
    floored,
    log_jacobian,
    mean_of_g,
    noise_in_g,
    warp,
)
from fitbo.surrogate.posterior import Posterior, dataset
from fitbo.surrogate.prior import GAP, LENGTHSCALE, NOISE, SIGNAL, Prior

Kern = Any  # GPy.kern.Kern: GPy carries no types, and importing it takes two seconds

KERNEL_SCALE = 1.25  # e^(2 * 1.25) is a factor of twelve either way
BLOCK = 1 << 21  # entries of the arrays held at once: 16 MB each
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
class Parameters:
    """The free parameters of a GPy kernel, which this object owns."""

    kern: Kern
    free: np.ndarray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        held = [index for rule, index in self.kern.constraints.items() if str(rule) == "fixed"]
        every = np.arange(self.kern.size)
        object.__setattr__(self, "free", np.setdiff1d(every, np.concatenate([every[:0], *held])))

    @property
    def values(self) -> Array:
        """(q,)."""
        return np.array(self.kern.param_array)[self.free]

    def set(self, theta: Array) -> None:
        """Move the kernel to theta, (q,)."""
        values = np.array(self.kern.param_array)
        values[self.free] = theta
        self.kern[:] = values


@dataclass(frozen=True, eq=False)
class LogPosterior(Posterior):
    """``log_theta`` (W, q + 2) -> log-density (W,); X (n, d), y (n,) standardised.

    The kernel is copied, and the copy's parameters move as it is evaluated: one thread an object.
    """

    BLOCK: ClassVar[int] = BLOCK

    X: Array
    y: Array
    kernel: str | Kern = "matern52"
    mean: Mean = "marginal"
    prior: Prior | None = None
    _prior: Prior = field(init=False, repr=False)
    _parameters: Parameters = field(init=False, repr=False)

    def __post_init__(self) -> None:
        X, y = dataset(self.X, self.y)
        parameters = Parameters(kernel_from(self.kernel, X.shape[1]))
        prior = _default_prior(parameters) if self.prior is None else self.prior
        for name, value in (("X", X), ("y", y), ("_prior", prior), ("_parameters", parameters)):
            object.__setattr__(self, name, value)
        mean_of_g(np.ones((1, 1)), self.mean)
        if prior.location.size != self.n_parameters:
            raise ValueError(
                f"prior must have {self.n_parameters} entries for this kernel, got "
                f"{prior.location.size}"
            )

    @property
    def n_parameters(self) -> int:
        """P = q + 2."""
        return self._parameters.free.size + 2

    def _log_likelihood(self, log_theta: Array) -> Array:
        theta, n = np.exp(log_theta), len(self.y)
        excess = self.y - self.y.min()
        g = warp(excess, theta[:, -1])
        b, tau2 = mean_of_g(g, self.mean)
        bordered = np.zeros((len(g), n + 1, n + 1))
        bordered[:, :n, :n] = _data_covariance(self._parameters, self.X, theta, g, tau2)
        bordered[:, n, :n] = g - b[:, None]
        bordered[:, n, n] = BORDER
        return log_likelihood(bordered) + log_jacobian(g, excess)


@dataclass(frozen=True, eq=False)
class GPySurrogate(Parabola):
    """Predicts f for every sample; made by ``condition``. Shapes as in ``batched``.

    kernel_theta (M, q): the kernel's free parameters. One thread an object, as ``LogPosterior``.
    """

    PER_THETA: ClassVar = (*Parabola.PER_THETA, "kernel_theta", "inverse_factor", "alpha", "mean")

    kernel_theta: Array
    parameters: Parameters = field(repr=False)
    inverse_factor: Array = field(repr=False)
    alpha: Array = field(repr=False)
    mean: Array
    mean_variance: float

    def _latent(self, X: Array, gradient: bool) -> Latent:
        (T, K, _), (B, d) = self.alpha.shape, X.shape
        m, v, prior_variance = np.empty((T, K, B)), np.empty((T, B)), np.empty((T, B))
        dm, dv = np.empty((T, K, B, d * gradient)), np.empty((T, B, d * gradient))
        ones = np.ones((B, 1))
        for j, theta in enumerate(self.kernel_theta):
            self.parameters.set(theta)
            kern = self.parameters.kern
            k = kern.K(X, self.X_data) + self.mean_variance
            A = k @ self.inverse_factor[j].T
            m[j] = self.mean[j][:, None] + self.alpha[j] @ k.T
            prior_variance[j] = kern.Kdiag(X) + self.mean_variance
            v[j] = prior_variance[j] - np.vecdot(A, A)
            if gradient:
                for alpha, slopes in zip(self.alpha[j], dm[j], strict=True):
                    slopes[:] = kern.gradients_X(ones * alpha, X, self.X_data)
                dv[j] = kern.gradients_X(-2 * A @ self.inverse_factor[j], X, self.X_data)
                dv[j] += kern.gradients_X_diag(ones[:, 0], X)
        return floored(m, v, dm, dv, prior_variance)


def condition(
    X: ArrayLike,
    y: ArrayLike,
    log_theta: ArrayLike,
    kernel: str | Kern = "matern52",
    rule: Rule = "moment_matched",
    mean: Mean = "marginal",
    etas: int = 1,
) -> GPySurrogate:
    """The surrogate given X (n, d), standardised y (n,) and samples log_theta (T, q + 2)."""
    X, y = dataset(X, y)
    parameters = Parameters(kernel_from(kernel, X.shape[1]))
    theta = np.exp(log_parameters(log_theta, parameters.free.size + 2))
    g = warp(y - y.min(), theta[:, -1])
    tau2 = mean_of_g(g, mean)[1]
    n, T = len(y), len(g)
    factor, jitter = np.empty((T, n, n)), np.empty(T)
    for js in blocks(T, BLOCK // n**2):
        K = _data_covariance(parameters, X, theta[js], g[js], tau2)
        factor[js], jitter[js] = inverse_factor(K)
    excess = y - y.min()
    gaps = gap_quantiles(factor, excess, theta[:, -1], etas, mean)
    alpha, b = weights_of(factor, excess, gaps, mean)
    return GPySurrogate(
        X_data=X,
        eta=y.min() - gaps.ravel(),
        noise_variance=theta[:, -2],
        jitter=jitter,
        rule=rule,
        kernel_theta=theta[:, :-2],
        parameters=parameters,
        inverse_factor=factor,
        alpha=alpha,
        mean=b,
        mean_variance=tau2,
    )


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

    total = None
    for term in expression.split("+"):
        product = None
        for name in term.split("*"):
            part = factor(name.strip().lower())
            product = part if product is None else product * part
        total = product if total is None else total + product
    return total


def _default_prior(parameters: Parameters) -> Prior:
    location = np.log(parameters.values)
    scale = np.full(location.size, KERNEL_SCALE)
    tail = np.array([NOISE, GAP])
    return Prior(
        np.concatenate([location, tail[:, 0]]),
        np.concatenate([scale, tail[:, 1]]),
    )


def _data_covariance(
    parameters: Parameters, X: Array, theta: Array, g: Array, tau2: float
) -> Array:
    """Covariances of the warped data, noise and nugget included, (M, n, n)."""
    K = np.empty((len(theta), len(X), len(X)))
    diagonal = np.arange(len(X))
    for j, row in enumerate(theta):
        parameters.set(row[:-2])
        K[j] = parameters.kern.K(X)
        K[j, diagonal, diagonal] *= 1 + NUGGET
    K += tau2
    K[:, diagonal, diagonal] += noise_in_g(theta[:, -2], g)
    return K
