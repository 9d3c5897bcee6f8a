"""The commands on files of any number of studies: run, report, pack, validate, schema, list."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from types import FrameType

from rich.console import Console

from fitbo.cli.display import (
    announcement,
    display,
    new_study,
    print_status,
    print_table,
    say,
    watcher,
)
from fitbo.config.campaign import Campaign, json_schema, load

OK, FAILED, WRONG, INTERRUPTED = 0, 1, 2, 130
SHELVES = ("problems", "entropies", "acquisitions", "kernels")


def run(options: argparse.Namespace, console: Console, errors: Console) -> int:
    """``fitbo run``."""
    campaign = load(options.config, options.set)
    _check_objectives(campaign, options.config, needed=True)
    if not options.quiet:
        say(console, announcement(campaign))
    try:
        with _told_to_end():
            code = (_run_one if campaign.single else _run_all)(campaign, options, console, errors)
    except KeyboardInterrupt:
        errors.print("stopped; nothing told is lost. To go on where it stopped:")
        errors.print(f"    {options.again}", markup=False)
        if any(t is not threading.main_thread() and not t.daemon for t in threading.enumerate()):
            # Functions that were given up: Python would wait for them, and the journal is closed.
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(INTERRUPTED)
        return INTERRUPTED
    return code


def _run_one(
    campaign: Campaign, options: argparse.Namespace, console: Console, errors: Console
) -> int:
    """The one study of a file, here and now."""
    from fitbo.records.journal import Busy
    from fitbo.runs.standing import summarise
    from fitbo.runs.study import run as run_study

    (study,) = campaign.studies()
    if not options.quiet and not study.journal.exists():
        say(errors, new_study(study))
    try:
        notebook = run_study(study, watch=None if options.quiet else watcher(console, campaign))
    except Busy as error:
        raise ValueError(f"{error}: wait until it has ended, or end it") from None
    assert notebook is not None  # noqa: S101 (nobody told it to stop)
    summary = summarise(notebook)
    print_status(console, campaign, summary)
    if not options.no_report and summary.told:
        _report([campaign.directory], campaign, None, "own", console)
    failures = campaign.max_failures is not None and summary.failed >= campaign.max_failures
    return FAILED if failures or not summary.told else OK


def _run_all(
    campaign: Campaign, options: argparse.Namespace, console: Console, errors: Console
) -> int:
    """Every study of a campaign, where its executor says."""
    from fitbo.records.archive import unpack
    from fitbo.records.journal import ConfigChanged
    from fitbo.report.history import group, load
    from fitbo.report.regret import summarise
    from fitbo.runs.executors import run_all

    unpack(campaign.directory)
    studies = campaign.studies()
    ended: list[Path] = []
    failures: list[str] = []
    with (
        display(studies, console, options.quiet) as shown,
        closing(run_all(studies, campaign.place, shown.tick)) as outcomes,
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
        results = ended if failures else [campaign.directory]
        print_table(console, summarise(group(load(results, _minima(campaign)))))
        if not options.no_report:
            _report(results, campaign, campaign.directory, "own", console)
    return FAILED if failures else OK


def report(options: argparse.Namespace, console: Console, errors: Console) -> int:
    """``fitbo report``."""
    from fitbo.report.history import group, load
    from fitbo.report.regret import summarise
    from fitbo.report.write import write_report

    paths: list[Path] = []
    minima: dict[str, float] = {}
    for given in map(Path, options.results):
        path, campaign = results_of(given)
        paths.append(path)
        minima |= _minima(campaign) if campaign is not None else {}
    runs = load(paths, minima)
    if len(runs) > 1 or not runs[0].black_box:
        print_table(console, summarise(group(runs)))
    say(console, f"report: {write_report(paths, options.output, options.pages, minima)}")
    return OK


def pack(options: argparse.Namespace, console: Console, errors: Console) -> int:
    """``fitbo pack``."""
    from fitbo.records.archive import pack, unpack

    if options.undo:
        say(console, f"{unpack(options.folder)} journals written below {options.folder}")
    else:
        say(console, f"packed: {pack(options.folder)}")
    return OK


def validate(options: argparse.Namespace, console: Console, errors: Console) -> int:
    """``fitbo validate``."""
    for path in options.config:
        campaign = load(path, options.set)
        _check_objectives(campaign, path)
        say(console, f"{path}: {announcement(campaign)}")
    return OK


def schema(options: argparse.Namespace, console: Console, errors: Console) -> int:
    """``fitbo schema``."""
    print(json.dumps(json_schema(), indent=2, ensure_ascii=False))
    return OK


def listing(options: argparse.Namespace, console: Console, errors: Console) -> int:
    """``fitbo list``."""
    from fitbo.acquisition import ACQUISITIONS
    from fitbo.entropy import BACKENDS
    from fitbo.problems import PROBLEMS
    from fitbo.surrogate import KERNELS

    shelves: tuple[Mapping[str, object], ...] = (PROBLEMS, BACKENDS, ACQUISITIONS, KERNELS)
    for title, shelf in zip(SHELVES, shelves, strict=True):
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


def _report(
    paths: list[Path], campaign: Campaign, output: Path | None, pages: str, console: Console
) -> None:
    from fitbo.report.write import write_report  # matplotlib takes half a second to import

    page = write_report(paths, output, pages, _minima(campaign))  # type: ignore[arg-type]
    say(console, f"report: {page}")


def _minima(campaign: Campaign) -> dict[str, float]:
    """The minima that a file states for its black boxes."""
    return {str(p.label): p.minimum for p in campaign.all_problems if p.minimum is not None}


def _check_objectives(campaign: Campaign, path: str, needed: bool = False) -> None:
    """An error unless every black box can be called, and is there if it is needed."""
    from fitbo.config.build import build_objective, check_objective

    for i, problem in enumerate(campaign.all_problems):
        if problem.black_box:
            if needed:
                build_objective(problem)
            check_objective(problem, path, "" if campaign.single else f"problems[{i}].")


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
