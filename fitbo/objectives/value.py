"""Where a program's value is to be found: in what it prints, or in a file that it writes.

    Value()                              the last line of stdout that is a number and nothing else
    Value(stdout="json", key="loss")     a JSON object: all of stdout, or else its last line
    Value(regex=r"loss = (\\S+)")        the last match in stdout: its group 1, or all of it
    Value(file="out.json", key="a.b")    the same of a file in the scratch directory

What is read is at most the last mebibyte. A regular expression can take for ever on a text made
for it, so it runs in a process of its own, for ten seconds at most.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from fitbo.decode import Pattern, check
from fitbo.objectives.outcome import Failed, clip, number
from fitbo.objectives.process import last_line, tail

PATIENCE = 10.0  # seconds for a regular expression
SEARCH = """
import json, re, sys
pattern, text = json.load(sys.stdin)
last = None
for last in re.finditer(pattern, text, re.MULTILINE):
    pass
if last is not None:
    last = last["value"] if "value" in last.re.groupindex else last[1 if last.re.groups else 0]
json.dump(last, sys.stdout)
"""
INSIDE = Pattern(r"(?!/)(?!.*\.\.(/|$))[^\x00-\x1f]{1,400}", "a path inside the scratch directory")


@dataclass(frozen=True)
class Value:
    """Where the value is; with no key at all, the last line of stdout that is only a number."""

    stdout: Annotated[
        Literal["number", "json"] | None,
        "number: the last line that is only a number; json: all of stdout, or its last line",
    ] = None
    file: Annotated[
        Annotated[str, INSIDE] | None, "a file that the program writes, in its working directory"
    ] = None
    key: Annotated[str | None, "the key in a JSON object; a.b for one inside another"] = None
    regex: Annotated[
        str | None, "a regular expression; its last match counts, by group `value`, 1 or all of it"
    ] = None

    def __post_init__(self) -> None:
        check(self)
        if self.stdout is not None and self.file is not None:
            raise ValueError("file must be left out beside stdout: the value is in one of them")
        if self.regex is not None:
            if self.key is not None or self.stdout is not None:
                other = "key" if self.key is not None else "stdout"
                raise ValueError(f"regex must be left out beside {other}: one of them finds it")
            try:
                re.compile(self.regex)
            except (re.error, RecursionError, OverflowError) as error:
                raise ValueError(f"regex must be a regular expression: {error}") from None
        if self.key is not None and self.stdout == "number":
            raise ValueError("key must be left out for stdout: number; write stdout: json")

    @property
    def is_json(self) -> bool:
        """Whether the text is JSON, and not lines of which one is a number."""
        named = self.file is not None and self.file.endswith(".json") and self.regex is None
        return self.stdout == "json" or self.key is not None or named

    def __call__(self, folder: Path) -> float:
        """The value that a program has left in its scratch directory; else ``Failed``."""
        where = self.file or "stdout"
        path = folder / where
        if self.file is not None and not path.is_file():
            raise Failed(f"the program wrote no file {self.file}")
        text = tail(path)
        if self.regex is not None:
            return _plain_number(_search(self.regex, text), f"the match in {where}")
        if self.is_json:
            return _entry(_json(text, where), self.key, where)
        return _last_number(text, where)


def _last_number(text: str, where: str) -> float:
    for line in reversed(text.splitlines()):
        try:
            value = _plain_number(line, where)
        except Failed:
            # ``nan`` is a number that is of no use: what stands before it is not the value.
            if _is_float(line):
                raise
            continue
        return value
    said = clip(last_line(text), 80)
    raise Failed(
        f"no line of {where} is a number; the last is {said!r}" if said else f"{where} is empty"
    )


def _plain_number(text: str | None, where: str) -> float:
    if text is None:
        raise Failed(f"the regex matches nothing in {where.removeprefix('the match in ')}")
    if not _is_float(text):
        raise Failed(f"{where} is not a number: {clip(text, 80)!r}")
    return number(float(text))


def _is_float(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def _json(text: str, where: str) -> Any:
    for part in (text, last_line(text)):
        try:
            return json.loads(part)
        except (ValueError, RecursionError):
            continue
    said = clip(last_line(text), 80)
    raise Failed(f"{where} is not JSON; its last line is {said!r}" if said else f"{where} is empty")


def _entry(data: Any, key: str | None, where: str) -> float:
    if key is None:
        return number(data)
    if not (isinstance(data, dict) and key in data):
        for step in key.split("."):
            if not (isinstance(data, dict) and step in data):
                raise Failed(f"the JSON of {where} has no key {key!r}")
            data = data[step]
    else:
        data = data[key]
    return number(data)


def _search(pattern: str, text: str) -> str | None:
    try:
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-I", "-S", "-c", SEARCH],
            input=json.dumps([pattern, text]),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=True,
        )
    except subprocess.TimeoutExpired:
        raise Failed(f"the regex took over {PATIENCE:g} s") from None
    except subprocess.CalledProcessError as error:
        raise Failed(f"the regex failed: {clip(last_line(error.stderr))}") from None
    found = json.loads(done.stdout)
    return None if found is None else str(found)
