"""The surrogate: f = eta + g^2/2 with g a Gaussian process, every hyperparameter sampled.

Imports: ``checks``, ``mixture``; only this package imports GPy.
Add here: a kernel (a class and a line in ``KERNELS``), or another way to compute the covariance of
the data (a ``Covariance``, with a ``LogPosterior`` and a ``Surrogate`` on it, as in ``gpy``).

    z         = Standardiser.fit(y)(y)                       what the priors are stated for
    density   = LogPosterior(X, z)                           (W, P) -> (W,), for a sampler
    surrogate = condition(X, z, log_theta)                   log_theta (M, P)
    surrogate.predict(X_new)                                 Mixture of shape (B, M)
    surrogate.value_and_grad(X_new, entropy.value_and_grad)  (B,), (B, d)
"""

from importlib import import_module
from typing import Any, get_args

from fitbo.checks import one_of
from fitbo.surrogate.batched import LogPosterior, Surrogate, condition
from fitbo.surrogate.hyperparameters import Hyperparameters, Prior, default_prior
from fitbo.surrogate.kernel import KERNELS, named_kernel
from fitbo.surrogate.parabola import Parabola
from fitbo.surrogate.standardise import Standardiser
from fitbo.surrogate.stationary import Kernel
from fitbo.surrogate.warp import Rule

# Modules that offer LogPosterior and condition; GPy takes seconds to import, so by name.
SURROGATES = {"batched": "fitbo.surrogate", "gpy": "fitbo.surrogate.gpy"}
DEFAULT_KERNELS = {"batched": "additive", "gpy": "matern52"}
RULES: tuple[str, ...] = get_args(Rule)


def named_surrogate(kind: str) -> Any:
    """The module of this kind, with its ``LogPosterior`` and ``condition``."""
    one_of("surrogate", kind, SURROGATES)
    return import_module(SURROGATES[kind])


def kernel_of(kind: str, kernel: str) -> Any:
    """The kernel that this kind of surrogate makes of a name or expression, or an error."""
    if kind == "gpy":
        return named_surrogate(kind).kernel_from(kernel, 1)
    return named_kernel(kernel)


__all__ = [
    "DEFAULT_KERNELS",
    "KERNELS",
    "RULES",
    "SURROGATES",
    "Hyperparameters",
    "Kernel",
    "LogPosterior",
    "Parabola",
    "Prior",
    "Rule",
    "Standardiser",
    "Surrogate",
    "condition",
    "default_prior",
    "kernel_of",
    "named_surrogate",
]
