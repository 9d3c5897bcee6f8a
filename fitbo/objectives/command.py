"""A program as an objective: arguments with placeholders, no shell, a directory of its own.

    CommandObjective(("./simulate", "--alpha", "{alpha}", "--seed", "{seed}"), base=Path("."))

Placeholders are the parameters' names and

    {seed}      a number of this evaluation's own, the same when it is repeated
    {scratch}   the working directory: new, with point.json, pid, stdout and stderr only
    {point}     ``point.json``, which holds the parameters as a JSON object
    {study}     the directory of the study's file
    {python}    the interpreter that runs fitbo

``{{`` and ``}}`` are braces. A program's relative path (one with a slash) is taken from the study's
file; a bare name is looked for on the PATH.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fitbo.decode import nearest
from fitbo.objectives.process import run_program
from fitbo.objectives.value import Value

PROVIDED = ("seed", "scratch", "point", "study", "python")
TOKEN = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")


@dataclass(frozen=True)
class CommandObjective:
    """A program that is told a point by its arguments and leaves a value behind."""

    command: tuple[str, ...]
    value: Value = field(default_factory=Value)
    timeout: float | None = None
    retries: int = 0
    keep: bool = False
    env: Mapping[str, str] = field(default_factory=dict)
    base: Path = field(default_factory=Path)

    def __call__(self, point: Mapping[str, Any], seed: int, scratch: Path) -> float:
        scratch = scratch.resolve()
        data = scratch / "point.json"
        data.write_text(json.dumps(dict(point), allow_nan=False) + "\n", encoding="utf-8")
        known = {name: written(value) for name, value in point.items()} | {
            "seed": str(seed),
            "scratch": str(scratch),
            "point": str(data),
            "study": str(self.base.resolve()),
            "python": sys.executable,
        }
        command = [fill(argument, known) for argument in self.command]
        command[0] = located(command[0], self.base)
        env = {name: fill(text, known) for name, text in self.env.items()}
        run_program(command, scratch, env, self.timeout)
        return self.value(scratch)


def written(value: Any) -> str:
    """A parameter's value as an argument: numbers to the last digit, true and false as in JSON."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def located(program: str, base: Path) -> str:
    """The program's path: relative ones are taken from ``base``."""
    return str((base / program).resolve()) if "/" in program else program


def missing(program: str, base: Path) -> str | None:
    """Why a program cannot be started, if that is plain now."""
    if "{" in program:
        return None
    path = located(program, base)
    if shutil.which(path) is not None:
        return None
    if "/" not in program:
        return f"there is no program {program!r} on the PATH: if it is a file, write ./{program}"
    if Path(path).is_file():
        return f"{path} is not executable: chmod +x it, or name its interpreter first"
    return f"there is no file {path}"


def fill(text: str, known: Mapping[str, str]) -> str:
    """The text with its placeholders replaced."""
    return "".join(known[part] if named else part for part, named in tokens(text))


def check_placeholders(text: str, parameters: Collection[str]) -> set[str]:
    """The names that a text uses; a ValueError about one that is unknown."""
    names = {part for part, named in tokens(text) if named}
    every = [*parameters, *PROVIDED]
    for name in sorted(names):
        if name not in every:
            hint = nearest(name, every) or f"; expected one of {', '.join(every)}"
            raise ValueError(f"there is no parameter for the placeholder {{{name}}}{hint}")
    return names


def tokens(text: str) -> Iterator[tuple[str, bool]]:
    """The pieces of a text, each with whether it is a placeholder's name."""
    end = 0
    for match in TOKEN.finditer(text):
        yield text[end : match.start()], False
        end = match.end()
        if match[0] in ("{{", "}}"):
            yield match[0][0], False
        elif match[1] is None:
            raise ValueError(
                f"there is a lone brace at {text[match.start() :][:20]!r}: write {match[0] * 2}"
            )
        else:
            yield match[1].strip(), True
    yield text[end:], False
