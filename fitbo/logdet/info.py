"""What a log-determinant comes with: the estimated spectrum, and how the estimate was made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fitbo.mixture import Array


@dataclass(frozen=True, eq=False)
class SpectralDensity:
    """The estimated distribution of the eigenvalues, of total mass one.

    points, masses   its quadrature: E[f(lambda)] = sum masses f(points), (G,) each, sorted
    pdf              density in lambda, (N,) -> (N,); None for a distribution of atoms
    """

    points: Array
    masses: Array
    pdf: Callable[[ArrayLike], Array] | None = None

    @classmethod
    def from_atoms(
        cls, points: Array, masses: Array, pdf: Callable[[ArrayLike], Array] | None = None
    ) -> SpectralDensity:
        """Sorted, and scaled to mass one."""
        order = np.argsort(points)
        return cls(points[order], masses[order] / masses.sum(), pdf)

    def expect(self, f: Callable[[Array], Array]) -> float:
        """E[f(lambda)]."""
        return float(self.masses @ f(self.points))

    def cdf(self, points: ArrayLike) -> Array:
        """The share of eigenvalues at or below each point, (N,) -> (N,)."""
        at = np.searchsorted(self.points, np.asarray(points, dtype=np.float64), side="right")
        return np.concatenate([[0.0], np.cumsum(self.masses)])[at]

    def histogram(self, n_bins: int = 60) -> tuple[Array, Array]:
        """Bin edges, equal in log lambda, and the mass per unit of log10 lambda; for a plot."""
        low, high = np.log10(self.points[[0, -1]])
        if high - low < 1e-9:
            low, high = low - 0.05, high + 0.05
        edges = np.linspace(low, high, n_bins + 1)
        heights, _ = np.histogram(np.log10(self.points), edges, weights=self.masses)
        return 10.0**edges, heights / (edges[1] - edges[0])


@dataclass(frozen=True, eq=False)
class LogdetInfo:
    """How an estimate was made.

    method           its name
    products         products with a single vector that the method used, bounds included
    standard_error   of the log-determinant, from the scatter over probes; 0 where exact. It does
                     not include the method's bias, where the moments do not determine the answer
    bounds           (lower, upper) assumed for the spectrum
    n_moments        moments matched
    density          the estimated spectrum, where the method has one
    entropy          of that density in lambda, in nats; with ``prior="ritz"``, whose density is of
                     atoms, -KL from the prior
    residual         largest error of a matched moment
    converged        whether the MaxEnt solve met its tolerance
    solve_seconds    time in the MaxEnt solve
    bracket          (low, high) between which the log-determinant of every matrix with these probe
                     moments and this lower bound must lie: Radau's and Gauss's rules
    """

    method: str
    products: int
    standard_error: float
    bounds: tuple[float, float] | None = None
    n_moments: int = 0
    density: SpectralDensity | None = None
    entropy: float | None = None
    residual: float | None = None
    converged: bool = True
    solve_seconds: float = 0.0
    bracket: tuple[float, float] | None = None
