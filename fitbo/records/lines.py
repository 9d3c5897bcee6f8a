"""The bytes of a journal, and the header and events that they hold.

A kill may cut the last line short: what it leaves is the beginning of a line, and is dropped. A
last line that lacks its newline alone is whole, and counts. Whatever else is not a line of a
journal is an error that names the line.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fitbo.records import legacy
from fitbo.records.rows import Order, check_header, check_row

BEGINNING = b'{"format": '  # of a header
LONGEST_TOKEN = len("-Infinity")  # of what a kill may have cut in two, strings apart


@dataclass(frozen=True)
class Journal:
    """What a journal holds: its header, its events, and the line in the file of each event."""

    header: dict[str, Any]
    rows: list[dict[str, Any]] = field(default_factory=list)
    lines: list[int] = field(default_factory=list, compare=False)


def encoded(line: Mapping[str, Any]) -> bytes:
    """A line of a journal; a ValueError for numbers that are not finite, which JSON lacks."""
    return json.dumps(line, allow_nan=False).encode() + b"\n"


def parse(data: bytes, path: Path) -> tuple[Journal | None, bytes]:
    """The journal, None if it holds no line, and its bytes without a torn last line."""
    *lines, last = data.split(b"\n")  # by b"\n" alone: a torn line may hold any other byte
    if last and (_object(last) is not None or not _torn(last, first=not lines)):
        lines.append(last)
    objects = []
    for i, line in enumerate(lines, 1):
        value = _object(line)
        if value is None:
            raise ValueError(
                f"{path}:{i} must be a JSON object, got {line[:60]!r}: something "
                f"else has changed the file, restore it or move it away"
            )
        objects.append(value)
    kept = b"".join(line + b"\n" for line in lines)
    return (_journal(objects, path) if objects else None), kept


def _journal(objects: list[dict[str, Any]], path: Path) -> Journal:
    """The header and the events in today's format; a ValueError names the line that is wrong."""
    number, order = 1, Order()
    rows, lines = list[dict[str, Any]](), list[int]()
    try:
        header = legacy.upgraded(objects[0])
        check_header(header)
        for number, line in enumerate(objects[1:], 2):
            check_row(line)
            for event in legacy.events(line):
                order.check(event)
                rows.append(event)
                lines.append(number)
    except (ValueError, KeyError, TypeError, AttributeError) as error:  # of ``upgraded``
        what = str(error) if type(error) is ValueError else f"the header misses {error}"
        raise ValueError(
            f"{path}:{number}: {what}; it is not a line of fitbo's, or something else has changed "
            f"it: restore the file or move it away"
        ) from None
    return Journal(header, rows, lines)


def _object(line: bytes) -> dict[str, Any] | None:
    """The JSON object of a line, or None."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):  # neither JSON nor UTF-8
        return None
    return value if isinstance(value, dict) else None


def _torn(line: bytes, first: bool) -> bool:
    """Whether these bytes are the beginning of a JSON object; of a header, if it is the first.

    A file system that was about to write the rest may have left zeros in its place.
    """
    line, start = line.rstrip(b"\0"), BEGINNING if first else b"{"
    if not (line.startswith(start) or start.startswith(line)):
        return False
    try:
        json.loads(line)
    except json.JSONDecodeError as error:  # where the text ends, or in a token that ends there
        cut = len(error.doc) - error.pos <= LONGEST_TOKEN
        return cut or error.msg.startswith("Unterminated string")
    except (ValueError, RecursionError):
        return False
    return not line
