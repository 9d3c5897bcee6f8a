"""Where an initial design lies and an acquisition is largest, in a space that is not a full cube.

=============  ==============  =============================================================
symbol         shape           meaning
=============  ==============  =============================================================
``dim``        int             coordinates of the cube; a category has one a choice
``U``          (n, dim)        points of the cube
``taken``      (k, dim)        points evaluated, failed or pending
=============  ==============  =============================================================

A point that can be evaluated is a *snapped* one that satisfies the constraints. Every candidate is
such a point (``fitbo.search.candidates``), and so is every step of a climb:

- **Scan**: Sobol points, one coordinate a parameter, placed on values; and clouds about the
  incumbents, with their integers and choices disturbed. A small finite space is listed instead.
- **Climb**, alternately: the real coordinates by projected L-BFGS with the others held
  (``climb``), the integers and choices by the best of their neighbours. All starts move
  together, and all points seen compete in the end, so the neighbours of an optimum that is taken
  already are not lost.
- A constraint is known only as true or false, so there is no projection on it. A step that leaves
  the feasible set counts as -inf: the line search shortens it, and the climb ends short of the
  wall. Along the wall it goes on by small random steps about each start.

A space that is a full cube is handed to ``maximise`` as it is.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from fitbo.mixture import Array
from fitbo.search.candidates import (
    MOST_DRAWS,
    SAME,
    Allowed,
    Inside,
    distinct,
    draw_candidates,
    neighbours,
    nothing_left,
    rescue,
    untaken,
)
from fitbo.search.climb import (
    Counted,
    Maximum,
    Value,
    ValueAndGrad,
    apart,
    ascend,
    cube_points,
    maximise,
)
from fitbo.space import DESIGNS, ENUMERABLE, Space

NEIGHBOURS_KEPT = 3  # of each start's neighbours, by the screen, that get a true value
ALTERNATIONS = 3  # climbs of the real coordinates, the later ones half as long
MIXED_STEPS, DISCRETE_STEPS = 8, 40  # of the integers and choices, between two climbs or alone
WALL_STEPS, WALL_SCALES = 12, np.array([0.05, 0.01, 0.002])


def search(
    value: Value,
    value_and_grad: ValueAndGrad | None,
    space: Space,
    rng: np.random.Generator,
    *,
    screen: Value | None = None,
    incumbents: ArrayLike | None = None,
    avoid: ArrayLike | None = None,
    allowed: Allowed | None = None,
    n_candidates: int = 512,
    n_screened: int = 48,
    n_starts: int = 8,
    max_rounds: int = 100,
    tolerance: float = 1e-6,
) -> Maximum:
    """The best point found that can be evaluated and is none of ``avoid``.

    As ``maximise``, whose arguments these are, for any space. ``allowed`` (n, dim) -> (n,) is one
    more constraint, that gives way when nothing satisfies it.
    """
    if space.plain and allowed is None:
        return maximise(
            value,
            value_and_grad,
            space.dim,
            rng,
            screen=screen,
            incumbents=incumbents,
            avoid=avoid,
            n_candidates=n_candidates,
            n_screened=n_screened,
            n_starts=n_starts,
            max_rounds=max_rounds,
            tolerance=tolerance,
        )
    good = cube_points("incumbents", incumbents, space.dim)
    taken = cube_points("avoid", avoid, space.dim)
    inside = Inside(space, allowed)
    candidates = draw_candidates(inside, good, taken, n_candidates, rng)
    if not len(candidates) and allowed is not None:
        inside = Inside(space, None)
        candidates = draw_candidates(inside, good, taken, n_candidates, rng)
    if not len(candidates):
        raise nothing_left(space, taken)

    function = Counted(value, None)
    climbed = Counted(value, inside.climbing(value_and_grad or function.value_and_grad))
    rough = None if screen is None else Counted(screen, None).value
    if rough is not None:
        candidates = candidates[np.argsort(-rough(candidates), kind="stable")[:n_screened]]
    pool, values = [candidates], [function.value(candidates)]
    starts = apart(candidates, values[0], n_starts)
    tops, heights = candidates[starts], values[0][starts]
    moving, real = np.arange(len(tops)), space.continuous.any()
    for turn in range(ALTERNATIONS if real else 1):
        if real:
            rounds = max_rounds if turn == 0 else (max_rounds + 1) // 2
            tops[moving], heights[moving] = ascend(climbed, tops[moving], rounds, tolerance)
            pool.append(tops[moving])
            values.append(heights[moving])
        reached, stepping = heights.copy(), moving
        for _ in range(MIXED_STEPS if real else DISCRETE_STEPS):
            before = heights.copy()
            seen = _step(inside, function, rough, tops, heights, stepping, rng)
            pool.append(seen[0])
            values.append(seen[1])
            stepping = stepping[heights[stepping] > before[stepping]]
            if not len(stepping):
                break
        # A start whose integers and choices stayed is where a climb would leave it again.
        moving = moving[heights[moving] > reached[moving]]
        if not len(moving):
            break

    points, worth = np.concatenate(pool), np.concatenate(values)
    free = untaken(space, points, taken, tolerance)
    if not free.any():
        points = rescue(inside, good, taken, n_candidates, tolerance, rng)
        worth, free = function.value(points), np.ones(len(points), dtype=bool)
    best = int(np.argmax(np.where(free, worth, -np.inf)))
    if not free[best]:  # every value that is free is -inf
        best = int(np.argmax(free))
    evaluations = function.evaluations + (climbed.evaluations if value_and_grad else 0)
    return Maximum(points[best].copy(), float(worth[best]), evaluations)


def first_points(
    space: Space, design: str, n: int, index: int, taken: Array, seed: list[int]
) -> Array:
    """The point of a design of n that comes at ``index``, or the next that is not taken, (dim,).

    Constraints and integers thin a design out, so it is drawn larger until n points are left.
    """
    want = size = max(n, index + 1)
    if space.size <= ENUMERABLE:
        want = min(want, len(space.points))
    while True:
        pool = DESIGNS[design](size, len(space.parameters), np.random.default_rng(seed))
        if not space.plain:
            pool = space.place(pool)
            pool = distinct(pool[space.feasible(pool)])
        enough = space.plain or len(pool) >= want or size >= MOST_DRAWS
        order = [*range(min(index, len(pool)), len(pool)), *range(min(index, len(pool)))]
        free = untaken(space, pool[order], taken, SAME)
        if enough and free.any():
            return pool[order][int(np.argmax(free))]
        if enough and size >= MOST_DRAWS:
            break
        size *= 2
    rng = np.random.default_rng([*seed, len(taken)])
    left = rescue(Inside(space, None), pool, taken, MOST_DRAWS, SAME, rng)
    return left[rng.integers(len(left))]


def _step(
    inside: Inside,
    function: Counted,
    rough: Value | None,
    tops: Array,
    heights: Array,
    moving: np.ndarray,
    rng: np.random.Generator,
) -> tuple[Array, Array]:
    """Move these starts, in place, to the best of their neighbours, if that is better.

    All points evaluated, (N, dim), and their values, (N,).
    """
    points, owner = neighbours(inside.space, tops[moving])
    walled = inside.space.constraints or inside.allowed is not None
    if walled and inside.space.continuous.any():
        along = np.repeat(np.arange(len(moving)), WALL_STEPS)
        scales = WALL_SCALES[np.arange(len(along)) % len(WALL_SCALES), None]
        noise = scales * rng.standard_normal((len(along), inside.space.dim))
        moved = np.clip(tops[moving[along]] + noise * inside.space.continuous, 0.0, 1.0)
        points, owner = np.concatenate([points, moved]), np.concatenate([owner, along])
    keep = inside(points)
    points, owner = points[keep], owner[keep]
    if rough is not None and len(points):
        order = np.argsort(-rough(points), kind="stable")
        points, owner = points[order], owner[order]
        rank = np.array([np.count_nonzero(owner[:i] == row) for i, row in enumerate(owner)])
        points, owner = points[rank < NEIGHBOURS_KEPT], owner[rank < NEIGHBOURS_KEPT]
    if not len(points):
        return points, np.empty(0)
    values = function.value(points)
    for i in np.argsort(values, kind="stable"):  # the best comes last, and stays
        row = moving[owner[i]]
        if values[i] > heights[row]:
            tops[row], heights[row] = points[i], values[i]
    return points, values
