"""Numbers for people: the digits that matter, and no more."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any


def digits(value: Any) -> str:
    """A value as it is shown: six digits of a real number, everything else as it is."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def short(point: Mapping[str, Any]) -> str:
    """A point on one line."""
    return " ".join(f"{name}={digits(value)}" for name, value in point.items())


def resolved(value: float, scale: float) -> str:
    """A number to the second digit of a scale, such as its standard deviation; six at most."""
    if not (math.isfinite(scale) and scale > 0 and math.isfinite(value)):
        return f"{value:.6g}"
    decimals = 1 - math.floor(math.log10(scale))
    rounded = round(value, decimals) + 0.0  # never -0.0
    return f"{rounded:.{decimals}f}" if 0 <= decimals <= 6 else f"{rounded:.6g}"


def measured(mean: float, deviation: float) -> str:
    """``0.1234 ± 0.0056``: a mean to the second digit of its standard deviation."""
    return f"{resolved(mean, deviation)} ± {deviation:.2g}"


def interval(quantiles: Sequence[float]) -> str:
    """``2e-06, 90% in [-1e-05, 3e-06]``: of the 5%, 50% and 95% quantiles."""
    low, middle, high = (resolved(q, quantiles[2] - quantiles[0]) for q in quantiles)
    return f"{middle}, 90% in [{low}, {high}]"


def duration(seconds: float) -> str:
    """``12 s``, ``4 min``, ``2 h 5 min``."""
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"
