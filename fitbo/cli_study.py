"""The commands for one study: run, ask, tell, status, import, export, report."""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from rich.console import Console

from fitbo import study_build, study_file
from fitbo.journal import Busy, Running
from fitbo.study_display import (
    announcement,
    assignment,
    print_points,
    print_summary,
    say,
    watcher,
)
from fitbo.study_file import StudyFile

if TYPE_CHECKING:
    from fitbo.notebook import Notebook

OK, FAILED, WRONG, INTERRUPTED = 0, 1, 2, 130
# Seconds to wait for another process; longest where a value that somebody measured is at stake.
PATIENCE = {"ask": 30.0, "tell": 60.0, "import": 30.0}


def register(commands: Any) -> None:
    """Add the commands that only a study has to the parser of ``fitbo``."""
    one = commands.add_parser("ask", help="the next points of a study, to evaluate by hand")
    one.add_argument("study", metavar="STUDY", help="a YAML file of one study")
    one.add_argument("-n", type=int, default=1, help="how many; they are spread out")
    one.add_argument("--json", action="store_true", help="one JSON object a line")
    one.set_defaults(command=ask)

    two = commands.add_parser("tell", help="what came of a point of a study")
    two.add_argument("study", metavar="STUDY", help="a YAML file of one study")
    which = two.add_mutually_exclusive_group(required=True)
    which.add_argument(
        "--set",
        nargs="+",
        action="extend",
        metavar="NAME=VALUE",
        help="the point: --set alpha=0.1 beta=3",
    )
    which.add_argument("--id", type=int, help="the point by the number that ask gave it")
    what = two.add_mutually_exclusive_group(required=True)
    what.add_argument("--value", help="its value")
    what.add_argument(
        "--failed",
        nargs="?",
        const="failed",
        metavar="REASON",
        help="that it has no value, and why",
    )
    what.add_argument(
        "--forget", action="store_true", help="that a point asked for will not be evaluated"
    )
    # By default -1e-3 is taken for an option, and only -0.001 for a number.
    two._negative_number_matcher = re.compile(r"-(\d|\.\d|inf|nan)")
    two.set_defaults(command=tell)

    three = commands.add_parser("status", help="how a study stands")
    three.add_argument("study", metavar="STUDY", help="a YAML file of one study")
    three.add_argument("--json", action="store_true", help="as one JSON object")
    three.set_defaults(command=status)

    four = commands.add_parser("import", help="tell a study what a CSV file holds")
    four.add_argument("study", metavar="STUDY", help="a YAML file of one study")
    four.add_argument("table", type=Path, metavar="DATA.csv", help="columns: parameters and value")
    four.set_defaults(command=take_in)

    five = commands.add_parser("export", help="a study's points and values as CSV")
    five.add_argument("study", metavar="STUDY", help="a YAML file of one study")
    five.add_argument("table", type=Path, nargs="?", metavar="OUT.csv", help="left out: printed")
    five.set_defaults(command=export)


def run(options: argparse.Namespace, console: Console, errors: Console) -> int:
    """``fitbo run`` on a study's file."""
    from fitbo import laboratory

    path = Path(options.config)
    config = study_file.load(path, options.set)
    study_build.build_objective(config, path.parent)
    study_build.check_objective(config, path.parent, str(path))
    if not options.quiet:
        say(console, announcement(config))
    watch = None if options.quiet else watcher(console, config)
    try:
        with _told_to_end():
            summary = laboratory.run(config, path.parent, watch=watch)
    except Busy as error:
        raise ValueError(f"{error}: wait until it has ended, or end it") from None
    except KeyboardInterrupt:
        errors.print("stopped; nothing told is lost. To go on where it stopped:")
        errors.print(f"    {options.again}", markup=False)
        if any(t is not threading.main_thread() and not t.daemon for t in threading.enumerate()):
            # Functions that were given up: Python would wait for them, and the journal is closed.
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(INTERRUPTED)
        return INTERRUPTED
    print_summary(console, config, summary)
    if not options.no_report and summary.told:
        from fitbo.study_report import write_study_report

        say(console, f"report: {write_study_report(config)}")
    failures = config.max_failures is not None and summary.failed >= config.max_failures
    return FAILED if failures or not summary.told else OK


def ask(options: argparse.Namespace, console: Console, errors: Console) -> int:
    """``fitbo ask``."""
    from fitbo.space import Exhausted

    config = study_file.load(options.study)
    if options.n < 1:
        raise ValueError(f"-n must be at least 1, got {options.n}")
    asked = []
    code = OK
    with _opened(config, "ask", options, errors) as notebook:
        try:
            for _ in range(options.n):
                asked.append(notebook.ask("ask"))
        except Exhausted as error:
            errors.print(str(error), markup=False, highlight=False)
            code = FAILED
        begun = sum(entry.state != "forgotten" for entry in notebook.entries.values())
    if begun > config.budget:
        errors.print(
            f"note: the budget is {config.budget}, and this is evaluation {begun}", highlight=False
        )
    if options.json:
        for entry in asked:
            print(json.dumps({"id": entry.id, "point": entry.point}, ensure_ascii=False))
    elif asked:
        print_points(console, {entry.id: entry.point for entry in asked})
        point = " ".join(assignment(name, value) for name, value in asked[0].point.items())
        say(
            console,
            f"\nto tell: fitbo tell {shlex.quote(options.study)} --id {asked[0].id} --value Y",
        )
        say(console, f"     or: fitbo tell {shlex.quote(options.study)} --set {point} --value Y")
    return code


def tell(options: argparse.Namespace, console: Console, errors: Console) -> int:
    """``fitbo tell``."""
    from fitbo.objectives.outcome import clip
    from fitbo.study_table import parse_point, parse_value

    config = study_file.load(options.study)
    space = study_file.build_space(config)
    # What can be wrong is found before a journal is made.
    value = None if options.value is None else parse_value(options.value)
    point = None if options.set is None else parse_point(space, _assignments(options.set))
    with _opened(config, "tell", options, errors) as notebook:
        pending = {entry.id: entry for entry in notebook.pending()}
        if point is not None:
            entry = notebook.entry_of(point, "tell")
        elif options.id in pending:
            entry = pending[options.id]
        else:
            listed = ", ".join(map(str, pending)) or "none"
            raise ValueError(f"--id must be of a pending point, {listed}, got {options.id}")
        if options.forget:
            if entry.id not in pending:
                raise ValueError("--forget must be of a point that was asked for, and this was not")
            notebook.forget(entry)
        elif value is not None:
            notebook.told(entry, value, source="tell")
        else:
            notebook.failed(entry, clip(options.failed) or "failed", source="tell")
        left = [other for other in notebook.pending() if other.id != entry.id]
    asked = "" if entry.id in pending else ", a point that was not asked for"
    what = "forgotten" if options.forget else ("failed" if value is None else f"{value:g}")
    say(console, f"{entry.id}: {what}{asked}; {len(left)} pending")
    return OK


def status(options: argparse.Namespace, console: Console, errors: Console) -> int:
    """``fitbo status``."""
    from fitbo import laboratory
    from fitbo.notebook import read_notebook

    config = study_file.load(options.study)
    notebook = read_notebook(config)
    summary = laboratory.status(notebook)
    if not options.json:
        if not notebook.rows:
            say(console, f"{config.name}: nothing asked and nothing told yet")
            return OK
        print_summary(console, config, summary)
        return OK
    best, found = summary.best, summary.recommended
    print(
        json.dumps(
            {
                "name": config.name,
                "journal": str(config.journal),
                "budget": config.budget,
                "told": summary.told,
                "failed": summary.failed,
                "pending": [{"id": e.id, "point": e.point} for e in summary.pending],
                "best": best and {"id": best.id, "point": best.point, "value": best.value},
                "recommended": found
                and {"point": found.point, "mean": found.mean, "deviation": found.deviation},
                "eta": summary.eta,
                "stopped": summary.stopped,
            },
            ensure_ascii=False,
        )
    )
    return OK


def take_in(options: argparse.Namespace, console: Console, errors: Console) -> int:
    """``fitbo import``."""
    from fitbo import study_table

    config = study_file.load(options.study)
    lines = study_table.read_table(options.table, study_file.build_space(config))
    with _opened(config, "import", options, errors) as notebook:
        new, old = study_table.take_in(notebook, lines)
    known = f"; {old} were there already" if old else ""
    say(console, f"{new} imported{known}")
    return OK


def export(options: argparse.Namespace, console: Console, errors: Console) -> int:
    """``fitbo export``."""
    from fitbo.notebook import read_notebook
    from fitbo.study_table import written_table

    config = study_file.load(options.study)
    if not config.journal.exists():
        raise ValueError(
            f"{config.name} has no journal yet, {config.journal}: run or tell it first"
        )
    notebook = read_notebook(config, fits=False)
    text = written_table(list(config.space), notebook.entries.values())
    if options.table is None:
        print(text, end="")
    else:
        part = options.table.with_name(options.table.name + ".part")
        part.write_text(text, encoding="utf-8", newline="")
        os.replace(part, options.table)
        say(console, f"{len(notebook.entries)} lines to {options.table}")
    return OK


def report(config: StudyFile, output: Path | None, console: Console) -> int:
    """``fitbo report`` on a study's file or journal."""
    from fitbo.study_report import write_study_report

    say(console, f"report: {write_study_report(config, output)}")
    return OK


def validate(path: str, overrides: list[str], console: Console) -> int:
    """``fitbo validate`` on a study's file."""
    config = study_file.load(path, overrides)
    study_build.check_objective(config, Path(path).parent, path)
    say(console, f"{path}: {announcement(config)}")
    return OK


@contextmanager
def _told_to_end() -> Iterator[None]:
    """SIGTERM, and a terminal that is closed, as Ctrl-C, so that no program is left running."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:  # nohup
            signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _opened(
    config: StudyFile, command: str, options: argparse.Namespace, errors: Console
) -> Iterator[Notebook]:
    """The study's notebook to write in, after waiting for other processes if need be."""
    from fitbo.notebook import open_notebook

    def waiting() -> None:
        say(errors, f"waiting for another process that writes {config.journal}")

    try:
        with open_notebook(
            config, fits=command == "ask", patience=PATIENCE[command], waiting=waiting
        ) as notebook:
            yield notebook
    except Busy as error:
        still = "" if isinstance(error, Running) else f" still, after {PATIENCE[command]:g} s"
        raise ValueError(
            f"{error}{still}, and nothing was recorded: when it has ended, give the command again, "
            f"{options.again}"
        ) from None


def _assignments(texts: list[str]) -> dict[str, str]:
    """``alpha=0.1`` -> alpha, 0.1."""
    pairs: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise ValueError(f"--set must be NAME=VALUE, as in alpha=0.1, got {text!r}")
        if name.strip() in pairs:
            raise ValueError(f"--set must name {name.strip()} once, got it twice")
        pairs[name.strip()] = value
    return pairs
