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


class UnseenEigenvaluesWarning(UserWarning):
    """The log-determinant rests on eigenvalues that no Lanczos run has resolved.

    It may lie below the estimate by more than the standard error says. ``LogdetInfo.unseen`` has an
    estimate of how far, ``LogdetInfo.warning`` the text.
    """


@dataclass(frozen=True, eq=False)
class LogdetInfo:
    """How an estimate was made.

    method           its name
    products         products with a single vector that the method used, bounds included
    standard_error   of the log-determinant, from the scatter over probes; 0 where exact. It does
                     not include the method's bias, where the moments do not determine the answer,
                     but with ``prior="auto"``, unless it warns, that from ``unseen``
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
    prior            MEMe's q0: "flat", "log", "ritz", which ``prior="auto"`` chooses from, or
                     "function"
    unseen           how far the log-determinant may lie below the estimate because of eigenvalues
                     that no Lanczos run has resolved, in nats; None where it was not measured, that
                     is, for every method but MEMe and for priors other than "auto" and "ritz"
    warning          the text of the ``UnseenEigenvaluesWarning`` that was issued, else None
    scale            2^e; ``bounds``, ``density`` and ``entropy`` are those of K / scale. It is 1
                     for every K whose largest entry lies within 3e-39 and 7e38
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
    prior: str | None = None
    unseen: float | None = None
    warning: str | None = None
    scale: float = 1.0
