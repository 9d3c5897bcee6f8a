"""Multi-start ascent in the unit cube: projected L-BFGS from many points at once.

    d     int           dimension of the cube [0, 1]^d
    S     int           starts that climb together
    X     (S, d)        where they are
    f, g  (S,), (S, d)  value and gradient there
    free  (S, d)        coordinates not held at a bound that the gradient pushes against
    s, y  (K, S, d)     each start's last K steps and the falls of its gradient along them
    p     (S, d)        quasi-Newton direction, ``H (g * free)``

Every start has its own step length and history, but each round is one batched evaluation: a start
whose trial gained enough (Armijo, along the projected path) takes it and a new direction, another
shortens its step, and those that have converged leave the batch.

Measured on six problems for each of three acquisition functions, a mixture of 50 Gaussian processes
(d = 6, n = 60, 8 starts), three runs on a busy machine: the best maximum is that of scipy's
L-BFGS-B at its default tolerances to six digits, in 5.5 to 6.6 times fewer calls. One start at a
time, scipy takes 3.0 to 3.4 times as long for the information gain, 1.6 for log-EI and 1.4 to 1.7
for MES; with the starts stacked into one problem of 48 variables, 1.2 to 1.6 times. Single starts
may end in other local maxima than scipy's: the mean over starts is 1e-3 better for the information
gain, 1e-3 worse for MES.

[1] Nocedal, Wright, Numerical optimization, 2nd ed., algorithm 7.4: the two-loop recursion.
[2] Bertsekas, Projected Newton methods, SIAM J. Control Optim. 20 (1982): the free coordinates.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fitbo.mixture import Array
from fitbo.search.candidates import Inside

APART = 0.05  # starts lie sqrt(d) times this apart, while candidates last
PAIRS = 8  # K, steps remembered
ARMIJO = 1e-4  # share of the gain foreseen by the gradient that a step must make
FIRST_STEP = 0.05  # length of a step along the bare gradient, largest coordinate
LONGEST_STEP = 1.0  # the cube's width: a longer one only takes longer to shorten
CURVED = 1e-10  # s.y / (|s| |y|) below which a pair says nothing about a maximum
FLAT = 1e-100  # smaller gradients count as zero, those above 1/FLAT as invalid: they are squared


class Counted:
    """A function of points of the cube, shapes checked and points counted; not finite is -inf.

    With ``inside``, a climb moves the real coordinates only, and finds -inf outside. With
    ``by_row``, every start climbs a function of its own: ``value_and_grad`` is also told whose the
    points are.
    """

    def __init__(self, function: Any, inside: Inside | None = None, by_row: bool = False) -> None:
        self._function, self._inside, self._by_row = function, inside, by_row
        self.evaluations = 0

    def value(self, X: Array) -> Array:
        f = np.array(self._function(X), dtype=np.float64)
        if f.shape != (len(X),):
            raise ValueError(f"a function must map shape {X.shape} to ({len(X)},), got {f.shape}")
        self.evaluations += len(X)
        return np.where(np.isfinite(f), f, -np.inf)

    def value_and_grad(self, X: Array, rows: np.ndarray) -> tuple[Array, Array]:
        """A point whose gradient is invalid cannot be climbed from: it counts as -inf too."""
        whose = (rows,) if self._by_row else ()
        f, g = (np.array(a, dtype=np.float64) for a in self._function.value_and_grad(X, *whose))
        if f.shape != (len(X),) or g.shape != X.shape:
            raise ValueError(
                f"value_and_grad must map shape {X.shape} to ({len(X)},) and {X.shape}, "
                f"got {f.shape} and {g.shape}"
            )
        self.evaluations += len(X)
        if self._inside is not None and not self._inside.cube:
            space = self._inside.space
            f, g = np.where(self._inside(X), f, -np.inf), g * (space.continuous & space.awake(X))
        steepest = abs(g).max(1)
        sound = np.isfinite(f) & (steepest < 1 / FLAT)  # NaN is not below anything
        climbable = sound & (steepest > FLAT)
        return np.where(sound, f, -np.inf), np.where(climbable[:, None], g, 0.0)


def apart(X: Array, values: Array, n: int) -> np.ndarray:
    """Indices of up to n points of finite value, best first, and apart if possible."""
    worth = values.copy()
    chosen: list[int] = []
    for _ in range(n):
        if not np.isfinite(worth).any():
            worth = values.copy()  # every basin has its start: take the best of the rest
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
    f, g = function.value_and_grad(X, np.arange(len(X)))
    s, y = np.zeros((2, PAIRS, *X.shape))
    p, t = _direction(X, g, s[:1], y[:1]), np.ones(len(X))
    for turn in range(max_rounds):
        short = abs(np.clip(X + t[:, None] * p, 0, 1) - X).max(1) <= tolerance
        # A line search that failed along p is tried once more along the bare gradient.
        again = np.flatnonzero(short & (t < 1) & s.any((0, 2)))
        if len(again):
            s[:, again], t[again] = 0.0, 1.0
            p[again] = _direction(X[again], g[again], s[:1, again], y[:1, again])
            short[again] = False
        live = np.flatnonzero(~short)
        if len(live) == 0:
            break
        trial = np.clip(X[live] + t[live, None] * p[live], 0.0, 1.0)
        step = trial - X[live]
        f_trial, g_trial = function.value_and_grad(trial, live)
        foreseen, gain = np.vecdot(g[live], step), f_trial - f[live]
        enough = (gain > 0) & (gain >= ARMIJO * foreseen)
        # The parabola through f, its slope and the trial has its top at this share of the step.
        share = 0.5 * foreseen / np.where(foreseen > gain, foreseen - gain, np.inf)
        t[live] = np.where(enough, 1.0, t[live] * np.clip(share, 0.1, 0.5))
        won = live[enough]
        s[1:, won], y[1:, won] = s[:-1, won], y[:-1, won]
        s[0, won], y[0, won] = step[enough], g[won] - g_trial[enough]
        X[won], f[won], g[won] = trial[enough], f_trial[enough], g_trial[enough]
        made = min(turn + 1, PAIRS)  # more steps no start can have taken
        p[won] = _direction(X[won], g[won], s[:made, won], y[:made, won])
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
