"""Nodes to dataclasses, by their type hints; ``override`` puts in a value beforehand."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING
from typing import Any, NoReturn

from fitbo.checks import nearest
from fitbo.decode.error import ConfigError, join, path_steps, shown
from fitbo.decode.hints import Form, Key, expected, fits, keys_of
from fitbo.decode.nodes import Node, number, parse, plain


def decode(node: Node, hint: Any, path: str = "") -> Any:
    """The value of a node where ``hint`` is expected, or a ConfigError at ``path``."""
    f, value = Form(hint), node.value
    if len(f.arms) > 1:
        return _decode_union(node, hint, path)
    if dataclasses.is_dataclass(f.base):
        return _decode_dataclass(node, f.base, path)
    if f.origin is tuple and isinstance(value, list):
        value = tuple(decode(x, f.item, f"{path}[{i}]") for i, x in enumerate(value))
    elif f.origin is dict and isinstance(value, dict):
        value = {k: decode(x, f.item, join(path, k)) for k, x in value.items()}
    elif f.base is Any:
        value = plain(node)
    elif f.base is float and not isinstance(value, bool):
        value = number(node)
        value = float(value) if isinstance(value, int) else value
    if not fits(value, hint):
        _refuse(node, hint, path)
    return value


def _decode_union(node: Node, hint: Any, path: str) -> Any:
    """By the first member that is of the node's kind and takes it; else the first one's error."""
    f = Form(hint)
    if node.value is None and types.NoneType in f.arms:
        return None
    able = [arm for arm in f.given if _holds(node, arm)]
    if not able and len(f.given) > 1:
        _refuse(node, hint, path)
    errors = []
    for arm in able or f.given:
        try:
            return decode(node, arm, path)
        except ConfigError as error:
            errors.append(error)
    raise errors[0]


def _decode_dataclass(node: Node, kind: Any, path: str) -> Any:
    bare, registry = getattr(kind, "bare", None), getattr(kind, "registry", None)
    inner = node
    if bare and node.value is not None and not isinstance(node.value, list | dict):
        inner = Node({bare: node}, node.where, {bare: node.where})
    if not isinstance(inner.value, dict):
        _refuse(node, kind, path)

    def place(name: str) -> str:
        return path if inner is not node and name == bare else join(path, name)

    given, keys = inner.value, keys_of(kind)
    every = dict(keys)
    if registry:
        key, named = keys[registry.by], given.get(registry.by)
        if named is not None and not fits(named.value, key.hint):
            _refuse(named, key.hint, place(registry.by))
        choice = key.default if named is None else named.value
        try:
            every |= {} if choice is MISSING else registry.keys(choice)
        except ValueError as error:
            raise _placed(error, inner, keys, path, place) from None
    for name in given:
        if name not in every:
            hint = nearest(name, every)
            by = registry.by if registry else name
            if not hint and by not in given and keys[by].default is MISSING:
                break  # whether it is unknown depends on a name, whose absence is reported below
            hint = hint or _further_down(name, every) or f"; expected one of {', '.join(every)}"
            raise ConfigError(f"unknown key{hint}", inner.keys[name], join(path, name))
    for name, key in every.items():
        if key.default is MISSING and name not in given:
            message = f"this key is missing: expected {expected(key.hint)}"
            raise ConfigError(message, inner.where, join(path, name))
    values = {name: key.default for name, key in every.items()}
    values |= {n: decode(given[n], k.hint, place(n)) for n, k in every.items() if n in given}
    if registry:
        values["options"] = {n: values.pop(n) for n in every if n not in keys}
    try:
        return kind(**values)
    except ValueError as error:
        raise _placed(error, inner, every, path, place) from None


def _further_down(name: str, keys: Mapping[str, Key]) -> str:
    """Where a key belongs that one of these has, ``; it belongs below method``; or nothing."""
    for key, each in keys.items():
        for arm in Form(each.hint).given:
            kind = Form(arm).base
            if dataclasses.is_dataclass(kind) and name in keys_of(kind):
                return f"; it belongs below {key}: {key}: {{{name}: ...}}"
    return ""


def _placed(
    error: ValueError, node: Node, keys: Collection[str], path: str, place: Callable[[str], str]
) -> ConfigError:
    """A constructor's error at the key that its first word names, on that key's line."""
    word, _, rest = str(error).partition(" ")
    try:
        steps = list(path_steps(word))
    except ConfigError:
        steps = [""]
    first = str(steps[0])
    if first not in keys:
        return ConfigError(str(error), node.where, path)
    with suppress(KeyError, IndexError, TypeError):  # down to where the file ends
        for step in steps:
            below: Any = node.value if isinstance(node.value, dict | list) else {}
            node = below[step]
    return ConfigError(rest, node.where, place(first) + word.removeprefix(first))


def _refuse(node: Node, hint: Any, path: str) -> NoReturn:
    """Raise what is wrong with a node that does not hold what ``hint`` wants."""
    f, value, tail = Form(hint), node.value, ""
    if value is None:
        got = "nothing"
    elif isinstance(value, list | dict):
        got = "a list" if isinstance(value, list) else "a mapping"
    elif isinstance(value, bool | int | float) and (f.names or str in f.arms) and node.plain:
        kind = "the boolean" if isinstance(value, bool) else "the number"
        got, tail = f"{kind} {node.text[:40]}", f": put it in quotes, '{node.text[:40]}'"
    else:
        # As it was written: from a YAML file 1e400 and not inf, on and not True.
        got = shown(value) if isinstance(value, str) or not node.plain else node.text[:60]
    if f.names and isinstance(value, str):
        tail = nearest(value, f.names)
    elif expected(hint) == "a list" and node.plain and value is not None:
        tail = f": write [{node.text[:40]}]"
    raise ConfigError(f"expected {expected(hint)}, got {got}{tail}", node.where, path)


def _holds(node: Node, hint: Any) -> bool:
    """Whether a node is of the kind that a hint wants, whatever its value."""
    f, value = Form(hint), node.value
    if isinstance(value, dict):
        return dataclasses.is_dataclass(f.base) or f.origin is dict or f.base is Any
    if isinstance(value, list):
        return f.origin is tuple or f.base is Any
    if dataclasses.is_dataclass(f.base):
        return hasattr(f.base, "bare") and value is not None
    return fits(number(node) if f.base is float else value, f.base)


def override(node: Node, kind: Any, assignment: str) -> Node:
    """The tree with ``key.path=value`` put in, the value read as YAML; absent keys are made."""
    where = f"--set {assignment if len(assignment) <= 80 else assignment[:77] + '...'}"
    path, equals, text = assignment.partition("=")
    if not equals:
        raise ConfigError("expected key.path=value, as in methods[0].samples=50", where)
    steps = list(path_steps(path.strip(), where))
    return _put(node, steps, parse(text, where, line=False), kind, "")


def _put(node: Node, steps: Sequence[str | int], value: Node, hint: Any, path: str) -> Node:
    if not steps:
        return value
    (step, *rest), arms = steps, [Form(arm) for arm in Form(hint).arms]
    items = {arm.origin: arm.item for arm in arms}
    if isinstance(step, int):
        n = len(node.value) if isinstance(node.value, list) else None
        if n is None or step >= n:
            state = "is not a list in the file" if n is None else f"has length {n}, counted from 0"
            raise ConfigError(f"no such item: {path} {state}", value.where, f"{path}[{step}]")
        listed = list(node.value)
        listed[step] = _put(listed[step], rest, value, items.get(tuple, Any), f"{path}[{step}]")
        return dataclasses.replace(node, value=listed)
    kind: Any = next((arm.base for arm in arms if dataclasses.is_dataclass(arm.base)), None)
    entries = {} if node.value is None else node.value
    if hasattr(kind, "bare") and not isinstance(entries, list | dict):
        entries = {kind.bare: node}
    if not isinstance(entries, dict):
        raise ConfigError(f"expected a mapping to set {step!r} in", value.where, path)
    known = keys_of(kind) if kind else {}
    below = known[step].hint if step in known else items.get(dict, Any)
    absent = Node(None, value.where)
    child = _put(entries.get(step, absent), rest, value, below, join(path, step))
    where = {key: node.keys.get(key, node.where) for key in entries} | {step: value.where}
    return Node({**entries, step: child}, node.where, where)
