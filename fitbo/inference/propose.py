"""From the posterior to a point: where to evaluate next, and which point to recommend.

alpha  = lambda U: information_gain(surrogate.predict(U), entropy)
x_next = maximise(alpha, space, rng).x
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from fitbo.acquisition.baselines import LowerConfidenceBound, acquisition, needs
from fitbo.acquisition.feasibility import Chance, Weighted, reference_of
from fitbo.acquisition.information import Acquisition
from fitbo.entropy.protocol import Gradient
from fitbo.inference.fit import M, Model
from fitbo.inference.minimum import draw_minima
from fitbo.inference.outcomes import NOTHING, Feasible, rough_of
from fitbo.inference.region import Framed, Region, Within
from fitbo.inference.settings import Settings
from fitbo.mixture import Array, Mixture
from fitbo.search.mixed import Maximum, maximise
from fitbo.space import Differentiable, Space
from fitbo.surrogate import Parabola
from fitbo.surrogate.conditioned import knowing

T = TypeVar("T")

SCREENING_SAMPLES = 50  # candidates are ranked by these, and the few that rank high then by all
N_INCUMBENTS = 3
# Max-value entropy search about eta, and the first rung of the remaining regret's ladder.
WITHOUT_PATHS = {"mes": "mes-eta", "remaining": "logei"}
HOPELESS = 0.01  # probability that outcome constraints hold, below which none is worth a mention
MINIMA_CANDIDATES = 128
PATHS = 4  # of each sample, where more of the law of f* is needed than a draw
SCREENING_NODES = 8  # of the quadratures of an acquisition about the minimum
# Along three studies at n = 15, 50 and 95 the climb was over after 10 to 38 rounds; stopped after
# 15 it lost a hundredth of the acquisition at worst. More starts or candidates gained as little.
N_STARTS, MAX_ROUNDS = 5, 100
# In a region there is less to find: in 30 of them (d = 4, BBOB) as much was with a quarter of the
# candidates.
N_NEARBY, CANDIDATES_NEARBY = 3, 128
ACCURACY = 1e-6  # of a proposal, in each coordinate of the cube or the region


@dataclass(frozen=True, eq=False)
class Recommendation:
    """The minimiser of the posterior mean of f, that mean, and its standard deviation.

    With outcome constraints ``feasible`` is the probability that all hold there.
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


def propose(
    fit: Model,
    settings: Settings,
    avoid: Array,
    rng: np.random.Generator,
    space: Space,
    success: Chance | None = None,
    region: Region | None = None,
) -> tuple[Maximum, float]:
    """The point of largest acquisition value, none of ``avoid``, and the seconds spent in it.

    ``success`` is the probability that an evaluation does not fail, if some have failed, and that
    the outcome constraints hold; while no point is known where they do, it alone decides.
    """
    if fit.feasible is not None and not fit.feasible.any():
        return most_feasible(fit, success, space, rng, avoid=avoid, tolerance=ACCURACY), 0.0
    fit, settings, searched, minima = informed(fit, settings, rng, space, region)
    clock, whole = Clock(), fit.surrogate

    def worth_of(surrogate: Parabola) -> Worth:
        if minima is None or surrogate is whole:
            at = searched if surrogate is whole else surrogate
            return replace(worth(fit, at, settings, rng, minima), clock=clock)
        screen = "logei" if settings.acquisition == "remaining" else "mes"
        rough = replace(settings, acquisition=screen)
        first = np.atleast_2d(minima)[0]
        return worth(fit, surrogate, rough, rng, first, nodes=SCREENING_NODES)

    found = best_point(
        fit,
        worth_of,
        space,
        rng,
        success,
        reference_of(settings.acquisition, fit.best, settings.rung),
        # Thompson's sample is one of all: a part of them would draw another.
        screened=settings.acquisition != "thompson",
        avoid=avoid,
        tolerance=ACCURACY,
        region=region,
    )
    return found, clock.seconds


def informed(
    fit: M, settings: Settings, rng: np.random.Generator, space: Space, region: Region | None = None
) -> tuple[M, Settings, Parabola, Array | None]:
    """What an acquisition function is made of: model, settings, surrogate and draws of f*, if any.

    Those about the minimum are by a part of the samples. Without paths, which GPy's surrogate does
    not have, some have another in their place, as has the first rung, which needs none.
    """
    name = settings.acquisition
    if not fit.has_paths or (name == "remaining" and settings.rung == 1):
        settings = replace(settings, acquisition=WITHOUT_PATHS.get(name, name))
    if not needs(settings.acquisition, "minimum"):
        return fit, settings, fit.surrogate, None
    fit = replace(fit, surrogate=thinned(fit))
    return fit, settings, *with_minima(fit, settings, rng, space, region)


def with_minima(
    fit: Model, settings: Settings, rng: np.random.Generator, space: Space, region: Region | None
) -> tuple[Parabola, Array]:
    """The surrogate that an acquisition about the minimum sees, and draws of f*, (M,) or (P, M)."""
    top = incumbents(fit) if region is None else region.frame.outward(incumbents(fit))
    name = settings.acquisition
    several = name == "mes-marginal" or (name == "remaining" and settings.rung > 2)
    n = PATHS if several else 1
    drawn = [
        draw_minima(fit.surrogate, space, top, rng, region, MINIMA_CANDIDATES) for _ in range(n)
    ]
    if name == "jes":
        x = drawn[0].x if region is None else region.frame.inward(drawn[0].x)
        return knowing(fit.surrogate, x, drawn[0].g), drawn[0].f
    return fit.surrogate, drawn[0].f if n == 1 else np.stack([each.f for each in drawn])


def recommend(
    fit: Model, rng: np.random.Generator, space: Space, success: Chance | None = None
) -> Recommendation:
    """The minimiser over the space of the posterior mean of f, in y's units.

    If evaluations have failed, only points that are more likely than not to succeed compete; with
    outcome constraints, those that are ``acceptable``, or the most probable one if none is; or the
    one that should break them least, if nobody would bet on any.
    """
    found = best_point(
        fit,
        lambda surrogate: Worth(surrogate, LowerConfidenceBound(beta=0)),
        space,
        rng,
        allowed=None if success is None else success.acceptable,
        n_starts=3,
    )
    feasible, x = None, found.x
    if isinstance(success, Feasible):
        if not success.acceptable(x[None])[0]:
            x = most_feasible(fit, success, space, rng, n_starts=3).x
        if success.probability(x[None])[0] < HOPELESS:
            x = most_feasible(fit, success.tempered(), space, rng, n_starts=3).x
        feasible = float(success.probability(x[None])[0])
    mixture = fit.surrogate.predict(x[None])
    return Recommendation(
        x=x,
        mean=float(fit.scale.inverse(mixture.mean[0])),
        deviation=float(fit.scale.scale * mixture.variance[0] ** 0.5),
        feasible=feasible,
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


def worth(
    fit: Model,
    surrogate: Parabola,
    settings: Settings,
    rng: np.random.Generator,
    minima: Array | None = None,
    **facts: Any,
) -> Worth:
    """The settings' acquisition function of the fit, by its surrogate or a part of it."""
    chosen = acquisition(
        settings.acquisition,
        entropy=settings.entropy,
        per_theta=surrogate.etas,
        best=fit.best,
        eta=surrogate.eta,
        floor=surrogate.floor,
        beta=settings.beta,
        moments=settings.rung,
        minimum=minima,
        noise=np.repeat(surrogate.noise_variance, surrogate.etas),
        rng=rng,
        **facts,
    )
    blur = indistinct(fit, settings) if settings.acquisition == "fitbo" else 0.0
    return Worth(surrogate, chosen, blur, noise=settings.acquisition == "fitbo-paper")


def indistinct(fit: Model, settings: Settings) -> float:
    """The variance below which differences between samples are not worth an evaluation.

    The information gain counts any disagreement, and samples disagree by factors about tiny
    variances next to the data and about the noise itself: it would be largest where nothing can be
    learnt about the minimum. So every sample is given the same noise, their mean, and details finer
    than ``resolution`` times the typical gap y_min - eta are blurred.
    """
    gap = float(np.median(fit.lowest - fit.surrogate.eta))
    return float(fit.surrogate.noise_variance.mean()) + (settings.resolution * gap) ** 2


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
