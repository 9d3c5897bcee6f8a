"""YAML text -> nodes with line numbers -> frozen dataclasses, by their type hints.

Imports: ``checks`` and yaml, which no other package imports; it knows no key of any file.
Add here: another rule for values, such as ``Range``, in ``hints`` and in ``schema``.

    node = parse(text, "x.yaml")           a tree of Node: aliases and merge keys resolved
    node = override(node, Campaign, "methods[1].samples=50")
    decode(node, Campaign)                 the dataclass, or one ConfigError that names the key
    encode(campaign)                       plain JSON types; nodes_of turns them into a tree again
    json_schema(Campaign, "A campaign")    what an editor needs to complete and check the file

A field's hint states its type and, by ``Annotated``, its documentation (a string) and its rules:

    budget: Annotated[int, "evaluations in total, initial design included", Range(1)]

The same hints serve the decoder, the schema and, by ``check(self)`` in ``__post_init__``, objects
built in Python. Hints may be bool, int, float (finite), str, Any, Literal, unions,
``tuple[T, ...]``, ``dict[str, T]`` and dataclasses. Two class variables of a dataclass extend this:

    bare      the key that a bare scalar stands for: ``dask`` for ``{kind: dask}``
    registry  further keys, which depend on the name in another key; see ``Registry``

A ValueError of a constructor is placed at the key that its first word names, as in
``n_moments must be at least 2, got 1`` or ``methods[1].label must be unique``.
"""

from fitbo.checks import nearest
from fitbo.decode.error import ConfigError, shown
from fitbo.decode.hints import (
    Choice,
    Key,
    Pattern,
    Range,
    Registry,
    check,
    check_value,
    keys_of,
)
from fitbo.decode.nodes import Node, nodes_of, parse, read, with_entry
from fitbo.decode.schema import differences, encode, json_schema
from fitbo.decode.typed import decode, override

__all__ = [
    "Choice",
    "ConfigError",
    "Key",
    "Node",
    "Pattern",
    "Range",
    "Registry",
    "check",
    "check_value",
    "decode",
    "differences",
    "encode",
    "json_schema",
    "keys_of",
    "nearest",
    "nodes_of",
    "override",
    "parse",
    "read",
    "shown",
    "with_entry",
]
