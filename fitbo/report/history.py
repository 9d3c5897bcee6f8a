"""Journals in, runs out: what each study had reached after each of its evaluations.

==============  =========  ====================================================================
symbol          shape      meaning
==============  =========  ====================================================================
``best``        (n,)       best value so far, noise-free where it is known; inf before any
``simple``      (n,)       best - minimum; NaN where the minimum is unknown
``immediate``   (n,)       |f(recommended x) - minimum| after each evaluation; NaN where unknown
``seconds``     (n,)       of MCMC and search for one suggestion; NaN in the initial design
``optimum``     (n, 5)     posterior quantiles 5, 25, 50, 75, 95% of f*, the minimum; NaN where
                           the journal has none
``eta``         (n, 5)     the same of eta, the bound of the model's warp, which is not the minimum
``found``       (k,)       where the best value improved: indices into the arrays above, and points
==============  =========  ====================================================================

If a function is maximised, ``minimum`` is its maximum, and regrets are how far below it one is.
Before the first recommendation the point of the best value told counts as recommended. After an
evaluation without a recommendation, such as a failed one, the one before it still holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from fitbo.mixture import Array
from fitbo.records.archive import journals
from fitbo.records.events import ETA_QUANTILES, OUTCOMES, Point, Row, amended, once
from fitbo.records.journal import parsed
from fitbo.space.outcomes import OutcomeConstraint, hold, outcome_constraints
from fitbo.study import OPTIMA, SIGNS, bounded

QUANTILES = len(ETA_QUANTILES)


@dataclass(frozen=True, eq=False)
class Run:
    """One study as its journal describes it; see the table of symbols above."""

    campaign: str
    problem: str
    method: str
    seed: int
    budget: int
    initial: int
    sign: float  # -1 if the function is maximised
    minimum: float
    best: Array
    immediate: Array
    seconds: Array
    optimum: Array
    eta: Array
    found: Sequence[tuple[int, Point]]
    stopped: bool
    header: Mapping[str, Any]
    path: Path

    def __len__(self) -> int:
        return len(self.best)

    @property
    def simple(self) -> Array:
        return self.sign * (self.best - self.minimum)

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
Known = dict[Path, tuple[bytes, Run]]  # journals as they were read


def load(
    paths: Sequence[Path], minima: Mapping[str, float] | None = None, known: Known | None = None
) -> list[Run]:
    """Every journal below ``paths`` that holds an evaluation, in order of path.

    A path is a results tree, the folder of a campaign, any part of it or a study, or an archive.
    ``minima`` are known minima by the problems' labels, for headers that do not have them.
    ``known`` is what was read before, and is kept up to date: only what has changed is read again.
    """
    known = {} if known is None else known
    found: dict[Path, bytes] = {}
    for path in paths:
        if not path.exists():
            raise ValueError(f"results must be an existing folder, got {str(path)!r}")
        for file, data in journals(path):
            if not any(_is_scratch(folder) for folder in file.parents if path in folder.parents):
                found[file.resolve()] = data
    # A study killed at its very start has a file without a whole line, and so no header yet.
    for file, data in found.items():
        if b"\n" in data and (file not in known or known[file][0] != data):
            known[file] = data, _run(file, data, minima or {})
    runs = _grown([known[file][1] for file in found if file in known and len(known[file][1])])
    if not runs:
        where = f"found none in {', '.join(map(str, paths))}"
        raise ValueError(f"results must hold journals (*.jsonl) with evaluations, {where}")
    return runs


def group(runs: Sequence[Run]) -> Runs:
    """problem -> method -> runs; with more than one campaign, methods as "campaign / method"."""
    label = campaign_labels(runs)
    grouped: Runs = {}
    for run in sorted(runs, key=lambda run: run.seed):
        method = run.method if len(label) == 1 else f"{label[run.folder]} / {run.method}"
        grouped.setdefault(run.problem, {}).setdefault(method, []).append(run)
    return {p: dict(sorted(methods.items())) for p, methods in sorted(grouped.items())}


def campaign_labels(runs: Sequence[Run]) -> dict[Path, str]:
    """A name for each campaign's folder: the campaign's own, or as much of the path as differs."""
    labels = {run.folder: run.campaign for run in runs}
    length = 0
    while len(set(labels.values())) < len(labels):
        length += 1
        labels = {path: "/".join(path.parts[-length:]) for path in labels}
    return labels


def _is_scratch(folder: Path) -> bool:
    """Whether a folder is for the evaluations of a study: programs may write any file there."""
    beside = "study.jsonl" if folder.name == "scratch" else f"{folder.stem}.jsonl"
    return folder.name.endswith("scratch") and folder.with_name(beside).exists()


def _grown(runs: Sequence[Run]) -> list[Run]:
    """The runs with the largest budget that their campaign has had on their problem.

    A run that stopped at a smaller budget has not been continued yet.
    """
    budgets: dict[tuple[Path, str], int] = {}
    for run in runs:
        key = run.folder, run.problem
        budgets[key] = max(budgets.get(key, 0), run.budget)
    grown = [(run, budgets[run.folder, run.problem]) for run in runs]
    return [replace(r, budget=b, stopped=r.stopped and r.budget == b) for r, b in grown]


def _run(path: Path, data: bytes, minima: Mapping[str, float]) -> Run:
    journal = parsed(data, path)
    try:
        study, rows = journal.header["study"], amended(once(journal.rows))
        label = str(study["problem"].get("label") or path.parent.name)
        initial = int(study["initial"]["n"] or 0)
        direction = study["problem"].get("direction", "minimize")
        optimum = study["problem"].get(OPTIMA[direction])
        minimum, sign = _number(minima.get(label, optimum)), SIGNS[direction]
        constraints = outcome_constraints(study["problem"].get("outcome_constraints", ()))
        walked, found = _walk(rows, sign, constraints)
        best, recommended, seconds = walked[:, :3].T
        budgets = [journal.header.get("budget"), len(best), *(row.get("budget") for row in rows)]
        return Run(
            campaign=str(journal.header.get("campaign") or path.parent.name),
            problem=label,
            method=str(study["method"]["label"]),
            seed=int(study["seed"]),
            budget=max(int(budget) for budget in budgets if budget is not None),
            initial=initial,
            sign=sign,
            minimum=minimum,
            best=best,
            immediate=abs(recommended - minimum),
            seconds=np.where(np.arange(len(best)) < initial, np.nan, seconds),
            optimum=walked[:, 3 : 3 + QUANTILES],
            eta=walked[:, 3 + QUANTILES :],
            found=found,
            stopped=bool(rows) and rows[-1].get("event") == "stopped",
            header=journal.header,
            path=path,
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{path} must be a study's journal, but its header or a row misses {error}; "
            "move it elsewhere"
        ) from error


def _walk(
    rows: Sequence[Row], sign: float, constraints: Sequence[OutcomeConstraint]
) -> tuple[Array, list[tuple[int, Point]]]:
    """After each outcome best f so far, f of what is recommended, seconds, f*, eta: (n, 13).

    And where the best improved. Of f only what is known where the outcome constraints hold.
    """
    asked = {row["id"]: row for row in rows if row.get("event") == "asked"}
    steps: list[list[float]] = []
    found: list[tuple[int, Point]] = []
    best = best_y = f_of_best = sign * np.inf
    tracked = modelled = False
    for row in rows:
        if row.get("event") in OUTCOMES:
            y = float(bounded(_number(row.get("value"))))  # as large as it is in the model
            if not hold(constraints, row.get("constraints") or {}):
                y = np.nan
            f = _number(row.get("f"), y)
            tracked = tracked or row.get("f") is not None
            if sign * f < sign * best:
                best = f
                found.append((len(steps), row.get("point") or {}))
            if sign * y < sign * best_y:
                best_y, f_of_best = y, f
            spent = asked.get(row["id"], {}).get("suggestion_seconds") or {}
            seconds = sum(_number(spent.get(part), 0.0) for part in ("mcmc", "search"))
            advised = steps[-1][1] if modelled else f_of_best
            unknown = [np.nan] * (2 * QUANTILES)
            steps.append([best, advised, seconds if spent else np.nan, *unknown])
        for place, key in enumerate(("minimum", "eta")):
            if steps and row.get(key) is not None:
                start = 3 + place * QUANTILES
                steps[-1][start : start + QUANTILES] = [_number(q) for q in row[key]]
        if steps and (row.get("recommended") or {}).get("f") is not None:
            tracked = modelled = True
            steps[-1][1] = float(row["recommended"]["f"])
    walked = np.array(steps, dtype=np.float64).reshape(-1, 3 + 2 * QUANTILES)
    if not tracked:
        walked[:, 1] = np.nan
    return walked, found


def _number(value: float | None, missing: float = np.nan) -> float:
    return missing if value is None else float(value)
