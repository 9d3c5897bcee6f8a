"""Known constraints of a space: expressions in its parameters' names, read and never executed.

    parse("x + y <= 1", {"x": NUMBER, "y": NUMBER})(columns)  ->  (n,) booleans

The text becomes Python's syntax tree. Every node must be in the tables below, and is replaced by a
function of columns of values, one entry per point. All numbers are float64, so that a power can at
worst overflow to infinity, and the length and depth of the text are bounded.

Truth has three values, kept as two masks, *true* and *false*. A comparison with an undefined number
(0/0, log of a negative number) is neither; ``and``, ``or`` and ``not`` follow Kleene's tables, so
``x <= 0 or log(x) < 1`` is true at x = -1. A point satisfies a constraint where it is true.

How far a point is from that is the *excess*, for a search that has found no such point: of a <= b
it is a - b, of a == b |a - b|, of ``and`` the largest, of ``or`` the least, of ``not`` the
negative.
"""

from __future__ import annotations

import ast
import operator
import unicodedata
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fitbo.checks import assign

Mask = NDArray[np.bool_]
Masks = tuple[Mask, Mask]  # where it is true, and where it is false
Columns = Mapping[str, Any]
Truth = Callable[[Columns], Masks]
Value = Callable[[Columns], Any]

LONGEST, DEEPEST = 2000, 40  # characters of an expression, levels of its tree
LARGEST = 1e300  # of a constant

Constraint = str | Callable[[Any], bool]
NUMBER: Final = None
Kind = Sequence[Any] | None  # of a parameter: the choices of a category, or NUMBER

ARITHMETIC: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    ast.FloorDiv: np.floor_divide,
    ast.Mod: np.mod,
    ast.Pow: np.power,
    ast.USub: np.negative,
    ast.UAdd: np.positive,
}
COMPARISONS: dict[type[ast.cmpop], Callable[..., Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
DIFFERENCES: dict[type[ast.cmpop], Callable[..., Any]] = {  # how far each is from true
    ast.Lt: np.subtract,
    ast.LtE: np.subtract,
    ast.Gt: lambda a, b: b - a,
    ast.GtE: lambda a, b: b - a,
    ast.Eq: lambda a, b: np.abs(a - b),
}
ONE = {name: getattr(np, name) for name in ("abs", "sqrt", "exp", "log", "sin", "cos")}
MANY: dict[str, Callable[..., Any]] = {"min": np.minimum, "max": np.maximum}


class ConstraintError(ValueError):
    """A constraint that cannot be read, or that raised an exception at a point."""


@dataclass(frozen=True)
class Expression:
    """The constraint that ``text`` writes in the names of ``kinds``, or a ``ConstraintError``.

    ``expression(columns)`` says where it holds, (n,), given an array (n,) for each name: of
    numbers, or of objects for a category.
    """

    text: str
    kinds: Mapping[str, Kind]
    _truth: Truth = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        assign(self, _truth=_Reader(self.text, self.kinds).truth(_tree(self.text, self.kinds)))

    @cached_property
    def names(self) -> frozenset[str]:
        """The parameters that it names."""
        nodes = ast.walk(_tree(self.text, self.kinds))
        return frozenset(node.id for node in nodes if isinstance(node, ast.Name)) & set(self.kinds)

    def __reduce__(self) -> Any:
        return Expression, (self.text, self.kinds)

    def __call__(self, columns: Columns) -> Mask:
        n = len(next(iter(columns.values())))
        numbers = {
            name: column if column.dtype == object else column.astype(np.float64)
            for name, column in columns.items()
        }
        with np.errstate(all="ignore"):  # undefined numbers are neither true nor false
            return np.broadcast_to(self._truth(numbers)[0], (n,)).copy()

    def excess(self, columns: Columns) -> NDArray[np.float64]:
        """How far from true it is, (n,): positive where it is false, infinite if undefined."""
        n = len(next(iter(columns.values())))
        found = _Reader(self.text, self.kinds).excess(_tree(self.text, self.kinds))
        with np.errstate(all="ignore"):
            values = np.broadcast_to(np.asarray(found(columns), dtype=np.float64), (n,))
        return np.where(np.isnan(values), np.inf, values)


parse = Expression


def _tree(text: str, kinds: Mapping[str, Kind]) -> ast.AST:
    """Python's syntax tree of the text, of bounded size, its names spelt as in ``kinds``."""
    if len(text) > LONGEST:
        raise ConstraintError(
            f"a constraint must have at most {LONGEST} characters, got {len(text)}: use a function"
        )
    try:
        with warnings.catch_warnings():  # of 'x is 1', which is an error below
            warnings.simplefilter("ignore")
            tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        why = error.msg if isinstance(error, SyntaxError) else "too deep or not text"
        raise ConstraintError(f"constraint {text!r:.80} is not a valid expression: {why}") from None
    level: list[ast.AST] = [tree]
    for _ in range(DEEPEST):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    if level:
        raise ConstraintError(
            f"constraint {text!r:.80} is nested more than {DEEPEST} deep: use a function"
        )
    # Python reads the micro sign as the Greek letter: restore the names as they were spelt.
    spelt = {unicodedata.normalize("NFKC", name): name for name in kinds}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            node.id = spelt.get(node.id, node.id)
    return tree


@dataclass(frozen=True)
class _Reader:
    """Makes each node that is allowed in its place a function of the columns."""

    text: str
    kinds: Mapping[str, Kind]

    def truth(self, node: ast.AST) -> Truth:
        match node:
            case ast.BoolOp(op=op, values=values):
                parts = [self.truth(value) for value in values]
                join = _all if isinstance(op, ast.And) else _any
                return lambda columns: join(part(columns) for part in parts)
            case ast.UnaryOp(op=ast.Not(), operand=a):
                part = self.truth(a)
                return lambda columns: part(columns)[::-1]
            case ast.Compare(left=a, ops=ops, comparators=others):
                pairs = zip([a, *others], ops, others, strict=False)
                links = [self.comparison(*link) for link in pairs]  # a < b <= c: a < b and b <= c
                return lambda columns: _all(link(columns) for link in links)
        raise self.refusal(node, "a comparison, such as x + y <= 1, was expected")

    def comparison(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> Truth:
        if isinstance(op, ast.In | ast.NotIn):
            if not isinstance(right, ast.Tuple | ast.List | ast.Set):
                raise self.refusal(right, "'in' takes a list of constants")
            items = [self.comparison(left, ast.Eq(), item) for item in right.elts]
            if isinstance(op, ast.NotIn):
                return lambda columns: _any(item(columns) for item in items)[::-1]
            return lambda columns: _any(item(columns) for item in items)
        if type(op) not in COMPARISONS:
            raise self.refusal(left, f"{type(op).__name__} is not a comparison of values")
        left, right = _signed(left), _signed(right)
        plain = isinstance(op, ast.Eq | ast.NotEq) and self.categorical(left, right)
        a, b = (self.choice(x) if plain else self.number(x) for x in (left, right))

        def compared(columns: Columns) -> Masks:
            x, y = a(columns), b(columns)
            holds = np.asarray(COMPARISONS[type(op)](x, y), dtype=np.bool_)
            defined = ~(_undefined(x) | _undefined(y))
            return holds & defined, ~holds & defined

        return compared

    def excess(self, node: ast.AST) -> Value:
        """The excess of a node that ``truth`` has taken."""
        match node:
            case ast.BoolOp(op=op, values=values):
                parts = [self.excess(value) for value in values]
                join = np.maximum if isinstance(op, ast.And) else np.fmin
                return lambda columns: reduce(join, [part(columns) for part in parts])
            case ast.UnaryOp(operand=a):
                part = self.excess(a)
                return lambda columns: -part(columns)
            case ast.Compare(left=a, ops=ops, comparators=others):
                links = [self.apart(*c) for c in zip([a, *others], ops, others, strict=False)]
                return lambda columns: reduce(np.maximum, [link(columns) for link in links])
        raise self.refusal(node, "a comparison was expected")

    def apart(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> Value:
        """The excess of a comparison; of one that is not of numbers, 1 or -1."""
        left, right = _signed(left), _signed(right)
        if type(op) not in DIFFERENCES or self.categorical(left, right):
            truth = self.comparison(left, op, right)
            return lambda columns: np.where(truth(columns)[0], -1.0, 1.0)
        a, b = self.number(left), self.number(right)
        return lambda columns: DIFFERENCES[type(op)](a(columns), b(columns))

    def categorical(self, left: ast.expr, right: ast.expr) -> bool:
        """Whether the two are a category and a choice of it, or two categories."""
        for one, other in ((left, right), (right, left)):
            choices = self.choices(one)
            if choices is None:
                continue
            if isinstance(other, ast.Constant):
                if not any(choice == other.value for choice in choices):
                    raise self.refusal(other, f"{ast.unparse(one)} is one of {list(choices)}")
                return True
            if self.choices(other) is not None:
                return True
            if not _numeric(choices):
                raise self.refusal(
                    other, f"compare the category {ast.unparse(one)} with a choice of it"
                )
        return False

    def choices(self, node: ast.AST) -> Sequence[Any] | None:
        """The choices of a category's name, or None."""
        return self.kinds.get(node.id) if isinstance(node, ast.Name) else None

    def choice(self, node: ast.expr) -> Value:
        """The value of a category or of a constant, which may be text."""
        if isinstance(node, ast.Name):
            return operator.itemgetter(node.id)
        value: Any = node.value if isinstance(node, ast.Constant) else None
        constant = float(value) if _numeric([value]) else value
        return lambda columns: constant

    def number(self, node: ast.AST) -> Value:
        match node:
            case ast.Constant(value=int() | float() as value) if _numeric([value]):
                if abs(value) > LARGEST:
                    raise self.refusal(node, f"a number must not exceed {LARGEST:g}")
                return lambda columns: np.float64(value)
            case ast.Name(id=name):
                if name not in self.kinds:
                    raise self.refusal(node, f"the parameters are {', '.join(self.kinds)}")
                if not _numeric(self.choices(node) or ()):
                    raise self.refusal(node, "it is a category: compare it by ==, != or in")
                return lambda columns: np.asarray(columns[name], dtype=np.float64)
            case ast.BinOp(left=a, op=op, right=b):
                return self.applied(node, ARITHMETIC.get(type(op)), a, b)
            case ast.UnaryOp(op=op, operand=a):
                return self.applied(node, ARITHMETIC.get(type(op)), a)
            case ast.Call(func=func, args=arguments, keywords=keywords):
                name = func.id if isinstance(func, ast.Name) else ""
                if name not in ONE and name not in MANY:
                    raise self.refusal(node, f"the functions are {', '.join([*ONE, *MANY])}")
                if keywords or (len(arguments) != 1 if name in ONE else len(arguments) < 2):
                    takes = "one number" if name in ONE else "two or more"
                    raise self.refusal(node, f"{name} takes {takes}")
                function = ONE.get(name) or (lambda *values: reduce(MANY[name], values))
                return self.applied(node, function, *arguments)
        raise self.refusal(node, "a number was expected")

    def applied(
        self, node: ast.AST, function: Callable[..., Any] | None, *arguments: ast.AST
    ) -> Value:
        if function is None:
            raise self.refusal(node, "the operators are + - * / // % **")
        parts = [self.number(argument) for argument in arguments]
        return lambda columns: function(*(part(columns) for part in parts))

    def refusal(self, node: ast.AST, why: str) -> ConstraintError:
        return ConstraintError(
            f"constraint {self.text!r:.80} cannot use {ast.unparse(node)!r:.60}: {why}"
        )


def _all(parts: Iterable[Masks]) -> Masks:
    """Kleene's conjunction: true where all are, false where one is."""
    true, false = np.array(True), np.array(False)
    for is_true, is_false in parts:
        true, false = true & is_true, false | is_false
    return true, false


def _any(parts: Iterable[Masks]) -> Masks:
    """Kleene's disjunction, by de Morgan."""
    return _all(part[::-1] for part in parts)[::-1]


def _signed(node: ast.expr) -> ast.expr:
    """-1 as a constant: Python reads it as the negative of the constant 1."""
    match node:
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return node if isinstance(value, bool) else ast.Constant(-value)
    return node


def _undefined(value: Any) -> Mask:
    array = np.asarray(value)
    return np.isnan(array) if array.dtype.kind == "f" else np.zeros(array.shape, dtype=np.bool_)


def _numeric(values: Sequence[Any]) -> bool:
    return all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)


def name_of(constraint: Callable[[Any], bool]) -> str:
    """What a message calls a constraint that is a function."""
    return getattr(constraint, "__name__", repr(constraint))


def holds_at(constraint: Callable[[Any], bool], point: Any) -> bool:
    """Whether a constraint that is a function is true at a point."""
    try:
        return bool(constraint(point))
    except Exception as error:
        raise ConstraintError(
            f"the constraint {name_of(constraint)} failed at {point!r:.120}: {error!r:.120}"
        ) from error
