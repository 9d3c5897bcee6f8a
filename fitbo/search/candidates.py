"""Points that can be evaluated, in a space that is not a full cube, and which of them are left.

Symbols are those of ``fitbo.search.mixed``, which climbs from here.

**When almost nothing is feasible**: up to ``MOST_DRAWS`` Sobol points are tried; then clouds of
shrinking width about whatever feasible points are known, at worst the taken ones. If not one was
ever found the space is refused with an error, for a constraint that no draw in thirty thousand
satisfies (an equality of reals, say) has to be written as a parameter less. In a finite space of
up to ``space.ENUMERABLE`` points nothing is left to chance: all are listed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fitbo.mixture import Array
from fitbo.search.climb import SCALES, ValueAndGrad, distances
from fitbo.space import ENUMERABLE, Categorical, Exhausted, Real, Space

MOST_DRAWS = 1 << 15
ENOUGH = 1 / 8  # share of the candidates wanted that must be feasible before more are drawn
DISTURBED = 0.2  # chance that a choice of a cloud's point is another than its incumbent's
SAME = 1e-9  # points of the cube closer than this in every coordinate are one

Allowed = Callable[[Array], np.ndarray]


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


class Inside:
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


def draw_candidates(
    inside: Inside, good: Array, taken: Array, n: int, rng: np.random.Generator
) -> Array:
    """Points to scan: n Sobol points, and clouds about the good ones; or all of a small space."""
    space = inside.space
    if space.size <= 2 * n:
        every = space.points[untaken(space, space.points, taken, 0.0)]
        every = every[inside(every)] if len(every) else every
        return every[rng.permutation(len(every))]
    drawn = _sobol(inside, n, rng)
    parts = [drawn, good[inside(good)], inside.kept(clouds_about(space, good, n // 2, rng))]
    if len(good):
        parts.append(inside.kept(neighbours(space, good)[0]))
    found = distinct(np.concatenate(parts))
    if np.isfinite(space.size):
        found = found[untaken(space, found, taken, 0.0)]
    if not len(found):
        return rescue(inside, good, taken, n, SAME, rng, strict=False)
    return found


def _sobol(inside: Inside, n: int, rng: np.random.Generator) -> Array:
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


def clouds_about(space: Space, centres: Array, n: int, rng: np.random.Generator) -> Array:
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


def neighbours(space: Space, U: Array) -> tuple[Array, np.ndarray]:
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


def rescue(
    inside: Inside,
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
        clouds = [clouds_about(space, known, 8 * n, rng)] if len(known) else []
        found = inside.kept(
            np.concatenate([space.place(rng.random((n, len(space.names)))), *clouds])
        )
    found = found[untaken(space, found, taken, tolerance)]
    found = found[inside(found)] if len(found) else found
    if strict and not len(found):
        raise nothing_left(space, taken)
    return found[rng.permutation(len(found))[:n]]
