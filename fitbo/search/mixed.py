"""Where an acquisition function is largest, and where an initial design lies, in any space.

    dim    int       coordinates of the cube; a category has one per choice
    U      (n, dim)  points of the cube
    taken  (k, dim)  points evaluated, failed or pending

Every candidate is a point that can be evaluated (``fitbo.search.candidates``), and so is every step
of a climb:

- **Scan**: Sobol points, one coordinate per parameter, placed on values; and Gaussian clouds of
  several scales about the incumbents, some of their integers and choices changed. A small finite
  space is listed instead. A cheap ``screen`` may choose the few that are worth a true value.
- **Climb**, alternately: the real coordinates by projected L-BFGS with the others fixed
  (``climb``), the integers and choices by the best of their neighbours. All starts move together,
  and all points seen compete in the end, so the neighbours of a taken optimum are not lost.
- A constraint is known only as true or false, so there is no projection onto it. A step that leaves
  the feasible set counts as -inf: the line search shortens it, and the climb ends short of the
  boundary. Along it the search goes on by small random steps about each start.

In a space that fills the cube the second part of the climb has nothing to do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fitbo.mixture import Array
from fitbo.search.candidates import (
    MOST_DRAWS,
    SAME,
    Allowed,
    Inside,
    cube_points,
    distinct,
    draw_candidates,
    neighbours,
    nothing_left,
    rescue,
    untaken,
)
from fitbo.search.climb import Counted, apart, ascend
from fitbo.space import DESIGNS, ENUMERABLE, Differentiable, Space

NEIGHBOURS_KEPT = 3  # of each start's neighbours, by the screen, that get a true value
ALTERNATIONS = 3  # climbs of the real coordinates, the later ones half as long
MIXED_STEPS, DISCRETE_STEPS = 8, 40  # of the integers and choices, between two climbs or alone
WALL_STEPS, WALL_SCALES = 12, np.array([0.05, 0.01, 0.002])


@dataclass(frozen=True, eq=False)
class Maximum:
    """The point ``x`` (dim,), its ``value``, and the number of points evaluated to find it."""

    x: Array
    value: float
    evaluations: int


def maximise(
    function: Differentiable,
    space: Space,
    rng: np.random.Generator,
    *,
    screen: Callable[[Array], Array] | None = None,
    incumbents: ArrayLike | None = None,
    avoid: ArrayLike | None = None,
    allowed: Allowed | None = None,
    n_candidates: int = 512,
    n_screened: int = 48,
    n_starts: int = 8,
    max_rounds: int = 100,
    tolerance: float = 1e-6,
) -> Maximum:
    """The best point found that can be evaluated and is no closer than ``tolerance`` to ``avoid``.

    What is not finite counts as -inf. ``screen``, a cheap approximation of the function, sees every
    candidate, and the function then only the ``n_screened`` that it ranks highest. ``incumbents``
    (k, dim) are good points, and candidates themselves; ``avoid`` (n, dim) is what has been
    evaluated already; ``allowed`` (n, dim) -> (n,) is one more constraint, dropped when nothing
    satisfies it. ``n_candidates`` Sobol points are scanned and half as many in clouds; the
    ``n_starts`` best and apart climb, until the next step is shorter than ``tolerance`` in every
    coordinate or ``max_rounds`` have passed.
    """
    if min(n_candidates, n_screened) < 1 or min(n_starts, max_rounds) < 0:
        raise ValueError(
            "n_candidates and n_screened must be at least 1, n_starts and max_rounds at least 0, "
            f"got {n_candidates}, {n_screened}, {n_starts} and {max_rounds}"
        )
    if not 0 < tolerance < 0.5:
        raise ValueError(f"tolerance must lie between 0 and 0.5, got {tolerance}")
    good = cube_points("incumbents", incumbents, space.dim)
    taken = cube_points("avoid", avoid, space.dim)
    inside = Inside(space, allowed)
    candidates = draw_candidates(inside, good, taken, n_candidates, rng)
    if not len(candidates) and allowed is not None:
        inside.allowed = None
        candidates = draw_candidates(inside, good, taken, n_candidates, rng)
    if not len(candidates):
        raise nothing_left(space, taken)

    counted = Counted(function, inside)
    rough = None if screen is None else Counted(screen).value
    if rough is not None:
        # A stable order, so that a constant screen leaves the first, random, candidates first.
        candidates = candidates[np.argsort(-rough(candidates), kind="stable")[:n_screened]]
    pool, values = [candidates], [counted.value(candidates)]
    starts = apart(candidates, values[0], n_starts)
    tops, heights = candidates[starts], values[0][starts]
    moving, real = np.arange(len(tops)), space.continuous.any()
    for turn in range(ALTERNATIONS if real else 1):
        if real:
            rounds = max_rounds if turn == 0 else (max_rounds + 1) // 2
            tops[moving], heights[moving] = ascend(counted, tops[moving], rounds, tolerance)
            pool.append(tops[moving])
            values.append(heights[moving])
        reached, stepping = heights.copy(), moving
        for _ in range(MIXED_STEPS if real else DISCRETE_STEPS):
            before = heights.copy()
            points, worth = _step(inside, counted, rough, tops, heights, stepping, rng)
            pool.append(points)
            values.append(worth)
            stepping = stepping[heights[stepping] > before[stepping]]
            if not len(stepping):
                break
        # A start whose integers and choices stayed is where a climb would leave it again.
        moving = moving[heights[moving] > reached[moving]]
        if not len(moving):
            break

    # Candidates first, and the first of equals, so that a constant function yields a random point.
    points, worth = np.concatenate(pool), np.concatenate(values)
    free = untaken(space, points, taken, tolerance)
    if not free.any():
        # All that is feasible may lie within the tolerance of what is taken.
        for least in (tolerance, SAME) if space.constraints else (tolerance,):
            points = rescue(inside, good, taken, n_candidates, least, rng)
            if len(points):
                break
        if not len(points) and inside.allowed is not None:
            inside.allowed = None
            points = rescue(inside, good, taken, n_candidates, tolerance, rng)
        if not len(points):
            raise nothing_left(space, taken)
        worth, free = counted.value(points), np.ones(len(points), dtype=bool)
    best = int(np.argmax(np.where(free, worth, -np.inf)))
    if not free[best]:  # every value that is free is -inf
        best = int(np.argmax(free))
    return Maximum(points[best].copy(), float(worth[best]), counted.evaluations)


def first_points(
    space: Space, design: str, n: int, index: int, taken: Array, seed: list[int]
) -> Array:
    """The point of a design of n at ``index``, or the next one that is not taken, (dim,).

    Constraints and integers leave fewer points, so the design is drawn larger until n are left.
    """
    want = size = max(n, index + 1)
    if space.size <= ENUMERABLE:
        want = min(want, len(space.points))
    while True:
        pool = _designed(space, design, size, seed)
        enough = space.plain or len(pool) >= want or size >= MOST_DRAWS
        ordered = np.concatenate([pool[index:], pool[:index]])
        free = untaken(space, ordered, taken, SAME)
        if enough and free.any():
            return ordered[int(np.argmax(free))]
        if enough and size >= MOST_DRAWS:
            break
        size *= 2
    rng = np.random.default_rng([*seed, len(taken)])
    left = rescue(Inside(space), pool, taken, MOST_DRAWS, SAME, rng)
    if not len(left):
        raise nothing_left(space, taken)
    return left[rng.integers(len(left))]


def further_points(space: Space, n: int, taken: Array, seed: list[int]) -> Array:
    """Of the first n points of a Sobol sequence those feasible and not taken, in order (k, dim)."""
    pool = _designed(space, "sobol", n, seed)
    return pool[untaken(space, pool, taken, SAME)]


def _designed(space: Space, design: str, n: int, seed: list[int]) -> Array:
    """The feasible points of a design of n, (k, dim)."""
    pool = DESIGNS[design](n, len(space.parameters), np.random.default_rng(seed))
    if space.plain:
        return pool
    pool = space.place(pool)
    return distinct(pool[space.feasible(pool)])


def _step(
    inside: Inside,
    counted: Counted,
    rough: Callable[[Array], Array] | None,
    tops: Array,
    heights: Array,
    moving: np.ndarray,
    rng: np.random.Generator,
) -> tuple[Array, Array]:
    """Move these starts, in place, to the best of their neighbours, if that is better.

    Returns all points evaluated, (N, dim), and their values, (N,).
    """
    points, owner = neighbours(inside.space, tops[moving])
    walled = inside.space.constraints or inside.allowed is not None
    if walled and inside.space.continuous.any():
        along = np.repeat(np.arange(len(moving)), WALL_STEPS)
        scales = WALL_SCALES[np.arange(len(along)) % len(WALL_SCALES), None]
        noise = scales * rng.standard_normal((len(along), inside.space.dim))
        moved = np.clip(tops[moving[along]] + noise * inside.space.continuous, 0.0, 1.0)
        moved = inside.space.settle(moved)
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
    values = counted.value(points)
    for i in np.argsort(values, kind="stable"):  # the best comes last, and stays
        row = moving[owner[i]]
        if values[i] > heights[row]:
            tops[row], heights[row] = points[i], values[i]
    return points, values
