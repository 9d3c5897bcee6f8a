"""Well-formed changes of a journal's lines, which no version of fitbo has written."""

from __future__ import annotations

import copy
import random
from typing import Any

STRANGE: list[Any] = [None, True, -1, 0, 2**60, 10**400, 1e308, 0.5, "", "x", "\ud800", "NaN"]
STRANGE += [float("nan"), float("inf"), [], [1], [[]], {}, {"a": 1}, {"point": {}}, "red"]
Lines = list[dict[str, Any]]


def changed(lines: Lines, rng: random.Random, times: int = 1) -> Lines:
    """A copy of the lines in which something is set, removed, moved or repeated, so many times."""
    lines = copy.deepcopy(lines)
    for _ in range(times):
        i = rng.randrange(len(lines))
        kind = rng.choice(["set", "set", "remove", "swap", "repeat", "drop"])
        found = places(lines[i])
        if kind in ("set", "remove") and found:
            *up, last = rng.choice(found)
            node: Any = lines[i]
            for key in up:
                node = node[key]
            if kind == "set":
                node[last] = copy.deepcopy(rng.choice(STRANGE))
            else:
                del node[last]
        elif kind == "swap":
            j = rng.randrange(len(lines))
            lines[i], lines[j] = lines[j], lines[i]
        elif kind == "repeat":
            lines.insert(rng.randrange(len(lines)), copy.deepcopy(lines[i]))
        elif kind == "drop" and len(lines) > 1:
            del lines[i]
    return lines


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The place of everything in a tree of mappings and lists."""
    if not isinstance(value, dict | list):
        return []
    items = list(value.items() if isinstance(value, dict) else enumerate(value))
    return [p for key, item in items for p in ((*at, key), *places(item, (*at, key)))]
