"""What a study was told: points, values and what they state, failures, and what is pending.

    c  (n, k)  excess of the outcome constraints at the points told: not positive where one holds

A function to be maximised changes its sign where a value comes in and where one goes out: inside,
f is minimised.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fitbo.checks import finite, one_of
from fitbo.mixture import Array
from fitbo.search.candidates import SAME
from fitbo.space import Space
from fitbo.space.outcomes import OutcomeConstraint, measured, outcome_constraints

LARGEST = 1e150  # of a value in a figure: its square is finite
MOST = 1e300  # of a value in the model: the difference of two is finite
MARK, BEYOND = 1e100, 10.0
SIGNS = {"minimize": 1.0, "maximize": -1.0}  # of a value, from the user's to the model's
OPTIMA = {"minimize": "minimum", "maximize": "maximum"}


def bounded(y: ArrayLike) -> Array:
    """Values as figures show them, or several as the model sees them, any shape.

    Beyond ``MARK`` times all of the lower half a value of several is no measurement but a mark, as
    1e200 among values of about 1: it says that the minimum is not here, and its size must not be
    the scale of the others.
    """
    y = np.asarray(y, dtype=np.float64)
    if y.ndim == 0:
        return np.clip(y, -LARGEST, LARGEST)
    lower = np.sort(y, axis=None)[: (y.size + 1) // 2]
    size = float(abs(lower).max(initial=0.0))
    marks = y > MARK * size if size > 0 else np.zeros(y.shape, dtype=np.bool_)
    if marks.any():
        low, high = float(y[~marks].min()), float(y[~marks].max())
        y = np.where(marks, high + BEYOND * (high - low or size), y)
    return np.clip(y, -MOST, MOST)


def equal_at_first(y: Sequence[float]) -> int:
    """How many of the first values are equal, if it is more than one; else none."""
    n = next((i for i, value in enumerate(y) if value != y[0]), len(y))
    return n if n > 1 else 0


def averaged(y: Any, noise_std: float | None = None) -> tuple[float, float | None]:
    """A value and its standard deviation; of several values their mean and its standard error.

    The standard error is that of a known noise if there is one, else the values' own, s/sqrt(n).
    None, so that the noise is inferred: of a single value, and of values that are all equal, which
    say nothing about it.
    """
    try:
        values = np.atleast_1d(np.asarray(y, dtype=np.float64))
    except (TypeError, ValueError):
        form = "a number" if np.isscalar(y) else "a number, or a list of them"
        raise ValueError(f"y must be {form}, got {y!r:.80}") from None
    if values.ndim != 1 or not values.size:
        raise ValueError(f"y must be a number, or a list of them, got shape {values.shape}")
    finite("y", values if values.size > 1 else float(values[0]))
    n = values.size
    if n == 1:
        return float(values[0]), None
    if abs(values).max() > LARGEST:
        raise ValueError(f"several y must be at most {LARGEST:g} in size, got {abs(values).max()}")
    if noise_std is not None:
        return float(values.mean()), noise_std / n**0.5
    return float(values.mean()), float(values.std(ddof=1)) / n**0.5 or None


@dataclass(kw_only=True)
class Ledger:
    """What is known, point by point; a point is an array (d,), or a dict if the space has names."""

    space: Space = field(kw_only=False)
    direction: str = "minimize"
    outcome_constraints: Sequence[str | OutcomeConstraint] = ()
    _cube: list[Array] = field(default_factory=list, repr=False)
    _values: list[float] = field(default_factory=list, repr=False)
    _stds: list[float] = field(default_factory=list, repr=False)  # NaN where none is stated
    _excess: list[list[float]] = field(default_factory=list, repr=False)
    _preceded: list[int] = field(default_factory=list, repr=False)  # by so many failures
    _pending: list[Array] = field(default_factory=list, repr=False)
    _failed: list[tuple[Array, str]] = field(default_factory=list, repr=False)
    _given: dict[bytes, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        one_of("direction", self.direction, SIGNS)
        if not isinstance(self.space, Space):
            self.space = Space(self.space)
        texts = self.outcome_constraints
        if not all(isinstance(each, OutcomeConstraint) for each in texts):
            self.outcome_constraints = outcome_constraints(texts)  # type: ignore[arg-type]

    @property
    def sign(self) -> float:
        """What a value is multiplied by where it enters the model, and where it leaves: 1 or -1."""
        return SIGNS[self.direction]

    @property
    def constraints(self) -> tuple[OutcomeConstraint, ...]:
        """The outcome constraints."""
        return tuple(self.outcome_constraints)  # type: ignore[arg-type]

    @property
    def X(self) -> Any:
        """Points told, (n, d), or a list of n dicts."""
        return self._points(self._cube)

    @property
    def y(self) -> Array:
        """Values told, (n,)."""
        return self.sign * np.array(self._values)

    @property
    def stds(self) -> Array:
        """The standard deviations that the values state, (n,); NaN where none does."""
        return np.array(self._stds)

    @property
    def excess(self) -> Array:
        """c at the points told, (n, k); NaN where one is not known."""
        return np.array(self._excess).reshape(len(self._values), len(self.constraints))

    @property
    def feasible(self) -> np.ndarray:
        """At which points told all outcome constraints hold, as far as is known, (n,)."""
        return np.asarray((self.excess <= 0).all(1))

    @property
    def pending(self) -> Any:
        """Points asked for and not told, (k, d), or a list of k dicts."""
        return self._points(self._pending)

    @property
    def failures(self) -> list[tuple[Any, str]]:
        """Where evaluations failed, and why."""
        return [(self._points([u])[0], reason) for u, reason in self._failed]

    @property
    def taken(self) -> Array:
        """Points told, pending and failed, in the cube, (k, dim)."""
        return self._rows([*self._cube, *self._pending, *(u for u, _ in self._failed)])

    @property
    def best_observed(self) -> tuple[Any, float]:
        """The point of the best value told where all outcome constraints hold, and the value."""
        if not self._values:
            raise ValueError("best_observed needs a value: tell one first")
        i = self._best()
        if i is None:
            raise ValueError("best_observed needs a point where all outcome constraints hold")
        return self.X[i], self.sign * self._values[i]

    def _best(self) -> int | None:
        """Which of the values told is best, of those that are feasible."""
        at = np.flatnonzero(self.feasible)
        return int(at[np.argmin(np.array(self._values)[at])]) if at.size else None

    def _enter(
        self, x: Any, y: float, std: float | None, constraints: Mapping[str, float | None] | None
    ) -> None:
        """The value y at x, the standard deviation that it states, and what constraints are about.

        Nothing is entered if anything is wrong.
        """
        u, values = self._note(x), measured(self.constraints, constraints)
        self._settle(u)
        self._cube.append(u)
        self._values.append(self.sign * y)
        self._stds.append(np.nan if std is None else float(std))
        self._preceded.append(len(self._failed))
        self._excess.append([each.excess(values[each.name]) for each in self.constraints])

    def fail(self, x: Any, reason: str) -> None:
        """The evaluation at x failed: points like it become less likely to be asked for."""
        u = self._note(x)
        self._settle(u)
        self._failed.append((u, str(reason)))

    def expect(self, x: Any) -> None:
        """x is being evaluated without having been asked for: it becomes pending."""
        self._pending.append(self._note(x))

    def is_pending(self, x: Any) -> bool:
        """Whether x was asked for or expected, and not yet told, failed or forgotten."""
        return self._index(self.space.check(x)) is not None

    def forget(self, x: Any) -> None:
        """x will not be evaluated: it is no longer pending."""
        if not self._settle(self.space.check(x)):
            raise ValueError(f"only a pending point can be forgotten, got {x!r:.120}")

    def _settle(self, u: Array) -> bool:
        """Whether u (d,) was pending; it no longer is."""
        i = self._index(u)
        if i is not None:
            self._pending.pop(i)
        return i is not None

    def _index(self, u: Array) -> int | None:
        """Which of the pending points u (d,) is."""
        near = (i for i, point in enumerate(self._pending) if abs(point - u).max() < SAME)
        return next(near, None)

    def _note(self, x: Any) -> Array:
        """x in the cube, (d,), and remembered as given: from the cube it may come back rounded."""
        u = self.space.check(x)
        named = self.space.named
        self._given[u.tobytes()] = self.space.plain_values(x) if named else np.array(x)
        return u

    def _as_given(self, u: Array) -> Any:
        """The point at u (d,): as it was given, to the last bit, if it was."""
        known = self._given.get(u.tobytes())
        if known is None:
            return self.space.from_cube(u)
        return dict(known) if self.space.named else known.copy()

    def _points(self, cube: Sequence[Array]) -> Any:
        """(n, d), or a list of n dicts: with names as they were given, to the last bit."""
        points = [self._as_given(u) for u in cube]
        return points if self.space.named else np.array(points).reshape(-1, self.space.dim)

    def _rows(self, points: Sequence[Array]) -> Array:
        return np.array(points).reshape(-1, self.space.dim)
