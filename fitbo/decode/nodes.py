"""YAML text to a tree of values that know their lines.

PyYAML's safe loader composes the text and constructs nothing. Scalars are resolved here and not by
YAML 1.1: ``1e-3`` stays text (a number where one is wanted, see ``typed``), and so do ``010`` and
``12:30``, which YAML 1.1 reads as 8 and 750.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from fitbo.decode.error import ConfigError, shown

MAX_BYTES = 1 << 18  # PyYAML reads some 100 kB per second
MAX_NODES = 20_000  # aliases expanded: ten lines of them can stand for a billion values
MAX_DEPTH = 40
MAX_DIGITS = 18  # a longer integer becomes a float: nothing here counts beyond 64 bits

TAG = "tag:yaml.org,2002:"
INTEGER = re.compile(r"[-+]?(0|[1-9][0-9_]*)")
NUMBER = re.compile(r"[-+]?((0|[1-9][0-9_]*)(\.[0-9_]*)?|\.[0-9][0-9_]*)([eE][-+]?[0-9]+)?")
NON_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
KINDS: dict[type, tuple[str, ...]] = {
    yaml.ScalarNode: ("str", "null", "bool", "int", "float", "timestamp", "value", "merge"),
    yaml.SequenceNode: ("seq",),
    yaml.MappingNode: ("map",),
}
TRUE = ("yes", "true", "on")


@dataclass(frozen=True, eq=False)
class Node:
    """A value and its place in a file.

    value   None, bool, int, float or str; a list of nodes; a dict from keys to nodes
    where   the file and line
    keys    for a dict, the file and line of each key, which may precede its value
    text    a scalar as it was written
    plain   whether it was written without quotes
    size    the number of values: this one and those below
    """

    value: Any
    where: str
    keys: Mapping[str, str] = field(default_factory=dict)
    text: str = ""
    plain: bool = False
    size: int = 1


def read(path: str | Path) -> str:
    """The text of a file in UTF-8, or a ConfigError."""
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:  # a path with a NUL is a ValueError
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError(f"the file cannot be read: {reason}", str(path)) from None
    if len(data) > MAX_BYTES:
        raise ConfigError(f"expected a file of at most {MAX_BYTES} bytes", str(path))
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = f"expected text in UTF-8, got the byte 0x{data[error.start]:02x}"
        raise ConfigError(message, f"{path}:{line}") from None


def parse(text: str, source: str, line: bool = True) -> Node:
    """The tree of a YAML text; ``line=False`` where line numbers mean nothing."""

    def where(row: int) -> str:
        return f"{source}:{row + 1}" if line else source

    try:
        root = yaml.compose(text, Loader=_Composer)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = where(mark.line) if mark else source
        why = ", ".join(part for part in (error.context, error.problem, error.note) if part)
        why += "; indent by spaces" if "'\\t'" in str(error.problem) else ""
    except yaml.reader.ReaderError as error:
        at = where(text.count("\n", 0, error.position))
        why = f"the character {chr(error.character)!r} is not allowed"
    except (ValueError, OverflowError) as error:  # such as chr() of an escape beyond Unicode
        at, why = source, str(error)
    else:
        return Node(None, where(0)) if root is None else _Converter(where).convert(root)
    raise ConfigError(f"not valid YAML: {why}", at)


def nodes_of(data: Any, where: str) -> Node:
    """Plain data, as from a JSON file, as a tree with one ``where`` for all of it."""
    if isinstance(data, Mapping):
        entries = {str(key): nodes_of(value, where) for key, value in data.items()}
        return Node(entries, where, dict.fromkeys(entries, where))
    if isinstance(data, list | tuple):
        return Node([nodes_of(item, where) for item in data], where)
    if data is not None and not isinstance(data, bool | int | float | str):
        raise ConfigError(f"expected plain data, got {type(data).__name__}", where)
    return Node(data, where, text=str(data))


def with_entry(node: Node, key: str, value: Any) -> Node:
    """A mapping with one more entry."""
    entries = {**node.value, key: nodes_of(value, node.where)}
    return Node(entries, node.where, {**node.keys, key: node.where})


class _Composer(yaml.SafeLoader):
    """The safe loader's composer, which calls itself for each level, within our limits."""

    depth = count = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        self.depth, self.count = self.depth + 1, self.count + 1
        if self.depth > MAX_DEPTH or self.count > MAX_NODES:
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            limit = f"{MAX_DEPTH} levels" if self.depth > MAX_DEPTH else f"{MAX_NODES} values"
            raise yaml.MarkedYAMLError(problem=f"there are over {limit}", problem_mark=mark)
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


class _Converter:
    """PyYAML's nodes to ours: tags checked, merge keys applied, duplicates and cycles refused."""

    def __init__(self, where: Callable[[int], str]) -> None:
        self.where = where
        self.made: dict[int, Node | None] = {}  # None: not finished; an alias is the node itself
        self.entries = 0

    def convert(self, node: yaml.Node) -> Node:
        where = self.where(node.start_mark.line)
        if id(node) not in self.made:
            self.made[id(node)] = None
            self.made[id(node)] = self._converted(node, where)
        made = self.made[id(node)]
        if made is None:
            raise ConfigError("an anchor must not contain its own alias", where)
        _check_size(made.size, where)
        return made

    def _converted(self, node: Any, where: str) -> Node:
        kind = node.tag.removeprefix(TAG)
        if kind not in KINDS[type(node)]:
            tag = node.tag.replace(TAG, "!!")
            raise ConfigError(f"the tag {shown(tag)} is not allowed: write plain values", where)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, where)
        if isinstance(node, yaml.SequenceNode):
            items = [self.convert(item) for item in node.value]
            return Node(items, where, size=1 + sum(item.size for item in items))
        plain = node.style is None
        node.value = _joined(node.value, where)
        value = _scalar(node.value, kind) if plain or kind != "str" else node.value
        return Node(value, where, text=node.value, plain=plain)

    def _mapping(self, node: yaml.MappingNode, where: str) -> Node:
        own: dict[str, Node] = {}
        keys: dict[str, str] = {}
        merged: list[Node] = []
        for key, value in node.value:
            at = self.where(key.start_mark.line)
            if not isinstance(key, yaml.ScalarNode):
                raise ConfigError("expected a name as a key, got a list or a mapping", at)
            if key.tag == TAG + "merge":
                source = self.convert(value)
                sources = source.value if isinstance(source.value, list) else [source]
                if not all(isinstance(one.value, dict) for one in sources):
                    raise ConfigError("expected a mapping or a list of mappings to merge by <<", at)
                merged += sources
            elif key.value in own:
                first = keys[key.value]
                hint = f", first on line {first.rpartition(':')[2]}" if first != at else ""
                raise ConfigError(f"the key {shown(key.value)} is given twice{hint}", at)
            else:
                own[key.value], keys[key.value] = self.convert(value), at
        for source in merged:  # what is written here wins, then the earlier source
            own, keys = {**own, **source.value, **own}, {**keys, **source.keys, **keys}
        self.entries += len(own)  # a merge copies, so its entries count again
        _check_size(self.entries, where)
        return Node(own, where, keys, size=1 + sum(child.size for child in own.values()))


def _joined(text: str, where: str) -> str:
    """The text with each pair of surrogate escapes as the one character that JSON makes of it."""
    if text.isascii():
        return text
    try:
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise ConfigError(
            f"half of a surrogate pair is no character: {text!a:.60}", where
        ) from None


def _check_size(size: int, where: str) -> None:
    if size > MAX_NODES:
        raise ConfigError(f"expected at most {MAX_NODES} values, aliases expanded", where)


def _scalar(text: str, kind: str) -> Any:
    """The value of a scalar that YAML 1.1 resolved to ``kind``; see the head of the module."""
    if kind == "null":
        return None
    if kind == "bool":
        return text.lower() in TRUE
    digits = text.replace("_", "")
    if kind == "int" and INTEGER.fullmatch(text):
        return int(digits) if len(digits) <= MAX_DIGITS else float(digits)
    if kind == "float" and (NUMBER.fullmatch(text) or NON_FINITE.fullmatch(text)):
        return float(digits.lower().replace(".inf", "inf").replace(".nan", "nan"))
    return text


def number(node: Node) -> Any:
    """A scalar's value; ``1e-3`` without quotes, which is text to YAML 1.1, is a number."""
    if isinstance(node.value, str) and node.plain and NUMBER.fullmatch(node.value):
        return float(node.value.replace("_", ""))
    return node.value


def plain(node: Node) -> Any:
    """A tree as lists, dicts and scalars; ``1e-3`` is a number."""
    if isinstance(node.value, dict):
        return {key: plain(value) for key, value in node.value.items()}
    if isinstance(node.value, list):
        return [plain(item) for item in node.value]
    return number(node)
