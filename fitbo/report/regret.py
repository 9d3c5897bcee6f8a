"""Regret over seeds: journals in, curves of medians and quartiles and a table out.

==============  =========  ====================================================================
symbol          shape      meaning
==============  =========  ====================================================================
``immediate``   (n,)       |f(recommended x) - minimum| after each evaluation of a run
``simple``      (n,)       min f so far - minimum
``seconds``     (n,)       of MCMC and search that one suggestion took; NaN in the initial design
``eta``         (n, 5)     posterior quantiles 5, 25, 50, 75, 95% of the minimum; NaN where none
==============  =========  ====================================================================

How runs are put together:

- Quantiles are taken of log10 regret, over seeds. Regrets below ``FLOOR`` count as ``FLOOR``: a
  regret of zero has no logarithm, and minima are known to some 1e-13 only.
- A regret not yet known (every evaluation so far has failed) is infinite; one that a failed
  evaluation leaves out is that of the evaluation before.
- Runs may be unfinished. Nothing is carried forward: at n the curve is the median over the runs
  that have reached n, and it ends where fewer than half of them have. ``Curve.count`` says how many
  runs stand behind each n. A run that has stopped short is thereby neither a stalled run nor one
  that holds the others back.
- The table takes each run at its last evaluation, and says how many runs are complete.
- A campaign's budget may grow, which the journals that have not gone on do not know: its budget on
  a problem is the largest that any of its runs was given, or has reached.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fitbo.mixture import Array
from fitbo.records.events import ETA_QUANTILES
from fitbo.records.journal import read

FLOOR = 1e-10
SUCCESS = 1e-2
QUARTILES = (0.25, 0.5, 0.75)


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
    immediate: Array
    simple: Array
    seconds: Array
    eta: Array
    header: Mapping[str, Any]
    path: Path

    def __len__(self) -> int:
        return len(self.simple)

    @property
    def complete(self) -> bool:
        return len(self) >= self.budget


Runs = dict[str, dict[str, list[Run]]]  # problem -> method -> runs, in order of seeds


@dataclass(frozen=True, eq=False)
class Curve:
    """Quartiles over runs after n = 1, 2, ... evaluations: arrays (N,), count >= half of runs."""

    n: NDArray[np.int_]
    low: Array
    median: Array
    high: Array
    count: NDArray[np.int_]
    runs: int


@dataclass(frozen=True)
class Summary:
    """One line of the final table; regrets are (quartile, median, quartile), not logarithms."""

    problem: str
    method: str
    runs: int
    complete: int
    immediate: tuple[float, float, float]
    simple: tuple[float, float, float]
    success: float  # share of runs whose last immediate regret is at most SUCCESS
    seconds: float  # mean over the suggestions of all runs; NaN if there is none


def load(paths: Sequence[Path]) -> list[Run]:
    """Every journal below ``paths`` that holds an evaluation, in order of path.

    A path is a results tree, a campaign's folder or any part of it. With more than one campaign
    the methods are named "campaign / method", and campaigns of one name by their folders too.
    """
    files: dict[Path, None] = {}
    studies: list[Path] = []
    for path in paths:
        if not path.exists():
            raise ValueError(f"results must be an existing folder, got {str(path)!r}")
        found = [path] if path.is_file() else sorted(path.rglob("*.jsonl"))
        # A study of a black box has a report of its own, and its programs may write what they like.
        studies += [file.parent for file in found if file.name == "study.jsonl"]
        found = [
            file
            for file in found
            if not any((folder / "study.jsonl").exists() for folder in _folders(file, path))
        ]
        files |= dict.fromkeys(file.resolve() for file in found)
    # A file without one whole line is that of a study killed at birth: it has no header yet.
    runs = [_run(file) for file in files if b"\n" in file.read_bytes()]
    runs = _grown([run for run in runs if len(run)])
    if not runs:
        names = ", ".join(str(path) for path in paths)
        alone = f"; its studies are reported one at a time, as {studies[0]}" if studies else ""
        raise ValueError(
            f"results must hold journals (*.jsonl) with evaluations, found none in {names}{alone}"
        )
    return runs


def _grown(runs: Sequence[Run]) -> list[Run]:
    """The runs with the budget that their campaign has come to have on their problem."""
    budgets: dict[tuple[Path, str], int] = {}
    for run in runs:
        key = folder(run), run.problem
        budgets[key] = max(budgets.get(key, 0), run.budget, len(run))
    return [replace(run, budget=budgets[folder(run), run.problem]) for run in runs]


def _folders(file: Path, top: Path) -> list[Path]:
    """The file's own, and those above it as far as ``top``."""
    return [file.parent, *(each for each in file.parents if each == top or top in each.parents)]


def group(runs: Iterable[Run]) -> Runs:
    """problem -> method -> runs; names of several campaigns are told apart as ``load`` says."""
    runs = list(runs)
    label = campaign_labels(runs)
    grouped: Runs = {}
    for run in sorted(runs, key=lambda run: run.seed):
        method = run.method if len(label) == 1 else f"{label[folder(run)]} / {run.method}"
        grouped.setdefault(run.problem, {}).setdefault(method, []).append(run)
    return {p: dict(sorted(methods.items())) for p, methods in sorted(grouped.items())}


def folder(run: Run) -> Path:
    """The campaign's folder: <campaign>/<problem>/<method>/<seed>.jsonl."""
    return run.path.parents[2]


def campaign_labels(runs: Iterable[Run]) -> dict[Path, str]:
    """A name for each campaign's folder: the campaign's own, or as much of the path as differs."""
    folders = {folder(run): run.campaign for run in runs}
    length = 0
    labels = folders
    while len(set(labels.values())) < len(labels):
        length += 1
        labels = {path: "/".join(path.parts[-length:]) for path in folders}
    return labels


def log10(regret: ArrayLike) -> Array:
    """log10 max(regret, FLOOR), any shape."""
    return np.log10(np.maximum(np.asarray(regret, dtype=np.float64), FLOOR))


def quantiles(values: ArrayLike, q: Sequence[float] = QUARTILES) -> Array:
    """Linear quantiles over the first axis, (S, ...) -> (len(q), ...); infinities are values."""
    ordered = np.sort(np.asarray(values, dtype=np.float64), axis=0)
    results = []
    for share in q:
        place = share * (len(ordered) - 1)
        low, high = ordered[int(np.floor(place))], ordered[int(np.ceil(place))]
        part = place - np.floor(place)
        # inf - inf and 0 inf are not numbers, so equal neighbours are not interpolated.
        gap = np.where(low == high, 0.0, high) - np.where(low == high, 0.0, low)
        results.append(low + part * gap if part else low)
    return np.array(results)


def curve(runs: Sequence[Run], regret: str = "immediate") -> Curve:
    """Median and quartiles of log10 "immediate" or "simple" regret against evaluations."""
    return over_runs([log10(getattr(run, regret)) for run in runs])


def over_runs(series: Sequence[Array]) -> Curve:
    """Quartiles over ragged series (n_s,), to where fewer than half of them go on."""
    lengths = np.sort([len(values) for values in series])[::-1]
    N = int(lengths[(len(series) + 1) // 2 - 1])
    count = np.array([(lengths > i).sum() for i in range(N)])
    bands = np.array([quantiles([s[i] for s in series if len(s) > i]) for i in range(N)])
    low, median, high = bands.reshape(N, 3).T
    return Curve(np.arange(1, N + 1), low, median, high, count, len(series))


def eta_band(runs: Sequence[Run]) -> Array:
    """The median run's posterior of eta, (N, 5): each quantile's median over the runs at n.

    Rows where no run has a posterior are NaN; N as in ``over_runs``.
    """
    N = int(over_runs([run.simple for run in runs]).n[-1])
    band = np.full((N, len(ETA_QUANTILES)), np.nan)
    for i in range(N):
        there = [run.eta[i] for run in runs if len(run) > i and np.isfinite(run.eta[i]).all()]
        if there:
            band[i] = np.median(there, axis=0)
    return band


def seconds_curve(runs: Sequence[Run]) -> Array:
    """Median seconds of the suggestion that led to evaluation n, (N,); NaN where none did."""
    N = int(over_runs([run.simple for run in runs]).n[-1])
    medians = np.full(N, np.nan)
    for i in range(N):
        there = [run.seconds[i] for run in runs if len(run) > i and np.isfinite(run.seconds[i])]
        if there:
            medians[i] = np.median(there)
    return medians


def summarise(grouped: Runs) -> list[Summary]:
    """The final table: one row for each problem and method."""
    return [
        _summary(problem, method, runs)
        for problem, methods in grouped.items()
        for method, runs in methods.items()
    ]


def _summary(problem: str, method: str, runs: Sequence[Run]) -> Summary:
    immediate, simple = (
        tuple(10 ** quantiles(log10([getattr(run, regret)[-1] for run in runs])).ravel())
        for regret in ("immediate", "simple")
    )
    seconds = np.concatenate([run.seconds for run in runs])
    seconds = seconds[np.isfinite(seconds)]
    return Summary(
        problem,
        method,
        len(runs),
        sum(run.complete for run in runs),
        tuple(map(float, immediate)),  # type: ignore[arg-type]
        tuple(map(float, simple)),  # type: ignore[arg-type]
        float(np.mean([run.immediate[-1] <= SUCCESS for run in runs])),
        float(np.mean(seconds)) if len(seconds) else float("nan"),
    )


def _run(path: Path) -> Run:
    journal = read(path)
    try:
        return _parsed(path, journal.header, journal.rows)
    except (KeyError, TypeError) as error:
        raise ValueError(
            f"{path} must be a campaign's journal, but its header or a row misses {error}; "
            "move it elsewhere"
        ) from error


def _parsed(path: Path, header: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> Run:
    initial = int((header.get("initial") or {}).get("n") or 0)
    seconds = [row.get("seconds") or {} for row in rows]
    suggested = [_number(s.get("mcmc"), 0.0) + _number(s.get("search"), 0.0) for s in seconds]
    budgets = [row["budget"] for row in rows if "budget" in row]
    nothing = [np.nan] * len(ETA_QUANTILES)
    eta = [[_number(q) for q in row.get("eta") or nothing] for row in rows]
    return Run(
        campaign=str(header["campaign"]),
        problem=str(header["problem"]["label"]),
        method=str(header["method"]["label"]),
        seed=int(header["seed"]),
        budget=max(int(each) for each in [header["budget"], *budgets]),
        initial=initial,
        minimum=_number(header["problem"].get("minimum")),
        immediate=_regrets(row.get("immediate_regret") for row in rows),
        simple=_regrets(row.get("simple_regret") for row in rows),
        seconds=np.where(np.arange(len(rows)) < initial, np.nan, np.array(suggested)),
        eta=np.array(eta, dtype=np.float64).reshape(len(rows), len(ETA_QUANTILES)),
        header=header,
        path=path,
    )


def _number(value: float | None, missing: float = np.nan) -> float:
    return missing if value is None else float(value)


def _regrets(values: Iterable[float | None]) -> Array:
    """Missing ones become the one before; those at the head, infinite."""
    filled: list[float] = []
    for value in values:
        regret = _number(value)
        filled.append((filled[-1] if filled else np.inf) if np.isnan(regret) else regret)
    return np.array(filled)
