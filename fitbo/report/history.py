"""Journals in, runs out: what each study had reached after each of its evaluations.

==============  =========  ====================================================================
symbol          shape      meaning
==============  =========  ====================================================================
``best``        (n,)       lowest value so far, noise-free where it is known; inf before any
``simple``      (n,)       best - minimum; NaN where the minimum is unknown
``immediate``   (n,)       |f(recommended x) - minimum| after each evaluation; NaN where unknown
``seconds``     (n,)       of MCMC and search for one suggestion; NaN in the initial design
``eta``         (n, 5)     posterior quantiles 5, 25, 50, 75, 95% of eta; NaN where none
==============  =========  ====================================================================

Before the first recommendation the lowest value told is what is recommended. A recommendation that
an evaluation leaves out, as a failed one, is that of the evaluation before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from fitbo.mixture import Array
from fitbo.records.archive import journals
from fitbo.records.events import ETA_QUANTILES, OUTCOMES, Row, amended, once
from fitbo.records.journal import Journal, parsed
from fitbo.study import bounded


@dataclass(frozen=True, eq=False)
class Run:
    """One study as its journal tells it; see the table of symbols above."""

    campaign: str
    problem: str
    method: str
    seed: int
    budget: int
    initial: int
    minimum: float
    best: Array
    immediate: Array
    seconds: Array
    eta: Array
    stopped: bool
    header: Mapping[str, Any]
    path: Path

    def __len__(self) -> int:
        return len(self.best)

    @property
    def simple(self) -> Array:
        return self.best - self.minimum

    @property
    def complete(self) -> bool:
        return self.stopped or len(self) >= self.budget

    @property
    def black_box(self) -> bool:
        """Whether the problem is the user's own."""
        return "space" in self.header["study"]["problem"]

    @property
    def folder(self) -> Path:
        """The campaign's: <campaign>/<problem>/<method>/<seed>.jsonl, or <study>/study.jsonl."""
        return self.path.parent if self.path.name == "study.jsonl" else self.path.parents[2]


Runs = dict[str, dict[str, list[Run]]]  # problem -> method -> runs, in order of seeds


def load(paths: Sequence[Path], minima: Mapping[str, float] | None = None) -> list[Run]:
    """Every journal below ``paths`` that holds an evaluation, in order of path.

    A path is a results tree, a campaign's folder or any part of it, a study's, or an archive.
    ``minima`` are known minima by the problems' labels, for headers that do not have them.
    """
    found: dict[Path, bytes] = {}
    for path in paths:
        if not path.exists():
            raise ValueError(f"results must be an existing folder, got {str(path)!r}")
        for file, data in journals(path):
            if not any(_is_scratch(folder) for folder in file.parents if path in folder.parents):
                found[file.resolve()] = data
    # A file without one whole line is that of a study killed at birth: it has no header yet.
    runs = [_run(file, data, minima or {}) for file, data in found.items() if b"\n" in data]
    runs = _grown([run for run in runs if len(run)])
    if not runs:
        names = ", ".join(str(path) for path in paths)
        raise ValueError(
            f"results must hold journals (*.jsonl) with evaluations, found none in {names}"
        )
    return runs


def group(runs: Iterable[Run]) -> Runs:
    """problem -> method -> runs; with more than one campaign, methods as "campaign / method"."""
    runs = list(runs)
    label = campaign_labels(runs)
    grouped: Runs = {}
    for run in sorted(runs, key=lambda run: run.seed):
        method = run.method if len(label) == 1 else f"{label[run.folder]} / {run.method}"
        grouped.setdefault(run.problem, {}).setdefault(method, []).append(run)
    return {p: dict(sorted(methods.items())) for p, methods in sorted(grouped.items())}


def campaign_labels(runs: Iterable[Run]) -> dict[Path, str]:
    """A name for each campaign's folder: the campaign's own, or as much of the path as differs."""
    folders = {run.folder: run.campaign for run in runs}
    length = 0
    labels = folders
    while len(set(labels.values())) < len(labels):
        length += 1
        labels = {path: "/".join(path.parts[-length:]) for path in folders}
    return labels


def _is_scratch(folder: Path) -> bool:
    """Whether a folder is for the evaluations of a study: what programs write there is theirs."""
    beside = "study.jsonl" if folder.name == "scratch" else f"{folder.stem}.jsonl"
    return folder.name.endswith("scratch") and folder.with_name(beside).exists()


def _grown(runs: Sequence[Run]) -> list[Run]:
    """The runs with the budget that their campaign has come to have on their problem.

    One that stopped at a smaller budget has not been continued yet.
    """
    budgets: dict[tuple[Path, str], int] = {}
    for run in runs:
        key = run.folder, run.problem
        budgets[key] = max(budgets.get(key, 0), run.budget)
    return [
        replace(run, budget=budget, stopped=run.stopped and run.budget == budget)
        for run in runs
        for budget in [budgets[run.folder, run.problem]]
    ]


def _run(path: Path, data: bytes, minima: Mapping[str, float]) -> Run:
    journal = parsed(data, path)
    try:
        return _told(path, journal, minima)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{path} must be a study's journal, but its header or a row misses {error}; "
            "move it elsewhere"
        ) from error


def _told(path: Path, journal: Journal, minima: Mapping[str, float]) -> Run:
    study, rows = journal.header["study"], amended(once(journal.rows))
    label = str(study["problem"].get("label") or path.parent.name)
    initial = int(study["initial"]["n"] or 0)
    minimum = _number(minima.get(label, study["problem"].get("minimum")))
    best, f_recommended, eta, n = _walk(rows)
    seconds = _seconds(rows)
    budgets = [journal.header.get("budget"), n, *(row.get("budget") for row in rows)]
    return Run(
        campaign=str(journal.header.get("campaign") or path.parent.name),
        problem=label,
        method=str(study["method"]["label"]),
        seed=int(study["seed"]),
        budget=max(int(budget) for budget in budgets if budget is not None),
        initial=initial,
        minimum=minimum,
        best=best,
        immediate=abs(f_recommended - minimum),
        seconds=np.where(np.arange(n) < initial, np.nan, seconds),
        eta=eta,
        stopped=rows[-1].get("event") == "stopped" if rows else False,
        header=journal.header,
        path=path,
    )


def _walk(rows: Sequence[Row]) -> tuple[Array, Array, Array, int]:
    """After each outcome: the lowest f so far, f of what is recommended, eta; and how many."""
    best: list[float] = []
    found: list[float] = []
    etas: list[Any] = []
    lowest, lowest_y, f_of_lowest = np.inf, np.inf, np.inf
    tracked = modelled = False
    for row in rows:
        if row.get("event") in OUTCOMES:
            y = float(bounded(_number(row.get("value"))))  # as large as it is in the model
            f = _number(row.get("f"), y)
            tracked = tracked or row.get("f") is not None
            lowest = min(lowest, f) if f == f else lowest
            if y < lowest_y:
                lowest_y, f_of_lowest = y, f
            best.append(lowest)
            etas.append([np.nan] * len(ETA_QUANTILES))
            found.append(found[-1] if modelled else f_of_lowest)
        if best and row.get("eta") is not None:
            etas[-1] = [_number(q) for q in row["eta"]]
        if best and (row.get("recommended") or {}).get("f") is not None:
            tracked = modelled = True
            found[-1] = float(row["recommended"]["f"])
    recommended = np.array(found) if tracked else np.full(len(best), np.nan)
    quantiles = np.array(etas, dtype=np.float64).reshape(len(best), len(ETA_QUANTILES))
    return np.array(best), recommended, quantiles, len(best)


def _seconds(rows: Sequence[Row]) -> Array:
    """Seconds of MCMC and search for the suggestion that led to each outcome."""
    asked = {row["id"]: row for row in rows if row.get("event") == "asked"}
    taken = []
    for row in rows:
        if row.get("event") in OUTCOMES:
            spent = asked.get(row["id"], {}).get("suggestion_seconds") or {}
            parts = [_number(spent.get(part), 0.0) for part in ("mcmc", "search")]
            taken.append(sum(parts) if spent else np.nan)
    return np.array(taken)


def _number(value: float | None, missing: float = np.nan) -> float:
    return missing if value is None else float(value)
