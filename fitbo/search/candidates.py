"""The points that can be evaluated: which to scan, which are left.

Symbols are those of ``fitbo.search.mixed``, which climbs from here. A point that can be evaluated
is a *snapped* one that satisfies the constraints.

**If almost nothing is feasible**, up to ``MOST_DRAWS`` Sobol points are tried, then clouds of
shrinking width about the feasible points that are known, including the taken ones, then a search
that lowers the violation of the constraints (``fitbo.search.hidden``), by which a share of 1e-6 and
less is found. If none is found at all, the space is refused with an error. A finite space of up to
``space.ENUMERABLE`` points is listed instead.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from fitbo.mixture import Array
from fitbo.search.hidden import hidden_points
from fitbo.space import DESIGNS, ENUMERABLE, Categorical, Exhausted, Space

SCALES = np.array([0.2, 0.05, 0.01, 0.002])  # standard deviations of the clouds about incumbents
MOST_DRAWS = 1 << 15
FALLBACK_DRAWS = 1024  # uniform points of a cube tried when every point found is taken
ENOUGH = 1 / 8  # share of the candidates wanted that must be feasible before more are drawn
DISTURBED = 0.2  # probability that a cloud's point differs from its incumbent in a choice
SAME = 1e-9  # points of the cube closer than this in every coordinate are one

Allowed = Callable[[Array], np.ndarray]


def untaken(space: Space, U: Array, taken: Array, tolerance: float) -> np.ndarray:
    """Which of U (n, dim) differ from all of ``taken``, (n,).

    By more than ``tolerance`` in a coordinate; the points of a finite space differ or do not.
    """
    exact = 0.5 * space.spacing if np.isfinite(space.size) else tolerance
    if not np.isfinite(exact):  # the space has one point
        return np.full(len(U), len(taken) == 0)
    return distances(U, taken) > exact if len(U) else np.ones(0, dtype=bool)


def exhausted(space: Space, taken: Array) -> bool:
    """Whether a finite space is known to have no point that is not taken."""
    if space.size > ENUMERABLE or len(taken) < len(space.points):
        return False
    return not untaken(space, space.points, taken, SAME).any()


def nothing_left(space: Space, taken: Array) -> Exception:
    """The end of a finite space, or the error of constraints that nothing satisfies."""
    if space.size <= ENUMERABLE and len(space.points):
        return Exhausted(
            f"the space is exhausted: each of its {len(space.points)} points has been asked for"
        )
    if space.size <= ENUMERABLE:
        return ValueError(f"none of the {space.size} points of the space satisfies the constraints")
    if np.isfinite(space.size) and len(taken):
        return Exhausted(
            f"the space seems exhausted: in {MOST_DRAWS} draws no point was found that satisfies "
            f"the constraints and has not been asked for"
        )
    if space.plain:
        return ValueError(f"the {len(taken)} points to avoid fill the cube: lower the tolerance")
    return ValueError(
        f"no point that satisfies the constraints was found, neither among {MOST_DRAWS} draws nor "
        f"by a search that lowers their violation: widen them, or write an equality as one "
        f"parameter less"
    )


class Inside:
    """The points that may be evaluated: of the space, and allowed."""

    def __init__(self, space: Space, allowed: Allowed | None = None) -> None:
        self.space, self.allowed = space, allowed
        self.cube = space.plain and allowed is None

    def __call__(self, U: Array) -> np.ndarray:
        good = self.space.feasible(U) & (self.space.settle(U) == U).all(1)
        if self.allowed is not None and good.any():
            good[good] = self.allowed(U[good])
        return good

    def kept(self, U: Array) -> Array:
        """The points snapped, without repetitions, that may be evaluated."""
        U = self.space.snap(U)
        return distinct(U[self(U)])


def draw_candidates(
    inside: Inside, good: Array, taken: Array, n: int, rng: np.random.Generator
) -> Array:
    """Points to scan: n Sobol points, and clouds about the good ones; or all of a small space."""
    space = inside.space
    if inside.cube:
        drawn = DESIGNS["sobol"](1 << (n - 1).bit_length(), space.dim, rng)
        centres, steps = _scattered(good, n // 2, rng)
        # Clipped and not reflected: the best point of a cube is often on a face.
        return np.concatenate([drawn, good, np.clip(centres + steps, 0.0, 1.0)])
    if space.size <= 2 * n:
        return rescue(inside, good, taken, 2 * n, SAME, rng)
    drawn = _sobol(inside, n, rng)
    if not len(drawn) and space.constraints:
        drawn = inside.kept(hidden_points(space, inside, good, rng))
    clouds = inside.kept(clouds_about(space, good, n // 2, rng))
    parts = [drawn, good[inside(good)], clouds, inside.kept(neighbours(space, good)[0])]
    found = distinct(np.concatenate(parts))
    if np.isfinite(space.size):
        found = found[untaken(space, found, taken, SAME)]
    return found if len(found) else rescue(inside, good, taken, n, SAME, rng)


def rescue(
    inside: Inside, good: Array, taken: Array, n: int, tolerance: float, rng: np.random.Generator
) -> Array:
    """Up to n points inside that are not taken, from wherever they can be found."""
    space = inside.space
    if inside.cube:
        found = rng.random((FALLBACK_DRAWS, space.dim))
        return found[untaken(space, found, taken, tolerance)]
    if space.size <= ENUMERABLE:
        found = space.points
    else:
        known = np.concatenate([good, taken])
        clouds = clouds_about(space, known[space.feasible(known)], 8 * n, rng)
        found = inside.kept(np.concatenate([_placed(space, n, rng), clouds]))
        if space.constraints and not untaken(space, found, taken, tolerance).any():
            found = inside.kept(hidden_points(space, inside, known, rng))
    found = found[untaken(space, found, taken, tolerance)]
    found = found[inside(found)]
    return found[rng.permutation(len(found))[:n]]


def clouds_about(space: Space, centres: Array, n: int, rng: np.random.Generator) -> Array:
    """n points about the centres, at every scale, some of their choices changed, (n, dim)."""
    if not len(centres):
        return np.empty((0, space.dim))
    U, noise = _scattered(centres, n, rng)
    changed = rng.random((n, len(space.parameters))) < DISTURBED
    other = _placed(space, n, rng)
    U = np.where(space.awake(U), U, other)  # what a change of choices may bring into being
    for j, (p, c) in enumerate(zip(space.parameters, space.columns_of, strict=True)):
        if isinstance(p, Categorical):
            U[:, c] = np.where(changed[:, j, None], other[:, c], U[:, c])
        else:
            # A cloud finer than an integer's step would never change it.
            step = 0.0 if p.continuous else p.spacing * rng.standard_normal((n, 1))
            U[:, c] = np.clip(U[:, c] + noise[:, c] + changed[:, j, None] * step, 0.0, 1.0)
    return U


def neighbours(space: Space, U: Array) -> tuple[Array, np.ndarray]:
    """Points that differ from a row of U in one integer or choice (N, dim), and which row (N,)."""
    parts, rows = [np.empty((0, space.dim))], [np.empty(0, dtype=np.intp)]
    for p, c in zip(space.parameters, space.columns_of, strict=True):
        if not p.continuous:
            codes = p.neighbours(U[:, c])
            rows.append(np.repeat(np.arange(len(U)), codes.shape[1]))
            parts.append(U[rows[-1]])
            parts[-1][:, c] = codes.reshape(-1, p.width)
    points, owner = space.settle(np.concatenate(parts)), np.concatenate(rows)
    other = (points != U[owner]).any(1)
    return points[other], owner[other]


def distinct(U: Array) -> Array:
    """The rows of U without repetitions, in their order."""
    return U[np.sort(np.unique(U, axis=0, return_index=True)[1])] if len(U) else U


def distances(X: Array, taken: Array) -> Array:
    """Each point's distance to the nearest of ``taken``, largest coordinate, (N, d) -> (N,)."""
    if len(taken) == 0:
        return np.full(len(X), np.inf)
    from scipy.spatial import cKDTree

    return np.asarray(cKDTree(taken).query(X, p=np.inf)[0], dtype=np.float64)


def cube_points(name: str, points: ArrayLike | None, dim: int) -> Array:
    """Points of the cube as an array (n, dim), none if None."""
    X = np.empty((0, dim)) if points is None else np.array(points, dtype=np.float64)
    if X.ndim != 2 or X.shape[1] != dim:
        raise ValueError(f"{name} must have shape (n, {dim}), got shape {X.shape}")
    if not ((X >= 0) & (X <= 1)).all():
        raise ValueError(f"{name} must lie in the unit cube, got {X.min()} to {X.max()}")
    return X


def _sobol(inside: Inside, n: int, rng: np.random.Generator) -> Array:
    """Points inside from a Sobol sequence, which goes on until they are a share of n."""
    from scipy.stats import qmc  # half a second to import

    sobol = qmc.Sobol(len(inside.space.parameters), scramble=True, rng=rng)
    found, drawn = np.empty((0, inside.space.dim)), 0
    while len(found) < ENOUGH * n and drawn < MOST_DRAWS:
        V = sobol.random_base2((n - 1).bit_length()) if drawn == 0 else sobol.random(drawn)
        drawn += len(V)
        found = np.concatenate([found, inside.kept(inside.space.place(V))])
    return found[:n]


def _placed(space: Space, n: int, rng: np.random.Generator) -> Array:
    """n uniform points, (n, dim)."""
    return space.place(rng.random((n, len(space.parameters))))


def _scattered(centres: Array, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """The centres in turn, n of them or none, and Gaussian steps of every scale, (n, dim) each."""
    which = np.arange(n if len(centres) else 0)
    U = centres[which % max(1, len(centres))]
    scales = SCALES[which // max(1, len(centres)) % len(SCALES), None]
    return U, scales * rng.standard_normal(U.shape)
