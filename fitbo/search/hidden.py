"""Points of a space whose constraints leave next to nothing of the cube.

Where no draw in thirty thousand is feasible, feasible points are sought by what the constraints say
about how far they are from being satisfied (``Space.violations``), and then spread:

    descend   many starts, each of which takes random steps that lower the sum of its violations,
              every constraint in units of its median over the cube; the steps grow with a success
              and shrink with a failure, and an integer or a choice changes now and then
    wander    hit-and-run: from a feasible point along a line, random or through two others, to a
              point drawn from a piece of the line that shrinks towards the start until the draw is
              feasible. Lines through others follow a feasible set that is a thin sheet

A constraint that is a function says only whether it holds, and guides no step.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fitbo.mixture import Array
from fitbo.space import Categorical, Space

DRAWS, STARTS, CHILDREN, ROUNDS = 4096, 64, 8, 120
FIRST, LEAST, GROWTH, SHRINKAGE = 0.2, 1e-8, 1.6, 0.75  # of the steps, in the cube
SEVERAL = 8  # feasible points that are enough to set out from
WALKERS, MOVES, CUTS = 128, 8, 48

Test = Callable[[Array], np.ndarray]


def hidden_points(space: Space, inside: Test, known: Array, rng: np.random.Generator) -> Array:
    """Points inside (n, dim), from those that are known (k, dim) or from nothing; n may be 0."""
    starts = known[inside(known)] if len(known) else known
    if len(starts) < SEVERAL and any(isinstance(each, str) for each in space.constraints):
        found = descend(space, rng)
        starts = np.concatenate([starts, found[inside(found)] if len(found) else found])
    return wander(space, inside, starts, rng) if len(starts) else starts


def descend(space: Space, rng: np.random.Generator) -> Array:
    """Feasible points, (n, dim), at most ``STARTS``; those that were reached first."""
    U = space.place(rng.random((DRAWS, len(space.parameters))))
    raw = space.violations(U)
    units = np.array([_median(column) for column in raw.T])

    def worth(U: Array) -> Array:
        return np.minimum(space.violations(U) / units, 1e9).sum(1)

    best = np.argsort(np.minimum(raw / units, 1e9).sum(1), kind="stable")[:STARTS]
    U, values, scales = U[best], worth(U[best]), np.full(len(best), FIRST)
    for _ in range(ROUNDS):
        moving = np.flatnonzero(values > 0)
        if 2 * len(moving) <= len(U):
            break
        owner = np.repeat(moving, CHILDREN)
        children = _stepped(space, U[owner], scales[owner], rng)
        tried = worth(children).reshape(-1, CHILDREN)
        which = tried.argmin(1)
        better = tried.min(1) < values[moving]
        chosen = np.arange(len(moving)) * CHILDREN + which
        U[moving[better]] = children[chosen[better]]
        values[moving] = np.minimum(values[moving], tried.min(1))
        factor = np.where(better, GROWTH, SHRINKAGE)
        scales[moving] = np.clip(scales[moving] * factor, LEAST, FIRST)
    return U[space.feasible(U)]


def wander(space: Space, inside: Test, starts: Array, rng: np.random.Generator) -> Array:
    """Where hit-and-run from feasible points comes by, and these, (n, dim)."""
    U = starts[np.arange(WALKERS) % len(starts)]
    passed = [starts]
    for _ in range(MOVES if space.continuous.any() else 0):
        through = U[rng.permutation(len(U))] - U[rng.permutation(len(U))]
        along = np.where(rng.random((len(U), 1)) < 0.5, through, rng.standard_normal(U.shape))
        along *= space.continuous
        length = abs(along).max(1, keepdims=True)
        along = np.divide(along, length, out=np.zeros_like(along), where=length > 0)
        low, high, moving = -np.ones(len(U)), np.ones(len(U)), np.flatnonzero(length[:, 0] > 0)
        for _ in range(CUTS):
            t = rng.uniform(low[moving], high[moving])
            tried = space.settle(U[moving] + t[:, None] * along[moving])
            good = np.array(((tried >= 0) & (tried <= 1)).all(1))
            good[good] = inside(tried[good])
            U[moving[good]] = tried[good]
            low[moving] = np.where(t < 0, t, low[moving])
            high[moving] = np.where(t < 0, high[moving], t)
            moving = moving[~good]
            if not len(moving):
                break
        passed.append(U.copy())
    return np.concatenate(passed)


def _stepped(space: Space, U: Array, scales: Array, rng: np.random.Generator) -> Array:
    """A random step of each scale from each point, (n, dim); sometimes in one choice too."""
    other = space.place(rng.random((len(U), len(space.parameters))))
    moved = np.clip(U + scales[:, None] * rng.standard_normal(U.shape), 0.0, 1.0)
    switch = rng.random((len(U), len(space.parameters))) < 1 / (1 + len(space.parameters))
    for j, (p, c) in enumerate(zip(space.parameters, space.columns_of, strict=True)):
        if isinstance(p, Categorical):
            moved[:, c] = np.where(switch[:, j, None], other[:, c], U[:, c])
        elif not p.continuous:  # a step finer than its own would never change it
            step = np.rint(rng.standard_normal((len(U), 1))) * p.spacing
            coarse = np.clip(U[:, c] + step, 0.0, 1.0)
            moved[:, c] = np.where(switch[:, j, None], coarse, moved[:, c])
    # One coordinate alone at times: others may be right already.
    single = rng.random((len(U), 1)) < 0.3
    only = np.arange(U.shape[1]) == rng.integers(U.shape[1], size=len(U))[:, None]
    reals = np.broadcast_to(space.continuous, U.shape)
    moved = np.where(single & reals & ~only, U, moved)
    return space.snap(moved)


def _median(violations: Array) -> float:
    """The median of what is violated, as a unit."""
    positive = violations[(violations > 0) & np.isfinite(violations)]
    return float(np.median(positive)) if len(positive) else 1.0
