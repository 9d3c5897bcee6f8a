"""Maximisation over the unit cube: scan, then climb from the best places, all at once.

=============  =============  ==============================================================
symbol         shape          meaning
=============  =============  ==============================================================
``d``          int            dimension of the cube [0, 1]^d
``S``          int            starts that climb together
``X``          (S, d)         where they are
``f, g``       (S,), (S, d)   value and gradient there
``free``       (S, d)         coordinates not held at a bound that the gradient pushes against
``s, y``       (K, S, d)      each start's last K steps and the falls of its gradient along them
``p``          (S, d)         quasi-Newton direction, ``H (g * free)``
=============  =============  ==============================================================

Scan: scrambled Sobol points, and Gaussian clouds of several scales about the incumbents; a cheap
``screen`` may choose which few of them are worth a true value. Climb:
projected L-BFGS, in which every start keeps its own step length and history but each round is one
batched evaluation: a start whose trial gained enough (Armijo, along the projected path) takes it
and a new direction, another shortens its step, and those that have converged leave the batch.
Without a gradient, central differences make one: 2 d + 1 points a start, in the same batch. (A
pattern search costs as much a round, and left ridges of condition 1e3 unclimbed after a hundred.)

Measured on six problems for each of three acquisitions, a mixture of 50 Gaussian processes (d = 6,
n = 60, 8 starts), three runs on a busy machine: the best maximum is that of scipy's L-BFGS-B at its
default tolerances to six digits, in 5.5 to 6.6 times fewer calls. One start at a time, scipy takes
3.0 to 3.4 times as long for the information gain, 1.6 for log-EI and 1.4 to 1.7 for MES; with the
starts stacked into one problem of 48 variables, 1.2 to 1.6 times. Single starts may end in other
local maxima than scipy's: the mean over starts is 1e-3 better for the first, 1e-3 worse for MES.

[1] Nocedal, Wright, Numerical optimization, 2nd ed., algorithm 7.4: the two-loop recursion.
[2] Bertsekas, Projected Newton methods, SIAM J. Control Optim. 20 (1982): the free coordinates.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fitbo.mixture import Array

Value = Callable[[Array], Array]
ValueAndGrad = Callable[[Array], tuple[Array, Array]]

SCALES = np.array([0.2, 0.05, 0.01, 0.002])  # deviations of the clouds about the incumbents
APART = 0.05  # starts lie sqrt(d) times this apart, while candidates last
PAIRS = 8  # K, steps remembered
ARMIJO = 1e-4  # share of the gain foreseen by the gradient that a step must make
FIRST_STEP = 0.05  # length of a step along the bare gradient, largest coordinate
LONGEST_STEP = 1.0  # the cube's width: a longer one only takes longer to shorten
CURVED = 1e-10  # s.y / (|s| |y|) below which a pair tells nothing of a maximum
DIFFERENCE = 1e-4  # step of a gradient by differences
FLAT = 1e-100  # a gradient as small as this is none, as large as its inverse unsound: squares count
FALLBACK_DRAWS = 1024  # uniform points tried when every point found is to be avoided


@dataclass(frozen=True, eq=False)
class Maximum:
    """The point ``x`` (d,), its ``value``, and the points evaluated to find it."""

    x: Array
    value: float
    evaluations: int


def maximise(
    value: Value,
    value_and_grad: ValueAndGrad | None,
    dim: int,
    rng: np.random.Generator,
    *,
    screen: Value | None = None,
    incumbents: ArrayLike | None = None,
    avoid: ArrayLike | None = None,
    n_candidates: int = 512,
    n_screened: int = 48,
    n_starts: int = 8,
    max_rounds: int = 100,
    tolerance: float = 1e-6,
) -> Maximum:
    """The best point found of the cube that is no closer than ``tolerance`` to one of ``avoid``.

    ``value`` maps (B, d) to (B,), ``value_and_grad`` to (B,) and (B, d); what is not finite
    counts as -inf. ``screen``, a cheap likeness of ``value``, sees every candidate, and ``value``
    then only the ``n_screened`` that it ranks highest.
    ``incumbents`` (k, d) are places thought good, and candidates themselves; ``avoid`` (n, d) is
    what has been evaluated already. ``n_candidates`` Sobol points (rounded up to a power of two)
    are scanned and half as many in clouds; the ``n_starts`` best and apart climb, until the next
    step is shorter than ``tolerance`` in every coordinate or ``max_rounds`` have passed.
    """
    if min(dim, n_candidates, n_screened) < 1 or min(n_starts, max_rounds) < 0:
        raise ValueError(
            "dim, n_candidates and n_screened must be at least 1, n_starts and max_rounds at "
            f"least 0, got {dim}, {n_candidates}, {n_screened}, {n_starts} and {max_rounds}"
        )
    if not 0 < tolerance < 0.5:
        raise ValueError(f"tolerance must lie between 0 and 0.5, got {tolerance}")
    function = Counted(value, value_and_grad)
    good, taken = cube_points("incumbents", incumbents, dim), cube_points("avoid", avoid, dim)

    candidates = _candidates(dim, good, n_candidates, rng)
    if screen is not None:
        rough = Counted(screen, None).value(candidates)
        # A stable order, so that a constant screen leaves the first, random, candidates first.
        candidates = candidates[np.argsort(-rough, kind="stable")[:n_screened]]
    values = function.value(candidates)
    starts = apart(candidates, values, n_starts)
    tops, top_values = ascend(function, candidates[starts], max_rounds, tolerance)

    # Candidates first and a stable order, so that a constant function yields a random point.
    pool, pool_values = np.concatenate([candidates, tops]), np.concatenate([values, top_values])
    allowed = distances(pool, taken) > tolerance
    if not allowed.any():
        pool = rng.random((FALLBACK_DRAWS, dim))
        pool_values, allowed = function.value(pool), distances(pool, taken) > tolerance
        if not allowed.any():
            raise ValueError(
                f"avoid, {len(taken)} points widened by a tolerance of {tolerance}, covers the cube"
            )
    best = int(np.argmax(np.where(allowed, pool_values, -np.inf)))
    if not allowed[best]:  # every value allowed is -inf
        best = int(np.argmax(allowed))
    return Maximum(pool[best].copy(), float(pool_values[best]), function.evaluations)


class Counted:
    """The functions with NaN and infinities as -inf, shapes checked and points counted."""

    def __init__(self, value: Value, value_and_grad: ValueAndGrad | None) -> None:
        self._value, self._value_and_grad = value, value_and_grad
        self.evaluations = 0

    def value(self, X: Array) -> Array:
        f = np.array(self._value(X), dtype=np.float64)
        if f.shape != (len(X),):
            raise ValueError(f"value must map shape {X.shape} to ({len(X)},), got {f.shape}")
        self.evaluations += len(X)
        return np.where(np.isfinite(f), f, -np.inf)

    def value_and_grad(self, X: Array) -> tuple[Array, Array]:
        """A point whose gradient is not sound cannot be climbed from: it counts as -inf too."""
        if self._value_and_grad is None:
            f, g = self._differences(X)
        else:
            f, g = (np.array(a, dtype=np.float64) for a in self._value_and_grad(X))
            if f.shape != (len(X),) or g.shape != X.shape:
                raise ValueError(
                    f"value_and_grad must map shape {X.shape} to ({len(X)},) and {X.shape}, "
                    f"got {f.shape} and {g.shape}"
                )
            self.evaluations += len(X)
        steepest = abs(g).max(1)
        sound = np.isfinite(f) & (steepest < 1 / FLAT)  # NaN is not below anything
        climbable = sound & (steepest > FLAT)
        return np.where(sound, f, -np.inf), np.where(climbable[:, None], g, 0.0)

    def _differences(self, X: Array) -> tuple[Array, Array]:
        """Central differences, one-sided at a bound or beside a value that is not finite."""
        n, d = X.shape
        offsets = DIFFERENCE * np.eye(d)
        low, high = X[:, None] - offsets, X[:, None] + offsets  # (n, d, d)
        points = np.clip(np.concatenate([X[:, None], low, high], axis=1), 0.0, 1.0)
        values = self.value(points.reshape(-1, d)).reshape(n, -1)
        f = values[:, 0]
        centre = np.where(np.isfinite(f), f, 0.0)[:, None]
        ends = points[:, 1:].reshape(n, 2, d, d).diagonal(axis1=2, axis2=3)  # (n, 2, d)
        heights = values[:, 1:].reshape(n, 2, d)
        seen = np.isfinite(heights)
        run = np.diff(np.where(seen, ends, X[:, None]), axis=1)[:, 0]
        rise = np.diff(np.where(seen, heights, centre[:, None]), axis=1)[:, 0]
        return f, rise / np.where(run > 0, run, np.inf)


def _candidates(dim: int, good: Array, n: int, rng: np.random.Generator) -> Array:
    """Sobol points, then the incumbents, then n/2 points in clouds about them."""
    from scipy.stats import qmc  # half a second to import

    sobol = qmc.Sobol(dim, scramble=True, rng=rng).random_base2(max(0, (n - 1).bit_length()))
    if len(good) == 0:
        return sobol
    which = np.arange(n // 2)
    centres = good[which % len(good)]
    scales = SCALES[which // len(good) % len(SCALES), None]
    clouds = centres + scales * rng.standard_normal(centres.shape)
    # Clipped and not reflected: the best point of a cube is often on a face.
    return np.concatenate([sobol, good, np.clip(clouds, 0.0, 1.0)])


def apart(X: Array, values: Array, n: int) -> np.ndarray:
    """Indices of up to n points of finite value, best first, apart from one another if possible."""
    worth = values.copy()
    chosen: list[int] = []
    for _ in range(n):
        if not np.isfinite(worth).any():
            worth = values.copy()  # every basin has its start: take the best of what is left
            worth[chosen] = -np.inf
            if not np.isfinite(worth).any():
                break
        best = int(np.argmax(worth))
        chosen.append(best)
        near = ((X - X[best]) ** 2).sum(1) < X.shape[1] * APART**2
        worth[near] = -np.inf
    return np.array(chosen, dtype=np.intp)


def ascend(function: Counted, X: Array, max_rounds: int, tolerance: float) -> tuple[Array, Array]:
    """Projected L-BFGS from every row of X at once; the rows reached and their values."""
    if len(X) == 0:
        return X, np.empty(0)
    X = X.copy()
    f, g = function.value_and_grad(X)
    s, y = np.zeros((2, PAIRS, *X.shape))
    p, t = _direction(X, g, s, y), np.ones(len(X))
    for _ in range(max_rounds):
        short = abs(np.clip(X + t[:, None] * p, 0, 1) - X).max(1) <= tolerance
        # A line search that came to nothing along p is tried once more along the bare gradient.
        again = np.flatnonzero(short & (t < 1) & s.any((0, 2)))
        s[:, again], t[again] = 0.0, 1.0
        p[again] = _direction(X[again], g[again], s[:, again], y[:, again])
        short[again] = False
        live = np.flatnonzero(~short)
        if len(live) == 0:
            break
        trial = np.clip(X[live] + t[live, None] * p[live], 0.0, 1.0)
        step = trial - X[live]
        f_trial, g_trial = function.value_and_grad(trial)
        foreseen, gain = np.vecdot(g[live], step), f_trial - f[live]
        enough = (gain > 0) & (gain >= ARMIJO * foreseen)
        # The parabola through f, its slope and the trial has its top at this share of the step.
        share = 0.5 * foreseen / np.where(foreseen > gain, foreseen - gain, np.inf)
        t[live] = np.where(enough, 1.0, t[live] * np.clip(share, 0.1, 0.5))
        won = live[enough]
        s[1:, won], y[1:, won] = s[:-1, won], y[:-1, won]
        s[0, won], y[0, won] = step[enough], g[won] - g_trial[enough]
        X[won], f[won], g[won] = trial[enough], f_trial[enough], g_trial[enough]
        p[won] = _direction(X[won], g[won], s[:, won], y[:, won])
    return X, f


def _direction(X: Array, g: Array, s: Array, y: Array) -> Array:
    """``p = H (g * free)`` by the two-loop recursion [1] within the free coordinates [2]."""
    free = ~(((X <= 0) & (g < 0)) | ((X >= 1) & (g > 0)))
    s, y = s * free, y * free
    sy, yy = np.vecdot(s, y), np.vecdot(y, y)
    told = sy > CURVED * np.sqrt(np.vecdot(s, s) * yy)
    rho = np.where(told, 1 / np.where(told, sy, 1.0), 0.0)

    uphill = g * free
    largest = abs(uphill).max(1)
    first = FIRST_STEP / np.where(largest > 0, largest, 1.0)
    latest = told.argmax(0)
    rows = np.arange(len(X))
    scale = np.where(told.any(0), sy[latest, rows] / np.where(told, yy, 1.0)[latest, rows], first)

    p = uphill.copy()
    a = np.empty_like(rho)
    for k in range(len(s)):
        a[k] = rho[k] * np.vecdot(s[k], p)
        p -= a[k][:, None] * y[k]
    p *= scale[:, None]
    for k in reversed(range(len(s))):
        p += (a[k] - rho[k] * np.vecdot(y[k], p))[:, None] * s[k]
    rises = np.vecdot(p, uphill) > 0  # H is positive definite, but for rounding
    p = np.where(rises[:, None], p, first[:, None] * uphill)
    length = abs(p).max(1)
    return p * np.minimum(1.0, LONGEST_STEP / np.where(length > 0, length, 1.0))[:, None]


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
