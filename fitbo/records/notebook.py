"""A study and its journal: every point asked for, every value, every failure is an event.

    with open_notebook(config) as notebook:     the journal locked, made if need be, and replayed
        entry = notebook.ask()                  a new point, on the disk when this returns
        notebook.told(entry, 0.42)              its value, likewise

With ``running="joint"`` other runs may share the journal: the lock is held by each of these calls,
and by ``notebook.locked()`` for several, and what the others have written is taken in first.

A study is resumed by replaying its journal. What its sampler came to when it moved last is kept
beside the journal in ``*.state.npz``. That file is only a shortcut: without it, or with a torn one,
the fits are made again, and since all randomness comes from (seed, values told, purpose) they are
the same fits. No fit is made before something needs it: telling, exporting and counting need none.

Without a configuration the notebook is kept in memory only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from fitbo.config.build import build_study
from fitbo.config.campaign import StudyConfig
from fitbo.decode import differences
from fitbo.records import ensembles, events
from fitbo.records.events import GIVEN, Entry, Point, entries_of, rounded
from fitbo.records.headers import check_points, check_same, header, study_of, x_of
from fitbo.records.headers import config_of as config_of
from fitbo.records.journal import (
    ConfigChanged,
    Journal,
    Recorded,
    Writer,
    read,
    state_path,
)
from fitbo.records.replay import Build, observation, replay, tell_row
from fitbo.sampling import Ensemble
from fitbo.space.outcomes import hold, measured
from fitbo.study import Study

OFTEN = 1.1  # a tenth more values, and the minimum's quantiles are worth their draws again
PARTS = ("mcmc", "search", "entropy", "recommend")  # of the seconds that a suggestion takes
Running = Literal["alone", "joint"] | None


@dataclass
class Notebook:
    """The study as its journal tells it; with a writer, both go on together."""

    study: Study
    config: StudyConfig | None = None
    rows: list[dict[str, Any]] = field(default_factory=list)
    writer: Writer | None = None
    _cold: bool = False  # whether the fits of the journal are still to be made
    build: Build = build_study
    elsewhere: tuple[Entry, ...] = ()  # what other runs evaluate, when a run has ended
    aside: tuple[Study, tuple[int, ...], Study] | None = None  # of which, knowing how much, a copy
    _saved: Ensemble | None = None  # read with the lock held, when others had written

    def __post_init__(self) -> None:
        self.entries = entries_of(self.rows)

    @property
    def new(self) -> bool:
        """Whether the journal was made for this notebook."""
        return self.writer is not None and self.writer.journal is None

    @property
    def stopped(self) -> str | None:
        """Why the last run ended, if nothing has happened since."""
        last = self.rows[-1] if self.rows else {}
        return str(last["reason"]) if last.get("event") == "stopped" else None

    @property
    def elapsed(self) -> float:
        """Seconds for which the study has been run, in all sessions."""
        return max([float(row["elapsed"]) for row in self.rows if "elapsed" in row], default=0.0)

    @property
    def outcomes(self) -> list[Entry]:
        """Values and failures in the order in which they came."""
        known = [entry for entry in self.entries.values() if entry.order >= 0]
        return sorted(known, key=lambda entry: entry.order)

    @property
    def best(self) -> Entry | None:
        """The first of the best values told, of those where the outcome constraints hold."""
        told = [entry for entry in self.outcomes if self.counts(entry)]
        return min(told, key=lambda entry: self.study.sign * (entry.value or 0.0), default=None)

    def begun(self) -> int:
        """Evaluations of the budget: all but what is withdrawn, or was known before."""
        used = (e.state != "forgotten" and e.source != GIVEN for e in self.entries.values())
        return sum(used)

    def counts(self, entry: Entry) -> bool:
        """Whether an entry has a value, and all outcome constraints hold there."""
        held = hold(self.study.constraints, entry.constraints or {})
        return entry.value is not None and held

    def pending(self) -> list[Entry]:
        return [entry for entry in self.entries.values() if entry.state == "pending"]

    @property
    def run(self) -> int:
        """The number of this run among those that share the journal."""
        return self.writer.run if self.writer is not None else 1

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Nobody else writes the journal in the block, and what others have written is known."""
        with self.writer.held() if self.writer is not None else nullcontext() as news:
            if news is not None and self.config is not None:
                self.rows = events.once(news.rows)
                self.entries = entries_of(self.rows)
                self.study = replay(self.config, self.rows, fits=False, build=self.build)
                self._cold, self._saved = True, ensembles.load(state_path(self.config.journal))
            yield

    def abandoned(self) -> list[Entry]:
        """What is pending and no other run that is alive evaluates; with the lock held."""
        waiting = self.pending()
        if self.writer is None or {entry.run for entry in waiting} <= {0, self.run}:
            return waiting
        others = self.writer.others()
        return [entry for entry in waiting if entry.run not in others]

    def warm(self) -> Study:
        """The study with the fits of its journal made, as asking and recommending need it."""
        if self._cold and self.config is not None and any("fitted" in row for row in self.rows):
            saved = self._saved or ensembles.load(state_path(self.config.journal))
            self.study = replay(self.config, self.rows, build=self.build, saved=saved)
        self._cold = False
        return self.study

    def ask(self, source: str = "run", x: Any = None, **more: Any) -> Entry:
        """A new point, or x that the study has chosen already; on the disk when this returns."""
        with self.locked():
            entry = self._new_entry(self.warm().ask(1)[0] if x is None else x, source)
            self._append("asked", entry, source=source, **self.mine(), **more, **self.fitted())
        return entry

    def mine(self) -> dict[str, int]:
        """What a row says about the run that evaluates its point: nothing, if it is the first."""
        return {"run": self.run} if self.run > 1 else {}

    def told(
        self,
        entry: Entry,
        value: float,
        std: float | None = None,
        constraints: Mapping[str, float | None] | None = None,
        **more: Any,
    ) -> None:
        """The value at a point: on the disk when this returns, and told to the study.

        std, constraints   what comes with it, as ``observation`` makes them
        """
        measured(self.study.constraints, constraints)  # or an error, before it is on the disk
        row = observation(value, std, constraints) | more
        with self.locked():
            try:
                self._append("told", entry, **row)  # first: now nothing can lose it
            except Recorded:
                tell_row(self.study, self.x(entry.point), row)
                raise
            tell_row(self.study, self.x(entry.point), row)

    def failed(self, entry: Entry, reason: str, **more: Any) -> None:
        """That a point has no value, and why."""
        with self.locked():
            self._append("failed", entry, reason=reason, **more)
            self.study.fail(self.x(entry.point), reason)

    def expect(self, entry: Entry) -> None:
        """A point of the caller's own choice, which is being evaluated."""
        self._append("asked", entry, source=entry.source)
        self.study.expect(self.x(entry.point))

    def forget(self, entry: Entry) -> None:
        """That a point will not be evaluated, or that what was told about it is withdrawn."""
        row = {"event": "forgotten", "id": entry.id}
        if entry.order >= 0:
            self._amend(row, entry)
        else:
            self.append(row)
            self.study.forget(self.x(entry.point))

    def correct(
        self,
        entry: Entry,
        value: float | None,
        reason: str | None,
        std: float | None = None,
        constraints: Mapping[str, float | None] | None = None,
        **more: Any,
    ) -> None:
        """Another value than was told, or that there is none and why."""
        row: dict[str, Any] = {"event": "corrected", "id": entry.id, "point": entry.point}
        row |= {"reason": reason} if value is None else observation(value, std, constraints)
        self._amend(row | more, entry)

    def _amend(self, row: dict[str, Any], entry: Entry) -> None:
        """A row that changes the past: the study is rebuilt, its next fit starts from nothing."""
        if self.config is None:
            raise ValueError("only a study with a journal can be corrected")
        # First of all: without a state the fits are made again, but with the state of fits to
        # other values the study would continue from those.
        state_path(self.config.journal).unlink(missing_ok=True)
        self._saved = None
        self.append(row | {"was": entry.reason if entry.value is None else entry.value})
        self.study = replay(self.config, self.rows, fits=False, build=self.build)
        self._cold = False

    def entry_of(self, point: Mapping[str, Any], source: str) -> Entry:
        """The pending entry of a point, or a new one if it was never asked for."""
        self.study.space.check(self.x(point))
        wanted = {name: point[name] for name in self.study.space.names if name in point}
        same = (entry for entry in self.pending() if entry.point == wanted)
        return next(same, None) or self._new_entry(wanted, source)

    def plain(self, x: Any) -> Point:
        """A point of the study as a dict of JSON's own types."""
        return self.study.space.plain_values(x)

    def x(self, point: Mapping[str, Any]) -> Any:
        """A point as the study and its objective take it: a dict, or an array without names."""
        return x_of(self.study.space, point)

    def fitted(self) -> dict[str, Any]:
        """What a row says about a fit that was made since the last such row."""
        study = self.study
        spent = {part: study.seconds.pop(part) for part in PARTS if part in study.seconds}
        if "mcmc" not in spent:
            return {"suggestion_seconds": rounded(spent)} if spent else {}
        fit = study.fit()
        moved = fit.moved == fit.n
        if moved and self.config is not None:
            # Before the row: whichever of the two a kill prevents, the other is still right.
            ensembles.save(state_path(self.config.journal), fit.samples.ensemble)
        eta = study.eta_quantiles(events.ETA_QUANTILES).tolist()
        row = {"fitted": fit.n, "moved": fit.moved, "eta": events.rounded_quantiles(eta)}
        row |= {"in_model": len(fit.active)} if len(fit.active) < fit.n else {}
        if moved and fit.has_paths and fit.n >= OFTEN * self._minimum_at():
            minimum = study.minimum_quantiles(events.ETA_QUANTILES).tolist()
            row["minimum"] = events.rounded_quantiles(minimum)
        row |= {"mcmc": rounded(asdict(fit.samples.diagnostics))} if moved else {}
        return row | {"suggestion_seconds": rounded(spent)}

    def _minimum_at(self) -> int:
        """The number of values when the minimum's quantiles were noted last.

        Not where a run ended: one that goes on notes what it would have noted without the end.
        """
        rows = (row for row in reversed(self.rows) if row.get("event") != "stopped")
        return int(next((row["fitted"] for row in rows if "minimum" in row), 0))

    def append(self, row: dict[str, Any]) -> None:
        if self.writer is None and self.config is not None:
            raise ValueError("this notebook was opened for reading")
        end = None
        if self.writer is not None:
            try:
                self.writer.append(row)
            except Recorded as error:
                end = error
        events.note(self.entries, row, len(self.rows))
        self.rows.append(row)
        if end is not None:
            raise end

    def _append(self, event: str, entry: Entry, **more: Any) -> None:
        self.append({"event": event, "id": entry.id, "point": entry.point, **more})

    def _new_entry(self, x: Any, source: str) -> Entry:
        run = self.run if source == "run" else 0
        return Entry(max(self.entries, default=0) + 1, self.plain(x), source=source, run=run)


@contextmanager
def open_notebook(
    config: StudyConfig,
    build: Build = build_study,
    running: Running = None,
    known: Notebook | None = None,
    **lock: Any,
) -> Iterator[Notebook]:
    """The study's notebook, locked for writing and made if need be.

    ``Busy`` if another process writes it, ``ConfigChanged`` if it belongs to another study.
    ``lock`` says how long to wait for others, as in ``Writer``; ``build`` makes the study. A run is
    ``running`` "alone", or "joint" if other runs may share it. ``known`` was read before: if nobody
    has written since, its study goes on, with what it has thought.
    """
    with Writer(config.journal, **lock) as writer:
        if writer.journal is None:
            state_path(config.journal).unlink(missing_ok=True)  # of a journal since removed
            writer.append(header(config))
        rows = events.once(writer.journal.rows) if writer.journal is not None else []
        if known is not None and known.rows == rows:
            if writer.journal is not None:
                check_same(writer.journal, config)
            notebook = replace(known, writer=writer)
        else:
            notebook = _replayed(config, writer.journal, writer, build)
        _correct_objective(notebook, writer.journal)
        if running is not None:
            writer.begin(share=running == "joint")
        yield notebook


def read_notebook(config: StudyConfig) -> Notebook:
    """The same for reading only, at any time; empty if there is no journal yet."""
    return _replayed(config, read(config.journal) if config.journal.exists() else None)


def notebook_of(journal: Journal, path: Path) -> Notebook:
    """The notebook, for reading, of the study that a journal's header describes."""
    return _replayed(config_of(journal, path), journal)


def _replayed(
    config: StudyConfig,
    journal: Journal | None,
    writer: Writer | None = None,
    build: Build = build_study,
) -> Notebook:
    if journal is not None:
        check_same(journal, config)
        check_points(journal, config)
    rows = events.once(journal.rows) if journal is not None else []
    study = replay(config, rows, fits=False, build=build)
    return Notebook(study, config, rows, writer, _cold=True, build=build)


def _correct_objective(notebook: Notebook, journal: Journal | None) -> None:
    """Note another objective than the journal's; what the old one failed at is forgotten."""
    if journal is None or notebook.config is None or not notebook.config.problem.black_box:
        return
    was, now = study_of(journal)["problem"], notebook.config.described()["problem"]
    if not differences(was.get("objective"), now.get("objective")):
        return
    if any(row.get("event") == "told" for row in journal.rows):
        return
    if notebook.writer is not None and notebook.writer.others():
        raise ConfigChanged(
            f"{notebook.config.journal} is being run with another objective: wait until that run "
            f"has ended, or end it"
        )
    notebook.append({"event": "objective", "objective": now["objective"]})
    for entry in notebook.outcomes:
        notebook.forget(entry)
