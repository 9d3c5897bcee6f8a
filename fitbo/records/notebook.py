"""A study and its journal: every point asked for, every value, every failure is a line.

The lines are the events of ``fitbo.records.events``, and are only ever appended.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import fitbo
from fitbo.config.campaign import differences
from fitbo.config.study import StudyFile, build_space, fixed, from_dict, is_study, load
from fitbo.config.study_build import build_settings
from fitbo.records import ensembles
from fitbo.records.events import ETA_QUANTILES, Entry, Point, amended, entries_of, once
from fitbo.records.journal import (
    FORMAT,
    ConfigChanged,
    Journal,
    Writer,
    lasting,
    made_by,
    read,
    state_path,
)
from fitbo.sampling import Ensemble
from fitbo.study import Study


@dataclass
class Notebook:
    """The study as its journal tells it; with a writer, both go on together."""

    config: StudyFile
    study: Study
    rows: list[dict[str, Any]] = field(default_factory=list)
    writer: Writer | None = None
    starts: dict[int, Ensemble] = field(default_factory=dict, repr=False)
    new: bool = False  # whether the journal was made for it

    def __enter__(self) -> Notebook:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.writer is not None:
            self.writer.__exit__(kind, error, traceback)

    @property
    def entries(self) -> dict[int, Entry]:
        return entries_of(self.rows)

    @property
    def stopped(self) -> str | None:
        """Why the last run ended, if nothing has happened since."""
        last = self.rows[-1] if self.rows else {}
        return str(last["reason"]) if last.get("event") == "stopped" else None

    @property
    def elapsed(self) -> float:
        """Seconds for which the study has been run, in all sessions."""
        return max([float(row["elapsed"]) for row in self.rows if "elapsed" in row], default=0.0)

    def pending(self) -> list[Entry]:
        return [entry for entry in self.entries.values() if entry.state == "pending"]

    def ask(self, source: str = "run") -> Entry:
        """A new point, on the disk when this returns."""
        point = self.study.ask(1)[0]
        entry = Entry(self._next_id(), plain(point), source=source)
        row = {"event": "asked", "id": entry.id, "point": entry.point, "source": source}
        self.append(row | self.fitted())
        return entry

    def told(self, entry: Entry, value: float, **more: Any) -> None:
        """The value at a point: told to the study, and on the disk when this returns."""
        row = {"event": "told", "id": entry.id, "point": entry.point, "value": value}
        self.append(row | more)  # first of all: from now on nothing can lose it
        self.study.tell(entry.point, value)

    def failed(self, entry: Entry, reason: str, **more: Any) -> None:
        """That a point has no value, and why."""
        row = {"event": "failed", "id": entry.id, "point": entry.point, "reason": reason}
        self.append(row | more)
        self.study.fail(entry.point, reason)

    def forget(self, entry: Entry) -> None:
        """That a point will not be evaluated, or that what was told of it is withdrawn."""
        row = {"event": "forgotten", "id": entry.id}
        if entry.order >= 0:
            self._amend(row, entry)
        else:
            self.append(row)
            self.study.forget(entry.point)

    def correct(self, entry: Entry, value: float | None, reason: str | None, **more: Any) -> None:
        """Another value than was told, or that there is none and why."""
        row: dict[str, Any] = {"event": "corrected", "id": entry.id, "point": entry.point}
        row |= {"reason": reason} if value is None else {"value": value}
        self._amend(row | more, entry)

    def _amend(self, row: dict[str, Any], entry: Entry) -> None:
        """A row after which the study is another: it is rebuilt, its next fit from nothing."""
        # First of all: of a state without its row the fits are made again, but a row with the
        # state of fits to other values would go on from them.
        state_path(self.config.journal).unlink(missing_ok=True)
        self.append(row | {"was": entry.reason if entry.value is None else entry.value})
        self.study, self.starts = replay(self.config, self.rows, fits=False)

    def entry_of(self, point: Mapping[str, Any], source: str) -> Entry:
        """The pending entry of a point, or a new one if it was never asked for."""
        self.study.space.check(point)
        wanted = {name: point[name] for name in self.config.space}
        for entry in self.pending():
            if entry.point == wanted:
                return entry
        return Entry(self._next_id(), plain(wanted), source=source)

    def fitted(self) -> dict[str, Any]:
        """What a line says of a fit that was made since the last such line."""
        seconds = {
            name: self.study.seconds.pop(name, None)
            for name in ("mcmc", "search", "entropy", "recommend")
        }
        spent = {name: value for name, value in seconds.items() if value is not None}
        if seconds["mcmc"] is None:
            return {"suggestion_seconds": spent} if spent else {}
        n = self.study.fit().n
        if self.study.start is not None:
            # Before the row: whichever of the two a kill prevents, the other is still right.
            last = max(self.starts, default=None)
            kept = {k: e for k, e in self.starts.items() if k == last}
            self.starts = kept | {n: self.study.start}
            ensembles.save(state_path(self.config.journal), self.starts)
        return {
            "fitted": n,
            "eta": self.study.eta_quantiles(ETA_QUANTILES).tolist(),
            "suggestion_seconds": spent,
        }

    def append(self, row: dict[str, Any]) -> None:
        if self.writer is None:
            raise ValueError("this notebook was opened for reading")
        self.writer.append(row)
        self.rows.append(row)

    def _next_id(self) -> int:
        return max([row["id"] for row in self.rows if "id" in row], default=0) + 1


def open_notebook(config: StudyFile, fits: bool = True, **lock: Any) -> Notebook:
    """The study's notebook, locked for writing and made if need be; a context manager.

    ``Busy`` if another process writes it, ``ConfigChanged`` if it is another study's.
    Without ``fits`` it takes no time, and is for telling only: what it asked for would not be what
    the study would have. ``lock`` is how long to wait for others, as ``Writer`` says.
    """
    writer = Writer(config.journal, **lock)
    try:
        if writer.journal is None:
            state_path(config.journal).unlink(missing_ok=True)  # of a journal since removed
            writer.append(header(config))
        else:
            check_same(writer.journal, config)
        rows = once(writer.journal.rows) if writer.journal is not None else []
        study, starts = replay(config, rows, fits)
        return Notebook(config, study, rows, writer, starts, new=writer.journal is None)
    except BaseException:
        writer.__exit__(None, None, None)
        raise


def read_notebook(config: StudyFile, fits: bool = True) -> Notebook:
    """The same for reading only, at any time; empty if there is no journal yet."""
    if not config.journal.exists():
        return Notebook(config, Study(build_space(config), build_settings(config)))
    journal = read(config.journal)
    check_same(journal, config)
    rows = once(journal.rows)
    study, starts = replay(config, rows, fits)
    return Notebook(config, study, rows, None, starts)


def study_of(path: Path) -> StudyFile | None:
    """The study of a YAML file, of a journal or of the folder that holds it; None if it is none."""
    if path.suffix in (".yaml", ".yml") and path.is_file():
        return load(path) if is_study(path) else None
    journal = path / "study.jsonl" if path.is_dir() else path
    if not journal.is_file() or journal.name != "study.jsonl":
        return None
    held = read(journal)
    if "study" not in held.header:
        return None
    rows = sum(row.get("event") == "asked" for row in held.rows)
    where = journal.resolve().parent
    data = held.header["study"] | {"name": where.name, "output": str(where.parent)}
    return from_dict(data | {"budget": max(1, rows, data["initial"]["n"] or 1)}, str(journal))


def replay(
    config: StudyFile, rows: Sequence[Mapping[str, Any]], fits: bool = True
) -> tuple[Study, dict[int, Ensemble]]:
    """The study as it was after these rows, and the ensembles that its last fits started from."""
    study = Study(build_space(config), build_settings(config))
    right = amended(rows)
    last = max([row["fitted"] for row in right if "fitted" in row], default=None)
    saved = ensembles.load(state_path(config.journal)) if last is not None else {}
    start = saved.get(last) if last is not None else None
    starts: dict[int, Ensemble] = {}
    for row in right:
        event = row.get("event")
        if event == "told":
            study.tell(row["point"], row["value"])
        elif event == "failed":
            study.fail(row["point"], row["reason"])
        if fits and "fitted" in row and (row["fitted"] == last or start is None):
            if start is not None:
                study.ensemble = start
            if study.ensemble is not None:
                starts = {row["fitted"]: study.ensemble}
            study.fit()
    study.seconds.clear()
    for entry in entries_of(rows).values():
        if entry.state == "pending":
            study.expect(entry.point)
    return study, starts


def header(config: StudyFile) -> dict[str, Any]:
    """The journal's first line: what the study is, and what it was made with."""
    return {
        "format": FORMAT,
        "fitbo": fitbo.__version__,
        "study": fixed(config),
        "versions": made_by(),
    }


def check_same(journal: Journal, config: StudyFile) -> None:
    """``ConfigChanged`` if a journal is not of this study."""
    path = config.journal
    if "study" not in journal.header:
        raise ConfigChanged(f"{path} is not the journal of a study: give this one another name")
    old, new = lasting(journal.header), lasting(header(config))
    changed = [line.removeprefix("study.") for line in differences(old, new)]
    order, now = (", ".join(each["study"]["space"]) for each in (old, new))
    if not changed and order != now:  # which coordinate is whose
        changed = [f"space: was in the order {order}, is {now}"]
    if changed:
        raise ConfigChanged(
            f"{path} was made by another configuration: {'; '.join(changed)}. Give the study "
            f"another name or output, or move its results away; to keep its evaluations, "
            f"fitbo export {shlex.quote(str(config.directory))} old.csv and fitbo import that into "
            f"the renamed study"
        )


def plain(point: Mapping[str, Any]) -> Point:
    """A point of JSON's own types."""
    return {
        name: value.item() if hasattr(value, "item") else value for name, value in point.items()
    }
