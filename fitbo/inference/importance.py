"""Which parameters matter: total-effect indices of the posterior's own functions.

    f_j   the mean of f under hyperparameter sample j, on points uniform in the space
    S_ij  E[Var(f_j | all parameters but i)] / Var(f_j)

is the share of f_j's variance that is left when everything but parameter i is known: what i does by
itself and together with others. The shares add up to one if nothing works together, to more if
parameters do. With independent points A, B and A_i, which is A with parameter i from B [1],

    S_ij = mean_n (f_j(A) - f_j(A_i))^2 / (2 Var f_j(A))

The samples j give an interval: what the data leave open about the shape of f. Points that break a
constraint are left out, on either side of a pair; a parameter matters where it exists only.

[1] Jansen, Analysis of variance designs for model output, Comput. Phys. Commun. 117 (1999) 35-43.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fitbo.inference.fit import Fit
from fitbo.mixture import Array
from fitbo.space import DESIGNS, Space

POINTS = 256
INTERVAL = (0.05, 0.95)


class Importance(NamedTuple):
    """A parameter's total effect: its mean over the samples, and the interval that holds 90%."""

    effect: float
    low: float
    high: float


def importance(
    fit: Fit, space: Space, rng: np.random.Generator, points: int = POINTS
) -> dict[str, Importance]:
    """The total effect of each parameter by its name, the largest first."""
    d = len(space.parameters)
    V = DESIGNS["sobol"](points, 2 * d, rng)
    A, B = (_spread(space, half) for half in (V[:, :d], V[:, d:]))
    weights = fit.surrogate.sample_weights
    at_A = _means(fit, space.settle(A))
    inside = space.feasible(space.settle(A))
    found = {}
    for name, columns in zip(space.names, space.columns_of, strict=True):
        mixed = A.copy()
        mixed[:, columns] = B[:, columns]
        mixed = space.settle(mixed)
        pair = inside & space.feasible(mixed)
        effects = total_effects(at_A[pair], _means(fit, mixed)[pair])
        found[name] = _summary(effects, weights)
    return dict(sorted(found.items(), key=lambda item: -item[1].effect))


def total_effects(f: Array, changed: Array) -> Array:
    """S_ij from f_j at A and at A_i, (n, M) each, -> (M,); zero of a function that is constant.

    A share is at most one, which an estimate of it may exceed by chance.
    """
    if len(f) < 2:
        return np.zeros(f.shape[1])
    variance = f.var(0)
    flat = variance <= 1e-24 * np.square(f).mean(0)
    left = np.square(f - changed).mean(0) / np.where(flat, 1.0, 2 * variance)
    return np.where(flat, 0.0, np.minimum(left, 1.0))


def _spread(space: Space, V: Array) -> Array:
    """(n, number of parameters) uniform in [0, 1] to the cube, (n, dim), whatever exists there."""
    pairs = zip(space.parameters, V.T, strict=True)
    return np.concatenate([p.place(v) for p, v in pairs], axis=1)


def _means(fit: Fit, U: Array) -> Array:
    return np.asarray(fit.surrogate.predict(U).means)


def _summary(effects: Array, weights: Array | None) -> Importance:
    order = np.argsort(effects)
    w = np.full(len(effects), 1 / len(effects)) if weights is None else weights / weights.sum()
    below = np.cumsum(w[order])
    ends = effects[order][np.minimum(np.searchsorted(below, INTERVAL), len(effects) - 1)]
    return Importance(float(w @ effects), float(ends[0]), float(ends[1]))
