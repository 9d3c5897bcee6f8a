"""A trust region about the incumbent, in coordinates of its own.

    x, U   (n, d)  points of the cube
    V      (n, d)  the same points in a frame, v = M (x - centre)
    W      (n, d)  points of [0, 1]^d as a search sees the region: v = (2 w - 1) half

A global model spends its evaluations where it knows least, and a stationary one cannot follow a
function whose values span decades: it pays to look next to the incumbent too [1]. Steps in the
region alternate with steps in the whole cube; a step that finds a lower value doubles the region,
one that does not shrinks it. Its size is a function of the values told alone, in their order, so
nothing has to be stored. Where next to nothing is left to be gained in the region (``DONE``), the
step is one in the whole cube instead: to polish one basin further finds no other. The steps whose
turn is the cube's leave the region alone (``Region.beyond``): most of them would otherwise be one
more step next to the incumbent, until it is polished, and a better basin be found when little is
left of the budget.

The axes of the region are those of the function nearby (``local``), its sides proportional to the
lengthscales along them: a long valley gets a long region, whichever way it runs.

[1] Diouane, Picheny, Le Riche, Scotto Di Perrotolo, TREGO: a trust-region framework for efficient
    global optimization, J. Global Optimization 86 (2023).
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fitbo.mixture import Array
from fitbo.space import Differentiable

FIRST = 0.2  # geometric mean of the half-widths of the first region
LEAST, MOST = 1e-6, 0.5
GROWTH, SHRINK = 2.0, 0.7
DECREASE = 1e-4  # of the median's height above the best value: less is no success
DONE = 1e-5  # of that height: an expected improvement below it is sought elsewhere
CLOSE = 0.04  # size of what the other steps leave alone, at the least
ELONGATED = 100.0  # ratio of a side to their geometric mean, at the most


@dataclass(frozen=True, eq=False)
class Frame:
    """Coordinates ``v = M (x - centre)``, and back."""

    centre: Array
    M: Array
    inverse: Array

    def inward(self, U: Array) -> Array:
        """Points of the cube in the frame, (n, d)."""
        return (U - self.centre) @ self.M.T

    def outward(self, V: Array) -> Array:
        """Points of the frame in the cube's coordinates, inside it or not, (n, d)."""
        return self.centre + V @ self.inverse.T

    def turned(self, Q: Array, X: Array) -> Frame:
        """The frame whose axes are the columns of Q (d, d), orthogonal, with X in [-1, 1]^d."""
        M = Q.T @ self.M
        extent = _extent((X - self.centre) @ M.T)
        return Frame(self.centre, M / extent[:, None], self.inverse @ Q * extent)

    @classmethod
    def straight(cls, centre: Array, X: Array) -> Frame:
        """The frame along the cube's axes, with X in [-1, 1]^d."""
        extent = _extent(X - centre)
        return cls(centre, np.diag(1 / extent), np.diag(extent))


def _extent(V: Array) -> Array:
    largest = abs(V).max(0)
    return np.where(largest > 0, largest, 1.0)


@dataclass(frozen=True, eq=False)
class Framed:
    """A function of points of a frame as one of points of the cube."""

    function: Differentiable
    frame: Frame

    def __call__(self, U: Array) -> Array:
        return self.function(self.frame.inward(U))

    def value_and_grad(self, U: Array, *rows: np.ndarray) -> tuple[Array, Array]:
        """(B, d) -> (B,), (B, d)."""
        value, slope = self.function.value_and_grad(self.frame.inward(U), *rows)
        return value, slope @ self.frame.M


@dataclass(frozen=True, eq=False)
class Region:
    """The box ``|v| <= half`` of a frame, in so far as it lies in the cube."""

    frame: Frame
    half: Array

    def inward(self, U: Array) -> Array:
        """W of those points of the cube that lie in the region, (k, d)."""
        W = 0.5 + 0.5 * self.frame.inward(U) / self.half
        return W[((W >= 0) & (W <= 1)).all(1)]

    def beyond(self, U: Array) -> np.ndarray:
        """Which of U (n, d) lie outside of the region, or of one of ``CLOSE`` about it, (n,)."""
        size = np.exp(np.log(self.half * np.linalg.norm(self.frame.inverse, axis=0)).mean())
        half = self.half * max(1.0, CLOSE / size)
        return np.asarray((abs(self.frame.inward(U)) > half).any(1))

    def outward(self, W: Array) -> Array:
        """Points of the cube, those outside moved to its faces."""
        return np.clip(self._free(W), 0.0, 1.0)

    def _free(self, W: Array) -> Array:
        return self.frame.outward((2 * W - 1) * self.half)


@dataclass(frozen=True, eq=False)
class Within:
    """A function of points of the cube as one of W; it is constant beyond the cube's faces."""

    function: Differentiable
    region: Region

    def __call__(self, U: Array) -> Array:
        return self.function(self.region.outward(U))

    def value_and_grad(self, U: Array, *rows: np.ndarray) -> tuple[Array, Array]:
        """(B, d) -> (B,), (B, d)."""
        free = self.region._free(U)
        value, slope = self.function.value_and_grad(np.clip(free, 0.0, 1.0), *rows)
        slope = np.where((free < 0) | (free > 1), 0.0, slope)
        return value, (slope @ self.region.frame.inverse) * (2 * self.region.half)


def region_of(frame: Frame, lengthscales: Array, size: float) -> Region:
    """Sides along the frame's axes, proportional to the lengthscales (d,).

    ``size`` is the geometric mean of the half-widths, measured in the cube.
    """
    unit = np.linalg.norm(frame.inverse, axis=0)
    length = np.log(lengthscales * unit)
    bound = np.log(ELONGATED)
    shape = np.exp(np.clip(length - length.mean(), -bound, bound))
    return Region(frame, np.minimum(size * shape, 1.0) / unit)


def radius(X: Array, y: Array, first: int, local: Callable[[int], bool]) -> float:
    """The size after the values y (n,) at X (n, d), those from ``first`` on chosen by a model.

    A better value far away, wherever it was sought, begins a new region. A step further than any
    side of the region was one in the whole cube, as nothing was left to be gained in the region.
    """
    size, best = FIRST, int(np.argmin(y[:first])) if first else 0
    ordered = sorted(y[: max(first, 1)].tolist())
    for i in range(max(first, 1), len(y)):
        half = len(ordered) // 2
        median = (ordered[half] + ordered[~half]) / 2
        insort(ordered, float(y[i]))
        enough = DECREASE * (median - y[best])
        better, away = y[i] < y[best] - enough, abs(X[i] - X[best]).max()
        if better and away > FIRST / 2:
            size = max(size, FIRST)
        elif local(i) and away <= ELONGATED * size:
            size = min(MOST, max(LEAST, size * (GROWTH if better else SHRINK)))
        if y[i] < y[best]:
            best = i
    return size
