"""The surrogate: f = eta + g^2/2 with g a Gaussian process, every hyperparameter sampled.

    z         = Standardiser.fit(y)(y)                       what the priors are stated for
    density   = LogPosterior(X, z)                           (W, P) -> (W,), for a sampler
    surrogate = condition(X, z, log_theta)                   log_theta (M, P)
    surrogate.predict(X_new)                                 Mixture of shape (B, M)
    surrogate.value_and_grad(X_new, entropy.value_and_grad)  (B,), (B, d)

``fitbo.surrogate.gpy`` has the same on any GPy kernel.
"""

from importlib import import_module
from typing import Any, get_args

from fitbo.checks import one_of
from fitbo.surrogate.batched import Surrogate, condition
from fitbo.surrogate.hyperparameters import Hyperparameters, n_parameters
from fitbo.surrogate.kernel import (
    KERNELS,
    RBF,
    Additive,
    Kernel,
    Matern32,
    Matern52,
    named_kernel,
)
from fitbo.surrogate.parabola import Functional, Mean, Parabola, Rule
from fitbo.surrogate.posterior import LogPosterior
from fitbo.surrogate.prior import Prior, default_prior
from fitbo.surrogate.standardise import Standardiser

# Modules that offer LogPosterior and condition; GPy takes seconds to import, so by name.
SURROGATES = {"batched": "fitbo.surrogate", "gpy": "fitbo.surrogate.gpy"}
DEFAULT_KERNELS = {"batched": "additive", "gpy": "matern52"}
RULES: tuple[str, ...] = get_args(Rule)


def named_surrogate(kind: str) -> Any:
    """The module whose ``LogPosterior`` and ``condition`` are of this kind."""
    one_of("surrogate", kind, SURROGATES)
    return import_module(SURROGATES[kind])


def kernel_of(kind: str, kernel: str) -> Any:
    """The kernel that this kind of surrogate makes of its name or expression, or an error."""
    if kind == "gpy":
        return named_surrogate(kind).kernel_from(kernel, 1)
    return named_kernel(kernel)


__all__ = [
    "DEFAULT_KERNELS",
    "KERNELS",
    "RBF",
    "RULES",
    "SURROGATES",
    "Additive",
    "Functional",
    "Hyperparameters",
    "Kernel",
    "LogPosterior",
    "Matern32",
    "Matern52",
    "Mean",
    "Parabola",
    "Prior",
    "Rule",
    "Standardiser",
    "Surrogate",
    "condition",
    "default_prior",
    "kernel_of",
    "n_parameters",
    "named_surrogate",
]
