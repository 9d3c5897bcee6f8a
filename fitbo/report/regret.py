"""Regret over seeds: curves of medians and quartiles, and a table.

How runs are put together:

- Quantiles are taken of log10 regret, over seeds. Regrets below ``FLOOR`` count as ``FLOOR``: a
  regret of zero has no logarithm, and minima are known to some 1e-13 only. Where a problem's
  minimum is unknown, they are taken of the best values themselves.
- A regret not yet known (every evaluation so far has failed) is infinite.
- Runs may be unfinished. Nothing is carried forward: at n the curve is the median over the runs
  that have reached n, and it ends where fewer than half of them have. ``Curve.count`` says how many
  runs stand behind each n. A run that has stopped short is thereby neither a stalled run nor one
  that holds the others back.
- The table takes each run at its last evaluation, and says how many runs are complete.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fitbo.mixture import Array
from fitbo.records.events import ETA_QUANTILES
from fitbo.report.history import Run, Runs

FLOOR = 1e-10
SUCCESS = 1e-2
QUARTILES = (0.25, 0.5, 0.75)

Band = tuple[float, float, float]  # quartile, median, quartile


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
    """One line of the final table; regrets are no logarithms, and NaN where unknown."""

    problem: str
    method: str
    runs: int
    complete: int
    immediate: Band
    simple: Band
    best: Band
    success: float  # share of runs whose last immediate regret is at most SUCCESS
    seconds: float  # mean over the suggestions of all runs; NaN if there is none


def known_minimum(runs: Sequence[Run]) -> bool:
    """Whether there is a regret to speak of."""
    return all(np.isfinite(run.minimum) for run in runs)


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


def curve(runs: Sequence[Run], what: str = "immediate") -> Curve:
    """Median and quartiles against evaluations of log10 "immediate" or "simple", or of "best"."""
    series = [getattr(run, what) for run in runs]
    return over_runs(series if what == "best" else [log10(each) for each in series])


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
    return _medians([run.eta for run in runs], len(ETA_QUANTILES))


def seconds_curve(runs: Sequence[Run]) -> Array:
    """Median seconds of the suggestion that led to evaluation n, (N,); NaN where none did."""
    return _medians([run.seconds[:, None] for run in runs], 1)[:, 0]


def _medians(series: Sequence[Array], width: int) -> Array:
    """Medians at each n over the ragged series (n_s, width), of those known there, (N, width)."""
    N = int(over_runs([each[:, 0] for each in series]).n[-1])
    medians = np.full((N, width), np.nan)
    for i in range(N):
        there = [each[i] for each in series if len(each) > i and np.isfinite(each[i]).all()]
        if there:
            medians[i] = np.median(there, axis=0)
    return medians


def summarise(grouped: Runs) -> list[Summary]:
    """The final table: one row for each problem and method."""
    return [
        _summary(problem, method, runs)
        for problem, methods in grouped.items()
        for method, runs in methods.items()
    ]


def _summary(problem: str, method: str, runs: Sequence[Run]) -> Summary:
    seconds = np.concatenate([run.seconds for run in runs])
    seconds = seconds[np.isfinite(seconds)]
    known = known_minimum(runs)
    immediate = np.array([run.immediate[-1] for run in runs])
    tracked = known and not np.isnan(immediate).any()
    success = immediate if tracked else np.array([run.simple[-1] for run in runs])
    return Summary(
        problem,
        method,
        len(runs),
        sum(run.complete for run in runs),
        _band(10 ** quantiles(log10(immediate))),
        _band(10 ** quantiles(log10([run.simple[-1] for run in runs]))),
        _band(quantiles([run.best[-1] for run in runs])),
        float(np.mean(success <= SUCCESS * (1 + 1e-9))) if known else float("nan"),
        float(np.mean(seconds)) if len(seconds) else float("nan"),
    )


def _band(values: Array) -> Band:
    low, median, high = map(float, values)
    return low, median, high
