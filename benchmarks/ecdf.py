"""What runs on BBOB have reached, as COCO [1] measures it, and how sure the comparisons are.

==========  ===========  =======================================================================
symbol      shape        meaning
==========  ===========  =======================================================================
regret      (n,)         lowest value so far - f_opt, after each evaluation
TARGETS     (51,)        10^2, 10^1.8, ..., 10^-8: values of the regret to be reached
marks       (3,)         6d, 12d, 22d evaluations: 30, 60 and 110 in five dimensions
==========  ===========  =======================================================================

A regret below the last target counts as that target, so that runs below it are tied.

Instances of a function are alike, so a standard error is that of the mean over functions: with
m_k the mean of function k of K, sqrt(sum_k (m_k - m)^2 / (K (K - 1))), weighted by the runs n_k of
each function where they differ. An interval is that of a bootstrap over functions.

[1] Hansen, Auger, Ros, Mersmann, Tusar, Brockhoff, COCO: a platform for comparing continuous
    optimizers in a black-box setting, Optimization Methods and Software 36, 2021.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from fitbo.mixture import Array
from fitbo.report.history import Run

TARGETS = 10.0 ** (np.arange(10, -41, -1) / 5)
GROUPS = {
    "separable": range(1, 6),
    "low conditioning": range(6, 10),
    "high conditioning": range(10, 15),
    "multimodal": range(15, 20),
    "weak structure": range(20, 25),
}
RESAMPLES = 10_000

Key = tuple[int, int, int]  # dimension, function, instance


@dataclass(frozen=True, eq=False)
class Score:
    """One complete run."""

    regret: Array
    recommended: float  # regret of the point recommended in the end
    seconds: float  # per suggestion, the mean

    @property
    def reached(self) -> Array:
        """The share of the targets reached after each evaluation, (n,)."""
        return (self.regret[:, None] <= TARGETS * (1 + 1e-12)).mean(axis=1)

    @property
    def log_regret(self) -> Array:
        """log10 of the regret, not below the last target, (n,)."""
        return np.log10(np.maximum(self.regret, TARGETS[-1]))

    def worse(self, by: float) -> bool:
        """Whether the recommended point is worse than the best observed by more than this share."""
        best, given = (max(r, TARGETS[-1]) for r in (self.regret[-1], self.recommended))
        return given > best * (1 + by)


def key_of(run: Run) -> Key:
    problem = run.header["study"]["problem"]
    return int(problem["dim"]), int(problem["function"]), int(problem["instance"])


def score_of(run: Run) -> Score:
    known = run.seconds[np.isfinite(run.seconds)]
    seconds = float(known.mean()) if len(known) else float("nan")
    return Score(run.simple, float(run.immediate[-1]), seconds)


def marks(dim: int) -> tuple[int, int, int]:
    return 6 * dim, 12 * dim, 22 * dim


def group_of(function: int) -> str:
    return next(name for name, members in GROUPS.items() if function in members)


def clustered(values: Sequence[float] | Array, functions: Sequence[int]) -> tuple[float, float]:
    """The mean of the values, (N,), and its standard error, the functions being independent."""
    values, clusters = np.asarray(values, dtype=np.float64), np.asarray(functions)
    mean, kinds = float(values.mean()), np.unique(clusters)
    if len(kinds) < 2:
        return mean, float("nan")
    sums = np.array([(values[clusters == kind] - mean).sum() for kind in kinds])
    error = np.sqrt((sums**2).sum() * len(kinds) / (len(kinds) - 1)) / len(values)
    return mean, float(error)


def interval(values: Array, functions: Sequence[int]) -> tuple[float, float]:
    """95% of the mean of the values, (N,), by a bootstrap over functions."""
    clusters = np.asarray(functions)
    kinds = np.unique(clusters)
    sums = np.array([values[clusters == kind].sum() for kind in kinds])
    counts = np.array([(clusters == kind).sum() for kind in kinds])
    drawn = np.random.default_rng(0).integers(len(kinds), size=(RESAMPLES, len(kinds)))
    low, high = np.quantile(sums[drawn].sum(1) / counts[drawn].sum(1), [0.025, 0.975])
    return float(low), float(high)


def ranks(final: Array) -> Array:
    """Ranks of the methods on each problem by log10 regret, ties shared: (N, k) -> (N, k)."""
    return rankdata(np.round(final, 9), axis=1)


def wins(a: Array, b: Array) -> Array:
    """1 where a's log10 regret is lower than b's, 1/2 where they are tied, else 0, (N,)."""
    a, b = np.round(a, 9), np.round(b, 9)
    return (a < b) + 0.5 * (a == b)
