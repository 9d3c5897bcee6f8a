"""The walkers of an ensemble before it moves: resampling, placement, outliers.

Symbols and references are those of ``fitbo.sampling.ensemble``, which moves them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fitbo.mixture import Array

DEGENERATE = 1e8  # condition number of the walkers beyond which they span too few directions
CLOUD = 0.3  # a restarted ensemble's spread about the best point, as a share of the prior's
HALVINGS = 40  # of that spread, for walkers that still fall where the density vanishes
SURVIVORS = 0.25  # effective share of the walkers that resampling must keep
LEFT_BEHIND = 5.0  # interquartile ranges below the lower quartile: 5e-6 of a Gaussian, P = 12
PRIOR_DRAWS = 20  # ensembles drawn from the prior in search of one point of positive density

LogDensity = Callable[[Array], Array]
Restart = Callable[[np.random.Generator, int], Array]


def resample(
    log_weights: Array, n_parameters: int, rng: np.random.Generator, walkers: int | None = None
) -> tuple[np.ndarray, float, bool]:
    """Systematic resampling: indices (W,), effective share of survivors, whether untempered.

    ``survivors = 1 / (W sum_i w_i^2)`` must leave a quarter of the walkers, and twice as many as
    there are parameters; if not, the weights are tempered, ``w_i^power``, until it does. W is
    ``walkers``, or as many as there are weights; of more weights the survivors may be more than W.
    """
    n = len(log_weights) if walkers is None else walkers
    needed = max(SURVIVORS, min(1.0, 2 * n_parameters / n))
    scaled = log_weights - log_weights.max()

    def weights(power: float) -> Array:
        # 0 x (-inf) would be NaN; a walker of zero density has no weight at any power.
        w = np.exp(np.where(np.isfinite(scaled), power * scaled, -np.inf))
        return w / w.sum()

    def survivors(power: float) -> float:
        return float(1 / (n * np.square(weights(power)).sum()))

    low, high = 0.0, 1.0
    whole = survivors(high) >= needed
    while not whole and high - low > 1e-3:  # survivors falls with the power
        middle = 0.5 * (low + high)
        low, high = (middle, high) if survivors(middle) >= needed else (low, middle)
    power = 1.0 if whole else low
    edges = np.cumsum(weights(power))
    places = edges[-1] * (rng.random() + np.arange(n)) / n
    kept = np.minimum(np.searchsorted(edges, places, side="right"), len(edges) - 1)
    return kept, survivors(power), whole


class Density:
    """The log-density with NaN as -inf, shape checked, calls counted, and the best point kept."""

    def __init__(self, function: LogDensity, n_parameters: int) -> None:
        self.function = function
        self.evaluations = self.invalid = 0
        self.best, self.best_log_p = np.zeros(n_parameters), -np.inf

    def __call__(self, x: Array) -> Array:
        log_p = np.array(self.function(x), dtype=np.float64)
        if log_p.shape != (len(x),):
            raise ValueError(
                f"log_density must map shape {x.shape} to ({len(x)},), got shape {log_p.shape}"
            )
        nan = np.isnan(log_p)
        log_p[nan] = -np.inf
        if (log_p == np.inf).any():
            raise ValueError(f"log_density must be below +inf, got +inf at {x[log_p.argmax()]}")
        self.evaluations += len(x)
        self.invalid += int(nan.sum())
        self.note(x, log_p)
        return log_p

    def note(self, x: Array, log_p: Array) -> None:
        """The best of x (B, P), whose log-densities (B,) are known, if none was better."""
        top = int(log_p.argmax())
        if log_p[top] > self.best_log_p:
            self.best, self.best_log_p = x[top].copy(), float(log_p[top])


def seat(x: Array, log_p: Array, density: Density, draw: Restart, rng: np.random.Generator) -> None:
    """Move, in place, walkers at -inf to a cloud about the best point, of the prior's shape.

    emcee must not hold a walker at -inf: the difference of two such densities is NaN.
    """

    def prior() -> Array:
        points = np.asarray(draw(rng, len(x)), dtype=np.float64)
        if points.shape != x.shape or not np.isfinite(points).all():
            raise ValueError(
                f"restart(rng, {len(x)}) must return finite points of shape {x.shape}, "
                f"got shape {points.shape}"
            )
        return points

    for _ in range(PRIOR_DRAWS):
        if np.isfinite(density.best_log_p):
            break
        density(prior())
    else:
        raise ValueError(
            f"log_density is -inf at all {density.evaluations} points of start and of the prior: "
            "give a start or a restart inside its support"
        )
    for k in range(HALVINGS):
        out = ~np.isfinite(log_p)
        if not out.any():
            return
        points = prior()
        cloud = density.best + CLOUD * 0.5**k * (points - points.mean(0))
        x[out] = cloud[out]
        log_p[out] = density(x[out])
    raise ValueError(f"log_density is -inf all around its best point {density.best}")


def left_behind(log_ps: Array) -> np.ndarray:
    """Walkers whose mean log-density is an outlier from below, as in [3], (T, W) -> (W,)."""
    level = log_ps.mean(0)
    low, high = np.quantile(level, [0.25, 0.75])
    return level < low - LEFT_BEHIND * (high - low)


def degenerate(x: Array) -> bool:
    """Whether the walkers span too few directions for moves made of their differences."""
    centred = x - x.mean(0)
    spread = centred.std(0)
    if (spread <= 1e-12 * (1 + abs(x).max(0))).any():
        return True
    return bool(np.linalg.cond(centred / spread) > DEGENERATE)
