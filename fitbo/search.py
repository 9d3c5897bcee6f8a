"""Where an initial design lies and an acquisition is largest, in a space that is not a full cube.

=============  ==============  =============================================================
symbol         shape           meaning
=============  ==============  =============================================================
``dim``        int             coordinates of the cube; a category has one a choice
``U``          (n, dim)        points of the cube
``taken``      (k, dim)        points evaluated, failed or pending
=============  ==============  =============================================================

A point that can be evaluated is a *snapped* one that satisfies the constraints. Every candidate is
such a point, and so is every step of a climb:

- **Scan**: Sobol points, one coordinate a parameter, placed on values; and clouds about the
  incumbents, with their integers and choices disturbed. A small finite space is listed instead.
- **Climb**, alternately: the real coordinates by projected L-BFGS with the others held
  (``fitbo.maximise``), the integers and choices by the best of their neighbours. All starts move
  together, and all points seen compete in the end, so the neighbours of an optimum that is taken
  already are not lost.
- A constraint is known only as true or false, so there is no projection on it. A step that leaves
  the feasible set counts as -inf: the line search shortens it, and the climb ends short of the
  wall. Along the wall it goes on by small random steps about each start.

**When almost nothing is feasible**: up to ``MOST_DRAWS`` Sobol points are tried; then clouds of
shrinking width about whatever feasible points are known, at worst the taken ones. If not one was
ever found the space is refused with an error, for a constraint that no draw in thirty thousand
satisfies (an equality of reals, say) has to be written as a parameter less. In a finite space of
up to ``space.ENUMERABLE`` points nothing is left to chance: all are listed.

A space that is a full cube is handed to ``maximise`` as it is.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from fitbo.design import DESIGNS
from fitbo.maximise import (
    SCALES,
    Counted,
    Maximum,
    Value,
    ValueAndGrad,
    apart,
    ascend,
    cube_points,
    distances,
    maximise,
)
from fitbo.mixture import Array
from fitbo.space import ENUMERABLE, Categorical, Exhausted, Real, Space

MOST_DRAWS = 1 << 15
ENOUGH = 1 / 8  # share of the candidates wanted that must be feasible before more are drawn
DISTURBED = 0.2  # chance that a choice of a cloud's point is another than its incumbent's
NEIGHBOURS_KEPT = 3  # of each start's neighbours, by the screen, that get a true value
ALTERNATIONS = 3  # climbs of the real coordinates, the later ones half as long
MIXED_STEPS, DISCRETE_STEPS = 8, 40  # of the integers and choices, between two climbs or alone
WALL_STEPS, WALL_SCALES = 12, np.array([0.05, 0.01, 0.002])
SAME = 1e-9  # points of the cube closer than this in every coordinate are one

Allowed = Callable[[Array], np.ndarray]


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
    inside = _Inside(space, allowed)
    candidates = _candidates(inside, good, taken, n_candidates, rng)
    if not len(candidates) and allowed is not None:
        inside = _Inside(space, None)
        candidates = _candidates(inside, good, taken, n_candidates, rng)
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
        points = _rescue(inside, good, taken, n_candidates, tolerance, rng)
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
    left = _rescue(_Inside(space, None), pool, taken, MOST_DRAWS, SAME, rng)
    return left[rng.integers(len(left))]


def untaken(space: Space, U: Array, taken: Array, tolerance: float) -> np.ndarray:
    """Which of U (n, dim) are none of ``taken``, (n,).

    In a finite space a point is itself or another; elsewhere ``tolerance`` apart counts as another.
    """
    exact = 0.5 * space.spacing if np.isfinite(space.size) else tolerance
    if not np.isfinite(exact):  # one point alone
        return np.full(len(U), len(taken) == 0)
    return distances(U, taken) > exact if len(U) else np.ones(0, dtype=bool)


def exhausted(space: Space, taken: Array) -> bool:
    """Whether a finite space is known to have no point that is not taken."""
    if space.size > ENUMERABLE or len(taken) < len(space.points):
        return bool(space.size <= ENUMERABLE and not len(space.points))
    return not untaken(space, space.points, taken, 0.0).any()


def nothing_left(space: Space, taken: Array) -> Exception:
    """The end of a finite space, or the error of constraints that nothing satisfies."""
    if np.isfinite(space.size) and (len(taken) or space.size <= ENUMERABLE):
        if space.size <= ENUMERABLE and not len(space.points):
            return ValueError(
                f"none of the {space.size} points of the space satisfies the constraints"
            )
        if space.size <= ENUMERABLE:
            return Exhausted(
                f"the space is exhausted: each of its {len(space.points)} points has been asked for"
            )
        return Exhausted(
            f"the space seems exhausted: in {MOST_DRAWS} draws no point was found that satisfies "
            f"the constraints and has not been asked for"
        )
    return ValueError(
        f"no point that satisfies the constraints was found among {MOST_DRAWS} draws: widen them, "
        f"or write an equality as one parameter less"
    )


def distinct(U: Array) -> Array:
    """The rows of U without repetitions, in their order."""
    if not len(U):
        return U
    return U[np.sort(np.unique(U, axis=0, return_index=True)[1])]


class _Inside:
    """The points that may be evaluated: of the space, and allowed."""

    def __init__(self, space: Space, allowed: Allowed | None) -> None:
        self.space, self.allowed = space, allowed

    def __call__(self, U: Array) -> np.ndarray:
        good = self.space.feasible(U)
        if self.allowed is not None and good.any():
            good[good] = self.allowed(U[good])
        return good

    def kept(self, U: Array) -> Array:
        """Snapped, distinct, inside."""
        U = self.space.snap(U)
        return distinct(U[self(U)])

    def climbing(self, value_and_grad: ValueAndGrad) -> ValueAndGrad:
        """The function as a climb of the real coordinates sees it: -inf outside."""

        def inside(U: Array) -> tuple[Array, Array]:
            value, gradient = value_and_grad(U)
            return np.where(self(U), value, -np.inf), gradient * self.space.continuous

        return inside


def _candidates(
    inside: _Inside, good: Array, taken: Array, n: int, rng: np.random.Generator
) -> Array:
    space = inside.space
    if space.size <= 2 * n:
        every = space.points[untaken(space, space.points, taken, 0.0)]
        every = every[inside(every)] if len(every) else every
        return every[rng.permutation(len(every))]
    drawn = _draw(inside, n, rng)
    parts = [drawn, good[inside(good)], inside.kept(_clouds(space, good, n // 2, rng))]
    if len(good):
        parts.append(inside.kept(_neighbours(space, good)[0]))
    found = distinct(np.concatenate(parts))
    if np.isfinite(space.size):
        found = found[untaken(space, found, taken, 0.0)]
    if not len(found):
        return _rescue(inside, good, taken, n, SAME, rng, strict=False)
    return found


def _draw(inside: _Inside, n: int, rng: np.random.Generator) -> Array:
    """Points inside from a Sobol sequence, as long as it takes to have a share of n."""
    from scipy.stats import qmc  # half a second to import

    sobol = qmc.Sobol(len(inside.space.parameters), scramble=True, rng=rng)
    exponent = max(0, (n - 1).bit_length())
    found, drawn = np.empty((0, inside.space.dim)), 0
    while len(found) < ENOUGH * n and drawn < MOST_DRAWS:
        V = sobol.random_base2(exponent) if drawn == 0 else sobol.random(drawn)
        drawn += len(V)
        found = np.concatenate([found, inside.kept(inside.space.place(V))])
    return found[:n]


def _clouds(space: Space, centres: Array, n: int, rng: np.random.Generator) -> Array:
    """n points about the centres, at every scale, some of their choices changed, (n, dim)."""
    if not len(centres):
        return np.empty((0, space.dim))
    which = np.arange(n)
    U = centres[which % len(centres)].copy()
    scale = SCALES[which // len(centres) % len(SCALES), None]
    noise = scale * rng.standard_normal(U.shape)
    changed = rng.random((n, len(space.parameters))) < DISTURBED
    other = space.place(rng.random((n, len(space.parameters))))
    for j, (p, c) in enumerate(zip(space.parameters, space.columns_of, strict=True)):
        if isinstance(p, Categorical):
            U[:, c] = np.where(changed[:, j, None], other[:, c], U[:, c])
        else:
            # A cloud finer than an integer's step would leave it for ever where it is.
            step = 0.0 if isinstance(p, Real) else p.spacing * rng.standard_normal((n, 1))
            U[:, c] = np.clip(U[:, c] + noise[:, c] + changed[:, j, None] * step, 0.0, 1.0)
    return U


def _neighbours(space: Space, U: Array) -> tuple[Array, np.ndarray]:
    """Points that differ from a row of U in one integer or choice (N, dim), and which row (N,)."""
    parts, rows = [np.empty((0, space.dim))], [np.empty(0, dtype=np.intp)]
    for p, c in zip(space.parameters, space.columns_of, strict=True):
        if isinstance(p, Real):
            continue
        codes = p.neighbours(U[:, c])
        k = codes.shape[1]
        moved = np.repeat(U, k, axis=0)
        moved[:, c] = codes.reshape(len(moved), -1)
        parts.append(moved)
        rows.append(np.repeat(np.arange(len(U)), k))
    points, owner = np.concatenate(parts), np.concatenate(rows)
    other = (points != U[owner]).any(1)
    return points[other], owner[other]


def _step(
    inside: _Inside,
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
    points, owner = _neighbours(inside.space, tops[moving])
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


def _rescue(
    inside: _Inside,
    good: Array,
    taken: Array,
    n: int,
    tolerance: float,
    rng: np.random.Generator,
    strict: bool = True,
) -> Array:
    """Some points inside that are not taken, from wherever they can be had."""
    space = inside.space
    if space.size <= ENUMERABLE:
        found = space.points
    else:
        known = np.concatenate([good, taken])
        known = known[space.feasible(known)]
        clouds = [_clouds(space, known, 8 * n, rng)] if len(known) else []
        found = inside.kept(
            np.concatenate([space.place(rng.random((n, len(space.names)))), *clouds])
        )
    found = found[untaken(space, found, taken, tolerance)]
    found = found[inside(found)] if len(found) else found
    if strict and not len(found):
        raise nothing_left(space, taken)
    return found[rng.permutation(len(found))[:n]]
