"""The minimum of the function: draws of f* and x*, the lowest place of each path.

    P      int     paths, one for each sample of the surrogate
    f      (P,)    f* of each path, on standardised y
    x      (P, d)  where it lies

A path is scanned at Sobol points, at the incumbents and at clouds about them, and climbed down from
its lowest places (``search.climb``, all paths at once). A search can only miss a lower place: the
f* found bounds the path's minimum from above.

f* is not eta. Where f = eta + g^2/2 touches eta, g = 0 and its Hessian grad g grad g^T + g Hess g
has rank one; a smooth isolated minimum in two or more dimensions has full rank, so it lies strictly
above eta, and the likelihood pushes eta away from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fitbo.inference.region import Framed, Region, Within
from fitbo.mixture import Array
from fitbo.search.candidates import Inside, draw_candidates
from fitbo.search.climb import APART, Counted, ascend
from fitbo.space import Space
from fitbo.surrogate import Parabola, Surrogate
from fitbo.surrogate.paths import Paths, draw_paths

CANDIDATES = 256  # Sobol points, and half as many in clouds
STARTS, ROUNDS, TOLERANCE = 2, 30, 1e-7


@dataclass(frozen=True, eq=False)
class Minima:
    """f* (P,), x* (P, d) and g there (P,) of paths, and their weights (P,) or None if equal."""

    f: Array
    x: Array
    g: Array
    weights: Array | None = None


def draw_minima(
    surrogate: Parabola,
    space: Space,
    incumbents: Array,
    rng: np.random.Generator,
    region: Region | None = None,
    n_candidates: int = CANDIDATES,
) -> Minima:
    """The minimum of one path for each sample of the surrogate, over the space or the region.

    ``incumbents`` (k, d) are points of the cube, x* as well.
    """
    if not isinstance(surrogate, Surrogate):
        raise ValueError(
            "the minimum needs draws of the process, which only the surrogate 'batched' has: "
            "leave out 'gpy', or choose an acquisition such as logei"
        )
    paths = draw_paths(surrogate, rng)
    inside = Inside(space)
    function: Any = Descent(paths, STARTS)
    if region is not None:
        function = Within(Framed(function, region.frame), region)
        incumbents = region.inward(incumbents)
    U = draw_candidates(inside, incumbents, np.empty((0, space.dim)), n_candidates, rng)
    values = -function(U)
    at = lowest(U, values, STARTS).ravel()
    x, height = ascend(Counted(function, inside, by_row=True), U[at], ROUNDS, TOLERANCE)
    best = np.argmax(height.reshape(-1, STARTS), axis=1) + STARTS * np.arange(len(values))
    x = x[best] if region is None else region.outward(x[best])
    place = x if region is None else region.frame.inward(x)
    g, _ = paths.latent(place, np.arange(len(values)))
    return Minima(-height[best], x, g, surrogate.sample_weights)


@dataclass(frozen=True, eq=False)
class Descent:
    """-f of the paths, each of which has ``starts`` rows."""

    paths: Paths
    starts: int

    def __call__(self, X: Array) -> Array:
        """(B, d) -> (P, B)."""
        return -self.paths(X).reshape(-1, len(X))

    def value_and_grad(self, X: Array, rows: np.ndarray) -> tuple[Array, Array]:
        """Each row of its own path, (R, d) -> (R,), (R, d)."""
        f, slope = self.paths.rows(X, rows // self.starts)
        return -f, -slope


def lowest(C: Array, values: Array, n: int) -> np.ndarray:
    """Where each row of ``values`` (P, N) is lowest, n times and apart, (P, n)."""
    values, chosen = values.copy(), []
    for _ in range(n):
        at = np.argmin(values, axis=1)
        chosen.append(at)
        near = np.square(C - C[at][:, None]).sum(2) < C.shape[1] * APART**2
        values[near] += np.ptp(values, axis=1, keepdims=True).repeat(len(C), 1)[near]
    return np.stack(chosen, axis=1)
