"""The surrogate: f = eta + g^2/2 with g a Gaussian process, every hyperparameter sampled.

    z         = Standardiser.fit(y)(y)                       what the priors are stated for
    density   = LogPosterior(X, z)                           (W, P) -> (W,), for a sampler
    surrogate = condition(X, z, log_theta)                   log_theta (M, P)
    surrogate.predict(X_new)                                 Mixture of shape (B, M)
    surrogate.value_and_grad(X_new, entropy.value_and_grad)  (B,), (B, d)

``fitbo.surrogate.gpy`` has the same on any GPy kernel.
"""

from fitbo.surrogate.batched import Surrogate, condition
from fitbo.surrogate.hyperparameters import Hyperparameters, n_parameters
from fitbo.surrogate.kernel import KERNELS, RBF, Kernel, Matern32, Matern52
from fitbo.surrogate.parabola import Functional, Mean, Parabola, Rule
from fitbo.surrogate.posterior import LogPosterior
from fitbo.surrogate.prior import Prior, default_prior, log_prior, sample_prior
from fitbo.surrogate.standardise import Standardiser

__all__ = [
    "KERNELS",
    "RBF",
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
    "log_prior",
    "n_parameters",
    "sample_prior",
]
