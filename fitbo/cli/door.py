"""The arguments of watch, new and completion, and the last of these."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from typing import Any

from rich.console import Console


def completion(options: Namespace, console: Console, errors: Console) -> int:
    """``fitbo completion``."""
    from fitbo.cli import completion as scripts
    from fitbo.cli.parser import parser

    print(scripts.script(parser(), options.shell), end="")
    return 0


def add_commands(add: Callable[..., ArgumentParser]) -> None:
    """Their arguments; ``add`` makes a command's parser from its name, function and description."""
    seen: dict[str, Any] = {"metavar": "RESULTS"}
    follow = add("watch", "server.watch", "the report in a browser, following a run")
    follow.add_argument("results", help="a YAML file, a results folder or a journal", **seen)
    follow.add_argument("--port", type=int, default=0, help="of 127.0.0.1; 0: one that is free")
    follow.add_argument("--open", action="store_true", help="open a browser")

    start = add("new", "starter.new", "write a commented study or campaign file to begin with")
    start.add_argument("what", choices=["study", "campaign"])
    which = start.add_mutually_exclusive_group()
    function = "the function to minimise: its signature is read, and nothing is run"
    which.add_argument("--python", metavar="FILE.py:NAME", help=function)
    program = 'the program to run, as in "./simulate --rate {rate} --depth {depth:1..9}"'
    which.add_argument("--command", dest="program", metavar="COMMAND", help=program)
    where = "the file to write; left out: study.yaml or campaign.yaml"
    start.add_argument("--output", metavar="FILE.yaml", help=where)
    start.add_argument("--force", action="store_true", help="replace the file if it exists")

    shell = add("completion", "door.completion", "a script that completes commands in a shell")
    shell.add_argument("shell", choices=["bash", "zsh", "fish"])
