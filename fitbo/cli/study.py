"""The commands for one study: run, status, report; by hand, those of ``fitbo.cli.notebook``."""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from rich.console import Console

from fitbo.cli.notebook import ask, export, take_in, tell
from fitbo.cli.study_display import announcement, newly, print_summary, say, watcher
from fitbo.config import study as study_file
from fitbo.config import study_build
from fitbo.config.study import StudyFile
from fitbo.records.journal import Busy

OK, FAILED, WRONG, INTERRUPTED = 0, 1, 2, 130


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
    which.add_argument(
        "--id",
        type=int,
        help="the point by the number that ask gave it; of one told before this is a correction",
    )
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
        "--forget",
        action="store_true",
        help="that it will not be evaluated, or that what was told of it is withdrawn",
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
    five.add_argument("study", metavar="STUDY", help="its YAML file, its results or its journal")
    five.add_argument("table", type=Path, nargs="?", metavar="OUT.csv", help="left out: printed")
    five.set_defaults(command=export)


def run(options: argparse.Namespace, console: Console, errors: Console) -> int:
    """``fitbo run`` on a study's file."""
    from fitbo.runs import study as laboratory

    path = Path(options.config)
    config = study_file.load(path, options.set)
    study_build.build_objective(config, path.parent)
    study_build.check_objective(config, path.parent, str(path))
    if not options.quiet:
        say(console, announcement(config))
        if not config.journal.exists():
            say(errors, newly(config))
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
        from fitbo.report.study import write_study_report

        say(console, f"report: {write_study_report(config)}")
    failures = config.max_failures is not None and summary.failed >= config.max_failures
    return FAILED if failures or not summary.told else OK


def status(options: argparse.Namespace, console: Console, errors: Console) -> int:
    """``fitbo status``."""
    from fitbo.records.notebook import read_notebook
    from fitbo.runs import standing

    config = study_file.load(options.study)
    notebook = read_notebook(config)
    summary = standing.status(notebook)
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


def report(config: StudyFile, output: Path | None, console: Console) -> int:
    """``fitbo report`` on a study's file or journal."""
    from fitbo.report.study import write_study_report

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
