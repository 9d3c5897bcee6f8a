"""The arguments of each command, and the exit code that it ends with."""

from __future__ import annotations

import argparse
import io
import logging
import os
import re
import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

import fitbo
from fitbo.cli import door
from fitbo.cli.codes import INTERRUPTED, WRONG

UNREAD = 128 + 13  # as of a program that SIGPIPE ends
# What the packages below call these, which take half a second to import: a test compares them.
EXTRA = ("refuse", "ignore", "keep")
SHELVES = ("problems", "entropies", "acquisitions", "kernels")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code is 0, 1 if studies failed, 2 for a mistake, 130 for Ctrl-C."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    options = parser().parse_args(given)
    options.again = shlex.join(["fitbo", *given])
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a table with a ? in it, and not a traceback
    console = Console(soft_wrap=False)
    errors = Console(stderr=True, soft_wrap=True, highlight=False)
    log = logging.StreamHandler()
    log.setLevel(logging.INFO if options.verbose else logging.WARNING)
    form = "%(levelname)s:%(name)s:%(message)s" if options.verbose else "%(message)s"
    logging.basicConfig(level=log.level, handlers=[log], format=form)  # distributed has its own
    try:
        module, _, function = options.command.partition(".")
        command = getattr(import_module(f"fitbo.cli.{module}"), function)
        code = int(command(options, console, errors))
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # whoever reads, as head, has seen enough
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return UNREAD
    except ValueError as error:
        what = str(error)
    except OSError as error:
        what = f"{error.filename}: " if error.filename else ""
        what += error.strerror or str(error)
    errors.print(f"[red]error:[/red] {escape(what)}")
    return WRONG


def parser() -> argparse.ArgumentParser:
    """Every command with its arguments.

    A command is ``module.function`` of this package, imported when it is called: help and
    completion come at once.
    """
    top = argparse.ArgumentParser(
        prog="fitbo", description="Fast information-theoretic Bayesian optimisation."
    )
    top.add_argument("--version", action="version", version=f"fitbo {fitbo.__version__}")
    top.add_argument("--verbose", action="store_true", help="log what the sampler does")
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    override = argparse.ArgumentParser(add_help=False)
    override.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="override a key of the file: --set budget=50 --set methods[0].samples=100",
    )

    def add(name: str, command: str, about: str, **more: Any) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=about, **more)
        added.set_defaults(command=command)
        return added

    def add_for_study(name: str, command: str, about: str) -> argparse.ArgumentParser:
        added = add(name, command, about)
        added.add_argument("study", metavar="STUDY", help="a YAML file of one study")
        return added

    run = add("run", "files.run", "run a study or a campaign, or go on", parents=[override])
    run.add_argument("config", metavar="FILE", help="a YAML file")
    run.add_argument("--quiet", action="store_true", help="print the final table only")
    run.add_argument("--no-report", action="store_true", help="write no figures and no page")

    status = add("status", "study.status", "how a study or each study of a campaign stands")
    status.add_argument("study", metavar="FILE", help="a YAML file, or a journal of one study")
    status.add_argument("--json", action="store_true", help="as JSON")

    report = add("report", "files.report", "figures and a page from results")
    several = "YAML files, folders or archives of journals; several to compare"
    report.add_argument("results", nargs="+", metavar="RESULTS", help=several)
    report.add_argument("--output", type=Path, help="a folder, or the page if it ends in .html")
    report.add_argument(
        "--pages",
        choices=["own", "all", "none"],
        default="own",
        help="studies of a campaign that get a page: those of black boxes (own), all, or none",
    )

    export = add("export", "study.export", "points and values as CSV")
    export.add_argument("study", metavar="FILE", help="a YAML file, a results folder or a journal")
    export.add_argument("table", type=Path, nargs="?", metavar="OUT.csv", help="left out: printed")

    pack = add("pack", "files.pack", "replace the journals of a folder by one compressed file")
    pack.add_argument("folder", type=Path, metavar="RESULTS", help="a campaign's results folder")
    pack.add_argument("--undo", action="store_true", help="write the journals again")

    ask = add_for_study("ask", "study.ask", "the next points of a study, to evaluate by hand")
    ask.add_argument("-n", type=int, default=1, help="how many; they are spread out")
    ask.add_argument("--json", action="store_true", help="one JSON object per line")

    tell = add_for_study("tell", "study.tell", "the outcome at a point of a study")
    which = tell.add_mutually_exclusive_group(required=True)
    which.add_argument(
        "--set",
        nargs="+",
        action="extend",
        metavar="NAME=VALUE",
        help="the point: --set alpha=0.1 beta=3",
    )
    which.add_argument("--id", type=int, help="its number from ask; a value it has is corrected")
    what = tell.add_mutually_exclusive_group(required=True)
    several = "its value, or several that were measured there: their mean and standard error count"
    what.add_argument("--value", nargs="+", help=several)
    why = "why it has no value"
    what.add_argument("--failed", nargs="?", const="failed", metavar="REASON", help=why)
    what.add_argument("--forget", action="store_true", help="withdraw it, or what was told of it")
    tell.add_argument("--std", help="the standard deviation of the value, if that is known")
    tell.add_argument(
        "--constraints",
        nargs="+",
        action="extend",
        metavar="NAME=VALUE",
        help="what outcome constraints are about: --constraints temperature=81.2",
    )
    # By default -1e-3 is taken for an option, and only -0.001 for a number.
    tell._negative_number_matcher = re.compile(r"-(\d|\.\d|inf|nan)")

    take_in = add_for_study("import", "study.take_in", "tell a study what a CSV file holds")
    take_in.add_argument("table", type=Path, metavar="DATA.csv", help="columns: parameters, value")
    take_in.add_argument(
        "--extra",
        choices=EXTRA,
        default="refuse",
        help="what becomes of columns of other names: an error (refuse), nothing (ignore), or "
        "texts that exports have again (keep)",
    )
    spend = "count the lines as evaluations of the budget; else they cost nothing"
    take_in.add_argument("--spend", action="store_true", help=spend)

    checks = "check files; evaluates nothing, but imports the module of a Python objective"
    validate = add("validate", "files.validate", checks, parents=[override])
    validate.add_argument("config", nargs="+", metavar="FILE", help="YAML files")
    validate.add_argument(
        "--no-import",
        action="store_true",
        help="run no code at all, for files of others: of a Python objective only its name is "
        "looked up in the module's file",
    )
    add("schema", "files.schema", "the JSON Schema of a file, for editors")
    listing = add("list", "files.listing", "problems, entropies, acquisitions and kernels")
    listing.add_argument("what", nargs="?", choices=SHELVES)
    door.add_commands(add)
    return top
