"""A seeded mutator of the shipped configurations: texts that are almost campaigns.

    mutants(200, seed=0)   -> Mutant(kind, source, text), each one mutation of one file

A mutation is a function of a text and a generator, listed in ``MUTATIONS``; those that need
structure load the text, change the data and dump it again. A few mutants are still valid campaigns,
which a mutator without an oracle cannot avoid.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

FILES = sorted((Path(__file__).parents[2] / "configs").glob("*.yaml"))
CONFIGS = [path for path in FILES if not path.stem.startswith("blackbox_")]  # campaigns
REQUIRED = ("problems", "space", "budget")
CONTROLS = ("\x00", "\x07", "\x1b[31m", "\x7f", "\x85\x9f", "\ufffe", "\ud800")
LOOKALIKES = {"a": "а", "e": "е", "o": "о", "s": "ѕ", "i": "і"}  # noqa: RUF001 (Cyrillic)
TAGS = (
    "!!python/object/apply:os.system",
    "!!python/name:os.system",
    "!!python/tuple",
    "!!binary",
    "!!set",
    "!anything",
)
OTHER_TYPES: tuple[Any, ...] = (None, True, -1.5, "nonsense/..", [], {}, [[]], {"a": {"b": 1}})
WRONG_NUMBERS = ("-1", "-1e3", ".nan", ".inf", "-.inf", "1e400", "9" * 5000, "0x10", "12:30", "on")

Rng = np.random.Generator
Data = dict[str, Any]
Place = tuple[Any, Any]  # a container and the key or index of one of its values


@dataclass(frozen=True)
class Mutant:
    """A text, the mutation that made it and the file it was made from."""

    kind: str
    source: str
    text: str


def mutants(n: int = 200, seed: int = 0) -> list[Mutant]:
    """n mutants, the mutations taken in turn, the files and all else at random."""
    rng = np.random.default_rng(seed)
    kinds = list(MUTATIONS)
    made = []
    for i in range(n):
        path = FILES[rng.integers(len(FILES))]
        kind = kinds[i % len(kinds)]
        made.append(Mutant(kind, path.name, MUTATIONS[kind](path.read_text(), rng)))
    return made


# --- On the data ------------------------------------------------------------------------------


def _structural(change: Callable[[Data, Rng], None]) -> Callable[[str, Rng], str]:
    def mutation(text: str, rng: Rng) -> str:
        data = yaml.safe_load(text)
        change(data, rng)
        return yaml.safe_dump(data, sort_keys=False)

    return mutation


def _places(data: Any) -> Iterator[Place]:
    items = data.items() if isinstance(data, dict) else enumerate(data)
    for key, value in items:
        yield data, key
        if isinstance(value, dict | list):
            yield from _places(value)


def _pick(rng: Rng, options: Any) -> Any:
    options = list(options)
    return options[rng.integers(len(options))]


def _mapping(data: Data, rng: Rng) -> dict[str, Any]:
    return _pick(rng, [data, *(c[k] for c, k in _places(data) if isinstance(c[k], dict) and c[k])])


def _misspelt(name: str, rng: Rng) -> str:
    i = int(rng.integers(len(name)))
    return _pick(
        rng, [name[:i] + name[i + 1 :] + "q", name[:i] + "x" + name[i:], name.upper() + "_"]
    )


def drop_key(data: Data, rng: Rng) -> None:
    del data[_pick(rng, [key for key in REQUIRED if key in data])]


def rename_key(data: Data, rng: Rng) -> None:
    mapping = _mapping(data, rng)
    key = _pick(rng, mapping)
    mapping[_misspelt(key, rng)] = mapping.pop(key)


def unknown_key(data: Data, rng: Rng) -> None:
    _mapping(data, rng)[
        _pick(rng, ["epochs", "<script>", "a.b[0]", "x" * 5000, "\u202e", "{}"])
    ] = 1


def misspell_name(data: Data, rng: Rng) -> None:
    free = ("label", "output") if len(data) else ()
    named = [(c, k) for c, k in _places(data) if isinstance(c[k], str) and k not in (*free, "name")]
    container, key = _pick(rng, named)
    container[key] = _misspelt(container[key], rng)


def change_type(data: Data, rng: Rng) -> None:
    container, key = _pick(rng, _places(data))
    kind = type(container[key])
    container[key] = _pick(rng, [other for other in OTHER_TYPES if type(other) is not kind])


def nest(data: Data, rng: Rng) -> None:
    container, key = _pick(rng, _places(data))
    for _ in range(_pick(rng, [1, 2, 5, 200])):
        container[key] = [container[key]]


def repeat_item(data: Data, rng: Rng) -> None:
    lists = [data[key] for key in ("problems", "methods") if key in data]
    space = data.get("space", {}).values()
    lists += [parameter["choices"] for parameter in space if "choices" in parameter]
    items = _pick(rng, lists)
    items.append(items[int(rng.integers(len(items)))])


def empty(data: Data, rng: Rng) -> None:
    data[_pick(rng, [key for key in REQUIRED if key in data])] = _pick(rng, [[], {}, "", None])


def stray_key(data: Data, rng: Rng) -> None:
    """A key that exists, but elsewhere."""
    key, value = _pick(
        rng, [("n_moments", 10), ("samples", 100), ("address", "tcp://a:1"), ("m", 1)]
    )
    data[key] = value


# --- On the text ------------------------------------------------------------------------------


def _content(text: str) -> list[int]:
    """The lines that are neither blank nor comments."""
    return [i for i, line in enumerate(text.split("\n")) if line.strip() and line.strip()[0] != "#"]


def _at_line(change: Callable[[str, Rng], str]) -> Callable[[str, Rng], str]:
    def mutation(text: str, rng: Rng) -> str:
        lines = text.split("\n")
        i = _pick(rng, _content(text))
        lines[i] = change(lines[i], rng)
        return "\n".join(lines)

    return mutation


def _at_value(change: Callable[[str, Rng], str]) -> Callable[[str, Rng], str]:
    """Changes one plain scalar after a colon."""

    def mutation(text: str, rng: Rng) -> str:
        found = [
            m
            for m in re.finditer(r"(?<=: )[\w.]+(?=[,}\s])", text)
            if "#" not in text[text.rfind("\n", 0, m.start()) + 1 : m.start()]
        ]
        m = _pick(rng, found)
        return text[: m.start()] + change(m[0], rng) + text[m.end() :]

    return mutation


def _wrong_number(text: str, rng: Rng) -> str:
    found = list(
        re.finditer(r"(?m)^(?!\s*#).*?\b(budget|seeds|n|n_moments|samples): ([\d]+)", text)
    )
    m = _pick(rng, found)
    return text[: m.start(2)] + _pick(rng, WRONG_NUMBERS) + text[m.end(2) :]


def _duplicate_key(text: str, rng: Rng) -> str:
    key = _pick(rng, [key for key in REQUIRED if f"\n{key}:" in text])
    return text + f"\n{key}: {_pick(rng, ['1', '[a]', '~'])}\n"


def _control(text: str, rng: Rng) -> str:
    i = int(rng.integers(len(text)))
    return text[:i] + _pick(rng, CONTROLS) + text[i:]


def _lookalike(text: str, rng: Rng) -> str:
    m = _pick(rng, re.finditer(r"(?m)^\w*[aeosi]\w*(?=:)", text))
    letter = next(c for c in m[0] if c in LOOKALIKES)
    return text[: m.start()] + m[0].replace(letter, LOOKALIKES[letter]) + text[m.end() :]


def _truncate(text: str, rng: Rng) -> str:
    return text[: int(rng.integers(text.index("\nbudget:") + 8))]


def _unclosed(text: str, rng: Rng) -> str:
    i = _pick(rng, _content(text))
    lines = text.split("\n")
    lines[i] = lines[i].split(" #")[0].rstrip() + _pick(
        rng, [" {", " [", ' "', " '", "}", "]", ": :"]
    )
    return "\n".join(lines)


def _indent(line: str, rng: Rng) -> str:
    return " " * int(rng.integers(1, 4)) + line


def _tab(line: str, rng: Rng) -> str:
    return "\t" + line.lstrip()


def _second_document(text: str, rng: Rng) -> str:
    return text + _pick(rng, ["\n---\nname: other\n", "\n...\n---\n[1, 2]\n"])


def _aliases(text: str, rng: Rng) -> str:
    """Ten lines that stand for a billion values."""
    rows = [f"l{i}: &l{i} [{', '.join([f'*l{i - 1}'] * 9)}]" for i in range(1, 10)]
    return "\n".join([text, "l0: &l0 [x, x, x]", *rows, ""])


def _not_a_mapping(text: str, rng: Rng) -> str:
    return _pick(
        rng, ["", "# nothing\n", "- a\n- b\n", "campaign\n", "3\n", "[" * 300, "{a", "&a [*a]"]
    )


MUTATIONS: dict[str, Callable[[str, Rng], str]] = {
    "drop a key": _structural(drop_key),
    "rename a key": _structural(rename_key),
    "an unknown key": _structural(unknown_key),
    "a key out of place": _structural(stray_key),
    "a misspelt name": _structural(misspell_name),
    "another type": _structural(change_type),
    "nested lists": _structural(nest),
    "an item twice": _structural(repeat_item),
    "nothing in it": _structural(empty),
    "a wrong number": _wrong_number,
    "a key twice": _duplicate_key,
    "a control character": _control,
    "a lookalike letter": _lookalike,
    "truncated": _truncate,
    "unclosed": _unclosed,
    "indented": _at_line(_indent),
    "a tab": _at_line(_tab),
    "an unknown alias": _at_value(lambda value, rng: "*nowhere"),
    "an anchor in itself": _at_value(lambda value, rng: "&self [*self]"),
    "a type tag": _at_value(lambda value, rng: f"{_pick(rng, TAGS)} {value}"),
    "two documents": _second_document,
    "a billion values": _aliases,
    "no mapping": _not_a_mapping,
}
