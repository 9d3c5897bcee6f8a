"""What the commands for one study print: points, outcomes, where the study stands."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from fitbo.config.study import StudyFile


def announcement(config: StudyFile) -> str:
    """The study in one line."""
    kinds = f"{len(config.space)} parameter{'s' if len(config.space) != 1 else ''}"
    where: str = config.executor.kind
    where += f" x {config.executor.workers}" if config.executor.workers else ""
    return (
        f"{config.name}: one study of {kinds}, {config.budget} evaluations ({where}), "
        f"in {config.directory}"
    )


def newly(config: StudyFile) -> str:
    """That a journal is made, and where: from the working directory, which may be the wrong one."""
    return f"new study in {config.directory.resolve()}"


def assignment(name: str, value: Any) -> str:
    """A parameter as ``fitbo tell --set`` takes it, quoted for a shell."""
    from fitbo.objectives.command import written

    return shlex.quote(f"{name}={written(value)}")


def watcher(console: Console, config: StudyFile) -> Callable[..., None]:
    """A line for each outcome."""
    best = float("inf")

    def show(notebook: Any, entry: Any, outcome: Any) -> None:
        nonlocal best
        entries = notebook.entries.values()
        done = sum(each.order >= 0 for each in entries)
        best = min([each.value for each in entries if each.value is not None], default=best)
        what = f"failed: {outcome.reason}" if outcome.value is None else f"{outcome.value:.6g}"
        lowest = f"  (best {best:.6g})" if best < float("inf") else ""
        point = " ".join(f"{name}={_short(value)}" for name, value in entry.point.items())
        say(console, f"[{done}/{config.budget}] {point}: {what}{lowest}")

    return show


def print_points(console: Console, points: Mapping[Any, Mapping[str, Any]]) -> None:
    """A table of points by their numbers; where it is too wide, a line for each."""
    names = next(iter(points.values()))
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("id", justify="right")
    for name in names:
        table.add_column(escape(name), justify="right")
    for number, point in points.items():
        table.add_row(str(number), *[escape(str(point[name])) for name in names])
    boundless = console.options.update_width(1 << 20)
    if console.measure(table, options=boundless).maximum <= console.width:
        console.print(table, highlight=False)
        return
    for number, point in points.items():
        say(console, f"{number}: {' '.join(assignment(*item) for item in point.items())}")


def print_summary(console: Console, config: StudyFile, summary: Any) -> None:
    """Where the study stands: the best, the recommendation, eta, what is pending."""
    failed = f", {summary.failed} failed" if summary.failed else ""
    pending = f", {len(summary.pending)} pending" if summary.pending else ""
    done = summary.told + summary.failed
    say(console, f"{config.name}: {done} of {config.budget} evaluations{failed}{pending}")
    if summary.best is not None:
        say(console, f"best observed   {summary.best.value:.6g} at {_written(summary.best.point)}")
    if summary.recommended is not None:
        found = summary.recommended
        say(console, f"recommended     {_written(found.point)}")
        say(console, f"  predicted     {found.mean:.6g} ± {found.deviation:.2g}")
        low, middle, high = summary.eta
        say(console, f"minimum (eta)   {middle:.6g}, 90% in [{low:.6g}, {high:.6g}]")
    if summary.pending:
        say(console, "pending:")
        print_points(console, {entry.id: entry.point for entry in summary.pending})
    if summary.stopped:
        say(console, f"stopped: {summary.stopped}")


def _written(point: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={_short(value)}" for name, value in point.items())


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def say(console: Console, text: str) -> None:
    """Print a line as it is: no markup, no colours, no breaks."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)
