"""YAML text to a tree of values that know their lines.

PyYAML's safe loader composes the text and constructs nothing. What it would resolve by YAML 1.1 is
resolved here: ``1e-3`` stays text (a number where one is wanted, see ``typed``), and so do ``010``,
which it would read as eight, and ``12:30``, as 750.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from fitbo.decode.error import ConfigError, shown

MAX_BYTES = 1 << 18  # PyYAML reads some 100 kB a second
MAX_NODES = 20_000  # aliases expanded: ten lines of them can stand for a billion values
MAX_DEPTH = 40
MAX_DIGITS = 18  # a longer integer is a float: nothing here counts beyond 64 bits

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
    """A value and where it stands.

    value   None, bool, int, float or str; a list of nodes; a dict from keys to nodes
    keys    for a dict, where each key stands, which may be a line before its value
    text    a scalar as it was written
    plain   whether it was written without quotes
    size    values in all, this one and those below
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
    try:
        root = yaml.compose(text, Loader=_Composer)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{source}:{mark.line + 1}" if mark and line else source
        parts = [part for part in (error.context, error.problem, error.note) if part]
        hint = "; indent by spaces" if "'\\t'" in str(error.problem) else ""
        raise ConfigError(f"not valid YAML: {', '.join(parts)}{hint}", where) from None
    except yaml.reader.ReaderError as error:
        where = f"{source}:{text.count(chr(10), 0, error.position) + 1}" if line else source
        message = f"not valid YAML: the character {chr(error.character)!r} is not allowed"
        raise ConfigError(message, where) from None
    except (ValueError, OverflowError) as error:  # chr() of an escape beyond Unicode, and such
        raise ConfigError(f"not valid YAML: {error}", source) from None
    if root is None:
        return Node(None, f"{source}:1" if line else source)
    return _Converter(source, line).convert(root)


def nodes_of(data: Any, where: str) -> Node:
    """Plain data, as of a JSON file, as a tree; ``where`` serves all of it."""
    if isinstance(data, Mapping):
        entries = {str(key): nodes_of(value, where) for key, value in data.items()}
        return Node(entries, where, dict.fromkeys(entries, where))
    if isinstance(data, list | tuple):
        return Node([nodes_of(item, where) for item in data], where)
    if data is not None and not isinstance(data, bool | int | float | str):
        raise ConfigError(f"expected plain data, got {type(data).__name__}", where)
    return Node(data, where, text=str(data))


def with_entry(node: Node, key: str, value: Any) -> Node:
    """A mapping with one more entry, in place of an absent one."""
    entries = {**node.value, key: nodes_of(value, node.where)}
    return Node(entries, node.where, {**node.keys, key: node.where})


class _Composer(yaml.SafeLoader):
    """The safe loader's composer, which calls itself for each level, held to our limits."""

    depth = 0
    count = 0

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

    def __init__(self, source: str, line: bool) -> None:
        self.source, self.line = source, line
        self.done: dict[int, Node] = {}  # an alias is the very node it stands for
        self.active: set[int] = set()
        self.entries = 0

    def where(self, node: yaml.Node) -> str:
        return f"{self.source}:{node.start_mark.line + 1}" if self.line else self.source

    def convert(self, node: yaml.Node) -> Node:
        if id(node) in self.active:
            raise ConfigError("an anchor must not contain its own alias", self.where(node))
        if id(node) not in self.done:
            self.active.add(id(node))
            made = self._made(node)
            self.active.remove(id(node))
            self._check_size(made.size, made.where)
            self.done[id(node)] = made
        return self.done[id(node)]

    def _check_size(self, size: int, where: str) -> None:
        if size > MAX_NODES:
            raise ConfigError(f"expected at most {MAX_NODES} values, aliases expanded", where)

    def _made(self, node: yaml.Node) -> Node:
        where, kind = self.where(node), node.tag.removeprefix(TAG)
        if kind not in KINDS[type(node)]:
            tag = node.tag.replace(TAG, "!!")
            raise ConfigError(f"the tag {shown(tag)} is not allowed: write plain values", where)
        if isinstance(node, yaml.ScalarNode):
            plain = node.style is None
            value = _scalar(node.value, kind) if plain or kind != "str" else node.value
            return Node(value, where, text=node.value, plain=plain)
        if isinstance(node, yaml.SequenceNode):
            items = [self.convert(item) for item in node.value]
            return Node(items, where, size=1 + sum(item.size for item in items))
        assert isinstance(node, yaml.MappingNode)  # noqa: S101 (for the type checker)
        return self._mapping(node, where)

    def _mapping(self, node: yaml.MappingNode, where: str) -> Node:
        own: dict[str, Node] = {}
        keys: dict[str, str] = {}
        merged: list[Node] = []
        for key, value in node.value:
            at = self.where(key)
            if not isinstance(key, yaml.ScalarNode):
                raise ConfigError("expected a name as a key, got a list or a mapping", at)
            if key.tag == TAG + "merge":
                merged += self._sources(value, at)
            elif key.value in own:
                first = keys[key.value].rpartition(":")[2]
                hint = f", first on line {first}" if self.line else ""
                raise ConfigError(f"the key {shown(key.value)} is given twice{hint}", at)
            else:
                own[key.value], keys[key.value] = self.convert(value), at
        for source in merged:  # what is written here wins, then the earlier source
            for name, value in source.value.items():
                if name not in own:
                    own[name], keys[name] = value, source.keys[name]
        self.entries += len(own)  # merges copy, so each adds to what is held
        self._check_size(self.entries, where)
        return Node(own, where, keys, size=1 + sum(child.size for child in own.values()))

    def _sources(self, value: yaml.Node, at: str) -> list[Node]:
        source = self.convert(value)
        sources = source.value if isinstance(source.value, list) else [source]
        if not all(isinstance(one.value, dict) for one in sources):
            raise ConfigError("expected a mapping or a list of mappings to merge by <<", at)
        return list(sources)


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
    """A scalar's value, which for ``1e-3``, text to YAML 1.1, is a number if it has no quotes."""
    if isinstance(node.value, str) and node.plain and NUMBER.fullmatch(node.value):
        return float(node.value.replace("_", ""))
    return node.value


def plain(node: Node) -> Any:
    """A tree as lists, dicts and scalars, ``1e-3`` being a number."""
    if isinstance(node.value, dict):
        return {key: plain(value) for key, value in node.value.items()}
    if isinstance(node.value, list):
        return [plain(item) for item in node.value]
    return number(node)
