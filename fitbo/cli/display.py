"""What the person running a campaign sees: bars on a terminal, lines in a log, a table at the end.

Progress is read off the journals, which every worker writes, wherever it runs: no messages pass.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from fitbo.report.regret import SUCCESS, Summary, quantiles
from fitbo.runs.campaign import Task


class Display(Protocol):
    """Follows the studies of a campaign."""

    def tick(self) -> None:
        """Look at the journals again."""
        ...

    def ended(self, task: Task, error: BaseException | None) -> None:
        """A study has ended."""
        ...


@contextmanager
def display(tasks: Sequence[Task], console: Console, quiet: bool) -> Iterator[Display]:
    """Nothing if quiet, bars on a terminal, else a line for each study that ends."""
    if quiet or not console.is_terminal:
        yield Lines(tasks, console, quiet)
        return
    bars = Bars(tasks)
    with Live(bars.progress, console=console, refresh_per_second=4, transient=True):
        yield bars


class Lines:
    """One line for each study that ends."""

    def __init__(self, tasks: Sequence[Task], console: Console, quiet: bool) -> None:
        self.console, self.quiet, self.total, self.count = console, quiet, len(tasks), 0

    def tick(self) -> None:
        pass

    def ended(self, task: Task, error: BaseException | None) -> None:
        self.count += 1
        if self.quiet:
            return
        outcome = "failed" if error else _regret([glance(task.path)[1]])
        line = f"[{self.count}/{self.total}] {task.title}: {outcome}"
        self.console.print(line, markup=False, highlight=False, soft_wrap=True)


class Bars:
    """One bar for the campaign and one for each study under way."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[regret]}"),
        )
        self.paths = {task.path: task for task in tasks}
        self.sizes = {path: _size(path) for path in self.paths}
        self.seen = {path: glance(path) for path in self.paths}
        self.bars: dict[Path, TaskID] = {}
        self.over: set[Path] = set()
        total = sum(task.campaign.budget for task in tasks)
        self.whole = self.progress.add_task("evaluations", total=total, regret="")
        self._count()

    def tick(self) -> None:
        grown = [
            path
            for path in self.paths
            if path not in self.over and _size(path) != self.sizes[path]  # it is under way
        ]
        for path in grown:
            self.sizes[path] = _size(path)
            self.seen[path] = count, regret = glance(path)
            if path not in self.bars:
                task = self.paths[path]
                self.bars[path] = self.progress.add_task(
                    escape(task.title), total=task.campaign.budget, regret=""
                )
            self.progress.update(self.bars[path], completed=count, regret=_regret([regret]))
        if grown:
            self._count()

    def ended(self, task: Task, error: BaseException | None) -> None:
        self.over.add(task.path)
        self.seen[task.path] = glance(task.path)
        if task.path in self.bars:
            self.progress.remove_task(self.bars.pop(task.path))
        self._count()

    def _count(self) -> None:
        """The campaign's own bar: evaluations of all studies, and the median of their regrets."""
        regrets = [regret for count, regret in self.seen.values() if count]
        self.progress.update(
            self.whole,
            completed=sum(count for count, _ in self.seen.values()),
            regret=f"median {_regret(regrets)}" if regrets else "",
        )


def glance(path: Path) -> tuple[int, float | None]:
    """How many evaluations a journal holds and the last one's immediate regret.

    Only its last whole line is decoded: this is asked several times a second.
    """
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    if len(lines) < 2:
        return 0, None
    try:
        return len(lines) - 1, json.loads(lines[-1])["immediate_regret"]
    except (ValueError, KeyError, TypeError):  # whoever replays the journal will say what is wrong
        return len(lines) - 1, None


def print_summary(console: Console, rows: Sequence[Summary]) -> None:
    """The final table: the immediate regret's median and quartiles, within eighty columns."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("problem", "method"):
        table.add_column(column, overflow="fold")
    for column in ("runs", "regret", "quartiles", f"≤ {SUCCESS:g}", "s/point"):
        table.add_column(column, justify="right", no_wrap=True)
    for row in rows:
        low, median, high = (f"{regret:.1e}" for regret in row.immediate)
        runs = str(row.runs) if row.complete == row.runs else f"{row.complete}/{row.runs}"
        cells = (row.problem, row.method, runs, median, f"{low}…{high}", f"{row.success:.0%}")
        seconds = "n/a" if math.isnan(row.seconds) else f"{row.seconds:.2g}"
        table.add_row(*[escape(cell) for cell in cells], seconds)
    console.print(table)


def _regret(regrets: Sequence[float | None]) -> str:
    """Their median, those not known left out."""
    known = [regret for regret in regrets if regret is not None]
    return f"regret {quantiles(known, [0.5])[0]:.2g}" if known else "no regret yet"


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
