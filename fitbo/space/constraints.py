"""Known constraints of a space: expressions in its parameters' names, read and never executed.

    parse("x + y <= 1", {"x": NUMBER, "y": NUMBER})(columns)  ->  (n,) booleans

The text becomes Python's syntax tree, every node of which must be in the tables below, and the tree
is walked with columns of values, one entry a point. All numbers are float64, so that no power can
grow beyond infinity, and the text's length and depth are bounded: an expression costs what its
length says.

Truth has three values, kept as two masks, *true* and *false*. A comparison with an undefined number
(0/0, log of a negative number) is neither; ``and``, ``or`` and ``not`` follow Kleene's tables, so
``x <= 0 or log(x) < 1`` is true at x = -1. A point satisfies a constraint where it is true.
"""

from __future__ import annotations

import ast
import operator
import unicodedata
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final, NoReturn

import numpy as np
from numpy.typing import NDArray

Mask = NDArray[np.bool_]
Columns = Mapping[str, Any]

LONGEST, DEEPEST = 2000, 40  # characters of an expression, levels of its tree
LARGEST = 1e300


class _Number:
    """The kind of a parameter whose values are numbers."""

    def __repr__(self) -> str:
        return "NUMBER"


NUMBER: Final = _Number()
# A parameter's kind: NUMBER, or the choices of a category.
Kind = _Number | Sequence[Any]

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
ONE: dict[str, Callable[..., Any]] = {
    "abs": np.abs,
    "sqrt": np.sqrt,
    "exp": np.exp,
    "log": np.log,
    "sin": np.sin,
    "cos": np.cos,
}
MANY: dict[str, Callable[..., Any]] = {"min": np.minimum, "max": np.maximum}
MEMBERSHIP = (ast.In, ast.NotIn)


class ConstraintError(ValueError):
    """A constraint that cannot be read, or that failed where it was tried."""


@dataclass(frozen=True)
class Expression:
    """A constraint that has been read; ``expression(columns)`` says where it holds, (n,).

    columns   for each name an array (n,): numbers, or objects for a category
    """

    text: str
    tree: ast.expr

    def __call__(self, columns: Columns) -> Mask:
        n = len(next(iter(columns.values())))
        numbers = {
            name: column if column.dtype == object else column.astype(np.float64)
            for name, column in columns.items()
        }
        with np.errstate(all="ignore"):  # what is not defined compares as neither true nor false
            return np.broadcast_to(_truth(self.tree, numbers)[0], (n,)).copy()


def parse(text: str, kinds: Mapping[str, Kind]) -> Expression:
    """The constraint that ``text`` writes in the names of ``kinds``, or one error that says why."""
    if len(text) > LONGEST:
        raise ConstraintError(
            f"a constraint must have at most {LONGEST} characters, got {len(text)}: use a callable"
        )
    try:
        with warnings.catch_warnings():  # Python has opinions on 'x is 1', and an error follows
            warnings.simplefilter("ignore")
            tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        why = error.msg if isinstance(error, SyntaxError) else "too deep or not text"
        raise ConstraintError(f"constraint {text!r:.80} is no expression: {why}") from None
    level: list[ast.AST] = [tree]
    for _ in range(DEEPEST):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    if level:
        raise ConstraintError(
            f"constraint {text!r:.80} is nested more than {DEEPEST} deep: use a callable"
        )
    tree = _Signed().visit(tree)
    # Python reads the micro sign as the Greek letter: names go back to how they were spelt.
    spelt = {unicodedata.normalize("NFKC", name): name for name in kinds}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            node.id = spelt.get(node.id, node.id)
    _Reader(text, kinds).truth(tree)
    return Expression(text, tree)


class _Signed(ast.NodeTransformer):
    """Makes -1 the constant that it looks like: Python reads a minus before a one."""

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        if not (isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant)):
            return node
        value: Any = node.operand.value
        return ast.Constant(-value) if _numeric([value]) else node


@dataclass(frozen=True)
class _Reader:
    """Checks every node against what is allowed in its place."""

    text: str
    kinds: Mapping[str, Kind]

    def truth(self, node: ast.AST) -> None:
        if isinstance(node, ast.BoolOp):
            for value in node.values:
                self.truth(value)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            self.truth(node.operand)
        elif isinstance(node, ast.Compare):
            left = node.left
            for op, right in zip(node.ops, node.comparators, strict=True):
                self.comparison(left, op, right)
                left = right
        else:
            self.refuse(node, "a comparison, such as x + y <= 1, was expected")

    def comparison(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> None:
        if isinstance(op, MEMBERSHIP):
            if not isinstance(right, ast.Tuple | ast.List | ast.Set):
                self.refuse(right, "'in' takes a list of constants")
            for item in right.elts:
                self.equality(left, item)
        elif type(op) not in COMPARISONS:
            self.refuse(left, f"{type(op).__name__} is not a comparison of values")
        elif isinstance(op, ast.Eq | ast.NotEq):
            self.equality(left, right)
        else:
            self.number(left)
            self.number(right)

    def equality(self, left: ast.expr, right: ast.expr) -> None:
        for one, other in ((left, right), (right, left)):
            choices = self.choices(one)
            if choices is None:
                continue
            if isinstance(other, ast.Constant):
                if not any(choice == other.value for choice in choices):
                    self.refuse(other, f"{ast.unparse(one)} is one of {list(choices)}")
                return
            if self.choices(other) is None and not _numeric(choices):
                self.refuse(other, f"compare the category {ast.unparse(one)} with a choice of it")
            if self.choices(other) is not None:
                return
        self.number(left)
        self.number(right)

    def choices(self, node: ast.AST) -> Sequence[Any] | None:
        """The choices of a category's name, or None."""
        kind = self.kinds.get(node.id) if isinstance(node, ast.Name) else None
        return None if kind is None or isinstance(kind, _Number) else kind

    def number(self, node: ast.AST) -> None:
        if isinstance(node, ast.Constant):
            value: Any = node.value
            if isinstance(value, bool) or not isinstance(value, int | float):
                self.refuse(node, "a number was expected")
            if abs(value) > LARGEST:
                self.refuse(node, f"a number must not exceed {LARGEST:g}")
        elif isinstance(node, ast.Name):
            if node.id not in self.kinds:
                self.refuse(node, f"the parameters are {', '.join(self.kinds)}")
            choices = self.choices(node)
            if choices is not None and not _numeric(choices):
                self.refuse(node, "it is a category: compare it by ==, != or in")
        elif isinstance(node, ast.BinOp | ast.UnaryOp):
            if type(node.op) not in ARITHMETIC:
                self.refuse(node, "the operators are + - * / // % **")
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.expr):
                    self.number(child)
        elif isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else ""
            if name not in ONE and name not in MANY:
                self.refuse(node, f"the functions are {', '.join([*ONE, *MANY])}")
            fits = len(node.args) == 1 if name in ONE else len(node.args) >= 2
            if node.keywords or not fits:
                self.refuse(node, f"{name} takes {'one number' if name in ONE else 'two or more'}")
            for argument in node.args:
                self.number(argument)
        else:
            self.refuse(node, "a number was expected")

    def refuse(self, node: ast.AST, why: str) -> NoReturn:
        raise ConstraintError(
            f"constraint {self.text!r:.80} cannot use {ast.unparse(node)!r:.60}: {why}"
        )


def _truth(node: ast.AST, columns: Columns) -> tuple[Mask, Mask]:
    """Where the node is true, and where it is false."""
    if isinstance(node, ast.BoolOp):
        parts = [_truth(value, columns) for value in node.values]
        return _all(parts) if isinstance(node.op, ast.And) else _any(parts)
    if isinstance(node, ast.UnaryOp):
        return _truth(node.operand, columns)[::-1]
    if not isinstance(node, ast.Compare):
        raise TypeError(f"{type(node).__name__} passed the reader")
    left, links = node.left, []
    for op, right in zip(node.ops, node.comparators, strict=True):
        links.append(_link(left, op, right, columns))
        left = right
    return _all(links)


def _link(left: ast.expr, op: ast.cmpop, right: ast.expr, columns: Columns) -> tuple[Mask, Mask]:
    """One comparison of a chain."""
    if isinstance(op, MEMBERSHIP):
        items = right.elts if isinstance(right, ast.Tuple | ast.List | ast.Set) else []
        found = _any([_link(left, ast.Eq(), item, columns) for item in items])
        return found if isinstance(op, ast.In) else found[::-1]
    a, b = _value(left, columns), _value(right, columns)
    holds = np.asarray(COMPARISONS[type(op)](a, b), dtype=np.bool_)
    defined = ~(_undefined(a) | _undefined(b))
    return holds & defined, ~holds & defined


def _all(parts: Sequence[tuple[Mask, Mask]]) -> tuple[Mask, Mask]:
    """Kleene's conjunction: true where all are, false where one is."""
    true, false = np.array(True), np.array(False)
    for is_true, is_false in parts:
        true, false = true & is_true, false | is_false
    return true, false


def _any(parts: Sequence[tuple[Mask, Mask]]) -> tuple[Mask, Mask]:
    """Kleene's disjunction, by de Morgan."""
    return _all([part[::-1] for part in parts])[::-1]


def _value(node: ast.AST, columns: Columns) -> Any:
    """The node's value at every point."""
    match node:
        case ast.Constant():
            constant: Any = node.value
            return float(constant) if _numeric([constant]) else constant
        case ast.Name(id=name):
            return columns[name]
        case ast.BinOp(left=a, op=op, right=b):
            return ARITHMETIC[type(op)](_float(a, columns), _float(b, columns))
        case ast.UnaryOp(op=op, operand=a):
            return ARITHMETIC[type(op)](_float(a, columns))
        case ast.Call(func=ast.Name(id=name), args=arguments):
            values = [_float(argument, columns) for argument in arguments]
            return ONE[name](values[0]) if name in ONE else reduce(MANY[name], values)
    raise TypeError(f"{type(node).__name__} passed the reader")


def _float(node: ast.AST, columns: Columns) -> Any:
    return np.asarray(_value(node, columns), dtype=np.float64)


def _undefined(value: Any) -> Mask:
    array = np.asarray(value)
    return np.isnan(array) if array.dtype.kind == "f" else np.zeros(array.shape, dtype=np.bool_)


def _numeric(values: Sequence[Any]) -> bool:
    return all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
