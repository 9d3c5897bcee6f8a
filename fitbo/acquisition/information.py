"""The information gain of an evaluation: about the minimum, not about all that is unknown.

    m, v    (..., M)  means and variances of the predictive mixture; s = sqrt(v)
    K, T    int       values of eta for each theta, which are neighbours; thetas, M = T K
    mu, sd  (..., T)  mean and standard deviation of y given theta: of K components
    u       (..., M)  a component seen from its theta: mean (m - mu)/sd, variance v/sd^2

FITBO's acquisition function [1] is what y tells about which sample is true,

    I(y; theta, eta) = H[y] - E H[y | theta, eta] = I(y; theta) + E_theta I(y; eta | theta),

with theta the kernel's parameters and eta the minimum. Only the second term is about the minimum;
the first sends evaluations wherever lengthscales disagree, without end. It can be left out if every
theta comes with several eta:

    alpha = E_theta H[y | theta] - E H[y | theta, eta].

That is one mixture entropy per theta. But H[y | theta] = log sd + H[u | theta], and the
standardised mixtures of different theta have nearly the same shape, so they are pooled:

    alpha = H[u] + E log sd - E log(2 pi e v)/2,        H[u] >= E_theta H[u | theta].

This is one mixture entropy per candidate as before, by any backend; what is left of I(y; theta) is
what the shape alone tells. With moment matching H[u] = log(2 pi e)/2 and the pooling is exact. With
K = 1 alpha is FITBO's own.

[1] Ru et al., Fast information-theoretic Bayesian optimisation, ICML 2018.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np

from fitbo.checks import assign, whole
from fitbo.entropy import Entropy, backend
from fitbo.entropy.protocol import Gradient
from fitbo.mixture import LOG_2PI, Array, Mixture

EQUAL = 1e-12  # weights that differ by less


@runtime_checkable
class Acquisition(Protocol):
    """A functional of the predictive mixture of each candidate of a batch."""

    def __call__(self, mixture: Mixture) -> Array:
        """alpha, (...,)."""
        return self.value_and_grad(mixture)[0]

    def value_and_grad(self, mixture: Mixture) -> Gradient:
        """alpha (...,), dalpha/dmeans (..., M), dalpha/dvariances (..., M)."""
        ...


def information_gain(
    mixture: Mixture, entropy: str | Entropy | Callable[[Mixture], Array] = "memel"
) -> Array:
    """``H[p] - sum_j w_j log(2 pi e v_j)/2``: what y tells about which sample is true, (...,)."""
    return InformationGain(entropy)(mixture)


@dataclass(frozen=True)
class InformationGain:
    """What y tells about eta given theta, with ``per_theta`` = K values of eta for each theta.

    Non-negative, up to the error of an approximate entropy. The K samples of a theta must have
    equal weights.
    """

    entropy: str | Entropy | Callable[[Mixture], Array] = "memel"
    per_theta: int = 1
    _entropy: Entropy = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        whole("per_theta", self.per_theta, least=1)
        assign(self, _entropy=backend(self.entropy))

    def __call__(self, mixture: Mixture) -> Array:
        if self.per_theta == 1:
            return self._entropy(mixture) - _conditional(mixture)
        m, v, sd = self._from_theta(mixture)
        shares = self._grouped(mixture.weights).sum(-1)
        value = self._entropy(Mixture(m, v, mixture.weights))
        return value + np.vecdot(shares, np.log(sd)) - _conditional(mixture)

    def value_and_grad(self, mixture: Mixture) -> Gradient:
        K = self.per_theta
        by_v = -0.5 * mixture.weights / mixture.variances
        if K == 1:
            value, by_m, by_variance = self._entropy.value_and_grad(mixture)
            return value - _conditional(mixture), by_m, by_variance + by_v
        m, v, sd = self._from_theta(mixture)
        shares = self._grouped(mixture.weights).sum(-1)
        value, by_u, by_w = self._entropy.value_and_grad(Mixture(m, v, mixture.weights))
        value = value + np.vecdot(shares, np.log(sd)) - _conditional(mixture)
        # H[u] depends on m_k and v_k through the component itself, through mu, and through sd.
        m, v, by_u, by_w = (self._grouped(a) for a in (m, v, by_u, by_w))
        wide = sd[..., None]
        by_sd = -(by_u * m + 2 * by_w * v).sum(-1) / sd + shares / sd
        by_m = (by_u - by_u.mean(-1, keepdims=True)) / wide + by_sd[..., None] * m / K
        by_variance = by_w / wide**2 + by_sd[..., None] / (2 * K * wide)
        shape = mixture.means.shape
        return value, by_m.reshape(shape), by_variance.reshape(shape) + by_v

    def _from_theta(self, mixture: Mixture) -> tuple[Array, Array, Array]:
        """Means and variances of the u (..., M), and sd (..., T)."""
        if np.ptp(self._grouped(mixture.weights), axis=-1).max() > EQUAL:
            raise ValueError(f"the {self.per_theta} samples of a theta must have equal weights")
        means, variances = self._grouped(mixture.means), self._grouped(mixture.variances)
        mu = means.mean(-1)
        offset = means - mu[..., None]
        sd = np.sqrt((variances + offset * offset).mean(-1))
        shape, wide = mixture.means.shape, sd[..., None]
        return (offset / wide).reshape(shape), (variances / wide**2).reshape(shape), sd

    def _grouped(self, a: Array) -> Array:
        """(..., M) -> (..., T, K)."""
        if a.shape[-1] % self.per_theta:
            raise ValueError(
                f"a mixture of {a.shape[-1]} components must hold {self.per_theta} for each theta"
            )
        return a.reshape(*a.shape[:-1], -1, self.per_theta)


@dataclass(frozen=True)
class PublishedGain(InformationGain):
    """FITBO as published [1]: what y tells about theta and eta together."""


def _conditional(mixture: Mixture) -> Array:
    """E H[y | theta, eta]."""
    return 0.5 * (LOG_2PI + 1 + average(mixture, np.log(mixture.variances)))


def average(mixture: Mixture, a: Array) -> Array:
    """``sum_j w_j a_j``, (..., M) -> (...,)."""
    return np.einsum("...m,...m->...", mixture.weights, a)
