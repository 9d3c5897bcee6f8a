"""The set of points that is searched, and its map to the unit cube that the model sees.

    Space([(0, 1), (-5, 10)])                             points are arrays (d,)
    Space([Real(1e-5, 1, log=True), (-5, 10)])            the same; or scipy's Bounds
    Space({"rate": Real(1e-5, 1, log=True), "layers": Integer(1, 9)},
          constraints=["rate * layers <= 1"])             points are dicts, name to value
    Space({"kernel": Categorical(["rbf", "linear"]), "gamma": Real(0, 1, when="kernel == 'rbf'")})

A constraint is an expression (see ``constraints``) or a function of the point; a space holds the
points at which all constraints are true. One that names an inactive parameter (see ``conditions``)
says nothing about the point.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fitbo.checks import assign, finite
from fitbo.mixture import Array
from fitbo.space.conditions import (
    Rule,
    activity,
    asleep,
    check_existing,
    kinds_of,
    needed,
    rules_of,
)
from fitbo.space.constraints import Constraint, ConstraintError, Expression, holds_at, name_of
from fitbo.space.given import kind_of, naming, numbered
from fitbo.space.numeric import Real
from fitbo.space.parameters import Categorical, Parameter

ENUMERABLE = 1 << 16  # points of a finite space that are listed rather than drawn


@dataclass(frozen=True, init=False)
class Space:
    """The points that are searched; ``dim`` is the dimension of the cube.

    named         whether points are dicts; otherwise they are arrays, and the names x0, x1, ...
    constraints   as they were given
    """

    names: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    constraints: tuple[Constraint, ...]
    named: bool

    def __init__(
        self,
        parameters: Any,
        constraints: Sequence[Constraint] = (),
    ) -> None:
        named = isinstance(parameters, Mapping)
        given = parameters if isinstance(parameters, Mapping) else numbered(parameters)
        if not given:
            raise ValueError("a space must have at least one parameter, got none")
        kinds = tuple(kind_of(name, kind) for name, kind in given.items())
        if isinstance(constraints, str) or callable(constraints):
            constraints = [constraints]
        for c in constraints:
            if not (isinstance(c, str) or callable(c)):
                raise ValueError(f"a constraint must be an expression or a function, got {c!r:.80}")
        assign(
            self, names=tuple(given), parameters=kinds, constraints=tuple(constraints), named=named
        )
        _ = self._constraints, self._rules  # parsed now: an error is raised at construction
        if self._rules and not named:
            raise ValueError("when needs names: give a dict of names to parameters")

    @cached_property
    def dim(self) -> int:
        return sum(p.width for p in self.parameters)

    @property
    def bounds(self) -> tuple[tuple[float, float], ...]:
        """``(low, high)`` of each parameter; a category has none."""
        for name, p in zip(self.names, self.parameters, strict=True):
            if isinstance(p, Categorical):
                raise ValueError(f"{name} is a category and has no bounds: see its choices")
        return tuple((p.low, p.high) for p in self.parameters if not isinstance(p, Categorical))

    @property
    def low(self) -> Array:
        return np.array(self.bounds)[:, 0]

    @property
    def high(self) -> Array:
        return np.array(self.bounds)[:, 1]

    @cached_property
    def plain(self) -> bool:
        """Whether it fills the cube: real parameters without steps, and no constraint."""
        real = all(p.continuous for p in self.parameters)
        return real and not self.constraints and not self._rules

    @cached_property
    def _linear(self) -> bool:
        """Whether every parameter is real and on a linear scale."""
        return all(isinstance(p, Real) and p.continuous and not p.log for p in self.parameters)

    @cached_property
    def size(self) -> float:
        """The number of points without the constraints; infinite if a parameter is real."""
        return math.prod(p.size for p in self.parameters)

    @cached_property
    def columns_of(self) -> tuple[slice, ...]:
        """Each parameter's coordinates of the cube."""
        edges = np.cumsum([0, *(p.width for p in self.parameters)]).tolist()
        return tuple(slice(a, b) for a, b in pairwise(edges))

    @cached_property
    def continuous(self) -> np.ndarray:
        """Which coordinates of the cube belong to real parameters without a step, (dim,)."""
        return np.repeat(
            [p.continuous for p in self.parameters], [p.width for p in self.parameters]
        )

    @cached_property
    def spacing(self) -> float:
        """The smallest distance of points that differ in integers or choices; inf if none do."""
        codes = [p.codes for p in self.parameters if isinstance(p, Categorical)]
        numbers = [p for p in self.parameters if not isinstance(p, Categorical)]
        gaps = [p.spacing for p in numbers if not p.continuous]
        return min([*gaps, *(c.max() for c in codes if c.size > 1)], default=math.inf)

    def from_cube(self, u: ArrayLike) -> Any:
        """(..., dim) in [0, 1] to points; the ends map to the bounds exactly.

        Without names an array (..., d). With names a dict for (dim,), a list of them for (n, dim).
        """
        u = np.asarray(u, dtype=np.float64)
        columns = self.columns(u.reshape(-1, self.dim)).values()
        if not self.named:
            return np.stack([*columns], axis=-1).reshape(u.shape)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        points = [dict(zip(self.names, row, strict=True)) for row in rows]
        if self._rules:
            there = self.active(u.reshape(-1, self.dim))
            points = [
                {name: value for (name, value), on in zip(point.items(), row, strict=True) if on}
                for point, row in zip(points, there, strict=True)
            ]
        return points if u.ndim > 1 else points[0]

    def to_cube(self, x: Any) -> Array:
        """Points to [0, 1]; one outside the bounds is an error. See ``check`` for constraints.

        Without names (..., d) -> (..., d). With names a dict, or the values in order, -> (dim,);
        a list of dicts -> (n, dim).
        """
        if not self.named:
            return self._box(x)
        if isinstance(x, Sequence) and len(x) and all(isinstance(p, Mapping) for p in x):
            return np.array([self.to_cube(point) for point in x])
        return self._encoded(self._values(x))

    def plain_values(self, point: Any) -> dict[str, Any]:
        """A named point as a dict of floats, integers and choices, whatever types were given."""
        values, kinds = self._values(point), dict(zip(self.names, self.parameters, strict=True))
        return {name: kinds[name].plain(value) for name, value in values.items()}

    def snap(self, U: ArrayLike) -> Array:
        """(..., dim) in the cube to the nearest points that can be evaluated, same shape."""
        U = np.asarray(U, dtype=np.float64)
        pairs = zip(self.parameters, self.columns_of, strict=True)
        snapped = [p.snap(U.reshape(-1, self.dim)[:, c]) for p, c in pairs]
        return self.settle(np.concatenate(snapped, axis=1)).reshape(U.shape)

    def place(self, V: Array) -> Array:
        """(n, number of parameters) uniform in [0, 1] to points of the cube, (n, dim).

        Every parameter takes one coordinate of V, so all choices of a category are equally likely,
        and a sequence that fills V evenly fills the space evenly.
        """
        pairs = zip(self.parameters, V.T, strict=True)
        return self.settle(np.concatenate([p.place(v) for p, v in pairs], axis=1))

    def active(self, U: Array) -> np.ndarray:
        """Which parameters exist at points of the cube: (n, dim) -> (n, number of parameters)."""
        columns = self.columns(U) if self._rules else dict.fromkeys(self.names)
        return activity(self._rules, columns, len(U))

    def awake(self, U: Array) -> np.ndarray:
        """Which coordinates belong to parameters that exist there, (n, dim)."""
        return np.repeat(self.active(U), [p.width for p in self.parameters], axis=1)

    def settle(self, U: Array) -> Array:
        """(n, dim) with the coordinates of parameters that do not exist at their one value."""
        return np.where(self.awake(U), U, asleep(self.parameters)) if self._rules else U

    def columns(self, U: Array) -> dict[str, Any]:
        """The values at (n, dim) points of the cube, for each name (n,)."""
        return {
            name: p.decode(U[:, c])
            for name, p, c in zip(self.names, self.parameters, self.columns_of, strict=True)
        }

    def feasible(self, U: Array) -> np.ndarray:
        """Which of the points (n, dim) of the cube satisfy every constraint, (n,)."""
        good = np.ones(len(U), dtype=bool)
        if not len(U):
            return good
        columns = self.columns(U) if any(isinstance(c, str) for c in self.constraints) else {}
        active = self.active(U)
        for constraint in self._constraints:
            if isinstance(constraint, Expression):
                applies = active[:, needed(constraint, self.names)].all(1)
                good &= constraint(columns) | ~applies
            else:
                rows = np.flatnonzero(good)
                good[rows] = [holds_at(constraint, self.from_cube(U[i])) for i in rows]
        return good

    def violations(self, U: Array) -> Array:
        """How far (n, dim) points are from each constraint, in its units; 1 from a function's."""
        columns, active, found = self.columns(U), self.active(U), []
        for constraint in self._constraints:
            if isinstance(constraint, Expression):
                away = ~constraint(columns) & active[:, needed(constraint, self.names)].all(1)
                found.append(np.where(away, np.maximum(constraint.excess(columns), 1e-300), 0.0))
            else:
                found.append(np.array([not holds_at(constraint, x) for x in self.from_cube(U)]))
        return np.array(found, dtype=np.float64).reshape(-1, len(U)).T

    def contains(self, point: Any) -> bool:
        """Whether the point has these parameters, within bounds, and satisfies the constraints."""
        try:
            self.check(point)
        except ConstraintError:
            raise
        except (ValueError, TypeError):
            return False
        return True

    def check(self, point: Any) -> Array:
        """The point in the cube, (dim,), or an error that says why it is not in this space."""
        u = self.to_cube(point)
        if u.shape != (self.dim,):
            raise ValueError(f"x must have shape ({self.dim},), got {np.shape(point)}")
        if not self._constraints:
            return u
        # The constraints see the point itself: rounded on its way through the cube, it might come
        # out on the other side of a boundary.
        x = self.plain_values(point) if self.named else np.asarray(point, dtype=np.float64)
        values = x if isinstance(x, dict) else dict(zip(self.names, x, strict=True))
        columns = self._single(values)
        for constraint in self._constraints:
            if isinstance(constraint, Expression):
                absent = any(name not in values for name in constraint.names)
                holds, text = absent or bool(constraint(columns)[0]), constraint.text
            else:
                holds, text = holds_at(constraint, x), name_of(constraint)
            if not holds:
                raise ValueError(f"the point {point!r:.120} does not satisfy {text!r:.80}")
        return u

    @cached_property
    def points(self) -> Array:
        """Every point of a finite space that satisfies the constraints, in the cube, (N, dim)."""
        if self.size > ENUMERABLE:
            raise ValueError(f"only {ENUMERABLE} points can be listed, got {self.size}")
        codes = [p.codes for p in self.parameters]
        which = np.indices([len(c) for c in codes]).reshape(len(codes), -1)
        U = self.settle(np.concatenate([c[k] for c, k in zip(codes, which, strict=True)], axis=1))
        if self._rules:  # points that differed in what does not exist are one
            U = U[np.sort(np.unique(U, axis=0, return_index=True)[1])]
        return U[self.feasible(U)]

    @cached_property
    def _constraints(self) -> tuple[Expression | Callable[[Any], bool], ...]:
        kinds = kinds_of(self.names, self.parameters)
        return tuple(Expression(c, kinds) if isinstance(c, str) else c for c in self.constraints)

    @cached_property
    def _rules(self) -> tuple[Rule, ...]:
        return rules_of(self.names, self.parameters)

    def _single(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The columns of one point, (1,) each; of what it does not have, some value."""
        some = self.columns(np.zeros((1, self.dim)))
        for name, value in values.items():
            kind = object if some[name].dtype == object else None
            some[name] = np.array([value], dtype=kind)
        return some

    def _encoded(self, values: Mapping[str, Any]) -> Array:
        """These values in the cube, (dim,), and what is not there asleep."""
        u = asleep(self.parameters)
        for name, p, c in zip(self.names, self.parameters, self.columns_of, strict=True):
            if name in values:
                with naming(name):
                    u[c] = p.encode(values[name])
        return u

    def _values(self, point: Any) -> dict[str, Any]:
        """The values of a named point, in order; an error if it has not what exists there."""
        known = ", ".join(self.names)
        if isinstance(point, Mapping):
            unknown = [str(name) for name in point if name not in self.names]
            if unknown:
                raise ValueError(f"{', '.join(unknown)} is not among the parameters {known}")
            always = zip(self.names, self.parameters, strict=True)
            missing = [name for name, p in always if name not in point and p.when is None]
            if missing:
                raise ValueError(f"the point has no {', '.join(missing)}: it needs {known}")
            values = {name: point[name] for name in self.names if name in point}
            if self._rules:
                self._encoded(values)  # of the right kind, before they are compared
                check_existing(self._rules, self.names, self._single(values), values)
            return values
        if isinstance(point, str) or not isinstance(point, Sequence | np.ndarray):
            raise ValueError(f"a point must be a dict of {known}, got {point!r:.80}")
        if len(point) != len(self.names):
            raise ValueError(f"a point must have the values of {known}, got {len(point)} values")
        values = dict(zip(self.names, point, strict=True))
        if not self._rules:
            return values
        given = zip(self.parameters, values.items(), strict=True)
        return self._values({k: v for p, (k, v) in given if p.when is None or v is not None})

    def _box(self, x: ArrayLike) -> Array:
        x = np.asarray(x, dtype=np.float64)
        if x.ndim == 0 or x.shape[-1] != self.dim:  # a number has one coordinate
            raise ValueError(f"x must have shape (..., {self.dim}), got {x.shape}")
        finite("x", x)
        outside = (x < self.low) | (x > self.high)
        if outside.any():
            i = int(np.argmax(outside.reshape(-1, self.dim).any(0)))
            raise ValueError(f"x[{i}] must lie in {self.bounds[i]}, got {x[..., i]}")
        if self._linear:
            return np.clip((x - self.low) / (self.high - self.low), 0.0, 1.0)
        rows = x.reshape(-1, self.dim)
        codes = np.empty(rows.shape)
        for j, (name, p) in enumerate(zip(self.names, self.parameters, strict=True)):
            with naming(name):
                codes[:, j] = [p.encode(value)[0] for value in rows[:, j]]
        return codes.reshape(x.shape)
