"""A study and its journal: every point asked for, every value, every failure is an event.

    with open_notebook(config) as notebook:     the journal locked, made if need be, and replayed
        entry = notebook.ask()                  a new point, on the disk when this returns
        notebook.told(entry, 0.42)              its value, likewise

A study is resumed by replaying its journal. What it needs besides are the sampler's ensembles, each
fit's start being the last one's result; the last two starts are kept beside the journal in
``*.state.npz``. That file is only a shortcut: without it, or with a torn one, the fits are made
again, and since all randomness comes from (seed, values told, purpose) they are the same fits. No
fit is made before something needs it: telling, exporting and counting take none.

Without a configuration the notebook is kept in memory only.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

import fitbo
from fitbo.config.build import build_problem, build_study
from fitbo.config.campaign import INCIDENTAL, StudyConfig, from_dict
from fitbo.config.method import LABEL
from fitbo.decode import differences
from fitbo.records import ensembles
from fitbo.records.events import (
    ETA_QUANTILES,
    Entry,
    Point,
    Row,
    amended,
    entries_of,
    note,
    once,
    rounded,
    rounded_quantiles,
)
from fitbo.records.journal import FORMAT, ConfigChanged, Journal, Writer, made_by, read, state_path
from fitbo.sampling import Ensemble
from fitbo.study import Study

PARTS = ("mcmc", "search", "entropy", "recommend")  # of the seconds that a suggestion takes


@dataclass
class Notebook:
    """The study as its journal tells it; with a writer, both go on together."""

    study: Study
    config: StudyConfig | None = None
    rows: list[dict[str, Any]] = field(default_factory=list)
    writer: Writer | None = None
    new: bool = False  # whether the journal was made for it
    _starts: dict[int, Ensemble] = field(default_factory=dict, repr=False)
    _cold: bool = False  # whether the fits of the journal are still to be made

    def __post_init__(self) -> None:
        self.entries = entries_of(self.rows)
        self._last = max(self.entries, default=0)
        self._outcomes = sum(entry.order >= 0 for entry in self.entries.values())

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

    def pending(self) -> list[Entry]:
        return [entry for entry in self.entries.values() if entry.state == "pending"]

    def warm(self) -> Study:
        """The study with the fits of its journal made, as whoever asks or recommends needs it."""
        if self._cold and self.config is not None:
            self.study, self._starts = replay(self.config, self.rows)
            self._cold = False
        return self.study

    def ask(self, source: str = "run", **more: Any) -> Entry:
        """A new point, on the disk when this returns."""
        entry = Entry(self._next_id(), self.plain(self.warm().ask(1)[0]), source=source)
        row = {"event": "asked", "id": entry.id, "point": entry.point, "source": source}
        self.append(row | more | self.fitted())
        return entry

    def told(self, entry: Entry, value: float, **more: Any) -> None:
        """The value at a point: on the disk when this returns, and told to the study."""
        row = {"event": "told", "id": entry.id, "point": entry.point, "value": value}
        self.append(row | more)  # first: from now on nothing can lose it
        self.study.tell(self.x(entry.point), value)

    def failed(self, entry: Entry, reason: str, **more: Any) -> None:
        """That a point has no value, and why."""
        row = {"event": "failed", "id": entry.id, "point": entry.point, "reason": reason}
        self.append(row | more)
        self.study.fail(self.x(entry.point), reason)

    def expect(self, entry: Entry) -> None:
        """A point of the caller's own choice, which is being evaluated."""
        row = {"event": "asked", "id": entry.id, "point": entry.point, "source": entry.source}
        self.append(row)
        self.study.expect(self.x(entry.point))

    def forget(self, entry: Entry) -> None:
        """That a point will not be evaluated, or that what was told of it is withdrawn."""
        row = {"event": "forgotten", "id": entry.id}
        if entry.order >= 0:
            self._amend(row, entry)
        else:
            self.append(row)
            self.study.forget(self.x(entry.point))

    def correct(self, entry: Entry, value: float | None, reason: str | None, **more: Any) -> None:
        """Another value than was told, or that there is none and why."""
        row: dict[str, Any] = {"event": "corrected", "id": entry.id, "point": entry.point}
        row |= {"reason": reason} if value is None else {"value": value}
        self._amend(row | more, entry)

    def _amend(self, row: dict[str, Any], entry: Entry) -> None:
        """A row after which the study is another: it is rebuilt, its next fit from nothing."""
        if self.config is None:
            raise ValueError("only a study with a journal can be corrected")
        # First of all: without a state the fits are made again, but a row beside the state of
        # fits to other values would go on from them.
        state_path(self.config.journal).unlink(missing_ok=True)
        self.append(row | {"was": entry.reason if entry.value is None else entry.value})
        self.study, self._starts = replay(self.config, self.rows, fits=False)
        self._cold = False

    def entry_of(self, point: Mapping[str, Any], source: str) -> Entry:
        """The pending entry of a point, or a new one if it was never asked for."""
        self.study.space.check(self.x(point))
        wanted = {name: point[name] for name in self.study.space.names}
        for entry in self.pending():
            if entry.point == wanted:
                return entry
        return Entry(self._next_id(), self.plain(wanted), source=source)

    def plain(self, x: Any) -> Point:
        """A point of the study as a dict of JSON's own types."""
        names = self.study.space.names
        items = x.items() if isinstance(x, Mapping) else zip(names, x, strict=True)
        return {name: value.item() if hasattr(value, "item") else value for name, value in items}

    def x(self, point: Mapping[str, Any]) -> Any:
        """A point as the study and its objective take it: a dict, or an array without names."""
        if self.study.space.named:
            return dict(point)
        return np.array([point[name] for name in self.study.space.names], dtype=np.float64)

    def fitted(self) -> dict[str, Any]:
        """What a row says of a fit that was made since the last such row."""
        study = self.study
        spent = {part: study.seconds.pop(part) for part in PARTS if part in study.seconds}
        if "mcmc" not in spent:
            return {"suggestion_seconds": rounded(spent)} if spent else {}
        fit = study.fit()
        if study.start is not None and self.config is not None:
            # Before the row: whichever of the two a kill prevents, the other is still right.
            last = max(self._starts, default=None)
            kept = {k: e for k, e in self._starts.items() if k == last}
            self._starts = kept | {fit.n: study.start}
            ensembles.save(state_path(self.config.journal), self._starts)
        return {
            "fitted": fit.n,
            "eta": rounded_quantiles(study.eta_quantiles(ETA_QUANTILES).tolist()),
            "mcmc": rounded(asdict(fit.samples.diagnostics)),
            "suggestion_seconds": rounded(spent),
        }

    def append(self, row: dict[str, Any]) -> None:
        if self.writer is not None:
            self.writer.append(row)
        elif self.config is not None:
            raise ValueError("this notebook was opened for reading")
        self.rows.append(row)
        self._outcomes = note(self.entries, row, self._outcomes)
        self._last = max(self._last, row.get("id", 0))

    def _next_id(self) -> int:
        return self._last + 1


def open_notebook(config: StudyConfig, **lock: Any) -> Notebook:
    """The study's notebook, locked for writing and made if need be; a context manager.

    ``Busy`` if another process writes it, ``ConfigChanged`` if it is another study's. ``lock`` is
    how long to wait for others, as ``Writer`` says.
    """
    writer = Writer(config.journal, **lock)
    try:
        new = writer.journal is None
        if new:
            state_path(config.journal).unlink(missing_ok=True)  # of a journal since removed
            writer.append(header(config))
        return _replayed(config, writer.journal, writer, new)
    except BaseException:
        writer.__exit__(None, None, None)
        raise


def read_notebook(config: StudyConfig) -> Notebook:
    """The same for reading only, at any time; empty if there is no journal yet."""
    return _replayed(config, read(config.journal) if config.journal.exists() else None)


def _replayed(
    config: StudyConfig, journal: Journal | None, writer: Writer | None = None, new: bool = False
) -> Notebook:
    if journal is not None:
        check_same(journal, config)
    rows = once(journal.rows) if journal is not None else []
    study, _ = replay(config, rows, fits=False)
    return Notebook(study, config, rows, writer, new, _cold=True)


def notebook_of(journal: Journal, path: Path) -> Notebook:
    """The notebook, for reading, of the study that a journal's header describes."""
    return _replayed(config_of(journal, path), journal)


def config_of(journal: Journal, path: Path) -> StudyConfig:
    """The study that a journal is of; ``path`` is where it lies."""
    study = journal.header.get("study")
    if not isinstance(study, dict) or not {"problem", "method", "seed", "initial"} <= set(study):
        raise ValueError(f"{path} must be the journal of a study, and its header describes none")
    problem = {key: value for key, value in study["problem"].items() if value is not None}
    data = {key: study[key] for key in ("method", "seed", "initial")}
    where = path.resolve().parent
    if path.name == "study.jsonl":
        data |= {key: value for key, value in problem.items() if key != "label"}
    else:
        where = where.parents[1] if len(where.parents) > 1 else where
        known = () if "space" in problem else ("minimum",)
        data["problems"] = [{k: v for k, v in problem.items() if k not in known}]
    data["budget"] = max(1, len(entries_of(journal.rows)), study["initial"]["n"] or 1)
    data["name"] = where.name if LABEL.admits(where.name) else "study"
    return from_dict({**data, "output": str(where.parent)}, str(path)).studies()[0]


def replay(
    config: StudyConfig, rows: Sequence[Row], fits: bool = True
) -> tuple[Study, dict[int, Ensemble]]:
    """The study as it was after these rows, and the ensembles that its last fits started from."""
    study = build_study(config)
    x_of = Notebook(study).x
    right = amended(rows)
    last = max([row["fitted"] for row in right if "fitted" in row], default=None)
    saved = ensembles.load(state_path(config.journal)) if fits and last is not None else {}
    start = saved.get(last) if last is not None else None
    starts: dict[int, Ensemble] = {}
    for row in right:
        event = row.get("event")
        if event == "told":
            study.tell(x_of(row["point"]), row["value"])
        elif event == "failed":
            study.fail(x_of(row["point"]), row["reason"])
        if fits and "fitted" in row and (row["fitted"] == last or start is None):
            if start is not None:
                study.ensemble = start
            if study.ensemble is not None:
                starts = {row["fitted"]: study.ensemble}
            study.fit()
    study.seconds.clear()
    for entry in entries_of(rows).values():
        if entry.state == "pending":
            study.expect(x_of(entry.point))
    return study, starts


def header(config: StudyConfig) -> dict[str, Any]:
    """The journal's first line: what the study is, and what it was made with."""
    study = config.described()
    if not config.problem.black_box:
        study["problem"]["minimum"] = build_problem(config.problem).minimum
    return {
        "format": FORMAT,
        "fitbo": fitbo.__version__,
        "campaign": config.campaign.name,
        "budget": config.campaign.budget,
        "study": study,
        "versions": made_by(),
    }


def check_same(journal: Journal, config: StudyConfig) -> None:
    """``ConfigChanged`` if a journal is not of this study."""
    path = config.journal
    if not isinstance(journal.header.get("study"), dict):
        raise ConfigChanged(f"{path} is not the journal of a study: give this one another name")
    old, new = (_lasting(each["study"]) for each in (journal.header, header(config)))
    changed = [line.removeprefix("problem.") for line in differences(old, new)]
    order, now = (", ".join(each["problem"].get("space") or ()) for each in (old, new))
    if not changed and order != now:  # which coordinate is whose
        changed = [f"space: was in the order {order}, is {now}"]
    if changed:
        folder = shlex.quote(str(config.directory))
        raise ConfigChanged(
            f"{path} was made by another configuration: {'; '.join(changed)}. Give the study or "
            f"campaign another name or output, or move its results away; to keep its evaluations, "
            f"fitbo export {folder} old.csv and fitbo import that into the renamed study"
        )


def _lasting(study: Mapping[str, Any]) -> dict[str, Any]:
    """What a header says of the study itself, which must not change."""
    parts = {
        part: {k: v for k, v in study.get(part, {}).items() if k not in INCIDENTAL}
        for part in ("problem", "method")
    }
    return {**study, **parts}
