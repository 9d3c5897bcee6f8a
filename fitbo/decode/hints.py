"""What a type hint says about a value: its notes, whether a value fits, and both in words."""

from __future__ import annotations

import dataclasses
import math
import re
import types
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, dataclass
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, Union, get_args, get_origin, get_type_hints

from fitbo.decode.error import shown

SCALARS = {  # in the words of an error, and in a JSON Schema
    bool: ("true or false", "boolean"),
    int: ("an integer", "integer"),
    float: ("a finite number", "number"),
    str: ("text", "string"),
    types.NoneType: ("nothing", "null"),
}


@dataclass(frozen=True)
class Range:
    """``least <= value <= most``."""

    least: float = -math.inf
    most: float = math.inf

    def admits(self, value: Any) -> bool:
        return bool(self.least <= value <= self.most)

    def __str__(self) -> str:
        low, high = self.least > -math.inf, self.most < math.inf
        if low and high:
            return f" from {self.least} to {self.most}"
        return f" >= {self.least}" if low else f" <= {self.most}" if high else ""


@dataclass(frozen=True)
class Pattern:
    """The whole text matches ``regex``; ``says`` is the rule in words."""

    regex: str
    says: str

    def admits(self, value: Any) -> bool:
        return re.fullmatch(self.regex, value) is not None

    def __str__(self) -> str:
        return f" of {self.says}"


@dataclass(frozen=True, eq=False)
class Choice:
    """One of the names in a collection that may still grow: a registry."""

    names: Collection[str]

    def admits(self, value: Any) -> bool:
        return value in self.names


@dataclass(frozen=True)
class Key:
    """A key of a mapping: the hint of its value, its default (MISSING: required) and its doc."""

    hint: Any
    default: Any = MISSING
    doc: str = ""


@dataclass(frozen=True)
class Registry:
    """Further keys, which depend on the name in the key ``by``; they fill the dict ``options``.

    names   the known names
    keys    the further keys of a name that fits its hint; a ValueError if it is still unknown
    about   one line about a name, for the schema
    suffix  a regular expression for what may follow a name, for the schema
    path    a regular expression for a file that may stand in its place, for the schema
    """

    names: Collection[str]
    keys: Callable[[str], Mapping[str, Key]]
    about: Callable[[str], str]
    by: str = "name"
    suffix: str = ""
    path: str = ""


class Form:
    """A type hint taken apart.

    base     the hint without ``Annotated``
    notes    what ``Annotated`` adds
    origin   tuple, dict, Literal, ... of a generic hint
    item     the hint of the items of a tuple or a dict
    arms     the members of a union; for any other hint, its base
    given    the arms other than None
    names    the names that the hint allows, if it is a choice of names
    """

    def __init__(self, hint: Any) -> None:
        self.base, *self.notes = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        self.origin, args = get_origin(self.base), get_args(self.base)
        self.item = args[-1] if self.origin is dict else args[0] if args else Any
        self.arms = args if self.origin in (Union, types.UnionType) else (self.base,)
        self.given = [arm for arm in self.arms if arm is not types.NoneType]
        chosen = (name for note in self.notes if isinstance(note, Choice) for name in note.names)
        self.names = args if self.origin is Literal else tuple(chosen)


def check(instance: Any) -> None:
    """A ValueError that begins with the field's name, unless every field fits its hint."""
    kind: Any = type(instance)
    for name, hint in hints_of(kind).items():
        check_value(name, getattr(instance, name), hint)


def check_value(name: str, value: Any, hint: Any) -> None:
    """The same for one value; a tuple's items come before the tuple."""
    for arm in map(Form, Form(hint).arms):
        if arm.origin is tuple and isinstance(value, tuple):
            for i, item in enumerate(value):
                check_value(f"{name}[{i}]", item, arm.item)
    if not fits(value, hint):
        raise ValueError(f"{name} must be {expected(hint)}, got {shown(value)}")


def fits(value: Any, hint: Any) -> bool:
    """Whether a value has the type that a hint asks for, and its notes admit it."""
    f = Form(hint)
    if len(f.arms) > 1:
        return any(fits(value, arm) for arm in f.arms)
    if f.origin is Literal:
        ok = isinstance(value, str) and value in f.names
    elif f.origin in (tuple, dict):
        items = value.values() if isinstance(value, dict) else value
        ok = isinstance(value, f.origin) and all(fits(x, f.item) for x in items)
    elif f.base is float and isinstance(value, float):
        ok = math.isfinite(value)
    elif f.base in (int, float):
        ok = isinstance(value, int) and not isinstance(value, bool)
    else:
        ok = f.base is Any or isinstance(value, f.base)
    return ok and all(note.admits(value) for note in f.notes if hasattr(note, "admits"))


def expected(hint: Any) -> str:
    """What a hint asks for, in words: ``an integer >= 2``."""
    f = Form(hint)
    if len(f.arms) > 1:
        return " or ".join(expected(arm) for arm in f.given)
    if f.names:
        return f"one of {', '.join(f.names)}"
    if f.base in SCALARS:
        kind = SCALARS[f.base][0]
    elif dataclasses.is_dataclass(f.base):
        needed = [name for name, key in keys_of(f.base).items() if key.default is MISSING]
        kind = "text or a mapping" if hasattr(f.base, "bare") else "a mapping"
        kind += f" with {', '.join(needed)}" if needed else ""
    else:
        kind = {tuple: "a list", dict: "a mapping"}.get(f.origin, "any value")
    return kind + "".join(str(note) for note in f.notes if isinstance(note, Range | Pattern))


def keys_of(kind: Any) -> dict[str, Key]:
    """The keys of a dataclass: its fields, except the options that a registry fills."""
    keys = {}
    for f in dataclasses.fields(kind):
        if f.init and not (f.name == "options" and hasattr(kind, "registry")):
            hint = hints_of(kind)[f.name]
            default = f.default if f.default_factory is MISSING else f.default_factory()
            doc = " ".join(note for note in Form(hint).notes if isinstance(note, str))
            keys[f.name] = Key(hint, default, doc)
    return keys


@cache
def hints_of(kind: Any) -> dict[str, Any]:
    """The hints of a dataclass's fields, notes included."""
    hints = get_type_hints(kind, include_extras=True)
    return {name: hint for name, hint in hints.items() if get_origin(hint) is not ClassVar}
