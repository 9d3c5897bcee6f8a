"""``methods[1].samples=50``: a tree with one value put in from the command line."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, get_args, get_origin

from fitbo.decode.error import ConfigError, join, path_steps
from fitbo.decode.hints import bare_key, keys_of, union_arms, unwrapped
from fitbo.decode.nodes import Node, parse


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
    (step, *rest), arms = steps, union_arms(unwrapped(hint)[0])
    kind = next((arm for arm in arms if dataclasses.is_dataclass(arm)), None)
    listed = next((arm for arm in arms if get_origin(arm) is tuple), None)
    if isinstance(step, int):
        n = len(node.value) if isinstance(node.value, list) else None
        if n is None or step >= n:
            state = "is not a list in the file" if n is None else f"has length {n}, counted from 0"
            raise ConfigError(f"no such item: {path} {state}", value.where, f"{path}[{step}]")
        items = list(node.value)
        item = get_args(listed)[0] if listed else Any
        items[step] = _put(items[step], rest, value, item, f"{path}[{step}]")
        return dataclasses.replace(node, value=items)
    bare, entries = bare_key(kind), node.value
    if entries is None:
        entries = {}
    elif bare and not isinstance(entries, list | dict):
        entries = {bare: node}
    if not isinstance(entries, dict):
        raise ConfigError(f"expected a mapping to set {step!r} in", value.where, path)
    table = next((arm for arm in arms if get_origin(arm) is dict), None)
    below = get_args(table)[1] if table else Any
    if kind and step in keys_of(kind):
        below = keys_of(kind)[step].hint
    absent = Node(None, value.where)
    child = _put(entries.get(step, absent), rest, value, below, join(path, step))
    where = {key: node.keys.get(key, node.where) for key in entries} | {step: value.where}
    return Node({**entries, step: child}, node.where, where)
