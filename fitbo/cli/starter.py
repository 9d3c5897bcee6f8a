"""``fitbo new``: a commented file of a study or a campaign, for the function or program at hand."""

from __future__ import annotations

import json
import os
from argparse import Namespace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console

from fitbo.cli.codes import OK
from fitbo.cli.display import announcement, say
from fitbo.cli.signature import Proposal, Seen, of_command, of_function
from fitbo.config.campaign import load

HEAD = """\
# {what}
#
#     fitbo validate {file}
#     fitbo run {file}          evaluates; Ctrl-C and run again: it goes on where it stopped
#     fitbo watch {file}        the report in a browser, while it runs
#     fitbo report {file}
#
# `fitbo schema` describes every key, for editors too. Results go to results/<name of this file>.
"""
BY_HAND = """\
# {what}
#
#     fitbo ask {file}                      the next point
#     fitbo tell {file} --id 1 --value 0.3  what you measured there
#     fitbo status {file}
#     fitbo report {file}
#
# `fitbo schema` describes every key, for editors too. Results go to results/<name of this file>.
"""
STUDY = """
budget: {budget}                  # evaluations in all, the first {initial} of them spread evenly
# direction: maximize       # if high values are good
# seed: 0                   # fixes the first points and all that is random
# constraints: ["a + b <= 1"]    # arithmetic in the parameters' names
# target: 0.1               # a value at which it is good enough
# time_limit: 3600          # seconds
# executor: {{kind: processes, workers: 4}}    # evaluations at a time
"""
CAMPAIGN = """
methods:                    # `fitbo list acquisitions` and `fitbo list entropies` have the names
  - fitbo
  - logei
  - random
seeds: 3                    # repetitions of each: 0, 1, 2
budget: {budget}                  # evaluations of each study, the first points included
# executor: {{kind: processes, workers: 2}}    # studies at a time; left out: one for each core
"""
TESTS = """
problems:                   # `fitbo list problems` has the names; or {label: mine, objective: ...}
  - branin
  - hartmann3
"""
VALUE = """\
  # Where the value is: by default the last line of stdout that is only a number. Or
  # value: {stdout: json, key: loss}, {regex: "loss = (\\\\S+)"}, {file: out.json, key: loss}
  # timeout: 600            # seconds
"""
KWARGS = "  # kwargs: {folds: 3}      # further arguments, the same at every point\n"
SAMPLE = Seen(
    [
        Proposal("x", {"type": "real", "low": 0.0, "high": 1.0}, "an example"),
        Proposal("n", {"type": "integer", "low": 1, "high": 9}, "an example"),
        Proposal("kind", {"type": "categorical", "choices": ["a", "b"]}, "an example"),
    ],
    [],
    [],
    "",
)


def new(options: Namespace, console: Console, errors: Console) -> int:
    """Write the file; an error if there is one already, unless it may be replaced."""
    path = Path(options.output or f"{options.what}.yaml")
    if path.suffix not in (".yaml", ".yml"):
        raise ValueError(f"--output must end in .yaml, got {str(path)!r}")
    if os.path.lexists(path) and not options.force:
        raise ValueError(f"{path} exists: give --output another name, or --force to replace it")
    objective, seen = _objective(options, path)
    text = _written(options.what, path, objective, seen)
    with TemporaryDirectory(dir=path.parent) as folder:
        part = Path(folder, path.name)
        part.write_text(text, encoding="utf-8")
        load(part)  # what is written can be read
        if options.force:
            part.replace(path)
        else:
            os.link(part, path)  # which fails if somebody else has made it meanwhile
    say(console, f"wrote {path}: {announcement(load(path))}")
    for each in seen.space if objective or options.what == "study" else []:
        say(console, f"  {each.name}: {_flow(each.keys)}  ({each.why})")
    if seen.kept:
        say(console, f"  left at their defaults: {', '.join(seen.kept)}")
    then = "run" if objective or options.what == "campaign" else "ask"
    say(console, f"look through it, then: fitbo {then} {path}")
    return OK


def _objective(options: Namespace, path: Path) -> tuple[list[str], Seen]:
    """The lines of the objective, none if values are told by hand, and what is known of it."""
    if options.python is not None:
        seen = of_function(options.python)
        if seen.needed:
            raise ValueError(
                f"{options.python} must have a default for {', '.join(seen.needed)}, for which "
                f"neither a range nor choices can be proposed"
            )
        if not seen.space:
            raise ValueError(f"{options.python} must have a parameter that is a number or a choice")
        file, _, name = options.python.rpartition(":")
        return [f"python: {json.dumps(f'{_from(path, file)}:{name}')}"], seen
    if options.program is not None:
        words, seen = of_command(options.program)
        if not seen.space and not any("{point}" in word for word in words):
            raise ValueError(
                "--command must mention its parameters, as {rate} or {rate:1e-4..1}, or {point} "
                f"for a JSON file of them, got {options.program!r}"
            )
        program = _from(path, words[0]) if "/" in words[0] else words[0]
        # A program runs in a directory of its own: files beside it are named from the study's.
        files = [
            f"{{study}}/{os.path.relpath(w, path.parent)}" if Path(w).is_file() else w
            for w in words[1:]
        ]
        seen = seen if seen.space else SAMPLE
        return [f"command: {json.dumps([program, *files], ensure_ascii=False)}"], seen
    return [], SAMPLE


def _from(path: Path, file: str) -> str:
    """A file's path from the folder of the study's file."""
    if os.path.isabs(file):
        return file
    found = os.path.relpath(file, path.parent)
    return found if found.startswith("..") else f"./{found}"


def _written(what: str, path: Path, objective: list[str], seen: Seen) -> str:
    about = f": {seen.about}" if seen.about else ""
    program = bool(objective) and objective[0].startswith("command")
    space = [
        f"{each.name}: {_flow(each.keys)}".ljust(58) + f"  # {each.why}" for each in seen.space
    ]
    box = ["space:", *(f"  {line}" for line in space)]
    if objective:
        hints = (VALUE if program else KWARGS).splitlines()
        box = ["objective:", *(f"  {line}" for line in objective), *hints, *box]
    budget = max(20, 10 * len(seen.space))
    if what == "study":
        frame = HEAD if objective else BY_HAND
        head = frame.format(what=f"One study{about}", file=path.name)
        rest = STUDY.format(budget=budget, initial=2 * len(seen.space))
        return head + "\n" + "\n".join(box) + "\n" + rest
    what = f"A campaign: every method on every problem from every seed{about}"
    head = HEAD.format(what=what, file=path.name)
    problems = TESTS
    if objective:
        lines = ["problems:", "  - label: mine", *(f"    {line}" for line in box)]
        problems = "\n" + "\n".join(lines) + "\n"
    return head + problems + CAMPAIGN.format(budget=budget)


def _flow(keys: dict[str, Any]) -> str:
    """Keys as a mapping of YAML on one line."""
    listed = (f"{key}: {_plain(value)}" for key, value in keys.items())
    return f"{{{', '.join(listed)}}}"


def _plain(value: Any) -> str:
    return value if value in ("real", "integer", "categorical") else json.dumps(value)
