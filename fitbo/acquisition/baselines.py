"""What a candidate is worth, as a functional of its predictive mixture; larger is better.

    m, v, w  (..., M)  means, variances and weights of the predictive mixture; s = sqrt(v)
    alpha    (...,)    the value of each candidate
    best     float     the value to improve upon, y*: the objective is minimised; or (M,)
    eta      (M,)      each hyperparameter sample's own global minimum
    floor    (M,)      eta again, if the components are parabolas; or None
    gamma    (..., M)  (m - eta)/s, the standardised height above the minimum

    acquisition(mixture)                  -> alpha
    acquisition.value_and_grad(mixture)   -> alpha, dalpha/dm, dalpha/dv

so a surrogate's chain rule, dalpha/dx = sum_j dalpha/dm_j dm_j/dx + dalpha/dv_j dv_j/dx, makes any
of them differentiable in x. All are marginalised over the same samples: each baseline is the
average over j of its value for one component, but for the confidence bound, which takes the moments
of the mixture, and Thompson sampling, which takes a single sample.

[1] Wang, Jegelka, Max-value entropy search for efficient Bayesian optimization, ICML 2017.
[2] Ament et al., Unexpected improvements to expected improvement for Bayesian optimization,
    NeurIPS 2023.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields
from typing import Any

import numpy as np

from fitbo.acquisition.improvement import log_average, log_improvement, probability
from fitbo.acquisition.information import Acquisition, InformationGain, PublishedGain, average
from fitbo.acquisition.joint import JointGain
from fitbo.acquisition.marginal import MarginalGain
from fitbo.acquisition.maxvalue import MaxValueGain
from fitbo.acquisition.normal import truncation_gain
from fitbo.acquisition.remaining import RemainingRegret
from fitbo.checks import assign, finite, one_of
from fitbo.entropy.protocol import Gradient
from fitbo.mixture import Array, Mixture
from fitbo.shelf import Shelf


def _averaged(mixture: Mixture, a: Array, by_m: Array, by_v: Array) -> Gradient:
    """``alpha = sum_j w_j a(m_j, v_j)`` from a, da/dm and da/dv of each component, (..., M)."""
    return average(mixture, a), mixture.weights * by_m, mixture.weights * by_v


def _per_component(name: str, value: Array, mixture: Mixture) -> Array:
    """The value, an entry per component or one for all, or an error."""
    M = mixture.n_components
    if value.shape not in ((), (M,)):
        raise ValueError(f"{name} must have shape ({M},), got {value.shape}")
    return value


@dataclass(frozen=True, eq=False)
class _Improvement(Acquisition):
    """What is measured against the value to improve upon.

    With a ``floor`` (M,), the components are parabolas f = floor + g^2/2, given by their moments;
    without, Gaussians. See ``fitbo.acquisition.improvement``.
    """

    best: float | Array
    floor: Array | None = None

    def __post_init__(self) -> None:
        finite("best", self.best)
        if self.floor is not None:
            finite("floor", self.floor)
            assign(self, floor=np.array(self.floor, dtype=np.float64))

    def _of_components(self, what: Callable[..., Gradient], mixture: Mixture) -> Gradient:
        floor = None if self.floor is None else _per_component("floor", self.floor, mixture)
        return what(mixture.means, mixture.variances, self.best, floor)


@dataclass(frozen=True, eq=False)
class ExpectedImprovement(_Improvement):
    """``E max(best - f, 0)``."""

    def value_and_grad(self, mixture: Mixture) -> Gradient:
        log_value, by_m, by_v = self._of_components(log_improvement, mixture)
        value = np.exp(log_value)
        share = mixture.weights * value
        return average(mixture, value), share * by_m, share * by_v


@dataclass(frozen=True, eq=False)
class LogExpectedImprovement(_Improvement):
    """``log E max(best - f, 0)``, finite where the expected improvement underflows [2]."""

    def value_and_grad(self, mixture: Mixture) -> Gradient:
        log_value, by_m, by_v = self._of_components(log_improvement, mixture)
        share, value = log_average(mixture.weights, log_value)
        return value, share * by_m, share * by_v


@dataclass(frozen=True, eq=False)
class ProbabilityOfImprovement(_Improvement):
    """``P(f < best)``."""

    def value_and_grad(self, mixture: Mixture) -> Gradient:
        return _averaged(mixture, *self._of_components(probability, mixture))


@dataclass(frozen=True)
class LowerConfidenceBound:
    """``-(mu - sqrt(beta) sigma)`` with mu and sigma the mixture's mean and standard deviation.

    Of the mixture and not averaged over its components, so that disagreement between samples counts
    as uncertainty: sigma^2 = sum_j w_j (v_j + (m_j - mu)^2), whose derivative in m_j is
    2 w_j (m_j - mu) because the m_j average to mu.
    """

    beta: float = 4.0

    def __post_init__(self) -> None:
        finite("beta", self.beta, least=0)

    def __call__(self, mixture: Mixture) -> Array:
        return np.sqrt(self.beta * mixture.variance) - mixture.mean

    def value_and_grad(self, mixture: Mixture) -> Gradient:
        pull = np.sqrt(self.beta / mixture.variance)[..., None] * mixture.weights
        by_mean = pull * (mixture.means - mixture.mean[..., None]) - mixture.weights
        return self(mixture), by_mean, 0.5 * pull


@dataclass(frozen=True, eq=False)
class MaxValueEntropySearch(Acquisition):
    """MES [1] about eta, each sample j with its own eta_j (or one for all), and a Gaussian f.

    Eta is a bound of the model's warp and not the minimum (``maxvalue`` is about that); it needs no
    draws of the process. To learn that the minimum is eta is to learn that y > eta. A Gaussian
    truncated to (eta, inf) keeps the mass Phi(gamma) and has entropy
    log(sqrt(2 pi e) s Phi) - gamma phi/(2 Phi), so that

        a(gamma) = gamma lambda/2 - log Phi,         lambda = phi(gamma)/Phi(gamma),
        a'(gamma) = -lambda (1 + gamma (gamma + lambda))/2,

    da/dm = a'/s and da/dv = -gamma a'/(2 v). It is exact when the mixture is that of f itself,
    without the noise of y.
    """

    eta: Array

    def __post_init__(self) -> None:
        finite("eta", self.eta)
        assign(self, eta=np.array(self.eta, dtype=np.float64))

    def value_and_grad(self, mixture: Mixture) -> Gradient:
        s = mixture.deviations
        gamma = (mixture.means - _per_component("eta", self.eta, mixture)) / s
        a, slope = truncation_gain(gamma)
        return _averaged(mixture, a, slope / s, -gamma * slope / (2 * s * s))


@dataclass(frozen=True, eq=False)
class Thompson(Acquisition):
    """``-m_j`` for one sample j, drawn by its weight when the object is made.

    This is Thompson sampling of the hyperparameters: the function drawn is the predictive mean
    given sample j, because the path of a process is not a functional of its marginal mixtures.
    """

    rng: np.random.Generator = field(repr=False)
    _uniform: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        assign(self, _uniform=self.rng.random())

    def value_and_grad(self, mixture: Mixture) -> Gradient:
        edges = np.cumsum(mixture.weights, axis=-1)
        j = (edges <= self._uniform * edges[..., -1:]).sum(-1, keepdims=True)
        chosen = np.arange(mixture.n_components) == j
        value = -np.take_along_axis(mixture.means, j, -1)[..., 0]
        return value, -chosen.astype(np.float64), np.zeros_like(mixture.means)


@dataclass(frozen=True)
class Random(Acquisition):
    """Zero everywhere, so that the first of the random candidates is taken."""

    def value_and_grad(self, mixture: Mixture) -> Gradient:
        zeros = np.zeros_like(mixture.means)
        return np.zeros(mixture.batch_shape), zeros, zeros.copy()


ACQUISITIONS: Shelf[Callable[..., Acquisition]] = Shelf(
    "fitbo.acquisitions",
    {
        "fitbo": InformationGain,
        "fitbo-paper": PublishedGain,
        "ei": ExpectedImprovement,
        "logei": LogExpectedImprovement,
        "pi": ProbabilityOfImprovement,
        "lcb": LowerConfidenceBound,
        "mes": MaxValueGain,
        "mes-eta": MaxValueEntropySearch,
        "mes-marginal": MarginalGain,
        "jes": JointGain,
        "remaining": RemainingRegret,
        "thompson": Thompson,
        "random": Random,
    },
)


def needs(name: str, fact: str) -> bool:
    """Whether the named acquisition function is made from this fact."""
    return fact in {f.name for f in fields(ACQUISITIONS[name])}  # type: ignore[arg-type]


def acquisition(name: str, **facts: Any) -> Acquisition:
    """The named acquisition function, made from those of the ``facts`` that it needs.

    ``acquisition(name, entropy="memel", per_theta=1, best=y.min(), eta=eta, floor=eta, beta=4.0,
    rng=rng)`` makes any of them.
    """
    one_of("acquisition", name, ACQUISITIONS)
    kind: Any = ACQUISITIONS[name]
    asked = [f for f in fields(kind) if f.init]
    missing = [f.name for f in asked if f.default is MISSING and f.name not in facts]
    if missing:
        raise ValueError(f"acquisition {name!r} needs {', '.join(missing)}, got {sorted(facts)}")
    return kind(**{f.name: facts[f.name] for f in asked if f.name in facts})
