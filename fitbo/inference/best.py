"""The best point by a model: where what it is worth is largest, and which point to recommend.

worth      (B, d) -> (B,)  an acquisition function of the model's predictions
success    (B, d) -> (B,)  the probability that an evaluation is of use
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from fitbo.acquisition.baselines import LowerConfidenceBound
from fitbo.acquisition.feasibility import Chance, Weighted
from fitbo.acquisition.information import Acquisition
from fitbo.entropy.protocol import Gradient
from fitbo.inference.fit import Model
from fitbo.inference.outcomes import NOTHING, Feasible, rough_of
from fitbo.inference.region import Framed, Region, Within
from fitbo.mixture import Array, Mixture
from fitbo.search.mixed import Maximum, maximise
from fitbo.space import Differentiable, Space
from fitbo.surrogate import Parabola

T = TypeVar("T")

SCREENING_SAMPLES = 50  # candidates are ranked by these, and the few that rank high then by all
N_INCUMBENTS = 3
HOPELESS = 0.01  # probability that outcome constraints hold, below which none is worth a mention
# Along three studies at n = 15, 50 and 95 the climb was over after 10 to 38 rounds; stopped after
# 15 it lost a hundredth of the acquisition at worst. More starts or candidates gained as little.
N_STARTS, MAX_ROUNDS = 5, 100
# In a region there is less to find: in 30 of them (d = 4, BBOB) as much was with a quarter of the
# candidates.
N_NEARBY, CANDIDATES_NEARBY = 3, 128


@dataclass(frozen=True, eq=False)
class Recommendation:
    """The minimiser of the posterior mean of f, that mean, and its standard deviation.

    With outcome constraints ``feasible`` is the probability that all hold there; None too while one
    of them has never been measured.
    """

    x: Array
    mean: float
    deviation: float
    feasible: float | None = None


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
class Worth:
    """An acquisition function on points of the cube, (B, d) -> (B,), with its gradient."""

    surrogate: Parabola
    acquisition: Acquisition
    blur: float = 0.0
    noise: bool = False  # of y, not of f
    clock: Clock = field(default_factory=Clock)

    def __call__(self, U: Array) -> Array:
        return self.clock(
            self.acquisition, blurred(self.surrogate.predict(U, self.noise), self.blur)
        )

    def value_and_grad(self, U: Array) -> tuple[Array, Array]:
        def functional(mixture: Mixture) -> Gradient:
            return self.clock(self.acquisition.value_and_grad, blurred(mixture, self.blur))

        return self.surrogate.value_and_grad(U, functional, noise=self.noise)


def recommend(
    fit: Model, rng: np.random.Generator, space: Space, success: Chance | None = None
) -> Recommendation:
    """The minimiser over the space of the posterior mean of f, in y's units.

    If evaluations have failed, only points that are more likely than not to succeed compete; with
    outcome constraints, those that are ``acceptable``, or the most probable one if none is; or the
    one that should break them least, if nobody would bet on any.
    """
    feasible, x = None, lowest_mean(fit, space, rng, success).x
    if isinstance(success, Feasible):
        if not success.acceptable(x[None])[0]:
            x = most_feasible(fit, success, space, rng, n_starts=3).x
        if success.probability(x[None])[0] < HOPELESS:
            x = most_feasible(fit, success.tempered(), space, rng, n_starts=3).x
        if success.complete:
            feasible = float(success.probability(x[None])[0])
    mixture = fit.surrogate.predict(x[None])
    return Recommendation(
        x=x,
        mean=float(fit.scale.inverse(mixture.mean[0])),
        deviation=float(fit.scale.scale * mixture.variance[0] ** 0.5),
        feasible=feasible,
    )


def lowest_mean(
    fit: Model, space: Space, rng: np.random.Generator, success: Chance | None = None
) -> Maximum:
    """Where the posterior mean of f is lowest, of what is acceptable."""
    return best_point(
        fit,
        lambda surrogate: Worth(surrogate, LowerConfidenceBound(beta=0)),
        space,
        rng,
        allowed=None if success is None else success.acceptable,
        n_starts=3,
    )


def most_feasible(
    fit: Model, success: Chance | None, space: Space, rng: np.random.Generator, **options: Any
) -> Maximum:
    """The point where an evaluation is most likely to be of use."""
    return best_point(fit, lambda _: NOTHING, space, rng, success, None, **options)


def best_point(
    fit: Model,
    worth_of: Callable[[Parabola], Differentiable],
    space: Space,
    rng: np.random.Generator,
    success: Chance | None = None,
    reference: float | None = 0.0,
    screened: bool = True,
    region: Region | None = None,
    **options: Any,
) -> Maximum:
    """Where the worth is largest, weighted by the probability of success if evaluations failed.

    Candidates may be screened by a part of the samples; ``options`` are those of ``maximise``.
    """

    def weighted(surrogate: Parabola, success: Chance | None = success) -> Any:
        plain: Any = worth_of(surrogate)
        if region is not None:
            plain = Framed(plain, region.frame)
        return plain if success is None else Weighted(plain, success, reference)

    full = weighted(fit.surrogate)
    options = {"n_starts": N_STARTS, "max_rounds": MAX_ROUNDS} | options
    if screened:
        options["screen"] = weighted(thinned(fit), rough_of(success))
    if region is None:
        return maximise(full, space, rng, incumbents=incumbents(fit), **options)
    options = {k: Within(v, region) if k == "screen" else v for k, v in options.items()}
    if "avoid" in options:
        options["avoid"] = region.inward(options["avoid"])
    options["n_starts"] = min(N_NEARBY, options["n_starts"])
    options["n_candidates"] = CANDIDATES_NEARBY
    middle = np.full((1, space.dim), 0.5)
    found = maximise(Within(full, region), space, rng, incumbents=middle, **options)
    return replace(found, x=region.outward(found.x[None])[0])


def thinned(fit: Model) -> Parabola:
    """The surrogate of about ``SCREENING_SAMPLES`` of its samples: some thetas, all their etas."""
    return fit.surrogate[:: max(1, fit.surrogate.n_samples // SCREENING_SAMPLES)]


def incumbents(fit: Model) -> Array:
    """The few best points told, where a search looks more closely, (k, d)."""
    return fit.X[fit.order[:N_INCUMBENTS]]


def blurred(mixture: Mixture, variance: float) -> Mixture:
    """Every component's variance increased by the same amount."""
    if variance == 0:
        return mixture
    return Mixture(mixture.means, mixture.variances + variance, mixture.weights)
