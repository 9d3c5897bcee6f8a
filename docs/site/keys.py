"""Every key of a YAML file as Markdown tables, from the schema that ``fitbo schema`` prints."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

Schema = dict[str, Any]

HEAD = """\
# Every key of a file

Made from `fitbo schema` of fitbo {version} when this site was built. A study's file has `space`,
and `objective` unless you ask and tell; a campaign's has `problems`. *Required* keys have no
default. Where a row names a variant, the key exists for that one only.
"""


def keys_page(schema: Schema, version: str) -> str:
    """The page: one section for each kind of mapping, in the order in which a reader meets them."""
    sections = list(walk("", schema, {}))
    return HEAD.format(version=version) + "\n" + "\n\n".join(sections) + "\n"


def walk(path: str, schema: Schema, seen: dict[str, str]) -> Iterator[str]:
    """The section of the mappings at ``path``, and those of the mappings inside them."""
    variants = list(mappings(schema))
    mark = json.dumps(variants, sort_keys=True)
    if not variants or mark in seen:
        return
    title = path or "The file"
    seen[mark] = title
    keys: dict[str, list[tuple[str, Schema]]] = {}
    for variant in variants:
        for key, value in variant["properties"].items():
            keys.setdefault(key, []).append((variant_name(variant), value))
    optional = {k for v in variants for k in v["properties"] if k not in v["required"]}
    rows = [row(key, found, len(variants), key not in optional) for key, found in keys.items()]
    about = variants[0].get("description", "") if len(variants) == 1 else ""
    lines = [f"## {title if not path else f'`{title}`'}", "", about, ""]
    lines += ["| key | what it holds | default | |", "| --- | --- | --- | --- |", *rows]
    yield "\n".join(lines)
    for key, found in keys.items():
        for _, value in found:
            yield from within(f"{path}.{key}".lstrip("."), value, seen)


def within(path: str, schema: Schema, seen: dict[str, str]) -> Iterator[str]:
    """The sections of the mappings that a key, its items or its values may be."""
    yield from walk(path, schema, seen)
    for arm in arms(schema):
        if "items" in arm:
            yield from within(f"{path}[]", arm["items"], seen)
        if isinstance(arm.get("additionalProperties"), dict):
            yield from within(f"{path}.<name>", arm["additionalProperties"], seen)


def arms(schema: Schema) -> Iterator[Schema]:
    """The alternatives of a schema, those inside others too."""
    inner = schema.get("anyOf", []) + schema.get("oneOf", [])
    for each in inner:
        yield from arms(each)
    if not inner:
        yield schema


def mappings(schema: Schema) -> Iterator[Schema]:
    """The alternatives that are mappings with keys of their own."""
    return (arm for arm in arms(schema) if arm.get("properties"))


def variant_name(variant: Schema) -> str:
    """``memel`` of the mapping whose name must be that."""
    for value in variant["properties"].values():
        if "const" in value:
            return str(value["const"])
        if "pattern" in value and value["pattern"].startswith("^"):
            return value["pattern"].lstrip("^").split("(")[0].split("[")[0].rstrip("$")
    return ""


def row(key: str, found: list[tuple[str, Schema]], variants: int, required: bool) -> str:
    """One line of the table: the key, what it holds, its default, what it means."""
    value = dict(found[0][1])
    names = [name for name, _ in found if name]
    meaning = str(value.get("description", ""))
    if variants > 1 and len(found) < variants and names:
        meaning = f"for {', '.join(f'`{name}`' for name in names)}: {meaning}".rstrip(": ")
    if len(found) > 1 and any("const" in each for _, each in found):
        what = ", ".join(f"`{each['const']}`" for _, each in found if "const" in each)
    else:
        what = holds(value)
    default = "required" if required else shown(value.get("default"))
    return f"| `{key}` | {cell(what)} | {cell(default)} | {cell(meaning)} |"


def holds(schema: Schema) -> str:
    """In words: ``an integer from 1 to 100``, ``one of ...``, ``a list of ...``."""
    words = list(dict.fromkeys(filter(None, map(word, arms(schema)))))
    return " or ".join(words) or "anything"


def word(arm: Schema) -> str:
    if "enum" in arm:
        return ", ".join(f"`{name}`" for name in arm["enum"])
    if "const" in arm:
        return f"`{arm['const']}`"
    kind = arm.get("type")
    if kind == "array":
        return f"a list of: {holds(arm['items'])}"
    if kind == "object":
        return "a mapping"
    if kind in ("integer", "number"):
        ends = {"from": arm.get("minimum"), "to": arm.get("maximum")}
        return " ".join([kind, *(f"{name} {x:,}" for name, x in ends.items() if x is not None)])
    return {"string": "text", "boolean": "`true` or `false`"}.get(str(kind), "")


def shown(default: Any) -> str:
    return "" if default is None else f"`{json.dumps(default, ensure_ascii=False)}`"


def cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")
