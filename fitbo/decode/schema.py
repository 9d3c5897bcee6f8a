"""Dataclasses to plain data, what differs between two, and the JSON Schema of their files."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import MISSING
from itertools import zip_longest
from typing import Any

from fitbo.decode.error import join, shown
from fitbo.decode.hints import SCALARS, Form, Key, Pattern, Range, Registry, keys_of


def encode(value: Any) -> Any:
    """Plain JSON types; the keys are the fields in order, with a registry's options inline."""
    if dataclasses.is_dataclass(value):
        plain = {f.name: encode(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return plain | plain.pop("options") if hasattr(value, "registry") else plain
    if isinstance(value, tuple | list):
        return [encode(item) for item in value]
    if isinstance(value, dict):
        return {key: encode(item) for key, item in value.items()}
    return value


def differences(old: Any, new: Any, path: str = "") -> list[str]:
    """The key paths at which two trees of plain data differ, with both values.

    A key that is absent was left out, as one that is None is: files know more keys than they did.
    """
    if isinstance(old, dict) and isinstance(new, dict):
        pairs = [(join(path, k), old.get(k, MISSING), new.get(k, MISSING)) for k in old | new]
    elif isinstance(old, list) and isinstance(new, list):
        longest = zip_longest(old, new, fillvalue=MISSING)
        pairs = [(f"{path}[{i}]", a, b) for i, (a, b) in enumerate(longest)]
    elif _same(old, new):
        return []
    else:
        was, now = ("absent" if x is MISSING else shown(x) for x in (old, new))
        return [f"{path}: was {was}, is {now}"]
    return [line for below, a, b in pairs for line in differences(a, b, below)]


def _same(old: Any, new: Any) -> bool:
    if old is MISSING or new is MISSING:
        return old is None or new is None
    return bool(old == new) and isinstance(old, bool) == isinstance(new, bool)


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
    return schema


def _dataclass_schema(kind: Any) -> dict[str, Any]:
    keys, bare = keys_of(kind), getattr(kind, "bare", None)
    if hasattr(kind, "registry"):
        name, whole = _registry_schemas(keys, kind.registry)
    else:
        hint = keys[bare].hint if bare else Any
        given = Form(hint).given  # a bare scalar is not None: the schema of X for X | None
        name = _schema(given[0] if len(given) == 1 < len(Form(hint).arms) else hint)
        whole = _object_schema(keys)
    whole = {"description": (kind.__doc__ or "").strip().split("\n")[0]} | whole
    return {"oneOf": [name, whole]} if bare else whole


def _registry_schemas(
    keys: Mapping[str, Key], registry: Registry
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The schema of a name alone, and that of a mapping: one variant per name."""
    by = keys[registry.by]
    # The names contain no special characters of regular expressions.
    names = {name: f"^{name}{registry.suffix}$" for name in registry.names}
    variants = []
    for known, pattern in names.items():
        exact = {"type": "string", "pattern": pattern} if registry.suffix else {"const": known}
        variant = _object_schema({**keys, **registry.keys(known)})
        variant["properties"][registry.by] = {"description": by.doc} | exact
        if known != by.default:
            variant["required"] = sorted({*variant["required"], registry.by})
        variants.append({"description": registry.about(known)} | variant)
    if by.default is None:  # it may do without a name
        unnamed = _object_schema(keys)
        unnamed["properties"][registry.by] = {"type": "null"}
        variants.append(unnamed)
    name: dict[str, Any] = {"enum": list(names)}
    if registry.suffix:
        pattern = "|".join(filter(None, [*names.values(), registry.path]))
        name = {"anyOf": [name, {"type": "string", "pattern": pattern}]}
    return name, {"anyOf": variants}


def _object_schema(keys: Mapping[str, Key]) -> dict[str, Any]:
    properties = {}
    for name, key in keys.items():
        about: dict[str, Any] = {"description": key.doc} if key.doc else {}
        about |= {} if key.default is MISSING else {"default": encode(key.default)}
        properties[name] = _schema(key.hint) | about
    required = [name for name, key in keys.items() if key.default is MISSING]
    closed = {"type": "object", "additionalProperties": False}
    return closed | {"properties": properties, "required": required}
