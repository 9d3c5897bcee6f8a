"""A space to begin with, from what a function's signature or a command line says.

    of_function("model.py:train")               its annotations and defaults, read, never run
    of_command("./simulate {rate:1e-4..1}")     its placeholders and the hints in them

A default d suggests a range about it: (d/100, 100 d) on a logarithmic scale for a small real
number, (0, 1) for a share, (d/10, 10 d) otherwise; integers likewise. What has no default gets a
range that the file marks as a guess.
"""

from __future__ import annotations

import ast
import re
import shlex
from pathlib import Path
from typing import Any, NamedTuple

from fitbo.checks import nearest
from fitbo.config.problem import NAME
from fitbo.objectives.command import PROVIDED, TOKEN
from fitbo.objectives.python import EXTRAS

DECADES = 100.0  # a range this wide, as a ratio, is searched by its logarithm
UNKNOWN = object()


class Proposal(NamedTuple):
    """A parameter by its name: the keys of a file, and why these."""

    name: str
    keys: dict[str, Any]
    why: str


class Seen(NamedTuple):
    """What was found: parameters, what keeps its default, what must be given, a line about it."""

    space: list[Proposal]
    kept: list[str]
    needed: list[str]
    about: str


def of_function(target: str) -> Seen:
    """The proposals for ``file.py:name``; the module is parsed and not imported."""
    file, colon, name = target.rpartition(":")
    if not colon or not file.endswith(".py"):
        raise ValueError(f"--python must be FILE.py:NAME, as in model.py:train, got {target!r}")
    try:
        module = ast.parse(Path(file).read_bytes(), file)
    except SyntaxError as error:
        where = f"line {error.lineno}"
        raise ValueError(f"{file} must be Python, and {where} is not: {error.msg}") from None
    defined = {n.name: n for n in module.body if isinstance(n, ast.FunctionDef)}
    if name not in defined:
        hint = nearest(name, list(defined)) or f"; it has {', '.join(defined) or 'no functions'}"
        raise ValueError(f"{file} must define a function {name} at its top level{hint}")
    node, given = defined[name], defined[name].args
    if given.posonlyargs:
        named = given.posonlyargs[0].arg
        raise ValueError(f"{name} must take its arguments by name, and {named} is positional only")
    defaults = [UNKNOWN] * (len(given.args) - len(given.defaults))
    defaults += map(_value, given.defaults)
    defaults += [UNKNOWN if d is None else _value(d) for d in given.kw_defaults]
    space, kept, needed = list[Proposal](), list[str](), list[str]()
    for argument, default in zip([*given.args, *given.kwonlyargs], defaults, strict=True):
        if argument.arg in EXTRAS:
            continue
        keys, why = _proposed(argument.annotation, default)
        if keys and NAME.admits(argument.arg):
            space.append(Proposal(argument.arg, keys, why))
        else:
            (needed if default is UNKNOWN else kept).append(argument.arg)
    about = (ast.get_docstring(node) or "").strip().partition("\n")[0]
    return Seen(space, kept, needed, "".join(c for c in about if c.isprintable()))


def of_command(text: str) -> tuple[list[str], Seen]:
    """The arguments without hints, and the proposals for their placeholders.

    A hint follows a colon: ``{n:1..9}``, ``{rate:1e-4..1}``, ``{loss:square,huber}``.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ValueError(f"--command must be words as in a shell, got {text!r}: {error}") from None
    found: dict[str, Proposal] = {}

    def bare(match: re.Match[str]) -> str:
        if match[1] is None:
            return match[0]
        name, _, hint = (part.strip() for part in match[1].partition(":"))
        if name not in PROVIDED:
            if not NAME.admits(name):
                raise ValueError(f"--command: {{{name}}} must be a name{NAME}")
            if hint or name not in found:
                found[name] = Proposal(name, *_hinted(name, hint))
        return f"{{{name}}}"

    words = [TOKEN.sub(bare, word) for word in words]
    if not words:
        raise ValueError("--command must name a program, got nothing")
    return words, Seen(list(found.values()), [], [], "")


def _value(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:  # an expression, such as a name
        return None


def _proposed(annotation: ast.expr | None, default: Any) -> tuple[dict[str, Any] | None, str]:
    """The keys for an argument, None if it is neither a number nor a choice, and why these."""
    choices = _literal(annotation)
    kind = annotation.id if isinstance(annotation, ast.Name) else None
    guess = "a guess: it has no default" if default is UNKNOWN else f"its default is {default!r}"
    if choices is not None and len(choices) > 1:
        return {"type": "categorical", "choices": choices}, "as annotated"
    if kind == "bool" or isinstance(default, bool):
        return {"type": "categorical", "choices": [False, True]}, guess
    if kind == "float" or (kind in (None, "float") and isinstance(default, float)):
        middle = float(default) if isinstance(default, (int, float)) else None
        return _real(middle), guess
    if kind == "int" or (kind is None and isinstance(default, int)):
        return _integer(default if isinstance(default, int) else None), guess
    if annotation is None and default is UNKNOWN:
        return _real(None), "a guess: it has neither a default nor an annotation"
    return None, ""


def _literal(annotation: ast.expr | None) -> list[Any] | None:
    """The choices of ``Literal[...]``."""
    if not isinstance(annotation, ast.Subscript):
        return None
    name = annotation.value
    called = name.id if isinstance(name, ast.Name) else getattr(name, "attr", None)
    found = _value(annotation.slice)
    choices = list(found) if isinstance(found, tuple) else [found]
    plain = all(isinstance(choice, (bool, int, float, str)) for choice in choices)
    return choices if called == "Literal" and plain else None


def _real(middle: float | None) -> dict[str, Any]:
    if middle is None or middle == 0 or 0.1 < middle < 1:
        return _range("real", 0.0, 1.0)
    if middle < 0:
        return _range("real", 2 * middle, 0.0)
    factor = 100 if middle < 1 else 10
    return _range("real", middle / factor, factor * middle)


def _integer(middle: int | None) -> dict[str, Any]:
    if middle is None or 0 <= middle <= 10:
        return _range("integer", 0 if middle == 0 else 1, max(10, 3 * (middle or 0)))
    if middle < 0:
        return _range("integer", 2 * middle, 0)
    return _range("integer", middle // 10, 10 * middle)


def _range(kind: str, low: float, high: float) -> dict[str, Any]:
    if kind == "real":
        low, high = float(f"{low:.6g}"), float(f"{high:.6g}")
    keys = {"type": kind, "low": low, "high": high}
    return keys | ({"log": True} if low > 0 and high >= DECADES * low else {})


def _hinted(name: str, hint: str) -> tuple[dict[str, Any], str]:
    """The keys for a placeholder with this hint."""
    if not hint:
        return _real(None), f"a guess: {{{name}:low..high}} or {{{name}:a,b,c}} says it"
    low, dots, high = hint.partition("..")
    try:
        if dots and re.fullmatch(r"-?\d+", low) and re.fullmatch(r"-?\d+", high):
            return _range("integer", int(low), int(high)), "as given"
        if dots:
            return _range("real", float(low), float(high)), "as given"
    except ValueError:
        raise ValueError(
            f"--command: {{{name}:{hint}}} must be a range, {name}:0..1, or choices, {name}:a,b,c"
        ) from None
    return {"type": "categorical", "choices": [c.strip() for c in hint.split(",")]}, "as given"
