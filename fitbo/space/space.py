"""The set that is searched, and its map to the unit cube that the model sees.

    Space([(0, 1), (-5, 10)])                             points are arrays (d,)
    Space({"rate": Real(1e-5, 1, log=True), "layers": Integer(1, 9)},
          constraints=["rate * layers <= 1"])             points are dicts, name to value

A constraint is an expression (see ``constraints``) or a function of the point; a space holds
the points at which all of them are true.
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

from fitbo.mixture import Array
from fitbo.space.constraints import NUMBER, ConstraintError, Expression, parse
from fitbo.space.parameters import Categorical, Integer, Parameter, Real

ENUMERABLE = 1 << 16  # points of a finite space that are listed rather than drawn

Constraint = str | Callable[[Any], bool]

__all__ = ["Categorical", "Exhausted", "Integer", "Parameter", "Real", "Space"]


class Exhausted(Exception):
    """A finite space has no point left that was not asked for; the message ends the study."""


@dataclass(frozen=True, init=False)
class Space:
    """The points that are searched; ``dim`` is the dimension of the cube, ``snap`` its points.

    named         whether points are dicts; otherwise they are arrays and the names x0, x1, ...
    constraints   as they were given
    """

    names: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    constraints: tuple[Constraint, ...]
    named: bool

    def __init__(
        self,
        parameters: Mapping[str, Any] | Sequence[tuple[float, float]] | ArrayLike,
        constraints: Sequence[Constraint] = (),
    ) -> None:
        if isinstance(parameters, Mapping):
            names, kinds, named = *_named(parameters), True
        else:
            kinds, named = _pairs(parameters), False
            names = tuple(f"x{i}" for i in range(len(kinds)))
        if isinstance(constraints, str) or callable(constraints):
            constraints = [constraints]
        for constraint in constraints:
            if not (isinstance(constraint, str) or callable(constraint)):
                raise ValueError(
                    f"a constraint must be an expression or a function, got {constraint!r:.80}"
                )
        for name, value in (
            ("names", names),
            ("parameters", kinds),
            ("constraints", tuple(constraints)),
            ("named", named),
        ):
            object.__setattr__(self, name, value)
        _ = self._expressions  # read now, so that an error is one of construction

    @cached_property
    def dim(self) -> int:
        return sum(p.width for p in self.parameters)

    @property
    def bounds(self) -> tuple[tuple[float, float], ...]:
        """``(low, high)`` of each parameter; a category has none."""
        for name, p in zip(self.names, self.parameters, strict=True):
            if isinstance(p, Categorical):
                raise ValueError(f"{name} is a category and has no bounds: look at its choices")
        return tuple((p.low, p.high) for p in self.parameters if not isinstance(p, Categorical))

    @property
    def low(self) -> Array:
        return np.array([low for low, _ in self.bounds])

    @property
    def high(self) -> Array:
        return np.array([high for _, high in self.bounds])

    @cached_property
    def plain(self) -> bool:
        """Whether it fills the cube: real numbers only, and no constraint."""
        return all(isinstance(p, Real) for p in self.parameters) and not self.constraints

    @cached_property
    def size(self) -> float:
        """How many points there are without the constraints; infinite if one is real."""
        return math.prod(p.size for p in self.parameters)

    @cached_property
    def columns_of(self) -> tuple[slice, ...]:
        """Each parameter's coordinates of the cube."""
        edges = np.cumsum([0, *(p.width for p in self.parameters)]).tolist()
        return tuple(slice(a, b) for a, b in pairwise(edges))

    @cached_property
    def continuous(self) -> np.ndarray:
        """Which coordinates of the cube belong to real parameters, (dim,)."""
        widths = [p.width for p in self.parameters]
        return np.repeat([isinstance(p, Real) for p in self.parameters], widths)

    @cached_property
    def spacing(self) -> float:
        """The least distance of two points that differ in integers or choices; inf if none."""
        codes = [p.codes for p in self.parameters if isinstance(p, Categorical)]
        gaps = [p.spacing for p in self.parameters if isinstance(p, Integer)]
        return min([*gaps, *(c.max() for c in codes if c.size > 1)], default=math.inf)

    def from_cube(self, u: ArrayLike) -> Any:
        """(..., dim) in [0, 1] to points; the ends map to the bounds exactly.

        Without names an array (..., d). With names a dict for (dim,), a list of them for (n, dim).
        """
        u = np.asarray(u, dtype=np.float64)
        if not self.named:
            # A convex combination leaves the box by no more than rounding, which the clip takes.
            return np.clip(self.low * (1 - u) + self.high * u, self.low, self.high)
        columns = [column.tolist() for column in self.columns(np.atleast_2d(u)).values()]
        points = [dict(zip(self.names, row, strict=True)) for row in zip(*columns, strict=True)]
        return points if u.ndim > 1 else points[0]

    def to_cube(self, x: Any) -> Array:
        """Points to [0, 1]; one outside the bounds is an error. See ``check`` for constraints.

        Without names (..., d) to (..., d). With names a dict, or the values in order, to (dim,),
        and a list of dicts to (n, dim).
        """
        if not self.named:
            return self._box(x)
        if isinstance(x, Sequence) and len(x) and all(isinstance(p, Mapping) for p in x):
            return np.array([self.to_cube(point) for point in x])
        codes = []
        for name, p, value in zip(self.names, self.parameters, self._values(x), strict=True):
            try:
                codes.append(p.encode(value))
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None
        return np.concatenate(codes)

    def plain_values(self, point: Any) -> dict[str, Any]:
        """A named point as a dict of floats, integers and choices, from whatever was given."""
        given = zip(self.names, self.parameters, self._values(point), strict=True)
        return {name: p.plain(value) for name, p, value in given}

    def snap(self, U: ArrayLike) -> Array:
        """(..., dim) in the cube to the nearest points that can be evaluated, same shape."""
        U = np.asarray(U, dtype=np.float64)
        flat = U.reshape(-1, self.dim)
        return self._joined("snap", [flat[:, c] for c in self.columns_of]).reshape(U.shape)

    def place(self, V: Array) -> Array:
        """(n, number of parameters) uniform in [0, 1] to points of the cube, (n, dim).

        Every parameter takes one coordinate of V, so that each choice of a category is as likely
        as the others and a sequence that fills V evenly fills the space evenly.
        """
        return self._joined("place", list(V.T))

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
        columns = self.columns(U) if self._expressions else {}
        for constraint in self._constraints:
            if isinstance(constraint, Expression):
                good &= constraint(columns)
            else:
                rows = np.flatnonzero(good)
                good[rows] = [_holds(constraint, self.from_cube(U[i])) for i in rows]
        return good

    def contains(self, point: Any) -> bool:
        """Whether the point has the right parameters, in their bounds, and satisfies all."""
        try:
            self.check(point)
        except ConstraintError:
            raise
        except (ValueError, TypeError):
            return False
        return True

    def check(self, point: Any) -> Array:
        """The point in the cube, (dim,), or one error that says why it is not of this space."""
        u = self.to_cube(point)
        if u.shape != (self.dim,):
            raise ValueError(f"x must have shape ({self.dim},), got {np.shape(point)}")
        # The constraints see the point itself: by way of the cube it would come back rounded, on
        # the wrong side of a wall perhaps.
        x = self.plain_values(point) if self.named else np.asarray(point, dtype=np.float64)
        pairs = x.items() if isinstance(x, dict) else zip(self.names, x, strict=True)
        columns = {}
        for (name, value), p in zip(pairs, self.parameters, strict=True):
            columns[name] = np.array([value], dtype=object if isinstance(p, Categorical) else None)
        for constraint in self._constraints:
            if isinstance(constraint, Expression):
                holds, text = bool(constraint(columns)[0]), constraint.text
            else:
                holds, text = _holds(constraint, x), _name(constraint)
            if not holds:
                raise ValueError(f"the point {point!r:.120} does not satisfy {text!r:.80}")
        return u

    @cached_property
    def points(self) -> Array:
        """Every point of a finite space that satisfies the constraints, in the cube, (N, dim)."""
        if self.size > ENUMERABLE:
            raise ValueError(f"only {ENUMERABLE} points can be listed, and there are {self.size}")
        codes = [p.codes for p in self.parameters if not isinstance(p, Real)]
        which = np.indices([len(c) for c in codes]).reshape(len(codes), -1)
        U = np.concatenate([c[k] for c, k in zip(codes, which, strict=True)], axis=1)
        return U[self.feasible(U)]

    @cached_property
    def _expressions(self) -> tuple[Expression, ...]:
        kinds = {
            name: p.choices if isinstance(p, Categorical) else NUMBER
            for name, p in zip(self.names, self.parameters, strict=True)
        }
        return tuple(parse(c, kinds) for c in self.constraints if isinstance(c, str))

    @cached_property
    def _constraints(self) -> tuple[Expression | Callable[[Any], bool], ...]:
        read = iter(self._expressions)
        return tuple(next(read) if isinstance(c, str) else c for c in self.constraints)

    def _joined(self, what: str, parts: list[Array]) -> Array:
        pairs = zip(self.parameters, parts, strict=True)
        return np.concatenate([getattr(p, what)(part) for p, part in pairs], axis=1)

    def _values(self, point: Any) -> list[Any]:
        """The values of a named point, in order."""
        known = ", ".join(self.names)
        if isinstance(point, Mapping):
            unknown = [str(name) for name in point if name not in self.names]
            if unknown:
                raise ValueError(f"{', '.join(unknown)} is no parameter: they are {known}")
            missing = [name for name in self.names if name not in point]
            if missing:
                raise ValueError(f"the point has no {', '.join(missing)}: it needs {known}")
            return [point[name] for name in self.names]
        if isinstance(point, str) or not isinstance(point, Sequence | np.ndarray):
            raise ValueError(f"a point must be a dict of {known}, got {point!r:.80}")
        if len(point) != len(self.names):
            raise ValueError(f"a point has {len(self.names)} values, {known}, got {len(point)}")
        return list(point)

    def _box(self, x: ArrayLike) -> Array:
        x = np.asarray(x, dtype=np.float64)
        if x.ndim == 0 or x.shape[-1] != self.dim:
            raise ValueError(f"x must have shape (..., {self.dim}), got {x.shape}")
        if not np.isfinite(x).all():
            raise ValueError(f"x must be finite, got {x}")
        outside = (x < self.low) | (x > self.high)
        if outside.any():
            i = int(np.argmax(outside.reshape(-1, self.dim).any(0)))
            raise ValueError(f"x[{i}] must lie in {self.bounds[i]}, got {x[..., i]}")
        return np.clip((x - self.low) / (self.high - self.low), 0.0, 1.0)


def _named(parameters: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[Parameter, ...]]:
    """Names and kinds; a pair of numbers is a real parameter's bounds."""
    if not parameters:
        raise ValueError("a space must have at least one parameter, got none")
    kinds: list[Parameter] = []
    for name, kind in parameters.items():
        if not isinstance(name, str) or not name:
            raise ValueError(f"the name of a parameter must be text, got {name!r:.80}")
        if isinstance(kind, tuple | list) and len(kind) == 2:
            try:
                kind = Real(*kind)
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None
        if not isinstance(kind, Real | Integer | Categorical):
            raise ValueError(
                f"{name} must be a Real, an Integer, a Categorical or a pair (low, high), "
                f"got {kind!r:.80}"
            )
        kinds.append(kind)
    return tuple(parameters), tuple(kinds)


def _pairs(bounds: Any) -> tuple[Parameter, ...]:
    try:
        array = np.array(bounds, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"bounds must be pairs of numbers, got {bounds!r:.80}") from None
    if array.ndim != 2 or array.shape[0] < 1 or array.shape[1] != 2:
        raise ValueError(f"bounds must be pairs (low, high), one a dimension, got {bounds!r:.80}")
    if not np.isfinite(array).all():
        raise ValueError(f"bounds must be finite, got {bounds!r:.80}")
    for i, (low, high) in enumerate(array):
        if not low < high:
            raise ValueError(f"bounds[{i}] must have low < high, got ({low:g}, {high:g})")
    return tuple(Real(low, high) for low, high in array.tolist())


def _name(constraint: Callable[[Any], bool]) -> str:
    return getattr(constraint, "__name__", repr(constraint))


def _holds(constraint: Callable[[Any], bool], point: Any) -> bool:
    try:
        return bool(constraint(point))
    except Exception as error:
        raise ConstraintError(
            f"the constraint {_name(constraint)} failed at {point!r:.120}: {error!r:.120}"
        ) from error
