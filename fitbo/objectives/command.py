"""A program as an objective: arguments with placeholders, no shell, its own working directory.

    CommandObjective(("./simulate", "--alpha", "{alpha}", "--seed", "{seed}"), base=Path("."))

Placeholders are the parameters' names and

    {seed}      the seed of this evaluation, the same when it is repeated
    {scratch}   the working directory: new, with point.json, pid, stdout and stderr only
    {point}     ``point.json``, which holds the parameters as a JSON object
    {study}     the directory of the study's file
    {python}    the interpreter that runs fitbo

An argument or a variable that mentions a parameter which does not exist at the point (``when``) is
left out: ``--momentum={momentum}`` as one. ``{{`` and ``}}`` are braces. A relative path of a
program (one with a slash) starts from the
study's file; a bare name is looked up on the PATH.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fitbo.checks import nearest
from fitbo.objectives.outcome import Observation, machine
from fitbo.objectives.process import run_program
from fitbo.objectives.value import Value

PROVIDED = ("seed", "scratch", "point", "study", "python")
TOKEN = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")


@dataclass(frozen=True)
class CommandObjective:
    """A program that receives the point in its arguments and leaves its value in its output."""

    command: tuple[str, ...]
    value: Value = field(default_factory=Value)
    timeout: float | None = None
    retries: int = 0
    keep: bool = False
    env: Mapping[str, str] = field(default_factory=dict)
    base: Path = field(default_factory=Path)

    def __call__(self, point: Mapping[str, Any], seed: int, scratch: Path) -> Observation:
        scratch = scratch.resolve()
        data = scratch / "point.json"
        with machine(scratch):
            data.write_text(json.dumps(dict(point), allow_nan=False) + "\n", encoding="utf-8")
        provided = (seed, scratch, data, self.base.resolve(), sys.executable)
        known = dict(point) | dict(zip(PROVIDED, provided, strict=True))
        command = [fill(text, known) for text in self.command if names_in(text) <= set(known)]
        command[0] = located(command[0], self.base)
        there = {name: text for name, text in self.env.items() if names_in(text) <= set(known)}
        env = {name: fill(text, known) for name, text in there.items()}
        return self.value(scratch, run_program(command, scratch, env, self.timeout))


def written(value: Any) -> str:
    """A value as an argument: numbers with all their digits, true and false as in JSON."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def located(program: str, base: Path) -> str:
    """The program's path; a relative one starts from ``base``."""
    return str((base / program).resolve()) if "/" in program else program


def missing(program: str, base: Path) -> str | None:
    """Why a program cannot be started, if that is known beforehand."""
    path = located(program, base)
    if "{" in program or shutil.which(path) is not None:
        return None
    if "/" not in program:
        return f"there is no program {program!r} on the PATH: if it is a file, write ./{program}"
    if Path(path).is_file():
        return f"{path} is not executable: chmod +x it, or name its interpreter first"
    return f"there is no file {path}"


def names_in(text: str) -> set[str]:
    """The names of a text's placeholders."""
    return {match[1].strip() for match in TOKEN.finditer(text) if match[1] is not None}


def check_placeholders(text: str, parameters: Collection[str]) -> set[str]:
    """The names that a text uses; a ValueError about an unknown one, or about a lone brace."""
    names = names_in(text)
    fill(text, dict.fromkeys(names))
    every = [*parameters, *PROVIDED]
    for name in sorted(names - set(every)):
        hint = nearest(name, every) or f"; expected one of {', '.join(every)}"
        raise ValueError(f"there is no parameter for the placeholder {{{name}}}{hint}")
    return names


def fill(text: str, known: Mapping[str, Any]) -> str:
    """The text with its placeholders replaced, and ``{{`` by ``{``."""

    def replaced(match: re.Match[str]) -> str:
        if match[0] in ("{{", "}}"):
            return match[0][0]
        if match[1] is None:
            at = text[match.start() :][:20]
            raise ValueError(f"there is a lone brace at {at!r}: write {match[0] * 2}")
        return written(known[match[1].strip()])

    return TOKEN.sub(replaced, text)
