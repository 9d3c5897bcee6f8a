"""What people see: bars and lines while studies run, tables and summaries when they are done.

The progress of a campaign is read from the journals, which every worker writes wherever it runs:
no messages pass.
"""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from rich import progress
from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from fitbo.config.campaign import Campaign, StudyConfig
from fitbo.inference.importance import Importance
from fitbo.objectives.command import written
from fitbo.records.events import Point
from fitbo.report import regret
from fitbo.runs import standing
from fitbo.screen import digits, interval, measured, short
from fitbo.space.outcomes import hold, outcome_constraints
from fitbo.study import OPTIMA, SIGNS


def say(console: Console, text: str) -> None:
    """Print a line as it is: no markup, no colours, no breaks."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def announcement(campaign: Campaign) -> str:
    """A file in one line."""
    if campaign.single:
        size, place = campaign.all_problems[0].size, campaign.place
        what = f"one study of {size} parameter{'s' if size != 1 else ''}, "
        workers = f" ({place.kind} x {place.workers})" if place.workers else f" ({place.kind})"
    else:
        count, workers = len(campaign.studies()), ""
        what = f"{count} studies of " if count != 1 else "1 study of "
    return f"{campaign.name}: {what}{campaign.budget} evaluations{workers}, in {campaign.directory}"


def new_study(study: StudyConfig) -> str:
    """That a journal is made, and where: from the working directory, which may be the wrong one."""
    return f"new study in {study.directory.resolve()}"


def assignment(name: str, value: Any) -> str:
    """A parameter as ``fitbo tell --set`` takes it, quoted for a shell."""
    return shlex.quote(f"{name}={written(value)}")


@contextmanager
def display(
    studies: Sequence[StudyConfig], console: Console, quiet: bool
) -> Iterator[Lines | Bars]:
    """Nothing if quiet, bars on a terminal, else a line for each study that ends."""
    if quiet or not console.is_terminal:
        yield Lines(len(studies), console, quiet)
    else:
        bars = Bars(studies)
        with Live(bars.progress, console=console, refresh_per_second=4, transient=True):
            yield bars


class Lines:
    """One line for each study that ends."""

    def __init__(self, total: int, console: Console, quiet: bool) -> None:
        self.total, self.console, self.quiet, self.count = total, console, quiet, 0

    def tick(self) -> None:
        pass

    def ended(self, study: StudyConfig, error: BaseException | None) -> None:
        self.count += 1
        if not self.quiet:
            outcome = "failed" if error else str(Glance(study.journal).look())
            say(self.console, f"[{self.count}/{self.total}] {study.title}: {outcome}")


class Glance:
    """A journal as it grows: how many outcomes it holds and the best of them so far."""

    def __init__(self, path: Path) -> None:
        self.path, self.read, self.constraints = path, 0, outcome_constraints(())
        self.count, self.best, self.minimum, self.sign = 0, math.inf, math.nan, 1.0

    def __str__(self) -> str:
        if self.best == math.inf:
            return "no value yet"
        shown = f"best {self.sign * self.best:.4g}"
        return shown if math.isnan(self.regret) else f"regret {self.regret:.2g}"

    @property
    def regret(self) -> float:
        """NaN if the minimum, or the maximum, is unknown."""
        return self.best - self.sign * self.minimum

    def look(self) -> Glance:
        """Read what is new, whole lines only; what is wrong is reported when it is replayed."""
        if not self.path.exists() or self.path.stat().st_size <= self.read:
            return self
        with self.path.open("rb") as file:
            file.seek(self.read)
            new = file.read()
        whole = new[: new.rfind(b"\n") + 1]
        for i, line in enumerate(whole.splitlines()):
            try:
                row = json.loads(line)
                if self.read == 0 and i == 0:
                    problem = row["study"]["problem"]
                    direction = problem.get("direction", "minimize")
                    self.sign = SIGNS[direction]
                    minimum = problem.get(OPTIMA[direction])
                    self.minimum = math.nan if minimum is None else minimum
                    texts = problem.get("outcome_constraints", ())
                    self.constraints = outcome_constraints(texts)
                elif row["event"] in ("told", "failed"):
                    self.count += 1
                    value = row.get("f", row.get("value"))
                    if not hold(self.constraints, row.get("constraints") or {}):
                        continue
                    self.best = min(self.best, math.inf if value is None else self.sign * value)
            except (ValueError, KeyError, TypeError, AttributeError):
                continue
        self.read += len(whole)
        return self


class Bars:
    """One bar for the campaign and one for each study under way."""

    def __init__(self, studies: Sequence[StudyConfig]) -> None:
        self.progress = progress.Progress(
            progress.TextColumn("{task.description}"),
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            progress.TimeRemainingColumn(),
            progress.TextColumn("{task.fields[best]}"),
        )
        self.studies = {study.journal: study for study in studies}
        self.seen = {path: Glance(path).look() for path in self.studies}
        self.bars: dict[Path, progress.TaskID] = {}
        self.over: set[Path] = set()
        total = sum(study.campaign.budget for study in studies)
        self.whole = self.progress.add_task("evaluations", total=total, best="")
        self._count()

    def tick(self) -> None:
        grown = False
        for path, glance in self.seen.items():
            before = glance.read
            if path in self.over or glance.look().read == before:
                continue
            grown = True
            if path not in self.bars:
                study = self.studies[path]
                title, budget = escape(study.title), study.campaign.budget
                self.bars[path] = self.progress.add_task(title, total=budget, best="")
            self.progress.update(self.bars[path], completed=glance.count, best=str(glance))
        if grown:
            self._count()

    def ended(self, study: StudyConfig, error: BaseException | None) -> None:
        self.over.add(study.journal)
        self.seen[study.journal].look()
        if study.journal in self.bars:
            self.progress.remove_task(self.bars.pop(study.journal))
        self._count()

    def _count(self) -> None:
        """The campaign's own bar: evaluations of all studies, and the median of their regrets."""
        regrets = [g.regret for g in self.seen.values() if g.best < math.inf]
        known = [regret for regret in regrets if not math.isnan(regret)]
        count = sum(g.count for g in self.seen.values())
        best = f"median regret {median(known):.2g}" if known else ""
        self.progress.update(self.whole, completed=count, best=best)


def _table(folded: Sequence[str], right: Sequence[str]) -> Table:
    """An empty table: columns that may be folded, then columns of numbers."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in folded:
        table.add_column(column, overflow="fold")
    for column in right:
        table.add_column(escape(column), justify="right", no_wrap=True)
    return table


def print_table(console: Console, rows: Sequence[regret.Summary]) -> None:
    """The final table: the median and quartiles of what is known best, within eighty columns."""
    numbers = ("runs", "regret", "quartiles", f"≤ {regret.SUCCESS:g}", "s/point")
    table = _table(("problem", "method"), numbers)
    for row in rows:
        band, form = row.immediate, ".1e"
        if math.isnan(band[1]):
            band = row.simple
        if math.isnan(band[1]):
            band, form = row.best, ".4g"
        low, middle, high = (f"{value:{form}}" for value in band)
        middle = f"best {middle}" if form == ".4g" else middle
        runs = str(row.runs) if row.complete == row.runs else f"{row.complete}/{row.runs}"
        share = "" if math.isnan(row.success) else f"{row.success:.0%}"
        seconds = "n/a" if math.isnan(row.seconds) else f"{row.seconds:.2g}"
        cells = (row.problem, row.method, runs, middle, f"{low}…{high}", share, seconds)
        table.add_row(*[escape(cell) for cell in cells])
    console.print(table)


def print_studies(console: Console, campaign: Campaign, lines: Sequence[Mapping[str, Any]]) -> None:
    """How each study of a campaign stands."""
    table = _table(("problem", "method"), ("seed", "done", "failed", "best"))
    table.add_column("state", overflow="fold")
    for line in lines:
        done = line["told"] + line["failed"]
        state = line["stopped"] or ("unfinished" if done else "not begun")
        state = "complete" if line["stopped"] and done >= campaign.budget else state
        best = "" if line["best"] is None else f"{line['best']:.6g}"
        cells = [line["problem"], line["method"], line["seed"], f"{done}/{campaign.budget}"]
        table.add_row(*[escape(str(cell)) for cell in (*cells, line["failed"], best, state)])
    console.print(table, highlight=False)


def print_points(console: Console, points: Mapping[int, Point]) -> None:
    """A table of points by their numbers; where it is too wide, a line for each."""
    names = list(dict.fromkeys(name for point in points.values() for name in point))
    table = _table((), ("id", *names))
    for number, point in points.items():
        table.add_row(str(number), *[escape(digits(point.get(name, ""))) for name in names])
    boundless = console.options.update_width(1 << 20)
    if console.measure(table, options=boundless).maximum <= console.width:
        console.print(table, highlight=False)
        return
    for number, point in points.items():
        say(console, f"{number}: {' '.join(assignment(*item) for item in point.items())}")


def print_status(console: Console, campaign: Campaign, summary: standing.Summary) -> None:
    """Where one study stands: the best, the minimum, what matters, what is pending."""
    failed = f", {summary.failed} failed" if summary.failed else ""
    pending = f", {len(summary.pending)} pending" if summary.pending else ""
    done = summary.told + summary.failed - summary.given
    pending += f", beside {summary.given} given" if summary.given else ""
    say(console, f"{campaign.name}: {done} of {campaign.budget} evaluations{failed}{pending}")
    facts: dict[str, str] = {}
    if summary.best is not None:
        facts["best observed"] = f"{summary.best.value:.6g} at {short(summary.best.point)}"
    elif summary.feasible == 0 and summary.told:
        facts["best observed"] = "none: the outcome constraints hold at no point yet"
    if summary.feasible is not None:
        facts["feasible"] = f"{summary.feasible} of {summary.told} values"
    if (found := summary.recommended) is not None:
        facts["recommended"] = short(found.point)
        facts["  predicted"] = measured(found.mean, found.deviation)
        if found.feasible is not None:
            facts["  feasible"] = f"with probability {found.feasible:.2g}"
    if summary.minimum is not None:
        facts[OPTIMA[campaign.direction]] = interval(summary.minimum)
    if summary.remaining is not None and math.isfinite(summary.remaining):
        facts["still to gain"] = f"{summary.remaining:.2g} expected"
    if summary.noise is not None:
        facts["noise"] = str(summary.noise)
    if summary.importance is not None:
        facts["what matters"] = shares(summary.importance)
    _print_facts(console, facts)
    if summary.pending:
        say(console, "pending:")
        print_points(console, {entry.id: entry.point for entry in summary.pending})
    if summary.stopped:
        say(console, f"stopped: {summary.stopped}")


def shares(found: Mapping[str, Importance]) -> str:
    """``rate 81% [74, 88], depth 20% [12, 31]``: total effects of a hundredth and more."""
    return ", ".join(
        f"{name} {each.effect:.0%} [{100 * each.low:.0f}, {100 * each.high:.0f}]"
        for name, each in found.items()
        if each.effect >= 0.01
    )


def _print_facts(console: Console, facts: Mapping[str, str]) -> None:
    """A line for each; on a terminal that is too narrow, folded between words below its name."""
    widest = max([len(text) for text in facts.values()], default=0) + 16
    if not console.is_terminal or widest <= console.width:
        for name, text in facts.items():
            say(console, f"{name:<16}{text}")
        return
    for name, text in facts.items():
        say(console, name)
        console.print(Padding(Text(text), (0, 0, 0, 2)), highlight=False)
