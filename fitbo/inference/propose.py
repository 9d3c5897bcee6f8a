"""From the posterior to the point to evaluate next.

alpha  = lambda U: information_gain(surrogate.predict(U), entropy)
x_next = maximise(alpha, space, rng).x
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from fitbo.acquisition.baselines import acquisition, needs
from fitbo.acquisition.feasibility import Chance, reference_of
from fitbo.acquisition.knowledge import KnowledgeGradient
from fitbo.inference.best import (
    Clock,
    Worth,
    best_point,
    incumbents,
    lowest_mean,
    most_feasible,
    thinned,
)
from fitbo.inference.fit import M, Model
from fitbo.inference.minimum import draw_minima
from fitbo.inference.region import Region
from fitbo.inference.settings import Settings
from fitbo.mixture import Array, quantile
from fitbo.search.candidates import Allowed
from fitbo.search.mixed import Maximum
from fitbo.space import Differentiable, Space
from fitbo.surrogate import Parabola
from fitbo.surrogate.conditioned import knowing
from fitbo.surrogate.links import link

# Max-value entropy search about eta, and the first rung of the remaining regret's ladder.
WITHOUT_PATHS = {"mes": "mes-eta", "remaining": "logei"}
MINIMA_CANDIDATES = 128
SILENT, DOUBT = 1e-3, 0.1  # standard deviation of noise, on standardised y, that is none; share of
# the samples that may find no more
CANDIDATES_WITH_NOISE = 256  # each is compared with all places: slower, and less depends on it
PLACES = 20  # minima of draws among those that may be recommended
PATHS = 4  # of each sample, where more of the law of f* is needed than a draw
SCREENING_NODES = 8  # of the quadratures of an acquisition about the minimum
ACCURACY = 1e-6  # of a proposal, in each coordinate of the cube or the region


def propose(
    fit: Model,
    settings: Settings,
    avoid: Array,
    rng: np.random.Generator,
    space: Space,
    success: Chance | None = None,
    region: Region | None = None,
    allowed: Allowed | None = None,
) -> tuple[Maximum, float]:
    """The point of largest acquisition value, none of ``avoid``, and the seconds spent in it.

    ``success`` is the probability that an evaluation does not fail, if some have failed, and that
    the outcome constraints hold; while no point is known where they do, it alone decides.
    ``allowed`` is where the point may be, if anything there is left.
    """
    if fit.feasible is not None and not fit.feasible.any():
        return most_feasible(fit, success, space, rng, avoid=avoid, tolerance=ACCURACY), 0.0
    if region is None and by_knowledge(fit, settings, space):
        gain = knowledge(fit, rng, space, success)
        options: Any = {"screened": False, "avoid": avoid, "tolerance": ACCURACY}
        options["allowed"] = allowed
        options["n_candidates"] = CANDIDATES_WITH_NOISE
        return best_point(fit, lambda _: gain, space, rng, success, None, **options), 0.0
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
        allowed=allowed,
    )
    return found, clock.seconds


def by_knowledge(fit: Model, settings: Settings, space: Space) -> bool:
    """Whether the regret that remains is that of the recommendation: in reals, if there is noise.

    Of noise that is inferred the samples must be sure: where some find next to none, values are
    taken as they are.
    """
    reals = bool(space.continuous.all()) and fit.feasible is None
    exact = fit.has_paths and fit.surrogate.floor is not None
    if not (settings.weighs_knowledge and reals and exact):
        return False
    surrogate = fit.surrogate
    return bool(quantile(surrogate.noise_variance, DOUBT, surrogate.weights) > SILENT**2)


def shown(fit: Model, settings: Settings, rng: np.random.Generator, space: Space) -> Differentiable:
    """The acquisition function by which a point of the whole space is chosen, for a picture."""
    if by_knowledge(fit, settings, space):
        return knowledge(fit, rng, space)
    fit, settings, surrogate, minima = informed(fit, settings, rng, space)
    return worth(fit, surrogate, settings, rng, minima)


def knowledge(
    fit: Model, rng: np.random.Generator, space: Space, success: Chance | None = None
) -> KnowledgeGradient:
    """By how much a value lowers the mean of what is then recommended.

    What may be recommended then is where the mean is lowest now, where draws of the function have
    their minima, and the few best points told; with failures, of these what is acceptable. All by
    the same part of the samples: else a place where theirs is lower would look like a gain.
    """
    some, top = thinned(fit), incumbents(fit)
    drawn = draw_minima(some[::2], space, top, rng, n_candidates=MINIMA_CANDIDATES).x
    places = np.concatenate([top, rng.permutation(drawn)[:PLACES]])
    if success is not None:
        places = places[success.acceptable(places)]
    lowest = lowest_mean(replace(fit, surrogate=some), space, rng, success).x[None]
    return KnowledgeGradient(link(some, np.concatenate([lowest, places])))  # type: ignore[arg-type]


def informed(
    fit: M, settings: Settings, rng: np.random.Generator, space: Space, region: Region | None = None
) -> tuple[M, Settings, Parabola, Array | None]:
    """What an acquisition function is made of: model, settings, surrogate and draws of f*, if any.

    Those about the minimum are by a part of the samples. Without paths, which GPy's surrogate does
    not have, some have another in their place, as has the first rung, which needs none, and is all
    that there is of the ladder where f is taken for a Gaussian.
    """
    name = settings.acquisition
    first_rung = settings.rung == 1 or fit.surrogate.floor is None  # of a Gaussian f
    if not fit.has_paths or (name == "remaining" and first_rung):
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
        best=surrogate.target(fit.best),
        eta=surrogate.eta,
        floor=surrogate.floor,
        beta=settings.beta,
        moments=settings.rung,
        minimum=minima,
        noise=np.repeat(surrogate.noise_variance, surrogate.etas),
        weights=surrogate.sample_weights,
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
    surrogate = fit.surrogate
    gap = float(quantile(fit.lowest - surrogate.eta, 0.5, surrogate.sample_weights))
    noise = float(np.average(surrogate.noise_variance, weights=surrogate.weights))
    return noise + (settings.resolution * gap) ** 2
