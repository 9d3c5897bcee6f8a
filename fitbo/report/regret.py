"""Regret over seeds: curves of medians and quartiles, and a table.

- Quantiles over seeds are those of log10 regret. Regrets below ``FLOOR`` count as ``FLOOR``: a
  regret of zero has no logarithm, and minima are known only to about 1e-13. Where a problem's
  minimum is unknown, the quantiles are those of the best values themselves.
- A regret not yet known (every evaluation so far has failed) is infinite.
- Runs may be unfinished. Nothing is carried forward: at n the curve is the median over the runs
  that have reached n, and it ends where fewer than half of them have. ``Curve.count`` is the number
  of runs behind each n. So a run that has stopped early neither counts as stalled nor shortens the
  curves of the others.
- The table takes each run at its last evaluation, and says how many runs are complete.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fitbo.mixture import Array
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
    """One line of the final table; regrets are not logarithms, and NaN where unknown."""

    problem: str
    method: str
    runs: int
    complete: int
    immediate: Band
    simple: Band
    best: Band
    success: float  # share of runs whose last immediate regret is at most SUCCESS
    seconds: float  # mean over the suggestions of all runs; NaN if there is none
    sign: float = 1.0  # -1 if the function is maximised


def known_minimum(runs: Sequence[Run]) -> bool:
    """Whether there is a regret to speak of."""
    return all(np.isfinite(run.minimum) for run in runs)


def log10(regret: ArrayLike) -> Array:
    """log10 max(regret, FLOOR), any shape."""
    return np.log10(np.maximum(np.asarray(regret, dtype=np.float64), FLOOR))


def quantiles(values: ArrayLike, q: Sequence[float] = QUARTILES) -> Array:
    """Linear quantiles over the first axis, (S, ...) -> (len(q), ...); infinities are values."""
    ordered = np.sort(np.asarray(values, dtype=np.float64), axis=0)
    places = np.asarray(q) * (len(ordered) - 1)
    low, high = (ordered[end(places).astype(np.intp)] for end in (np.floor, np.ceil))
    # inf - inf is not a number, so equal neighbours are not interpolated.
    gap = np.where(low == high, 0.0, high) - np.where(low == high, 0.0, low)
    return low + (places % 1 * gap.T).T


def curve(runs: Sequence[Run], what: str = "immediate") -> Curve:
    """Median and quartiles against evaluations of log10 "immediate" or "simple", or of "best"."""
    series = [getattr(run, what) for run in runs]
    return over_runs(series if what == "best" else [log10(each) for each in series])


def over_runs(series: Sequence[Array]) -> Curve:
    """Quartiles over ragged series (n_s,), to where fewer than half of them go on."""
    N = _reach(series)
    there = [[values[i] for values in series if len(values) > i] for i in range(N)]
    low, median, high = np.array([quantiles(values) for values in there]).reshape(N, 3).T
    count = np.array([len(values) for values in there])
    return Curve(np.arange(1, N + 1), low, median, high, count, len(series))


def _reach(series: Sequence[Array]) -> int:
    """The last n that at least half of the ragged series reach."""
    return sorted(map(len, series), reverse=True)[(len(series) + 1) // 2 - 1]


def quantile_band(runs: Sequence[Run], what: str = "optimum") -> Array:
    """The median over runs of each quantile of f* ("optimum") or "eta" at n, (N, 5); or NaN.

    Those of f* are noted from time to time: in between the last ones hold.
    """
    series = [getattr(run, what) for run in runs]
    return _medians([held(each) for each in series] if what == "optimum" else series)


def held(values: Array) -> Array:
    """Each unknown row as the last known one before it, (n, w); NaN where there is none."""
    known = np.isfinite(values).all(axis=1)
    last = np.maximum.accumulate(np.where(known, np.arange(len(values)), -1))
    return np.where((last >= 0)[:, None], values[last], np.nan)


def seconds_curve(runs: Sequence[Run]) -> Array:
    """Median seconds of the suggestion that led to evaluation n, (N,); NaN where none did."""
    return _medians([run.seconds[:, None] for run in runs])[:, 0]


def _medians(series: Sequence[Array]) -> Array:
    """Medians at each n over the ragged series (n_s, w), of those known there, (N, w)."""
    medians = np.full((_reach(series), series[0].shape[1]), np.nan)
    for i in range(len(medians)):
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
    immediate = np.array([run.immediate[-1] for run in runs])
    simple = np.array([run.simple[-1] for run in runs])
    final = simple if np.isnan(immediate).any() else immediate
    return Summary(
        problem,
        method,
        len(runs),
        sum(run.complete for run in runs),
        _band(10 ** quantiles(log10(immediate))),
        _band(10 ** quantiles(log10(simple))),
        _band(quantiles([run.best[-1] for run in runs])),
        float(np.mean(final <= SUCCESS * (1 + 1e-9))) if known_minimum(runs) else float("nan"),
        float(np.mean(seconds)) if len(seconds) else float("nan"),
        runs[0].sign,
    )


def _band(values: Array) -> Band:
    low, median, high = map(float, values)
    return low, median, high
