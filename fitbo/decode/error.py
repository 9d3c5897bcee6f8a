"""What is wrong with a configuration and where, on one screen."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from typing import Any

WIDTH, WRAPPED, LINES, CLIP = 160, 120, 20, 100  # one screen
SEGMENT = re.compile(r"([A-Za-z_][\w-]*)((?:\[[0-9]{1,6}\])*)")


class ConfigError(ValueError):
    """An error in a configuration: ``x.yaml:12: methods[1].samples: expected ...``.

    where    the file and line, or the override; may be empty
    path     the key; empty for the file as a whole
    """

    def __init__(self, message: str, where: str = "", path: str = "") -> None:
        self.message, self.where, self.path = message, where, path
        parts = (where if len(where) <= CLIP else f"...{where[-CLIP:]}", path[:CLIP], message)
        whole = ": ".join(part for part in parts if part)
        whole = "".join(c if c.isprintable() else repr(c)[1:-1] for c in whole)
        if len(whole) > WIDTH:
            whole = textwrap.fill(
                whole, WRAPPED, subsequent_indent="    ", max_lines=LINES, break_on_hyphens=False
            )
        super().__init__(whole)

    def __reduce__(self) -> Any:
        return type(self), (self.message, self.where, self.path)


def shown(value: Any) -> str:
    """A value as an error shows it: short, on one line."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:40]}... ({len(text)} characters)"


def join(path: str, name: str) -> str:
    """The path of a key below ``path``."""
    if not (name.isidentifier() and name.isascii() and len(name) <= 60):
        name = shown(name) if name.isascii() else ascii(name[:40])  # a lookalike letter shows
    return f"{path}.{name}" if path else name


def path_steps(path: str, where: str = "") -> Iterator[str | int]:
    """``methods[1].samples`` -> "methods", 1, "samples"."""
    for segment in path.split("."):
        found = SEGMENT.fullmatch(segment)
        if not found:
            message = f"expected a path such as methods[0].samples, got {shown(path)}"
            raise ConfigError(message, where)
        yield found[1]
        yield from (int(index) for index in re.findall(r"[0-9]+", found[2]))
