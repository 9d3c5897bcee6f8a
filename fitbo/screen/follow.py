"""One study as it runs: a bar on a terminal or in a notebook, else a line for each outcome.

    with follow(budget, progress=True) as shown:
        shown.begun(notebook, entry)               when an evaluation starts
        shown.ended(notebook, entry, outcome)      when its outcome is recorded

On a terminal the bar stays below the lines of the outcomes, and shows, within 45 columns too,

    coffee ━━━━━━━━━━╸          12/40  4 min left
    best 0.103, 2 failed
    #13 8 s  grams=15 celsius=97 seconds=102 gr…
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, Protocol

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from fitbo.objectives import Outcome
from fitbo.records.events import GIVEN, Entry
from fitbo.records.notebook import Notebook
from fitbo.screen.words import duration, short

MOST_RUNNING = 4  # evaluations that are listed
RECENT = 20  # evaluations whose pace says how long the rest takes
FRAMES = 4  # per second


class Shown(Protocol):
    """What is told of evaluations that start and end."""

    def begun(self, notebook: Notebook, entry: Entry) -> None: ...

    def ended(self, notebook: Notebook, entry: Entry, outcome: Outcome) -> None: ...


@contextmanager
def follow(
    budget: int,
    progress: bool,
    *,
    title: str = "fitbo",
    time_limit: float | None = None,
    console: Console | None = None,
) -> Iterator[Shown]:
    """Nothing without ``progress``; else a bar, or lines where there is no terminal."""
    console = console or Console(file=sys.stderr)
    if not progress:
        yield Nothing()
    elif console.is_jupyter:
        yield Cell(Bar(budget, title, time_limit))
    elif not console.is_terminal:
        yield Lines(budget, console)
    else:
        bar = Bar(budget, title, time_limit)
        with Live(bar, console=console, refresh_per_second=FRAMES, transient=True):
            yield Both(bar, Lines(budget, console))  # which draws the bar again


class Nothing:
    """Shows nothing."""

    def begun(self, notebook: Notebook, entry: Entry) -> None: ...

    def ended(self, notebook: Notebook, entry: Entry, outcome: Outcome) -> None: ...


class Lines(Nothing):
    """A line for each outcome; on a terminal not wider than it."""

    def __init__(self, budget: int, console: Console) -> None:
        self.budget, self.console = budget, console

    def ended(self, notebook: Notebook, entry: Entry, outcome: Outcome) -> None:
        known = notebook.best
        what = f"failed: {outcome.reason}" if outcome.value is None else f"{outcome.value:.6g}"
        best = f"  (best {known.value:.6g})" if known is not None else ""
        done = f"[{sum(e.source != GIVEN for e in notebook.outcomes)}/{self.budget}]"
        line = Text(f"{done} {short(entry.point)}: {what}{best}")
        if self.console.is_terminal:  # the value first, so that what is cut off is of the point
            line = Text(f"{done} {what}{best}  {short(entry.point)}")
            line.truncate(self.console.width, overflow="ellipsis")
        self.console.print(line, soft_wrap=True, highlight=False)


class Bar(Nothing):
    """How far a study is, as something that rich can draw at any time."""

    def __init__(
        self,
        budget: int,
        title: str,
        time_limit: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.budget, self.title, self.time_limit, self.clock = budget, title, time_limit, clock
        self.running: dict[int, tuple[Entry, float]] = {}
        self.began = clock()
        self.moments = [self.began]  # of the start, and of each outcome since
        self.count = self.failed = 0
        self.known = False  # whether a notebook was seen
        self.best: float | None = None

    def begun(self, notebook: Notebook, entry: Entry) -> None:
        if not self.known:  # a study that is continued has a past
            self.began -= notebook.elapsed
            self._look(notebook)
        self.running[entry.id] = entry, self.clock()

    def ended(self, notebook: Notebook, entry: Entry, outcome: Outcome) -> None:
        self.running.pop(entry.id, None)
        self.moments.append(self.clock())
        self._look(notebook)

    def _look(self, notebook: Notebook) -> None:
        self.known = True
        outcomes = [each for each in notebook.outcomes if each.source != GIVEN]
        self.count, self.failed = len(outcomes), sum(each.value is None for each in outcomes)
        self.best = notebook.best.value if notebook.best is not None else None

    def left(self) -> float | None:
        """Seconds until the budget is spent, at the pace of the last outcomes, or the time is up.

        None before the first outcome.
        """
        recent = self.moments[-RECENT - 1 :]
        if len(recent) < 2:
            return None
        gaps = [b - a for a, b in pairwise(recent)]
        # The mean, as several workers finish in bursts; what has passed since the last counts.
        since = self.clock() - self.moments[-1]
        left = max(0.0, statistics.fmean(gaps) * (self.budget - self.count) - since)
        if self.time_limit is not None:
            left = min(left, max(0.0, self.time_limit - (self.clock() - self.began)))
        return left

    def __rich__(self) -> Group:
        top = Table.grid(padding=(0, 1), expand=True)
        top.add_column(no_wrap=True, overflow="ellipsis", max_width=16)
        top.add_column(ratio=1)
        top.add_column(no_wrap=True, justify="right")
        left = self.left()
        far = f"{self.count}/{self.budget}" + ("" if left is None else f"  {duration(left)} left")
        top.add_row(Text(self.title), ProgressBar(self.budget, self.count), Text(far))
        best = "nothing feasible yet" if self.count > self.failed else "no value yet"
        best = best if self.best is None else f"best {self.best:.6g}"
        failed = f", {self.failed} failed" if self.failed else ""
        rows: list[Any] = [top, Text(best + failed, no_wrap=True, overflow="ellipsis")]
        now = self.clock()
        running = list(self.running.values())
        for entry, since in running[:MOST_RUNNING]:
            text = f"#{entry.id} {duration(now - since)}  {short(entry.point)}"
            rows.append(Text(text, style="dim", no_wrap=True, overflow="ellipsis"))
        if len(running) > MOST_RUNNING:
            rows.append(Text(f"and {len(running) - MOST_RUNNING} more", style="dim"))
        if not running:
            rows.append(Text("choosing the next point", style="dim"))
        return Group(*rows)


class Both(Nothing):
    """A bar, and lines above it."""

    def __init__(self, *parts: Shown) -> None:
        self.parts = parts

    def begun(self, notebook: Notebook, entry: Entry) -> None:
        for part in self.parts:
            part.begun(notebook, entry)

    def ended(self, notebook: Notebook, entry: Entry, outcome: Outcome) -> None:
        for part in self.parts:
            part.ended(notebook, entry, outcome)


class Cell(Nothing):
    """The bar in a notebook's cell, drawn again at each event: Jupyter has no terminal."""

    def __init__(self, bar: Bar) -> None:
        from IPython.display import display

        self.bar = bar
        self.handle: Any = display(self._drawn(), raw=True, display_id=True)

    def begun(self, notebook: Notebook, entry: Entry) -> None:
        self.bar.begun(notebook, entry)
        self.handle.update(self._drawn(), raw=True)

    def ended(self, notebook: Notebook, entry: Entry, outcome: Outcome) -> None:
        self.bar.ended(notebook, entry, outcome)
        self.handle.update(self._drawn(), raw=True)

    def _drawn(self) -> dict[str, str]:
        console = Console(width=80, force_jupyter=False, color_system=None)
        with console.capture() as capture:
            console.print(self.bar)
        return {"text/plain": capture.get()}
