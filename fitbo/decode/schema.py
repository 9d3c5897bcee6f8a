"""Dataclasses to plain data, what differs between two, and the JSON Schema of their files."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import MISSING
from itertools import zip_longest
from types import NoneType
from typing import Any

from fitbo.decode.error import join, shown
from fitbo.decode.hints import SCALARS, Form, Key, Pattern, Range, Short, keys_of


def encode(value: Any) -> Any:
    """Plain JSON types; the keys are the fields in order, with a registry's options inline."""
    if dataclasses.is_dataclass(value):
        registry = getattr(value, "registry", None)
        plain: dict[str, Any] = {}
        for f in dataclasses.fields(value):
            item = encode(getattr(value, f.name))
            plain |= item if registry and f.name == registry.into else {f.name: item}
        return plain
    if isinstance(value, tuple | list):
        return [encode(item) for item in value]
    if isinstance(value, dict):
        return {key: encode(item) for key, item in value.items()}
    return value


def differences(old: Any, new: Any, path: str = "") -> list[str]:
    """The key paths at which two trees of plain data differ, with both values."""
    if isinstance(old, dict) and isinstance(new, dict):
        pairs = [(join(path, k), old.get(k, MISSING), new.get(k, MISSING)) for k in old | new]
    elif isinstance(old, list) and isinstance(new, list):
        longest = zip_longest(old, new, fillvalue=MISSING)
        pairs = [(f"{path}[{i}]", a, b) for i, (a, b) in enumerate(longest)]
    elif old == new and isinstance(old, bool) == isinstance(new, bool):
        return []
    else:
        was, now = ("absent" if x is MISSING else shown(x) for x in (old, new))
        return [f"{path}: was {was}, is {now}"]
    return [line for below, a, b in pairs for line in differences(a, b, below)]


def json_schema(kind: Any, title: str) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of the files that ``decode(..., kind)`` accepts.

    It states what holds key by key; rules over several keys are left to the decoder.
    """
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title}
    return head | _schema(kind)


def _schema(hint: Any) -> dict[str, Any]:
    f = Form(hint)
    if len(f.arms) > 1:
        schema: dict[str, Any] = {"anyOf": [_schema(arm) for arm in f.arms]}
    elif f.names:
        schema = {"enum": list(f.names)}
    elif dataclasses.is_dataclass(f.base):
        schema = _dataclass_schema(f.base)
    elif f.origin is tuple:
        schema = {"type": "array", "items": _schema(f.item)}
    elif f.origin is dict:
        schema = {"type": "object", "additionalProperties": _schema(f.item)}
    else:
        schema = {"type": SCALARS[f.base][1]} if f.base in SCALARS else {}
    for note in f.notes:
        if isinstance(note, Range):
            limits = {"minimum": note.least, "maximum": note.most}
            schema |= {name: limit for name, limit in limits.items() if math.isfinite(limit)}
        elif isinstance(note, Pattern):
            schema["pattern"] = f"^(?:{note.regex})$"
        elif isinstance(note, Short):
            schema = {"oneOf": [_schema(note.hint), schema]}
    return schema


def _dataclass_schema(kind: Any) -> dict[str, Any]:
    keys, registry = keys_of(kind), getattr(kind, "registry", None)
    bare = getattr(kind, "bare", None)
    if registry is None:
        whole = _object_schema(keys)
        name = _schema(_given(keys[bare].hint)) if bare else {}
    else:
        # The names contain no special characters of regular expressions.
        names = {name: f"^{name}{registry.suffix}$" for name in registry.names()}
        variants = []
        for known, pattern in names.items():
            exact = {"type": "string", "pattern": pattern} if registry.suffix else {"const": known}
            variant = _object_schema(keys | dict(registry.keys(known)))
            variant["properties"][registry.by] = {"description": keys[registry.by].doc} | exact
            if known != keys[registry.by].default:
                variant["required"] = sorted({*variant["required"], registry.by})
            variants.append({"description": registry.about(known)} | variant)
        if keys[registry.by].default is None:  # it may do without a name
            unnamed = _object_schema(keys)
            unnamed["properties"][registry.by] = {"type": "null"}
            variants.append(unnamed)
        whole = {"anyOf": variants}
        name = {"enum": list(names)}
        if registry.suffix:
            patterns = [*names.values(), *([registry.path] if registry.path else [])]
            name = {"anyOf": [name, {"type": "string", "pattern": "|".join(patterns)}]}
    whole = {"description": (kind.__doc__ or "").strip().split("\n")[0]} | whole
    return {"oneOf": [name, whole]} if bare else whole


def _given(hint: Any) -> Any:
    """The hint of a key where it is given: ``X`` for ``X | None``."""
    arms = Form(hint).arms
    given = [arm for arm in arms if arm is not NoneType]
    return given[0] if len(given) == 1 < len(arms) else hint


def _object_schema(keys: Mapping[str, Key]) -> dict[str, Any]:
    properties = {}
    for name, key in keys.items():
        about: dict[str, Any] = {"description": key.doc} if key.doc else {}
        if key.default is not MISSING:
            about["default"] = encode(key.default)
        properties[name] = _schema(key.hint) | about
    required = [name for name, key in keys.items() if key.default is MISSING]
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }
