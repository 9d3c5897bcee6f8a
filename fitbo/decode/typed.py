"""Nodes to dataclasses, by their type hints."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import MISSING
from typing import Any, NoReturn, Union, get_args, get_origin

from fitbo.checks import nearest
from fitbo.decode.error import ConfigError, join, path_steps, shown
from fitbo.decode.hints import (
    Key,
    Registry,
    Short,
    bare_key,
    choices,
    expected,
    fits,
    keys_of,
    union_arms,
    unwrapped,
)
from fitbo.decode.nodes import Node, number, plain


def decode(node: Node, hint: Any, path: str = "") -> Any:
    """The value that a node stands for where ``hint`` is expected, or a ConfigError at ``path``."""
    base, notes = unwrapped(hint)
    for note in notes:
        if isinstance(note, Short) and not isinstance(node.value, list | dict):
            if _holds(node, note.hint):
                return note.expand(decode(node, note.hint, path))
            _refuse(node, hint, path)
    arms = union_arms(base)
    if len(arms) > 1:
        return _decode_union(node, arms, path)
    if dataclasses.is_dataclass(base):
        return _decode_dataclass(node, base, path)
    if get_origin(base) is tuple:
        if not isinstance(node.value, list):
            _refuse(node, hint, path)
        item = get_args(base)[0]
        value: Any = tuple(decode(x, item, f"{path}[{i}]") for i, x in enumerate(node.value))
    elif get_origin(base) is dict:
        if not isinstance(node.value, dict):
            _refuse(node, hint, path)
        item = get_args(base)[1]
        value = {k: decode(x, item, join(path, k)) for k, x in node.value.items()}
    else:
        value = plain(node) if base is Any else node.value
        if base is float and not isinstance(value, bool):
            value = number(node)
            value = float(value) if isinstance(value, int) else value
    if not fits(value, hint):
        _refuse(node, hint, path)
    return value


def _decode_union(node: Node, arms: Sequence[Any], path: str) -> Any:
    if node.value is None and type(None) in arms:
        return None
    arms = [arm for arm in arms if arm is not type(None)]
    able = [arm for arm in arms if _holds(node, arm)]
    if not able and len(arms) > 1:
        _refuse(node, Union[tuple(arms)], path)  # noqa: UP007
    failure = None
    for arm in able or arms:
        try:
            return decode(node, arm, path)
        except ConfigError as error:
            failure = failure or error
    raise failure or AssertionError("a union has an arm")


def _decode_dataclass(node: Node, kind: Any, path: str) -> Any:
    bare, registry = bare_key(kind), getattr(kind, "registry", None)
    inner = node
    if bare and node.value is not None and not isinstance(node.value, list | dict):
        inner = Node({bare: node}, node.where, {bare: node.where})
    if not isinstance(inner.value, dict):
        _refuse(node, kind, path)

    def place(name: str) -> str:
        return path if inner is not node and name == bare else join(path, name)

    keys = keys_of(kind)
    every = dict(keys)
    if registry is not None:
        every |= _registered(inner, keys[registry.by], registry, place)
    for name in inner.value:
        if name not in every:
            hint = nearest(name, every)
            by = registry.by if registry is not None else name
            if not hint and by not in inner.value and keys[by].default is MISSING:
                break  # whose key it would be is not known: that name is what is missing
            hint = hint or f"; expected one of {', '.join(every)}"
            raise ConfigError(f"unknown key{hint}", inner.keys[name], join(path, name))
    for name, key in every.items():
        if key.default is MISSING and name not in inner.value:
            message = f"this key is missing: expected {expected(key.hint)}"
            raise ConfigError(message, inner.where, join(path, name))
    values = {
        name: decode(inner.value[name], key.hint, place(name))
        if name in inner.value
        else key.default
        for name, key in every.items()
    }
    if registry is not None:
        values[registry.into] = {n: values.pop(n) for n in every if n not in keys}
    try:
        return kind(**values)
    except ValueError as error:
        raise _placed(error, inner, set(every), path, place) from None


def _registered(
    node: Node, key: Key, registry: Registry, place: Callable[[str], str]
) -> Mapping[str, Key]:
    """The further keys that a registry allows in a mapping, given the name in it."""
    named = node.value.get(registry.by)
    if named is None:
        return {} if key.default is MISSING else registry.keys(key.default)
    path = place(registry.by)
    if not isinstance(named.value, str):
        _refuse(named, key.hint, path)
    try:
        return registry.keys(named.value)
    except ValueError as error:
        raise ConfigError(str(error).removeprefix(f"{registry.by} "), named.where, path) from None


def _placed(
    error: ValueError, node: Node, keys: Collection[str], path: str, place: Callable[[str], str]
) -> ConfigError:
    """A constructor's error at the key that its first word names, on that key's line."""
    message = str(error)
    word, _, rest = message.partition(" ")
    try:
        first, *others = path_steps(word)
    except ConfigError:
        first, others = "", []
    if first not in keys:
        return ConfigError(message, node.where, path)
    deepest = node
    for step in (first, *others):
        if not isinstance(deepest.value, dict if isinstance(step, str) else list):
            break
        if isinstance(step, str) and step not in deepest.value:
            break
        below: Any = deepest.value
        deepest = below[step]
    return ConfigError(rest, deepest.where, place(str(first)) + word.removeprefix(str(first)))


def _refuse(node: Node, hint: Any, path: str) -> NoReturn:
    """Raise what is wrong with a node that does not hold what ``hint`` wants."""
    names, value, tail = choices(hint), node.value, ""
    wants_text = bool(names) or str in union_arms(unwrapped(hint)[0])
    if value is None:
        got = "nothing"
    elif isinstance(value, list | dict):
        got = "a list" if isinstance(value, list) else "a mapping"
    elif isinstance(value, bool | int | float) and wants_text and node.plain:
        kind = "the boolean" if isinstance(value, bool) else "the number"
        got, tail = f"{kind} {node.text[:40]}", f": put it in quotes, '{node.text[:40]}'"
    else:
        # As it was written: of a YAML file 1e400 and not inf, on and not True.
        got = shown(value) if isinstance(value, str) or not node.plain else node.text[:60]
    if names and isinstance(value, str):
        tail = nearest(value, names)
    elif expected(hint) == "a list" and node.plain and value is not None:
        tail = f": write [{node.text[:40]}]"
    raise ConfigError(f"expected {expected(hint)}, got {got}{tail}", node.where, path)


def _holds(node: Node, hint: Any) -> bool:
    """Whether a node is of the kind a hint wants, its value apart."""
    base, value = unwrapped(hint)[0], node.value
    if isinstance(value, dict):
        return dataclasses.is_dataclass(base) or get_origin(base) is dict or base is Any
    if isinstance(value, list):
        return get_origin(base) is tuple or base is Any
    if dataclasses.is_dataclass(base):
        return bare_key(base) is not None and value is not None
    if base is float and isinstance(value, str):
        return isinstance(number(node), float)
    return fits(value, base)
