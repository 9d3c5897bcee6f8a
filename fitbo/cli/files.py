"""The commands on files of any number of studies: run, report, pack, validate, schema, list."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from rich.console import Console

from fitbo.acquisition import ACQUISITIONS
from fitbo.cli import display
from fitbo.cli.codes import FAILED, INTERRUPTED, OK
from fitbo.cli.display import announcement, print_status, print_table, say
from fitbo.config.build import build_objective, check_objective
from fitbo.config.campaign import Campaign, json_schema, load
from fitbo.entropy import BACKENDS
from fitbo.problems import PROBLEMS
from fitbo.records import archive
from fitbo.records.journal import Busy, ConfigChanged
from fitbo.report import history, regret
from fitbo.runs import executors, standing
from fitbo.runs.loop import NothingWorks
from fitbo.runs.study import run as run_study
from fitbo.screen import follow
from fitbo.surrogate import KERNELS

SHELVES: dict[str, Mapping[str, object]] = {
    "problems": PROBLEMS,
    "entropies": BACKENDS,
    "acquisitions": ACQUISITIONS,
    "kernels": KERNELS,
}


def run(options: Namespace, console: Console, errors: Console) -> int:
    """``fitbo run``."""
    campaign = load(options.config, options.set)
    _check_objectives(campaign, options.config, needed=True)
    if not options.quiet:
        say(console, announcement(campaign))
    try:
        with _told_to_end():
            return (_run_one if campaign.single else _run_all)(campaign, options, console, errors)
    except KeyboardInterrupt:
        errors.print("stopped; nothing told is lost. To go on where it stopped:")
        errors.print(f"    {options.again}", markup=False)
        if any(t is not threading.main_thread() and not t.daemon for t in threading.enumerate()):
            # Functions that were given up: Python would wait for them, and the journal is closed.
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(INTERRUPTED)
        return INTERRUPTED


def _run_one(campaign: Campaign, options: Namespace, console: Console, errors: Console) -> int:
    """The one study of a file, here and now."""
    (study,) = campaign.studies()
    if not options.quiet and not study.journal.exists():
        say(errors, display.new_study(study))
    try:
        with follow(
            campaign.budget,
            not options.quiet,
            title=campaign.name,
            time_limit=campaign.time_limit,
            console=console,
        ) as shown:
            notebook = run_study(study, watch=shown.ended, begun=shown.begun)
    except Busy as error:
        raise ValueError(f"{error}: wait until it has ended, or end it") from None
    except NothingWorks as error:
        errors.print("[red]stopped:[/red] ", end="")
        say(errors, f"{error}. When that is corrected, run it again.")
        if error.trace.strip():
            say(errors, error.trace.rstrip())
        return FAILED
    assert notebook is not None  # noqa: S101 (it was given no stop)
    summary = standing.summarise(notebook)
    print_status(console, campaign, summary)
    if notebook.elsewhere:
        say(console, f"{len(notebook.elsewhere)} of these with another run, which goes on")
    elif not options.no_report and summary.told:
        _report(console, [campaign.directory], None, "own", _minima(campaign))
    failures = campaign.max_failures is not None and summary.failed >= campaign.max_failures
    return FAILED if failures or not summary.told else OK


def _run_all(campaign: Campaign, options: Namespace, console: Console, errors: Console) -> int:
    """Every study of a campaign, where its executor says."""
    archive.unpack(campaign.directory)
    studies = campaign.studies()
    ended: list[Path] = []
    failures: list[str] = []
    with (
        display.display(studies, console, options.quiet) as shown,
        closing(executors.run_all(studies, campaign.place, shown.tick)) as outcomes,
    ):
        for study, error in outcomes:
            shown.ended(study, error)
            if isinstance(error, ConfigChanged):
                raise error
            if error is None:
                ended.append(study.journal)
            else:
                failures.append(f"{study.title}: {type(error).__name__}: {error}")
    for failure in failures:
        errors.print("[red]failed:[/red] ", end="")
        say(errors, failure)
    if ended:
        # If a study failed, its journal may be the cause.
        results, minima = ended if failures else [campaign.directory], _minima(campaign)
        _print_runs(history.load(results, minima), console)
        if not options.no_report:
            _report(console, results, campaign.directory, "own", minima)
    return FAILED if failures else OK


def report(options: Namespace, console: Console, errors: Console) -> int:
    """``fitbo report``."""
    found = [results_of(Path(path)) for path in options.results]
    paths, minima = [path for path, _ in found], _minima(*[campaign for _, campaign in found])
    runs = history.load(paths, minima)
    if len(runs) > 1 or not runs[0].black_box:
        _print_runs(runs, console)
    _report(console, paths, options.output, options.pages, minima)
    return OK


def pack(options: Namespace, console: Console, errors: Console) -> int:
    """``fitbo pack``."""
    if options.undo:
        count = archive.unpack(options.folder)
        say(console, f"{count} journals written below {options.folder}")
    else:
        say(console, f"packed: {archive.pack(options.folder)}")
    return OK


def validate(options: Namespace, console: Console, errors: Console) -> int:
    """``fitbo validate``."""
    for path in options.config:
        campaign = load(path, options.set)
        _check_objectives(campaign, path, imports=not options.no_import)
        say(console, f"{path}: {announcement(campaign)}")
    return OK


def schema(options: Namespace, console: Console, errors: Console) -> int:
    """``fitbo schema``."""
    print(json.dumps(json_schema(), indent=2, ensure_ascii=False))
    return OK


def listing(options: Namespace, console: Console, errors: Console) -> int:
    """``fitbo list``."""
    for title, shelf in SHELVES.items():
        if options.what in (None, title):
            console.print(f"[bold]{title}[/bold]")
            for name in shelf:
                say(console, f"  {name:<16} {_about(shelf, name)}")
    return OK


def results_of(path: Path) -> tuple[Path, Campaign | None]:
    """Where results are: of a YAML file those of its campaign, which comes too; or the path."""
    if path.suffix not in (".yaml", ".yml") or not path.is_file():
        return path, None
    campaign = load(path)
    needed = campaign.studies()[0].journal if campaign.single else campaign.directory
    if not needed.exists():
        raise ValueError(f"{path} has no results yet, {needed}: run or tell it first")
    return campaign.directory, campaign


def _print_runs(runs: Sequence[history.Run], console: Console) -> None:
    print_table(console, regret.summarise(history.group(runs)))


def _report(console: Console, *what: Any) -> None:
    from fitbo.report.write import write_report  # matplotlib takes half a second to import

    say(console, f"report: {write_report(*what)}")


def _minima(*campaigns: Campaign | None) -> dict[str, float]:
    """The minima, or maxima, that files state for their black boxes."""
    problems = [problem for each in campaigns if each is not None for problem in each.all_problems]
    return {str(p.label): p.optimum for p in problems if p.optimum is not None}


def _check_objectives(
    campaign: Campaign, path: str, needed: bool = False, imports: bool = True
) -> None:
    """An error unless every black box can be called, and is there if it is needed."""
    for i, problem in enumerate(campaign.all_problems):
        if problem.black_box:
            if needed:
                build_objective(problem)
            key = "" if campaign.single else f"problems[{i}]."
            check_objective(problem, path, key, imports)


def _about(shelf: Mapping[str, object], name: str) -> str:
    """One line about what is known by a name: its description, or that of its docstring."""
    try:
        item = shelf[name]
    except ValueError as error:  # of a package that is broken
        return str(error).removeprefix(f"{name} ")
    said = getattr(item, "description", None) or item.__doc__ or ""
    return str(said).strip().split("\n")[0].replace("``", "").strip()


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
