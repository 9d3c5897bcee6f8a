"""The box that is searched, and its map to the unit cube that the model sees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fitbo.mixture import Array


@dataclass(frozen=True)
class Space:
    """``low_i <= x_i <= high_i``; made from pairs: ``Space([(0, 1), (-5, 10)])``."""

    bounds: tuple[tuple[float, float], ...]

    def __init__(self, bounds: Sequence[tuple[float, float]] | ArrayLike) -> None:
        try:
            array = np.array(bounds, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"bounds must be pairs of numbers, got {bounds!r:.80}") from None
        if array.ndim != 2 or array.shape[0] < 1 or array.shape[1] != 2:
            raise ValueError(
                f"bounds must be pairs (low, high), one a dimension, got {bounds!r:.80}"
            )
        if not np.isfinite(array).all():
            raise ValueError(f"bounds must be finite, got {bounds!r:.80}")
        for i, (low, high) in enumerate(array):
            if not low < high:
                raise ValueError(f"bounds[{i}] must have low < high, got ({low:g}, {high:g})")
        object.__setattr__(self, "bounds", tuple((float(a), float(b)) for a, b in array))

    @property
    def dim(self) -> int:
        return len(self.bounds)

    @property
    def low(self) -> Array:
        return np.array([low for low, _ in self.bounds])

    @property
    def high(self) -> Array:
        return np.array([high for _, high in self.bounds])

    def from_cube(self, u: ArrayLike) -> Array:
        """(..., d) in [0, 1] to the box; the ends map to the bounds exactly."""
        u = np.asarray(u, dtype=np.float64)
        # A convex combination cannot leave the box by more than rounding; the clip takes that away.
        return np.clip(self.low * (1 - u) + self.high * u, self.low, self.high)

    def to_cube(self, x: ArrayLike) -> Array:
        """(..., d) in the box to [0, 1]; a point outside is an error."""
        x = np.asarray(x, dtype=np.float64)
        if x.ndim == 0 or x.shape[-1] != self.dim:
            raise ValueError(f"x must have shape (..., {self.dim}), got {x.shape}")
        if not np.isfinite(x).all():
            raise ValueError(f"x must be finite, got {x}")
        outside = (x < self.low) | (x > self.high)
        if outside.any():
            i = int(np.argmax(outside.reshape(-1, self.dim).any(0)))
            raise ValueError(f"x[{i}] must lie in {self.bounds[i]}, got {x[..., i]}")
        return np.clip((x - self.low) / (self.high - self.low), 0.0, 1.0)
