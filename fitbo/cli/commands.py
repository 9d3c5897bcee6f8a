"""The command line: arguments in, words out; everything else is done elsewhere."""

from __future__ import annotations

import argparse
import io
import json
import logging
import shlex
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from rich.console import Console
from rich.markup import escape

import fitbo
from fitbo.cli import study as cli_study
from fitbo.config.campaign import Campaign, json_schema, load

OK, FAILED, WRONG, INTERRUPTED = 0, 1, 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code is 0, 1 if studies failed, 2 for a mistake, 130 for Ctrl-C."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    options = _parser().parse_args(given)
    options.again = shlex.join(["fitbo", *given])
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a table with a ? in it, and not a traceback
    console = Console(soft_wrap=False)
    errors = Console(stderr=True, soft_wrap=True, highlight=False)
    log = logging.StreamHandler()
    log.setLevel(logging.INFO if options.verbose else logging.WARNING)
    logging.basicConfig(level=log.level, handlers=[log])  # distributed has levels of its own
    try:
        return int(options.command(options, console, errors))
    except KeyboardInterrupt:
        return INTERRUPTED
    except ValueError as error:
        errors.print(f"[red]error:[/red] {escape(str(error))}")
        return WRONG
    except OSError as error:
        errors.print(f"[red]error:[/red] {escape(_what(error))}")
        return WRONG


def run(options: argparse.Namespace, console: Console, errors: Console) -> int:
    """``fitbo run``."""
    from fitbo.config.study import is_study

    if is_study(options.config):
        return cli_study.run(options, console, errors)
    from fitbo.cli.display import display, print_summary
    from fitbo.records.journal import ConfigChanged
    from fitbo.report.regret import group, summarise
    from fitbo.report.regret import load as load_runs
    from fitbo.runs.campaign import tasks
    from fitbo.runs.executors import run_all

    campaign = load(options.config, options.set)
    studies = tasks(campaign)
    ended: list[Path] = []
    failures: list[str] = []
    if not options.quiet:
        line = _announcement(campaign, len(studies))
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    try:
        with (
            display(studies, console, options.quiet) as shown,
            closing(run_all(studies, campaign.executor, shown.tick)) as outcomes,
        ):
            for task, error in outcomes:
                shown.ended(task, error)
                if isinstance(error, ConfigChanged):
                    raise error
                if error is None:
                    ended.append(task.path)
                else:
                    failures.append(f"{task.title}: {type(error).__name__}: {error}")
    except KeyboardInterrupt:
        errors.print("stopped; nothing told is lost. To go on where it stopped:")
        errors.print(f"    {options.again}", markup=False)
        return INTERRUPTED
    for failure in failures:
        errors.print(f"[red]failed:[/red] {escape(failure)}")
    if ended:
        # Of a study that failed the journal may be what failed.
        results = ended if failures else [campaign.directory]
        print_summary(console, summarise(group(load_runs(results))))
        if not options.no_report:
            from fitbo.report.campaign import (
                write_report,  # matplotlib takes half a second to import
            )

            report = write_report(results, campaign.directory)
            console.print(f"report: {report}", markup=False, highlight=False, soft_wrap=True)
    return FAILED if failures else OK


def report(options: argparse.Namespace, console: Console, errors: Console) -> int:
    """``fitbo report``."""
    from fitbo.records.notebook import study_of

    given = [Path(path) for path in options.results]
    study = next((study for path in given if (study := study_of(path)) is not None), None)
    if study is not None and len(given) > 1:
        raise ValueError(
            f"report takes one study at a time, got {', '.join(options.results)}: "
            f"give each a command of its own"
        )
    if study is not None:
        return cli_study.report(study, options.output, console)
    from fitbo.cli.display import print_summary
    from fitbo.report.campaign import write_report
    from fitbo.report.regret import group, summarise
    from fitbo.report.regret import load as load_runs

    paths = [_results_of(path) for path in given]
    print_summary(console, summarise(group(load_runs(paths))))
    page = write_report(paths, options.output)
    console.print(f"report: {page}", markup=False, highlight=False, soft_wrap=True)
    return OK


def validate(options: argparse.Namespace, console: Console, errors: Console) -> int:
    """``fitbo validate``."""
    from fitbo.config.study import is_study

    for path in options.config:
        if is_study(path):
            cli_study.validate(path, options.set, console)
            continue
        campaign = load(path, options.set)
        studies = len(campaign.problems) * len(campaign.methods) * len(campaign.seeds)
        console.print(
            f"{path}: {_announcement(campaign, studies)}",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )
    return OK


def schema(options: argparse.Namespace, console: Console, errors: Console) -> int:
    """``fitbo schema``."""
    from fitbo.config import study as study_file

    made = study_file.json_schema() if options.what == "study" else json_schema()
    print(json.dumps(made, indent=2, ensure_ascii=False))
    return OK


def listing(options: argparse.Namespace, console: Console, errors: Console) -> int:
    """``fitbo list``."""
    from fitbo.acquisition import ACQUISITIONS
    from fitbo.entropy import BACKENDS
    from fitbo.problems import PROBLEMS

    tables = {
        "problems": {name: family.description for name, family in PROBLEMS.items()},
        "entropies": {name: _first_line(kind) for name, kind in BACKENDS.items()},
        "acquisitions": {name: _first_line(kind) for name, kind in ACQUISITIONS.items()},
    }
    for title, entries in tables.items():
        if options.what in (None, title):
            console.print(f"[bold]{title}[/bold]")
            for name, line in entries.items():
                console.print(f"  {name:<16} {line}", markup=False, highlight=False, soft_wrap=True)
    return OK


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="fitbo", description="Fast information-theoretic Bayesian optimisation."
    )
    parser.add_argument("--version", action="version", version=f"fitbo {fitbo.__version__}")
    parser.add_argument("--verbose", action="store_true", help="log what the sampler does")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    override = argparse.ArgumentParser(add_help=False)
    override.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="override a key of the file: --set budget=50 --set methods[0].samples=100",
    )

    one = commands.add_parser("run", parents=[override], help="run a campaign or a study, or go on")
    one.add_argument("config", metavar="CONFIG", help="a YAML file")
    one.add_argument("--quiet", action="store_true", help="print the final table only")
    one.add_argument("--no-report", action="store_true", help="write no figures and no page")
    one.set_defaults(command=run)

    two = commands.add_parser("report", help="figures and a page from results")
    two.add_argument(
        "results",
        nargs="+",
        metavar="RESULTS",
        help="folders of journals or the files of campaigns, several to compare; or of one study",
    )
    two.add_argument("--output", type=Path, help="a folder, or the page if it ends in .html")
    two.set_defaults(command=report)

    three = commands.add_parser("validate", parents=[override], help="check files, run nothing")
    three.add_argument("config", nargs="+", metavar="CONFIG", help="YAML files")
    three.set_defaults(command=validate)

    four = commands.add_parser("schema", help="the JSON Schema of a file, for editors")
    four.add_argument("what", nargs="?", choices=["campaign", "study"], default="campaign")
    four.set_defaults(command=schema)

    five = commands.add_parser("list", help="problems, entropies and acquisitions")
    five.add_argument("what", nargs="?", choices=["problems", "entropies", "acquisitions"])
    five.set_defaults(command=listing)
    cli_study.register(commands)
    return parser


def _announcement(campaign: Campaign, studies: int) -> str:
    many = f"{studies} studies" if studies != 1 else "1 study"
    return f"{campaign.name}: {many} of {campaign.budget} evaluations, in {campaign.directory}"


def _results_of(path: Path) -> Path:
    """Where a campaign's results are, if this is its file; else the path itself."""
    if path.suffix not in (".yaml", ".yml") or not path.is_file():
        return path
    folder = load(path).directory
    if not folder.exists():
        raise ValueError(f"{path} has no results yet, {folder}: run it first")
    return folder


def _first_line(kind: object) -> str:
    """The first sentence of a docstring, without its markup."""
    line = (kind.__doc__ or "").strip().split("\n")[0]
    return line.replace("``", "").strip()


def _what(error: OSError) -> str:
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}{error.strerror or error}"
