"""From the posterior to a point: where to evaluate next, and which point to trust as the minimiser.

alpha  = lambda X: information_gain(surrogate.predict(X), entropy)
x_next = maximise(alpha, rng).x
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from fitbo.acquisition.baselines import Acquisition, acquisition
from fitbo.acquisition.feasibility import Success, Weighted, reference_of
from fitbo.entropy.protocol import Gradient
from fitbo.inference.fit import Fit
from fitbo.inference.settings import Settings
from fitbo.mixture import Array, Mixture
from fitbo.search.mixed import search
from fitbo.space import Space
from fitbo.surrogate import Parabola

T = TypeVar("T")

# Candidates are ranked by a part of the samples, and those few that rank high then by all of them.
SCREENING_SAMPLES = 50
N_INCUMBENTS = 3
# Along three studies at n = 15, 50 and 95 the climb was over after 10 to 38 rounds; stopped after
# 15 it lost a hundredth of the acquisition at worst. More starts or candidates gained as little.
N_STARTS, MAX_ROUNDS = 5, 20
ACCURACY = 1e-4  # of a proposal, in each coordinate of the cube: finer than an evaluation can tell


class Clock:
    """Adds up the seconds spent in the functions called through it."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self, function: Callable[[Mixture], T], mixture: Mixture) -> T:
        since = time.perf_counter()
        result = function(mixture)
        self.seconds += time.perf_counter() - since
        return result


@dataclass(frozen=True, eq=False)
class Proposal:
    """A point of the cube (d,), what it is worth, and the seconds that the acquisition took."""

    x: Array
    value: float
    entropy_seconds: float


@dataclass(frozen=True, eq=False)
class Recommendation:
    """The minimiser of the posterior mean, what it is predicted to be worth, and how surely."""

    x: Array
    mean: float
    deviation: float


def propose(
    fit: Fit,
    settings: Settings,
    avoid: Array,
    rng: np.random.Generator,
    space: Space,
    success: Success | None = None,
) -> Proposal:
    """The point of the cube, of this space, that the acquisition likes best, none of ``avoid``.

    ``success`` is the probability that an evaluation does not fail, where some have failed.
    """
    clock = Clock()
    # Thompson's sample is one of all: a part of them would draw another.
    screened = settings.acquisition != "thompson"
    full: Worth | Weighted = worth(fit, fit.surrogate, settings, rng, clock)
    rough: Worth | Weighted | None = None
    if screened:
        rough = worth(fit, thinned(fit), settings, rng, clock)
    if success is not None:
        zero = reference_of(settings.acquisition, fit.best)
        full = Weighted(full, full.value_and_grad, success, zero)
        rough = rough and Weighted(rough, rough.value_and_grad, success, zero)
    found = search(
        full,
        full.value_and_grad,
        space,
        rng,
        screen=rough,
        incumbents=incumbents(fit),
        avoid=avoid,
        n_starts=N_STARTS,
        max_rounds=MAX_ROUNDS,
        tolerance=ACCURACY,
    )
    return Proposal(found.x, found.value, clock.seconds)


@dataclass(frozen=True, eq=False)
class Worth:
    """The acquisition as a function of points of the cube, (B, d) -> (B,), with its gradient."""

    surrogate: Parabola
    acquisition: Acquisition
    blur: float
    clock: Clock

    def __call__(self, U: Array) -> Array:
        return self.clock(self.acquisition, blurred(self.surrogate.predict(U), self.blur))

    def value_and_grad(self, U: Array) -> tuple[Array, Array]:
        return self.surrogate.value_and_grad(U, self._functional, noise=False)

    def _functional(self, mixture: Mixture) -> Gradient:
        return self.clock(self.acquisition.value_and_grad, blurred(mixture, self.blur))


def worth(
    fit: Fit,
    surrogate: Parabola,
    settings: Settings,
    rng: np.random.Generator,
    clock: Clock | None = None,
) -> Worth:
    """What the settings' acquisition makes of the fit, by its surrogate or a part of it."""
    chosen = acquisition(
        settings.acquisition,
        entropy=settings.entropy,
        per_theta=surrogate.etas,
        best=fit.best,
        eta=surrogate.eta,
        floor=surrogate.floor,
        beta=settings.beta,
        rng=rng,
    )
    blur = indistinct(fit, settings) if settings.acquisition == "fitbo" else 0.0
    return Worth(surrogate, chosen, blur, clock or Clock())


def recommend(
    fit: Fit, rng: np.random.Generator, space: Space, success: Success | None = None
) -> Recommendation:
    """The minimiser over the space of the posterior mean of f; mean and deviation in y's units.

    Where evaluations have failed, of those points that are more likely than not to succeed.
    """
    surrogate, few = fit.surrogate, thinned(fit)
    found = search(
        lambda U: -surrogate.predict(U).mean,
        lambda U: surrogate.value_and_grad(U, _negative_mean, noise=False),
        space,
        rng,
        screen=lambda U: -few.predict(U).mean,
        incumbents=incumbents(fit),
        allowed=None if success is None else lambda U: success(U) > 0.5,
        n_starts=3,
    )
    mixture = surrogate.predict(found.x[None])
    return Recommendation(
        x=found.x,
        mean=float(fit.scale.inverse(mixture.mean[0])),
        deviation=float(fit.scale.scale * mixture.variance[0] ** 0.5),
    )


def indistinct(fit: Fit, settings: Settings) -> float:
    """The variance below which differences between samples are not worth an evaluation.

    The gain counts any disagreement, and samples disagree about tiny variances next to the data,
    and about the noise itself, by factors: it would be maximal where nothing can be learnt of the
    minimum. So every sample is given the same noise, their mean, and details finer than
    ``resolution`` times the typical gap y_min - eta are blurred.
    """
    gap = float(np.median(fit.best - fit.surrogate.eta))
    return float(fit.surrogate.noise_variance.mean()) + (settings.resolution * gap) ** 2


def thinned(fit: Fit) -> Parabola:
    """The surrogate of about ``SCREENING_SAMPLES`` of its samples: some thetas, all their etas."""
    return fit.surrogate[:: max(1, fit.surrogate.n_samples // SCREENING_SAMPLES)]


def incumbents(fit: Fit) -> Array:
    """The few best points told, where a search looks more closely, (k, d)."""
    return fit.X[np.argsort(fit.y, kind="stable")[:N_INCUMBENTS]]


def blurred(mixture: Mixture, variance: float) -> Mixture:
    """Every component's variance raised by the same amount."""
    if variance == 0:
        return mixture
    return Mixture(mixture.means, mixture.variances + variance, mixture.weights)


def _negative_mean(mixture: Mixture) -> Gradient:
    return -mixture.mean, -mixture.weights, np.zeros_like(mixture.means)
