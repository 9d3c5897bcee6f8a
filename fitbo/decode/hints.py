"""What a type hint says of a value: its notes, whether a value fits, and how to say so in words."""

from __future__ import annotations

import dataclasses
import math
import re
import types
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, Union, get_args, get_origin, get_type_hints

from fitbo.decode.error import shown


@dataclass(frozen=True)
class Range:
    """``least <= value <= most``."""

    least: float | None = None
    most: float | None = None

    def admits(self, value: Any) -> bool:
        low = self.least is None or value >= self.least
        return low and (self.most is None or value <= self.most)

    def __str__(self) -> str:
        if self.least is not None and self.most is not None:
            return f" from {self.least} to {self.most}"
        low = f" >= {self.least}" if self.least is not None else ""
        return low + (f" <= {self.most}" if self.most is not None else "")


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
    """One of the names in a collection, which may still grow: a registry."""

    names: Collection[str]

    def admits(self, value: Any) -> bool:
        return value in self.names


@dataclass(frozen=True)
class Short:
    """Another type that a file may use, and what it stands for: a count for a list."""

    hint: Any
    expand: Callable[[Any], Any]


@dataclass(frozen=True)
class Key:
    """One key of a mapping: the hint of its value, its default (MISSING: required) and its doc."""

    hint: Any
    default: Any = MISSING
    doc: str = ""


@dataclass(frozen=True)
class Registry:
    """Keys that depend on the name which the key ``by`` holds; they fill the dict ``into``.

    names   those known
    keys    the further keys of a name; a ValueError if there is none such
    suffix  a regular expression for what may follow a name, for the schema
    about   one line about a name, for the schema
    """

    names: Callable[[], Sequence[str]]
    keys: Callable[[str], Mapping[str, Key]]
    about: Callable[[str], str]
    by: str = "name"
    into: str = "options"
    suffix: str = ""


def check(instance: Any) -> None:
    """A ValueError that begins with the field's name, unless every field fits its hint."""
    kind: Any = type(instance)
    for name, hint in hints_of(kind).items():
        check_value(name, getattr(instance, name), hint)


def check_value(name: str, value: Any, hint: Any) -> None:
    """The same for one value."""
    for path, part, wanted in _parts(name, value, hint):
        if not fits(part, wanted):
            raise ValueError(f"{path} must be {expected(wanted)}, got {shown(part)}")


def fits(value: Any, hint: Any) -> bool:
    """Whether a value is of the type a hint asks for and within what its notes allow."""
    base, notes = unwrapped(hint)
    arms = union_arms(base)
    if len(arms) > 1:
        return any(fits(value, arm) for arm in arms)
    origin = get_origin(base)
    if origin is Literal:
        return isinstance(value, str) and value in get_args(base)
    if origin is tuple:
        ok = isinstance(value, tuple) and all(fits(x, get_args(base)[0]) for x in value)
    elif origin is dict:
        ok = isinstance(value, dict) and all(fits(x, get_args(base)[1]) for x in value.values())
    elif base is float:
        number = isinstance(value, float | int) and not isinstance(value, bool)
        ok = number and math.isfinite(value)
    elif base is int:
        ok = isinstance(value, int) and not isinstance(value, bool)
    else:
        ok = base is Any or isinstance(value, base)
    return ok and all(note.admits(value) for note in notes if hasattr(note, "admits"))


def expected(hint: Any) -> str:
    """What a hint asks for, in words: ``an integer >= 2``."""
    base, notes = unwrapped(hint)
    arms = union_arms(base)
    if len(arms) > 1:
        return " or ".join(expected(arm) for arm in arms if arm is not type(None))
    names = choices(hint)
    if names:
        return f"one of {', '.join(names)}"
    words = {bool: "true or false", int: "an integer", float: "a finite number", str: "text"}
    words |= {type(None): "nothing", Any: "any value"}
    kind = {tuple: "a list", dict: "a mapping"}.get(get_origin(base), words.get(base))
    if kind is None:
        needed = [name for name, key in keys_of(base).items() if key.default is MISSING]
        kind = "text or a mapping" if bare_key(base) else "a mapping"
        kind += f" with {', '.join(needed)}" if needed else ""
    shorts = [f"{expected(note.hint)} or " for note in notes if isinstance(note, Short)]
    rules = [str(note) for note in notes if isinstance(note, Range | Pattern)]
    return "".join([*shorts, kind, *rules])


def keys_of(kind: Any) -> dict[str, Key]:
    """The keys of a dataclass: its fields, but for the one that a registry fills."""
    hints, registry = hints_of(kind), getattr(kind, "registry", None)
    keys = {}
    for f in dataclasses.fields(kind):
        if f.init and (registry is None or f.name != registry.into):
            made = f.default_factory
            default = made() if made is not MISSING else f.default
            docs = [note for note in unwrapped(hints[f.name])[1] if isinstance(note, str)]
            keys[f.name] = Key(hints[f.name], default, " ".join(docs))
    return keys


@cache
def hints_of(kind: Any) -> dict[str, Any]:
    """The hints of a dataclass's fields, notes included."""
    hints = get_type_hints(kind, include_extras=True)
    return {name: hint for name, hint in hints.items() if get_origin(hint) is not ClassVar}


def unwrapped(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """A hint without ``Annotated``, and its notes."""
    if get_origin(hint) is Annotated:
        base, *notes = get_args(hint)
        return base, tuple(notes)
    return hint, ()


def union_arms(base: Any) -> tuple[Any, ...]:
    """The members of a union; of any other hint, itself."""
    union = get_origin(base) in (Union, types.UnionType)
    return get_args(base) if union else (base,)


def choices(hint: Any) -> tuple[str, ...]:
    """The names a hint allows, if it is a choice of names."""
    base, notes = unwrapped(hint)
    if get_origin(base) is Literal:
        return get_args(base)
    return next((tuple(note.names) for note in notes if isinstance(note, Choice)), ())


def bare_key(kind: Any) -> str | None:
    """The key that a bare scalar stands for where ``kind`` is wanted, if it may."""
    return getattr(kind, "bare", None) if dataclasses.is_dataclass(kind) else None


def _parts(path: str, value: Any, hint: Any) -> Iterator[tuple[str, Any, Any]]:
    """A tuple's items and then itself, each with its hint; other values as they are."""
    base, _ = unwrapped(hint)
    if get_origin(base) is tuple and isinstance(value, tuple):
        for i, item in enumerate(value):
            yield f"{path}[{i}]", item, get_args(base)[0]
    yield path, value, hint
