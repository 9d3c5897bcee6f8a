"""Where a program's value is found: in what it prints, or in a file that it writes.

    Value()                              the last line of stdout that is only a number
    Value(stdout="json", key="loss")     a JSON object: all of stdout, or else its last line
    Value(regex=r"loss = (\\S+)")        the last match in stdout: its group 1, or all of it
    Value(file="out.json", key="a.b")    the same in a file of the scratch directory

In JSON, ``std`` beside a key that is named ``value`` is the value's standard deviation. What
outcome constraints are about is taken from the other numbers beside the value, and from a mapping
``constraints``.

At most the last mebibyte is read. A regular expression can take exponential time on some texts, so
it runs in its own process, for ten seconds at most.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from fitbo.checks import nearest
from fitbo.decode import Pattern, check
from fitbo.objectives.outcome import Failed, Observation, check_room, clip, number, observed
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
        for name, other in (("file", "stdout"), ("regex", "key"), ("regex", "stdout")):
            if None not in (getattr(self, name), getattr(self, other)):
                raise ValueError(f"{name} must be left out beside {other}: give one of the two")
        if self.key is not None and self.stdout == "number":
            raise ValueError("key must be left out for stdout: number; write stdout: json")
        try:
            re.compile(self.regex or "")
        except (re.error, RecursionError, OverflowError) as error:
            raise ValueError(f"regex must be a regular expression: {error}") from None

    def __call__(self, folder: Path, stdout: str) -> Observation:
        """The value that a program has printed or left in its directory; else ``Failed``."""
        where, text = self.file or "stdout", stdout
        if self.file is not None:
            if not (folder / where).exists():
                raise Failed(f"the program wrote no file {where}")
            text = tail(folder / where)
        if not text.endswith("\n"):
            check_room(folder)  # a full disk may have cut a number short
        if self.regex is not None:
            return Observation(_match(self.regex, text, where))
        if self.stdout == "json" or self.key is not None or where.endswith(".json"):
            return _entry(text, self.key, where)
        return Observation(_last_number(text, where))


def _last_number(text: str, where: str) -> float:
    for line in reversed(text.splitlines()):
        value = _float(line)
        if value is not None:
            return number(value)  # or a failure if it is nan: an earlier number is not the value
    raise _lacking(text, where, "has no line that is only a number")


def _entry(text: str, key: str | None, where: str) -> Observation:
    for part in (text, last_line(text)):
        with suppress(ValueError, RecursionError):
            data = json.loads(part)
            break
    else:
        raise _lacking(text, where, "is not JSON")
    if key is None and isinstance(data, dict) and "value" in data:
        key = "value"
    if key is None:
        return observed(data)
    beside, step = data, key
    whole = isinstance(data, dict) and key in data
    for step in [key] if whole else key.split("."):
        if not (isinstance(data, dict) and step in data):
            raise Failed(_absent(data, step, f"the JSON of {where} has no key {key!r}"))
        beside, data = data, data[step]
    if isinstance(data, dict) and "value" in data:
        beside, step, data = data, "value", data["value"]
    more = beside.get("constraints")
    others = beside | more if isinstance(more, dict) else beside
    found = {"value": data, "constraints": {k: v for k, v in others.items() if _plain(v)}}
    return observed(found | ({"std": beside["std"]} if step == "value" and "std" in beside else {}))


def _plain(value: object) -> bool:
    """Whether a value of JSON is a number, or said to be none."""
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _absent(data: object, key: str, what: str) -> str:
    """That a key is not there, and which are."""
    if not isinstance(data, dict):
        return f"{what}: {key!r} would be in {clip(repr(data), 60)}"
    there = ", ".join(repr(each) for each in data) or "none"
    return clip(f"{what}{nearest(key, list(data))}; its keys are {there}")


def _match(pattern: str, text: str, where: str) -> float:
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
    if found is None:
        raise Failed(f"the regex matches nothing in {where}")
    value = _float(found)
    if value is None:
        raise Failed(f"the match in {where} is not a number: {clip(found, 80)!r}")
    return number(value)


def _float(text: str) -> float | None:
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


def _lacking(text: str, where: str, what: str) -> Failed:
    said = clip(last_line(text), 80)
    return Failed(f"{where} {what}; its last line is {said!r}" if said else f"{where} is empty")
