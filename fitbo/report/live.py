"""A report of results that grow: made again when a journal has changed, only by reading.

    board = Board(paths, token)     the token tells its versions from those of another board
    board.look()              whether there is something new
    board.state               the page as it is now, and its version

A campaign's page needs the journals only. The model behind a study's page takes seconds: what the
journal says is shown at once, and the model of some evaluations ago with it until there is another.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any

from fitbo.records.archive import journal_at
from fitbo.records.notebook import notebook_of
from fitbo.report import page
from fitbo.report.campaign import campaign_page
from fitbo.report.history import Known, Run, load
from fitbo.report.page import Page
from fitbo.report.study import View, study_page, study_view

PAUSE = 3.0  # of the time that a model took: for so long none is made, and others may compute


@dataclass(frozen=True, eq=False)
class State:
    """A page and which one it is; ``over`` if nothing more is to be expected."""

    version: str
    page: Page
    over: bool

    def html(self, every: float) -> str:
        """The document, which asks for another state every so many seconds."""
        return self.page.html(every=every, version=self.version, over=self.over)

    def plain(self) -> dict[str, Any]:
        """What the page's script needs to become this one."""
        title, main, charts = self.page.live()
        return {
            "version": self.version,
            "title": title,
            "main": main,
            "charts": charts,
            "over": self.over,
        }


class Board:
    """The newest state of the results below some paths."""

    def __init__(
        self,
        paths: Sequence[Path],
        token: str,
        minima: Mapping[str, float] | None = None,
        studies: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.paths, self.minima, self.studies = list(paths), minima, studies
        self.token, self.count, self.clock = token, 0, clock
        self.known: Known = {}
        self.seen: object = None
        self.view: View | None = None
        self.modelled: object = None  # what was seen when the model was made
        self.rested = 0.0
        names = " and ".join(path.name for path in self.paths)
        self.state = self._state(_plain(names, "Nothing has been evaluated yet."), False)

    def look(self) -> bool:
        """Make another state if there is something new; whether there was."""
        found = self._signature()
        if found == self.seen and found == self.modelled:
            return False
        try:
            return self._model(found) if found == self.seen else self._journals(found)
        except (ValueError, OSError) as error:  # as of a journal that is no study's
            self.seen = self.modelled = found
            if found:
                self.state = self._state(_plain("fitbo", str(error)), False)
            return bool(found)

    def _journals(self, found: object) -> bool:
        """The page by the journals alone."""
        self.seen = found
        runs = load(self.paths, self.minima, self.known)
        over = all(run.complete for run in runs) and len(runs) >= (self.studies or 0)
        if len(runs) == 1 and runs[0].black_box:
            view = self._read(runs[0], model=False)
            if self.view is not None:
                view = _together(view, self.view)
            self.state = self._state(_of_study(view, self.view), over)
        else:
            self.modelled = found
            self.state = self._state(campaign_page(runs), over)
        return True

    def _model(self, found: object) -> bool:
        """The study's page with its model, unless it is too early for another."""
        over = self.state.over
        if self.clock() < self.rested and not over:
            return False
        started = self.clock()
        runs = load(self.paths, self.minima, self.known)
        self.view, self.modelled = self._read(runs[0], model=True), found
        self.rested = self.clock() + PAUSE * (self.clock() - started)
        self.state = self._state(study_page(self.view), over)
        return True

    def _read(self, run: Run, model: bool) -> View:
        return study_view(notebook_of(journal_at(run.path), run.path), run, model)

    def _state(self, made: Page, over: bool) -> State:
        self.count += 1
        return State(f"{self.token}-{self.count}", made, over)

    def _signature(self) -> list[tuple[str, int, int]]:
        """The journals and archives with their sizes and times."""
        found = []
        for path in self.paths:
            files = [path] if path.is_file() else []
            for folder, _, names in os.walk(path):
                files += [Path(folder, n) for n in names if n.endswith((".jsonl", ".tar.xz"))]
            for file in files:
                try:
                    about = file.stat()
                except FileNotFoundError:  # replaced at this moment
                    continue
                found.append((str(file), about.st_size, about.st_mtime_ns))
        return sorted(found)


def _together(now: View, before: View) -> View:
    """What the journal says now, with the model of before."""
    known = now.summary
    summary = replace(
        before.summary,
        told=known.told,
        failed=known.failed,
        pending=known.pending,
        best=known.best,
        stopped=known.stopped,
    )
    return now._replace(summary=summary, slices=before.slices, dependence=before.dependence)


def _of_study(view: View, before: View | None) -> Page:
    made = study_page(view)
    if before is None or len(before.outcomes) == len(view.outcomes):
        return made
    note = f"The model is that of {len(before.outcomes)} evaluations; the next one is being made."
    return made._replace(main=made.main.replace("<section", f"{_note(note)}<section", 1))


def _plain(title: str, words: str) -> Page:
    """A page of a few words."""
    parts = dict.fromkeys(("facts", "links", "sections", "config"), "")
    return page.compose(title, {}, **parts, notes=_note(words))


def _note(words: str) -> str:
    return f'<p class="note">{escape(words)}</p>'
