"""Where the spectrum lies.

Gershgorin (the paper's): every eigenvalue lies in a disc about some K_ii of radius
sum_{j != i} |K_ij|. For the upper end the Frobenius norm is a bound too, at no further cost.
Lanczos: the largest Ritz value plus its residual norm, after Zhou & Li (2011). It needs only
products, and is a bound in practice, not by theorem.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ldexp
from typing import Any

import numpy as np
from scipy.linalg import eigh_tridiagonal

from fitbo.logdet.operator import Operator, indefinite
from fitbo.mixture import Array

LANCZOS_STEPS = 20
MARGIN = 1e-10  # relative: rounding in a bound that is attained


@dataclass(frozen=True)
class Bounds:
    """lower <= spectrum <= upper; lower is 0 where nothing better is known."""

    lower: float
    upper: float

    @property
    def pair(self) -> tuple[float, float]:
        return self.lower, self.upper

    def to_unit(self, points: Array) -> Array:
        """lambda -> u in [-1, 1]."""
        return 2 * (points - self.lower) / (self.upper - self.lower) - 1

    def from_unit(self, u: Array) -> Array:
        """u -> lambda."""
        return self.lower + 0.5 * (self.upper - self.lower) * (1 + u)


def gershgorin(operator: Operator) -> tuple[float, float]:
    """Ends of the union of Gershgorin's discs, the upper one no more than ||K||_F."""
    diagonal, squares = operator.diagonal(), operator.squared_norm()
    if diagonal is None or squares is None:
        raise ValueError(
            'bounds="gershgorin" needs the entries of K, got a LinearOperator; use "lanczos"'
        )
    radius = np.asarray(abs(operator.matrix).sum(axis=1)).ravel() - abs(diagonal)
    upper = min(float((diagonal + radius).max()), float(np.sqrt(squares)))
    return float((diagonal - radius).min()), upper


def lanczos_ends(operator: Operator, rng: np.random.Generator) -> tuple[float, float]:
    """(smallest Ritz value, inside the spectrum; a bound of the largest eigenvalue), by Lanczos."""
    steps = min(LANCZOS_STEPS, operator.n)
    q = rng.standard_normal((operator.n, 1))
    q /= np.linalg.norm(q)
    known = np.empty((steps, operator.n))
    alpha, beta = np.zeros((2, steps))
    for k in range(steps):
        known[k] = q[:, 0]
        v = (operator @ q)[:, 0]
        alpha[k] = v @ q[:, 0]
        for _ in range(2):
            v = v - (known[: k + 1] @ v) @ known[: k + 1]
        beta[k] = np.linalg.norm(v)
        if beta[k] <= 1e-13 * abs(alpha).max():
            steps = k + 1
            break
        q = v[:, None] / beta[k]
    values = eigh_tridiagonal(alpha[:steps], beta[: steps - 1], eigvals_only=True)
    if values[0] < -1e-12 * abs(values).max():
        raise indefinite(f"a Ritz value of {values[0]:.3g}")
    return float(values[0]), float(values[-1] + beta[steps - 1])


def resolve(
    operator: Operator, bounds: Any, rng: np.random.Generator, spare: bool = False
) -> Bounds:
    """Bounds from what the caller gave: None, a name, or a pair with None for either end.

    ``spare`` leaves the upper end at inf where it would take products that nobody asked for.
    """
    lower: float | None = None
    upper: float | None = None
    how = "gershgorin" if operator.matrix is not None else "lanczos"
    if isinstance(bounds, str):
        if bounds not in ("gershgorin", "lanczos"):
            raise ValueError(f"bounds must be gershgorin, lanczos or a pair, got {bounds!r}")
        how = bounds
    elif bounds is not None:
        try:
            lower, upper = (None if end is None else float(end) for end in bounds)
        except (TypeError, ValueError):
            raise ValueError(f"bounds must be a pair (lower, upper), got {bounds!r}") from None
        if not all(end is None or 0 <= end < np.inf for end in (lower, upper)):
            raise ValueError(f"bounds must be finite and not negative, got {bounds!r}")
        try:
            e = -operator.exponent
            lower, upper = (None if end is None else ldexp(end, e) for end in (lower, upper))
        except OverflowError:
            raise ValueError(
                f"bounds must be of the size of K's eigenvalues, got {bounds!r} for a K whose "
                f"largest entry is about 2^{operator.exponent}; lower them"
            ) from None
    if upper is None and spare and how == "lanczos" and bounds != "lanczos":
        upper = np.inf
    elif upper is None:
        ends = gershgorin(operator) if how == "gershgorin" else lanczos_ends(operator, rng)
        upper = ends[1] * (1 + MARGIN)
        # Lanczos's lower end is no bound, so it is not used as one.
        if lower is None and how == "gershgorin":
            lower = max(0.0, ends[0] * (1 - MARGIN))
    lower = lower or 0.0
    if not lower <= upper or upper <= 0:
        raise ValueError(f"bounds must have 0 <= lower <= upper and upper > 0, got {bounds!r}")
    return Bounds(lower, upper)
